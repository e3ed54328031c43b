"""Without a gateway there is no egress of any kind, but the way in works; without the secret the
way in gives no byte."""
import json
import os
import socket
import tempfile

import pytest

from machine_harness import (PATIENCE, PROBE, WAY_IN_PORT, Gateway, Look, Sandbox, hybrid_connect,
                             read_all, read_line, wait_for)

GREETING = 24  # bytes that the server sends on each connection
SERVER = f"{PROBE} serve 4000 source {GREETING}"


def listening_ports(look):
    """Local ports that something listens on, from the kernel's own tables (state 0A)."""
    lines = look.codev("cat /proc/net/tcp /proc/net/tcp6").splitlines()
    fields = [line.split() for line in lines if not line.lstrip().startswith("sl")]
    return {int(field[1].rpartition(":")[2], 16) for field in fields if field[3] == "0A"}


@pytest.fixture(scope="module")
def scene():
    """No gateway. The command is a server on port 4000 that sends first, and runs what the tests
    ask for."""
    with tempfile.TemporaryDirectory(prefix="codev-n-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        look = Look(folder)
        options = [*look.options, "--server-port", 4000, "--memory", 256]
        with Sandbox(f"{SERVER} & {look.CODEV}", options) as sandbox:
            sandbox.wait_event("ready")
            sandbox.look = look
            yield sandbox


def test_nothing_listens_on_8788(scene):
    ports = listening_ports(scene.look)
    assert 8788 not in ports
    assert {53, 4000} <= ports, "this look at the ports sees those that there are"
    for host in ("127.0.0.1", "::1"):
        assert "refused (ECONNREFUSED)" in scene.look.codev(f"{PROBE} connect {host} 8788")


def test_8788_is_seen_when_there_is_a_gateway():
    with tempfile.TemporaryDirectory(prefix="codev-n-", dir="/tmp") as folder, Gateway() as gateway:
        os.chmod(folder, 0o755)
        look = Look(folder)
        with Sandbox(look.CODEV, [*look.options, *gateway.options]) as sandbox:
            sandbox.wait_event("ready")
            assert 8788 in listening_ports(look)
            told = json.loads(look.codev("cat /run/codev/sandbox.json"))
            assert told["egress"] == {"gateway": "http://127.0.0.1:8788/gateway",
                                      "registry": "http://127.0.0.1:8788/registry"}
            assert "ANTHROPIC_BASE_URL=http://127.0.0.1:8788/gateway\n" in look.codev("env")


def test_sandbox_json_and_environment_say_so(scene):
    assert json.loads(scene.look.codev("cat /run/codev/sandbox.json"))["egress"] == {}
    environment = scene.look.codev("env")
    assert "CODEV_SANDBOX=1\n" in environment
    assert "BASE_URL" not in environment and "API_KEY" not in environment


def test_no_broker_runs(scene):
    assert not list(scene.run_folder().glob("*_1025"))
    with pytest.raises(AssertionError):
        scene.pid_of("codev-broker")
    scene.pid_of("qemu-system")  # the search finds other descriptors


def test_dns_still_answers(scene):
    assert "refused (NXDOMAIN)" in scene.look.codev(f"{PROBE} dns example.com")


def through_way_in(scene):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE)
        client.connect(scene.event("way_in")["path"])
        return len(client.recv(GREETING, socket.MSG_WAITALL))


def test_way_in_works(scene):
    assert scene.event("ready")["way_in"] == f"vsock:{WAY_IN_PORT}"
    assert through_way_in(scene) == GREETING


@pytest.mark.parametrize("said", [
    b"", b"\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"CODEV-IN 1 \n",
    b"CODEV-IN 1 " + b"0" * 64 + b"\n", b"CODEV-IN 1 " + b"0" * 64 + b"\nmore",
    b"CODEV/1 " + b"0" * 64 + b"\r\n", b"CODEV-IN 2 " + b"0" * 64 + b"\n", b"\0" * 76, b"x" * 5000
],
                         ids=lambda said: repr(said[:14]))
def test_way_in_without_the_secret_gets_no_byte(scene, said):
    """Directly to the guest's port, without the launcher, which knows the secret."""
    with hybrid_connect(scene.run_folder(), WAY_IN_PORT) as client:
        assert read_line(client).startswith(b"OK "), "that is the vsock device's own answer"
        try:
            client.sendall(said)
        except OSError:
            pass
        assert read_all(client) == b""
    assert through_way_in(scene) == GREETING


def test_unheard_way_in_connections_do_not_pile_up(scene):
    """With 200 silent connections the way in still works at once, and all of them are closed in the
    end."""
    silent = []
    try:
        for _ in range(200):
            silent.append(hybrid_connect(scene.run_folder(), WAY_IN_PORT))
        assert through_way_in(scene) == GREETING
        for client in silent:
            assert read_all(client).count(b"\n") <= 1
    finally:
        for client in silent:
            client.close()


def test_way_in_socket_is_for_its_owner_alone(scene):
    path = scene.event("way_in")["path"]
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700
    assert wait_for(lambda: os.stat(path).st_uid == os.getuid(), "the owner")
