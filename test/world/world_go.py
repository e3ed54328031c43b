"""A module proxy (`go help goproxy`) as files, and a checksum database that knows its modules,
signed with a key made for the run (golang.org/x/mod/sumdb: note.go, tlog.go). world.test/app needs
world.test/lib.

The database has so few records that its hashes are one partial tile, and its tree never grows."""
import base64
import hashlib
import io
import subprocess
import tempfile
import zipfile

DATABASE = "sum.world.test"
MODULES = {
    "world.test/lib": ("v1.0.0", [], 'package lib\n\nconst Name = "world.test/lib"\n'),
    "world.test/app":
        ("v1.1.0", ["world.test/lib v1.0.0"],
         'package app\n\nimport "world.test/lib"\n\nconst Name = "app on " + lib.Name\n')
}


def h1(files):
    """dirhash.Hash1: name -> bytes."""
    lines = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n"
                    for name, data in sorted(files.items()))
    return "h1:" + base64.b64encode(hashlib.sha256(lines.encode()).digest()).decode()


def add_module(proxy, path, version, needs, source):
    """Writes the proxy's files; the two lines of go.sum."""
    modfile = f"module {path}\n\ngo 1.19\n" + "".join(f"\nrequire {need}\n" for need in needs)
    files = {
        f"{path}@{version}/go.mod": modfile.encode(),
        f"{path}@{version}/it.go": source.encode()
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    folder = proxy / path / "@v"
    folder.mkdir(parents=True)
    info = f'{{"Version":"{version}","Time":"2024-01-01T00:00:00Z"}}'
    (folder / "list").write_text(version + "\n")
    (folder / f"{version}.info").write_text(info)
    (folder / f"{version}.mod").write_text(modfile)
    (folder / f"{version}.zip").write_bytes(out.getvalue())
    (proxy / path / "@latest").write_text(info)
    return (f"{path} {version} {h1(files)}\n{path} {version}/go.mod "
            f"{h1({'go.mod': modfile.encode()})}\n")


class Signer:
    """Signs notes with Ed25519, by openssl."""

    def __init__(self, folder):
        self.key = folder / "sumdb.key"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", self.key],
                       check=True,
                       capture_output=True)
        public = subprocess.run(["openssl", "pkey", "-in", self.key, "-pubout", "-outform", "DER"],
                                check=True,
                                capture_output=True).stdout[-32:]
        typed = b"\x01" + public
        self.hash = hashlib.sha256(DATABASE.encode() + b"\n" + typed).digest()[:4]
        self.verifier = f"{DATABASE}+{self.hash.hex()}+{base64.b64encode(typed).decode()}"

    def sign(self, text):
        with tempfile.NamedTemporaryFile() as file:
            file.write(text.encode())
            file.flush()
            signature = subprocess.run(
                ["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", self.key, "-in", file.name],
                check=True,
                capture_output=True).stdout
        return f"{text}\n\u2014 {DATABASE} {base64.b64encode(self.hash + signature).decode()}\n"


def tree_hash(leaves):
    """RFC 6962, section 2.1."""
    if len(leaves) == 1:
        return leaves[0]
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return hashlib.sha256(b"\x01" + tree_hash(leaves[:half]) + tree_hash(leaves[half:])).digest()


def build(proxy, database, folder):
    """The verifier key, as GOSUMDB takes it."""
    records = {f"{path}@{version}": add_module(proxy, path, version, needs, source)
               for path, (version, needs, source) in MODULES.items()}
    leaves = [hashlib.sha256(b"\x00" + record.encode()).digest() for record in records.values()]
    signer = Signer(folder)
    signed = signer.sign(
        f"go.sum database tree\n{len(leaves)}\n{base64.b64encode(tree_hash(leaves)).decode()}\n")
    (database / "latest").write_text(signed)
    for number, (name, record) in enumerate(records.items()):
        file = database / "lookup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{number}\n{record}\n{signed}")
    tile = database / "tile/8/0/000.p" / str(len(leaves))
    tile.parent.mkdir(parents=True)
    tile.write_bytes(b"".join(leaves))
    return signer.verifier
