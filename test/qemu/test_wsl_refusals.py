"""A start that lacks a requirement is refused with a message that names it, and no command runs: on
a kernel without nf_tables, without network namespaces, without the right to make them, without
netlink; and with each stage failed in turn. When only optional nf_tables expressions are missing,
the sandbox starts and is confined."""
import json
import secrets

import pytest

import sanitizer_harness
from machine_harness import CANNOT_START, GUEST, TOP
from wsl_rig_harness import IMAGE_TAR, Listener, Rig, WslSandbox, look_in, none_escapes, rig_client


FAIL_STAGE_INIT = "/fail-stage/codev-init"  # test/harness/init_fail_stage.c


@pytest.fixture(scope="module")
def rig():
    with Rig(modules="") as machine:
        rig_client.import_distribution(machine.folder, "codev", IMAGE_TAR)
        machine.install_outsider()
        for name, path in (("probe", "/probe"), ("codev-init-fail-stage", FAIL_STAGE_INIT)):
            script = f"mkdir -p $(dirname {path}) && cat >{path} && chmod 755 {path}"
            status, text = machine.wsl("codev", "root", "sh", "-c", script,
                                       data=(GUEST / name).read_bytes())
            assert status == 0, text
        yield machine


def configuration(env=None, **more):
    value = {
        "protocol": 1,
        "id": secrets.token_hex(4),
        "hostname": "codev-t",
        "unix_ns": 1790000000000000000,
        "server": {
            "argv": ["sh", "-c", "echo it ran; sleep 100"],
            "stdio": "log",
            "cwd": "/home/codev",
            "env": env or {}
        },
        **more
    }
    return json.dumps(value).encode() + b"\n"


def start(rig, *before, user="root", program="/usr/sbin/codev-init", **more):
    """Runs codev-init --wsl as the app does; (exit status, events)."""
    status, text = rig.wsl("codev",
                           user,
                           *before,
                           program,
                           "--wsl",
                           data=configuration(**more))
    return status, [json.loads(line) for line in text.splitlines() if line.startswith("{")], text


def assert_refused(rig, result, *words):
    status, events, text = result
    [failed] = [event for event in events if event["event"] == "failed"]
    assert status == 1 and any(word in failed["error"] for word in words), text
    assert not [event for event in events if event["event"] in ("output", "ready", "exit")]
    assert_nothing_left(rig)
    return failed


def assert_nothing_left(rig):
    """No process, namespace, table, cgroup or mount of a sandbox is left."""
    processes = rig.processes()
    assert len({network for _, _, _, network in processes}) == 1
    assert not [name for _, _, name, _ in processes if name in ("codev-init", "codev-agent")]
    assert rig.system(
        "find /sys/fs/cgroup -type d -path '*codev/?*'; chroot /distributions/outsider nft list "
        "ruleset 2>/dev/null"
    ) == ""


def load(rig, module):
    text = rig.system(f"for m in $(sed -n 's/^{module} //p' /modules/needs); do "
                      "[ -e /sys/module/$m ] || insmod /modules/$m.ko || echo $m failed; done")
    assert text == "", text


def test_no_nf_tables(rig):
    """The first test, as this boot has not loaded the module yet."""
    assert "nf_tables" not in rig.system("lsmod")
    assert assert_refused(rig, start(rig), "nf_tables", "nfnetlink",
                          "netfilter")["stage"] == "firewall"


def test_the_host_tells_the_reason(rig):
    with WslSandbox(rig, "echo it ran") as sandbox:
        status, output = sandbox.finish()
        assert status == CANNOT_START and "it ran" not in output
        assert "firewall: " in sandbox.complaint()


def test_no_network_namespaces(rig):
    assert_refused(rig, start(rig, "/probe", "deny", "netns"), "namespace")
    before = rig.system("cat /proc/sys/user/max_net_namespaces")
    rig.system("echo 0 >/proc/sys/user/max_net_namespaces")
    try:
        assert_refused(rig, start(rig), "namespace")
    finally:
        rig.system(f"echo {before.strip()} >/proc/sys/user/max_net_namespaces")


def test_no_permission(rig):
    assert_refused(rig, start(rig, "/probe", "deny", "permission"), "CAP_SYS_ADMIN")
    assert_refused(rig, start(rig, user="codev"), "CAP_", "root", "permitted")


def test_no_netlink(rig):
    load(rig, "nf_tables")
    assert assert_refused(rig, start(rig, "/probe", "deny", "netfilter"), "netlink", "nfnetlink",
                          "netfilter")["stage"] == "firewall"


@pytest.mark.parametrize("fault, words", [("first-rule", "the rule that accepts output over lo"),
                                          ("last-rule", "the rule that accepts input from lo"),
                                          ("killed", "Not a socket")])
def test_a_fault_in_the_batch(rig, fault, words):
    """The kernel refuses one rule, or netlink fails in the middle: the batch is atomic, so none of
    its rules is in force."""
    load(rig, "nf_tables")
    assert assert_refused(rig, start(rig, "/probe", "spoil", fault), words)["stage"] == "firewall"


@pytest.mark.parametrize("stage", [
    "hostname", "account", "mounts", "network", "firewall", "cgroups", "relay", "self-test",
    "server"
])
def test_every_stage_that_fails_ends_it(rig, stage):
    """Except the two stages that are over before the configuration that names the stage is read."""
    load(rig, "nf_tables")
    result = start(rig, program=FAIL_STAGE_INIT, env={sanitizer_harness.FAIL_STAGE: stage})
    assert assert_refused(rig, result, "on purpose")["stage"] == stage


def test_without_reject_ct_and_socket_it_is_confined(rig):
    load(rig, "nf_tables")
    modules = rig.system("lsmod")
    assert "nf_tables" in modules and not [
        name for name in ("nft_reject", "nft_ct", "nft_socket") if name in modules
    ]
    with Listener() as windows, WslSandbox(rig, None, [], look_in(rig, "a")) as sandbox:
        sandbox.started()
        none_escapes(sandbox, [
            f"connect 10.0.2.2 {windows.port}", "connect 192.0.2.1 443", "connect fec0::2 443",
            "udp 192.0.2.1 53", f"connect 127.0.0.1 {windows.port}", "connect 10.255.255.254 53",
            "udp 10.255.255.254 53"
        ])
        assert not windows.seen
        status, text = sandbox.in_network("nft list ruleset")
        wanted = [line.strip() for line in (TOP / "nft" / "policy.nft").read_text().splitlines()]
        wanted = [
            line for line in wanted if line and not line.startswith("#") and "reject" not in line
        ]
        got = [line.strip().partition(" # ")[0] for line in text.splitlines()]
        assert [line for line in got if line and line != "flags owner"] == wanted, text
