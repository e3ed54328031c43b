"""The WSL rig as a fixture: one machine that behaves as WSL's does, with another distribution
("outsider") and sandboxes in it.

    SYSTEM the outer system, root of everything: it sees every process (what a kernel debugger would
    see on WSL) outsider    another distribution, as uid 0 or 1000: shares kernel, network, loopback
    and uids
                with the sandboxes
    sandboxes   codev-sandbox-wsl in the same machine

C: is the rig's folder `c`, writable, so Look works there; P: is the folder of built guest programs,
read-only. `record` gets a line each time a process reaches a stand-in for Windows."""
import contextlib
import importlib.util
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tarfile
import tempfile
import threading

import pytest

from machine_harness import BIN, GUEST, PATIENCE, SANDBOX_WSL, Look, Sandbox

PROGRAM = BIN / "codev-rig"
OUTSIDER_TAR = GUEST / "rig" / "outsider.tar"
IMAGE_TAR = GUEST / "rootfs.tar"
MODULES = "nf_tables,nft_reject_inet,nft_ct,nft_socket,nft_compat,nft_log"
SYSTEM = "SYSTEM"
PROGRAMS = "/workspace/programs"

RIG_SOURCE = pathlib.Path(__file__).parents[2] / "qemu-harness/wsl-rig"


def load(name):
    """Loads a program of the rig as a module."""
    specification = importlib.util.spec_from_file_location(name, RIG_SOURCE / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


rig_client, rig_builder = load("rig"), load("build")


def guest_with_start(folder, start):
    """Makes a folder for the rig's --guest with this text as its PID 1."""
    (folder / "rig").mkdir(parents=True)
    (folder / "rig" / "vmlinux").symlink_to((GUEST / "rig" / "vmlinux").resolve())
    archive = rig_builder.Cpio()  # later archives override earlier ones
    archive.file("rig-start", start.encode(), 0o755)
    whole = (GUEST / "rig" / "initramfs").read_bytes() + archive.finish()
    (folder / "rig" / "initramfs").write_bytes(whole)
    return folder


def needs_rig():
    if not (GUEST / "rig" / "initramfs").exists():
        pytest.skip("the WSL rig is x86_64 only")


class Rig:
    """A running rig. `start`: what its PID 1 runs instead of the rig's own script."""

    def __init__(self, *options, modules=MODULES, network="nat", start=None):
        needs_rig()
        self.network = network
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="codev-w-", dir="/tmp"))
        self.base.chmod(0o755)
        self.folder, self.c = self.base / "rig", self.base / "c"
        self.c.mkdir()
        self.c.chmod(0o777)
        shutil.copy(GUEST / "probe", self.c / "probe")
        guest = guest_with_start(self.base / "guest", start) if start else GUEST
        argv = [PROGRAM, "start", self.folder, "--network", network, "--modules", modules,
                "--drive", f"C={self.c}", "--drive", f"P={GUEST}:ro", "--mounts", "6",
                "--guest", guest, *map(str, options)]
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.kill()
        said = self.process.stderr.read().decode(errors="replace")
        self.process.stderr.close()
        self.process.wait()
        if kind:
            console = (self.folder / "console").read_text(
                errors="replace") if (self.folder / "console").exists() else ""
            print(f"--- the rig\n{said}{console[-3000:]}")
        shutil.rmtree(self.base, ignore_errors=True)

    # --- executions, as wsl.exe makes them

    def wsl(self, distribution, user, *argv, data=b"", seconds=PATIENCE):
        """(exit status, output and diagnostics as text)"""
        status, output, said = rig_client.run(self.folder, [distribution, user, *map(str, argv)],
                                              data, seconds)
        return status, (output + said).decode(errors="replace")

    def system(self, script):
        return self.wsl(SYSTEM, "root", "sh", "-c", script)[1]

    def install_outsider(self):
        rig_client.import_distribution(self.folder, "outsider", OUTSIDER_TAR)

    def outsider(self, script, user="root", seconds=PATIENCE):
        return self.wsl("outsider", user, "sh", "-c", script, seconds=seconds)

    def start_outsider(self, script, user="root"):
        """Starts a long-running process of the outsider; the Popen, with its output."""
        return subprocess.Popen([
            PROGRAM, "wsl", self.folder, "-d", "outsider", "-u", user, "--exec", "sh", "-c", script
        ],
                                stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    # --- what was seen

    def record(self):
        """The lines that the stand-ins for Windows recorded."""
        return (self.folder / "record").read_text(errors="replace").replace("\r", "").splitlines()

    def dump(self):
        """Every byte that passed through a network card."""
        return b"".join(path.read_bytes() for path in sorted(self.folder.glob("*.pcap")))

    def processes(self):
        """All processes of the machine: a list of (pid, pid in the innermost namespace, name,
        network namespace)."""
        lines = self.wsl(SYSTEM, "root", "rig", "processes")[1].splitlines()
        return [(int(pid), int(last), name, network)
                for pid, last, name, network in map(str.split, lines)]

    def host(self):
        """Windows' address, as the guest sees it."""
        return "10.0.2.2" if self.network == "nat" else "127.0.0.1"


class WslSandbox(Sandbox):
    """codev-sandbox-wsl in a running rig. `look`: a Look in the rig's C:."""

    def __init__(self, rig, command=None, options=(), look=None, **more):
        self.rig, self.look = rig, look
        before = {pid for pid, *_ in rig.processes()}
        options = ["--wsl-rig", rig.folder, *(look.options if look else []), *options]
        super().__init__(command or Look.CODEV, options, program=SANDBOX_WSL, **more)
        self.before = before

    def started(self, seconds=PATIENCE):
        """Waits for ready and returns itself. Sandboxes of a rig are started one after another, so
        new processes belong to this one."""
        self.wait_event("ready", seconds)
        new = [process for process in self.rig.processes() if process[0] not in self.before]
        [(self.first, _, _, self.network)
         ] = [process for process in new if process[1:3] == (1, "codev-init")]
        [self.outer
         ] = [pid for pid, last, name, _ in new if name == "codev-init" and pid != self.first]
        self.outer_agent = next(
            (pid
             for pid, _, name, network in new if name == "codev-agent" and network != self.network),
            None)
        return self

    def pids(self):
        """All running processes of this sandbox, by the machine's pids."""
        outside = (self.outer, self.outer_agent)
        return [
            pid for pid, _, _, network in self.rig.processes()
            if network == self.network or pid in outside
        ]

    def in_network(self, script):
        """A shell script as root in the network namespace of the sandbox, with the outsider's files
        (nft)."""
        path = "PATH=/usr/sbin:/usr/bin"
        return self.rig.wsl(SYSTEM, "root", "nsenter", "-t", self.first, "-n", "chroot",
                            "/distributions/outsider", "/usr/bin/env", path, "sh", "-c", script)

    def codev(self, script, seconds=PATIENCE):
        return self.look.codev(script, seconds)


def look_in(rig, name):
    """A Look in its own folder on the rig's C:."""
    folder = rig.c / name
    folder.mkdir()
    folder.chmod(0o777)
    return Look(folder)


class Listener:
    """A TCP listener on this host's loopback, which stands for Windows' loopback. It records each
    connection and its bytes."""

    def __init__(self, family=socket.AF_INET, port=0):
        self.seen = []
        self.socket = socket.socket(family)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1" if family == socket.AF_INET else "::1", port))
        self.socket.listen(64)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.socket.accept()
                self.seen.append(b"")
                threading.Thread(target=self._hear, args=(client, len(self.seen) - 1),
                                 daemon=True).start()

    def _hear(self, client, number):
        with contextlib.suppress(OSError), client:
            client.settimeout(5)
            client.sendall(b"WINDOWS\n")
            client.shutdown(socket.SHUT_WR)
            while data := client.recv(65536):
                self.seen[number] += data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def refusals(text):
    """probe's lines -> [(what, verdict, milliseconds or None)]"""
    found = []
    for line in text.splitlines():
        matched = re.match(
            r"(.+?): (refused|worked|no answer|unclear)(?: \((\w+)\))?(?: in ([\d.]+) ms)?$", line)
        if matched:
            found.append((matched[1], matched[2], float(matched[4]) if matched[4] else None))
    return found


# --- the network that an outsider reaches and a sandbox must not ----------------------------------

OUTSIDER_PORT, OUTSIDER_LOOPBACK_PORT = 7001, 7002
OWN = {"nat": "10.0.2.15", "mirrored": "192.168.77.20"}
GLIBC = "/opt/glibc"
# once codev has copied it there
GETENT = "/tmp/glibc/ld-linux-x86-64.so.2 --library-path /tmp/glibc /tmp/glibc/getent"


def put_glibc(rig):
    """Puts a program that uses glibc's resolver, with its libraries, on C:; the options that mount
    it."""
    folder = rig.c / "glibc"
    folder.mkdir()
    wanted = ("usr/bin/getent", "ld-linux-x86-64.so.2", "libc.so.6", "libresolv.so.2")
    with tarfile.open(OUTSIDER_TAR) as tar:
        for member in tar.getmembers():
            if member.isfile() and member.name.endswith(
                    wanted) and not member.name.startswith("usr/lib64/"):
                (folder / pathlib.Path(member.name).name).write_bytes(
                    tar.extractfile(member).read())
                (folder / pathlib.Path(member.name).name).chmod(0o755)
    assert {"getent", "libc.so.6"} <= set(os.listdir(folder)), os.listdir(folder)
    return ["--mount", f"{folder}:{GLIBC}"]


@contextlib.contextmanager
def outsider_servers(rig):
    """Two servers of the outsider: one on every address, one on loopback alone."""
    servers = [
        rig.start_outsider(f"echo up; exec busybox nc -ll -p {port} {address} -e echo OUTSIDER")
        for port, address in ((OUTSIDER_PORT, ""), (OUTSIDER_LOOPBACK_PORT, "-s 127.0.0.1"))
    ]
    for server in servers:
        assert server.stdout.readline() == b"up\n"
    try:
        yield
    finally:
        for server in servers:
            server.kill()
            server.wait()
            server.stdout.close()


def outsider_has_its_network(rig, windows):
    """Asserts that an outsider reaches everything, as uid 0 and 1000: Windows, names, its own
    servers, loopback. `windows`: a Listener."""
    for user in ("root", "1000"):
        status, text = rig.outsider(
            f"nc -w 60 {rig.host()} {windows.port}; nc -w 60 {OWN[rig.network]} {OUTSIDER_PORT}; "
            "getent hosts internet.example; /mnt/c/probe ping | grep -c worked; ip route | grep "
            "-c default; "
            "ip address show lo | grep -c 10.255.255.254", user)
        lines = text.splitlines()
        assert status == 0 and lines[:2] == ["WINDOWS", "OUTSIDER"], text
        assert lines[2].split() == ["10.0.2.2", "internet.example"
                                    ] and lines[3:] == ["1", "1", "1"], text


def escapes(rig, windows, windows_v6, broker_ports):
    """The probe's arguments for every way out by network: [(verb and arguments, ...)]. `windows*`:
    running Listeners of the host."""
    own, hosts = OWN[rig.network], [
        "10.0.2.2", "192.168.77.1", "169.254.73.249", "127.0.0.1", "192.168.77.77"
    ]
    tcp = [(host, windows.port) for host in hosts] + [("fec0::2", windows_v6.port),
                                                      ("::1", windows_v6.port)]
    tcp += [(host, port) for host in hosts[:3] for port in broker_ports]
    tcp += [(own, OUTSIDER_PORT),
            ("127.0.0.1", OUTSIDER_PORT), ("127.0.0.1", OUTSIDER_LOOPBACK_PORT),
            ("fec0::15", OUTSIDER_PORT), ("::1", OUTSIDER_PORT), ("10.255.255.254", 53),
            ("192.0.2.1", 443), ("2001:db8::1", 443), ("10.0.2.3", 53)]
    udp = [("10.0.2.2", 53), ("10.0.2.3", 53), ("10.255.255.254", 53), ("192.0.2.1", 53),
           ("2001:db8::1", 53), ("fec0::3", 53), (own, OUTSIDER_PORT), ("192.168.77.1", 53),
           ("255.255.255.255", 67), ("224.0.0.251", 5353), ("ff0e::fb", 5353)]
    return [f"connect {host} {port}"
            for host, port in tcp] + [f"udp {host} {port}" for host, port in udp]


LIMIT_MS = 200


def none_escapes(sandbox, words):
    """Asserts that each is refused without delay; on a busy machine the best of three attempts
    counts."""
    script = "\n".join(f"{PROGRAMS}/probe {word}" for word in words)
    found = {}
    for _ in range(3):
        for what, verdict, milliseconds in refusals(sandbox.codev(script)):
            found.setdefault(what, []).append((verdict, milliseconds))
    assert sorted(found) == sorted(set(words)), found
    bad = {
        what: tries
        for what, tries in found.items()
        if any(verdict != "refused" for verdict, _ in tries) or min(ms
                                                                    for _, ms in tries) >= LIMIT_MS
    }
    assert not bad, bad


def seconds_inside(sandbox, command, tries=5):
    """(shortest time, output) of a command, by the kernel's clock."""
    text = sandbox.codev("\n".join(
        f"read a b </proc/uptime; {command}; echo \"status $?\"; read c d </proc/uptime; "
        "echo \"took $a $c\"" for _ in range(tries)))
    times = [
        float(line.split()[2]) - float(line.split()[1]) for line in text.splitlines()
        if line.startswith("took ")
    ]
    assert len(times) == tries, text
    return min(times), text


def no_name_is_found(sandbox):
    """By programs of both C libraries. The limit is added to the time that the program needs
    without a lookup, as programs start slowly under emulation."""
    sandbox.codev(f"cp -r {GLIBC} /tmp/glibc")
    for ask, ask_nobody in (("wget -q -O - http://internet.example:1/",
                             "wget -q -O - http://127.0.0.1:1/"),
                            (f"{GETENT} hosts internet.example", f"{GETENT} hosts 127.0.0.1"),
                            (f"{GETENT} ahosts internet.example", f"{GETENT} ahosts 127.0.0.1")):
        least, _ = seconds_inside(sandbox, ask_nobody)
        took, text = seconds_inside(sandbox, ask)
        assert "status 0" not in text and (took - least) * 1000 < LIMIT_MS, (least, text)
