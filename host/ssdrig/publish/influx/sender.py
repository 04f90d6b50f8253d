"""Sends RUN/points.lp to InfluxDB of any generation, and never loses its place.

It is sent from RUN/points.cursor on; the cursor moves only after the server answers 204, so whatever fails and
whenever, lines are sent at least once; they are the same bytes each time, which makes the second time harmless (same
series, same time, same fields). For the same reason the cursor need not reach the disk immediately. What a server
answers, and what then (answers.py):

    204                          sent
    400 by a server that wants   the address is wrong, not the lines: wrong_address states it, and the cursor
        TLS or another name      stays; retried like "anything else", for who does not look at it
    400, 413, 422, many lines    send half as many; on 204 twice as many again
    the same, one line, or a     into RUN/rejected.jsonl with the server's words, and on
        batch refused whole
    404 database missing         ask once for CREATE DATABASE (1.x only has that), retry
    anything else, or nothing,   retry for ever: 1 s, 2 s, … with jitter, Retry-After honoured
        limits, a proxy's 400

A connection that breaks may mean "too big" (1.x cuts it in mid-send): half as many, and wait as well. While all goes
well two batches are under way, each on its own connection, so that the server never waits for us; their answers
are taken in order.

What an InfluxDB's answer to a batch means: sent, to be split, refused for good, to be tried again, or a wrong
address. The words are those of 1.6.7, 1.13.2 and 2.7.12, as seen; of 3.x, and of nginx, as documented.

FOLDER/rejected.jsonl: lines that a server has refused for good, with its words; a JSON object on a line each."""

import contextlib
import gzip
import hashlib
import json
import math
import os
import random
import re
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from ssdrig.base import system
from ssdrig.base.errors import UploadIncomplete
from ssdrig.base.files import part_from_copies, write_atomically
from ssdrig.publish.influx.address import Target, target
from ssdrig.publish.influx.link import ANSWER_S, BROKEN, FORM, NO_ANSWER, Answer, Link, request
from ssdrig.runs import integrity

APPEND = (
    os.O_WRONLY | os.O_CREAT | os.O_APPEND | system.NOFOLLOW | system.CLOEXEC
)  # a link would lead out of the folder


class Rejected:
    """Those of one server. Each line is kept once, however often it is refused."""

    def __init__(self, folder: Path, to: str):
        self.path, self._to = Path(folder) / "rejected.jsonl", to
        self._lines = {_digest(line.encode()) for _, line in self._entries()}

    def __len__(self) -> int:
        return len(self._lines)

    def holds(self, line: bytes) -> bool:
        return _digest(line) in self._lines

    def add(self, batch: bytes, answer: Answer) -> int:
        """All lines of a batch. Returns how many are new; they are on the disk then."""
        new = {_digest(line): line for line in batch.decode("utf-8", "replace").encode().splitlines()}
        new = {digest: line for digest, line in new.items() if digest not in self._lines}
        if not new:
            return 0
        header = {"utc_ns": time.time_ns(), "to": self._to, "status": answer.status, "answer": answer.words[:1000]}
        block = b"".join(json.dumps(header | {"line": line.decode()}).encode() + b"\n" for line in new.values())
        part_from_copies(self.path)
        with open(os.open(self.path, APPEND, 0o644), "ab") as f:
            if f.tell() and not _ends_with_newline(self.path):
                f.write(b"\n")
            f.write(block)
            f.flush()
            os.fsync(f.fileno())
        self._lines |= set(new)
        return len(new)

    def forget(self) -> int:
        """Take this server's lines out of the file; they are in points.lp. Returns how many there were."""
        mine, forgotten = {raw for raw, _ in self._entries()}, len(self._lines)
        with contextlib.suppress(FileNotFoundError):
            rest = b"".join(raw + b"\n" for raw in integrity.content(self.path).splitlines() if raw not in mine)
            if rest:
                write_atomically(self.path, rest)
            else:
                self.path.unlink()
        self._lines = set()
        return forgotten

    def _entries(self) -> list[tuple[bytes, str]]:
        """(as it is in the file, the line refused)"""
        out = []
        with contextlib.suppress(FileNotFoundError):
            for raw in integrity.content(self.path).splitlines():
                try:
                    entry = json.loads(raw)
                    if entry["to"] == self._to:
                        out.append((raw, str(entry["line"])))
                except (ValueError, KeyError, TypeError, RecursionError):
                    continue  # the torn line of a crash; its point is sent, and refused, again
        return out


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as f:
        f.seek(-1, os.SEEK_END)
        return f.read(1) == b"\n"


SENT, SPLIT, REFUSED, RETRY, WRONG = "sent", "split", "refused", "retry", "wrong address"

# what Go's server (InfluxDB) and nginx answer to http on a port of https
TLS_WANTED = re.compile("HTTP request (was sent )?to (an )?HTTPS (server|port)", re.IGNORECASE)
BAD_NAME = re.compile(r"(database|db|bucket|namespace) ?name|(database|bucket|namespace) names", re.IGNORECASE)  # 3.x
# an administrator may raise them: 1.x max-series-per-database and max-values-per-tag, 3.x databases, tables, columns
LIMIT = re.compile("limit exceeded|would exceed|exceeds? the limit|limit of [0-9]|maximum (number|col)", re.IGNORECASE)
DROPPED = re.compile(r"\bdropped[= ](\d{1,15})\b")
KINDS = re.compile(r"'[^']*'|\"[^\"]*\"|[\d.:+-]+")


class Verdict(NamedTuple):
    """What to do with a batch, and why in words that do not differ from line to line."""

    what: str
    why: str = ""


def judge(answer: Answer, lines: int) -> Verdict:
    """Answer to a batch of `lines` lines."""
    status, words = answer.status, answer.words
    if status == 204:
        return Verdict(SENT)
    if status not in (400, 413, 422):
        return Verdict(RETRY)
    if status != 413:
        if TLS_WANTED.search(words):
            return Verdict(WRONG, f"one that wants TLS: {words[:200]}")
        error = _error(words)
        if error is None or LIMIT.search(_own(error)):  # a proxy's, or a limit: the lines are not at fault
            return Verdict(RETRY)
        if BAD_NAME.search(_own(error)):
            return Verdict(WRONG, f"one that takes no such name: {error[:200]}")
    if lines == 1 or _dropped(words) >= lines:
        return Verdict(REFUSED, kind(words))
    return Verdict(SPLIT)


def kind(words: str) -> str:
    """An answer's words without what differs from line to line."""
    return " ".join(KINDS.sub("…", _error(words) or words).split())[:160]


def _document(words: str) -> dict[str, Any]:
    try:
        document = json.loads(words)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _error(words: str) -> str | None:
    """The error that InfluxDB reports; None if the answer is not from InfluxDB."""
    document = _document(words)
    text = document.get("error", document.get("message"))
    if not isinstance(text, str):
        return None
    data = document.get("data")
    if isinstance(data, list) and data and isinstance(data[0], dict):  # 3.x: line by line
        return f"{text}: {data[0].get('error_message', '')}"
    return text


def _own(message: str) -> str:
    """Without a line that the server repeats: that may have any words in it."""
    return message.partition("unable to parse")[0]


def _dropped(words: str) -> int:
    """How many points the server rejected; 0 if unknown. For 3.x, which names each line, all that
    it names."""
    document = _document(words)
    if isinstance(document.get("data"), list):
        return len({entry.get("line_number") for entry in document["data"] if isinstance(entry, dict)})
    dropped = DROPPED.search(_own(_error(words) or ""))
    return int(dropped[1]) if dropped else 0


def in_words(answer: Answer, to: Target) -> str:
    """An answer that sends the batch back, and what to do about it."""
    message = " ".join((_error(answer.words) or answer.words).split())[:200]
    if answer.status == NO_ANSWER:
        return f"no answer ({answer.words})"
    if answer.status == BROKEN:
        return f"the connection broke ({answer.words})"
    if answer.status in (401, 403):
        return (
            f"{answer.status}, not allowed; set SSDRIG_INFLUX_USER and SSDRIG_INFLUX_PASSWORD, or SSDRIG_INFLUX_TOKEN"
            " on 2.x and 3.x"
        )
    if re.search("retention policy not found", message, re.IGNORECASE):  # 500 on 1.x
        hint = f"make a retention policy {to.rp!r} in the database {to.database!r}"
        return f"{answer.status} {message}; {hint}, or leave ?rp= out of the address"
    if answer.status == 404:
        return f"404 {message}; {_of_404(message, to)}"
    if LIMIT.search(_own(message)):
        return f"{answer.status} {message}; raise that limit of the server, then push again"
    if answer.status in (400, 422):
        return f"{answer.status} {message}; these are not the words of an InfluxDB: is it the right address?"
    return f"{answer.status} {message}".strip()


def _of_404(message: str, to: Target) -> str:
    name = to.database
    if re.search("dbrp|bucket", message, re.IGNORECASE):
        return f"make a bucket named {name!r}, or give the token the right to write to it"
    if re.search("database", message, re.IGNORECASE):
        return f"make a database named {name!r}, or give a user who may make it"
    if re.search("organi[sz]ation", message, re.IGNORECASE):
        return f"this token has no organization {to.org!r}"
    return (
        f"no InfluxDB answers at {to}; the address is http://host:port/DB, of 2.x also http://host:port/?bucket=BUCKET"
    )


__all__ = ["Sender", "Target", "target"]

BATCH_LINES, BATCH_BYTES = 5000, 1_000_000
IN_FLIGHT = 2
BACKOFF_S, BACKOFF_CAP_S = 1.0, 300.0
ABSENT_CAP_S = 5.0  # asking an absent server costs nothing
PLAIN_AFTER_500 = 3  # a 2.x server reports 500 for a body that was damaged on the way: then once without gzip


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
    """attempt() brings at most one batch to its end and never waits for its turn; the caller does (wait_s). done counts
    the lines acknowledged or refused, rejected those refused; trouble is the server's last words, None when it takes
    all. longest_wait_s: longest pause between two tries. compress None: gzip, but not to this machine."""

    def __init__(
        self,
        run: Path,
        to: Target,
        now: Callable[[], float] = time.monotonic,
        say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
        longest_wait_s: float = BACKOFF_CAP_S,
        compress: bool | None = None,
        answer_s: float = ANSWER_S,
    ):
        self.points, self.cursor = run / "points.lp", run / "points.cursor"
        self.to, self.now, self.say = to, now, say
        self.limit, self.longest_wait_s = BATCH_LINES, longest_wait_s
        self.trouble: str | None = None
        self.until = math.inf  # of time.monotonic(): when a try ends, whatever the server does
        self.wrong_address: UploadIncomplete | None = None  # what to raise where trying again cannot help
        self._gzip = not to.is_near if compress is None else compress
        self._links = [Link(to, answer_s) for _ in range(IN_FLIGHT)]
        self._free = list(self._links)
        self._flight: deque[tuple[Link, bytes, int]] = deque()  # the requests in flight: link, batch, its lines
        self._failures = 0
        self._500s = 0
        self._create_asked = False
        self._not_before = self._asked_not_before = -float("inf")
        self._refused: set[str] = set()  # kinds of refusal that have been stated
        self._rejected = Rejected(run, str(to))
        self.offset, self.done = self._read_cursor()

    def __enter__(self) -> "Sender":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        self._recall()
        for link in self._links:
            link.close()

    @property
    def rejected(self) -> int:
        return len(self._rejected)

    def pending(self) -> int:
        """Whole lines that the server has not acknowledged. Reads all of them."""
        if not self.points.exists():
            return 0
        with self.points.open("rb") as f:
            f.seek(self.offset)
            return sum(block.count(b"\n") for block in iter(lambda: f.read(1 << 20), b""))

    def retry_rejected(self) -> int:
        """Send everything again and clear the list of rejected lines. Returns how many lines that was."""
        self.cursor.unlink(missing_ok=True)  # first: with it, those lines would never be sent
        self.offset, self.done = 0, 0
        return self._rejected.forget()

    def wait_s(self) -> float:
        """Seconds until attempt() may ask the server again; 0 if now."""
        return max(0.0, self._not_before - self.now())

    def attempt(self, last: bool = False) -> bool:
        """Send if there is something and it is time, and take the oldest answer. Returns whether the cursor moved or
        another try may follow immediately. `last`: skip our own pauses, only for the server's Retry-After."""
        if (self._asked_not_before if last else self._not_before) > self.now():
            return False
        self._fill()
        if not self._flight:
            return False
        link, batch, lines = self._flight.popleft()
        link.until = self.until
        answer = link.receive()
        self._free.append(link)
        if self._judged(batch, lines, answer):
            return True
        self._back_off(answer)
        return False

    def _judged(self, batch: bytes, lines: int, answer: Answer) -> bool:
        verdict = judge(answer, lines)
        if verdict.what == SENT:
            self._calm()
            self.limit = min(BATCH_LINES, self.limit * 2)
            self._advance(batch, lines)
            return True
        self._recall()  # some later ones may be stored already; they are sent again
        self.wrong_address = None
        if verdict.what == REFUSED:
            self._reject(batch, answer, verdict.why)
            self._advance(batch, lines)
            self.limit = min(BATCH_LINES, self.limit * 2) if lines > 1 else self.limit
            return True
        if verdict.what == WRONG:
            self.wrong_address = UploadIncomplete(
                f"an InfluxDB that takes points at {self.to}",
                verdict.why,
                f"correct --influx or SSDRIG_INFLUX (https:// where TLS is wanted); nothing was refused, all is kept in"
                f" {self.points}",
            )
            return False
        if verdict.what == SPLIT or answer.status == BROKEN:
            self.limit = max(1, lines // 2)
        if verdict.what == SPLIT:
            return True
        if answer.status == 404 and not self._create_asked and not self.to.bucket:
            self._create_asked = True
            name = '"' + self.to.database.replace("\\", "\\\\").replace('"', '\\"') + '"'
            made = request(
                self.to, "/query", urlencode({"q": f"CREATE DATABASE {name}"}).encode(), FORM, until=self.until
            )
            if made.status == 200 and '"error"' not in made.words:
                return True
        self._500s = self._500s + 1 if answer.status == 500 else 0
        return False

    def _fill(self) -> None:
        """Send batches while there are some and a connection is free: one, where anything is not as it should
        be."""
        well = not self._failures and self.limit == BATCH_LINES
        while self._free and (well or not self._flight):
            batch = self._next_batch(self.offset + sum(len(batch) for _, batch, _ in self._flight))
            if not batch:
                return
            link, lines = self._free.pop(0), batch.count(b"\n")
            self._send(link, batch, lines)
            self._flight.append((link, batch, lines))

    def _recall(self) -> None:
        for link, _, _ in self._flight:
            link.close()
            self._free.append(link)
        self._flight.clear()

    def _next_batch(self, offset: int) -> bytes:
        if not self.points.exists():
            return b""
        with self.points.open("rb") as f:
            f.seek(offset)
            block = f.read(BATCH_BYTES)
            while block and b"\n" not in block:
                more = f.read(BATCH_BYTES)
                if not more:
                    break
                block += more
        return take(block, self.limit)

    def _send(self, link: Link, batch: bytes, lines: int) -> None:
        headers = {"Content-Type": "text/plain; charset=utf-8"}
        plain = not self._gzip or lines == 1 or (self._500s and self._500s % PLAIN_AFTER_500 == 0)
        body = batch if plain else gzip.compress(batch, compresslevel=1, mtime=0)
        if not plain:
            headers["Content-Encoding"] = "gzip"
        link.until = self.until
        link.send(self.to.write_path, body, headers)

    def _advance(self, batch: bytes, lines: int) -> None:
        self.offset += len(batch)
        self.done += lines
        content = {"schema": 1, "to": str(self.to), "offset": self.offset, "lines": self.done}
        write_atomically(self.cursor, json.dumps(content).encode() + b"\n", durable=False)

    def _read_cursor(self) -> tuple[int, int]:
        """Offset and lines before it. Anything doubtful (another server, a rebuilt points.lp) starts at 0: harmless."""
        try:
            content = integrity.document_of(self.cursor)
            offset, lines = int(content["offset"]), int(content["lines"])
            if content["schema"] != 1 or content["to"] != str(self.to) or offset <= 0:
                return 0, 0
            with self.points.open("rb") as f:
                f.seek(offset - 1)
                return (offset, lines) if f.read(1) == b"\n" else (0, 0)
        except (OSError, ValueError, KeyError, TypeError):
            return 0, 0

    def _reject(self, batch: bytes, answer: Answer, why: str) -> None:
        if self._rejected.add(batch, answer) and why not in self._refused:
            self._refused.add(why)
            line = batch.split(b"\n", 1)[0].decode("utf-8", "replace")
            self.say(
                f"{self.to}: refused for good: {answer.words[:200]}: {line[:120]} (kept in {self._rejected.path};"
                " others refused for this reason are not named here)"
            )

    def _calm(self) -> None:
        if self._failures and self.trouble:
            self.say(f"{self.to}: takes points again")
        self._failures, self._500s, self._create_asked = 0, 0, False
        self.trouble, self.wrong_address = None, None
        self._not_before = self._asked_not_before = -float("inf")

    def _back_off(self, answer: Answer) -> None:
        cap_s = min(self.longest_wait_s, ABSENT_CAP_S if answer.status == NO_ANSWER else BACKOFF_CAP_S)
        delay_s = min(cap_s, BACKOFF_S * 2.0 ** min(self._failures, 20)) * random.uniform(0.5, 1.0)
        self._asked_not_before = self.now() + answer.retry_after_s
        self._not_before = max(self.now() + delay_s, self._asked_not_before)
        self._failures += 1
        trouble = in_words(answer, self.to)
        if trouble != self.trouble:
            self.trouble = trouble
            self.say(f"{self.to}: {trouble}; all points are kept in {self.points} and tried again until it takes them")
