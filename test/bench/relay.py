"""The relay between a client on loopback and a server on a Unix socket, compared with socat,
HAProxy and nginx.

The relay sends its preface with the token on each connection, as in a guest; the server skips it. A
Unix socket replaces the guest's vsock, which the part `vsock` measures. HAProxy in http mode parses
the traffic, and is included because it is commonly used; the goal is to match its tcp mode.
`direct` is the client connected to the server without a relay: latency above its figure is the
relay's."""
import contextlib
import pathlib
import sys
import tempfile

import bench
import rivals

sys.path.insert(0, str(bench.TOP / "test" / "harness"))

IDLE = 400  # connections: below the relay's limit of 512
BULK = 256 << 20
BULKS = 4  # 1 GiB in total
SMALL = "/x/100"
MS = 500


@contextlib.contextmanager
def agent(folder, port, target):
    import relay_harness
    front = relay_harness.socket.create_server(("127.0.0.1", port), backlog=4096)
    forward = {
        "role": "broker",
        "fd": front,
        "dial": [f"unix:{target}"],
        "secret": relay_harness.TOKEN
    }
    relay_harness.AGENT = str(bench.AGENT)
    with relay_harness.running([forward]) as process:
        bench.os.sched_setaffinity(process.pid, {bench.CORES[-1]})
        yield process.pid


SUBJECTS = {
    bench.OURS: agent,
    "socat": rivals.socat,
    "haproxy tcp": lambda *a: rivals.haproxy(*a, "tcp"),
    "haproxy http": lambda *a: rivals.haproxy(*a, "http"),
    "nginx stream": rivals.nginx_stream,
}


def measure_one(figures, name, endpoint, pid):
    """Every metric of one running subject, or of the server alone (pid None)."""
    def with_cpu(metric, per, scale, **how):
        before = bench.cpu_seconds(pid) if pid else 0
        values = bench.requests(endpoint, **how)
        if pid:
            figures.add(metric, name, (bench.cpu_seconds(pid) - before) / values[per] * scale)
        return values

    down = with_cpu("CPU per MB to the client", "bytes", 1e12, path=f"/x/{BULK}", count=BULKS)
    figures.add("bulk to the client", name, down["mb_s"])
    up = with_cpu("CPU per MB from the client", "bytes", 1e12, path="/x/1", post=BULK, count=BULKS)
    figures.add("bulk from the client", name, up["mb_s"])
    alone = bench.requests(endpoint, SMALL, ms=MS)
    figures.add("latency p50", name, alone["p50_ns"] / 1e3)
    figures.add("latency p99", name, alone["p99_ns"] / 1e3)
    many = with_cpu("CPU per request", "ever", 1e6, path=SMALL, connections=16, ms=MS)
    figures.add("requests, keep-alive", name, many["rate"])
    fresh = with_cpu("CPU per new connection",
                     "ever",
                     1e6,
                     path=SMALL,
                     connections=8,
                     ms=MS,
                     fresh=True)
    figures.add("new connections", name, fresh["rate"])
    if pid:
        empty = bench.memory_kib(pid)
        with bench.holding("idle", endpoint, "/x/1", IDLE):
            figures.add("memory per idle connection", name, (bench.memory_kib(pid) - empty) / IDLE)


def run(project, rounds=6):
    figures = bench.Figures()
    with tempfile.TemporaryDirectory(prefix="codev-bench-") as name:
        folder = pathlib.Path(name)
        target = folder / "server.sock"
        with bench.serving(f"unix:{target}"):
            for _ in range(rounds):
                measure_one(figures, "direct", f"unix:{target}", None)
                for kind, start in SUBJECTS.items():
                    port = bench.free_port()
                    with start(folder, port, target) as pid:
                        measure_one(figures, kind, f"tcp:127.0.0.1:{port}", pid)
    return report(figures, rounds)


def report(figures, rounds):
    print(f"\nrelay: TCP on loopback to a Unix socket, {rounds} interleaved rounds of {MS} ms each")
    reference = "haproxy tcp"
    for metric, unit, digits in (("bulk to the client", "MB/s",
                                  0), ("bulk from the client", "MB/s",
                                       0), ("CPU per MB to the client", "us",
                                            0), ("CPU per MB from the client", "us",
                                                 0), ("requests, keep-alive", "1/s, 16 connections",
                                                      0), ("CPU per request", "us", 2),
                                 ("new connections", "1/s, 8 at once",
                                  0), ("CPU per new connection", "us",
                                       1), ("latency p50", "us, 1 connection",
                                            1), ("latency p99", "us, 1 connection",
                                                 1), ("memory per idle connection", "KiB", 1)):
        figures.table(metric, unit, reference, digits)
    print()
    goals = [
        bench.goal(f"{metric} at least HAProxy's tcp mode",
                   figures.ratio(metric, bench.OURS, reference) >= 1,
                   f"{figures.ratio(metric, bench.OURS, reference):.2f}")
        for metric in ("bulk to the client", "bulk from the client", "requests, keep-alive",
                       "new connections")
    ]
    return {"rounds": rounds, "figures": figures.values, "goals": goals}


if __name__ == "__main__":
    run(None, int(sys.argv[1]) if len(sys.argv) > 1 else 1)
