"""A guest whose kernel and init are somebody else's: what it says must not pass for the host's own word, nor reach a terminal."""
import json
import os
import pty
import select
import subprocess

import pytest
from sandbox_rig import PATIENCE, Rig

EXIT = "channel.send({'event': 'exit', %s}); assert channel.wait_for('ack')"


@pytest.fixture
def rig():
    rig = Rig()
    yield rig
    rig.close()


@pytest.mark.parametrize("name", ["way_in", "broker_ready", "broker", "broker_exit", "notice"])
def test_events_of_the_host_cannot_be_said_by_the_guest(rig, name):
    scenario = f"channel = guest.ready(); channel.send({{'event': {name!r}, 'path': '/tmp/mine', 'text': 'mine'}}); time.sleep(60)"
    status, _, err = rig.run(scenario)
    assert status == 125 and err.count("\n") == 1 and f"`{name}`" in err
    assert not any("mine" in json.dumps(event) for event in rig.events())


@pytest.mark.parametrize("line", [
    """b'{"event":"new","event":"way_in"}'""", """b'{"event":"new","e\\\\u0076ent":"notice"}'""",
    """b'{"event":"x"' + b''.join(b',"%d":0' % i for i in range(500)) + b'}'"""], ids=["twice", "escaped", "many"])
def test_an_event_that_can_be_read_two_ways_is_none(rig, line):
    status, _, err = rig.run(f"channel = guest.ready(); channel.send({line} + b'\\n'); time.sleep(60)")
    assert status == 125 and "is no event" in err
    assert all(event["event"] in ("hello", "ready", "notice") for event in rig.events())


def test_warnings_without_end_are_told_for_a_while(rig):
    scenario = "channel = guest.ready()\nfor i in range(5000): channel.send({'event': 'warning', 'text': 'w' * 100})\n" + EXIT % "'code': 0"
    status, _, err = rig.run(scenario)
    assert status == 0
    assert err.count("\n") == 1001 and err.endswith("left out from here\n")
