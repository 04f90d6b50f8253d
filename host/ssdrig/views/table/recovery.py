"""How long a drive takes to recover from another load (SNIA PTS 2.0, XSR): from the beginning of a load until it does
again what the same load did before. Pure."""

from typing import NamedTuple

import numpy as np

from ssdrig.reading import latency
from ssdrig.reading.rundata import RunData

SHARE = 0.9  # of the end of the load before
END_S = 3600  # the end: its last hour
SHORT = 5  # a load with fewer records of a minute than this is cut into records of a second


class Recovery(NamedTuple):
    """`after_s`: end of the first record at least as fast as the mean of the load before; `most_s`: of the first one at
    SHARE of the last hour of it; None where none was, or where nothing is known (`why`). MB/s of both limits."""

    record_s: int
    mean_MBps: float | None = None
    after_s: int | None = None
    end_MBps: float | None = None
    most_s: int | None = None
    why: str = ""


def of(before: RunData, after: RunData) -> Recovery:
    """Records are minutes; of loads that lasted less than SHORT of them seconds."""
    record_s = latency.RECORD_S
    if min(len(before.iops), len(after.iops)) < SHORT * record_s:
        record_s = 1
    one, other = (latency.of(data, record_s) for data in (before, after))
    if not len(one.ios) or not len(other.ios):
        return Recovery(record_s, why="one of the two loads has no whole second")
    rate_MBps = other.bytes_ / record_s / 1e6
    mean_MBps = float(before.bw_Bps.mean()) / 1e6
    end_MBps = float(before.bw_Bps[-END_S:].mean()) / 1e6
    found = [_first(rate_MBps >= limit, record_s) for limit in (mean_MBps, SHARE * end_MBps)]
    return Recovery(record_s, mean_MBps, found[0], end_MBps, found[1])


def _first(reached: np.ndarray, record_s: int) -> int | None:
    return int((np.argmax(reached) + 1) * record_s) if reached.any() else None
