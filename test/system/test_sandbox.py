"""The launcher with guests that work, fail or attack it. The guest is fake_guest.py."""
import base64
import hashlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import stat
import subprocess
import time

import pytest
from launcher_harness import BIN, PATIENCE, Rig

EXIT = "channel.send({'event': 'exit', %s}); assert channel.wait_for('ack')"


@pytest.fixture
def rig():
    rig = Rig()
    yield rig
    rig.close()


@pytest.mark.parametrize("event, status", [("'code': 0", 0), ("'code': 7", 7), ("'code': 255", 255),
                                           ("'signal': 9", 137), ("'signal': 11", 139)])
def test_the_exit_status_is_the_commands(rig, event, status):
    assert rig.run("channel = guest.ready(); " + EXIT % event) == (status, b"", "")
    rig.notes()
    rig.assert_nothing_left()


def test_a_failed_stage_is_one_line_and_125(rig):
    status, out, err = rig.run(
        "channel = guest.hello(); channel.send({'event': 'failed', 'stage': 'firewall', 'error': "
        "'no nf_tables'});"
        "guest.note(channel.command())")
    assert (status, out, err) == (125, b"", "codev-sandbox: firewall: no nf_tables\n")
    assert rig.notes() == [{"command": "ack"}]
    rig.assert_nothing_left()


def test_hostile_text_is_escaped(rig):
    scenario = r"""
channel = guest.hello()
channel.send({'event': 'warning', 'text': '\x1b]0;title\x07\x1b[2J\nsecond line \u202e'})
channel.send({'event': 'failed', 'stage': '\x1b[31m', 'error': 'a\r\nb\x9b'})
channel.wait_for('ack')
"""
    status, _, err = rig.run(scenario)
    assert status == 125
    assert err.count("\n") == 2
    assert not [
        c for c in err if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u202e")
    ]
    for event in rig.events():
        assert isinstance(event, dict)


def test_output_is_exact_and_apart(rig):
    scenario = """
import base64, hashlib, random
channel = guest.ready()
data = random.Random(1).randbytes(3000000)
credit = {'stdout': 262144, 'stderr': 262144}
for start in range(0, len(data), 32768):
    for stream in ('stdout', 'stderr'):
        piece = data[start:start + 32768]
        while credit[stream] < len(piece):
            command = channel.wait_for('credit')
            credit[command['stream']] += command['bytes']
        credit[stream] -= len(piece)
        if stream == 'stderr':
            piece = piece[::-1]
        text = base64.b64encode(piece).decode()
        channel.send({'event': 'output', 'stream': stream, 'data': text})
""" + EXIT % "'code': 0"
    process = rig.start(scenario)
    out, err = process.communicate(timeout=PATIENCE)
    data = random.Random(1).randbytes(3000000)
    assert process.returncode == 0, rig.notes()
    assert out == data
    assert err == b"".join(data[start:start + 32768][::-1] for start in range(0, len(data), 32768))


def test_all_output_arrives_before_the_end_at_a_slow_reader(rig):
    scenario = """
import base64
channel = guest.ready()
for i in range(8):
    data = base64.b64encode(bytes([i]) * 32768).decode()
    channel.send({'event': 'output', 'stream': 'stdout', 'data': data})
""" + EXIT % "'code': 3" + "; guest.note('acked')"
    process = rig.start(scenario)
    rig.wait_for_note("acked")  # the guest may power off before its output is read
    out = process.stdout.read()
    assert out == b"".join(bytes([i]) * 32768 for i in range(8))
    assert process.wait(PATIENCE) == 3


def test_a_guest_beyond_its_credit_ends(rig):
    scenario = """
import base64
channel = guest.ready()
data = base64.b64encode(bytes(32768)).decode()
for i in range(64):
    channel.send({'event': 'output', 'stream': 'stdout', 'data': data})
time.sleep(60)
"""
    process = rig.start(scenario)
    while b"credit" not in (line := process.stderr.readline()):
        assert line, "it ended without the reason"
    process.stdout.read()
    assert process.wait(PATIENCE) == 125


def test_input_is_exact_keeps_to_the_credit_and_ends(rig):
    scenario = """
import base64, hashlib
channel = guest.ready()
got, first = b'', 0
while len(got) < 262144:
    got += base64.b64decode(channel.wait_for('input')['data'])
channel.connection.settimeout(0.5)
try:
    early = channel.connection.recv(1)
except TimeoutError:
    early = b''
guest.note({'early': len(early)})
channel.connection.settimeout(None)
channel.file = channel.connection.makefile('rb')
while True:
    channel.send({'event': 'credit', 'stream': 'stdin', 'bytes': 100000})
    size = len(got) + 100000
    while len(got) < size:
        command = channel.wait_for('input')
        if command.get('eof'):
            break
        got += base64.b64decode(command['data'])
    if command.get('eof'):
        break
guest.note({'sha256': hashlib.sha256(got).hexdigest()})
""" + EXIT % "'code': 0"
    data = random.Random(2).randbytes(1500001)
    status, _, err = rig.run(scenario, data=data)
    assert status == 0, err
    assert rig.notes() == [{"early": 0}, {"sha256": hashlib.sha256(data).hexdigest()}]


@pytest.mark.parametrize(
    "said", [
        b"\0\0\0\n", b"hello\n", b"[]\n", b"{}\n", b'{"event":"exit","code":256}\n',
        b'{"event":"exit"}\n', b'{"event":"output","stream":"stdout","data":"!"}\n',
        b"[" * 100000 + b"\n", b'{"event":"\xff"}\n'
    ],
    ids=["nul", "word", "array", "nameless", "code-256", "no-code", "no-base64", "deep", "no-utf8"])
def test_what_is_no_event_ends_the_sandbox(rig, said):
    status, out, err = rig.run(f"channel = guest.ready(); channel.send({said!r}); time.sleep(60)")
    assert (status, out) == (125, b"")
    assert err.startswith("codev-sandbox: guest: the guest sent ")
    rig.assert_nothing_left()


def test_an_endless_line_ends_the_sandbox(rig):
    scenario = ("channel = guest.ready()\ntry:\n while True: channel.send(b'x' * 65536)\nexcept "
                "OSError: pass\n")
    status, _, err = rig.run(scenario)
    assert status == 125
    assert "longer than" in err


def test_a_guest_must_say_hello_and_speak_our_protocol(rig):
    status, _, err = rig.run(
        "channel = guest.dial(); channel.send({'event': 'ready'}); time.sleep(60)")
    assert (status, err) == (125, "codev-sandbox: guest: the guest did not say hello first\n")
    status, _, err = rig.run("guest.dial().send({'event': 'hello', 'protocol': 2}); time.sleep(60)")
    assert status == 125
    assert "protocol 2" in err


def test_a_silent_connection_is_not_the_guest(rig):
    scenario = "guest.dial().close(); channel = guest.ready(); " + EXIT % "'code': 4"
    assert rig.run(scenario)[0] == 4


def test_only_one_connection_gets_the_configuration(rig):
    scenario = """
channel = guest.ready()
try:
    second = socket.socket(socket.AF_UNIX)
    second.connect(guest.uds_path + '_1024')
    second.settimeout(1)
    second.sendall(b'{"event":"hello","protocol":1}\\n')
    guest.note(second.recv(10).decode())
except OSError as error:
    guest.note('refused')
""" + EXIT % "'code': 0"
    assert rig.run(scenario)[0] == 0
    assert rig.notes() == ["refused"]


def test_a_machine_that_ends_without_a_word(rig):
    status, out, err = rig.run(
        "guest.console(b'Kernel panic - not syncing: \\x1b[31mno init\\r\\n'); time.sleep(0.1)")
    assert (status, out) == (125, b"")
    assert "console: Kernel panic - not syncing: " in err
    assert "\x1b" not in err
    assert err.splitlines()[-1].startswith("codev-sandbox: qemu: it ended")


def test_a_machine_that_ends_after_hello(rig):
    status, _, err = rig.run(
        "channel = guest.ready(); guest.console(b'Oops: 1\\n'); time.sleep(0.1); channel.close()")
    assert status == 125
    assert "console: Oops: 1" in err
    assert err.splitlines()[-1].startswith("codev-sandbox: guest: the control channel ended")


def test_what_qemu_says_is_shown(rig):
    status, _, err = rig.run("time.sleep(60)",
                             environment={"CODEV_FAKE_QEMU_WORDS": "no such \x1b[2J machine"})
    assert status == 125
    assert "host: no such " in err
    assert "\x1b" not in err


def test_unknown_events_are_passed_on(rig):
    scenario = "channel = guest.ready(); channel.send({'event': 'new', 'x': [1]}); " \
        + EXIT % "'code': 0"
    assert rig.run(scenario)[0] == 0
    assert {"event": "new", "x": [1]} in rig.events()


def test_the_boot_configuration(rig):
    work = rig.folder / "wörk, \"x\" 'y' a:b\n c"
    work.mkdir()
    config = rig.folder / "config.json"
    config.write_text(
        json.dumps({
            "server": {
                "env": {
                    "B": "2"
                }
            },
            "limits": {
                "pids": 77
            },
            "user_namespaces": True
        }))
    scenario = "channel = guest.ready(); guest.note(channel.config); " + EXIT % "'code': 0"
    assert rig.run(scenario, "--file-server", "9p", "--mount", str(work), "--mount",
                   f"{rig.runtime.parent}:/opt/x:ro", "--env", "A=1", "--env", "A=3", "--config",
                   config, "--", "printf", "%s", "a b")[0] == 125
    (rig.folder / "ro").mkdir()
    assert rig.run(scenario, "--file-server", "9p", "--mount", str(work), "--mount",
                   f"{rig.folder}/ro:/opt/x:ro", "--env", "A=1", "--env", "A=3", "--config", config,
                   "--", "printf", "%s", "a b")[0] == 0
    config = rig.notes()[0]
    name = str(work).rsplit("/", 1)[1]
    assert config["protocol"] == 1
    assert config["hostname"] == "codev-" + config["id"]
    assert abs(config["unix_ns"] / 1e9 - time.time()) < PATIENCE
    assert config["mounts"] == [
        {"type": "9p", "source": "m0", "target": f"/workspace/{name}", "readonly": False},
        {"type": "9p", "source": "m1", "target": "/opt/x", "readonly": True}]
    assert config["server"] == {"argv": ["printf", "%s", "a b"], "env": {"A": "3", "B": "2"},
                                "cwd": f"/workspace/{name}", "port": 0, "stdio": "pipe"}
    assert config["relay"] is None and config["egress"] == [] and config["way_in"] is None
    assert config["limits"] == {"pids": 77} and config["user_namespaces"] is True
    owner = os.stat(work)
    uid = os.geteuid() or owner.st_uid or 1000
    assert config["account"]["name"] == "codev" and config["account"]["uid"] == uid


@pytest.mark.parametrize("text, reason", [("{", "1:2: "), ('{"a":1,"a":2}', "twice"),
                                          ("[]", "an object is wanted"),
                                          ('{"a":{"b":1,"b":2}}', "twice"), ("\ufeff{}", "1:1: ")])
def test_a_wrong_config_file(rig, text, reason):
    path = rig.folder / "config.json"
    path.write_text(text)
    status, _, err = rig.run("", "--config", path)
    assert status == 125
    assert err.startswith(f"codev-sandbox: config: {path}") and reason in err
    assert err.count("\n") == 1


def test_usage_errors_are_125(rig):
    for arguments in (["--nonsense"], ["ls"], ["--gateway-url", "https://g.example"]):
        status, out, err = rig.run("", *arguments)
        assert (status, out) == (125, b"")
        assert err.startswith("codev-sandbox: usage: ") and err.count("\n") == 1


def test_forbidden_mounts_are_refused_by_both_names(rig):
    data = rig.folder / "data"
    (data / "sub").mkdir(parents=True)
    (data / "sandbox-egress.json").write_text("{}")
    token = rig.folder / "login" / "token"
    token.parent.mkdir()
    token.write_text("t")
    (rig.folder / "link").symlink_to(data)
    gateway = ["--gateway-url", "https://g.example", "--gateway-token-file", token]
    for mount, extra, other in (
            (data, ["--app-data", data], data), (data / "sub", ["--app-data", data], data),
            (rig.folder / "link", ["--app-data", data], data),
            (data, ["--rules", data / "sandbox-egress.json"], data / "sandbox-egress.json"),
            (token.parent, gateway, token), (f"{token.parent}:/workspace/x:ro", gateway, token),
            (token.parent, [*gateway, "--ca-file", token], token),
            (rig.runtime, [], "codev-sandbox-"), (rig.machine, [], "vmlinux"),
            ("/proc:/workspace/x", [], "/proc/self/exe")):
        status, out, err = rig.run("", "--mount", mount, *extra)
        assert (status, out) == (125, b""), mount
        assert err.count("\n") == 1 and err.startswith("codev-sandbox: mounts: mount ")
        assert str(mount).split(":")[0].replace("link", "data") in err and str(other) in err
    rig.assert_nothing_left()


def qemu_arguments(rig, *options):
    process = rig.start(
        "channel = guest.ready(); guest.note('up'); channel.wait_for('shutdown'); " +
        EXIT % "'code': 0", *options)
    rig.wait_for_note("up")
    [qemu] = rig.children("-nodefaults")
    words = pathlib.Path(f"/proc/{qemu}/cmdline").read_text().split("\0")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    rig.assert_nothing_left()
    return words


@pytest.mark.parametrize("count", [1, 16, 17, 64])
def test_where_the_folders_devices_are_on_the_bus(rig, count):
    """With few folders each has its own slot, chosen by QEMU; otherwise eight share one, so that 64
    need eight of the 32."""
    options = []
    for number in range(count):
        (rig.folder / f"m{number}").mkdir()
        options += ["--mount", rig.folder / f"m{number}"]
    words = qemu_arguments(rig, "--file-server", "9p", *options)
    devices = [word for word in words if word.startswith("virtio-9p-pci,")]
    place = ",multifunction=on,addr={:x}.{:x}" if count > 16 else ""
    assert devices == [
        f"virtio-9p-pci,fsdev=m{n},mount_tag=m{n}" + place.format(16 + n // 8, n % 8)
        for n in range(count)
    ]


@pytest.mark.parametrize("options", [[], ["--qemu-arg", "-icount", "--qemu-arg", "shift=0"]])
def test_an_emulated_processor_is_told_its_counters_rate(rig, options):
    """Where the guest gets this host's counter, which has a constant rate."""
    words = qemu_arguments(rig, *options)
    told = re.search(r" tsc_early_khz=(\d+)$", words[words.index("-append") + 1])
    constant = re.search(r"^flags\b.*\bnonstop_tsc\b",
                         pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    assert bool(told) == bool(constant and words[words.index("-accel") + 1] == "tcg"
                              and not options)
    assert not told or 100_000 < int(told[1]) < 10_000_000


def test_rules_without_a_gateway(rig):
    rules = rig.folder / "rules" / "r.json"
    rules.parent.mkdir()
    rules.write_text("{}")
    status, _, err = rig.run("channel = guest.ready(); " + EXIT % "'code': 0", "--rules", rules)
    assert (status, err) == (
        0, "codev-sandbox: no gateway login, so there is no egress and the rules have no effect\n")
    rules.write_text('{"npm": 1}')
    status, _, err = rig.run("channel = guest.ready(); " + EXIT % "'code': 0", "--rules", rules)
    assert status == 125 and f"{rules}:1:9: " in err.splitlines()[-1], err
    rig.assert_nothing_left()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_asks_for_an_orderly_end(rig, number):
    scenario = """
channel = guest.ready()
guest.note('up')
guest.note(channel.wait_for('shutdown'))
channel.send({'event': 'exit', 'signal': 15})
channel.wait_for('ack')
"""
    process = rig.start(scenario)
    rig.wait_for_note("up")
    process.send_signal(number)
    assert process.wait(PATIENCE) == 143
    assert rig.notes()[1] == {"command": "shutdown", "grace_ms": 5000}
    rig.assert_nothing_left()


def test_a_second_signal_kills(rig):
    process = rig.start(
        "channel = guest.ready(); guest.note('up'); channel.wait_for('shutdown'); "
        "guest.note('asked');"
        "time.sleep(1000)")
    rig.wait_for_note("up")
    process.send_signal(signal.SIGTERM)
    rig.wait_for_note("asked")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 143
    rig.assert_nothing_left()


def test_a_signal_before_hello_ends_at_once(rig):
    process = rig.start("guest.note('on'); time.sleep(1000)")
    rig.wait_for_note("on")
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 130
    rig.assert_nothing_left()


def test_sigkill_leaves_no_process_and_the_next_start_sweeps(rig):
    process = rig.start("channel = guest.ready(); guest.note('up'); time.sleep(1000)")
    rig.wait_for_note("up")
    process.kill()
    process.wait(PATIENCE)
    end = time.monotonic() + PATIENCE
    while rig.children() and time.monotonic() < end:
        time.sleep(0.02)
    assert rig.children() == []
    assert len(rig.run_folders()) == 1
    assert rig.run("channel = guest.ready(); " + EXIT % "'code': 0")[0] == 0
    rig.assert_nothing_left()


def test_a_killed_helper_ends_the_sandbox(rig):
    process = rig.start(
        "channel = guest.ready(); guest.note({'pid': os.getpid()}); guest.note('up'); "
        "time.sleep(1000)"
    )
    rig.wait_for_note("up")
    os.kill(rig.notes()[0]["pid"], signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 125
    assert b"codev-sandbox: " in err
    rig.assert_nothing_left()


def test_a_reader_that_leaves_ends_the_command(rig):
    scenario = """
import base64
channel = guest.ready()
data = base64.b64encode(bytes(1000)).decode()
try:
    for i in range(100):
        channel.send({'event': 'output', 'stream': 'stdout', 'data': data})
        time.sleep(0.01)
except OSError:
    pass
assert channel.wait_for('shutdown')
""" + EXIT % "'signal': 15"
    process = rig.start(scenario)
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(PATIENCE) == 143
    rig.notes()


def test_the_run_folder_is_private(rig):
    process = rig.start(
        "channel = guest.ready(); guest.note('up'); channel.wait_for('shutdown'); " +
        EXIT % "'code': 0", "--server-port", "80")
    rig.wait_for_note("up")
    [name] = rig.run_folders()
    folder = rig.runtime / name
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "way-in.sock").stat().st_mode) == 0o600
    process.terminate()
    assert process.wait(PATIENCE) == 0


def secrets_of(rig):
    return [
        note["config"]["way_in"]["secret"] for note in rig.notes()
        if isinstance(note, dict) and "config" in note
    ]


WAY_IN = """
import threading
tries = []
def talk(connection):
    %s
def serve(connection, port):
    tries.append(port)
    if len(tries) <= TRIES:
        return                                     # the end instead of OK: no listener yet
    connection.sendall(b'OK 1073741824\\n')
    line = b''
    while not line.endswith(b'\\n'):
        line += connection.recv(1)
    guest.note({'preface': line.decode(), 'port': port})
    connection.sendall(b'OK\\n')
    stream = guest.pieces(connection)
    talk(stream)
    stream.end()
guest.way_in(serve)
channel = guest.ready()
guest.note({'config': channel.config})
guest.note('up')
channel.wait_for('shutdown')
""" + EXIT % "'code': 0"


def way_in_scenario(talk, tries=0):
    """A guest that refuses this many connections and then runs `talk` on each."""
    return (WAY_IN % talk).replace("TRIES", str(tries))


def way_in(rig):
    [event] = [event for event in rig.events() if event["event"] == "way_in"]
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(PATIENCE)
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection.connect(event["path"])
            return connection
        except BlockingIOError:  # the backlog is full for a moment
            assert time.monotonic() < end
            time.sleep(0.01)


def over_tcp(rig):
    [event] = [event for event in rig.events() if event["event"] == "way_in"]
    host, port = event["tcp"].split(":")
    return socket.create_connection((host, int(port)), PATIENCE)


def receive_all(connection):
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


def test_the_way_in_joins_and_tries_again(rig):
    echo = """
    while data := connection.recv(65536):
        connection.sendall(data.upper())
        if data.endswith(b'bye'):
            return
"""
    process = rig.start(way_in_scenario(echo, 3), "--server-port", "8080")
    rig.wait_for_note("up")
    with way_in(rig) as connection:
        connection.sendall(b"hello ")
        connection.sendall(b"bye")
        assert receive_all(connection) == b"HELLO BYE"
    [secret] = secrets_of(rig)
    [seen] = [note for note in rig.notes() if "preface" in note]
    assert seen == {"preface": f"CODEV-IN 1 {secret}\n", "port": 4096}
    assert secret not in (rig.folder / "events").read_text()
    process.terminate()
    assert process.wait(PATIENCE) == 0
    rig.assert_nothing_left()


def test_a_reply_after_the_clients_end_of_sending_arrives_whole(rig):
    reply = """
    assert connection.recv(100) == b'request'
    time.sleep(1)
    connection.sendall(bytes(range(256)) * 4096)
"""
    process = rig.start(way_in_scenario(reply), "--server-port", "8080", "--port", "0")
    rig.wait_for_note("up")
    for connection in (way_in(rig), over_tcp(rig)):
        with connection:
            connection.sendall(b"request")
            connection.shutdown(socket.SHUT_WR)
            assert receive_all(connection) == bytes(range(256)) * 4096
    process.terminate()
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert b"warning: the way in is on 127.0.0.1:" in err


@pytest.mark.parametrize("last", [b"", b"\0", b"\0\5half"])
def test_a_stream_that_breaks_off_inside_is_no_end_outside(rig, last):
    """Whoever closed the connection to the guest: without the server's end piece it is an error."""
    part = f"""
    connection.sendall(b'a part')
    assert connection.recv(100) == b'go on'
    connection.connection.sendall({last!r})
    connection.end = lambda: None
"""
    rig.start(way_in_scenario(part), "--server-port", "8080", "--port", "0")
    rig.wait_for_note("up")
    with over_tcp(rig) as connection:
        assert connection.recv(6) == b"a part"
        connection.sendall(b"go on")
        with pytest.raises(ConnectionResetError):
            receive_all(connection)


@pytest.mark.parametrize("victim", ["--vsock-device", "--uds-path", "-append"],
                     ids=["launcher", "device", "qemu"])
def test_a_sandbox_that_dies_is_no_end_for_who_is_inside(rig, victim):
    part = """
    connection.sendall(b'a part')
    time.sleep(3600)
"""
    rig.start(way_in_scenario(part), "--server-port", "8080", "--port", "0")
    rig.wait_for_note("up")
    with over_tcp(rig) as connection:
        assert connection.recv(6) == b"a part"
        [pid] = rig.children(victim)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ConnectionResetError):
            receive_all(connection)


def test_what_a_client_sent_before_it_left_arrives(rig):
    collect = """
    data = b''
    while piece := connection.recv(65536):
        data += piece
    guest.note({'length': len(data)})
"""
    process = rig.start(way_in_scenario(collect), "--server-port", "8080")
    rig.wait_for_note("up")
    with way_in(rig) as connection:
        connection.sendall(bytes(1000000))
    rig.wait_for_note({"length": 1000000})
    process.terminate()
    assert process.wait(PATIENCE) == 0


def test_many_ways_in_one_stalled(rig):
    echo = """
    while data := connection.recv(65536):
        connection.sendall(data)
"""
    process = rig.start(way_in_scenario(echo), "--server-port", "8080")
    rig.wait_for_note("up")
    stalled = way_in(rig)
    stalled.setblocking(False)
    try:
        while True:
            stalled.send(bytes(65536))
    except BlockingIOError:
        pass
    connections = [way_in(rig) for _ in range(200)]  # more than are served at once
    for index, connection in enumerate(connections):
        connection.sendall(b"%d\n" % index)
        assert connection.makefile("rb").readline() == b"%d\n" % index
        connection.close()
    stalled.close()
    process.terminate()
    assert process.wait(PATIENCE) == 0
    rig.assert_nothing_left()


def test_without_a_server_port_there_is_no_way_in(rig):
    scenario = "channel = guest.ready(); guest.note(channel.config['way_in']); guest.note('up');" \
               "channel.wait_for('shutdown'); " + EXIT % "'code': 0"
    process = rig.start(scenario)
    rig.wait_for_note("up")
    [name] = rig.run_folders()
    assert not (rig.runtime / name / "way-in.sock").exists()
    assert rig.notes()[0] is None
    process.terminate()
    assert process.wait(PATIENCE) == 0


def test_events_are_json_lines_without_output(rig):
    scenario = "channel = guest.ready();" \
               "channel.send({'event': 'output', 'stream': 'stdout', 'data': 'aGk='}); " \
               + EXIT % "'code': 0"
    assert rig.run(scenario)[:2] == (0, b"hi")
    assert [event["event"] for event in rig.events()] == ["hello", "ready", "exit"]
    assert stat.S_IMODE(rig.events_file.stat().st_mode) == 0o600


def test_a_flood_of_events_fills_no_disk(rig):
    scenario = """
channel = guest.ready()
line = b'{"event":"new","x":"' + b'x' * 60000 + b'"}\\n'
for i in range(400):
    channel.send(line)
""" + EXIT % "'code': 0"
    assert rig.run(scenario)[0] == 0
    assert rig.events_file.stat().st_size < 17 * 1024 * 1024
    assert rig.events()[-1]["event"] == "notice"


def test_time_is_told_when_the_guest_asks(rig):
    """Each question gets one answer, at once and with the current time; the file of events does not
    record them."""
    scenario = """
channel = guest.ready()
for number in (1, 2, 2**62):
    before = time.time_ns()
    channel.send({"event": "time", "number": number})
    answer = channel.wait_for("time")
    assert before <= answer["unix_ns"] <= time.time_ns() and answer["number"] == number, answer
""" + EXIT % "'code': 0"
    assert rig.run(scenario)[0] == 0
    assert rig.notes() == []
    assert [event["event"] for event in rig.events()] == ["hello", "ready", "exit"]


def test_the_boot_configuration_has_the_time_at_which_it_is_sent(rig):
    """Not the time of the machine's start, which is seconds earlier."""
    scenario = """
time.sleep(1)
before = time.time_ns()
channel = guest.ready()
assert before <= channel.config["unix_ns"] <= time.time_ns(), channel.config
""" + EXIT % "'code': 0"
    assert rig.run(scenario)[0] == 0
    assert rig.notes() == []


def test_a_time_in_the_given_configuration_stays(rig):
    given = rig.folder / "config.json"
    given.write_text(json.dumps({"unix_ns": 12345}))
    scenario = "channel = guest.ready(); guest.note(channel.config['unix_ns']); "
    assert rig.run(scenario + EXIT % "'code': 0", "--config", given)[0] == 0
    assert rig.notes() == [12345]


def test_a_closed_standard_output_and_input(rig):
    command = rig.command()
    shell = 'exec "$@" <&- >&- 2>&-'
    scenario = "channel = guest.ready(); " \
        "channel.send({'event': 'output', 'stream': 'stdout', 'data': 'aGk='}); " \
               "assert channel.wait_for('input')['eof']; " + EXIT % "'code': 6"
    result = subprocess.run(["sh", "-c", shell, "sh", *command],
                            env=rig.environment(scenario),
                            timeout=PATIENCE)
    assert result.returncode == 6
    assert rig.notes() == []


def test_help_and_version():
    out = subprocess.run([BIN / "codev-sandbox", "--help"],
                         capture_output=True,
                         text=True,
                         check=True).stdout
    assert out.startswith("usage: codev-sandbox run") and "--gateway-token-file FILE" in out
    out = subprocess.run([BIN / "codev-sandbox", "--version"],
                         capture_output=True,
                         text=True,
                         check=True).stdout
    assert out.startswith("codev-sandbox ")


def test_what_faces_the_guest_gets_no_secret_of_the_environment(rig):
    """A guest that breaks out of the virtual machine could read the environment of the process that
    it took over."""
    status, _, err = rig.run(
        "guest.note({'environment': sorted(os.environ)}); channel = guest.ready(); " +
        EXIT % "'code': 0",
        environment={
            "MODEL_API_KEY": "s3cret",
            "LC_TIME": "C.UTF-8"
        })
    assert status == 0, err
    names = next(note["environment"] for note in rig.notes() if "environment" in note)
    assert "LC_TIME" in names and "PATH" in names
    assert "MODEL_API_KEY" not in names and "SSH_AUTH_SOCK" not in names
