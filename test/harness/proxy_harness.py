"""Real proxies for the broker's tests: squid and microsocks, each on its own port, and the servers
behind them.

The broker never uses a proxy for upstreams on loopback, so tests address theirs by OUTSIDE: this
machine's own name or address, which is not recognised as loopback unless it is resolved."""
import contextlib
import functools
import http.server
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import pytest

from broker_harness import PATIENCE, TOP, Authority

sys.path.insert(0, str(TOP / "test/world"))
from ports import free_port  # noqa: E402


def need(program):
    path = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin")
    if not path:
        pytest.skip(f"{program} is not installed")
    return path


@functools.cache
def outside():
    """A name for this machine and the address it resolves to."""
    for name in (socket.gethostname(), "ip6-localhost"):
        with contextlib.suppress(OSError):
            if name != "localhost":
                address = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0]
                socket.create_server(
                    (address, 0),
                    family=socket.AF_INET6 if ":" in address else socket.AF_INET).close()
                return name, address
    pytest.skip("this machine has no name but localhost")
    raise AssertionError


def wait_port(process, port, address="127.0.0.1", log=None):
    end = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(OSError):
            socket.create_connection((address, port), 1).close()
            return
        assert time.monotonic() < end and process.poll() is None, log.read_text(
        ) if log and log.exists() else "no answer"
        time.sleep(0.05)


def stop_process(process, number=signal.SIGTERM):
    if process.poll() is None:
        process.send_signal(number)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


class OutsideAuthority(Authority):
    """A separate authority; its server certificate is for the outside name, localhost and
    127.0.0.1."""

    def __init__(self, folder):
        super().__init__(folder)
        name, _ = outside()
        subprocess.run([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-days", "2", "-CA", self.ca, "-CAkey", self.ca_key, "-subj", "/CN=outside",
            "-addext", f"subjectAltName=DNS:{name},DNS:localhost,IP:127.0.0.1", "-keyout", self.key,
            "-out", self.certificate
        ],
                       check=True,
                       capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.certificate, self.key)


class OutsideNginx:
    """nginx by https and http on the outside name; its answers repeat the request."""

    def __init__(self, folder, certificates):
        name, address = outside()
        self.tls_port, self.plain_port = free_port(address), free_port(address)
        self.secure = f"https://{name}:{self.tls_port}"
        self.plain = f"http://{name}:{self.plain_port}"
        host = f"[{address}]" if ":" in address else address
        where = """default_type text/plain;
            location / {
                set $seen "$request_method $request_uri|$http_proxy_authorization";
                return 200 "$seen|$http_x_mark|$http_via"; }
            location = /401 { return 401; } location = /407 { return 407; }
            location /up { client_body_buffer_size 64m;
                proxy_pass http://unix:%s/echo.sock; }""" % folder
        (folder / "nginx.conf").write_text(f"""
            daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
                user root;
            events {{ worker_connections 256; }}
            http {{
                access_log off; client_max_body_size 64m; client_body_temp_path {folder}/body;
                    proxy_temp_path {folder}/t1;
                fastcgi_temp_path {folder}/t2; uwsgi_temp_path {folder}/t3;
                    scgi_temp_path {folder}/t4;
                server {{ listen unix:{folder}/echo.sock;
                    location / {{ return 200 "$content_length"; }} }}
                server {{ listen {host}:{self.tls_port} ssl;
                    ssl_certificate {certificates.certificate};
                          ssl_certificate_key {certificates.key}; {where} }}
                server {{ listen {host}:{self.plain_port}; {where} }}
            }}""")
        self.process = subprocess.Popen([need("nginx"), "-c", folder / "nginx.conf", "-p", folder],
                                        stderr=subprocess.DEVNULL)
        wait_port(self.process, self.tls_port, address, folder / "error.log")

    def stop(self):
        stop_process(self.process)


class Squid:
    """One squid with a port for each way to log in: none, Basic, Digest, and TLS without a
    login."""

    USER, PASSWORD = "corp user", "s3cret/@word"

    def __init__(self, certificates, basic=False, digest=False, options=""):
        folder = pathlib.Path(tempfile.mkdtemp(
            prefix="codev-squid-"))  # not below a test's folder, which only root may enter
        self.folder, self.port, self.tls_port = folder, free_port(), free_port()
        hashed = subprocess.run(["openssl", "passwd", "-apr1", self.PASSWORD],
                                check=True,
                                capture_output=True,
                                text=True)
        (folder / "basic").write_text(f"{self.USER}:{hashed.stdout.strip()}\n")
        (folder / "digest").write_text(f"{self.USER}:{self.PASSWORD}\n")
        (folder / "tls.pem").write_bytes(certificates.key.read_bytes() +
                                         certificates.certificate.read_bytes())
        helpers = pathlib.Path("/usr/lib/squid")
        lines = [
            f"http_port 127.0.0.1:{self.port}",
            f"https_port 127.0.0.1:{self.tls_port} tls-cert={folder}/tls.pem"
        ]
        if basic:
            lines += [
                f"auth_param basic program {helpers}/basic_ncsa_auth {folder}/basic",
                "auth_param basic realm test", "auth_param basic children 1"
            ]
        if digest:
            lines += [
                f"auth_param digest program {helpers}/digest_file_auth {folder}/digest",
                "auth_param digest realm test", "auth_param digest children 1"
            ]
        if basic or digest:
            lines += [
                "acl users proxy_auth REQUIRED", "http_access allow users", "http_access deny all"
            ]
        lines += [
            options, "http_access allow all", f"cache_log {folder}/cache.log",
            "logformat own %rm %ru %>Hs %un", f"access_log stdio:{folder}/access.log own",
            "pid_filename none", "cache deny all", "shutdown_lifetime 0 seconds",
            "pinger_enable off", "netdb_filename none", "logfile_rotate 0",
            f"coredump_dir {folder}", "via on", "visible_hostname squid.test",
            "dns_nameservers 127.0.0.1", "cache_mem 4 MB", "max_filedescriptors 1024"
        ]
        (folder / "squid.conf").write_text("\n".join(lines) + "\n")
        if os.getuid() == 0:  # squid drops root and then reads and writes as its own user
            shutil.chown(folder, "proxy")
            for name in os.listdir(folder):
                shutil.chown(folder / name, "proxy")
        # unique: it names squid's shared memory
        self.process = subprocess.Popen([
            need("squid"), "-N", "-n", f"codev{os.getpid()}x{self.port}", "-f",
            folder / "squid.conf"
        ],
                                        stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        for port in (self.port, self.tls_port):
            wait_port(self.process, port, log=folder / "cache.log")

    def url(self, user=None, scheme="http"):
        port = self.tls_port if scheme == "https" else self.port
        return f"{scheme}://{user + '@' if user else ''}localhost:{port}"

    def log(self):
        """[(method, target, status, user)]. A request may be logged shortly after its answer, and a
        tunnel is logged when it ends."""
        file = self.folder / "access.log"
        whole = file.read_text().rpartition("\n")[0] if file.exists() else ""
        return [tuple(line.split(" ", 3)) for line in whole.splitlines()]

    def wait_logged(self, wanted):
        """Waits for a line of the log for which wanted(method, target, status, user) is true."""
        end = time.monotonic() + PATIENCE
        while not any(wanted(*line) for line in self.log()):
            assert time.monotonic() < end, self.log()
            time.sleep(0.05)

    def stop(self):
        stop_process(self.process)
        shutil.rmtree(self.folder)


class Socks:
    """microsocks, with a user and password when they are given."""

    def __init__(self, user=None, password=None):
        self.port = free_port()
        login = ["-u", user, "-P", password] if user else []
        self.process = subprocess.Popen(
            [need("microsocks"), "-i", "127.0.0.1", "-p",
             str(self.port), *login],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE)
        wait_port(self.process, self.port)

    def stop(self):
        """Its log, which lists its connections."""
        stop_process(self.process)
        return self.process.stderr.read().decode(errors="replace")


class ScriptServer:
    """Serves one PAC script, or answers by `answer(handler)`."""

    def __init__(self, script=None, answer=None, context=None):
        rig = self
        self.script, self.answer, self.asked = script, answer, 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                rig.asked += 1
                with contextlib.suppress(OSError):
                    if rig.answer:
                        rig.answer(self)
                        return
                    self.send_response(200)
                    self.send_header("Content-Type", "application/x-ns-proxy-autoconfig")
                    self.send_header("Content-Length", str(len(rig.script)))
                    self.end_headers()
                    self.wfile.write(rig.script.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"http{'s' if context else ''}://localhost:{self.server.server_port}/proxy.pac"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def pac(result):
    """A script that returns this text."""
    return f'function FindProxyForURL(url, host) {{ return "{result}"; }}\n'
