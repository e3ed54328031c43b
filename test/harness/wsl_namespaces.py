"""A simulated WSL on this machine, for `codev-init --wsl`: no virtual machine, this machine's own
kernel, everything in separate namespaces, so that the machine's network is neither used nor
changed.

    windows     a network namespace with 172.31.0.1 and fd31::1: the gateway, as with NAT
    the VM      a network namespace with 172.31.0.2 and fd31::2 on eth0, joined to it: what all
                distributions share
    distribution  PID, mount, IPC and UTS namespaces with the image's rootfs.tar as root: as WSL
    clones them, with its own PID 1, a bind-mounted /init, /mnt/c, /mnt/wsl, /mnt/wslg, /run/WSL
    with a socket, and a mount.drvfs

Tests enter these namespaces by nsenter(1)."""
import base64
import contextlib
import ctypes
import errno
import json
import os
import pathlib
import re
import secrets
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import procfs

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
GUEST = pathlib.Path(os.environ.get("CODEV_GUEST", TOP / "build" / "guest" / "x86_64"))
BIN = pathlib.Path(os.environ.get("CODEV_BIN", TOP / "build" / "bin"))
PATIENCE = 60  # seconds to wait for an event; not a limit on speed
INIT = "/usr/sbin/codev-init"
INIT_FAIL_STAGE = "/fail-stage/codev-init"  # test/harness/init_fail_stage.c
INIT_COMMANDS = [f"{program}\0--wsl\0".encode() for program in (INIT, INIT_FAIL_STAGE)]
SECRET = "5ec0" * 16
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000

# The distribution's PID 1, which only reaps children. $1: the root.
ENTER = r"""
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc -o nosuid,nodev,noexec proc proc
mount -t sysfs sysfs sys
mount -t tmpfs -o mode=0755 tmpfs dev
for node in "null 1 3" "zero 1 5" "random 1 8" "urandom 1 9" "full 1 7" "tty 5 0" \
    "console 5 1" "kmsg 1 11"; do
    set -- "$1" $node
    mknod -m 0666 dev/$2 c $3 $4
done
mkdir -p sys/fs/cgroup
if [ -d /sys/fs/cgroup/unified ]; then
    mount -t tmpfs tmpfs sys/fs/cgroup
    mkdir sys/fs/cgroup/unified
    mount --rbind /sys/fs/cgroup/unified sys/fs/cgroup/unified
elif [ -f /sys/fs/cgroup/cgroup.procs ]; then
    mount --rbind /sys/fs/cgroup sys/fs/cgroup
fi
mount -t tmpfs -o mode=0755 tmpfs run
mkdir -p run/WSL run/user mnt/c mnt/wsl mnt/wslg
touch init
mount --bind usr/local/windows/init init
mount -t tmpfs -o mode=0777 tmpfs mnt/c
mount -t tmpfs tmpfs mnt/wsl
mount -t tmpfs tmpfs mnt/wslg
mkdir -p mnt/c/Users/x/app mnt/c/Windows
echo secret >mnt/c/Windows/secret
echo shared >mnt/wsl/shared
mkdir -p .old
pivot_root . .old
umount -l /.old
rmdir /.old
exec /usr/bin/busybox sh -c 'while :; do /usr/bin/busybox sleep 1000 & wait; done'
"""

# What `mount -t drvfs C:\Users\x\app TARGET -o OPTIONS` runs. It writes its arguments to a file
# that the test reads.
DRVFS = r"""#!/usr/bin/busybox sh
echo "$@" >>/usr/local/windows/drvfs.log
[ -S /run/WSL/1_interop ] || { echo "no interop" >&2; exit 3; }
path=$(echo "$1" | /usr/bin/busybox sed 's|^C:|/mnt/c|; s|\\|/|g')
[ -d "$path" ] || { echo "$1: no such folder of Windows" >&2; exit 2; }
exec /usr/bin/busybox mount -o bind "$path" "$2"
"""


def run(*command, **more):
    more.setdefault("check", True)
    return subprocess.run([str(word) for word in command],
                          capture_output=True,
                          text=True,
                          timeout=PATIENCE,
                          **more)


def eventually(condition, what, patience=PATIENCE):
    end = time.monotonic() + patience
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < end, f"not within {patience} s: {what}"
        time.sleep(0.02)


def descendants(pid):
    found = []
    for child in procfs.children(pid):
        found += [child, *descendants(child)]
    return found


def eldest(pids):
    """The process among these that is no child of another: a child that codev-init forks has the
    same command line until it executes another program. None when there is none."""
    return next((pid for pid in pids if procfs.parent(pid) not in pids), None)


class Holder:
    """A process that keeps new namespaces of these kinds alive."""

    def __init__(self, *flags):
        self.process = subprocess.Popen(["unshare", *flags, "sh", "-c", "echo ready; read never"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.pid = self.process.pid

    def run(self, *command, **more):
        return run("nsenter", "-t", self.pid, "-n", *command, **more)

    def end(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


class Sandbox:
    """One `codev-init --wsl` in the distribution, with its standard input and output."""

    def __init__(self, rig, config, prefix=(), user=None, stdio="pipe", preexec=None, program=INIT):
        self.rig, self.events, self.rest = rig, [], b""
        self.config = config
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "WSL_DISTRO_NAME": "codev",
            "WSL_INTEROP": "/run/WSL/1_interop"
        }
        before = set(rig.inits())
        self.channel = theirs = None
        streams = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if stdio == "socket":
            self.channel, theirs = (end.detach() for end in socket.socketpair())
        elif stdio == "tty":
            self.channel, theirs = os.openpty()
        if theirs is not None:
            streams = dict(stdin=theirs, stdout=theirs)
        self.process = subprocess.Popen([*prefix, *rig.enter_command(program, "--wsl", user=user)],
                                        env=environment,
                                        stderr=subprocess.PIPE,
                                        preexec_fn=preexec,
                                        **streams)
        if theirs is not None:
            os.close(theirs)
        self.reader = self.process.stdout.fileno() if self.channel is None else self.channel
        self.writer = self.process.stdin.fileno() if self.channel is None else self.channel
        self.outer = eventually(
            lambda: eldest(set(rig.inits()) - before) or self.process.poll() is not None,
            "codev-init starts")
        if stdio == "tty":  # before it is raw a terminal would echo the configuration
            self.until("hello")
        if config is not None:
            self.send(config)

    def send(self, message):
        data = (message if isinstance(message, str) else json.dumps(message)).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):  # a refused start does not read its input
            while data:
                data = data[os.write(self.writer, data):]

    def read(self, patience=PATIENCE):
        """The next event, or None at the end."""
        end = time.monotonic() + patience
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.reader], [], [], max(0, end - time.monotonic()))
            assert ready, f"no event within {patience} s; before: {self.events[-5:]}"
            try:
                data = os.read(self.reader, 65536)
            except OSError as error:
                assert error.errno == errno.EIO  # the other end of a terminal is closed
                return None
            if not data:
                return None
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        if not line:
            return self.read(patience)
        event = json.loads(line)
        self.events.append(event)
        if event["event"] in ("exit", "failed"):
            with contextlib.suppress(OSError):
                self.send({"command": "ack"})
        return event

    def until(self, name, patience=PATIENCE):
        while True:
            event = self.read(patience)
            assert event is not None, (f"the end before {name}: {self.events}, "
                                       f"{self.process.stderr.read()}")
            if event["event"] == name:
                return event
            assert event["event"] not in ("exit", "failed"), f"{event} before {name}"

    def end(self):
        """The last event, and the exit status."""
        while self.read() is not None:
            pass
        last = self.events[-1] if self.events else None
        status = self.process.wait(PATIENCE)
        self.close()
        return last, status

    def output_of(self, stream="stdout"):
        return b"".join(base64.b64decode(event["data"]) for event in self.events
                        if event["event"] == "output" and event["stream"] == stream)

    def warnings(self):
        return [event["text"] for event in self.events if event["event"] == "warning"]

    def shutdown(self):
        self.send({"command": "shutdown", "grace_ms": 100})
        return self.end()

    def inner(self):
        """PID 1, by the host's number."""
        return next(pid for pid in procfs.children(self.outer) if not self.rig.is_agent(pid))

    def outer_agent(self):
        return next((pid for pid in procfs.children(self.outer) if self.rig.is_agent(pid)), None)

    def inner_agent(self):
        return next((pid for pid in procfs.children(self.inner()) if self.rig.is_agent(pid)), None)

    def inside(self, *command, **more):
        """Runs a program of this machine in the sandbox's network namespace, as root."""
        return run("nsenter", "-t", self.inner(), "-n", *command, **more)

    def close(self):
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        if self.channel is not None:
            os.close(self.channel)
            self.channel = None


class Rig:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="codev-wsl-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.root = self.folder / "distribution"
        self.root.mkdir()
        run("tar", "xf", GUEST / "rootfs.tar", "-C", self.root, "--numeric-owner")
        (self.root / INIT_FAIL_STAGE[1:]).parent.mkdir()
        for name, path in (("codev-init", INIT), ("codev-init-fail-stage", INIT_FAIL_STAGE),
                           ("codev-agent", "/usr/libexec/codev/codev-agent")):
            shutil.copy(GUEST / name, self.root / path[1:])
        self.furnish()
        self.windows, self.vm = Holder("-n"), Holder("-n")
        self.sandboxes = []
        self.make_network()
        self.distribution = subprocess.Popen([
            "nsenter", "-t",
            str(self.vm.pid), "-n", "unshare", "-m", "-p", "-i", "-u", "--fork", "--kill-child",
            "sh", "-c", ENTER, "enter",
            str(self.root)
        ])
        self.pid = eventually(self.find_distribution, "the distribution starts")
        self.interop = self.make_interop()

    def furnish(self):
        windows = self.root / "usr/local/windows"
        windows.mkdir(parents=True)
        (windows / "init").write_text("#!/usr/bin/busybox sh\nexit 0\n")
        helper = self.root / "usr/sbin/mount.drvfs"
        helper.unlink(missing_ok=True)
        helper.write_text(DRVFS)
        for script in (windows / "init", helper):
            script.chmod(0o755)

    def make_network(self):
        run("ip", "link", "add", "eth0", "netns", self.vm.pid, "type", "veth", "peer", "name",
            "vmnic", "netns", self.windows.pid)
        for where, link, four, six in ((self.vm, "eth0", "172.31.0.2/24", "fd31::2/64"),
                                       (self.windows, "vmnic", "172.31.0.1/24", "fd31::1/64")):
            # without duplicate address detection the link-local address is final at once
            where.run("sh", "-c", f"echo 0 >/proc/sys/net/ipv6/conf/{link}/accept_dad")
            for command in ("link set lo up", f"link set {link} up",
                            f"addr replace {four} dev {link}",
                            f"addr replace {six} dev {link} nodad"):
                where.run("ip", *command.split())
        self.vm.run("ip", "route", "replace", "default", "via", "172.31.0.1")
        self.vm.run("ip", "-6", "route", "replace", "default", "via", "fd31::1")

    def find_distribution(self):
        assert self.distribution.poll() is None
        found = [pid for pid in procfs.children(self.distribution.pid)
                 if b"while :; do" in procfs.read(pid, "cmdline")
                 and b"/usr/bin/busybox" in procfs.read(pid, "cmdline")[:20]]
        return found[0] if found else None

    def make_interop(self):
        interop = socket.socket(socket.AF_UNIX)
        interop.bind(f"/proc/{self.pid}/root/run/WSL/1_interop")
        interop.listen()
        interop.setblocking(False)
        os.chmod(f"/proc/{self.pid}/root/run/WSL/1_interop", 0o777)
        return interop

    def enter_command(self, *command, user=None):
        more = [] if user is None else ["-S", str(user), "-G", str(user)]
        return [
            "nsenter", "-t",
            str(self.pid), "-m", "-u", "-i", "-n", "-p", "-r", "-w", *more, "--",
            *map(str, command)
        ]

    def inits(self):
        """codev-init processes in the distribution's PID namespace that were started from outside
        of it."""
        own = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = []
        for pid in procfs.processes():
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/ns/pid") == own and \
                        procfs.read(pid, "cmdline") in INIT_COMMANDS:
                    found.append(pid)
        return found

    def is_agent(self, pid):
        return procfs.read(pid, "cmdline") == b"codev-agent\0"

    def config(self, argv=("sh", "-c", "exec nc -ll -p 4096 -e cat"), port=4096, **more):
        return {
            "protocol": 1,
            "id": "t" + secrets.token_hex(3),
            "server": {
                "argv": list(argv),
                "port": port,
                "stdio": "pipe",
                "cwd": "/",
                "ready_timeout_ms": 20000,
                **more.pop("server", {})
            },
            "way_in": {
                "listen": "tcp:127.0.0.1:0",
                "secret": SECRET
            },
            **more
        }

    def start(self, config=None, **more):
        sandbox = Sandbox(self, config, **more)
        self.sandboxes.append(sandbox)
        return sandbox

    def ready(self, config=None, **more):
        sandbox = self.start(config or self.config(), **more)
        sandbox.ready = sandbox.until("ready")
        return sandbox

    def end(self):
        for sandbox in self.sandboxes:
            if sandbox.process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    for pid in descendants(sandbox.process.pid):
                        os.kill(pid, signal.SIGKILL)
                sandbox.process.kill()
                sandbox.process.wait(PATIENCE)
            sandbox.close()
        self.interop.close()
        os.kill(self.pid, signal.SIGKILL)
        self.distribution.wait(PATIENCE)
        self.windows.end()
        self.vm.end()
        shutil.rmtree(self.folder)

    def left(self):
        """Leftovers of a sandbox on this machine: processes, mounts of the distribution,
        cgroups."""
        known = {self.pid, os.getpid()}
        processes = [
            pid for pid in descendants(self.distribution.pid)
            if pid not in known and not is_sleep(pid)
        ]
        processes += self.inits()
        groups = pathlib.Path(f"/proc/{self.pid}/root/sys/fs/cgroup")
        groups = [
            str(found) for base in (groups, groups / "unified") for found in base.glob("codev")
        ]
        return processes, self.mounts(), groups

    def mounts(self):
        return pathlib.Path(f"/proc/{self.pid}/mountinfo").read_text()

    def connect(self, address, kind=socket.SOCK_STREAM, pid=None):
        """A connected socket in the VM's network namespace (or that of the given process), opened
        by this process."""
        return in_network(pid or self.vm.pid, lambda: connected(address, kind))

    def way_in(self, sandbox, secret=SECRET):
        """A connection through the way in, after OK; None when it was closed instead."""
        stream = self.connect(("127.0.0.1", int(sandbox.ready["way_in"].rpartition(":")[2])))
        stream.sendall(f"CODEV-IN 1 {secret}\n".encode())
        try:
            if stream.recv(3) == b"OK\n":
                return stream
        except ConnectionResetError:
            pass
        stream.close()
        return None

    def network_state(self):
        """The state of the shared network, which a sandbox must not change."""
        commands = (["ip", "addr"], ["ip", "link"], ["ip", "route", "show", "table", "all"],
                    ["ip", "-6", "route"], ["ip", "rule"], ["nft", "list", "ruleset"])
        texts = [self.vm.run(*command).stdout for command in commands]
        sysctls = self.vm.run(
            "sh", "-c", "cat /proc/sys/net/ipv4/ping_group_range /proc/sys/net/ipv4/ip_forward "
            "/proc/sys/kernel/core_pattern /proc/sys/kernel/dmesg_restrict "
            "/proc/sys/kernel/io_uring_disabled /proc/sys/kernel/unprivileged_bpf_disabled").stdout
        return [re.sub(r"(valid_lft|preferred_lft|expires) \S+", "", text)
                for text in texts] + [sysctls]


def is_sleep(pid):
    with contextlib.suppress(OSError):
        return b"sleep\x001000" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return True


def connected(address, kind):
    stream = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, kind)
    stream.settimeout(PATIENCE)
    try:
        stream.connect(address)
    except OSError:
        stream.close()
        raise
    return stream


def in_network(pid, function):
    """Calls the function in a thread that has entered the network namespace of that process."""
    outcome = []

    def body():
        with open(f"/proc/{pid}/ns/net") as namespace:
            if LIBC.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        try:
            outcome.append((function(), None))
        except OSError as error:
            outcome.append((None, error))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


def memory_of(pid):
    """The readable memory of a process."""
    found = b""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, rights, *_ = line.split()
            begin, end = (int(word, 16) for word in span.split("-"))
            if rights[0] == "r" and rights[1] == "w" and end - begin < 1 << 28:
                with contextlib.suppress(OSError, ValueError):
                    memory.seek(begin)
                    found += memory.read(end - begin) or b""
    return found
