"""A package index as PEP 503 and PEP 691 describe it, with metadata files (PEP 658) beside each
wheel.

    world-app 1.0     a wheel; needs world-lib and world-old
    world-lib 1.2     a wheel
    world-old 0.9     only an sdist, with a build backend of its own inside, so that building needs
                      nothing from the
                      index; needs world-lib; served as HTML whatever is asked for
"""
import base64
import hashlib
import html
import io
import json
import tarfile
import zipfile

BACKEND = '''\
"""A build backend (PEP 517) that knows one package."""
import base64, hashlib, os, zipfile

METADATA = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "PKG-INFO"), "rb").read()
FOLDER = "world_old-0.9.dist-info"


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = "world_old-0.9-py3-none-any.whl"
    files = {"world_old.py": open("world_old.py", "rb").read(), FOLDER + "/METADATA": METADATA,
             FOLDER + "/WHEEL": b"Wheel-Version: 1.0\\nGenerator: world\\n"
             b"Root-Is-Purelib: true\\nTag: py3-none-any\\n"}
    record = "".join("%s,sha256=%s,%d\\n" % (path, base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("="),
                                           len(data)) for path, data in files.items())
    files[FOLDER + "/RECORD"] = (record + FOLDER + "/RECORD,,\\n").encode()
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return name
'''


def metadata(name, version, needs):
    return "".join(["Metadata-Version: 2.1\n", f"Name: {name}\n", f"Version: {version}\n",
                    *(f"Requires-Dist: {need}\n" for need in needs)]).encode()


def wheel(name, version, needs, source):
    module, folder = name.replace("-", "_"), f"{name.replace('-', '_')}-{version}.dist-info"
    files = {
        f"{module}.py": source,
        f"{folder}/METADATA": metadata(name, version, needs),
        f"{folder}/WHEEL": b"Wheel-Version: 1.0\nGenerator: world\nRoot-Is-Purelib: true\nTag: "
                           b"py3-none-any\n"
    }
    digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip(
        "=")
    record = "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{folder}/RECORD"] = (record + f"{folder}/RECORD,,\n").encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return f"{module}-{version}-py3-none-any.whl", out.getvalue(), metadata(name, version, needs)


def sdist(name, version, needs, source):
    module = name.replace("-", "_")
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    files = {
        "PKG-INFO": metadata(name, version, needs),
        "pyproject.toml": project.encode(),
        "backend.py": BACKEND.encode(),
        f"{module}.py": source
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(f"{module}-{version}/{path}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return f"{module}-{version}.tar.gz", out.getvalue(), None


def add_project(index, files, url, name, package, with_json):
    file, data, info = package
    folder = files / "packages" / name
    folder.mkdir(parents=True)
    (folder / file).write_bytes(data)
    digest, attribute = hashlib.sha256(data).hexdigest(), ""
    entry = {
        "filename": file,
        "url": f"{url}/packages/{name}/{file}",
        "hashes": {
            "sha256": digest
        },
        "yanked": False
    }
    if info:
        (folder / f"{file}.metadata").write_bytes(info)
        digest_of_info = hashlib.sha256(info).hexdigest()
        entry |= {
            "core-metadata": {
                "sha256": digest_of_info
            },
            "data-dist-info-metadata": {
                "sha256": digest_of_info
            }
        }
        attribute = (f' data-dist-info-metadata="sha256={digest_of_info}" '
                     f'data-core-metadata="sha256={digest_of_info}"')
    page = index / "simple" / name
    page.mkdir(parents=True)
    if with_json:
        document = {
            "meta": {
                "api-version": "1.1"
            },
            "name": name,
            "versions": ["1"],
            "files": [entry]
        }
        (page / "index.json").write_text(json.dumps(document))
    link = html.escape(f"{entry['url']}#sha256={digest}")
    (page / "index.html").write_text(
        f"<!DOCTYPE html>\n<html><head><meta name=\"pypi:repository-version\" content=\"1.0\">"
        f"</head><body><h1>Links for {name}</h1>\n"
        f"<a href=\"{link}\"{attribute}>{file}</a><br/>\n</body></html>\n")


def build(index, files, url):
    lib = wheel("world-lib", "1.2", [], b"NAME = 'world-lib'\n")
    app = wheel("world-app", "1.0", ["world-lib (>=1)", "world-old (==0.9)"],
                b"import world_lib, world_old\nNAMES = [world_lib.NAME, world_old.NAME]\n")
    old = sdist("world-old", "0.9", ["world-lib"],
                b"import world_lib\nNAME = 'world-old on ' + world_lib.NAME\n")
    html_wheel = wheel("world-html", "1.0", [], b"NAME = 'world-html'\n")
    add_project(index, files, url, "world-lib", lib, True)
    add_project(index, files, url, "world-app", app, True)
    add_project(index, files, url, "world-old", old, False)
    add_project(index, files, url, "world-html", html_wheel, False)
