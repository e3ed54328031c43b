#!/usr/bin/python3
"""Usage: variant_image.py ROOTFS.tar DESTINATION PATH=PROGRAM...

Makes DESTINATION/rootfs.tar and DESTINATION/rootfs.erofs from ROOTFS.tar with each PROGRAM in place
of the file at PATH (usr/sbin/codev-init). Tests use it for programs that no shipped image
contains."""

import os
import pathlib
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "rootfs"))

import image  # noqa: E402


def write_tar(base, path, programs):
    """`programs`: the path of a file in the image -> the program that takes its place."""
    missing = {"./" + name for name in programs}
    entries = []
    with tarfile.open(base) as tar:
        for info in tar:
            content = tar.extractfile(info).read() if info.isreg() else b""
            if info.name in missing:
                missing.remove(info.name)
                content = pathlib.Path(programs[info.name[2:]]).read_bytes()
                info.size = len(content)
            entries.append((info, content))
    assert not missing, f"{base} has no {missing}"
    image.write_tar(path, entries)


def main():
    base, destination = sys.argv[1], pathlib.Path(sys.argv[2])
    programs = dict(argument.split("=") for argument in sys.argv[3:])
    destination.mkdir(parents=True, exist_ok=True)
    tar, erofs = destination / "rootfs.tar", destination / "rootfs.erofs"
    write_tar(base, f"{tar}.new", programs)
    image.write_erofs(f"{erofs}.new", os.path.abspath(f"{tar}.new"))
    os.replace(f"{tar}.new", tar)
    os.replace(f"{erofs}.new", erofs)


if __name__ == "__main__":
    main()
