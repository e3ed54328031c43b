"""Runs the table of breakout attempts of `probe breakout` twice.

In a sandbox, as codev, each attempt must be refused, and afterwards PID 1 and the relay must still
run and serve. In the control run the same program makes the same attempts as root, on the same
kernel and image, without codev-init: there each must succeed, or the table says why it cannot
succeed on this kernel. An attempt that is refused in both runs without such a reason proves
nothing, so the test fails. build/results/breakout.md shows the results of both runs side by
side."""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from control_harness import MACHINES
from machine_harness import ARCH, BUILD, GUEST, Gateway, Look, Sandbox, wait_for

VECTORS_LEAST = 60
GROUPS = [
    "identity", "system calls and ABIs", "signals and calls at processes",
    "files of PID 1 and the agent", "files of the kernel and the system", "sockets and network",
    "namespaces", "mounts and shared folders", "the relay as a way out", "bombs"
]
# sizes of the bombs: possible in the control run, above a sandbox's limits
PROCESSES, FILES, MEGABYTES = 300, 3000, 600
LIMITS = '{"limits":{"pids":200,"nofile":2048}}'
BOMBS = f"--processes {PROCESSES} --files {FILES} --megabytes {MEGABYTES}"
TRAP = "/workspace/trap"
SLOW = 240  # seconds for a whole table under emulation

# Root of the whole system, with a writable layer, the objects that the attempts need, and no
# restriction.
CONTROL = f"""\
mount -t tmpfs tmpfs /run && mkdir /run/upper /run/work /run/root
mount -t overlay overlay -o lowerdir=/,upperdir=/run/upper,workdir=/run/work /run/root
mkdir /run/root/old /run/root/trap
mount -t erofs /dev/vdb /run/root/trap
cd /run/root && pivot_root . old
cd / && exec chroot . /bin/sh /trap/second <old/dev/console >old/dev/console 2>&1
"""
SECOND = f"""\
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm /run/codev /trap/work
mount -t devpts -o ptmxmode=0666 devpts /dev/pts
for d in /dev/shm /tmp /run; do mount -t tmpfs tmpfs $d; done
mkdir -p /run/codev; echo '{{}}' >/run/codev/sandbox.json
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo '+memory +pids' >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/control; echo $$ >/sys/fs/cgroup/control/cgroup.procs
ip link set lo up 2>/dev/null || ifconfig lo up
mkdir /tmp/trap && mount -t tmpfs tmpfs /tmp/trap && cp -a /trap/. /tmp/trap/
/trap/probe lenient &
/trap/probe sleep 100000 <&1 &
/trap/probe breakout --agent $! --folder /tmp/trap {BOMBS}
echo control is done
sleep 1000
"""

Row = collections.namedtuple("Row", "group name verdict said cannot")


def rows(text):
    """The table that the probe printed."""
    found = [
        Row(*line.split("\t")[1:]) for line in text.replace("\r", "").split("\n")
        if line.startswith("breakout\t")
    ]
    [tried] = re.findall(r"^breakout: (\d+) tried", text, re.MULTILINE)
    assert len(found) == int(tried) and len({(row.group, row.name) for row in found}) == len(found)
    return found


def make_trap(folder):
    """Files that a malicious or careless owner of a shared folder could have left in it."""
    folder.mkdir()
    folder.chmod(0o755)
    for name, mode in (("probe", 0o755), ("set-uid", 0o4755), ("set-gid", 0o2755)):
        shutil.copy(GUEST / "probe", folder / name)
        os.chown(folder / name, 0, 0)
        (folder / name).chmod(mode)
    os.mknod(folder / "character", 0o020666, os.makedev(1, 3))
    os.mknod(folder / "block", 0o060666, os.makedev(254, 0))
    for name in ("character", "block"):
        (folder / name).chmod(0o666)
    (folder / "link-to-shadow").symlink_to("/etc/shadow")
    (folder / "link-to-root").symlink_to("/proc/1/root/etc/passwd")
    work = folder / "work"
    work.mkdir()
    os.chown(work, 1000, 1000)
    return folder


# --- inside ---------------------------------------------------------------------------------------

def processes(look, agent):
    """Start times of PID 1 and the relay (field 22 of /proc/PID/stat): a restarted process has
    another one."""
    return look.root(
        f"for p in 1 {agent}; do sed 's/.*) //' /proc/$p/stat | cut -d ' ' -f 20; done").split()


@pytest.fixture(scope="module")
def inside():
    """The table as codev, and the state of the sandbox before and after it."""
    if os.geteuid() != 0:
        pytest.skip("makes device nodes and set-uid files for a shared folder")
    with tempfile.TemporaryDirectory(prefix="codev-b-", dir="/tmp") as name, Gateway() as gateway:
        os.chmod(name, 0o755)
        look, folder = Look(name), pathlib.Path(name)
        trap = make_trap(folder / "trap")
        (folder / "config.json").write_text(LIMITS)
        options = [
            *look.options, *look.root_options, *gateway.options, "--mount", f"{trap}:{TRAP}:ro",
            "--mount", f"{trap / 'work'}:{TRAP}/work", "--memory", 512, "--config",
            folder / "config.json"
        ]
        with Sandbox(look.CODEV, options, programs=False) as sandbox:
            sandbox.wait_event("ready")
            agent = look.agent_pid()
            before = processes(look, agent)
            text = look.codev(f"{TRAP}/probe breakout --agent {agent} --folder {TRAP} {BOMBS}",
                              SLOW)
            sandbox.rows = rows(text)
            sandbox.before, sandbox.after = before, processes(look, agent)
            sandbox.request = look.codev(f"{TRAP}/probe http GET /gateway/v1/models")
            sandbox.connections = gateway.stats()
            sandbox.look, sandbox.gateway = look, gateway
            yield sandbox


# --- the control run ------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def control():
    """The table as root without the sandbox's restrictions."""
    if os.geteuid() != 0:
        pytest.skip("makes device nodes and set-uid files for a disk")
    with tempfile.TemporaryDirectory(prefix="codev-b-", dir="/tmp") as name:
        folder = pathlib.Path(name)
        trap, disk, console = make_trap(folder / "trap"), folder / "disk", folder / "console"
        (trap / "control").write_text(CONTROL)
        (trap / "second").write_text(SECOND)
        subprocess.run(["mkfs.erofs", str(disk), str(trap)], check=True, capture_output=True)
        kernel, machine, terminal = MACHINES[ARCH]
        line = ("mount -t devtmpfs devtmpfs /dev && mount -t erofs /dev/vdb /mnt && exec /bin/sh "
                "/mnt/control")
        process = subprocess.Popen([
            f"qemu-system-{ARCH}", "-nodefaults", "-no-user-config", "-no-reboot", "-display",
            "none", "-machine", machine, "-accel", "tcg", "-cpu", "max", "-m", "1280M", "-smp", "2",
            "-kernel", BUILD / "guest" / ARCH / kernel, "-append",
            f'console={terminal} quiet panic=-1 root=/dev/vda rootfstype=erofs ro init=/bin/sh -- '
            f'-c "{line}"',
            "-drive", f"if=virtio,format=raw,readonly=on,file={GUEST / 'rootfs.erofs'}", "-drive",
            f"if=virtio,format=raw,readonly=on,file={disk}", "-device", "virtio-rng-pci", "-serial",
            f"file:{console}"
        ],
                                   stdin=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            def ended():
                assert process.poll() is None, console.read_text(errors="replace")[-3000:]
                return console.exists() and "control is done" in console.read_text(errors="replace")
            wait_for(ended, "the end of the control run", SLOW)
            text = console.read_text(errors="replace")
        finally:
            process.kill()
            process.wait()
        yield rows(text)


# --- what must hold -------------------------------------------------------------------------------

def test_every_vector_is_refused_inside(inside):
    assert not [row for row in inside.rows if row.verdict != "refused"]


def test_there_are_vectors_of_every_kind(inside):
    assert len(inside.rows) >= VECTORS_LEAST
    assert list(dict.fromkeys(row.group for row in inside.rows)) == GROUPS


def test_init_agent_and_relay_outlive_it(inside):
    assert len(inside.before) == 2 and inside.before == inside.after
    assert inside.request.startswith("HTTP/1.1 200 ")
    inside.alive()


def test_every_vector_works_with_the_walls_off(control):
    """Or the table gives the reason why it cannot, which must be true."""
    assert not [row for row in control if row.verdict != "worked" and not row.cannot]
    assert not [row for row in control if row.verdict == "worked" and row.cannot]


def test_the_table(inside, control, capfd):
    """Prints both runs side by side and stores them."""
    beside = {(row.group, row.name): row for row in control}
    assert list(beside) == [(row.group, row.name) for row in inside.rows]
    lines = ["| group | vector | inside, as codev | root, walls off |", "| --- | --- | --- | --- |"]
    for row in inside.rows:
        other = beside[row.group, row.name]
        free = f"cannot: {row.cannot}" if row.cannot else other.verdict
        free += f" ({other.said})"
        lines.append(
            f"| {row.group} | {row.name} | {row.verdict} ({row.said}) | "
            f"{free.replace(' (no error)', '')} |"
        )
    refused = sum(row.verdict == "refused" for row in inside.rows)
    worked = sum(row.verdict == "worked" for row in control)
    unable = sum(bool(row.cannot) for row in control)
    count = (
        f"breakout: {len(inside.rows)} vectors; inside {refused} refused, "
        f"{len(inside.rows) - refused} not; "
        f"with the walls off {worked} worked, {unable} cannot on this kernel")
    path = BUILD / "results" / "breakout.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"# Breakout\n\n{count}.\n\n" + "\n".join(lines) + "\n")
    with capfd.disabled():
        print("\n" + "\n".join(lines) + "\n" + count)
