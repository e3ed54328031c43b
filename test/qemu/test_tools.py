"""Unmodified package managers and git, with only the environment that codev-init sets, in the
Debian-flavoured guest, against the registries of test/world. As with the real ones, their documents
link to further hosts.

Two sandboxes run all cases. In the first every rule is declared: each client succeeds, and the log
names only declared upstreams. In the second the rules of those further hosts (companions,
doc/rules.md) are missing: a client that needs one fails without retries, and its own output, or
else the broker's log, names the missing rule. The commands are in test/world/inside.sh."""
import collections
import json
import os
import pathlib
import sys
import tempfile
import urllib.parse

import pytest

from machine_harness import GUEST, TOP, Sandbox

sys.path.insert(0, str(TOP / "test/world"))
import world  # noqa: E402
import world_git  # noqa: E402
import world_npm  # noqa: E402
from prepare import prepare  # noqa: E402

IMAGE = GUEST / "rootfs-debian.erofs"
SECONDS = 1200  # seconds for all cases of one sandbox; not a limit on speed
TRIES = 2  # for one address: npm and pnpm fetch the same files
LFS_TRIES = 8  # four tries, as init sets it, in each of two passes
INSIDE = "/workspace/world"
PARTS = f"parts: {world_npm.COUNT}"

# case -> text in its output when it succeeds
CASES = {
    "npm_install": PARTS,
    "npm_ci": PARTS,
    "npm_ci_private": "added 1 package",
    "pnpm": PARTS,
    "yarn_classic": PARTS,
    "yarn_berry": PARTS,
    "pip": "names: ['world-lib', 'world-old on world-lib'] world-html",
    "cargo": "world-lib-1.0.0.crate",
    "go": "/sumdb/lookup/world.test/app@v1.1.0: 200 OK",
    "git": "[new branch]      HEAD -> from-inside",
    "git_lfs": "large.bin",
    "archive": "app-1/README",
    "apt": "world-hello 1.0\nworld-fix_2.0_all.deb",
}
# case -> the companion that it lacks in the second sandbox
MISSING = {
    "npm_install": "npm-files",
    "pnpm": "npm-files",
    "yarn_berry": "npm-files",
    "pip": "pypi-files",
    "cargo": "crates-files",
    "go": "sumdb",
    "git_lfs": "github-lfs",
    "archive": "github-archive"
}


class Session:
    """Runs one sandbox from start to end: results is case -> (exit status, seconds)."""

    def __init__(self, folder, outside, rules, lanes, environment=()):
        folder.mkdir()
        (folder / "token").write_text("sk-none\n")
        (folder / "rules.json").write_text(json.dumps(rules))
        for name in ("token", "rules.json"):
            (folder / name).chmod(0o600)
        self.inside = prepare(folder / "inside", outside)
        self.log_file = folder / "broker.log"
        clients = world.modules(world.HERE / "clients")
        options = [
            "--image", IMAGE, "--memory", 2048, "--mount", f"{self.inside}:{INSIDE}", "--mount",
            f"{clients}:{INSIDE}/clients:ro", "--gateway-url", "https://127.0.0.1:1",
            "--gateway-token-file", folder / "token", "--ca-file", outside.authority.ca, "--rules",
            folder / "rules.json", "--proxy", "none", "--broker-log", self.log_file
        ]
        options += [word for setting in environment for word in ("--env", setting)]
        script = " ".join(f"sh {INSIDE}/inside.sh {INSIDE} {' '.join(lane)} &"
                          for lane in lanes) + " wait"
        with Sandbox(script, options, programs=False) as sandbox:
            status, text = sandbox.finish(SECONDS)
            assert status == 0, sandbox.describe()
        lines = [line.split() for line in text.splitlines()]
        self.results = {name: (int(status), int(seconds)) for name, status, seconds in lines}
        self.log = [json.loads(line) for line in self.log_file.read_text().splitlines()]
        print(json.dumps(self.results))

    def output(self, case):
        return (self.inside / f"{case}.out").read_text(errors="replace")


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory(prefix="codev-tools-", dir="/tmp") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


@pytest.fixture(scope="module")
def outside(folder):
    with world.World(folder / "world") as running:
        yield running


@pytest.fixture(scope="module")
def complete(folder, outside):
    lanes = [["environment", "npm_install", "npm_ci", "pip", "npm_ci_private", "cargo", "go"],
             ["yarn_berry", "pnpm", "yarn_classic", "git", "git_lfs", "archive", "apt"]]
    return Session(folder / "complete", outside, outside.rules, lanes)


@pytest.fixture(scope="module")
def missing(folder, outside):
    rules = {name: url for name, url in outside.rules.items() if name in world.COMPANIONS}
    lanes = [["npm_install", "pip", "cargo", "go", "archive"], ["yarn_berry", "pnpm", "git_lfs"]]
    return Session(folder / "missing", outside, rules, lanes, ["KEEP_GOSUMDB=1"])


def refusals(session):
    """(rule or _undeclared/HOST, reason) of each request that the broker refused, except the
    self-test's request for /."""
    refused = set()
    for line in session.log:
        if line.get("end") == "refused" and line["path"] != "/":
            words = urllib.parse.unquote(line["path"]).split("/")
            refused.add(
                ("/".join(words[1:3]) if words[1] == "_undeclared" else words[1], line["error"]))
    return refused


@pytest.mark.parametrize("case", CASES)
def test_it_simply_works(complete, case):
    assert complete.results.get(case, ("never ended",))[0] == 0, complete.output(case)
    assert CASES[case] in complete.output(case)


def test_only_declared_upstreams_were_asked(complete, outside):
    """By the broker's log, which names each companion, and by the requests that the servers got."""
    names = {line.get("name") for line in complete.log if line.get("status", 0) < 400}
    assert names == set(world.NAMES)
    assert not refusals(complete)
    assert {request["host"]
            for request in outside.requests()} <= {f"{name}.localhost"
                                                   for name in world.NAMES}


def test_what_came_is_what_was_sent(complete, outside):
    """The clients check the packages' hashes; this checks the files without one."""
    assert complete.output("git_lfs").split()[-2] == outside.lfs_oid
    repository = outside.folder / "git" / world_git.REPOSITORY
    assert (repository / "refs/heads/from-inside").exists(), "what was pushed is there"


def test_nothing_beside_the_environment_of_init(complete):
    """No other setting of a package manager reaches the clients."""
    settings = {line.partition("=")[0] for line in complete.output("environment").splitlines()}
    prefixes = ("NPM_", "YARN_", "COREPACK_", "PIP_", "UV_", "CARGO_", "GO", "GIT_", "APT_",
                "OPENAI_", "ANTHROPIC_")
    assert {name
            for name in settings if name.startswith(prefixes)} == {
                "NPM_CONFIG_REGISTRY", "NPM_CONFIG_OMIT_LOCKFILE_REGISTRY_RESOLVED",
                "NPM_CONFIG_UPDATE_NOTIFIER", "COREPACK_NPM_REGISTRY",
                "COREPACK_ENABLE_DOWNLOAD_PROMPT", "YARN_NPM_REGISTRY_SERVER",
                "YARN_UNSAFE_HTTP_WHITELIST", "YARN_ENABLE_TELEMETRY", "PIP_INDEX_URL",
                "PIP_DISABLE_PIP_VERSION_CHECK", "UV_DEFAULT_INDEX", "CARGO_REGISTRIES_CODEV_INDEX",
                "GOPROXY", "GOSUMDB", "APT_CONFIG", "OPENAI_BASE_URL", "OPENAI_API_KEY",
                "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"
            }


def test_nobody_waits_and_tries_again(missing):
    """A client retries after an error that it takes for a network fault, with pauses of up to a
    minute."""
    asked = collections.Counter(line["path"] for line in missing.log
                                if line.get("end") == "refused")
    large = {path: count for path, count in asked.items() if "/github-lfs." in path}
    assert max(large.values()) <= LFS_TRIES
    assert max((asked - collections.Counter(large)).values()) <= TRIES, asked.most_common(3)


@pytest.mark.parametrize("case", MISSING)
def test_a_missing_companion_is_named(missing, outside, case):
    status, _ = missing.results[case]
    assert status != 0, missing.output(case)
    name = MISSING[case]
    host = outside.url(name).partition("://")[2]
    wanted = [
        f"_undeclared/{host}", f"_undeclared/{host.replace(':', '%3A')}",
        f"no rule for https://{host}", f"/{name}/"
    ]
    assert any(text in missing.output(case) for text in wanted), missing.output(case)


def test_the_log_names_each_missing_companion(missing, outside):
    """With the reason; the companion got no request."""
    expected = {("_undeclared/" + outside.url(name).partition("://")[2], "codev_no_rule")
                for name in set(MISSING.values()) - {"sumdb"}}
    assert refusals(missing) == expected | {("sumdb", "codev_unknown_name")}
    assert {line.get("name") for line in missing.log} <= {None, *world.COMPANIONS}


def test_the_table_of_rules_is_this_world():
    """doc/rules.md names every rule that the cases above used."""
    rows = [
        line for line in (TOP / "doc/rules.md").read_text().splitlines() if line.startswith("| `")
    ]
    documented = {row.split("`")[1] for row in rows}
    assert set(world.NAMES) <= documented
