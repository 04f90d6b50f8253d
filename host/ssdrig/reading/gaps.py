"""What the gap before a load may add to its IOPS. Pure.

While fio starts, the drive rests. What it then does of its own (collects, folds, erases) it need not do under the load:
g seconds of such work save at most g seconds of the load, and so a load of T seconds does at most g/T more I/Os than it
would do without the gap. Of a minute that is less than 1 %; of a point of 2 s it is 15 %."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ssdrig.reading.row import WHOLE, Row

RATES = ("iops_mean", "bw_mean_MBps", "lat_mean_us", "energy_uJ_per_io", "energy_J_per_GB", "iops_per_W")
LIMIT_PERCENT = 2.0  # below it nothing is said: the bar of steady IOPS
MOST_PERCENT = 50.0  # above it the bound says nothing of the IOPS, and is none


class Gaps(NamedTuple):
    """Of the loads of a step that write without a pace or pauses: how many points, how many of them may be faster than
    without their gaps by more than LIMIT_PERCENT, the shortest and the longest gap before these (s of drive time), and
    by how much IOPS may be higher at most; None: `why`."""

    of: str
    points: int
    beyond: int
    least_s: float
    most_s: float
    more_percent: float | None
    why: str | None = None


def matters(row: "Row") -> bool:
    """Whether a row's figures are of a load that its gap may make faster: it writes as fast as the drive can."""
    keys = row.act.keys
    return row.act.do == "load" and keys["read"] < 100 and not {"rate", "every"} & set(keys) and not keys.get("off")


def widen(rows: "Sequence[Row]") -> None:
    """Add what the gap before each such load may have saved to the errors of its rates and of what is counted by the
    I/O; where that is no bound, they have no error, and nothing is claimed of them."""
    for row in rows:
        figures = row.windows.get(WHOLE) or {}
        gap_s, errors = figures.get("gap_s"), figures.get("errors")
        if gap_s is None or not errors or not matters(row):
            continue
        share = gap_s / (figures["t1_s"] - figures["t0_s"]) if figures["t1_s"] > figures["t0_s"] else math.inf
        for key in RATES:
            if figures.get(key) is None or key not in errors:
                continue
            if 100 * share > MOST_PERCENT:
                del errors[key]
            else:
                errors[key] = math.hypot(errors[key], share * figures[key])


def of_rows(rows: "Sequence[Row]") -> list[Gaps]:
    """Of each step where gaps matter; the rounds of a point count together."""
    points: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        figures = row.windows.get(WHOLE) or {}
        if row.state != "done" or figures.get("gap_s") is None or not figures.get("ios"):
            continue
        if matters(row):
            lasted_s = figures["t1_s"] - figures["t0_s"]
            points.setdefault(row.act.path, {}).setdefault(row.act.label, []).append((figures["gap_s"], lasted_s))
    out = []
    for path, of_label in points.items():
        more = {label: 100 * sum(gap for gap, _ in at) / sum(s for _, s in at) for label, at in of_label.items()}
        beyond = [label for label, percent in more.items() if percent > LIMIT_PERCENT]
        gaps_s = [gap for label in beyond for gap, _ in of_label[label]]
        if beyond:
            percent, why = max(more.values()), None
            if percent > MOST_PERCENT:
                lasted_s = min(s for label in beyond for _, s in of_label[label])
                percent, why = None, f"loads of {lasted_s:.2g} s are too short against their gaps for a bound"
            out.append(Gaps(path, len(more), len(beyond), min(gaps_s), max(gaps_s), percent, why))
    return out


def words(rows: "Sequence[Row]") -> list[str]:
    """Of all steps where gaps matter in one sentence; none where they do not."""
    found = []
    for each in of_rows(rows):
        long = " to ".join(dict.fromkeys(f"{seconds:.2g}" for seconds in (each.least_s, each.most_s)))
        bound = "not known" if each.more_percent is None else f"{each.more_percent:.0f} %"
        also = f"; {each.why}" if each.why else ""
        found.append(f"{each.of} {bound} (gaps of {long} s{also})")
    if not found:
        return []
    why = "while fio starts, the drive may do background work that would otherwise slow the load"
    return [f"Gaps between loads may raise the IOPS of writes, at most by: {'; '.join(found)}: {why}"]
