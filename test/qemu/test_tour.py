"""The tour that `make run` shows, for each architecture that is built; and that it can tell right from wrong."""
import os
import subprocess
import sys

import pytest

from vm_rig import ARCH, BUILD, TOP, TOUR

NEEDED = {"x86_64": ("vmlinux", "rootfs.erofs", "codev-init", "codev-agent", "probe"),
          "aarch64": ("Image", "rootfs.erofs", "codev-init", "codev-agent", "probe")}


def is_built(arch):
    return all((BUILD / "guest" / arch / name).exists() for name in NEEDED[arch])


def tour(arch, program=None, **more):
    return subprocess.run([sys.executable, program or TOUR / "run", "--arch", arch], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, cwd=TOP, **more)


@pytest.mark.parametrize("arch", NEEDED)
def test_tour_is_all_right(arch):
    if arch != ARCH and not is_built(arch):
        pytest.skip(f"no guest for {arch} here: make ARCH={arch}")
    done = tour(arch)
    assert done.returncode == 0, done.stdout
    assert " right, 0 wrong\n" in done.stdout and "WRONG" not in done.stdout
    assert done.stdout.count("content_block_delta") == 8, "each event is shown"
    assert "\33" not in done.stdout, "no colours where there is no terminal"


def changed_tour(folder, old, new):
    """The tour with one thing wrong, in a folder beside the original so that it finds the project."""
    text = (TOUR / "run").read_text()
    assert text.count(old) == 1
    program = folder / "run"
    program.write_text(text.replace(old, new).replace("HERE = pathlib.Path(__file__).resolve().parent",
                                                      f"HERE = pathlib.Path({str(TOUR)!r})"))
    return program


@pytest.mark.parametrize("old, new, wrong", [
    ('"--gateway-token-file", str(token),\n', '"--gateway-token-file", str(work / "other"),\n', "events-one-by-one"),
    ('f"{PROJECT}:{project}:ro"', 'f"{PROJECT}:{project}"', "read-only"),
], ids=["another-token", "a-writable-project"])
def test_tour_sees_what_is_wrong(tmp_path, old, new, wrong):
    program = changed_tour(tmp_path, old, new)
    prepare = '    (work / "scratch").mkdir()\n'
    text = program.read_text()
    assert prepare in text
    program.write_text(text.replace(prepare, prepare + '    (work / "other").write_text("wrong\\n"); (work / "other").chmod(0o600)\n'))
    done = tour(ARCH, program)
    (TOP / "tour-was-here").unlink(missing_ok=True)
    assert done.returncode == 1, done.stdout
    assert any(line.split()[:2] == ["WRONG", wrong] for line in done.stdout.splitlines()), done.stdout
    assert "  right  identity " in done.stdout


def test_tour_leaves_nothing(tmp_path):
    before = {name for name in os.listdir("/tmp") if name.startswith("codev-tour-")}
    done = tour(ARCH, env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stdout
    assert list(tmp_path.iterdir()) == []
    assert {name for name in os.listdir("/tmp") if name.startswith("codev-tour-")} <= before
