"""The cost of rewriting the links of a document: the same 50 MB through the same broker on a route
with rewriting and on one without, in turns. The figure is the broker's processor time, which a busy
machine does not change; the wall-clock time is printed too. The upstream uses TLS; it and the
client are threads of this program."""
import statistics
import sys
import tempfile
import time

import bench

SIZE = 50 << 20
DOCUMENTS = {"npm": ("npm", "application/json"), "pypi-html": ("pypi-html", "text/html"),
             "pypi-json": ("pypi-json", "application/vnd.pypi.simple.v1+json")}


def fetch(rig, broker, path):
    """(seconds, processor seconds of the broker, bytes)"""
    with broker.client() as client:
        processor, start, received = bench.cpu_seconds(broker.process.pid), time.monotonic(), 0
        client.send(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        buffer = bytearray(1 << 20)
        while count := client.socket.recv_into(buffer):
            received += count
        return time.monotonic() - start, bench.cpu_seconds(broker.process.pid) - processor, received


def measure(rig, folder, document, content_type, rounds):
    paths = {
        "passed": "/up/some/other/path",
        "rewritten": "/up/document"
                     if content_type == "application/json" else "/up/simple/document/"
    }

    def answer(peer, _):
        peer.send(
            f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: "
            f"{len(document)}\r\n\r\n"
            .encode())
        for at in range(0, len(document), 1 << 20):
            peer.send(document[at:at + (1 << 20)])

    figures = {name: [] for name in paths}
    with rig.Upstream(rig.serve_with(answer)) as upstream:
        rules = {
            "up": upstream.url,
            "registry": "https://registry.example",
            "files": "https://files.example/packages"
        }
        with rig.Broker(folder, rules=rules) as broker:
            for _ in range(rounds):
                for name, path in paths.items():
                    figures[name].append(fetch(rig, broker, path))
            links = [line["links"] for line in broker.log_lines(2 * rounds) if "links" in line]
    assert len(links) == rounds and min(links) > 0
    assert all(received >= len(document) for values in figures.values()
               for _, _, received in values)
    return figures, links[0]


def run(project, rounds=7):
    sys.path.insert(0, str(project / "test/harness"))
    import broker_harness as rig
    import documents
    results, ratios = {}, {}
    print(
        f"\nrewrite: links in package metadata, {SIZE >> 20} MB through the broker, {rounds} times "
        "each, in turns\n"
    )
    print(
        "| document | links | passed MB/s | rewritten MB/s | ratio | broker's CPU: passed ms | "
        "rewritten ms | ratio |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory(prefix="codev-bench-") as folder:
        for name, (kind, content_type) in DOCUMENTS.items():
            document = documents.MAKERS[kind](SIZE, 1)
            figures, links = measure(rig, folder, document, content_type, rounds)
            clock = {
                way: len(document) / 1e6 / statistics.median(value[0] for value in values)
                for way, values in figures.items()
            }
            cpu = {
                way: statistics.median(value[1] for value in values)
                for way, values in figures.items()
            }
            ratios[name] = clock["rewritten"] / clock["passed"]
            print(
                f"| {name} | {links} | {clock['passed']:.0f} | {clock['rewritten']:.0f} | "
                f"{ratios[name]:.2f} | "
                f"{cpu['passed'] * 1e3:.0f} | {cpu['rewritten'] * 1e3:.0f} | "
                f"{cpu['passed'] / cpu['rewritten']:.2f} |"
            )
            results[name] = {
                "bytes": len(document),
                "links": links,
                "mb_per_s": clock,
                "broker_cpu_s": cpu
            }
    print()
    goals = [
        bench.goal(f"{name}: at least half of what passes unchanged", ratio >= 0.5, f"{ratio:.2f}")
        for name, ratio in ratios.items()
    ]
    return {"rounds": rounds, "figures": results, "goals": goals}
