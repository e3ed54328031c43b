"""The cost of one more idle connection, rule, mount or byte of a document, which should be the same
at the largest number as at a small one.

    idle connections   broker: 1 to 10,000 (--max-connections raised), the agent: 1 to 500 (its
                       limit is 512). What each takes of
                       memory, and what a request takes of a processor while all those idle
    rules              1 to 1000 names in sandbox-egress.json: processor time of the broker's start
                       and of a request to the last one; inside, instructions of the stages
                       that read the names and write them for others
    mounts             1 to 64 folders: the stage `mounts` of a boot, in milliseconds and
                       instructions, and the boot until then
    documents          1 KB to 50 MB through a rule: as they are, and an npm document whose links
                       are rewritten

Each round measures all numbers of a table once, so that a busy moment affects all; figures are
medians, followed by minimum and maximum. Instructions in the guest (boot.py) are counted once: they
repeat within one or two percent."""
import contextlib
import json
import pathlib
import statistics
import tempfile

import bench
import boot
import broker as broker_part
import relay as relay_part
import rivals

IDLE_BROKER = (1, 10, 100, 1000, 10000)
IDLE_AGENT = (1, 10, 100, 500)
RULES = (1, 10, 100, 1000)
MOUNTS = (1, 4, 16, 64)
DOCUMENTS = (1_000, 32_000, 1_000_000, 50_000_000)
COUNT = 3000  # requests, for processor time
FLAT = 1.2  # highest allowed ratio of the cost at the largest number to that at a small one
NPM = "application/vnd.npm.install-v1+json"
MANY = ("--max-connections", "10100", "--max-requests", "256")
EACH_FROM = 100  # idle connections: with fewer, the cost of one is lost in other changes


class Table:
    """number -> column -> the values of all rounds."""

    def __init__(self, title, *columns):
        self.title, self.columns, self.rows = title, columns, {}

    def add(self, number, *values):
        for column, value in zip(self.columns, values, strict=True):
            if value is not None:
                self.rows.setdefault(number, {}).setdefault(column, []).append(value)

    def median(self, number, column):
        return statistics.median(self.rows[number][column])

    def print(self):
        print(f"\n| {self.title} | " + " | ".join(self.columns) + " |\n| ---: |" +
              " ---: |" * len(self.columns))
        for number, cells in self.rows.items():
            print(f"| {number:,} | " +
                  " | ".join(self.cell(cells.get(column, [])) for column in self.columns) + " |")
        return {str(number): cells for number, cells in self.rows.items()}

    @staticmethod
    def cell(values):
        if not values:
            return "-"
        middle = f"{statistics.median(values):,.1f}"
        return middle if len(
            values) == 1 else f"{middle} ({min(values):,.1f} to {max(values):,.1f})"

    def flat(self, column, small, large):
        """The goal that the column's cost at the large number is at most a little above that at the
        small one."""
        ratio = self.median(large, column) / self.median(small, column)
        return bench.goal(
            f"{self.title}: {column} at {large:,} at most {FLAT} of that at {small:,}",
            ratio <= FLAT, f"{ratio:.2f}")


def cpu_of_request(pid, endpoint, path, token=None, count=COUNT, connections=4, accept=None):
    before = bench.cpu_seconds(pid)
    values = bench.requests(endpoint,
                            path,
                            connections=connections,
                            preface=token,
                            count=count,
                            accept=accept)
    return (bench.cpu_seconds(pid) - before) / values["ever"] * 1e6


# --- idle connections -----------------------------------------------------------------------------

def idle(table, endpoint, path, pid, token):
    """One round beside a running server."""
    one = None
    for count in IDLE_BROKER if token else IDLE_AGENT:
        with bench.holding("idle", endpoint, path, count, preface=token):
            memory = bench.memory_kib(pid)
            one = memory if one is None else one
            each = (memory - one) / (count - 1) if count >= EACH_FROM else None
            table.add(count, each, cpu_of_request(pid, endpoint, path, token))


def idle_connections(folder, port, authority, rounds):
    heads = ("KiB each", "us of processor a request")
    of_broker, of_agent = Table("idle connections, broker",
                                *heads), Table("idle connections, agent", *heads)
    path = folder / "front.sock"
    for number in range(
            rounds):  # with new processes, as later connections reuse the memory of earlier ones
        front, target = bench.free_port(), folder / f"target-{number}.sock"
        with broker_part.broker(folder, path, port, authority.ca, broker_part.SECRET,
                                limits=MANY) as (broker, token), \
                bench.serving(f"unix:{target}"), relay_part.agent(folder, front, target) as agent:
            cpu_of_request(broker, f"unix:{path}", broker_part.SMALL, token, 500)
            cpu_of_request(agent, f"tcp:127.0.0.1:{front}", "/x/100", None, 500)
            idle(of_broker, f"unix:{path}", broker_part.SMALL, broker, token)
            idle(of_agent, f"tcp:127.0.0.1:{front}", "/x/100", agent, None)
    return of_broker, of_agent


# --- rules ----------------------------------------------------------------------------------------

def rule_names(count):
    return [f"rule-{number:04}" for number in range(count)]


def rules(folder, port, authority, rounds):
    table = Table("rules", "ms of processor until ready", "us of processor a request")
    path = folder / "front.sock"
    for count in RULES * rounds:
        names = dict.fromkeys(rule_names(count), f"https://127.0.0.1:{port}")
        with broker_part.broker(folder, path, port, authority.ca, broker_part.SECRET,
                                rules=names) as (pid, token):
            started = bench.cpu_seconds(pid) * 1e3
            last = f"/rule-{count - 1:04}/100"
            cpu_of_request(pid, f"unix:{path}", last, token, 500)
            table.add(count, started, cpu_of_request(pid, f"unix:{path}", last, token))
    return table


def rules_inside(folder):
    table = Table("rules, inside", "thousand instructions of the stage config",
                  "of the stage server")
    token, path = folder / "gateway-token", folder / "rules-inside.json"
    token.write_text(broker_part.SECRET)
    token.chmod(0o600)
    for count in RULES:
        path.write_text(json.dumps(dict.fromkeys(rule_names(count), "https://registry.example")))
        options = [
            "--gateway-url", "https://127.0.0.1:1/v", "--gateway-token-file", token, "--rules", path
        ]
        stages = count_stages(folder, options)
        table.add(count, *(stages[name] * 1e3 for name in ("config", "server")))
    return table


# --- mounts ---------------------------------------------------------------------------------------

def count_stages(folder, options):
    """stage -> millions of instructions of one boot."""
    arguments, lines = boot.counter(folder, boot.mark_of("codev-init", "main"),
                                    boot.mark_of("codev-init", "report_stage"))
    _, stages = boot.boot_ours(None, folder, options, arguments)
    return {
        name: counts["instructions"]
        for name, counts in zip(stages, boot.counts_between(lines), strict=True)
    }


def mount_options(folder, count):
    options = []
    for number in range(count):
        mounted = folder / f"mounted-{number}"
        mounted.mkdir(exist_ok=True)
        mounted.chmod(0o777)
        options += ["--mount", str(mounted)]
    return options


def mounts(folder, rounds):
    table = Table("mounts", "ms of the stage", "ms each", "thousand instructions each",
                  "ms of init's whole boot")
    emulated = boot.accelerator() == "tcg"  # counting needs emulation
    for number, count in enumerate(MOUNTS * rounds):
        options = mount_options(folder, count)
        total, stages = boot.boot_ours(bench.TOP, folder, options)
        counted = count_stages(
            folder, options)["mounts"] * 1e3 / count if emulated and number < len(MOUNTS) else None
        table.add(count, stages["mounts"], stages["mounts"] / count, counted, total)
    return table


# --- documents ------------------------------------------------------------------------------------

def npm_document(size):
    """A document of about this many bytes, with a link every 400."""
    versions = {
        f"0.0.{number}": {
            "name": "pkg",
            "version": f"0.0.{number}",
            "description": "x" * 200,
            "dist": {
                "tarball": f"https://localhost/pkg/-/pkg-0.0.{number}.tgz",
                "shasum": "0" * 40
            }
        }
        for number in range(max(size // 400, 1))
    }
    return json.dumps({
        "name": "pkg",
        "dist-tags": {
            "latest": "0.0.0"
        },
        "versions": versions
    }).encode()


NGINX_FILES = """\
daemon off; user root; worker_processes 1; pid {folder}/files.pid; error_log {folder}/files.log;
events {{ worker_connections 1000; }}
http {{
    access_log off; sendfile on; keepalive_requests 1000000; default_type application/json;
    server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {certificate};
        ssl_certificate_key {key}; root {folder}/files; }}
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
    config.write_text(
        NGINX_FILES.format(folder=folder,
                           port=port,
                           certificate=authority.certificate,
                           key=authority.key))
    with rivals.running(["nginx", "-c", config, "-e", folder / "files.log"], port):
        yield port


def documents(folder, authority, rounds):
    table = Table("bytes of a document", "us of processor", "us, rewritten", "us a MB",
                  "us a MB, rewritten")
    path = folder / "front.sock"
    with file_server(folder, authority) as port, broker_part.broker(
            folder,
            path,
            port,
            authority.ca,
            broker_part.SECRET,
            rules={"npm": f"https://127.0.0.1:{port}"}) as (pid, token):
        for size in DOCUMENTS * rounds:
            real = (folder / "files" / f"pkg-{size}").stat().st_size
            count = max(min(100_000_000 // size, 2000), 3)
            ask = lambda name, accept: cpu_of_request(pid, f"unix:{path}", f"/{name}/pkg-{size}",
                                                      token, count, 1, accept)
            as_is, rewritten = ask("gateway", None), ask("npm", NPM)
            table.add(size, as_is, rewritten, as_is / real * 1e6, rewritten / real * 1e6)
    return table


def measure(rounds):
    with tempfile.TemporaryDirectory(prefix="codev-bench-") as name:
        folder = pathlib.Path(name)
        # the guest's file server must be able to enter it; the broker's socket needs its own folder
        folder.chmod(0o755)
        private = folder / "private"
        private.mkdir(mode=0o700)
        authority = broker_part.Authority(private)
        with bench.serving("tcp:127.0.0.1:0", "--tls", authority.certificate,
                           authority.key) as port:
            yield from idle_connections(private, port, authority, rounds)
            yield rules(private, port, authority, rounds)
        if boot.accelerator() == "tcg":
            yield rules_inside(folder)
        yield documents(private, authority, rounds)
        yield mounts(folder, rounds)


def run(project, rounds=3):
    del project
    print(f"\nscaling: what one more costs, {rounds} interleaved rounds")
    tables = {table.title: table for table in measure(rounds)}
    found = {title: table.print() for title, table in tables.items()}
    print()
    request, rewritten = "us of processor a request", "us a MB, rewritten"
    each = "thousand instructions each" if boot.accelerator() == "tcg" else "ms each"
    goals = [
        tables["idle connections, broker"].flat(request, 1, 10000),
        tables["idle connections, agent"].flat(request, 1,
                                               500), tables["rules"].flat(request, 1, 1000),
        tables["bytes of a document"].flat(rewritten, 1_000_000,
                                           50_000_000), tables["mounts"].flat(each, 4, 64)
    ]
    return {"figures": found, "rounds": rounds, "goals": goals}


if __name__ == "__main__":
    run(None)
