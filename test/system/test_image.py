"""The guest image: two builds give the same bytes, tar and erofs contain the same tree, and the
tree is as expected.

The programs in it come from the build folder if they are there; otherwise small stand-ins replace
them, as the tests are about the image's builder."""

import os
import pathlib
import shutil
import stat
import subprocess
import tarfile

import pytest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("CODEV_BUILD", TOP / "build"))
ARCH = os.environ.get("CODEV_ARCH", "x86_64")


def build_image(folder, **environment):
    folder.mkdir()
    for name in ("codev-init", "codev-agent"):
        built = BUILD / "guest" / ARCH / name
        if built.exists():
            shutil.copy(built, folder / name)
        else:
            (folder / name).write_text(name)
    subprocess.run([TOP / "rootfs" / "image.py", ARCH, BUILD / "sysroot" / ARCH, folder],
                   check=True,
                   env={
                       **os.environ,
                       **environment
                   })
    return folder


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    return build_image(tmp_path_factory.mktemp("image") / "first")


def members(file):
    """The attributes of a tree's entries except times: name -> (type, mode, uid, gid, link,
    content)."""
    with tarfile.open(fileobj=file, mode="r|") as tar:
        return {
            os.path.normpath(m.name): (m.type, m.mode, m.uid, m.gid, m.linkname,
                                       tar.extractfile(m).read() if m.isreg() else b"")
            for m in tar
        }


def tar_members(image):
    with open(image / "rootfs.tar", "rb") as file:
        return members(file)


def test_two_builds_give_the_same_bytes(image, tmp_path):
    """The second build has another umask, language, time zone and folder for temporary files (on
    another file system if /dev/shm is one, where directories list names in another order)."""
    scratch = pathlib.Path("/dev/shm")
    old = os.umask(0o077)
    try:
        second = build_image(tmp_path / "second",
                             TMPDIR=str(scratch if scratch.is_dir() else tmp_path),
                             LC_ALL="C.UTF-8",
                             TZ="Asia/Tokyo")
    finally:
        os.umask(old)
    for name in ("rootfs.tar", "rootfs.erofs"):
        assert (image / name).read_bytes() == (second / name).read_bytes(), name


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"),
                    reason="needs root to become somebody else")
def test_an_ordinary_user_builds_the_same_bytes(image, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for name in ("codev-init", "codev-agent"):
        shutil.copy(image / name, other / name)
    # The builder's inputs are copied to a folder that user nobody may read; the working tree may be
    # in a closed folder.
    shutil.copytree(TOP / "rootfs", other / "rootfs")
    (other / "sysroot" / "bin").mkdir(parents=True)
    shutil.copy(BUILD / "sysroot" / ARCH / "bin" / "busybox", other / "sysroot" / "bin" / "busybox")
    with tarfile.open(tmp_path / "inputs.tar", "w") as tar:
        tar.add(other, "other")
    script = 'd=$(mktemp -d) && cd "$d" && tar -x && ' \
             'other/rootfs/image.py "$0" other/sysroot other >&2 && ' \
             'sha256sum other/rootfs.tar other/rootfs.erofs; rm -rf "$d"'
    with open(tmp_path / "inputs.tar", "rb") as inputs:
        done = subprocess.run([
            "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "TMPDIR=/tmp",
            "sh", "-c", script, ARCH
        ],
                              stdin=inputs,
                              check=True,
                              capture_output=True,
                              text=True)
    here = subprocess.run(["sha256sum", "rootfs.tar", "rootfs.erofs"],
                          cwd=image,
                          check=True,
                          capture_output=True,
                          text=True)
    assert [l.split()[0]
            for l in done.stdout.splitlines()] == [l.split()[0] for l in here.stdout.splitlines()]


def test_tar_and_erofs_hold_the_same_tree(image, tmp_path):
    script = 'fsck.erofs --extract="$0" --preserve-owner --preserve-perms "$1" >&2 && ' \
             'tar --numeric-owner --format=ustar -cf - -C "$0" .'
    done = subprocess.run(
        ["fakeroot", "sh", "-c", script, tmp_path / "tree", image / "rootfs.erofs"],
        check=True,
        capture_output=True)
    with open(tmp_path / "erofs.tar", "w+b") as file:
        file.write(done.stdout)
        file.seek(0)
        extracted = members(file)
    assert extracted == tar_members(image)


def test_owners_modes_and_accounts(image):
    tree = tar_members(image)
    for name, (_, mode, uid, gid, _, _) in tree.items():
        inside_home = name == "home/codev" or name.startswith("home/codev/")
        assert (uid, gid) == ((1000, 1000) if inside_home else (0, 0)), name
        assert not mode & (stat.S_ISUID | stat.S_ISGID), name
        assert not mode & stat.S_IWOTH or name in (
            "tmp", "var/tmp") or tree[name][0] == tarfile.SYMTYPE, name
    assert tree["tmp"][1] == tree["var/tmp"][1] == 0o1777
    assert tree["etc/shadow"][1] == 0o600
    accounts = [line.split(":") for line in tree["etc/passwd"][5].decode().splitlines()]
    assert [(a[0], a[2], a[3], a[5]) for a in accounts] == [
        ("root", "0", "0", "/root"), ("codev", "1000", "1000", "/home/codev"),
        ("codev-relay", "900", "900", "/nonexistent"), ("nobody", "65534", "65534", "/nonexistent")]
    locked = [line.split(":")[1] for line in tree["etc/shadow"][5].decode().splitlines()]
    assert len(locked) == 4 and all(password in ("*", "!") for password in locked)


def test_every_link_leads_somewhere(image):
    """To a file of the image or a path that the kernel mounts."""
    tree = tar_members(image)

    def resolve(name, depth=0):
        assert depth < 20, name
        done = ""
        for part in name.split("/"):
            done = os.path.normpath(os.path.join(done, part))
            if done in tree and tree[done][0] == tarfile.SYMTYPE:
                target = tree[done][4]
                done = resolve(
                    target[1:] if target.startswith("/") else os.path.normpath(
                        os.path.join(os.path.dirname(done), target)), depth + 1)
        return done

    for name, entry in tree.items():
        if entry[0] == tarfile.SYMTYPE and not entry[4].startswith(("/proc/", "/run")):
            assert resolve(name) in tree, f"{name} -> {entry[4]}"
    assert resolve("bin/sh") == resolve("sbin/init") == "usr/bin/busybox"
    assert resolve("sbin/codev-init") == "usr/sbin/codev-init"


def test_a_missing_program_is_an_error(tmp_path):
    done = subprocess.run([TOP / "rootfs" / "image.py", ARCH, BUILD / "sysroot" / ARCH, tmp_path],
                          capture_output=True, text=True)
    assert done.returncode != 0 and "codev-init is missing" in done.stderr
    assert list(tmp_path.iterdir()) == []
