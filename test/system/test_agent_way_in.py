"""The relay on the way in, and two relays in a row: the secret, half-close, limits."""

import contextlib
import os
import socket
import struct
import time

import pytest

from relay_harness import (SECRET, WAY_IN, accept, connect, dial_of, ended, enter, eventually,
                           in_thread, listen_tcp, listen_unix, piece, pieces, read_all,
                           read_exactly, read_piece, read_pieces, running, silent, to_server)

DEMANDING = 64


@pytest.fixture(params=["tcp", "unix"])
def front(request, tmp_path):
    with listen_tcp() if request.param == "tcp" else listen_unix(tmp_path / "in") as listener:
        yield listener


def nothing_comes(client):
    """Asserts that the connection ends without a byte."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def nobody_came(server):
    server.settimeout(0.2)
    with contextlib.suppress(TimeoutError):
        server.accept()
        return False
    return True


def test_right_secret_joins_and_bytes_behind_it_reach_the_server(front):
    with to_server(front) as (_, server):
        client = connect(front)
        client.sendall(WAY_IN + b"GET / HTTP/1.1\r\n\r\n")
        peer = accept(server)
        assert read_exactly(peer, 18) == b"GET / HTTP/1.1\r\n\r\n"
        peer.sendall(b"HTTP/1.1 200 OK\r\n")
        assert read_exactly(client, 20) == b"OK\nHTTP/1.1 200 OK\r\n"


def test_secret_byte_by_byte(front):
    with to_server(front) as (_, server):
        client = connect(front)
        for byte in WAY_IN:
            client.sendall(bytes([byte]))
        peer = accept(server)
        assert read_exactly(client, 3) == b"OK\n"
        peer.close()


@pytest.mark.parametrize("first", [
    b"CODEV-IN 1 " + b"0" * 64 + b"\n",
    b"CODEV-IN 1 " + SECRET[:-1].encode() + b"1\n",
    b"CODEV-IN 1 " + SECRET.upper().encode() + b"\n",
    b"CODEV-IN 2 " + SECRET.encode() + b"\n",
    b"CODEV-IN 1 " + SECRET.encode() + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + bytes(100),
    b"\n",
    b"",
])
def test_wrong_secret_gets_no_byte(front, first):
    with to_server(front) as (_, server):
        client = connect(front)
        client.sendall(first)
        if not first:
            client.shutdown(socket.SHUT_WR)
        assert nothing_comes(client)
        assert nobody_came(server)


def test_half_a_secret_runs_out_of_time(front):
    with to_server(front) as (agent, server):
        before, start = agent.descriptors(), time.monotonic()
        client, mute = connect(front), connect(front)
        client.sendall(WAY_IN[:30])
        assert nothing_comes(client) and nothing_comes(mute)
        assert time.monotonic() - start > 4
        assert nobody_came(server)
        eventually(lambda: agent.descriptors() == before)


def test_the_server_is_dialled_on_ipv6_when_it_is_not_on_ipv4(front):
    with listen_tcp(host="::1") as server, listen_tcp() as unused:
        port = unused.getsockname()[1]
        unused.close()
        forward = {"role": "server", "fd": front, "secret": SECRET, "half_close": 1,
                   "dial": [f"tcp:127.0.0.1:{port}", f"tcp:[::1]:{server.getsockname()[1]}"]}
        with running([forward]):
            client, peer = enter(front, server)
            peer.sendall(b"six")
            assert read_exactly(client, 3) == b"six"


def test_absent_server_closes_without_ok_and_a_later_one_works(front):
    with listen_tcp() as server:
        address = server.getsockname()
    with running([{
            "role": "server",
            "fd": front,
            "dial": [f"tcp:127.0.0.1:{address[1]}"],
            "secret": SECRET
    }]):
        client = connect(front)
        client.sendall(WAY_IN)
        assert nothing_comes(client)
        with socket.socket() as late:
            late.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            late.bind(address)
            late.listen()
            enter(front, late)


def test_unauthenticated_connections_do_not_crowd_out_others(front):
    with to_server(front) as (agent, server):
        before = agent.descriptors()
        mute = [connect(front) for _ in range(DEMANDING + 10)]
        for client in mute[:10]:  # the oldest was closed
            assert nothing_comes(client)
        assert agent.descriptors() <= before + DEMANDING
        client, peer = enter(front, server)
        peer.sendall(b"in")
        assert read_exactly(client, 2) == b"in"
        for client in mute:
            client.close()


def test_reply_that_starts_after_the_clients_shutdown_arrives_whole(front):
    body = os.urandom(1 << 20)
    with to_server(front) as (_, server):
        client, peer = enter(front, server)
        client.sendall(b"question")
        client.shutdown(socket.SHUT_WR)
        assert read_all(peer) == b"question"
        time.sleep(1)
        with in_thread(lambda: (peer.sendall(body), peer.close())):
            assert read_all(client) == body


def test_upload_that_goes_on_after_the_servers_shutdown_arrives_whole(front):
    body = os.urandom(1 << 20)
    with to_server(front) as (_, server):
        client, peer = enter(front, server)
        peer.sendall(b"first word")
        peer.shutdown(socket.SHUT_WR)
        assert read_all(client) == b"first word"
        time.sleep(1)
        with in_thread(lambda: (client.sendall(body), client.close())):
            assert read_all(peer) == body


def test_hybrid_end_of_the_hosts_sending_is_not_passed_on(tmp_path):
    with listen_unix(tmp_path / "in") as front, to_server(front, half_close=0) as (_, server):
        client, peer = enter(front, server)
        client.sendall(b"question")
        client.shutdown(socket.SHUT_WR)
        assert read_exactly(peer, 8) == b"question"
        assert silent(peer, 1.5)
        peer.sendall(b"answer")
        assert read_exactly(client, 6) == b"answer"


def test_hybrid_host_that_closes_whole_ends_the_server_side(tmp_path):
    with listen_unix(tmp_path / "in") as front, to_server(front, half_close=0) as (agent, server):
        before = agent.descriptors()
        client, peer = enter(front, server)
        client.sendall(b"last words")
        client.close()
        assert read_all(peer) == b"last words"
        eventually(lambda: agent.descriptors() == before)


def test_hybrid_host_that_closes_whole_after_its_shutdown(tmp_path):
    with listen_unix(tmp_path / "in") as front, to_server(front, half_close=0) as (agent, server):
        client, peer = enter(front, server)
        client.shutdown(socket.SHUT_WR)
        assert silent(peer)
        client.close()
        assert read_all(peer) == b""


def test_hybrid_server_that_closes_ends_the_host_side(tmp_path):
    body = os.urandom(1 << 20)
    with listen_unix(tmp_path / "in") as front, to_server(front, half_close=0) as (_, server):
        client, peer = enter(front, server)
        with in_thread(lambda: (peer.sendall(body), peer.close())):
            assert read_all(client) == body


def test_hybrid_host_goes_on_sending_after_the_servers_shutdown(tmp_path):
    with listen_unix(tmp_path / "in") as front, to_server(front, half_close=0) as (_, server):
        client, peer = enter(front, server)
        peer.shutdown(socket.SHUT_WR)
        for _ in range(20):
            client.sendall(b"x" * 1000)
            time.sleep(0.1)
        assert read_exactly(peer, 20_000) == b"x" * 20_000


@pytest.fixture
def framed(front):
    with to_server(front, framed=1) as (agent, server):
        before = agent.descriptors() if os.geteuid() == 0 else 0
        yield *enter(front, server), lambda: os.geteuid() != 0 or agent.descriptors() == before


def reset(peer):
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def test_framed_both_directions_arrive_whole(framed):
    client, peer, is_over = framed
    up, down = os.urandom(3 << 20), os.urandom(3 << 20)
    heard = []
    with in_thread(lambda: client.sendall(pieces(up))), \
            in_thread(lambda: (peer.sendall(down), peer.shutdown(socket.SHUT_WR))), \
            in_thread(lambda: heard.append(read_all(peer))):
        assert read_pieces(client) == down
    assert heard == [up]
    client.close()
    eventually(is_over)


def test_framed_in_pieces_of_one_byte_that_come_byte_by_byte(framed):
    client, peer, _ = framed
    for byte in b"".join(piece(bytes([number])) for number in b"question") + piece(b""):
        client.sendall(bytes([byte]))
        time.sleep(0.001)
    assert read_all(peer) == b"question"
    peer.sendall(b"answer")
    peer.close()
    assert read_pieces(client) == b"answer"


def test_framed_server_that_ends_is_told_at_once_and_the_host_closes(framed):
    """The guest's side never closes first, as that may discard bytes in transit."""
    client, peer, is_over = framed
    peer.sendall(b"last words")
    peer.close()
    assert read_pieces(client) == b"last words"
    assert silent(client, 2)
    # the first byte makes the server's kernel answer that the connection is closed
    while silent(client, 0.1):
        client.sendall(piece(b"to nobody"))
    assert read_piece(client) == b"" and silent(client, 2)
    client.sendall(piece(b""))
    assert silent(client, 1) and (os.geteuid() != 0 or not is_over())
    client.close()
    eventually(is_over)


def test_framed_server_that_breaks_off_has_no_end(framed):
    client, peer, is_over = framed
    peer.sendall(b"half of")
    assert read_piece(client) == b"half of"
    reset(peer)
    with contextlib.suppress(ConnectionResetError):
        assert read_piece(client) is None
    eventually(is_over)


@pytest.mark.parametrize("last", [b"", b"\0", b"\0\5hal", b"\0\0\0\1x"],
                         ids=["no-end", "half-a-length", "half-a-piece", "more"])
def test_framed_host_that_breaks_off_is_no_end_for_the_server(framed, last):
    client, peer, is_over = framed
    client.sendall(piece(b"half of") + last)
    client.close()
    with pytest.raises(ConnectionResetError):
        assert len(read_all(peer)) < 0, "a clean end"
    eventually(is_over)


def test_framed_host_that_ends_and_leaves_is_an_end_for_the_server(framed):
    client, peer, is_over = framed
    body = os.urandom(1 << 20)
    with in_thread(lambda: (client.sendall(pieces(body)), client.close())):
        assert read_all(peer) == body
    eventually(is_over)


def test_framed_host_reads_nothing_for_longer_than_the_limits_of_ends(framed):
    """Pending bytes are kept after the server has ended, for as long as the host is slow."""
    client, peer, _ = framed
    body = os.urandom(8 << 20)
    with in_thread(lambda: (peer.sendall(body), peer.close())):
        time.sleep(3)  # an end of sending alone gets 1 s
        assert read_pieces(client) == body


def test_a_break_on_one_side_is_a_break_on_the_other():
    with listen_tcp() as front, to_server(front) as (_, server):
        client, peer = enter(front, server)
        peer.sendall(b"half")
        assert read_exactly(client, 4) == b"half"
        reset(peer)
        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_two_agents_in_a_row(tmp_path):
    """As under WSL: both require the secret, and the OK comes from the inner one, so the server was
    reached."""
    inner_front, server, outer_front = listen_unix(tmp_path / "in"), listen_tcp(), listen_tcp()
    inner = {
        "role": "server",
        "fd": inner_front,
        "dial": [dial_of(server)],
        "secret": SECRET,
        "half_close": 1
    }
    outer = {
        "role": "agent",
        "fd": outer_front,
        "dial": [dial_of(inner_front)],
        "secret": SECRET,
        "half_close": 1
    }
    with server, running([inner]) as inside, running([outer]) as outside:
        before = inside.descriptors(), outside.descriptors()
        client, peer = enter(outer_front, server)
        client.sendall(b"up")
        client.shutdown(socket.SHUT_WR)
        assert read_all(peer) == b"up"
        peer.sendall(b"down")
        peer.close()
        assert read_all(client) == b"down"
        client.close()
        eventually(lambda: (inside.descriptors(), outside.descriptors()) == before)


def test_forwards_do_not_disturb_each_other(tmp_path):
    with listen_unix(tmp_path / "broker") as broker, listen_tcp() as server:
        out, way_in = listen_tcp(), listen_tcp()
        table = [{
            "role": "broker",
            "fd": out,
            "dial": [dial_of(broker)],
            "secret": "ab" * 32
        }, {
            "role": "server",
            "fd": way_in,
            "dial": [dial_of(server)],
            "secret": SECRET,
            "half_close": 1
        }]
        with running(table):
            client, peer = enter(way_in, server)
            other = connect(out)
            other.sendall(b"x")
            assert read_exactly(accept(broker), 75) == b"CODEV/1 " + b"ab" * 32 + b"\r\nx"
            peer.close()
            assert ended(client)


def test_a_sandbox_that_uses_up_its_connections_cannot_lock_its_user_out(tmp_path):
    with listen_unix(tmp_path / "broker") as broker, listen_tcp() as server:
        out, way_in = listen_tcp(), listen_tcp()
        table = [{"role": "broker", "fd": out, "dial": [dial_of(broker)], "secret": "ab" * 32},
                 {"role": "server", "fd": way_in, "dial": [dial_of(server)], "secret": SECRET}]
        with running(table):
            greedy = [(connect(out), accept(broker)) for _ in range(512)]
            refused = connect(out)
            assert refused.recv(12) == b"HTTP/1.1 503"
            pairs = [enter(way_in, server) for _ in range(64)]
            over = connect(way_in)
            over.sendall(WAY_IN)
            assert nothing_comes(over)
            for client, peer in pairs:
                peer.sendall(b"here")
                assert read_exactly(client, 4) == b"here"
            for one, other in greedy + pairs:
                one.close()
                other.close()
