"""Failed starts: each ends in an orderly power-off, with the stage and the reason in one line, and
leaves nothing behind.

The names of the stages come from a successful start, so a new stage needs no change here."""
import json
import os
import pathlib
import shutil
import signal
import tempfile

import pytest

import sanitizer_harness
from machine_harness import ARCH, CANNOT_START, GUEST, Gateway, Sandbox, run, wait_for

POWER_DOWN = "reboot: Power down"


def with_config(folder, config):
    """Options that merge a configuration (an object, or literal text) into the boot
    configuration."""
    path = pathlib.Path(folder) / "config.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return ["--config", path]


def failing(stage):
    """Options for a guest whose start fails in this stage (test/harness/init_fail_stage.c)."""
    image = sanitizer_harness.fail_stage_image(GUEST)
    return ["--image", image, "--env", f"{sanitizer_harness.FAIL_STAGE}={stage}"]


def failed(sandbox, stage):
    """Asserts that the start fails in this stage and ends as it should; returns the reason."""
    assert sandbox.status == CANNOT_START
    lines = [
        line for line in sandbox.complaint().splitlines()
        if line.startswith(f"codev-sandbox: {stage}: ")
    ]
    assert len(lines) == 1, sandbox.complaint()
    assert "panic" not in sandbox.console_at_end.lower() and "console:" not in sandbox.complaint()
    assert sandbox.text() == "", "the command never ran"
    return lines[0].removeprefix(f"codev-sandbox: {stage}: ")


def failed_inside(sandbox, stage):
    """The same where the guest refused: it reported that and powered off."""
    reason = failed(sandbox, stage)
    told = [
        event for event in sandbox.events_at_end if event["event"] in ("failed", "exit", "ready")
    ]
    assert [event["event"] for event in told] == ["failed"] and told[0]["stage"] == stage
    assert POWER_DOWN in sandbox.console_at_end, "an orderly power-off"
    assert "killed" not in sandbox.complaint() and "signal" not in reason
    return reason


@pytest.fixture(scope="module")
def stages():
    sandbox = run("true", ["--memory", 256])
    assert sandbox.status == 0
    return [event["name"] for event in sandbox.events_at_end if event["event"] == "stage"]


def test_stages_are_those_of_the_design(stages):
    assert stages == [
        "base", "config", "clock", "hostname", "account", "mounts", "network", "firewall",
        "cgroups", "relay", "self-test", "server"
    ]


def test_every_stage_that_fails_powers_off(stages):
    """With a gateway, mounts and a way in, so that each stage has something to undo."""
    with Gateway() as gateway:
        for stage in stages:
            options = [
                *failing(stage), *gateway.options, "--server-port", 4000, "--memory", 256
            ]
            sandbox = run("echo ran", options)
            assert "on purpose" in failed_inside(sandbox, stage), stage
            done = [event["name"] for event in sandbox.events_at_end if event["event"] == "stage"]
            assert done == stages[:max(stages.index(stage), 2
                                       )], "those before it were done, none after it"


def test_machine_that_failed_ends_by_itself():
    """QEMU exits with 0 when the machine powered off, and with another status when it was
    killed."""
    with tempfile.TemporaryDirectory(prefix="codev-", dir="/tmp") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)  # QEMU runs as an ordinary user
        status, program = folder / "status", folder / "qemu"
        status.touch()
        status.chmod(0o666)
        real = shutil.which("qemu-system-" + ARCH)
        program.write_text(f"#!/bin/bash\n{real} \"$@\"\necho $? >{status}\n")
        program.chmod(0o755)
        sandbox = run("true", [*failing("firewall"), "--qemu", program])
        assert sandbox.status == CANNOT_START and status.read_text() == "0\n"


MOUNT = {"type": "tmpfs", "source": "", "target": "/workspace/a"}

# One of each kind; test/unit/init/config/ has all.
BROKEN = {
    "an unknown key": ({
        "sever": {}
    }, "sever"),
    "an unknown key within": ({
        "server": {
            "prot": 1
        }
    }, "prot"),
    "uid 0": ({
        "account": {
            "uid": 0
        }
    }, "account.uid"),
    "the relay's account": ({
        "account": {
            "name": "codev-relay"
        }
    }, "codev-relay"),
    "a target in /etc": ({
        "mounts": [{
            **MOUNT, "target": "/etc"
        }]
    }, "/etc"),
    "a target that climbs": ({
        "mounts": [{
            **MOUNT, "target": "/workspace/../etc"
        }]
    }, ".."),
    "a target twice": ({
        "mounts": [MOUNT, MOUNT]
    }, "twice"),
    "a string for a truth": ({
        "user_namespaces": "no"
    }, "user_namespaces"),
    "a NUL in a path": ({
        "server": {
            "cwd": "/home\0/x"
        }
    }, "cwd"),
    "relay over TCP": ({
        "relay": {
            "listen": 8788,
            "transport": ["tcp:10.0.2.2:1"],
            "token": "0" * 64
        }
    }, "vsock"),
    "a way in over TCP": ({
        "way_in": {
            "listen": "tcp:0.0.0.0:1",
            "secret": "0" * 64
        }
    }, "way_in"),
}
SECRETS = ("0" * 64,)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_boot_configuration(name, tmp_path):
    config, word = BROKEN[name]
    sandbox = run("echo ran", [*with_config(tmp_path, config), "--memory", 256], programs=False)
    stages = [event["name"] for event in sandbox.events_at_end if event["event"] == "stage"]
    assert stages == ["base"], "nothing of it was applied"
    reason = failed_inside(sandbox, "config")
    assert word in reason and not any(secret in reason for secret in SECRETS)


def test_boot_configuration_too_big(tmp_path):
    sandbox = run("echo ran", with_config(tmp_path, {"server": {"env": {"A": "x" * (1 << 20)}}}))
    assert "too large" in failed(sandbox, "config")


@pytest.mark.parametrize("text, word", [("{", ":1:2"), ('{"a":1,"a":2}', "a"), ("[]", "object"),
                                        ('{"a":1}x', ":1:8"), ("", "")])
def test_configuration_file_that_is_no_json(text, word, tmp_path):
    sandbox = run("echo ran", with_config(tmp_path, text))
    assert word in failed(sandbox, "config")


def test_command_that_is_not_there():
    sandbox = run(["/no/such/program"])
    assert "/no/such/program" in failed_inside(sandbox, "server")


def test_working_directory_that_is_not_there():
    sandbox = run(["true"], ["--cwd", "/no/such/folder"], programs=False)
    assert "/no/such/folder" in sandbox.complaint() and sandbox.status == CANNOT_START


def test_server_that_never_listens(tmp_path):
    options = [*with_config(tmp_path, {"server": {"ready_timeout_ms": 300}}), "--server-port", 4000]
    sandbox = run("sleep 600", options)
    assert "4000" in failed_inside(sandbox, "server")


def test_server_that_ends_before_it_listens():
    sandbox = run("exit 7", ["--server-port", 4000])
    assert sandbox.status == 7
    assert not any(event["event"] in ("ready", "failed") for event in sandbox.events_at_end)


def test_gateway_that_is_not_there_is_no_failure_of_the_start():
    with Gateway() as gateway:
        options = gateway.options
        gateway.process.stdin.close()
        gateway.process.wait(60)
        sandbox = run("/workspace/programs/probe http GET /gateway/v1/models", options)
        gateway.process.stdin = open(os.devnull)
    assert sandbox.status == 0 and "502" in sandbox.text() and "codev_" in sandbox.text()


# --- the host is absent, or hostile ---------------------------------------------------------------

def test_host_that_disappears_takes_the_machine_with_it():
    """After kill -9 of the launcher no process is left, and the next start removes the folder."""
    with tempfile.TemporaryDirectory(prefix="codev-r-", dir="/tmp") as runtime, \
            Gateway() as gateway, \
            Sandbox("echo up; sleep 600", gateway.options, runtime=runtime) as sandbox:
        sandbox.wait_output("up")
        folder = sandbox.run_folder()
        assert len(sandbox.left_behind()) > 4
        os.kill(sandbox.process.pid, signal.SIGKILL)
        sandbox.process.wait(60)
        wait_for(
            lambda: all("broker" in line or "virtiofsd" in line
                        for line in sandbox_processes(sandbox)), "the machine's end")
        wait_for(lambda: not sandbox_processes(sandbox), "the end of the rest")
        assert folder.exists()
        with Sandbox("true", runtime=runtime) as following:
            assert following.finish()[0] == 0
        assert not folder.exists() and os.listdir(runtime) == []


def sandbox_processes(sandbox):
    return [line for line in sandbox.left_behind() if not line.startswith("/tmp/codev-r-")]


def test_kernel_that_is_none(tmp_path):
    kernel = tmp_path / "vmlinux"
    kernel.write_bytes(b"\xff" * 4096)  # not random bytes: QEMU starts 3 in 100 of those
    sandbox = run("true", ["--kernel", kernel])
    assert sandbox.status == CANNOT_START and "qemu" in sandbox.complaint().lower()


@pytest.mark.parametrize("words, stage", [(["--mount", "/no/such/folder"], "mounts"),
                                          (["--memory", "1"], ""),
                                          (["--image", "/no/such/image"], "machine"),
                                          (["--config", "/no/such/file"], "config")])
def test_options_that_cannot_be(words, stage):
    sandbox = run("true", words)
    assert sandbox.status in (
        CANNOT_START, 64) and words[1] in sandbox.complaint() and stage in sandbox.complaint()
