"""A drive that is written until it is worn: slices of its rated endurance, what stops it, and when that will be. Pure.

The prediction rests on the drive's own percentage used, which counts whole percents: each time it goes up, the wear
has just passed a known value. A straight line through these ticks is taken to 100 %. Where the drive counts NAND bytes
the line is over those, because each wears the flash equally, also while write amplification still rises; the rest is
then divided by the write amplification of the later half. Otherwise the line is over host bytes, and only of the
later half. Error: 95 % of the line (no tick is known better than the slice it fell into) and of the mean write
amplification, and how far that still moved between the two halves of the later half."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ssdrig.plan.rules import student

FEWEST_TICKS = 5
WORN_PERCENT = 100
LATER = 0.5  # of the bytes written so far: from there on write amplification is taken for that of the workload


class Slice(NamedTuple):
    """The drive at the end of a slice (`number` from 1, 0: before the first). `host_bytes`: written since the start, by
    fio's count; the rest as the drive reports it over its life, or None. `samples`: blocks that were read back, `bad`
    of them with wrong content."""

    number: int
    host_bytes: int
    nand_bytes: int | None = None
    lifetime_bytes: int | None = None
    percentage_used: float | None = None
    spare_percent: float | None = None
    spare_threshold_percent: float | None = None
    media_errors: int | None = None
    temperature_C: float | None = None
    samples: int = 0
    bad: int = 0


class End(NamedTuple):
    """When the drive is worn: host bytes since the begin, with an interval (95 %); `ticks` that it rests on. None:
    `why`."""

    host_bytes: float | None = None
    low_bytes: float | None = None
    high_bytes: float | None = None
    ticks: int = 0
    why: str | None = None


def stop(
    first: Slice, now: Slice, total_bytes: int, rated_bytes: float | None, to_percent: float = WORN_PERCENT
) -> str | None:
    """Why the drive is not written on; None: it is. `first`: before the first slice; `to_percent`: of its rating."""
    if now.bad:
        return f"{now.bad} of {now.samples} sample blocks have wrong content"
    errors = (now.media_errors or 0) - (first.media_errors or 0)
    if errors > 0:
        return f"{errors} media errors"
    spare, threshold = now.spare_percent, now.spare_threshold_percent
    if spare is not None and threshold is not None and spare < threshold:
        return f"spare of {spare:g} % below its threshold of {threshold:g} %"
    if now.percentage_used is not None and now.percentage_used >= to_percent:
        return f"percentage used {now.percentage_used:g}"
    if rated_bytes and now.lifetime_bytes is not None and now.lifetime_bytes >= to_percent / 100 * rated_bytes:
        return "the rated TBW is written" if to_percent >= WORN_PERCENT else f"{to_percent:g} % of the TBW are written"
    if now.host_bytes >= total_bytes:
        return "all is written that the plan asks for"
    return None


def ticks(slices: Sequence[Slice]) -> list[tuple[int, float]]:
    """(index of the slice in which the percentage went up, the value that was passed there): of several values within
    one slice their mean."""
    points = []
    for i, (before, now) in enumerate(zip(slices, slices[1:]), 1):
        a, b = before.percentage_used, now.percentage_used
        if a is not None and b is not None and b > a:
            points.append((i, (min(a + 1, b) + b) / 2))
    return points


def end(slices: Sequence[Slice]) -> End:
    """The prediction from all slices so far, the state before the first one included."""
    if not slices or slices[-1].percentage_used is None:
        return End(why="the drive does not report its percentage used")
    host = np.array([end.host_bytes for end in slices], float)
    later = int(np.searchsorted(host, LATER * host[-1]))
    by_nand = all(end.nand_bytes is not None for end in slices)
    axis = np.array([end.nand_bytes for end in slices], float) if by_nand else host
    seen = [(i, value) for i, value in ticks(slices) if by_nand or i > later]
    if len(seen) < FEWEST_TICKS:
        return End(
            ticks=len(seen),
            why=f"percentage used went up {len(seen)} times, a line with its error needs {FEWEST_TICKS}",
        )
    at = np.array([(axis[i - 1] + axis[i]) / 2 for i, _ in seen])
    wide = np.array([axis[i] - axis[i - 1] for i, _ in seen])
    worn, error = _line(np.array([value for _, value in seen]), at, wide)
    left = worn - axis[-1]
    if not by_nand:
        return _end(host[-1], left, error, len(seen))
    steps = np.diff(axis[later:]) / np.diff(host[later:])
    if len(steps) < 4 or not axis[-1] > axis[later]:
        return End(ticks=len(seen), why="too few slices for the write amplification of the later half")
    wa = (axis[-1] - axis[later]) / (host[-1] - host[later])
    middle = len(steps) // 2
    moved = abs(steps[middle:].mean() - steps[:middle].mean()) / wa
    off = math.hypot(student.t(len(steps) - 1) * steps.std(ddof=1) / math.sqrt(len(steps)) / wa, moved)
    return _end(host[-1], left / wa, math.hypot(error / wa, off * left / wa), len(seen))


def _end(now: float, left: float, error: float, ticks_: int) -> End:
    at = float(now + left)
    return End(at, max(float(now), at - error), at + error, ticks_)


def _line(value: np.ndarray, at: np.ndarray, wide: np.ndarray) -> tuple[float, float]:
    """Where the least-squares line at = a + b value is at WORN_PERCENT, and half of its 95 % interval there (Draper and
    Smith, Applied Regression Analysis, 1.4). The scatter is at least that of ticks that fall anywhere within `wide`."""
    off = value - value.mean()
    square = float((off**2).sum())
    b = float((off * at).sum()) / square
    far = WORN_PERCENT - float(value.mean())
    freedom = len(value) - 2
    scatter = float(((at - at.mean() - b * off) ** 2).sum()) / freedom
    scatter = max(scatter, float((wide**2).mean()) / 12)
    return float(at.mean()) + b * far, student.t(freedom) * math.sqrt(scatter * (1 / len(value) + far**2 / square))
