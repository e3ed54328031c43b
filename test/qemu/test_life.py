"""What happens to a sandbox in the course of its life that no other file shows: a host that sleeps,
and the first random bytes."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import tempfile
import time

import pytest

from machine_harness import PATIENCE, Look, Sandbox, wait_for

STOOD_STILL = 15  # seconds


@pytest.fixture(scope="module")
def scene():
    """A sandbox with a root process to look with, and QEMU's monitor."""
    with tempfile.TemporaryDirectory(prefix="codev-l-", dir="/tmp") as folder:
        os.chmod(folder, 0o777)
        look, monitor = Look(folder), pathlib.Path(folder) / "monitor"
        options = [*look.options, *look.root_options, "--memory", 256]
        options += ["--qemu-arg", "-qmp", "--qemu-arg", f"unix:{monitor},server=on,wait=off"]
        with Sandbox(look.CODEV, options) as sandbox:
            sandbox.wait_event("ready")
            sandbox.look, sandbox.monitor = look, monitor
            yield sandbox


@contextlib.contextmanager
def monitor_of(scene):
    """A function that has QEMU do something and returns its answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(str(scene.monitor))
        lines = connection.makefile("rw")

        def do(command):
            lines.write(json.dumps({"execute": command}) + "\n")
            lines.flush()
            while True:
                answer = json.loads(lines.readline())
                if "event" not in answer:
                    return answer

        assert "QMP" in json.loads(lines.readline())
        assert "return" in do("qmp_capabilities")
        yield do


def clocks(scene):
    """(time of day, seconds since the boot, the host's time of day) at about one moment."""
    day, up = scene.look.root("date +%s.%N; cat /proc/uptime").split()[:2]
    return float(day.removesuffix(".%N")), float(up), time.time()


def test_a_clock_that_stood_still_is_set_again(scene):
    """As a laptop's lid does it: the machine stands still, and so does codev-sandbox; the world
    goes on. Afterwards the time of day is the host's again; what measures how long something takes
    has not jumped.

    (Were codev-sandbox to go on talking to a machine that stands still, vhost-device-vsock 0.3
    would lose a thread.)
    """
    began = time.monotonic()
    _, up_before, _ = clocks(scene)
    with monitor_of(scene) as do:
        os.kill(scene.process.pid, signal.SIGSTOP)
        assert do("stop") == {"return": {}}
        stopped = time.monotonic()
        time.sleep(STOOD_STILL)
        ran = time.monotonic()
        assert do("cont") == {"return": {}}
        os.kill(scene.process.pid, signal.SIGCONT)

    def agrees():
        day, up, host = clocks(scene)
        return abs(day - host) < STOOD_STILL / 4 and (up,)

    (up_after,) = wait_for(agrees, "the host's time inside")
    awake = time.monotonic() - began - (ran - stopped)
    assert up_after - up_before < awake + STOOD_STILL / 4, ("the clock that measures time has "
                                                            "jumped too")


def test_random_bytes_are_there_before_the_first_program(scene):
    """Without virtio-rng and trust in the processor's, programs would wait for them, or begin with
    what can be guessed."""
    said = scene.look.root("dmesg")
    assert "crng init done" in said
    seeded = float(re.search(r"\[ *([0-9.]+)\] random: crng init done", said).group(1))
    first = float(re.search(r"\[ *([0-9.]+)\] Run /\S+ as init process", said).group(1))
    assert seeded < first
    assert scene.look.root("cat /sys/class/misc/hw_random/rng_current").strip().startswith(
        "virtio_rng")
    pieces = {scene.look.root("head -c 16 /dev/random | od -An -tx1") for _ in range(2)}
    assert len(pieces) == 2 and all(len(piece.split()) == 16 for piece in pieces)
