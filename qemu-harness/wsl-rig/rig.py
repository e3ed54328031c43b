#!/usr/bin/python3
"""The host side of the WSL rig: starts a virtual machine that behaves as WSL's, and does what
wsl.exe does.

    codev-rig start FOLDER [OPTION]...        boots it; becomes QEMU, so its end is the rig's
        --network nat|mirrored                the addresses, as WSL's two modes have them (nat)
        --modules NAME,...                    kernel modules beyond the least
        --cgroup flat|nested                  where distributions lie in the cgroup tree (flat)
        --drive LETTER=PATH[:ro]              a Windows drive; a path fd:N is a folder that we have
                                              inherited
        --mounts N                            so often a drive can be mounted at a time (C: 4,
                                              others: 1)
        --disk NAME=FILE                      a distribution that is there from the start: FILE, an
                                              erofs image, which is only read; what the
                                              distribution writes lies in memory. For one
                                              too large to be imported
        --ids UID:GID                         who QEMU is, when root starts it (1000:1000)
        --memory MIB                          (1024)
    codev-rig wsl FOLDER [--import TAR] -d NAME -u USER --exec ARGV...
                                              runs a program in a distribution, with our
                                              input, output and exit status
    codev-rig forward FOLDER SOCKET PORT      Windows' localhost forwarding: SOCKET (Unix) leads to
                                              127.0.0.1:PORT there

FOLDER then holds `console`, `record` (what the stand-ins for Windows saw), `eth0.pcap` (every
packet that left), `rig.json`, `qmp`, and `port-N`: one Unix socket for each execution at a time
(qemu-harness/wsl-rig/channel.h has the frames). Nothing else of the guest can be reached from here.
Ends with 64 on usage, 1 when something does not work."""
import argparse
import ctypes
import fcntl
import json
import os
import pathlib
import random
import re
import select
import signal
import socket
import struct
import sys
import threading
import time

PORTS = 30  # a virtio-serial device has 31, the first of them is a console's
FRAME_MAX = 32768
HEAD = 5
SYSTEM = "SYSTEM"
PATIENCE = 60
MACHINE = "q35,vmport=off,smbus=off,sata=off,usb=off,graphics=off,hpet=off"
CONFINED = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
PR_SET_PDEATHSIG = 1
EROFS_SUPERBLOCK, EROFS_MAGIC = 1024, bytes.fromhex(
    "e2e1f5e0")  # fs/erofs/erofs_fs.h, little-endian
DISK_MODULES = ["virtio_blk", "erofs"]
NETWORKS = {
    "nat": [("eth0", "net=10.0.2.0/24,host=10.0.2.2")],
    # only loopback0 leads to Windows in this mode; QEMU drops the packets from eth0 (restrict)
    "mirrored": [("eth0", "net=192.168.77.0/24,host=192.168.77.1,restrict=on"),
                 ("loopback0", "net=169.254.73.0/24,host=169.254.73.249")],
}


class RigError(Exception):
    """An error whose text is shown to the user."""


# --- start ----------------------------------------------------------------------------------------

class Drive:
    def __init__(self, text, mounts):
        letter, equals, path = text.partition("=")
        if not equals or len(letter) != 1 or not "A" <= letter.upper() <= "Z":
            raise RigError(f"--drive {text}: not LETTER=PATH[:ro]")
        self.letter = letter.upper()
        self.readonly = path.endswith(":ro")
        path = path.removesuffix(":ro")
        self.channels = mounts or (4 if self.letter == "C" else 1)
        self.fd = int(path[3:]) if path.startswith("fd:") else os.open(
            path, os.O_RDONLY | os.O_DIRECTORY)
        self.path = os.readlink(f"/proc/self/fd/{self.fd}")
        os.set_inheritable(self.fd, True)

    def arguments(self):
        readonly = ",readonly=on" if self.readonly else ""
        yield from (
            "-fsdev",
            f"local,id={self.letter},path=/proc/self/fd/{self.fd},security_model=none,multidevs=remap{readonly}"
        )
        for number in range(self.channels):
            yield from ("-device",
                        f"virtio-9p-pci,fsdev={self.letter},mount_tag={self.letter}{number}")


class Disk:
    def __init__(self, text):
        self.name, equals, path = text.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,19}",
                                          self.name):  # a virtio disk's serial: 20 bytes
            raise RigError(
                f"--disk {text}: not NAME=FILE with a name of at most 20 letters and digits")
        if not is_erofs(path):
            raise RigError(f"--disk {text}: not an erofs image")
        self.fd = os.open(path, os.O_RDONLY)
        os.set_inheritable(self.fd, True)

    def arguments(self):
        yield from (
            "-drive",
            f"if=none,id=disk-{self.name},format=raw,readonly=on,file=/proc/self/fd/{self.fd}",
            "-device", f"virtio-blk-pci,drive=disk-{self.name},serial={self.name}")


def is_erofs(path):
    with open(path, "rb") as file:
        file.seek(EROFS_SUPERBLOCK)
        return file.read(len(EROFS_MAGIC)) == EROFS_MAGIC


def inherited(path, ids, listen=False):
    """Creates a file or listening socket at `path` and returns its descriptor, which QEMU inherits,
    so that QEMU needs no access to root's folder."""
    if listen:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(1)
            fd = os.dup(listener.fileno())
    else:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        if os.geteuid() == 0:
            os.fchown(fd, *ids)
    os.set_inheritable(fd, True)
    return fd


def guest_folder(options):
    if options.guest:
        return pathlib.Path(options.guest)
    return pathlib.Path(os.path.realpath(__file__)).parent.parent / "guest" / "x86_64"


def qemu_arguments(options, folder, drives, disks):
    guest = guest_folder(options) / "rig"
    ids = tuple(map(int, options.ids.split(":")))
    listed = ",".join(f"{drive.letter}:{drive.channels}" for drive in drives)
    modules = ",".join([*filter(None, [options.modules]), *(DISK_MODULES if disks else [])])
    line = (
        "console=ttyS0 quiet no_timer_check tsc=unstable mitigations=off audit=0 apparmor=0 "
        "panic=-1 syscall.x32=y rdinit=/rig-start "
        f"rig.network={options.network} rig.modules={modules} rig.cgroup={options.cgroup} "
        f"rig.drives={listed} "
        f"rig.disks={','.join(disk.name for disk in disks)}")
    yield from (options.qemu, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
                "-sandbox", CONFINED, "-machine", MACHINE, "-accel", "tcg", "-cpu", "max", "-m",
                f"{options.memory}M", "-kernel", str(guest / "vmlinux"), "-initrd",
                str(guest / "initramfs"), "-append", line, "-device", "virtio-rng-pci", "-chardev",
                f"socket,id=qmp,fd={inherited(folder / 'qmp', ids, True)},server=on,wait=off",
                "-mon", "qmp,mode=control")
    for name in ("console", "record"):
        yield from ("-serial", f"file:/proc/self/fd/{inherited(folder / name, ids)}")
    for name, addresses in NETWORKS[options.network]:
        v6 = "ipv4=on,ipv6=on,ipv6-prefix=fec0::,ipv6-host=fec0::2" if name == "eth0" else "ipv4=on"
        yield from (
            "-netdev", f"user,id={name},{addresses},{v6}", "-device",
            f"virtio-net-pci,netdev={name},romfile=", "-object",
            f"filter-dump,id=dump-{name},netdev={name},file=/proc/self/fd/{inherited(folder / (name + '.pcap'), ids)}"
        )
    yield from ("-device", f"virtio-serial-pci,max_ports={PORTS + 1}")
    for number in range(1, PORTS + 1):
        listener = inherited(folder / f"port-{number}", ids, True)
        yield from ("-chardev", f"socket,id=port{number},fd={listener},server=on,wait=off",
                    "-device", f"virtserialport,nr={number},chardev=port{number}")
    for device in [*drives, *disks]:
        yield from device.arguments()


def take_ids(ids):
    """Drops root's rights for good, so that the guest can do to the drives only what this account
    can do."""
    if os.geteuid() != 0:
        return
    uid, gid = map(int, ids.split(":"))
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def start(options):
    folder = pathlib.Path(options.folder).resolve()
    os.umask(0o077)
    folder.mkdir(parents=True, exist_ok=True)
    drives = [Drive(text, options.mounts) for text in options.drive]
    if len({drive.letter for drive in drives}) != len(drives):
        raise RigError("--drive: a letter stands there twice")
    disks = [Disk(text) for text in options.disk]
    if len({disk.name for disk in disks}) != len(disks):
        raise RigError("--disk: a name stands there twice")
    facts = {
        "network": options.network,
        "drives": [[drive.letter, drive.path, drive.readonly] for drive in drives]
    }
    (folder / "rig.json").write_text(json.dumps(facts))
    for number in range(1, PORTS + 1):
        (folder / f"port-{number}.lock").touch()
    arguments = list(qemu_arguments(options, folder, drives, disks))
    parent = os.getppid()
    take_ids(options.ids)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0,
                            0)  # a change of ids has cleared it
    if os.getppid() != parent:
        sys.exit(1)
    os.execvp(arguments[0], arguments)


# --- one execution --------------------------------------------------------------------------------

class Port:
    """One port of the channel, which no other process uses until it is closed."""

    def __init__(self, folder, seconds=PATIENCE):
        self.rest = b""
        end = time.monotonic() + seconds
        while not self._claim(pathlib.Path(folder)):
            if time.monotonic() > end:
                raise RigError(f"the rig in {folder} does not answer")
            time.sleep(0.05)

    def _claim(self, folder):
        for number in random.sample(range(1, PORTS + 1), PORTS):
            try:
                lock = os.open(folder / f"port-{number}.lock", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return False
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(str(folder / f"port-{number}"))
            except OSError:
                os.close(lock)
                continue
            self.connection, self.lock, self.rest = connection, lock, b""
            connection.settimeout(2)
            try:
                if self.frame() == (b"R", b""):
                    connection.settimeout(None)
                    return True
            except OSError:
                pass
            self.close()
        return False

    def fileno(self):
        return self.connection.fileno()

    def send(self, kind, data=b""):
        self.connection.sendall(kind + struct.pack("<I", len(data)) + data)

    def start(self, *words):
        self.send(b"S", b"".join(os.fsencode(word) + b"\0" for word in words))

    def take(self):
        """Returns the first complete frame of the bytes read, or None."""
        if len(self.rest) < HEAD:
            return None
        [length] = struct.unpack_from("<I", self.rest, 1)
        if len(self.rest) < HEAD + length:
            return None
        kind, data = self.rest[:1], self.rest[HEAD:HEAD + length]
        self.rest = self.rest[HEAD + length:]
        return kind, data

    def read(self):
        """Reads more bytes. False at the end of the connection."""
        data = self.connection.recv(65536)
        self.rest += data
        return bool(data)

    def frame(self):
        while (frame := self.take()) is None:
            if not self.read():
                raise ConnectionError("the rig has ended")
        return frame

    def close(self):
        self.connection.close()
        os.close(self.lock)


def run(folder, words, data=b"", seconds=PATIENCE):
    """Runs a program to its end and returns (status, output, diagnostics). `words`: DISTRIBUTION,
    USER, ARGV..."""
    port = Port(folder)
    port.connection.settimeout(seconds)

    def feed():
        try:
            for at in range(0, len(data), FRAME_MAX):
                port.send(b"I", data[at:at + FRAME_MAX])
            port.send(b"E")
        except OSError:
            pass

    try:
        port.start("exec", *words)
        feeder = threading.Thread(target=feed, daemon=True)
        feeder.start()
        output = {b"O": b"", b"D": b""}
        while (frame := port.frame())[0] != b"X":
            output[frame[0]] += frame[1]
        return int(frame[1]), output[b"O"], output[b"D"]
    finally:
        port.close()


def import_distribution(folder, name, tar):
    """Does what wsl --import does, but leaves a distribution that exists as it is."""
    if run(folder, [SYSTEM, "root", "test", "-e", f"/distributions/{name}.imported"])[0] == 0:
        return
    if is_erofs(tar):
        raise RigError(f"{tar} is an image, not an archive: codev-rig start --disk {name}={tar}")
    status, _, said = run(folder, [SYSTEM, "root", "/rig-import", name],
                          pathlib.Path(tar).read_bytes())
    if status != 0:
        raise RigError(f"import of {name}: {said.decode(errors='replace').strip()}")


def join(port, source, targets):
    """Copies between `source` (a descriptor) and the port until the frame X, and returns the exit
    status. `targets` has a function for each kind of frame. Input is read only after the port has
    taken the previous input, so that the two sides cannot wait for each other."""
    waiting, watched = b"", [source]
    port.connection.setblocking(False)
    while True:
        readable, writable, _ = select.select([port, *([] if waiting else watched)],
                                              [port] if waiting else [], [])
        if port in readable:
            try:
                if not port.read():
                    raise RigError("the rig has ended")
            except BlockingIOError:
                pass
            while frame := port.take():
                if frame[0] == b"X":
                    return int(frame[1])
                if frame[0] in targets:
                    targets[frame[0]](frame[1])
        if writable:
            try:
                waiting = waiting[port.connection.send(waiting):]
            except BlockingIOError:
                pass
        elif source in readable and watched:
            data = os.read(source, FRAME_MAX)
            waiting = (b"I" if data else b"E") + struct.pack("<I", len(data)) + data
            watched = watched if data else []


def write_all(fd):
    def write(data):
        while data:
            data = data[os.write(fd, data):]
    return write


def wsl(options):
    if options.tar:
        import_distribution(options.folder, options.distribution, options.tar)
    port = Port(options.folder)
    port.start("exec", options.distribution, options.user, *options.argv)
    return join(port, 0, {b"O": write_all(1), b"D": write_all(2)})


# --- localhost forwarding -------------------------------------------------------------------------

def forward_by_channel(folder, client, number):
    """NAT: the rig's program in the guest connects to the port; the bytes go over the channel."""
    port = Port(folder, 10)
    try:
        port.start("connect", str(number))
        join(port, client.fileno(), {b"O": client.sendall})
    finally:
        port.close()


def forward_by_network(folder, client, number):
    """Mirrored: Windows' loopback is the guest's, by the interface loopback0."""
    with socket.create_connection(("127.0.0.1", number), 10) as far:
        far.settimeout(None)
        peers = {client: far, far: client}
        while peers:
            for ready in select.select(list(peers), [], [])[0]:
                data = ready.recv(65536)
                if data:
                    peers[ready].sendall(data)
                else:
                    peers.pop(ready).shutdown(socket.SHUT_WR)


def open_port(folder, number):
    """Returns a port of this host's loopback, which QEMU forwards to the guest's loopback."""
    with socket.socket(socket.AF_UNIX) as monitor, socket.socket() as free:
        monitor.connect(f"{folder}/qmp")
        stream = monitor.makefile("rw")
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        line = f"hostfwd_add loopback0 tcp:127.0.0.1:{port}-127.0.0.1:{number}"
        for command in ({"execute": "qmp_capabilities"},
                        {"execute": "human-monitor-command", "arguments": {"command-line": line}}):
            stream.write(json.dumps(command) + "\n")
            stream.flush()
            while "return" not in (answer := json.loads(stream.readline())):
                if "error" in answer:
                    raise RigError(f"hostfwd_add: {answer}")
        if answer["return"].strip():
            raise RigError(f"hostfwd_add: {answer['return'].strip()}")
        return port


def forward(options):
    facts = json.loads((pathlib.Path(options.folder) / "rig.json").read_text())
    number, one = options.port, forward_by_channel
    if facts["network"] == "mirrored":
        number, one = open_port(options.folder, options.port), forward_by_network
    os.umask(0o177)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(options.socket)
    listener.listen(128)

    def serve(client):
        with client:
            try:
                one(options.folder, client, number)
                client.shutdown(socket.SHUT_WR)
            except (OSError, RigError):
                pass

    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client,), daemon=True).start()


# --- the command line -----------------------------------------------------------------------------

def parse(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("start")
    verb.add_argument("folder")
    verb.add_argument("--network", choices=NETWORKS, default="nat")
    verb.add_argument("--modules", default="")
    verb.add_argument("--cgroup", choices=("flat", "nested"), default="flat")
    verb.add_argument("--drive", action="append", default=[])
    verb.add_argument("--disk", action="append", default=[])
    verb.add_argument("--mounts", type=int, default=0)
    verb.add_argument("--ids", default="1000:1000")
    verb.add_argument("--memory", type=int, default=1024)
    verb.add_argument("--qemu", default="qemu-system-x86_64")
    verb.add_argument("--guest")
    verb = verbs.add_parser("wsl")
    verb.add_argument("folder")
    verb.add_argument("--import", dest="tar")
    verb.add_argument("-d", dest="distribution", required=True)
    verb.add_argument("-u", dest="user", default="root")
    verb.add_argument("--exec", dest="argv", nargs=argparse.REMAINDER, required=True)
    verb = verbs.add_parser("forward")
    verb.add_argument("folder")
    verb.add_argument("socket")
    verb.add_argument("port", type=int)
    return parser.parse_args(words)


def main():
    try:
        options = parse(sys.argv[1:])
    except SystemExit as end:
        sys.exit(64 if end.code else 0)
    try:
        sys.exit({"start": start, "wsl": wsl, "forward": forward}[options.verb](options))
    except (RigError, OSError) as error:
        print(f"codev-rig: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
