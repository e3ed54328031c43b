"""Shipped programs contain no code for tests, according to their symbols before they are
stripped."""
import os
import pathlib
import re
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CODEV_BUILD", TOP / "build"))
# guest programs with symbols are beside their objects; build/guest has the stripped ones
OBJECTS = BUILD / "obj" / os.environ.get("CODEV_ARCH", os.uname().machine)
SHIPPED = (OBJECTS / "codev-init", OBJECTS / "codev-agent", BUILD / "bin" / "codev-sandbox",
           BUILD / "bin" / "codev-broker")
# Names of hooks for tests.
FORBIDDEN = re.compile(r"^(__wrap_|__real_)|fail_stage|on_purpose|(^|_)(fake|mock|hook)(_|$)")
DEFINITION = re.compile(r"^(?:\w[\w *]*[ *])(\w+)\([^;{]*\)\n\{", re.MULTILINE)


def symbols(program, kinds="Tt"):
    """Names that a program or an archive defines; by default of functions."""
    output = subprocess.run(["nm", "--defined-only", program], check=True, capture_output=True,
                            text=True).stdout
    found = re.findall(r"^[0-9a-f]+ (\w) ([\w$]+)", output, re.MULTILINE)
    return {name for kind, name in found if kind in kinds}


def functions(*folders):
    """Names of the functions that C files below these folders define."""
    return {
        name
        for folder in folders for path in (TOP / folder).rglob("*.c")
        for name in DEFINITION.findall(path.read_text())
    }


@pytest.fixture(scope="module")
def of_tests():
    """Functions that only the tests' files define."""
    product = functions("agent", "common", "host-broker", "init", "nft", "qemu-harness/launcher")
    return functions("test", "qemu-harness/probe", "qemu-harness/wsl-rig") - product - {"main"}


@pytest.fixture(scope="module")
def of_libraries():
    """A library may define a name that a test defines too."""
    archives = (BUILD / "sysroot").rglob("lib*.a")
    return {name for archive in archives for name in symbols(archive, "TtWw")}


@pytest.mark.parametrize("program", SHIPPED, ids=lambda path: path.name)
def test_no_symbol_of_test_code(program, of_tests, of_libraries):
    found = symbols(program)
    assert "main" in found and len(found) > 100, f"{program} is stripped"
    assert sorted(name for name in found if FORBIDDEN.search(name)) == []
    assert sorted(found & of_tests - of_libraries) == []
    if program.name == "codev-sandbox":  # only the tests' launcher starts a WSL rig
        assert [name for name in found if re.search(r"(^|_)(wsl|rig)(_|$)", name)] == []


def test_the_test_build_is_told_apart(of_tests):
    """The same check of a program for tests: it shows that the check above can fail."""
    found = symbols(OBJECTS / "codev-init-fail-stage")
    assert [name for name in found if FORBIDDEN.search(name)]
    assert "fail_on_purpose" in found & of_tests
