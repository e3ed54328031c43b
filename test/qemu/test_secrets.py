"""The gateway's token is nowhere in the guest, and codev cannot read the sandbox's own token.

As a control, each search must also find a value that is there: a marker of the test, and in the
guest's memory the sandbox's own token, which the relay has."""
import base64
import mmap
import os
import secrets
import tempfile

import pytest

from machine_harness import PROBE, Gateway, Look, Sandbox, SpiedBroker

REQUESTS = f"""\
set -e
{PROBE} http GET /gateway/v1/models >/dev/null
{PROBE} http POST /gateway/upload --body-bytes 200000 >/tmp/upload
{PROBE} http POST '/gateway/v1/messages?events=3' --body-bytes 10 >/dev/null
{PROBE} http GET /gateway/nowhere >/dev/null
{PROBE} http GET /registry/codev-demo >/dev/null
echo $MARKER >/tmp/marker
echo served
{Look.CODEV}
"""
NO_FILES = r"-path /proc/\* -prune -o -path /sys -prune -o -path /workspace -prune -o"


def forms(secret):
    """The encodings in which a secret could be in memory."""
    raw = secret.encode()
    found = {"as it is": raw, "in hex": raw.hex().encode(), "in UTF-16": secret.encode("utf-16-le"),
             "after Basic": base64.b64encode(b"user:" + raw), "reversed": raw[::-1]}
    for shift in range(
            3):  # base64 at any offset: the part that does not depend on the neighbouring bytes
        coded = base64.b64encode(b"x" * shift + raw)
        found[f"in base64, shifted by {shift}"] = coded[4 if shift else 0:len(coded) - 4]
    return found


def found_in(memory, secret):
    with open(memory, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as image:
        return [name for name, text in forms(secret).items() if image.find(text) >= 0]


def hidden_pattern(secret):
    """A regular expression for the secret that does not match its own text, so that grep does not
    find its own argument."""
    return f"{secret[:8]}[{secret[8]}]{secret[9:40]}"


@pytest.fixture(scope="module")
def scene():
    """A running sandbox that has made requests."""
    marker = secrets.token_hex(24)
    with tempfile.TemporaryDirectory(prefix="codev-s-",
                                     dir="/tmp") as folder, Gateway("--interval-ms", 10) as gateway:
        os.chmod(folder, 0o755)
        look, spy = Look(folder), SpiedBroker(folder)
        options = [
            *look.options, *look.root_options, *spy.options, *gateway.options, "--memory", 256,
            "--env", f"MARKER={marker}"
        ]
        with Sandbox(REQUESTS, options) as sandbox:
            sandbox.wait_output("served")
            sandbox.gateway, sandbox.look, sandbox.marker = gateway, look, marker
            sandbox.own_token = spy.token(
            )
            yield sandbox


def test_memory_image_holds_no_gateway_token(scene):
    memory = scene.run_folder() / "memory"
    assert "as it is" in found_in(memory, scene.marker)
    assert "as it is" in found_in(memory, scene.own_token)
    assert found_in(memory, scene.gateway.token) == []


def test_gateway_did_get_the_token(scene):
    """Otherwise the search above proves nothing."""
    assert '"length": 200000' in scene.look.codev("cat /tmp/upload")


def test_no_file_holds_the_gateway_token(scene):
    grep = lambda secret: scene.look.root(
        rf"find / {NO_FILES} -type f -exec grep -l -e '{hidden_pattern(secret)}' {{}} + 2>/dev/null"
    )
    assert "/tmp/marker" in grep(scene.marker)
    assert grep(scene.gateway.token) == ""


def test_no_environment_and_no_command_line_holds_a_token(scene):
    texts = scene.look.root(
        "cat /proc/cmdline; for p in /proc/[0-9]*; do tr '\\0' '\\n' <$p/environ; tr '\\0' '\\n' "
        "<$p/cmdline; "
        "done 2>/dev/null")
    assert scene.marker in texts and "codev.control=" in texts
    assert scene.gateway.token not in texts and scene.own_token not in texts


def test_own_token_is_in_no_file_of_codev(scene):
    grep = lambda secret: scene.look.codev(
        rf"find / {NO_FILES} -type f -exec grep -l -e '{hidden_pattern(secret)}' {{}} + 2>/dev/null"
    )
    assert "/tmp/marker" in grep(scene.marker)
    assert grep(scene.own_token) == ""


def test_codev_cannot_look_into_init_and_agent(scene):
    agent = scene.look.agent_pid()
    for pid in (1, agent):
        files = " ".join(f"/proc/{pid}/{name}" for name in ("environ", "cmdline", "maps", "mem",
                                                            "fd/0", "auxv", "stat", "root/"))
        count = scene.look.root(f"for f in {files}; do [ -e $f ] && echo there; done").count(
            "there")
        assert count >= 7, "root sees them"
        script = (f"for f in {files}; do [ -e $f ] && echo there; head -c 1 $f && echo read; done "
                  f"2>/dev/null; ls /proc/{pid}/fd && echo read")
        assert scene.look.codev(script) in ("", f"ls: /proc/{pid}/fd: No such file or directory\n")
    own = scene.look.codev("head -c 1 /proc/$$/environ >/dev/null && echo read")
    assert own == "read\n"


def test_probe_is_refused_at_the_agent(scene):
    agent = scene.look.agent_pid()
    for pid in (1, agent):
        for verb in ("ptrace", "procmem", "kill"):
            said = scene.look.codev(f"{PROBE} {verb} {pid}; echo status $?")
            assert said.endswith("status 0\n") and "refused" in said


def test_own_token_is_in_no_event_and_no_output(scene):
    told = scene.events_path.read_text() + scene.text() + scene.complaint() + scene.console()
    assert '"broker_ready"' in told
    assert scene.own_token not in told and scene.gateway.token not in told
    for path in scene.runtime.rglob("*"):
        if path.is_file() and path.name != "memory":
            assert scene.gateway.token.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    "target", ["/gateway/v1/models", "/registry/codev-demo", "/", "/nowhere/", "/_undeclared/x"])
@pytest.mark.parametrize("method", ["TRACE", "TRACK"])
def test_trace_is_refused_everywhere(scene, method, target):
    before = scene.gateway.stats()["requests"]
    said = scene.look.codev(f"{PROBE} http {method} {target} --header \"X-Echo: come back\"")
    assert said.startswith(("HTTP/1.1 405 ", "HTTP/1.1 400 "))
    assert '"error"' in said and "come back" not in said
    assert scene.gateway.stats()["requests"] == before
