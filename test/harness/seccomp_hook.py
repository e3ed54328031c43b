"""Simulates a kernel that lacks a feature or fails once: system calls of the program under test are
refused or altered by seccomp (seccomp(2), seccomp_unotify(2)). The programs that it starts inherit
the filters."""
import ctypes
import errno
import os
import platform
import select
import socket
import struct
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
SECCOMP, SOCKET, SENDTO, CLONE = (317, 41, 44, 56) if X86 else (277, 198, 206, 220)
SET_MODE_FILTER, NEW_LISTENER = 1, 8
ALLOW, ERRNO, NOTIFY = 0x7fff0000, 0x00050000, 0x7fc00000
LOAD, EQUAL, BITS, RETURN = 0x20, 0x15, 0x45, 0x06
NUMBER, ARGUMENTS = 0, 16  # offsets in struct seccomp_data
NETLINK_NETFILTER = 12
RECEIVE, SEND, ADD_FD = 0xc0502100, 0xc0182101, 0x40182103
CONTINUE, SET_FD = 1, 1


def load(offset):
    return struct.pack("=HBBI", LOAD, 0, 0, offset)


def unless(test, value, skip):
    """Skips this many instructions unless the loaded value passes."""
    return struct.pack("=HBBI", test, 0, skip, value)


def end(value):
    return struct.pack("=HBBI", RETURN, 0, 0, value)


def install(code, flags=0):
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    result = LIBC.syscall(SECCOMP, SET_MODE_FILTER, flags, program)
    if result < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return result


def refuse_clone(flag, error):
    install(
        load(NUMBER) + unless(EQUAL, CLONE, 3) + load(ARGUMENTS) + unless(BITS, flag, 1) +
        end(ERRNO | error) + end(ALLOW))


def refuse_netfilter_socket(error):
    install(
        load(NUMBER) + unless(EQUAL, SOCKET, 5) + load(ARGUMENTS) +
        unless(EQUAL, socket.AF_NETLINK, 3) + load(ARGUMENTS + 16) +
        unless(EQUAL, NETLINK_NETFILTER, 1) + end(ERRNO | error) + end(ALLOW))


class Supervisor:
    """Supervises every sendto(2), and alters those that send an nf_tables batch in one of these
    ways:

        first-rule, last-rule   spoils the name of that rule's last expression in the sender's
                                memory, once
        killed                  puts /dev/null in the place of the socket, once
    """

    def __init__(self, fault):
        self.fault, self.faults = fault, 0
        self.ours, self.theirs = socket.socketpair()
        self.thread = threading.Thread(target=self.body)
        self.ending, self.listener = False, None

    def install(self):
        """In the child, before it executes the program."""
        listener = install(
            load(NUMBER) + unless(EQUAL, SENDTO, 1) + end(NOTIFY) + end(ALLOW), NEW_LISTENER)
        socket.send_fds(self.theirs, [b"x"], [listener])  # sendmsg(2)
        os.close(listener)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending = True
        self.ours.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.ours.close()
        self.theirs.close()

    def body(self):
        descriptors = socket.recv_fds(self.ours, 1, 1)[1]
        if not descriptors:
            return
        self.listener, = descriptors
        while not self.ending:
            ready, _, _ = select.select([self.listener], [], [], 0.1)
            if ready:
                self.answer()
        os.close(self.listener)

    def control(self, request, data):
        buffer = ctypes.create_string_buffer(bytes(data), len(data))
        if LIBC.ioctl(self.listener, ctypes.c_ulong(request), buffer) < 0:
            raise OSError(ctypes.get_errno(), "seccomp ioctl")
        return buffer.raw

    def answer(self):
        try:
            notice = self.control(RECEIVE, bytes(80))
            identity, pid, _ = struct.unpack_from("=QII", notice)
            arguments = struct.unpack_from("=6Q", notice, 32)
            self.spoil(identity, pid, *arguments[:3])
            self.control(SEND, struct.pack("=QqiI", identity, 0, 0, CONTINUE))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EINTR):  # the process has ended
                raise

    def spoil(self, identity, pid, fd, address, length):
        with open(f"/proc/{pid}/mem", "r+b", 0) as memory:
            memory.seek(address)
            data = memory.read(length)
            word = b"immediate\0"
            if word not in data or self.faults:
                return
            self.faults += 1
            if self.fault == "killed":
                sink = os.open("/dev/null", os.O_RDWR)
                self.control(ADD_FD, struct.pack("=QIIII", identity, SET_FD, sink, fd,
                                                 os.O_CLOEXEC))
                os.close(sink)
                return
            place = data.rindex(word) if self.fault == "last-rule" else data.index(word)
            memory.seek(address + place)
            memory.write(b"x")
