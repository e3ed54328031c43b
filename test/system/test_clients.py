"""Common clients, each streaming from the tour's demo gateway through a real relay and a real
broker: answers arrive piece by piece, and a client's error message for a refusal contains the
broker's message.

curl, Debian's python3-requests, node's fetch, and the SDKs `openai` and `@anthropic-ai/sdk`, which
npm installs into the cache folder from the lock file in clients/.
"""
import contextlib
import importlib.util
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import threading

import pytest

import relay_harness
from broker_harness import PATIENCE, SECRET, TOP, Broker

sys.path.insert(0, str(TOP / "test/world"))
import npm_modules  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent / "clients"
EVENTS = 8
CLIENTS = ["curl", "requests", "fetch", "openai", "anthropic"]
SLOW = 60  # seconds, enough for node on a loaded machine


# --- requirements ---------------------------------------------------------------------------------

def need(program):
    path = shutil.which(program)
    if not path:
        pytest.skip(f"{program} is not installed")
    return path


@pytest.fixture(scope="module")
def modules():
    """The folder with node_modules."""
    need("npm")
    try:
        return npm_modules.modules(HERE)
    except subprocess.CalledProcessError as fault:
        pytest.skip(
            "npm cannot install the SDKs: "
            f"{fault.stderr.decode(errors='replace').strip().splitlines()[-1:]}"
        )


def command_of(client, base, request):
    if client == "curl":
        return [
            need("curl"), "-sS", "-N", "--fail-with-body", "--noproxy", "*", "-d", "{}",
            f"{base}/v1/messages"
        ]
    if client == "requests":
        if not importlib.util.find_spec("requests"):
            pytest.skip("python3-requests is not installed")
        return ["/usr/bin/python3", str(HERE / "stream.py"), base]
    needs_modules = client != "fetch"
    folder = request.getfixturevalue("modules") if needs_modules else "/"
    return [need("node"), str(HERE / "stream.mjs"), str(folder), client, base]


# --- gateway, broker, relay -----------------------------------------------------------------------

class DemoGateway:
    """The tour's gateway, which also reports when it sends each event of a stream."""

    def __init__(self, folder):
        (folder / "token").write_text(SECRET)
        self.process = subprocess.Popen([
            sys.executable,
            str(TOP / "qemu-harness/tour/demo_gateway.py"), "--dir",
            str(folder / "demo"), "--token-file",
            str(folder / "token"), "--events",
            str(EVENTS), "--interval-ms", "150", "--announce"
        ],
                                        stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        ready = json.loads(self.process.stdout.readline())
        self.url, self.ca = ready["url"], ready["ca"]
        self.sent = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with contextlib.suppress(ValueError):
            for line in self.process.stdout:
                self.sent.put(json.loads(line)["number"])

    def stop(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    server = DemoGateway(tmp_path_factory.mktemp("gateway"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def broker(tmp_path_factory, gateway):
    with Broker(tmp_path_factory.mktemp("clients"),
                gateway=gateway.url,
                rules={"down": "https://127.0.0.1:1"},
                options=["--ca-file", gateway.ca]) as running:
        yield running


@pytest.fixture(scope="module")
def base(broker):
    """The broker's base URL for programs in the sandbox."""
    front = relay_harness.listen_tcp()
    port = front.getsockname()[1]
    with relay_harness.running([{
            "role": "broker",
            "fd": front,
            "dial": [f"unix:{broker.socket}"],
            "secret": broker.token
    }]):
        yield f"http://127.0.0.1:{port}"


def environment():
    proxies = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}
    return {name: value for name, value in os.environ.items() if name.lower() not in proxies}


def pieces(client, output):
    """Yields the client's output lines (see stream.mjs) as they come."""
    for line in output:
        if client != "curl":
            yield json.loads(line)
        elif line.startswith(b"data: "):
            event = json.loads(line[6:])
            if event["type"] == "content_block_delta":
                yield {"text": event["delta"]["text"]}
            if event["type"] == "message_stop":
                yield {"end": True}
        elif line.startswith(b"{"):
            yield {"error": line.decode()}


@pytest.fixture
def start(request):
    """Starts a client; ends it when the test fails."""
    started = []

    def run(client, base):
        process = subprocess.Popen(command_of(client, base, request),
                                   stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE,
                                   env=environment())
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


# --- tests ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("client", CLIENTS)
def test_streams_piece_by_piece(client, base, gateway, start):
    """The client gets all the text, and the first piece while the gateway is still sending. One
    success in a few tries is enough, as a busy machine may delay a client for the second that the
    stream takes."""
    assert any(first_piece_comes_early(client, base, gateway, start) for _ in range(5))


def first_piece_comes_early(client, base, gateway, start):
    while not gateway.sent.empty():
        gateway.sent.get()
    process = start(client, f"{base}/gateway")
    got = []
    for piece in pieces(client, process.stdout):
        if not got:
            sent_by_then = gateway.sent.qsize()
        got.append(piece)
    assert process.wait(SLOW) == 0, process.stderr.read()
    assert [list(piece)
            for piece in got] == [["text"]] * EVENTS + [["end"]], (got, process.stderr.read())
    assert "".join(piece.get("text", "") for piece in got).startswith("A sandbox is a small room")
    return sent_by_then < EVENTS


def refusal(client, start, base, route):
    process = start(client, f"{base}/{route}")
    got = list(pieces(client, process.stdout))
    status = process.wait(SLOW)
    assert len(got) == 1 and "error" in got[0], (got, process.stderr.read())
    assert status == (22 if client == "curl" else 0)
    return got[0]


@pytest.mark.parametrize("client", CLIENTS)
def test_refusals_show_the_brokers_message(client, base, broker, start):
    """An unknown name, an upstream that is down, and a login that has ended, as the client reports
    them."""
    expected = [("nope", 404, "no rule of that name in sandbox-egress.json"),
                ("down", 502, "the upstream could not be reached")]
    for route, status, message in expected:
        got = refusal(client, start, base, route)
        assert message in got["error"] and got.get("status", status) == status, got
    hidden = broker.token_file.with_name("hidden")
    broker.token_file.rename(hidden)
    try:
        got = refusal(client, start, base, "gateway")
        assert "no gateway login on the host" in got["error"] and got.get("status", 503) == 503, got
    finally:
        hidden.rename(broker.token_file)
