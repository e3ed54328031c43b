"""The surroundings that codev-init makes for the server, seen from inside a real guest: root,
devices, processes, mounts of every type, the account's ids, the environment, and the project's
settings for permission prompts."""
import gzip
import json
import os
import shutil
import stat
import subprocess
import tarfile

import pytest
from conftest import ARCH, BUILD

CANNOT_START = 125
CHECKS = [
    "no-network-device",
    "drop-identity",
    "no-root-again",
    "no-new-namespace",
    "no-mount",
    "no-io-uring",
    "no-device-node",
    "system-not-writable",
    "cgroup-locked",
    "agent-memory",
    "no-vsock",
    "no-packet-socket",
    "no-raw-socket",
    "no-netfilter-socket",
    "no-tcp-outside",
    "no-udp-outside",
    "dns-answers-nxdomain",
    "no-egress-without-login",
]


def configuration(sandbox, **keys):
    """The option that merges these keys into the boot configuration."""
    path = sandbox.folder / "configuration.json"
    path.write_text(json.dumps(keys))
    return ["--config", path]


def output(sandbox, *options, command):
    status, out, err = sandbox.run(*options, command=command)
    assert status == 0, err
    return out.decode(errors="surrogateescape")


def refused(sandbox, *options, command="true"):
    status, _, err = sandbox.run(*options, command=command)
    assert status == CANNOT_START
    assert err.count("\n") == 1, err
    return err


def test_every_check_of_the_self_test(sandbox):
    events = sandbox.folder / "events"
    output(sandbox, "--events", events, command="true")
    ready = next(event for event in map(json.loads,
                                        events.read_text().splitlines())
                 if event["event"] == "ready")
    assert [check["name"] for check in ready["checks"]] == CHECKS
    assert all(check["ok"] is True and check["detail"] for check in ready["checks"])


# --- root, devices, processes ---------------------------------------------------------------------

def test_base_file_systems(sandbox):
    """/proc/mounts has only the table's mounts: nosuid everywhere, nodev except for devices, never
    noexec where builds run."""
    mounts = {}
    for line in output(sandbox, command="cat /proc/mounts").splitlines():
        _, target, kind, options = line.split()[:4]
        mounts[target] = (kind, set(options.split(",")))
    assert set(mounts) == {
        "/", "/proc", "/sys", "/sys/fs/cgroup", "/dev", "/dev/pts", "/dev/shm", "/run", "/tmp",
        "/var/tmp"
    }
    assert mounts["/"][0] == "overlay"
    for target, (_, options) in mounts.items():
        assert "nosuid" in options, target
        assert ("nodev" in options) == (target not in ("/dev", "/dev/pts")), target
    for target in ("/", "/tmp", "/var/tmp", "/dev/shm"):
        assert "noexec" not in mounts[target][1], target
    assert "hidepid=invisible" in mounts["/proc"][1]


def test_devices_and_links(sandbox):
    listed = output(
        sandbox,
        command=
        "cd /dev; stat -c '%n %F %a %u %g' * ; for l in fd stdin stdout stderr ptmx; do readlink "
        "$l; done; "
        "echo out >/dev/stdout; echo err >/dev/stderr; echo in | cat /dev/stdin; "
        "head -c 3 /dev/zero | wc -c").splitlines()
    nodes = {line.split()[0]: line.split()[-3:] for line in listed if "character special" in line}
    assert nodes.pop("console") == ["600", "0", "0"]
    assert set(nodes) == {"null", "zero", "full", "random", "urandom", "tty"}
    assert all(mode == ["666", "0", "0"] for mode in nodes.values())
    assert listed[-8:] == [
        "/proc/self/fd", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2", "pts/ptmx", "out",
        "in", "3"
    ]


def test_other_processes_are_invisible(sandbox):
    """Neither init nor the relay has an entry in /proc; all entries are codev's."""
    out = output(
        sandbox,
        command=
        "echo $$; cd /proc; ls -d [0-9]*; stat -c %u [0-9]* 2>/dev/null | sort -u; ls 1 2>&1; true")
    own, *listed = out.splitlines()
    assert own in listed and "1" not in listed
    assert "ls: 1: No such file or directory" in out
    assert listed[-2].isdigit() and listed[-2] != "0" and "0" not in listed


def test_a_program_built_in_tmp_runs(sandbox):
    command = ("for d in /tmp /var/tmp /dev/shm $HOME; do printf '#!/bin/sh\\necho ran\\n' >$d/p; "
               "chmod +x $d/p; $d/p; done")
    assert output(sandbox, command=command) == "ran\n" * 4


def test_the_system_belongs_to_root(sandbox):
    command = (
        "for d in / /etc /usr /usr/bin /run /run/codev /dev /workspace /var /sys/fs/cgroup; do "
        "touch $d/x 2>/dev/null && echo $d; done; find / -xdev -perm -2 ! -type l ! -path '/tmp*' "
        "! -path '/var/tmp*' "
        "2>/dev/null; true")
    assert output(sandbox, command=command) == ""


def test_kernel_settings(sandbox):
    command = "cd /proc/sys; cat kernel/dmesg_restrict kernel/kptr_restrict " \
              "fs/protected_symlinks fs/suid_dumpable " \
              "kernel/core_pattern net/ipv4/ping_group_range; ulimit -c; umask"
    assert output(sandbox,
                  command=command).split() == ["1", "2", "1", "0", "core", "1", "0", "0", "0022"]


def test_hostname_and_hosts(sandbox):
    options = configuration(sandbox, hostname="My Project_é.example-")
    status, out, err = sandbox.run(
        *options, command="hostname; cat /etc/hostname; grep -c My-Project /etc/hosts")
    assert (status, out.decode().split()) == (0, ["My-Project.example", "My-Project.example", "2"])
    assert "is not valid: My-Project.example instead" in err


def initramfs(path):
    """rootfs.tar as the kernel's "newc" archive
    (Documentation/driver-api/early-userspace/buffer-format.rst)."""
    kinds = {
        tarfile.DIRTYPE: stat.S_IFDIR,
        tarfile.REGTYPE: stat.S_IFREG,
        tarfile.SYMTYPE: stat.S_IFLNK
    }

    def entry(number, name, mode, uid, gid, data):
        fields = (number, mode, uid, gid, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name + b"\0"
        return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)

    parts = [entry(1, b"init", stat.S_IFLNK | 0o777, 0, 0, b"sbin/codev-init")]
    with tarfile.open(BUILD / "guest" / ARCH / "rootfs.tar") as tar:
        for number, member in enumerate(tar, 2):
            data = tar.extractfile(member).read() if member.isreg() else member.linkname.encode()
            parts.append(
                entry(number, member.name.encode(), kinds[member.type] | member.mode, member.uid,
                      member.gid, data))
    parts.append(entry(0, b"TRAILER!!!", 0, 0, 0, b""))
    path.write_bytes(gzip.compress(b"".join(parts), 1))
    path.chmod(0o644)


def test_an_initramfs_instead_of_a_disk(sandbox):
    """The same root, relay and self-test: the kernel's first root cannot be pivoted, only
    covered."""
    initramfs(sandbox.folder / "initrd")
    command = ("ls -d /init; touch ~/x && echo written; head -1 /proc/mounts; touch /etc/x || echo "
               "refused")
    out = output(sandbox,
                 "--qemu-arg",
                 "-initrd",
                 "--qemu-arg",
                 sandbox.folder / "initrd",
                 command=command)
    assert out.splitlines()[:2] == ["/init", "written"]
    assert out.splitlines()[2].startswith(
        "overlay / overlay rw,nosuid,nodev") and out.splitlines()[3] == "refused"


# --- the account ----------------------------------------------------------------------------------

def test_the_account_takes_other_ids(sandbox):
    options = configuration(sandbox, account={"name": "codev", "uid": 501, "gid": 20})
    command = ("id -u; id -g; id -un; stat -c '%u %g' ~ ~/.profile; stat -c '%u %g' /etc "
               "/etc/passwd; touch ~/mine; id -G")
    assert output(sandbox, *options, command=command).split("\n")[:8] == [
        "501", "20", "codev", "501 20", "501 20", "0 0", "0 0", "20"]


@pytest.mark.parametrize("ids, part", [
    ({
        "uid": 0
    }, "account.uid"),
    ({
        "gid": 0
    }, "account.gid"),
    ({
        "uid": 990
    }, "is codev-relay's"),
    ({
        "gid": 990
    }, "is codev-relay's"),
])
def test_ids_of_others_are_refused(sandbox, ids, part):
    relay = output(sandbox, command="id -u codev-relay; id -g codev-relay").split()
    if 990 in ids.values():
        ids = {name: int(relay[name == "gid"]) for name in ids}
    said = refused(
        sandbox, *configuration(sandbox, account={
            "name": "codev",
            "uid": 1000,
            "gid": 1000,
            **ids
        }))
    assert part in said


# --- mounts ---------------------------------------------------------------------------------------

def test_tmpfs_and_bind(sandbox):
    work = sandbox.work()
    (work / "file").write_text("host\n")
    mounts = [
        {
            "type": "bind",
            "source": "/workspace/work",
            "target": "/opt/co\npy, \"q\"",
            "readonly": True
        },
        {
            "type": "tmpfs",
            "source": "",
            "target": "/workspace/work/cache"
        },
        {
            "type": "9p",
            "source": "m0",
            "target": "/workspace/work"
        },
        {
            "type": "tmpfs",
            "source": "",
            "target": "/home/codev"
        },
    ]
    command = (
        "cat '/opt/co\npy, \"q\"/file'; touch '/opt/co\npy, \"q\"/x' || echo read-only; echo x "
        ">~/new; ls ~; "
        "stat -c '%u:%g %a' ~; touch /workspace/work/cache/c; ls /workspace/work")
    out = output(sandbox,
                 "--file-server",
                 "9p",
                 "--mount",
                 work,
                 *configuration(sandbox, mounts=mounts),
                 "--cwd",
                 "/home/codev",
                 command=command)
    assert out.split("\n") == [
        "host", "read-only", "new", f"{work.stat().st_uid}:{work.stat().st_gid} 755", "cache",
        "file", ""
    ]
    assert (work / "cache").is_dir() and not (work / "cache" / "c").exists()


def disk_options(sandbox, kind, disk):
    disk.chmod(0o666)  # QEMU is not root
    return [
        *configuration(sandbox,
                       mounts=[{
                           "type": kind,
                           "source": "/dev/vdb",
                           "target": "/mnt/disk"
                       }]), "--cwd", "/home/codev", "--qemu-arg", "-drive", "--qemu-arg",
        f"file={disk},format=raw,if=none,id=extra", "--qemu-arg", "-device", "--qemu-arg",
        "virtio-blk-pci,drive=extra"
    ]


def tool(name):
    found = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    return found or pytest.skip(f"{name} is not installed")


def test_an_ext4_disk(sandbox):
    """Data written to it is on the disk after the power-off."""
    content, disk = sandbox.work("content"), sandbox.folder / "disk"
    (content / "file").write_text("on a disk\n")
    with open(disk, "wb") as file:
        file.truncate(8 << 20)
    subprocess.run([tool("mkfs.ext4"), "-q", "-E", "root_owner=1000:1000", "-d", content, disk],
                   check=True)
    out = output(
        sandbox,
        *disk_options(sandbox, "ext4", disk),
        command=
        "cat /mnt/disk/file; echo kept >/mnt/disk/new; ls /dev/vd*; grep /mnt/disk /proc/mounts; "
        "true"
    )
    assert out.startswith(
        "on a disk\n") and "/mnt/disk ext4 rw,nosuid,nodev" in out and "/dev/vd" not in out.split(
            " ")[0]
    read = subprocess.run([tool("debugfs"), "-R", "cat new", disk],
                          capture_output=True,
                          text=True,
                          check=True)
    assert read.stdout == "kept\n"
    state = subprocess.run([tool("dumpe2fs"), "-h", disk],
                           capture_output=True,
                           text=True,
                           check=True).stdout
    assert "needs_recovery" not in state  # unmounted cleanly


def test_an_erofs_disk(sandbox):
    content, disk = sandbox.work("content"), sandbox.folder / "disk"
    (content / "file").write_text("on a disk\n")
    subprocess.run([tool("mkfs.erofs"), disk, content], check=True, capture_output=True)
    out = output(
        sandbox,
        *disk_options(sandbox, "erofs", disk),
        command=
        "cat /mnt/disk/file; touch /mnt/disk/new || echo refused; grep /mnt/disk /proc/mounts")
    assert out.startswith("on a disk\nrefused\n") and "/mnt/disk erofs ro,nosuid,nodev" in out


@pytest.mark.parametrize("mount, parts", [
    ({
        "type": "virtiofs",
        "source": "no-such-tag",
        "target": "/workspace/a b"
    }, ["mount /workspace/a b (virtiofs)"]),
    ({
        "type": "9p",
        "source": "no-such-tag",
        "target": "/workspace/nine"
    }, ["mount /workspace/nine (9p)"]),
    ({
        "type": "ext4",
        "source": "/dev/vdz",
        "target": "/mnt/d"
    }, ["mount /mnt/d (ext4)", "/dev/vdz"]),
    ({
        "type": "erofs",
        "source": "/dev/vda1",
        "target": "/mnt/d"
    }, ["mount /mnt/d (erofs)", "/dev/vda1"]),
    ({
        "type": "bind",
        "source": "/nowhere",
        "target": "/srv/x"
    }, ["mount /srv/x (bind)", "No such file"]),
    ({
        "type": "drvfs",
        "source": "C:\\",
        "target": "/mnt/c"
    }, ["mounts[0]", "drvfs"]),
    ({
        "type": "tmpfs",
        "source": "",
        "target": "/etc/x"
    }, ["/etc/x"]),
    ({
        "type": "tmpfs",
        "source": "",
        "target": "/run/codev"
    }, ["/run/codev"]),
])
def test_a_mount_that_fails_fails_the_start(sandbox, mount, parts):
    said = refused(sandbox, *configuration(sandbox, mounts=[mount]), "--cwd", "/home/codev")
    for part in parts:
        assert part in said


def test_a_link_inside_a_folder_redirects_nothing(sandbox):
    work = sandbox.work()
    os.symlink("/etc", work / "node_modules")
    mounts = [{"type": "9p", "source": "m0", "target": "/workspace/work"},
              {"type": "tmpfs", "source": "", "target": "/workspace/work/node_modules"}]
    said = refused(sandbox, "--file-server", "9p", "--mount", work,
                   *configuration(sandbox, mounts=mounts))
    assert "/workspace/work/node_modules is a symbolic link" in said
    assert os.readlink(work / "node_modules") == "/etc"


# --- what the server is told ----------------------------------------------------------------------

def sandbox_file(text):
    return json.loads(text[text.index('{"id"'):].splitlines()[0])


@pytest.mark.parametrize("text, on, permission, warning", [
    (None, True, None, None),
    ('{"auto_accept": true}', True, None, None),
    ('{"auto_accept": false}', False, None, None),
    ('{"permission": {"bash": {"rm *": "ask"}}}', False, '{"bash":{"rm *":"ask"}}', None),
    ('{"auto_accept": tru', False, None, "codev.json:1:"),
])
def test_the_projects_own_word_about_prompts(sandbox, text, on, permission, warning):
    work = sandbox.work()
    if text is not None:
        (work / "codev.json").write_text(text)
    status, out, err = sandbox.run("--mount", work, command="env; cat /run/codev/sandbox.json")
    assert status == 0
    environment = dict(
        line.split("=", 1) for line in out.decode().splitlines()
        if "=" in line and not line.startswith("{"))
    assert environment.get("CODEV_AUTO_ACCEPT") == ("1" if on else None)
    assert environment.get("CODEV_PERMISSION") == permission
    assert sandbox_file(out.decode())["permissions"] == {
        "auto_accept": on, **({"permission": permission} if permission else {})}
    assert (warning in err) if warning else err == ""


def test_a_fifo_in_the_place_of_the_word(sandbox):
    work = sandbox.work()
    os.mkfifo(work / "codev.json")
    status, out, err = sandbox.run("--mount", work, command="echo ${CODEV_AUTO_ACCEPT-off}")
    assert (status, out) == (0, b"off\n")
    assert "codev.json" in err


def test_the_toggle_of_a_directory(sandbox):
    work = sandbox.work()
    options = configuration(sandbox,
                            auto_accept={
                                "default": True,
                                "directories": {
                                    "/workspace/work": False
                                }
                            })
    assert output(sandbox, "--mount", work, *options,
                  command="echo ${CODEV_AUTO_ACCEPT-off}") == "off\n"
    assert output(sandbox,
                  "--mount",
                  work,
                  *options,
                  "--cwd",
                  "/home/codev",
                  command="echo $CODEV_AUTO_ACCEPT") == "1\n"


def test_the_environment_is_built_from_nothing(sandbox):
    names = {
        line.split("=")[0]
        for line in output(sandbox, "--env", "MINE=1", command="env").splitlines()
    }
    assert names - {"PWD", "SHLVL", "OLDPWD", "_"} == {
        "HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TERM", "CODEV_SANDBOX",
        "CODEV_AUTO_ACCEPT", "MINE"
    }


# --- limits ---------------------------------------------------------------------------------------

def test_limits(sandbox):
    options = configuration(sandbox,
                            limits={
                                "pids": 64,
                                "memory_mib": 128,
                                "nofile": 333
                            },
                            id="fixed-id")
    command = (
        "cat /proc/self/cgroup; cd /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup); cat pids.max "
        "memory.max; ulimit -n; "
        "cat /proc/self/oom_score_adj; i=0; while [ $i -lt 100 ]; do sleep 5 & i=$((i+1)); done "
        "2>&1 | head -1; true"
    )
    lines = output(sandbox, *options, command=command).splitlines()
    assert lines[:5] == ["0::/codev/fixed-id/server", "64", str(128 << 20), "333", "0"]
    assert "fork" in lines[5]


def test_memory_full_of_files(sandbox):
    """Files in memory use all memory that the server may have; the machine goes on and shuts down
    in order."""
    events = sandbox.folder / "events"
    command = ("for d in /dev/shm /tmp /var/tmp ~; do dd if=/dev/zero of=$d/x bs=1M 2>/dev/null; "
               "done; echo alive")
    status, out, _ = sandbox.run("--memory", "256", "--events", events, command=command)
    assert status == 137 or (status, out) == (0, b"alive\n")
    assert json.loads(events.read_text().splitlines()[-1])["event"] == "exit"


def test_no_limit_leaves_a_reserve(sandbox):
    command = ("cat /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/memory.max; grep MemTotal "
               "/proc/meminfo")
    limit, total = (int(line.split()[-2 if "kB" in line else 0])
                    for line in output(sandbox, command=command).splitlines())
    assert total * 1024 - (64 << 20) - 4096 <= limit < total * 1024


def test_user_namespaces_when_asked_for(sandbox):
    command = "unshare -U -r id -u 2>&1 || true"
    if "not found" in output(sandbox, command=command):
        pytest.skip("the image's busybox has no unshare")
    assert "not permitted" in output(sandbox, command=command)
    assert output(sandbox, *configuration(sandbox, user_namespaces=True), command=command) == "0\n"


# --- with a gateway, to which no test here sends a request ----------------------------------------

def gateway(sandbox, **rules):
    token, file = sandbox.folder / "token", sandbox.folder / "rules.json"
    token.write_text("the-real-token")
    file.write_text(json.dumps({name: f"https://{name}.example" for name in rules}))
    for path in (token, file):
        path.chmod(0o600)
    return [
        "--gateway-url", "https://127.0.0.1:1/base", "--gateway-token-file", token, "--rules", file
    ]


def test_tools_find_their_upstreams(sandbox):
    events = sandbox.folder / "events"
    out = output(
        sandbox,
        "--events",
        events,
        *gateway(sandbox, npm=1, pypi=1, crates=1, goproxy=1, other=1),
        command=
        "env; cat /.cargo/config.toml; cat /run/codev/sandbox.json; touch /.cargo/x "
        "/.cargo/config.toml 2>&1; true"
    )
    for line in [
            "ANTHROPIC_BASE_URL=http://127.0.0.1:8788/gateway",
            "OPENAI_BASE_URL=http://127.0.0.1:8788/gateway/v1", "ANTHROPIC_API_KEY=codev-sandbox",
            "OPENAI_API_KEY=codev-sandbox", "NPM_CONFIG_REGISTRY=http://127.0.0.1:8788/npm/",
            "PIP_INDEX_URL=http://127.0.0.1:8788/pypi/simple/",
            "UV_DEFAULT_INDEX=http://127.0.0.1:8788/pypi/simple/",
            "GOPROXY=http://127.0.0.1:8788/goproxy",
            'registry = "sparse+http://127.0.0.1:8788/crates/"'
    ]:
        assert line in out.splitlines()
    assert out.count("Permission denied") == 2
    urls = sandbox_file(out)["egress"]
    assert urls == {
        name: f"http://127.0.0.1:8788/{name}"
        for name in ("gateway", "npm", "pypi", "crates", "goproxy", "other")
    }
    ready = next(event for event in map(json.loads,
                                        events.read_text().splitlines())
                 if event["event"] == "ready")
    answered = [check for check in ready["checks"] if check["name"] == "broker-answers"]
    detail = "the broker answers (404)"
    assert answered == [{"name": "broker-answers", "ok": True, "detail": detail}]


def last_complaint(err):
    return [line for line in err.splitlines() if "warning" not in line][-1]


def test_a_wrong_token_fails_the_start(sandbox):
    options = [*gateway(sandbox), *configuration(sandbox, relay={"token": "0" * 64})]
    status, out, err = sandbox.run(*options, command="echo started")
    assert (status, out) == (CANNOT_START, b"")
    assert last_complaint(
        err) == "codev-sandbox: self-test: broker-answers: the broker refuses the token (401)"


def test_a_broker_that_is_not_there_fails_the_start(sandbox):
    options = [*gateway(sandbox), *configuration(sandbox, relay={"transport": ["vsock:2:7"]})]
    status, out, err = sandbox.run(*options, command="echo started")
    assert (status, out) == (CANNOT_START, b"")
    assert last_complaint(
        err) == "codev-sandbox: self-test: broker-answers: the broker cannot be reached"
