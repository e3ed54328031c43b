"""Framing of messages: strict requests, answers with new framing, order of pipelined answers."""
import threading

import pytest

from broker_harness import PATIENCE, Broker, Upstream, echo, fields_of, serve_with

HOST = b"Host: h\r\n"


class Answering:
    raw = None
    close = False


def upstream_handler(peer):
    while head := peer.read_head():
        if Answering.raw is None:
            echo(peer, head)
            if head.startswith(b"HEAD"):
                return  # what echo sent after its head is not an answer
        else:
            peer.read(int(fields_of(head).get("content-length", 0)))
            peer.send(Answering.raw)
            if Answering.close:
                return


@pytest.fixture(scope="module")
def upstream():
    with Upstream(upstream_handler) as server:
        yield server


@pytest.fixture(scope="module")
def broker(tmp_path_factory, upstream):
    with Broker(tmp_path_factory.mktemp("framing"),
                gateway=upstream.url,
                rules={"up": upstream.url}) as running:
        yield running


@pytest.fixture(autouse=True)
def fresh():
    Answering.raw, Answering.close = None, False


# --- requests -------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [
    b"GET /up/x HTTP/1.1\n" + HOST + b"\r\n",
    b"GET /up/x HTTP/1.1\r\nHost: h\n\r\n",
    b"GET /up/x HTTP/1.1\r\n" + HOST + b"X: a\r\n b\r\n\r\n",
    b"GET /up/x HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
    b"GET /up/x HTTP/1.1\r\n\r\n",
    b"GET /up/x HTTP/1.1\r\n" + HOST + b"X : a\r\n\r\n",
    b"GET /up/x HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n",
    b"GET  /up/x HTTP/1.1\r\n" + HOST + b"\r\n",
    b"POST /up/x HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    b"POST /up/x HTTP/1.1\r\n" + HOST +
    b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /up/x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n",
    b"POST /up/x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"POST /up/x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    b"POST /up/x HTTP/1.1\r\n" + HOST + b"Content-Length: +3\r\n\r\nabc",
    b"POST /up/x HTTP/1.1\r\n" + HOST + b"Content-Length: 3, 3\r\n\r\nabc",
])
@pytest.mark.parametrize("split", [False, True])
def test_malformed_heads_are_400_and_close(broker, upstream, raw, split):
    before = upstream.accepted
    with broker.client() as client:
        for piece in ([raw[i:i + 1] for i in range(len(raw))] if split else [raw]):
            try:
                client.send(piece)
            except OSError:
                break
        response = client.response()
        assert response.status in (400, 501) and response.error == "codev_bad_request"
        assert response.fields["connection"] == "close"
        assert client.is_closed()
    assert upstream.accepted == before


@pytest.mark.parametrize("chunks", [
    b"3\nabc\r\n", b"g\r\n", b"3\r\nabcX", b"-1\r\n", b"3 \r\nabc\r\n", b"0x3\r\nabc\r\n",
    b"3\r\nabc\r\n0\r\nX\r\n\r\n", b"ffffffffffffffffff\r\n"
])
def test_malformed_chunks_are_400_and_close(broker, chunks):
    with broker.client() as client:
        client.send(b"POST /up/x HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n" +
                    chunks)
        response = client.response()
        assert (response.status, response.error) == (400, "codev_bad_request")
        assert client.is_closed()


def test_head_too_large_is_431(broker):
    with broker.client() as client:
        client.send(b"GET /up/x HTTP/1.1\r\n" + HOST)
        try:
            for _ in range(100):
                client.send(b"X: " + b"y" * 1000 + b"\r\n")
        except OSError:
            pass
        assert client.response().status == 431
        assert client.is_closed()


def test_versions(broker):
    with broker.client() as client:
        client.send(b"GET /up/x HTTP/2.0\r\n" + HOST + b"\r\n")
        assert client.response().status == 505
    with broker.client() as client:
        client.send(b"GET /up/x HTTP/1.0\r\n\r\n")
        response = client.response()
        assert response.status == 200 and "transfer-encoding" not in response.fields
        assert client.is_closed()


@pytest.mark.parametrize("body", [b"", b"x", b"y" * 100000])
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("method", ["POST", "PUT", "GET", "DELETE"])
def test_bodies_arrive_whole_in_their_own_framing(broker, body, chunked, method):
    with broker.client() as client:
        if chunked:
            framed = b"".join(b"%x;ext=1\r\n%s\r\n" % (len(body[i:i + 7777]), body[i:i + 7777])
                              for i in range(0, len(body), 7777))
            client.send(f"{method} /up/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n".
                        encode())
            client.send(framed + b"0\r\nX-Trailer: dropped\r\n\r\n")
        else:
            client.send(f"{method} /up/x HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n"
                        .encode() + body)
        what = client.response().json
        assert (what["method"], what["length"]) == (method, len(body))
        names = {name.lower(): value for name, value in what["fields"]}
        assert names.get("transfer-encoding") == ("chunked" if chunked else None)
        assert names.get("content-length") == (None if chunked else str(len(body)))
        assert "x-trailer" not in names
        assert client.request("/up/y").status == 200  # the connection stays usable after the body


def test_post_without_a_body_has_a_length(broker):
    names = {
        name.lower(): value
        for name, value in broker.get("/up/x", method="POST").json["fields"]
    }
    assert names["content-length"] == "0"


def test_expect_continue(broker):
    with broker.client() as client:
        client.send(b"POST /up/x HTTP/1.1\r\n" + HOST +
                    b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        assert client.response().status == 100
        client.send(b"hello")
        what = client.response().json
        assert what["body"] == "hello"
        assert "expect" not in {name.lower() for name, _ in what["fields"]}


def test_expect_continue_is_not_given_to_what_is_refused(broker):
    with broker.client() as client:
        client.send(b"POST /nope HTTP/1.1\r\n" + HOST +
                    b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        assert client.response().status == 404
        assert client.is_closed()  # otherwise the next request could not be told from the body


def test_other_expectations_are_417(broker):
    assert broker.get("/up/x", method="POST", fields=["Expect: magic"], body=b"x").status == 417


@pytest.mark.parametrize("upgrade,status", [("websocket", 426), ("h2c", 200),
                                            ("websocket, h2c", 426)])
def test_upgrade(broker, upgrade, status):
    with broker.client() as client:
        response = client.request("/up/x",
                                  fields=[
                                      f"Upgrade: {upgrade}", "Connection: Upgrade, HTTP2-Settings",
                                      "HTTP2-Settings: AAM"
                                  ])
        assert response.status == status
        if status == 200:
            assert not {"upgrade", "http2-settings"
                        } & {name.lower()
                             for name, _ in response.json["fields"]}
        assert client.request("/up/y").status == 200


def test_refusal_with_a_body_is_seen(broker):
    """A client that sends a large body to a route that does not exist reads a 404, not a broken
    connection."""
    with broker.client() as client:
        client.send(b"POST /nope HTTP/1.1\r\n" + HOST + b"Content-Length: 3000000\r\n\r\n")
        for _ in range(30):
            client.send(b"z" * 100000)
        assert client.response().status == 404
        assert client.is_closed()


# --- pipelining -----------------------------------------------------------------------------------

def test_pipelined_answers_come_in_order(broker):
    count = 200
    with broker.client() as client:
        requests = b""
        for i in range(count):
            name = b"nope" if i % 5 == 0 else b"up"
            requests += b"POST /%s/%d HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n" % (name, i)
        client.send(requests)
        for i in range(count):
            response = client.response()
            if i % 5 == 0:
                assert response.status == 404
            else:
                assert response.json["target"] == f"/{i}"


def test_flood_of_pipelined_refusals_to_a_client_that_does_not_read(broker):
    with broker.client() as client:
        client.socket.settimeout(0.3)
        sent = 0
        request = b"GET /nope HTTP/1.1\r\nHost: h\r\n\r\n"
        try:
            for _ in range(2000):
                sent += client.socket.send(request * 50)
        except TimeoutError:
            pass
        client.socket.settimeout(PATIENCE)
        assert broker.rss_kib() < (400_000 if "san" in str(broker.process.args[0]) else 80_000)
        for _ in range(sent // len(request)):
            assert client.response().status == 404


def test_close_and_keep_alive(broker):
    with broker.client() as client:
        response = client.request("/up/x", fields=["Connection: close"])
        assert response.fields["connection"] == "close"
        assert client.is_closed()
    with broker.client() as client:
        for _ in range(3):
            assert "connection" not in client.request("/up/x").fields


def test_empty_lines_before_a_request(broker):
    with broker.client() as client:
        client.send(b"\r\n\r\n")
        assert client.request("/up/x").status == 200


# --- answers --------------------------------------------------------------------------------------

def raw_answer(broker, raw, close=False, method="GET", version=b"HTTP/1.1"):
    Answering.raw, Answering.close = raw, close
    with broker.client() as client:
        client.send(method.encode() + b" /up/x " + version + b"\r\nHost: h\r\n\r\n")
        return client.response(method == "HEAD")


def test_head_has_fields_and_no_body(broker):
    response = raw_answer(broker,
                          b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nX: 1\r\n\r\n",
                          method="HEAD")
    assert response.status == 200 and response.fields[
        "content-length"] == "12345" and response.fields["x"] == "1"
    with broker.client() as client:
        assert client.request("/up/x", method="HEAD").status == 200
        Answering.raw = None
        assert client.request("/up/x").status == 200  # the connection stays usable


def test_head_with_a_body_is_400(broker):
    assert broker.get("/up/x", method="HEAD", body=b"").status == 200
    assert broker.get("/up/x", method="HEAD", body=b"x").status == 400


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_statuses_without_a_body(broker, status):
    with broker.client() as client:
        Answering.raw = b"HTTP/1.1 " + status + b"\r\nETag: \"1\"\r\n\r\n"
        response = client.request("/up/x")
        assert response.status == int(status[:3]) and "transfer-encoding" not in response.fields
        Answering.raw = None
        assert client.request("/up/y").status == 200


def test_unknown_length_becomes_chunked(broker):
    response = raw_answer(broker, b"HTTP/1.1 200 OK\r\n\r\nuntil the end", close=True)
    assert response.fields["transfer-encoding"] == "chunked"
    assert response.body == b"until the end" and response.complete


def test_upstream_of_http_1_0(broker):
    response = raw_answer(broker, b"HTTP/1.0 200 OK\r\n\r\nold", close=True)
    assert response.version == "HTTP/1.1" and response.body == b"old" and response.complete


def test_client_of_http_1_0_gets_no_chunks(broker):
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    response = raw_answer(broker, chunks, version=b"HTTP/1.0")
    assert "transfer-encoding" not in response.fields and response.body == b"abc"


def test_framing_fields_are_never_copied(broker):
    response = raw_answer(
        broker,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 99\r\nTrailer: X\r\n\r\n"
        b"3\r\nabc\r\n0\r\nX: 1\r\n\r\n")
    assert response.body == b"abc" and response.complete and "content-length" not in response.fields


def test_interim_answers_stay_between_broker_and_upstream(broker):
    response = raw_answer(
        broker, b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    assert response.status == 200 and response.body == b"ok" and "link" not in response.fields


@pytest.mark.parametrize("raw", [
    b"not http at all\r\n\r\n",
    b"",
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    b"HTTP/1.1 200 OK\r\nContent-Length: three\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX\x01Y: a\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 1000 + b"\r\n",
    b"HTTP/1.1 200 OK\r\n" + (b"X: " + b"y" * 1000 + b"\r\n") * 80 + b"\r\n",
])
def test_upstreams_that_do_not_speak_http_are_502(broker, raw):
    response = raw_answer(broker, raw, close=True)
    assert (response.status, response.error) == (502, "codev_upstream_broken")


FOLDED = b"HTTP/1.1 200 OK\r\n X: y\r\nContent-Length: 2\r\n\r\nok"


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("raw", [FOLDED, b"HTTP/1.1 103 Hints\r\n\tX: y\r\n\r\n" + FOLDED])
def test_head_that_begins_folded_after_a_finished_request(broker, method, raw):
    """Stale pointers of the previous request must not be used: they point to freed memory."""
    for _ in range(20):
        Answering.raw = None
        assert broker.get("/up/x").status == 200
        response = raw_answer(broker, raw, method=method)
        assert (response.status, response.error) == (502, "codev_upstream_broken")
    Answering.raw = None
    assert broker.get("/up/x").status == 200


def test_head_that_begins_folded_after_a_part(tmp_path):
    """A partial answer for a document that is rewritten is not passed on: the same exchange
    requests the whole document."""
    def handler(peer, head):
        if b"\r\nRange:" in head:
            peer.answer(b"{", status="206 Partial Content",
                        fields=["Content-Type: application/json", "Content-Range: bytes 0-0/9"])
        else:
            peer.send(FOLDED)

    with Upstream(serve_with(handler)) as upstream, Broker(tmp_path,
                                                           rules={"npm": upstream.url}) as broker:
        for _ in range(20):
            response = broker.get("/npm/left-pad", fields=["Range: bytes=0-0"])
            assert (response.status, response.error) == (502, "codev_upstream_broken")


LINE = b"X: " + b"y" * 102400 + b"\r\n"


@pytest.mark.parametrize("raw", [
    b"HTTP/1.1 200 OK\r\n" + LINE + b"\r\n",
    b"HTTP/1.1 200 OK\r\n" + LINE * 3,
    b"HTTP/1.1 200 OK\r\nA: b\r\n" + LINE[:-2],
    b"HTTP/1.1 200 " + LINE,
    b"HTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n" + LINE,
    b"HTTP/1.1 103 Early\r\nA: " + b"b" * 9999 + b"\r\n\r\n" + b"HTTP/1.1 200 OK\r\n" + LINE,
    b"HTTP/1.1 200 OK\r\n" + b"A: bcdefghijk\r\n" * 99999,
])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_lines_beyond_libcurls_limit_are_502(broker, raw, method):
    response = raw_answer(broker, raw, close=True, method=method)
    assert (response.status, response.error) == (502, "codev_upstream_broken")
    assert "head of the upstream's answer is too large" in response.json["error"]["message"]


@pytest.mark.parametrize("raw", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nhalf",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n",
])
def test_truncation_stays_visible(broker, raw):
    response = raw_answer(broker, raw, close=True)
    assert response.status == 200 and not response.complete and response.body == b"half"


def test_reset_of_a_close_delimited_answer_is_visible(tmp_path):
    arrived = threading.Event()

    def breaking(peer, head):
        peer.send(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        arrived.wait(PATIENCE)
        peer.reset()

    with Upstream(serve_with(breaking)) as upstream, Broker(
            tmp_path, gateway=upstream.url) as broker, broker.client() as client:
        client.request("/gateway/x", read=False)
        client.pending = client.read_until(b"half") + client.pending
        arrived.set()
        response = client.response()
        assert response.body == b"half" and not response.complete
        assert broker.log_lines(1)[0]["end"] == "upstream-error"
