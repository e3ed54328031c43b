"""A command that means harm to the session itself, seen from the control channel."""
from control_rig import Guest, config

FLOOD_MOST = 1 << 20  # credit at first, half a second at the pace below, and the pipe: less than half of this


def test_a_child_that_floods_does_not_hold_the_end():
    """The leader ends, a child goes on writing, and the host is always a little behind: there is no moment in which nothing
    waits for it."""
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
