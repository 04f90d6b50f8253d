"""What acts will take before they start: time, bytes written, log size, as ranges. From earlier runs of this model
where there are any (run/earlier.py), else from a class table. Pure.

The durations of a purge and a SMART reading are unknown in advance: a wide range, until an earlier run or this one has
measured them. The last reading, after all acts, is not included.
"""

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ssdrig.load.fiojob import FINE_IOS, FINE_ROW_BYTES, LOG_BYTES_PER_S
from ssdrig.plan.kinds import cuts, idle, load, recall, record, speeds
from ssdrig.plan.kinds.keys import smart_around
from ssdrig.plan.rules import spare

if TYPE_CHECKING:  # expand imports the kinds of step, and these ask for costs
    from ssdrig.plan.expand import Act

SPREAD = 0.1  # of the result of an earlier run of the same act on the same model
HOST_SHARE = 0.25  # of the bytes of a load that ends by its time, between two runs on a SIMULATED drive
HOST_TIMES = 3  # factor between two runs on a SIMULATED drive, whose speed depends on its host's free time
DRAWN = 4  # standard deviations of the share of writes in a mix of reads and writes
READING = "SMART"  # what a SMART reading took, among the acts' labels, which have no capitals
PLAYED_BYTES = 48  # of each I/O of a trace: its row, and what the player keeps
PLAYER_S = (0.3, 3.0)  # of the host: the start of the player
JOB_S = (0.1, 1.0)  # of the host: the start and the end of each fio job


@dataclass(frozen=True)
class Cost:
    """Expected drive time in seconds and bytes written, each (least, most). `most_bytes`: the act ends there. `jobs`:
    fio jobs, with logs of `log_bytes`."""

    time_s: tuple[float, float] = (0.0, 0.0)
    written_bytes: tuple[float, float] = (0.0, 0.0)
    most_bytes: float = 0.0
    jobs: tuple[int, int] = (0, 0)
    log_bytes: tuple[float, float] = (0.0, 0.0)

    def __add__(self, other: "Cost") -> "Cost":
        def add(a, b):
            return (a[0] + b[0], a[1] + b[1])

        return Cost(
            add(self.time_s, other.time_s),
            add(self.written_bytes, other.written_bytes),
            self.most_bytes + other.most_bytes,
            add(self.jobs, other.jobs),
            add(self.log_bytes, other.log_bytes),
        )

    def times(self, least: int, most: int) -> "Cost":
        """The cost of `least` to `most` rounds."""
        return Cost(
            (least * self.time_s[0], most * self.time_s[1]),
            (least * self.written_bytes[0], most * self.written_bytes[1]),
            most * self.most_bytes,
            (least * self.jobs[0], most * self.jobs[1]),
            (least * self.log_bytes[0], most * self.log_bytes[1]),
        )


def of(act: "Act", drive: Mapping, earlier: Mapping[str, tuple[float, float]] | None = None) -> Cost:
    """The cost of one act, once. `earlier`: {act's label: (seconds, bytes moved)} of a run of the same plan on the
    same model."""
    if act.not_run:
        return Cost()
    if act.do == "load" and act.choices:
        return _any(of(choice, drive, earlier) for choice in act.choices)
    if act.do == "idle":
        counted = reading(drive, earlier).times(2, 2) if idle.counts(act.keys) else Cost()
        return counted + Cost(idle.span_s(act.keys))
    if act.do == "record":
        return reading(drive, earlier) + Cost(record.span_s(act.keys))
    if act.do == "settle":
        read = reading(drive, earlier).times(2, 1 + len(speeds.SETTLE_S))
        return read + Cost((min(speeds.SETTLE_S[0], act.keys["most"]), act.keys["most"]))
    known, k = (earlier or {}).get(act.label), drive.get("time_dilation") or 1
    if act.do == "wear":
        return _of_wear(act, drive, known)
    if act.do == "cuts":
        return _of_cuts(act, drive, known)
    if act.do in ("retain", "recall"):
        return _of_retention(act, drive, known)
    if act.do == "replay":
        return _of_replay(act, drive, known, earlier)
    if act.do not in ("fill", "load"):
        least, most = speeds.ERASE_S.get(act.do, (0.0, 0.0))
        most = min(most, speeds.MOST_ERASE_S) if drive["interface"] == speeds.VIRTUAL else most
        return Cost(((1 - SPREAD) * known[0], (1 + SPREAD) * known[0]) if known else (least / k, most / k))
    cost = _by_class(act, drive)
    if known:
        cost = _as_before(act, drive, cost, *known)
    elif act.do == "load" and smart_around(act.keys, bool(act.repeat)):
        cost += reading(drive, earlier)  # before it; included in a known duration
    return cost + Cost((JOB_S[0] / k, JOB_S[1] / k))


def _of_replay(act: "Act", drive: Mapping, known: tuple[float, float] | None, earlier) -> Cost:
    """Exact bytes, because the rows have been read; at least the trace's own time."""
    trace = act.trace
    if trace is None:
        return Cost()
    drive_speeds, k = speeds.of(drive["interface"]), drive.get("time_dilation") or 1
    moved = trace.read_bytes + trace.written_bytes
    slowest_s = max(moved / (k * drive_speeds.sequential_Bps[0]), trace.ios / (k * drive_speeds.random_iops[0]))
    time_s = (max(trace.lasts_s, moved / (k * drive_speeds.link_Bps)), max(trace.lasts_s, slowest_s))
    if known:
        spread = HOST_TIMES if drive["interface"] == speeds.VIRTUAL else 1 + SPREAD
        time_s = (max(time_s[0], known[0] / spread), max(trace.lasts_s, known[0] * spread))
    written, logs = float(trace.written_bytes), trace.ios * float(PLAYED_BYTES)
    cost = Cost(time_s, (written, written), written, (0, 0), (logs, logs))
    if not known and not act.repeat and act.keys.get("smart", "none") != "none":
        cost += reading(drive, earlier)
    return cost + Cost((PLAYER_S[0] / k, PLAYER_S[1] / k))


def reading(drive: Mapping, earlier: Mapping[str, tuple[float, float]] | None = None) -> Cost:
    """The cost of a SMART reading that is waited for."""
    k = drive.get("time_dilation") or 1
    if known := (earlier or {}).get(READING):
        return Cost((known[0] / 2, 2 * known[0]))
    return Cost((speeds.READING_S[0] / k, speeds.READING_S[1] / k))


def _as_before(act: "Act", drive: Mapping, cost: Cost, seconds: float, size: float) -> Cost:
    """The cost of an act that took `seconds` and moved `size` bytes in an earlier run."""
    time_s = ((1 - SPREAD) * seconds, (1 + SPREAD) * seconds)
    if act.amount_bytes is not None:  # a fixed amount
        if drive["interface"] == speeds.VIRTUAL:
            time_s = (seconds / HOST_TIMES, HOST_TIMES * seconds)
        longest_s, share = _longest_s(act), 1 - act.keys.get("read", 0) / 100
        written_bytes = share * min((1 - SPREAD) * size, act.amount_bytes)
        if size >= act.amount_bytes and time_s[1] < longest_s:  # it will end by its amount again
            written_bytes = cost.most_bytes
        written = (max(cost.written_bytes[0], min(written_bytes, _drawn_bytes(act)[0])), cost.written_bytes[1])
        time_s = (min(longest_s, time_s[0]), min(longest_s, time_s[1]))
        return replace(cost, time_s=time_s, written_bytes=written)
    if cost.time_s[0] == cost.time_s[1]:  # a fixed time is a lower bound; the step around it took longer
        time_s = (cost.time_s[0], max(cost.time_s[1], time_s[1]))
    size *= 1 - act.keys.get("read", 0) / 100
    spread = HOST_SHARE if drive["interface"] == speeds.VIRTUAL else SPREAD
    written = (min((1 - spread) * size, cost.most_bytes), min((1 + spread) * size, cost.most_bytes))
    return replace(cost, time_s=time_s, written_bytes=written)


def _longest_s(act: "Act") -> float:
    """After how long a fill or a load ends at the latest."""
    return (load.longest_s(act) if act.do == "load" else None) or math.inf


def _of_wear(act: "Act", drive: Mapping, known: tuple[float, float] | None) -> Cost:
    """At least a slice, at most the whole amount, because the drive may wear out earlier; or the result of an earlier
    run."""
    k, size, amount = drive.get("time_dilation") or 1, act.keys["slice_bytes"], act.amount_bytes or 0
    (slow_Bps, fast_Bps), (slow_iops, fast_iops) = speeds.of(drive["interface"])[:2]
    mean, each_s = _mean_block_bytes(act), reading(drive).time_s
    written = (float(min(size, amount)), float(amount))
    if known:
        written = (min((1 - SPREAD) * known[1], amount), min((1 + SPREAD) * known[1], amount))
    jobs = (-(-int(written[0]) // size), -(-int(written[1]) // size))
    least_s = written[0] / (k * min(fast_iops * mean, fast_Bps)) + jobs[0] * (each_s[0] + JOB_S[0] / k)
    most_s = written[1] / (k * min(slow_iops * mean, slow_Bps)) + jobs[1] * (each_s[1] + JOB_S[1] / k)
    time_s = ((1 - SPREAD) * known[0], (1 + SPREAD) * known[0]) if known else (least_s, most_s)
    return Cost(time_s, written, amount, jobs, _log_bytes(act, time_s))


def _of_cuts(act: "Act", drive: Mapping, known: tuple[float, float] | None) -> Cost:
    """The fill of the window, then all sessions: writing, off, return, read-back."""
    k, keys = drive.get("time_dilation") or 1, act.keys
    (slow_Bps, fast_Bps), (slow_iops, fast_iops) = speeds.of(drive["interface"])[:2]
    sessions, phase_s = cuts.sessions(keys), cuts.mean_write_s(keys)
    slow, fast = (k * min(Bps, iops * cuts.MEAN_BYTES) for Bps, iops in ((slow_Bps, slow_iops), (fast_Bps, fast_iops)))
    number = len(keys["filesystems"])
    slow, fast = (total_s + number * Bps for total_s, Bps in zip((slow, fast), cuts.FILESYSTEM_BPS, strict=True))
    capacity, times = int(drive["capacity_bytes"]) if keys["precondition"] else 0, keys["precondition"]
    begun = act.range_bytes + number * cuts.MADE_BYTES + (capacity and (1 + times) * capacity)
    written = (begun + sessions * phase_s * slow, begun + sessions * phase_s * fast)
    checked = zip(cuts.BACK_S, cuts.CHECKED_S, strict=True)
    each_s = [phase_s + keys["off_time"] + back_s + number * check_s for back_s, check_s in checked]
    made_s = [
        capacity / k * (1 / Bps + times / min(Bps, iops * 4096))
        for Bps, iops in zip(*speeds.of(drive["interface"])[:2])
    ]
    time_s = (
        act.range_bytes / (k * fast_Bps) + sessions * each_s[0] + made_s[1],
        act.range_bytes / (k * slow_Bps) + sessions * each_s[1] + made_s[0],
    )
    most = written[1]
    if known:
        spread = HOST_TIMES if drive["interface"] == speeds.VIRTUAL else 1 + SPREAD
        time_s = (known[0] / spread, known[0] * spread)
        error_bytes = SPREAD * known[1] + cuts.bytes_spread(keys) * max(known[1] - begun, 0)
        written = (max(known[1] - error_bytes, 0), min(known[1] + error_bytes, most))
    return Cost(time_s, written, most)


def _of_retention(act: "Act", drive: Mapping, known: tuple[float, float] | None) -> Cost:
    """Writing the region with its scratch and reading the baseline; or reading all of it as often as there are
    passes."""
    k, keys = drive.get("time_dilation") or 1, act.keys
    slow_Bps, fast_Bps = speeds.of(drive["interface"])[0]
    amount = act.amount_bytes or 0
    moved = amount if act.do == "retain" else keys["passes"] * drive["capacity_bytes"]
    waits_s = keys["rest"] if act.do == "retain" else recall.waits_s(keys)
    time_s = (moved / (k * fast_Bps) + waits_s, moved / (k * slow_Bps) + waits_s)
    if known:
        spread = HOST_TIMES if drive["interface"] == speeds.VIRTUAL else 1 + SPREAD
        time_s = (known[0] / spread, known[0] * spread)
    return Cost(time_s, (float(amount), float(amount)), float(amount))


def _any(costs: Iterable[Cost]) -> Cost:
    """The cost of one of several acts, before the choice is made."""
    listed = list(costs)

    def span(pairs):
        return (min(pair[0] for pair in pairs), max(pair[1] for pair in pairs))

    return Cost(
        span([cost.time_s for cost in listed]),
        span([cost.written_bytes for cost in listed]),
        max(cost.most_bytes for cost in listed),
        span([cost.jobs for cost in listed]),
        span([cost.log_bytes for cost in listed]),
    )


def total(acts: Iterable["Act"], drive: Mapping, earlier: Mapping[str, tuple[float, float]] | None = None) -> Cost:
    """The cost of all acts, rounds and the reading before each included."""
    total = Cost()
    for repeat, group in itertools.groupby(acts, key=lambda act: act.repeat):
        cost = sum((of(act, drive, earlier) for act in group), Cost())
        total += (cost + reading(drive, earlier)).times(repeat.least, repeat.most) if repeat else cost
    return total


def _by_class(act: "Act", drive: Mapping) -> Cost:
    known, k = speeds.of(drive["interface"]), drive.get("time_dilation") or 1
    (slow_Bps, fast_Bps), (slow_iops, fast_iops) = ([k * speed for speed in pair] for pair in known[:2])
    share = 1 - act.keys.get("read", 0) / 100
    if act.do == "load" and act.keys["pattern"] == "random":
        mean = _mean_block_bytes(act)
        # a large block is bound by the bytes, a small one by the I/Os; a drive fresh or reading is faster than steady
        slow_Bps = min(slow_iops * mean, slow_Bps * (speeds.STEADY_SHARE if share else 1))
        fast_Bps = fast_Bps if mean >= 131072 else min(fast_iops * mean, k * known.link_Bps)
    if act.do == "load" and "rate" in act.keys:  # at most the rate, if the drive can reach it
        asked_Bps = act.keys["rate"] * _mean_block_bytes(act)
        slow_Bps, fast_Bps = min(slow_Bps, asked_Bps), min(fast_Bps, asked_Bps)
    elif act.do == "load" and "every" in act.keys:  # one I/O a pause, each faster than a second
        slow_Bps, fast_Bps = (_mean_block_bytes(act) / (act.keys["every"] + more_s) for more_s in (0.02, 0.0))
    if act.amount_bytes is not None:
        longest_s = _longest_s(act)
        time_s = (min(longest_s, act.amount_bytes / fast_Bps), min(longest_s, act.amount_bytes / slow_Bps))
        least, most = _drawn_bytes(act)
        return Cost(time_s, (min(least, share * slow_Bps * longest_s), most), most, (1, 1), _log_bytes(act, time_s))
    time_s = _time(act)
    most = load.most_written_bytes(act, drive["interface"]) or 0
    busy = load.busy_share(act)
    written = (min(most, busy * share * slow_Bps * time_s[0]), min(most, busy * share * fast_Bps * time_s[1]))
    for entry in act.keys.get("until", ()):
        if entry.written and share:  # looked at each second, by the host's clock
            amount = _bytes(entry.written, drive)
            written = (min(written[0], amount), min(written[1], amount + share * fast_Bps / k))
            time_s = (time_s[0], min(time_s[1], max(time_s[0], amount / (share * slow_Bps))))
        if entry.rule == "pts" and (entry.after or entry.past_spare):
            amount = _bytes(entry.after, drive) if entry.after else 0
            if entry.past_spare and share:
                amount = max(
                    amount, spare.least_expected_bytes(act.range_bytes, drive["capacity_bytes"], spare.raw_of(drive))
                )
            if share and (soonest := amount / (share * fast_Bps)) < time_s[1]:
                time_s = (max(time_s[0], soonest), time_s[1])
                written = (min(written[1], max(written[0], amount)), written[1])
    return Cost(time_s, written, most, (1, 1), _log_bytes(act, time_s))


def _drawn_bytes(act: "Act") -> tuple[float, float]:
    """Bytes written of a load of a fixed amount, (least, most): fio draws of each I/O whether it reads."""
    share, amount_bytes = 1 - act.keys.get("read", 0) / 100, act.amount_bytes or 0
    ios = max(1.0, amount_bytes / _mean_block_bytes(act))
    drawn = DRAWN * math.sqrt(share * (1 - share) / ios)
    return max(0.0, share - drawn) * amount_bytes, (share + drawn) * amount_bytes


def _bytes(amount, drive: Mapping) -> float:
    return amount.fixed_bytes or amount.times * drive["capacity_bytes"]


def _mean_block_bytes(act: "Act") -> float:
    blocks = act.keys["block"]
    return blocks if isinstance(blocks, int) else sum(size * percent for size, percent in blocks) / 100


def _time(act: "Act") -> tuple[float, float]:
    keys = act.keys
    if "time" in keys:
        return keys["time"], keys["time"]
    if "cycles" in keys:
        seconds = load.longest_s(act) or 0.0
        return seconds, seconds
    ends = [entry.time_s for entry in keys["until"] if entry.time_s is not None]
    most = min(ends) if ends else 6 * 3600.0
    rules = [entry for entry in keys["until"] if entry.rule == "pts" or entry.cliff or entry.written]
    if not rules:
        return most, most
    least = min((5 * (entry.spaced_s or entry.record_s or 60.0) if entry.rule else 0.0) for entry in rules)
    return min(least, most), most


def _log_bytes(act: "Act", time_s: tuple[float, float]) -> tuple[float, float]:
    directions = 1 if act.keys.get("read", 0) in (0, 100) and "read_qd" not in act.keys else 2
    log_bytes = DISK_BYTES_PER_S * act.keys.get("threads", 1) * directions
    fine = 0.0
    if act.keys.get("detail") == "fine" and act.amount_bytes:
        ios = act.amount_bytes / _mean_block_bytes(act)
        fine = FINE_ROW_BYTES * ios if ios <= FINE_IOS else 0.0
    return log_bytes * time_s[0] + fine, log_bytes * time_s[1] + fine


DISK_BYTES_PER_S = (
    LOG_BYTES_PER_S / 4
)  # 5.7 kB/s of disk where fio holds 23.5 kB/s of memory (./ssdrig selfcheck detail)
