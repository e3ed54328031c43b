"""The tour that `make run` shows, for each architecture that is built, and that the tour fails when
something is wrong."""
import os
import subprocess
import sys

import pytest

from machine_harness import ARCH, BUILD, TOP, TOUR

NEEDED = {"x86_64": ("vmlinux", "rootfs.erofs", "codev-init", "codev-agent", "probe"),
          "aarch64": ("Image", "rootfs.erofs", "codev-init", "codev-agent", "probe")}


def is_built(arch):
    return all((BUILD / "guest" / arch / name).exists() for name in NEEDED[arch])


def tree_state():
    """Names, sizes and times of the files that the tour hashes."""
    state = []
    for folder, folders, files in os.walk(TOP):
        folders[:] = [
            name for name in folders
            if name not in ("build", ".git", "__pycache__", ".pytest_cache")
        ]
        for name in files:
            status = os.lstat(os.path.join(folder, name))
            state.append((folder, name, status.st_size, status.st_mtime_ns))
    return sorted(state)


def tour(arch, runtime, program=None):
    """One run of the tour; repeated when the project's files changed meanwhile, as the tour checks
    their hash."""
    for _ in range(3):
        before = tree_state()
        done = subprocess.run([sys.executable, program or TOUR / "run", "--arch", arch],
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT,
                              text=True,
                              timeout=300,
                              cwd=TOP,
                              env={
                                  **os.environ, "XDG_RUNTIME_DIR": str(runtime)
                              })
        if tree_state() == before:
            break
    return done


@pytest.mark.parametrize("arch", NEEDED)
def test_tour_is_all_right(arch, tmp_path):
    if arch != ARCH and not is_built(arch):
        pytest.skip(f"no guest for {arch} here: make ARCH={arch}")
    before = {name for name in os.listdir("/tmp") if name.startswith("codev-tour-")}
    done = tour(arch, tmp_path)
    assert done.returncode == 0, done.stdout
    assert " right, 0 wrong\n" in done.stdout and "WRONG" not in done.stdout
    assert done.stdout.count("content_block_delta") == 8, "each event is shown"
    assert "\33" not in done.stdout, "no colours where there is no terminal"
    assert list(tmp_path.iterdir()) == [], "nothing is left"
    assert {name for name in os.listdir("/tmp") if name.startswith("codev-tour-")} <= before


def changed_tour(folder, old, new):
    """A copy of the tour with one fault, in a folder beside the original so that it finds the
    project."""
    text = (TOUR / "run").read_text()
    assert text.count(old) == 1
    program = folder / "run"
    program.write_text(
        text.replace(old, new).replace("HERE = pathlib.Path(__file__).resolve().parent",
                                       f"HERE = pathlib.Path({str(TOUR)!r})"))
    return program


@pytest.mark.parametrize("old, new, wrong", [
    ('"--gateway-token-file", str(token),\n', '"--gateway-token-file", str(work / "other"),\n',
     "events-one-by-one"),
    ('{"registry": gateway.ready["rule_url"]}', '{"other": gateway.ready["rule_url"]}',
     "named-rule"),
],
                         ids=["another-token", "another-rule"])
def test_tour_sees_what_is_wrong(tmp_path, old, new, wrong):
    program = changed_tour(tmp_path, old, new)
    prepare = '    (work / "scratch").mkdir()\n'
    text = program.read_text()
    assert prepare in text
    other = '    (work / "other").write_text("wrong\\n"); (work / "other").chmod(0o600)\n'
    program.write_text(text.replace(prepare, prepare + other))
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    done = tour(ARCH, runtime, program)
    assert done.returncode == 1, done.stdout
    assert [line.split()[1] for line in done.stdout.splitlines()
            if line.split()[:1] == ["WRONG"]] == [wrong], done.stdout
