"""Two sandboxes at the same time on one host: neither reaches the other's broker, control channel
or way in."""
import contextlib
import os
import secrets
import socket
import stat
import tempfile

import pytest

from machine_harness import (PATIENCE, PROBE, WAY_IN_PORT, Gateway, Look, Sandbox, SpiedBroker,
                             hybrid_connect, read_all, read_line)

CONTROL, BROKER = "vsock.sock_1024", "vsock.sock_1025"


class Half:
    def __init__(self, stack, gateway, runtime):
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="codev-i-", dir="/tmp"))
        os.chmod(folder, 0o755)
        self.look, spy = Look(folder), SpiedBroker(folder)
        options = [
            *self.look.options, *spy.options, *gateway.options, "--server-port", 4000, "--memory",
            256
        ]
        self.sandbox = stack.enter_context(
            Sandbox(f"{PROBE} serve 4000 source 24 & {Look.CODEV}", options, runtime=runtime))
        self.sandbox.wait_event("ready")
        self.token = spy.token()
        self.path = next(path for path in self.sandbox.runtime.glob("codev-sandbox-*")
                         if str(path) in self.sandbox.event("way_in")["path"])


@pytest.fixture(scope="module")
def pair():
    """Both in one runtime folder, as for one user."""
    with contextlib.ExitStack() as stack:
        runtime = stack.enter_context(tempfile.TemporaryDirectory(prefix="codev-u-", dir="/tmp"))
        gateway = stack.enter_context(Gateway())
        yield [Half(stack, gateway, runtime) for _ in range(2)]


def ask_broker(half, token):
    """Sends a request with this token to the broker's socket; the status line and the rest of the
    answer."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE)
        client.connect(str(half.path / BROKER))
        client.sendall(
            f"CODEV/1 {token}\r\nGET /gateway/v1/models HTTP/1.1\r\nHost: x\r\nConnection: "
            "close\r\n\r\n"
            .encode())
        return read_all(client).decode()


def test_everything_of_each_is_its_own(pair):
    one, two = pair
    assert one.path != two.path and one.token != two.token
    for half in pair:
        assert stat.S_IMODE(
            half.path.stat().st_mode) == 0o700 and half.path.stat().st_uid == os.getuid()
        assert {path.name
                for path in half.path.iterdir()} >= {CONTROL, BROKER, "way-in.sock", "vsock.sock"}
    ids = [half.look.codev("cat /run/codev/sandbox.json; hostname") for half in pair]
    assert ids[0] != ids[1]


def test_each_works(pair):
    for half in pair:
        assert half.look.codev(f"{PROBE} http GET /gateway/v1/models").startswith("HTTP/1.1 200 ")
        assert ask_broker(half, half.token).startswith("HTTP/1.1 200 ")


def test_the_token_of_one_opens_nothing_of_the_other(pair):
    one, two = pair
    for half, token in ((one, two.token), (two, one.token), (one, secrets.token_hex(32)),
                        (one, one.token.upper() + "x")):
        answer = ask_broker(half, token)
        assert answer.startswith(("HTTP/1.1 401 ", "HTTP/1.1 403 ")) and "codev-demo" not in answer


def test_a_second_control_connection_is_refused(pair):
    """The peer of the first connection receives the token, so only one connection is accepted in
    each boot."""
    for half in pair:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            try:
                client.connect(str(half.path / CONTROL))
                client.sendall(b'{"event":"hello","protocol":1,"version":"0"}\n')
                assert read_all(client) == b""
            except (ConnectionRefusedError,
                    BrokenPipeError):  # no listener any more, or closed at once
                pass
        half.sandbox.alive()


def test_from_inside_no_vsock_port_is_reached(pair):
    """Neither its own ports, nor the other's, nor the other guest."""
    for half in pair:
        for port in (1024, 1025, WAY_IN_PORT):
            for cid in (2, 3, 4, 1):
                assert "refused (EAFNOSUPPORT)" in half.look.codev(f"{PROBE} vsock {port} {cid}")


def test_way_in_of_one_does_not_lead_to_the_other(pair):
    one, two = pair
    one.look.codev("echo one >/tmp/name")
    assert two.look.codev("cat /tmp/name").startswith("cat: ")
    with hybrid_connect(two.path, WAY_IN_PORT) as client:
        assert read_line(client).startswith(b"OK ")
        client.sendall(b"CODEV-IN 1 " + one.token.encode() + b"\n")
        assert read_all(client) == b""


def test_the_end_of_one_is_nothing_to_the_other(pair):
    """Ends one sandbox, so it is the last test here."""
    one, two = pair
    one.sandbox.process.terminate()
    assert one.sandbox.process.wait(PATIENCE) is not None
    assert not one.path.exists() and two.path.exists()
    assert two.look.codev(f"{PROBE} http GET /gateway/v1/models").startswith("HTTP/1.1 200 ")
