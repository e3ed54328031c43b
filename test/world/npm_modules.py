"""Packages of the npm registry for tests: installed once for each lock file, into the cache
folder."""
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess


def cache_folder():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME")
                        or pathlib.Path.home() / ".cache") / "codev-sandbox"


def modules(inputs):
    """The folder whose node_modules npm installs from the lock file in `inputs`, once for each lock
    file."""
    inputs = [inputs / "package.json", inputs / "package-lock.json"]
    name = hashlib.sha256(b"".join(path.read_bytes() for path in inputs)).hexdigest()[:16]
    cache = cache_folder() / "npm"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / name
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            folder.mkdir(exist_ok=True)
            for path in inputs:
                shutil.copy(path, folder)
            subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
                           cwd=folder,
                           check=True,
                           capture_output=True,
                           timeout=300)
            (folder / "complete").touch()
    return folder


if __name__ == "__main__":
    for lock in sorted(pathlib.Path(__file__).resolve().parent.parent.glob("*/**/package-lock.json")):
        modules(lock.parent)
