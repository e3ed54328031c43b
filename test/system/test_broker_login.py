"""Changes of the gateway's login, the log, and that it contains no secret."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

import procfs
from broker_harness import (BROKER, PATIENCE, SANITIZED, SECRET, Broker, Upstream, authority, echo,
                            run_broker, serve_with)


@pytest.fixture(scope="module")
def upstream():
    with Upstream(serve_with(echo)) as server:
        yield server


def credential_seen(broker):
    response = broker.get("/gateway/x")
    assert response.status == 200, response.body
    values = [value for name, value in response.json["fields"] if name.lower() == "authorization"]
    assert len(values) == 1
    return values[0]


# --- the login ------------------------------------------------------------------------------------

def test_token_is_renewed_without_a_restart(tmp_path, upstream):
    with Broker(tmp_path, gateway=upstream.url) as broker:
        for number in range(
                10):  # same length and same time stamp, so that only the content differs
            broker.token_file.write_text(f"renewed-{number}\n")
            assert credential_seen(broker) == f"Bearer renewed-{number}"
        replacement = broker.folder / "new"
        replacement.write_text("  by-rename \r\n")
        replacement.rename(broker.token_file)
        assert credential_seen(broker) == "Bearer by-rename"


@pytest.mark.parametrize("how", ["removed", "empty", "malformed"])
def test_removed_login_is_503_on_every_route_until_it_returns(tmp_path, upstream, how):
    with Broker(tmp_path, gateway=upstream.url, rules={"up": upstream.url}) as broker:
        with broker.client() as client:
            assert client.request("/up/x").status == 200
            before = upstream.accepted
            if how == "removed":
                broker.token_file.unlink()
            else:
                broker.token_file.write_text("" if how == "empty" else "two\nlines\n")
            for route in ("/gateway/x", "/up/x"):
                response = client.request(route)
                assert (response.status, response.error) == (503, "codev_no_login")
                assert int(response.fields["retry-after"]) > 0
            assert client.request("/nope").status == 404
            assert upstream.accepted == before
            assert broker.wait_event("login")["state"] == "missing"
            broker.token_file.write_text("back\n")
            assert client.request("/up/x").status == 200
            assert credential_seen(broker) == "Bearer back"
            assert broker.wait_event("login")["state"] == "present"


def test_sighup_reads_the_token_and_opens_the_log_anew(tmp_path, upstream):
    with Broker(tmp_path, gateway=upstream.url) as broker:
        broker.get("/gateway/one")
        broker.log_lines(1)
        broker.log_file.rename(broker.folder / "log.old")
        broker.token_file.unlink()
        broker.signal(signal.SIGHUP)
        assert broker.wait_event("login")["state"] == "missing"
        broker.token_file.write_text("again")
        broker.signal(signal.SIGHUP)
        assert broker.wait_event("login")["state"] == "present"
        broker.get("/gateway/two")
        assert [line["path"] for line in broker.log_lines(1)] == ["/gateway/two"]


# --- the log --------------------------------------------------------------------------------------

def test_log_lines(tmp_path, upstream):
    with Broker(tmp_path, gateway=upstream.url, rules={"up": upstream.url}) as broker:
        body = b"b" * 1234
        broker.get("/gateway/v1/messages?beta=secret-query", method="POST", body=body)
        line = broker.log_lines(1)[0]
        assert {
            key: line[key]
            for key in ("name", "method", "path", "status", "bytes_in", "proxy", "end")
        } == {
            "name": "gateway",
            "method": "POST",
            "path": "/gateway/v1/messages",
            "status": 200,
            "bytes_in": 1234,
            "proxy": "direct",
            "end": "complete"
        }
        assert line["bytes_out"] > 1234 / 10 and line["ms"] >= 0
        assert time.strptime(line["time"][:19], "%Y-%m-%dT%H:%M:%S") and line["time"].endswith("Z")
        broker.get("/nope/x?y")
        line = broker.log_lines(2)[1]
        assert (line["path"], line["status"], line["end"],
                line["error"]) == ("/nope/x", 404, "refused", "codev_unknown_name")
        assert "name" not in line
        broker.get("/up/" + "long/" * 2000)
        assert len(json.dumps(broker.log_lines(3)[2])) < 2500


def test_no_secret_is_written_anywhere(tmp_path, upstream):
    secrets = [
        SECRET, "guest-authorization", "guest-query", "guest-cookie", "guest-body", "guest-password"
    ]
    with Broker(tmp_path,
                gateway=upstream.url,
                rules={
                    "up": upstream.url,
                    "down": "https://127.0.0.1:1"
                }) as broker:
        secrets.append(broker.token)
        fields = ["Authorization: Bearer guest-authorization", "Cookie: guest-cookie"]
        for route in ("gateway", "up", "down", "nope", "_undeclared"):
            broker.get(f"/{route}/x?key=guest-query",
                       method="POST",
                       fields=fields,
                       body=b"guest-body")
        with broker.client(b"CODEV/1 " + b"f" * 64 + b"\r\n") as client:
            client.response()
        with broker.client() as client:
            client.send(
                b"GET /up/x?guest-query HTTP/1.1\r\nAuthorization: guest-authorization\r\nHost: "
                b"a\r\nHost: b\r\n\r\n"
            )
            client.response()
        with broker.client() as client:
            client.send(b"GET http://user:guest-password@h/x HTTP/1.1\r\nHost: h\r\n\r\n")
            client.response()
        broker.log_lines(8)
        process = pathlib.Path(f"/proc/{broker.process.pid}")
        written = broker.log_file.read_text() + broker.errors() + (process / "cmdline").read_text()
        written += "".join(str(event) for event in list(broker.events.queue))
        assert [secret for secret in secrets if secret in written] == []


def test_log_is_private_and_appended(tmp_path, upstream):
    with Broker(tmp_path, gateway=upstream.url) as broker:
        broker.get("/gateway/x")
        broker.log_lines(1)
        assert broker.log_file.stat().st_mode & 0o777 == 0o600


def test_log_rotates(tmp_path, upstream):
    """At most two files of 16 MiB; the log is nearly full when the broker starts."""
    log = tmp_path / "big.log"
    with open(log, "wb") as file:
        file.write(b"{}\n" * (16 * 1024 * 1024 // 3 - 100))
    with Broker(tmp_path, gateway=upstream.url, log=False, options=["--log", str(log)]) as broker:
        with broker.client() as client:
            for _ in range(20):
                client.request("/gateway/x")
        end = time.monotonic() + PATIENCE
        while not (tmp_path / "big.log.1").exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        with broker.client() as client:
            client.request("/gateway/last")
        while not log.exists() or "/gateway/last" not in log.read_text().rpartition("\n")[0]:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert log.stat().st_size < 16 * 1024
        whole = (tmp_path / "big.log.1").read_text() + log.read_text()
        assert whole.count("/gateway/") == 21


def test_refusals_are_counted_beyond_a_hundred_a_second(tmp_path):
    with Broker(tmp_path) as broker, broker.client() as client:
        count = 3000
        client.send(b"GET /nope HTTP/1.1\r\nHost: h\r\n\r\n" * count)
        for _ in range(count):
            assert client.response().status == 404
        end = time.monotonic() + PATIENCE
        while True:
            lines = broker.log_lines()
            if len(lines) + sum(line["count"] - 1 for line in lines if "count" in line) == count:
                break
            assert time.monotonic() < end, len(lines)
            time.sleep(0.1)
        assert len(lines) < count / 2


def test_log_to_standard_output_as_events(tmp_path, upstream):
    with Broker(tmp_path, gateway=upstream.url, log=False, options=["--log", "-"]) as broker:
        broker.get("/gateway/x")
        event = broker.wait_event("request")
        assert (event["name"], event["status"], event["end"]) == ("gateway", 200, "complete")


def test_log_to_standard_error_without_the_option(tmp_path, upstream):
    with Broker(tmp_path, gateway=upstream.url, log=False) as broker:
        broker.get("/gateway/x")
        end = time.monotonic() + PATIENCE
        while '"path":"/gateway/x"' not in broker.errors():
            assert time.monotonic() < end
            time.sleep(0.02)


def test_an_app_that_reads_no_events_stops_nothing(tmp_path, upstream):
    """Standard output is a pipe that is not read after the ready line."""
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    (folder / "token").write_text(SECRET)
    process = subprocess.Popen([
        BROKER, "--listen", f"unix:{folder}/s", "--gateway-url", upstream.url,
        "--gateway-token-file", folder / "token", "--ca-file",
        authority().ca, "--log", "-"
    ],
                               stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    try:
        ready = json.loads(process.stdout.readline())
        from broker_harness import Client
        with Client(f"{folder}/s", f"CODEV/1 {ready['token']}\r\n".encode()) as client:
            for _ in range(1500):  # about 300 KB of events
                assert client.request("/gateway/x").status == 200
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# --- the process ----------------------------------------------------------------------------------

@pytest.mark.skipif(SANITIZED, reason="the leak checker must trace its own process")
def test_process_cannot_be_looked_into(tmp_path):
    with Broker(tmp_path) as broker:
        process = pathlib.Path(f"/proc/{broker.process.pid}")
        # not dumpable: its files in /proc belong to root
        assert (process / "mem").stat().st_uid == 0
        limits = (process / "limits").read_text()
        assert [line.split()[4] for line in limits.splitlines()
                if line.startswith("Max core")] == ["0"]
        if os.geteuid() != 0:
            with pytest.raises(PermissionError):
                (process / "environ").read_bytes()


def test_token_is_nowhere_on_its_command_line_or_descriptors(tmp_path):
    with Broker(tmp_path) as broker:
        assert SECRET not in pathlib.Path(f"/proc/{broker.process.pid}/cmdline").read_text()
        broker.descriptors()
        assert str(broker.token_file) not in procfs.descriptors(broker.process.pid).values()


def test_help_and_version():
    assert "--gateway-url" in run_broker("--help").stdout
    assert run_broker("--version").stdout.startswith("codev-broker ")
