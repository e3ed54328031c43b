"""The mount matrix: type x read-only or not x unusual names x nested both ways x the owner's uid x
file operations.

One sandbox for each file server and uid has every mount at once. `probe fileops` does the
operations in each folder and `probe filetree` lists the result; the host lists the same folder, and
both must agree on every name, mode, owner and byte. In one folder of each type git and sqlite run
too (so the image is the Debian-flavoured one), and the host's own git and sqlite read the results.
The results are printed and stored in build/results/mounts.md."""
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import sqlite3
import stat
import subprocess
import tempfile

import pytest

from machine_harness import BUILD, GUEST, PROBE, Sandbox

NAMES = [
    "a b", "quo'te\"s", "a,b=c", "a:b", "new\nline", "gr\u00f6\u00dfe-\U0001f600", "n" * 200,
    "-o %s$(x)`y`\\"
]
MANY, FEW = 10000, 20
HASH_LEAST, HASH_MOST, TAIL = 16, 1 << 20, 4096
SLOW = 400
DEBIAN = GUEST / "rootfs-debian.erofs"
OPERATIONS = [
    "create", "create exclusively", "rename over", "append", "mmap", "hard link", "symlink",
    "fsync", "lock", "chmod", "owner", "times", "truncate", "xattr", "5 GiB sparse", "unlinked",
    "folders", "odd names", "many files"
]
PROGRAMS = ["git clone", "git status", "git commit", "git gc", "sqlite", "sqlite WAL"]
# Prints lines like `probe fileops`. Each file is large enough that host_tree does not expect its
# own name as content.
PROGRAMS_SCRIPT = r"""
try() {
    name=$1; shift
    said=$({ "$@" || echo FAILED; } 2>&1 </dev/null)
    case $said in
    *FAILED) case $said in *'Read-only file system'*) said=EROFS ;;
        *'unable to open database'*) said='cannot open' ;; esac ;;
    *) said=worked ;;
    esac
    printf 'fileops\t%s\t%s\n' "$name" "$(printf %s "$said" | tr '\t\n' '  ')"
}
g() { git -c user.name=codev -c user.email=codev@localhost "$@"; }
make_source() { # where the host could make none
    mkdir -p /tmp/source && cd /tmp/source && git init -q -b main && seq 1000 >numbers &&
        git add . && g commit -q -m 'numbers of a guest'
}
clone() { mkdir -p programs && git clone -q --no-hardlinks "$source" programs/clone; }
status() { said=$(git -C $work status --porcelain --branch) &&
    [ "$said" = '## main...origin/main' -o "$said" = '## main' ]; }
commit() {
    cd $work && seq 2000 >more && g add more && g commit -q -m 'numbers of the guest' &&
        g checkout -q -b other &&
        seq 3000 >numbers && g commit -q -am 'more numbers of the guest' && g checkout -q main &&
            [ "$(wc -l <numbers)" = 1000 ]
}
gc() { git -C $work gc -q --prune=now && git -C $work fsck --strict &&
    [ "$(ls $work/.git/objects/pack/*.pack | wc -l)" = 1 ]; }
database() {
    [ -d programs ] || mkdir programs 2>/dev/null
    [ "$(sqlite3 programs/$1 "pragma journal_mode=$1; create table t(x);
        insert into t select value from generate_series(1,500);
        begin; delete from t where x > 400; rollback; update t set x = x + 1;
            select count(*), sum(x) from t; pragma integrity_check;" |
        tr '\n' ' ')" = "$1 500|125750 ok " ]
}
programs() {
    cd "$1" || return
    work=programs/clone
    [ -w . ] || work=programs/source
    [ -d programs/source ] && source=$PWD/programs/source || { source=/tmp/source;
        [ -d /tmp/source ] || (make_source); }
    try 'git clone' clone; try 'git status' status; try 'git commit' commit; try 'git gc' gc
    try sqlite database delete; try 'sqlite WAL' database wal
}
"""
# Features that a type lacks, with the error it must give: virtiofsd runs without extended
# attributes, tmpfs has no user attributes before Linux 6.6, 9p stores no fractions of a second.
MISSING = {
    ("virtiofs", "xattr"): "EOPNOTSUPP",
    ("tmpfs", "xattr"): "EOPNOTSUPP",
    ("9p", "times"): "wrong: whole seconds only"
}
results = []


def quote(path):
    return "".join(
        chr(b) if chr(b).isascii() and (chr(b).isalnum() or chr(b) in "./") else f"%{b:02x}"
        for b in os.fsencode(path))


def host_tree(folder):
    """The folder as the host sees it, in the format of `probe filetree`."""
    lines = set()
    for parent, folders, files in os.walk(folder):
        for path in [parent] if parent == str(folder) else []:
            lines.add(entry(path, folder))
        for name in folders + files:
            lines.add(entry(os.path.join(parent, name), folder))
    return lines


def entry(path, folder):
    status, digest, size = os.lstat(path), "-", 0
    if stat.S_ISREG(status.st_mode):
        size = status.st_size
        with open(path, "rb") as file:
            file.seek(-TAIL if size > HASH_MOST else 0,
                      os.SEEK_END if size > HASH_MOST else os.SEEK_SET)
            data = file.read()
        digest = hashlib.sha256(data).hexdigest() if size > HASH_LEAST else "-"
        assert size > HASH_LEAST or data.decode() == "/".join(path.rsplit("/", 2)[1:]), path
    name = quote(path[len(str(folder)):])
    return f"filetree {status.st_mode:o} {status.st_uid} {status.st_gid} {size} {digest} {name}"


def host_git(folder, *words):
    git = [
        "git", "-c", "safe.directory=*", "-c", "user.name=host", "-c", "user.email=host@localhost",
        "-C", folder
    ]
    return subprocess.run([*git, *words], check=True, capture_output=True, text=True).stdout


def host_disagrees(host):
    """Faults that the host's own programs find in the files of the guest's programs."""
    clone = host / "programs" / "clone"
    if host_git(clone, "status",
                "--porcelain") or host_git(clone, "rev-list", "--count", "--all") != "3\n":
        yield "git status or log"
    host_git(clone, "fsck", "--strict")
    for mode in ("delete", "wal"):
        database = sqlite3.connect(f"file:{quote(str(host))}/programs/{mode}?mode=ro&immutable=1",
                                   uri=True)
        if database.execute("select count(*), sum(x) from t").fetchone() != (500, 125750) or \
                database.execute("pragma integrity_check").fetchone() != ("ok",):
            yield f"sqlite, {mode}"
        database.close()


class Matrix:
    """The folders of one sandbox and their mounts."""

    def __init__(self, folder, kind, uid):
        self.folder, self.kind, self.uid = folder, kind, uid
        self.options, self.mounts, self.cells = [], [], [
        ]  # a cell: type, what, target, host's folder or None, read-only
        self.number = 0
        self.worked_in = set()  # numbers of the cells in which programs run too

    def programs(self):
        """Runs the programs in the last added cell, from a repository of the host if the cell has a
        folder of the host."""
        if not DEBIAN.exists() or self.uid != 1000 and self.worked_in:
            return
        _, _, _, host, _ = self.cells[-1]
        self.worked_in.add(len(self.cells) - 1)
        if host:
            source = host / "programs" / "source"
            source.mkdir(parents=True)
            (source / "numbers").write_text("\n".join(map(str, range(1000))) + "\n")
            host_git(source, "init", "-q", "-b", "main")
            host_git(source, "add", ".")
            host_git(source, "commit", "-q", "-m", "numbers of the host")
            subprocess.run(["chown", "-R", f"{self.uid}:{self.uid}", host], check=True)

    def share(self, name, target, what, readonly=False, cell=True, index=None):
        host = self.folder / f"host{self.number}" / name
        host.mkdir(parents=True)
        os.chown(host, self.uid, self.uid)
        escaped = str(host).replace("\\", "\\\\").replace(":", "\\:")
        self.options += [
            "--mount", f"{escaped}:{self.folder}/{self.number}{':ro' if readonly else ''}"
        ]
        mount = {
            "type": self.kind,
            "source": f"m{self.number}",
            "target": target,
            "readonly": readonly
        }
        self.mounts.insert(len(self.mounts) if index is None else index, mount)
        self.number += 1
        if cell:
            self.cells.append((self.kind, what, target, host, readonly))
        return host

    def many(self, number):
        return MANY if number == 0 and self.uid == 1000 else FEW

    def script(self):
        """First the operations in every folder, as folders are nested; then the listings."""
        lines = [PROGRAMS_SCRIPT]
        for number, (_, _, target, host, readonly) in enumerate(self.cells):
            lines += [
                "echo next cell", f"{PROBE} fileops {shlex.quote(target)} {self.many(number)}"
            ]
            lines += [f"(programs {shlex.quote(target)})"] if number in self.worked_in else []
        for _, _, target, host, readonly in self.cells:
            lines += [
                "echo next cell",
                f"{PROBE} filetree {shlex.quote(target)}" if host and not readonly else ":"
            ]
        return "\n".join(lines + ["exit 0"])

    def other(self, kind, source, target, what, readonly=False, cell_host=None):
        self.mounts.append({"type": kind, "source": source, "target": target, "readonly": readonly})
        self.cells.append((kind, what, target, cell_host, readonly))


def make_disk(folder, uid, kind):
    content, disk = folder / f"content-{kind}", folder / f"disk-{kind}"
    content.mkdir()
    if kind == "erofs":
        (content / "file").write_text("on a disk\n")
        subprocess.run(["mkfs.erofs", disk, content], check=True, capture_output=True)
    else:
        with open(disk, "wb") as file:
            file.truncate(48 << 20)
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        subprocess.run([
            shutil.which("mkfs.ext4", path=path), "-q", "-N", "4096", "-E",
            f"root_owner={uid}:{uid}", disk
        ],
                       check=True)
    disk.chmod(0o666)
    return disk


def disk_options(disks):
    options = []
    for number, disk in enumerate(disks):
        options += [
            "--qemu-arg", "-drive", "--qemu-arg",
            f"file={disk},format=raw,if=none,id=extra{number}", "--qemu-arg", "-device",
            "--qemu-arg", f"virtio-blk-pci,drive=extra{number}"
        ]
    return options


@pytest.fixture(scope="module",
                params=[(kind, uid) for kind in ("virtiofs", "9p") for uid in (1000, 501, 1001)],
                ids=lambda pair: f"{pair[0]}-{pair[1]}")
def matrix(request):
    kind, uid = request.param
    if os.geteuid() != 0 or not os.path.exists("/usr/lib/qemu/virtiofsd"):
        pytest.skip("gives folders away, and needs virtiofsd")
    with tempfile.TemporaryDirectory(prefix="codev-m-", dir="/tmp") as name:
        os.chmod(name, 0o755)
        folder = pathlib.Path(name)
        matrix = Matrix(folder, kind, uid)
        matrix.options += ["--mount", f"{GUEST}:/workspace/programs:ro"]
        matrix.mounts += [{
            "type": kind,
            "source": "m0",
            "target": "/workspace/programs",
            "readonly": True
        }]
        matrix.number = 1
        names = NAMES if uid == 1000 else NAMES[4:6]
        for number, odd in enumerate(names):
            matrix.share(odd, f"/workspace/{odd}",
                         "name " + repr(odd if len(odd) < 60 else odd[:3] + "... 200 bytes"))
            if number == 0:
                matrix.programs()
        matrix.share("ro, \"x\"", "/workspace/ro, \"x\"", "read-only", readonly=True)
        matrix.programs()
        outer = matrix.share("outer", "/workspace/outer", "outer, given first")
        matrix.share("inner", "/workspace/outer/in: ner", "inner, given last")
        matrix.share("inner", "/workspace/second/in, ner", "inner, given first")
        second = matrix.share("outer", "/workspace/second", "outer, given last")
        for place in (outer / "in: ner", outer / "read only", second / "in, ner", second / "mem"):
            place.mkdir()
            os.chown(place, uid, uid)
        matrix.share("ro",
                     "/workspace/outer/read only",
                     "read-only in a writable one",
                     readonly=True)
        matrix.share("bound", "/workspace/bound read-only", "to be bound", cell=False)
        matrix.other("bind",
                     "/workspace/bound read-only",
                     "/opt/read\nonly, \"q\"",
                     "of a shared folder",
                     readonly=True)
        bound = matrix.share("bound", "/workspace/bound", "to be bound", cell=False)
        matrix.other("bind",
                     "/workspace/bound",
                     "/opt/b'i,nd",
                     "of a shared folder",
                     cell_host=bound)
        matrix.programs()
        matrix.other("tmpfs", "", "/srv/tm pfs:\u00e9", "odd name")
        matrix.programs()
        matrix.other("tmpfs", "", "/workspace/second/mem", "in a shared folder")
        matrix.other("tmpfs", "", "/srv/read-only", "read-only", readonly=True)
        matrix.other("ext4", "/dev/vdb", "/mnt/di\nsk, \"1\"", "odd name")
        matrix.programs()
        matrix.other("ext4", "/dev/vdc", "/mnt/read only", "read-only", readonly=True)
        matrix.other("erofs", "/dev/vdd", "/mnt/erofs: \U0001f600", "odd name", readonly=True)
        disks = [make_disk(folder, uid, kind) for kind in ("ext4", "ext4 2", "erofs")]
        config = folder / "config.json"
        config.write_text(
            json.dumps({
                "mounts": matrix.mounts,
                "account": {
                    "name": "codev",
                    "uid": uid,
                    "gid": uid
                }
            }))
        options = [
            *matrix.options, "--file-server", kind, "--config", config, "--memory", 768,
            *disk_options(disks)
        ]
        options += ["--image", DEBIAN] if DEBIAN.exists() else []
        with Sandbox(matrix.script(), options, programs=False) as sandbox:
            sandbox.status, text = sandbox.finish(SLOW)
            assert sandbox.status == 0, sandbox.describe()
            matrix.sandbox = sandbox
            matrix.said = text.split("next cell\n")[1:]
            yield matrix


def expected(kind, operation, readonly):
    if readonly and operation in PROGRAMS:
        return {
            "git status": "worked",
            "sqlite": "cannot open",
            "sqlite WAL": "cannot open"
        }.get(operation, "EROFS")
    return "EROFS" if readonly else MISSING.get((kind, operation), "worked")


def test_operations_and_agreement(matrix):
    """After every operation in every folder both sides list the same entries, modes, owners and
    bytes."""
    wrong, half = [], len(matrix.cells)
    assert len(matrix.said) == 2 * half, matrix.sandbox.describe()
    for number, (kind, what, target, host, readonly) in enumerate(matrix.cells):
        text, tree, many = matrix.said[number], matrix.said[half + number], matrix.many(number)
        seen = dict(
            line.split("\t")[1:] for line in text.splitlines() if line.startswith("fileops\t"))
        assert list(seen) == OPERATIONS + (PROGRAMS if number in matrix.worked_in else []), text
        bad = [f"{kind}, {what}, {operation}: {said}" for operation, said in seen.items()
               if said != expected(matrix.kind if kind == "bind" else kind, operation, readonly)]
        agreed = "-"
        if host and not readonly:
            there = {line for line in tree.splitlines() if line.startswith("filetree ")}
            here = host_tree(host)
            under = [
                other[len(target):] for _, _, other, _, _ in matrix.cells
                if other.startswith(target + "/")
            ]
            hidden = tuple(quote(path) for path in under)
            clean = lambda lines: {
                line
                for line in lines if not (hidden and line.split(" ")[-1].startswith(hidden))
            }
            there, here = clean(there), clean(here)
            agreed = f"{len(here)} entries"
            if there != here:
                bad.append(f"{kind}, {what}: {sorted(there ^ here)[:6]}")
            owners = {tuple(line.split(" ")[2:4]) for line in here}
            if number in matrix.worked_in:
                bad += [
                    f"{kind}, {what}: the host finds fault with {fault}"
                    for fault in host_disagrees(host)
                ]
            if owners != {(str(matrix.uid), str(matrix.uid))} or len(here) < many:
                bad.append(f"{kind}, {what}: owners {owners}, {len(here)} entries")
        worked = sum(said == "worked" for said in seen.values())
        other = sorted({said for said in seen.values() if said != "worked"})
        results.append(
            f"| {matrix.kind} | {matrix.uid} | {kind} | {'ro' if readonly else 'rw'} | {what} | "
            f"{worked} | "
            f"{', '.join(other) or '-'} | {agreed} |")
        wrong += bad
    assert not wrong, "\n".join(wrong)


def test_the_table(capfd):
    """Prints the results of the runs above."""
    if not results:
        pytest.skip("no run")
    head = [
        "| file server | uid | type | | folder | operations that work | the others say | host and "
        "guest agree on |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |"
    ]
    count = (f"mounts: {len(results)} folders, {len(OPERATIONS)} operations each, git and sqlite "
             "in one of a type")
    path = BUILD / "results" / "mounts.md"
    path.parent.mkdir(exist_ok=True)
    text = "\n".join(head + [line.replace("\\n", "\\\\n") for line in results])
    path.write_text(f"# Mounts\n\n{count}.\n\n{text}\n")
    with capfd.disabled():
        print(f"\n{text}\n{count}")
