"""Each kind of proxy, with real programs: squid by HTTP, by TLS and with logins, and microsocks;
and what a proxy must not be told."""
import contextlib
import os
import shutil
import urllib.parse

import pytest

from broker_harness import PATIENCE, Broker, Upstream, authority, other_authority, serve_with
from proxy_harness import OutsideAuthority, OutsideNginx, Socks, Squid, outside

USER = f"{urllib.parse.quote(Squid.USER)}:{urllib.parse.quote(Squid.PASSWORD, safe='')}"
WRONG = f"{urllib.parse.quote(Squid.USER)}:wrong"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return OutsideAuthority(tmp_path_factory.mktemp("outside"))


@pytest.fixture(scope="module")
def nginx(tmp_path_factory, certificates):
    server = OutsideNginx(tmp_path_factory.mktemp("nginx"), certificates)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def squid(certificates):
    server = Squid(certificates)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def basic(certificates):
    server = Squid(certificates, basic=True)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def digest(certificates):
    server = Squid(certificates, digest=True)
    yield server
    server.stop()


@pytest.fixture
def start(tmp_path, nginx, certificates):
    """Brokers with rules for nginx by https and http."""
    with contextlib.ExitStack() as stack:
        def run(*options, environment=None, ca=None, **more):
            rules = {"secure": nginx.secure, "plain": nginx.plain}
            options = [*options, "--ca-file", str(ca or certificates.ca)]
            return stack.enter_context(
                Broker(tmp_path, rules=rules, options=options, environment=environment, **more))
        yield run


def check_both(broker, label):
    """Checks https by a tunnel and http by forwarding, with and without a body."""
    for name in ("secure", "plain"):
        response = broker.get(
            f"/{name}/x?q=1",
            fields=["X-Mark: mine", "Proxy-Authorization: Basic Z3Vlc3Q6Z3Vlc3Q="])
        assert response.status == 200, response.body
        request, login, mark, _ = response.body.decode().split("|")
        assert (request, login, mark) == ("GET /x?q=1", "", "mine")
        line = broker.log_lines(1, name=name)[-1]
        assert line["proxy"] == label and line["end"] == "complete"
    for size in (5, 3_000_000):
        response = broker.get("/secure/up", method="POST", body=b"b" * size)
        assert (response.status, response.body) == (200, str(size).encode()), response.body


# --- squid ----------------------------------------------------------------------------------------

def test_http_proxy(start, squid, nginx):
    broker = start("--proxy", squid.url())
    check_both(broker, f"localhost:{squid.port}")
    forwarded = ("GET", f"{nginx.plain}/x?", "200", "-"
                 )  # the whole URL, except the query, which squid hides
    squid.wait_logged(lambda *line: line == forwarded)
    assert b"squid.test" in broker.get("/plain/x").body  # its Via: the request came through it
    broker.get("/secure/x", fields=["Connection: close"])
    broker.process.stdin.close()  # squid logs a tunnel when it ends
    broker.process.wait(PATIENCE)
    tunnel = ("CONNECT", f"{outside()[0]}:{nginx.tls_port}", "200", "-")
    squid.wait_logged(lambda *line: line == tunnel)


@pytest.mark.parametrize("variables", [("http_proxy", "https_proxy"), ("HTTP_PROXY", "HTTPS_PROXY"),
                                       ("all_proxy", ), ("ALL_PROXY", )])
def test_proxy_of_the_environment(start, squid, variables):
    broker = start(environment={name: squid.url() for name in variables})
    check_both(broker, f"localhost:{squid.port}")


def test_proxy_without_scheme(start, squid):
    check_both(start(environment={"all_proxy": f"localhost:{squid.port}/"}),
               f"localhost:{squid.port}")


def test_large_post_is_forwarded(start, squid):
    response = start("--proxy", squid.url()).get("/plain/up", method="POST", body=b"b" * 3_000_000)
    assert (response.status, response.body) == (200, b"3000000")


@pytest.mark.parametrize("kind", ["basic", "digest"])
def test_login(request, start, kind):
    proxy = request.getfixturevalue(kind)
    broker = start("--proxy", proxy.url(USER))
    check_both(broker, f"localhost:{proxy.port}")
    proxy.wait_logged(lambda method, target, status, user: user != "-" and status == "200")
    assert Squid.PASSWORD not in broker.log_file.read_text() + broker.errors()
    assert urllib.parse.quote(Squid.PASSWORD,
                              safe="") not in broker.log_file.read_text() + broker.errors()


def test_post_is_forwarded_with_a_login(start, basic):
    """The body of a POST cannot be sent twice."""
    broker = start("--proxy", basic.url(USER))
    for size in (5, 3_000_000):
        response = broker.get("/plain/up", method="POST", body=b"b" * size)
        assert (response.status, response.body) == (200, str(size).encode()), response.body


@pytest.mark.parametrize("kind", ["basic", "digest"])
@pytest.mark.parametrize("user", [None, WRONG])
def test_failed_login(request, start, kind, user):
    proxy = request.getfixturevalue(kind)
    broker = start("--proxy", proxy.url(user))
    for name in ("secure", "plain"):
        for arguments in ({}, {"method": "POST", "body": b"x" * 100_000}):
            response = broker.get(f"/{name}/x", **arguments)
            assert (response.status,
                    response.error) == (502, "codev_proxy_authentication"), response.body
            assert "proxy authentication" in response.json["error"]["message"]
            assert "wrong" not in response.json["error"]["message"]
    assert "wrong" not in broker.log_file.read_text()


def test_guests_login_is_not_the_proxys(start, basic):
    """The guest's own Proxy-Authorization is not sent to a proxy."""
    import base64
    token = base64.b64encode(f"{Squid.USER}:{Squid.PASSWORD}".encode()).decode()
    broker = start("--proxy", basic.url())
    for name in ("secure", "plain"):
        response = broker.get(f"/{name}/x", fields=[f"Proxy-Authorization: Basic {token}"])
        assert response.error == "codev_proxy_authentication"


def test_upstreams_own_statuses_pass(start, squid, basic):
    """A 401 is the upstream's in both cases; a 407 is the upstream's only inside a tunnel."""
    for proxy, user in ((squid, None), (basic, USER)):
        broker = start("--proxy", proxy.url(user))
        assert broker.get("/secure/401").status == 401
        assert broker.get("/plain/401").status == 401
        assert broker.get("/secure/407").status == 407


def test_proxy_that_refuses(start, certificates):
    """A proxy's refusal is final: 502 for a tunnel, the proxy's own page for a forwarded
    request."""
    proxy = Squid(certificates, options="http_access deny all")
    try:
        broker = start("--proxy", proxy.url())
        response = broker.get("/secure/x")
        assert (response.status, response.error) == (502, "codev_proxy"), response.body
        assert "403" in response.json["error"][
            "message"] and f"localhost:{proxy.port}" in response.json["error"]["message"]
        assert broker.get("/plain/x").status == 403
    finally:
        proxy.stop()


def test_dead_proxy(start):
    broker = start("--proxy", "http://127.0.0.1:1")
    for name in ("secure", "plain"):
        response = broker.get(f"/{name}/x")
        assert (response.status, response.error) == (502, "codev_proxy")
        assert "127.0.0.1:1" in response.json["error"]["message"]


# --- TLS to the proxy -----------------------------------------------------------------------------

def test_https_proxy(start, squid):
    check_both(start("--proxy", squid.url(scheme="https")), f"localhost:{squid.tls_port}")


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR"])
def test_https_proxy_trusted_by_the_environment(start, squid, certificates, tmp_path, variable):
    folder = tmp_path / "trusted"
    folder.mkdir()
    shutil.copy(certificates.ca, folder / "ca.pem")
    value = folder if variable == "SSL_CERT_DIR" else folder / "ca.pem"
    broker = start("--proxy",
                   squid.url(scheme="https"),
                   environment={variable: str(value)},
                   ca=other_authority().ca)
    check_both(broker, f"localhost:{squid.tls_port}")


def test_https_proxy_that_is_not_trusted(start, squid):
    broker = start("--proxy", squid.url(scheme="https"), ca=other_authority().ca)
    for name in ("secure", "plain"):
        response = broker.get(f"/{name}/x")
        assert (response.status, response.error) == (502, "codev_proxy"), response.body
        assert "certificate" in response.json["error"]["message"]


def test_untrusted_upstream_behind_a_proxy(tmp_path, squid, nginx):
    with Broker(tmp_path, rules={"secure": nginx.secure}, options=["--proxy",
                                                                   squid.url()]) as broker:
        assert broker.get("/secure/x").error == "codev_upstream_tls"


# --- SOCKS ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("scheme", ["socks5", "socks5h", "socks"])
def test_socks(start, scheme):
    proxy = Socks()
    try:
        check_both(start("--proxy", f"{scheme}://127.0.0.1:{proxy.port}"),
                   f"127.0.0.1:{proxy.port}")
    finally:
        log = proxy.stop()
    assert (outside()[0] in log) == (
        scheme != "socks5") or outside()[0] == outside()[1], log  # which side resolves the name


def test_socks_with_a_login(start):
    proxy = Socks("corp", "s3cret")
    try:
        check_both(start("--proxy", f"socks5h://corp:s3cret@127.0.0.1:{proxy.port}"),
                   f"127.0.0.1:{proxy.port}")
        for login in ("corp:wrong@", ""):
            response = start("--proxy", f"socks5h://{login}127.0.0.1:{proxy.port}").get("/secure/x")
            assert (response.status,
                    response.error) == (502, "codev_proxy_authentication"), response.body
    finally:
        proxy.stop()


def test_socks_refusal(tmp_path):
    proxy = Socks()
    try:
        rules = {"closed": f"https://{outside()[0]}:1"}
        with Broker(tmp_path, rules=rules, options=["--proxy",
                                                    f"socks5h://127.0.0.1:{proxy.port}"]) as broker:
            response = broker.get("/closed/x")
            assert (response.status, response.error) == (502, "codev_proxy"), response.body
    finally:
        proxy.stop()


# --- what a proxy is told -------------------------------------------------------------------------

def test_connect_holds_nothing_of_the_guest(tmp_path):
    heads = []

    def proxy(peer, head):
        heads.append(head)
        peer.answer(b"", "403 Forbidden")
    with Upstream(serve_with(proxy), tls=False) as server, \
            Broker(tmp_path, rules={"far": "https://far.example/base"},
                   options=["--proxy", server.url]) as broker:
        broker.get("/far/secret-path?token=1",
                   fields=[
                       "Authorization: Bearer guest", "Cookie: c",
                       "Proxy-Authorization: Basic eDp5", "Proxy-Connection: keep-alive",
                       "User-Agent: guest/1", "X-Mine: 1"
                   ])
        broker.get("/gateway/v1/x", fields=["Authorization: Bearer guest"])
    head = heads[0].lower()
    assert heads[0].startswith(b"CONNECT far.example:443 HTTP/1.1\r\n")
    for word in (b"secret-path", b"guest", b"cookie", b"authorization", b"x-mine", b"eDp5".lower()):
        assert word not in head
    assert len(heads) == 1  # the gateway of this test is on loopback


# --- NO_PROXY -------------------------------------------------------------------------------------

@pytest.mark.parametrize("variable", ["no_proxy", "NO_PROXY"])
def test_no_proxy(start, nginx, variable):
    """The proxy is dead, so requests that work went directly. Entries by name, suffix and port; an
    entry for another port does not match."""
    name, _ = outside()
    dead = {"all_proxy": "http://127.0.0.1:1"}
    for entry, secure, plain in [(name, True, True), ("*", True, True),
                                 (f"{name}:{nginx.tls_port}", True, False),
                                 (f"x{name}", False, False),
                                 (f"other.example, {name}", True, True)]:
        broker = start(environment={**dead, variable: entry})
        assert (broker.get("/secure/x").status == 200) == secure, entry
        assert (broker.get("/plain/x").status == 200) == plain, entry
    broker = start("--proxy", "http://127.0.0.1:1", environment={variable: name})  # as in curl
    assert broker.get("/secure/x").status == 200
    assert broker.log_lines(1, name="secure")[0]["proxy"] == "direct"


def test_no_proxy_by_network(tmp_path):
    """The proxy answers requests for unlisted addresses; listed ones are not sent to it, even if
    they fail."""
    asked = []

    def proxy(peer, head):
        asked.append(head.split(b"\r\n")[0])
        peer.answer(b"by proxy")

    rules = {
        "near": "http://0.0.0.0:1",
        "far": "http://198.51.100.7",
        "suffix": "http://a.intra.invalid"
    }
    with Upstream(serve_with(proxy), tls=False) as server:
        environment = {"http_proxy": server.url, "no_proxy": "0.0.0.0/8, .intra.invalid"}
        with Broker(tmp_path, rules=rules, environment=environment) as broker:
            assert broker.get("/far/x").body == b"by proxy"
            for name in ("near", "suffix"):
                assert broker.get(f"/{name}/x").body != b"by proxy"
                assert broker.log_lines(1, name=name)[0]["proxy"] == "direct"
    assert asked == [b"GET http://198.51.100.7/x HTTP/1.1"]


def test_loopback_is_never_proxied(tmp_path):
    def answer(peer, head):
        peer.answer(b"direct")
    with Upstream(serve_with(answer), tls=False) as server:
        rules = {"a": server.url, "b": server.url.replace("127.0.0.1", "localhost")}
        for options, environment in [(["--proxy", "http://127.0.0.1:1"], {}),
                                     ([], {
                                         "all_proxy": "http://127.0.0.1:1"
                                     }),
                                     (["--proxy", "pac+file:///nonexistent",
                                       "--pac-mandatory"], {})]:
            with Broker(tmp_path, rules=rules, options=options, environment=environment) as broker:
                assert broker.get("/a/x").body == broker.get("/b/x").body == b"direct"


def test_broken_variable(start):
    broker = start(environment={"all_proxy": "gopher://u:s3cret@h"})
    response = broker.get("/secure/x")
    assert (response.status, response.error) == (502, "codev_proxy")
    assert "all_proxy" in response.json["error"]["message"] and "s3cret" not in response.json[
        "error"]["message"]


def test_trust_is_shared(certificates):
    """The fixtures' authorities differ from the one that every broker of the harness trusts."""
    assert certificates.ca.read_bytes() != authority().ca.read_bytes() and os.path.exists(
        certificates.ca)


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
@pytest.mark.parametrize("end", ["reset", "close"])
def test_proxy_that_breaks_off_before_the_tunnel(tmp_path, scheme, end):
    """The connection that failed is the proxy's, whatever the upstream would have said."""
    def proxy(peer):
        peer.connection.recv(1)
        if end == "reset":
            peer.reset()

    with Upstream(proxy, tls=False) as server:
        address = server.url.partition("://")[2]
        with Broker(tmp_path, gateway="https://gateway.example",
                    options=["--proxy", f"{scheme}://{address}"]) as broker:
            response = broker.get("/gateway/x")
            assert (response.status, response.error) == (502, "codev_proxy"), response.body
