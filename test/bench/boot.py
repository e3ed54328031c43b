"""How long from PID 1's first instruction to a running server: codev-init beside busybox init and tini.

All three boot the same kernel and the same image under the same QEMU, in turns, so that a busy moment of the
machine hits all alike. For codev-init the figure is its own `boot_ms`, stage by stage, which is CLOCK_MONOTONIC
from the first line of main() to `ready`. For the other two a second disk holds the probe, tini (Debian's
tini-static) and an inittab; /bin/sh mounts /dev and that disk, the probe prints CLOCK_MONOTONIC, then sh executes the init
under test, which mounts /proc, /sys and /tmp and starts the probe as codev, which prints the clock again.
They do no more than that: no control channel, mount of the user's folder, firewall, relay, drop or self-test.
"""
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

BENCH_INITTAB = """\
::sysinit:/mnt/mounts
::respawn:-/bin/true
::once:/bin/busybox su -s /mnt/probe codev mark server
"""
MOUNTS = """\
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /tmp
"""
TINI_SCRIPT = MOUNTS + "exec /bin/busybox su -s /mnt/probe codev mark server\n"
STARTS = {
    "busybox init": "mount -t devtmpfs devtmpfs /dev && mount -t erofs /dev/vdb /mnt && /mnt/probe mark start && "
                    "mount -o bind /mnt/etc /etc && exec /bin/busybox init",
    "tini": "mount -t devtmpfs devtmpfs /dev && mount -t erofs /dev/vdb /mnt && /mnt/probe mark start && exec /mnt/tini-static -- /mnt/under-tini",
}
BOOT_TIMEOUT_S = 120


def make_disk(folder, guest):
    """The second disk: what the other inits need and the image does not have."""
    tree = folder / "disk"
    (tree / "etc").mkdir(parents=True)
    shutil.copy(guest / "probe", tree / "probe")
    shutil.copy("/usr/bin/tini-static", tree / "tini-static")
    (tree / "mounts").write_text(MOUNTS)
    (tree / "under-tini").write_text(TINI_SCRIPT)
    (tree / "etc" / "inittab").write_text(BENCH_INITTAB)
    (tree / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\ncodev:x:1000:1000::/tmp:/bin/sh\n")
    (tree / "etc" / "group").write_text("root:x:0:\ncodev:x:1000:\n")
    for name in ("probe", "tini-static", "mounts", "under-tini"):
        (tree / name).chmod(0o755)
    image = folder / "bench.erofs"
    subprocess.run(["mkfs.erofs", "--all-root", str(image), str(tree)], check=True, capture_output=True)
    return image


def boot_other(start, guest, disk, folder):
    """Milliseconds from just before the init under test is executed to the server's first line."""
    console = folder / "console"
    command = [
        "qemu-system-x86_64", "-M", "q35,accel=" + accelerator(), "-cpu", "max", "-m", "512", "-smp", "1",
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-kernel", str(guest / "vmlinux"), "-device", "virtio-rng-pci",
        "-drive", f"file={guest / 'rootfs.erofs'},format=raw,if=virtio,readonly=on",
        "-drive", f"file={disk},format=raw,if=virtio,readonly=on", "-serial", f"file:{console}",
        "-append", f'console=ttyS0 quiet panic=-1 root=/dev/vda rootfstype=erofs ro init=/bin/sh -- -c "{start}"',
    ]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        marks = wait_for_marks(console, process)
    finally:
        process.kill()
        process.wait()
    return (marks["server"] - marks["start"]) / 1e6


def accelerator():
    """KVM where the processor shows it, as codev-sandbox decides."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    return "kvm" if re.search(r"\b(vmx|svm)\b", flags) and pathlib.Path("/dev/kvm").exists() else "tcg"


def wait_for_marks(console, process):
    for _ in range(BOOT_TIMEOUT_S * 10):
        try:
            process.wait(timeout=0.1)
        except subprocess.TimeoutExpired:
            pass
        text = console.read_text(errors="replace") if console.exists() else ""
        marks = {name: int(ns) for name, ns in re.findall(r"mark (\w+) (\d+)", text)}
        if {"start", "server"} <= marks.keys():
            return marks
        if process.returncode is not None:
            break
    raise RuntimeError(f"a boot did not reach its mark; console:\n{text[-2000:]}")


def boot_ours(project, folder, options=()):
    """codev-init's own report: total and stage by stage."""
    events = folder / "events.jsonl"
    events.unlink(missing_ok=True)
    (folder / "mounted").mkdir(exist_ok=True)
    (folder / "mounted").chmod(0o777)
    subprocess.run([str(project / "build/bin/codev-sandbox"), "run", *(options or ["--mount", f"{folder / 'mounted'}"]),
                    "--events", str(events), "--", "true"],
                   stdin=subprocess.DEVNULL, check=True, capture_output=True)
    stages, total = {}, None
    for line in events.read_text().splitlines():
        event = json.loads(line)
        if event.get("event") == "stage":
            stages[event["name"]] = event["ms"]
        elif event.get("event") == "ready":
            total = event["boot_ms"]
    return total, stages


def spread(values):
    return f"{min(values):.1f}..{max(values):.1f}"


def measure(project, runs):
    guest = project / "build/guest/x86_64"
    figures = {"codev-init": [], **{name: [] for name in STARTS}}
    stages = {}
    with tempfile.TemporaryDirectory(prefix="codev-bench-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        disk = make_disk(folder, guest)
        for _ in range(runs):
            total, one = boot_ours(project, folder)
            figures["codev-init"].append(total)
            for stage, ms in one.items():
                stages.setdefault(stage, []).append(ms)
            for kind, start in STARTS.items():
                figures[kind].append(boot_other(start, guest, disk, folder))
    return figures, stages


def run(project, runs=7):
    figures, stages = measure(project, runs)
    ours = statistics.median(figures["codev-init"])
    print(f"PID 1's first instruction to a running server, {runs} interleaved boots, accelerator {accelerator()}\n")
    print(f"| {'init':<13} | median ms | {'spread':<14} | ratio |\n| --- | --- | --- | --- |")
    for kind, values in figures.items():
        median = statistics.median(values)
        print(f"| {kind:<13} | {median:9.1f} | {spread(values):<14} | {median / ours:5.2f} |")
    print(f"\n| {'stage':<13} | median ms | {'spread':<14} |\n| --- | --- | --- |")
    for stage, values in stages.items():
        print(f"| {stage:<13} | {statistics.median(values):9.1f} | {spread(values):<14} |")
    return {"accelerator": accelerator(), "runs": runs, "boot_ms": figures, "stages_ms": stages}
