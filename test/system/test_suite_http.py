"""Raw requests and JSON texts of third-party suites, against the real broker process.

Each raw request is sent on its own connection, whole and byte by byte: once unchanged, to check the
verdict, and once directed to a recording upstream, to check what reaches it. `codev-broker --check`
runs the rules' suite."""
import collections
import concurrent.futures
import itertools
import re
import select
import subprocess
import time

import pytest

from broker_harness import BROKER, PATIENCE, SECRET, Broker, Upstream, broker_environment
from recording_upstream import Recorder
from suites import raw_requests, suite

MALFORMED_STATUSES = {400, 408, 411, 413, 414, 417, 421, 431, 501, 505}
SILENCE = 0.4  # seconds without an answer that count as "waits for more"
AT_ONCE = 24
WAYS = {"whole": 1 << 30, "bytewise": 1}


class Conversation:
    """The results of a connection: the statuses of its answers, and whether the broker closed
    it."""

    def __init__(self, broker, raw, piece, patience, is_answered=lambda: False):
        """Silence counts as no answer, unless the upstream answers: then the answer is awaited."""
        self.answers, self.closed = b"", False
        with broker.client() as client:
            client.socket.settimeout(patience)
            try:
                for start in range(0, len(raw), piece):
                    client.send(raw[start:start + piece])
                if not select.select([client.socket], [], [], patience)[0]:
                    broker.get("/nope")  # it has read everything that was sent before this
                    time.sleep(SILENCE)
                    client.socket.settimeout(PATIENCE if is_answered() else SILENCE)
                while data := client.socket.recv(65536):
                    self.answers += data
                    client.socket.settimeout(SILENCE)  # for data after the first answer
                self.closed = True
            except TimeoutError:
                pass
            except OSError:
                self.closed = True
        self.statuses = [
            int(text) for text in re.findall(rb"HTTP/1\.1 ([1-5][0-9]{2}) ", self.answers)
        ]
        self.status = next((status for status in self.statuses if status >= 200), None)


def agrees(verdict, got):
    if verdict == "reject":
        return got.status >= 400 if got.status else got.closed
    if verdict == "accept":
        return got.status is not None and got.status not in MALFORMED_STATUSES
    if verdict == "incomplete":
        return (got.status is None and not got.closed) or (got.status or 0) >= 400
    return True


def all_at_once(function, items):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(function, items))


# --- verdicts -------------------------------------------------------------------------------------

@pytest.mark.parametrize("way", WAYS)
def test_verdict_of_every_raw_request(tmp_path, way):
    cases = raw_requests()
    with Broker(tmp_path) as broker:
        def converse(case):
            waits = case["verdict"] in ("incomplete", "either")
            return Conversation(broker, case["raw"], WAYS[way], SILENCE if waits else PATIENCE)

        results = all_at_once(converse, cases)
        assert broker.get("/nope").status == 404
    wrong = [(case["id"], case["name"], case["verdict"], got.statuses, got.closed)
             for case, got in zip(cases, results) if not agrees(case["verdict"], got)]
    counts = collections.Counter(case["verdict"] for case in cases)
    print(f"{way}: {len(cases)} cases, {dict(counts)}, {len(wrong)} wrong")
    assert wrong == []
    assert len(cases) == 430


# --- what reaches the upstream --------------------------------------------------------------------

def aimed(case, number, every):
    """The raw request with its target changed to the rule `w` and the case's number; with `every`,
    in all its request lines."""
    return re.sub(
        rb"(?:\A(?:\r\n)*|(?<=\n))([!-~]+[ \t]+)/" if every else rb"\A((?:\r\n)*[!-~]+[ \t]+)/",
        rb"\1/w/c%d/" % number, case["raw"])


def content_of(raw):
    """(method, target, body) of a request that the broker has served, parsed leniently: it must
    equal what the upstream got."""
    head, _, rest = raw.lstrip(b"\r\n").partition(b"\r\n\r\n")
    method, target, _ = head.split(b"\r\n")[0].split(b" ")
    fields = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
    }
    if b"transfer-encoding" not in fields:
        return method, target, rest[:int(fields.get(b"content-length", 0))]
    body = b""
    while (size := int(re.match(rb"[0-9a-fA-F]+", rest)[0], 16)) > 0:
        rest = rest.partition(b"\r\n")[2]
        body, rest = body + rest[:size], rest[size + 2:]
    return method, target, body


@pytest.mark.parametrize("every", [False, True], ids=["first", "every"])
@pytest.mark.parametrize("way", WAYS)
def test_one_request_is_one_request_upstream(tmp_path, way, every):
    """The recording upstream gets exactly the request that it answers, or none, and never more
    requests than the log has. "every": the suite's pipelined requests, and possible second requests
    in a body, are directed to it too."""
    cases = raw_requests()
    if every:  # those with more than one line like a request line
        cases = [
            case for case in cases if len(re.findall(rb"(?:\A|\n)[!-~]+[ \t]+/", case["raw"])) > 1
        ]
    raws = [aimed(case, number, every) for number, case in enumerate(cases)]
    recorder = Recorder()
    with Upstream(recorder,
                  tls=False) as upstream, Broker(tmp_path,
                                                 rules={"w": f"{upstream.url}/w"}) as broker:
        def converse(item):
            case, raw, number = item
            def answered():
                place = b"/w/c%d/" % number
                return any(request.complete and request.target.startswith(place)
                           for request in list(recorder.requests))

            return Conversation(
                broker, raw, WAYS[way],
                10 * SILENCE if case["verdict"] in ("accept", "reject") else SILENCE, answered)

        results = all_at_once(converse, zip(cases, raws, itertools.count()))
        broker.get("/w/end")
        logged = collections.Counter(
            re.match(r"/w/c(\d+)/", line["path"])[1]
            for line in broker.log_lines(1, path="/w/end") and broker.log_lines()
            if line.get("path", "").startswith("/w/c"))
    assert recorder.faults == []
    seen = collections.defaultdict(list)
    for request in recorder.requests:
        if request.complete and request.target != b"/w/end":
            seen[re.match(rb"/w/c(\d+)/", request.target)[1].decode()].append(request)
    answered = 0
    for number, (case, raw, got) in enumerate(zip(cases, raws, results)):
        requests, key = seen[str(number)], str(number)
        passed = got.statuses.count(200)
        answered += passed
        assert passed <= len(requests) <= logged[key], (case["id"], raw, got.answers, requests)
        if not every:
            assert len(requests) == passed <= 1, (case["id"], raw, got.answers)
        if passed and got.status == 200:
            first = requests[0]
            assert (first.method, first.target, first.body) == content_of(raw), (case["id"], raw)
    print(
        f"{way}: {len(cases)} cases, {answered} answers from upstream, {len(recorder.requests)} "
        "requests there"
    )
    assert answered > (10 if every else 100)


# --- rules ----------------------------------------------------------------------------------------

MEANINGS = ("expected an object of name to URL", "the URL ", "a rule's name",
            "this name is used twice")


def test_every_json_text_as_rules(tmp_path):
    """n_ is refused as malformed, with a position; y_ is well-formed, so only its content may be
    refused; i_ may be either."""
    files = sorted(suite("json/test_parsing").iterdir())
    tmp_path.chmod(0o700)
    token = tmp_path / "token"
    token.write_text(SECRET)

    def check(file):
        rules = tmp_path / file.name
        rules.write_bytes(file.read_bytes())
        rules.chmod(0o600)
        return subprocess.run([
            BROKER, "--listen", f"unix:{tmp_path}/s", "--gateway-url", "https://127.0.0.1:1/base",
            "--gateway-token-file", token, "--rules", rules, "--check"
        ],
                              stdin=subprocess.DEVNULL,
                              capture_output=True,
                              env=broker_environment(),
                              timeout=PATIENCE)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(check, files))
    counts = collections.Counter()
    for file, result in zip(files, results):
        error = result.stderr.decode()
        reason = re.search(
            re.escape(str(tmp_path / file.name)) + r":[1-9]\d*:[1-9]\d*: (.+)", error)
        counts[file.name[:2], result.returncode] += 1
        assert result.returncode in (0, 65), (file.name, result)
        assert (result.returncode == 65) == bool(reason), (file.name, error)
        about_meaning = bool(reason) and any(words in reason[1] for words in MEANINGS)
        if file.name.startswith("n_"):
            assert reason and not about_meaning, (file.name, error)
        if file.name.startswith("y_"):
            assert not reason or about_meaning, (file.name, error)
    print(f"{len(files)} texts: {dict(counts)}")
    assert len(files) == 318
