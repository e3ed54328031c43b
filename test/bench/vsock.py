"""The path through a real guest: a client in the sandbox, the relay, vsock, the broker on the host,
a TLS upstream.

The relay is compared with socat and with the bare copy loop of bench-load (copy.c), between the
same client and the same broker in the same guest. Both run as root outside the sandbox's
restrictions, since no process in it may open a vsock; so does the client, for all three, as a shell
of the test (test/harness/machine_harness.py, Look). For socat and the copy loop the client sends
the broker's token itself, which the harness records from the broker's input.

`bare` is the upper bound: the difference to it is the cost of the relay. Each metric of the two is
measured back to back, in short runs and many rounds with alternating order, as a machine's speed
varies more within a second than the two differ. socat, which is much slower, is measured in every
third round only. The processor time is that of QEMU: all work of the guest for a request, including
the client and the emulation."""
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
# whole transfers, from the first byte to the answer, as bytes in buffers at the end of a run would
# count as moved
BULKS = 2
MS = 500
REFERENCE = "bare"
PORTS = {bench.OURS: 8788, "bare": 9001, "socat": 9002}
SOCAT_EACH = 3  # rounds
FOLDER = "/workspace/bench"

# metric -> (unit, digits, the key of a run's figures, what the client does)
METRICS = {
    "bulk to the guest": ("MB/s", 1, "mb_s", {
        "path": f"/gateway/{BULK}",
        "count": BULKS
    }),
    "bulk from the guest": ("MB/s", 1, "mb_s", {
        "path": "/gateway/1",
        "post": BULK,
        "count": BULKS
    }),
    "requests, keep-alive": ("1/s, 8 connections", 0, "rate", {
        "path": SMALL,
        "connections": 8
    }),
    "new connections": ("1/s, 4 at once", 0, "rate", {
        "path": SMALL,
        "connections": 4,
        "fresh": True
    }),
    "latency p50": ("us, 1 connection", 0, "p50_us", {
        "path": SMALL
    }),
}
BULK_METRICS = ("bulk to the guest", "bulk from the guest")
CPU_UNIT = ("us a request", "us a MB")
GOALS = [metric for metric in METRICS if metric != "latency p50"]


def copy_programs(folder):
    """The load program, and socat with its shared libraries, which the guest lacks."""
    shutil.copy(bench.GUEST / "bench-load", folder / "load")
    shutil.copy("/usr/bin/socat", folder / "socat")
    listed = subprocess.run(["ldd", "/usr/bin/socat"], check=True, capture_output=True,
                            text=True).stdout
    for word in listed.split():
        if word.startswith("/"):
            shutil.copy(word, folder / pathlib.Path(word).name)
    for entry in folder.iterdir():
        entry.chmod(0o755)


class Inside:
    """The guest, controlled by its root shell."""

    def __init__(self, look, token, monitor):
        self.look, self.token, self.monitor = look, token, monitor

    def begin_rivals(self, port):
        loader = f"{FOLDER}/ld-linux-x86-64.so.2 --library-path {FOLDER} {FOLDER}/socat"
        self.look.root(
            f"{FOLDER}/load copy tcp:127.0.0.1:{PORTS['bare']} vsock:2:{port} >/dev/null 2>&1 &")
        self.look.root(
            f"{loader} TCP-LISTEN:{PORTS['socat']},bind=127.0.0.1,fork,reuseaddr,nodelay,backlog=1024 "
            f"VSOCK-CONNECT:2:{port} >/dev/null 2>&1 &")
        self.look.root("usleep 500000")

    def requests(self, name, path, connections=1, post=0, fresh=False, count=0):
        words = [
            f"{FOLDER}/load", "requests", f"tcp:127.0.0.1:{PORTS[name]}", "--path", path,
            "--connections", connections
        ]
        words += ["--requests", count] if count else ["--ms", MS]
        words += ["--preface", self.token] if name != bench.OURS else []
        words += ["--post", post] if post else []
        words += ["--fresh"] if fresh else []
        before = bench.cpu_seconds(self.monitor)
        said = self.look.root(" ".join(map(str, words)))
        used = (bench.cpu_seconds(self.monitor) - before) * 1e6
        try:
            values = json.loads(said)
        except ValueError:
            raise RuntimeError(f"{name}: {said.strip()}") from None
        seconds = values["ns"] / 1e9
        return {
            "rate": values["requests"] / seconds,
            "mb_s": values["bytes"] / seconds / 1e6,
            "p50_us": values["p50_ns"] / 1e3,
            "cpu_us": used / max(1, values["ever"]) / (BULK / 1e6 if count else 1)
        }


def measure_round(figures, inside, number):
    """Measures every metric of each subject once; the next round uses the opposite order."""
    names = [name for name in PORTS if name != "socat" or number % SOCAT_EACH == 0]
    for metric, (_, _, key, how) in METRICS.items():
        for name in names if number % 2 == 0 else reversed(names):
            values = inside.requests(name, **how)
            figures.add(metric, name, values[key])
            figures.add(f"{metric}: CPU", name, values["cpu_us"])


def measure(figures, folder, port, authority, rounds):
    import machine_harness
    programs = folder / "programs"
    programs.mkdir()
    copy_programs(programs)
    token_file = folder / "gateway-token"
    token_file.write_text("sk-bench\n")
    token_file.chmod(0o600)
    look, spied = machine_harness.Look(folder), machine_harness.SpiedBroker(folder)
    options = [
        *look.options, *look.root_options, *spied.options, "--mount", f"{programs}:{FOLDER}:ro",
        "--proxy", "none", "--gateway-url", f"https://127.0.0.1:{port}", "--gateway-token-file",
        token_file, "--ca-file", authority.ca
    ]
    with machine_harness.Sandbox("sleep 100000", options, programs=False) as sandbox:
        sandbox.wait_event("ready")
        inside = Inside(look, spied.token(), sandbox.pid_of("qemu-system"))
        inside.begin_rivals(
            json.loads(
                spied.copy.read_text().partition("\n")[0])["listen"][0].rpartition(".sock_")[2])
        for number in range(rounds):
            measure_round(figures, inside, number)


def run(project, rounds=11):
    for folder in ("test/harness",):
        sys.path.insert(0, str(bench.TOP / folder))
    os.environ.setdefault("CODEV_BUILD", str(bench.BUILD))
    figures = bench.Figures()
    with tempfile.TemporaryDirectory(prefix="codev-bench-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        authority = broker_part.Authority(folder)
        authority.ca.chmod(0o644)
        with bench.serving("tcp:127.0.0.1:0", "--tls", authority.certificate,
                           authority.key) as port:
            measure(figures, folder, port, authority, rounds)
    return report(figures, rounds)


def report(figures, rounds):
    print(
        f"\nvsock: a guest's client by the relay and vsock to the broker, {rounds} interleaved "
        f"rounds of {MS} ms each, in one guest"
    )
    for metric, (unit, digits, _, _) in METRICS.items():
        figures.table(metric, unit, REFERENCE, digits)
        figures.table(f"{metric}: CPU", CPU_UNIT[metric in BULK_METRICS], REFERENCE, 0)
    print()
    ratios = {metric: figures.ratio(metric, bench.OURS, REFERENCE) for metric in GOALS}
    goals = [
        bench.goal(f"{metric} at least 90 % of the bare copy loop's", ratio >= 0.9, f"{ratio:.2f}")
        for metric, ratio in ratios.items()
    ]
    return {"rounds": rounds, "figures": figures.values, "goals": goals}


if __name__ == "__main__":
    run(None, int(sys.argv[1]) if len(sys.argv) > 1 else 1)
