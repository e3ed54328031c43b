"""The broker's TCP port for unauthenticated peers: TLS 1.2 with one key and two cipher suites, and
nothing else."""

import contextlib
import hashlib
import re
import socket
import ssl
import struct
import subprocess
import time

import pytest
from relay_harness import PATIENCE, eventually, read_all
from broker_harness import Broker, run_broker
from tls_harness import AgentClient, SecureBroker, Wire, agent_to

SUITES = {0xC02B, 0xCCA9}  # ECDHE_ECDSA with AES_128_GCM_SHA256, with CHACHA20_POLY1305_SHA256
UNAUTHENTICATED_LIMIT = 5


@pytest.fixture(name="broker", scope="module")
def broker_of_module(tmp_path_factory):
    with SecureBroker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


def is_served(broker):
    with agent_to(broker) as (_, front), AgentClient(front) as client:
        return client.request("/nothing").status == 404


# --- contents of the ready line -------------------------------------------------------------------

def test_the_ready_line_has_the_port_that_was_taken_and_the_pin(tmp_path):
    with SecureBroker(tmp_path, listen=["tcp:127.0.0.1:0",
                                        "tcp:[::1]:0"]) as one, SecureBroker(tmp_path) as other:
        assert [re.sub(r"\d+$", "N", text)
                for text in one.endpoints] == ["tcp:127.0.0.1:N", "tcp:[::1]:N"]
        assert all(not text.endswith(":0") for text in one.endpoints)
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", one.ready["pin"])
        assert one.ready["pin"] != other.ready["pin"]
        for endpoint in one.endpoints:
            with agent_to(one, [endpoint]) as (_, front), AgentClient(front) as client:
                assert client.request("/nothing").status == 404


def test_without_tcp_there_is_no_pin(tmp_path):
    with Broker(tmp_path) as broker:
        assert broker.ready["pin"] is None


def test_a_port_that_is_taken(broker, tmp_path):
    (tmp_path / "token").write_text("x")
    done = run_broker("--listen", broker.endpoints[0], "--gateway-url", "https://127.0.0.1:1",
                      "--gateway-token-file", tmp_path / "token")
    assert done.returncode == 69 and broker.endpoints[0] in done.stderr and done.stdout == ""


# --- independent peers ----------------------------------------------------------------------------

def messages(stream):
    """[(type, body)] of the handshake messages in a peer's unencrypted records."""
    handshake, found = b"", []
    while len(stream) >= 5 and stream[0] == 22:
        length = struct.unpack(">H", stream[3:5])[0]
        handshake, stream = handshake + stream[5:5 + length], stream[5 + length:]
    while len(handshake) >= 4:
        length = int.from_bytes(handshake[1:4], "big")
        found.append((handshake[0], handshake[4:4 + length]))
        handshake = handshake[4 + length:]
    return found


def test_openssl_agrees_on_all_but_the_certificate(broker):
    with Wire(broker.address) as wire:
        done = subprocess.run(
            ["openssl", "s_client", "-connect",
             wire.endpoint.removeprefix("tcp:"), "-tls1_2"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False)
        answer = dict(messages(bytes(wire.down)))
    assert done.returncode != 0
    assert "asn1" in done.stderr and "tls_process_server_certificate" in done.stderr
    assert sorted(answer) == [2, 11, 12,
                              14]  # ServerHello, Certificate, ServerKeyExchange, ServerHelloDone
    hello, certificate, exchange = answer[2], answer[11], answer[12]
    assert hello[:2] == b"\3\3"
    session = 35 + hello[34]
    assert int.from_bytes(hello[session:session + 2], "big") in SUITES
    assert hello[session + 2] == 0  # no compression
    assert certificate[:7] == bytes([0, 0, 68, 0, 0, 65, 4]) and len(certificate) == 71
    assert "sha256:" + hashlib.sha256(certificate[6:]).hexdigest() == broker.ready["pin"]
    assert exchange[:3] == b"\3\0\x17"  # named curve secp256r1


def shake(broker, context):
    """A handshake with the broker by Python's ssl, another implementation."""
    with broker.connect() as sock:
        try:
            with context.wrap_socket(sock):
                return "agreed"
        except ssl.SSLError as failure:
            return failure.reason or str(failure)
        except OSError as failure:
            return type(failure).__name__


def context_of(version=ssl.TLSVersion.TLSv1_2, ciphers=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers((ciphers or "ALL") + ":@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    return context


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("version",
                         [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_3])
def test_other_versions_are_refused(broker, version):
    reason = shake(broker, context_of(version))
    assert reason in ("TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "WRONG_SSL_VERSION",
                      "SSLV3_ALERT_HANDSHAKE_FAILURE", "WRONG_VERSION_NUMBER"), reason
    assert is_served(broker)


@pytest.mark.parametrize("suite", [
    "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES128-SHA",
    "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-CHACHA20-POLY1305", "AES128-GCM-SHA256",
    "DHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-NULL-SHA", "AECDH-NULL-SHA"
])
def test_other_suites_are_refused(broker, suite):
    assert shake(broker, context_of(ciphers=suite)) == "SSLV3_ALERT_HANDSHAKE_FAILURE"


@pytest.mark.parametrize("suite",
                         ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"])
def test_each_suite_gets_as_far_as_the_certificate(broker, suite):
    has_aes = {"aes", "pclmulqdq"} <= set(open("/proc/cpuinfo").read().split())
    reason = shake(broker, context_of(ciphers=suite))
    if "GCM" in suite and not has_aes:
        assert reason == "SSLV3_ALERT_HANDSHAKE_FAILURE"
    else:
        assert "ALERT" not in reason and reason != "agreed"


@pytest.mark.parametrize("option",
                         [["-groups", "X25519"], ["-groups", "P-384"], ["-sigalgs", "ECDSA+SHA384"]]
                         )
def test_other_curves_and_hashes_are_refused(broker, option):
    host, port = broker.address
    done = subprocess.run(["openssl", "s_client", "-connect", f"{host}:{port}", "-tls1_2", *option],
                          stdin=subprocess.DEVNULL,
                          capture_output=True,
                          text=True,
                          timeout=PATIENCE,
                          check=False)
    assert done.returncode != 0 and "handshake failure" in done.stderr, done.stderr


# --- input that is not TLS ------------------------------------------------------------------------

HELLO = bytes.fromhex("1603010200")
NO_TLS = {
    "http": b"GET /gateway/v1/models HTTP/1.1\r\nHost: x\r\n\r\n",
    "preface": b"CODEV/1 " + b"0" * 64 + b"\r\nGET / HTTP/1.1\r\n\r\n",
    "one byte": b"G",
    "zeros": bytes(4096),
    "ssl 2": bytes.fromhex("802e0100020015000000100100800200800300800400800500800600400700c0"),
    "another major version": b"\x16\x05\x01\x02\x00" + bytes(64),
    "application data first": b"\x17\x03\x03\x00\x10" + bytes(16),
    "a record that is too long": b"\x16\x03\x01\xff\xff" + bytes(64),
    "a message that is no hello": b"\x16\x03\x01\x00\x04\x10\x00\x00\x00",
    "a hello of nothing": b"\x16\x03\x01\x00\x04\x01\x00\x00\x00",
}


@pytest.mark.parametrize("name", NO_TLS)
def test_what_is_no_tls_is_closed_at_once_without_an_answer(broker, name):
    """Earlier than the time limit. One success in a few tries is enough, as a busy machine may
    delay the test as long."""
    def closes_at_once():
        with broker.connect() as sock:
            began = time.monotonic()
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                sock.sendall(NO_TLS[name])
                assert read_all(sock) == b""
            return time.monotonic() - began < UNAUTHENTICATED_LIMIT - 1

    assert any(closes_at_once() for _ in range(3))
    assert is_served(broker)


def test_the_log_names_strangers_but_not_what_they_said(tmp_path):
    with SecureBroker(tmp_path) as broker:
        with broker.connect() as sock:
            sock.sendall(NO_TLS["http"])
            with contextlib.suppress(ConnectionResetError):
                read_all(sock)
        line, = broker.log_lines(1, end="refused")
        assert (line["status"], line["error"]) == (0, "codev_no_tls") and "path" not in line


def first_hello(broker):
    """The first bytes that a relay sends."""
    with Wire(broker.address) as wire, agent_to(
            broker, [wire.endpoint]) as (_, front), AgentClient(front) as client:
        assert client.request("/nothing").status == 404
        return bytes(wire.up[:5 + struct.unpack(">H", wire.up[3:5])[0]])


def test_silence_and_half_handshakes_do_not_stand_in_the_way(broker):
    """65 unauthenticated connections, one more than the limit, each stopped at another byte of a
    real ClientHello. A client with the key waits no longer than their time limit, and none of them
    gets an answer."""
    hello = first_hello(broker)
    before = broker.descriptors()
    began = time.monotonic()
    strangers = [broker.connect() for _ in range(65)]
    for index, sock in enumerate(strangers):
        sock.sendall(hello[:index * len(hello) // 65])
    assert is_served(broker)
    for sock in strangers:
        with sock, contextlib.suppress(ConnectionResetError):
            assert read_all(sock) == b""
    assert time.monotonic() - began > 1
    eventually(lambda: broker.descriptors() <= before)


def test_floods_of_empty_records_and_warnings_starve_nobody(broker):
    """A peer that keeps sending records that are cheap to make."""
    flood = [(b"\x16\x03\x01\x00\x00" * 3000), (b"\x15\x03\x01\x00\x02\x01\x5a" * 2000)]
    with contextlib.ExitStack() as stack:
        for data in flood:
            sock = stack.enter_context(broker.connect())
            sock.setblocking(False)
            with contextlib.suppress(OSError):
                for _ in range(20):
                    sock.send(data)
        assert is_served(broker)


def test_more_connections_than_there_are_places_are_closed_without_a_clear_word(tmp_path):
    with SecureBroker(tmp_path, options=["--max-connections", "4"]) as broker:
        with contextlib.ExitStack() as stack:
            held = [stack.enter_context(broker.connect()) for _ in range(4)]
            with broker.connect() as sock, contextlib.suppress(ConnectionResetError):
                assert read_all(sock) == b""
            assert len(held) == 4
        eventually(lambda: is_served(broker))


def test_a_wrong_token_is_answered_through_tls_and_nowhere_else(broker):
    with Wire(broker.address) as wire, agent_to(broker, [wire.endpoint],
                                                secret="0" * 64) as (_, front):
        with AgentClient(front) as client:
            answer = client.request("/gateway/v1/models")
        assert (answer.status, answer.error) == (401, "codev_unauthenticated")
        assert b"401" not in wire.down and b"HTTP" not in wire.down
    with agent_to(broker,
                  secret="") as (_, front), AgentClient(front) as client:  # no preface at all
        assert client.request("/gateway/v1/models").status == 401


def test_the_port_is_gone_with_the_broker(tmp_path):
    with SecureBroker(tmp_path) as broker:
        address = broker.address
        with broker.connect():
            pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=PATIENCE)
