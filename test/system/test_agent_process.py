"""The relay as a process: its configuration, its end, the rights that it dropped; and its DNS
stub."""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys

import pytest

import procfs
from relay_harness import (AGENT, PATIENCE, SANITIZED, SECRET, TOKEN, Agent, connect, dial_of,
                           eventually, listen_tcp, listen_unix, make_record, read_exactly, running)

EX_CONFIG = 78
NXDOMAIN, FORMERR, NOTIMP = 3, 1, 4
# `dig example.com` as dig 9.18 sends it: recursion desired, AD, EDNS with a cookie
DIG = bytes.fromhex("1c2f01200001000000000001076578616d706c6503636f6d0000010001"
                    "00002904d000000000000c000a00088d3b1f5c2a7e90b1")
QUESTION = b"\7example\3com\0\0\1\0\1"


def query(name=b"\7example\3com\0", identity=0x1c2f, flags=0x0100, questions=1, tail=b"\0\1\0\1"):
    return struct.pack("!6H", identity, flags, questions, 0, 0, 0) + name + tail


def answer_fields(answer):
    identity, flags, questions, answers, authority, additional = struct.unpack("!6H", answer[:12])
    assert (answers, authority, additional) == (0, 0, 0)
    assert flags & 0x8000, "no response"
    return identity, flags & 15, answer[12:] if questions else b""


@pytest.fixture
def dns():
    with socket.socket(type=socket.SOCK_DGRAM) as datagrams, listen_tcp() as streams:
        datagrams.bind(("127.0.0.1", 0))
        with running([], [datagrams, streams]) as agent:
            yield agent, datagrams, streams


def ask(datagrams, message):
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.settimeout(PATIENCE)
        client.sendto(message, datagrams.getsockname())
        return client.recv(2000)


def test_every_name_is_unknown(dns):
    for message in (query(), DIG, query(name=b"\0"),
                    query(name=b"\x3f" + b"x" * 63 + b"\0", tail=b"\0\x1c\0\1")):
        identity, rcode, question = answer_fields(ask(dns[1], message))
        assert identity == 0x1c2f and rcode == NXDOMAIN
        assert message[12:].startswith(question) and question


def test_longest_name_and_one_more(dns):
    longest = (b"\x3f" + b"x" * 63) * 3 + b"\x3d" + b"y" * 61 + b"\0"
    assert len(longest) == 255
    assert answer_fields(ask(dns[1], query(name=longest)))[1] == NXDOMAIN
    assert answer_fields(ask(dns[1], query(name=b"\1a" + longest)))[1] == FORMERR


def test_malformed_questions_get_their_header_back(dns):
    for message in (query()[:20], query()[:12], query(name=b"\xc0\x0c"), query(questions=0),
                    query(questions=2), query(name=b"\x40" + b"x" * 64 + b"\0"),
                    query(tail=b"\0\1\0")):
        assert answer_fields(ask(dns[1], message)) == (0x1c2f, FORMERR, b"")
    assert answer_fields(ask(dns[1], query(flags=0x2800)))[1] == NOTIMP


def test_responses_and_garbage_get_no_answer(dns):
    """UDP on loopback keeps the order, so the first answer belongs to the last message."""
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.settimeout(PATIENCE)
        for message in (b"", b"x", query()[:11], query(identity=1,
                                                       flags=0x8180), bytes([255]) * 60000):
            client.sendto(message, dns[1].getsockname())
        client.sendto(query(identity=7), dns[1].getsockname())
        assert answer_fields(client.recv(2000))[0] == 7


def test_huge_datagram_is_answered_by_its_question(dns):
    assert answer_fields(ask(dns[1], query() + bytes(50_000)))[1] == NXDOMAIN


def test_tcp_in_pieces_and_pipelined(dns):
    with connect(dns[2]) as client:
        message = struct.pack("!H", len(query())) + query()
        for byte in message:
            client.sendall(bytes([byte]))
        client.sendall(message * 2)
        for _ in range(3):
            length, = struct.unpack("!H", read_exactly(client, 2))
            assert answer_fields(read_exactly(client, length)) == (0x1c2f, NXDOMAIN, QUESTION)


@pytest.mark.parametrize("message", [b"\xff\xff" + bytes(3000), b"\0\0", b"\0\3abc"],
                         ids=["huge", "empty", "short"])
def test_tcp_message_that_is_no_question_closes(dns, message):
    with connect(dns[2]) as client:
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            client.sendall(message)
            assert client.recv(10) == b""


def test_tcp_connections_are_few_and_end(dns):
    agent, _, streams = dns
    before = agent.descriptors()
    clients = [connect(streams) for _ in range(30)]
    for client in clients[:22]:
        assert client.recv(1) == b"", "the oldest make room"
    assert agent.descriptors() <= before + 8
    assert clients[29].recv(1) == b"", "after 5 s"
    eventually(lambda: agent.descriptors() == before)
    for client in clients:
        client.close()


def start_with(record):
    """Exit status and message of a relay that gets these bytes and the end of input on descriptor
    0."""
    done = subprocess.run([AGENT], input=record, stderr=subprocess.PIPE, timeout=PATIENCE)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("forward,reason", [
    ({
        "role": "broker",
        "dial": ["tcp:127.0.0.1:1"],
        "secret": TOKEN
    }, "without a pinned key"),
    ({
        "role": "broker",
        "dial": ["vsock:2:1", "tcp:[::1]:1"],
        "secret": TOKEN
    }, "without a pinned key"),
    ({
        "role": "broker",
        "dial": ["tcp:127.0.0.1:1"],
        "secret": TOKEN,
        "pin": "AB" * 32
    }, "hex"),
    ({
        "role": "broker",
        "dial": ["tcp:gateway:1"],
        "secret": TOKEN,
        "pin": "ab" * 32
    }, "table of routes was not inherited"),
    ({
        "role": "broker",
        "dial": ["vsock:2:1"],
        "secret": TOKEN,
        "pin": "ab" * 32
    }, "no broker is dialled over TCP"),
    ({
        "role": "agent",
        "dial": ["tcp:127.0.0.1:1"],
        "secret": SECRET
    }, "through a Unix socket only"),
    ({
        "role": "server",
        "dial": ["tcp:127.0.0.1:1"]
    }, "without a secret"),
    ({
        "role": "server",
        "dial": ["tcp:127.0.0.1:1"],
        "secret": "short"
    }, "hex"),
    ({
        "role": "agent",
        "dial": ["unix:/x"]
    }, "without a secret"),
    ({
        "role": "relay",
        "dial": ["unix:/x"],
        "secret": SECRET
    }, "neither sends nor demands one"),
    ({
        "role": "broker",
        "dial": [],
        "secret": TOKEN
    }, "0 addresses"),
    ({
        "role": "nonsense",
        "dial": ["unix:/x"]
    }, "unknown role"),
    ({
        "role": "broker",
        "dial": ["unix:/x"],
        "secret": TOKEN,
        "fd": -1
    }, "no listener"),
])
def test_what_cannot_be_served_is_refused_at_the_start(forward, reason):
    status, error = start_with(make_record([{"fd": 3, **forward}]))
    assert status == EX_CONFIG
    assert reason in error and error.startswith("codev-agent: ") and error.count("\n") == 1


@pytest.mark.parametrize("record", [b"", b"short", make_record([], options=["--magic", "7"])])
def test_no_record_at_all(record):
    status, error = start_with(record)
    assert status == EX_CONFIG and error.startswith("codev-agent: ")


def test_end_of_descriptor_0_ends_the_agent():
    assert start_with(make_record([])) == (0, "")


def test_end_of_descriptor_0_ends_connections_too(tmp_path):
    front = listen_tcp()
    with front, listen_unix(tmp_path / "broker") as broker:
        agent = Agent([{"role": "broker", "fd": front, "dial": [dial_of(broker)], "secret": TOKEN}])
        clients = [connect(front) for _ in range(10)]
        assert agent.stop() == 0
        for client in clients:
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(1) == b""


def test_record_for_another_table_ends_the_agent(tmp_path):
    front = listen_tcp()
    with front:
        agent = Agent([{
            "role": "broker",
            "fd": front,
            "dial": [f"unix:{tmp_path}/x"],
            "secret": TOKEN
        }])
        agent.send(role="relay", secret="")
        assert agent.process.wait(PATIENCE) != 0
        agent.stop()
        assert "cannot change" in agent.error


def test_token_is_in_no_argument_and_no_environment(tmp_path):
    with running([{
            "role": "broker",
            "fd": listen_tcp(),
            "dial": [f"unix:{tmp_path}/x"],
            "secret": TOKEN
    }]) as agent:
        agent.descriptors()
        for name in ("cmdline", "environ"):
            with open(f"/proc/{agent.pid}/{name}", "rb") as file:
                assert TOKEN.encode() not in file.read()


def test_what_the_agent_gave_up():
    with running([]) as agent:
        eventually(lambda: SANITIZED or agent.status("Seccomp") == "2")
        assert SANITIZED or agent.status("NoNewPrivs") == "1"
        assert agent.status("Threads") == "1"
        with open(f"/proc/{agent.pid}/limits") as limits:
            core = next(line for line in limits if line.startswith("Max core file size"))
        assert core.split()[4:6] == ["0", "0"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another account")
def test_its_own_account_cannot_look_into_it():
    """Not dumpable: processes of the same uid cannot use ptrace or read its memory or
    descriptors."""
    nobody = 65534
    record = make_record([])
    agent = subprocess.Popen([AGENT],
                             stdin=subprocess.PIPE,
                             user=nobody,
                             group=nobody,
                             extra_groups=[])
    try:
        agent.stdin.write(record)
        agent.stdin.flush()
        eventually(lambda: os.stat(f"/proc/{agent.pid}/mem").st_uid == 0)
        for name in ("mem", "environ", "maps", "fd/0"):
            look = subprocess.run(["cat", f"/proc/{agent.pid}/{name}"],
                                  user=nobody,
                                  group=nobody,
                                  extra_groups=[],
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
            assert look.returncode != 0 and b"Permission denied" in look.stderr, name
    finally:
        agent.stdin.close()
        assert agent.wait(PATIENCE) == 0


def test_the_parents_end_is_the_agents():
    """As when init is killed while another process has the pipe open."""
    reading, writing = os.pipe()
    os.write(writing, make_record([]))
    script = ("import os, time\nif os.fork():\n  time.sleep(60)\nprint(os.getpid(), "
              f"flush=True)\nos.execv({AGENT!r}, ['a'])")
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=reading, stdout=subprocess.PIPE)
    pid = int(parent.stdout.readline())
    eventually(lambda: "eventpoll" in str(procfs.descriptors(pid)) if os.geteuid() == 0 else True)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    eventually(lambda: procfs.has_ended(pid))
    os.close(reading)
    os.close(writing)


@pytest.mark.skipif(SANITIZED, reason="a static guest program only")
def test_size_and_linkage():
    assert os.stat(AGENT).st_size <= 160 * 1024
    with open(AGENT, "rb") as file:
        image = file.read()
    assert b"ld-musl" not in image and b"ld-linux" not in image, "an interpreter: not static"


@pytest.mark.skipif(SANITIZED, reason="sanitizers keep shadow memory")
def test_memory_at_rest():
    with running([{
            "role": "broker",
            "fd": listen_tcp(),
            "dial": ["unix:/nowhere"],
            "secret": TOKEN
    }]) as agent:
        assert agent.resident_kib() <= 1024
