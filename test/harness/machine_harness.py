"""A running sandbox that a test observes from outside, and ways to look into it that the product
does not have.

Each sandbox gets its own runtime folder, so that its run folder, sockets and memory file are known,
and a mark in its environment, so that leftover processes are found.

Look boots with a small shell as PID 1, which starts a root process before it executes codev-init.
The product does not know of that process. It takes commands through a mounted folder; tests use it
to read what is hidden from codev and to kill the relay."""
import contextlib
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import sanitizer_harness

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("CODEV_BUILD", TOP / "build"))
BIN = pathlib.Path(os.environ.get("CODEV_BIN", BUILD / "bin"))
ARCH = os.environ.get("CODEV_ARCH", os.uname().machine)
GUEST = BUILD / "guest" / ARCH
SANDBOX = BIN / "codev-sandbox"
SANDBOX_WSL = BIN / "codev-sandbox-wsl"  # the same with the WSL rig as its machine
BROKER = BIN / "codev-broker"
VSOCK_DEVICE = BUILD / "tools" / "usr" / "bin" / "vhost-device-vsock"
TOUR = TOP / "qemu-harness" / "tour"
PROBE = "/workspace/programs/probe"
MARK = "CODEV_TEST_MARK"
PATIENCE = 120  # seconds to wait for an event; not a limit on speed
CANNOT_START = 125
WAY_IN_PORT = 4096


def wait_for(question, what, seconds=PATIENCE):
    """Calls the function until it returns a true value, and returns that."""
    end = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.02)


# --- processes of this host -----------------------------------------------------------------------

def processes_marked(mark):
    """pid -> command line of every process whose environment holds the mark."""
    found, wanted = {}, f"{MARK}={mark}".encode()
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    command = (entry / "cmdline").read_bytes()
                    if command:  # a zombie has none
                        found[int(entry.name)] = command.replace(b"\0",
                                                                 b" ").decode(errors="replace")
    return found


def name_of(pid):
    """The name of a process's program; empty when it has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return pathlib.Path(os.readlink(f"/proc/{pid}/exe")).name
    return ""


def descriptor_count(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident_kib(pid, what="VmRSS"):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1])
    raise AssertionError(f"no {what} of {pid}")


# --- a sandbox ------------------------------------------------------------------------------------

class Sandbox:
    """The launcher, or `program`, as a process. `options` come before `--`; `command` runs in the
    sandbox (a list, or text for sh)."""

    def __init__(self, command, options=(), programs=True, stdin=subprocess.DEVNULL, runtime=None,
                 program=SANDBOX):
        self.mark = secrets.token_hex(8)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="codev-t-", dir="/tmp"))
        self.runtime = pathlib.Path(runtime or self.folder / "run")
        self.runtime.mkdir(mode=0o700, exist_ok=True)
        self.events_path = self.folder / "events"
        self.console_path = self.folder / "console"
        argv = [
            program, "run", "--arch", ARCH, "--events", self.events_path, "--console",
            self.console_path, "--vsock-device", VSOCK_DEVICE
        ]  # also where the host has /dev/vhost-vsock: tests use the sockets
        argv += ["--mount", f"{GUEST}:/workspace/programs:ro"] if programs else []
        argv += [] if "--cwd" in options else ["--cwd", "/home/codev"]
        argv += sanitizer_harness.options(options)
        argv += [*options, "--"]
        argv += ["sh", "-c", command] if isinstance(command, str) else command
        self.argv = [str(item) for item in argv]
        self.process = subprocess.Popen(self.argv,
                                        stdin=stdin,
                                        stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE,
                                        start_new_session=True,
                                        env={
                                            **os.environ, MARK: self.mark,
                                            "XDG_RUNTIME_DIR": str(self.runtime)
                                        })
        self.output, self.said = bytearray(), bytearray()
        self.readers = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in ((self.process.stdout, self.output), (self.process.stderr, self.said))
        ]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def _read(pipe, into):
        while data := pipe.read1(65536):
            into += data

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        for pid in processes_marked(self.mark):  # only processes of this sandbox carry the mark
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for reader in self.readers:
            reader.join(10)
        if kind:
            print(self.describe())
        console = self.console_path.read_text(
            errors="replace") if self.console_path.exists() else ""
        for pipe in (self.process.stdout, self.process.stderr, self.process.stdin):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        sanitizer_harness.assert_no_report(console, self.complaint(), self.text())

    def describe(self):
        console = self.console_path.read_text(
            errors="replace") if self.console_path.exists() else ""
        return (
            f"$ {' '.join(self.argv)}\nexit status {self.process.poll()}\n--- "
            f"output\n{self.text()[-3000:]}\n"
            f"--- standard error\n{bytes(self.said).decode(errors='replace')[-3000:]}\n--- "
            f"console\n{console[-3000:]}"
        )

    def text(self):
        return bytes(self.output).decode(errors="replace")

    def complaint(self):
        return bytes(self.said).decode(errors="replace")

    def console(self):
        return self.console_path.read_text(errors="replace")

    def events(self):
        """The complete lines that --events contains now."""
        if not self.events_path.exists():
            return []
        lines = self.events_path.read_text(errors="replace").split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def event(self, name):
        """The first event of this name, or None."""
        return next((event for event in self.events() if event.get("event") == name), None)

    def alive(self):
        assert self.process.poll() is None, "it ended\n" + self.describe()

    def wait_event(self, name, seconds=PATIENCE):
        return wait_for(lambda: self.event(name) or self.alive(), f"the event {name}", seconds)

    def wait_output(self, text, seconds=PATIENCE):
        """Waits until standard output contains the text."""
        wait_for(lambda: text in self.text() or self.alive(), f"{text!r} in the output", seconds)

    def finish(self, seconds=PATIENCE * 2):
        """Waits until the launcher exits; (exit status, output)."""
        status = self.process.wait(seconds)
        for reader in self.readers:
            reader.join(10)
        return status, self.text()

    def send(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def run_folder(self):
        return wait_for(lambda: next(self.runtime.glob("codev-sandbox-*"), None), "the run folder")

    def pid_of(self, program):
        """The one process of this sandbox that runs this program."""
        pids = [pid for pid in processes_marked(self.mark) if name_of(pid).startswith(program)]
        assert len(pids) == 1, f"{program}: {pids}"
        return pids[0]

    def left_behind(self):
        """Leftover processes and files; empty when there are none."""
        return [*processes_marked(self.mark).values(), *map(str, self.runtime.rglob("*"))]

    def assert_nothing_left(self):
        wait_for(lambda: not processes_marked(self.mark), "the end of every process")
        assert self.left_behind() == []


def run(command, options=(), **more):
    """Runs a sandbox from start to end; the Sandbox, with .status."""
    with Sandbox(command, options, **more) as sandbox:
        sandbox.status, _ = sandbox.finish()
        sandbox.events_at_end = sandbox.events()
        sandbox.console_at_end = sandbox.console() if sandbox.console_path.exists() else ""
        sandbox.assert_nothing_left()
        return sandbox


# --- a gateway ------------------------------------------------------------------------------------

class Gateway:
    """The demo gateway with a token of its own and a registry as a named rule, and the launcher's
    options to use it."""

    def __init__(self, *arguments):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="codev-g-", dir="/tmp"))
        self.token = "sk-" + secrets.token_urlsafe(48).replace("-", "a").replace("_", "b")
        self.asked = 0
        self.token_file = self.folder / "token"
        self.token_file.write_text(self.token + "\n")
        self.token_file.chmod(0o600)
        self.process = subprocess.Popen([
            sys.executable, TOUR / "demo_gateway.py", "--dir", self.folder / "tls", "--token-file",
            self.token_file, "--rule-port", "0", *map(str, arguments)
        ],
                                        stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE,
                                        text=True)
        self.ready = json.loads(self.process.stdout.readline())
        self.rules = self.folder / "sandbox-egress.json"
        self.rules.write_text(json.dumps({"registry": self.ready["rule_url"]}))
        self.rules.chmod(0o600)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def stats(self):
        """The gateway's counters, not counting this request."""
        self.asked += 1
        context = ssl.create_default_context(cafile=self.ready["ca"])
        request = urllib.request.Request(self.ready["url"] + "/stats",
                                         headers={"x-api-key": self.token})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}),
                                             urllib.request.HTTPSHandler(context=context))
        with opener.open(request, timeout=PATIENCE) as answer:
            values = json.load(answer)
        return {
            **values, "requests": values["requests"] - self.asked,
            "connections": values["connections"] - self.asked
        }

    @property
    def options(self):
        return [
            "--gateway-url", self.ready["url"], "--gateway-token-file", self.token_file,
            "--ca-file", self.ready["ca"], "--rules", self.rules, "--proxy", "none"
        ]


# --- the sandbox's own token ----------------------------------------------------------------------

class SpiedBroker:
    """The real broker behind a script that saves the first line of its input, which contains the
    sandbox's token."""

    def __init__(self, folder):
        self.copy = pathlib.Path(folder) / "ready-line"
        self.program = pathlib.Path(folder) / "broker"
        self.program.write_text(f"#!/bin/bash\nexec {BROKER} \"$@\" > >(exec tee {self.copy})\n")
        self.program.chmod(0o755)
        self.options = ["--broker", self.program]

    def token(self):
        line = wait_for(lambda: self.copy.exists() and self.copy.read_text().rpartition("\n")[0],
                        "the broker's ready line")
        return json.loads(line.partition("\n")[0])["token"]


# --- processes inside that do what a test asks ----------------------------------------------------

LOOK = "/workspace/look"
LOOK_LOOP = f"""\
number=1
while :; do
    if [ -f {LOOK}/$who.$number ]; then
        {{ sh {LOOK}/$who.$number; echo "end $number"; }} \\
            >{LOOK}/$who.$number.answer 2>&1 </dev/null
        number=$((number + 1))
    fi
    usleep 20000
done
"""
WAIT = f"while ! [ -f {LOOK}/loop ]; do usleep 20000; done"


def kernel_command_line(extra):
    console = "ttyAMA0" if ARCH == "aarch64" else "ttyS0 no_timer_check"
    return (f"console={console} quiet panic=-1 root=/dev/vda rootfstype=erofs ro "
            f"codev.control=vsock:1024 {extra}")


class Look:
    """Options for a sandbox in which a root process of the test runs, and methods to run commands
    as that root and as codev."""

    # The sandbox's command when codev() is used: it runs scripts with the privileges of any server;
    # descriptor 3 is its standard output.
    CODEV = f"set +e; exec 3>&1; who=codev; . {LOOK}/loop"

    def __init__(self, folder):
        self.folder = pathlib.Path(folder) / "look"
        self.folder.mkdir()
        self.folder.chmod(0o777)
        (self.folder / "loop").write_text(LOOK_LOOP)
        self.numbers = {"root": 0, "codev": 0}
        # a shell needs it for a background command
        null = "mount -t tmpfs tmpfs /dev; mknod /dev/null c 1 3"
        line = (f"init=/bin/sh -- -c \"{null}; ( {WAIT}; who=root; . {LOOK}/loop ) & exec "
                "/sbin/codev-init\"")
        self.options = ["--mount", f"{self.folder}:{LOOK}"]
        self.root_options = ["--qemu-arg", "-append", "--qemu-arg", kernel_command_line(line)]

    def begin(self, who, script):
        """Starts a shell script; returns a function that waits for its output."""
        self.numbers[who] += 1
        name = f"{who}.{self.numbers[who]}"
        answer, new = self.folder / f"{name}.answer", self.folder / f"{name}.new"
        end = f"end {self.numbers[who]}\n"
        answer.touch()  # made by the host: root in the guest does not own this folder
        answer.chmod(0o666)
        if os.geteuid() == 0:  # 9p sets times at a truncation, which only the owner may
            os.chown(answer, 1000, 1000)
        new.write_text(script + "\n")
        new.rename(self.folder / name)

        def finish(seconds=PATIENCE):
            wait_for(lambda: answer.read_text(errors="replace").endswith(end),
                     f"an answer to {script!r}", seconds)
            return answer.read_text(errors="replace").removesuffix(end)

        return finish

    def root(self, script, seconds=PATIENCE):
        return self.begin("root", script)(seconds)

    def codev(self, script, seconds=PATIENCE):
        return self.begin("codev", script)(seconds)

    def no_zombie_stays(self):
        states = lambda: self.root("cat /proc/[0-9]*/stat 2>/dev/null | sed 's/.*) //; s/ .*//'"
                                   ).split()
        assert "S" in states()
        wait_for(lambda: "Z" not in states(), "the last zombie")

    def agent_pid(self):
        return int(self.root("pidof codev-agent").split()[0])


# --- the way in from the host's side --------------------------------------------------------------

def hybrid_connect(run_folder, port):
    """A connection to a vsock port of the guest, as any program of this user could make it. The
    vsock device must be running."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(PATIENCE)
    client.connect(str(run_folder / "vsock.sock"))
    client.sendall(f"CONNECT {port}\n".encode())
    return client


def read_line(client, limit=256):
    line = b""
    while not line.endswith(b"\n") and len(line) < limit:
        byte = client.recv(1)
        if not byte:
            break
        line += byte
    return line


def read_all(client):
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := client.recv(65536):
            data += piece
    return data
