"""The fixture `sandbox`: the launcher with the real kernel and image, run to its end or started in
the background.

Every run has its own runtime folder. At the end of a test nothing that it started may be left: no
process (each carries a mark in its environment) and no file in the runtime folder."""
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import sanitizer_harness

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("CODEV_BUILD", TOP / "build"))
BIN = pathlib.Path(os.environ.get("CODEV_BIN", BUILD / "bin"))
ARCH = os.environ.get("CODEV_ARCH", os.uname().machine)
PATIENCE = 120  # seconds to wait for an event; not a limit on speed


# Tests that need a guest with sanitizers.
collect_ignore = [] if sanitizer_harness.IMAGE else ["test_sanitized.py"]


class Bench:
    """What the fixture gives to a test: `folder` for its files (every user may enter), `run` and
    `start`."""

    def __init__(self):
        self.mark = f"CODEV_RUN_MARK={secrets.token_hex(8)}"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="codev-run-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.runtime = self.folder / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.started = []
        self.consoles = []  # kept only under sanitizers
        self.forked = []  # processes that the test has not waited for

    def work(self, name="work"):
        """A folder that codev can write: its owner is not root."""
        path = self.folder / name
        path.mkdir()
        if os.geteuid() == 0:
            os.chown(path, 1000, 1000)
        return path

    def argv(self, *options, command):
        words = ["sh", "-c", command] if isinstance(command, str) else list(command)
        behind = ["--", *words] if words else []
        options = [*options, *sanitizer_harness.options(options)]
        if sanitizer_harness.IMAGE and "--console" not in options:
            self.consoles.append(self.folder / f"console-{len(self.consoles)}")
            options += ["--console", self.consoles[-1]]
        return [str(BIN / "codev-sandbox"), "run", "--arch", ARCH, *map(str, options), *behind]

    def environment(self):
        name, value = self.mark.split("=")
        return {**os.environ, "XDG_RUNTIME_DIR": str(self.runtime), name: value}

    def start(self, *options, command, **popen):
        settings = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **popen
        }
        process = subprocess.Popen(self.argv(*options, command=command),
                                   env=self.environment(),
                                   **settings)
        self.started.append(process)
        return process

    def run(self, *options, command, data=None):
        """(exit status, standard output, standard error as text)"""
        process = self.start(*options, command=command,
                             stdin=subprocess.DEVNULL if data is None else subprocess.PIPE)
        out, err = process.communicate(data, timeout=PATIENCE)
        return process.returncode, out, err.decode()

    def processes(self):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                marked = self.mark.encode() in (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if marked:
                found.append(int(entry.name))
        return found

    def left_over(self):
        return self.processes(), sorted(path.name for path in self.runtime.iterdir())

    def assert_nothing_left(self):
        end = time.monotonic() + PATIENCE
        while self.left_over() != ([], []) and time.monotonic() < end:
            time.sleep(0.05)
        assert self.left_over() == ([], [])

    def close(self):
        for pid in self.forked:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        for process in self.started:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
        left = self.left_over()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        said = [path.read_text(errors="replace") for path in self.consoles if path.exists()]
        shutil.rmtree(self.folder, ignore_errors=True)
        sanitizer_harness.assert_no_report(*said)
        return left


@pytest.fixture
def sandbox():
    bench = Bench()
    yield bench
    assert bench.close() == ([], []), "processes or files were left behind"


def pytest_configure(config):
    config.codev_started = time.time()


def pytest_terminal_summary(terminalreporter, config):
    """Prints the tables that the tests made when pytest runs them in several processes, whose
    output is lost."""
    if not getattr(config.option, "numprocesses", None):
        return
    for table in sorted((BUILD / "results").glob("*.md")):
        if table.stat().st_mtime >= config.codev_started:
            terminalreporter.write("\n" + table.read_text())
