"""Reads /proc of other processes. These may end or close descriptors between two reads: what has
gone is left out, and a process that has ended gives empty results, so that a waiting test reads
again instead of failing."""
import contextlib
import os
import pathlib


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read(pid, name):
    """A file of /proc/PID, as bytes; empty when the process has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


def status(pid, key):
    """One value of /proc/PID/status, as text; KeyError when there is none."""
    for line in read(pid, "status").decode(errors="replace").splitlines():
        if line.startswith(key + ":"):
            return line.split(":", 1)[1].strip()
    raise KeyError(key)


def descriptors(pid):
    """Number of each open descriptor -> what it refers to."""
    found, folder = {}, f"/proc/{pid}/fd"
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found[int(name)] = os.readlink(f"{folder}/{name}")
    return found


def stat(pid):
    """Fields 3 and on of /proc/PID/stat: the state, the parent and so on (proc(5)); none when the
    process has gone."""
    return read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()


def parent(pid):
    """0 when the process has gone."""
    return int((stat(pid)[1:2] or ["0"])[0])


def children(pid):
    """Reads each process's parent, because /proc/PID/task/TID/children may omit children while
    others exit (proc(5))."""
    return [other for other in processes() if parent(other) == pid]


def state(pid):
    """R, S, D, Z and so on; empty when the process has gone."""
    return "".join(stat(pid)[:1])


def has_ended(pid):
    return state(pid) in ("", "Z", "X")
