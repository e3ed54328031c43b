"""Time from PID 1's first instruction to a running server: codev-init compared with busybox init,
tini, dumb-init and catatonit.

All boot the same kernel and the same image under the same QEMU, in turns, so that a busy moment of
the machine affects all. For codev-init the figure is its own `boot_ms`, stage by stage, which is
CLOCK_MONOTONIC from the first line of main() to `ready`. For the others a second disk contains the
probe, the init and an inittab; /bin/sh mounts /dev and that disk, the probe prints CLOCK_MONOTONIC,
then sh executes the init under test; its child mounts /proc, /sys and /tmp and starts the probe as
codev, which prints the clock again. They do nothing else: no control channel, mount of the user's
folder, firewall, relay, drop or self-test.

Where the processor is emulated, most of such a boot is the emulator translating code that runs for
the first time (doc/performance.md). So each is also booted with a plugin in QEMU (count/count.c)
that counts, from mark to mark, the instructions that ran, the repetitions of string instructions,
and the instructions that were translated. The first two are the cost of a boot on a real processor,
the last the cost under emulation. Waiting is in none of them, so a busy machine does not change
them. Background work of the kernel falls into varying stages: two runs differ by some percent in a
stage and by one or two in the sum."""
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import bench

BENCH_INITTAB = """\
::sysinit:/mnt/mounts
::respawn:-/bin/true
::once:/mnt/server
"""
MOUNTS = """\
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /tmp
"""
SERVER = "#!/bin/sh\nexec /bin/busybox su -s /mnt/probe codev mark server\n"
MEMORY = ("#!/bin/sh\ngrep Rss: /proc/1/smaps_rollup\nexec /bin/busybox su -s /mnt/probe codev "
          "mark server\n")
UNDER = MOUNTS + "exec /mnt/server\n"  # the child of an init that makes no mounts
BEGIN = ("mount -t devtmpfs devtmpfs /dev && mount -t erofs /dev/vdb /mnt && /mnt/probe mark start "
         "&& ")
TINI = "/usr/bin/tini-static"
STARTS = {
    "busybox init": BEGIN + "mount -o bind /mnt/etc /etc && exec /bin/busybox init",
    "tini": BEGIN + "exec /mnt/tini-static -- /mnt/under",
    "dumb-init": BEGIN + "exec /mnt/ld.so --library-path /mnt /mnt/dumb-init /mnt/under",
    "catatonit": BEGIN + "exec /mnt/catatonit -- /mnt/under",
}
BINARIES = {
    "tini": [TINI],
    "dumb-init": ["/usr/bin/dumb-init"],
    "catatonit": ["/usr/bin/catatonit"]
}
COUNTER = bench.BUILD / "bin" / "bench-count.so"
COUNTS = ("instructions", "steps", "translated")
COUNTING_ROUNDS = 2
MARK_BYTES = 12
BOOT_TIMEOUT_S = 120


def libraries(program):
    """(the loader, the other libraries) of a dynamically linked program."""
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    paths = [pathlib.Path(word) for word in listed.split() if word.startswith("/")]
    return next(path for path in paths
                if path.name.startswith("ld-")), [p for p in paths if not p.name.startswith("ld-")]


def make_disk(folder, guest, server, name):
    """The second disk, with the files that the other inits need and the image lacks."""
    tree = folder / name
    (tree / "etc").mkdir(parents=True)
    loader, others = libraries("/usr/bin/dumb-init")
    shutil.copy(loader, tree / "ld.so")
    for program in (guest / "probe", *others, *(path for paths in BINARIES.values()
                                                for path in paths)):
        shutil.copy(program, tree / pathlib.Path(program).name)
    for script, text in (("mounts", MOUNTS), ("under", UNDER), ("server", server)):
        (tree / script).write_text(text)
    for entry in tree.iterdir():
        entry.chmod(0o755)
    (tree / "etc" / "inittab").write_text(BENCH_INITTAB)
    (tree / "etc" /
     "passwd").write_text("root:x:0:0::/root:/bin/sh\ncodev:x:1000:1000::/tmp:/bin/sh\n")
    (tree / "etc" / "group").write_text("root:x:0:\ncodev:x:1000:\n")
    image = folder / f"{name}.erofs"
    subprocess.run(
        ["mkfs.erofs", "--all-root", str(image), str(tree)], check=True, capture_output=True)
    return image


def boot_other(start, guest, disk, folder, more=()):
    """(milliseconds from just before the init under test is executed to the server's first line,
    the console)."""
    console = folder / "console"
    console.unlink(missing_ok=True)
    command = [
        "qemu-system-x86_64",
        "-M",
        "q35,accel=" + accelerator(),
        "-cpu",
        "max",
        "-m",
        "512",
        "-smp",
        "1",
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
        "-kernel",
        str(guest / "vmlinux"),
        "-device",
        "virtio-rng-pci",
        "-drive",
        f"file={guest / 'rootfs.erofs'},format=raw,if=virtio,readonly=on",
        "-drive",
        f"file={disk},format=raw,if=virtio,readonly=on",
        "-serial",
        f"file:{console}",
        "-append",
        'console=ttyS0 quiet panic=-1 root=/dev/vda rootfstype=erofs ro init=/bin/sh -- -c '
        f'"{start}"',
        *more,
    ]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        marks = wait_for_marks(console, process)
    finally:
        process.kill()
        process.wait()
    return (marks["server"] - marks["start"]) / 1e6, console.read_text(errors="replace")


def accelerator():
    """KVM where it is available, by the same rule as the launcher."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    return "kvm" if re.search(r"\b(vmx|svm)\b",
                              flags) and pathlib.Path("/dev/kvm").exists() else "tcg"


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


# --- counts ---------------------------------------------------------------------------------------

def mark_of(program, function):
    """The function's offset in its page and its first bytes, by which the plugin finds it at any
    load address."""
    linked = bench.BUILD / "obj" / "x86_64" / program  # with symbols
    symbols = subprocess.run(["nm", linked], check=True, capture_output=True, text=True).stdout
    address = int(re.search(rf"^([0-9a-f]+) [tT] {function}$", symbols, re.MULTILINE)[1], 16)
    dump = subprocess.run([
        "objdump", "-s", "-j", ".text", f"--start-address={address}",
        f"--stop-address={address + MARK_BYTES}", linked
    ],
                          check=True,
                          capture_output=True,
                          text=True).stdout
    code = "".join(word for line in re.findall(r"^ [0-9a-f]+ (.{35})", dump, re.MULTILINE)
                   for word in line.split())
    return f"mark={address % 4096:x}:{code}"


def counter(folder, *marks):
    """QEMU's arguments for counting, and the file to which it writes the counts."""
    lines = folder / "counts"
    lines.write_text("")
    lines.chmod(0o666)  # QEMU may run as another user
    return ["-plugin", ",".join([str(COUNTER), f"out={lines}", *marks])], lines


def counts_between(lines):
    """The counts from each mark to the next: {one of COUNTS: millions}."""
    sums = [[int(number) / 1e6 for number in line.split()]
            for line in lines.read_text().splitlines()]
    return [
        dict(zip(COUNTS, (now - before for before, now in zip(*pair))))
        for pair in zip(sums, sums[1:])
    ]


def count_ours(folder):
    """stage -> counts. The stages' marks are calls of report_stage(), the first is main()."""
    arguments, lines = counter(folder, mark_of("codev-init", "main"),
                               mark_of("codev-init", "report_stage"))
    _, stages = boot_ours(None, folder, more=arguments)
    counts = counts_between(lines)
    if len(counts) != len(stages):
        raise RuntimeError(
            f"{len(counts)} of {len(stages)} stages were marked: the image has another codev-init "
            "than build/obj"
        )
    return dict(zip(stages, counts))


def count_other(start, guest, disk, folder):
    """Counts between the two marks of the probe."""
    arguments, lines = counter(folder, mark_of("probe", "probe_mark"))
    boot_other(start, guest, disk, folder, arguments)
    return counts_between(lines)[0]


# --- ours -----------------------------------------------------------------------------------------

def boot_ours(project, folder, options=(), more=()):
    """codev-init's own report: (total, stage by stage). `more`: further arguments of QEMU."""
    del project
    events = folder / "events.jsonl"
    events.unlink(missing_ok=True)
    (folder / "mounted").mkdir(exist_ok=True)
    (folder / "mounted").chmod(0o777)
    more = [word for argument in more for word in ("--qemu-arg", argument)]
    done = subprocess.run([
        str(bench.SANDBOX), "run", *(options or ["--mount", f"{folder / 'mounted'}"]), *more,
        "--events",
        str(events), "--", "true"
    ],
                          stdin=subprocess.DEVNULL,
                          capture_output=True)
    stages, total = {}, None
    for line in events.read_text().splitlines() if events.exists() else ():
        event = json.loads(line)
        if event.get("event") == "stage":
            stages[event["name"]] = event["ms"]
        elif event.get("event") == "ready":
            total = event["boot_ms"]
    if total is None or done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, done.args, done.stdout, done.stderr)
    return total, stages


# --- size and memory ------------------------------------------------------------------------------

def memory_of_ours(folder):
    """KiB of codev-init and of the relay, read by a root process in the guest."""
    for name in ("test/harness",):
        sys.path.insert(0, str(bench.TOP / name))
    os.environ.setdefault("CODEV_BUILD", str(bench.BUILD))
    import machine_harness
    look = machine_harness.Look(folder)
    with machine_harness.Sandbox("sleep 100000", [*look.options, *look.root_options],
                                 programs=False) as sandbox:
        sandbox.wait_event("ready")
        said = look.root(
            "grep Rss: /proc/1/smaps_rollup; grep Rss: /proc/$(pidof codev-agent)/smaps_rollup")
    return [int(kib) for kib in re.findall(r"Rss:\s+(\d+) kB", said)]


def sizes_and_memory(folder, guest):
    """init -> (bytes of its program, KiB resident)."""
    disk = make_disk(folder, guest, MEMORY, "memory")
    own, agent = memory_of_ours(folder)
    found = {"codev-init": ((guest / "codev-init").stat().st_size, own),
             "codev-agent (beside it)": ((guest / "codev-agent").stat().st_size, agent)}
    for name, start in STARTS.items():
        _, console = boot_other(start, guest, disk, folder)
        size = sum(pathlib.Path(path).stat().st_size for path in BINARIES.get(name, ()))
        found[name] = (size, int(re.search(r"Rss:\s+(\d+) kB", console)[1]))
    return found


# --- all of it ------------------------------------------------------------------------------------

def add_counts(counted, guest, disk, folder):
    """One counting boot of each; count -> stage or init -> millions."""
    stages = count_ours(folder)
    for what in COUNTS:
        for stage, counts in stages.items():
            counted.add(what, stage, counts[what])
        counted.add(what, "codev-init", sum(counts[what] for counts in stages.values()))
    for kind, start in STARTS.items():
        for what, number in count_other(start, guest, disk, folder).items():
            counted.add(what, kind, number)


def measure(rounds):
    guest = bench.GUEST
    figures, stages, counted = bench.Figures(), bench.Figures(), bench.Figures()
    with tempfile.TemporaryDirectory(prefix="codev-bench-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        disk = make_disk(folder, guest, SERVER, "disk")
        for _ in range(rounds):
            total, one = boot_ours(None, folder)
            figures.add("boot", "codev-init", total)
            for stage, ms in one.items():
                stages.add("stage", stage, ms)
            for kind, start in STARTS.items():
                figures.add("boot", kind, boot_other(start, guest, disk, folder)[0])
        for _ in range(min(rounds, COUNTING_ROUNDS) if accelerator() == "tcg" else 0):
            add_counts(counted, guest, disk, folder)
        memory = sizes_and_memory(folder, guest)
    return figures, stages, counted, memory


def least(counted, what, name):
    return min(counted.values[what][name]) if counted.values else 0


def print_counts(counted):
    if not counted.values:
        return
    print("\n| millions, the least of the rounds | codev-init |", " | ".join(STARTS),
          "|\n| --- | ---: |" + " ---: |" * len(STARTS))
    for what, label in (("instructions", "instructions"), ("steps",
                                                           "repetitions of string instructions"),
                        ("translated", "instructions translated")):
        print(f"| {label} |", " | ".join(f"{least(counted, what, name):.3f}"
                                         for name in ("codev-init", *STARTS)), "|")


def run(project, rounds=9):
    del project
    figures, stages, counted, memory = measure(rounds)
    print(
        f"\nboot: PID 1's first instruction to a running server, {rounds} interleaved boots, "
        f"accelerator {accelerator()}"
    )
    figures.table("boot", "ms", "tini")
    print(
        "\n| stage | ms | spread | millions of instructions | translated, thousands |\n| --- | "
        "---: | ---: | ---: | ---: |"
    )
    for stage, values in stages.values["stage"].items():
        print(
            f"| {stage} | {statistics.median(values):.1f} | {min(values):.1f}..{max(values):.1f} |",
            f"{least(counted, 'instructions', stage):.2f} | "
            f"{least(counted, 'translated', stage) * 1000:.1f} |"
        )
    print_counts(counted)
    print("\n| program | bytes | KiB resident |\n| --- | ---: | ---: |")
    for name, (size, kib) in memory.items():
        print(f"| {name} | {size or 'part of busybox'} | {kib} |")
    more_ms = figures.median("boot", "codev-init") - figures.median("boot", "tini")
    more_kib = memory["codev-init"][1] + memory["codev-agent (beside it)"][1] - memory["tini"][1]
    print()
    goals = [
        bench.goal("boot at most 10 ms more than tini", more_ms <= 10,
                   f"{more_ms:+.1f} ms ({accelerator()})"),
        bench.goal("memory at most 1 MiB more than tini, the agent included", more_kib <= 1024,
                   f"{more_kib:+} KiB")
    ]
    return {
        "accelerator": accelerator(),
        "rounds": rounds,
        "boot_ms": figures.values["boot"],
        "goals": goals,
        "stages": stages.values,
        "millions": counted.values,
        "memory": memory
    }


if __name__ == "__main__":
    run(None, int(sys.argv[1]) if len(sys.argv) > 1 else 2)
