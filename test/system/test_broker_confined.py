"""The broker's process: the rights that it dropped, and where in memory the gateway's token is."""
import os
import pathlib
import shutil
import signal
import threading
import time

import pytest

from broker_harness import PATIENCE, SANITIZED, SECRET, Broker, Upstream, fields_of, serve_with

pytestmark = pytest.mark.skipif(SANITIZED, reason="the leak checker must trace its own process")
as_root = pytest.mark.skipif(os.geteuid() != 0,
                             reason="the broker is not dumpable: only root may look into it")


def hello(peer, head):
    peer.read(int(fields_of(head).get("content-length", 0)))
    peer.answer(b"hello")


@pytest.fixture(scope="module")
def upstream():
    with Upstream(serve_with(hello)) as server:
        yield server


def status(broker):
    lines = pathlib.Path(f"/proc/{broker.process.pid}/status").read_text().splitlines()
    return dict(line.split(":", 1) for line in lines)


def test_confined(tmp_path, upstream):
    with Broker(tmp_path, gateway=upstream.url) as broker:
        found = {name: value.strip() for name, value in status(broker).items()}
        assert found["NoNewPrivs"] == "1"
        assert found["Seccomp"] == "2"
        assert found["Threads"] == "1"
        assert broker.get("/gateway/x").body == b"hello"


def copies(broker, secret):
    """Addresses at which the broker's memory contains a text."""
    found = []
    with open(f"/proc/{broker.process.pid}/mem", "rb", 0) as memory:
        for line in pathlib.Path(f"/proc/{broker.process.pid}/maps").read_text().splitlines():
            bounds, permissions = line.split()[:2]
            if "r" not in permissions or "[v" in line:
                continue
            start, end = (int(text, 16) for text in bounds.split("-"))
            try:
                memory.seek(start)
                data = memory.read(end - start)
            except OSError:
                continue
            place = data.find(secret)
            while place >= 0:
                found.append(start + place)
                place = data.find(secret, place + 1)
    return found


def wait_for_copies(broker, count):
    end = time.monotonic() + PATIENCE
    while len(copies(broker, SECRET.encode())) != count:
        assert time.monotonic() < end
        time.sleep(0.05)


@as_root
def test_gateway_token_is_in_one_locked_place(tmp_path, upstream):
    """libcurl copies it into every request: after twenty of them there is still one copy, and none
    after the logout."""
    with Broker(tmp_path, gateway=upstream.url) as broker:
        assert len(copies(broker, SECRET.encode())) == 1
        assert int(status(broker)["VmLck"].split()[0]) >= 4
        clients = [broker.client() for _ in range(10)]
        for client in clients:
            client.request("/gateway/x", method="POST", body=b"x" * 1000, read=False)
        for client in clients:
            assert client.response().status == 200
            assert client.request("/gateway/x").status == 200
            client.close()
        wait_for_copies(broker, 1)
        broker.token_file.unlink()
        assert broker.get("/gateway/x").status == 503
        wait_for_copies(broker, 0)
        broker.token_file.write_text("another-token\n")
        assert broker.get("/gateway/x").status == 200
        assert len(copies(broker, b"another-token")) == 1


@as_root
def test_token_of_a_broken_off_request_is_gone(tmp_path):
    """A request that is cancelled while the upstream is silent: its copies are wiped too."""
    reached = threading.Semaphore(0)

    def handler(peer):
        if peer.read_head():
            reached.release()
            peer.wait_closed()

    with Upstream(handler) as upstream, Broker(tmp_path, gateway=upstream.url) as broker:
        for _ in range(5):
            with broker.client() as client:
                client.request("/gateway/x", read=False)
                assert reached.acquire(timeout=PATIENCE)
        broker.log_lines(5, end="cancelled")
        broker.token_file.unlink()
        broker.signal(signal.SIGHUP)
        broker.wait_event("login")
        wait_for_copies(broker, 0)


def test_no_core_is_left(tmp_path, upstream):
    """Not even after a crash in a folder where cores may be written."""
    broker = Broker(tmp_path, gateway=upstream.url)
    broker.signal(signal.SIGSEGV)
    assert broker.process.wait(PATIENCE) == -signal.SIGSEGV
    broker.stderr.close()
    assert not [path for path in tmp_path.rglob("*") if "core" in path.name]
    with Broker(tmp_path, gateway=upstream.url) as other:
        limits = pathlib.Path(f"/proc/{other.process.pid}/limits").read_text()
        assert [line.split()[4:6] for line in limits.splitlines()
                if line.startswith("Max core")] == [["0", "0"]]


def test_everyday_life_goes_on(tmp_path, upstream):
    """The files that a confined broker must reach while it serves: replaced token and CA files, its
    moved and rotated log, name resolution, and its socket, which it removes."""
    tokens, authorities, logs = (tmp_path / name for name in ("tokens", "authorities", "logs"))
    for folder in (tokens, authorities, logs):
        folder.mkdir(mode=0o700)
    authority = authorities / "extra.pem"
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", authority)
    log = logs / "log"
    named = upstream.url.replace("127.0.0.1", "localhost")
    with Broker(tmp_path, gateway=upstream.url, rules={"named": named}, log=False,
                options=["--log", str(log), "--ca-file", str(authority)]) as broker:
        assert broker.get("/named/x").status == 200
        fresh = broker.token_file.with_name("fresh")
        fresh.write_text("renewed\n")
        fresh.rename(broker.token_file)
        assert broker.get("/gateway/x").status == 200
        other = authorities / "other.pem"
        shutil.copy(authority, other)
        other.rename(authority)
        log.rename(logs / "moved")
        broker.signal(signal.SIGHUP)
        end = time.monotonic() + PATIENCE
        while not log.exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        assert broker.get("/named/y").status == 200
        expected = "warning: the sandbox can reach the gateway's key management"
        assert "warning" not in broker.errors().replace(expected, "")


def test_what_a_broker_writes_is_searched(tmp_path, upstream):
    """The harness's search for secrets, which every test's broker passes, finds one."""
    with Broker(tmp_path, gateway=upstream.url) as broker:
        assert broker.get("/gateway/x", fields=["Authorization: Bearer of-the-guest"]).status == 200
        for secret in (SECRET, broker.token, "Bearer of-the-guest"):
            broker.told.append(secret)
            with pytest.raises(AssertionError):
                broker.assert_no_secret_written()
            broker.told.remove(secret)
