"""A scripted InfluxDB: answers a write as the named generation was seen or is documented to, and remembers what it
stored.

Its reader of line protocol is written from the servers' rules and shares nothing with the encoder it judges. Sources:
1.6.7, 1.13.2 and 2.7.12 by experiment in 2026; 3.x from InfluxData's documentation of 2026-08.

`script` is a list with one entry per coming write, None for a normal answer, else what goes wrong:
  (status, headers[, text])   that answer, nothing stored
  "drop"              the connection is closed before anything is read
  "drop-mid-body"     … after half the body
  "store-then-drop"   all is stored, then the connection is closed without an answer
  "store-then-hang"   all is stored, then nothing is said until the fake ends
"""

import base64
import contextlib
import gzip
import json
import math
import re
import socket
import struct
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

_KEY = rb"(?:[^,= \\]|\\[,= ]|\\(?![,= ]))+"
_LINE = re.compile(
    rb"(?P<m>(?:[^, \\]|\\[, ]|\\(?![, ]))+)(?P<tags>(?:," + _KEY + rb"=" + _KEY + rb")*)"
    rb" (?P<fields>"
    + _KEY
    + rb'=(?:"(?:[^"\\]|\\.)*"|[^, "]+)(?:,'
    + _KEY
    + rb'=(?:"(?:[^"\\]|\\.)*"|[^, "]+))*)(?: (?P<t>-?\d+))?'
)
_TAG = re.compile(rb",(" + _KEY + rb")=(" + _KEY + rb")")
_FIELD = re.compile(rb"(" + _KEY + rb')=("(?:[^"\\]|\\.)*"|[^, "]+)(?:,|$)')


def _plain(text: bytes) -> str:
    return re.sub(rb"\\([,= ])", rb"\1", text).decode("utf-8")


def parse_line(line: bytes) -> tuple[str, tuple, dict, int]:
    """A line -> (measurement, ((tag, value), …), {field: value}, t_ns). ValueError where a server would answer 400."""
    match = _LINE.fullmatch(line)
    if not match or match["m"].startswith(b"#") or match["t"] is None:
        raise ValueError(f"unable to parse {line!r}")
    tags = tuple((_plain(k), _plain(v)) for k, v in _TAG.findall(match["tags"]))
    if any(v.endswith("\\") for _, v in tags) or len({k for k, _ in tags}) != len(tags) or "time" in dict(tags):
        raise ValueError(f"invalid tag format {line!r}")
    fields = {_plain(k): _value(v) for k, v in _FIELD.findall(match["fields"])}
    t = int(match["t"])
    if not -(2**63) <= t < 2**63 or b"\x00" in line:
        raise ValueError(f"time outside range {line!r}")
    return _plain(match["m"]), tags, fields, t


def _value(text: bytes):
    if text.startswith(b'"'):
        return re.sub(rb'\\(["\\])', rb"\1", text[1:-1]).decode("utf-8")
    if text in (b"t", b"T", b"true", b"True", b"TRUE"):
        return True
    if text in (b"f", b"F", b"false", b"False", b"FALSE"):
        return False
    if re.fullmatch(rb"-?\d+i", text):
        if not -(2**63) <= int(text[:-1]) < 2**63:
            raise ValueError("integer out of range")
        return int(text[:-1])
    if not re.fullmatch(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text) or not math.isfinite(float(text)):
        raise ValueError("invalid number")
    return float(text)


class Seen(NamedTuple):
    """One write as it came in: status answered (0 none), lines in it, whether it was compressed, its query."""

    status: int
    lines: int
    gzip: bool
    query: dict


class FakeInflux:
    """Context manager. url has the database in it. `stored`: (measurement, tags, t) -> fields; `changed` counts points
    that came again with other fields than before, which InfluxDB 3 does not promise to keep right."""

    def __init__(
        self,
        generation="1.6.7",
        databases=("db",),
        user="",
        password="",
        script=(),
        max_body=25_000_000,
        oldest_ns=-(2**63),
    ):
        self.generation, self.databases = generation, set(databases)
        self.credentials = (user, password)
        self.script, self.max_body, self.oldest_ns = list(script), max_body, oldest_ns
        self.stored: dict = {}
        self.types: dict = {}
        self.changed = 0
        self.seen: list[Seen] = []
        self.queries: list[str] = []
        self.connections = 0  # that were made
        self.open: list[socket.socket] = []
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.stored_something = threading.Event()

    def __enter__(self):
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                with fake.lock:
                    fake.connections += 1
                    fake.open.append(self.request)

            def do_POST(self):
                fake.answer(self)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/db"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()

    def hang_up(self):
        """Close every connection, as a server does with those that were idle for long."""
        for connection in self.open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.open.clear()

    @property
    def statuses(self):
        return [s.status for s in self.seen]

    def count(self, measurement):
        return sum(key[0] == measurement for key in self.stored)

    # what a server does with a request

    def answer(self, h):
        path, query = urlsplit(h.path).path, {k: v[0] for k, v in parse_qs(urlsplit(h.path).query).items()}
        length = int(h.headers["Content-Length"])
        if path == "/query":
            return self._query(h, parse_qs(h.rfile.read(length).decode())["q"][0])
        if path != "/write":
            return _reply(h, 404, {"error": "not found"})
        with self.lock:
            fault = self.script.pop(0) if self.script else None
        zipped = h.headers.get("Content-Encoding") == "gzip"
        if fault == "drop":
            self.seen.append(Seen(0, 0, zipped, query))
            return _cut(h)
        if fault == "drop-mid-body":
            h.rfile.read(length // 2)
            self.seen.append(Seen(0, 0, zipped, query))
            return _cut(h)
        if length > self.max_body:
            self.seen.append(Seen(413, 0, zipped, query))
            return _cut(h)  # as 1.x: a client that is still sending sees a broken pipe, not the 413
        body = h.rfile.read(length)
        if isinstance(fault, tuple):
            self.seen.append(Seen(fault[0], 0, zipped, query))
            return _reply(h, fault[0], fault[2] if len(fault) > 2 else {"error": "scripted"}, fault[1])
        with self.lock:
            try:
                lines = _lines(body, zipped)
            except (OSError, EOFError, zlib.error):
                lines = None
            status, words = self._write(h, query, lines)
            self.seen.append(Seen(0 if fault else status, len(lines or []), zipped, query))
        if fault:
            self.stored_something.set()
            if fault == "store-then-hang":
                self.ended.wait(60)
            return _cut(h)
        return _reply(h, status, words)

    def _query(self, h, text):
        self.queries.append(text)
        name = re.fullmatch(r'CREATE DATABASE "(.*)"', text)
        if self.generation.startswith("1.") and name:
            self.databases.add(name[1])
            return _reply(h, 200, {"results": [{"statement_id": 0}]})
        return _reply(h, 200, {"results": [{"statement_id": 0, "error": "not implemented: CREATE DATABASE"}]})

    def _write(self, h, query, lines):
        """Status and words for a write; lines None if the body was no gzip although it should be."""
        g = self.generation
        user, password = self.credentials
        sent = base64.b64decode(h.headers.get("Authorization", "Basic ").removeprefix("Basic ")).decode()
        right = sent == f"{user}:{password}" if g.startswith("1.") else sent.endswith(f":{password}")
        if password and not right:
            return 401, {"error": "authorization failed"} if g.startswith("1.") else {
                "code": "unauthorized",
                "message": "unauthorized access",
            }
        if query.get("precision") != "ns":
            raise AssertionError("precision=ns must be spelled out")
        if query["db"] not in self.databases:
            if g.startswith("3"):
                self.databases.add(query["db"])
            elif g.startswith("2"):
                return 404, {"code": "not found", "message": f'bucket "{query["db"]}" not found'}
            else:
                return 404, {"error": f'database not found: "{query["db"]}"'}
        if lines is None:
            return (500, {"code": "internal error"}) if g.startswith("2") else (400, {"error": "unexpected EOF"})
        points, bad = [], []
        for line in lines:
            try:
                points.append(parse_line(line))
            except ValueError as error:
                bad.append(str(error))
        if bad and g.startswith("2"):
            return 400, {"code": "invalid", "message": bad[0]}
        refused = [why for point in points if (why := self._store(*point))]
        if g.startswith("3") and (bad or refused):
            data = [{"line_number": n, "error_message": why} for n, why in enumerate(bad + refused, 1)]
            return 400, {"error": "partial write of line protocol occurred", "data": data[:6000]}
        first = next(iter(bad + refused), "")
        if "retention" in first and not g.startswith("1.6"):
            first = f"dropped {len(refused)} points outside retention policy of duration 168h0m0s"
        elif first:
            first += f" dropped={len(refused)}"
        if refused and g.startswith("2"):
            return 422, {
                "code": "unprocessable entity",
                "message": f"failure writing points to database: partial write: {first}",
            }
        if bad or refused:
            return 400, {"error": f"partial write: {first}"}
        return 204, None

    def _store(self, measurement, tags, fields, t):
        """Store one point; the reason if it cannot be."""
        if t < self.oldest_ns:
            return "points beyond retention policy"
        for key, value in fields.items():
            if self.types.setdefault((measurement, key), type(value)) is not type(value):
                return f'field type conflict: input field "{key}" on measurement "{measurement}"'
        known = self.stored.setdefault((measurement, tags, t), dict(fields))
        self.changed += known != fields
        known.update(fields)
        return None


@contextlib.contextmanager
def nobody():
    """The URL of a port at which nobody listens. It is held: a server of another worker's test may else be given it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}/db"


def _lines(body, zipped):
    text = gzip.decompress(body) if zipped else body
    return [line for line in text.split(b"\n") if line and not line.startswith(b"#")]


def _reply(h, status, words, headers=None):
    body = b"" if words is None else (words if isinstance(words, str) else json.dumps(words)).encode() + b"\n"
    h.send_response(status)
    for key, value in (headers or {}).items():
        h.send_header(key, value)
    if status != 204:
        h.send_header("Content-Length", str(len(body)))
    h.end_headers()
    if status != 204:
        h.wfile.write(body)


def _cut(h):
    """Close so that the client sees a reset at once."""
    h.close_connection = True
    h.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    h.connection.close()
