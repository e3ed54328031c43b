"""kconfig/check.sh finds settings that Kconfig silently drops or adds; kconfig/hardening has a
reason for each recommended setting that the kernel lacks."""

import collections
import os
import pathlib
import re
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
    return [
        f"CONFIG_{option}" if "=" in option else f"CONFIG_{option}=y"
        for option in options("required", arch)
    ]


def check(arch, lines, folder):
    config = folder / "config"
    config.write_text("\n".join(lines) + "\n")
    return subprocess.run([TOP / "kconfig" / "check.sh", arch, config],
                          capture_output=True,
                          text=True)


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
def test_another_value_than_the_required_one_is_found(arch, tmp_path):
    lines = good_config(arch)
    with_value = [line for line in lines if not line.endswith("=y")]
    assert with_value
    for line in with_value:
        other = line.rpartition("=")[0] + "=16"
        done = check(arch, [other if l == line else l for l in lines], tmp_path)
        assert done.returncode == 1 and f"{line} is required" in done.stderr


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


# --- kconfig/hardening ----------------------------------------------------------------------------

Advice = collections.namedtuple("Advice", "names wanted arches answer")


def hardening():
    for number, line in enumerate((TOP / "kconfig" / "hardening").read_text().splitlines(), 1):
        if not line or line.startswith(("#", "sysctl ")):
            continue
        found = re.fullmatch(r"([A-Z0-9_|!]+) (\S+)(?: (x86_64|aarch64))?(?: -- (\S.*))?", line)
        assert found, f"kconfig/hardening:{number}: {line}"
        names, wanted, arch, answer = found.groups()
        yield Advice(names.split("|"), wanted, (arch,) if arch else ARCHES, answer)


def read_config(path):
    return dict(re.findall(r"^CONFIG_(\w+)=(.*)$", path.read_text(), re.MULTILINE))


def followed(advice, config):
    return any(
        config.get(name[1:], "n") == "n" if name.startswith("!") else config.get(name, "n") ==
        advice.wanted for name in advice.names)


def test_every_complaint_about_hardening_is_answered():
    """Checks each built kernel against the recommendations of kernel-hardening-checker."""
    configs = {arch: read_config(BUILD / "guest" / arch / "kernel.config") for arch in ARCHES
               if (BUILD / "guest" / arch / "kernel.config").exists()}
    assert configs, f"no kernel in {BUILD}"
    advices = list(hardening())
    assert len(advices) > 200
    unanswered, needless = [], []
    for advice in advices:
        bad = [
            arch for arch in advice.arches
            if arch in configs and not followed(advice, configs[arch])
        ]
        if bad and not advice.answer:
            unanswered.append(f"{'|'.join(advice.names)} {advice.wanted} ({', '.join(bad)})")
        if advice.answer and not bad and set(advice.arches) <= set(configs):
            needless.append("|".join(advice.names))
    assert not unanswered, ("follow the advice in kconfig/*.config, or say in kconfig/hardening "
                            "why not")
    assert not needless, "these are followed: their answers in kconfig/hardening go"


def test_a_complaint_is_found():
    """The control: for an empty configuration the checker complains about every row that requires a
    setting."""
    assert all(not followed(advice, {}) for advice in hardening()
               if advice.wanted != "n" and "!" not in str(advice.names))
