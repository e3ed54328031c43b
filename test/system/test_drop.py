"""The drop and its deny list on this machine's kernel: everyday programs work behind it, and denied
calls fail with the errno that the design names. The programs are Debian's own; one that is not
installed is skipped by name.

Needs root; skipped with the reason otherwise."""

import ctypes
import os
import pathlib
import platform
import shutil
import subprocess
import tempfile

import pytest

DRIVER = pathlib.Path(os.environ.get("CODEV_BIN",
                                     "build/bin")).resolve().parent / "test" / "drop_driver"
UID, GID = 4321, 4322
PATIENCE = 120

pytestmark = pytest.mark.skipif(os.geteuid() != 0,
                                reason="needs root: it is the way from root that is tested")


@pytest.fixture
def home():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="codev-walls-", dir="/tmp"))
    os.chown(folder, UID, GID)
    yield folder
    shutil.rmtree(folder)


def dropped(home, *command, namespaces=False, **more):
    options = ["--user-namespaces"] if namespaces else []
    return subprocess.run(
        [DRIVER, *options, str(UID), str(GID), home, *command],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
        **more)


def works(home, *command, **more):
    if not shutil.which(command[0], path="/usr/local/bin:/usr/bin:/bin"):
        pytest.skip(f"{command[0]} is not installed")
    done = dropped(home, *command, **more)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_identity(home):
    status = works(home, "cat", "/proc/self/status")
    lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert lines["Uid"].split() == [str(UID)] * 4
    assert lines["Gid"].split() == [str(GID)] * 4
    assert lines["Groups"].strip() == ""
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(lines[name], 16) == 0, name
    assert lines["NoNewPrivs"] == "1"
    assert lines["Seccomp"] == "2"
    assert int(lines["SigIgn"], 16) == 0 and int(lines["SigBlk"], 16) == 0


def ignore_every_signal():
    """Including those that the C library reserves and signal() cannot set."""
    number = {"x86_64": 13, "aarch64": 134}[platform.machine()]  # rt_sigaction
    ignored = (ctypes.c_ulong * 4)(1, 0, 0, 0)  # SIG_IGN
    for signal_number in range(1, 65):
        ctypes.CDLL(None).syscall(number, signal_number, ignored, None, 8)


def test_no_ignored_signal_is_inherited(home):
    status = works(home, "cat", "/proc/self/status", preexec_fn=ignore_every_signal)
    assert "SigIgn:\t0000000000000000\n" in status


def test_setuid_programs_gain_nothing(home):
    copy = home / "id"
    shutil.copy(shutil.which("id"), copy)
    os.chown(copy, 0, 0)
    copy.chmod(0o6755)
    assert works(home, str(copy), "-u").strip() == str(UID)


def test_python(home):
    script = """
import multiprocessing, socket, subprocess, tempfile, threading
thread = threading.Thread(target=print, args=("thread",)); thread.start(); thread.join()
print(subprocess.run(["echo", "child"], capture_output=True, text=True).stdout.strip())
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
listener = socket.create_server(("127.0.0.1", 0))
socket.create_connection(listener.getsockname()).close()
with multiprocessing.Pool(2) as pool: print(pool.map(abs, [-1, -2]))
try: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
except OSError as error: print(error.errno)
"""
    assert works(home, "/usr/bin/python3", "-c",
                 script).split() == ["thread", "child", "[1,", "2]", "97"]


def test_node(home):
    """networkInterfaces uses NETLINK_ROUTE; the rest starts threads, children and a server."""
    script = """
const { Worker } = require("worker_threads"), http = require("http"), fs = require("fs");
require("os").networkInterfaces();
console.log(require("child_process").execSync("echo child").toString().trim());
new Worker("require('worker_threads').parentPort.postMessage('worker')", { eval: true }).on("message", console.log);
const server = http.createServer((q, a) => a.end("served")).listen(0, "127.0.0.1", async () => {
    console.log(await (await fetch(`http://127.0.0.1:${server.address().port}/`)).text());
    fs.promises.readFile(__filename.length ? "/etc/hostname" : "").then(() =>
    { console.log("read"); server.close(); });
});
"""
    assert set(works(home, "node", "-e", script).split()) == {"child", "worker", "served", "read"}


def test_git(home):
    works(home, "git", "init", "-q", "repository")
    repository = str(home / "repository")
    (home / "repository" / "file").write_text("text\n")
    works(home, "git", "-C", repository, "add", "file")
    works(home, "git", "-C", repository, "-c", "user.name=n", "-c", "user.email=e@example",
          "commit", "-qm", "message")
    works(home, "git", "clone", "-q", repository, "clone")
    assert works(home, "git", "-C", str(home / "clone"), "log", "--format=%s").strip() == "message"
    works(home, "git", "-C", repository, "gc", "-q")


def test_gdb(home):
    """A debugger starts its program without address randomisation, traces it and reads its memory.
    """
    source, program = home / "p.c", home / "p"
    source.write_text("int value = 42;\nint main(void) { value++; return 0; }\n")
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    subprocess.run(["gcc", "-g", "-O0", "-o", program, source], check=True)
    said = works(home, "gdb", "-q", "-batch", "-ex", "break main", "-ex", "run", "-ex", "next",
                 "-ex", "print value", str(program))
    assert "$1 = 43" in said


def test_compiler(home):
    (home / "h.c").write_text("#include <stdio.h>\nint main(void) { puts(\"built\"); return 0; }\n")
    works(home, "gcc", "-o", "h", "h.c")
    assert works(home, str(home / "h")).strip() == "built"


CALLS = """
import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
for line in sys.stdin:
    name, number, *arguments = line.split()
    result = libc.syscall(*(ctypes.c_long(int(word, 0)) for word in (number, *arguments)))
    print(name, "worked" if result >= 0 else errno.errorcode[ctypes.get_errno()])
"""
NUMBERS = {  # x86_64, aarch64
    "unshare": (272, 97), "mount": (165, 40), "setns": (308, 268), "io_uring_setup": (425, 425),
    "clone3": (435, 435),
    "bpf": (321, 280), "keyctl": (250, 219), "ptrace": (101, 117), "memfd_create": (319, 279),
    "personality": (135, 92),
    "userfaultfd": (323, 282), "fsopen": (430, 430),
}


def call(home, name, *arguments, namespaces=False):
    number = NUMBERS[name][os.uname().machine == "aarch64"]
    done = subprocess.run([
        DRIVER, *(["--user-namespaces"] if namespaces else []),
        str(UID),
        str(GID), home, "/usr/bin/python3", "-c", CALLS
    ],
                          input=" ".join([name, str(number), *map(str, arguments)]) + "\n",
                          capture_output=True,
                          text=True,
                          timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[1]


@pytest.mark.parametrize("name, arguments, answer", [
    ("unshare", (0x10000000, ), "EPERM"),
    ("unshare", (0x40000000, ), "EPERM"),
    ("unshare", (0x400, ), "worked"),
    ("mount", (0, 0, 0, 0, 0), "EPERM"),
    ("setns", (0, 0), "EPERM"),
    ("fsopen", (0, 0), "EPERM"),
    ("io_uring_setup", (1, 0), "ENOSYS"),
    ("clone3", (0, 0), "ENOSYS"),
    ("bpf", (0, 0, 0), "EPERM"),
    ("keyctl", (0, 0), "EPERM"),
    ("userfaultfd", (1, ), "EPERM"),
    ("ptrace", (0, ), "worked"),
    ("personality", (0x0040000, ), "worked"),
])
def test_calls(home, name, arguments, answer):
    assert call(home, name, *arguments) == answer


def test_calls_with_user_namespaces(home):
    """The filter passes calls for namespaces and mounts to the kernel's own checks; the rest is
    still refused."""
    assert call(home, "unshare", 0x10000000, namespaces=True) == "worked"
    assert call(home, "mount", 0, 0, 0, 0, 0, namespaces=True) in ("EPERM", "EFAULT")
    assert call(home, "io_uring_setup", 1, 0, namespaces=True) == "ENOSYS"
    assert call(home, "clone3", 0, 0, namespaces=True) == "ENOSYS"
