"""What a drive may have written on its own between a SMART reading and the edge of the load next to it: folding its
cache, collecting garbage. No counter separates it from the load's writes: it widens the error of write amplification.

It is at most the time times the highest rate of the NAND counter between two readings of the run. Where none of them
belongs to a closed loop of writes, the host's writes of a second are a rate of the NAND, too: a paced load shows little
of what the drive can do.

Work at rest may start at any moment, so one quiet rest proves little. After RESTS (rundata.py) quiet rests of equal
length, the next one has more work than all of them in one of RESTS + 1 cases."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ssdrig.reading.rundata import SECOND_NS, OwnWork, RunData

_COUNTERS = ("nand_written_bytes", "nand_program_pages")


def of_run(snapshots: Sequence[dict], acts: Sequence[RunData], k: int) -> OwnWork:
    """What the readings of a run show of it. `acts`: all steps but those that rest; `k`: time dilation."""
    counter = next((name for name in _COUNTERS if any(s.get(name) is not None for s in snapshots)), None)
    busy = [_span(data, k) for data in acts if data.t0_ns is not None]
    full = [_span(data, k) for data in acts if _at_full_speed(data)]
    rates, rests, rest_s, by_full = [0.0], [0.0], 0.0, False
    for before, after in pairwise(snapshots) if counter else ():
        seconds = (after["t_ns"] - before["t_ns"]) / SECOND_NS / k
        if None in (before.get(counter), after.get(counter)) or seconds <= 0 or after[counter] < before[counter]:
            continue
        rise = after[counter] - before[counter] + _unit(after, counter)
        rates.append(rise / seconds)
        span_ns = before["t_ns"], after["t_ns"]
        by_full = by_full or any(2 * _overlap_ns(of, span_ns) > span_ns[1] - span_ns[0] for of in full)
        if all(end <= before["t_ns"] or begin >= after["t_ns"] for begin, end in busy) and _left_alone(before, after):
            rests.append(rise)
            rest_s += seconds
    if not by_full and counter != "nand_program_pages":
        rates += [_most_written_Bps(data) for data in acts]
    return OwnWork(counter, max(rates), rest_s, max(rests))


def _span(data: RunData, k: int) -> tuple[float, float]:
    begin_ns = data.t0_ns or 0
    return begin_ns, begin_ns + data.load_s * k * SECOND_NS


def _overlap_ns(one: tuple[float, float], other: tuple[float, float]) -> float:
    return min(one[1], other[1]) - max(one[0], other[0])


def _at_full_speed(data: RunData) -> bool:
    """Whether it is a closed loop of writes alone."""
    return data.header["method"].get("queue_depth") is not None and data.totals.get("directions") == ("write",)


def _most_written_Bps(data: RunData) -> float:
    """The highest rate of a second; of a load that also reads, of both."""
    if "write" not in data.totals.get("directions", ("write",)) or not len(data.bw_Bps):
        return 0.0
    return float(np.nan_to_num(data.bw_Bps).max())


def _unit(snapshot: dict, counter: str | None) -> float:
    return 1 if counter == "nand_program_pages" else snapshot.get("nand_written_unit_bytes") or 0


def _left_alone(before: dict, after: dict) -> bool:
    """Whether the drive counted no write of the host between two readings."""
    counts = before.get("host_written_bytes"), after.get("host_written_bytes")
    return None in counts or counts[0] == counts[1]


def rest_s(data: RunData, poll: dict, edge_s: float) -> float:
    """Seconds without I/O between a reading and an edge of a window: before and after the load, and pauses in it. Those
    of a neighbour's I/O (`foreign_s`) are not."""
    low_s, high_s = sorted((float(data.axis_s(poll["t_ns"])), float(edge_s)))
    end_s = max(data.load_s, len(data.iops))
    outside_s = max(0.0, min(high_s, 0.0) - low_s) + max(0.0, high_s - max(low_s, end_s))
    idle = np.flatnonzero(np.nan_to_num(data.iops) == 0)
    inside_s = float(np.maximum(0.0, np.minimum(idle + 1, high_s) - np.maximum(idle, low_s)).sum())
    return max(0.0, outside_s - poll.get("foreign_s", 0.0)) + inside_s
