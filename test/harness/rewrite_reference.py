"""A second implementation of the broker's rewriting of documents, with Python's own parsers, on the
whole document at once.

It shares nothing with the broker's code: json's scanner reads JSON, html.parser HTML, urllib.parse
addresses. Both implement doc/rewriting.md."""
import html
import html.parser
import json
import json.decoder
import re
import urllib.parse

PLACES = {
    "npm": (["versions", str, "dist", "tarball"], ["dist", "tarball"]),
    "pypi-json": (["files", int, "url"],),
    "cargo": (["dl"], ["api"]),
    "git-lfs": (["objects", int, "actions", str, "href"],),
}
SPACE = re.compile(r"[ \t\r\n]*")
JSON_UNIT = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|.", re.DOTALL)
HTML_UNIT = re.compile(r"&(?:#[xX][0-9a-fA-F]+|#[0-9]+|[A-Za-z]+);|.", re.DOTALL)
HREF = re.compile(r"""\shref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
ESCAPE_OR_BYTE = re.compile(r"%[0-9a-fA-F]{2}|.", re.DOTALL)
UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")


class Rules:
    """`rules` as in sandbox-egress.json; `own` is the name of the rule that the request used."""

    def __init__(self, rules, own, guest="http://127.0.0.1:8788"):
        self.rules = [(name, self.origin(url),
                       self.normal(urllib.parse.urlsplit(url).path.rstrip("/")))
                      for name, url in rules.items()]
        self.own, self.guest = own, guest
        self.base = rules[own]

    @staticmethod
    def origin(url):
        parts = urllib.parse.urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or {"https": 443, "http": 80}[parts.scheme]

    @staticmethod
    def normal(path):
        """The path's characters; escapes of unreserved characters are decoded."""
        characters = []
        for piece in ESCAPE_OR_BYTE.findall(path):
            plain = urllib.parse.unquote(piece) if len(piece) == 3 else piece
            characters.append((piece, plain if UNRESERVED.fullmatch(plain) else
                               piece.upper() if len(piece) == 3 else piece))
        return characters

    def rewrite(self, link, base=None):
        """(new beginning, number of characters of `link` that it replaces), or None when the link
        stays."""
        base = base or self.base
        lead = len(link) - len(link.lstrip())
        text = link.strip()
        found = re.match(r"(?:(https?):)?//([^/?#\\]*)", text, re.IGNORECASE)
        if found:
            scheme = (found[1] or self.origin(base)[0]).lower()
            origin = self.origin(f"{scheme}://{found[2]}")
            start = found.end()
        elif text.startswith("/"):
            origin, start = self.origin(base), 0
        else:
            return None
        path = re.match(r"[^?#]*", text[start:])[0]
        best = None
        for name, upstream, prefix in self.rules:
            characters = self.normal(path)
            under = upstream == origin and [plain for _, plain in characters[:len(prefix)]
                                            ] == [plain for _, plain in prefix]
            length = sum(len(piece) for piece, _ in characters[:len(prefix)])
            if under and path[length:length + 1] in ("", "/"):
                rank = (len(prefix), name == self.own)
                if best is None or rank > best[0]:
                    best = rank, f"{self.guest}/{name}", lead + start + length
        if best:
            return best[1:]
        port = "" if origin[2] == {"https": 443, "http": 80}[origin[0]] else f":{origin[2]}"
        return f"{self.guest}/_undeclared/{origin[1]}{port}", lead + start


def kept(raw, units, meaning, count):
    """The part of `raw` after the first `count` characters of its decoded text."""
    position = characters = 0
    for unit in units.finditer(raw):
        if characters >= count:
            break
        characters += len(meaning(unit[0]))
        position = unit.end()
    return raw[position:]


# --- JSON -----------------------------------------------------------------------------------------

def json_links(text, places):
    """[(start, end, decoded text)] of the strings at these places."""
    links = []
    decoder = json.JSONDecoder(strict=False)

    def read(at, left):
        at = SPACE.match(text, at).end()
        if text[at] == '"' and [] in left:
            value, end = json.decoder.scanstring(text, at + 1)
            links.append((at + 1, end - 1, value))
            return end
        kind = {"{": str, "[": int}.get(text[at])
        if kind is None or not any(
                steps and (steps[0] is kind or (kind is str and isinstance(steps[0], str)))
                for steps in left):
            return decoder.raw_decode(text, at)[1]
        closing, at = "}" if kind is str else "]", SPACE.match(text, at + 1).end()
        while text[at] != closing:
            key = None
            if kind is str:
                key, at = json.decoder.scanstring(text, at + 1)
                at = text.index(":", at) + 1
            at = read(at, [
                steps[1:] for steps in left
                if steps and (steps[0] is kind or (kind is str and steps[0] == key))
            ])
            at = SPACE.match(text, at).end()
            if text[at] == ",":
                at = SPACE.match(text, at + 1).end()
        return at + 1

    read(0, list(places))
    return links


def rewrite_json(document, rules, kind):
    text = document.decode("utf-8", "surrogateescape")
    links = json_links(text, PLACES[kind])
    if kind == "cargo" and not isinstance(json.loads(text).get("dl"), str):
        links = []
    return splice(text, links, rules, JSON_UNIT, lambda unit: json.loads(f'"{unit}"')
                  if unit[0] == "\\" else unit)


def splice(text, links, rules, units, meaning):
    out, at, count = [], 0, 0
    for start, end, value, *base in links:
        result = rules.rewrite(value, *base)
        if result is None:
            continue
        out += [text[at:start], result[0], kept(text[start:end], units, meaning, result[1])]
        at = end
        count += 1
    return "".join(out + [text[at:]]).encode("utf-8", "surrogateescape"), count


# --- HTML -----------------------------------------------------------------------------------------

class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.base = [], None
        self.lines = [0]
        for line in text.split("\n"):
            self.lines.append(self.lines[-1] + len(line) + 1)
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        if tag not in ("a", "base") or "href" not in dict(attributes):
            return
        line, column = self.getpos()
        raw = HREF.search(self.get_starttag_text())
        group = next(i for i in (1, 2, 3) if raw[i] is not None)
        start = self.lines[line - 1] + column + raw.start(group)
        self.links.append((start, start + len(raw[group]), html.unescape(raw[group]), self.base))
        assert html.unescape(raw[group]) == dict(attributes)["href"]
        if tag == "base" and "//" in dict(attributes)["href"]:
            self.base = dict(attributes)["href"]


def rewrite_html(document, rules):
    text = document.decode("utf-8", "surrogateescape")
    return splice(text, Page(text).links, rules, HTML_UNIT, html.unescape)


def rewrite(document, rules, kind):
    """(the document as the guest should get it, the number of rewritten links)."""
    return rewrite_html(document, rules) if kind == "pypi-html" else rewrite_json(
        document, rules, kind)
