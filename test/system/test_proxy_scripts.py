"""PAC scripts: from a file, HTTP and HTTPS; candidates in order; scripts that are slow, huge,
broken or hostile; and the process that runs them. The scripts run in the real libproxy with its
interpreter."""
import contextlib
import itertools
import os
import pathlib
import signal
import threading
import time

import pytest

import procfs
from relay_harness import eventually
from broker_harness import PATIENCE, SANITIZED, SECRET, Broker, other_authority
from proxy_harness import OutsideAuthority, OutsideNginx, ScriptServer, Squid, outside, pac

DEAD = "127.0.0.1:1"


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


class Start:
    """Starts brokers with rules for nginx and a PAC script."""

    def __init__(self, stack, folder, nginx, certificates):
        self.stack, self.folder, self.nginx, self.certificates = stack, folder, nginx, certificates

    def __call__(self, script, *options, environment=None, **more):
        """`script`: a URL, or a text that is written to a file."""
        if "://" not in script or "\n" in script:
            file = self.folder / "proxy.pac"
            file.write_text(script)
            script = f"file://{file}"
        rules = {"secure": self.nginx.secure, "plain": self.nginx.plain}
        options = ["--proxy", f"pac+{script}", *options, "--ca-file", str(self.certificates.ca)]
        return self.stack.enter_context(
            Broker(self.folder, rules=rules, options=options, environment=environment, **more))


@pytest.fixture
def start(tmp_path, nginx, certificates):
    with contextlib.ExitStack() as stack:
        yield Start(stack, tmp_path, nginx, certificates)


numbers = itertools.count()


def way_of(broker, name):
    """The answer to a request, and the way that it took according to the log."""
    path = f"/{name}/{next(numbers)}"
    response = broker.get(path)
    return response, broker.log_lines(1, path=path)[0].get("proxy")


def check(broker, label):
    for name in ("secure", "plain"):
        response, proxy = way_of(broker, name)
        assert response.status == 200, response.body
        assert proxy == label


def check_refused(broker, *words):
    for name in ("secure", "plain"):
        response = broker.get(f"/{name}/x")
        assert (response.status, response.error) == (502, "codev_proxy"), response.body
        for word in words:
            assert word in response.json["error"]["message"], response.body


def check_unavailable(broker, *words):
    """The request went directly, and that is reported: in the log, as an event, and with the reason
    on standard error."""
    check(broker, "pac-unavailable")
    assert broker.wait_event("proxy")["state"] == "pac-unavailable"
    for word in words:
        assert word in broker.errors(), broker.errors()


# --- where a script comes from --------------------------------------------------------------------

def test_script_from_a_file(start, squid):
    check(start(pac(f"PROXY localhost:{squid.port}")), f"localhost:{squid.port}")


def test_script_by_http(start, squid):
    with ScriptServer(pac(f"PROXY localhost:{squid.port}")) as server:
        broker = start(server.url)
        check(broker, f"localhost:{squid.port}")
        asked = server.asked
        check(broker, f"localhost:{squid.port}")
        assert server.asked == asked == 2  # kept for each upstream


def test_script_by_https(start, squid, certificates):
    with ScriptServer(pac(f"PROXY localhost:{squid.port}"), context=certificates.context) as server:
        check(start(server.url), f"localhost:{squid.port}")


def test_script_by_https_with_an_unknown_certificate(start, squid):
    with ScriptServer(pac(f"PROXY localhost:{squid.port}"),
                      context=other_authority().context) as server:
        check_unavailable(start(server.url), "certificate")


def test_script_behind_a_redirect(start, squid):
    with ScriptServer(pac(f"PROXY localhost:{squid.port}")) as target:
        def redirect(handler):
            handler.send_response(302)
            handler.send_header("Location", target.url)
            handler.end_headers()
        with ScriptServer(answer=redirect) as server:
            check(start(server.url), f"localhost:{squid.port}")


def test_script_of_the_environment(tmp_path, squid, nginx, certificates):
    with ScriptServer(pac(f"PROXY localhost:{squid.port}")) as server, \
            Broker(tmp_path, rules={"secure": nginx.secure, "plain": nginx.plain},
                   options=["--ca-file", str(certificates.ca)],
                   environment={"all_proxy": f"pac+{server.url}"}) as broker:
        check(broker, f"localhost:{squid.port}")


def test_script_is_asked_for_scheme_host_and_port_only(start, nginx):
    """The script returns its arguments in the proxy's name."""
    script = """function FindProxyForURL(url, host) {
        var text = url + '!' + host, hex = '';
        for (var i = 0; i < text.length; i++) hex += text.charCodeAt(i).toString(16);
        return 'PROXY ' + hex.match(/.{1,60}/g).join('.') + '.invalid:1'; }
    """
    broker = start(script)
    broker.get("/secure/secret-path?secret-query", fields=["X-Private: 1"])
    name = broker.log_lines(1,
                            name="secure")[0]["proxy"].removesuffix(".invalid:1").replace(".", "")
    assert bytes.fromhex(name).decode() == f"{nginx.secure}/!{outside()[0]}"


def test_helpers_of_scripts(start, squid):
    """The functions that every PAC script may use."""
    broker = start("""function FindProxyForURL(url, host) {
        if (!isPlainHostName('x') || !dnsDomainIs('a.b', '.b') || !shExpMatch('abc', 'a*') ||
            dnsDomainLevels('a.b') != 1 ||
            !isInNet('10.1.2.3', '10.0.0.0', '255.0.0.0') ||
                isInNet('11.1.2.3', '10.0.0.0', '255.0.0.0') ||
            dnsResolve('localhost').indexOf('127.') != 0 && dnsResolve('localhost') != '::1')
            return 'PROXY %s';
        return 'PROXY localhost:%d'; }
        """ % (DEAD, squid.port))
    check(broker, f"localhost:{squid.port}")


# --- candidates -----------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [
    f"PROXY {DEAD}", f"HTTPS {DEAD}", f"SOCKS5 {DEAD}", f"SOCKS {DEAD}", "PROXY nowhere.invalid:1"
])
def test_second_candidate(start, squid, first):
    broker = start(pac(f"{first}; PROXY localhost:{squid.port}"))
    check(broker, f"localhost:{squid.port}")
    response = broker.get("/secure/up", method="POST", body=b"b" * 3_000_000)
    assert response.body == b"3000000"


def test_candidate_of_another_kind_goes_on(start, squid, certificates):
    """An HTTP proxy that the script calls a SOCKS proxy, and one without TLS that it calls an HTTPS
    proxy."""
    for kind in ("SOCKS5", "HTTPS"):
        broker = start(pac(f"{kind} localhost:{squid.port}; PROXY localhost:{squid.port}"))
        check(broker, f"localhost:{squid.port}")


def test_https_candidate(start, squid):
    check(start(pac(f"HTTPS localhost:{squid.tls_port}")), f"localhost:{squid.tls_port}")


def test_dead_candidate_is_tried_last(start, squid):
    """After it failed once: with a proxy that accepts no connection the next request would wait
    again."""
    import socket
    with socket.create_server(("127.0.0.1", 0), backlog=1) as hole:
        port = hole.getsockname()[1]
        fillers = []
        for _ in range(8):  # the backlog is full: connections hang
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
            fillers.append(filler)
        broker = start(pac(f"PROXY 127.0.0.1:{port}; PROXY localhost:{squid.port}"))
        assert broker.get("/secure/x").status == 200
        for _ in range(8):
            assert broker.get("/secure/x", fields=["Connection: close"]).status == 200
        slow = [line for line in broker.log_lines(9, name="secure")
                if line["ms"] > 3900]  # one attempt takes 4 s
        assert len(slow) <= 1
        for filler in fillers:
            filler.close()


def test_only_dead_candidates(start):
    """The error names the last of them, and the request never goes directly."""
    check_refused(start(pac(f"PROXY {DEAD}; PROXY 127.0.0.1:2")), "127.0.0.1:2")
    check_refused(start(pac(f"SOCKS {DEAD}")), DEAD)


def test_direct(start):
    check(start(pac("DIRECT")), "direct")
    check(start(pac("")), "direct")


def test_direct_after_a_dead_proxy(start):
    check(start(pac(f"PROXY {DEAD}; DIRECT")), "direct")


def test_all_failed_asks_anew(start, squid):
    with ScriptServer(pac(f"PROXY {DEAD}")) as server:
        broker = start(server.url)
        check_refused(broker)
        server.script = pac(f"PROXY localhost:{squid.port}")
        check(broker, f"localhost:{squid.port}")


def test_reload_asks_anew(start, squid):
    with ScriptServer(pac("DIRECT")) as server:
        broker = start(server.url)
        check(broker, "direct")
        server.script = pac(f"PROXY localhost:{squid.port}")
        check(broker, "direct")
        broker.signal(signal.SIGHUP)
        end = time.monotonic() + PATIENCE
        while way_of(broker, "secure")[1] != f"localhost:{squid.port}":
            assert time.monotonic() < end
            time.sleep(0.05)


def test_no_proxy_goes_before_the_script(start):
    broker = start(pac(f"PROXY {DEAD}"), environment={"no_proxy": outside()[0]})
    check(broker, "direct")


def test_unknown_kinds_are_no_direct_connection(start):
    check_refused(start(pac("QUIC a:1")), "PAC script")
    check_refused(start(pac(f"PROXY user:pw@{DEAD}")), "PAC script")


# --- logins ---------------------------------------------------------------------------------------

def test_chosen_proxy_gets_no_login(start, basic):
    """Neither from a URL in the script nor from a Kerberos ticket."""
    check_login = start(pac(f"PROXY localhost:{basic.port}"))
    for name in ("secure", "plain"):
        response = check_login.get(f"/{name}/x")
        assert (response.status, response.error) == (502,
                                                     "codev_proxy_authentication"), response.body
        assert "proxy authentication" in response.json["error"]["message"]


@pytest.mark.parametrize("options, negotiates", [((), False),
                                                 (("--proxy-auth-host", "LOCALHOST"), True),
                                                 (("--proxy-auth-host", "other.example"), False)])
def test_negotiate_for_hosts_that_are_listed(start, options, negotiates, tmp_path):
    """A proxy that offers all kinds of login. There is no ticket to send; a read of the ticket
    cache shows that Negotiate was tried."""
    from broker_harness import Upstream, serve_with

    heads = []

    def proxy(peer, head):
        heads.append(head)
        peer.answer(b"", "407 Proxy Authentication Required", [
            "Proxy-Authenticate: Negotiate", "Proxy-Authenticate: NTLM",
            "Proxy-Authenticate: Basic realm=x"
        ])
    tickets = tmp_path / "tickets"
    # a file of the ccache format, version 4: a principal u@R and no ticket (libkrb5 1.20 crashes on
    # files of another format)
    tickets.write_bytes(b"\5\4\0\0" + b"".join(part.to_bytes(4, "big")
                                               for part in (1, 1, 1)) + b"R" + b"\0\0\0\1u")
    os.utime(tickets, (0, time.time()))
    with Upstream(serve_with(proxy), tls=False) as server:
        broker = start(pac(f"PROXY localhost:{server.port}"), *options,
                       environment={"KRB5CCNAME": f"FILE:{tickets}"})
        assert broker.get("/secure/x").error == "codev_proxy_authentication"
    assert (tickets.stat().st_atime > 0) == negotiates
    assert not any(b"proxy-authorization" in head.lower() for head in heads)


# --- scripts that cannot be loaded ----------------------------------------------------------------

def refuse_connection(handler):
    handler.close_connection = True
    handler.connection.close()


def not_found(handler):
    handler.send_error(404)


def huge(handler):
    handler.send_response(200)
    handler.end_headers()
    with contextlib.suppress(OSError):
        for _ in range(800):
            handler.wfile.write(b"/" * 65536)  # 50 MB


def huge_with_length(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", str(50 << 20))
    huge_body = b"/" * 65536
    handler.end_headers()
    with contextlib.suppress(OSError):
        for _ in range(800):
            handler.wfile.write(huge_body)


def slow(handler):
    """Sends a byte now and then, for longer than any time limit."""
    handler.send_response(200)
    handler.end_headers()
    with contextlib.suppress(OSError):
        for _ in range(30):
            handler.wfile.write(b"/")
            time.sleep(1)


@pytest.mark.parametrize("answer, word", [(refuse_connection, "fetched"), (not_found, "404"),
                                          (huge, "bytes"), (huge_with_length, "bytes"),
                                          (slow, "fetched")])
def test_script_that_cannot_be_fetched(start, answer, word):
    with ScriptServer(answer=answer) as server:
        broker = start(server.url)
        before = broker.rss_kib()
        check_unavailable(broker, word)
        assert SANITIZED or broker.rss_kib() - before < 16 * 1024
        check_refused(start(server.url, "--pac-mandatory"), "mandatory", word)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1/p.pac", "http://nowhere.invalid/p.pac", "file:///nonexistent/p.pac"])
def test_script_that_is_nowhere(start, url):
    if "invalid" not in url:  # some networks answer for any name
        check_unavailable(start(url), "fetched")
    check_refused(start(url, "--pac-mandatory"), "mandatory")


@pytest.mark.parametrize("script, word", [
    ("function FindProxyForURL(url, host) {\n", "parsed"),
    ("\n", "FindProxyForURL"),
    ("<html>not found</html>\n", "parsed"),
    ("var FindProxyForURL = 5;\n", "threw"),
    ("throw 1;\n", "FindProxyForURL"),
    ("/* \n", "parsed"),
    ("function FindProxyForURL(url, host) { return nope(); }\n", "ReferenceError"),
    ("function FindProxyForURL(url, host) { return null; }\n", "returned no string"),
    ("function FindProxyForURL(url, host) { return 7; }\n", "returned no string"),
    ("function FindProxyForURL(url, host) { return 'PROXY ' + 'a'.repeat(5000); }\n",
     "returned no string"),
    ("function FindProxyForURL(url, host) { throw '\\x1b[2J\\n{\\\"event\\\":1}'; }\n", "threw"),
    ("function FindProxyForURL(url, host) { return FindProxyForURL(url, host); }\n", "threw"),
])
def test_script_that_fails(start, script, word):
    broker = start(script)
    check_unavailable(broker, word)
    assert "\x1b" not in broker.errors()
    check_refused(start(script, "--pac-mandatory"), "mandatory", word)


def test_script_that_returns(start, squid):
    """An event reports it after an outage."""
    with ScriptServer(answer=not_found) as server:
        broker = start(server.url)
        check_unavailable(broker)
        server.answer, server.script = None, pac(f"PROXY localhost:{squid.port}")
        broker.signal(signal.SIGHUP)
        end = time.monotonic() + PATIENCE
        while way_of(broker, "secure")[1] != f"localhost:{squid.port}":
            assert time.monotonic() < end
            time.sleep(0.05)
        while broker.wait_event("proxy")["state"] != "available":
            pass


# --- hostile scripts ------------------------------------------------------------------------------

LOOP = "function FindProxyForURL(url, host) { while (true); }\n"


def test_endless_loop(start):
    """502 within the time limit; other requests are served meanwhile."""
    broker = start(LOOP)
    started = time.monotonic()
    answers = []
    waiting = [
        threading.Thread(target=lambda n=name: answers.append(broker.get(f"/{n}/x")))
        for name in ("secure", "plain")
    ]
    for thread in waiting:
        thread.start()
    time.sleep(0.3)
    assert broker.get("/nope/x").status == 404 and (not answers or time.monotonic() - started > 4
                                                    )  # while they wait
    for thread in waiting:
        thread.join(PATIENCE)
    assert [(answer.status, answer.error) for answer in answers] == [(502, "codev_proxy")] * 2
    assert "5 s" in answers[0].json["error"]["message"]
    assert time.monotonic() - started > 4
    assert broker.wait_event("proxy")["state"] == "pac-failed"
    begun = time.monotonic()
    assert broker.get("/secure/x").status == 502 and time.monotonic(
    ) - begun < 4.5  # remembered for a while, so not another 5 s
    eventually(lambda: workers_of(broker) == [])


def test_loop_while_the_script_is_loaded(start):
    check_refused(start("while (true);\n"), "5 s")


def test_loop_for_one_host_only(start, squid, nginx):
    script = """function FindProxyForURL(url, host) {
        while (url.indexOf('https:') == 0);
        return 'PROXY localhost:%d'; }
        """ % squid.port
    broker = start(script)
    assert broker.get("/secure/x").status == 502
    assert broker.get("/plain/x").status == 200


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's own memory is more than the limit")
def test_script_that_eats_memory(start):
    check_refused(start("""function FindProxyForURL(url, host) {
        var all = []; while (true) { var a = new Uint8Array(16 << 20); a.fill(1); all.push(a); } }
        """), "192 MiB")


def test_client_leaves_while_the_script_runs(start):
    broker = start(LOOP)
    client = broker.client()
    client.request("/secure/x", read=False)
    eventually(lambda: workers_of(broker))
    client.socket.close()
    line = broker.log_lines(1, name="secure")[0]
    assert line["end"] == "cancelled" and line["ms"] < 4500  # not at the script's limit of 5 s


# --- the process ----------------------------------------------------------------------------------

def resolver_of(broker):
    for child in procfs.children(broker.process.pid):
        if b"pac-resolver" in procfs.read(child, "cmdline"):
            return child
    raise AssertionError("no resolver")


def workers_of(broker):
    return procfs.children(resolver_of(broker))


def memory_of(pid):
    """The readable memory of a process, piece by piece."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem",
                                                                   "rb") as memory:
        for line in maps:
            span, mode, *_ = line.split()
            start, end = (int(part, 16) for part in span.split("-"))
            if "r" not in mode or end - start > 64 << 20:
                continue
            with contextlib.suppress(OSError, ValueError, OverflowError):
                memory.seek(start)
                yield memory.read(end - start)


@pytest.mark.skipif(os.getuid() != 0, reason="only root reads another process's memory")
def test_the_process_knows_no_secret(start):
    """Neither the gateway's token nor the sandbox's; no descriptor except its socket; only chosen
    environment variables."""
    broker = start(LOOP,
                   environment={
                       "SECRET_OF_THE_USER": "do-not-pass",
                       "https_proxy": "http://u:pw-of-proxy@h:1"
                   })
    client = broker.client()
    client.request("/secure/x", read=False)
    eventually(lambda: workers_of(broker))
    time.sleep(1)  # by then the script runs
    resolver = resolver_of(broker)
    processes = [resolver, *workers_of(broker)]
    assert len(processes) == 2
    # While memory is searched no time limit may end: neither the script's, nor the broker's for a
    # resolver that does not answer.
    stopped = [broker.process.pid, *processes]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    secrets = [SECRET.encode(), broker.token.encode(), b"do-not-pass", b"pw-of-proxy"]
    for pid in processes:
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        assert not any(secret in environment for secret in secrets)
        if not SANITIZED:  # a sanitizer's memory map has terabytes
            pieces = list(memory_of(pid))
            assert sum(map(len, pieces)) > 1 << 20
            assert not any(secret in piece for piece in pieces for secret in secrets)
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        assert "NoNewPrivs:\t1" in status
    links = procfs.descriptors(resolver)
    assert links.pop(0).startswith("socket:")
    assert links == {1: "/dev/null", 2: "/dev/null"}
    assert "Seccomp:\t2" in pathlib.Path(f"/proc/{processes[1]}/status").read_text()
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    client.socket.close()


def test_the_process_ends_with_the_broker(start):
    broker = start(LOOP)
    client = broker.client()
    client.request("/secure/x", read=False)
    eventually(lambda: workers_of(broker))
    processes = [resolver_of(broker), *workers_of(broker)]
    client.socket.close()
    broker.process.kill()
    eventually(lambda: all(map(procfs.has_ended, processes)))
    start.stack.pop_all()  # it was killed on purpose
    broker.process.wait()
    broker.stderr.close()


def test_a_killed_process_is_no_silent_direct_connection(start, squid):
    broker = start(pac(f"PROXY localhost:{squid.port}"))
    assert broker.get("/secure/x").status == 200
    os.kill(resolver_of(broker), signal.SIGKILL)
    response = broker.get("/plain/x")
    assert response.status in (200, 502)
    assert broker.log_lines(1, name="plain")[0].get("proxy") == (f"localhost:{squid.port}" if
                                                                 response.status == 200 else None)
    assert broker.get("/secure/x").status == 200  # known by then


def test_no_process_where_none_is_needed(tmp_path):
    for options in (["--proxy", "none"], ["--proxy", "http://h:1"]):
        with Broker(tmp_path, options=options) as broker:
            assert procfs.children(broker.process.pid) == []


def test_desktop_without_settings_is_direct(tmp_path, nginx, certificates):
    """--proxy system, no variables, and an empty home folder."""
    environment = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    with Broker(tmp_path,
                rules={
                    "secure": nginx.secure,
                    "plain": nginx.plain
                },
                options=["--ca-file", str(certificates.ca)],
                environment=environment) as broker:
        check(broker, "direct")
