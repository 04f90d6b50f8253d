"""Write amplification is steady: our rule for the workload of JESD219. Over the last five windows (rounds that write
the same) the range is at most 10 % of the average; or the average of all windows is known to 2 %, because the write
amplification of some drives never stops varying. Pure."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ssdrig.base.deferred import Deferred
from ssdrig.plan.rules import steady, student

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

ERROR_PERCENT = 2
LIMITS = steady.Limits(
    f"own: write amplification of five windows, range <= 10 % of the average; or the average of all windows known to"
    f" {ERROR_PERCENT} % (95 %)",
    10,
    None,
)


def verdict(windows: Sequence[float]) -> dict:
    """The rule on the write amplification of all windows so far, oldest first: steady.verdict of the last
    five, and {"error_percent": of the average of all, 95 %; "error_limit_percent"; "used": number of the last windows
    in the verdict}."""
    verdict_5 = steady.verdict(windows[-steady.ROUNDS :], LIMITS)
    bar = error_percent(windows)
    known = verdict_5["passed"] is False and bar is not None and bar <= ERROR_PERCENT
    bounds = {"error_percent": bar, "error_limit_percent": ERROR_PERCENT}
    return (
        verdict_5
        | bounds
        | {
            "passed": verdict_5["passed"] or known if verdict_5["passed"] is not None else None,
            "used": len(windows) if known else steady.ROUNDS,
        }
    )


def error_percent(windows: Sequence[float]) -> float | None:
    """Half of the interval that holds the mean of the windows in 95 % of the cases, as a share of it: Student's t times
    the standard error, as if the windows were independent. None below five windows, or where one is not known."""
    y = np.asarray(windows, float)
    if len(y) < steady.ROUNDS or not np.isfinite(y).all() or y.mean() <= 0:
        return None
    return float(100 * student.t(len(y) - 1) * y.std(ddof=1) / math.sqrt(len(y)) / y.mean())
