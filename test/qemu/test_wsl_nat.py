"""Two sandboxes and another distribution ("outsider") in one WSL machine with NAT networking: what
each can and cannot reach.

One boot serves every test: the fixture `place` starts the machine, the outsider with its servers,
and two sandboxes with brokers, gateways and servers of their own. Tests that end a sandbox start
one of their own."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shutil
import socket
import struct
import subprocess
import termios
import time

import pytest

from test_breakout import GROUPS, make_trap, rows
import variant_image
from machine_harness import (GUEST, PATIENCE, SANDBOX_WSL, TOP, Gateway, Sandbox, SpiedBroker, run,
                             wait_for)
from wsl_rig_harness import (IMAGE_TAR, OWN, PROGRAMS, Listener, Rig, WslSandbox, escapes, look_in,
                             no_name_is_found, none_escapes, outsider_has_its_network,
                             outsider_servers, put_glibc, refusals, seconds_inside)

EXECUTABLE = "MZ this is no program\n"


class Place:
    pass


def start(place, name, port, gateway, *options, **more):
    look = look_in(place.rig, name)
    spied = SpiedBroker(look.folder.parent)
    server = f"{PROGRAMS}/probe serve {port} http & " if port else ""
    sandbox = WslSandbox(place.rig, server + look.CODEV, [
        *(["--server-port", port] if port else []),
        *(gateway.options + spied.options if gateway else []), *options
    ], look, **more)
    sandbox.spied, sandbox.gateway, sandbox.port = spied, gateway, port
    return sandbox


def broker_port(sandbox):
    ready = json.loads(sandbox.spied.copy.read_text().partition("\n")[0])
    return int(ready["listen"][0].rpartition(":")[2])


def way_in_port(sandbox):
    return int(sandbox.wait_event("ready")["way_in"].rpartition(":")[2])


@pytest.fixture(scope="module")
def place():
    with contextlib.ExitStack() as stack:
        here = Place()
        here.rig = stack.enter_context(Rig())
        here.rig.install_outsider()
        here.windows = stack.enter_context(Listener())
        here.windows_v6 = stack.enter_context(Listener(socket.AF_INET6))
        stack.enter_context(outsider_servers(here.rig))
        outsider_has_its_network(here.rig, here.windows)  # before
        glibc = put_glibc(here.rig)
        here.gateways = [stack.enter_context(Gateway()) for _ in range(2)]
        here.a = stack.enter_context(start(here, "a", 4096, here.gateways[0], *glibc)).started()
        here.b = stack.enter_context(start(here, "b", 4097, here.gateways[1])).started()
        here.ports = [broker_port(here.a), broker_port(here.b)]
        yield here


# --- 1: two sandboxes and an outsider -------------------------------------------------------------

def test_each_has_its_own_relay(place):
    for sandbox in (place.a, place.b):
        before = [gateway.stats()["requests"] for gateway in place.gateways]
        assert sandbox.codev(f"{PROGRAMS}/probe http GET /gateway/v1/models").startswith(
            "HTTP/1.1 200 ")
        after = [gateway.stats()["requests"] for gateway in place.gateways]
        own = place.gateways.index(sandbox.gateway)
        assert after[own] == before[own] + 1 and after[1 - own] == before[1 - own]


def test_each_has_its_own_server(place):
    for sandbox, other in ((place.a, place.b), (place.b, place.a)):
        text = sandbox.codev(
            f"{PROGRAMS}/probe connect 127.0.0.1 {sandbox.port}; {PROGRAMS}/probe connect "
            f"127.0.0.1 {other.port}; "
            f"{PROGRAMS}/probe connect ::1 {other.port}")
        assert [verdict for _, verdict, _ in refusals(text)] == ["worked", "refused",
                                                                 "refused"], text


def test_the_way_in_leads_to_the_own_server(place):
    for sandbox in (place.a, place.b):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            client.connect(sandbox.wait_event("way_in")["path"])
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert way_in_port(place.a) != way_in_port(place.b)


def test_neither_reaches_a_broker_or_a_way_in(place):
    ports = [*place.ports, way_in_port(place.a), way_in_port(place.b)]
    words = [
        f"connect {host} {port}" for host in ("10.0.2.2", "127.0.0.1", OWN["nat"], "::1")
        for port in ports
    ]
    none_escapes(place.a, words)
    none_escapes(place.b, words)


def test_abstract_sockets_are_each_ones_own(place):
    """Each sees only its own abstract socket: A's is invisible to others, and so is the
    outsider's."""
    place.a.codev(f"{PROGRAMS}/probe abstract-serve codev-a >/dev/null 2>&1 &")
    wait_for(lambda: place.a.codev(f"{PROGRAMS}/probe abstract codev-a").endswith("worked\n"),
             "A's abstract socket")
    assert "refused" in place.b.codev(
        f"{PROGRAMS}/probe abstract codev-a; cat /proc/net/unix | grep codev-a")
    for user in ("root", "1000"):
        assert "refused (ECONNREFUSED)" in place.rig.outsider("/mnt/c/probe abstract codev-a",
                                                              user)[1]
    outside = place.rig.start_outsider("exec /mnt/c/probe abstract-serve codev-outside")
    try:
        assert outside.stdout.readline() == b"listening\n"
        assert place.rig.outsider("/mnt/c/probe abstract codev-outside",
                                  "1000")[1].endswith("worked\n")
        for sandbox in (place.a, place.b):
            assert "refused (ECONNREFUSED)" in sandbox.codev(
                f"{PROGRAMS}/probe abstract codev-outside")
    finally:
        outside.kill()
        outside.wait()
        outside.stdout.close()


def test_the_outsider_gets_no_byte_through_a_way_in(place):
    """Whatever bytes it sends and as whichever user. Each attempt has its own connection, and they
    wait for an answer in parallel."""
    said = ["GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n", "CODEV-IN 1 " + "0" * 64 + "\\n", "\\n", ""]
    tries = [
        f"(printf '{words}'; sleep 6) | timeout 7 nc 127.0.0.1 {way_in_port(sandbox)} >/tmp/$(id "
        f"-u).{number}.{sandbox.port} 2>&1 &"
        for sandbox in (place.a, place.b) for number, words in enumerate(said)
    ]
    for user in ("root", "1000"):
        status, text = place.rig.outsider(
            "\n".join([*tries, "wait; cat /tmp/$(id -u).*; ls /tmp/$(id -u).* | wc -l"]), user)
        assert status == 0 and text.strip() == "8", text


def test_the_outsider_keeps_its_network(place):
    outsider_has_its_network(place.rig, place.windows)  # during
    rules = place.rig.outsider("nft list ruleset; ip rule | wc -l; ip -o link | wc -l")[1]
    assert rules.split() == ["3", "2"], rules  # nothing was added to what is shared


def test_the_outsider_cannot_use_a_relay(place):
    for user in ("root", "1000"):
        _, text = place.rig.outsider("nc -w 2 127.0.0.1 8788; nc -w 2 ::1 8788; true", user)
        assert text.count("refused") == 2, text


# --- 2: escapes by network ------------------------------------------------------------------------

def test_nothing_leaves(place):
    seen = len(place.windows.seen), len(place.windows_v6.seen), len(place.rig.record())
    none_escapes(place.a, escapes(place.rig, place.windows, place.windows_v6, place.ports))
    assert seen == (len(place.windows.seen), len(place.windows_v6.seen), len(place.rig.record()))


def test_no_ping(place):
    took, text = seconds_inside(
        place.a, f"{PROGRAMS}/probe raw; {PROGRAMS}/probe raw6; ping -c 1 -w 5 10.0.2.2")
    assert "worked" not in text and "1 packets received" not in text and "status 0" not in text


def test_no_names(place):
    """Both C libraries get the answer "no such name" at once; the outer resolver gets no query."""
    before = place.rig.record()
    no_name_is_found(place.a)
    for server in ("10.255.255.254", "10.0.2.3"):
        text = place.a.codev(f"busybox nslookup internet.example {server} 2>&1; echo status $?")
        assert "10.0.2.2" not in text.replace(server, "") and "status 0" not in text, text
    assert place.rig.record() == before


# --- 3: everything else that leads out ------------------------------------------------------------

ATTEMPTS = [
    "vsock-socket", "vsock-device", "families", "packet", "raw", "raw6", "ping", "mptcp", "iouring",
    "ia32", "x32", "userns", "userns-clone", "netns", "mountns", "setns", "mount", "remount",
    "umount", "fsopen", "open-tree", "pivot-root", "chroot", "mknod", "netfilter", "bpf", "setuid0",
    "module", "keyctl", "open /proc/1/root/etc/passwd", "open /proc/1/mem", "open /proc/1/ns/net",
    "ptrace 1", "ptrace codev-agent", "procmem codev-agent", "kill codev-agent", "others",
    *(f"vsock {port} {cid}" for port in range(50000, 50006) for cid in (1, 2))
]


def test_every_other_way_is_refused(place):
    before = place.rig.record()
    text = place.a.codev("\n".join(f"{PROGRAMS}/probe {attempt}; echo \"status $?\""
                                   for attempt in ATTEMPTS))
    assert text.count("status ") == len(ATTEMPTS)
    bad = [line for line in text.splitlines() if re.search(r": (worked|no answer|unclear)", line)]
    assert not bad and text.count("status 0") == len(ATTEMPTS), text
    assert place.rig.record() == before


def test_the_attempts_are_real(place):
    """The control: the outsider's root succeeds with each attempt on the same kernel, in a mount
    namespace of its own."""
    cannot = {"pivot-root", "module"}  # the root is an initramfs, and there is no module to load
    here = [
        attempt for attempt in ATTEMPTS
        if "codev-agent" not in attempt and attempt not in cannot | {"others"}
    ]
    script = "\n".join(f"unshare -m /mnt/c/probe {attempt}; echo \"status $?\"" for attempt in here)
    text = place.rig.outsider(script)[1]
    assert text.count("status 1") == len(here), text


def test_the_breakout_table(place):
    """All attempts except the bombs, which would affect all distributions, as the kernel is
    shared."""
    if os.geteuid() != 0:
        pytest.skip("makes device nodes and set-uid files for a shared folder")
    trap = make_trap(place.rig.c / "trap")
    with start(place, "c", 0, place.gateways[0], "--mount", f"{trap}:/workspace/trap") as sandbox:
        sandbox.started()
        before = place.rig.record()
        [agent] = [
            last for pid, last, name, network in place.rig.processes()
            if name == "codev-agent" and network == sandbox.network
        ]
        found = []
        for group in GROUPS[:-1]:
            text = sandbox.codev(
                f"/workspace/trap/probe breakout --agent {agent} --folder /workspace/trap --group "
                f"'{group}'",
                240)
            found += rows(text)
        bad = [row for row in found if row.verdict != "refused"]
        assert len(found) >= 200 and not bad, bad
        sandbox.alive()
        assert place.rig.record() == before


def test_a_set_uid_root_program_gives_nothing(place):
    if os.geteuid() != 0:
        pytest.skip("only root can make a set-uid root program")
    program = place.a.look.folder / "set-uid"
    shutil.copy(GUEST / "probe", program)
    program.chmod(0o4755)
    text = place.a.codev("/workspace/look/set-uid be-root; /workspace/look/set-uid setuid0")
    assert text.count(": refused") == 2, text
    assert place.rig.outsider(f"/mnt/c/a/look/set-uid be-root",
                              "1000")[1].endswith("worked\n")  # the control


def test_no_windows_executable_runs(place):
    executable = place.a.look.folder / "x.exe"
    executable.write_text(EXECUTABLE)
    executable.chmod(0o755)
    before = place.rig.record()
    text = place.a.codev(
        "/workspace/look/x.exe; echo status $?; cd /workspace/look && ./x.exe; echo status $?; "
        "/init x; ls /init "
        "/run/WSL /mnt/wsl /mnt/wslg /mnt/c /proc/sys/fs/binfmt_misc/WSLInterop 2>&1")
    assert "status 0" not in text and text.count("No such file") >= 5, text
    assert place.rig.record() == before
    status, text = place.rig.outsider("/mnt/c/a/look/x.exe", "1000")  # the control
    assert status == 0 and place.rig.record()[len(before):] == [
        "interop outsider run /mnt/c/a/look/x.exe"
    ], text


def test_no_drive_can_be_mounted(place):
    before = place.rig.record()
    text = place.a.codev(
        "mkdir -p /tmp/d; mount -t drvfs 'C:\\' /tmp/d; echo status $?; mount -t 9p -o "
        "trans=virtio C0 /tmp/d; "
        "echo status $?; /sbin/mount.drvfs 'C:\\' /tmp/d; echo status $?; ls /tmp/d")
    assert "status 0" not in text and "glibc" not in text
    assert place.rig.record() == before
    status, text = place.rig.outsider(
        "mkdir -p /tmp/d; mount -t drvfs 'C:\\' /tmp/d && ls /tmp/d; umount /tmp/d")  # the control
    assert status == 0 and "glibc" in text and place.rig.record()[len(before)].startswith(
        "vsock 50002 drvfs C:")


def test_the_stand_ins_see_who_comes(place):
    """The control for all refusals: the unprivileged outsider reaches each stand-in for Windows,
    and each records it."""
    before = len(place.rig.record())
    script = "; ".join(f"/mnt/c/probe vsock {port}" for port in range(50000, 50006))
    text = place.rig.outsider(f"{script}; /mnt/c/probe connect 10.255.255.254 53", "1000")[1]
    assert text.count(": worked") == 7, text
    seen = wait_for(lambda: len(place.rig.record()) >= before + 7 and place.rig.record()[before:],
                    "the record")
    assert {f"vsock {port}" for port in range(50000, 50006)} <= {line.rstrip() for line in seen}


def test_no_other_cgroup(place):
    text = place.a.codev(
        "for f in $(find /sys/fs/cgroup -name cgroup.procs 2>/dev/null) "
        "/sys/fs/cgroup/../cgroup.procs; do "
        "echo $$ >$f && echo moved; done 2>&1; mkdir /sys/fs/cgroup/new && echo made; cat "
        "/proc/self/cgroup"
    )
    assert "moved" not in text and "made" not in text and ".." not in text.splitlines()[-1], text


# --- 5: changes of the firewall by other processes ------------------------------------------------

def ruleset(sandbox, what="ruleset"):
    status, text = sandbox.in_network(f"nft --json list {what}")
    assert status == 0, text
    return normal(text)


def normal(text):
    """A ruleset without the parts that differ at each load: handles, versions, the owner."""
    def strip(value):
        if isinstance(value, dict):
            return {
                key: strip(inner)
                for key, inner in value.items() if key not in ("handle", "index", "flags")
            }
        return [strip(inner) for inner in value] if isinstance(value, list) else value

    return [strip(item) for item in json.loads(text)["nftables"] if "metainfo" not in item]


def test_the_outsiders_flush_changes_nothing(place):
    before = ruleset(place.a)
    status, text = place.rig.outsider(
        "nft add table inet other && nft flush ruleset && iptables -A OUTPUT -j ACCEPT && iptables "
        "-F "
        "&& iptables -X && ip6tables -F && iptables -P OUTPUT ACCEPT && nft flush ruleset")
    assert status == 0, text
    assert ruleset(place.a) == before
    none_escapes(place.a, escapes(place.rig, place.windows, place.windows_v6, place.ports)[:8])
    assert place.a.codev(f"{PROGRAMS}/probe http GET /gateway/v1/models").startswith(
        "HTTP/1.1 200 ")
    assert not [event for event in place.a.events() if event["event"] == "firewall"]


HANDLE = "$(nft -a list chain inet codev output | sed -n 's/.*oif \"lo\".*handle //p')"
HOOKS = ["nft flush ruleset", "nft delete table inet codev", "nft flush chain inet codev output",
         "nft add rule inet codev output accept", "nft add table inet open",
         f"nft delete rule inet codev output handle {HANDLE}"]


@pytest.mark.parametrize("hook", HOOKS)
def test_a_privileged_hook_opens_nothing(place, hook):
    """A root process in the sandbox's namespace: the kernel refuses its changes (the table has an
    owner), or they are reverted and reported."""
    what = "table inet codev"
    before, reports = ruleset(place.b, what), len(
        [event for event in place.b.events() if event["event"] == "firewall"])
    finish = place.b.look.begin(
        "codev",
        f"for i in $(seq 40); do {PROGRAMS}/probe connect 10.0.2.2 {place.windows.port}; done")
    seen = len(place.windows.seen)
    status, text = place.b.in_network(hook)
    end = time.monotonic() + 30  # normally at once; this host may be busy
    while ruleset(place.b, what) != before:
        assert time.monotonic() < end, "not restored"
    tries = refusals(finish())
    assert len(tries) == 40 and {verdict
                                 for _, verdict, _ in tries} == {"refused"} and len(
                                     place.windows.seen) == seen
    told = [event for event in place.b.events() if event["event"] == "firewall"][reports:]
    assert "not permitted" in text or (
        status == 0 and hook in ("nft flush ruleset", "nft add table inet open")) or told, text
    place.b.alive()


def test_a_hook_with_the_owners_own_socket(place):
    """The kernel takes it for the owner, and the whole table is gone: it is made again at once, or
    the sandbox is killed."""
    look = place.b.look
    before = ruleset(place.b, "table inet codev")
    finish = look.begin(
        "codev",
        f"for i in $(seq 60); do {PROGRAMS}/probe connect 10.0.2.2 {place.windows.port}; done")
    seen = len(place.windows.seen)
    text = place.rig.system(f"rig unrule {place.b.first}")
    assert re.search(r"descriptor \d+: 0$", text, re.MULTILINE), text  # the hook deleted it
    told = wait_for(lambda: [event for event in place.b.events() if event["event"] == "firewall"],
                    "the report")
    assert told[-1]["state"] == "restored"
    assert ruleset(place.b, "table inet codev") == before
    tries = refusals(finish())
    assert len(tries) == 60 and {verdict
                                 for _, verdict, _ in tries} == {"refused"} and len(
                                     place.windows.seen) == seen
    assert place.b.codev(f"{PROGRAMS}/probe http GET /gateway/v1/models").startswith(
        "HTTP/1.1 200 ")


# --- 9: an independent witness --------------------------------------------------------------------

def test_the_ruleset_is_that_of_policy_nft(place):
    """nft loads nft/policy.nft in a separate namespace: its listing there equals its listing in the
    sandbox."""
    policy = (TOP / "nft" / "policy.nft").read_bytes()
    status, text = place.rig.wsl("outsider",
                                 "root",
                                 "unshare",
                                 "-n",
                                 "sh",
                                 "-c",
                                 "nft -f /dev/stdin && nft --json list ruleset",
                                 data=policy)
    assert status == 0, text
    assert ruleset(place.a) == normal(text)
    assert ruleset(place.b, "table inet codev") == normal(text)  # changed by a hook above


# --- 6: the way over TCP --------------------------------------------------------------------------

def test_the_wire_shows_nothing_in_clear(place):
    marker = "mark-" + os.urandom(8).hex()
    answer = place.a.codev(
        f"{PROGRAMS}/probe http GET /gateway/v1/models --header 'X-Mark: {marker}'")
    assert answer.startswith("HTTP/1.1 200 ")
    wait_for(lambda: len(place.rig.dump()) > 4096 and b"\x16\x03\x03" in place.rig.dump(),
             "TLS in the dump")
    dump = place.rig.dump()
    for secret in (place.a.spied.token(), place.b.spied.token(), place.gateways[0].token, marker,
                   "CODEV/1", "/gateway/", "HTTP/1.1"):
        assert secret.encode() not in dump, secret


def test_the_dump_would_show_it(place):
    """The control: the same bytes, sent unencrypted by the outsider, are in the dump."""
    place.rig.outsider(f"printf 'CODEV/1 in-clear' | nc -w 2 10.0.2.2 {place.windows.port}", "1000")
    wait_for(lambda: b"CODEV/1 in-clear" in place.rig.dump(), "the packet in the dump")


def test_anything_but_tls_is_closed_at_once(place):
    for words in (b"GET /gateway/v1/models HTTP/1.1\r\nHost: x\r\n\r\n",
                  b"CODEV/1 " + b"0" * 64 + b"\r\nGET / HTTP/1.1\r\n\r\n", b"\0" * 64):
        with socket.create_connection(("127.0.0.1", place.ports[0]), 10) as client:
            client.sendall(words)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while data := client.recv(4096):
                    answer += data
            assert b"HTTP" not in answer and len(answer) <= 16, answer  # at most an alert


def test_who_takes_over_the_brokers_port_learns_nothing(place):
    with start(place, "taken", 0, place.gateways[0]) as sandbox:
        sandbox.started()
        port, token = broker_port(sandbox), sandbox.spied.token()
        assert sandbox.codev(f"{PROGRAMS}/probe http GET /gateway/v1/models").startswith(
            "HTTP/1.1 200 ")
        os.kill(sandbox.pid_of("codev-broker"), 9)
        sandbox.wait_event("broker_exit")
        with Listener(port=port) as thief:
            text = sandbox.codev(
                f"{PROGRAMS}/probe http GET /gateway/v1/models --header 'X-Mark: "
                "secret-of-the-request'"
            )
            assert text.startswith(("HTTP/1.1 502 ", "HTTP/1.1 503 ")), text
            wait_for(lambda: any(thief.seen), "a connection to the thief")
            heard = b"".join(thief.seen)
            assert heard.startswith(b"\x16\x03") and token.encode() not in heard
            assert b"CODEV" not in heard and b"GET" not in heard
            assert b"secret-of-the-request" not in heard


def test_the_gateway_changes(place):
    """As after a restart of WSL: the gateway's address is looked up at each connection. With a dead
    address the answer is a 502 with the reason; with the right one requests work."""
    request = f"{PROGRAMS}/probe http GET /gateway/v1/models"
    place.rig.system("ip route replace default via 10.0.2.77")
    try:
        assert place.a.codev(request).startswith(("HTTP/1.1 502 ", "HTTP/1.1 503 "))
    finally:
        place.rig.system("ip route replace default via 10.0.2.2")
    assert place.a.codev(request).startswith("HTTP/1.1 200 ")


# --- 7: the inner relay's descriptors -------------------------------------------------------------

def test_no_descriptor_of_the_inside_agent_leads_out(place):
    image = place.rig.base / "reconnect.tar"
    variant_image.write_tar(IMAGE_TAR, image,
                            {"usr/libexec/codev/codev-agent": GUEST / "codev-agent-reconnect"})
    with start(place, "reconnect", 4100, place.gateways[0], "--image", image, "--wsl-distribution",
               "reconnect") as sandbox:
        sandbox.started()
        seen = len(place.windows.seen), len(place.windows_v6.seen)
        targets = [
            f"tcp:10.0.2.2:{place.windows.port}", f"tcp:{OWN['nat']}:7001",
            f"tcp:127.0.0.1:{place.windows.port}", "tcp:127.0.0.1:7001",
            f"tcp:10.0.2.2:{broker_port(sandbox)}", f"tcp:127.0.0.1:{way_in_port(sandbox)}",
            f"tcp:[fec0::2]:{place.windows_v6.port}", f"tcp:[::1]:{place.windows_v6.port}",
            "tcp:10.255.255.254:53"
        ]
        sandbox.look.begin(
            "codev",
            "(printf 'GET /gateway/v1/models HTTP/1.1\\r\\n'; sleep 20) | nc 127.0.0.1 8788 "
            ">/dev/null 2>&1 &\n"
            f"sleep 1; (echo 'RECONNECT {' '.join(targets)}'; sleep 15) | nc 127.0.0.1 8788")
        # read while it is written: the relay ends after its listeners are broken, and then the
        # sandbox
        answer = sandbox.look.folder / "codev.1.answer"
        wait_for(lambda: re.search(r"^reached \d+ of \d+$", answer.read_text(), re.MULTILINE),
                 "the relay's attempts")
        text = answer.read_text()
        # a datagram socket (of the DNS stub) may be pointed at the sandbox's own loopback; no
        # stream goes anywhere
        reached = [line for line in text.splitlines() if line.endswith("REACHED")]
        assert not [
            line for line in reached
            if not re.match(r"fd \d+: socket \d+\.2: tcp:(127\.0\.0\.1|\[::1\]):", line)
        ], text
        assert len(re.findall(r": socket 1\.1: ",
                              text)) >= 2 * len(targets)  # it had Unix sockets, and tried all
        assert seen == (len(place.windows.seen), len(place.windows_v6.seen))


# --- 8: the end of init, and no login -------------------------------------------------------------

def test_killed_init_takes_everything_with_it(place):
    with start(place, "killed", 4101, place.gateways[0]) as sandbox:
        sandbox.started()
        sandbox.codev("sleep 1000 & sleep 1001 &")
        mine, port = sandbox.pids(), way_in_port(sandbox)
        assert len(mine) >= 8  # two inits, two relays, the server, the loop, two sleeps
        place.rig.system(f"kill -9 {sandbox.outer}")
        wait_for(lambda: not set(mine) & {pid
                                          for pid, *_ in place.rig.processes()},
                 "the end of every process of the sandbox", 10)
        assert "refused" in place.rig.outsider(f"nc -w 2 127.0.0.1 {port}",
                                               "1000")[1]  # the way in's port is free again
        status, _ = sandbox.finish(30)
        assert status == 125
    with start(place, "again", 4101, place.gateways[0]) as sandbox:
        sandbox.started()
        assert sandbox.codev(f"{PROGRAMS}/probe http GET /gateway/v1/models").startswith(
            "HTTP/1.1 200 ")


def test_killed_first_process_takes_everything_with_it(place):
    with start(place, "first", 4103, place.gateways[0]) as sandbox:
        sandbox.started()
        mine = sandbox.pids()
        place.rig.system(f"kill -9 {sandbox.first}")
        status, _ = sandbox.finish(30)
        assert status == 125 and sandbox.event("failed"), sandbox.describe()
        wait_for(lambda: not set(mine) & {pid
                                          for pid, *_ in place.rig.processes()},
                 "the end of every process of the sandbox", 10)


def test_killed_host_takes_everything_with_it(place):
    """The app dies and wsl.exe with it: the control channel ends, and so does the sandbox."""
    with start(place, "host", 4104, place.gateways[0]) as sandbox:
        sandbox.started()
        mine = sandbox.pids()
        sandbox.process.kill()
        wait_for(lambda: not set(mine) & {pid
                                          for pid, *_ in place.rig.processes()},
                 "the end of every process of the sandbox", 20)


def test_two_start_at_the_same_time(place):
    """In one distribution; each gets its own port."""
    with contextlib.ExitStack() as stack:
        both = [
            stack.enter_context(start(place, name, port, place.gateways[0]))
            for name, port in (("x", 4105), ("y", 4106))
        ]
        for sandbox in both:
            sandbox.wait_event("ready")
        for sandbox in both:
            assert sandbox.codev(f"{PROGRAMS}/probe http GET /gateway/v1/models").startswith(
                "HTTP/1.1 200 ")
        assert len({way_in_port(sandbox)
                    for sandbox in both}) == 2 and len({broker_port(sandbox)
                                                        for sandbox in both}) == 2
        for sandbox in both:
            sandbox.process.terminate()
        assert [sandbox.finish(60)[0] for sandbox in both] == [143, 143]


def test_without_a_login(place):
    """No port 8788 and no egress of any kind; the way in and the DNS answer work."""
    with start(place, "nobody", 4102, None) as sandbox:
        sandbox.started()
        none_escapes(sandbox, [
            "connect 127.0.0.1 8788", "connect ::1 8788", f"connect 10.0.2.2 {place.windows.port}",
            "connect 192.0.2.1 443", "udp 192.0.2.1 53"
        ])
        assert "NXDOMAIN" in sandbox.codev(f"{PROGRAMS}/probe dns internet.example")
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            client.connect(sandbox.wait_event("way_in")["path"])
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert client.recv(65536).startswith(b"HTTP/1.1 200 ")


# --- terminal, pipes and end of a command: as in a virtual machine --------------------------------

def wsl_options(place, *options):
    return ["--wsl-rig", place.rig.folder, *options]


@pytest.mark.parametrize("command, status", [("exit 0", 0), ("exit 255", 255),
                                             ("kill -KILL $$", 137)])
def test_the_exit_status_is_the_commands(place, command, status):
    assert run(command, wsl_options(place), programs=False,
               program=SANDBOX_WSL).status == status


def test_every_byte_goes_through_the_pipes(place):
    data = os.urandom(3 << 20)
    with Sandbox("tee /dev/stderr", wsl_options(place), programs=False,
                 stdin=subprocess.PIPE, program=SANDBOX_WSL) as sandbox:
        sandbox.process.stdin.write(data)
        sandbox.process.stdin.close()
        sandbox.process.stdin = None
        assert sandbox.finish()[0] == 0 and bytes(sandbox.output) == data and data in bytes(
            sandbox.said)


def test_a_terminal(place):
    """When the launcher has a terminal, the command gets one: size, echo, Ctrl-C."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 111, 0, 0))
    words = [
        str(word) for word in (
            SANDBOX_WSL, "run", *wsl_options(place), "--", "sh", "-c",
            "trap 'echo heard; exit 3' INT; stty size; echo ready; while :; do sleep 1; done")
    ]
    process = subprocess.Popen(words,
                               stdin=theirs,
                               stdout=theirs,
                               stderr=subprocess.DEVNULL,
                               start_new_session=True)
    os.close(theirs)
    seen = b""
    try:
        while b"ready" not in seen:
            assert select.select([ours], [], [], PATIENCE)[0], seen
            seen += os.read(ours, 4096)
        os.write(ours, b"\x03")
        with contextlib.suppress(OSError):
            while data := os.read(ours, 4096):
                seen += data
        assert process.wait(PATIENCE) == 3 and b"33 111" in seen and b"heard" in seen, seen
    finally:
        process.kill()
        process.wait()
        os.close(ours)


# --- 1, the end -----------------------------------------------------------------------------------

def test_the_outsider_keeps_its_network_afterwards(place):
    """The last test: both sandboxes end and leave no process, mount or cgroup, and the outsider's
    network is unchanged."""
    for sandbox in (place.a, place.b):
        sandbox.process.terminate()
        sandbox.process.wait(PATIENCE)
    wait_for(
        lambda: not [
            name for _, _, name, _ in place.rig.processes() if name in ("codev-init", "codev-agent")
        ], "the end of both")
    outsider_has_its_network(place.rig, place.windows)
    assert not [
        line
        for line in place.rig.system("find /sys/fs/cgroup -type d -path '*codev/*'").splitlines()
        if line
    ]
    assert place.rig.wsl("codev", "root", "sh", "-c", "cat /proc/mounts")[1].count(" 9p ") == 0
