"""The launcher with fake_guest.py in place of QEMU and of the vsock device: real processes and
sockets, no guest kernel."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("CODEV_BIN", TOP / "build" / "bin"))
PATIENCE = 60  # seconds to wait for an event; not a limit on speed


def whole_lines(path):
    """The complete JSON lines of a file that may still be written."""
    text = path.read_text().rpartition("\n")[0] if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


class Rig:
    """A new folder in /tmp that every user may enter, because QEMU does not run as root."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="codev-test-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.runtime = self.folder / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.fake = self.folder / "fake_guest.py"
        shutil.copy(pathlib.Path(__file__).with_name("fake_guest.py"), self.fake)
        self.fake.chmod(0o755)
        self.notes_file = self.folder / "notes"
        self.events_file = self.folder / "events"
        self.machine = self.folder / "machine"
        self.machine.mkdir()
        for name in ("vmlinux", "image"):
            (self.machine / name).write_bytes(b"not a real one")
        self.processes = []

    def environment(self, scenario, **extra):
        return {
            **os.environ, "XDG_RUNTIME_DIR": str(self.runtime),
            "CODEV_FAKE_GUEST_SCENARIO": scenario,
            "CODEV_FAKE_GUEST_NOTES": str(self.notes_file),
            **extra
        }

    def command(self, *arguments):
        return [
            str(BIN / "codev-sandbox"), "run", "--qemu",
            str(self.fake), "--vsock-device",
            str(self.fake), "--kernel",
            str(self.machine / "vmlinux"), "--image",
            str(self.machine / "image"), "--arch", "x86_64", "--events",
            str(self.events_file), *map(str, arguments)
        ]

    def start(self, scenario, *arguments, environment=None, **popen):
        popen.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(self.command(*arguments),
                                   env=self.environment(scenario, **(environment or {})),
                                   stdout=popen.pop("stdout", subprocess.PIPE),
                                   stderr=popen.pop("stderr", subprocess.PIPE),
                                   **popen)
        self.processes.append(process)
        return process

    def run(self, scenario, *arguments, data=None, environment=None):
        """(status, standard output, standard error)"""
        process = self.start(scenario, *arguments, environment=environment,
                             stdin=subprocess.DEVNULL if data is None else subprocess.PIPE)
        out, err = process.communicate(data, timeout=PATIENCE)
        return process.returncode, out, err.decode()

    def notes(self):
        notes = whole_lines(self.notes_file)
        for note in notes:
            assert not (isinstance(note, dict)
                        and "scenario failed" in note), note["scenario failed"]
        return notes

    def wait_for_note(self, what):
        end = time.monotonic() + PATIENCE
        while what not in self.notes():
            assert time.monotonic() < end, f"the guest did not note {what}: {self.notes()}"
            time.sleep(0.02)

    def events(self):
        return whole_lines(self.events_file)

    def run_folders(self):
        return sorted(path.name for path in self.runtime.iterdir())

    def children(self, name=None):
        """Processes whose command line names our folder: the launcher and what it started."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if state != "Z" and any(str(self.folder).encode() in word for word in words):
                if name is None or any(name.encode() in word for word in words):
                    found.append(int(entry.name))
        return found

    def assert_nothing_left(self):
        end = time.monotonic() + PATIENCE
        while self.children() and time.monotonic() < end:
            time.sleep(0.02)
        assert self.children() == []
        assert self.run_folders() == []

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
            process.wait(timeout=PATIENCE)
        for pid in self.children():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.folder)
