"""Common programs on both sides: nginx and Debian's python as upstreams, curl and git as clients;
and vsock."""
import contextlib
import functools
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from broker_harness import (PATIENCE, SANITIZED, SECRET, TOP, Broker, Relay, Upstream, authority,
                            echo, serve_with)

sys.path.insert(0, str(TOP / "test/world"))
from ports import free_port  # noqa: E402

MIB = 1 << 20
LARGE = int(os.environ.get("CODEV_LARGE_MIB", "64" if SANITIZED else "256")) * MIB


def need(program):
    path = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin")
    if not path:
        pytest.skip(f"{program} is not installed")
    return path


class Nginx:
    """nginx over TLS: files, uploads by PUT that are discarded, and SSE with buffering off."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "www").mkdir()
        (folder / "www" / "hello.txt").write_text("hello from nginx\n")
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        (folder / "nginx.conf").write_text(f"""
            daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
                user root;
            events {{ worker_connections 512; }}
            http {{
                access_log {folder}/access.log; client_max_body_size 4m;
                    client_body_temp_path {folder}/body;
                proxy_temp_path {folder}/t1; fastcgi_temp_path {folder}/t2;
                    uwsgi_temp_path {folder}/t3; scgi_temp_path {folder}/t4;
                gzip on; gzip_types text/plain; gzip_min_length 1;
                server {{
                    listen 127.0.0.1:{self.port} ssl; ssl_certificate {authority().certificate};
                    ssl_certificate_key {authority().key}; root {folder}/www; keepalive_requests 5;
                    location = /moved {{ return 301 /hello.txt; }}
                    location = /denied {{ return 403; }}
                    location = /seen {{ default_type text/plain;
                        return 200 "$http_authorization|$http_x_api_key|$request_uri"; }}
                }}
            }}""")
        self.process = subprocess.Popen(
            [need("nginx"), "-c",
             str(folder / "nginx.conf"), "-p",
             str(folder)],
            stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            assert time.monotonic() < end and self.process.poll() is None, (
                folder / "error.log").read_text()
            time.sleep(0.05)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)


@pytest.fixture(scope="module")
def nginx(tmp_path_factory):
    server = Nginx(tmp_path_factory.mktemp("nginx"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def broker(tmp_path_factory, nginx):
    with Broker(tmp_path_factory.mktemp("broker"), gateway=nginx.url,
                rules={"files": nginx.url}) as running:
        yield running


@pytest.fixture(scope="module")
def relay(broker):
    with Relay(broker) as running:
        yield running


def curl(*arguments, **options):
    return subprocess.run(
        [need("curl"), "-sS", "--noproxy", "*", "--max-time", "120", *map(str, arguments)],
        capture_output=True,
        timeout=150,
        **options)


# --- nginx and curl -------------------------------------------------------------------------------

def test_file(relay):
    result = curl("-i", f"{relay.url}/files/hello.txt")
    assert result.stdout.startswith(b"HTTP/1.1 200 OK\r\n") and result.stdout.endswith(
        b"hello from nginx\n"), result


def test_compressed_answer(relay):
    assert curl("--compressed", f"{relay.url}/files/hello.txt").stdout == b"hello from nginx\n"
    assert curl("-H", "Accept-Encoding: gzip",
                f"{relay.url}/files/hello.txt").stdout[:2] == b"\x1f\x8b"


def test_range_and_conditions(relay):
    result = curl("-i", "-r", "6-9", f"{relay.url}/files/hello.txt")
    assert b" 206 " in result.stdout and result.stdout.endswith(b"from")
    etag = re.search(rb"(?i)etag: (.*)\r",
                     curl("-I", f"{relay.url}/files/hello.txt").stdout)[1].decode()
    assert b" 304 " in curl("-i", "-H", f"If-None-Match: {etag}",
                            f"{relay.url}/files/hello.txt").stdout


def test_credential_reaches_the_gateway_only(relay):
    guest = ["-H", "Authorization: Bearer guest", "-H", "x-api-key: guest"]
    assert curl(*guest,
                f"{relay.url}/gateway/seen?a=1").stdout == f"Bearer {SECRET}||/seen?a=1".encode()
    assert curl(*guest, f"{relay.url}/files/seen").stdout == b"Bearer guest|guest|/seen"


def test_redirect(relay, nginx):
    result = curl("-i", f"{relay.url}/files/moved")
    assert b" 301 " in result.stdout and b"http://127.0.0.1:8788/files/hello.txt" in result.stdout


def test_connections_that_nginx_ends_by_count(relay, nginx):
    """keepalive_requests 5: GET and POST work across the ends of kept connections."""
    for number in range(30):
        arguments = ["-d", "x"] if number % 2 else []
        status = curl("-o", "/dev/null", "-w", "%{http_code}", *arguments,
                      f"{relay.url}/files/seen").stdout
        assert status == b"200"


def test_too_large_for_nginx(relay, tmp_path):
    """nginx answers 413 while the body is being sent."""
    body = tmp_path / "body"
    body.write_bytes(b"x" * (8 * MIB))
    result = curl("-o", "/dev/null", "-w", "%{http_code}", "-H", "Expect:", "-T", body,
                  f"{relay.url}/files/up")
    assert result.stdout == b"413", result


def test_expect_continue_of_curl(relay):
    started = time.monotonic()
    result = curl("-o", "/dev/null", "-w", "%{http_code}", "-H", "Expect: 100-continue",
                  "--expect100-timeout", "30", "-d", "x", f"{relay.url}/files/seen")
    assert result.stdout == b"200" and time.monotonic() - started < 15


def test_client_of_http_1_0(relay):
    assert curl("-0", f"{relay.url}/files/hello.txt").stdout == b"hello from nginx\n"


def test_h2c_offer_is_ignored(relay):
    assert curl("--http2", f"{relay.url}/files/hello.txt").stdout == b"hello from nginx\n"


def test_refusals_by_curl(relay):
    for arguments, status in [(["-X", "TRACE"], b"405"), (["-X", "CONNECT"], b"405"),
                              (["--path-as-is"], b"400")]:
        path = "/files/a/../b" if "--path-as-is" in arguments else "/files/x"
        assert curl("-o", "/dev/null", "-w", "%{http_code}", *arguments,
                    relay.url + path).stdout == status
    forward = subprocess.run([
        need("curl"), "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-x", relay.url, "--noproxy",
        "", "http://example.invalid/"
    ],
                             capture_output=True,
                             timeout=30)
    assert forward.stdout == b"403"


@pytest.mark.parametrize("chunked", [False, True])
def test_large_file_each_way_keeps_its_hash(tmp_path, chunked):
    """A download from nginx with curl, and an upload with curl to a server that hashes it."""
    source = tmp_path / "source"
    digest = hashlib.sha256()
    with open(source, "wb") as file:
        for number in range(LARGE // MIB):
            block = hashlib.sha256(str(number).encode()).digest() * (MIB // 32)
            digest.update(block)
            file.write(block)
    got = {}

    def receive(peer, head):
        found = hashlib.sha256()
        if b"Transfer-Encoding: chunked" in head:
            for piece in peer.read_chunks():
                found.update(piece)
        else:
            for _ in range(LARGE // MIB):
                found.update(peer.read(MIB))
        got["digest"] = found.hexdigest()
        peer.answer()

    (tmp_path / "nginx").mkdir()
    server = Nginx(tmp_path / "nginx")
    try:
        (server.folder / "www" / "source").symlink_to(source)
        with Upstream(serve_with(receive)) as upstream, \
                Broker(tmp_path, gateway=upstream.url, rules={"files": server.url}) as broker, \
                Relay(broker) as relay:
            down = subprocess.run(
                f"{need('curl')} -sS --noproxy '*' {relay.url}/files/source | sha256sum",
                shell=True,
                capture_output=True,
                text=True,
                timeout=200)
            assert down.stdout.split()[0] == digest.hexdigest()
            framing = ["-H", "Transfer-Encoding: chunked"] if chunked else []
            up = curl("-o", "/dev/null", "-w", "%{http_code}", "-T", source, *framing,
                      f"{relay.url}/gateway/up")
            assert up.stdout == b"200" and got["digest"] == digest.hexdigest()
    finally:
        server.stop()


def wait_for_count(relay, name, number):
    """The gateway counts a stream when it has sent its last byte or failed to."""
    end = time.monotonic() + PATIENCE
    while json.loads(curl(f"{relay.url}/gateway/stats").stdout)[name] != number:
        assert time.monotonic() < end, name
        time.sleep(0.05)


def test_curl_reads_events_one_by_one(tmp_path):
    """The demo gateway of the tour, as it is used there."""
    token = tmp_path / "token"
    token.write_text(SECRET)
    gateway = subprocess.Popen([
        sys.executable,
        str(TOP / "qemu-harness/tour/demo_gateway.py"), "--dir",
        str(tmp_path / "demo"), "--token-file",
        str(token), "--events", "5", "--interval-ms", "100", "--rule-port", "0"
    ],
                               stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    try:
        ready = json.loads(gateway.stdout.readline())
        with Broker(tmp_path, gateway=ready["url"], rules={"npm": ready["rule_url"]},
                    options=["--ca-file", ready["ca"]]) as broker, \
                Relay(broker) as relay:
            result = curl("-N", "-d", "{}", f"{relay.url}/gateway/v1/messages")
            assert result.stdout.count(
                b"content_block_delta") == 10 and b"message_stop" in result.stdout
            assert b"[DONE]" in curl("-N", "-d", "{}",
                                     f"{relay.url}/gateway/v1/chat/completions").stdout
            assert b"codev-demo" in curl(f"{relay.url}/npm/codev-demo").stdout
            wait_for_count(relay, "streams_finished", 2)
            leaver = subprocess.Popen([
                need("curl"), "-sS", "-N", "--noproxy", "*",
                f"{relay.url}/gateway/v1/messages?events=1000"
            ],
                                      stdout=subprocess.PIPE)
            assert leaver.stdout.readline()
            leaver.kill()  # in the middle of the stream
            leaver.communicate()
            wait_for_count(relay, "streams_cancelled", 1)
    finally:
        gateway.stdin.close()
        gateway.wait(PATIENCE)
        gateway.stdout.close()


# --- vsock ----------------------------------------------------------------------------------------

LOCAL_CID = 1  # VMADDR_CID_LOCAL: loopback of vsock


def vsock_loopback():
    try:
        with socket.socket(socket.AF_VSOCK) as listener, socket.socket(socket.AF_VSOCK) as client:
            listener.bind((LOCAL_CID, socket.VMADDR_PORT_ANY))
            listener.listen()
            client.settimeout(2)
            client.connect((LOCAL_CID, listener.getsockname()[1]))
            return True
    except (OSError, AttributeError):
        return False


@pytest.mark.skipif(not vsock_loopback(), reason="this kernel has no vsock loopback")
@pytest.mark.parametrize("cid,served", [(LOCAL_CID, True), (77, False)])
def test_vsock_demands_the_peers_cid(tmp_path, nginx, cid, served):
    with Broker(tmp_path,
                gateway=nginx.url,
                options=["--listen", "vsock:0", "--peer-cid",
                         str(cid)]) as broker:
        port = int(broker.ready["listen"][1].rpartition(":")[2])
        with socket.socket(socket.AF_VSOCK) as client:
            client.settimeout(PATIENCE)
            client.connect((LOCAL_CID, port))
            answer = b""
            with contextlib.suppress(OSError):
                client.sendall(
                    broker.preface +
                    b"GET /gateway/hello.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                while data := client.recv(65536):
                    answer += data
            assert answer.endswith(b"hello from nginx\n") if served else answer == b""
