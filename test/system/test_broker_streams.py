"""Streams: piece by piece in both directions, back-pressure, clients that disconnect, stale
connections."""
import contextlib
import hashlib
import os
import queue
import socket
import ssl
import threading
import time

import pytest

from broker_harness import PATIENCE, SANITIZED, Broker, Upstream, fields_of, serve_with

MIB = 1 << 20
LARGE = int(os.environ.get("CODEV_LARGE_MIB",
                           "64" if SANITIZED else "256")) * MIB  # 1024 in a longer run
BLOCK = bytes(range(256)) * 256


class Scene:
    """One upstream and one broker for a test; `peers` yields the upstream's end of each
    connection."""

    def __init__(self, tmp_path, handler, **options):
        self.upstream = Upstream(handler)
        self.broker = Broker(tmp_path, gateway=self.upstream.url, **options)

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        self.broker.__exit__(kind, *rest)
        self.upstream.__exit__(kind, *rest)


# --- from the upstream to the client --------------------------------------------------------------

@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("kind", ["text/event-stream", "application/octet-stream"])
def test_pieces_arrive_one_by_one(tmp_path, framing, kind):
    """The upstream sends the next piece only after the client has got the previous one, so the
    broker may hold nothing back."""
    steps = queue.Queue()
    head = {
        "chunked": b"Transfer-Encoding: chunked\r\n",
        "length": b"Content-Length: 500\r\n",
        "close": b""
    }[framing]

    def handler(peer):
        peer.read_head()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: " + kind.encode() + b"\r\n" + head + b"\r\n")
        for number in range(50):
            steps.get(timeout=PATIENCE)
            piece = b"data: %03d\n" % number
            peer.send(b"a\r\n%s\r\n" % piece if framing == "chunked" else piece)
        if framing == "chunked":
            peer.send(b"0\r\n\r\n")

    with Scene(tmp_path, handler) as scene, scene.broker.client() as client:
        client.request("/gateway/x", read=False)
        head = client.read_until(b"\r\n\r\n")  # before the first piece is sent
        assert b"200 OK" in head
        pieces = client.read_chunks() if framing != "length" else iter(lambda: client.read(10), b"")
        for number in range(50):
            steps.put(None)
            assert next(pieces) == b"data: %03d\n" % number
        if framing != "length":
            assert next(pieces, "end") == "end"


def test_large_answer_to_a_slow_client_in_bounded_memory(tmp_path):
    sent = threading.Event()
    progress = [0]

    def handler(peer):
        while peer.read_head():
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE)
            for _ in range(LARGE // len(BLOCK)):
                peer.send(BLOCK)
                progress[0] += len(BLOCK)
            sent.set()

    with Scene(tmp_path, handler) as scene, scene.broker.client() as client:
        scene.broker.get("/nope")
        before = scene.broker.rss_kib()
        client.request("/gateway/x", read=False)
        client.read_until(b"\r\n\r\n")
        stalled = -1
        while progress[0] != stalled:  # until back-pressure reaches the upstream
            stalled = progress[0]
            time.sleep(0.5)
        assert not sent.is_set() and progress[0] < 32 * MIB
        assert scene.broker.get("/nope").status == 404  # no other client waits
        digest, length = hashlib.sha256(), 0
        while length < LARGE:
            data = client.read_some(MIB)
            digest.update(data)
            length += len(data)
        expected = hashlib.sha256()
        for _ in range(LARGE // len(BLOCK)):
            expected.update(BLOCK)
        assert digest.digest() == expected.digest()
        assert scene.broker.rss_kib() - before < (200 if SANITIZED else 20) * 1024
        assert scene.broker.log_lines(1, name="gateway")[0]["bytes_out"] == LARGE


def test_pauses_without_end(tmp_path):
    """The readers are about as fast as the writer, so that the upstream is paused and resumed
    thousands of times, at every stage of the broker's sending."""
    def answer(peer, head):
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (LARGE // 4))
        for _ in range(LARGE // 4 // len(BLOCK)):
            peer.send(BLOCK)

    def read(client, lengths):
        length = 0
        while length < LARGE // 4:
            length += len(client.read_some(32768))
        lengths.append(length)

    with Scene(tmp_path, serve_with(answer)) as scene:
        clients, lengths = [scene.broker.client() for _ in range(6)], []
        for client in clients:
            client.request("/gateway/x", read=False)
            client.read_until(b"\r\n\r\n")
        threads = [threading.Thread(target=read, args=(client, lengths)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert lengths == [LARGE // 4] * 6
        for client in clients:
            client.close()


def test_stalled_streams_beside_live_ones(tmp_path):
    """One client that reads nothing, and fifty that read."""
    def answer(peer, head):
        size = 8 * MIB if b"/stalled" in head else 100_000
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(size // 50_000):
            peer.send(b"%x\r\n%s\r\n" % (50_000, b"x" * 50_000))
        peer.send(b"0\r\n\r\n")

    with Scene(tmp_path, serve_with(answer)) as scene, scene.broker.client() as stalled:
        stalled.request("/gateway/stalled", read=False)
        clients = [scene.broker.client() for _ in range(50)]
        for client in clients:
            client.request("/gateway/live", read=False)
        for client in clients:
            response = client.response()
            assert response.complete and len(response.body) == 100_000
            client.close()
        response = stalled.response()
        assert response.complete and len(response.body) == 8 * MIB // 50_000 * 50_000


# --- from the client to the upstream --------------------------------------------------------------

@pytest.mark.parametrize("chunked", [False, True])
def test_upload_arrives_piece_by_piece(tmp_path, chunked):
    arrived = queue.Queue()

    def handler(peer):
        head = peer.read_head()
        arrived.put(head)  # before any byte of the body was sent
        pieces = peer.read_chunks() if chunked else (peer.read(10) for _ in range(50))
        for piece in pieces:
            arrived.put(piece)
        peer.answer()

    with Scene(tmp_path, handler) as scene, scene.broker.client() as client:
        framing = "Transfer-Encoding: chunked" if chunked else "Content-Length: 500"
        client.send(f"POST /gateway/x HTTP/1.1\r\nHost: h\r\n{framing}\r\n\r\n")
        assert arrived.get(timeout=PATIENCE).startswith(b"POST /x")
        for number in range(50):
            piece = b"piece %03d\n" % number
            client.send(b"a\r\n%s\r\n" % piece if chunked else piece)
            assert arrived.get(timeout=PATIENCE) == piece
        if chunked:
            client.send(b"0\r\n\r\n")
        assert client.response().status == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_large_upload_to_a_slow_upstream_in_bounded_memory(tmp_path, chunked):
    go_on = threading.Event()
    got = {}

    def handler(peer):
        while peer.read_head():
            go_on.wait(PATIENCE)
            digest, length = hashlib.sha256(), 0
            pieces = peer.read_chunks() if chunked else (peer.read(len(BLOCK))
                                                         for _ in range(LARGE // len(BLOCK)))
            for piece in pieces:
                digest.update(piece)
                length += len(piece)
            got.update(length=length, digest=digest.digest())
            peer.answer()

    with Scene(tmp_path, handler) as scene, scene.broker.client() as client:
        before = scene.broker.rss_kib()
        client.send("POST /gateway/x HTTP/1.1\r\nHost: h\r\n" +
                    ("Transfer-Encoding: chunked" if chunked else f"Content-Length: {LARGE}") +
                    "\r\n\r\n")
        piece = b"%x\r\n%s\r\n" % (len(BLOCK), BLOCK) if chunked else BLOCK
        client.socket.settimeout(1)
        sent, left = 0, b""
        with pytest.raises(TimeoutError):  # the body is not read: the client blocks
            while sent < LARGE:
                left = left or piece
                left = left[client.socket.send(left):]
                sent += 0 if left else len(BLOCK)
        assert sent < 32 * MIB
        client.socket.settimeout(PATIENCE)
        go_on.set()
        client.send(left)
        sent += len(BLOCK) if left else 0
        expected = hashlib.sha256()
        while sent < LARGE:
            client.send(piece)
            sent += len(BLOCK)
        if chunked:
            client.send(b"0\r\n\r\n")
        assert client.response().status == 200
        for _ in range(LARGE // len(BLOCK)):
            expected.update(BLOCK)
        assert got == {"length": LARGE, "digest": expected.digest()}
        assert scene.broker.rss_kib() - before < (200 if SANITIZED else 20) * 1024
        assert scene.broker.log_lines(1)[0]["bytes_in"] == LARGE


def test_both_directions_at_once(tmp_path):
    """An upstream that answers each piece before the next is sent."""
    def handler(peer):
        peer.read_head()
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in peer.read_chunks():
            peer.send(b"%x\r\n%s\r\n" % (len(piece), piece.upper()))
        peer.send(b"0\r\n\r\n")

    with Scene(tmp_path, handler) as scene, scene.broker.client() as client:
        client.send("POST /gateway/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.send(b"3\r\nabc\r\n")
        client.read_until(b"\r\n\r\n")
        answers = client.read_chunks()
        assert next(answers) == b"ABC"
        for number in range(20):
            client.send(b"6\r\nabc%03d\r\n" % number)
            assert next(answers) == b"ABC%03d" % number
        client.send(b"0\r\n\r\n")
        assert next(answers, None) is None


@pytest.mark.parametrize("status", ["413 Content Too Large", "200 OK"])
def test_early_answer_while_uploading(tmp_path, status):
    """The upstream answers without reading the body: the client gets the answer, then the
    connection ends."""
    def handler(peer):
        peer.read_head()
        peer.answer(b"enough", status, ["Connection: close"])
        peer.wait_closed()

    with Scene(tmp_path, handler) as scene, scene.broker.client() as client:
        client.send(b"POST /gateway/x HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n" +
                    b"x" * 1000)
        response = client.response()
        assert response.status == int(status[:3]) and response.body == b"enough"


# --- the client disconnects -----------------------------------------------------------------------

def leave(client, how):
    if how == "close":
        client.close()
    elif how == "half":
        client.socket.shutdown(socket.SHUT_WR)
    else:  # closing a Unix socket with unread bytes is a reset
        client.close()


@pytest.mark.parametrize("how", ["close", "half"])
@pytest.mark.parametrize(
    "phase", ["tls", "before-the-head", "head-only", "mid-stream", "mid-upload", "paused"])
def test_cancel_reaches_the_upstream(tmp_path, phase, how):
    """The client disconnects; the upstream's connection ends. The broker does this at once: 200 ms
    are allowed, and more on a loaded machine."""
    reached, closed = threading.Event(), queue.Queue()

    def handler(peer):
        peer.read_head()
        if phase in ("head-only", "mid-stream", "paused"):
            peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        if phase == "mid-stream":
            peer.send(b"5\r\nhello\r\n")
        if phase == "mid-upload":
            peer.read(1000)
        if phase == "paused":
            peer.connection.settimeout(0.5)
            try:
                while True:
                    peer.send(b"%x\r\n%s\r\n" % (len(BLOCK), BLOCK))
            except TimeoutError:
                pass
            except OSError:
                closed.put(True)
                return
        reached.set()
        closed.put(peer.wait_closed())

    upstream = SilentServer(reached, closed) if phase == "tls" else Upstream(handler)
    with upstream, Broker(tmp_path, gateway=upstream.url) as broker:
        client = broker.client()
        if phase == "mid-upload":
            client.send(b"POST /gateway/x HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" +
                        b"x" * 1000)
        else:
            client.request("/gateway/x", read=False)
        if phase == "mid-stream":
            client.read_until(b"hello")
        assert reached.wait(PATIENCE)
        if phase == "head-only":
            client.read_until(b"\r\n\r\n")
        left = time.monotonic()
        leave(client, how)
        assert closed.get(timeout=PATIENCE) is True
        passed = time.monotonic() - left
        print(f"{phase}, {how}: the upstream saw it after {passed * 1000:.1f} ms")
        assert passed < 15
        assert broker.log_lines(1)[0]["end"] == "cancelled"
        assert broker.get("/nope").status == 404
        client.close()


class SilentServer:
    """Accepts and sends nothing: the broker waits in its TLS handshake."""

    def __init__(self, reached, closed):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._serve, args=(reached, closed), daemon=True).start()

    def _serve(self, reached, closed):
        connection, _ = self.listener.accept()
        connection.settimeout(PATIENCE)
        connection.recv(65536)  # the broker's ClientHello
        reached.set()
        try:
            closed.put(connection.recv(65536) == b"")
        except ConnectionError:
            closed.put(True)
        except TimeoutError:
            closed.put(False)
        connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


def test_a_hundred_aborted_streams(tmp_path):
    def answer(peer, head):
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(200):
            peer.send(b"%x\r\n%s\r\n" % (len(BLOCK), BLOCK))
        peer.send(b"0\r\n\r\n")

    with Scene(tmp_path, serve_with(answer)) as scene:
        scene.broker.get("/nope")
        before = scene.broker.descriptors()
        for _ in range(100):
            with scene.broker.client() as client:
                client.request("/gateway/x", read=False)
                client.read(1000)
        assert len(scene.broker.log_lines(100, end="cancelled")) == 100
        end = time.monotonic() + PATIENCE
        while scene.broker.descriptors() > before:
            assert time.monotonic() < end
            time.sleep(0.05)


# --- kept connections -----------------------------------------------------------------------------

def test_connections_are_kept(tmp_path):
    with Scene(
            tmp_path,
            serve_with(lambda peer, head: peer.answer())) as scene, scene.broker.client() as client:
        for method in ["GET"] * 10 + ["POST"] * 10:
            assert client.request("/gateway/x", method=method).status == 200
        assert scene.upstream.accepted == 1


@pytest.mark.parametrize("method,status,times", [("GET", 200, 2), ("HEAD", 200, 2),
                                                 ("POST", 502, 1), ("DELETE", 502, 1),
                                                 ("PUT", 502, 1)])
def test_stale_connection(tmp_path, method, status, times):
    """The upstream closes a kept connection when the next request arrives on it: a safe request is
    repeated on a new connection; one that may have had an effect is not."""
    seen = []

    def handler(peer):
        first = True
        while head := peer.read_head():
            seen.append(head.split(b" ")[0].decode())
            if not first:
                return
            first = False
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with Scene(tmp_path, handler) as scene, scene.broker.client() as client:
        assert client.request("/gateway/x", method="OPTIONS").status == 200
        response = client.request("/gateway/x", method=method)
        assert response.status == status
        assert seen.count(method) == times
        if status == 502:
            assert "not sent again" in response.json["error"]["message"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_connection_that_the_upstream_closed_meanwhile(tmp_path, method):
    goodbyes = threading.Semaphore(0)

    def handler(peer):
        if peer.read_head():
            peer.answer()
            peer.connection.settimeout(0)
            with pytest.raises(ssl.SSLWantReadError
                               ):  # close_notify is sent, and the broker's is not awaited
                peer.connection.unwrap()
            goodbyes.release()

    with Scene(tmp_path, handler) as scene, scene.broker.client() as client:
        for _ in range(5):
            assert client.request("/gateway/x", method=method).status == 200
            assert goodbyes.acquire(timeout=PATIENCE)


LATE = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n\r\nlate"
SECOND = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond"


@pytest.mark.parametrize("tls", [True, False])
@pytest.mark.parametrize("method,framing", [("GET", "length"), ("GET", "chunked"),
                                            ("HEAD", "length"), ("POST", "length")])
@pytest.mark.parametrize("unasked,when", [(LATE, "end"), (SECOND, "later"), (SECOND, "at once"),
                                          (SECOND, "in two"), (SECOND, "with the body"),
                                          (b"x", "later")])
def test_unasked_answer_is_never_the_next_ones(tmp_path, tls, method, unasked, when, framing):
    """Bytes on an idle connection end it, and the request goes out on a new one."""
    sent = threading.Semaphore(0)

    def answer(peer, head):
        target = head.split(b" ")[1]
        own = b"HTTP/1.1 200 OK\r\nX-Target: " + target
        if framing == "length":
            own += b"\r\nContent-Length: 2\r\n\r\n" + b"ok" * (method != "HEAD")
        else:
            own += b"\r\nTransfer-Encoding: chunked\r\n\r\n" + (b"2\r\nok\r\n0\r\n\r\n" *
                                                                (method != "HEAD"))
        at_once = {"at once": len(unasked), "in two": 20}.get(when, 0)
        if when == "with the body":
            head, _, body = own.partition(b"\r\n\r\n")
            peer.send(head + b"\r\n\r\n")
            own, at_once = body, len(unasked)
        peer.send(own + unasked[:at_once])
        answered.wait(PATIENCE)
        answered.clear()
        peer.send(unasked[at_once:])
        if when == "end":
            socket.socket.shutdown(peer.connection, socket.SHUT_WR)
        sent.release()

    answered = threading.Event()
    with Upstream(serve_with(answer), tls=tls) as upstream, Broker(
            tmp_path, rules={"up": upstream.url}) as broker, broker.client() as client:
        for i in range(4):
            response = client.request(f"/up/{i}", method=method)
            assert (response.status, response.fields.get("x-target")) == (200, f"/{i}")
            assert method == "HEAD" or response.body == b"ok"
            answered.set()
            assert sent.acquire(timeout=PATIENCE)
        # libcurl itself drops what it has read behind a chunked answer or one without a body
        dropped = (framing == "chunked" or method == "HEAD") and when in ("at once",
                                                                          "with the body")
        assert dropped or upstream.accepted == 4


# --- limits ---------------------------------------------------------------------------------------

def test_more_requests_than_allowed_are_503(tmp_path):
    go_on = threading.Event()

    def answer(peer, head):
        go_on.wait(PATIENCE)
        peer.answer()

    with Scene(tmp_path, serve_with(answer), options=["--max-requests", "3"]) as scene:
        clients = [scene.broker.client() for _ in range(3)]
        for client in clients:
            client.request("/gateway/x", read=False)
        end = time.monotonic() + PATIENCE
        while scene.upstream.accepted < 3:
            assert time.monotonic() < end
            time.sleep(0.01)
        with scene.broker.client() as fourth:
            response = fourth.request("/gateway/x")
            assert (response.status, response.error) == (503, "codev_busy")
            assert int(response.fields["retry-after"]) > 0
            go_on.set()
            for client in clients:
                assert client.response().status == 200
                client.close()
            assert fourth.request("/gateway/x").status == 200


def test_more_connections_than_allowed_are_503(tmp_path):
    with Broker(tmp_path, options=["--max-connections", "5"]) as broker:
        clients = [broker.client() for _ in range(5)]
        for client in clients:
            assert client.request("/nope").status == 404
        with broker.client(b"") as sixth:  # answered before it has sent a byte
            response = sixth.response()
            assert (response.status, response.error) == (503, "codev_busy")
        clients.pop().close()
        end = time.monotonic() + PATIENCE
        while not is_served(broker):
            assert time.monotonic() < end
        for client in clients:
            client.close()


def is_served(broker):
    """False while the broker has not noticed that another client left: then the connection may end
    before a request."""
    with contextlib.suppress(BrokenPipeError):
        return broker.get("/nope").status == 404
    return False


def test_idle_limits(tmp_path):
    """A silent upstream: 504. One that stops in the middle of an answer: a reset. A client that
    stops in the middle of a body: 408. An idle connection: closed."""
    stuck = threading.Event()

    def answer(peer, head):
        if b"/half" in head:
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        if b"/upload" in head:
            peer.read(100)
        stuck.wait(60)

    with Scene(tmp_path, serve_with(answer), options=["--idle-timeout", "6s"]) as scene:
        silent, half, upload, idle = (scene.broker.client() for _ in range(4))
        silent.request("/gateway/silent", read=False)
        half.request("/gateway/half", read=False)
        upload.send(b"POST /gateway/upload HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nx")
        response = silent.response()
        assert (response.status, response.error) == (504, "codev_upstream_timeout")
        response = half.response()
        assert response.body == b"half" and not response.complete
        assert upload.response().status == 408
        assert idle.is_closed()
        for client in (silent, half, upload, idle):
            client.close()
        stuck.set()


def test_a_quiet_stream_is_not_cut(tmp_path):
    """Bytes in either direction restart the time limit."""
    def answer(peer, head):
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n")
        for _ in range(8):
            time.sleep(1)
            peer.send(b".")

    with Scene(tmp_path, serve_with(answer), options=["--idle-timeout", "6s"]) as scene:
        response = scene.broker.get("/gateway/x")
        assert response.complete and response.body == b"." * 8


# --- counts ---------------------------------------------------------------------------------------

def test_descriptors_after_a_thousand_requests_and_two_hundred_at_once(tmp_path):
    with Scene(tmp_path, serve_with(lambda peer, head: peer.answer())) as scene:
        scene.broker.get("/nope")
        before = scene.broker.descriptors()
        for _ in range(1000):
            assert scene.broker.get("/gateway/x").status == 200
        clients = [scene.broker.client() for _ in range(200)]
        for client in clients:
            client.request("/gateway/x", read=False)
        for client in clients:
            assert client.response().status == 200
            client.close()
        kept = 64  # idle connections to upstreams
        end = time.monotonic() + PATIENCE
        while scene.broker.descriptors() > before + kept:
            assert time.monotonic() < end, scene.broker.descriptors()
            time.sleep(0.05)
