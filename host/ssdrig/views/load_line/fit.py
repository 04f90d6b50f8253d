"""The load line: P = P0 + e x rate, a straight line through the power of an open loop at several rates. P0 is what it
costs to keep the drive awake, e what one more I/O costs. Pure.

Ordinary least squares (uncertain.line); the errors, of 95 %, are of the scatter about the line. They hold what differs
from point to point; what all points have in common, such as the rig's calibration, is beside them. A point whose drive
did not reach the rate is left out: there a queue grows, and power no longer follows the rate."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ssdrig.base.uncertain import line

REACHED = 0.97  # of the rate that was asked for
FEWEST = 3


class Point(NamedTuple):
    """I/Os a second and W of one point; `asked`: I/Os a second, None: as many as the drive does."""

    iops: float
    power_W: float
    asked: float | None = None


class Line(NamedTuple):
    """P0_W and e_uJ, each with its error; `used` points, `left_out` that did not reach their rate. None:
    `why`."""

    P0_W: float | None = None
    P0_error_W: float | None = None
    e_uJ: float | None = None
    e_error_uJ: float | None = None
    used: int = 0
    left_out: int = 0
    why: str | None = None


def fit(points: Sequence[Point]) -> Line:
    """Of at least FEWEST points of different rates."""
    used = [each for each in points if each.asked is None or each.iops >= REACHED * each.asked]
    out = Line(used=len(used), left_out=len(points) - len(used))
    rate, power = (np.array([each[i] for each in used], float) for i in (0, 1))
    if len(used) < FEWEST or not np.ptp(rate) > 0:
        why = f"{len(used)} of {len(points)} points reached their rate, a line with its errors needs {FEWEST}"
        return out._replace(why=why)
    found = line(rate, power)
    return out._replace(
        P0_W=found.at_0.value,
        P0_error_W=found.at_0.error,
        e_uJ=found.slope.scaled(1e6).value,
        e_error_uJ=found.slope.scaled(1e6).error,
    )
