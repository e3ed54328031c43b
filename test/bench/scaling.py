"""What one more costs: idle connections, rules, mounts, bytes of a document. Each should cost the same at the largest number as at a
small one.

    idle connections   broker: 1 to 10,000 (--max-connections raised), the agent: 1 to 500 (its limit is 512). Memory of each, and what
                       a request costs in processor time while all those idle
    rules              1 to 256 names in sandbox-egress.json, which is its limit: start of the broker, processor time of a request to the last one
    mounts             1 to 64 folders: the stage `mounts` of a boot, which includes those that no driver serves yet
    documents          1 KB to 50 MB through a rule: as they are, and an npm document whose links are rewritten
"""
import contextlib
import json
import pathlib
import subprocess
import tempfile
import time

import bench
import boot
import broker as broker_part
import relay as relay_part
import rivals

IDLE_BROKER = (1, 10, 100, 1000, 10000)
IDLE_AGENT = (1, 10, 100, 500)
RULES = (1, 10, 100, 256)
MOUNTS = (1, 4, 16, 24, 64)
DOCUMENTS = (1_000, 32_000, 1_000_000, 50_000_000)
COUNT = 3000  # requests, for processor time
NPM = "application/vnd.npm.install-v1+json"
MANY = ("--max-connections", "10100", "--max-requests", "256")


def table(title, heads, rows):
    print(f"\n| {title} | " + " | ".join(heads) + " |\n| ---: |" + " ---: |" * len(heads))
    for name, values in rows.items():
        print(f"| {name:,} | " + " | ".join("-" if value is None else f"{value:,.1f}" for value in values) + " |")
    return {str(name): values for name, values in rows.items()}


def cpu_of_request(pid, endpoint, path, token=None, count=COUNT, connections=4, accept=None):
    before = bench.cpu_seconds(pid)
    values = bench.requests(endpoint, path, connections=connections, preface=token, count=count, accept=accept)
    return (bench.cpu_seconds(pid) - before) / values["ever"] * 1e6


def idle(endpoint, path, pid, token, counts):
    """[memory of each, microseconds of processor of a request beside them] by their number."""
    rows = {}
    cpu_of_request(pid, endpoint, path, token, 500)
    empty = bench.memory_kib(pid)
    for count in counts:
        with bench.holding("idle", endpoint, path, count, preface=token):
            each = (bench.memory_kib(pid) - empty) / count
            rows[count] = [each, cpu_of_request(pid, endpoint, path, token)]
    return rows


def idle_connections(folder, port, authority):
    path = folder / "front.sock"
    with broker_part.broker(folder, path, port, authority.ca, broker_part.SECRET, limits=MANY) as (pid, token):
        of_broker = idle(f"unix:{path}", broker_part.SMALL, pid, token, IDLE_BROKER)
    target = folder / "target.sock"
    with bench.serving(f"unix:{target}"):
        front = bench.free_port()
        with relay_part.agent(folder, front, target) as pid:
            of_agent = idle(f"tcp:127.0.0.1:{front}", "/x/100", pid, None, IDLE_AGENT)
    heads = ["KiB each", "us of processor a request"]
    return {"idle connections, broker": table("idle connections, broker", heads, of_broker),
            "idle connections, agent": table("idle connections, agent", heads, of_agent)}


def rules(folder, port, authority):
    rows = {}
    path = folder / "front.sock"
    for count in RULES:
        names = {f"rule-{number:04}": f"https://127.0.0.1:{port}" for number in range(count)}
        begin = time.monotonic()
        with broker_part.broker(folder, path, port, authority.ca, broker_part.SECRET, rules=names) as (pid, token):
            started = (time.monotonic() - begin) * 1e3
            last = f"/rule-{count - 1:04}/100"
            cpu_of_request(pid, f"unix:{path}", last, token, 500)
            rows[count] = [started, cpu_of_request(pid, f"unix:{path}", last, token)]
    return {"rules": table("rules", ["ms until ready", "us of processor a request"], rows)}


def mounts(folder):
    rows = {}
    for count in MOUNTS:
        options = []
        for number in range(count):
            mounted = folder / f"mounted-{number}"
            mounted.mkdir(exist_ok=True)
            mounted.chmod(0o777)
            options += ["--mount", str(mounted)]
        try:
            total, stages = boot.boot_ours(bench.TOP, folder, options)
        except subprocess.CalledProcessError as fault:
            words = (fault.stderr or b"").decode(errors="replace").strip().splitlines()
            print(f"{count} mounts: no start: {words[-1] if words else fault}")
            rows[count] = [None, None, None]
            continue
        rows[count] = [stages["mounts"], stages["mounts"] / count, total]
    return {"mounts": table("mounts", ["ms of the stage", "ms each", "ms of the whole boot"], rows)}


def npm_document(size):
    """About so many bytes, with a link every 400."""
    versions = {f"0.0.{number}": {"name": "pkg", "version": f"0.0.{number}", "description": "x" * 200, "dist": {
        "tarball": f"https://localhost/pkg/-/pkg-0.0.{number}.tgz", "shasum": "0" * 40}} for number in range(max(size // 400, 1))}
    return json.dumps({"name": "pkg", "dist-tags": {"latest": "0.0.0"}, "versions": versions}).encode()


NGINX_FILES = """\
daemon off; user root; worker_processes 1; pid {folder}/files.pid; error_log {folder}/files.log;
events {{ worker_connections 1000; }}
http {{
    access_log off; sendfile on; keepalive_requests 1000000; default_type application/json;
    server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {certificate}; ssl_certificate_key {key}; root {folder}/files; }}
}}
"""


@contextlib.contextmanager
def file_server(folder, authority):
    """nginx with the documents; its port."""
    files, port = folder / "files", bench.free_port()
    files.mkdir()
    for size in DOCUMENTS:
        (files / f"pkg-{size}").write_bytes(npm_document(size))
    config = folder / "files.conf"
    config.write_text(NGINX_FILES.format(folder=folder, port=port, certificate=authority.certificate, key=authority.key))
    with rivals.running(["nginx", "-c", config, "-e", folder / "files.log"], port):
        yield port


def documents(folder, authority):
    rows = {}
    path = folder / "front.sock"
    with file_server(folder, authority) as port, broker_part.broker(
            folder, path, port, authority.ca, broker_part.SECRET, rules={"npm": f"https://127.0.0.1:{port}"}) as (pid, token):
        for size in DOCUMENTS:
            real = (folder / "files" / f"pkg-{size}").stat().st_size
            count = max(min(100_000_000 // size, 2000), 3)
            ask = lambda name, accept: cpu_of_request(pid, f"unix:{path}", f"/{name}/pkg-{size}", token, count, 1, accept)
            as_is, rewritten = ask("gateway", None), ask("npm", NPM)
            rows[size] = [as_is, rewritten, as_is / real * 1e6, rewritten / real * 1e6]
    heads = ["us of processor", "us, rewritten", "us a MB", "us a MB, rewritten"]
    return {"documents": table("bytes of a document", heads, rows)}


def run(project, rounds=1):
    del project, rounds
    found = {}
    print("\nscaling: what one more costs")
    with tempfile.TemporaryDirectory(prefix="codev-bench-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)  # a guest's file server enters it; the broker's socket wants a folder of its own
        private = folder / "private"
        private.mkdir(mode=0o700)
        authority = broker_part.Authority(private)
        with bench.serving("tcp:127.0.0.1:0", "--tls", authority.certificate, authority.key) as port:
            found.update(idle_connections(private, port, authority))
            found.update(rules(private, port, authority))
        found.update(documents(private, authority))
        found.update(mounts(folder))
    return {"figures": found, "goals": []}


if __name__ == "__main__":
    run(None)
