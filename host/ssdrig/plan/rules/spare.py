"""Whether a drive's spare area is used up. A filled drive writes at its fresh speed until the host has written as many
bytes as its raw NAND holds; only then does it have to collect garbage, and only then can a steady state begin. Before,
the plateau of the fresh drive passes any rule of level and slope. Evidence is, first to last: a cliff seen; the raw
NAND, where it is known; else two drive writes since the purge, one of them the fill. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ssdrig.base.deferred import Deferred
from ssdrig.plan.rules import steady

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

# shares of the user capacity
LEAST = 0.04  # no drive has a smaller spare area: a fall before belongs to an SLC cache
USUAL = 0.07  # GiB over GB
UNKNOWN = 1.0  # the spare area that a drive may have whose raw NAND is not known: half of the raw NAND
SMALL = 0.2  # a spare area below it shows a cliff; where none was seen, the NAND may be larger than its nominal size
EXTRA = 0.05  # ... by the extra blocks of its dies
# shares of the spare area
EARLY = 0.5  # an earlier fall is not a cliff: firmware takes a part of a known spare area, but not half
SETTLE = 0.25  # this share is written again before a verdict: the level right after a cliff need not last
# of the fresh level
DROP = 0.75
LASTS = 0.85  # below it are the mean of all seconds since the cliff and of the last five records
FROM = 0.75  # share of what the load writes until the earliest cliff from which on its level is the fresh one
FRESH_S = 600  # seconds of it, at most
FEWEST_FRESH_S = 3
TREND_PERCENT = 10  # rise or fall over as many writes as the spare area holds
GROUPS = 20  # of the trend
RECENT = 0.5  # share of the seconds past the cliff that the rule is applied to, at least five records
BY = ("cliff", "raw", "written")


def raw_of(drive: Mapping) -> int | None:
    """Raw NAND of a drive in bytes; None where it is not known, or assumed."""
    return None if drive.get("raw_nand_assumed") else drive.get("raw_nand_bytes")


@dataclass(frozen=True)
class Spare:
    """A drive at the begin of a load, in bytes. `raw_bytes`: of its NAND, None where it is not known (assumed is not
    known). `valid_bytes`: that hold data; `churned_bytes`: overwritten at random since (laid.py)."""

    capacity_bytes: int
    raw_bytes: int | None = None
    valid_bytes: int = 0
    churned_bytes: int = 0

    @property
    def laid_bytes(self) -> int:
        """Bytes written before the load that use up raw NAND."""
        return self.valid_bytes + self.churned_bytes

    @property
    def full_bytes(self) -> int:
        """That hold data once the spare area is all that is left: an empty drive is filled by the load."""
        return self.valid_bytes or self.capacity_bytes

    @property
    def earliest_bytes(self) -> float:
        """Bytes since the purge before which no cliff can be that of the spare area."""
        least = self.capacity_bytes * (1 + LEAST)
        known = self.capacity_bytes + EARLY * (self.raw_bytes - self.capacity_bytes) if self.raw_bytes else 0
        return max(least, known)

    @property
    def enough_bytes(self) -> float:
        """Bytes since the purge after which the spare area is used up without any cliff."""
        if not self.raw_bytes:
            return self.capacity_bytes * (1 + UNKNOWN)
        raw = max(self.raw_bytes, self.capacity_bytes)
        small = raw - self.full_bytes < SMALL * self.full_bytes
        return raw + EXTRA * self.capacity_bytes * small


def least_expected_bytes(range_bytes: int, capacity_bytes: int, raw_bytes: int | None) -> float:
    """Least bytes that a load on a filled range writes before it can be steady, for a forecast."""
    return (1 + SETTLE) * max(USUAL * capacity_bytes, (raw_bytes or 0) - range_bytes)


class Evidence(NamedTuple):
    """That the spare area is used up: from second `at_s` of the load on, seen `by` one of BY. `settled_bytes`: what the
    load has to have written before its level may be called steady; `spare_bytes`: size of the spare area, None where it
    is not known."""

    at_s: int
    by: str
    settled_bytes: float
    spare_bytes: float | None


def used_up(
    counts, written, spare: Spare, record_s: float = steady.SHORTEST_ROUND_S, cold_s: float | None = None
) -> Evidence | None:
    """The evidence in a load. `counts`: I/Os of each second (n,); `written`: bytes written by the end of each second
    (n,); `record_s`: five of these is the shortest fall that is a cliff; `cold_s`: of limits.cold_s(): a later fall may
    be the drive's own limit of heat."""
    counts, written = np.asarray(counts, float), np.asarray(written, float)
    by, n = "raw" if spare.raw_bytes else "written", len(counts)
    lacking = spare.enough_bytes - spare.laid_bytes
    at_s = int(np.searchsorted(written, lacking)) + 1 if lacking > 0 else 0  # the first whole second past it
    cliff_s = _cliff(counts, written, spare, max(1, round(record_s)))
    if cliff_s is not None and cliff_s < at_s and (cold_s is None or cliff_s <= cold_s):
        at_s, by = cliff_s, "cliff"
    if at_s >= n:
        return None
    begun = float(written[at_s - 1]) if at_s else 0.0
    if by == "written":
        return Evidence(at_s, by, begun, None)
    if by == "raw" and spare.raw_bytes:
        size, begun = max(spare.raw_bytes, spare.capacity_bytes) - spare.full_bytes, lacking
    else:
        size = spare.laid_bytes + begun - spare.full_bytes
    size = max(size, USUAL * spare.capacity_bytes)
    return Evidence(at_s, by, begun + SETTLE * size, size)


def _cliff(counts: "np.ndarray", written: "np.ndarray", spare: Spare, record: int) -> int | None:
    """The first second after a lasting fall below the fresh level, the level before the earliest cliff."""
    n, length = len(counts), steady.ROUNDS * record
    first = int(np.searchsorted(written, spare.earliest_bytes - spare.laid_bytes))
    if first < FEWEST_FRESH_S or first + length > n:
        return None
    begin = int(np.searchsorted(written, FROM * written[first]))
    level = _level(counts[max(min(begin, first - FEWEST_FRESH_S), first - FRESH_S) : first], record)
    done = np.concatenate([[0.0], np.cumsum(counts)])
    if done[n] - done[n - length] >= LASTS * level * length:
        return None
    starts = np.arange(first, n - length + 1)
    low = (done[starts + record] - done[starts] < DROP * level * record) & (
        done[starts + length] - done[starts] < DROP * level * length
    )
    low &= done[n] - done[starts] < LASTS * level * (n - starts)
    if not low.any():
        return None
    at_s = first + int(np.argmax(low))
    after = counts[at_s : at_s + length]
    above = np.cumsum(after - (level + after[-record:].mean()) / 2)
    at_s += int(np.argmax(np.concatenate([[0.0], above])))
    ahead = counts[max(first, at_s - length) : at_s]
    if len(ahead) < FEWEST_FRESH_S or _highest(ahead, record) < LASTS * level:
        return None  # nothing fell: it was low when it could be seen first
    return at_s + record // 6  # where it fell, to a sixth of a record


def _level(counts: "np.ndarray", record: int) -> float:
    """The usual mean of a record; of fewer than three records the mean of all."""
    if len(counts) < 3 * record:
        return float(counts.mean())
    return float(np.median(counts[: len(counts) // record * record].reshape(-1, record).mean(axis=1)))


def _highest(counts: "np.ndarray", record: int) -> float:
    """The highest mean of a record; of less than one the mean of all."""
    if len(counts) < record:
        return float(counts.mean())
    done = np.concatenate([[0.0], np.cumsum(counts)])
    return float((done[record:] - done[:-record]).max()) / record


def verdict(
    counts, written, spare: Spare, record_s: float, spaced_s: float | None = None, cold_s: float | None = None
) -> dict:
    """The steady-state rule on the seconds of a load past the cliff: the PTS rule on five rounds of the last half of
    them, five records at least, and no trend. A verdict of steady.verdict() with {"past_spare": whether the spare area
    is used up, "past_spare_by": one of BY}; `why` where it is not steady although the rule holds. `cold_s`: see
    used_up()."""
    length = max(1, round(record_s))
    evidence = used_up(counts, written, spare, record_s, cold_s)
    if evidence is None:
        return _last(counts, record_s, cold_s) | past(None)
    since, wrote = len(counts) - evidence.at_s, float(written[-1])
    if since < steady.ROUNDS * length:
        return steady.untested(FEW) | past(evidence, evidence.at_s, wrote)
    if spaced_s and spaced_s != record_s:
        means = steady.records(counts[evidence.at_s :], record_s, spaced_s)
        verdict = steady.verdict(means[-steady.ROUNDS :]) if len(means) >= steady.ROUNDS else steady.untested(FEW)
        return judged(verdict, evidence, evidence.at_s, wrote)
    recent = max(steady.ROUNDS * length, round(RECENT * since))
    verdict = steady.of_seconds(counts[-recent:], least_s=0)
    if (
        verdict["passed"]
        and evidence.spare_bytes
        and abs(_trend_percent(counts, written, recent, evidence)) > TREND_PERCENT
    ):
        verdict = verdict | {"passed": False, "why": TREND}
    return judged(verdict, evidence, len(counts) - recent, wrote)


FEW = "the load was too short for five records past the cliff"
FRESH = "the spare area may not be used up yet"
HOT = f"the drive slowed down because of heat: no fall of its level shows the cliff, and {FRESH}"
LATER = "the load went on at another level"
SETTLING = "too little was written since the spare area was used up"
TREND = f"it rises or falls by more than {TREND_PERCENT} % over as many writes as the spare area holds"


def past(evidence: Evidence | None, t0_s: int = 0, written_bytes: float | None = None) -> dict:
    """{"past_spare", "past_spare_by", "spare_areas_since"} of seconds from `t0_s` on that end after `written_bytes`."""
    if evidence is None or t0_s < evidence.at_s:
        return {"past_spare": False, "past_spare_by": None, "spare_areas_since": None}
    since = None
    if evidence.spare_bytes and written_bytes is not None:
        since = max(0.0, (written_bytes - evidence.settled_bytes) / evidence.spare_bytes + SETTLE)
    return {"past_spare": True, "past_spare_by": evidence.by, "spare_areas_since": since}


def judged(
    verdict: dict, evidence: Evidence | None, t0_s: int, written_bytes: float, cold_s: float | None = None
) -> dict:
    """A verdict on seconds of a load from `t0_s` until `written_bytes`, with whether they are past the cliff; before
    that, and until the level has settled, they are not steady, whatever the result of the rule. `cold_s`: see
    used_up()."""
    out = verdict | past(evidence, t0_s, written_bytes)
    if verdict["passed"] and not out["past_spare"]:
        return out | {"passed": False, "why": FRESH if cold_s is None else HOT}
    if verdict["passed"] and evidence and written_bytes < evidence.settled_bytes:
        return out | {"passed": False, "why": SETTLING}
    return out


def unlike_later(average: float, lasted_s: int, later) -> bool:
    """Whether a continued load left the level of a window of length `lasted_s`, by the mean of any stretch of the
    window's length in the later seconds, or of all of them if they are fewer, at least half of it. `later`: I/Os of
    each of these (n,)."""
    later = np.asarray(later, float)
    if len(later) < lasted_s / 2:
        return False
    length = min(lasted_s, len(later))
    done = np.concatenate([[0.0], np.cumsum(later)])
    means = (done[length:] - done[:-length]) / length
    return bool((np.abs(means - average) > steady.RANGE_PERCENT / 100 * average).any())


def of_rounds(verdict: dict, spare: Spare, asks: bool) -> dict:
    """A verdict on rounds, with whether the spare area was used up before them: `spare` is the drive then. `asks`:
    they are not steady otherwise."""
    past = spare.laid_bytes >= spare.enough_bytes
    by = ("raw" if spare.raw_bytes else "written") if past else None
    out = verdict | {"past_spare": past, "past_spare_by": by, "spare_areas_since": None}
    return out | {"passed": False, "why": FRESH} if asks and verdict["passed"] and not past else out


def _last(counts, record_s: float, cold_s: float | None) -> dict:
    """The PTS rule on the last five records of a fresh drive, for the reader: it is not steady."""
    means = steady.records(counts, record_s)
    if len(means) < steady.ROUNDS:
        return steady.untested("the load was too short for five records")
    verdict = steady.verdict(means[-steady.ROUNDS :])
    return verdict | {"passed": False, "why": FRESH if cold_s is None else HOT} if verdict["passed"] else verdict


def _trend_percent(counts, written, recent: int, evidence: Evidence) -> float:
    """Rise or fall of the level over as many writes as the spare area holds, of the last seconds, if it exceeds
    twice its standard error."""
    assert evidence.spare_bytes
    y = np.asarray(counts[-recent:], float)
    done = np.concatenate([[0.0], np.cumsum(y)])
    edges = np.linspace(0, recent, GROUPS + 1)
    means = np.diff(np.interp(edges, np.arange(recent + 1), done)) * GROUPS / recent
    wrote = float(written[-1] - (written[-recent - 1] if recent < len(written) else 0))
    x = np.arange(GROUPS) - (GROUPS - 1) / 2
    slope = float((x * means).sum() / (x * x).sum())
    left = means - means.mean() - slope * x
    error = float(np.sqrt((left * left).sum() / (GROUPS - 2) / (x * x).sum()))
    certain = max(0.0, abs(slope) - 2 * error)
    average = float(means.mean())
    if not average or not wrote:
        return 0.0
    return 100 * certain * GROUPS * evidence.spare_bytes / wrote / average
