"""Routes of requests, which fields pass, how paths are kept or refused, and redirects."""
import gzip
import select
import signal
import socket
import time

import pytest

from broker_harness import (PATIENCE, SECRET, Broker, Upstream, authority, echo, fields_of,
                            other_authority, serve_with)


class Answering:
    """The upstream's next answer, set by a test."""
    raw = None


def upstream_handler(peer):
    while head := peer.read_head():
        if Answering.raw is None:
            echo(peer, head)
        else:
            peer.send(Answering.raw)


@pytest.fixture(scope="module")
def gateway():
    with Upstream(upstream_handler) as server:
        yield server


@pytest.fixture(scope="module")
def registry():
    with Upstream(upstream_handler) as server:
        yield server


@pytest.fixture(scope="module")
def plain():
    with Upstream(upstream_handler, tls=False) as server:
        yield server


@pytest.fixture(scope="module")
def broker(tmp_path_factory, gateway, registry, plain):
    rules = {"npm": registry.url, "deep": registry.url + "/a/b/", "plain": plain.url + "/p"}
    with Broker(tmp_path_factory.mktemp("routes"), gateway=gateway.url + "/base",
                rules=rules) as running:
        yield running


@pytest.fixture(autouse=True)
def fresh():
    Answering.raw = None


def seen(response):
    assert response.status == 200, response.body
    return response.json


def names(response):
    return [name.lower() for name, _ in seen(response)["fields"]]


# --- routes ---------------------------------------------------------------------------------------

def test_rules_are_announced_in_order(broker):
    assert broker.ready["egress"] == ["gateway", "npm", "deep", "plain"]


@pytest.mark.parametrize("target,upstream_target", [
    ("/gateway/v1/messages?beta=true", "/base/v1/messages?beta=true"),
    ("/npm/@scope%2fname", "/@scope%2fname"),
    ("/npm/a//b/", "/a//b/"),
    ("/npm//x", "//x"),
    ("/npm/", "/"),
    ("/npm", "/"),
    ("/npm?q", "/?q"),
    ("/npm/?", "/?"),
    ("/npm/a?x=/../y&z=%2e%2e", "/a?x=/../y&z=%2e%2e"),
    ("/deep/c", "/a/b/c"),
    ("/deep", "/a/b/"),
    ("/plain/%C3%A9/A%2Fb", "/p/%C3%A9/A%2Fb"),
    ("/npm/~tilde!$&'()*+,;=:@", "/~tilde!$&'()*+,;=:@"),
    ("/npm/.hidden/..dots/...", "/.hidden/..dots/..."),
])
def test_path_is_joined_and_kept_byte_for_byte(broker, target, upstream_target):
    assert seen(broker.get(target))["target"] == upstream_target


@pytest.mark.parametrize("path", [
    "/npm/../x", "/npm/./x", "/npm/%2e%2e/x", "/npm/.%2E/x", "/npm/a%2f..%2fb", "/npm/a%5c..%5cb",
    "/npm/a\\..\\b", "/npm/..", "/npm/%00", "/npm/%0d%0aX", "/gateway/../npm/", "/npm/%zz",
    "/npm/%", "/npm/x#y", "/npm/..;/x"
])
def test_refused_paths_are_400(broker, gateway, registry, path):
    before = gateway.accepted, registry.accepted
    assert broker.get(path).status == 400
    assert (gateway.accepted, registry.accepted) == before


@pytest.mark.parametrize("path", ["%252e%252e/x", "a/.%252E/x", "%25252e./x", "%c0%ae%c0%ae/x",
                                  "..%20/x", "a%252f..%252fx", "..%3fx", "..%2500"])
def test_encodings_that_could_leave_a_prefix_are_400(broker, gateway, registry, path):
    before = gateway.accepted, registry.accepted
    for name in ("deep", "plain", "gateway"):
        response = broker.get(f"/{name}/{path}")
        assert (response.status, response.error) == (400, "codev_bad_request")
    assert (gateway.accepted, registry.accepted) == before
    assert seen(broker.get("/npm/" + path))["target"] == "/" + path  # held to no prefix


@pytest.mark.parametrize(
    "target", ["/", "/nope", "/nope/x", "/Gateway/x", "/NPM", "/gatewayx", "/npmx/y", "/%6epm/x"])
def test_unknown_names_are_404(broker, target):
    response = broker.get(target)
    assert (response.status, response.error) == (404, "codev_unknown_name")


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "TRACK", "trace", "Connect"])
@pytest.mark.parametrize("target", ["/gateway/x", "/npm/x", "/nope"])
def test_methods_refused_on_every_route(broker, method, target):
    assert broker.get(target, method=method).status == 405


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:8788/gateway/x", "https://example.com/", "example.com:443", "*"])
def test_other_forms_of_target_get_no_connection(broker, gateway, registry, target):
    before = gateway.accepted, registry.accepted
    assert 400 <= broker.get(target).status < 500
    assert (gateway.accepted, registry.accepted) == before


@pytest.mark.parametrize(
    "method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "x-odd_method"])
def test_methods_pass_as_sent(broker, method):
    assert seen(broker.get("/npm/x", method=method))["method"] == method


def test_undeclared_host_is_told(broker):
    response = broker.get("/_undeclared/files.example:8443")
    assert (response.status, response.error) == (403, "codev_no_rule")
    assert "no rule for https://files.example:8443: add one" in response.json["error"]["message"]


def test_gateway_allow(tmp_path, gateway):
    with Broker(tmp_path,
                gateway=gateway.url,
                options=["--gateway-allow", "POST /v1/messages", "--gateway-allow",
                         "* /v1/models"]) as broker:
        for method, path, status in [("POST", "/v1/messages", 200),
                                     ("POST", "/v1/messages/count_tokens", 200),
                                     ("GET", "/v1/messages", 403), ("POST", "/v1/messagesx", 403),
                                     ("GET", "/v1/models", 200), ("GET", "/v1/keys", 403),
                                     ("POST", "/v1/messages//x", 200), ("GET", "/", 403),
                                     ("GET", "//v1/models", 403),
                                     ("GET", "/v1/models/%252e%252e/keys", 400),
                                     ("GET", "/v1/models/..%20/keys", 400)]:
            response = broker.get("/gateway" + path, method=method)
            assert response.status == status, (method, path)
            if status == 403:
                assert response.error == "codev_not_allowed"


# --- fields ---------------------------------------------------------------------------------------

GUEST_SECRETS = [
    "Authorization: Bearer guest", "x-api-key: guest", "X-API-KEY: guest", "api-key: guest",
    "X_Api_Key: guest", "Cookie: a=guest", "Proxy-Authorization: Basic guest",
    "Proxy-Connection: guest", "Forwarded: for=guest", "X-Forwarded-For: guest",
    "X-Forwarded-Host: guest", "X-Real-IP: guest", "X-Original-URL: /guest",
    "X-Rewrite-URL: /guest", "X-HTTP-Method-Override: guest"
]


@pytest.mark.parametrize("options,carrier", [
    ([], ("authorization", f"Bearer {SECRET}")),
    (["--gateway-auth", "bearer"], ("authorization", f"Bearer {SECRET}")),
    (["--gateway-auth", "x-api-key"], ("x-api-key", SECRET)),
    (["--gateway-auth", "header:X-Company-Key"], ("x-company-key", SECRET)),
])
def test_gateway_credential_is_set_once_and_the_guests_dropped(tmp_path, gateway, options, carrier):
    with Broker(tmp_path, gateway=gateway.url, options=options) as broker:
        what = seen(
            broker.get(
                "/gateway/x",
                fields=GUEST_SECRETS +
                ["X-Company-Key: guest", "anthropic-version: 2023-06-01", "Anthropic-Beta: a,b"]))
        lower = [(name.lower(), value) for name, value in what["fields"]]
        assert lower.count(carrier) == 1
        assert [name for name, _ in lower].count(carrier[0]) == 1
        left = [value for name, value in lower if "guest" in value]
        assert left == ([] if carrier[0] == "x-company-key" else ["guest"]
                        )  # an ordinary field of this name passes
        assert ["anthropic-version", "2023-06-01"] in what["fields"] and ["Anthropic-Beta", "a,b"
                                                                          ] in what["fields"]
        assert broker.token not in str(what)


def test_named_rule_gets_no_credential_and_keeps_the_guests(broker):
    what = seen(
        broker.get("/npm/x",
                   fields=[
                       "Authorization: Bearer guest", "Cookie: c=1", "Proxy-Authorization: Basic p",
                       "Connection: X-Hop, keep-alive", "X-Hop: 1", "TE: trailers", "Keep-Alive: 5"
                   ]))
    lower = [(name.lower(), value) for name, value in what["fields"]]
    assert ("authorization", "Bearer guest") in lower
    assert SECRET not in str(what)
    assert not {"proxy-authorization", "x-hop", "te", "keep-alive", "connection", "expect"
                } & {name
                     for name, _ in lower}


def test_connection_cannot_name_away_the_credential(broker):
    what = seen(broker.get("/gateway/x",
                           fields=["Connection: Authorization, Host, Content-Length"]))
    lower = [name.lower() for name, _ in what["fields"]]
    assert lower.count("authorization") == 1 and lower.count("host") == 1


def test_nothing_is_added(broker, registry):
    what = seen(
        broker.get("/npm/x/y"))  # a single segment may be a package: see test_broker_rewrite.py
    assert what["fields"] == [["Host", f"127.0.0.1:{registry.port}"]]


def test_fields_keep_case_order_and_empty_values(broker):
    fields = [
        "X-MiXeD: one", "accept:", "X-Empty:", "X-mixed: two", "X-Latin: caf\xe9",
        "User-Agent: odd  agent", "X-Semi;colon: no"
    ]
    what = seen(broker.get("/npm/x/y", fields=fields[:-1]))
    assert what["fields"][1:] == [["X-MiXeD", "one"], ["accept", ""], ["X-Empty", ""],
                                  ["X-mixed", "two"], ["X-Latin", "caf\xe9"],
                                  ["User-Agent", "odd  agent"]]
    assert broker.get("/npm/x", fields=[fields[-1]]).status == 400


def test_large_field_passes(broker):
    what = seen(broker.get("/npm/x", fields=["X-Large: " + "x" * 60000]))
    assert max(len(value) for _, value in what["fields"]) == 60000


def test_answers_fields(broker):
    Answering.raw = (
        b"HTTP/1.1 200 Fine\r\nContent-Length: 2\r\nSet-Cookie: a=1\r\nX-MiXeD: 1\r\nConnection: "
        b"X-Hop\r\nX-Hop: 1\r\n"
        b"Keep-Alive: timeout=5\r\nETag: \"x\"\r\nProxy-Authenticate: Basic\r\nWWW-Authenticate: "
        b"Bearer\r\n\r\nok"
    )
    for route, cookie in [("/gateway/x", False), ("/npm/x", True)]:
        response = broker.get(route)
        assert response.body == b"ok"
        assert ("set-cookie" in response.fields) == cookie
        assert "X-MiXeD" in response.names and "etag" in response.fields
        assert "www-authenticate" in response.fields
        assert not {"x-hop", "keep-alive", "proxy-authenticate"} & set(response.fields)


def test_gzip_is_untouched(broker):
    packed = gzip.compress(b"text " * 1000)
    Answering.raw = (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" %
                     len(packed)) + packed
    response = broker.get("/npm/x", fields=["Accept-Encoding: gzip"])
    assert response.body == packed and response.fields["content-encoding"] == "gzip"


# --- redirects ------------------------------------------------------------------------------------

def redirected(broker, route, location):
    head = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
    Answering.raw = head.encode()
    response = broker.get(route)
    assert response.status == 302
    return response.fields["location"]


def test_redirects_are_rewritten_and_never_followed(broker, gateway, registry, plain):
    guest = "http://127.0.0.1:8788"
    before = registry.accepted + plain.accepted
    assert redirected(broker, "/npm/x", f"{registry.url}/y?z=1") == f"{guest}/npm/y?z=1"
    assert redirected(broker, "/npm/x",
                      f"{registry.url.replace('https', 'HTTPS')}/y") == f"{guest}/npm/y"
    assert redirected(broker, "/npm/x", "/y") == f"{guest}/npm/y"
    assert redirected(broker, "/npm/x", f"{plain.url}/p/y") == f"{guest}/plain/y"
    assert redirected(broker, "/npm/x", f"{registry.url}/a/b/c") == f"{guest}/deep/c"
    assert redirected(broker, "/npm/x",
                      "https://files.example/f").startswith(f"{guest}/_undeclared/files.example")
    assert redirected(broker, "/npm/x",
                      f"{plain.url}/pp/y").startswith(f"{guest}/_undeclared/127.0.0.1")
    assert "/gateway" not in redirected(broker, "/npm/x", f"{gateway.url}/base/v1")
    assert registry.accepted + plain.accepted <= before + 1


def test_gateway_redirect_carries_no_credential_anywhere(tmp_path):
    """The gateway redirects the client to a rule's server: the broker sends nothing there by
    itself."""
    visited = []

    def elsewhere(peer, head):
        visited.append(fields_of(head))
        peer.answer()

    def redirecting(peer, head):
        peer.answer(b"", "307 Temporary Redirect", [f"Location: {other.url}/z"])

    with Upstream(serve_with(elsewhere)) as other, Upstream(serve_with(redirecting)) as gateway, \
            Broker(tmp_path, gateway=gateway.url, rules={"other": other.url}) as broker:
        response = broker.get("/gateway/x")
        assert response.fields["location"] == "http://127.0.0.1:8788/other/z"
        assert visited == []
        broker.get("/other/z", fields=["Authorization: Bearer guest"])
        assert visited[0]["authorization"] == "Bearer guest"


def test_guest_url(tmp_path, registry):
    with Broker(tmp_path,
                rules={"npm": registry.url},
                options=["--guest-url", "http://localhost:9000/"]) as broker:
        assert redirected(broker, "/npm/x", "/y") == "http://localhost:9000/npm/y"


# --- faults of an upstream ------------------------------------------------------------------------

def test_causes_of_502(tmp_path):
    def no_tls(peer):
        peer.connection.recv(100)
        peer.answer(b"", "400 Bad Request")

    with Upstream(serve_with(echo),
                  certificates=other_authority()) as untrusted, Upstream(no_tls, tls=False) as http:
        rules = {
            "refused": "https://127.0.0.1:1",
            "unknown": "https://no-such-host.invalid",
            "untrusted": untrusted.url,
            "no-tls": f"https://127.0.0.1:{http.port}",
            "name": untrusted.url.replace("127.0.0.1", "localhost")
        }
        with Broker(tmp_path, rules=rules) as broker:
            for name, kind in [("refused", "codev_upstream_connect"),
                               ("unknown", "codev_upstream_name"),
                               ("untrusted", "codev_upstream_tls"),
                               ("no-tls", "codev_upstream_tls"), ("name", "codev_upstream_tls")]:
                response = broker.get(f"/{name}/x")
                assert (response.status, response.error) == (502, kind), response.body
                assert response.json["error"]["rule"] == name
                assert broker.log_lines(1, name=name)[0]["end"] == "upstream-error"


def test_gateway_on_loopback_never_goes_through_a_proxy(tmp_path, plain):
    def proxy(peer, head):
        peer.answer(b"", "502 Proxied")
    with Upstream(serve_with(proxy), tls=False) as proxy_server:
        address = proxy_server.url
        environment = {
            name: address
            for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY")
        }
        with Broker(tmp_path,
                    gateway=plain.url,
                    options=["--proxy", address],
                    environment=environment) as broker:
            assert broker.get("/gateway/x").status == 200
        with Broker(tmp_path,
                    gateway=plain.url,
                    environment=environment,
                    options=["--proxy", "none"],
                    rules={"far": "https://far.invalid"}) as broker:
            assert broker.get("/gateway/x").status == 200
            assert broker.get(
                "/far/x").error == "codev_upstream_name"  # not through the proxy of the environment
        assert proxy_server.accepted == 0


def test_proxy_by_url(tmp_path, registry):
    """https through CONNECT, with the proxy's password and no field of the request; http with the
    whole URL as target."""
    asked = []

    def proxy(peer):
        while head := peer.read_head():
            asked.append(head)
            if b"Proxy-Authorization: " not in head:
                peer.answer(b"", "407 Proxy Authentication Required",
                            ["Proxy-Authenticate: Basic realm=x"])
                continue
            if not head.startswith(b"CONNECT"):
                peer.answer(b"by proxy", fields=["Connection: close"])
                return
            upper = socket.create_connection(("127.0.0.1", registry.port))
            peer.send(b"HTTP/1.1 200 Connected\r\nX-Proxy: 1\r\n\r\n")
            while True:
                for side in select.select([peer.connection, upper], [], [])[0]:
                    data = side.recv(65536)
                    if not data:
                        upper.close()
                        return
                    (upper if side is peer.connection else peer.connection).sendall(data)

    with Upstream(proxy, tls=False) as server:
        address = server.url.replace("http://", "http://user:pass%20word@")
        rules = {
            "secure": f"https://localhost.example:{registry.port}",
            "open": "http://open.example/base"
        }
        with Broker(tmp_path, rules=rules, options=["--proxy", address]) as broker:
            response = broker.get("/secure/x", fields=["X-Private: yes"])
            # the certificate names localhost
            assert response.status == 502 and response.error == "codev_upstream_tls"
            for head in asked:
                assert head.startswith(
                    f"CONNECT localhost.example:{registry.port} HTTP/1.1\r\n".encode())
                assert b"X-Private" not in head
            assert b"Proxy-Authorization: Basic dXNlcjpwYXNzIHdvcmQ=" in asked[1]
            response = broker.get("/open/x?y")
            assert response.body == b"by proxy"
            assert asked[-1].startswith(b"GET http://open.example/base/x?y HTTP/1.1\r\n")
            line = broker.log_lines(1, name="open")[0]
            assert line["proxy"].startswith(
                "127.0.0.1:") and "pass" not in broker.log_file.read_text()


def test_proxy_that_demands_a_login(tmp_path):
    def proxy(peer, head):
        peer.answer(b"", "407 Proxy Authentication Required",
                    ["Proxy-Authenticate: Basic realm=x", "Connection: close"])

    with Upstream(serve_with(proxy), tls=False) as server, \
            Broker(tmp_path, rules={"far": "https://far.example"},
                   options=["--proxy", server.url]) as broker:
        response = broker.get("/far/x")
        assert (response.status, response.error) == (502, "codev_proxy_authentication")


# --- trust ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR"])
def test_trust_from_the_environment(tmp_path, gateway, variable):
    folder = tmp_path / "certificates"
    folder.mkdir()
    (folder / "mine.pem").write_bytes(authority().ca.read_bytes())
    (folder / "key.pem").write_bytes(authority().key.read_bytes())
    (tmp_path / "other").mkdir()
    value = f"{tmp_path}/other:{folder}" if variable == "SSL_CERT_DIR" else folder / "mine.pem"
    with Broker(tmp_path, gateway=gateway.url, ca=False) as broker:
        assert broker.get("/gateway/x").error == "codev_upstream_tls"
    with Broker(tmp_path, gateway=gateway.url, ca=False,
                environment={variable: str(value)}) as broker:
        assert broker.get("/gateway/x").status == 200
        assert broker.errors().count("warning") == 1  # of the open gateway


def test_wrong_trust_in_the_environment_is_only_a_warning(tmp_path, gateway):
    with Broker(tmp_path, gateway=gateway.url,
                environment={"SSL_CERT_FILE": "/nonexistent"}) as broker:
        assert broker.get("/gateway/x").status == 200
        assert "SSL_CERT_FILE" in broker.errors()


def test_certificate_authority_added_by_sighup(tmp_path, gateway):
    file = tmp_path / "ca.pem"
    file.write_bytes(other_authority().ca.read_bytes())
    with Broker(tmp_path, gateway=gateway.url, ca=False, options=["--ca-file",
                                                                  str(file)]) as broker:
        assert broker.get("/gateway/x").status == 502
        file.write_bytes(authority().ca.read_bytes())
        broker.signal(signal.SIGHUP)
        end = time.monotonic() + PATIENCE
        while broker.get("/gateway/x").status != 200:
            assert time.monotonic() < end
            time.sleep(0.05)
