"""kconfig/check.sh finds what Kconfig drops or adds without a word."""

import os
import pathlib
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("CODEV_BUILD", TOP / "build"))
ARCHES = ("x86_64", "aarch64")


def options(name, arch):
    for line in (TOP / "kconfig" / name).read_text().splitlines():
        fields = line.split("#")[0].split()
        if fields and (len(fields) == 1 or fields[1] == arch):
            yield fields[0]


def good_config(arch):
    return [f"CONFIG_{option}=y" for option in options("required", arch)]


def check(arch, lines, folder):
    config = folder / "config"
    config.write_text("\n".join(lines) + "\n")
    return subprocess.run([TOP / "kconfig" / "check.sh", arch, config], capture_output=True, text=True)


@pytest.mark.parametrize("arch", ARCHES)
def test_each_required_option_is_missed(arch, tmp_path):
    lines = good_config(arch)
    assert check(arch, lines, tmp_path).returncode == 0
    for line in lines[::9]:
        done = check(arch, [l for l in lines if l != line], tmp_path)
        assert done.returncode == 1 and line.removesuffix("=y") + " is required" in done.stderr
        as_comment = [l if l != line else f"# {line.removesuffix('=y')} is not set" for l in lines]
        assert check(arch, as_comment, tmp_path).returncode == 1


@pytest.mark.parametrize("arch", ARCHES)
def test_each_forbidden_option_is_found(arch, tmp_path):
    lines = good_config(arch)
    for option in list(options("forbidden", arch))[::7]:
        done = check(arch, [*lines, f"CONFIG_{option}=y"], tmp_path)
        assert done.returncode == 1 and f"CONFIG_{option} is on but forbidden" in done.stderr


def test_modules_are_found(tmp_path):
    done = check("x86_64", [*good_config("x86_64"), "CONFIG_SOME_DRIVER=m"], tmp_path)
    assert done.returncode == 1 and "CONFIG_SOME_DRIVER=m" in done.stderr


def test_the_lists_do_not_contradict_each_other():
    for arch in ARCHES:
        assert not set(options("required", arch)) & set(options("forbidden", arch))


@pytest.mark.parametrize("arch", ARCHES)
def test_the_kernel_that_was_built(arch):
    config = BUILD / "guest" / arch / "kernel.config"
    if not config.exists():
        pytest.skip(f"no kernel for {arch} in {BUILD}")
    subprocess.run([TOP / "kconfig" / "check.sh", arch, config], check=True)
