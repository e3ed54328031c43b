"""A relay with listeners and peers that the test provides. Unix sockets replace the vsock of a VM.

The record on the relay's descriptor 0 is a C struct, so a small C program writes it
(agent_record.c)."""

import contextlib
import functools
import os
import pathlib
import platform
import select
import socket
import subprocess
import tempfile
import threading
import time

import pytest

import procfs

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("CODEV_BUILD", TOP / "build"))
AGENT = os.environ.get("CODEV_AGENT", str(BUILD / "guest" / platform.machine() / "codev-agent"))
SANITIZED = bool(os.environ.get("CODEV_SAN"))
TOKEN = "0123456789abcdef" * 4
SECRET = "fedcba9876543210" * 4
PREFACE = f"CODEV/1 {TOKEN}\r\n".encode()
WAY_IN = f"CODEV-IN 1 {SECRET}\n".encode()
PATIENCE = 60  # seconds to wait for an event; not a limit on speed


@functools.cache
def record_tool():
    folder = tempfile.TemporaryDirectory()
    tool = pathlib.Path(folder.name) / "agent_record"
    sources = [
        "test/harness/agent_record.c", "common/net/endpoint.c", "common/net/endpoint_linux.c",
        "common/net/endpoint_socket.c", "common/os/failure.c", "common/text/number.c"
    ]
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE=", "-I.", "-o", tool, *sources],
                   cwd=TOP,
                   check=True)
    record_tool.folder = folder  # kept until the process ends
    return tool


def make_record(forwards, dns=(), options=()):
    """The bytes for descriptor 0. A forward is a dict; its "dial" is a list."""
    words = list(options)
    for forward in forwards:
        words.append("forward")
        for key, value in forward.items():
            words += [f"{key}={item}" for item in (value if isinstance(value, list) else [value])]
    if dns:
        words += ["dns", *(str(fd) for fd in dns)]
    return subprocess.run([record_tool(), *words], check=True, stdout=subprocess.PIPE).stdout


def listen_tcp(backlog=4096, host="127.0.0.1"):
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.bind((host, 0))
    listener.listen(backlog)
    return listener


def listen_unix(path, backlog=4096):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(backlog)
    return listener


def dial_of(listener):
    if listener.family == socket.AF_UNIX:
        return f"unix:{listener.getsockname()}"
    return f"tcp:127.0.0.1:{listener.getsockname()[1]}"


def connect(listener):
    client = socket.socket(listener.family)
    client.settimeout(PATIENCE)
    client.connect(listener.getsockname())
    return client


class Agent:
    """A running relay. Its listeners are the test's own sockets, non-blocking as init makes
    them."""

    def __init__(self, forwards, dns=(), route=None):
        self.options = ["--route", str(route.fileno())] if route else []
        self.forwards = [dict(forward) for forward in forwards]
        self.dns = [sock.fileno() for sock in dns]
        self.sockets = [forward["fd"] for forward in self.forwards] + list(dns)
        for sock in self.sockets:
            sock.setblocking(False)
        for forward in self.forwards:
            forward["fd"] = forward["fd"].fileno()
        self.process = subprocess.Popen(
            [AGENT], stdin=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            pass_fds=[sock.fileno() for sock in self.sockets] + ([route.fileno()] if route else []))
        self.send()
        if os.geteuid() == 0:
            eventually(self.has_started)

    def has_started(self):
        return any("eventpoll" in target for target in procfs.descriptors(self.pid).values())

    def send(self, **changes):
        """Sends the record with these changes to the first forward."""
        if changes:
            self.forwards[0].update(changes)
        self.process.stdin.write(make_record(self.forwards, self.dns, self.options))

    @property
    def pid(self):
        return self.process.pid

    def descriptors(self):
        if os.geteuid() != 0:
            pytest.skip("the relay is not dumpable: only root may count its descriptors")
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def status(self, key):
        return procfs.status(self.pid, key)

    def resident_kib(self):
        return int(self.status("VmRSS").split()[0])

    def fits_in(self, kib):
        return SANITIZED or self.resident_kib() < kib  # sanitizers keep shadow memory

    def stop(self):
        """Ends the relay as init does, by the end of descriptor 0; its exit status."""
        self.process.stdin.close()
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            self.error = self.process.stderr.read().decode()
            self.process.stderr.close()


@contextlib.contextmanager
def running(forwards, dns=(), route=None):
    """`route`: a file that the relay inherits as the table of routes."""
    agent = Agent(forwards, dns, route)
    try:
        yield agent
        assert agent.process.poll() is None, "the relay ended by itself"
    finally:
        status = agent.stop()
        for sock in agent.sockets:
            sock.close()
    assert (status, agent.error) == (0, "")


@contextlib.contextmanager
def to_broker(folder, **more):
    """(relay, its listener, the broker's listener)"""
    broker = listen_unix(folder / "broker")
    front = listen_tcp()
    forward = {"role": "broker", "fd": front, "dial": [dial_of(broker)], "secret": TOKEN, **more}
    with broker, running([forward]) as agent:
        yield agent, front, broker


@contextlib.contextmanager
def to_server(front, half_close=1, **more):
    """(relay, the server's listener); `front` is the way in"""
    server = listen_tcp()
    forward = {"role": "server", "fd": front, "dial": [dial_of(server)], "secret": SECRET,
               "half_close": half_close, **more}
    with server, running([forward]) as agent:
        yield agent, server


def accept(listener):
    listener.settimeout(PATIENCE)
    peer, _ = listener.accept()
    peer.settimeout(PATIENCE)
    return peer


def accept_broker(broker):
    """Accepts as the broker does and reads the preface, which must be exact."""
    peer = accept(broker)
    assert read_exactly(peer, len(PREFACE)) == PREFACE
    return peer


def enter(front, server):
    """A way-in connection that reached the server: (client, peer)."""
    client = connect(front)
    client.sendall(WAY_IN)
    peer = accept(server)
    assert read_exactly(client, 3) == b"OK\n"
    return client, peer


def piece(data):
    """One piece, as the host sends it on a framed way in (common/wire/piece.h); empty data is the
    end."""
    return len(data).to_bytes(2, "big") + data


def pieces(data):
    """A whole stream in pieces, with its end piece."""
    return b"".join(piece(data[at:at + 30000]) for at in range(0, len(data), 30000)) + piece(b"")


def read_piece(sock):
    """The bytes of the next piece, b"" for the end piece; None when the connection ended without
    it."""
    head = read_exactly(sock, 2)
    length = int.from_bytes(head, "big")
    data = read_exactly(sock, length)
    return data if len(head) == 2 and len(data) == length else None


def read_pieces(sock):
    """All bytes up to the end piece, which must come."""
    data = b""
    while (more := read_piece(sock)) != b"":
        assert more is not None, f"no end after {len(data)} bytes"
        data += more
    return data


def read_exactly(sock, length):
    pieces = bytearray()
    while len(pieces) < length:
        piece = sock.recv(min(length - len(pieces), 1 << 20))
        if not piece:
            break
        pieces += piece
    return bytes(pieces)


def read_all(sock):
    pieces = bytearray()
    while piece := sock.recv(1 << 20):
        pieces += piece
    return bytes(pieces)


def ended(sock):
    """True once the peer has closed or reset the connection; discards bytes before that."""
    try:
        while sock.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return True


def silent(sock, seconds=0.3):
    """True when for a moment neither bytes nor the end arrive."""
    return not select.select([sock], [], [], seconds)[0]


def eventually(condition, patience=PATIENCE):
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "still not so"
        time.sleep(0.01)


@contextlib.contextmanager
def in_thread(function, *arguments):
    """Runs the function in a thread during the block; its exception is raised at the end."""
    failures = []

    def body():
        try:
            function(*arguments)
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    yield thread
    thread.join(60)
    assert not thread.is_alive(), "still at work"
    if failures:
        raise failures[0]
