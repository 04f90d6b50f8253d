"""The load line: P = P0 + e x rate, a straight line through the power of an open loop at several rates. P0 is what it
costs to keep the drive awake, e what one more I/O costs. Pure.

Ordinary least squares; standard errors from the scatter about the line with n - 2 degrees of freedom (Draper and
Smith, Applied Regression Analysis, 1.4). They hold what differs from point to point; what all points have in common,
such as the rig's calibration, is beside them. A point whose drive did not reach the rate is left out: there a queue
grows, and power no longer follows the rate."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

REACHED = 0.97  # of the rate that was asked for
FEWEST = 3


class Point(NamedTuple):
    """I/Os a second and W of one point; `asked`: I/Os a second, None: as many as the drive does."""

    iops: float
    power_W: float
    asked: float | None = None


class Line(NamedTuple):
    """P0_W and e_uJ, each with its standard error; `used` points, `left_out` that did not reach their rate. None:
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
    off = rate - rate.mean()
    square = float((off**2).sum())
    slope = float((off * power).sum()) / square
    at_0 = float(power.mean()) - slope * float(rate.mean())
    scatter = float(((power - at_0 - slope * rate) ** 2).sum()) / (len(used) - 2)
    errors = math.sqrt(scatter * (1 / len(used) + float(rate.mean()) ** 2 / square)), math.sqrt(scatter / square)
    return out._replace(P0_W=at_0, P0_error_W=errors[0], e_uJ=1e6 * slope, e_error_uJ=1e6 * errors[1])
