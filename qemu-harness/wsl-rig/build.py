#!/usr/bin/python3
"""Usage: build.py PACKAGES SYSROOT GUEST

Makes what the WSL rig boots, in GUEST/rig, from Debian's kernel package and friends unpacked in
PACKAGES:

    vmlinux        the stock kernel, taken out of its bzImage: entered by PVH it boots in a quarter
                   of the time
    initramfs      busybox, this rig's program and PID 1, and the modules, each with those that it
                   needs
    outsider.tar   a distribution beside the sandbox's: busybox, glibc, nft, iptables

The initramfs is not compressed: QEMU loads it faster than an emulated processor unpacks it."""

import io
import lzma
import os
import pathlib
import re
import struct
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "1790000000"))
# BASE is always loaded; a test may choose from CHOSEN (rig.modules=...).
BASE = [
    "virtio_pci", "virtio_net", "virtio_console", "9p", "9pnet_virtio", "overlay", "binfmt_misc",
    "vsock", "vsock_loopback"
]
# libcrc32c requests this module by name only, so its `depends` does not list it.
UNNAMED = {"libcrc32c": ["crc32c_generic"]}
CHOSEN = [
    "nf_tables", "nft_reject_inet", "nft_ct", "nft_socket", "nft_compat", "nft_log", "nft_limit",
    "nft_nat", "nft_masq", "virtio_blk", "erofs", "iptable_filter", "iptable_nat",
    "ip6table_filter", "xt_conntrack", "xt_LOG"
]
APPLETS = [
    "ash", "awk", "basename", "cat", "chmod", "chown", "chroot", "cp", "cut", "dd", "dmesg", "echo",
    "env", "false", "find", "grep", "head", "hostname", "id", "insmod", "ip", "kill", "ln", "ls",
    "lsmod", "mkdir", "mknod", "mount", "mv", "nc", "nsenter", "ping", "printf", "ps", "pidof",
    "readlink", "rm", "rmmod", "sed", "seq", "sh", "sleep", "sort", "stat", "sync", "sysctl",
    "tail", "tar", "test", "timeout", "touch", "tr", "true", "umount", "uname", "unshare", "usleep",
    "wc", "wget"
]
PASSWD = """root:x:0:0:root:/root:/bin/sh
user:x:1000:1000:user:/home/user:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/bin/false
"""
GROUP = "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n"
LEFT_OUT = re.compile(r"/(doc|man|locale|gconv|i18n|info|lintian|bug|bash-completion|audit)/")


def fail(text):
    sys.exit(f"error: {text}")


def take_kernel(image):
    """The ELF inside a bzImage (Documentation/arch/x86/boot.rst: payload_offset, payload_length).
    """
    sectors = image[0x1f1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (sectors + 1) * 512 + offset
    packed = image[start:start + length]
    if not packed.startswith(b"\xfd7zXZ\0"):
        fail("the kernel is not packed with xz")
    kernel = lzma.LZMADecompressor().decompress(packed)
    if not kernel.startswith(b"\x7fELF"):
        fail("there is no ELF in the kernel image")
    return kernel


class Modules:
    """The modules of a kernel by name, in the order in which they can be loaded."""

    def __init__(self, folder):
        self.files = {
            path.name.removesuffix(".ko").replace("-", "_"): path
            for path in folder.rglob("*.ko")
        }
        self.order = []

    def add(self, name):
        if name in self.order:
            return
        if name not in self.files:
            fail(f"the kernel package has no module {name}")
        found = re.search(rb"\0depends=([^\0]*)\0", self.files[name].read_bytes())
        for needed in UNNAMED.get(name, []):
            self.add(needed)
        for needed in filter(None, found.group(1).decode().split(",") if found else []):
            self.add(needed.replace("-", "_"))
        self.order.append(name)

    def needs(self, name):
        """The modules that this one needs, then the module itself."""
        alone = Modules.__new__(Modules)
        alone.files, alone.order = self.files, []
        alone.add(name)
        return alone.order


class Cpio:
    """Writes an archive in the format of the kernel's initramfs (newc), entry by entry."""

    def __init__(self):
        self.out, self.number = io.BytesIO(), 0

    def add(self, name, mode, data=b"", device=(0, 0)):
        self.number += 1
        encoded = name.encode() + b"\0"
        fields = (self.number, mode, 0, 0, 1, EPOCH, len(data), 0, 0, *device, len(encoded), 0)
        self.out.write(b"070701" + b"".join(b"%08x" % field for field in fields) + encoded)
        self._pad()
        self.out.write(data)
        self._pad()

    def _pad(self):
        self.out.write(b"\0" * (-self.out.tell() % 4))

    def folder(self, name, mode=0o755):
        self.add(name, 0o040000 | mode)

    def file(self, name, data, mode=0o644):
        self.add(name, 0o100000 | mode, data)

    def link(self, name, target):
        self.add(name, 0o120777, target.encode())

    def finish(self):
        self.add("TRAILER!!!", 0)
        return self.out.getvalue()


def make_initramfs(modules, busybox, program):
    cpio = Cpio()
    for name in ("bin", "dev", "distributions", "etc", "mnt", "mnt/wsl", "modules", "proc", "root",
                 "run", "sys", "tmp"):
        cpio.folder(name)
    cpio.add("dev/console", 0o020600, device=(5, 1))
    cpio.file("bin/busybox", busybox, 0o755)
    for applet in APPLETS:
        cpio.link(f"bin/{applet}", "busybox")
    cpio.file("init", program, 0o755)  # its path in each distribution
    cpio.link("bin/rig", "/init")
    for name in ("start", "import"):
        cpio.file(f"rig-{name}", (HERE / name).read_bytes(), 0o755)
    cpio.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
    cpio.file("etc/group", b"root:x:0:\n")
    for name in BASE + CHOSEN:
        modules.add(name)
    for name in modules.order:
        cpio.file(f"modules/{name}.ko", modules.files[name].read_bytes())
    lines = [" ".join([name, *modules.needs(name)]) for name in BASE + CHOSEN]
    cpio.file("modules/needs", ("\n".join(lines) + "\n").encode())
    cpio.file("modules/base", ("\n".join(BASE) + "\n").encode())
    return cpio.finish()


def add_file(tar, name, data, mode=0o755, uid=0):
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.uid, info.gid, info.mtime = len(data), mode, uid, uid, EPOCH
    tar.addfile(info, io.BytesIO(data))


def add_other(tar, name, kind, mode=0o755, target="", uid=0):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname = kind, mode, target
    info.uid, info.gid, info.mtime = uid, uid, EPOCH
    tar.addfile(info)


def make_outsider(path, packages, busybox):
    """Writes a distribution with a merged /usr and the programs and libraries of the packages."""
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        for name in ("dev", "etc", "home", "mnt", "proc", "root", "run", "sys", "usr", "usr/bin",
                     "usr/lib", "usr/lib64", "usr/sbin", "usr/lib/x86_64-linux-gnu",
                     "usr/lib/x86_64-linux-gnu/xtables", "var"):
            add_other(tar, name, tarfile.DIRTYPE)
        add_other(tar, "tmp", tarfile.DIRTYPE, 0o1777)
        add_other(tar, "home/user", tarfile.DIRTYPE, uid=1000)
        for name in ("bin", "lib", "lib64", "sbin"):
            add_other(tar, name, tarfile.SYMTYPE, target=f"usr/{name}")
        add_file(tar, "usr/bin/busybox", busybox)
        for applet in APPLETS:
            add_other(tar, f"usr/bin/{applet}", tarfile.SYMTYPE, target="busybox")
        for name, text in (("passwd", PASSWD), ("group", GROUP), ("nsswitch.conf",
                                                                  "hosts: files dns\n")):
            add_file(tar, f"etc/{name}", text.encode(), 0o644)
        for source in sorted(packages.rglob("*")):
            name = "/" + str(source.relative_to(packages))
            name = name if name.startswith("/usr/") else "/usr" + name
            wanted = re.match(r"/usr/(bin|sbin|lib64|lib/x86_64-linux-gnu)/",
                              name) and not LEFT_OUT.search(name)
            if wanted and source.is_symlink():
                add_other(tar, name[1:], tarfile.SYMTYPE, target=os.readlink(source))
            elif wanted and source.is_file():
                add_file(tar, name[1:], source.read_bytes(), source.stat().st_mode & 0o755)
        for name in ("iptables", "ip6tables"):  # the links that Debian's alternatives make
            add_other(tar, f"usr/sbin/{name}", tarfile.SYMTYPE, target="xtables-nft-multi")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    packages, sysroot, guest = map(pathlib.Path, sys.argv[1:])
    out = guest / "rig"
    out.mkdir(parents=True, exist_ok=True)
    [image] = (packages / "boot").glob("vmlinuz-*")
    busybox = (sysroot / "bin" / "busybox").read_bytes()
    (out / "vmlinux").write_bytes(take_kernel(image.read_bytes()))
    modules = Modules(next((packages / "lib" / "modules").iterdir()))
    initramfs = make_initramfs(modules, busybox, (guest / "rig-program").read_bytes())
    make_outsider(out / "outsider.tar.new", packages, busybox)
    os.replace(out / "outsider.tar.new", out / "outsider.tar")
    (out / "initramfs.new").write_bytes(initramfs)
    os.replace(out / "initramfs.new", out / "initramfs")


if __name__ == "__main__":
    main()
