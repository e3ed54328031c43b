"""The broker under load: streams, requests, unauthenticated connections, slow heads, exhausted
descriptors, a client that does not read."""
import asyncio
import concurrent.futures
import contextlib
import os
import resource
import select
import selectors
import socket
import threading
import time

import pytest

import broker_harness
from broker_harness import PATIENCE, SANITIZED, Broker, Upstream, authority, serve_with

MIB = 1 << 20
STREAMS = 1000
IDLE_STREAM_KIB = 64
LONG = 120  # seconds, enough for a thousand TLS handshakes on a loaded machine
EVENT = b"data: %06d\n\n"


@contextlib.contextmanager
def soft_descriptors(count):
    """Programs started in this block get this soft RLIMIT_NOFILE, which they may raise."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(autouse=True, scope="module")
def many_descriptors():
    """For the test process: both ends of several thousand sockets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * STREAMS + 200
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"RLIMIT_NOFILE is at most {hard} here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class EventServer:
    """Many event streams over TLS in one thread: each begins with event 0; tick() sends the next
    one to all, end() ends them."""

    def __init__(self):
        self.streams, self.number = [], 0
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self.thread.start()
        started.wait()

    def _run(self, started):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=authority().context,
                                 backlog=4096))
        self.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        started.set()
        self.loop.run_forever()

    async def _serve(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
                b"chunked\r\n\r\n"
            )
            self._event(writer, 0)
            self.streams.append(writer)
            await reader.read()
            writer.close()
            await writer.wait_closed()

    @staticmethod
    def _event(writer, number):
        event = EVENT % number
        writer.write(b"%x\r\n%s\r\n" % (len(event), event))

    def tick(self):
        self.number += 1
        self.loop.call_soon_threadsafe(
            lambda number: [self._event(writer, number) for writer in self.streams], self.number)

    def end(self):
        self.loop.call_soon_threadsafe(
            lambda: [writer.write(b"0\r\n\r\n") for writer in self.streams])

    def stop(self):
        async def finish():
            ends = asyncio.all_tasks() - {asyncio.current_task()}
            for task in ends:
                task.cancel()
            await asyncio.gather(*ends, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(finish(), self.loop).result(PATIENCE)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(PATIENCE)
        self.loop.close()


class Readers:
    """Many clients in one thread, each collecting what it receives."""

    def __init__(self, clients):
        self.selector, self.bytes = selectors.DefaultSelector(), {}
        for client in clients:
            client.socket.setblocking(False)
            self.selector.register(client.socket, selectors.EVENT_READ)
            self.bytes[client.socket] = b""

    def until(self, ending, seconds=LONG):
        """Reads until each client's data ends with this."""
        end = time.monotonic() + seconds
        left = {sock for sock, data in self.bytes.items() if not data.endswith(ending)}
        while left:
            assert time.monotonic(
            ) < end, f"{len(left)} clients wait; one has {self.bytes[left.pop()]!r}"
            for key, _ in self.selector.select(1):
                data = key.fileobj.recv(65536)
                assert data, f"closed behind {self.bytes[key.fileobj]!r}"
                self.bytes[key.fileobj] += data
                if self.bytes[key.fileobj].endswith(ending):
                    left.discard(key.fileobj)


def rest_of(process, seconds, condition):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{process} is still not so"
        time.sleep(0.05)


# --- slow checks that run in parallel with the other tests ----------------------------------------

QUIET = 63  # seconds: other proxies close after 60


class QuietStream:
    """A stream whose upstream sends nothing for a minute."""

    def __init__(self, folder):
        self.server = EventServer()
        self.broker = Broker(folder, gateway=self.server.url)
        self.client = self.broker.client()
        self.client.request("/gateway/events", read=False)
        Readers([self.client]).until(EVENT % 0 + b"\r\n")
        self.since = time.monotonic()

    def stop(self):
        self.client.close()
        self.broker.kill()
        self.server.stop()


class SlowHeads:
    """Clients that send a byte of a head now and then and never complete it."""

    def __init__(self, folder):
        self.broker = Broker(folder)
        self.idle = self.broker.client()
        second = self.broker.client()
        assert second.request("/nope").status == 404
        self.slow = [self.broker.client() for _ in range(20)] + [second]
        self.started, self.ended, self.stopped = time.monotonic(), {}, False
        for client in self.slow:
            client.send(b"GET /gateway/x HTTP/1.1\r\nHost: h\r\nX: ")
        self.thread = threading.Thread(target=self._drip)
        self.thread.start()

    def _drip(self):
        while len(self.ended) < len(
                self.slow) and not self.stopped and time.monotonic() - self.started < LONG:
            waiting = [client for client in self.slow if client not in self.ended]
            readable = set(select.select([client.socket for client in waiting], [], [], 0.5)[0])
            for client in waiting:
                if client.socket in readable:
                    self.ended[client] = time.monotonic() - self.started
                else:
                    with contextlib.suppress(OSError):
                        client.send(b"x")

    def stop(self):
        self.stopped = True
        self.thread.join()
        for client in [self.idle, *self.slow]:
            client.close()
        self.broker.kill()


@pytest.fixture(autouse=True, scope="module")
def beside(tmp_path_factory, many_descriptors):
    running = [
        QuietStream(tmp_path_factory.mktemp("quiet")),
        SlowHeads(tmp_path_factory.mktemp("slow"))
    ]
    yield running
    for each in running:
        each.stop()


def test_a_thousand_event_streams(tmp_path):
    """Each client gets every event once and in order; an idle one uses at most 64 KiB; all
    descriptors are closed in the end. The broker is started with a soft limit of 256 descriptors,
    fewer than it needs, and raises it."""
    server = EventServer()
    with soft_descriptors(256):
        broker = Broker(tmp_path,
                        gateway=server.url,
                        options=["--max-requests",
                                 str(STREAMS), "--max-connections", "1100"])
    with broker, contextlib.ExitStack() as stack:
        broker.get("/nope")
        descriptors, memory = broker.descriptors(), broker.rss_kib()
        clients = []
        for start in range(0, STREAMS, 50):
            for _ in range(50):
                clients.append(stack.enter_context(broker.client()))
                clients[-1].request("/gateway/events", read=False)
            rest_of("the pool", LONG, lambda: len(server.streams) >= start + 25)
        readers = Readers(clients)
        readers.until(EVENT % 0 + b"\r\n")
        each = (broker.rss_kib() - memory) / STREAMS
        print(f"{STREAMS} streams: {each:.1f} KiB each, {broker.descriptors()} descriptors")
        assert SANITIZED or each <= IDLE_STREAM_KIB
        assert broker.get("/nope").status == 404  # it answers the 1001st connection
        for _ in range(3):
            server.tick()
            readers.until(EVENT % server.number + b"\r\n")
        again = (broker.rss_kib() - memory) / STREAMS
        print(f"after three events: {again:.1f} KiB each")
        assert SANITIZED or again <= IDLE_STREAM_KIB, ("an idle stream keeps what it needed in "
                                                       "passing")
        server.end()
        readers.until(b"\r\n0\r\n\r\n")
        for data in readers.bytes.values():
            body = data.partition(b"\r\n\r\n")[2]
            assert [line for line in body.split(b"\n") if line.startswith(b"data")] == \
                [(EVENT % number).strip() for number in range(4)]
        lines = broker.log_lines(STREAMS, name="gateway")
        assert {line["end"] for line in lines} == {"complete"} and len(lines) == STREAMS
        stack.close()
        rest_of("the descriptors", PATIENCE,
                lambda: broker.descriptors() <= descriptors + 64)  # 64 are kept for reuse
    server.stop()


def test_256_requests_at_once_by_default(tmp_path):
    go_on = threading.Event()

    def answer(peer, head):
        go_on.wait(LONG)
        peer.answer()

    with Upstream(serve_with(answer), tls=False) as upstream, \
          Broker(tmp_path, gateway=upstream.url) as broker, \
            contextlib.ExitStack() as stack:
        clients = [stack.enter_context(broker.client()) for _ in range(256)]
        for client in clients:
            client.request("/gateway/x", read=False)
        rest_of("the upstream", LONG, lambda: upstream.accepted == 256)
        for _ in range(3):
            response = broker.get("/gateway/x")
            assert (response.status, response.error) == (503, "codev_busy")
            assert int(response.fields["retry-after"]
                       ) > 0 and "too many requests" in response.json["error"]["message"]
        assert broker.get("/nope").status == 404
        assert upstream.accepted == 256
        go_on.set()
        assert [client.response().status for client in clients] == [200] * 256
        assert broker.get("/gateway/x").status == 200


def test_strangers_cannot_crowd_out_the_sandbox(tmp_path):
    """300 connections without a token are reopened as soon as they are closed, some silent and some
    with half a preface: every request of the sandbox is still answered."""
    stop, opened = threading.Event(), [0]

    def crowd(path):
        held = {}
        poller = select.poll()
        while not stop.is_set():
            while len(held) < 150:
                stranger = socket.socket(socket.AF_UNIX)
                stranger.setblocking(False)
                try:
                    stranger.connect(str(path))
                    stranger.send(b"CODEV/1 0" if len(held) % 2 else b"")
                except OSError:  # the backlog is full, or the broker has closed it already
                    stranger.close()
                    break
                held[stranger.fileno()] = stranger
                poller.register(stranger, select.POLLIN)
                opened[0] += 1
            for fd, _ in poller.poll(5):
                poller.unregister(fd)
                held.pop(fd).close()
        for stranger in held.values():
            stranger.close()

    with Upstream(serve_with(lambda peer, head: peer.answer()), tls=False) as upstream, \
            Broker(tmp_path, gateway=upstream.url) as broker:
        before = broker.descriptors()
        crowds = [threading.Thread(target=crowd, args=(broker.socket,)) for _ in range(2)]
        for thread in crowds:
            thread.start()
        rest_of("the crowd", PATIENCE, lambda: opened[0] > 200)
        slowest = 0
        try:
            for number in range(10):
                started = time.monotonic()
                assert broker.get("/gateway/x").status == 200, number
                slowest = max(slowest, time.monotonic() - started)
        finally:
            stop.set()
            for thread in crowds:
                thread.join()
        print(f"{opened[0]} strangers; the slowest of 10 requests took {slowest * 1000:.0f} ms")
        rest_of("the descriptors", PATIENCE, lambda: broker.descriptors() <= before + 64)


def test_strangers_are_64_at_most(tmp_path):
    with Broker(tmp_path) as broker, contextlib.ExitStack() as stack:
        before = broker.descriptors()
        strangers = [stack.enter_context(broker.client(b"")) for _ in range(200)]
        assert broker.get("/nope").status == 404
        rest_of("the strangers", PATIENCE, lambda: broker.descriptors() <= before + 64)
        closed = sum(1 for stranger in strangers if select.select([stranger.socket], [], [], 0)[0])
        assert closed >= 200 - 64


# --- a slow reader --------------------------------------------------------------------------------

def test_a_gibibyte_for_a_client_that_does_not_read(tmp_path):
    """The upstream is paused and memory stays bounded, while other clients get complete answers."""
    block, sent = bytes(range(256)) * 256, [0]

    def answer(peer, head):
        size = 1024 * MIB if b"/slow" in head else 64 * MIB
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(size // len(block)):
            peer.send(block)
            if size == 1024 * MIB:
                sent[0] += len(block)

    def download(broker):
        with broker.client() as client:
            client.request("/gateway/fast", read=False)
            client.read_until(b"\r\n\r\n")
            left = 64 * MIB - len(client.pending)
            while left:
                piece = client.socket.recv(min(left, MIB))
                assert piece, f"{left} bytes are missing"
                left -= len(piece)
        return True

    with Upstream(serve_with(answer)) as upstream, \
          Broker(tmp_path, gateway=upstream.url) as broker, \
            broker.client() as slow:
        broker.get("/nope")
        before = broker.rss_kib()
        slow.request("/gateway/slow", read=False)
        slow.read_until(b"\r\n\r\n")
        started = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert all(pool.map(download, [broker] * 4))
        print(
            f"4 times 64 MiB beside a stalled client: {256 / (time.monotonic() - started):.0f} "
            "MiB/s, "
            f"{broker.rss_kib() - before} KiB more")
        assert sent[0] < 32 * MIB
        # a sanitizer keeps freed memory
        assert SANITIZED or broker.rss_kib() - before < 16 * 1024
        slow.close()
        assert broker.log_lines(1, path="/gateway/slow")[0]["end"] == "cancelled"


# --- descriptors that run out ---------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0,
                    reason="the broker's limits can be lowered by root only: it is not dumpable")
def test_descriptors_that_run_out(tmp_path):
    """Clients wait or get an answer with the reason; nothing hangs, and the broker recovers when
    they leave."""
    go_on = threading.Event()

    def answer(peer, head):
        go_on.wait(LONG)
        peer.answer()

    with Upstream(serve_with(answer), tls=False) as upstream, \
            Broker(tmp_path, gateway=upstream.url) as broker, contextlib.ExitStack() as stack:
        go_on.set()
        assert broker.get("/gateway/x").status == 200
        go_on.clear()
        used = max(int(fd) for fd in os.listdir(f"/proc/{broker.process.pid}/fd"))
        resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, (used + 20, used + 20))
        held = [stack.enter_context(broker.client()) for _ in range(17)]
        for client in held:
            assert client.request("/nope").status == 404
        for client in held:
            client.request("/gateway/x", read=False)
        refused = select.select([client.socket for client in held], [], [], PATIENCE)[0]
        assert refused, "17 clients and 17 upstreams had room in 20 descriptors"
        waiting = stack.enter_context(broker.client())
        waiting.request("/nope", read=False)
        go_on.set()
        responses = [client.response() for client in held]
        for response in responses:
            assert response.status == 200 or response.error in ("codev_upstream_connect",
                                                                "codev_internal"), response.body
        statuses = [response.status for response in responses]
        assert "no gateway login" not in broker.errors()
        assert 200 in statuses and set(statuses) != {200}
        print(
            f"statuses: {statuses}, "
            f"{[r.json['error']['message'] for r in responses if r.status != 200][0]}"
        )
        for client in held:
            client.close()
        assert waiting.response().status == 404
        assert broker.get("/gateway/x").status == 200


# --- cancellation before there is a connection ----------------------------------------------------

def leave_and_measure(broker, target):
    """A client disconnects half a second after its request: it is logged long before the broker
    would give up by itself (after 10 s), and no other client waits."""
    with broker.client() as client:
        client.request(target, read=False)
        time.sleep(0.5)
    left = time.monotonic()
    line = broker.log_lines(1, path=target)[0]
    passed = time.monotonic() - left
    assert (line["end"], line["status"]) == ("cancelled", 0)
    assert broker.get("/nope").status == 404
    print(f"cancelled within {passed * 1000:.0f} ms (with a look at the log every 20 ms)")
    assert passed < 8


def test_cancel_while_it_connects(tmp_path):
    """A listener with a full backlog answers no SYN."""
    with socket.socket() as full, contextlib.ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(full.getsockname())
        with Broker(tmp_path, gateway=f"https://127.0.0.1:{full.getsockname()[1]}") as broker:
            before = broker.descriptors()
            leave_and_measure(broker, "/gateway/x")
            rest_of("the socket", PATIENCE, lambda: broker.descriptors() <= before)


NAMELESS = """#!/bin/sh
# A network of its own in which a name server is reachable and never answers.
exec unshare -mn sh -c 'set -e
    ip link set lo up
    ip route add 192.0.2.0/24 dev lo
    mount --bind {folder}/resolv.conf /etc/resolv.conf
    exec {broker} "$@"' sh "$@"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs namespaces")
def test_cancel_while_it_resolves(tmp_path, monkeypatch):
    (tmp_path / "resolv.conf").write_text("nameserver 192.0.2.1\noptions timeout:5 attempts:2\n")
    script = tmp_path / "nameless"
    script.write_text(NAMELESS.format(folder=tmp_path, broker=broker_harness.BROKER))
    script.chmod(0o755)
    monkeypatch.setattr(broker_harness, "BROKER", str(script))
    try:
        broker = Broker(tmp_path, gateway="https://llm.codev.example")
    except AssertionError as reason:
        pytest.skip(f"no namespace here: {reason}")
    with broker:
        leave_and_measure(broker, "/gateway/x")


# --- results of the slow checks -------------------------------------------------------------------

def test_slow_heads_are_cut_after_30_seconds(beside):
    """Single bytes do not extend the time limit of a head, which runs from the request's first
    byte; an idle connection has no such limit."""
    heads = beside[1]
    heads.thread.join(LONG)
    assert len(heads.ended) == len(heads.slow), "slow heads are still there"
    for client in heads.slow:
        response = client.response()
        assert (response.status, response.error) == (408, "codev_request_timeout")
        assert client.is_closed()
    first, last = min(heads.ended.values()), max(heads.ended.values())
    print(f"{len(heads.slow)} heads cut after {first:.1f} to {last:.1f} s")
    assert first > 29
    assert heads.idle.request("/nope").status == 404


def test_a_stream_may_be_quiet_for_a_minute(beside):
    quiet = beside[0]
    time.sleep(max(0, quiet.since + QUIET - time.monotonic()))
    quiet.server.tick()
    Readers([quiet.client]).until(EVENT % 1 + b"\r\n")
    assert quiet.broker.log_lines() == []  # the request continues
