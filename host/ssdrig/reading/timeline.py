"""All parts of a run on one axis, UTC. Each part has its own clock, because CLOCK_MONOTONIC restarts with a boot;
its run.json and its anchors tie it to UTC. Of the time between two parts nothing is known."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ssdrig import reading
from ssdrig.base.errors import LoadError
from ssdrig.base.utc import Utc
from ssdrig.load import fioclock, fiotext, playedlog
from ssdrig.meter import rails
from ssdrig.reading import power
from ssdrig.reading.rundata import SECOND_NS
from ssdrig.runs import integrity, journal, parts

MOST_SECONDS = 2000  # of power in a part; a longer one has a value for several seconds


class Line(NamedTuple):
    """Values in a stretch that nothing interrupts: UTC in s since 1970, float64 (n,), and the value there."""

    utc_s: np.ndarray
    values: np.ndarray


@dataclass
class Part:
    """One part. `begins`: the act that it goes on with, None in the first; `iops`: a line for each fio job, of drive
    time; `watts`: of all rails together, broken (not a number) where no sample is."""

    number: int
    state: str
    why: str | None
    begin_utc_ns: int
    end_utc_ns: int
    begins: str | None
    iops: list[Line] = field(default_factory=list)
    watts: list[Line] = field(default_factory=list)


def of(run: Path) -> list[Part]:
    """The parts of a run that has more than one, otherwise []. Raises JournalError."""
    folders = parts.of(parts.root(Path(run)))
    own = [_part(folder, parts.number(folder) if i else 1) for i, folder in enumerate(folders)] if folders[1:] else []
    for part in own[:-1]:  # the process of the last part holds the lock of the whole run
        part.state = "died" if part.state == "running" else part.state
    return own


def clock(header: Mapping, events: list[dict]) -> Utc:
    """The clock of a part."""
    utc = Utc(header["started"]["t_ns"], header["started"]["utc_ns"])
    for event in events:
        if event["kind"] == "clock.anchor":
            utc.anchor(event["t_ns"], event["utc_ns"])
    return utc


def utc_ns(folder: Path) -> tuple[int, int]:
    """UTC of the beginning of a part and of its last event."""
    header, events = journal.run_header(folder), journal.events(folder)
    return _ends_ns(header, events, clock(header, events))


def _ends_ns(header: Mapping, events: list[dict], utc: Utc) -> tuple[int, int]:
    begin_ns = header["started"]["t_ns"]
    return utc.at(begin_ns), utc.at(max([begin_ns, *(event["t_ns"] for event in events)]))


def _part(folder: Path, number: int) -> Part:
    data = reading.begin(folder)
    utc = clock(data.header, data.events)
    resumed, acts = data.header.get("resumed") or {}, (data.header.get("plan") or {}).get("acts") or []
    at = resumed.get("begins")
    begins = acts[at] if isinstance(at, int) and at < len(acts) else None
    part = Part(number, data.state, data.why, *_ends_ns(data.header, data.events, utc), begins)
    lines = [_job(start.parent, utc, data.k) for start in (folder / "fio").rglob("start.json")]
    lines += [_played(start.parent, utc, data.k) for start in (folder / "played").rglob("start.json")]
    part.iops = sorted((line for line in lines if line is not None), key=lambda line: line.utc_s[0])
    begin_ns = data.header["started"]["t_ns"]
    seconds = max(0, (part.end_utc_ns - part.begin_utc_ns) // SECOND_NS)
    wide_s = max(1, -(-seconds // MOST_SECONDS))
    edges = begin_ns + wide_s * SECOND_NS * np.arange(seconds // wide_s + 1, dtype=np.int64)
    powers = power.read_powers(data, folder, edges)
    if powers and seconds:
        watts = rails.steps_J(powers, edges) / wide_s
        part.watts = [Line(_utc_s((edges[:-1] + edges[1:]) // 2, utc), watts)]
    return part


def _job(folder: Path, utc: Utc, k: int) -> Line | None:
    """The I/Os of a second of drive time between two documents of a fio job, at the later one."""
    try:
        documents, _ = fiotext.documents(integrity.content(folder / "out.json").decode(errors="replace"))
    except OSError:
        return None
    start_ms = fioclock.job_clock(folder, documents, []).start_ms
    rows = [(0, 0)]
    for document in documents:
        totals = fiotext.totals(document)
        if totals["ios"] and totals["runtime_ms"] > rows[-1][0] and totals["ios"] >= rows[-1][1]:
            rows.append((totals["runtime_ms"], totals["ios"]))
    if start_ms is None or len(rows) < 2:
        return None
    ms, ios = np.array(rows, np.int64).T
    return Line(_utc_s((start_ms + ms[1:]) * 1_000_000, utc), np.diff(ios) * (1000 * k) / np.diff(ms))


def _played(folder: Path, utc: Utc, k: int) -> Line | None:
    """The I/Os of each second of a played trace, at its end."""
    try:
        seconds = playedlog.load(folder)
    except LoadError:
        return None
    return Line(_utc_s(seconds.t_ns + SECOND_NS, utc), seconds.iops * float(k))


def _utc_s(t_ns: np.ndarray, utc: Utc) -> np.ndarray:
    return np.array([utc.at(int(t)) for t in t_ns]) / SECOND_NS
