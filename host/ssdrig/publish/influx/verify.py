"""Checks that the points sent are in the database. A server that answers 204 has stored them; a relay before it may
only mean to.

Points are counted as the database counts them: of each measurement, over all series, as many as the most frequent field
of the series has values. Measurements without the tag `run` are counted by drive and time."""

import math
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from ssdrig.base.errors import UploadIncomplete, UsageError
from ssdrig.base.progress import Progress
from ssdrig.publish.influx import line_protocol, query
from ssdrig.publish.influx.address import Target
from ssdrig.publish.influx.link import LAST_S
from ssdrig.publish.influx.sender import Rejected

AGAIN_S = 2.0  # a relay forwards every few seconds


class Shortfall(NamedTuple):
    """missing: measurement -> points not in the database; why: the server did not answer."""

    missing: dict[str, int]
    why: str = ""

    def complain(self, to: Target) -> None:
        """Raises UploadIncomplete unless all is there."""
        if self.why:
            raise UploadIncomplete(f"to count the points in {to}", self.why, "give a user or token that may read")
        if self.missing:
            words = ", ".join(f"{n} of {name}" for name, n in self.missing.items())
            raise UploadIncomplete(
                f"all points in {to}, which acknowledged them",
                f"missing there: {words}",
                "check the relay in between (it must buffer on disk), then push again: everything is sent again",
            )


class _Sent(NamedTuple):
    """One measurement in points.lp: points of each series by field, values of the tags `run` and `drive`, first and
    last time."""

    fields: dict[bytes, Counter]
    runs: set[str]
    drives: set[str]
    times: list[int]


def counted(folders: list[Path], to: Target, rejected: int, timeout_s: float, show: Progress) -> Shortfall:
    """Counts in the database what points.lp of a run and its parts hold, again and again until all is there or
    timeout_s is over. Then the cursors go: the next push sends all again."""
    sent, deadline = _sent(folders, to if rejected else None), time.monotonic() + timeout_s
    while True:
        try:
            missing = _missing(sent, to, deadline + LAST_S)
        except UsageError as error:
            return Shortfall({}, error.seen)
        if not missing:
            return Shortfall({})
        if time.monotonic() >= deadline:
            break
        show.show(f"InfluxDB: {sum(missing.values())} points are not there yet")
        time.sleep(min(AGAIN_S, timeout_s))
    for folder in folders:
        (folder / "points.cursor").unlink(missing_ok=True)
    return Shortfall(missing)


def stored(folders: list[Path], to: Target) -> dict[str, int]:
    """Points that the database holds of those in points.lp of these folders, by measurement. UsageError if it cannot
    say."""
    return _stored(_sent(folders, None), to)


def _missing(sent: dict[str, _Sent], to: Target, until: float) -> dict[str, int]:
    there = _stored(sent, to, until)
    wanted = {name: sum(max(fields.values()) for fields in of.fields.values()) for name, of in sent.items()}
    return {name: n - there[name] for name, n in wanted.items() if there[name] < n}


def _stored(sent: dict[str, _Sent], to: Target, until: float = math.inf) -> dict[str, int]:
    out = {}
    for name, of in sent.items():
        tag, values = ("run", of.runs) if of.runs else ("drive", of.drives)
        ours = " OR ".join(f"{tag} = {query.quoted(value)}" for value in sorted(values))
        when = f"time >= {min(of.times)} AND time <= {max(of.times)}"
        text = f'SELECT count(*) FROM "{name}" WHERE {f"({ours}) AND " if ours else ""}{when} GROUP BY *'
        out[name] = sum(query.most(to, one) for one in query.series(to, text, until))
    return out


def _sent(folders: list[Path], refused_by: Target | None) -> dict[str, _Sent]:
    """What points.lp of these folders holds, but what a server has refused."""
    sent: dict[str, _Sent] = {}
    for folder in folders:
        refused = Rejected(folder, str(refused_by)) if refused_by else None
        with (folder / "points.lp").open("rb") as file:
            for line in file:
                if refused and refused.holds(line.rstrip(b"\n")):
                    continue
                series, t = line_protocol.series_and_time(line.rstrip(b"\n"))
                name, tags = line_protocol.tags_of(series)
                of = sent.setdefault(name, _Sent(defaultdict(Counter), set(), set(), []))
                of.fields[series].update(line_protocol.field_names(line, series))
                of.runs.update({tags["run"]} if "run" in tags else ())
                of.drives.update({tags["drive"]} if "drive" in tags else ())
                of.times[:] = [min([t, *of.times]), max([t, *of.times])]
    return sent
