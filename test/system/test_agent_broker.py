"""The relay between client and broker: preface, bytes, cancellation, broken connections, canned
answers, limits."""

import hashlib
import json
import os
import select
import socket
import struct
import time

import pytest

from relay_harness import (PREFACE, TOKEN, accept, accept_broker, connect, dial_of, ended,
                           eventually, in_thread, listen_tcp, listen_unix, read_all, read_exactly,
                           running, silent, to_broker)

REQUEST = b"GET /gateway/v1/models HTTP/1.1\r\nHost: x\r\n\r\n"
LIMIT = 512


def split_answer(answer):
    head, body = answer.split(b"\r\n\r\n", 1)
    lines = head.decode().split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in lines[1:])
    assert int(fields["content-length"]) == len(body)
    assert fields["connection"] == "close"
    return lines[0], fields, json.loads(body)


def test_preface_comes_first_and_bytes_pass_untouched(tmp_path):
    with to_broker(tmp_path) as (_, front, broker):
        client = connect(front)
        client.sendall(bytes(range(256)) * 3)
        peer = accept(broker)
        assert read_exactly(peer, len(PREFACE) + 768) == PREFACE + bytes(range(256)) * 3
        peer.sendall(b"\0\xff answer")
        assert read_exactly(client, 9) == b"\0\xff answer"


def test_ipv6_listener(tmp_path):
    broker, front = listen_unix(tmp_path / "broker"), listen_tcp(host="::1")
    with broker, running([{
            "role": "broker",
            "fd": front,
            "dial": [dial_of(broker)],
            "secret": TOKEN
    }]):
        client = connect(front)
        peer = accept_broker(broker)
        client.sendall(b"six")
        assert read_exactly(peer, 3) == b"six"


def test_no_token_says_no_preface(tmp_path):
    broker, front = listen_unix(tmp_path / "broker"), listen_tcp()
    with broker, running([{"role": "broker", "fd": front, "dial": [dial_of(broker)]}]):
        client = connect(front)
        client.sendall(b"first bytes")
        assert read_exactly(accept(broker), 11) == b"first bytes"


@pytest.mark.parametrize("size", [1, 32767, 32768, 32769, 65536, 98305])
def test_sizes_in_both_directions(tmp_path, size):
    body = os.urandom(size)
    with to_broker(tmp_path) as (_, front, broker):
        client, peer = connect(front), accept_broker(broker)
        with in_thread(client.sendall, body):
            assert read_exactly(peer, size) == body
        with in_thread(peer.sendall, body):
            assert read_exactly(client, size) == body


@pytest.mark.parametrize("direction", ["up", "down"])
def test_64_mib_to_a_slow_reader_arrives_whole(tmp_path, direction):
    block = os.urandom(1 << 20)

    def send(sender, digest):
        for number in range(64):
            piece = block[number:] + block[:number]
            digest.update(piece)
            sender.sendall(piece)

    with to_broker(tmp_path) as (agent, front, broker):
        client, peer = connect(front), accept_broker(broker)
        sender, reader = (client, peer) if direction == "up" else (peer, client)
        sent, got, left, reads = hashlib.sha256(), hashlib.sha256(), 64 << 20, 0
        with in_thread(send, sender, sent):
            time.sleep(0.5)  # all buffers on the way are full now
            while left:
                piece = reader.recv(200_000)
                assert piece, "cut"
                got.update(piece)
                left -= len(piece)
                reads += 1
                if reads % 40 == 0:
                    time.sleep(0.01)
        assert sent.digest() == got.digest()
        assert agent.fits_in(1024 + 2 * 64)


def test_flood_of_small_writes_to_a_slow_reader(tmp_path):
    pieces = [os.urandom(100 + number % 351) for number in range(5000)]

    def send(sender):
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            sender.sendall(piece)

    with to_broker(tmp_path) as (_, front, broker):
        client, peer = connect(front), accept_broker(broker)
        whole = b"".join(pieces)
        with in_thread(send, client):
            time.sleep(0.3)
            assert read_exactly(peer, len(whole)) == whole


@pytest.mark.parametrize("leave", ["close", "shutdown", "reset"])
def test_client_that_leaves_ends_the_broker_connection(tmp_path, leave):
    with to_broker(tmp_path) as (agent, front, broker):
        before = agent.descriptors()
        client, peer = connect(front), accept_broker(broker)
        client.sendall(REQUEST)
        assert read_exactly(peer, len(REQUEST)) == REQUEST
        peer.sendall(b"HTTP/1.1 200 OK\r\n")
        if leave == "shutdown":
            client.shutdown(socket.SHUT_WR)
        elif leave == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        else:
            client.close()
        assert ended(peer)
        peer.close()
        eventually(lambda: agent.descriptors() == before)


@pytest.mark.parametrize("leave", ["close", "reset"])
def test_client_that_leaves_behind_a_broker_that_reads_nothing(tmp_path, leave):
    """The ring is full, so the relay reads no more from the client, but it must notice the client's
    end. (It cannot see an end that is queued in the client's kernel behind unsent bytes; a reset
    overtakes them.)"""
    with to_broker(tmp_path) as (agent, front, broker):
        before = agent.descriptors()
        client, peer = connect(front), accept_broker(broker)
        if leave == "close":
            # more than ring and Unix socket hold, but the rest fits into TCP's window
            client.sendall(bytes(300_000))
        else:
            client.setblocking(False)
            with pytest.raises(BlockingIOError):
                for _ in range(1000):
                    client.send(bytes(100_000))
                    time.sleep(0.001)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        eventually(lambda: agent.descriptors() == before)
        peer.close()


def test_broker_that_closes_ends_the_client_after_its_last_byte(tmp_path):
    body = os.urandom(300_000)
    with to_broker(tmp_path) as (agent, front, broker):
        before = agent.descriptors()
        client, peer = connect(front), accept_broker(broker)
        client.sendall(REQUEST)
        read_exactly(peer, len(REQUEST))
        with in_thread(lambda: (peer.sendall(body), peer.close())):
            assert read_all(client) == body
        client.close()
        eventually(lambda: agent.descriptors() == before)


def test_client_that_ignores_the_end_is_dropped(tmp_path):
    with to_broker(tmp_path) as (agent, front, broker):
        before = agent.descriptors()
        client, peer = connect(front), accept_broker(broker)
        peer.sendall(b"x")
        peer.close()
        eventually(lambda: agent.descriptors() == before)
        client.close()


def test_broken_broker_connection_is_a_break_for_the_client(tmp_path):
    """Closing a Unix socket with unread bytes resets its peer."""
    with to_broker(tmp_path) as (_, front, broker):
        client, peer = connect(front), accept_broker(broker)
        peer.sendall(b"HTTP/1.1 200 OK\r\n\r\nhalf an ans")
        assert read_exactly(client, 30) == b"HTTP/1.1 200 OK\r\n\r\nhalf an ans"
        client.sendall(b"unread")
        eventually(lambda: peer.recv(6, socket.MSG_PEEK) == b"unread")
        peer.close()
        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_broker_that_goes_without_a_byte_is_a_502(tmp_path):
    with to_broker(tmp_path) as (_, front, broker):
        client, peer = connect(front), accept_broker(broker)
        client.sendall(REQUEST)
        read_exactly(peer, len(REQUEST))
        peer.close()
        status, _, body = split_answer(read_all(client))
        assert status == "HTTP/1.1 502 Bad Gateway"
        assert body["error"]["type"] == "codev_broker_unreachable"


def test_absent_broker_is_a_502_and_a_late_one_works(tmp_path):
    front = listen_tcp()
    with running([{
            "role": "broker",
            "fd": front,
            "dial": [f"unix:{tmp_path}/late"],
            "secret": TOKEN
    }]) as agent:
        before = agent.descriptors()
        client = connect(front)
        client.sendall(REQUEST)
        status, fields, body = split_answer(read_all(client))
        assert status == "HTTP/1.1 502 Bad Gateway"
        assert fields["content-type"] == "application/json"
        assert body["type"] == "error" and body["error"]["type"] == "codev_broker_unreachable"
        assert "No such file" in body["error"]["message"]
        client.close()
        eventually(lambda: agent.descriptors() == before)
        with listen_unix(tmp_path / "late") as broker:
            client = connect(front)
            client.sendall(b"now")
            assert read_exactly(accept_broker(broker), 3) == b"now"


def test_broker_that_appears_while_a_client_waits(tmp_path):
    """One success in a few tries is enough: a client waits about two seconds, and a busy machine
    may delay the test as long."""
    def arrives(path):
        front = listen_tcp()
        with running([{"role": "broker", "fd": front, "dial": [f"unix:{path}"], "secret": TOKEN}]):
            client = connect(front)
            client.sendall(b"early")
            time.sleep(0.3)
            with listen_unix(path) as broker:
                if not select.select([broker], [], [], 5)[0]:
                    return False
                return read_exactly(accept_broker(broker), 5) == b"early"

    assert any(arrives(tmp_path / f"late-{number}") for number in range(5))


def test_502_reaches_a_client_that_is_still_sending(tmp_path):
    front = listen_tcp()
    with running([{
            "role": "broker",
            "fd": front,
            "dial": [f"unix:{tmp_path}/none"],
            "secret": TOKEN
    }]):
        client = connect(front)
        client.sendall(REQUEST)
        with in_thread(client.sendall,
                       bytes(20 << 20)):  # the relay reads it, otherwise this would block or fail
            status, _, _ = split_answer(read_exactly_answer(client))
        assert status == "HTTP/1.1 502 Bad Gateway"


def read_exactly_answer(client):
    """Reads to the end of the canned body without waiting for the connection's end."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += client.recv(4096)
    head, body = answer.split(b"\r\n\r\n", 1)
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return answer + read_exactly(client, length - len(body))


def test_client_that_leaves_while_dialling_frees_its_slot(tmp_path):
    front = listen_tcp()
    with running([{
            "role": "broker",
            "fd": front,
            "dial": [f"unix:{tmp_path}/none"],
            "secret": TOKEN
    }]) as agent:
        before = agent.descriptors()

        def frees_them():
            """Before the time limit for dialling, which frees them too."""
            began = time.monotonic()
            clients = [connect(front) for _ in range(20)]
            while agent.descriptors() < before + 20 and time.monotonic() < began + 1.5:
                time.sleep(0.01)
            for client in clients:
                client.close()
            eventually(lambda: agent.descriptors() == before)
            return time.monotonic() < began + 1.5

        # once is enough: a busy machine may delay the test for longer than that
        assert any(frees_them() for _ in range(10))


def test_addresses_are_tried_in_order_and_the_one_that_worked_is_kept(tmp_path):
    front, third = listen_tcp(), listen_unix(tmp_path / "third")
    dials = [f"unix:{tmp_path}/first", f"unix:{tmp_path}/second", dial_of(third)]
    with third, running([{"role": "broker", "fd": front, "dial": dials, "secret": TOKEN}]):
        one = connect(front)
        peer = accept_broker(third)
        with listen_unix(tmp_path / "first") as first:
            two = connect(front)
            other = accept_broker(third)
            first.setblocking(False)
            with pytest.raises(BlockingIOError):
                first.accept()
        for sock in (one, two, peer, other):
            sock.close()


def test_new_record_switches_the_broker_and_its_token(tmp_path):
    with to_broker(tmp_path) as (agent, front, broker), listen_unix(tmp_path / "second") as second:
        old, old_peer = connect(front), accept_broker(broker)
        token = "ab" * 32
        agent.send(dial=[dial_of(second)], secret=token)
        eventually(lambda: second_takes(front, second, token))
        old.sendall(b"still there")
        assert read_exactly(old_peer, 11) == b"still there"


def second_takes(front, second, token):
    """One try: the relay may not have read the record yet."""
    client = connect(front)
    client.sendall(b"x")
    second.settimeout(0.2)
    try:
        peer, _ = second.accept()
    except TimeoutError:
        return False
    finally:
        second.settimeout(None)
    with peer, client:
        return read_exactly(peer, 75) == f"CODEV/1 {token}\r\nx".encode()


def test_100_aborted_transfers(tmp_path):
    with to_broker(tmp_path) as (agent, front, broker):
        before = agent.descriptors()
        for number in range(100):
            client, peer = connect(front), accept_broker(broker)
            peer.setblocking(False)
            try:
                while True:
                    peer.send(bytes(50_000))
            except BlockingIOError:
                pass
            if number % 2:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            peer.settimeout(20)
            assert ended(peer)
            peer.close()
        eventually(lambda: agent.descriptors() == before)
        client, peer = connect(front), accept_broker(broker)
        client.sendall(b"alive")
        assert read_exactly(peer, 5) == b"alive"


def test_1_stalled_and_50_live_streams(tmp_path):
    with to_broker(tmp_path) as (agent, front, broker):
        stalled, stalled_peer = connect(front), accept_broker(broker)
        stalled_peer.setblocking(False)
        with pytest.raises(BlockingIOError):
            for _ in range(1000):
                stalled_peer.send(bytes(100_000))
                time.sleep(0.001)
        pairs = [(connect(front), accept_broker(broker)) for _ in range(50)]
        for turn in range(20):
            for client, peer in pairs:
                peer.sendall(b"event %d\n" % turn)
            for client, peer in pairs:
                assert read_exactly(client, len(b"event %d\n" % turn)) == b"event %d\n" % turn
        assert stalled.recv(1) == b"\0"


def test_10000_connections_leave_nothing_behind(tmp_path):
    with to_broker(tmp_path) as (agent, front, broker):
        before = agent.descriptors()
        for _ in range(10_000):
            client = connect(front)
            client.sendall(b"q")
            peer = accept(broker)
            assert read_exactly(peer, len(PREFACE) + 1) == PREFACE + b"q"
            peer.sendall(b"a")
            assert client.recv(1) == b"a"
            client.close()
            peer.close()
        eventually(lambda: agent.descriptors() == before)
        assert agent.fits_in(1024)


def test_limit_of_connections_and_the_refusal_beyond(tmp_path):
    with to_broker(tmp_path) as (agent, front, broker):
        before = agent.descriptors()
        pairs = [(connect(front), accept_broker(broker)) for _ in range(LIMIT)]
        refused = [connect(front)
                   for _ in range(100)]  # more than can be refused with an answer at the same time
        for client in refused:
            client.sendall(REQUEST)
        for client in refused:
            status, fields, body = split_answer(read_all(client))
            assert status == "HTTP/1.1 503 Service Unavailable"
            assert fields["retry-after"] == "1"
            assert body["error"]["type"] == "codev_relay_full"
            client.close()
        pairs[0][0].sendall(b"not disturbed")
        assert read_exactly(pairs[0][1], 13) == b"not disturbed"
        for client, peer in pairs[:10]:
            client.close()
        eventually(lambda: agent.descriptors() == before + 2 * (LIMIT - 10))
        client, peer = connect(front), accept_broker(broker)
        client.sendall(b"room again")
        assert read_exactly(peer, 10) == b"room again"
        for client, peer in pairs:
            client.close()
            peer.close()


def test_memory_returns_after_many_large_transfers(tmp_path):
    with to_broker(tmp_path) as (agent, front, broker):
        assert agent.fits_in(1024)
        pairs = [(connect(front), accept_broker(broker)) for _ in range(60)]
        for client, peer in pairs:  # fills the ring of each
            peer.setblocking(False)
            with pytest.raises(BlockingIOError):
                for _ in range(1000):
                    peer.send(bytes(100_000))
                    time.sleep(0.0005)
        # otherwise this test measures nothing
        eventually(lambda: agent.resident_kib() > 1024 + 60 * 48)
        for client, peer in pairs:
            client.close()
            peer.close()
        eventually(lambda: agent.fits_in(1024 + 60 * 8))


def test_quiet_connection_stays(tmp_path):
    with to_broker(tmp_path) as (_, front, broker):
        client, peer = connect(front), accept_broker(broker)
        assert silent(client, 3) and silent(peer, 0)
        peer.sendall(b"at last")
        assert read_exactly(client, 7) == b"at last"
