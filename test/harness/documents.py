"""Generates documents in the public formats of package registries: npm packages (full, abbreviated,
one version), Python's simple index in HTML (PEP 503) and JSON (PEP 691), cargo's config.json, Git
LFS batch answers.

The same seed makes the same document. Besides download links the documents contain text that must
not be changed: homepages and repositories on the same hosts, prose with addresses in it, digests,
escapes of every kind. To print one:

    documents.py npm 4096
"""
import base64
import hashlib
import html
import json
import random
import sys

REGISTRY = "https://registry.example"
FILES = "https://files.example/packages"
ELSEWHERE = "https://cdn.elsewhere.example:8443"
PROSE = (
    "See https://files.example/packages/ and \"dist\": {\"tarball\": "
    "\"https://registry.example/x.tgz\"} for more.\n",
    "![badge](https://registry.example/badge.svg) caf\u00e9 \u65e5\u672c\u8a9e \U0001f4e6 <a "
    "href='https://files.example/packages/x'>x</a>\n",
    "```js\nconst path = 'C:\\\\temp\\\\';\nconsole.log(\"\\u0041\");\n```\n",
    "Plain words that go on for a while. " * 4)


def digest(text, algorithm="sha512"):
    return base64.b64encode(hashlib.new(algorithm, text.encode()).digest()).decode()


def pick_host(rng):
    return rng.choice([
        REGISTRY, REGISTRY, FILES, FILES, ELSEWHERE, "HTTPS://Files.Example:443/packages",
        "//files.example/packages"
    ])


def prose(rng, length):
    pieces, total = [], 0
    while total < length:
        pieces.append(rng.choice(PROSE))
        total += len(pieces[-1])
    return "".join(pieces)[:length]


# --- npm ------------------------------------------------------------------------------------------

def npm_version(rng, name, version, full=True):
    base = name.split("/")[-1]
    value = {
        "name": name,
        "version": version,
        "dependencies": {f"dep-{i}": f"^{i}.0.0"
                         for i in range(rng.randrange(4))},
        "dist": {
            "integrity": "sha512-" + digest(name + version),
            "shasum": hashlib.sha1(version.encode()).hexdigest(),
            "tarball": f"{pick_host(rng)}/{name}/-/{base}-{version}.tgz",
            "fileCount": 7,
            "unpackedSize": 12345,
            "signatures": [{
                "keyid": "SHA256:x",
                "sig": digest(version, "sha256")
            }],
        },
        "engines": {
            "node": ">=10"
        },
    }
    if full:
        value.update({
            "description": prose(rng, 60),
            "main": "index.js",
            "scripts": {
                "test": "node test.js && echo \"done\""
            },
            "repository": {
                "type": "git",
                "url": f"git+{REGISTRY}/{base}.git"
            },
            "homepage": f"{FILES}/{base}#readme",
            "bugs": {
                "url": f"{REGISTRY}/{base}/issues"
            },
            "keywords": ["a", "b"],
            "license": "MIT",
            "maintainers": [{
                "name": "x",
                "email": "x@registry.example"
            }],
            "_id": f"{name}@{version}",
            "_npmOperationalInternal": {
                "host": REGISTRY,
                "tmp": f"tmp/{base}.tgz"
            },
            "gitHead": "0" * 40,
            "_hasShrinkwrap": False,
        })
    return value


def dump(value, rng):
    """Compact, spaced or indented; with or without escapes for characters outside ASCII; with
    slashes escaped as PHP does."""
    style = rng.randrange(4)
    text = json.dumps(value, ensure_ascii=style == 1, separators=(",", ":") if style < 2 else None,
                      indent=1 if style == 3 else None)
    if style == 1:
        text = text.replace("/", "\\/")
    return text.encode()


def npm(size, seed=0, full=True):
    """A package of about `size` bytes."""
    rng = random.Random(seed)
    name = rng.choice(["left-pad", "@scope/left-pad"])
    document = {
        "_id": name,
        "_rev": "1-x",
        "name": name,
        "dist-tags": {
            "latest": "1.0.0"
        },
        "versions": {}
    }
    each = len(json.dumps(npm_version(rng, name, "1.0.0", full)))
    count = max(1, size * 9 // 10 // each)
    large = count > 2000  # its versions repeat each other, as those of large packages do
    if not large:
        document["versions"] = {
            f"1.{i}.0": npm_version(rng, name, f"1.{i}.0", full)
            for i in range(count)
        }
    if full:
        document.update({
            "time": {
                "created": "2020-01-01T00:00:00.000Z"
            },
            "readme": prose(rng, size // 10),
            "homepage": FILES + "/x",
            "repository": {
                "url": REGISTRY + "/x"
            },
            "readmeFilename": "README.md"
        })
    else:
        document["modified"] = "2020-01-01T00:00:00.000Z"
    if not large:
        return dump(document, rng)
    versions = [
        json.dumps(npm_version(rng, name, f"0.0.{i}", full), separators=(",", ":"))
        for i in range(500)
    ]
    members = ",".join(f'"1.{i}.0":{versions[i % 500]}' for i in range(count))
    before, _, behind = json.dumps(document, separators=(",", ":")).partition('"versions":{}')
    return f'{before}"versions":{{{members}}}{behind}'.encode()


def npm_abbreviated(size, seed=0):
    return npm(size, seed, full=False)


def npm_one_version(size, seed=0):
    rng = random.Random(seed)
    value = npm_version(rng, "left-pad", "1.0.0")
    value["readme"] = prose(rng, max(0, size - 2000))
    return dump(value, rng)


# --- Python ---------------------------------------------------------------------------------------

def pypi_file(rng, i):
    name = f"foo_bar-1.{i}.0-py3-none-any.whl" if i % 2 else f"foo-bar-1.{i}.0.tar.gz"
    return name, f"{hashlib.sha256(name.encode()).hexdigest()}"


def pypi_json(size, seed=0):
    rng = random.Random(seed)
    files = []
    for i in range(max(1, size // 420)):
        name, sha = pypi_file(rng, i)
        path = f"{sha[:2]}/{sha[2:4]}/{sha[4:]}/{name}"
        files.append({
            "filename": name,
            "url": rng.choice(
                [f"{pick_host(rng)}/{path}", f"../../packages/{path}", f"/packages/{path}"]),
            "hashes": {
                "sha256": sha
            },
            "requires-python": ">=3.8,<4",
            "core-metadata": {
                "sha256": sha
            },
            "size": 1000 + i,
            "upload-time": "2020-01-01T00:00:00.000000Z",
            "yanked": f"see {FILES}/advice" if i % 7 == 3 else False,
            "provenance": f"{REGISTRY}/integrity/{name}",
        })
    return dump(
        {
            "meta": {
                "api-version": "1.1",
                "tracks": [f"{REGISTRY}/simple/foo-bar/"]
            },
            "name": "foo-bar",
            "files": files,
            "versions": ["1.0"],
            "alternate-locations": [f"{FILES}/simple"]
        }, rng)


def attribute(rng, value):
    """An attribute value in one of the equivalent ways in which pages write it."""
    escaped = html.escape(value, quote=True)
    style = rng.randrange(6)
    if style == 1:
        escaped = escaped.replace("/", "&#x2F;")
    elif style == 2:
        escaped = escaped.replace(":", "&#58;", 1).replace("/", "&sol;", 2)
    elif style == 3 and " " not in value:
        return escaped
    return f"'{escaped}'" if style == 4 else f'"{escaped}"'


def pypi_html(size, seed=0):
    rng = random.Random(seed)
    lines = [
        "<!DOCTYPE html>", "<html>", "  <head>",
        '    <meta name="pypi:repository-version" content="1.1">',
        f'    <link rel="canonical" href="{FILES}/x">', "    <title>Links for foo-bar</title>",
        f"    <script>document.write('<a href=\"{FILES}/x\">');</script>", "  </head>", "  <body>",
        f"    <h1>Links for foo-bar</h1> <!-- <a href=\"{FILES}/x\">commented</a> -->"
    ]
    for i in range(max(1, size // 330)):
        name, sha = pypi_file(rng, i)
        path = f"{sha[:2]}/{sha[2:4]}/{sha[4:]}/{name}"
        link = rng.choice([
            f"{pick_host(rng)}/{path}#sha256={sha}", f"../../packages/{path}#sha256={sha}",
            f"/packages/{path}?a=1&b=2#sha256={sha}"
        ])
        tag, href = rng.choice([("a", "href"), ("a", "href"), ("A", "HREF")])
        lines.append(
            f'    <{tag} {href}={attribute(rng, link)} data-requires-python="&gt;=3.8" '
            f'data-dist-info-metadata="sha256={sha}" '
            f'data-x="{FILES}/{name}">{FILES}/{name}</{tag}><br />'
        )
    lines += [
        f'    <img src="{REGISTRY}/x.png"><a name="{FILES}">end</a>', "  </body>", "</html>",
        f"<!--SERIAL {seed}-->"
    ]
    return "\n".join(lines).encode()


# --- cargo and Git LFS ----------------------------------------------------------------------------

def cargo(size, seed=0):
    rng = random.Random(seed)
    return dump(
        {
            "dl": pick_host(rng) +
                  rng.choice(["/crates", "/crates/{crate}/{version}/download", ""]),
            "api": rng.choice([REGISTRY, FILES, ELSEWHERE]),
            "auth-required": False,
            "x": {
                "dl": FILES
            }
        }, rng)


def git_lfs(size, seed=0):
    rng = random.Random(seed)
    objects = []
    for i in range(max(1, size // 700)):
        oid = hashlib.sha256(str(i).encode()).hexdigest()
        action = {
            "href": f"{pick_host(rng)}/lfs/{oid}?X-Amz-Signature={oid}&X-Amz-Date=2020%2F01",
            "expires_in": 900,
            "header": {
                "Authorization": "RemoteAuth x",
                "href": FILES
            }
        }
        objects.append({
            "oid": oid,
            "size": i,
            "authenticated": True,
            "actions": {
                "upload": action,
                "verify": action
            } if i % 2 else {
                "download": action
            }
        })
    objects.append({
        "oid": "0",
        "size": 1,
        "error": {
            "code": 404,
            "message": f"not at {FILES}/x",
            "href": FILES
        }
    })
    return dump({
        "transfer": "basic",
        "objects": objects,
        "hash_algo": "sha256",
        "href": REGISTRY
    }, rng)


MAKERS = {
    "npm": npm,
    "npm-abbreviated": npm_abbreviated,
    "npm-version": npm_one_version,
    "pypi-json": pypi_json,
    "pypi-html": pypi_html,
    "cargo": cargo,
    "git-lfs": git_lfs
}

if __name__ == "__main__":
    sys.stdout.buffer.write(MAKERS[sys.argv[1]](int(sys.argv[2]),
                                                int(sys.argv[3]) if len(sys.argv) > 3 else 0))
