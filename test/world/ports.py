"""Ports for third-party servers, which get a number and bind it themselves a moment later.

They are below the kernel's range of ephemeral ports, and each belongs to one test process at a
time: a lock of that number, a name in the abstract namespace of Unix sockets, is held until the
process ends. So neither a connection nor another test takes the port meanwhile."""
import contextlib
import pathlib
import random
import socket

FIRST = 10_000
locks = []


def first_of_the_kernels():
    return int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


def lock(port):
    """Takes the lock of this port; true when it succeeded."""
    held = socket.socket(socket.AF_UNIX)
    try:
        held.bind(f"\0codev-test-port-{port}")
    except OSError:
        held.close()
        return False
    locks.append(held)
    return True


def free_port(address="127.0.0.1"):
    """A port without a listener at this address, which no other test process gets while this one
    lives."""
    ports = list(range(FIRST, max(first_of_the_kernels(), FIRST + 1000)))
    random.shuffle(ports)
    for port in ports:
        with contextlib.suppress(OSError):
            if lock(port):
                socket.create_server(
                    (address, port),
                    family=socket.AF_INET6 if ":" in address else socket.AF_INET).close()
                return port
    raise OSError("no port is free")
