"""The npm registry's content: 51 small packages, one that needs the other 50, and the package
managers that corepack fetches. Published as by `npm publish`, with one PUT each."""
import base64
import hashlib
import http.client
import io
import json
import tarfile

APP, COUNT = "world-app", 50
DEPENDENCIES = [
    f"@world/part-{number}" if number % 10 == 0 else f"world-part-{number}"
    for number in range(COUNT)
]
CONFIGURATION = """\
storage: ./storage
uplinks: {}
packages:
  '**': { access: $all, publish: $all }
log: { type: stdout, format: json, level: warn }
max_body_size: 64mb
web: { enable: false }
"""


def write_configuration(folder):
    folder.mkdir()
    (folder / "config.yaml").write_text(CONFIGURATION)


def tarball(files):
    """The bytes of a package: name in it -> bytes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(data), 0o755
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def put(connection, manifest, data):
    name, version = manifest["name"], manifest["version"]
    file = f"{name}-{version}.tgz"
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    dist = {"integrity": integrity, "shasum": hashlib.sha1(data).hexdigest(),
            "tarball": f"http://127.0.0.1/{name}/-/{file}"}  # verdaccio puts its public URL here
    document = {
        "_id": name,
        "name": name,
        "dist-tags": {
            "latest": version
        },
        "versions": {
            version: {
                **manifest, "_id": f"{name}@{version}",
                "dist": dist
            }
        },
        "_attachments": {
            file: {
                "content_type": "application/octet-stream",
                "length": len(data),
                "data": base64.b64encode(data).decode()
            }
        }
    }
    connection.request("PUT", "/" + name.replace("/", "%2f"), json.dumps(document),
                       {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 201, (name, answer.status, answer.read())
    answer.read()
    return integrity, manifest.get("dependencies", {})


def publish(port, clients):
    """name -> (integrity, dependencies) of the 51."""
    published = {}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    for name in DEPENDENCIES:
        manifest = {"name": name, "version": "1.0.0", "main": "index.js"}
        published[name] = put(
            connection, manifest,
            tarball({
                "package.json": json.dumps(manifest).encode(),
                "index.js": f"module.exports = {json.dumps(name)};\n".encode()
            }))
    manifest = {
        "name": APP,
        "version": "1.0.0",
        "main": "index.js",
        "dependencies": dict.fromkeys(DEPENDENCIES, "^1.0.0")
    }
    source = ("module.exports = Object.keys(require('./package.json').dependencies).map((name) => "
              "require(name));\n")
    published[APP] = put(
        connection, manifest,
        tarball({
            "package.json": json.dumps(manifest).encode(),
            "index.js": source.encode()
        }))
    publish_folder(connection, clients / "node_modules/@yarnpkg/cli-dist")
    connection.close()
    return published


def publish_folder(connection, folder):
    """A package that npm has installed, as it is."""
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*")) if path.is_file()
    }
    put(connection, json.loads(files["package.json"]), tarball(files))
