"""Code shared by the benchmarks: interleaved runs, tables, the load program, and the resources that
a process used.

The measured program runs on the last processor, its clients and servers on the first (`taskset`),
so that it has a processor for itself. Runs are interleaved: each round measures every subject once,
so that a busy moment of the machine affects all. The figure is the median of the rounds, the spread
their minimum and maximum, and a ratio is one of medians."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("CODEV_BUILD", "build"))
BUILD = BUILD if BUILD.is_absolute() else TOP / BUILD
LOAD = BUILD / "bin" / "bench-load"
GUEST = BUILD / "guest" / "x86_64"
BROKER = BUILD / "bin" / "codev-broker"
AGENT = GUEST / "codev-agent"
SANDBOX = BUILD / "bin" / "codev-sandbox"
CORES = sorted(os.sched_getaffinity(0))
PATIENCE = 60
TICK = os.sysconf("SC_CLK_TCK")
OURS = "codev"


# --- processes ------------------------------------------------------------------------------------

def pinned(command, core):
    return ["taskset", "-c", str(CORES[core]), *map(str, command)]


def subject(command, **more):
    """Starts the measured program on the last processor, in its own session."""
    return subprocess.Popen(pinned(command, -1), start_new_session=True, **more)


def end(process):
    """Ends a program with every child that is still in its session."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def session_of(pid):
    """The process and all other processes of its session."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == pid or int(entry.name) == pid:
                    found.append(int(entry.name))
    return found


def cpu_seconds(pid):
    """User and system time of the session, including children that ended. One tick is 10 ms on most
    machines; a thread's nanoseconds are used where the kernel shows them."""
    total = 0.0
    for one in session_of(pid):
        with contextlib.suppress(OSError):
            fields = pathlib.Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[13:15])) / TICK
            for task in pathlib.Path(f"/proc/{one}/task").iterdir():
                total += int((task / "schedstat").read_text().split()[0]) / 1e9
    return total


def memory_kib(pid):
    """Proportional memory of the session: its own pages, and its share of pages that several
    processes map."""
    total = 0
    for one in session_of(pid):
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{one}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total


def wait_until(condition, what, seconds=PATIENCE):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"waited {seconds} s for {what}")
        time.sleep(0.01)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def accepts(address):
    """True when a server accepts there: a port on loopback, or the path of a Unix socket."""
    with socket.socket(socket.AF_INET if isinstance(address, int) else socket.AF_UNIX) as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1",
                                  address) if isinstance(address, int) else str(address)) == 0


# --- the load program -----------------------------------------------------------------------------

@contextlib.contextmanager
def serving(endpoint, *options):
    """Starts bench-load's server; its port."""
    process = subprocess.Popen(pinned([LOAD, "serve", endpoint, *options], 0),
                               stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE,
                               text=True)
    try:
        yield json.loads(process.stdout.readline())["port"]
    finally:
        process.stdin.close()
        process.wait(PATIENCE)
        process.stdout.close()


def requests(endpoint,
             path,
             connections=1,
             ms=600,
             preface=None,
             post=0,
             fresh=False,
             count=0,
             accept=None):
    """One run of requests: the load program's figures, with rates."""
    command = [LOAD, "requests", endpoint, "--path", path, "--connections", connections]
    command += ["--requests", count] if count else ["--ms", ms]
    command += ["--preface", preface] if preface else []
    command += ["--post", post] if post else []
    command += ["--fresh"] if fresh else []
    command += ["--accept", accept] if accept else []
    done = subprocess.run(pinned(command, 0), capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != 0:
        raise RuntimeError(f"{endpoint}: {done.stderr.strip()}")
    values = json.loads(done.stdout)
    seconds = values["ns"] / 1e9
    return {**values, "rate": values["requests"] / seconds, "mb_s": values["bytes"] / seconds / 1e6}


@contextlib.contextmanager
def holding(kind, endpoint, path, connections, preface=None, ms=0):
    """Opens connections or streams; a line on the process's input controls it."""
    command = [LOAD, kind, endpoint, "--path", path, "--connections", connections, "--ms", ms]
    command += ["--preface", preface] if preface else []
    process = subprocess.Popen(pinned(command, 0), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{endpoint}: {process.stderr.read().strip()}")
        yield process
    finally:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.wait(PATIENCE)
        process.stdout.close()
        process.stderr.close()


# --- figures --------------------------------------------------------------------------------------

class Figures:
    """metric -> subject -> the values of all rounds."""

    def __init__(self):
        self.values = {}

    def add(self, metric, name, value):
        self.values.setdefault(metric, {}).setdefault(name, []).append(value)

    def median(self, metric, name):
        return statistics.median(self.values[metric][name])

    def table(self, metric, unit, reference, digits=1):
        """One metric of all subjects, each compared with the reference."""
        rows = self.values.get(metric, {})
        print(f"\n| {metric} | {unit} | spread | to {reference} |\n| --- | ---: | ---: | ---: |")
        base = statistics.median(rows[reference]) if reference in rows else 0
        for name, values in rows.items():
            middle = statistics.median(values)
            ratio = f"{middle / base:.2f}" if base else ""
            print(
                f"| {name} | {middle:,.{digits}f} | "
                f"{min(values):,.{digits}f}..{max(values):,.{digits}f} | {ratio} |"
            )

    def ratio(self, metric, name, reference):
        base = self.median(metric, reference)
        return self.median(metric, name) / base if base else 0.0


def goal(text, met, figure):
    print(f"goal: {text}: {figure} ({'met' if met else 'MISSED'})")
    return {"goal": text, "figure": figure, "met": bool(met)}


def machine():
    """The machine on which the figures were taken, and its load."""
    model = next((line.split(":")[1].strip()
                  for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), "unknown")
    return {"processor": model, "processors": len(CORES), "kernel": os.uname().release,
            "load": os.getloadavg()[0], "time": time.strftime("%Y-%m-%d %H:%M:%S")}
