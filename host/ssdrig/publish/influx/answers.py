"""What an InfluxDB's answer to a batch means: sent, to be split, refused for good, to be tried again, or a wrong
address. The words are those of 1.6.7, 1.13.2 and 2.7.12, as seen; of 3.x, and of nginx, as documented."""

import json
import re
from typing import Any, NamedTuple

from ssdrig.publish.influx.address import Target
from ssdrig.publish.influx.link import BROKEN, NO_ANSWER, Answer

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
