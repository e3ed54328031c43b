#!/usr/bin/python3
"""Usage: image.py ARCH SYSROOT GUEST

Makes GUEST/rootfs.tar and GUEST/rootfs.erofs from rootfs/manifest, rootfs/applets and the programs
in SYSROOT and GUEST. Owners and modes come from the manifest, never from the machine: the archive
is written entry by entry, and the erofs is made from the archive under fakeroot, so the two hold
the same tree and no root is needed. Time stamps are SOURCE_DATE_EPOCH, the order is that of the
names, the file system's UUID is fixed: the same inputs give the same bytes.

A program that has no source in the tree yet is left out with a notice; --allow-missing says that
this is meant."""

import io
import os
import platform
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "1790000000"))
UUID = "c0de5a4d-b0c5-4b1e-9a6e-000000000001"
KINDS = {"folder": tarfile.DIRTYPE, "file": tarfile.REGTYPE, "link": tarfile.SYMTYPE}


def fail(text):
    sys.exit(f"error: {text}")


def lines(name):
    """The lines of a list in rootfs/, without comments: (number, fields)."""
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            fields = line.split("#")[0].split()
            if fields:
                yield number, fields


def entry(kind, path, mode, uid, gid):
    info = tarfile.TarInfo("." + path if path != "/" else ".")
    info.type, info.mode, info.uid, info.gid, info.mtime = KINDS[kind], mode, uid, gid, EPOCH
    return info


def manifest_entries(built):
    """(TarInfo, content) for each line of the manifest."""
    for number, fields in lines("manifest"):
        where = f"rootfs/manifest:{number}"
        if len(fields) != (5 if fields[0] == "folder" else 6) or fields[0] not in KINDS:
            fail(f"{where}: expected: folder|file|link PATH MODE UID GID [SOURCE]")
        kind, path, mode = fields[0], fields[1], int(fields[2], 8)
        if mode & 0o6000:
            fail(f"{where}: {path} would be set-uid or set-gid")
        info, content = entry(kind, path, mode, int(fields[3]), int(fields[4])), b""
        if kind == "link":
            info.linkname = fields[5]
        elif kind == "file":
            source = built.get(fields[5], os.path.join(HERE, "files", fields[5]))
            if source is None:
                print(f"note: no {fields[5][1:]} yet: the image is without {path}", file=sys.stderr)
                continue
            with open(source, "rb") as file:
                content = file.read()
            info.size = len(content)
        yield info, content


def applet_entries():
    """Links to busybox; /bin and /sbin are links into /usr."""
    for _, (path,) in lines("applets"):
        path = "/" + path if path.startswith("usr/") else "/usr/" + path
        info = entry("link", path, 0o777, 0, 0)
        info.linkname = "busybox" if path.startswith("/usr/bin/") else "../bin/busybox"
        yield info, b""


def check_applets(arch, busybox):
    """rootfs/applets must be what this busybox has; only where its machine code can run."""
    if platform.machine() != arch:
        return
    output = subprocess.run([busybox, "--list-full"], check=True, capture_output=True,
                            text=True).stdout
    has = set(output.split()) - {"linuxrc", "bin/busybox"}
    listed = {fields[0] for _, fields in lines("applets")}
    if has != listed:
        fail(
            f"rootfs/applets differs from busybox: missing {sorted(has - listed)}, extra "
            f"{sorted(listed - has)}"
        )


def write_tar(path, entries):
    by_name = {}
    for info, content in entries:
        if info.name in by_name:
            fail(f"{info.name} is in the image twice")
        by_name[info.name] = (info, content)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(by_name):
            info, content = by_name[name]
            tar.addfile(info, io.BytesIO(content))


def write_erofs(path, tar):
    """Under fakeroot the owners are those of the archive whoever runs this."""
    with tempfile.TemporaryDirectory(prefix="codev-image-") as tree:
        script = ('tar -xpf "$1" -C "$3" --numeric-owner && mkfs.erofs --quiet -x-1 -T"$4" -U"$5" '
                  '"$2" "$3"')
        command = ["fakeroot", "sh", "-c", script, "sh", tar, path, tree, str(EPOCH), UUID]
        # With SOURCE_DATE_EPOCH in its environment mkfs.erofs would lay out inodes another way than
        # with -T.
        environment = {k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            fail(f"mkfs.erofs: {done.stdout}{done.stderr}")


def main():
    arguments = [a for a in sys.argv[1:] if a != "--allow-missing"]
    if len(arguments) != 3:
        sys.exit(__doc__)
    arch, sysroot, guest = arguments
    busybox = os.path.join(sysroot, "bin", "busybox")
    built = {"@busybox": busybox}
    for name in ("codev-init", "codev-agent"):
        path = os.path.join(guest, name)
        there = os.path.exists(path)
        if not there and "--allow-missing" not in sys.argv:
            fail(f"{path} is missing")
        built["@" + name] = path if there else None
    check_applets(arch, busybox)

    tar, erofs = os.path.join(guest, "rootfs.tar"), os.path.join(guest, "rootfs.erofs")
    os.makedirs(guest, exist_ok=True)
    write_tar(tar + ".new", [*manifest_entries(built), *applet_entries()])
    write_erofs(erofs + ".new", os.path.abspath(tar) + ".new")
    os.replace(tar + ".new", tar)
    os.replace(erofs + ".new", erofs)


if __name__ == "__main__":
    main()
