"""codev-sandbox run with a real guest: what a user types and the expected results."""
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import pathlib
import pty
import random
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import time

import pytest
from conftest import ARCH, PATIENCE

CANNOT_START = 125


# --- exit statuses --------------------------------------------------------------------------------


@pytest.mark.parametrize("command, status", [("exit 0", 0), ("exit 7", 7), ("exit 255", 255),
                                             ("kill -KILL $$", 137), ("kill -SEGV $$", 139)])
def test_the_exit_status_is_the_commands(sandbox, command, status):
    assert sandbox.run(command=command) == (status, b"", "")


def test_a_command_that_does_not_exist(sandbox):
    status, out, err = sandbox.run(command=["/nowhere/at-all"])
    assert (status, out) == (CANNOT_START, b"")
    assert err.startswith("codev-sandbox: server: ") and "/nowhere/at-all" in err and err.count(
        "\n") == 1


def test_arguments_arrive_as_they_are(sandbox):
    words = ["", "a b", "'\"$HOME`\\", "é\u202e", "\n", "-n", "x" * 5000]
    status, out, err = sandbox.run(
        command=["sh", "-c", 'for word; do printf "%s\\0" "$word"; done', "sh", *words])
    assert (status, err) == (0, "")
    assert out.decode() == "".join(word + "\0" for word in words)


# --- folders --------------------------------------------------------------------------------------

@pytest.fixture(params=["virtiofs", "9p"])
def file_server(request):
    if request.param == "virtiofs" and (os.geteuid() != 0
                                        or not os.path.exists("/usr/lib/qemu/virtiofsd")):
        pytest.skip("virtiofsd is not installed, or this is not root")
    return ["--file-server", request.param]


def test_who_and_which_files(sandbox, file_server):
    work = sandbox.work()
    (work / "one").write_text("1")
    (work / "two").write_text("2")
    status, out, err = sandbox.run(*file_server,
                                   "--mount",
                                   work,
                                   command="id -un; ls /workspace/*; pwd")
    assert (status, out.decode(), err) == (0, "codev\none\ntwo\n/workspace/work\n", "")


def test_what_is_made_inside_belongs_to_the_owner_outside(sandbox, file_server):
    work = sandbox.work()
    status, _, err = sandbox.run(*file_server,
                                 "--mount",
                                 work,
                                 command="echo hi >file && mkdir dir && ln -s file link")
    assert (status, err) == (0, "")
    assert (work / "file").read_text() == "hi\n"
    owner = work.stat()
    for name in ("file", "dir", "link"):
        assert ((work / name).lstat().st_uid, (work / name).lstat().st_gid) == (owner.st_uid,
                                                                                owner.st_gid)


@pytest.mark.parametrize("name", [
    "a b", "a,b=c", "a:b", "a:ro", "quo'te\"s", "new\nline", "größe-\U0001f600", "-o", "%s$(x)`y`"
])
def test_any_folder_name(sandbox, file_server, name):
    work = sandbox.work(name)
    (work / "file").write_text("here")
    escaped = str(work).replace("\\", "\\\\").replace(":", "\\:")
    status, out, err = sandbox.run(*file_server,
                                   "--mount",
                                   escaped,
                                   command=["sh", "-c", "pwd; cat file; echo x >new"])
    assert (status, err) == (0, "")
    assert out.decode() == f"/workspace/{name}\nhere"
    assert (work / "new").read_text() == "x\n"


def test_as_many_folders_as_can_be_named(sandbox):
    """64 folders, more than the machine's bus has slots: each is mounted at its own target and can
    be read and written; one is read-only."""
    most, readonly, options = 64, 41, []
    odd = ["a b", "a,b=c", "a:b", "quo'te\"s", "new\nline", "größe-\U0001f600", "-o", "%s$(x)`y`\\"]
    folders = [sandbox.work(f"{odd[number % len(odd)]} {number}") for number in range(most)]
    for number, folder in enumerate(folders):
        (folder / "number").write_text(f"{number}\n")
        escaped = str(folder).replace("\\", "\\\\").replace(":", "\\:")
        options += ["--mount", escaped + (f":/workspace/{number}:ro" if number == readonly else "")]
    script = ('cd /workspace; for i in ./*; do read -r n <"$i/number"; echo "$n inside" 2>&- '
              '>"$i/seen" || echo "$n refused"; done')
    status, out, err = sandbox.run(*options,
                                   command=f"{{ {script}; }} 2>/dev/null; ls /workspace | wc -l")
    assert (status, err) == (0, "")
    assert out.decode().splitlines() == [f"{readonly} refused", str(most)]
    for number, folder in enumerate(folders):
        seen = folder / "seen"
        assert (seen.read_text()
                == f"{number} inside\n") if number != readonly else not seen.exists()
    status, out, err = sandbox.run(*options, "--mount", folders[0], command="true")
    assert (status, out, err) == (CANNOT_START, b"",
                                  "codev-sandbox: usage: --mount is given more than 64 times\n")


def test_readonly_is_enforced(sandbox, file_server):
    work, other = sandbox.work(), sandbox.work("other")
    (work / "file").write_text("old")
    (work / "file").chmod(0o666)
    status, out, err = sandbox.run(
        *file_server,
        "--mount",
        f"{other}",
        "--mount",
        f"{work}:/opt/data:ro",
        command="cd /opt/data; cat file; echo new >file || echo x >second; chmod 777 . file")
    assert status != 0 and out == b"old"
    assert err.count("Read-only file system") == 4
    assert [path.name
            for path in work.iterdir()] == ["file"] and (work / "file").read_text() == "old"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away")
def test_a_folder_in_a_folder_needs_no_place_made_for_it(sandbox, file_server):
    """The mount point of the inner folder is made in the outer folder and belongs to its owner on
    the host."""
    outer, inner = sandbox.work(), sandbox.work("inner")
    (inner / "file").write_text("inside\n")
    status, out, err = sandbox.run(*file_server,
                                   "--mount",
                                   f"{outer}:/workspace/outer",
                                   "--mount",
                                   f"{inner}:/workspace/outer/a/b",
                                   command="cat /workspace/outer/a/b/file")
    assert (status, out) == (0, b"inside\n"), err
    assert (outer / "a" / "b").stat().st_uid == (outer / "a").stat().st_uid == outer.stat().st_uid


def test_the_owner_of_the_first_writable_folder_is_codev(sandbox, file_server):
    readonly, work, foreign = sandbox.work("r"), sandbox.work("w"), sandbox.work("f")
    os.chown(readonly, 1001, 1001)
    os.chown(work, 4711, 4712)
    os.chown(foreign, 1002, 1002)
    secret = foreign / "secret"
    secret.write_text("s")
    secret.chmod(0o600)
    os.chown(secret, 1002, 1002)
    status, out, err = sandbox.run(
        *file_server,
        "--mount",
        f"{readonly}:/workspace/r:ro",
        "--mount",
        work,
        "--mount",
        foreign,
        command=
        "id -u; id -g; touch /workspace/w/new && cat /workspace/f/secret; touch /workspace/f/new; "
        "echo $?"
    )
    assert (status, out) == (0, b"4711\n4712\n1\n")
    assert f"{foreign} is mounted for writing, but uid 4711 cannot write there" in err
    made = (work / "new").stat()
    assert (made.st_uid, made.st_gid) == (4711, 4712)


EVERYDAY = r"""
set -e
mkdir d; cd d
echo 1 >a; ln a b; ln -s a c; mv a z; cat c 2>/dev/null || echo dangling; cat b
chmod 700 z; touch -d '2020-01-02 03:04:05' z; stat -c '%a %Y %h' z
exec 3>open; echo x >&3; rm open; echo y >&3; exec 3>&-
dd if=/dev/zero of=big bs=1M count=20 conv=fsync 2>/dev/null; wc -c <big; truncate -s 5 big;
    wc -c <big
umask 077; mkdir priv; touch priv/f; stat -c %a priv priv/f
mkdir -p x/y/z; rm -r x
for i in $(seq 200); do echo $i >f$i; done; ls f* | wc -l; rm f*
chown 1234 z 2>/dev/null || echo no-chown
cp z zz; mv zz z; rm -r ../d; cd ..; ls
"""


def test_everyday_file_operations(sandbox, file_server):
    status, out, err = sandbox.run(*file_server,
                                   "--mount",
                                   sandbox.work(),
                                   "--env",
                                   "TZ=UTC",
                                   command=EVERYDAY)
    assert (status, err) == (0, "")
    assert out.decode().split("\n") == [
        "dangling", "1", "700 1577934245 2", "20971520", "5", "700", "600", "200", "no-chown", ""]


def test_no_devices_and_no_set_uid_through_a_folder(sandbox, file_server):
    if os.geteuid() != 0:
        pytest.skip("makes a device node")
    work = sandbox.work()
    os.mknod(work / "disk", 0o666 | 0o060000, os.makedev(254, 0))
    os.chmod(work / "disk", 0o666)
    status, out, _ = sandbox.run(*file_server, "--mount", work,
                                 command="cat disk; mknod null c 1 3; ls; echo end")
    assert (status, out) == (0, b"disk\nend\n")


def test_forbidden_mounts(sandbox):
    data = sandbox.work("data")
    rules = data / "sandbox-egress.json"
    rules.write_text("{}")
    token = sandbox.folder / "token"
    token.write_text("t")
    gateway = ["--gateway-url", "https://127.0.0.1:1", "--gateway-token-file", token]
    status, out, err = sandbox.run("--mount", data, *gateway, "--rules", rules, command="true")
    assert (status, out) == (CANNOT_START, b"")
    assert err == (f"codev-sandbox: mounts: mount {data} refused: it contains the rules file "
                   f"{rules}\n")
    status, _, err = sandbox.run("--mount", data, *gateway, "--app-data", data, command="true")
    assert (status, err) == (
        CANNOT_START,
        f"codev-sandbox: mounts: mount {data} refused: it contains the app-data folder {data}\n")


# --- pipes and terminal ---------------------------------------------------------------------------

def test_64_mib_through_pipes_are_exact(sandbox):
    data = random.Random(3).randbytes(64 * 1024 * 1024)
    process = sandbox.start(command="echo before >&2; cat; echo after >&2", stdin=subprocess.PIPE)
    out, err = process.communicate(data, timeout=900)
    assert (process.returncode, err) == (0, b"before\nafter\n")
    assert (len(out), hashlib.sha256(out).digest()) == (len(data), hashlib.sha256(data).digest())


def test_the_end_of_input_is_told(sandbox):
    assert sandbox.run(command="cat; echo end", data=b"") == (0, b"end\n", "")
    assert sandbox.run(command="head -c 3; echo", data=b"abcdef") == (0, b"abc\n", "")


def test_a_reader_that_leaves_ends_the_command(sandbox):
    process = sandbox.start(command="yes")
    assert process.stdout.read(4) == b"y\ny\n"
    process.stdout.close()
    assert process.wait(PATIENCE) in (141, 143)


class Terminal:
    """The launcher on a pseudo terminal."""

    def __init__(self, bench, *options, command=()):
        argv, environment = bench.argv(*options, command=command), {
            **bench.environment(), "TERM": "xterm-test"
        }
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, environment)
        bench.forked.append(self.pid)
        self.bench, self.text = bench, b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text)

    def read(self):
        try:
            data = os.read(self.fd, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            data = b""
        self.text += data
        return data

    def expect(self, pattern):
        end = time.monotonic() + PATIENCE
        while not (match := re.search(pattern, self.text)):
            left = end - time.monotonic()
            assert left > 0 and select.select([self.fd], [], [],
                                              left)[0] and self.read(), (pattern, self.text)
        self.text = self.text[match.end():]
        return match

    def wait(self):
        while self.read():
            pass
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.bench.forked.remove(self.pid)
        os.close(self.fd)
        return status


def test_an_interactive_shell(sandbox):
    terminal = Terminal(sandbox)
    terminal.expect(rb"codev@codev-[0-9a-f]+:")
    terminal.resize(50, 132)
    terminal.type(
        b"until [ \"$(stty size)\" = '50 132' ]; do sleep 0.1; done; tty; echo $TERM "
        b"size-$((1+1))\n"
    )
    terminal.expect(rb"/dev/pts/0\r\nxterm-test size-2\r\n")
    # a line editor may read ahead: input for the program is typed after the program says that it
    # runs
    terminal.type(b"echo on-$((1+1)); cat\n")
    terminal.expect(rb"on-2\r\n")
    terminal.type(b"line\n")
    terminal.expect(rb"line\r\nline\r\n")
    terminal.type(b"\x03")
    terminal.expect(rb"\^C\s+\S+\$ ")
    terminal.type(b"echo on-$((2+1)); cat >/dev/null; echo end-$((1+2))\n")
    terminal.expect(rb"on-3\r\n")
    terminal.type(b"\x04")
    terminal.expect(rb"end-3\r\n")
    terminal.type(b"exit 9\n")
    assert terminal.wait() == 9


def test_a_terminal_is_exact(sandbox):
    terminal = Terminal(
        sandbox, command="stty raw -echo; echo go; head -c 256 | od -An -v -tx1; cat /etc/hostname")
    terminal.expect(rb"go\n")
    terminal.type(bytes(range(256)))
    seen = b""
    for row in range(16):
        seen += terminal.expect(rb"((?: [0-9a-f]{2}){16})\n").group(1)
    assert bytes.fromhex(seen.decode()) == bytes(range(256))
    assert terminal.wait() == 0


def test_the_terminal_is_given_back(sandbox):
    """Under `script`, as for a user: the terminal is raw only while the guest uses it."""
    argv = " ".join(f"'{word}'" for word in sandbox.argv(command="stty raw; kill -KILL $$"))
    process = subprocess.run([
        "script", "-qec",
        f"stty -a >{sandbox.folder}/before; {argv}; echo s=$? >{sandbox.folder}/status;"
        f"stty -a >{sandbox.folder}/after", "/dev/null"
    ],
                             env=sandbox.environment(),
                             stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL,
                             timeout=PATIENCE,
                             check=False)
    assert process.returncode == 0
    assert (sandbox.folder / "status").read_text() == "s=137\n"
    assert (sandbox.folder / "before").read_text() == (sandbox.folder / "after").read_text()


# --- what is refused ------------------------------------------------------------------------------

@pytest.mark.parametrize("device", ["virtio-net-pci", "e1000"])
def test_a_network_device_is_refused(sandbox, device):
    """The guest's kernel has no driver for network cards: the start is refused because of the
    device itself, where it is visible."""
    arguments = ["-nic", f"user,model={device}"]
    options = [word for argument in arguments for word in ("--qemu-arg", argument)]
    status, out, err = sandbox.run(*options, command="ls /sys/class/net; echo started")
    assert (status, out) == (CANNOT_START, b""), err
    assert err.startswith("codev-sandbox: network: ")
    assert err.count("\n") == 1


def test_only_lo(sandbox):
    assert sandbox.run(command="ls /sys/class/net") == (0, b"lo\n", "")


def gateway_options(sandbox, rules=None):
    token = sandbox.folder / "token"
    token.write_text("the-real-token")
    token.chmod(0o600)
    options = ["--gateway-url", "https://127.0.0.1:1", "--gateway-token-file", token]
    if rules is not None:
        path = sandbox.folder / "rules.json"
        path.write_text(rules)
        path.chmod(0o644)
        options += ["--rules", path]
    return options


@pytest.mark.parametrize("rules, place", [('{\n "npm": "https://r.example"\n "x": 1}', "3:2"),
                                          ('{"npm":7}', "1:8"), ("", "1:1"),
                                          ('{"a":"https://x.example"}}', "1:26")])
def test_malformed_rules_end_the_start(sandbox, rules, place):
    status, out, err = sandbox.run(*gateway_options(sandbox, rules), command="echo started")
    assert (status, out) == (CANNOT_START, b"")
    [line] = [
        line for line in err.splitlines() if not line.startswith("codev-sandbox: broker: warning")
    ]
    assert line.startswith(f"codev-sandbox: broker: {sandbox.folder}/rules.json:{place}: ")


def test_as_many_rules_as_there_can_be(sandbox):
    names = [f"{number:064}" for number in range(1024)]
    options = gateway_options(sandbox, json.dumps(dict.fromkeys(names, "https://r.example")))
    status, out, err = sandbox.run(*options, command="cat /run/codev/sandbox.json")
    assert status == 0, err
    base = "http://127.0.0.1:8788/"
    assert json.loads(out)["egress"] == {name: base + name for name in ["gateway", *names]}


def test_without_a_gateway_there_is_no_egress(sandbox):
    status, out, _ = sandbox.run(
        command=
        "cat /run/codev/sandbox.json; netstat -ltn 2>/dev/null | grep -c :8788; wget -q -T 5 -O - "
        "http://127.0.0.1:8788/"
    )
    described, count = out.decode().rsplit("\n", 2)[0], out.decode().splitlines()[-1]
    assert json.loads(described)["egress"] == {}
    assert count == "0" and status != 0


# --- the way in -----------------------------------------------------------------------------------

SERVER = "exec nc -ll -p 8080 -e cat"


def events(path, name):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if path.exists():
            for line in path.read_text().split("\n")[:-1]:
                event = json.loads(line)
                if event["event"] == name:
                    return event
        time.sleep(0.05)
    raise AssertionError(f"no event {name}")


def echo(address, data):
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(address)
        connection.sendall(data)
        seen = b""
        while len(seen) < len(data):
            piece = connection.recv(65536)
            assert piece, f"it ended after {len(seen)} bytes"
            seen += piece
        return seen


def test_the_way_in(sandbox):
    log = sandbox.folder / "events"
    process = sandbox.start("--server-port", 8080, "--port", 0, "--events", log, command=SERVER)
    way_in = events(log, "way_in")
    events(log, "ready")
    host, port = way_in["tcp"].split(":")
    for address in (way_in["path"], way_in["path"], (host, int(port))):
        assert echo(address, b"hello\n" * 1000) == b"hello\n" * 1000
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 143
    assert b"warning: the way in is on 127.0.0.1" in process.stderr.read()


def test_the_way_in_demands_the_secret(sandbox):
    log = sandbox.folder / "events"
    process = sandbox.start("--server-port", 8080, "--events", log, command=SERVER)
    way_in = events(log, "way_in")
    events(log, "ready")
    vsock = os.path.join(os.path.dirname(way_in["path"]), "vsock.sock")
    if os.path.exists(vsock):
        for said in (b"", b"hello\n", b"CODEV-IN 1 " + b"0" * 64 + b"\n", b"CODEV-IN 1 \n"):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(PATIENCE)
                connection.connect(vsock)
                connection.sendall(b"CONNECT 4096\n")
                answer = connection.makefile("rb")
                assert answer.readline().startswith(b"OK ")
                connection.sendall(said)
                assert answer.read() == b""
    assert echo(way_in["path"], b"still there") == b"still there"
    process.terminate()
    assert process.wait(PATIENCE) == 143


def test_two_at_once_do_not_meet(sandbox):
    logs = [sandbox.folder / name for name in ("one", "two")]
    work = [sandbox.work(f"w{number}") for number in (1, 2)]
    runs = [
        sandbox.start("--server-port",
                      8080,
                      "--events",
                      log,
                      "--mount",
                      folder,
                      command=f"echo {index} >mine; {SERVER}")
        for index, (log, folder) in enumerate(zip(logs, work))
    ]
    paths = []
    for log in logs:
        paths.append(events(log, "way_in")["path"])
        events(log, "ready")
    assert paths[0] != paths[1]
    for path in paths:
        assert echo(path, b"ping") == b"ping"
    assert [(folder / "mine").read_text() for folder in work] == ["0\n", "1\n"]
    runs[0].terminate()
    assert runs[0].wait(PATIENCE) == 143
    assert echo(paths[1], b"pong") == b"pong"  # the other continues
    runs[1].terminate()
    assert runs[1].wait(PATIENCE) == 143


# --- ends -----------------------------------------------------------------------------------------

def start_and_wait(sandbox, command, *options, before="true"):
    process = sandbox.start(*options, command=f"{before}; echo up; {command}")
    assert process.stdout.readline() == b"up\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_an_orderly_end(sandbox, number):
    process = start_and_wait(sandbox,
                             "while true; do sleep 0.1; done",
                             before="trap 'echo bye; exit 5' TERM")
    process.send_signal(number)
    out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (5, b"bye\n")
    sandbox.assert_nothing_left()


def test_a_second_signal_kills(sandbox):
    process = start_and_wait(sandbox,
                             "while true; do sleep 0.1; done",
                             before="trap 'echo no' TERM")
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == b"no\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 143
    sandbox.assert_nothing_left()


def test_a_command_that_ignores_term_is_killed_after_the_grace(sandbox):
    process = start_and_wait(sandbox, "while true; do sleep 0.1; done", before="trap '' TERM")
    process.terminate()
    assert process.wait(PATIENCE) == 137
    sandbox.assert_nothing_left()


def command_of(pid):
    """A process's arguments; one empty string when it has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return [b""]


def find_child(sandbox, word):
    for pid in sandbox.processes():
        if word in command_of(pid)[0]:
            return pid
    raise AssertionError(f"no process {word}")


def test_sigkill_of_qemu(sandbox):
    process = start_and_wait(sandbox, "sleep 1000", "--mount", sandbox.work())
    os.kill(find_child(sandbox, b"qemu-system"), signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == CANNOT_START
    assert err.decode().splitlines()[-1].startswith("codev-sandbox: ")
    sandbox.assert_nothing_left()


def test_sigkill_of_codev_sandbox(sandbox):
    process = start_and_wait(sandbox, "sleep 1000", "--mount", sandbox.work())
    process.kill()
    process.wait(PATIENCE)
    end = time.monotonic() + PATIENCE
    while sandbox.processes():
        assert time.monotonic() < end, "children outlived it"
        time.sleep(0.05)
    [_] = sandbox.runtime.iterdir()  # the killed launcher could not remove it: the next start does
    assert sandbox.run(command="true")[0] == 0
    sandbox.assert_nothing_left()


def test_a_kernel_panic_is_told(sandbox):
    image = sandbox.folder / "image"
    image.write_bytes(bytes(1 << 20))
    status, out, err = sandbox.run("--image", image, command="true")
    assert (status, out) == (CANNOT_START, b"")
    assert "console: " in err and "Kernel panic" in err
    assert err.splitlines()[-1].startswith("codev-sandbox: qemu: it ended")
    sandbox.assert_nothing_left()


# --- events and time ------------------------------------------------------------------------------

def test_events_and_timeline(sandbox):
    log = sandbox.folder / "events"
    status, out, err = sandbox.run("--events", log, "--timeline", command="echo out; exit 3")
    assert (status, out) == (3, b"out\n")
    seen = [json.loads(line) for line in log.read_text().splitlines()]
    assert seen[0]["event"] == "hello" and seen[-1] == {"event": "exit", "code": 3}
    stages = [event["name"] for event in seen if event["event"] == "stage"]
    assert stages[:2] == ["base", "config"]
    for stage in stages:
        assert re.search(rf"^  {stage} +\[[ #|]+\] +[0-9.]+ ms$", err, re.MULTILINE), err


def test_the_clock_is_the_hosts(sandbox):
    before = time.time()
    status, out, _ = sandbox.run(command="date +%s")
    assert status == 0 and before - 2 <= int(out) <= time.time() + 2


@pytest.mark.skipif(ARCH != os.uname().machine, reason="one look at the confinement is enough")
def test_qemu_and_file_servers_are_confined(sandbox):
    work = sandbox.work()
    process = start_and_wait(sandbox, "sleep 1000", "--mount", work)
    owner, looked_at = work.stat(), set()
    for pid in sandbox.processes():
        words = command_of(pid)
        name = words[0].rsplit(b"/", 1)[-1]
        if name in (b"codev-sandbox", b""):  # itself, or a process that has ended
            continue
        looked_at.add(name)
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            status = dict(line.split(":", 1) for line in file.read().splitlines() if ":" in line)
        assert int(status["CapEff"], 16) == 0 and int(status["CapPrm"], 16) == 0, name
        assert status["NoNewPrivs"].strip() == "1", name
        if name.startswith(b"qemu-system") or name == b"virtiofsd":
            assert set(status["Uid"].split()) == {str(owner.st_uid)}, name
            assert status["Seccomp"].strip() == "2", name
        assert str(work).encode() not in b"\0".join(words), name
    assert any(name.startswith(b"qemu-system") for name in looked_at)
    process.terminate()
    assert process.wait(PATIENCE) == 143
