"""Rewriting of links in package metadata by the running broker, compared with a reference that
shares no code with it."""
import base64
import gzip
import hashlib
import json
import random
import socket
import threading
import time
import urllib.parse

import pytest

import documents
import rewrite_reference
from broker_harness import PATIENCE, SANITIZED, Broker, Upstream, fields_of, serve_with

GUEST = "http://127.0.0.1:8788"
KINDS = {  # the format in the log, path, content type, further request fields
    "npm": ("npm", "/left-pad", "application/json", ()),
    "npm-abbreviated": ("npm", "/@scope%2fleft-pad", "application/vnd.npm.install-v1+json", ()),
    "npm-version": ("npm", "/left-pad/1.0.0", "application/json; charset=utf-8", ()),
    "pypi-json": ("pypi-json", "/simple/foo-bar/", "application/vnd.pypi.simple.v1+json", ()),
    "pypi-html": ("pypi-html", "/simple/foo-bar/", "text/html; charset=UTF-8", ()),
    "cargo": ("cargo", "/index/config.json", "text/plain", ()),
    "git-lfs": ("git-lfs", "/o/r.git/info/lfs/objects/batch", "application/vnd.git-lfs+json", ()),
}
FEW_LINKS = {"npm-version", "cargo"}
LARGE = 2 << 20 if SANITIZED else 50 << 20


class Answering:
    """The upstream's next action, set by a test: a function of (peer, head)."""
    function = None
    heads = []


def answer(peer, head):
    if b" POST" in b" " + head:
        peer.read(int(fields_of(head).get("content-length", 0)))
    Answering.heads.append(head.decode("latin-1"))
    Answering.function(peer, head)


@pytest.fixture(scope="module")
def upstream():
    with Upstream(serve_with(answer)) as server:
        yield server


def rules_for(upstream):
    return {
        "up": upstream.url,
        "registry": documents.REGISTRY,
        "files": documents.FILES + "/",
        "deep": documents.FILES + "/%40scope"
    }


@pytest.fixture(scope="module")
def rules(upstream):
    return rewrite_reference.Rules(rules_for(upstream), "up")


@pytest.fixture(scope="module")
def broker(tmp_path_factory, upstream):
    with Broker(tmp_path_factory.mktemp("rewrite"), rules=rules_for(upstream)) as running:
        yield running


@pytest.fixture(autouse=True)
def fresh():
    Answering.heads = []


def serve(body, content_type, cuts=(), fields=(), status="200 OK"):
    """Serves an answer in pieces that end at `cuts`."""
    def function(peer, head):
        lines = [
            f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", f"Content-Type: {content_type}",
            *fields
        ]
        peer.send("\r\n".join(lines).encode() + b"\r\n\r\n")
        if head.startswith(b"HEAD "):
            return
        for start, end in zip((0, *cuts), (*cuts, len(body))):
            if start < end:
                peer.send(body[start:end])
    Answering.function = function


def ask(client, kind, method=None, fields=(), read=True):
    format_name, path, _, more = KINDS[kind]
    post = format_name == "git-lfs"
    return client.request("/up" + path,
                          method=method or ("POST" if post else "GET"),
                          fields=[*more, *fields],
                          body=b"{}" if post else None,
                          read=read)


def assert_rewritten(response, document, rules, kind):
    expected, count = rewrite_reference.rewrite(document, rules, KINDS[kind][0])
    assert response.status == 200 and response.complete
    if response.body != expected:
        at = next((i for i, (a, b) in enumerate(zip(response.body, expected)) if a != b),
                  min(len(response.body), len(expected)))
        assert response.body[max(0, at - 200):at + 200] == expected[max(0, at - 200):at +
                                                                    200], f"differs at {at}"
        assert len(response.body) == len(expected)
    return count


# --- documents ------------------------------------------------------------------------------------

@pytest.mark.parametrize("size", [1 << 10, 64 << 10, 1 << 20])
@pytest.mark.parametrize("kind", KINDS)
def test_a_document_is_what_the_reference_makes_of_it(broker, upstream, rules, kind, size):
    total = 0
    before = len(broker.log_lines())
    with broker.client() as client:
        for seed in range(12 if size == 1 << 10 else 3 if size < 1 << 20 else 1):
            rng = random.Random(f"{kind}{size}{seed}")
            document = documents.MAKERS[kind](size, seed)
            cuts = sorted(rng.randrange(len(document)) for _ in range(rng.choice([0, 3, 40])))
            serve(document, KINDS[kind][2], cuts)
            total += assert_rewritten(ask(client, kind), document, rules, kind)
    assert total >= (1 if kind in FEW_LINKS else size // 2000)
    lines = broker.log_lines(before + 1)[before:]
    end = time.monotonic() + PATIENCE
    while sum(line.get("links", 0) for line in lines) != total and time.monotonic() < end:
        lines = broker.log_lines()[before:]
    assert sum(line["links"] for line in lines) == total
    assert {line["rewrite"] for line in lines} == {KINDS[kind][0]}


@pytest.mark.parametrize("kind", ["npm-version", "pypi-json", "pypi-html", "cargo", "git-lfs"])
def test_every_split(broker, rules, kind):
    """The upstream's pieces are TLS records, so the broker gets the document in these pieces."""
    document = small_document(kind, rules)
    with broker.client() as client:
        for cut in range(0, len(document) + 1, 7 if SANITIZED else 1):
            serve(document, KINDS[kind][2], [cut])
            assert_rewritten(ask(client, kind), document, rules, kind)


def small_document(kind, rules):
    texts = {
        "npm-version":
            b'{"name":"x","dist":{"tarball":"https:\\/\\/files.example\\/packages\\/x\\/-\\/x-1.tgz","shasum":"0"},'
            b'"homepage":"https://files.example/packages/x","readme":"\\"tarball\\":\\"https://files.example/\\""}',
        "pypi-json":
            b'{"files":[{"url":"\\u0068ttps://files.example/packages/a-1.whl"},{"url":"https://no.example/b"},'
            b'{"url":"../c"}],"meta":{"api-version":"1.0"},"name":"a"}',
        "pypi-html":
            b'<html><!-- <a href="https://files.example/packages/x"> --><a '
            b'href="https:&#x2F;&sol;files.example/packages/a?b&amp;c#d" '
            b"data-x='>'>a</a><A HREF=//no.example/b>b</A><a href='/c'>c</a>",
        "cargo": b'{"api":"https://registry.example","dl":"https://files.example/packages/{crate}-{version}.crate"}\n',
        "git-lfs":
            b'{"objects":[{"oid":"0","actions":{"download":{"href":"https://files.example/packages/0?x=1&y=2","header":'
            b'{"href":"https://files.example/"}}}}]}',
    }
    assert rewrite_reference.rewrite(texts[kind], rules, KINDS[kind][0])[1] > 0
    return texts[kind]


def test_a_document_of_50_mb(broker, rules):
    document = documents.npm(LARGE, seed=1)
    rng = random.Random(1)
    serve(document, "application/json", sorted(rng.randrange(len(document)) for _ in range(1000)))
    with broker.client() as client:
        ask(client, "npm", read=False)
        assert b"200 OK" in client.read_until(b"\r\n\r\n")
        body = b"".join(client.read_chunks())
    expected, count = rewrite_reference.rewrite(document, rules, "npm")
    assert hashlib.sha256(body).digest() == hashlib.sha256(expected).digest()
    assert broker.log_lines(1, links=count) and count > LARGE // 3000


def test_a_slow_reader_gets_the_same(broker, rules):
    document = documents.pypi_html(2 << 20, seed=3)
    serve(document, "text/html")
    with broker.client() as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send("GET /up/simple/foo-bar/ HTTP/1.1\r\nHost: x\r\n\r\n")
        rng, received = random.Random(3), b""
        while not received.endswith(b"\r\n0\r\n\r\n"):
            data = client.socket.recv(rng.choice([100, 5000, 60000]))
            assert data
            received += data
            if rng.randrange(60) == 0:
                time.sleep(0.005)
        client.pending = received
        assert_rewritten(client.response(), document, rules, "pypi-html")


def test_links_so_dense_that_the_answer_is_many_times_longer(broker, rules):
    """The output is larger than the buffer of the input: the upstream is paused meanwhile."""
    document = json.dumps({"files": [{"url": "//a"}] * 60000}).encode()
    serve(document, KINDS["pypi-json"][2])
    with broker.client() as client:
        response = ask(client, "pypi-json")
        assert assert_rewritten(response, document, rules, "pypi-json") == 60000
        assert len(response.body) > 2 * len(document)


def test_malformed_documents_lose_nothing(broker):
    with broker.client() as client:
        for body in (b'{"dist":{"tarball":"https://files.example/packages/x',
                     b'{"a":1]' + b"x" * 100000, b"<html>", b"",
                     b'{"dist":{"tarball":"https://files.example/packages/\\', b"\xff\xfe{\0}\0"):
            serve(body, "application/json")
            response = ask(client, "npm")
            assert response.body == body and response.complete


# --- other fields and statuses --------------------------------------------------------------------

DOCUMENT = b'{"dist":{"tarball":"https://files.example/packages/x.tgz"}}'
SEEN = DOCUMENT.replace(b"https://files.example/packages", GUEST.encode() + b"/files")


def test_fields_stay_true(broker):
    serve(DOCUMENT,
          "application/json",
          fields=[
              'ETag: "abc"', "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT", "Content-MD5: x",
              "Digest: sha-256=x", "Repr-Digest: sha-256=:x:", "Content-Digest: sha-256=:x:",
              "Accept-Ranges: bytes", "X-Checksum-Sha1: x", "Cache-Control: public, max-age=300",
              "Vary: Accept", "X-Other: kept"
          ])
    with broker.client() as client:
        response = ask(client, "npm")
        assert response.body == SEEN
        head = ask(client, "npm", method="HEAD")
    assert response.fields["transfer-encoding"] == "chunked"
    assert response.fields["etag"].startswith('W/"abc~codev-s-')
    assert "Cache-Control: public, max-age=300" in response.head.decode(
    ) and "Cache-Control: no-cache" in response.head.decode()
    assert response.fields["vary"] == "Accept" and response.fields["x-other"] == "kept"
    gone = {
        "content-length", "last-modified", "content-md5", "digest", "repr-digest", "content-digest",
        "accept-ranges", "x-checksum-sha1"
    }
    assert not gone & set(response.fields)
    assert {name: value
            for name, value in response.fields.items()
            if name != "transfer-encoding"} == head.fields


def test_the_upstream_is_asked_for_the_document_as_it_is(broker):
    serve(DOCUMENT, "application/json")
    with broker.client() as client:
        for fields in (["accept-ENCODING: gzip, br", "X-Last: 1"], ["X-Last: 1"]):
            assert ask(client, "npm", fields=fields).status == 200
        assert ask(client, "git-lfs", fields=["Accept-Encoding: gzip"]).status == 200
        serve(b"x", "application/octet-stream")
        client.request("/up/left-pad/-/left-pad-1.0.0.tgz", fields=["Accept-Encoding: gzip, br"])
    asked = [fields_of(head.encode("latin-1")).get("accept-encoding") for head in Answering.heads]
    assert asked == ["identity", "identity", "identity", "gzip, br"]
    assert "accept-ENCODING: identity\r\nX-Last: 1" in Answering.heads[
        0]  # at the place and in the form that the guest used


GZIP = ["Content-Encoding: gzip", 'ETag: "abc"', "Last-Modified: x"]


@pytest.mark.parametrize("kind", ["npm", "pypi-html", "cargo"])
def test_gzip_all_the_same_is_decoded(broker, rules, kind):
    """Some servers store only compressed files, whatever the request asks for."""
    rng = random.Random(kind)
    document = documents.MAKERS[kind](300_000, seed=2)
    whole = gzip.compress(document)
    half = len(document) // 2
    with broker.client() as client:
        for body in (whole, gzip.compress(document[:half]) + gzip.compress(document[half:]),
                     whole + b"\0" * 40, gzip.compress(document, 0)):
            serve(body,
                  KINDS[kind][2],
                  sorted(rng.randrange(len(body)) for _ in range(20)),
                  fields=GZIP)
            response = ask(client, kind)
            assert_rewritten(response, document, rules, kind)
            assert "content-encoding" not in response.fields and response.fields["etag"].startswith(
                'W/"abc~codev-s-')
        head = ask(client, kind, method="HEAD")
        assert "content-encoding" not in head.fields and "content-length" not in head.fields


def test_gzip_that_grows_a_thousandfold_to_a_slow_reader(broker, rules):
    document = b'{"files":[{"url":"https://files.example/packages/a"},' + b" " * (
        8 << 20) + b'{"url":"/b"}]}'
    serve(gzip.compress(document), KINDS["pypi-json"][2], fields=GZIP)
    with broker.client() as client:
        ask(client, "pypi-json", read=False)
        time.sleep(0.2)  # so that all buffers are full
        assert broker.rss_kib() < (600_000 if SANITIZED else 60_000)
        client.read_until(b"\r\n\r\n")
        body = b"".join(client.read_chunks())
        assert body == rewrite_reference.rewrite(document, rules, "pypi-json")[0]


def test_gzip_that_is_cut_or_spoiled_breaks_off(broker):
    whole = gzip.compress(DOCUMENT * 20)
    for body in (whole[:-1], whole[:-8], whole[:len(whole) // 2], whole[:5], whole[:-8] + b"\0" * 8,
                 b"no gzip at all", DOCUMENT):
        serve(body, "application/json", fields=GZIP)
        with broker.client() as client:
            response = ask(client, "npm")
            assert response.status == 502 or not response.complete, body
    serve(b"", "application/json", fields=GZIP)
    assert broker.get("/up/left-pad").body == b""


def test_compressed_in_another_way_passes_as_it_is(broker):
    for coding in ("br", "gzip, gzip", "zstd"):
        serve(b"compressed",
              "application/json",
              fields=[f"Content-Encoding: {coding}", 'ETag: "abc"', "Last-Modified: x"])
        response = broker.get("/up/left-pad")
        assert response.body == b"compressed" and response.fields["content-encoding"] == coding
        assert response.fields["etag"] == '"abc"' and response.fields["content-length"] == "10"
    assert len(broker.log_lines(3, rewrite="encoded")) == 3


def revalidating(etag):
    """An upstream that compares entity tags strictly, as some do, and answers 304."""
    def function(peer, head):
        given = fields_of(head).get("if-none-match", "")
        if etag in [tag.strip() for tag in given.split(",")]:
            peer.send(
                f"HTTP/1.1 304 Not Modified\r\nETag: {etag}\r\nLast-Modified: x\r\n\r\n".encode())
        else:
            peer.answer(DOCUMENT, fields=["Content-Type: application/json", f"ETag: {etag}"])
    Answering.function = function


@pytest.mark.parametrize("etag", ['"abc"', 'W/"abc"'])
def test_a_conditional_request_works_as_without_us(broker, etag):
    revalidating(etag)
    with broker.client() as client:
        ours = ask(client, "npm").fields["etag"]
        for given in (ours, f'"zzz", {ours}'):
            again = ask(client, "npm", fields=[f"If-None-Match: {given}"])
            assert again.status == 304 and again.fields[
                "etag"] == ours and "last-modified" not in again.fields
            assert etag in fields_of(Answering.heads[-1].encode()
                                     )["if-none-match"] and "codev" not in Answering.heads[-1]
        assert ask(client, "npm", method="HEAD", fields=[f"If-None-Match: {ours}"]).status == 304
        assert ask(client, "npm", fields=['If-None-Match: "other"']).body == SEEN


def test_a_copy_made_under_other_rules_is_fetched_again(tmp_path, broker, upstream):
    revalidating('"abc"')
    with broker.client() as client:
        ours = ask(client, "npm").fields["etag"]
    with Broker(tmp_path, rules={"up": upstream.url}) as other, other.client() as client:
        response = ask(
            client,
            "npm",
            fields=[f"If-None-Match: {ours}", "If-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT"])
        assert response.status == 200
        assert b"/_undeclared/files.example/packages/x.tgz" in response.body
        assert "If-" not in Answering.heads[-1]
        assert response.fields["etag"] != ours


def test_a_part_of_a_document_is_given_whole(broker):
    def function(peer, head):
        if "range" in fields_of(head):
            peer.answer(DOCUMENT[5:20],
                        status="206 Partial Content",
                        fields=[
                            "Content-Type: application/json",
                            f"Content-Range: bytes 5-19/{len(DOCUMENT)}", 'ETag: "abc"'
                        ])
        else:
            peer.answer(DOCUMENT, fields=["Content-Type: application/json", 'ETag: "abc"'])
    Answering.function = function
    with broker.client() as client:
        response = ask(client, "npm", fields=["Range: bytes=5-19", 'If-Range: "abc"'])
        assert response.status == 200 and response.body == SEEN
        assert "content-range" not in response.fields
        assert len(Answering.heads) == 2 and "Range" not in Answering.heads[1]
        # other content can still be requested in ranges
        def file(peer, head):
            peer.answer(b"x" * 5,
                        status="206 Partial Content",
                        fields=["Content-Type: application/x-iso", "Content-Range: bytes 0-4/9"])
        Answering.function = file
        response = client.request("/up/disk", fields=["Range: bytes=0-4"])
        assert response.status == 206 and response.body == b"xxxxx" and response.fields[
            "content-range"] == "bytes 0-4/9"


def test_other_answers_are_not_touched(broker):
    fields = ['ETag: "abc"', "Last-Modified: x", "Accept-Ranges: bytes", "Digest: x"]
    with broker.client() as client:
        for target, content_type, status in [
            ("/up/left-pad/-/left-pad-1.0.0.tgz", "application/json", "200 OK"),
            ("/up/left-pad", "text/plain", "200 OK"),
            ("/up/left-pad", "application/json", "404 Not Found"),
            ("/up/packages/x.whl", "text/html", "200 OK"),
            ("/up/packages/x.whl.metadata", "application/vnd.pypi.simple.v1+json", "200 OK"),
            ("/up/hello.txt", "application/json", "200 OK"),
            ("/up/dists/stable/InRelease", "application/json", "200 OK"),
            ("/up/sumdb/sum.example/lookup/x@v1", "application/json", "200 OK")
        ]:
            serve(DOCUMENT, content_type, fields=fields, status=status)
            response = client.request(target)
            assert response.body == DOCUMENT, target
            assert response.fields["etag"] == '"abc"' and response.fields["content-length"] == str(
                len(DOCUMENT))
            assert response.fields["last-modified"] == "x" and response.fields["digest"] == "x"


def test_the_gateway_is_never_rewritten_nor_a_target(tmp_path):
    body = b'{"dist":{"tarball":"%s/v1/x.tgz"}}'
    with Upstream(
            serve_with(lambda peer, head: peer.answer(
                body % server.url.encode(), fields=["Content-Type: application/json"]))) as server:
        with Broker(tmp_path, gateway=server.url, rules={"up": server.url + "/only"}) as broker:
            assert broker.get("/gateway/left-pad").body == body % server.url.encode()
            host = server.url.removeprefix("https://")
            assert f"{GUEST}/_undeclared/{host}/v1/x.tgz" in broker.get(
                "/up/left-pad").body.decode()


def test_the_guests_host_header_counts_for_nothing(broker):
    serve(DOCUMENT, "application/json")
    with broker.client() as client:
        client.send(
            "GET /up/left-pad HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: "
            "evil.example\r\n\r\n"
        )
        assert client.response().body == SEEN


def test_guest_url(tmp_path, upstream):
    serve(DOCUMENT,
          "application/json",
          fields=["Link: <https://files.example/packages/y>; rel=next"])
    with Broker(tmp_path, rules=rules_for(upstream), options=["--guest-url",
                                                              "http://[::1]:9000"]) as broker:
        response = broker.get("/up/left-pad")
        assert b'"http://[::1]:9000/files/x.tgz"' in response.body
        assert response.fields["link"] == "<http://[::1]:9000/files/y>; rel=next"


def test_link_header(broker, upstream):
    serve(
        b"[]",
        "application/json",
        fields=[
            f'Link: <{upstream.url}/items?page=2>; rel="next", <https://files.example/packages/x>; '
            f'rel=x; title="<{upstream.url}/>"',
            "Link: <https://elsewhere.example/y>; rel=y, </items?page=9>; rel=last"
        ])
    head = broker.get("/up/repos/x/items").head.decode()
    assert (f'Link: <{GUEST}/up/items?page=2>; rel="next", <{GUEST}/files/x>; rel=x; '
            f'title="<{upstream.url}/>"\r\n') in head
    link = f"<https://elsewhere.example/y>; rel=y, <{GUEST}/up/items?page=9>; rel=last"
    assert f"Link: {link}\r\n" in head


def test_an_undeclared_link_names_the_missing_rule(broker):
    serve(b'{"dist":{"tarball":"https://cdn.example:8443/x/-/x-1.tgz"}}', "application/json")
    with broker.client() as client:
        link = json.loads(ask(client, "npm").body)["dist"]["tarball"]
        assert link == f"{GUEST}/_undeclared/cdn.example:8443/x/-/x-1.tgz"
        response = client.request(link.removeprefix(GUEST))
    assert response.status == 403 and response.error == "codev_no_rule"
    assert "no rule for https://cdn.example:8443: add one" in response.json["error"]["message"]


def test_a_tarball_by_its_rewritten_link(tmp_path):
    """Follows a link of the document to the file: the digest verifies and the bytes are the
    upstream's."""
    tarball = random.Random(5).randbytes(300_000)
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()

    def files(peer, head):
        if "range" in fields_of(head):
            peer.answer(tarball[10:20],
                        status="206 Partial Content",
                        fields=[f"Content-Range: bytes 10-19/{len(tarball)}"])
        else:
            peer.answer(tarball,
                        fields=[
                            "Content-Type: application/octet-stream", 'ETag: "t"',
                            "Accept-Ranges: bytes"
                        ])

    def registry(peer, _):
        url = f"{store.url}/x/-/x-1.0.0.tgz"
        peer.answer(json.dumps({
            "versions": {
                "1.0.0": {
                    "dist": {
                        "tarball": url,
                        "integrity": integrity
                    }
                }
            }
        }).encode(),
                    fields=["Content-Type: application/json"])

    with Upstream(serve_with(files)) as store, Upstream(serve_with(registry)) as index:
        with Broker(tmp_path, rules={
                "npm": index.url,
                "store": store.url
        }) as broker, broker.client() as client:
            dist = client.request("/npm/x").json["versions"]["1.0.0"]["dist"]
            path = urllib.parse.urlsplit(dist["tarball"]).path
            assert path == "/store/x/-/x-1.0.0.tgz"
            response = client.request(path)
            assert "sha512-" + base64.b64encode(hashlib.sha512(
                response.body).digest()).decode() == dist["integrity"]
            assert response.fields["etag"] == '"t"' and response.fields["content-length"] == str(
                len(tarball))
            assert client.request(path, fields=["Range: bytes=10-19"]).body == tarball[10:20]


# --- ends -----------------------------------------------------------------------------------------

def test_an_upstream_that_breaks_off_breaks_off(broker):
    def function(peer, _):
        peer.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n" +
            DOCUMENT[:40])
        arrived.wait(PATIENCE)
        peer.reset()
    arrived, Answering.function = threading.Event(), function
    with broker.client() as client:
        ask(client, "npm", read=False)
        client.pending = client.read_until(b"\r\n\r\n") + client.pending
        arrived.set()
        response = client.response()
    assert response.status == 200 and not response.complete
    assert DOCUMENT.startswith(response.body)


def test_an_old_client_reads_until_the_end(broker):
    serve(DOCUMENT, "application/json")
    with broker.client() as client:
        client.send("GET /up/left-pad HTTP/1.0\r\n\r\n")
        response = client.response()
    assert response.body == SEEN and "transfer-encoding" not in response.fields and response.fields[
        "connection"] == "close"


def test_a_document_comes_as_it_is_sent(broker):
    """A piece is passed on before the next one comes, except for an incomplete link."""
    go_on = threading.Event()

    def function(peer, _):
        peer.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: "
            b"chunked\r\n\r\n"
        )
        for piece in (b'{"name":"x","readme":"half a ',
                      b'sentence","dist":{"tarball":"https://files', b'.example/packages/x.tgz"}}'):
            peer.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            assert go_on.wait(PATIENCE)
            go_on.clear()
        peer.send(b"0\r\n\r\n")
    Answering.function = function
    with broker.client() as client:
        ask(client, "npm", read=False)
        client.read_until(b"\r\n\r\n")
        pieces = client.read_chunks()
        received = b""
        for expected in (b'{"name":"x","readme":"half a ', b'sentence","dist":{"tarball":"',
                         b'http://127.0.0.1:8788/files/x.tgz"}}'):
            while len(received) < len(expected):
                received += next(pieces)
            assert received == expected
            received = b""
            go_on.set()
        assert next(pieces, None) is None


# --- memory ---------------------------------------------------------------------------------------

STREAMS = 64


@pytest.mark.parametrize("coding", ["plain", "gzip"])
def test_64_streams_of_50_mb_need_little_memory(tmp_path, upstream, coding):
    """All of them are in progress at once and blocked, with all buffers full."""
    piece = documents.npm(1 << 20, seed=7)
    fields = "Content-Encoding: gzip\r\n" if coding == "gzip" else ""
    pieces = (50 << 20) // len(piece)
    if coding == "gzip":
        piece = gzip.compress(piece)
    sent = []

    def function(peer, _):
        peer.send(
            f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{fields}Content-Length: "
            f"{pieces * len(piece)}\r\n\r\n"
            .encode())
        sent.append(peer)
        for _ in range(pieces):
            peer.send(piece)
    with Broker(tmp_path, rules=rules_for(upstream)) as broker:
        serve(DOCUMENT, "application/json")
        broker.get("/up/left-pad")
        Answering.function = function
        before = broker.rss_kib()
        clients = [broker.client() for _ in range(STREAMS)]
        for client in clients:
            ask(client, "npm", read=False)
        for client in clients:
            received = 0
            while received < 200_000:
                part = client.socket.recv(65536)
                assert part, f"it ended after {received} bytes"
                received += len(part)
        assert len(sent) == STREAMS
        each = (broker.rss_kib() - before) / STREAMS
        for client in clients:
            client.close()
    print(f"{each:.0f} KiB for each stream")
    if not SANITIZED:
        assert each < 256
