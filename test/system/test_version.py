"""Every program prints the version in the file VERSION."""
import os
import pathlib
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("CODEV_BIN", TOP / "build/bin"))
NATIVE = TOP / "build/guest" / os.uname().machine
PROGRAMS = (BIN / "codev-broker", BIN / "codev-sandbox", NATIVE / "codev-init",
            NATIVE / "codev-agent")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_each_program_says_the_number_of_the_file(program):
    version = (TOP / "VERSION").read_text().strip()
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"{program.name} {version}\n")
