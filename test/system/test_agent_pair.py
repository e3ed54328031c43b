"""The two relays of a WSL sandbox, joined by Unix sockets, in front of a real broker over TCP; and
what an inner relay that an attacker controls can do with its descriptors."""

import contextlib
import hashlib
import os
import pathlib
import socket
import struct
import time

import relay_harness
import pytest
from relay_harness import (AGENT, PATIENCE, SANITIZED, SECRET, WAY_IN, accept, connect, dial_of,
                           enter, eventually, in_thread, listen_tcp, listen_unix, read_all,
                           read_exactly, running)
from broker_harness import Upstream, serve_with
from tls_harness import AgentClient, SecureBroker, echo_length, rules_of

GIB = 1 << 30 if not SANITIZED else 1 << 26
BLOCK = os.urandom(1 << 20)
RECONNECT = pathlib.Path(AGENT).with_name("codev-agent-reconnect")


def serve(peer, head):
    """/random/N: N bytes of BLOCK repeated; /sum: the digest of the body; /broken: an incomplete
    answer; otherwise as echo_length."""
    target = head.split(b" ")[1]
    if target.startswith(b"/random/"):
        left = int(target.rpartition(b"/")[2])
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % left)
        while left:
            peer.send(BLOCK[:left])
            left -= min(left, len(BLOCK))
    elif target == b"/sum":
        digest, left = hashlib.sha256(), int(
            head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        while left:
            data = peer.pending or peer.connection.recv(1 << 18)
            peer.pending = b""
            assert data
            digest.update(data)
            left -= len(data)
        peer.answer(digest.hexdigest().encode())
    elif target == b"/broken":
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nthe beginning")
        raise EOFError("and no end")
    else:
        echo_length(peer, head)


class Pair:
    """Both relays; `front` is port 8788 of the sandbox, `door` the way in on the shared network."""

    def __init__(self, stack, folder, broker):
        self.server, self.front, self.door = listen_tcp(), listen_tcp(), listen_tcp()
        out, inner_door = listen_unix(folder / "out"), listen_unix(folder / "in")
        for listener in (self.server, self.front, self.door, out, inner_door):
            stack.enter_context(listener)
        self.inside = stack.enter_context(
            running([{
                "role": "relay",
                "fd": self.front,
                "dial": [dial_of(out)]
            }, {
                "role": "server",
                "fd": inner_door,
                "dial": [dial_of(self.server)],
                "secret": SECRET,
                "half_close": 1
            }]))
        self.outside = stack.enter_context(
            running([{
                "role": "broker",
                "fd": out,
                "dial": broker.endpoints,
                "secret": broker.token,
                "pin": broker.pin
            }, {
                "role": "agent",
                "fd": self.door,
                "dial": [dial_of(inner_door)],
                "secret": SECRET,
                "half_close": 1
            }]))

    def client(self):
        return AgentClient(self.front)

    def descriptors(self):
        return self.inside.descriptors(), self.outside.descriptors()


@pytest.fixture(name="broker", scope="module")
def broker_of_module(tmp_path_factory):
    with Upstream(serve_with(serve), tls=False) as upstream, \
            SecureBroker(tmp_path_factory.mktemp("broker"), rules=rules_of(upstream)) as broker:
        yield broker


@pytest.fixture(name="pair")
def pair_of_test(tmp_path, broker):
    with contextlib.ExitStack() as stack:
        yield Pair(stack, tmp_path, broker)


# --- the way out ----------------------------------------------------------------------------------

def download(client, length):
    digest = hashlib.sha256()
    client.send(b"GET /up/random/%d HTTP/1.1\r\nHost: x\r\n\r\n" % length)
    client.read_until(b"\r\n\r\n")
    buffer = bytearray(1 << 20)
    left = length - len(client.pending)
    digest.update(client.pending)
    client.pending = b""
    while left:
        got = client.socket.recv_into(buffer, min(left, len(buffer)))
        assert got, f"{left} bytes are missing"
        digest.update(memoryview(buffer)[:got])
        left -= got
    return digest.hexdigest()


def digest_of(length):
    digest = hashlib.sha256()
    for _ in range(length // len(BLOCK)):
        digest.update(BLOCK)
    return digest.hexdigest()


def upload(client, length):
    client.send(b"POST /up/sum HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % length)
    for _ in range(length // len(BLOCK)):
        client.send(BLOCK)
    return client.response().body.decode()


def test_a_gibibyte_each_way_at_once(pair):
    results = {}
    with pair.client() as one, pair.client() as other:
        def send():
            results["up"] = upload(other, GIB)
        with in_thread(send):
            results["down"] = download(one, GIB)
    wanted = digest_of(GIB)
    assert results == {"up": wanted, "down": wanted}
    assert pair.inside.fits_in(4096) and pair.outside.fits_in(4096)


def test_only_the_outside_agent_knows_the_token(pair, broker):
    if os.geteuid() != 0 or SANITIZED:
        pytest.skip("only root may look into a relay")
    with pair.client() as client:
        assert client.request("/up/x").status == 200
        assert broker.token.encode() in memory_of(pair.outside.pid)
        assert broker.token.encode() not in memory_of(pair.inside.pid)


def memory_of(pid):
    found = bytearray()
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            first, last = (int(word, 16) for word in line.split()[0].split("-"))
            if "w" not in line.split()[1] or last - first > 1 << 30:
                continue
            for at in range(first, last, 1 << 20):
                memory.seek(at)
                with contextlib.suppress(OSError):
                    found += memory.read(min(1 << 20, last - at)).rstrip(b"\0") + b"\0"
    return bytes(found)


@pytest.mark.parametrize("target", ["/up/broken", "/up/stream/3"])
def test_a_break_stays_a_break_and_an_end_an_end(pair, target):
    with pair.client() as client:
        client.send(f"GET {target} HTTP/1.0\r\nHost: x\r\n\r\n")
        if "broken" in target:
            with pytest.raises(ConnectionResetError):
                read_all(client.socket)
        else:
            assert read_all(client.socket).endswith(b"piece 2\n")


def test_who_reads_slowly_still_sees_a_clean_end(pair, broker):
    """The broker ends at once, the clients read later than any other time limit for ends. For some
    of these lengths the end is queued meanwhile in the Unix socket, behind bytes for which the
    inner relay has no room."""
    before, done = pair.descriptors()[1], len(broker.log_lines(name="up", end="complete"))
    lengths = range(100_000, 1_000_000, 50_000)
    pair.front.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF,
                          65536)  # inherited by connections that the relay accepts
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(pair.client()) for _ in lengths]
        for client, length in zip(clients, lengths):
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF,
                                     200_000)  # more than one segment on loopback
            client.send(f"GET /up/random/{length} HTTP/1.0\r\nHost: x\r\n\r\n")
        broker.log_lines(done + 1, name="up", end="complete")
        time.sleep(3)
        assert pair.descriptors()[1] > before
        for client, length in zip(clients, lengths):
            client.read_until(b"\r\n\r\n")
            assert len(client.pending) + len(read_all(client.socket)) == length


def test_a_client_that_leaves_cancels(pair, broker):
    before = len(broker.log_lines(end="cancelled"))
    client = pair.client()
    client.send(b"GET /up/stream/1000000 HTTP/1.1\r\nHost: x\r\n\r\n")
    client.read_until(b"piece 3\n")
    client.close()
    broker.log_lines(before + 1, end="cancelled")


def test_a_hundred_aborted_transfers_leave_nothing_behind(pair):
    with pair.client() as client:
        assert client.request("/up/x").status == 200
    before = pair.descriptors()
    for index in range(100):
        client = pair.client()
        client.send(b"GET /up/random/100000000 HTTP/1.1\r\nHost: x\r\n\r\n")
        if index % 2:
            client.socket.recv(1 + index * 1000)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                 struct.pack("ii", index % 3 == 0, 0))
        client.close()
    eventually(lambda: pair.descriptors() <= before)


def test_without_the_other_agent_there_is_an_answer(tmp_path):
    front = listen_tcp()
    with front, running([{"role": "relay", "fd": front, "dial": [f"unix:{tmp_path}/out"]}]):
        with AgentClient(front) as client:
            answer = client.request("/gateway/v1/models")
        assert (answer.status, answer.error) == (502, "codev_broker_unreachable")


def test_without_the_broker_there_is_an_answer(tmp_path):
    with SecureBroker(tmp_path) as broker:
        pass
    with contextlib.ExitStack() as stack:
        pair = Pair(stack, tmp_path, broker)
        with pair.client() as client:
            answer = client.request("/gateway/v1/models")
        assert (answer.status, answer.error) == (502, "codev_broker_unreachable")
        assert "refused" in answer.json["error"]["message"]


# --- the way in -----------------------------------------------------------------------------------

def test_the_way_in_keeps_half_closes(pair):
    """A reply of 1 MiB that starts a second after the client's last byte."""
    client, peer = enter(pair.door, pair.server)
    with client, peer:
        client.sendall(b"question")
        client.shutdown(socket.SHUT_WR)
        assert read_all(peer) == b"question"
        time.sleep(1)
        with in_thread(lambda: (peer.sendall(BLOCK), peer.close())):
            assert read_all(client) == BLOCK


def test_the_way_in_passes_a_break_on(pair):
    client, peer = enter(pair.door, pair.server)
    with client:
        peer.sendall(b"half")
        assert read_exactly(client, 4) == b"half"
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_the_way_in_demands_the_secret_outside(pair):
    for said in (b"", WAY_IN.swapcase(), WAY_IN[:20] + b"0" * 57 + b"\n",
                 b"GET / HTTP/1.1\r\n\r\n"):
        with connect(pair.door) as client, contextlib.suppress(OSError):
            client.sendall(said)
            client.shutdown(socket.SHUT_WR)
            assert read_all(client) == b""
    pair.server.settimeout(0.2)
    with pytest.raises(TimeoutError):
        pair.server.accept()


def test_the_way_in_says_ok_only_for_the_server(pair):
    pair.server.close()
    with connect(pair.door) as client:
        client.sendall(WAY_IN)
        assert read_all(client) == b""


# --- an inner relay that an attacker controls -----------------------------------------------------

def reconnect(front, listeners):
    """Lets the relay try all its descriptors on these endpoints: the lines of its report, and how
    many were reached."""
    with connect(front) as client:
        client.sendall(" ".join(["RECONNECT", *(dial_of(listener)
                                                for listener in listeners)]).encode() + b"\n")
        lines = read_all(client).decode().splitlines()
    reached, tried = (int(word) for word in lines[-1].split()[1::2])
    return lines, reached, tried


@pytest.mark.skipif(not RECONNECT.exists(), reason="there is none under sanitizers")
def test_the_probe_for_reconnecting_reaches_what_can_be_reached(tmp_path, monkeypatch):
    """The control for the report "nothing reached" in a sandbox: here, with an unconfined network,
    TCP listeners and accepted TCP sockets reach the victim, and Unix sockets do not."""
    monkeypatch.setattr(relay_harness, "AGENT", str(RECONNECT))
    front, victim = listen_tcp(), listen_tcp()
    out, inner_door = listen_unix(tmp_path / "out"), listen_unix(tmp_path / "in")
    with front, victim, out, inner_door:
        agent = relay_harness.Agent([{
            "role": "relay",
            "fd": front,
            "dial": [dial_of(out)]
        }, {
            "role": "server",
            "fd": inner_door,
            "dial": ["tcp:127.0.0.1:1"],
            "secret": SECRET
        }])
        with connect(front) as held:
            held.sendall(b"GET /")
            other_agent = accept(out)
            assert read_exactly(other_agent, 5) == b"GET /"
            lines, reached, tried = reconnect(front, [victim])
        other_agent.close()
        over_tcp = [line for line in lines
                    if "socket 2.1" in line]  # the listener, and the client's open connection
        over_unix = [line for line in lines
                     if "socket 1.1" in line]  # the listener, and the dialled connection
        assert (len(over_tcp), len(over_unix)) == (2, 2), lines
        assert all("REACHED" in line
                   for line in over_tcp) and "REACHED" not in "".join(over_unix), lines
        assert reached >= 2 and tried >= 8
        accept(victim).close()
        eventually(lambda: agent.process.poll() is not None, PATIENCE)
        agent.stop()
