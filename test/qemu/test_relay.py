"""The relay under load, and when the broker or the relay dies in the middle of a stream.

The relay's open connections are observed in two ways: a root process of the test lists its
descriptors, and the kernel counts all sockets of the guest."""
import json
import os
import signal
import sys
import tempfile

import pytest

from machine_harness import (PROBE, TOUR, Gateway, Look, Sandbox, descriptor_count, resident_kib,
                             wait_for)

sys.path.insert(0, str(TOUR))
from demo_gateway import pattern_hash  # noqa: E402

GIB = 1 << 30
MIB = 1 << 20
# of the relay's cgroup with the kernel's memory for 2 connections, while 1 GiB passes
AGENT_LIMIT = 16 * MIB
BROKER_LIMIT_KIB = 32 * 1024


@pytest.fixture(scope="module")
def scene():
    with tempfile.TemporaryDirectory(prefix="codev-l-",
                                     dir="/tmp") as folder, Gateway("--interval-ms", 50) as gateway:
        os.chmod(folder, 0o755)
        look = Look(folder)
        options = [*look.options, *look.root_options, *gateway.options, "--memory", 512]
        with Sandbox(look.CODEV, options) as sandbox:
            sandbox.wait_event("ready")
            sandbox.look, sandbox.gateway = look, gateway
            yield sandbox


def agent_descriptors(look):
    return len(look.root("ls /proc/$(pidof codev-agent)/fd").split())


def sockets_used(look):
    """The number of all sockets of the guest as the kernel counts them: exact, for all families."""
    return int(look.root("grep ^sockets: /proc/net/sockstat").split()[2])


def both_counts(scene):
    return (agent_descriptors(scene.look), sockets_used(scene.look),
            descriptor_count(scene.pid_of("codev-broker")))


def counts_return(scene, before, allowance=0):
    """Waits until the counts are as before; the broker may keep a few pooled upstream
    connections."""
    def settled():
        agent, sockets, broker = both_counts(scene)
        return agent <= before[0] and sockets <= before[1] and broker <= before[2] + allowance
    wait_for(settled, f"the counts {before}", 90)


def test_1_gib_each_way_keeps_hash_and_memory(scene):
    look = scene.look
    wanted = pattern_hash(GIB)
    broker = scene.pid_of("codev-broker")
    look.codev(f"{PROBE} round {16 * MIB} '/gateway/bytes?n={16 * MIB}' /gateway/upload")
    before = both_counts(scene)
    told = look.codev(f"{PROBE} round {GIB} '/gateway/bytes?n={GIB}' /gateway/upload", 600)
    assert json.loads(told) == {"length": GIB, "sha256": wanted}
    peak = int(look.codev("cat /sys/fs/cgroup/codev/*/relay/memory.peak"))
    assert peak < AGENT_LIMIT, "the relay's memory grows with the bytes that pass"
    assert resident_kib(broker, "VmHWM") < BROKER_LIMIT_KIB
    counts_return(scene, before, 2)


def test_1000_requests_one_after_another(scene):
    scene.look.codev(f"{PROBE} requests 1 /gateway/v1/models")
    before, asked = both_counts(scene), scene.gateway.stats()["requests"]
    told = scene.look.codev(f"{PROBE} requests 1000 /gateway/v1/models", 300)
    assert told.endswith(": 1 of 1 processes got every answer\n")
    assert scene.gateway.stats()["requests"] == asked + 1000
    counts_return(scene, before, 2)


def test_200_requests_at_once(scene):
    before, finished = both_counts(scene), scene.gateway.stats()["streams_finished"]
    finish = scene.look.begin("codev", f"{PROBE} requests 1 '/gateway/v1/messages?events=100' 200")
    wait_for(lambda: descriptor_count(scene.pid_of("codev-broker")) >= before[2] + 200,
             "200 at once")
    assert finish(300).endswith(": 200 of 200 processes got every answer\n")
    wait_for(lambda: scene.gateway.stats()["streams_finished"] == finished + 200,
             "the gateway to have counted the last")
    counts_return(scene, before, 200)  # libcurl keeps upstream connections for the next requests


def test_refused_answers_count_as_such(scene):
    """Shows that the counting above can fail."""
    assert ": 0 of 3 processes got" in scene.look.codev(f"{PROBE} requests 1 /gateway/nowhere 3")


def test_clients_that_leave_are_cancelled(scene):
    """100 streams are abandoned in the middle: the gateway notices each, and nothing is left."""
    before, cancelled = both_counts(scene), scene.gateway.stats()["streams_cancelled"]
    script = f"""
        streams=$(mktemp -d); n=0
        while [ $n -lt 100 ]; do
            {PROBE} http GET '/gateway/v1/messages?events=10000' 2>/dev/null \\
                | {{ head -c 200 >$streams/$n; exec sleep 600; }} &
            n=$((n + 1))
        done
        while [ $(find $streams -type f -size +0 | wc -l) -lt 100 ]; do usleep 100000; done
        killall -9 probe sleep; wait 2>/dev/null; rm -r $streams; echo killed"""
    assert "killed" in scene.look.codev(script)
    wait_for(lambda: scene.gateway.stats()["streams_cancelled"] >= cancelled + 100,
             "100 cancelled streams")
    counts_return(scene, before, 200)


def test_clients_that_connect_and_leave_at_once(scene):
    """As a port scanner does, 900 times: the relay, the vsock device and the broker survive, and
    nothing stays open."""
    before = both_counts(scene)
    hold = f"{PROBE} hold 8788 300 </dev/null; "
    assert scene.look.codev(hold * 3).count("open") == 3
    assert scene.look.codev(MODELS).startswith("HTTP/1.1 200 ")
    counts_return(scene, before, 2)


STREAM = f"{PROBE} http GET '/gateway/v1/messages?events=100000'; echo status $?"
MODELS = f"{PROBE} http GET /gateway/v1/models"


def begin_stream(scene):
    """Starts a long stream; its output so far, and a function that waits for its end."""
    finish = scene.look.begin("codev", STREAM)
    answer = scene.look.folder / f"codev.{scene.look.numbers['codev']}.answer"
    wait_for(lambda: answer.read_text(errors="replace").count("content_block_delta") > 5,
             "the stream to run")
    return finish


def test_agent_that_dies_breaks_its_streams_and_is_started_again(scene):
    finish = begin_stream(scene)
    old = scene.look.agent_pid()
    other = scene.gateway.stats()["streams_cancelled"]
    scene.look.root(f"kill -9 {old}")
    told = finish()
    assert told.endswith(
        "status 3\n") and "message_stop" not in told, "the end of the stream is visibly none"
    assert scene.look.codev(MODELS).startswith("HTTP/1.1 200 ")
    assert scene.look.agent_pid() != old
    wait_for(
        lambda: any(event["event"] == "warning" and "codev-agent ended (signal 9)" in event["text"]
                    for event in scene.events()), "the warning")
    wait_for(lambda: scene.gateway.stats()["streams_cancelled"] > other, "the gateway to be told")
    scene.alive()


def test_broker_that_dies_breaks_its_streams_and_then_a_502_says_so(scene):
    """The last test here, as only the app restarts a broker."""
    finish = begin_stream(scene)
    agent = scene.look.agent_pid()
    os.kill(scene.pid_of("codev-broker"), signal.SIGKILL)
    told = finish()
    assert told.endswith("status 3\n") and "message_stop" not in told
    answer = scene.look.codev(MODELS)
    assert answer.startswith("HTTP/1.1 502 ") and '"type":"codev_' in answer and "broker" in answer
    assert scene.look.agent_pid() == agent, "the relay was restarted"
    scene.wait_event("broker_exit")
    scene.alive()
