#!/usr/bin/python3
"""A guest without a virtual machine: the launcher starts it in place of vhost-device-vsock and
QEMU.

Started as `--vsock-device`, it gets --socket and --uds-path. It accepts QEMU's connection on the
first, serves `CONNECT PORT` on the second as hybrid vsock does, and executes the Python code in
CODEV_FAKE_GUEST_SCENARIO with

    guest.dial()            a new control connection (a Channel); guest.hello() dials, says hello
                            and
                            returns the channel with the boot configuration in channel.config
    channel.send(event)     a dict as a JSON line, or bytes as they are
    channel.command()       the next command, a dict; None at the end of the channel
    guest.way_in(handler)   handler(connection, port) serves what comes over CONNECT
    guest.pieces(connection)  its stream in pieces, as codev-agent speaks behind OK (a Pieces)
    guest.console(bytes)    what the guest's kernel prints
    guest.note(object)      a JSON line into CODEV_FAKE_GUEST_NOTES, for the test to read

When the scenario ends, the machine powers off: QEMU's connection is closed. Started as `--qemu`
(any other arguments), it acts as the QEMU of that guest and exits when that connection closes."""
import json
import os
import re
import select
import socket
import sys
import threading
import time
import traceback


class Channel:
    def __init__(self, connection):
        self.connection = connection
        self.file = connection.makefile("rb")
        self.config = None

    def send(self, event):
        line = event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n"
        self.connection.sendall(line)

    def command(self):
        line = self.file.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    def wait_for(self, name):
        while True:
            command = self.command()
            if command is None or command.get("command") == name:
                return command

    def close(self):
        self.file.close()
        self.connection.close()


class Pieces:
    """A way-in connection whose two directions are sent in pieces (common/wire/piece.h)."""

    def __init__(self, connection):
        self.connection = connection
        self.left = 0

    def exactly(self, length):
        data = b""
        while len(data) < length:
            more = self.connection.recv(length - len(data))
            if not more:
                raise ConnectionResetError("no end")
            data += more
        return data

    def recv(self, most):
        """b"" at the end of the stream; ConnectionResetError when the connection ends without the
        end piece."""
        if self.left == 0:
            self.left = int.from_bytes(self.exactly(2), "big")
        data = self.exactly(min(most, self.left))
        self.left -= len(data)
        return data

    def sendall(self, data):
        for at in range(0, len(data), 30000):
            part = data[at:at + 30000]
            self.connection.sendall(len(part).to_bytes(2, "big") + part)

    def end(self):
        """Sends the end piece and waits until the host closes, as the relay does."""
        self.connection.sendall(bytes(2))
        while self.connection.recv(65536):
            pass


class Guest:
    def __init__(self, uds_path):
        self.uds_path = uds_path
        self.machine = None
        self.handler = None

    def dial(self, port=1024):
        end = time.monotonic() + 60
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(f"{self.uds_path}_{port}")
                return Channel(connection)
            except OSError:
                connection.close()
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def hello(self):
        channel = self.dial()
        channel.send({"event": "hello", "protocol": 1, "version": "fake"})
        channel.config = channel.command()
        return channel

    def ready(self, **extra):
        channel = self.hello()
        channel.send({"event": "ready", "boot_ms": 1.0, "checks": [], **extra})
        return channel

    def console(self, data):
        """On return the serial line has the bytes, so whatever the guest does next comes later."""
        self.machine.sendall(data)
        left = len(data)
        while left and (said := self.machine.recv(left)):
            left -= len(said)

    def pieces(self, connection):
        return Pieces(connection)

    def way_in(self, handler):
        self.handler = handler

    def note(self, what):
        with open(os.environ["CODEV_FAKE_GUEST_NOTES"], "a", encoding="utf-8") as file:
            file.write(json.dumps(what) + "\n")

    def serve_one(self, connection):
        line = b""
        while not line.endswith(b"\n"):
            byte = connection.recv(1)
            if not byte:
                break
            line += byte
        match = re.fullmatch(rb"CONNECT (\d+)\n", line)
        if match and self.handler:
            self.handler(connection, int(match.group(1)))
        connection.close()

    def serve(self):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.uds_path)
        listener.listen(128)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self.serve_one, args=(connection,), daemon=True).start()


def play_guest(arguments):
    options = dict(zip(arguments[::2], arguments[1::2]))
    guest = Guest(options["--uds-path"])
    threading.Thread(target=guest.serve, daemon=True).start()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(options["--socket"])
    listener.listen(1)
    guest.machine, _ = listener.accept()
    guest.machine.recv(1)  # QEMU runs
    try:
        exec(os.environ["CODEV_FAKE_GUEST_SCENARIO"], {
            "guest": guest,
            "time": time,
            "socket": socket,
            "os": os
        })
    except Exception:
        guest.note({"scenario failed": traceback.format_exc()})
    guest.machine.close()
    while True:
        time.sleep(60)


def play_qemu(arguments):
    """Copies what the guest prints to the serial line; returns when the guest ends."""
    found = {}
    for argument in arguments:
        match = re.match(r"socket,id=(\w+),fd=(\d+)", argument)
        if match:
            found[match.group(1)] = int(match.group(2))
    machine = socket.socket(fileno=found["vsock"])
    serial = socket.socket(fileno=found["console"])
    if os.environ.get("CODEV_FAKE_QEMU_WORDS"):
        sys.stderr.write(os.environ["CODEV_FAKE_QEMU_WORDS"] + "\n")
        sys.exit(1)
    machine.sendall(b"!")
    while True:
        select.select([machine], [], [])
        data = machine.recv(4096)
        if not data:
            return
        serial.sendall(data)
        machine.sendall(bytes(len(data)))


if __name__ == "__main__":
    if "--uds-path" in sys.argv:
        play_guest(sys.argv[1:])
    else:
        play_qemu(sys.argv[1:])
