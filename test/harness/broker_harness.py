"""A real codev-broker between raw clients and raw upstreams that the test provides.

Upstreams use TLS with a certificate authority made for the run. The test passes the function that
handles a connection. Clients are plain sockets, so a test controls and sees every byte."""
import contextlib
import functools
import json
import os
import pathlib
import platform
import queue
import select
import signal
import socket
import ssl
import stat
import subprocess
import tempfile
import threading
import time

import pytest

import procfs

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("CODEV_BIN",
                                  TOP / os.environ.get("CODEV_BUILD", "build") / "bin"))
BROKER = os.environ.get("CODEV_BROKER", str(BIN / "codev-broker"))
SANITIZED = bool(os.environ.get("CODEV_SAN"))
PATIENCE = 60  # seconds to wait for an event; not a limit on speed
SECRET = "sk-real-gateway-secret-0123456789"
SECRET_FIELDS = {"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"}
guests_secrets = set()  # values that clients have sent in these fields: no broker may log one


# --- certificates ---------------------------------------------------------------------------------

class Authority:
    """A certificate authority, and one server certificate for 127.0.0.1 and localhost."""

    def __init__(self, folder):
        self.ca, self.ca_key = folder / "ca.pem", folder / "ca.key"
        self.certificate, self.key = folder / "server.pem", folder / "server.key"
        new = [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-days", "2"
        ]
        run = functools.partial(subprocess.run, check=True, capture_output=True)
        run(new + ["-subj", "/CN=test authority", "-keyout", self.ca_key, "-out", self.ca])
        run(new + [
            "-CA", self.ca, "-CAkey", self.ca_key, "-subj", "/CN=localhost", "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", self.key, "-out",
            self.certificate
        ])
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.certificate, self.key)


@functools.cache
def authority():
    authority.folder = tempfile.TemporaryDirectory()  # kept until the process ends
    return Authority(pathlib.Path(authority.folder.name))


@functools.cache
def other_authority():
    other_authority.folder = tempfile.TemporaryDirectory()
    return Authority(pathlib.Path(other_authority.folder.name))


# --- upstreams ------------------------------------------------------------------------------------

class Peer:
    """The upstream side of one connection."""

    def __init__(self, connection):
        self.connection = connection
        self.pending = b""

    def read_head(self):
        """Reads a request head with its empty line; b'' when the broker closes the connection."""
        while b"\r\n\r\n" not in self.pending:
            data = self.connection.recv(65536)
            if not data:
                return b""
            self.pending += data
        head, _, self.pending = self.pending.partition(b"\r\n\r\n")
        return head + b"\r\n\r\n"

    def read(self, length):
        while len(self.pending) < length:
            data = self.connection.recv(65536)
            if not data:
                raise EOFError(f"closed after {len(self.pending)} of {length} bytes")
            self.pending += data
        data, self.pending = self.pending[:length], self.pending[length:]
        return data

    def read_until(self, end):
        while end not in self.pending:
            data = self.connection.recv(65536)
            if not data:
                raise EOFError("closed")
            self.pending += data
        data, _, self.pending = self.pending.partition(end)
        return data + end

    def read_chunks(self):
        """Yields the chunks of a body."""
        while True:
            size = int(self.read_until(b"\r\n"), 16)
            data = self.read(size)
            assert self.read(2) == b"\r\n"
            if size == 0:
                return
            yield data

    def send(self, data):
        self.connection.sendall(data)

    def answer(self, body=b"ok", status="200 OK", fields=()):
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def wait_closed(self, seconds=PATIENCE):
        """True when the broker closes within this time; what it sends before is ignored."""
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                self.connection.settimeout(max(0.01, end - time.monotonic()))
                if not self.connection.recv(65536):
                    return True
        except TimeoutError:
            return False
        except OSError:
            return True
        return False

    def reset(self):
        """Ends the connection without TLS's close_notify."""
        raw = socket.socket(fileno=self.connection.detach())
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        raw.close()


class Upstream:
    """Serves each connection with `handler(peer)` in a thread. An exception in a handler fails the
    test at stop()."""

    def __init__(self, handler, tls=True, certificates=None):
        self.handler, self.faults, self.accepted = handler, [], 0
        self.context = (certificates or authority()).context if tls else None
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.connections = []
        self.acceptor = threading.Thread(target=self._accept, daemon=True)
        self.acceptor.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.accepted += 1
                self.connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if self.context:
                try:
                    connection = self.context.wrap_socket(connection,
                                                          server_side=True,
                                                          suppress_ragged_eofs=True)
                except OSError:
                    return  # a client that does not trust this certificate
                self.connections.append(connection)
            self.handler(Peer(connection))
        except (OSError, EOFError):
            pass  # the broker closed: tests check that where it matters
        except BaseException as fault:  # an assertion of the test: stop() raises it
            self.faults.append(fault)
        finally:
            with contextlib.suppress(OSError):
                if self.context and connection.fileno() >= 0:
                    connection.settimeout(1)
                    connection.unwrap()
            connection.close()

    def stop(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(
                socket.SHUT_RDWR)  # ends accept() before the descriptor's number is reused
        self.acceptor.join(PATIENCE)
        self.listener.close()
        faults = list(
            self.faults)  # errors of handlers whose connection is closed here do not count
        for connection in self.connections:
            with contextlib.suppress(
                    OSError):  # each thread closes its own descriptor, as it may be in a call on it
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
        if faults:
            raise faults[0]

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        with contextlib.suppress(BaseException) if kind else contextlib.nullcontext():
            self.stop()


def serve_with(answer):
    """A handler that calls `answer(peer, head)` for each request (after a body with Content-Length
    was read) until the broker closes the connection."""
    def handler(peer):
        while head := peer.read_head():
            answer(peer, head)
    return handler


def echo(peer, head):
    """Answers with the request itself: its head, and its body whichever way it was framed."""
    if b"100-continue" in head:
        peer.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    fields = fields_of(head)
    if fields.get("transfer-encoding") == "chunked":
        body = b"".join(peer.read_chunks())
    else:
        body = peer.read(int(fields.get("content-length", 0)))
    method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
    pairs = [[name, value] for name, value in field_list(head)]
    peer.answer(json.dumps({
        "method": method,
        "target": target,
        "fields": pairs,
        "length": len(body),
        "body": body[:200].decode("latin-1")
    }).encode(),
                fields=["Content-Type: application/json"])


def field_list(head):
    """[(name, value)] of a head; names keep their case."""
    lines = head.decode("latin-1").split("\r\n")[1:]
    return [(name, value.strip())
            for name, _, value in (line.partition(":") for line in lines if line)]


def fields_of(head):
    return {name.lower(): value for name, value in field_list(head)}


# --- clients --------------------------------------------------------------------------------------

class Response:
    """An answer as a client reads it. `complete` is false when it ended earlier than its framing
    says."""

    def __init__(self, client, head_request=False):
        head = client.read_until(b"\r\n\r\n")
        self.head = head
        self.version, self.status = head[:8].decode(), int(head[9:12])
        self.fields = fields_of(head)
        self.names = [name for name, _ in field_list(head)]
        self.body, self.complete, self.pieces = b"", True, []
        if self.status >= 200 and self.status not in (204, 304) and not head_request:
            self._read_body(client)

    def _read_body(self, client):
        try:
            for piece in self._pieces(client):
                self.pieces.append(piece)
                self.body += piece
        except (EOFError, ConnectionError):
            self.complete = False

    def _pieces(self, client):
        if self.fields.get("transfer-encoding") == "chunked":
            yield from client.read_chunks()
        elif "content-length" in self.fields:
            left = int(self.fields["content-length"])
            while left:
                piece = client.read_some(left)
                left -= len(piece)
                yield piece
        else:
            while True:
                try:
                    yield client.read_some(65536)
                except EOFError:
                    return

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """The error type in an answer that the broker made itself."""
        value = self.json
        assert value["type"] == "error", value
        return value["error"]["type"]


class Client:
    """A connection to the broker that has sent the preface, or the one that the test passes."""

    def __init__(self, path, preface):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self._connect(str(path))
        self.pending = b""
        if preface:
            self.socket.sendall(preface)

    def _connect(self, path):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.socket.connect(path)
                return
            # the backlog is full: on a Unix socket an error at once, in spite of the time-out
            except BlockingIOError:
                assert time.monotonic() < end, "it accepts no connection"
                time.sleep(0.01)

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())

    def request(self, target, method="GET", fields=(), body=None, read=True):
        lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1:8788", *fields]
        said = (field.partition(":") for field in fields)
        guests_secrets.update(value.strip() for name, _, value in said
                              if name.lower() in SECRET_FIELDS and len(value) > 8)
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b""))
        return Response(self, method == "HEAD") if read else None

    def read_some(self, limit=65536):
        if not self.pending:
            data = self.socket.recv(limit)
            if not data:
                raise EOFError("closed")
            return data
        data, self.pending = self.pending[:limit], self.pending[limit:]
        return data

    def read(self, length):
        data = b""
        while len(data) < length:
            data += self.read_some(length - len(data))
        return data

    def read_until(self, end):
        while end not in self.pending:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError(f"closed behind {self.pending!r}")
            self.pending += data
        data, _, self.pending = self.pending.partition(end)
        return data + end

    def read_chunks(self):
        while True:
            size = int(self.read_until(b"\r\n"), 16)
            if size == 0:
                assert self.read(2) == b"\r\n"
                return
            data = self.read(size)
            assert self.read(2) == b"\r\n"
            yield data

    def read_all(self):
        """Everything until the broker closes."""
        data = self.pending
        self.pending = b""
        with contextlib.suppress(ConnectionError):
            while piece := self.socket.recv(65536):
                data += piece
        return data

    def response(self, head_request=False):
        return Response(self, head_request)

    def is_closed(self, seconds=PATIENCE):
        """True when the broker closes within this time and sends nothing more."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(1) == b""
        except TimeoutError:
            return False
        except ConnectionError:
            return True
        finally:
            self.socket.settimeout(PATIENCE)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# --- the broker -----------------------------------------------------------------------------------

def broker_environment():
    """The environment without the caller's proxy and certificate settings."""
    dropped = {
        "http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir",
        "node_extra_ca_certs"
    }
    return {name: value for name, value in os.environ.items() if name.lower() not in dropped}


class Broker:
    """A running broker in a new folder. `rules` is a dict; `options` are further arguments."""

    def __init__(self,
                 folder,
                 gateway="https://127.0.0.1:1",
                 rules=None,
                 options=(),
                 token=SECRET,
                 environment=None,
                 log=True,
                 ca=True,
                 stdin=subprocess.PIPE):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
        self.folder.chmod(0o700)
        self.socket = self.folder / "b.sock"
        self.token_file = self.folder / "token"
        self.token_file.write_text(token + "\n")
        self.log_file = self.folder / "log"
        command = [
            BROKER, "--listen", f"unix:{self.socket}", "--gateway-url", gateway,
            "--gateway-token-file",
            str(self.token_file), *options
        ]
        if ca:
            command += ["--ca-file", str(authority().ca)]
        if rules is not None:
            (self.folder / "rules.json").write_text(json.dumps(rules))
            command += ["--rules", str(self.folder / "rules.json")]
        if log:
            command += ["--log", str(self.log_file)]
        self.stderr = open(self.folder / "stderr", "w+b")
        self.process = subprocess.Popen(command,
                                        stdin=stdin,
                                        stdout=subprocess.PIPE,
                                        stderr=self.stderr,
                                        env={
                                            **broker_environment(),
                                            **(environment or {})
                                        })
        self.events, self.told = queue.Queue(), []
        line = self.process.stdout.readline()
        if not line:
            self.process.wait(PATIENCE)
            raise AssertionError(f"no ready line: {self.errors()}")
        self.ready = json.loads(line)
        self.token = self.ready["token"]
        self.preface = f"CODEV/1 {self.token}\r\n".encode()
        threading.Thread(target=self._read_events, daemon=True).start()

    def _read_events(self):
        with contextlib.suppress(ValueError):
            for line in self.process.stdout:
                self.told.append(line.decode())
                self.events.put(json.loads(line))

    def errors(self):
        return (self.folder / "stderr").read_text(errors="replace")

    def client(self, preface=None):
        return Client(self.socket, self.preface if preface is None else preface)

    def get(self, target, **options):
        with self.client() as client:
            return client.request(target, **options)

    def wait_event(self, name):
        end = time.monotonic() + PATIENCE
        while True:
            event = self.events.get(timeout=max(0.1, end - time.monotonic()))
            if event["event"] == name:
                return event

    def log_lines(self, count=None, **match):
        """Waits until `count` lines of the log match; the log."""
        end = time.monotonic() + PATIENCE
        while True:
            text = ""
            with contextlib.suppress(FileNotFoundError):  # not made yet, or moved away
                text = self.log_file.read_text().rpartition("\n")[
                    0]  # the last line may be incomplete
            lines = [json.loads(line) for line in text.splitlines()]
            lines = [
                line for line in lines if all(
                    line.get(key) == value for key, value in match.items())
            ]
            if count is None or len(lines) >= count:
                return lines
            assert time.monotonic() < end, f"only {lines}"
            time.sleep(0.02)

    def descriptors(self):
        if os.geteuid() != 0 and not SANITIZED:
            pytest.skip("only root may look into a process that is not dumpable")
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def rss_kib(self):
        return int(procfs.status(self.process.pid, "VmRSS").split()[0])

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        if self.process.poll() is None and self.process.stdin:
            self.process.stdin.close()
        elif self.process.poll() is None:
            self.process.terminate()
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.stderr.close()
        assert status == 0, f"exit status {status}: {self.errors()}"
        assert not self.socket.exists(), "its socket is left behind"
        self.assert_no_secret_written()

    def assert_no_secret_written(self):
        """Searches all that this broker wrote (logs, standard error, events except the ready line)
        for secrets, in every test."""
        secrets = {SECRET, self.token, *guests_secrets}
        files = [
            path for path in self.folder.iterdir()
            if path.name not in ("token", "rules.json") and path.is_file()
        ]
        for name, text in [("events", "".join(self.told))
                           ] + [(path.name, path.read_text(errors="replace")) for path in files]:
            found = [secret for secret in secrets if secret in text]
            assert not found, f"{found} in the broker's {name}"

    def kill(self):
        """Ends the broker after a failed test without checking how it ends."""
        self.process.kill()
        self.process.wait()
        self.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            print(self.errors())
            self.kill()
        else:
            self.stop()


def run_broker(*arguments, environment=None, timeout=PATIENCE):
    """A broker that is expected to exit by itself."""
    return subprocess.run([BROKER, *map(str, arguments)],
                          stdin=subprocess.DEVNULL,
                          capture_output=True,
                          text=True,
                          timeout=timeout,
                          env={
                              **broker_environment(),
                              **(environment or {})
                          })


class Relay:
    """For HTTP clients: listens on 127.0.0.1 in front of the broker and sends the preface, as the
    relay does."""

    def __init__(self, broker):
        self.broker = broker
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.acceptor = threading.Thread(target=self._accept, daemon=True)
        self.acceptor.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._join, args=(client,), daemon=True).start()

    def _join(self, client):
        with contextlib.suppress(OSError), client, self.broker.client().socket as upper:
            upper.settimeout(None)
            other = {client: upper, upper: client}
            while True:
                for readable in select.select([client, upper], [], [])[0]:
                    data = readable.recv(65536)
                    if not data:
                        raise OSError("one side left")
                    other[readable].sendall(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """The kernel restarts an interrupted accept(2) with the same descriptor number, which the
        next object of this class may have by then."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.acceptor.join(PATIENCE)
        self.listener.close()
