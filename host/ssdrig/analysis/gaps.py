"""What the gap before a load may add to its IOPS. Pure.

While fio starts, the drive rests. What it then does of its own (collects, folds, erases) it need not do under the load:
g seconds of such work save at most g seconds of the load, and so a load of T seconds does at most g/T more I/Os than it
would do without the gap. Of a minute that is less than 1 %; of a point of 2 s it is 15 %."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ssdrig.analysis.row_figures import WHOLE

if TYPE_CHECKING:
    from ssdrig.analysis.table import Row

LIMIT_PERCENT = 2.0  # below it nothing is said: the bar of steady IOPS


class Gaps(NamedTuple):
    """Of the loads of a step that write without a pace or pauses: how many points, how many of them may be faster than
    without their gaps by more than LIMIT_PERCENT, the shortest and the longest gap before these (s of drive time), and
    by how much IOPS may be higher at most."""

    of: str
    points: int
    beyond: int
    least_s: float
    most_s: float
    more_percent: float


def of_rows(rows: "Sequence[Row]") -> list[Gaps]:
    """Of each step where gaps matter; the rounds of a point count together."""
    points: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        figures = row.windows.get(WHOLE) or {}
        if row.state != "done" or figures.get("gap_s") is None or not figures.get("ios") or row.act.do != "load":
            continue
        keys = row.act.keys
        if keys["read"] < 100 and not {"rate", "every"} & set(keys) and not keys.get("off"):
            lasted_s = figures["t1_s"] - figures["t0_s"]
            points.setdefault(row.act.path, {}).setdefault(row.act.label, []).append((figures["gap_s"], lasted_s))
    out = []
    for path, of_label in points.items():
        more = {label: 100 * sum(gap for gap, _ in at) / sum(s for _, s in at) for label, at in of_label.items()}
        beyond = [label for label, percent in more.items() if percent > LIMIT_PERCENT]
        gaps_s = [gap for label in beyond for gap, _ in of_label[label]]
        if beyond:
            out.append(Gaps(path, len(more), len(beyond), min(gaps_s), max(gaps_s), max(more.values())))
    return out


def words(rows: "Sequence[Row]") -> list[str]:
    """Of all steps where gaps matter in one sentence; none where they do not."""
    found = []
    for each in of_rows(rows):
        long = " to ".join(dict.fromkeys(f"{seconds:.2g}" for seconds in (each.least_s, each.most_s)))
        found.append(f"{each.of} {each.more_percent:.0f} % (gaps of {long} s)")
    if not found:
        return []
    why = "while fio starts, the drive rests, and what it does then it need not do under the load"
    return [f"IOPS of writes may be higher than without the gaps between loads, at most by: {'; '.join(found)}: {why}"]
