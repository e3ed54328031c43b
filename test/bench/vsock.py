"""The way through a real guest: a client in the sandbox, the relay, vsock, the broker on the host, a TLS upstream.

Beside the agent, between the same client and the same broker in the same guest: socat, and the bare copy loop of bench-load (copy.c),
which does nothing but move bytes. Both run as root beside the sandbox, since nothing in it may open a vsock; so does the client,
for all three, as a shell of the test's own (test/qemu/vm_rig.py, Look). The broker's token comes from a broker
that is spied on, since the two have no agent to say it for them: their client says it.

`bare` is the upper bound: what is below it is what the agent costs.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import bench
import broker as broker_part

SMALL = "/gateway/100"
BULK = 16 << 20
MS = 1500
REFERENCE = "bare"
PORTS = {bench.OURS: 8788, "bare": 9001, "socat": 9002}
FOLDER = "/workspace/bench"


def copy_programs(folder):
    """The load program, and socat with everything that it is linked with, for a guest that has no such libraries."""
    shutil.copy(bench.GUEST / "bench-load", folder / "load")
    shutil.copy("/usr/bin/socat", folder / "socat")
    listed = subprocess.run(["ldd", "/usr/bin/socat"], check=True, capture_output=True, text=True).stdout
    for word in listed.split():
        if word.startswith("/"):
            shutil.copy(word, folder / pathlib.Path(word).name)
    for entry in folder.iterdir():
        entry.chmod(0o755)


class Inside:
    """The guest, by the shell in it that is root."""

    def __init__(self, look, token):
        self.look, self.token = look, token

    def begin_rivals(self, port):
        loader = f"{FOLDER}/ld-linux-x86-64.so.2 --library-path {FOLDER} {FOLDER}/socat"
        self.look.root(f"{FOLDER}/load copy tcp:127.0.0.1:{PORTS['bare']} vsock:2:{port} >/dev/null 2>&1 &")
        self.look.root(f"{loader} TCP-LISTEN:{PORTS['socat']},bind=127.0.0.1,fork,reuseaddr,nodelay,backlog=1024 "
                       f"VSOCK-CONNECT:2:{port} >/dev/null 2>&1 &")
        self.look.root("usleep 500000")

    def requests(self, name, path, connections=1, post=0, fresh=False):
        words = [f"{FOLDER}/load", "requests", f"tcp:127.0.0.1:{PORTS[name]}", "--path", path, "--connections", connections,
                 "--ms", MS]
        words += ["--preface", self.token] if name != bench.OURS else []
        words += ["--post", post] if post else []
        words += ["--fresh"] if fresh else []
        said = self.look.root(" ".join(map(str, words)))
        try:
            values = json.loads(said)
        except ValueError:
            raise RuntimeError(f"{name}: {said.strip()}") from None
        seconds = values["ns"] / 1e9
        return {**values, "rate": values["requests"] / seconds, "mb_s": values["bytes"] / seconds / 1e6}


def measure_one(figures, inside, name):
    figures.add("bulk to the guest", name, inside.requests(name, f"/gateway/{BULK}")["mb_s"])
    figures.add("bulk from the guest", name, inside.requests(name, "/gateway/1", post=BULK)["mb_s"])
    one = inside.requests(name, SMALL)
    figures.add("latency p50", name, one["p50_ns"] / 1e3)
    figures.add("requests, keep-alive", name, inside.requests(name, SMALL, connections=8)["rate"])
    figures.add("new connections", name, inside.requests(name, SMALL, connections=4, fresh=True)["rate"])


def measure(figures, folder, port, authority, rounds):
    import vm_rig
    programs = folder / "programs"
    programs.mkdir()
    copy_programs(programs)
    token_file = folder / "gateway-token"
    token_file.write_text("sk-bench\n")
    token_file.chmod(0o600)
    look, spied = vm_rig.Look(folder), vm_rig.SpiedBroker(folder)
    options = [*look.options, *look.root_options, *spied.options, "--mount", f"{programs}:{FOLDER}:ro", "--proxy", "none",
               "--gateway-url", f"https://127.0.0.1:{port}", "--gateway-token-file", token_file, "--ca-file", authority.ca]
    with vm_rig.Sandbox("sleep 100000", options, programs=False) as sandbox:
        sandbox.wait_event("ready")
        inside = Inside(look, spied.token())
        inside.begin_rivals(json.loads(spied.copy.read_text().partition("\n")[0])["listen"][0].rpartition(".sock_")[2])
        for _ in range(rounds):
            for name in PORTS:
                measure_one(figures, inside, name)


def run(project, rounds=3):
    for folder in ("test/qemu", "test/system"):
        sys.path.insert(0, str(bench.TOP / folder))
    os.environ.setdefault("CODEV_BUILD", str(bench.BUILD))
    figures = bench.Figures()
    with tempfile.TemporaryDirectory(prefix="codev-bench-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        authority = broker_part.Authority(folder)
        authority.ca.chmod(0o644)
        with bench.serving("tcp:127.0.0.1:0", "--tls", authority.certificate, authority.key) as port:
            measure(figures, folder, port, authority, rounds)
    return report(figures, rounds)


def report(figures, rounds):
    print(f"\nvsock: a guest's client by the relay and vsock to the broker, {rounds} interleaved rounds of {MS} ms each, in one guest")
    for metric, unit, digits in (("bulk to the guest", "MB/s", 1), ("bulk from the guest", "MB/s", 1),
                                 ("requests, keep-alive", "1/s, 8 connections", 0), ("new connections", "1/s, 4 at once", 0),
                                 ("latency p50", "us, 1 connection", 0)):
        figures.table(metric, unit, REFERENCE, digits)
    print()
    goals = [bench.goal(f"{metric} at least 90 % of the bare copy loop's", figures.ratio(metric, bench.OURS, REFERENCE) >= 0.9,
                        f"{figures.ratio(metric, bench.OURS, REFERENCE):.2f}")
             for metric in ("bulk to the guest", "bulk from the guest", "requests, keep-alive", "new connections")]
    return {"rounds": rounds, "figures": figures.values, "goals": goals}


if __name__ == "__main__":
    run(None, int(sys.argv[1]) if len(sys.argv) > 1 else 1)
