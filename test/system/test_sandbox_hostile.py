"""A guest whose kernel and init an attacker controls: its messages must not be taken for the host's
own, nor send control sequences to a terminal."""
import json
import os
import pty
import select
import subprocess

import pytest
from launcher_harness import PATIENCE, Rig

EXIT = "channel.send({'event': 'exit', %s}); assert channel.wait_for('ack')"


@pytest.fixture
def rig():
    rig = Rig()
    yield rig
    rig.close()


@pytest.mark.parametrize("name", ["way_in", "broker_ready", "broker", "broker_exit", "notice"])
def test_events_of_the_host_cannot_be_said_by_the_guest(rig, name):
    scenario = (f"channel = guest.ready(); channel.send({{'event': {name!r}, 'path': '/tmp/mine', "
                f"'text': 'mine'}}); time.sleep(60)")
    status, _, err = rig.run(scenario)
    assert status == 125 and err.count("\n") == 1 and f"`{name}`" in err
    assert not any("mine" in json.dumps(event) for event in rig.events())


@pytest.mark.parametrize("line", [
    """b'{"event":"new","event":"way_in"}'""", """b'{"event":"new","e\\\\u0076ent":"notice"}'""",
    """b'{"event":"x"' + b''.join(b',"%d":0' % i for i in range(500)) + b'}'"""
],
                         ids=["twice", "escaped", "many"])
def test_an_event_that_can_be_read_two_ways_is_none(rig, line):
    status, _, err = rig.run(
        f"channel = guest.ready(); channel.send({line} + b'\\n'); time.sleep(60)")
    assert status == 125 and "is not an event" in err
    assert all(event["event"] in ("hello", "ready", "notice") for event in rig.events())


def test_warnings_without_end_are_told_for_a_while(rig):
    scenario = ("channel = guest.ready()\nfor i in range(5000): channel.send({'event': 'warning', "
                "'text': 'w' * 100})\n") + EXIT % "'code': 0"
    status, _, err = rig.run(scenario)
    assert status == 0
    assert err.count("\n") == 1001 and err.endswith("further ones are omitted\n")


def on_terminal(rig, scenario, *arguments, which):
    """What a terminal receives that is standard output, or error, of a run whose other descriptors
    are no terminals."""
    ours, theirs = pty.openpty()
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, which: theirs}
    process = rig.start(scenario, *arguments, **streams)
    os.close(theirs)
    seen = b""
    while select.select([ours], [], [], PATIENCE)[0]:
        try:
            seen += os.read(ours, 65536)
        except OSError:  # its other end was closed
            break
    os.close(ours)
    return process.wait(PATIENCE), seen


@pytest.mark.parametrize("which", ["stdout", "stderr"])
def test_text_on_a_terminal_steers_nothing(rig, which):
    scenario = """
import base64
channel = guest.ready()
for piece in (b'\\x1b]52;c;bWluZQ==\\x07one\\n', b'tw\\xc3', b'\\xb6\\x1b[2J\\n\\xe2\\x82'):
    channel.send({'event': 'output', 'stream': %r, 'data': base64.b64encode(piece).decode()})
""" % which + EXIT % "'code': 3"
    status, seen = on_terminal(rig, scenario, which=which)
    assert status == 3
    assert seen.replace(b"\r\n",
                        b"\n") == "\\x1b]52;c;bWluZQ==\\x07one\ntwö\\x1b[2J\n\\xe2\\x82".encode()


def test_a_terminals_bytes_are_taken_from_a_command_that_has_one_only(rig):
    scenario = ("channel = guest.ready(); channel.send({'event': 'output', 'stream': 'tty', "
                "'data': 'G1sySg=='}); time.sleep(60)")
    status, seen = on_terminal(rig, scenario, which="stdout")
    assert (status, seen) == (125, b"")
    config = rig.folder / "config.json"
    config.write_text(json.dumps({"server": {"stdio": "tty"}}))
    scenario = scenario.replace("time.sleep(60)", EXIT % "'code': 0")
    assert on_terminal(rig, scenario, "--config", config, which="stdout") == (0, b"\x1b[2J")


@pytest.mark.parametrize("option", ["--events", "--console", "--broker-log", "--config"])
def test_what_the_host_writes_or_obeys_is_not_for_the_guest(rig, option):
    work, victim = rig.folder / "work", rig.folder / "victim"
    work.mkdir()
    victim.write_text("{}")
    (work / "planted").symlink_to(victim)
    rig.events_file.unlink(missing_ok=True)
    command = [word for word in rig.command() if word not in ("--events", str(rig.events_file))]
    for mode, answer in ("rw", 125), ("ro", 0):
        result = subprocess.run([
            *command, "--file-server", "9p", "--mount", f"{work}:/workspace/w:{mode}", option,
            work / "planted"
        ],
                                env=rig.environment("channel = guest.ready(); " +
                                                    EXIT % "'code': 0"),
                                stdin=subprocess.DEVNULL,
                                capture_output=True,
                                text=True,
                                timeout=PATIENCE)
        assert result.returncode == answer, result.stderr
        if mode == "rw":
            assert result.stderr.startswith(
                f"codev-sandbox: mounts: mount {work} refused: it contains the ")
            assert victim.read_text() == "{}"


def test_rules_of_the_app_that_lie_in_a_mount_by_a_link(rig):
    data, work = rig.folder / "data", rig.folder / "work"
    data.mkdir()
    work.mkdir()
    (work / "rules.json").write_text("{}")
    (data / "sandbox-egress.json").symlink_to(work / "rules.json")
    status, _, err = rig.run("", "--mount", work, "--app-data", data)
    assert status == 125
    assert err == (f"codev-sandbox: mounts: mount {work} refused: it contains the rules file "
                   f"{work / 'rules.json'}\n")


@pytest.mark.parametrize("option", ["--broker", "--qemu", "--virtiofsd", "--vsock-device"])
def test_programs_of_the_host_are_not_the_guests_to_change(rig, option):
    work = rig.folder / "work"
    work.mkdir()
    program = work / "program"
    program.write_bytes(rig.fake.read_bytes())
    program.chmod(0o755)
    command = rig.command("--file-server", "9p", "--mount", work)
    if option in command:
        at = command.index(option)
        del command[at:at + 2]
    result = subprocess.run([*command, option, program],
                            env=rig.environment("channel = guest.ready(); " + EXIT % "'code': 0"),
                            stdin=subprocess.DEVNULL,
                            capture_output=True,
                            text=True,
                            timeout=PATIENCE)
    assert result.returncode == 125
    assert result.stderr == (f"codev-sandbox: mounts: mount {work} refused: it contains the "
                             f"program {program}\n")


def test_ready_counts_once(rig):
    scenario = ("channel = guest.ready()\nfor i in range(100): channel.send({'event': 'ready', "
                "'boot_ms': 1.0, 'checks': []})\n") + EXIT % "'code': 0"
    status, _, err = rig.run(scenario, "--timeline")
    assert status == 0 and err.count("together") == 1


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR"])
def test_authorities_that_the_broker_trusts_are_not_the_guests_to_change(rig, name):
    work = rig.folder / "work"
    trusted = work / "trusted"
    trusted.mkdir(parents=True) if name.endswith("DIR") else (work.mkdir(), trusted.write_text(""))
    value = f"{rig.folder}/other:{trusted}" if name.endswith("DIR") else str(trusted)
    process = rig.start("", "--mount", work, environment={name: value})
    assert process.wait(PATIENCE) == 125
    assert f"mount {work} refused: it contains the CA " in process.stderr.read().decode()
