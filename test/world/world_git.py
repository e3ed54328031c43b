"""A server of git repositories: `git http-backend` (smart HTTP, also for pushes) and the LFS batch
API, whose answers link to another host. usage: world_git.py FOLDER PORT LFS-URL

FOLDER contains acme/app.git with one file in LFS. nginx in front of it sends every request with a
Content-Length."""
import gzip
import hashlib
import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import io
import urllib.parse

REPOSITORY = "acme/app.git"
LARGE = b"what git-lfs keeps\n" * 50000


def git(folder, *words, **environment):
    who = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "world"), ("EMAIL", "world@example.com"),
                            ("DATE", "2024-01-01T00:00:00Z"))
    }
    quiet = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    subprocess.run(["git", "-C", folder, *words],
                   check=True,
                   capture_output=True,
                   env={
                       **os.environ,
                       **who,
                       **quiet,
                       **environment
                   })


def build(folder, lfs, archive):
    """A bare repository; the name of its large file's object."""
    work, bare = folder / "work", folder / REPOSITORY
    work.mkdir(parents=True)
    oid = hashlib.sha256(LARGE).hexdigest()
    (work / "README").write_text("of the tests\n")
    (work / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (work / "large.bin").write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(LARGE)}\n")
    git(work, "init", "-q", "-b", "main")
    no_filter = [
        "-c", "filter.lfs.clean=cat", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false"
    ]
    git(work, *no_filter, "add", ".")
    git(work, *no_filter, "commit", "-q", "-m", "begin")
    bare.parent.mkdir()
    git(work, "clone", "-q", "--bare", ".", str(bare))
    git(bare, "config", "http.receivepack", "true")
    (lfs / "objects").mkdir()
    (lfs / "objects" / oid).write_bytes(LARGE)
    place = archive / "acme/app"
    place.mkdir(parents=True)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        entry = tarfile.TarInfo("app-1/README")
        entry.size = 13
        tar.addfile(entry, io.BytesIO(b"of the tests\n"))
    (place / "v1.tar.gz").write_bytes(gzip.compress(out.getvalue()))
    return oid


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        url = urllib.parse.urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if url.path.endswith("/info/lfs/objects/batch"):
            self.batch(json.loads(body))
        elif "/info/lfs/" in url.path:
            self.answer(404, [("Content-Type", "application/vnd.git-lfs+json")],
                        b'{"message":"no locks here"}')
        else:
            self.backend(url, body)

    do_GET = do_POST

    def batch(self, asked):
        objects = [{
            **item, "authenticated": True,
            "actions": {
                asked["operation"]: {
                    "href": f"{self.server.lfs_url}/objects/{item['oid']}?signature=a%2Fb",
                    "expires_in": 3600
                }
            }
        } for item in asked["objects"]]
        document = json.dumps({
            "transfer": "basic",
            "objects": objects
        }).replace("/", "\\/")  # as some servers escape it
        self.answer(200, [("Content-Type", "application/vnd.git-lfs+json")], document.encode())

    def backend(self, url, body):
        """The part of CGI/1.1 (RFC 3875) that git http-backend needs."""
        variables = {
            "GIT_PROJECT_ROOT": str(self.server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": urllib.parse.unquote(self.with_suffix(url.path)),
            "QUERY_STRING": url.query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "REMOTE_USER": "world",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*"
        }
        done = subprocess.run(["git", "http-backend"],
                              input=body,
                              capture_output=True,
                              env={
                                  **os.environ,
                                  **variables
                              })
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        fields = [
            tuple(line.split(": ", 1)) for line in head.decode().split("\r\n") if ": " in line
        ]
        status = next((int(value.split()[0]) for name, value in fields if name == "Status"),
                      200 if head else 500)
        self.answer(status, [field for field in fields if field[0] != "Status"], rest)

    @staticmethod
    def with_suffix(path):
        """Common git servers accept names without .git too."""
        words = path.split("/")
        if len(words) > 2 and not words[2].endswith(".git"):
            words[2] += ".git"
        return "/".join(words)

    def answer(self, status, fields, body):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main():
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
    server.folder, server.lfs_url = pathlib.Path(sys.argv[1]), sys.argv[3]
    server.serve_forever()


if __name__ == "__main__":
    main()
