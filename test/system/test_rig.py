"""Tests of the harness: procfs while the observed process changes, and the end of the harness's own
relay (broker_harness.py)."""
import os
import socket
import subprocess
import sys

import pytest

import procfs
from broker_harness import Relay
from wsl_namespaces import eldest

RESTLESS = ("import os, time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: "
            "os.close(os.dup(0))")


def test_descriptors_that_come_and_go():
    """Some descriptors are closed before their names are read: os.listdir and os.readlink fail
    then, procfs does not."""
    gone = 0
    with subprocess.Popen([sys.executable, "-c", RESTLESS]) as process:
        while not procfs.has_ended(process.pid):
            assert procfs.descriptors(process.pid).keys() <= set(range(10))
            try:
                [
                    os.readlink(f"/proc/{process.pid}/fd/{fd}")
                    for fd in os.listdir(f"/proc/{process.pid}/fd")
                ]
            except FileNotFoundError:
                gone += 1
        assert gone
        assert procfs.state(process.pid) == "Z" and process.pid in procfs.children(os.getpid())
        assert procfs.descriptors(process.pid) == {} and procfs.read(process.pid, "cmdline") == b""
    assert procfs.state(process.pid) == "" and procfs.has_ended(process.pid)
    assert procfs.read(process.pid, "stat") == b"" and procfs.descriptors(process.pid) == {}


def test_a_relay_of_the_rig_that_has_ended_accepts_nobody():
    """When its thread stayed in accept(2), the next relay's listener could get the same descriptor
    number, and the old thread its clients."""
    with Relay(None) as relay:
        assert relay.acceptor.is_alive()
    assert not relay.acceptor.is_alive()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", relay.port))


def test_of_a_process_and_what_it_forked_the_eldest_is_found():
    """Both have the same command line until the child executes another program."""
    with subprocess.Popen(["sh", "-c", "sleep 60 & read end; kill $!"],
                          stdin=subprocess.PIPE) as parent:
        while not procfs.children(parent.pid):
            assert parent.poll() is None
        [child] = procfs.children(parent.pid)
        assert procfs.parent(child) == parent.pid
        assert eldest({child, parent.pid}) == eldest({parent.pid}) == parent.pid and eldest(
            set()) is None
        parent.communicate(b"\n")
