"""The real relay in front of the real broker over TCP: what crosses the network, that it is
complete or visibly broken, and which peer gets it."""

import contextlib
import os
import socket
import ssl
import struct
import threading
import time

import pytest
from relay_harness import (PATIENCE, SANITIZED, eventually, in_thread, listen_tcp, read_all,
                           running, silent)
from broker_harness import Upstream, other_authority, serve_with
from tls_harness import AgentClient, SecureBroker, Wire, agent_to, echo_length, rules_of

MARK = b"a-request-that-nobody-may-read"


@pytest.fixture(name="upstream", scope="module")
def upstream_of_module():
    with Upstream(serve_with(echo_length), tls=False) as upstream:
        yield upstream


@pytest.fixture(name="broker", scope="module")
def broker_of_module(tmp_path_factory, upstream):
    with SecureBroker(tmp_path_factory.mktemp("broker"), rules=rules_of(upstream)) as broker:
        yield broker


# --- what crosses ---------------------------------------------------------------------------------

def test_nothing_crosses_in_clear(broker):
    with Wire(broker.address) as wire, agent_to(
            broker, [wire.endpoint]) as (_, front), AgentClient(front) as client:
        for _ in range(3):
            answer = client.request(f"/up/{MARK.decode()}", "POST", [f"X-Mark: {MARK.decode()}"],
                                    MARK * 1000)
            assert answer.status == 200 and answer.body == b"%d" % (len(MARK) * 1000)
        for crossed in (wire.up, wire.down):
            assert len(crossed) > 300
            for secret in (broker.token.encode(), MARK, b"CODEV", b"HTTP/1.1", b"Host:",
                           b"Content-Length"):
                assert secret not in crossed, secret
        assert len(wire.up) > len(MARK) * 3000


def test_each_connection_has_keys_of_its_own(broker):
    with Wire(broker.address) as wire, agent_to(broker, [wire.endpoint]) as (_, front):
        records = []
        for _ in range(2):
            start = len(wire.up)
            with AgentClient(front) as client:
                assert client.request("/nothing").status == 404
            records.append(bytes(wire.up[start:]))
        assert len(records[0]) == len(records[1]) and records[0][-40:] != records[1][-40:]


@pytest.mark.parametrize("field", [1, 16000, 16400, 33000, 60000])
def test_heads_of_any_size(broker, field):
    """Heads and bodies that begin and end inside records, and some larger than one record."""
    with agent_to(broker) as (_, front), AgentClient(front) as client:
        for length in (0, 1, 16383, 16385, 100_000):
            answer = client.request("/up/x", "POST", [f"X-Long: {'a' * field}"], b"b" * length)
            assert (answer.status, answer.body) == (200, b"%d" % length)


def test_a_pipeline_of_requests(broker):
    """Bytes that the broker has read from TLS before it needs them are kept."""
    lengths = [index * 2711 % 40_000 for index in range(60)]
    with agent_to(broker) as (_, front), AgentClient(front) as client:
        requests = [
            b"POST /up/x HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % length + bytes(length)
            for length in lengths
        ]
        with in_thread(client.send, b"".join(requests)):
            for length in lengths:
                assert client.response().body == b"%d" % length


# --- which peer gets the token --------------------------------------------------------------------

class Impostor:
    """A process that has taken over the broker's port: it records every byte, and may speak TLS
    with its own key."""

    def __init__(self, context=None, answer=True):
        self.listener, self.context, self.answer = listen_tcp(), context, answer
        self.endpoint = f"tcp:127.0.0.1:{self.listener.getsockname()[1]}"
        self.heard, self.plain, self.accepted, self.sockets, self.threads = bytearray(), bytearray(
        ), 0, [], []
        self._start(self._accept)

    def _start(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                self.accepted += 1
                self.sockets.append(sock)
                self._start(self._serve, sock)

    def _serve(self, sock):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        engine = self.context.wrap_bio(incoming, outgoing,
                                       server_side=True) if self.context else None
        with contextlib.suppress(OSError):
            while data := sock.recv(65536):
                self.heard += data
                if not engine:
                    if self.answer:
                        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    continue
                incoming.write(data)
                with contextlib.suppress(ssl.SSLError):
                    self.plain += engine.read(65536)
                sock.sendall(outgoing.read())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.threads[0].join(PATIENCE)
        for sock in self.sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(PATIENCE)
        for sock in [self.listener, *self.sockets]:
            sock.close()


def impostor_context(version=None, ciphers=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(other_authority().certificate, other_authority().key)
    if ciphers:
        context.set_ciphers(ciphers + ":@SECLEVEL=0")
    if version:
        context.minimum_version = context.maximum_version = version
    return context


OTHER_TLS = [(ssl.TLSVersion.TLSv1_1, "ALL"), (ssl.TLSVersion.TLSv1_3, "ALL"),
             (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES256-GCM-SHA384"),
             (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-SHA")]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_agent_offers_one_version_and_two_suites(broker):
    with contextlib.ExitStack() as stack:
        impostors = [stack.enter_context(Impostor(impostor_context(*other))) for other in OTHER_TLS]
        fronts = [
            stack.enter_context(agent_to(broker, [impostor.endpoint]))[1] for impostor in impostors
        ]
        clients = [stack.enter_context(AgentClient(front)) for front in fronts]
        for client in clients:
            client.request("/up/x", read=False)
        for client, impostor in zip(clients, impostors):
            answer = client.response()
            assert answer.status == 502
            assert "does not speak the broker's TLS" in answer.json["error"]["message"]
            assert impostor.accepted and not impostor.plain


@pytest.mark.parametrize("kind", ["openssl with another key", "plain", "another broker"])
def test_who_takes_over_the_port_gets_no_byte_of_the_token(broker, tmp_path, kind):
    with contextlib.ExitStack() as stack:
        if kind == "another broker":
            other = stack.enter_context(SecureBroker(tmp_path))
            impostor = stack.enter_context(Wire(other.address))
        else:
            impostor = stack.enter_context(
                Impostor(None if kind == "plain" else impostor_context()))
        _, front = stack.enter_context(agent_to(broker, [impostor.endpoint]))
        with AgentClient(front) as client:
            answer = client.request(f"/up/{MARK.decode()}")
        assert (answer.status, answer.error) == (502, "codev_broker_unreachable")
        reason = "does not speak the broker's TLS" if kind == "plain" else "does not match the pin"
        assert reason in answer.json["error"]["message"]
        heard = bytes(impostor.up if kind == "another broker" else impostor.heard)
        assert heard[:1] == b"\x16"  # it got a ClientHello
        for secret in (broker.token.encode(), MARK, b"CODEV"):
            assert secret not in heard
        if kind == "openssl with another key":
            assert not impostor.plain and b"\x17\x03\x03" not in heard  # no data record at all


def test_the_address_that_proved_the_key_is_kept_until_it_fails(broker):
    with Impostor(impostor_context()) as impostor, Wire(broker.address) as first, Wire(
            broker.address) as second:
        dials = [impostor.endpoint, first.endpoint, second.endpoint]
        with agent_to(broker, dials) as (_, front):
            for _ in range(3):
                with AgentClient(front) as client:
                    assert client.request("/up/x").status == 200
            assert (impostor.accepted, len(second.up)) == (1, 0)
            first.refuse()
            for _ in range(2):
                with AgentClient(front) as client:
                    assert client.request("/up/x").status == 200
            assert impostor.accepted == 1 and second.up


@pytest.mark.skipif(SANITIZED, reason="it only waits")
def test_one_that_says_nothing_costs_its_time_and_the_next_is_tried(broker):
    with Impostor(answer=False) as mute, agent_to(broker,
                                                  [mute.endpoint, *broker.endpoints]) as (_, front):
        began = time.monotonic()
        with AgentClient(front) as client:
            assert client.request("/up/x").status == 200
            assert time.monotonic() - began > 1  # the relay waited for it
        with AgentClient(front) as client:
            assert client.request("/up/x").status == 200
        assert mute.accepted == 1


def test_a_new_broker_with_a_new_key_after_a_new_record(broker, tmp_path, upstream):
    with SecureBroker(tmp_path,
                      rules=rules_of(upstream)) as other, agent_to(broker) as (agent, front):
        with AgentClient(front) as old:
            assert old.request("/up/x").status == 200
            agent.send(dial=other.endpoints, secret=other.token, pin=other.pin)
            eventually(lambda: count(other, front) > 0)
            assert old.request("/up/x").status == 200  # connections in progress continue


def test_a_new_record_reaches_those_who_are_on_their_way(broker):
    """A client whose relay is in a handshake with a silent peer reaches the broker that the new
    record names, before the handshake's own limit of 5 s. (One success in a few tries is enough, as
    a busy machine may delay the test for longer.)"""
    def goes_on_at_once():
        began = time.monotonic()
        with Impostor(answer=False) as mute, agent_to(
                broker, [mute.endpoint]) as (agent, front), AgentClient(front) as client:
            client.request("/up/x", read=False)
            eventually(lambda: mute.heard)
            agent.send(dial=broker.endpoints)
            assert client.response().status in (200, 502)
            assert broker.token.encode() not in mute.heard
        return time.monotonic() - began < 4

    assert any(goes_on_at_once() for _ in range(5))


def count(broker, front):
    with AgentClient(front) as client:
        assert client.request("/up/x").status in (200, 401)
    return len(broker.log_lines(name="up", status=200))


def test_the_gateway_is_read_from_the_route_at_each_dial(broker, tmp_path):
    port = broker.address[1]
    table = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n" \
            "eth0\t00000000\t{}\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
    route = tmp_path / "route"
    route.write_text(table.format("0200007F"))  # 127.0.0.2, where there is no listener
    front = listen_tcp()
    forward = {
        "role": "broker",
        "fd": front,
        "dial": [f"tcp:gateway:{port}"],
        "secret": broker.token,
        "pin": broker.pin
    }
    with open(route, "rb") as file, front, running([forward], route=file):
        with AgentClient(front) as client:
            assert client.request("/up/x").status == 502
        with open(route, "w") as changed:  # written in place, as the kernel changes its table
            changed.write(table.format("0100007F"))
        with AgentClient(front) as client:
            assert client.request("/up/x").status == 200


# --- whole, or visibly broken ---------------------------------------------------------------------

def test_an_answer_that_ends_by_closing_is_whole_or_broken(broker):
    """An HTTP/1.0 answer is delimited only by the end of the connection: close_notify, or a
    reset."""
    with Wire(broker.address) as wire, agent_to(broker, [wire.endpoint]) as (_, front):
        with AgentClient(front) as client:
            client.send(b"GET /up/stream/5 HTTP/1.0\r\nHost: x\r\n\r\n")
            assert read_all(client.socket).endswith(b"piece 4\n")
        with AgentClient(front) as client:
            client.send(b"GET /up/stream/10000000 HTTP/1.0\r\nHost: x\r\n\r\n"
                        )  # more than all buffers on the way hold
            client.read_until(b"piece 1\n")
            wire.cut()
            with pytest.raises(ConnectionResetError):
                read_all(client.socket)


def test_a_quiet_connection_ends_cleanly(tmp_path, upstream):
    """Between requests: a client that keeps its connection must not see the broker's time limit as
    a broken connection."""
    with SecureBroker(tmp_path, rules=rules_of(upstream), options=["--idle-timeout",
                                                                   "3s"]) as broker:
        with agent_to(broker) as (_, front), AgentClient(front) as client:
            assert client.request("/up/x").status == 200
            assert client.socket.recv(1) == b""


@pytest.mark.parametrize("damage", ["one bit", "a byte more", "a piece twice", "a piece less"])
def test_a_spoiled_stream_breaks(broker, damage):
    """In the middle of an answer. (Before its first byte the relay would answer 502.)"""
    done = []

    def spoil(up, position, data):
        if up or position < 200_000 or done:
            return data
        done.append(1)
        if damage == "one bit":
            return bytes([data[0] ^ 1]) + data[1:]
        return {
            "a byte more": b"x" + data,
            "a piece twice": data + data,
            "a piece less": b""
        }[damage]

    with Wire(broker.address, spoil) as wire, agent_to(broker, [wire.endpoint]) as (_, front):
        with AgentClient(front) as client:
            client.send(b"GET /up/zeros/3000000 HTTP/1.1\r\nHost: x\r\n\r\n")
            with pytest.raises(ConnectionResetError):
                while data := client.socket.recv(1 << 20):
                    assert b"\xff" not in data
                raise AssertionError("a clean end")
    assert done


def test_a_client_that_leaves_cancels(broker, upstream):
    with agent_to(broker) as (_, front):
        before = len(broker.log_lines(end="cancelled"))
        for _ in range(3):
            client = AgentClient(front)
            client.send(b"GET /up/stream/1000000 HTTP/1.1\r\nHost: x\r\n\r\n")
            client.read_until(b"piece 3\n")
            client.close()
        broker.log_lines(before + 3, end="cancelled")
    assert not upstream.faults


def test_a_hundred_aborted_transfers_leave_nothing_behind(broker):
    with agent_to(broker) as (agent, front):
        with AgentClient(front) as client:
            assert client.request("/up/x").status == 200
        before = agent.descriptors(), broker.descriptors()
        for index in range(100):
            client = AgentClient(front)
            client.send(b"GET /up/zeros/100000000 HTTP/1.1\r\nHost: x\r\n\r\n")
            if index % 2:
                client.socket.recv(1 + index * 1000)
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                     struct.pack("ii", index % 3 == 0, 0))
            client.close()
        eventually(lambda: agent.descriptors() <= before[0] and broker.descriptors() <= before[1])
        with AgentClient(front) as client:
            assert client.request("/up/x").status == 200


# --- many, and slow -------------------------------------------------------------------------------

def test_readers_that_pause_until_all_rings_are_full(broker):
    """Records then end in the middle of the relay's ring, at its end, and where there is no room
    for another: bytes that were read from the socket are delivered, although no further event
    reports them."""
    with agent_to(broker) as (_, front), contextlib.ExitStack() as stack:
        front.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF,
                         65536)  # inherited by connections that the relay accepts
        lengths = range(1_000_000, 1_400_000, 17_777)
        clients = [stack.enter_context(AgentClient(front)) for _ in lengths]
        for client, length in zip(clients, lengths):
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF,
                                     200_000)  # more than one segment on loopback
            client.send(f"GET /up/zeros/{length} HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.5)
        for client, length in zip(clients, lengths):
            answer = client.response()
            assert answer.complete and len(answer.body) == length


def test_one_stalled_and_fifty_live(broker):
    with agent_to(broker) as (_, front), contextlib.ExitStack() as stack:
        stalled = stack.enter_context(AgentClient(front))
        stalled.send(b"GET /up/zeros/50000000 HTTP/1.1\r\nHost: x\r\n\r\n")
        live = [stack.enter_context(AgentClient(front)) for _ in range(50)]
        for client in live:
            client.send(b"GET /up/zeros/300000 HTTP/1.1\r\nHost: x\r\n\r\n")
        for client in live:
            answer = client.response()
            assert answer.complete and len(answer.body) == 300000
        answer = stalled.response()
        assert answer.complete and len(answer.body) == 50000000


def test_connections_one_after_another(broker):
    """CONNECTIONS=10000 makes a long run."""
    number = int(os.environ.get("CONNECTIONS", 200 if SANITIZED else 2000))
    with agent_to(broker) as (agent, front):
        with AgentClient(front) as client:
            assert client.request("/nothing").status == 404
        before, memory = (agent.descriptors(), broker.descriptors()), (agent.resident_kib(),
                                                                       broker.rss_kib())
        for _ in range(number):
            with AgentClient(front) as client:
                assert client.request("/nothing").status == 404
        eventually(lambda: agent.descriptors() <= before[0] and broker.descriptors() <= before[1])
        assert SANITIZED or agent.resident_kib() < memory[0] + 512
        assert SANITIZED or broker.rss_kib() < memory[1] + 4096


def ticks(pid):
    """Processor time in hundredths of a second."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


@pytest.mark.skipif(SANITIZED, reason="sanitizers take processor time of their own")
def test_nobody_spins_while_nothing_moves(broker):
    """Idle connections, connections stalled in either direction, half a ClientHello, and a client
    that only reads."""
    with agent_to(broker) as (agent, front), contextlib.ExitStack() as stack:
        idle, stalled, pushing = (stack.enter_context(AgentClient(front)) for _ in range(3))
        assert idle.request("/up/x").status == 200
        stalled.send(b"GET /up/zeros/100000000 HTTP/1.1\r\nHost: x\r\n\r\n")
        pushing.send(b"POST /up/deaf HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n")
        pushing.socket.setblocking(False)
        stack.enter_context(broker.connect()).sendall(b"\x16\x03")
        ends = time.monotonic() + 2
        while time.monotonic() < ends:
            with contextlib.suppress(BlockingIOError):
                pushing.socket.send(bytes(65536))
            time.sleep(0.01)
        before = ticks(agent.pid), ticks(broker.process.pid)
        time.sleep(1)
        after = ticks(agent.pid), ticks(broker.process.pid)
        assert after[0] - before[0] < 30 and after[1] - before[1] < 30
        assert silent(idle.socket, 0)
