"""codev-sandbox-wsl with its own WSL rig: the same options and results as with a virtual machine.

All tests here use one boot: the command is a loop that runs the tests' scripts (Look), beside a
server on its port."""
import os
import pathlib
import signal
import socket
import subprocess
import tempfile

import pytest

from machine_harness import (CANNOT_START, GUEST, PATIENCE, SANDBOX_WSL, Gateway, Look, Sandbox,
                             read_all, run)
from wsl_rig_harness import PROGRAM, needs_rig

SERVER = f"/workspace/programs/probe serve 4096 http & {Look.CODEV}"


def owned(folder, name):
    path = folder / name
    path.mkdir()
    if os.geteuid() == 0:
        os.chown(path, 1000, 1000)
    return path


@pytest.fixture(scope="module")
def inside():
    needs_rig()
    with tempfile.TemporaryDirectory(prefix="codev-wr-", dir="/tmp") as name, Gateway() as gateway:
        os.chmod(name, 0o755)
        folder = pathlib.Path(name)
        app, reference = owned(folder, "a b,c"), owned(folder, "reference")
        (reference / "file").write_text("only to read\n")
        look = Look(folder)
        options = [
            *look.options, "--mount", f"{app}:/workspace/app", "--mount",
            f"{reference}:/workspace/reference:ro", "--env", "K=a 'quoted' value", "--server-port",
            4096, *gateway.options
        ]
        with Sandbox(SERVER, options, program=SANDBOX_WSL) as sandbox:
            sandbox.look, sandbox.app = look, app
            sandbox.reference, sandbox.gateway = reference, gateway
            sandbox.ready = sandbox.wait_event("ready")
            yield sandbox


def test_who_and_where(inside):
    text = inside.look.codev("id -u; id -G; pwd; hostname; echo $K; ls /mnt; cat /proc/1/comm 2>&1")
    lines = text.splitlines()
    assert lines[0:3] == ["1000", "1000", "/home/codev"] and lines[3].startswith("codev-")
    assert lines[4] == "a 'quoted' value"
    # neither /mnt/c nor PID 1 is visible
    assert "No such file" in lines[-1] and "c" not in lines[5:-1]


def test_nothing_of_wsl_is_in_the_environment(inside):
    names = {line.partition("=")[0] for line in inside.look.codev("env").splitlines()}
    assert not [name for name in names if name.startswith("WSL")]
    assert {"HOME", "PATH", "CODEV_SANDBOX", "CODEV_AUTO_ACCEPT", "ANTHROPIC_BASE_URL"} <= names


def test_mounts(inside):
    inside.look.codev("echo from inside >/workspace/app/new; chmod 640 /workspace/app/new")
    status = (inside.app / "new").stat()
    assert (inside.app / "new").read_text() == "from inside\n" and status.st_mode & 0o777 == 0o640
    assert os.geteuid() != 0 or (status.st_uid, status.st_gid) == (1000, 1000)
    said = inside.look.codev(
        "cat /workspace/reference/file; echo x >/workspace/reference/file; touch "
        "/workspace/reference/n"
    )
    assert said.startswith("only to read\n") and said.count("Read-only file system") == 2
    assert os.listdir(inside.reference) == ["file"]


def test_readonly_is_the_hosts_too(inside):
    """QEMU enforces it, whatever the guest does."""
    commands = [
        pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        for pid in [inside.pid_of("qemu-system")]
    ]
    drives = [word for word in commands[0] if word.startswith(b"local,id=")]
    assert len(drives) == 4 and sum(b"readonly=on" in word
                                    for word in drives) == 2  # the programs and the reference


def test_the_gateway_answers(inside):
    text = inside.look.codev("/workspace/programs/probe http GET /gateway/v1/models")
    assert text.startswith("HTTP/1.1 200 "), text
    assert inside.gateway.stats()["requests"] >= 1


def test_every_check_of_the_self_test(inside):
    checks = {check["name"]: check["ok"] for check in inside.ready["checks"]}
    assert all(checks.values()) and len(checks) >= 12


def test_the_way_in(inside):
    """The host's socket leads to the server and passes on the server's own answer."""
    way_in = inside.wait_event("way_in")["path"]
    assert os.stat(way_in).st_mode & 0o777 == 0o600
    for _ in range(3):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            client.connect(way_in)
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert read_all(client).startswith(b"HTTP/1.1 200 ")


def test_the_way_in_is_at_a_port_of_this_sandbox(inside):
    kind, _, port = inside.ready["way_in"].rpartition(":")
    assert kind == "tcp:127.0.0.1" and 1024 <= int(port) <= 65535


def test_no_token_is_on_a_command_line_or_in_an_environment(inside):
    token = inside.gateway.token
    shown = inside.look.codev("cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'")
    assert token not in shown and token not in inside.complaint()


def test_an_image_that_is_no_disk_of_the_rig(inside):
    """An erofs image cannot be imported: with a running rig, the message says what to do
    instead."""
    options = ["--wsl-rig", inside.run_folder(), "--wsl-distribution", "other",
               "--image", GUEST / "rootfs.erofs"]
    done = run("true", options, programs=False, program=SANDBOX_WSL)
    assert done.status == CANNOT_START and "--disk other=" in done.complaint()


def test_the_end(inside):
    """The last test: the exit status is the command's, and nothing is left."""
    inside.look.begin("codev", "kill -USR1 $PPID")
    status, _ = inside.finish(30)
    assert status == 128 + signal.SIGUSR1, inside.describe()
    inside.assert_nothing_left()


@pytest.mark.parametrize("options, reason", [
    (["--wsl-network", "bridged"], "bridged"),
    (["--wsl-rig", "/nowhere"], "no rig"),
    (["--kernel", "/x"], "--kernel"),
])
def test_what_is_refused(options, reason):
    needs_rig()
    done = run("true", options, programs=False, program=SANDBOX_WSL)
    assert done.status == CANNOT_START and reason in done.complaint()


@pytest.mark.parametrize("options, reason", [
    (["--disk", f"codev={GUEST}/rootfs.tar"], "not an erofs image"),
    (["--disk", f"a name={GUEST}/rootfs.erofs"], "not NAME=FILE"),
    (["--disk", f"codev={GUEST}/rootfs.erofs", "--disk", f"codev={GUEST}/rootfs.erofs"
      ], "stands there twice"),
])
def test_disks_that_the_rig_refuses(options, reason, tmp_path):
    needs_rig()
    done = subprocess.run([PROGRAM, "start", tmp_path / "rig", *options],
                          capture_output=True,
                          text=True,
                          timeout=60)
    assert done.returncode == 1 and reason in done.stderr
