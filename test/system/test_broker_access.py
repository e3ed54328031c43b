"""Which clients the broker accepts, how it starts and refuses to start, and how it ends."""
import json
import os
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest

from broker_harness import (BROKER, PATIENCE, SECRET, Broker, Client, Upstream, echo, run_broker,
                            serve_with)

GET = b"GET /gateway/x HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.fixture(scope="module")
def upstream():
    with Upstream(serve_with(echo)) as server:
        yield server


@pytest.fixture(scope="module")
def broker(tmp_path_factory, upstream):
    with Broker(tmp_path_factory.mktemp("access"), gateway=upstream.url) as running:
        yield running


def answer_to(broker, data, preface=b""):
    with broker.client(preface) as client:
        client.send(data)
        return client.response()


# --- the token ------------------------------------------------------------------------------------

def test_ready_line(broker, upstream):
    assert broker.ready["event"] == "ready"
    assert broker.ready["listen"] == [f"unix:{broker.socket}"]
    assert broker.ready["egress"] == ["gateway"]
    assert len(broker.token) == 64 and set(broker.token) <= set("0123456789abcdef")


def test_right_token_is_served(broker):
    assert broker.get("/gateway/x").status == 200


@pytest.mark.parametrize("split", [1, 7, 73, 74, 75])
def test_preface_in_pieces(broker, split):
    whole = broker.preface + GET
    with broker.client(b"") as client:
        for start in range(0, len(whole), split):
            client.send(whole[start:start + split])
        assert client.response().status == 200


def test_missing_preface_is_401(broker):
    response = answer_to(broker, GET)
    assert (response.status, response.error) == (401, "codev_unauthenticated")
    assert response.fields["connection"] == "close"


@pytest.mark.parametrize("change", [
    lambda t: "0" * 64, lambda t: t[:-1] + ("0" if t[-1] != "0" else "1"), lambda t:
    ("0" if t[0] != "0" else "1") + t[1:]
])
def test_wrong_token_is_401(broker, upstream, change):
    before = upstream.accepted
    response = answer_to(broker, f"CODEV/1 {change(broker.token)}\r\n".encode() + GET)
    assert (response.status, response.error) == (401, "codev_unauthenticated")
    assert upstream.accepted == before


@pytest.mark.parametrize("preface", [
    "CODEV/2 {}\r\n", "CODEV/1  {}\r\n", "CODEV/1 {}\n", "CODEV/1 {} \r\n", "CODEV/1 {}0\r\n",
    "CODEV {}\r\n"
])
def test_malformed_preface_is_403(broker, preface):
    response = answer_to(broker, preface.format(broker.token).encode() + GET)
    assert (response.status, response.error) == (403, "codev_malformed_preface")


def test_upper_case_token_is_no_token(broker):
    token = broker.token.upper()
    if token == broker.token:
        pytest.skip("a token of digits only")
    assert answer_to(broker, f"CODEV/1 {token}\r\n".encode() + GET).status in (401, 403)


def test_silence_is_ended_after_five_seconds(broker):
    started = time.monotonic()
    with broker.client(b"CODEV/1 ") as client:
        assert client.response().status == 401
        assert time.monotonic() - started > 4
        assert client.is_closed()


def test_strangers_do_not_starve_the_sandbox(broker):
    """More than 64 silent connections: the oldest is closed for the next one, which is served."""
    strangers = [broker.client(b"") for _ in range(70)]
    try:
        assert broker.get("/gateway/x").status == 200
    finally:
        for stranger in strangers:
            stranger.close()


def test_a_burst_whose_prefaces_come_a_moment_later(tmp_path):
    """200 connections wait before any of them sends a byte, as when a busy relay opens them: none
    is closed."""
    with Broker(tmp_path) as broker:
        broker.signal(signal.SIGSTOP)
        clients = [broker.client(b"") for _ in range(200)]
        broker.signal(signal.SIGCONT)
        time.sleep(0.05)  # 64 are accepted, the rest waits in the backlog
        for client in clients:
            client.send(broker.preface)
        for client in clients:
            assert client.request("/nope").status == 404
        for client in clients:
            client.close()


def test_token_is_never_forwarded(broker):
    response = broker.get("/gateway/x", fields=[f"X-Other: 1"])
    assert broker.token not in response.body.decode()


def test_two_brokers_have_two_tokens(tmp_path, broker):
    with Broker(tmp_path) as other:
        assert other.token != broker.token
        with Client(other.socket, broker.preface) as client:
            client.send(GET)
            assert client.response().status == 401


# --- the socket -----------------------------------------------------------------------------------

def test_socket_is_private(broker):
    assert stat.S_IMODE(os.stat(broker.socket).st_mode) == 0o600


def start_arguments(folder, listen):
    token = folder / "token"
    token.write_text(SECRET)
    return [
        "--listen", listen, "--gateway-url", "https://127.0.0.1:1", "--gateway-token-file", token
    ]


def test_open_folder_is_refused(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    result = run_broker(*start_arguments(tmp_path, f"unix:{folder}/s"))
    assert result.returncode == 69
    assert "0700" in result.stderr and str(folder) in result.stderr


def test_long_path_is_told(tmp_path):
    result = run_broker(*start_arguments(tmp_path, f"unix:/tmp/{'x' * 200}"))
    assert result.returncode in (64, 69)
    assert "long" in result.stderr


def test_vsock_demands_a_cid(tmp_path):
    result = run_broker(*start_arguments(tmp_path, "vsock:0"), "--check")
    assert result.returncode == 64 and "--peer-cid" in result.stderr


def test_stale_socket_is_replaced_and_a_live_one_is_not(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(f"{folder}/s")
    stale.close()
    arguments = [BROKER, *map(str, start_arguments(tmp_path, f"unix:{folder}/s"))]
    first = subprocess.Popen(arguments,
                             stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    try:
        assert json.loads(first.stdout.readline())["event"] == "ready"
        second = run_broker(*arguments[1:])
        assert second.returncode == 69
        assert os.path.exists(f"{folder}/s")
    finally:
        first.communicate(timeout=PATIENCE)
    assert first.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_another_user_is_closed_at_once(tmp_path, broker):
    """Even a process that can pass the folder's mode, as one that has the folder open."""
    program = (
        "import os,socket,sys\n"
        "s=socket.socket(socket.AF_UNIX)\n"
        "folder=os.open(sys.argv[1],os.O_PATH)\n"
        "os.fchdir(folder)\n"
        "os.chmod('b.sock',0o666)\n"
        "os.setgid(65534);os.setuid(65534)\n"
        "s.connect('b.sock')\n"
        "s.sendall(sys.argv[2].encode()+b'\\r\\nGET /gateway/x HTTP/1.1\\r\\nHost: "
        "h\\r\\n\\r\\n')\n"
        "try: print(len(s.recv(100)))\n"
        "except ConnectionError: print(0)\n")
    broker.folder.chmod(0o711)
    try:
        result = subprocess.run(
            ["/usr/bin/python3", "-c", program,
             str(broker.folder), f"CODEV/1 {broker.token}"],
            capture_output=True,
            text=True,
            timeout=PATIENCE)
    finally:
        broker.folder.chmod(0o700)
        os.chmod(broker.socket, 0o600)
    if "Permission" in result.stderr:
        pytest.skip("the test's folder cannot be entered by another user")
    assert (result.stdout.strip() == "0" or "BrokenPipe" in result.stderr), result


# --- refusing to start ----------------------------------------------------------------------------


@pytest.mark.parametrize("arguments,word", [
    ([], "--"),
    (["--nonsense"], "--nonsense"),
    (["--listen"], "--listen"),
    (["--listen", "unix:/tmp/x", "--gateway-url", "ftp://h"], "gateway"),
    ([
        "--listen", "unix:/tmp/x", "--gateway-url", "http://llm.example", "--gateway-token-file",
        "/x"
    ], "http"),
])
def test_usage_is_64(arguments, word):
    result = run_broker(*arguments)
    assert result.returncode == 64 and word in result.stderr and result.stdout == ""


@pytest.mark.parametrize("content", [None, "", "\n\n", "two\nlines\n", "a\0b", "ünïcode"])
def test_unreadable_token_is_77(tmp_path, content):
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)
    result = run_broker("--listen", f"unix:{tmp_path}/s", "--gateway-url", "https://127.0.0.1:1",
                        "--gateway-token-file", token)
    assert result.returncode == 77 and str(token) in result.stderr
    assert content is None or len(content) < 3 or content not in result.stderr


@pytest.mark.parametrize("text,where,word", [
    ('{"npm":"https://a",\n "npm":"https://b"}', ":2:2:", "twice"),
    ('{"npm":1}', ":1:8:", "string"),
    ("", ":1:1:", ""),
    ('{"gateway":"https://a"}', ":1:", "gateway"),
    ('{"a":"ftp://x"}', ":1:", "http"),
    ('{"a":"https://x"} x', ":1:", ""),
    ('["a"]', ":1:1:", "object"),
    ('{"A":"https://x"}', ":1:", ""),
    ('{"a":"https://u:p@x"}', ":1:", ""),
])
def test_malformed_rules_are_65(tmp_path, text, where, word):
    rules = tmp_path / "sandbox-egress.json"
    rules.write_text(text)
    result = run_broker(*start_arguments(tmp_path, f"unix:{tmp_path}/s"), "--app-data", tmp_path)
    assert result.returncode == 65
    assert f"{rules}{where}" in result.stderr and word in result.stderr, result.stderr
    assert result.stdout == "" and not (tmp_path / "s").exists()


def test_rules_file_that_must_exist(tmp_path):
    result = run_broker(*start_arguments(tmp_path, f"unix:{tmp_path}/s"), "--rules",
                        tmp_path / "absent")
    assert result.returncode == 65
    tmp_path.chmod(0o700)
    result = run_broker(*start_arguments(tmp_path, f"unix:{tmp_path}/s"), "--app-data", tmp_path,
                        "--check")
    assert result.returncode == 0, result.stderr


def test_ca_file_without_a_certificate_is_65(tmp_path):
    empty = tmp_path / "ca.pem"
    empty.write_text("nothing\n")
    result = run_broker(*start_arguments(tmp_path, f"unix:{tmp_path}/s"), "--ca-file", empty)
    assert result.returncode == 65 and str(empty) in result.stderr
    empty.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    result = run_broker(*start_arguments(tmp_path, f"unix:{tmp_path}/s"), "--ca-file", empty)
    assert result.returncode == 65 and str(empty) in result.stderr


def test_check_tells_and_leaves_nothing(tmp_path):
    tmp_path.chmod(0o700)
    result = run_broker(*start_arguments(tmp_path, f"unix:{tmp_path}/s"), "--check", "--log",
                        tmp_path / "log")
    assert result.returncode == 0 and "valid" in result.stdout
    assert not (tmp_path / "s").exists() and not (tmp_path / "log").exists()


def test_check_tells_what_can_be_reached(tmp_path):
    rules = tmp_path / "rules.json"
    rules.write_text('{"npm":"https://npm.example/x","intranet":"http://10.0.0.1:8080"}')
    rules.chmod(0o600)
    result = run_broker(*start_arguments(tmp_path, f"unix:{tmp_path}/s"), "--rules", rules,
                        "--check")
    lines = [line.split() for line in result.stdout.splitlines()[1:]]
    assert lines[0][0] == "gateway" and lines[0][1].startswith("https://"), result.stdout
    assert lines[1:] == [["npm", "https://npm.example/x"], ["intranet", "http://10.0.0.1:8080"]]
    result = run_broker("--check", "--rules", rules)  # where no user is logged in
    assert result.returncode == 0
    assert "gateway " not in result.stdout and "npm.example" in result.stdout
    rules.write_text('{"npm":}')
    result = run_broker("--check", "--rules", rules)
    assert result.returncode == 65 and f"{rules}:1:8" in result.stderr


def test_open_gateway_is_warned_about(tmp_path):
    with Broker(tmp_path, gateway="https://127.0.0.1:1/v1/") as broker:
        assert "key management" in broker.errors()
        assert "/v1" in broker.errors()
    with Broker(tmp_path, options=["--gateway-allow", "POST /v1/messages"]) as broker:
        assert "key management" not in broker.errors()


# --- the end --------------------------------------------------------------------------------------

def test_ends_with_its_standard_input(tmp_path):
    broker = Broker(tmp_path)
    broker.process.stdin.close()
    assert broker.process.wait(PATIENCE) == 0
    assert not broker.socket.exists()
    broker.stderr.close()


def test_standard_input_that_is_no_pipe_does_not_end_it(tmp_path):
    with Broker(tmp_path, stdin=subprocess.DEVNULL) as broker:
        assert broker.get("/nothing").status == 404


def test_sigterm_drains(tmp_path):
    """A request in progress is completed; idle connections and the socket are closed at once."""
    go_on = threading.Event()

    def slow(peer, head):
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst")
        go_on.wait(PATIENCE)
        peer.send(b"other")

    with Upstream(serve_with(slow)) as upstream:
        broker = Broker(tmp_path, gateway=upstream.url)
        with broker.client() as busy, broker.client() as idle:
            busy.request("/gateway/x", read=False)
            assert busy.read_until(b"first").endswith(b"first")
            assert idle.request("/nothing").status == 404
            broker.signal(signal.SIGTERM)
            assert idle.is_closed()
            with pytest.raises(OSError):
                broker.client()
            assert broker.process.poll() is None
            go_on.set()
            assert busy.read_until(b"other") == b"other"
            assert busy.is_closed()
        assert broker.process.wait(PATIENCE) == 0
        broker.stderr.close()


def test_sigterm_does_not_wait_for_ever(tmp_path):
    reached, stuck = threading.Event(), threading.Event()

    def answer(peer, head):
        reached.set()
        stuck.wait(60)

    with Upstream(serve_with(answer)) as upstream:
        broker = Broker(tmp_path, gateway=upstream.url)
        with broker.client() as client:
            client.request("/gateway/x", read=False)
            assert reached.wait(PATIENCE)
            broker.signal(signal.SIGTERM)
            assert broker.process.wait(PATIENCE) == 0
        stuck.set()
        broker.stderr.close()
