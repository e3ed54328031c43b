"""The programs that a coding agent uses run in the sandbox: runtimes, compilers, debuggers, git, a
database, a browser.

Two boots of the Debian-flavoured image (`make image FLAVOR=debian`): with default settings, and
with user_namespaces, which a sandbox in the sandbox needs. In the guest, compatibility/inside runs
the programs as codev in a mounted folder and prints the result of each; the table is printed and
stored in build/results/compatibility.md. The self-test at each boot checks that the restrictions
are in force."""
import json
import os
import pathlib
import subprocess
import tempfile

import pytest

from machine_harness import ARCH, BUILD, GUEST, TOP, Sandbox

IMAGE = GUEST / "rootfs-debian.erofs"
SLOW = 900  # seconds for all of them on a busy emulated processor
HOST_ID, FOREIGN_ID = 1000, 1234
FOREIGN = "/workspace/fo'r\"e,ign \u00e9"

# Checks by lane, with a readable name of each. The two lanes run in parallel.
ORDINARY = [
    {
        "rust-cargo": "cargo: new, build --offline, run",
        "npm-pack": "npm: pack, install, require",
        "git-large": "git-lfs: add, checkout",
        "python-library": "python3: processes, asyncio, sqlite3, ssl",
        "python-venv": "python3: venv, pip",
        "git-work": "git: commit, merge, gc, fsck, worktree",
        "git-mounted": "git: in and from repositories of the host's",
        "sqlite-wal": "sqlite3: WAL on a mounted folder, two writers",
        "c-make": "gcc, make: threads",
        "small-tools": "jq, rg, xz, file, ps"
    },
    {
        "browser-unsandboxed": "chromium --no-sandbox: script, fetch, canvas",
        "browser-refuses": "chromium finds no sandbox of its own",
        "node-http": "node: http, fetch, os.networkInterfaces",
        "node-workers": "node: worker threads",
        "node-processes": "node: child_process",
        "node-watch": "node: fs.watch on a mounted folder",
        "go-build": "go: build, run, listen",
        "c-plus-plus": "g++: exceptions",
        "c-sanitizers": "gcc: address, leak, undefined",
        "c-valgrind": "valgrind",
        "c-gdb": "gdb: breakpoint, threads, attach",
        "c-strace": "strace -f",
        "unshare-refused": "unshare -U is refused",
        "bwrap-refused": "bubblewrap is refused",
        "image": "the image: packages, no set-uid file, no archive"
    },
]
WITH_NAMESPACES = [
    {"bwrap-works": "bubblewrap", "browser-sandboxed": "chromium in its own sandbox"},
]


def make_repository(folder, owner):
    folder.mkdir()
    (folder / "file").write_text("host\n")
    git = [
        "git", "-c", "user.name=host", "-c", "user.email=host@localhost", "-c",
        f"safe.directory={folder}", "-C", folder
    ]
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m",
                                                               "by the host"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    subprocess.run(["chown", "-R", f"{owner}:{owner}", folder], check=True)


def run_checks(lanes, user_namespaces):
    """name -> (verdict, ms, message) of every line that was printed."""
    if not IMAGE.exists():
        pytest.skip("no Debian image for this architecture (make image FLAVOR=debian)")
    if os.geteuid() != 0:
        pytest.skip("gives folders away")
    with tempfile.TemporaryDirectory(prefix="codev-c-", dir="/tmp") as name:
        os.chmod(name, 0o755)
        folder = pathlib.Path(name)
        (folder / "work").mkdir()
        os.chown(folder / "work", HOST_ID, HOST_ID)
        make_repository(folder / "repository", HOST_ID)
        make_repository(folder / "foreign", FOREIGN_ID)
        config = folder / "config.json"
        config.write_text(json.dumps({"user_namespaces": user_namespaces}))
        options = [
            "--image", IMAGE, "--memory", 2048, "--cpus", 2, "--config", config, "--mount",
            f"{folder}/work:/workspace/work", "--mount",
            f"{folder}/repository:/workspace/repository", "--mount",
            f"{folder}/foreign:{FOREIGN}:ro", "--mount",
            f"{TOP}/test/qemu/compatibility:/workspace/checks:ro"
        ]
        words = [word for lane in lanes for word in ("+", *lane)][1:]
        with Sandbox(["/workspace/checks/inside", *words], options, programs=False) as sandbox:
            status, text = sandbox.finish(SLOW)
            assert status == 0, sandbox.describe()
            assert all(check["ok"] for check in sandbox.event("ready")["checks"])
        lines = [line.split("\t") for line in text.splitlines() if line.startswith("compat\t")]
        return {line[1]: (line[2], int(line[3]), line[4]) for line in lines}


def table(rows):
    lines = [
        "| program | user_namespaces | worked | s | it said |", "| --- | --- | --- | --- | --- |"
    ]
    for what, spaces, (verdict, ms, said) in rows:
        said = said.strip().replace("|", "\\|")
        lines.append(
            f"| {what} | {spaces} | {verdict} | {ms / 1000:.1f} | "
            f"{said[:100 if verdict == 'worked' else 600]} |"
        )
    return "\n".join(lines)


@pytest.mark.skipif(ARCH != os.uname().machine, reason="an emulated processor of another kind")
def test_compatibility(capfd):
    rows = []
    for lanes, spaces in ((ORDINARY, "off"), (WITH_NAMESPACES, "on")):
        seen = run_checks(lanes, spaces == "on")
        wanted = {name: what for lane in lanes for name, what in lane.items()}
        rows += [(what, spaces, seen.get(name, ("missing", 0, "")))
                 for name, what in wanted.items()]
    path = BUILD / "results" / "compatibility.md"
    path.parent.mkdir(exist_ok=True)
    text, count = table(rows), sum(seen[0] == "worked" for _, _, seen in rows)
    path.write_text(f"# Programs under the walls\n\n{count} of {len(rows)} work.\n\n{text}\n")
    with capfd.disabled():
        print(f"\n{text}\nprograms under the walls: {count} of {len(rows)} work")
    assert count == len(rows)
