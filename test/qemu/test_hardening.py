"""The running kernel has the settings that kernel-hardening-checker recommends, except those for
which kconfig/hardening gives a reason."""
import os
import re
import tempfile

from machine_harness import TOP, Look, Sandbox

SETTING = re.compile(r"^sysctl (\S+) (\S+)( -- \S.*)?$", re.MULTILINE)


def test_settings_of_the_running_kernel():
    wanted = SETTING.findall((TOP / "kconfig" / "hardening").read_text())
    assert len(wanted) > 10
    with tempfile.TemporaryDirectory(prefix="codev-h-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        look = Look(folder)
        with Sandbox(look.CODEV, [*look.options, *look.root_options]) as sandbox:
            sandbox.wait_event("ready")
            lines = [
                f"echo {name} $(cat /proc/sys/{name.replace('.', '/')} 2>/dev/null || echo absent)"
                for name, *_ in wanted
            ]
            values = dict(line.split(" ", 1) for line in look.root("\n".join(lines)).splitlines())
    assert [
        f"{name} is {values[name]}, not {value}" for name, value, answer in wanted
        if values[name] != value and not answer
    ] == [], "set it in init/system/sysctl.c, or say in kconfig/hardening why not"
    assert [name for name, value, answer in wanted
            if values[name] == value and answer] == [], "their answers go"
