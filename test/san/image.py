#!/usr/bin/python3
"""Usage: image.py ROOTFS.tar FOLDER DESTINATION

Makes DESTINATION/rootfs.tar and DESTINATION/rootfs.erofs from ROOTFS.tar with the programs of
FOLDER, built with AddressSanitizer and UndefinedBehaviorSanitizer, in place of codev-init and
codev-agent. They cannot be linked statically: their shared libraries and the loader come from this
machine. `first` in FOLDER becomes /usr/sbin/codev-init (see first.c)."""

import io
import os
import pathlib
import re
import subprocess
import sys
import tarfile

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "rootfs"))

import image  # noqa: E402

PROGRAMS = {"usr/sbin/codev-init": "first", "usr/sbin/codev-init.san": "codev-init",
            "usr/libexec/codev/codev-agent": "codev-agent"}


def libraries(program):
    """path in the guest -> path here: absolute ones, as the loader and the programs name them."""
    output = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"(?:=> )?(/\S+) \(0x", output)
    assert any("libasan" in path for path in found), f"{program} is not instrumented:\n{output}"
    return {path: os.path.realpath(path) for path in found}


def file_entry(path, source, mode=0o755):
    info = tarfile.TarInfo("./" + path)
    info.mode, info.mtime, info.size = mode, image.EPOCH, os.stat(source).st_size
    return info, pathlib.Path(source).read_bytes()


def folder_entries(paths, known):
    """The folders that these files need and that are not there yet. /lib is a link to usr/lib."""
    for path in sorted({
            str(parent)
            for path in paths for parent in pathlib.PurePath(path).parents if str(parent) != "."
    }):
        if f"./{path}" not in known:
            yield image.entry("folder", "/" + path, 0o755, 0, 0), b""


def main():
    base, folder, destination = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    destination.mkdir(parents=True, exist_ok=True)
    replaced = {"./" + path for path in PROGRAMS}
    with tarfile.open(base) as tar:
        entries = [(info, tar.extractfile(info).read() if info.isreg() else b"")
                   for info in tar if info.name not in replaced]
    wanted = {path: folder / name for path, name in PROGRAMS.items()}
    for program in ("codev-init", "codev-agent"):
        for name, here in libraries(folder / program).items():
            # as the image's own links have it: /lib is usr/lib
            wanted[re.sub(r"^/lib/", "usr/lib/", name).lstrip("/")] = here
    entries += folder_entries(wanted, {info.name for info, _ in entries})
    entries += [file_entry(path, here) for path, here in wanted.items()]
    tar_path, erofs = destination / "rootfs.tar", destination / "rootfs.erofs"
    image.write_tar(f"{tar_path}.new", entries)
    image.write_erofs(f"{erofs}.new", os.path.abspath(f"{tar_path}.new"))
    os.replace(f"{tar_path}.new", tar_path)
    os.replace(f"{erofs}.new", erofs)


if __name__ == "__main__":
    main()
