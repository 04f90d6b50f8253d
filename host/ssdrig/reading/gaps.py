"""What the gap before a load may add to its IOPS. Pure.

While fio starts, the drive rests. Work that it does then (collecting, folding, erasing) need not be done under the
load: g seconds of such work save at most g seconds of the load, and so a load of T seconds does at most g/T more I/Os
than it would do without the gap. Of a minute that is less than 1 %; of a point of 2 s it is 15 %."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ssdrig.base.words import digits
from ssdrig.reading.row import WHOLE, Row

RATES = ("iops_mean", "bw_mean_MBps", "lat_mean_us", "energy_uJ_per_io", "energy_J_per_GB", "iops_per_W")
LIMIT_PERCENT = 2.0  # smaller gaps are not reported: the bar of steady IOPS
MOST_PERCENT = 50.0  # a larger bound is useless and is not reported

WHY = "In a gap, while fio starts, the drive may do background work that would otherwise slow the load"


class Gaps(NamedTuple):
    """The loads of a step that write without a pace or pauses: how many points, how many of them may be faster than
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
    """Whether the gap before a row's load may make it faster: it writes as fast as the drive can."""
    keys = row.act.keys
    return row.act.do == "load" and keys["read"] < 100 and not {"rate", "every"} & set(keys) and not keys.get("off")


def widen(rows: "Sequence[Row]") -> None:
    """Add the possible saving of the gap before each such load to the errors of its rates and of its figures per I/O;
    without a bound, they have no error, and nothing is claimed of them."""
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
    """The gaps of each step where they matter; the rounds of a point count together."""
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
                percent, why = None, f"loads of {digits(lasted_s, 2)} s are too short against their gaps for a bound"
            out.append(Gaps(path, len(more), len(beyond), min(gaps_s), max(gaps_s), percent, why))
    return out


def words(rows: "Sequence[Row]") -> list[str]:
    """All steps where gaps matter in one sentence, without WHY; none where they do not."""
    parts = []
    for gap in of_rows(rows):
        long = " to ".join(dict.fromkeys(digits(seconds, 2) for seconds in (gap.least_s, gap.most_s)))
        bound = "not known" if gap.more_percent is None else f"{gap.more_percent:.0f} %"
        also = f"; {gap.why}" if gap.why else ""
        parts.append(f"{gap.of} {bound} (gaps of {long} s{also})")
    if not parts:
        return []
    return [f"Gaps between loads may raise write IOPS by at most: {'; '.join(parts)}"]
