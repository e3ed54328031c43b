"""Clocks across sleep of the host or pauses of the machine, and the first random bytes."""
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

from machine_harness import PATIENCE, PROBE, Look, Sandbox, wait_for

STOOD_STILL = 15  # seconds
STAYS_RIGHT = 12
ASKS_WITHIN = 6  # by then the guest has asked for the time; it does not ask again before an answer
TOLERANCE = 1


@pytest.fixture(scope="module")
def scene():
    """A sandbox with a root process for observation, and QEMU's monitor."""
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
    """Returns a function that sends a command to QEMU and returns the answer."""
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
    """The guest's time of day and its uptime, and the host's time of day before and after that."""
    before = time.time()
    name, day, up = scene.look.root(f"{PROBE} clock; cut -d ' ' -f 1 /proc/uptime").split()
    assert name == "clock"
    return int(day) / 1e9, float(up), before, time.time()


def is_right(scene):
    day, _, before, after = clocks(scene)
    return before - TOLERANCE <= day <= after + TOLERANCE


def nothing_is_on_its_way(scene):
    """Waits until the guest and the processes that carry its vsock are idle."""
    device, machine = scene.pid_of("vhost-device-vsock"), scene.pid_of("qemu-system")

    def is_idle():
        tasks = [task for pid in (device, machine)
                 for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that just ended
            return all((task / "stat").read_text().rpartition(")")[2].split()[0] == "S"
                       for task in tasks)
        return False

    wait_for(lambda: all(is_idle() for _ in range(5)), "a moment without work")


@pytest.mark.parametrize("wrong", [-7200, -2, 2, 7200])
def test_a_clock_that_is_wrong_comes_right(scene, wrong):
    """A wrong clock is corrected without a sleep. CLOCK_MONOTONIC does not jump."""
    began = time.monotonic()
    _, up_before, _, _ = clocks(scene)
    scene.look.root(f"date -s @{round(time.time() + wrong)}")
    wait_for(lambda: is_right(scene), "the host's time inside")
    _, up_after, _, _ = clocks(scene)
    assert up_after - up_before < time.monotonic() - began + TOLERANCE


@pytest.mark.parametrize("who", ["qemu", "both"])
def test_a_machine_that_stood_still_has_the_right_time(scene, who):
    """QEMU is stopped, alone or with the launcher, as on an overloaded host. No old time that was
    queued meanwhile sets the clock back afterwards."""
    stopped = [scene.pid_of("qemu-system")] + ([scene.process.pid] if who == "both" else [])
    day, up, _, _ = clocks(scene)
    booted = day - up
    with contextlib.ExitStack() as stack:
        for pid in stopped:
            stack.callback(os.kill, pid, signal.SIGCONT)
            os.kill(pid, signal.SIGSTOP)
        time.sleep(STOOD_STILL)
    end = time.monotonic() + STAYS_RIGHT
    while time.monotonic() < end:
        day, up, _, _ = clocks(scene)
        assert day - up > booted - TOLERANCE, "the clock was set back"
        booted = max(booted, day - up)
    wait_for(lambda: is_right(scene), "the host's time inside")


def test_a_clock_that_stood_still_is_set_again(scene):
    """As when a laptop sleeps: the VM's clock and the launcher stop. Afterwards the time of day is
    the host's again and CLOCK_MONOTONIC has not jumped.

    QEMU's `stop` takes the queues from vhost-device-vsock 0.3; a packet that comes then ends its
    thread and with it the machine's vsock. So the launcher is stopped first, until the guest waits
    for an answer and no packet is in transit."""
    began = time.monotonic()
    _, up_before, _, _ = clocks(scene)
    with monitor_of(scene) as do, contextlib.ExitStack() as stack:
        stack.callback(os.kill, scene.process.pid, signal.SIGCONT)
        os.kill(scene.process.pid, signal.SIGSTOP)
        time.sleep(ASKS_WITHIN)
        nothing_is_on_its_way(scene)
        assert do("stop") == {"return": {}}
        stopped = time.monotonic()
        time.sleep(STOOD_STILL)
        ran = time.monotonic()
        assert do("cont") == {"return": {}}
    wait_for(lambda: is_right(scene), "the host's time inside")
    _, up_after, _, _ = clocks(scene)
    awake = time.monotonic() - began - (ran - stopped)
    assert up_after - up_before < awake + STOOD_STILL / 4, ("the clock that measures time has "
                                                            "jumped too")


def test_random_bytes_are_there_before_the_first_program(scene):
    """Without virtio-rng and trust in the processor's generator, programs would wait for random
    bytes or start with guessable ones."""
    said = scene.look.root("dmesg")
    assert "crng init done" in said
    seeded = float(re.search(r"\[ *([0-9.]+)\] random: crng init done", said).group(1))
    first = float(re.search(r"\[ *([0-9.]+)\] Run /\S+ as init process", said).group(1))
    assert seeded < first
    assert scene.look.root("cat /sys/class/misc/hw_random/rng_current").strip().startswith(
        "virtio_rng")
    pieces = {scene.look.root("head -c 16 /dev/random | od -An -tx1") for _ in range(2)}
    assert len(pieces) == 2 and all(len(piece.split()) == 16 for piece in pieces)
