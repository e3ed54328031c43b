"""A session of a small coding agent (test/world/agent_session.mjs, with common SDKs) in the
Debian-flavoured guest, against the demo gateway: it streams, calls a tool in the mounted folder,
uploads 20 MB, and disconnects in the middle of a stream.

`check` needs only the sandbox's output, its folder, the gateway's counters and the broker's log, so
it works for every kind of sandbox: test_wsl_agent_session.py uses it for the WSL rig."""
import json
import os
import pathlib
import shutil
import sys
import tempfile

from machine_harness import GUEST, SANDBOX, TOP, Gateway, Sandbox, wait_for

sys.path.insert(0, str(TOP / "test/world"))
import npm_modules  # noqa: E402

IMAGE = GUEST / "rootfs-debian.erofs"
SCRIPT = TOP / "test/world/agent_session.mjs"
SDKS = TOP / "test/system/clients"  # their lock file
TASK = "count the words\n"
COMMAND = "cat task.txt; id -un >>result.txt"
TEXT = f"The tool said: {TASK}"
EVENTS = 10
FOLDER, MODULES = "/workspace/app", "/workspace/sdk"
SECONDS = 600


def prepare(folder):
    """(the coding agent's folder, the SDKs' folder); the first contains script and task and belongs
    to codev."""
    app = pathlib.Path(folder) / "app"
    app.mkdir()
    (app / "task.txt").write_text(TASK)
    shutil.copy(SCRIPT, app)
    if os.geteuid() == 0:
        os.chown(app, 1000, 1000)
    return app, npm_modules.modules(SDKS)


def command():
    return ["node", f"{FOLDER}/{SCRIPT.name}", MODULES, FOLDER]


def gateway():
    return Gateway("--events", EVENTS, "--interval-ms", 20, "--tool-command", COMMAND)


def check(output, app, counters, log):
    """output: what the script printed; counters: the gateway's; log: the broker's lines for the
    gateway, in order."""
    steps = {line["step"]: line for line in map(json.loads, output.splitlines())}
    assert list(steps) == ["start", "anthropic", "openai", "upload", "left", "end"]
    assert steps["start"]["keys"] == ["codev-sandbox"] * 2, "a placeholder is all that is inside"
    for name in ("anthropic", "openai"):
        assert steps[name]["pieces"] == EVENTS and steps[name]["command"] == COMMAND and steps[
            name]["text"] == TEXT
    assert steps["anthropic"]["stop"] == "tool_use"
    assert (app / "result.txt"
            ).read_text() == "codev\ncodev\n", "each tool ran once, as codev, in the mounted folder"
    assert steps["upload"] == {"step": "upload", "length": 20_000_000, "same": True}
    assert steps["left"]["pieces"] == 3
    assert (counters["streams_finished"], counters["streams_cancelled"]) == (4, 1)
    assert counters["uploads_broken"] == 0 and counters["refused"] == 0
    asked = [(line["method"], line["path"], line["end"]) for line in log]
    messages, completions = "/gateway/v1/messages", "/gateway/v1/chat/completions"
    assert asked == [("POST", messages, "complete")] * 2 + [
        ("POST", completions, "complete")
    ] * 2 + [("POST", "/gateway/upload", "complete"), ("POST", messages, "cancelled")]
    assert log[4]["bytes_in"] == 20_000_000


def run_session(folder, program, watch):
    app, modules = prepare(folder)
    log_file = folder / "broker.log"
    with gateway() as upstream:
        options = [
            "--image", IMAGE, "--memory", 1024, "--mount", f"{app}:{FOLDER}", "--mount",
            f"{modules}:{MODULES}:ro", "--broker-log", log_file, "--cwd", FOLDER, *upstream.options
        ]
        with Sandbox(command(), options, programs=False, program=program) as sandbox:
            watch(sandbox)
            status, output = sandbox.finish(SECONDS)
            assert status == 0, sandbox.describe()
            sandbox.assert_nothing_left()
        wait_for(lambda: upstream.stats()["streams_cancelled"],
                 "the end of the stream that was left")
        log = [
            line for line in map(json.loads,
                                 log_file.read_text().splitlines()) if line.get("name") == "gateway"
        ]
        check(output, app, upstream.stats(), log)
        assert upstream.token not in output + log_file.read_text()


def session(program=SANDBOX, watch=lambda sandbox: None):
    """Runs the session in a sandbox of this program; `watch` is called with the running sandbox."""
    with tempfile.TemporaryDirectory(prefix="codev-a-", dir="/tmp") as name:
        os.chmod(name, 0o755)
        run_session(pathlib.Path(name), program, watch)


def test_an_agents_session_in_a_vm():
    session()
