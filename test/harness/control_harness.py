"""A virtual machine whose control channel the test serves itself, to send what the launcher never
sends and to see what the launcher hides.

Guest boots the built kernel and image in QEMU with vsock through vhost-device-vsock and listens
where codev-init connects. `witness` is a shell script that runs in the guest as root beside
codev-init; the shell that becomes PID 1 starts it."""
import base64
import json
import os
import pathlib
import select
import shutil
import socket
import subprocess
import tempfile
import time

import sanitizer_harness
from conftest import ARCH, BUILD, PATIENCE

CREDIT = 256 * 1024  # the initial credit of both sides
PIECE = 32 * 1024
PORT = 1024
SECRET = "ab" * 32
MACHINES = {
    "x86_64": ("vmlinux", "q35,vmport=off,smbus=off,sata=off,usb=off,graphics=off,hpet=off",
               "ttyS0 no_timer_check"),
    "aarch64": ("Image", "virt,gic-version=max,usb=off", "ttyAMA0"),
}


def config(argv, **server):
    """The smallest boot configuration with this server."""
    value = {
        "protocol": 1,
        "id": "t1",
        "hostname": "codev-t1",
        "unix_ns": time.time_ns(),
        "server": {
            "argv": ["sh", "-c", argv] if isinstance(argv, str) else argv,
            "stdio": "pipe",
            "cwd": "/home/codev",
            **server
        },
        "way_in": {
            "listen": "vsock:4096",
            "secret": SECRET
        }
    }
    return value


class Guest:
    """`configuration` is sent when the guest connects; None: nothing is sent."""

    def __init__(self, configuration, append="", witness="", listen=True, image=None):
        self.image = image or sanitizer_harness.IMAGE
        self.configuration, self.connection, self.rest = configuration, None, b""
        self.questions = []  # events `time`, which a test may answer
        self.events, self.output = [], {"stdout": b"", "stderr": b"", "tty": b""}
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="codev-c-", dir="/tmp"))
        self.listener = socket.socket(socket.AF_UNIX)
        self.programs = []
        if listen:
            self.listen()
        self._begin(append, witness)

    def listen(self):
        self.listener.bind(str(self.folder / f"vsock_{PORT}"))
        self.listener.listen(8)

    def _begin(self, append, witness):
        kernel, machine, console = MACHINES[ARCH]
        guest, device = BUILD / "guest" / ARCH, self.folder / "device"
        first = "init=/sbin/codev-init"
        if witness:
            null = "mount -t tmpfs tmpfs /dev; mknod /dev/null c 1 3; mknod /dev/console c 5 1"
            first = f"init=/bin/sh -- -c \"{null}; ({witness}) & exec /sbin/codev-init\""
        self.programs.append(
            subprocess.Popen([
                BUILD / "tools/usr/bin/vhost-device-vsock", "--vm",
                f"guest-cid={3 + os.getpid() % 60000},socket={device},"
                f"uds-path={self.folder / 'vsock'}"
            ],
                             stderr=subprocess.DEVNULL))
        end = time.monotonic() + PATIENCE
        while not device.exists():
            assert time.monotonic() < end, "vhost-device-vsock does not begin"
            time.sleep(0.01)
        self.machine = subprocess.Popen([
            f"qemu-system-{ARCH}", "-nodefaults", "-no-user-config", "-no-reboot", "-display",
            "none", "-machine", f"{machine},memory-backend=memory", "-accel", "tcg", "-cpu", "max",
            "-m", "256M", "-object",
            f"memory-backend-file,id=memory,size=256M,share=on,mem-path={self.folder / 'memory'}",
            "-kernel", guest / kernel, "-append",
            f"console={console} quiet panic=-1 root=/dev/vda rootfstype=erofs ro "
            f"codev.control=vsock:{PORT} {append} {first}",
            "-drive",
            f"if=none,id=root,format=raw,readonly=on,file={self.image or guest / 'rootfs.erofs'}",
            "-device", "virtio-blk-pci,drive=root", "-device", "virtio-rng-pci", "-serial",
            f"file:{self.folder / 'console'}", "-chardev", f"socket,id=vsock,path={device}",
            "-device", "vhost-user-vsock-pci,chardev=vsock"
        ],
                                        stderr=subprocess.DEVNULL)
        self.programs.append(self.machine)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            print(f"events {self.events}\noutput {self.output}\nconsole {self.console()}")
        for program in reversed(self.programs):
            if program.poll() is None:
                program.kill()
            program.wait()
        if self.connection:
            self.connection.close()
        self.listener.close()
        console = self.console()
        shutil.rmtree(self.folder)
        sanitizer_harness.assert_no_report(
            console, *(data.decode(errors="replace") for data in self.output.values()))

    # --- the channel

    def accept(self):
        self.listener.settimeout(PATIENCE)
        self.connection, _ = self.listener.accept()
        self.connection.settimeout(PATIENCE)
        if self.configuration is not None:
            self.send(self.configuration)

    def send(self, value):
        self.connection.sendall(json.dumps(value).encode() + b"\n")

    def type(self, data):
        self.send({"command": "input", "data": base64.b64encode(data).decode()})

    def event(self, credit=True, seconds=PATIENCE):
        """The next event, or None at the end of the channel. Output is collected and, if `credit`,
        paid for."""
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.connection], [], [], seconds)
            if not ready:
                raise TimeoutError(f"no event within {seconds} s")
            try:
                piece = self.connection.recv(1 << 20)
            except ConnectionError:
                piece = b""
            if not piece:
                return None
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\n")
        event = json.loads(line)
        if event["event"] == "output":
            data = base64.b64decode(event["data"], validate=True)
            self.output[event["stream"]] += data
            if credit and self.configuration["server"]["stdio"] != "log":
                self.send({"command": "credit", "stream": event["stream"], "bytes": len(data)})
        elif event["event"] == "time":
            self.questions.append(event)
        else:
            self.events.append(event)
        return event

    def until(self, *names):
        while True:
            event = self.event()
            assert event is not None, f"the channel ended before {names}"
            if event["event"] in names:
                return event

    def question(self, number):
        """Waits until the guest has asked for the time this many times."""
        while len(self.questions) < number:
            assert self.event() is not None, f"the channel ended before question {number}"
        assert self.questions[-1] == {"event": "time", "number": number}

    def see(self, data, stream="stdout"):
        """Waits until this output contains the bytes."""
        while data not in self.output[stream]:
            event = self.event()
            assert event and event["event"] not in ("exit", "failed"), f"{data} was not said"

    def begin(self):
        self.accept()
        self.until("ready")

    def end(self):
        """Acknowledges the last event, waits for an orderly power-off, and returns the event."""
        last = self.until("exit", "failed")
        self.send({"command": "ack"})
        self.off()
        return last

    def run(self):
        self.accept()
        return self.end()

    def off(self):
        self.machine.wait(PATIENCE)
        assert "reboot: Power down" in self.console()
        assert "panic" not in self.console().lower()

    # --- what was seen

    def console(self):
        path = self.folder / "console"
        return path.read_text(errors="replace") if path.exists() else ""

    def named(self, name):
        return [event for event in self.events if event["event"] == name]
