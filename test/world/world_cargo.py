"""A sparse index of crates (the cargo book, "Registry Index"), whose `dl` is on another host.

world-app needs world-lib; the files are at dl/NAME/VERSION/download."""
import hashlib
import io
import json
import tarfile


def crate(name, version, needs):
    manifest = (f'[package]\nname = "{name}"\nversion = "{version}"\nedition = "2021"\nlicense = '
                '"MIT"\ndescription = "of the tests"\n')
    manifest += "[dependencies]\n" + "".join(f'{need} = "1"\n' for need in needs)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, text in {
                "Cargo.toml": manifest,
                "src/lib.rs": f"pub const NAME: &str = \"{name}\";\n"
        }.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def add(index, files, name, version, needs):
    data = crate(name, version, needs)
    place = files / "crates" / name / version
    place.mkdir(parents=True)
    (place / "download").write_bytes(data)
    dependencies = [{
        "name": need,
        "req": "^1",
        "features": [],
        "optional": False,
        "default_features": True,
        "target": None,
        "kind": "normal"
    } for need in needs]
    line = {
        "name": name,
        "vers": version,
        "deps": dependencies,
        "cksum": hashlib.sha256(data).hexdigest(),
        "features": {},
        "yanked": False
    }
    file = index / name[:2] / name[2:4] / name  # the layout for names of four letters and more
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(line) + "\n")


def build(index, files, url):
    (index / "config.json").write_text(json.dumps({"dl": f"{url}/crates", "api": url}))
    add(index, files, "world-lib", "1.0.0", [])
    add(index, files, "world-app", "1.0.0", ["world-lib"])
