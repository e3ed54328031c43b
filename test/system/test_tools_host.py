"""This machine's own package clients, newer than the guest image's, with a real broker and the
registries of test/world, and only the environment that codev-init would set, which its own code
prints.

test/qemu/test_tools.py tests the same commands (test/world/inside.sh) in a sandbox; here they run
in a second, and the broker may have sanitizers."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading

import pytest

from broker_harness import SANITIZED, TOP, Broker, Relay

sys.path.insert(0, str(TOP / "test/world"))
import world  # noqa: E402
import world_npm  # noqa: E402
from prepare import prepare  # noqa: E402

BUILD = pathlib.Path(os.environ.get("CODEV_BUILD", TOP / "build"))
SETTINGS = BUILD / ("san/test" if SANITIZED else "test") / "tool_settings"
PARTS = f"parts: {world_npm.COUNT}"
CASES = {
    "npm_install": PARTS,
    "npm_ci": PARTS,
    "npm_ci_private": "added 1 package",
    "pnpm": PARTS,
    "yarn_classic": PARTS,
    "yarn_berry": PARTS,
    "git": "[new branch]      HEAD -> from-inside",
    "archive": "app-1/README"
}
MISSING = {
    "npm_install": "npm-files",
    "pnpm": "npm-files",
    "yarn_classic": "npm-files",
    "yarn_berry": "npm-files",
    "archive": "github-archive"
}
SECONDS = 300


class PortRelay(Relay):
    """A relay on a port that is known before the broker starts, as the broker writes it into
    documents."""

    def __init__(self, broker, listener):
        self.broker, self.listener = broker, listener
        self.acceptor = threading.Thread(target=self._accept, daemon=True)
        self.acceptor.start()


class Outcome:
    def __init__(self, folder, outside, rules, cases):
        folder.mkdir()
        home = folder / "home"
        home.mkdir()
        inside = prepare(folder / "inside", outside)
        (inside / "clients").rmdir()
        (inside / "clients").symlink_to(world.modules(world.HERE / "clients"))
        listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        port = listener.getsockname()[1]
        printed = subprocess.run([SETTINGS, str(port), home, *rules],
                                 check=True,
                                 capture_output=True,
                                 text=True).stdout
        settings, _, gitconfig = printed.partition("\n\n")
        (home / "system-gitconfig").write_text(f"[safe]\n\tdirectory = *\n{gitconfig}")
        environment = dict(line.split("=", 1) for line in settings.splitlines())
        environment |= {
            "GIT_CONFIG_SYSTEM": str(home / "system-gitconfig"),
            "BASE": f"http://127.0.0.1:{port}",
            "YARN_CACHE_FOLDER": str(home / "yarn")
        }  # yarn 1 leaves root's in /usr/local
        options = [
            "--ca-file",
            str(outside.authority.ca), "--guest-url", environment["BASE"], "--proxy", "none"
        ]
        with Broker(folder, rules=rules, ca=False,
                    options=options) as broker, PortRelay(broker, listener):
            done = subprocess.run(["sh", inside / "inside.sh", inside, *cases],
                                  env=environment,
                                  capture_output=True,
                                  text=True,
                                  timeout=SECONDS)
            self.log = broker.log_lines()
        self.results = {line.split()[0]: int(line.split()[1]) for line in done.stdout.splitlines()}
        self.output = {case: (inside / f"{case}.out").read_text(errors="replace") for case in cases}


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    with world.World(tmp_path_factory.mktemp("outside") / "world") as running:
        yield running


@pytest.fixture(scope="module")
def complete(tmp_path_factory, outside):
    return Outcome(tmp_path_factory.mktemp("tools") / "complete", outside, outside.rules, CASES)


@pytest.fixture(scope="module")
def missing(tmp_path_factory, outside):
    rules = {name: url for name, url in outside.rules.items() if name in world.COMPANIONS}
    return Outcome(tmp_path_factory.mktemp("tools") / "missing", outside, rules, MISSING)


@pytest.mark.parametrize("case", CASES)
def test_it_simply_works(complete, case):
    assert complete.results[case] == 0, complete.output[case]
    assert CASES[case] in complete.output[case]
    assert not [line for line in complete.log if line["end"] == "refused"]


@pytest.mark.parametrize("case", MISSING)
def test_a_missing_companion_is_named(missing, outside, case):
    host = outside.url(MISSING[case]).partition("://")[2]
    assert missing.results[case] != 0, missing.output[case]
    assert f"_undeclared/{host}" in missing.output[
        case] or f"no rule for https://{host}" in missing.output[case]


def test_without_the_broker_the_documents_lead_elsewhere(outside):
    """The control: the documents of test/world do link to further hosts."""
    for name, path in (("npm", "world-app"), ("pypi", "simple/world-app/"), ("crates",
                                                                             "config.json")):
        said = subprocess.run([
            "curl", "-sS", "--noproxy", "*", "--cacert", outside.authority.ca,
            f"{outside.url(name)}/{path}"
        ],
                              check=True,
                              capture_output=True,
                              text=True).stdout
        assert outside.url(f"{name}-files") in said
        assert outside.url(name) not in said.replace(outside.url(f"{name}-files"), "")
    assert json.loads(said)["dl"] == f"{outside.url('crates-files')}/crates"
