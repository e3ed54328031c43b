"""The probe's tools on this machine: its HTTP client (also through a relay), its loads, its
servers, its verdicts.

The QEMU tests run its attempts inside a sandbox; here an attempt must also be able to report
"worked"."""

import hashlib
import os
import platform
import re
import socket
import subprocess
import sys
import time

import pytest

from relay_harness import TOP, BUILD, PREFACE, TOKEN, accept, dial_of, eventually, in_thread, \
    listen_tcp, listen_unix, read_all, read_exactly, running

sys.path.insert(0, str(TOP / "test/world"))
from ports import free_port  # noqa: E402

PROBE = str(BUILD / "guest" / platform.machine() / "probe")


def probe(*words, **more):
    return subprocess.run([PROBE, *map(str, words)],
                          stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE,
                          timeout=60,
                          **more)


def answer_once(listener, answer, request=None):
    """Serves one request: appends its bytes to the list and sends the answer's pieces."""
    peer = accept(listener)
    got = b""
    while b"\r\n\r\n" not in got:
        piece = peer.recv(65536)
        assert piece, got
        got += piece
    head, body = got.split(b"\r\n\r\n", 1)
    length = re.search(rb"Content-Length: (\d+)", head)
    if length:
        body += read_exactly(peer, int(length[1]) - len(body))
    if request is not None:
        request += [head, body]
    for piece in answer:
        peer.sendall(piece)
    peer.close()


@pytest.mark.parametrize("answer,body", [
    ([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"], b"hello"),
    ([b"HTTP/1.1 200 OK\r\n\r\nto the ", b"end"], b"to the end"),
    ([
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"A;x=y\r\n0123456789\r", b"\n0\r\nT: v\r\n\r\n"
    ], b"abc0123456789"),
    ([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"], b""),
    ([
        bytes([byte])
        for byte in b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    ], b"x"),
],
                         ids=["length", "to-end", "chunked", "interim", "byte-by-byte"])
def test_http_shows_head_and_body(answer, body):
    with listen_tcp() as server, in_thread(answer_once, server, answer):
        done = probe("http", "GET", "/x", "--port", server.getsockname()[1])
    assert done.returncode == 0 and done.stdout.startswith(b"HTTP/1.1 ")
    assert done.stdout.endswith(b"\r\n\r\n" + body)


@pytest.mark.parametrize("answer", [
    [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"],
    [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"],
    [b"HTTP/1.1 200 OK\r\n"],
    [b"SSH-2.0-x\r\n\r\n\r\n"],
    [],
], ids=["length", "chunked", "head", "no-http", "nothing"])
def test_http_tells_a_broken_answer(answer):
    with listen_tcp() as server, in_thread(answer_once, server, answer):
        done = probe("http", "GET", "/x", "--port", server.getsockname()[1])
    assert done.returncode == 3 and b"broken" in done.stderr


def test_http_shows_pieces_as_they_arrive():
    with listen_tcp() as server:
        client = subprocess.Popen(
            [PROBE, "http", "GET", "/", "--port",
             str(server.getsockname()[1])],
            stdout=subprocess.PIPE,
            bufsize=0)
        peer = accept(server)
        peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(5):
            event = b"data: %d\n\n" % number
            peer.sendall(b"%x\r\n%s\r\n" % (len(event), event))
            shown = b""
            while not shown.endswith(event):
                shown += client.stdout.read(1)
        peer.sendall(b"0\r\n\r\n")
        assert client.wait(20) == 0
        client.stdout.close()
        peer.close()


def test_http_sends_a_body_and_fields(tmp_path):
    (tmp_path / "body").write_bytes(b"x" * 70_000)
    request = []
    answer = [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]
    with listen_tcp() as server, in_thread(answer_once, server, answer, request):
        done = probe("http", "POST", "/gateway/v1", "--body-file", tmp_path / "body", "--header",
                     "X-A: b", "--port",
                     server.getsockname()[1])
    assert done.returncode == 0
    assert request[0].startswith(b"POST /gateway/v1 HTTP/1.1\r\n") and b"\r\nX-A: b" in request[0]
    assert request[1] == b"x" * 70_000


def test_http_through_an_agent(tmp_path):
    front, broker = listen_tcp(), listen_unix(tmp_path / "broker")

    def serve():
        peer = accept(broker)
        assert read_exactly(peer, len(PREFACE)) == PREFACE
        head = b""
        while b"\r\n\r\n" not in head:
            head += peer.recv(65536)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + bytes(1_000_000))
        peer.close()

    with broker, running([{
            "role": "broker",
            "fd": front,
            "dial": [dial_of(broker)],
            "secret": TOKEN
    }]):
        with in_thread(serve):
            done = probe("http", "GET", "/", "--sha256", "--port", front.getsockname()[1])
    assert done.stdout.split() == [
        b"200", b"1000000",
        hashlib.sha256(bytes(1_000_000)).hexdigest().encode()
    ]


@pytest.fixture
def serve():
    """Starts the probe's server in a mode; its port."""
    started = []

    def start(mode, size=0):
        port = free_port()
        started.append(subprocess.Popen([PROBE, "serve", str(port), mode, str(size)]))
        eventually(lambda: is_open(port))
        return port

    yield start
    for process in started:
        process.kill()
        process.wait()


def is_open(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def talk(port, data=b""):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        with in_thread(lambda: (client.sendall(data), client.shutdown(socket.SHUT_WR))):
            return read_all(client)


def test_servers(serve):
    data = os.urandom(300_000)
    assert talk(serve("echo"), data) == data
    assert talk(serve("hash"),
                data).split() == [b"300000", hashlib.sha256(data).hexdigest().encode()]
    whole = talk(serve("source", 200_001))
    assert len(whole) == 200_001 and whole[65536:65544] == (1).to_bytes(8, "little")
    assert talk(serve("flood", 200_001)) == whole
    start = time.monotonic()
    assert talk(serve("late", 1000), b"x") == whole[:1000]
    assert time.monotonic() - start > 0.9
    assert b"hello from the sandbox" in talk(serve("http"), b"GET / HTTP/1.1\r\n\r\n")


def test_flood_hashes_what_it_sends():
    whole = []
    with listen_tcp() as server, in_thread(lambda: whole.append(read_all(accept(server)))):
        done = probe("flood", server.getsockname()[1], 100_000)
    assert done.returncode == 0
    assert hashlib.sha256(whole[0]).hexdigest().encode() in done.stdout


def test_orphans_are_reaped_by_somebody():
    """In a separate session: the tool counts no other processes."""
    assert b"30 made, 0 left" in probe("orphans", 30, start_new_session=True).stdout


def test_verdicts():
    with listen_tcp() as server:
        port = server.getsockname()[1]
        assert probe("connect", "127.0.0.1", port).returncode == 1
        assert probe("udp", "127.0.0.1", port).returncode == 0
    refused = probe("connect", "127.0.0.1", port)
    assert refused.returncode == 0
    assert re.fullmatch(rb"connect 127\.0\.0\.1 \d+: refused \(ECONNREFUSED\) in \d+\.\d ms\n",
                        refused.stdout)
    assert probe("jit").returncode == 0
    assert probe("open", "/proc/self/status").returncode == 1
    assert probe("open", "/nowhere").stdout == b"open /nowhere: refused (ENOENT)\n"
    assert probe("procmem", os.getpid()).returncode == (1 if os.geteuid() == 0 else 0)


@pytest.mark.parametrize(
    "words", [[], ["nonsense"], ["connect", "127.0.0.1"], ["packet", "x"], ["connect", "a", "1"]])
def test_usage(words):
    assert probe(*words).returncode == 2


def test_end_and_status():
    assert probe("end", "status", 7).returncode == 7
    assert probe("end", "signal", 9).returncode == -9
    assert b"NoNewPrivs:" in probe("status").stdout
