"""Ports for servers of others, which are told a number and bind it themselves a moment later.

They lie below the range from which the kernel gives ports to whoever asks for none in particular,
and each belongs to one process of the tests at a time: to the one that holds a lock of that number,
a name in the abstract namespace of Unix sockets, until it ends. So neither a connection nor a test
beside this one takes it meanwhile."""
import contextlib
import pathlib
import random
import socket

FIRST = 10_000
locks = []


def first_of_the_kernels():
    return int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


def lock(port):
    """Whether it is ours now."""
    held = socket.socket(socket.AF_UNIX)
    try:
        held.bind(f"\0codev-test-port-{port}")
    except OSError:
        held.close()
        return False
    locks.append(held)
    return True


def free_port(address="127.0.0.1"):
    """A port on which nobody listens at this address, and which nobody else is given as long as
    this process lives."""
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
