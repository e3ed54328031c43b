"""Faults known from other programs that no other file tests, and the
table in README.md that says where each is tested."""
import json
import pathlib
import re

import pytest

from broker_harness import SECRET, Broker, Upstream, echo, run_broker, serve_with

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def upstream():
    with Upstream(serve_with(echo)) as server:
        yield server


# --- "An empty or malformed allow-list was taken as 'allow everything', or was ignored in silence."

def test_empty_rules_allow_the_gateway_only(tmp_path, upstream):
    with Broker(tmp_path, gateway=upstream.url, rules={}) as broker:
        assert broker.ready["egress"] == ["gateway"]
        before = upstream.accepted
        for target in ("/npm/x", "/x", "/", f"/_undeclared/127.0.0.1:{upstream.port}/x",
                       "//127.0.0.1/x"):
            assert broker.get(target).status in (400, 403, 404), target
        assert upstream.accepted == before
        assert broker.get("/gateway/x").status == 200


@pytest.mark.parametrize("content", [
    b"", b"\n", b"null", b"[]", b"{", b"{}{}", b'"*"', b'{"*":"https://h"}', b'{"a":"*"}',
    b'{"a":"https://*"}', b'{"a":null}', b'{"a":true}', b"\xff\xfe{\0}\0"
])
def test_malformed_rules_never_start(tmp_path, content):
    tmp_path.chmod(0o700)
    (tmp_path / "token").write_text(SECRET)
    (tmp_path / "sandbox-egress.json").write_bytes(content)
    result = run_broker("--listen", f"unix:{tmp_path}/s", "--gateway-url", "https://127.0.0.1:1",
                        "--gateway-token-file", tmp_path / "token", "--app-data", tmp_path)
    assert result.returncode == 65 and result.stdout == ""
    assert re.search(r"sandbox-egress\.json:\d+:\d+: \S", result.stderr), result.stderr


# --- "A host with a NUL byte or a trailing dot passed the allow-list and dialled elsewhere." ------


@pytest.mark.parametrize("url", [
    "https://127.0.0.1\0.example", "https://localhost.", "https://localhost.:{port}/",
    "https://localhost\\.example", "https://user@localhost", "https://localhost%2e"
])
def test_hosts_that_mean_another_are_no_rules(tmp_path, upstream, url):
    tmp_path.chmod(0o700)
    (tmp_path / "token").write_text(SECRET)
    (tmp_path / "sandbox-egress.json").write_text(json.dumps({"a": url.format(port=upstream.port)}))
    result = run_broker("--listen", f"unix:{tmp_path}/s", "--gateway-url", "https://127.0.0.1:1",
                        "--gateway-token-file", tmp_path / "token", "--app-data", tmp_path)
    assert result.returncode == 65 and ":1:" in result.stderr, result


@pytest.mark.parametrize("host", ["localhost.", "LOCALHOST..", "localhost%00", "localhost%2e"])
def test_redirects_to_hosts_that_mean_another_are_undeclared(tmp_path, host):
    """A host with an added dot or NUL does not match the rule, and the broker never dials a name
    from a target."""
    def answer(peer, head):
        peer.answer(b"", "302 Found", [f"Location: https://{host}:{upstream.port}/x"])

    with Upstream(serve_with(answer)) as upstream, \
            Broker(tmp_path,
                   rules={"here": upstream.url.replace("127.0.0.1", "localhost")}) as broker:
        response = broker.get("/here/x")
        assert response.status == 302
        place = response.fields.get("location", "http://127.0.0.1:8788/_undeclared/")
        assert place.startswith("http://127.0.0.1:8788/_undeclared/"), place
        accepted = upstream.accepted
        for target in (f"//{host}:{upstream.port}/x", f"/here%00/x", "/here./x", f"/{host}/x",
                       place.removeprefix("http://127.0.0.1:8788")):
            assert broker.get(target).status in (400, 403, 404), target
        assert upstream.accepted == accepted


# --- the table ------------------------------------------------------------------------------------

def test_the_table_names_tests_that_exist():
    text = (HERE / "README.md").read_text()
    named = re.findall(r"`(test_\w+\.py)(?:::(test_\w+))?`", text)
    assert len(named) > 20
    for file, test in named:
        source = (HERE / file).read_text()
        assert not test or f"def {test}(" in source, f"{file}::{test}"
