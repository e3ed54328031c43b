#!/usr/bin/python3
"""A model gateway to talk to without a model: what the tour and the tests put behind the broker.

It is an https server on 127.0.0.1 with a certificate authority of its own, made by openssl in the
folder named by --dir. Every request must carry the real token, once, as `Authorization: Bearer` or
as `x-api-key`; anything else is answered 401. It answers:

    GET  /v1/models              a list of models
    POST /v1/messages            server-sent events in the shape of Anthropic's streaming (GET too)
    POST /v1/chat/completions    chunks in the shape of OpenAI's streaming
                                 both call the first of the request's `tools`, if it has any, with
                                 {"command": --tool-command}, and say what the tool answered
    POST /echo                   {"method","path","length","sha256","headers":[[name,value],...]}
    GET  /bytes?n=N              N bytes that are the same each time; /hash?n=N tells their SHA-256
    POST /upload                 {"length","sha256"} of what came
    GET  /stats                  {"requests","streams_finished","streams_cancelled","uploads_broken",...}
    GET  /redirect?to=URL        302

With --rule-port (0: any free one) a second server stands for a named rule: a registry with one npm
package. It demands no token, and tells at /headers which headers it saw. With --rule-plain it
speaks http.

It prints one line of JSON when it listens and ends when its standard input does, or on SIGTERM:

    {"event":"ready","url":"https://127.0.0.1:40001","port":40001,"ca":"DIR/ca.pem",
     "rule_url":"https://127.0.0.1:40002","rule_port":40002}
"""

import argparse
import base64
import hashlib
import hmac
import http.server
import io
import json
import os
import random
import select
import signal
import socketserver
import ssl
import subprocess
import sys
import tarfile
import threading
import time
import urllib.parse

JSON_MAX = 1024 * 1024  # a longer body is counted and hashed, not looked into
BLOCK = random.Random("codev").randbytes(64 * 1024)
PACKAGE = "codev-demo"
WORDS = ("A sandbox is a small room with one door. The door is watched, the room is bare, "
         "and whoever works inside keeps both hands free.").split()


def pattern(length):
    """The deterministic bytes of /bytes, piece by piece."""
    while length > 0:
        piece = BLOCK[:min(length, len(BLOCK))]
        yield piece
        length -= len(piece)


def pattern_hash(length):
    digest = hashlib.sha256()
    for piece in pattern(length):
        digest.update(piece)
    return digest.hexdigest()


def make_certificates(folder):
    """A certificate authority and a server certificate for 127.0.0.1; kept when already there."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = lambda name: os.path.join(folder, name)
    if os.path.exists(path("server.pem")):
        return path("ca.pem"), path("server.pem"), path("server.key")
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
           "-nodes", "-days", "30"]
    run = lambda command: subprocess.run(command, check=True, capture_output=True)
    run(new +
        ["-subj", "/CN=codev demo authority", "-keyout",
         path("ca.key"), "-out",
         path("ca.pem")])
    run(new + ["-CA", path("ca.pem"), "-CAkey", path("ca.key"), "-subj", "/CN=localhost",
               "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1",
               "-addext", "basicConstraints=critical,CA:FALSE",
               "-keyout", path("server.key"), "-out", path("server.pem")])
    return path("ca.pem"), path("server.pem"), path("server.key")


def make_package():
    """The bytes of the one package of the demo registry."""
    out = io.BytesIO()
    files = {
        "package/package.json": json.dumps({
            "name": PACKAGE,
            "version": "1.0.0",
            "main": "index.js"
        }),
        "package/index.js": "module.exports = 'fetched through a named rule';\n"
    }
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


class Stats:
    """Counters that the handlers' threads share."""

    def __init__(self):
        self.lock = threading.Lock()
        self.values = dict.fromkeys(("requests", "refused", "connections", "streams_started",
                                     "streams_finished", "streams_cancelled", "uploads_broken"), 0)

    def count(self, name):
        with self.lock:
            self.values[name] += 1

    def snapshot(self):
        with self.lock:
            return dict(self.values)


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, port, handler, options, tls):
        super().__init__(("127.0.0.1", port), handler)
        self.options, self.tls, self.stats = options, tls, Stats()

    def get_request(self):
        connection, address = super().get_request()
        # the handshake happens in the handler's thread, so that a slow one delays nobody
        if self.tls:
            connection = self.tls.wrap_socket(connection,
                                              server_side=True,
                                              do_handshake_on_connect=False)
        return connection, address

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1],
                          (OSError, EOFError)):  # a client that leaves is no news
            super().handle_error(request, client_address)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        self.server.stats.count("connections")
        if self.server.tls:
            self.request.do_handshake()
        super().setup()

    def log_message(self, format, *args):
        if self.server.options.verbose:
            super().log_message(format, *args)

    # What a body is made of: Content-Length or chunked, given piece by piece.
    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            yield from self.chunks()
            return
        left = int(self.headers.get("Content-Length", 0))
        while left > 0:
            piece = self.rfile.read1(min(left, 65536))
            if not piece:
                raise EOFError("the body broke off")
            left -= len(piece)
            yield piece

    def chunks(self):
        while True:
            line = self.rfile.readline()
            if not line.endswith(b"\n"):
                raise EOFError("the body broke off")
            left = int(line.split(b";")[0], 16)
            if left == 0:
                while self.rfile.readline() not in (b"\r\n", b"\n", b""):
                    pass
                return
            while left > 0:
                piece = self.rfile.read1(min(left, 65536))
                if not piece:
                    raise EOFError("the body broke off")
                left -= len(piece)
                yield piece
            self.rfile.readline()

    def read_body(self, keep=None):
        """(length, SHA-256); up to JSON_MAX bytes are added to `keep`."""
        digest, length = hashlib.sha256(), 0
        try:
            for piece in self.body():
                digest.update(piece)
                length += len(piece)
                if keep is not None and length <= JSON_MAX:
                    keep += piece
        except (EOFError, OSError):
            self.server.stats.count("uploads_broken")
            raise
        return length, digest.hexdigest()

    def read_json(self):
        """The object in the body; {} when it is none, or too long."""
        text = bytearray()
        length, _ = self.read_body(text)
        try:
            value = json.loads(text) if length <= JSON_MAX else {}
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def answer(self, status, content_type, data, headers=()):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def answer_json(self, value, status=200):
        self.answer(status, "application/json", (json.dumps(value) + "\n").encode())

    def send_chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def wait_or_left(self, seconds):
        """Waits; true when the client has left meanwhile."""
        readable, _, _ = select.select([self.connection], [], [], seconds)
        if not readable:
            return False
        try:
            self.connection.setblocking(False)
            return not self.connection.recv(1)
        except (ssl.SSLWantReadError, BlockingIOError):
            return False
        except OSError:
            return True
        finally:
            self.connection.setblocking(True)

    def stream(self, events):
        """Server-sent events, one every --interval-ms."""
        stats = self.server.stats
        stats.count("streams_started")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for number, event in enumerate(events, 1):
                self.send_chunk(event)
                if self.server.options.announce:
                    print(json.dumps({"event": "sent", "number": number}), flush=True)
                if self.wait_or_left(self.server.options.interval_ms / 1000):
                    raise ConnectionResetError("the client left")
            self.wfile.write(b"0\r\n\r\n")
            stats.count("streams_finished")
        except OSError:
            stats.count("streams_cancelled")
            self.close_connection = True

    def do_GET(self):
        self.server.stats.count("requests")
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        try:
            self.route(url.path, query)
        except (EOFError, OSError):
            self.close_connection = True

    do_POST = do_PUT = do_HEAD = do_DELETE = do_PATCH = do_OPTIONS = do_GET


class Gateway(Handler):
    server_version = "codev-demo-gateway"

    def authorized(self):
        token = self.server.options.token
        given = [value[7:] if value.startswith("Bearer ") else ""
                 for value in self.headers.get_all("Authorization", [])]
        given += self.headers.get_all("x-api-key", [])
        return len(given) == 1 and hmac.compare_digest(given[0].encode(), token.encode())

    def route(self, path, query):
        if not self.authorized():
            self.server.stats.count("refused")
            self.close_connection = True
            error = {"type": "authentication_error", "message": "the real token is missing"}
            self.answer_json({"type": "error", "error": error}, 401)
        elif path in ("/v1/messages", "/v1/chat/completions"):
            asked, count = self.read_json(), int(query.get("events", self.server.options.events))
            answered = self.tool_answer(asked)
            many = (WORDS * (count // len(WORDS) + 1))[:count]
            words = [f"{word} " for word in many] if answered is None else \
                ["The tool said: ", answered]
            tool = self.wanted_tool(asked) if answered is None else None
            events = self.message_events if path == "/v1/messages" else self.completion_events
            self.stream(events(words, tool))
        else:
            self.route_small(path, query)

    def route_small(self, path, query):
        if path == "/v1/models":
            self.answer_json({
                "data": [{
                    "type": "model",
                    "id": "codev-demo",
                    "display_name": "Demo"
                }],
                "has_more": False
            })
        elif path == "/echo":
            length, digest = self.read_body()
            self.answer_json({"method": self.command, "path": self.path, "length": length,
                              "sha256": digest, "headers": self.headers.items()})
        elif path == "/upload":
            length, digest = self.read_body()
            self.answer_json({"length": length, "sha256": digest})
        elif path == "/bytes":
            self.send_bytes(int(query.get("n", 1024)))
        elif path == "/hash":
            self.answer_json({"sha256": pattern_hash(int(query.get("n", 1024)))})
        elif path == "/stats":
            self.answer_json(self.server.stats.snapshot())
        elif path == "/redirect":
            self.answer(302, "text/plain", b"", [("Location", query.get("to", "/"))])
        else:
            self.read_body()
            error = {"type": "not_found_error", "message": "no such path here"}
            self.answer_json({"type": "error", "error": error}, 404)

    def send_bytes(self, length):
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(length))
        self.end_headers()
        for piece in pattern(length):
            self.wfile.write(piece)

    @staticmethod
    def tool_answer(asked):
        """What the last message of the conversation says a tool answered, in either shape, or None.
        """
        messages = asked.get("messages") or [{}]
        last = messages[-1]
        if last.get("role") == "tool":
            return str(last.get("content"))
        content = last.get("content")
        results = [part for part in content
                   if part.get("type") == "tool_result"] if isinstance(content, list) else []
        return str(results[-1].get("content")) if results else None

    @staticmethod
    def wanted_tool(asked):
        tools = asked.get("tools") or [{}]
        return tools[0].get("name") or tools[0].get("function", {}).get("name")

    def tool_input(self):
        """The input for a tool in two pieces, as models write them."""
        text = json.dumps({"command": self.server.options.tool_command})
        return text[:len(text) // 2], text[len(text) // 2:]

    def message_events(self, words, tool):
        def event(name, **fields):
            return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()

        yield event("message_start",
                    message={
                        "id": "msg_demo",
                        "type": "message",
                        "role": "assistant",
                        "model": "codev-demo",
                        "content": [],
                        "stop_reason": None,
                        "usage": {
                            "input_tokens": 1,
                            "output_tokens": 1
                        }
                    })
        yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for word in words:
            yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": word})
        yield event("content_block_stop", index=0)
        if tool:
            yield event("content_block_start",
                        index=1,
                        content_block={
                            "type": "tool_use",
                            "id": "toolu_demo",
                            "name": tool,
                            "input": {}
                        })
            for piece in self.tool_input():
                yield event("content_block_delta",
                            index=1,
                            delta={
                                "type": "input_json_delta",
                                "partial_json": piece
                            })
            yield event("content_block_stop", index=1)
        yield event("message_delta", delta={"stop_reason": "tool_use" if tool else "end_turn"},
                    usage={"output_tokens": len(words)})
        yield event("message_stop")

    def completion_events(self, words, tool):
        def chunk(finish_reason=None, **delta):
            choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
            document = {
                "id": "chatcmpl-demo",
                "object": "chat.completion.chunk",
                "model": "codev-demo",
                "choices": [choice]
            }
            return f"data: {json.dumps(document)}\n\n".encode()

        for word in words:
            yield chunk(content=word)
        if tool:
            first, second = self.tool_input()
            yield chunk(tool_calls=[{"index": 0, "id": "call_demo", "type": "function",
                                     "function": {"name": tool, "arguments": first}}])
            yield chunk("tool_calls", tool_calls=[{"index": 0, "function": {"arguments": second}}])
        yield b"data: [DONE]\n\n"


class Registry(Handler):
    server_version = "codev-demo-registry"

    def route(self, path, query):
        self.read_body()
        package = self.server.package
        if path == f"/{PACKAGE}":
            tarball = f"{self.server.options.rule_public_url}/{PACKAGE}/-/{PACKAGE}-1.0.0.tgz"
            integrity = "sha512-" + base64.b64encode(hashlib.sha512(package).digest()).decode()
            version = {"name": PACKAGE, "version": "1.0.0",
                       "dist": {"tarball": tarball, "integrity": integrity}}
            self.answer_json({"name": PACKAGE, "dist-tags": {"latest": "1.0.0"},
                              "versions": {"1.0.0": version}})
        elif path == f"/{PACKAGE}/-/{PACKAGE}-1.0.0.tgz":
            self.answer(200, "application/octet-stream", package)
        elif path == "/headers":
            self.answer_json({"path": self.path, "headers": self.headers.items()})
        elif path == "/stats":
            self.answer_json(self.server.stats.snapshot())
        else:
            self.answer_json({"error": "Not found"}, 404)


def parse_options():
    parser = argparse.ArgumentParser(description="A model gateway without a model.")
    parser.add_argument("--dir", required=True, help="where certificates are made")
    parser.add_argument("--token-file", required=True, help="holds the real token")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rule-port", type=int, help="a second server, for a named rule")
    parser.add_argument("--rule-plain", action="store_true", help="the second server speaks http")
    parser.add_argument("--rule-public-url", default="http://127.0.0.1:8788/npm",
                        help="how the guest calls the second server")
    parser.add_argument("--events", type=int, default=10, help="pieces of text in a stream")
    parser.add_argument("--interval-ms", type=int, default=200)
    parser.add_argument("--tool-command", default="uname -srm", help="what a tool is called with")
    parser.add_argument("--announce", action="store_true",
                        help='print {"event":"sent","number":N} as each event of a stream leaves')
    parser.add_argument("--verbose", action="store_true", help="log requests on standard error")
    options = parser.parse_args()
    with open(options.token_file, encoding="utf-8") as file:
        options.token = file.read().strip()
    return options


def main():
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    options = parse_options()
    authority, certificate, key = make_certificates(options.dir)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)

    gateway = Server(options.port, Gateway, options, tls)
    port = gateway.server_address[1]
    ready = {"event": "ready", "url": f"https://127.0.0.1:{port}", "port": port, "ca": authority}
    threading.Thread(target=gateway.serve_forever, daemon=True).start()
    if options.rule_port is not None:
        registry = Server(options.rule_port, Registry, options, None if options.rule_plain else tls)
        registry.package = make_package()
        rule_port = registry.server_address[1]
        scheme = "http" if options.rule_plain else "https"
        ready.update(rule_url=f"{scheme}://127.0.0.1:{rule_port}", rule_port=rule_port)
        threading.Thread(target=registry.serve_forever, daemon=True).start()
    print(json.dumps(ready), flush=True)
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
