"""Faults that users of comparable programs have reported, tested in a real VM."""
import json
import os
import re
import signal
import tempfile
import time

import pytest

from machine_harness import PROBE, Look, Sandbox, run, wait_for

SKEW = 0.2  # seconds


@pytest.fixture(scope="module")
def scene():
    with tempfile.TemporaryDirectory(prefix="codev-f-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        look = Look(folder)
        with Sandbox(look.CODEV, [*look.options, *look.root_options, "--memory", 256]) as sandbox:
            sandbox.wait_event("ready")
            sandbox.look = look
            yield sandbox


def test_1000_orphans_leave_no_zombie(scene):
    assert scene.look.codev(f"{PROBE} orphans 1000").endswith("1000 made, 0 left as zombies\n")
    scene.look.no_zombie_stays()


def test_1000_instant_exits_every_status_right(scene):
    assert scene.look.codev(
        f"{PROBE} exits 1000") == "exits 1000: 1000 ended, 0 with a wrong status\n"
    scene.look.no_zombie_stays()


def test_orphans_that_end_while_pid_1_inherits_them(scene):
    scene.look.codev("n=0; while [ $n -lt 100 ]; do ( (exit 3) & ) ; n=$((n + 1)); done")
    scene.look.no_zombie_stays()
    left = lambda: scene.look.root("cat /sys/fs/cgroup/codev/*/server/cgroup.procs").split()
    wait_for(lambda: 1 <= len(left()) <= 2, "the end of all but the shell and its sleep")


def test_background_child_that_holds_output_open_does_not_keep_the_session():
    sandbox = run("(trap '' TERM HUP; sleep 1000) & echo done; exit 4")
    assert sandbox.status == 4 and sandbox.text() == "done\n"


def test_leader_that_leaves_spinning_children():
    sandbox = run(
        "for n in 1 2 3; do setsid sh -c 'trap \"\" TERM; while :; do :; done' & done; usleep "
        "300000; exit 9"
    )
    assert sandbox.status == 9


def test_slow_reader_of_a_log_does_not_stall_the_workload(tmp_path):
    """stdio `log`: while the host does not read, the command goes on, and dropped lines are
    counted."""
    config, folder = tmp_path / "config.json", tmp_path / "work"
    config.write_text(json.dumps({"server": {"stdio": "log"}}))
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(0o755)
    folder.mkdir()
    (folder / "done").touch()
    (folder / "done").chmod(0o666)
    lines, line = 60000, "x" * 100
    work = "/workspace/work"
    script = f"""
        echo begin; until [ -f {work}/go ]; do usleep 20000; done
        yes {line} | head -n {lines}; echo done >{work}/done
        until [ -f {work}/end ]; do usleep 20000; done; echo end"""
    with Sandbox(script,
                 ["--config", config, "--mount", f"{folder}:{work}", "--memory", 256]) as sandbox:
        sandbox.wait_output("begin")
        os.kill(sandbox.process.pid, signal.SIGSTOP)
        (folder / "go").touch()
        wait_for(lambda: (folder / "done").read_text() == "done\n", "the end of the work", 120)
        os.kill(sandbox.process.pid, signal.SIGCONT)
        (folder / "end").touch()
        status, text = sandbox.finish()
        events = sandbox.events()
    assert status == 0 and text.startswith("begin\n") and text.endswith("end\n")
    assert set(text.splitlines()) == {"begin", line, "end"}, "lines are whole or absent"
    dropped = sum(event["lines"] for event in events if event["event"] == "dropped")
    assert dropped > 0
    assert text.count("\n") + dropped == lines + 2


@pytest.mark.parametrize("base", ["2020-01-01", "2035-06-01T12:00:00"])
def test_clock_of_the_guest_is_the_hosts(base):
    """Independent of the VM's real-time clock; CLOCK_MONOTONIC does not jump."""
    script = "cat /proc/uptime; date +%s; touch /tmp/x; stat -c %Y /tmp/x"
    before = time.time()
    sandbox = run(script, ["--qemu-arg", "-rtc", "--qemu-arg", f"base={base}"])
    after = time.time()
    assert sandbox.status == 0
    words = sandbox.text().split()
    assert float(words[0]) < 60
    for moment in words[2:4]:
        assert int(before) - 1 <= int(moment) <= after + 1


def test_a_file_made_right_after_the_start_is_not_of_the_future():
    """The host dates files of a mount: if the guest's clock is behind, make says "Clock skew
    detected"."""
    with tempfile.TemporaryDirectory(prefix="codev-f-", dir="/tmp") as folder:
        os.chmod(folder, 0o777)
        mount = ["--mount", f"{folder}:/workspace/work"]
        sandbox = run(f"{PROBE} clock /workspace/work/file", mount)
    assert sandbox.status == 0, sandbox.describe()
    before, file, after = (int(word) / 1e9 for word in sandbox.text().split()[1:])
    assert before - SKEW <= file <= after + SKEW, sandbox.text()


def test_every_byte_arrives_through_pipes():
    """Pipes pass the command's output unchanged, whatever the bytes."""
    sandbox = run(
        "i=0; while [ $i -lt 256 ]; do printf \"\\\\$(printf %03o $i)\"; i=$((i + 1)); done")
    assert sandbox.status == 0 and bytes(sandbox.output) == bytes(range(256))


def test_hostile_words_of_a_failed_start_are_escaped(tmp_path):
    """A name from the guest that the user reads on a terminal."""
    sandbox = run(["/no/such/\33]0;title\7\33[2J"])
    assert sandbox.status == 125
    assert not re.search(rb"[\0-\x08\x0b-\x1f\x7f]", bytes(sandbox.said))
