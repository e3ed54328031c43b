#!/usr/bin/python3
"""Usage: soak_broker.py [SECONDS]

Mixed load on one broker: downloads, uploads, event streams, pipelined and refused requests;
meanwhile clients disconnect at random, upstreams reset at random, and the broker gets SIGHUP while
its log is moved and its token file replaced. At the end nothing may have leaked (memory flat,
descriptors as before), no byte may be wrong and no request unanswered.

Prints its figures; the exit status is 0 when there was no fault. `make soak SOAK_SECONDS=600` runs
it; the system tests run it for 20 seconds."""
import collections
import contextlib
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import procfs  # noqa: E402
from broker_harness import SANITIZED, SECRET, Broker, Upstream, fields_of, serve_with  # noqa: E402

WORKERS = 12
LARGEST = 1 << 20
CONTENT = random.Random("soak").randbytes(2 * LARGEST)
UNANSWERED = 60  # seconds
KEPT = 128       # idle connections to upstreams that the broker may keep, for gateway and rules
GROWTH_KIB = 3 * 1024


class Wrong(Exception):
    """Collects the faults of a run."""


# --- the upstream ---------------------------------------------------------------------------------

def answer(peer, head):
    """/bytes?at=&n=&cut= sends that part of CONTENT and resets after `cut` bytes; /upload says
    whether the body was that part; /events?n= sends events; /none answers 204; /reset never
    answers."""
    fields = fields_of(head)
    url = urllib.parse.urlsplit(head.split(b" ")[1].decode())
    query = {name: int(value) for name, value in urllib.parse.parse_qsl(url.query)}
    if fields.get("transfer-encoding") == "chunked":
        body = b"".join(peer.read_chunks())
    else:
        body = peer.read(int(fields.get("content-length", 0)))
    if url.path.endswith("/bytes"):
        send_bytes(peer, head, query)
    elif url.path.endswith("/upload"):
        peer.answer(b"same" if body == CONTENT[query["at"]:query["at"] +
                                               query["n"]] else b"different")
    elif url.path.endswith("/events"):
        peer.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
            b"chunked\r\n\r\n"
        )
        for number in range(query["n"]):
            event = b"data: %d\n\n" % number
            peer.send(b"%x\r\n%s\r\n" % (len(event), event))
            time.sleep(0.01)
        peer.send(b"0\r\n\r\n")
    elif url.path.endswith("/none"):
        peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")
    else:
        peer.reset()
        raise OSError("reset")


def send_bytes(peer, head, query):
    content = CONTENT[query["at"]:query["at"] + query["n"]]
    cut = query.get("cut", -1)
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content))
    if head.startswith(b"HEAD"):
        return
    if cut < 0:
        peer.send(content)
        return
    peer.send(content[:cut])
    peer.reset()
    raise OSError("reset")


# --- what clients do ------------------------------------------------------------------------------

class Worker:
    def __init__(self, broker, seed, counts):
        self.broker, self.random, self.counts = broker, random.Random(seed), counts
        self.connection = None

    def client(self):
        """The previous request's connection, or a new one."""
        if self.connection is None:
            self.connection = self.broker.client()
            self.connection.socket.settimeout(UNANSWERED)
        return self.connection

    def drop(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def ask(self, target, **options):
        response = self.client().request(target, **options)
        if response.fields.get("connection") == "close" or not response.complete:
            self.drop()
        return response

    def part(self):
        size = self.random.choice([0, 1, 100, 16384, 65536, LARGEST])
        return self.random.randrange(LARGEST), self.random.randint(0, size)

    def route(self):
        return self.random.choice(["gateway", "rule"])

    def download(self):
        at, size = self.part()
        response = self.ask(f"/{self.route()}/bytes?at={at}&n={size}")
        self.expect(response.status == 200 and response.complete, response)
        self.expect(response.body == CONTENT[at:at + size], response)
        self.counts["bytes"] += size

    def upload(self):
        at, size = self.part()
        content, client = CONTENT[at:at + size], self.client()
        target = f"/{self.route()}/upload?at={at}&n={size}"
        if self.random.random() < 0.5:
            response = self.ask(target, method="POST", body=content)
        else:
            client.send(f"PUT {target} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
            for start in range(0, size, 50_000):
                piece = content[start:start + 50_000]
                client.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            client.send(b"0\r\n\r\n")
            response = client.response()
        # a kept connection had ended: an unsafe request is not sent twice
        if response.status == 502:
            self.counts["not sent twice"] += 1
            self.drop()
            return
        self.expect(response.status == 200 and response.body == b"same", response)
        self.counts["bytes"] += size

    def events(self):
        number = self.random.randint(1, 30)
        response = self.ask(f"/{self.route()}/events?n={number}")
        self.expect(
            response.complete
            and response.body == b"".join(b"data: %d\n\n" % i for i in range(number)), response)

    def pipelined(self):
        client, sizes = self.client(), [self.random.randint(1, 2000) for _ in range(4)]
        client.send("".join(f"GET /rule/bytes?at=7&n={size} HTTP/1.1\r\nHost: h\r\n\r\n"
                            for size in sizes))
        for size in sizes:
            response = client.response()
            self.expect(response.status == 200 and response.body == CONTENT[7:7 + size], response)

    def bodiless(self):
        self.expect(self.ask("/gateway/none").status == 204)
        response = self.ask("/gateway/bytes?at=0&n=5000", method="HEAD")
        self.expect(response.status == 200 and response.fields["content-length"] == "5000",
                    response)

    def refused(self):
        self.expect(self.ask("/nope/x").status == 404)
        with self.broker.client() as client:
            client.send(b"GET /rule/x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
            self.expect(client.response().status == 400)
        with self.broker.client(b"CODEV/1 " + b"0" * 64 + b"\r\nGET") as client:
            self.expect(client.response().status == 401)

    def upstream_resets(self):
        """A reset in the middle of an answer must be visible; before the answer it must be a 502
        with the reason."""
        at, size = self.random.randrange(LARGEST), self.random.randint(2, LARGEST)
        cut = self.random.randrange(size)
        response = self.ask(f"/{self.route()}/bytes?at={at}&n={size}&cut={cut}")
        if response.status == 200:
            self.expect(not response.complete and CONTENT[at:at + size].startswith(response.body),
                        response)
        else:
            self.expect(response.status == 502, response)
        self.drop()
        self.expect(self.ask("/gateway/reset").status == 502)
        self.counts["resets"] += 2

    def client_leaves(self):
        """Disconnects before, during or after the request, or anywhere in the answer."""
        self.drop()
        client = self.client()
        target = f"/{self.route()}/bytes?at=0&n={LARGEST}"
        head = f"GET {target} HTTP/1.1\r\nHost: h\r\n\r\n".encode()
        if self.random.random() < 0.3:
            head = f"POST {target} HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n".encode(
            ) + CONTENT[:50_000]
        client.send(head[:self.random.randrange(len(head) + 1)])
        if head.startswith(b"GET") and self.random.random() < 0.7:
            client.socket.settimeout(0.05)
            with contextlib.suppress(TimeoutError, EOFError):
                client.read(self.random.randrange(200_000))
        self.drop()
        self.counts["clients left"] += 1

    def expect(self, condition, response=None):
        if not condition:
            told = (f": {response.status} {response.complete} {response.fields} "
                    f"{response.body[:200]!r}") if response else ""
            raise Wrong(f"a wrong answer{told}")

    DEEDS = [
        download, download, upload, upload, events, pipelined, bodiless, refused, upstream_resets,
        client_leaves, client_leaves
    ]

    def run(self, until):
        while time.monotonic() < until:
            deed = self.random.choice(self.DEEDS)
            try:
                deed(self)
            except TimeoutError:
                raise Wrong(f"no answer in {UNANSWERED} s ({deed.__name__})") from None
            except (OSError, EOFError) as fault:
                raise Wrong(f"{deed.__name__}: {type(fault).__name__} {fault}") from fault
            self.counts["deeds"] += 1
        self.drop()


# --- the run --------------------------------------------------------------------------------------

class Disturber:
    """From time to time moves the log away, replaces the token file and sends SIGHUP; samples the
    memory's size every tenth of a second."""

    def __init__(self, broker, until, counts):
        self.broker, self.until, self.counts = broker, until, counts
        self.sizes = []

    def run(self):
        dice, next_hangup = random.Random("disturb"), 0
        while time.monotonic() < self.until:
            self.sizes.append(self.broker.rss_kib())
            if time.monotonic() > next_hangup:
                next_hangup = time.monotonic() + dice.uniform(0.1, 1)
                with contextlib.suppress(FileNotFoundError):
                    self.broker.log_file.replace(self.broker.folder / "log.moved")
                fresh = self.broker.token_file.with_name("fresh")
                fresh.write_text(SECRET + "\n")
                fresh.replace(self.broker.token_file)
                self.broker.signal(signal.SIGHUP)
                self.counts["hangups"] += 1
            time.sleep(0.1)


def guarded(function, faults):
    def run(*arguments):
        try:
            function(*arguments)
        except BaseException as fault:
            faults.append(f"{type(fault).__name__}: {fault}")
    return run


def sockets_of(broker):
    """Descriptors that are connections of clients: Unix sockets except the listener."""
    unix = {
        line.split()[6]
        for line in open(f"/proc/{broker.process.pid}/net/unix").readlines()[1:]
    }
    return sum(target.startswith("socket:[") and target[8:-1] in unix
               for target in procfs.descriptors(broker.process.pid).values())


def soak(seconds, folder):
    """(figures, faults): the broker's run under load."""
    faults, counts = [], collections.Counter()
    with Upstream(serve_with(answer)) as gateway, Upstream(serve_with(answer), tls=False) as rule, \
            Broker(folder, gateway=gateway.url, rules={"rule": rule.url}) as broker:
        broker.get("/nope")
        time.sleep(0.5)  # until that connection is closed
        descriptors, clients = broker.descriptors(), sockets_of(broker)
        until = time.monotonic() + seconds
        disturber = Disturber(broker, until, counts)
        workers = [Worker(broker, seed, counts) for seed in range(WORKERS)]
        threads = [
            threading.Thread(target=guarded(worker.run, faults), args=(until, ))
            for worker in workers
        ]
        threads.append(threading.Thread(target=guarded(disturber.run, faults)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + 2 * UNANSWERED)
        for worker in workers:
            worker.drop()
        end = time.monotonic() + UNANSWERED
        while sockets_of(broker) > clients and time.monotonic() < end:
            time.sleep(0.05)
        quarter = len(disturber.sizes) // 4
        early = statistics.median(disturber.sizes[quarter:2 * quarter] or [0])
        late = statistics.median(disturber.sizes[-quarter:] or [0])
        figures = {"seconds": seconds, **counts, "memory early KiB": early, "memory late KiB": late,
                   "descriptors": f"{descriptors} -> {broker.descriptors()}",
                   "client sockets": f"{clients} -> {sockets_of(broker)}"}
        if late - early > GROWTH_KIB and not SANITIZED:
            faults.append(f"memory grew from {early} to {late} KiB")
        if sockets_of(broker) > clients or broker.descriptors() > descriptors + KEPT:
            faults.append("descriptors are left")
        if broker.get("/rule/bytes?at=0&n=9").body != CONTENT[:9]:
            faults.append("it no longer serves")
        if SECRET in broker.errors() or broker.token in broker.errors():
            faults.append("a secret in its output")
        # the clients report faults; errors of handlers whose client left do not count
        gateway.faults.clear()
    return figures, faults


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else float(
        os.environ.get("SOAK_SECONDS", "600"))
    with tempfile.TemporaryDirectory() as folder:
        figures, faults = soak(seconds, folder)
    print(", ".join(f"{name}: {value}" for name, value in figures.items()))
    for fault in faults:
        print(f"error: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
