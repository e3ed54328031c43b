"""procfs: a process that changes while it is looked at."""
import os
import subprocess
import sys

import procfs

RESTLESS = "import os, time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: os.close(os.dup(0))"


def test_descriptors_that_come_and_go():
    """Once there is a number that is gone before its name is read: then the plain way fails, and ours does not."""
    gone = 0
    with subprocess.Popen([sys.executable, "-c", RESTLESS]) as process:
        while not procfs.has_ended(process.pid):
            assert procfs.descriptors(process.pid).keys() <= set(range(10))
            try:
                [os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{process.pid}/fd")]
            except FileNotFoundError:
                gone += 1
        assert gone
        assert procfs.state(process.pid) == "Z" and process.pid in procfs.children(os.getpid())
        assert procfs.descriptors(process.pid) == {} and procfs.read(process.pid, "cmdline") == b""
    assert procfs.state(process.pid) == "" and procfs.has_ended(process.pid)
    assert procfs.read(process.pid, "stat") == b"" and procfs.descriptors(process.pid) == {}
