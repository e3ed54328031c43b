"""An upstream that records what reaches it by a strict parser that shares no code with the
broker's.

It checks that each request that the broker accepts reaches the upstream as exactly one request:
every byte of a connection must belong to a well-formed request; only the last one may be
incomplete. Anything that another server might read differently is a fault: a bare CR or LF, a
second Host or Content-Length, both framings at once, a coding other than chunked, a malformed field
line, bytes between requests."""
import re
import threading

REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) (/[!-~]*) HTTP/1\.1")
FIELD_LINE = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*((?:[!-~\x80-\xff](?:[\t "
    rb"-~\x80-\xff]*[!-~\x80-\xff])?)?)[ \t]*"
)
CHUNK_LINE = re.compile(rb"[0-9A-Fa-f]{1,16}")


class Malformed(Exception):
    pass


class Recorded:
    """One request; `complete` after its last byte."""

    def __init__(self, head):
        lines = head.split(b"\r\n")
        line = REQUEST_LINE.fullmatch(lines[0])
        if not line:
            raise Malformed(f"request line {lines[0]!r}")
        self.method, self.target = line[1], line[2]
        self.fields = []
        for text in lines[1:]:
            field = FIELD_LINE.fullmatch(text)
            if not field:
                raise Malformed(f"field line {text!r}")
            self.fields.append((field[1].lower(), field[2]))
        self.body, self.complete = b"", False
        self._check_framing()

    def _values(self, name):
        return [value for field, value in self.fields if field == name]

    def _check_framing(self):
        if len(self._values(b"host")) != 1:
            raise Malformed(f"{len(self._values(b'host'))} Host fields")
        lengths, codings = self._values(b"content-length"), self._values(b"transfer-encoding")
        if len(lengths) > 1 or len(codings) > 1 or (lengths and codings):
            raise Malformed(f"framed by {lengths} and {codings}")
        if lengths and not re.fullmatch(rb"[0-9]{1,19}", lengths[0]):
            raise Malformed(f"Content-Length {lengths[0]!r}")
        if codings and codings[0].lower() != b"chunked":
            raise Malformed(f"Transfer-Encoding {codings[0]!r}")
        self.length = int(lengths[0]) if lengths else None if codings else 0


class Recorder:
    """A handler for broker_harness.Upstream that collects `requests` and `faults` of all
    connections."""

    def __init__(self):
        self.requests, self.faults, self.lock = [], [], threading.Lock()

    def __call__(self, peer):
        try:
            while self._one_request(peer):
                peer.answer(b"recorded")
        except Malformed as fault:
            self.faults.append(str(fault))
            raise

    def _line(self, peer):
        """A line without its CRLF; EOFError when the broker closes before its end."""
        line = peer.read_until(b"\n")
        if not line.endswith(b"\r\n") or b"\r" in line[:-2]:
            raise Malformed(f"line end in {line!r}")
        return line[:-2]

    def _one_request(self, peer):
        lines = []
        while True:
            try:
                line = self._line(peer)
            except EOFError:
                if lines or peer.pending:
                    raise Malformed(f"broken off in a head: {lines} {peer.pending!r}") from None
                return False
            if not line:
                break
            lines.append(line)
        request = Recorded(b"\r\n".join(lines))
        with self.lock:
            self.requests.append(request)
        try:
            self._body(peer, request)
        except EOFError:
            return False  # visibly incomplete: not counted as a request
        request.complete = True
        return True

    def _body(self, peer, request):
        if request.length is not None:
            request.body = peer.read(request.length)
            return
        while True:
            line = self._line(peer)
            if not CHUNK_LINE.fullmatch(line):
                raise Malformed(f"chunk size {line!r}")
            size = int(line, 16)
            if size == 0:
                break
            request.body += peer.read(size)
            if peer.read(2) != b"\r\n":
                raise Malformed("no CRLF behind a chunk")
        if self._line(peer):
            raise Malformed("a trailer, which the broker drops")
