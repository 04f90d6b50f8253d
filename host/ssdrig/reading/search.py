"""A search such as `drive:990 op:25 state:complete tag:review since:2026-11`, as a condition on the index. Pure.

Each word must hold. A word without a key is looked for in the name, title, tags, plan, model and serial of a run; a
minus before a word turns it round."""

import calendar
import datetime
import re
import shlex
from collections.abc import Callable

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean

STATES = ("complete", "failed", "interrupted", "died", "running", "unreadable")
OP_STEP = 0.5  # over-provisioning that is as near as this, in percent of raw NAND, is the same
YES = {"yes": 1, "no": 0}
Part = tuple[str, list[str | float]]
HELP = (
    "words, all of which must hold: drive:990 plan:pts op:25|default state:complete tag:review title:WORD run:WORD"
    " since:2026-11 until:2026-11-30 simulated:yes|no; a bare word is looked for everywhere; -WORD excludes"
    " (behind other words in one pair of quotes, or behind --)"
)


def condition(text: str) -> Part:
    """The search as SQL over the table `run` (index.py), and its parameters. Raises UsageError."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError('a search such as drive:990 title:"two words"', text[:80], "close the quote") from error
    return joined(words)


def joined(words: list[str]) -> Part:
    """condition() of words that a shell has split."""
    parts, values = [], []
    for word in (word.encode(errors="replace").decode() for word in words):  # no more bytes that are no text
        not_, bare = ("NOT ", word[1:]) if word.startswith("-") and len(word) > 1 else ("", word)
        sql, more = _one(bare)
        parts.append(f"{not_}({sql})")
        values += more
    return " AND ".join(parts) or "1", values


def _one(word: str) -> Part:
    key, colon, value = word.partition(":")
    if not colon:
        return _like("words", word)
    if key not in KEYS:
        raise UsageError(f"a key of a search: {', '.join(KEYS)}", f"{key[:40]!r}", do_you_mean(key, KEYS))
    if not value:
        raise UsageError(f"a value behind {key}:", "none", f"write it as in {EXAMPLES[key]}")
    return KEYS[key](value)


def _like(column: str, value: str) -> Part:
    """Whether the column, which is in lower case, contains the value."""
    escaped = re.sub(r"([\\%_])", r"\\\1", value.lower())
    return f"coalesce({column}, '') LIKE ? ESCAPE '\\'", [f"%{escaped}%"]


def _state(value: str) -> Part:
    if value not in STATES:
        raise UsageError(f"a state: {', '.join(STATES)}", f"{value[:40]!r}", "choose one of them")
    return "state = ?", [value]


def _tag(value: str) -> Part:
    return "coalesce(tags, '') LIKE ? ESCAPE '\\'", [_like("", f" {value} ")[1][0]]


def _op(value: str) -> Part:
    if value == "default":
        return "op_percent IS NULL", []
    try:
        percent = float(value.rstrip("%"))
    except ValueError as error:
        raise UsageError("over-provisioning such as op:25 or op:default", f"{value[:40]!r}", "give percent") from error
    return "coalesce(abs(op_percent - ?), 1e9) <= ?", [percent, OP_STEP]


def _simulated(value: str) -> Part:
    if value not in YES:
        raise UsageError("simulated:yes or simulated:no", f"{value[:40]!r}", "choose one of them")
    return "coalesce(simulated, -1) = ?", [YES[value]]


def _since(value: str) -> Part:
    return "coalesce(started_utc_ns, 0) >= ?", [_span_ns(value)[0]]


def _until(value: str) -> Part:
    return "coalesce(started_utc_ns, 0) < ?", [_span_ns(value)[1]]


def _span_ns(value: str) -> tuple[int, int]:
    """When a year, a month or a day (UTC) begins and ends, ns since 1970."""
    found = re.fullmatch(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?", value)
    try:
        if not found:
            raise ValueError
        year, month, day = (int(part) if part else None for part in found.groups())
        begin = datetime.datetime(year or 0, month or 1, day or 1, tzinfo=datetime.UTC)
    except ValueError as error:
        raise UsageError("a date such as 2026, 2026-11 or 2026-11-30", f"{value[:40]!r}", "give it in UTC") from error
    days = 1 if day else calendar.monthrange(begin.year, begin.month)[1] if month else 365 + calendar.isleap(begin.year)
    begin_s = int(begin.timestamp())
    return _held(begin_s * 10**9), _held((begin_s + days * 86400) * 10**9)


def _held(utc_ns: int) -> int:
    """As near as SQLite can hold it: no run has begun before 1678, none after 2261."""
    return max(-(2**63), min(utc_ns, 2**63 - 1))


KEYS: dict[str, Callable[[str], Part]] = {
    "drive": lambda value: _like("drive", value),
    "plan": lambda value: _like("plan", value),
    "op": _op,
    "state": _state,
    "tag": _tag,
    "title": lambda value: _like("lower(title)", value),
    "run": lambda value: _like("lower(path)", value),
    "since": _since,
    "until": _until,
    "simulated": _simulated,
}
EXAMPLES = {
    "drive": "drive:990",
    "plan": "plan:pts",
    "op": "op:25",
    "state": "state:complete",
    "tag": "tag:review",
    "title": "title:firmware",
    "run": "run:76fa",
    "since": "since:2026-11",
    "until": "until:2026-11-30",
    "simulated": "simulated:no",
}
