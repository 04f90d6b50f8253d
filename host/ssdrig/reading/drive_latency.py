"""Latencies by the drive's own monitor (OCP log C3h) next to those measured at the host, between the two readings of
SMART around a load. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ssdrig.drive.smart import latency_monitor
from ssdrig.drive.smart.latency_monitor import BUCKETS, DIRECTIONS
from ssdrig.plan import kinds
from ssdrig.reading.row import WHOLE, Row, Table
from ssdrig.reading.rundata import SECOND_NS

__all__ = ["BUCKETS", "DIRECTIONS", "SEVERAL", "Stretch", "of"]
KEY = "latency_monitor"  # of a snapshot
PAGE = "log C3h"  # what its reasons begin with
SEVERAL = "several loads between the readings"


class Stretch(NamedTuple):
    """`steps`: paths of the loads between two readings, which were taken at from_s and to_s (drive time since the
    run's start). `drive`: latency_monitor.between(). `host`: {direction: {"p999_us", "max_us"}} of these loads, an
    unknown one None."""

    steps: tuple[str, ...]
    from_s: float | None
    to_s: float | None
    drive: Mapping[str, Any]
    host: Mapping[str, Mapping[str, float | None]]

    def as_json(self) -> dict:
        """As `report --json` has it."""
        return {"steps": [*self.steps], "from_s": self.from_s, "to_s": self.to_s, **self.drive, "host": self.host}


def of(table: Table) -> list[Stretch]:
    """The stretches of a run in their order, of its main part; [] where the drive has no such log."""
    data = table.data
    known = [s for s in data.snapshots if s.get(KEY)]
    if not known:
        reasons = [words for s in data.snapshots for words in s.get("unknown") or () if words.startswith(PAGE)]
        return [Stretch((), None, None, _nothing(reasons[0]), _host([]))] if reasons else []
    enclosed: dict[tuple[int, int], list[Row]] = {}
    for row in table.rows:
        if row.act.do not in kinds.IO or row.part is not None or row.t0_ns is None or row.t0_s is None:
            continue
        end_ns = row.t0_ns + round(((row.t1_s or row.t0_s) - row.t0_s) * row.k * SECOND_NS)
        before = [n for n, s in enumerate(known) if s["t_end_ns"] <= row.t0_ns]
        after = [n for n, s in enumerate(known) if s["t_start_ns"] >= end_ns]
        if before and after:
            enclosed.setdefault((before[-1], after[0]), []).append(row)
    return [_stretch(table, known[a], known[z], rows) for (a, z), rows in sorted(enclosed.items())]


def _stretch(table: Table, first: Mapping, last: Mapping, rows: Sequence[Row]) -> Stretch:
    elapsed_s = (last["t_end_ns"] - first["t_start_ns"]) / SECOND_NS / table.data.k
    drive = latency_monitor.between(first[KEY], last[KEY], elapsed_s)
    from_s, to_s = (float(at) for at in table.data.axis_s([first["t_ns"], last["t_ns"]]))
    return Stretch(tuple(dict.fromkeys(row.act.path for row in rows)), from_s, to_s, drive, _host(rows))


def _nothing(why: str) -> dict[str, Any]:
    return dict.fromkeys(("thresholds_ms", "counts", "least_ms", "most_ms")) | {"why": why}


def _host(rows: Sequence[Row]) -> dict[str, dict[str, float | None]]:
    """Our own P99.9, which no two loads have together, and the longest, by direction; fio counts no trims apart."""
    windows = [row.windows.get(WHOLE) or {} for row in rows]
    out: dict[str, dict[str, float | None]] = {}
    for name in DIRECTIONS:
        longest = [us for of in windows if (us := of.get(f"{name}_lat_max_us")) is not None]
        p999_us = windows[0].get(f"{name}_lat_p999_us") if len(windows) == 1 else None
        out[name] = {"p999_us": p999_us, "max_us": max(longest, default=None)}
    return out
