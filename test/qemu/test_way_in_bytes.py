"""The way in over a real vsock passes bytes unchanged, whatever their number, the size of the
pieces and the reader's pace."""
import contextlib
import functools
import hashlib
import os
import signal
import socket
import threading
import time

import pytest

from machine_harness import PATIENCE, Sandbox, descriptor_count, wait_for

MIB = 1 << 20
BLOCK = 64 * 1024
LARGE = 64 * MIB
FLOOD = 8 * MIB


@functools.cache
def block():
    """The same bytes as qemu-harness/probe/traffic.c makes: xorshift64, little-endian."""
    word, data = 88172645463325252, bytearray()
    while len(data) < BLOCK:
        word ^= word << 13 & 0xffffffffffffffff
        word ^= word >> 7
        word ^= word << 17 & 0xffffffffffffffff
        data += word.to_bytes(8, "little")
    return bytes(data)


def traffic_hash(length):
    digest = hashlib.sha256()
    for number in range((length + BLOCK - 1) // BLOCK):
        piece = number.to_bytes(8, "little") + block()[8:]
        digest.update(piece[:length - number * BLOCK])
    return digest.hexdigest()


class Server:
    """A sandbox that runs one of the probe's servers."""

    def __init__(self, mode):
        self.sandbox = Sandbox(["/workspace/programs/probe", "serve", "4000", *mode.split()],
                               ["--server-port", 4000, "--memory", 256])

    def __enter__(self):
        self.sandbox.wait_event("ready")
        return self

    def __exit__(self, *all_of_it):
        self.sandbox.__exit__(*all_of_it)

    def connect(self):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(PATIENCE)
        client.connect(self.sandbox.event("way_in")["path"])
        return client


@pytest.fixture(scope="module")
def echo():
    with Server("echo") as server:
        yield server


def read_exactly(client, length):
    data = bytearray()
    while len(data) < length:
        piece = client.recv(min(65536, length - len(data)))
        assert piece, f"it ended after {len(data)} of {length} bytes"
        data += piece
    return bytes(data)


def round_trip(client, data):
    """Sends data and reads the answer at the same time."""
    sender = threading.Thread(target=client.sendall, args=(data,), daemon=True)
    sender.start()
    back = read_exactly(client, len(data))
    sender.join(PATIENCE)
    return back


@pytest.mark.parametrize("size", [1, 4095, 32767, 32768, 32769, 65536, 98305, 3 * MIB + 1])
def test_sizes_around_the_limits_of_packets(echo, size):
    data = (block() * (size // BLOCK + 1))[:size]
    with echo.connect() as client:
        for _ in range(3):
            assert round_trip(client, data) == data


def test_one_stalled_and_50_live_connections(echo):
    """A connection whose reader has stopped delays no other connection, and continues when the
    reader does.

    The data sent fits into the guest's receive buffer, so that sending ends, and the answer exceeds
    all buffers."""
    data = block() * (6 * MIB // BLOCK)
    with echo.connect() as stalled:
        stalled.sendall(data)
        live = [echo.connect() for _ in range(50)]
        for number, client in enumerate(live):
            piece = bytes([number]) * 20000
            assert round_trip(client, piece) == piece
        for client in live:
            client.close()
        assert read_exactly(stalled, len(data)) == data


def test_100_aborted_transfers(echo):
    for _ in range(100):
        with echo.connect() as client:
            client.setblocking(False)
            try:
                for _ in range(8):
                    client.send(block())
            except BlockingIOError:
                pass
    with echo.connect() as client:
        assert round_trip(client, b"still there") == b"still there"


def fill(client):
    """Sends until no byte moves in either direction."""
    client.settimeout(0.5)
    try:
        while True:
            client.send(block())
    except TimeoutError:
        pass


@pytest.mark.parametrize("leave, times",
                         [(lambda client: client.send(b"x") and time.sleep(0.005), 60),
                          (lambda client: client.send(b"x" * 300000) and client.recv(1), 60),
                          (fill, 3)],
                         ids=["at-once", "unread", "full"])
def test_a_host_that_closes_is_heard_of_inside(echo, leave, times):
    """Even with data still in transit to the host: the device keeps a connection until the guest
    has closed it too."""
    device = echo.sandbox.pid_of("vhost-device")
    before = descriptor_count(device)
    for _ in range(times):
        with echo.connect() as client:
            leave(client)
    wait_for(lambda: descriptor_count(device) <= before, "the end of every connection")


def read_slowly(client, length, pauses):
    """Reads it all with pauses on the way; (bytes, SHA-256)."""
    digest, got = hashlib.sha256(), 0
    stops = [length * part // pauses for part in range(pauses)]
    while got < length:
        if stops and got >= stops[0]:
            stops.pop(0)
            time.sleep(0.5)
        piece = client.recv(65536)
        if not piece:
            break
        digest.update(piece)
        got += len(piece)
    return got, digest.hexdigest()


def test_both_directions_full_and_a_host_that_pauses(echo):
    """64 MiB each way at once. The reader begins late and pauses, each time until all buffers in
    both directions are full. Without qemu-harness/launcher/machine/vsock_device_fixes_linux.c this
    hangs."""
    data = b"".join(number.to_bytes(8, "little") + block()[8:] for number in range(LARGE // BLOCK))
    with echo.connect() as client:
        sender = threading.Thread(target=client.sendall, args=(data,), daemon=True)
        sender.start()
        time.sleep(1)
        assert sender.is_alive(), "nothing was ever full"
        assert read_slowly(client, LARGE, 3) == (LARGE, traffic_hash(LARGE))
        sender.join(PATIENCE)
        assert not sender.is_alive()


@pytest.mark.parametrize("mode, length, pauses", [("source", LARGE, 6), ("flood", FLOOD, 6)],
                         ids=["64-mib", "small-packets"])
def test_slow_reader_gets_everything(mode, length, pauses):
    with Server(f"{mode} {length}") as server, server.connect() as client:
        time.sleep(1)  # the buffers fill
        assert read_slowly(client, length, pauses) == (length, traffic_hash(length))


@pytest.mark.parametrize("stopped", [None, "codev-sandbox", "vhost-device", "qemu"])
def test_readers_that_stop_before_the_end_get_all(stopped):
    """Data in transit in the guest, the device and the launcher when the server ends is kept.

    It is kept for longer than the guest's kernel keeps a connection that it has closed (8 s),
    whether the readers pause or one of the processes in between is stopped. With about 450 to 500
    KiB left, only the device holds bytes: sizes in this range are tested in steps of 4 KiB."""
    length = MIB
    lefts = [*range(0, length, 64 * 1024), *range(440 * 1024, 500 * 1024, 4096)]
    numbers = range(length // BLOCK)
    whole = b"".join(number.to_bytes(8, "little") + block()[8:] for number in numbers)
    with Server(f"source {length}") as server, contextlib.ExitStack() as stack:
        rests = {}
        for left in lefts:
            client = stack.enter_context(server.connect())
            assert read_exactly(client, length - left) == whole[:length - left]
            rests[client] = whole[length - left:]
        if stopped:
            pid = server.sandbox.process.pid
            if stopped != "codev-sandbox":
                pid = server.sandbox.pid_of(stopped)
            os.kill(pid, signal.SIGSTOP)
        time.sleep(15)
        if stopped:
            os.kill(pid, signal.SIGCONT)
        for client, rest in rests.items():
            assert read_exactly(client, len(rest)) == rest
            assert client.recv(1) == b""


def test_64_mib_into_the_sandbox():
    with Server(f"hash {LARGE}") as server, server.connect() as client:
        for number in range(LARGE // BLOCK):
            client.sendall(number.to_bytes(8, "little") + block()[8:])
        line = client.makefile().readline()
    assert line == f"{LARGE} {traffic_hash(LARGE)}\n"
