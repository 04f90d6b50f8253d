"""InfluxDB of any generation, over the interface that all of them have: POST /write?db=…&precision=ns with Basic
authentication.

RUN/points.lp is sent from RUN/points.cursor on; the cursor moves only after the server said 204, so whatever dies and
whenever, lines are sent at least once; they are the same bytes each time, which makes the second time harmless
(same series, same time, same fields). What a server answers, and what then:

    204                          sent
    400 by a server that wants   the address is wrong, not the lines: wrong_address says so, and the cursor
        TLS                      stays; retried like "anything else", for who does not look at it
    400, 413, 422, many lines    send half as many; on 204 twice as many again
    400, 413, 422, one line      into RUN/rejected.jsonl with the server's words, and on
    404 database missing         ask once for CREATE DATABASE (1.x only has that), retry
    anything else, or nothing    retry for ever: 1 s, 2 s, … with jitter, Retry-After honoured

A connection that breaks may mean "too big" (1.x cuts it in mid-send): half as many, and wait as well.
"""

import base64
import email.utils
import gzip
import http.client
import json
import os
import random
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlencode, urlsplit

from ssdrig.errors import UploadIncomplete, UsageError
from ssdrig.files import write_atomically

BATCH_LINES, BATCH_BYTES = 5000, 1_000_000
CONNECT_S, ANSWER_S = 5, 60
BACKOFF_S, BACKOFF_CAP_S, RETRY_AFTER_CAP_S = 1.0, 300.0, 600.0
ABSENT_CAP_S = 5.0  # asking an absent server costs nothing
DEFAULT_PORT = 8086
NO_ANSWER, BROKEN = 0, -1  # in place of a status: nobody there; the connection broke in mid-talk
# what Go's server (InfluxDB) and nginx answer to http on a port of https
TLS_WANTED = re.compile("HTTP request (was sent )?to (an )?HTTPS (server|port)", re.IGNORECASE)
PLAIN_AFTER_500 = 3  # a 2.x server says 500 for a body that was damaged on the way: then once without gzip


@dataclass(frozen=True)
class Target:
    """Where to. Prints without user and password."""

    scheme: str
    host: str
    port: int
    prefix: str
    database: str
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}/{quote(self.database, safe='')}"


class Answer(NamedTuple):
    """HTTP status, or NO_ANSWER or BROKEN; the first words of the body or of the error; seconds of Retry-After."""

    status: int
    words: str
    retry_after_s: float = 0.0


def target(url: str, environ: Mapping[str, str] = os.environ) -> Target:
    """http[s]://[user:password@]host[:port]/DB -> Target. SSDRIG_INFLUX_USER and SSDRIG_INFLUX_PASSWORD win over the
    URL's. On 2.x and 3.x the password is the token, the user anything. Raises UsageError, which never shows a
    password."""
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORT
        prefix, _, database = parts.path.rstrip("/").rpartition("/")
        (parts.hostname or "").encode(
            "idna"
        )  # what http.client does to it: a..b and a label of 64 letters are no hosts
        bad = (
            parts.scheme not in ("http", "https") or not parts.hostname or not database or parts.query or parts.fragment
        )
    except ValueError:
        bad = True
    if bad:
        raise UsageError(
            "an InfluxDB address such as http://127.0.0.1:8086/ssdrig, the last part naming the database",
            f"{len(url)} characters that are not one (not shown, they may hold a password)",
            "correct --influx or SSDRIG_INFLUX",
        )
    user = environ.get("SSDRIG_INFLUX_USER", unquote(parts.username or ""))
    password = environ.get("SSDRIG_INFLUX_PASSWORD", unquote(parts.password or ""))
    return Target(parts.scheme, parts.hostname or "", port, prefix, unquote(database), user, password)


def request(to: Target, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
    """One POST on a connection of its own. Never raises: what went wrong is the answer."""
    headers = dict(headers) | {"Connection": "close"}
    if to.user or to.password:
        headers["Authorization"] = "Basic " + base64.b64encode(f"{to.user or 'any'}:{to.password}".encode()).decode()
    kind = http.client.HTTPSConnection if to.scheme == "https" else http.client.HTTPConnection
    connection = kind(to.host, to.port, timeout=CONNECT_S)
    try:
        try:
            connection.connect()
        except OSError as error:
            return Answer(NO_ANSWER, _reason(error))
        connection.sock.settimeout(ANSWER_S)
        cut = None
        try:
            connection.request("POST", to.prefix + path, body, headers)
        except (BrokenPipeError, ConnectionResetError) as error:
            cut = error  # the server may have answered with 413 before it closed the connection
        try:
            reply = connection.getresponse()
            words = reply.read(1 << 20).decode("utf-8", "replace").strip()
            now_s = date_s(reply.getheader("Date"), time.time())  # the server's: our wall clock may be set meanwhile
            return Answer(reply.status, words, retry_after_s(reply.getheader("Retry-After"), now_s))
        except (OSError, http.client.HTTPException) as error:
            return Answer(BROKEN, _reason(cut or error))
    except (OSError, http.client.HTTPException) as error:
        return Answer(BROKEN, _reason(error))
    finally:
        connection.close()


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()


def retry_after_s(value: str | None, now_s: float) -> float:
    """Retry-After (RFC 9110 10.2.3: seconds, or an HTTP date) -> seconds from now, 0 to 10 minutes; 0 if not
    understood."""
    if not value:
        return 0.0
    if value.strip().isdecimal():
        wait_s = float(value)  # inf beyond 1e308
    else:
        wait_s = date_s(value, now_s) - now_s
    return min(max(wait_s, 0.0), RETRY_AFTER_CAP_S)


def date_s(value: str | None, otherwise_s: float) -> float:
    """An HTTP date -> seconds since 1970; otherwise_s if it is none."""
    try:
        return email.utils.parsedate_to_datetime(value or "").timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return otherwise_s


def classify(status: int, lines: int) -> str:
    """What an answer means for a batch of so many lines: "sent", "split", "rejected" or "retry"."""
    if status == 204:
        return "sent"
    if status in (400, 413, 422):
        return "split" if lines > 1 else "rejected"
    return "retry"


def take(block: bytes, lines: int) -> bytes:
    """The first `lines` whole lines of a block, at most BATCH_BYTES long, but always one if there is one."""
    end = 0
    for _ in range(lines):
        nxt = block.find(b"\n", end) + 1
        if not nxt or (end and nxt > BATCH_BYTES):
            break
        end = nxt
    return block[:end]


class Sender:
    """Sends RUN/points.lp. attempt() sends at most one batch and never waits for its turn; the caller does (wait_s).
    done counts the lines acknowledged or refused, rejected those refused; trouble is the server's last words, None when
    it takes all."""

    def __init__(
        self,
        run: Path,
        to: Target,
        now: Callable[[], float] = time.monotonic,
        say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
    ):
        self.points, self.cursor, self.rejected_file = run / "points.lp", run / "points.cursor", run / "rejected.jsonl"
        self.to, self.now, self.say = to, now, say
        self.limit = BATCH_LINES
        self.trouble: str | None = None
        self.wrong_address: UploadIncomplete | None = None  # what to raise where trying again cannot help
        self._failures = 0
        self._500s = 0
        self._create_asked = False
        self._not_before = -float("inf")
        self._rejected = self._read_rejected()
        self.offset, self.done = self._read_cursor()

    @property
    def rejected(self) -> int:
        return len(self._rejected)

    def pending(self) -> int:
        """Whole lines that the server has not acknowledged."""
        if not self.points.exists():
            return 0
        with self.points.open("rb") as f:
            f.seek(self.offset)
            return sum(block.count(b"\n") for block in iter(lambda: f.read(1 << 20), b""))

    def wait_s(self) -> float:
        """Seconds until attempt() may ask the server again; 0 if now."""
        return max(0.0, self._not_before - self.now())

    def attempt(self) -> bool:
        """Send one batch if there is one and it is time. Returns whether the cursor moved or another try may follow at
        once."""
        if self.wait_s() > 0:
            return False
        batch = self._next_batch()
        if not batch:
            return False
        lines = batch.count(b"\n")
        answer = self._post(batch, lines)
        if answer.status == 400 and self.to.scheme == "http" and TLS_WANTED.search(answer.words):
            self.wrong_address = UploadIncomplete(
                f"an InfluxDB that speaks http at {self.to}",
                f"one that wants TLS: {answer.words[:200]}",
                f"use https:// in --influx or SSDRIG_INFLUX; nothing was refused, all is kept in {self.points}",
            )
            self._back_off(answer)
            return False
        self.wrong_address = None
        verdict = classify(answer.status, lines)
        if verdict == "sent":
            self._calm()
            self.limit = min(BATCH_LINES, self.limit * 2)
            self._advance(batch, lines)
            return True
        if verdict == "rejected":
            self._reject(batch, answer)
            self._advance(batch, lines)
            return True
        if verdict == "split" or answer.status == BROKEN:
            self.limit = max(1, lines // 2)
        if verdict == "split":
            return True
        if answer.status == 404 and not self._create_asked:
            self._create_asked = True
            made = request(
                self.to, "/query", urlencode({"q": f"CREATE DATABASE {_quoted(self.to.database)}"}).encode(), FORM
            )
            if made.status == 200 and '"error"' not in made.words:
                return True
        self._500s = self._500s + 1 if answer.status == 500 else 0
        self._back_off(answer)
        return False

    def _next_batch(self) -> bytes:
        if not self.points.exists():
            return b""
        with self.points.open("rb") as f:
            f.seek(self.offset)
            block = f.read(BATCH_BYTES)
            while block and b"\n" not in block:
                more = f.read(BATCH_BYTES)
                if not more:
                    break
                block += more
        return take(block, self.limit)

    def _post(self, batch: bytes, lines: int) -> Answer:
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        plain = lines == 1 or (self._500s and self._500s % PLAIN_AFTER_500 == 0)
        body = batch if plain else gzip.compress(batch, compresslevel=1, mtime=0)
        if not plain:
            headers["Content-Encoding"] = "gzip"
        return request(self.to, "/write?" + urlencode({"db": self.to.database, "precision": "ns"}), body, headers)

    def _advance(self, batch: bytes, lines: int) -> None:
        self.offset += len(batch)
        self.done += lines
        content = {"schema": 1, "to": str(self.to), "offset": self.offset, "lines": self.done}
        write_atomically(self.cursor, json.dumps(content).encode() + b"\n")

    def _read_cursor(self) -> tuple[int, int]:
        """Offset and lines before it. Anything doubtful (another server, a rebuilt points.lp) starts at 0: harmless."""
        try:
            content = json.loads(self.cursor.read_bytes())
            offset, lines = int(content["offset"]), int(content["lines"])
            if content["schema"] != 1 or content["to"] != str(self.to) or offset <= 0:
                return 0, 0
            with self.points.open("rb") as f:
                f.seek(offset - 1)
                return (offset, lines) if f.read(1) == b"\n" else (0, 0)
        except (OSError, ValueError, KeyError, TypeError):
            return 0, 0

    def _read_rejected(self) -> set[str]:
        lines = set()
        try:
            for text in self.rejected_file.read_bytes().splitlines():
                try:
                    entry = json.loads(text)
                    if entry["to"] == str(self.to):
                        lines.add(entry["line"])
                except (ValueError, KeyError, TypeError):
                    continue  # the torn line of a crash; its point is sent, and refused, again
        except FileNotFoundError:
            pass
        return lines

    def _reject(self, batch: bytes, answer: Answer) -> None:
        line = batch.decode("utf-8", "replace").rstrip("\n")
        if line in self._rejected:
            return
        entry = {
            "utc_ns": time.time_ns(),
            "to": str(self.to),
            "status": answer.status,
            "answer": answer.words,
            "line": line,
        }
        with self.rejected_file.open("ab") as f:
            if f.tell() and not _ends_with_newline(self.rejected_file):
                f.write(b"\n")
            f.write(json.dumps(entry).encode() + b"\n")
            f.flush()
            os.fsync(f.fileno())
        self._rejected.add(line)
        self.say(f"{self.to}: refused for good: {answer.words[:200]}: {line[:120]} (kept in {self.rejected_file})")

    def _calm(self) -> None:
        if self._failures and self.trouble:
            self.say(f"{self.to}: takes points again")
        self._failures, self._500s, self._create_asked = 0, 0, False
        self.trouble, self._not_before = None, -float("inf")

    def _back_off(self, answer: Answer) -> None:
        cap_s = ABSENT_CAP_S if answer.status == NO_ANSWER else BACKOFF_CAP_S
        delay_s = min(cap_s, BACKOFF_S * 2.0 ** min(self._failures, 20)) * random.uniform(0.5, 1.0)
        self._not_before = self.now() + max(delay_s, answer.retry_after_s)
        self._failures += 1
        trouble = _in_words(answer)
        if trouble != self.trouble:
            self.trouble = trouble
            self.say(f"{self.to}: {trouble}; all points are kept in {self.points} and tried again until it takes them")


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def _in_words(answer: Answer) -> str:
    if answer.status == NO_ANSWER:
        return f"no answer ({answer.words})"
    if answer.status == BROKEN:
        return f"the connection broke ({answer.words})"
    if answer.status in (401, 403):
        return (
            f"{answer.status}, not allowed; set SSDRIG_INFLUX_USER and SSDRIG_INFLUX_PASSWORD (the token on 2.x and"
            " 3.x)"
        )
    return f"{answer.status} {answer.words[:200]}".strip()


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as f:
        f.seek(-1, os.SEEK_END)
        return f.read(1) == b"\n"


def stored_counts(to: Target, run: str | None = None) -> dict[str, int]:
    """Points that the database holds, of one run or of all, per measurement that it has (InfluxQL, any generation).
    UsageError if it cannot say."""
    where = "" if run is None else " WHERE run = '" + run.replace("\\", "\\\\").replace("'", "\\'") + "'"
    query = {"db": to.database, "q": f"SELECT count(*) FROM /.*/{where} GROUP BY *"}
    answer = request(to, "/query", urlencode(query).encode(), FORM)
    try:
        results: dict[str, Any] = (
            json.loads(answer.words)["results"][0] if answer.status == 200 else {"error": answer.words}
        )
    except (ValueError, KeyError, IndexError):
        results = {"error": answer.words}
    if "error" in results:
        raise UsageError(
            f"{to} to answer a query", f"{answer.status} {results['error'][:200]}", "check address, rights and database"
        )
    counts: dict[str, int] = {}
    for series in results.get("series", []):
        counts[series["name"]] = counts.get(series["name"], 0) + max(value or 0 for value in series["values"][0][1:])
    return counts
