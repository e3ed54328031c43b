"""The firewall on this machine's kernel, in separate network namespaces: the ruleset as the program
nft lists it, which packets pass, and what happens when other processes change it. A namespace
exists as long as the processes in it, which the fixtures end, so nothing is left behind.

Needs root (to make namespaces) and a kernel with nf_tables; skipped with the reason where either is
absent."""

import os
import pathlib
import shutil
import subprocess

import pytest

DRIVER = pathlib.Path(os.environ.get("CODEV_BIN",
                                     "build/bin")).resolve().parent / "test" / "nft_driver"

RULESET = """\
table inet codev { # progname nft_driver
    flags owner

    chain output {
        type filter hook output priority filter; policy drop;
        oif "lo" accept
        meta l4proto tcp reject with tcp reset
        reject with icmpx admin-prohibited
    }

    chain input {
        type filter hook input priority filter; policy drop;
        iif "lo" accept
    }

    chain forward {
        type filter hook forward priority filter; policy drop;
    }
}
""".replace("    ", "\t")
DISOWNED = RULESET.replace(" # progname nft_driver\n\tflags owner\n\n", "\n")

# A TCP server that prints its port and answers each connection with a byte.
PEER = """
import socket, sys
listener = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
listener.bind((sys.argv[1], 0)); listener.listen()
print(listener.getsockname()[1], flush=True)
while True:
    connection = listener.accept()[0]
    connection.sendall(b"x"); connection.close()
"""
# Connects and prints "byte" or the errno's name; "timeout" means a dropped packet.
DIAL = """
import errno, socket, sys
peer = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
peer.settimeout(float(sys.argv[3]))
try:
    peer.connect((sys.argv[1], int(sys.argv[2])))
    print("byte" if peer.recv(1) == b"x" else "end")
except TimeoutError:
    print("timeout")
except OSError as error:
    print(errno.errorcode[error.errno])
"""
SEND_UDP = """
import errno, socket, sys
peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
peer.settimeout(10)
try:
    peer.connect((sys.argv[1], 9))
    peer.send(b"x"); peer.recv(1)
except TimeoutError:
    print("timeout")
except OSError as error:
    print(errno.errorcode[error.errno])
"""
PYTHON = "/usr/bin/python3"


class Namespace:
    """A network namespace, kept alive by a process that waits for the end of its input."""

    def __init__(self):
        self.processes = []
        self.holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo made; cat"],
                                       stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE,
                                       text=True)
        assert self.holder.stdout.readline() == "made\n"
        self.run("ip", "link", "set", "lo", "up")

    def command(self, *command):
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", *command]

    def run(self, *command, check=True, text=None):
        result = subprocess.run(self.command(*command),
                                input=text,
                                capture_output=True,
                                text=True,
                                timeout=60)
        if check:
            assert result.returncode == 0, result.stdout + result.stderr
        return result

    def nft(self, *command, check=True):
        return self.run("nft", *command, check=check)

    def ruleset(self):
        return self.nft("list", "ruleset").stdout

    def start(self, *command):
        process = subprocess.Popen(self.command(*command),
                                   stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE,
                                   text=True)
        self.processes.append(process)
        return process

    def firewall(self):
        firewall = Firewall(self.start(str(DRIVER)))
        assert firewall.line() == "loaded"
        return firewall

    def peer(self, address):
        return self.start(PYTHON, "-c", PEER, address).stdout.readline().strip()

    def dial(self, address, port, timeout=30):
        return self.run(PYTHON, "-c", DIAL, address, port, str(timeout)).stdout.strip()

    def close(self):
        for process in self.processes:
            process.kill()
        for process in [*self.processes, self.holder]:
            process.stdin.close()  # this ends the process that keeps it
            process.wait(timeout=60)
            process.stdout.close()


class Firewall:
    def __init__(self, process):
        self.process = process

    def line(self):
        return self.process.stdout.readline().rstrip("\n")

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.line()

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0


@pytest.fixture(scope="module", autouse=True)
def able():
    if os.geteuid() != 0:
        pytest.skip("making network namespaces needs root")
    if shutil.which("nft") is None or shutil.which("ip") is None:
        pytest.skip("nft and ip (packages nftables, iproute2) are not installed")
    probe = subprocess.run(["unshare", "-n", "nft", "add", "table", "inet", "probe"],
                           capture_output=True,
                           text=True)
    if probe.returncode != 0:
        pytest.skip(
            f"this kernel or container has no nf_tables in a namespace: {probe.stderr.strip()}")
    assert DRIVER.exists(), f"{DRIVER} is not built"


@pytest.fixture
def inside():
    namespace = Namespace()
    yield namespace
    namespace.close()


@pytest.fixture
def outside():
    namespace = Namespace()
    yield namespace
    namespace.close()


@pytest.fixture
def cable(inside, outside):
    """A veth pair between the two: 10.9.0.1 and fd00:9::1 inside, 10.9.0.2 and fd00:9::2
    outside."""
    inside.run("ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns",
               str(outside.holder.pid))
    for number, namespace in ((1, inside), (2, outside)):
        namespace.run("ip", "address", "add", f"10.9.0.{number}/24", "dev", "cable")
        namespace.run("ip", "address", "add", f"fd00:9::{number}/64", "dev", "cable", "nodad")
        namespace.run("ip", "link", "set", "cable", "up")


def test_nft_reads_the_policy(inside):
    firewall = inside.firewall()
    assert inside.ruleset() == RULESET
    assert firewall.tell("state") == "owner=1 reject=1"
    assert firewall.tell("check") == "intact"  # our own notifications


def test_an_owned_table_vanishes_with_its_owner(inside):
    inside.firewall().end()
    assert inside.ruleset() == ""


def test_others_may_not_touch_an_owned_table(inside):
    firewall = inside.firewall()
    for command in (["delete", "table", "inet", "codev"], ["flush", "table", "inet", "codev"],
                    ["add", "rule", "inet", "codev", "output", "accept"],
                    ["chain", "inet", "codev", "output", "{ policy accept; }"]):
        assert inside.nft(*command, check=False).returncode != 0
    inside.nft("flush", "ruleset")
    assert inside.ruleset() == RULESET
    assert firewall.tell("look") == "intact"


def test_loopback_works(inside):
    inside.firewall()
    for address in ("127.0.0.1", "127.0.0.53", "::1"):
        assert inside.dial(address, inside.peer(address)) == "byte"


def test_nothing_leaves(inside, outside, cable):
    ports = {address: outside.peer(address) for address in ("10.9.0.2", "fd00:9::2")}
    for address, port in ports.items():
        assert inside.dial(address, port) == "byte"  # without the firewall the connection works
    inside.firewall()
    for address, port in ports.items():
        assert inside.dial(address, port) == "ECONNREFUSED"  # answered, not dropped
    assert inside.run(PYTHON, "-c", SEND_UDP,
                      "10.9.0.2").stdout.strip() in ("EHOSTUNREACH", "EACCES", "EPERM")


def test_nothing_comes_in(inside, outside, cable):
    port = inside.peer("10.9.0.1")
    assert outside.dial("10.9.0.1", port) == "byte"
    inside.firewall()
    assert outside.dial("10.9.0.1", port, timeout=2) == "timeout"  # dropped: no answer at all
    assert inside.dial("10.9.0.1", port) == "byte"  # its own address is reached over lo


def test_another_interface_called_lo_does_not_pass(inside, outside, cable):
    port = outside.peer("10.9.0.2")
    inside.firewall()
    for old, new in (("lo", "loop"), ("cable", "lo")):
        inside.run("ip", "link", "set", old, "down")
        inside.run("ip", "link", "set", old, "name", new)
        inside.run("ip", "link", "set", new, "up")
    inside.run("ip", "route", "replace", "10.9.0.0/24", "dev", "lo")
    assert inside.dial("10.9.0.2", port) == "ECONNREFUSED"


def test_a_table_left_behind_is_replaced(inside):
    inside.nft(
        "add table inet codev; add chain inet codev output { type filter hook output priority 5; "
        "policy accept; };"
        "add set inet codev things { type ipv4_addr; }; add rule inet codev output accept")
    inside.firewall()
    assert inside.ruleset() == RULESET


def test_a_table_of_another_family_is_no_matter(inside):
    inside.nft(
        "add table ip codev; add chain ip codev output { type filter hook output priority 0; "
        "policy drop; }"
    )
    firewall = inside.firewall()
    assert RULESET in inside.ruleset()
    assert "table ip codev" in inside.ruleset()
    assert firewall.tell("check") == "intact"


def test_a_table_that_another_process_owns_is_refused(inside):
    first = inside.firewall()
    second = inside.start(str(DRIVER))
    assert second.stdout.readline(
    ) == "failed: table inet codev belongs to another process, which must end first\n"
    assert second.wait(timeout=60) == 1
    assert inside.ruleset() == RULESET
    first.end()
    inside.firewall()


def test_large_foreign_tables_do_not_matter(inside):
    lines = []
    for table in range(40):
        lines.append(f"add table inet foreign{table}")
        for chain in range(20):
            lines.append(f"add chain inet foreign{table} chain{chain}")
            lines += [
                f"add rule inet foreign{table} chain{chain} tcp dport {port} accept"
                for port in range(1, 4)
            ]
    inside.run("nft", "-f", "-", text="\n".join(lines))
    firewall = inside.firewall()
    assert RULESET in inside.ruleset()
    assert firewall.tell("check") == "intact"


def test_without_the_capability_the_reason_is_named(inside):
    result = inside.run("setpriv",
                        "--reuid",
                        "65534",
                        "--clear-groups",
                        "--inh-caps=-all",
                        str(DRIVER),
                        check=False)
    assert result.stdout == "failed: CAP_NET_ADMIN is missing in this network namespace\n"
    assert result.returncode == 1


MEDDLING = {
    "delete table": ("delete table inet codev", "table inet codev is missing"),
    "flush ruleset": ("flush ruleset", "table inet codev is missing"),
    "flush table": ("flush table inet codev", "the rule that accepts output over lo is missing"),
    "flush chain": ("flush chain inet codev output",
                    "the rule that accepts output over lo is not as it was loaded"),
    "add rule": ("add rule inet codev output accept",
                 "the rule that accepts input from lo is not as it was loaded"),
    "insert rule": ("insert rule inet codev input accept",
                    "the rule that accepts input from lo is not as it was loaded"),
    "append rule":
        ("add rule inet codev forward accept", "something was added to table inet codev"),
    "add chain": ("add chain inet codev more", "table inet codev is not as it was loaded"),
    "add set": ("add set inet codev things { type ipv4_addr; }",
                "table inet codev is not as it was loaded"),
    "policy":
        ("chain inet codev forward { policy accept; }", "chain forward is not as it was loaded"),
    "dormant":
        ("add table inet codev { flags dormant; }", "table inet codev is not as it was loaded"),
    "replace": ("delete table inet codev; add table inet codev",
                "table inet codev is not as it was loaded"),
}


@pytest.mark.parametrize("name", MEDDLING)
def test_a_change_is_noticed_and_restored(inside, name):
    command, reason = MEDDLING[name]
    firewall = inside.firewall()
    assert firewall.tell("disown") == "restored: table inet codev is missing"
    assert firewall.tell("check") == "intact"
    assert inside.ruleset() == DISOWNED
    inside.nft(command)
    assert inside.ruleset() != DISOWNED
    assert firewall.tell("check") == f"restored: {reason}"
    assert inside.ruleset() == DISOWNED


def test_a_change_elsewhere_is_looked_at_and_left_alone(inside):
    firewall = inside.firewall()
    assert firewall.tell("check") == "intact"
    inside.nft("add table ip other")
    assert firewall.tell("check") == "intact"
    assert "table ip other" in inside.ruleset()


def test_what_cannot_be_restored_is_lost(inside):
    first = inside.firewall()
    assert first.tell("disown") == "restored: table inet codev is missing"
    inside.firewall()  # takes over the table, which has no owner
    assert first.tell(
        "check") == "lost: table inet codev belongs to another process, which must end first"
    assert first.tell(
        "look") == "lost: table inet codev belongs to another process, which must end first"
