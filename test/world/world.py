"""The upstreams of the tests: the registries, indexes and repositories that package managers use,
on loopback.

    with World(folder) as world:
        world.rules        the rules for sandbox-egress.json, with companions world.authority    the
        CA that signed every certificate

One nginx with TLS serves all of them by name; every name ends in .localhost, which the broker's
libcurl resolves to loopback by itself, so that neither a resolver nor /etc/hosts is needed. Behind
nginx are real programs where they exist, verdaccio and `git http-backend`; the rest are files in
the layout that each ecosystem documents. As with the real registries, the files that an index or a
document names are on a second host:

    npm        documents                npm-files        tarballs (verdaccio, with its public URL
               there)
    pypi       PEP 503 and PEP 691      pypi-files       wheels, sdists, PEP 658 metadata
    crates     sparse index             crates-files     .crate files (config.json's `dl`)
    goproxy    GOPROXY protocol         sumdb            checksum database, signed
    github     git smart HTTP, LFS      github-lfs       LFS objects; github-archive: source
               archives (by redirect)
    debian     signed apt repository    debian-security  the same for security updates

The upstream of a rule NAME is always https://NAME.localhost:PORT. verdaccio comes from the npm
registry by the lock file in registry/; clients/ lists package managers for the guest. Both are
installed once into the cache folder."""
import contextlib
import functools
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import world_cargo
import world_debian
import world_git
import world_go
import world_npm
import world_python
from npm_modules import modules
from ports import free_port

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE = 60  # seconds to wait for an event; not a limit on speed
COMPANIONS = {
    "npm": ["npm-files"],
    "pypi": ["pypi-files"],
    "crates": ["crates-files"],
    "goproxy": ["sumdb"],
    "github": ["github-lfs", "github-archive"],
    "debian": ["debian-security"]
}
NAMES = [*COMPANIONS, *sum(COMPANIONS.values(), [])]


def need(program):
    path = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/usr/lib/git-core")
    if not path:
        raise FileNotFoundError(f"{program} is not installed: see rootfs/packages")
    return path


class Authority:
    """A certificate authority, and one certificate for every name."""

    def __init__(self, folder):
        folder.mkdir()
        self.ca, self.key = folder / "ca.pem", folder / "world.key"
        self.certificate = folder / "world.pem"
        run = functools.partial(subprocess.run, check=True, capture_output=True)
        new = [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-days", "2"
        ]
        run(new + ["-subj", "/CN=world authority", "-keyout", folder / "ca.key", "-out", self.ca])
        names = ",".join(f"DNS:{name}.localhost" for name in NAMES)
        run(new + [
            "-CA", self.ca, "-CAkey", folder / "ca.key", "-subj", "/CN=world", "-addext",
            f"subjectAltName={names}", "-keyout", self.key, "-out", self.certificate
        ])


class World:
    def __init__(self, folder, suite="bookworm", names=NAMES):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.www = self.folder / "www"
        self.port, self.npm_port, self.git_port = free_port(), free_port(), free_port()
        self.authority = Authority(self.folder / "tls")
        self.rules = {name: self.url(name) for name in NAMES}
        self.processes = []
        files = {name: self.www / name for name in NAMES}
        for path in files.values():
            path.mkdir(parents=True)
        self.debian_key = self.folder / "archive-key.gpg"
        world_python.build(files["pypi"], files["pypi-files"], self.url("pypi-files"))
        world_cargo.build(files["crates"], files["crates-files"], self.url("crates-files"))
        self.sumdb_key = world_go.build(files["goproxy"], files["sumdb"], self.folder)
        world_debian.build(files["debian"], files["debian-security"], suite, self.folder,
                           self.debian_key)
        self.lfs_oid = world_git.build(self.folder / "git", files["github-lfs"],
                                       files["github-archive"])

    def url(self, name):
        return f"https://{name}.localhost:{self.port}"

    def start(self, command, **popen):
        log = open(self.folder / f"{pathlib.Path(str(command[0])).name}-{len(self.processes)}.log",
                   "wb")
        with log:
            self.processes.append(
                subprocess.Popen([str(word) for word in command],
                                 stdin=subprocess.DEVNULL,
                                 stdout=log,
                                 stderr=log,
                                 **popen))

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def _start(self):
        world_npm.write_configuration(self.folder / "npm")
        self.start([
            "node",
            modules(HERE / "registry") / "node_modules/.bin/verdaccio", "-c", "config.yaml", "-l",
            f"127.0.0.1:{self.npm_port}"
        ],
                   cwd=self.folder / "npm",
                   env={
                       **os.environ, "VERDACCIO_PUBLIC_URL": self.url("npm-files") + "/"
                   })
        self.start([
            sys.executable, HERE / "world_git.py", self.folder / "git", self.git_port,
            self.url("github-lfs")
        ])
        (self.folder / "nginx.conf").write_text(self._nginx_configuration())
        self.start([need("nginx"), "-c", self.folder / "nginx.conf", "-p", self.folder])
        for port in (self.npm_port, self.git_port, self.port):
            self._wait_for(port)
        self.npm_packages = world_npm.publish(self.npm_port, modules(HERE / "clients"))

    def _wait_for(self, port):
        end = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                return
            dead = [process.args for process in self.processes if process.poll() is not None]
            assert not dead and time.monotonic() < end, (dead, self.logs())
            time.sleep(0.02)

    def logs(self):
        return "".join(f"== {path.name}\n{path.read_text(errors='replace')[-2000:]}"
                       for path in self.folder.glob("*.log"))

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _nginx_configuration(self):
        folder = self.folder
        servers = "".join(self._server(name) for name in NAMES)
        return f"""
            daemon off; worker_processes 1; pid {folder}/nginx.pid;
                error_log {folder}/nginx-error.log; user root;
            events {{ worker_connections 512; }}
            http {{
                include /etc/nginx/mime.types;
                log_format json escape=json '{{"host":"$host","method":"$request_method","uri":"$request_uri","status":$status}}';
                access_log {folder}/access.json json;
                client_max_body_size 0; client_body_temp_path {folder}/t0;
                    proxy_temp_path {folder}/t1;
                fastcgi_temp_path {folder}/t2; uwsgi_temp_path {folder}/t3;
                    scgi_temp_path {folder}/t4;
                ssl_certificate {self.authority.certificate};
                    ssl_certificate_key {self.authority.key};
                map $http_accept $pypi_index {{
                    default index.html; "~application/vnd\\.pypi\\.simple\\.v1\\+json" index.json;
                }}
                {servers}
            }}"""

    def _server(self, name):
        kinds = {
            "npm": self._npm,
            "npm-files": self._npm,
            "pypi": self._pypi,
            "github": self._github
        }
        listen = f"listen 127.0.0.1:{self.port} ssl;"
        if socket.has_ipv6 and os.path.exists("/proc/net/if_inet6"):
            listen += f" listen [::1]:{self.port} ssl;"
        places = kinds[name]() if name in kinds else "default_type application/octet-stream;"
        return (f"server {{ {listen} server_name {name}.localhost; root {self.www / name}; "
                f"{places} }}\n")

    def _npm(self):
        return f"""location / {{ proxy_pass http://127.0.0.1:{self.npm_port};
            proxy_http_version 1.1;
                   proxy_set_header Host $http_host; proxy_set_header X-Forwarded-Proto https; }}"""

    def _pypi(self):
        """A project that stands in index.json too is served as PEP 691 to who asks for it."""
        return """location ~ ^/simple/[^/]+/$ { types { application/vnd.pypi.simple.v1+json json;
            text/html html; }
                  try_files $uri$pypi_index $uri/index.html =404; add_header Vary Accept; }"""

    def _github(self):
        return f"""location ~ ^/(.+)/archive/(.+)$
            {{ return 302 {self.url('github-archive')}/$1/$2; }}
                   location / {{ proxy_pass http://127.0.0.1:{self.git_port};
                       proxy_http_version 1.1;
                   proxy_set_header Host $http_host; proxy_request_buffering on; }}"""

    def requests(self):
        """The requests that nginx got: host, method, uri, status."""
        return [json.loads(line) for line in (self.folder / "access.json").read_text().splitlines()]


def main():
    """usage: world.py FOLDER: runs until standard input ends; prints the rules and the CA."""
    with World(sys.argv[1]) as world:
        print(json.dumps({"rules": world.rules, "ca": str(world.authority.ca)}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
