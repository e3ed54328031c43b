"""Size limits of the guest's two programs: on disk for each architecture that is built, and in the
memory of a running VM."""
import os
import pathlib
import re
import subprocess
import tempfile

import pytest

from machine_harness import BUILD, Gateway, Look, Sandbox

KIB = 1024
FILE_MAX = 256 * KIB
RESIDENT_MAX_KIB = 1024
FLOW = 64 * KIB  # agent/flow.h: the fixed buffer of one direction
CONNECTIONS = 100
PROGRAMS = [
    path for path in sorted((BUILD / "guest").glob("*/codev-*"))
    if path.name in ("codev-init", "codev-agent")
]


def said(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_program_is_small_static_and_stripped(program):
    assert program.stat().st_size <= FILE_MAX
    headers = said("readelf", "--wide", "--program-headers", "--dynamic", program)
    assert "INTERP" not in headers and "NEEDED" not in headers
    assert "GNU_STACK" in headers and not re.search(r"GNU_STACK.*RWE", headers)
    assert not re.search(r"LOAD .* RWE ", headers), "nothing is writable and executable"
    assert ".symtab" not in said("readelf", "--wide", "--sections", program)
    assert re.search(r"stat(ic|ically).*linked|static-pie linked", said("file", program))
    assert ", stripped" in said("file", program)
    assert re.search("statically linked|not a dynamic executable", said("ldd", program))


def test_both_programs_were_looked_at():
    assert {path.name for path in PROGRAMS} == {"codev-init", "codev-agent"}


def test_these_looks_tell_others_apart():
    """The checks above can fail: they refuse /bin/true."""
    true = os.path.realpath("/bin/true")
    assert "INTERP" in said("readelf", "--wide", "--program-headers", true)
    assert "dynamically linked" in said("file", true)


def resident_kib(look, pid):
    """Resident memory, summed over the page tables; VmRSS may lag behind by some dozens of
    pages."""
    rollup = look.root(f"cat /proc/{pid}/smaps_rollup")
    return int(re.search(r"^Rss: +(\d+) kB", rollup, re.MULTILINE)[1])


@pytest.fixture(scope="module")
def scene():
    with tempfile.TemporaryDirectory(prefix="codev-b-",
                                     dir="/tmp") as folder, Gateway("--interval-ms", 50) as gateway:
        os.chmod(folder, 0o755)
        look = Look(folder)
        with Sandbox(look.CODEV, [
                *look.options, *look.root_options, *gateway.options, "--server-port", 53000,
                "--config",
                long_wait(folder)
        ]) as sandbox:
            sandbox.look = look
            look.codev("/workspace/programs/probe serve 53000 echo >/dev/null 2>&1 &")
            sandbox.wait_event("ready")
            yield sandbox


def long_wait(folder):
    path = pathlib.Path(folder) / "config.json"
    path.write_text('{"server":{"ready_timeout_ms":600000}}')
    return path


def test_resident_memory_at_rest(scene):
    assert resident_kib(scene.look, 1) <= RESIDENT_MAX_KIB
    assert resident_kib(scene.look, scene.look.agent_pid()) <= RESIDENT_MAX_KIB


def test_resident_memory_after_output_and_orphans(scene):
    """PID 1 uses no more memory after 8 MiB of output and 200 orphans."""
    scene.look.codev("dd if=/dev/zero bs=64k count=128 2>/dev/null | tr '\\0' 'x' >&3; "
                     "n=0; while [ $n -lt 200 ]; do (true &); n=$((n + 1)); done", 120)
    assert len(scene.output) == 8 * KIB * KIB
    assert resident_kib(scene.look, 1) <= RESIDENT_MAX_KIB


def test_resident_memory_of_the_agent_with_streams(scene):
    look = scene.look
    finish = look.begin(
        "codev",
        f"/workspace/programs/probe requests 1 '/gateway/v1/messages?events=200' {CONNECTIONS}")
    agent = look.agent_pid()
    most = 0
    while True:
        most = max(most, resident_kib(look, agent))
        if (look.folder /
                f"codev.{look.numbers['codev']}.answer").read_text().startswith("requests"):
            break
    assert ": 100 of 100 processes got every answer" in finish()
    assert most > resident_kib(look, 1) // 8, "it was looked at while it worked"
    assert most <= RESIDENT_MAX_KIB + CONNECTIONS * 2 * FLOW // KIB
