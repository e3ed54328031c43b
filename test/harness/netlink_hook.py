"""nf_tables messages made by hand, as another process with root's rights could send them. Layouts:
linux/netlink.h, linux/netfilter/nfnetlink.h, linux/netfilter/nf_tables.h."""
import contextlib
import ctypes
import os
import pathlib
import re
import socket
import struct

import procfs

NETLINK_NETFILTER = 12
NFNL_SUBSYS_NFTABLES = 10
BATCH_BEGIN, BATCH_END = 16, 17
NEWTABLE, DELTABLE = NFNL_SUBSYS_NFTABLES << 8, NFNL_SUBSYS_NFTABLES << 8 | 2
REQUEST, ACK, CREATE = 1, 4, 0x400
INET, OWNER = 1, 2
PIDFD_OPEN, PIDFD_GETFD = 434, 438
LIBC = ctypes.CDLL(None, use_errno=True)


def attribute(kind, value):
    return (struct.pack("=HH", 4 + len(value), kind) + value).ljust((len(value) + 7) // 4 * 4,
                                                                    b"\0")


def message(kind, flags, sequence, body, family=INET, resource=0):
    body = struct.pack("=BB", family, 0) + struct.pack(">H", resource) + body
    return struct.pack("=IHHII", 16 + len(body), kind, flags, sequence, 0) + body


def send_batch(channel, kind, flags, body):
    sequence = 0x70000000
    channel.sendto(message(BATCH_BEGIN, REQUEST, sequence, b"", 0, NFNL_SUBSYS_NFTABLES) +
                   message(kind, REQUEST | ACK | flags, sequence + 1, body) +
                   message(BATCH_END, REQUEST, sequence + 2, b"", 0, NFNL_SUBSYS_NFTABLES), (0, 0))


def delete_table(channel):
    send_batch(channel, DELTABLE, 0, attribute(1, b"codev\0"))


def own_table(channel):
    """Makes an empty table of that name that this socket owns."""
    send_batch(channel, NEWTABLE, CREATE,
               attribute(1, b"codev\0") + attribute(2, struct.pack(">I", OWNER)))
    answer = channel.recv(4096)
    error, = struct.unpack("=i", answer[16:20])
    assert error == 0, os.strerror(-error)


def open_socket():
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)


@contextlib.contextmanager
def owner_socket(pid):
    """Copies the descriptor with which that process owns its table: its nfnetlink socket that is in
    no multicast group."""
    rows = [
        line.split()
        for line in pathlib.Path(f"/proc/{pid}/net/netlink").read_text().splitlines()[1:]
    ]
    inodes = {row[-1] for row in rows if int(row[1]) == NETLINK_NETFILTER and int(row[3], 16) == 0}
    process = LIBC.syscall(PIDFD_OPEN, pid, 0)
    copies = []
    for number, target in procfs.descriptors(pid).items():
        link = re.fullmatch(r"socket:\[(\d+)\]", target)
        if link and link.group(1) in inodes:
            copies.append(LIBC.syscall(PIDFD_GETFD, process, number, 0))
    os.close(process)
    assert len(copies) == 1 and copies[0] >= 0
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER, copies[0]) as channel:
        yield channel
