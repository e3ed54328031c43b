"""Two apt repositories (SUITE and SUITE-updates; SUITE-security) with one package each, signed by a
key made for the run."""
import gzip
import hashlib
import os
import subprocess
import tempfile

ARCHITECTURES = ["amd64", "arm64"]


def package(pool, name, version):
    """Builds NAME_VERSION_all.deb; its paragraph for Packages."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        os.makedirs(f"{folder}/DEBIAN")
        os.makedirs(f"{folder}/usr/share/{name}")
        control = (
            f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: world "
            "<world@example.com>\n"
            "Description: of the tests\n")
        with open(f"{folder}/DEBIAN/control", "w") as file:
            file.write(control)
        with open(f"{folder}/usr/share/{name}/hello", "w") as file:
            file.write(f"{name} {version}\n")
        path = pool / name[0] / name / f"{name}_{version}_all.deb"
        path.parent.mkdir(parents=True)
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-b", folder, path],
                       check=True,
                       capture_output=True)
    data = path.read_bytes()
    return control + (f"Filename: {path.relative_to(pool.parent)}\nSize: {len(data)}\n"
                      f"SHA256: {hashlib.sha256(data).hexdigest()}\n\n")


class Signer:
    def __init__(self, folder, public):
        self.home = tempfile.TemporaryDirectory(prefix="gpg-",
                                                dir="/tmp")  # short: a socket is made in it
        self.run("--batch", "--passphrase", "", "--quick-generate-key", "world archive", "ed25519",
                 "sign", "never")
        public.write_bytes(self.run("--export"))

    def run(self, *words, data=b""):
        return subprocess.run(["gpg", "--homedir", self.home.name, "-q", *words],
                              input=data,
                              check=True,
                              capture_output=True).stdout

    def sign(self, text):
        return self.run("--batch", "--clearsign", data=text.encode())

    def close(self):
        subprocess.run(["gpgconf", "--homedir", self.home.name, "--kill", "all"],
                       capture_output=True)
        self.home.cleanup()


def suite(root, name, paragraphs, signer):
    folder = root / "dists" / name
    sums = []
    for architecture in ARCHITECTURES:
        place = folder / "main" / f"binary-{architecture}"
        place.mkdir(parents=True)
        for file, data in (("Packages", paragraphs.encode()), ("Packages.gz",
                                                               gzip.compress(paragraphs.encode(),
                                                                             mtime=0))):
            (place / file).write_bytes(data)
            sums.append(
                f" {hashlib.sha256(data).hexdigest()} {len(data)} "
                f"main/binary-{architecture}/{file}\n"
            )
    release = (
        f"Origin: world\nSuite: {name}\nCodename: {name}\nDate: Mon, 01 Jan 2024 00:00:00 UTC\n"
        f"Architectures: {' '.join(ARCHITECTURES)}\nComponents: main\nSHA256:\n{''.join(sums)}")
    (folder / "InRelease").write_bytes(signer.sign(release))


def build(archive, security, codename, folder, public):
    signer = Signer(folder, public)
    try:
        suite(archive, codename, package(archive / "pool", "world-hello", "1.0"), signer)
        suite(archive, f"{codename}-updates", "", signer)
        suite(security, f"{codename}-security", package(security / "pool", "world-fix", "2.0"),
              signer)
    finally:
        signer.close()
