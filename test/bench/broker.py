"""The broker with a TLS upstream, compared with nginx and HAProxy as reverse proxies that do the
same header work (rivals.py).

All three listen on a Unix socket and verify the upstream's certificate; each has one core. The
upstream is bench-load's server with OpenSSL, on the clients' core: it may limit the rate, equally
for all three; then the processor time per request is the figure to compare. The client sends the
preface once on each connection to the broker."""
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile

import bench
import rivals

SECRET = "sk-bench-0123456789"
SMALL = "/gateway/100"
EVENTS = "/gateway/events"
STREAMS = 1000
EVENT_RATE = 2000  # a second, over all streams
BULK = 1 << 30
MS = 600
LIMITS = ("--max-requests", str(STREAMS + 100), "--max-connections", str(2 * STREAMS + 100))


class Authority:
    """A certificate authority and a certificate for localhost."""

    def __init__(self, folder):
        self.ca, self.key = folder / "ca.pem", folder / "server.key"
        self.certificate = folder / "server.pem"
        new = [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-days", "2"
        ]
        for more in ([
                "-subj", "/CN=bench authority", "-keyout", folder / "ca.key", "-out", self.ca
        ], [
                "-CA", self.ca, "-CAkey", folder / "ca.key", "-subj", "/CN=localhost", "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", self.key, "-out",
                self.certificate
        ]):
            subprocess.run(new + more, check=True, capture_output=True)


@contextlib.contextmanager
def broker(folder, path, upstream, ca, secret, rules=None, limits=LIMITS):
    """(pid, token)"""
    token_file = folder / "token"
    token_file.write_text(secret + "\n")
    pathlib.Path(path).unlink(missing_ok=True)
    command = [
        bench.BROKER, "--listen", f"unix:{path}", "--gateway-url", f"https://127.0.0.1:{upstream}",
        "--gateway-token-file", token_file, "--ca-file", ca, "--log", folder / "broker.log",
        "--proxy", "none", *limits
    ]
    if rules:
        (folder / "rules.json").write_text(json.dumps(rules))
        command += ["--rules", folder / "rules.json"]
    with open(folder / "broker.err", "wb") as errors:
        process = bench.subject(command,
                                stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE,
                                stderr=errors)
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("codev-broker did not start: " + (folder / "broker.err").read_text())
        yield process.pid, json.loads(line)["token"]
    finally:
        process.stdin.close()
        bench.end(process)
        process.stdout.close()


@contextlib.contextmanager
def rival(start, *arguments):
    with start(*arguments) as pid:
        yield pid, None


SUBJECTS = {
    bench.OURS: broker,
    "nginx": lambda *a: rival(rivals.nginx_proxy, *a),
    "haproxy": lambda *a: rival(rivals.haproxy_proxy, *a),
}


def with_cpu(pid, run, per):
    """(the run's figures, the subject's microseconds of processor for each `per` of it)"""
    before = bench.cpu_seconds(pid)
    values = run()
    return values, (bench.cpu_seconds(pid) - before) * 1e6 / max(values[per], 1)


def measure_requests(figures, name, endpoint, pid, token):
    many, cpu = with_cpu(
        pid, lambda: bench.requests(endpoint, SMALL, connections=32, ms=MS, preface=token), "ever")
    figures.add("requests, keep-alive", name, many["rate"])
    figures.add("CPU per request", name, cpu)
    one = bench.requests(endpoint, SMALL, ms=MS, preface=token)
    figures.add("latency p50", name, one["p50_ns"] / 1e3)
    fresh, cpu = with_cpu(
        pid,
        lambda: bench.requests(endpoint, SMALL, connections=8, ms=MS, preface=token, fresh=True),
        "ever")
    figures.add("new connections", name, fresh["rate"])
    for metric, path, post in (("1 GiB to the client", f"/gateway/{BULK}", 0),
                               ("1 GiB from the client", "/gateway/1", BULK)):
        bulk, cpu = with_cpu(pid,
                             lambda path=path, post=post: bench.requests(
                                 endpoint, path, preface=token, post=post, count=1),
                             "bytes")
        figures.add(metric, name, bulk["mb_s"])
        figures.add(metric + ", CPU", name, cpu * 1e6)


def measure_streams(figures, name, endpoint, pid, token):
    # memory that is loaded once (certificate authorities) does not belong to a stream
    bench.requests(endpoint, SMALL, preface=token, count=1)
    empty = bench.memory_kib(pid)
    with bench.holding("streams", endpoint, EVENTS, STREAMS, preface=token, ms=1500) as streams:
        figures.add("memory per stream", name, (bench.memory_kib(pid) - empty) / STREAMS)
        before = bench.cpu_seconds(pid)
        values = json.loads(say_go(streams))
        figures.add("event delay p50", name, values["p50_ns"] / 1e3)
        figures.add("event delay p99", name, values["p99_ns"] / 1e3)
        figures.add("CPU per event", name,
                    (bench.cpu_seconds(pid) - before) * 1e6 / max(values["events"], 1))


def say_go(process):
    process.stdin.write("go\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(process.stderr.read())
    return line


def run(project, rounds=6):
    figures = bench.Figures()
    with tempfile.TemporaryDirectory(prefix="codev-bench-") as name:
        folder = pathlib.Path(name)
        authority = Authority(folder)
        path = folder / "front.sock"
        with bench.serving("tcp:127.0.0.1:0", "--tls", authority.certificate, authority.key,
                           "--event-rate", EVENT_RATE, "--connections", STREAMS) as port:
            for _ in range(rounds):
                for kind, start in SUBJECTS.items():
                    with start(folder, path, port, authority.ca, SECRET) as (pid, token):
                        measure_requests(figures, kind, f"unix:{path}", pid, token)
                    with start(folder, path, port, authority.ca, SECRET) as (pid, token):
                        measure_streams(figures, kind, f"unix:{path}", pid, token)
    return report(figures, rounds)


def report(figures, rounds):
    print(f"\nbroker: HTTP on a Unix socket to a TLS upstream, {rounds} interleaved rounds")
    for metric, unit, digits in (("requests, keep-alive", "1/s, 32 connections",
                                  0), ("CPU per request", "us",
                                       1), ("latency p50", "us, 1 connection",
                                            0), ("new connections", "1/s, 8 at once",
                                                 0), ("1 GiB to the client", "MB/s",
                                                      0), ("1 GiB to the client, CPU", "us/MB",
                                                           0), ("1 GiB from the client", "MB/s", 0),
                                 ("1 GiB from the client, CPU", "us/MB",
                                  0), ("event delay p50", f"us, {STREAMS} streams",
                                       0), ("event delay p99", f"us, {STREAMS} streams", 0),
                                 ("CPU per event", "us", 1), ("memory per stream", "KiB", 1)):
        figures.table(metric, unit, "nginx", digits)
    print()
    ratio = lambda metric: figures.ratio(metric, bench.OURS, "nginx")
    goals = [
        bench.goal(f"{metric} at least {least} of nginx's",
                   ratio(metric) >= least, f"{ratio(metric):.2f}")
        for metric, least in (("1 GiB to the client", 1), ("1 GiB from the client", 1),
                              ("requests, keep-alive", 0.5))
    ]
    goals += [bench.goal(f"{metric} at most nginx's", ratio(metric) <= 1, f"{ratio(metric):.2f}")
              for metric in ("event delay p50", "event delay p99")]
    memory = figures.median("memory per stream", bench.OURS)
    goals.append(
        bench.goal("memory per idle stream at most 64 KiB", memory <= 64, f"{memory:.1f} KiB"))
    return {"rounds": rounds, "figures": figures.values, "goals": goals}


if __name__ == "__main__":
    run(None, int(sys.argv[1]) if len(sys.argv) > 1 else 1)
