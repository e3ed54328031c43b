"""Faults known from other programs that no other file here tests (README.md maps all of them to
tests)."""
import hashlib
import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import pytest

from machine_harness import PATIENCE, PROBE, Look, Sandbox, kernel_command_line, run, wait_for

PORT = 4000


@pytest.fixture(scope="module")
def scene():
    """A sandbox with an echo server behind the way in, and a root process for observation."""
    with tempfile.TemporaryDirectory(prefix="codev-f-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        look = Look(folder)
        options = [
            *look.options, *look.root_options, "--server-port", PORT, "--memory", 256, "--env",
            "LONG=" + "x" * 5000
        ]
        with Sandbox(f"{PROBE} serve {PORT} echo & {look.CODEV}", options) as sandbox:
            sandbox.wait_event("ready")
            sandbox.look = look
            yield sandbox


def way_in(scene):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(PATIENCE)
    client.connect(scene.event("way_in")["path"])
    return client


def receive(client, length):
    data = bytearray()
    while len(data) < length:
        piece = client.recv(min(65536, length - len(data)))
        assert piece, f"it ended after {len(data)} of {length} bytes"
        data += piece
    return bytes(data)


# --- vsock and relays -----------------------------------------------------------------------------

@pytest.mark.parametrize("size", [1, 32767, 32768, 32769, 65536, 98305])
def test_every_size_arrives(scene, size):
    data = random.Random(size).randbytes(size)
    with way_in(scene) as client:
        client.sendall(data)
        assert receive(client, size) == data


def test_a_flood_of_small_writes(scene):
    pieces = [random.Random(n).randbytes(100 + n % 351) for n in range(5000)]
    with way_in(scene) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 21)

        def write():
            for piece in pieces:
                client.send(piece)
        writer = threading.Thread(target=write)
        writer.start()
        time.sleep(0.5)
        assert receive(client, sum(map(len, pieces))) == b"".join(pieces)
        writer.join(PATIENCE)


def test_1_stalled_and_50_live_streams(scene):
    with way_in(scene) as stalled:
        stalled.settimeout(0.5)
        try:
            while True:  # until every buffer is full, as the echo is not read
                stalled.send(bytes(65536))
        except TimeoutError:
            pass
        clients = [way_in(scene) for _ in range(50)]
        for turn in range(3):
            for number, client in enumerate(clients):
                client.sendall(b"%d %d\n" % (turn, number) * 100)
        for number, client in enumerate(clients):
            whole = b"".join(b"%d %d\n" % (turn, number) * 100 for turn in range(3))
            assert receive(client, len(whole)) == whole
            client.close()


def test_100_clients_that_leave_in_the_middle(scene):
    for _ in range(100):
        with way_in(scene) as client:
            client.sendall(bytes(10000))
    with way_in(scene) as client:
        client.sendall(b"still there\n")
        assert receive(client, 12) == b"still there\n"


def test_64_mib_to_a_slow_reader(scene):
    """A reader that pauses again and again gets the same bytes as one that does not."""
    length = 64 << 20
    # The old server accepts connections and keeps its port until its last process has ended.
    scene.look.codev("kill $(pidof probe); while pidof probe >/dev/null; do usleep 20000; done; "
                     f"{PROBE} serve {PORT} source {length} >/dev/null 2>&1 &")
    hashes = []
    for pause in (0, 0.2):
        with way_in(scene) as client:
            whole = hashlib.sha256()
            for _ in range(16):
                time.sleep(pause)  # by then all buffers on the way are full
                whole.update(receive(client, length // 16))
            assert client.recv(1) == b""
        hashes.append(whole.digest())
    assert hashes[0] == hashes[1]


# --- privilege ------------------------------------------------------------------------------------

def test_the_drop_read_back(scene):
    lines = dict(line.split(":", 1) for line in scene.look.codev(f"{PROBE} status").splitlines())
    fields = {name: value.split() for name, value in lines.items()}
    assert fields["Uid"] == fields["Gid"] == ["1000"] * 4 and fields["Groups"] == []
    assert {name: value for name, value in fields.items() if name.startswith("Cap")} == {
        name: ["0" * 16] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == (["1"], ["2"])


def test_nothing_but_pid_1_is_root(scene):
    """However it was started. (The test's own root process is a child of the shell that was PID 1
    before.)"""
    script = ("for p in /proc/[0-9]*; do [ \"$(readlink $p/exe)\" ] && echo $(stat -c %u $p) "
              "${p#/proc/} $(readlink $p/exe); done")
    users = {}
    for line in scene.look.root(script).splitlines():
        uid, pid, program = line.split(" ", 2)
        users.setdefault(uid, set()).add("PID 1" if pid == "1" else program.rsplit("/", 1)[-1])
    assert users.pop("0") <= {"PID 1", "busybox"}
    assert "codev-agent" in users.pop(next(uid for uid in users if "codev-agent" in users[uid]))
    assert set(users) == {"1000"}


# --- configuration and mounts ---------------------------------------------------------------------

def test_the_command_line_holds_nothing_of_the_configuration(scene):
    line = scene.look.codev("cat /proc/cmdline")
    assert "codev.control=vsock:" in line and len(line) < 600 and "xxx" not in line
    assert scene.look.codev("echo ${#LONG}") == "5000\n"


def test_a_long_host_name_is_cut(tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"hostname": "n" * 200}))
    sandbox = run("hostname", ["--config", config])
    assert sandbox.status == 0 and set(
        sandbox.text().strip()) == {"n"} and 1 <= len(sandbox.text().strip()) <= 64


def test_what_is_mounted_already_is_no_failure():
    """A writable root, /proc, /sys and /tmp that were mounted before codev-init started."""
    before = (
        "mount -t tmpfs tmpfs /run && cd /run && mkdir u w r && mount -t overlay o -o "
        "lowerdir=/,upperdir=u,workdir=w r && "
        "cd r && pivot_root . mnt && mount -t proc proc proc && mount -t sysfs sysfs sys && mount "
        "-t tmpfs tmpfs tmp; "
        "exec chroot . /sbin/codev-init")
    line = kernel_command_line(f'init=/bin/sh -- -c "{before}"')
    sandbox = run("grep -c ' /proc ' /proc/mounts; echo started",
                  ["--qemu-arg", "-append", "--qemu-arg", line])
    assert sandbox.status == 0 and sandbox.text().endswith("started\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
@pytest.mark.parametrize("server", ["virtiofs", "9p"])
def test_owners_in_a_shared_folder_stay(tmp_path_factory, server):
    """No owner and no ctime changes, whatever codev's uid is."""
    with tempfile.TemporaryDirectory(prefix="codev-f-", dir="/tmp") as name:
        os.chmod(name, 0o755)
        work = pathlib.Path(name) / "work"
        work.mkdir()
        for uid in (1000, 1001, 501, 0):
            (work / str(uid)).mkdir()
            (work / str(uid) / "file").write_text("x")
            os.chown(work / str(uid), uid, uid)
            os.chown(work / str(uid) / "file", uid, uid)
        os.chown(work, 501, 501)
        state = lambda: {
            str(path): (path.lstat().st_uid, path.lstat().st_gid, path.lstat().st_mode, path.lstat(
            ).st_ctime_ns)
            for path in [work, *sorted(work.rglob("*"))]
        }
        before = state()
        sandbox = run("id -u; ls -R /workspace/work >/dev/null",
                      ["--mount", work, "--file-server", server])
        assert (sandbox.status, sandbox.text()) == (0, "501\n")
        assert state() == before


# --- folders that change during the run -----------------------------------------------------------

@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system on the host")
@pytest.mark.parametrize("server", ["virtiofs", "9p"])
def test_a_folder_that_vanishes_or_turns_read_only(server):
    """The command gets errors and the sandbox goes on; nothing hangs."""
    with tempfile.TemporaryDirectory(prefix="codev-f-", dir="/tmp") as name:
        os.chmod(name, 0o755)
        folders = {what: pathlib.Path(name) / what for what in ("gone", "stiff")}
        for folder in folders.values():
            folder.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folders["stiff"]],
                          check=False,
                          capture_output=True).returncode:
            pytest.skip("cannot mount here")
        try:
            for folder in folders.values():
                os.chown(folder, 1000, 1000)
            (folders["gone"] / "inner").mkdir()
            os.chown(folders["gone"] / "inner", 1000, 1000)
            writers = " & ".join(f"{PROBE} write-on /workspace/{path} 100"
                                 for path in ("gone/inner/file", "stiff/file"))
            options = [word for folder in folders.values()
                       for word in ("--mount", folder)] + ["--file-server", server]
            with Sandbox(f"{writers} & wait; ls /workspace/gone; echo alive", options) as sandbox:
                for path in (folders["gone"] / "inner/file", folders["stiff"] / "file"):
                    while not path.exists():
                        sandbox.alive()
                        time.sleep(0.02)
                shutil.rmtree(folders["gone"], ignore_errors=True)
                shutil.rmtree(folders["gone"], ignore_errors=True)
                # refused while a file is open for writing, which is mostly the case
                wait_for(
                    lambda: subprocess.run(["mount", "-o", "remount,ro", folders["stiff"]],
                                           check=False,
                                           capture_output=True).returncode == 0,
                    "a moment without an open file", 90)
                status, text = sandbox.finish()
            assert status == 0 and text.endswith("alive\n"), text
            ends = sorted(line.split()[1] for line in text.splitlines()
                          if line.startswith("write-on: E"))
            assert len(ends) == 2 and "EROFS" in ends and ends[0] in ("ENOENT", "ESTALE",
                                                                      "EIO"), text
        finally:
            subprocess.run(["umount", "-l", folders["stiff"]], check=False)
