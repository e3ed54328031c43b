"""A command that attacks the session itself, or the host's user through mounted folders."""
import os
import stat

import pytest
from control_harness import Guest, config

# the initial credit, half a second of output at the pace below, and the pipe are less than half of
# this
FLOOD_MOST = 1 << 20


def test_a_child_that_floods_does_not_hold_the_end():
    """The leader exits, a child goes on writing, and the host reads slowly, so that output is
    always pending."""
    with Guest(config("yes & sleep 0.3; exit 5")) as guest:
        guest.begin()
        while guest.events[-1]["event"] != "exit":
            try:
                event = guest.event(credit=False, seconds=0.1)
                assert event is not None, "the channel ended without an exit"
            except TimeoutError:
                guest.send({"command": "credit", "stream": "stdout", "bytes": 16384})
            assert len(guest.output["stdout"]) < FLOOD_MOST, "the flood goes on"
        assert guest.events[-1] == {"event": "exit", "code": 5}
        guest.send({"command": "ack"})
        guest.off()


@pytest.mark.parametrize("server", ["virtiofs", "9p"])
def test_no_file_of_the_users_becomes_set_uid(sandbox, server):
    """Any user of the host who ran it would get the owner's rights."""
    if server == "virtiofs" and os.geteuid() != 0:
        pytest.skip("virtiofsd is root's to run")
    work = sandbox.work()
    command = ("echo >f; for mode in 4755 6755 u+s 755; do chmod $mode f && echo $mode; done; "
               "mkdir d && chmod 2775 d && echo d")
    status, out, _ = sandbox.run("--file-server", server, "--mount", work, command=command)
    assert (status, out) == (0, b"755\nd\n")
    assert stat.S_IMODE((work / "f").stat().st_mode) == 0o755
