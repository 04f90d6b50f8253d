"""Questions to an InfluxDB in InfluxQL, which every generation answers at /query."""

import json
import math
from typing import Any
from urllib.parse import urlencode

from ssdrig.base.errors import UsageError
from ssdrig.publish.influx.address import Target
from ssdrig.publish.influx.link import FORM, request

MOST_BYTES = 256 << 20  # of an answer


def series(to: Target, text: str, until: float = math.inf) -> list[dict[str, Any]]:
    """The series that one statement gives: {"name", "tags", "columns", "values"}, times in ns. UsageError if the server
    does not answer before `until` (time.monotonic)."""
    path = "/query?" + urlencode({"db": to.database, "epoch": "ns"} | ({"rp": to.rp} if to.rp else {}))
    answer = request(to, path, urlencode({"q": text}).encode(), FORM, MOST_BYTES, until)
    rows: Any = []
    try:
        results: Any = json.loads(answer.words)["results"][0] if answer.status == 200 else {"error": answer.words}
        rows = results.get("series") or []
        error = results.get("error")
        whole = all(isinstance(one["values"], list) for one in rows)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        whole, error = False, None
    if error or not whole:
        raise UsageError(
            f"{to} to answer a query",
            f"{answer.status} {str(error or answer.words)[:200]}",
            "check address, rights and database",
        )
    return rows


def most(to: Target, one: dict[str, Any]) -> int:
    """Of a series of counts: points, as many as its most frequent field. UsageError for values that are not counts."""
    try:
        counts = [value for value in one["values"][0][1:] if value is not None]
        if all(type(value) is int and value >= 0 for value in counts):
            return max(counts, default=0)
    except (IndexError, TypeError, KeyError):
        pass
    raise UsageError(f"{to} to count", repr(one)[:200], "check what answers there")


def quoted(text: str) -> str:
    """Text as a string of InfluxQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def stored_counts(to: Target, run: str | None = None) -> dict[str, int]:
    """Points that the database holds, of one run or of all, per measurement that it has: of each series as many as its
    most frequent field. UsageError if it cannot answer."""
    where = "" if run is None else f" WHERE run = {quoted(run)}"
    counts: dict[str, int] = {}
    for one in series(to, f"SELECT count(*) FROM /.*/{where} GROUP BY *"):
        name = one.get("name", "")
        counts[name] = counts.get(name, 0) + most(to, one)
    return counts
