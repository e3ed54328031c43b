"""The firewall: time from a program's start until the rules are in force and verified, compared
with `nft -f` and the same rules.

Ours is the driver of the tests (test/harness/nft_driver.c), which loads the rules, reads them back,
compares them and reports; the removal of its table at its exit is not counted. nft reports nothing,
so its figure includes its exit, in which the kernel waits for a grace period when the socket closes
(14 of 16 ms, by strace): compare the processor time. `nft -f` alone verifies nothing, so `nft -f`
followed by `nft list table` is measured too. Each program runs in the same new network namespace,
this process's own, and replaces the previous program's rules."""
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import bench

CLONE_NEWNET = 0x40000000
RUNS = 100
RULES = """\
table inet codev
delete table inet codev
table inet codev {
    chain output {
        type filter hook output priority filter; policy drop;
        oif "lo" accept
        meta l4proto tcp reject with tcp reset
        reject with icmpx admin-prohibited
    }
    chain input {
        type filter hook input priority filter; policy drop;
        iif "lo" accept
    }
    chain forward {
        type filter hook forward priority filter; policy drop;
    }
}
"""


def commands(rules):
    return {
        bench.OURS: [str(bench.BUILD / "test" / "nft_driver")],
        "nft -f": ["nft", "-f", rules],
        "nft -f, nft list": ["sh", "-c", f"nft -f {rules} && exec nft list table inet codev"],
    }


def run_once(command):
    """(milliseconds, milliseconds of processor)"""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic_ns()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if command[0].endswith("nft_driver") and process.stdout.readline() != b"loaded\n":
        raise RuntimeError("the firewall was not loaded")
    if not command[0].endswith("nft_driver"):
        process.stdout.read()  # until its end
    took = (time.monotonic_ns() - begin) / 1e6
    process.stdin.close()
    process.stdout.close()
    if process.wait() != 0:
        raise RuntimeError(f"{command[0]} failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def measure(figures):
    with tempfile.NamedTemporaryFile("w", suffix=".nft") as rules:
        rules.write(RULES)
        rules.flush()
        run_once(["ip", "link", "set", "lo", "up"])
        for _ in range(RUNS):
            for name, command in commands(rules.name).items():
                took, cpu = run_once(command)
                figures.add("load and verify", name, took)
                figures.add("processor time", name, cpu)


def run(project, rounds=0):
    """Runs in a child with a new network namespace, so that later benchmarks are not in it."""
    del project, rounds
    figures = bench.Figures()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "unshare")
            measure(figures)
            os.write(writing, json.dumps(figures.values).encode())
            status = 0
        except Exception as fault:  # told, and the status says so
            print(f"firewall: {fault}", file=sys.stderr)
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError("the firewall could not be measured")
    figures.values = json.loads(text)
    print(
        f"\nfirewall: a program that loads the rules, from its start to its end, {RUNS} "
        "interleaved runs"
    )
    figures.table("load and verify", "ms", "nft -f", 2)
    figures.table("processor time", "ms", "nft -f", 2)
    return {"rounds": RUNS, "figures": figures.values, "goals": []}


if __name__ == "__main__":
    run(None)
