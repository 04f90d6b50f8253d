"""Power data of a run folder: `load` a whole run, follow one that is being written, cut either into seconds.

Seconds are those of the host's CLOCK_MONOTONIC. A second's mean, extremes and deviation are over its samples; its
energy is the integral between its two ends, gaps filled; conversions lost are counted in the second of the sample
after the gap."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ssdrig.base.deferred import is_installed
from ssdrig.base.errors import RigError
from ssdrig.meter.frames import Decoder, Frames, Places
from ssdrig.meter.peaks import highest_mean_W
from ssdrig.meter.power import Closure, Power, assemble, closure, explained, integral_J
from ssdrig.runs import journal, rigrecords

__all__ = ["Closure", "Follower", "Power", "Second", "Seconds", "integral_J", "load", "load_rails", "per_second"]

SECOND_NS = 10**9
PIECE_BYTES = 1 << 22  # stays in a processor's cache while it is decoded
PATIENCE_NS = 10 * SECOND_NS  # a second whose end no sample has passed is given up after this
RECENT_PINGS = 900


@dataclass(frozen=True)
class Seconds:
    """Power per second; each array has one row per second, NaN where it has no sample."""

    t_ns: np.ndarray  # int64, start of the second
    v_mean_V: np.ndarray
    v_min_V: np.ndarray
    v_max_V: np.ndarray
    i_mean_A: np.ndarray
    i_min_A: np.ndarray
    i_max_A: np.ndarray
    p_mean_W: np.ndarray
    p_min_W: np.ndarray
    p_max_W: np.ndarray
    p_std_W: np.ndarray  # of the population of samples
    energy_J: np.ndarray
    samples: np.ndarray  # int64
    lost: np.ndarray  # int64
    t_err_ns: np.ndarray  # float64, the largest bound of a sample's time


@dataclass(frozen=True)
class Second:
    """One row of Seconds as Python numbers: the fields of the InfluxDB measurement `power`."""

    t_ns: int
    v_mean_V: float
    v_min_V: float
    v_max_V: float
    i_mean_A: float
    i_min_A: float
    i_max_A: float
    p_mean_W: float
    p_min_W: float
    p_max_W: float
    p_max_10ms_W: float | None  # the highest mean over any 10 ms; None where samples are too rare (peaks.py)
    p_max_100ms_W: float | None
    p_std_W: float
    energy_J: float
    samples: int
    lost: int
    t_err_ns: int


def load(run: str | os.PathLike, rail: int = 0) -> Power:
    """All samples of one rail of a run folder, clock fitted over the whole run, closure worked out.

    Raises JournalError without a run folder, RigError if it has no sample of that rail."""
    decoder, short = decoded(run)
    power = _power(decoder, rail, short)
    if not len(power.t_ns):
        raise RigError(
            f"samples of rail {rail} in {run}",
            f"{decoder.counts['frames']} frames without any",
            "see rig.lost in events.jsonl",
        )
    return power


def load_rails(run: str | os.PathLike) -> list[Power]:
    """As load(), for every rail of the rig, ordered by number; a silent rail has empty arrays.

    Raises JournalError without a run folder, RigError without a sample of any rail."""
    decoder, short = decoded(run)
    powers = [_power(decoder, rail, short) for rail in rails_of(decoder)]
    need_some(run, decoder, any(len(power.t_ns) for power in powers))
    return powers


def rails_of(decoder: Decoder) -> list[int]:
    """Numbers of the rig's rails, those that are silent too."""
    return sorted({*decoder.rails(), *decoder.rail_names()})


def need_some(run: str | os.PathLike, decoder: Decoder, there: bool) -> None:
    """Raises RigError if no sample of any rail is `there`."""
    if not there:
        raise RigError(
            f"samples in {run}", f"{decoder.counts['frames']} frames without any", "see rig.lost in events.jsonl"
        )


def decoded(run: str | os.PathLike, kind: type[Frames] | type[Places] = Frames) -> tuple[Decoder, dict[str, int]]:
    """All frames of a run folder, and the bytes of it outside records: left at its end, skipped within."""
    decoder, at, skipped, compiled = Decoder(kind), 0, 0, journal.is_long(run) and is_installed("numba")
    while True:
        records = piece(run, at, compiled)
        decoder.feed(records)
        skipped += records.skipped_bytes
        if records.next_offset == at:
            return decoder, {"left_bytes": records.left_bytes, "skipped_bytes": skipped}
        at = records.next_offset


def piece(run: str | os.PathLike, at: int, compiled: bool = False) -> rigrecords.Records:
    """Records of rig.bin from a byte offset on: a piece of it, and more where damage is longer than that."""
    at_most = PIECE_BYTES
    while True:
        records = journal.records(run, at, at_most, compiled)
        if records.next_offset > at or records.left_bytes < at_most:
            return records
        at_most *= 2


def _power(decoder: Decoder, rail: int, short: dict[str, int]) -> Power:
    power = assemble(decoder.frames(rail), decoder.boots, decoder.counts, rail)
    power.counts |= short
    power.name = decoder.rail_names().get(rail, power.name)
    energies = decoder.energies()
    power.closure = closure(power, energies[energies["rail"] == rail])
    return power


def per_second(power: Power, t0_ns: int, seconds: int, step_ns: int = SECOND_NS) -> Seconds:
    """Cut a run into `seconds` steps of step_ns from host time t0_ns on."""
    edges = t0_ns + step_ns * np.arange(seconds + 1, dtype=np.int64)
    return _rows(power, edges, np.searchsorted(power.t_ns, edges))


def _rows(power: Power, edges: np.ndarray, cuts: np.ndarray) -> Seconds:
    """Rows between edges (host ns); row k has the samples cuts[k] to cuts[k+1]-1."""
    count = np.diff(cuts)
    some = np.flatnonzero(count)
    bounds = cuts[some]

    def reduced(ufunc, values):
        out = np.full(len(count), np.nan)
        if len(some):
            # rows without samples lie between rows with some: reduceat may run on to the next bound, not beyond the
            # last row
            out[some] = ufunc.reduceat(values[: cuts[-1]], bounds)
        return out

    with np.errstate(invalid="ignore", divide="ignore"):
        mean = {name: reduced(np.add, getattr(power, name)) / count for name in "VIP"}
        centre = np.repeat(mean["P"], count)
        spread = (power.P[cuts[0] : cuts[-1]] - centre) ** 2
        deviation = np.sqrt(reduced(np.add, np.concatenate([np.zeros(cuts[0]), spread])) / count)
    lost = np.zeros(len(count), np.int64)
    row = np.searchsorted(cuts, power.gap, "right") - 1
    inside = (row >= 0) & (row < len(count))
    np.add.at(lost, row[inside], power.gap_lost[inside])
    return Seconds(
        edges[:-1],
        mean["V"],
        reduced(np.minimum, power.V),
        reduced(np.maximum, power.V),
        mean["I"],
        reduced(np.minimum, power.I),
        reduced(np.maximum, power.I),
        mean["P"],
        reduced(np.minimum, power.P),
        reduced(np.maximum, power.P),
        deviation,
        np.diff(integral_J(power, edges)),
        count,
        lost,
        reduced(np.maximum, power.err_ns),
    )


class Together:
    """Seconds of several rails -> seconds of their sum, each made when the last rail has it; of a second that one rail
    does not have is missing."""

    def __init__(self):
        self._waiting: dict[int, dict[str, Second]] = {}

    def add(self, rail: str, second: Second, rails: list[str]) -> dict | None:
        """Take a second of the rail named `rail`, one of the rig's `rails`. If it completes the sum: t_ns (int),
        p_mean_W, energy_J (float), rails, samples, lost, t_err_ns (int), else None."""
        self._waiting.setdefault(second.t_ns, {})[rail] = second
        if len(self._waiting[second.t_ns]) < len(rails):
            return None
        parts = self._waiting.pop(second.t_ns).values()
        self._waiting = {
            t_ns: there for t_ns, there in self._waiting.items() if t_ns > second.t_ns
        }  # a rail has left these out
        total = {name: sum(getattr(one, name) for one in parts) for name in ("p_mean_W", "energy_J", "samples", "lost")}
        return {"t_ns": second.t_ns, **total, "rails": len(parts), "t_err_ns": max(one.t_err_ns for one in parts)}


class Follower:
    """Whole seconds of a run that may still be written, each once, in order, rail by rail.

    What comes out depends on the records alone and not on when or in which pieces they were read: after a restart the
    same seconds come again with the same numbers. A second is made when the records have passed its end by settled_ns
    and a sample has passed it too (or PATIENCE_NS have); seconds without samples are left out. turn_ns: how many are
    made immediately; of a run that has ended more are sooner made, with times that differ by less than their bounds."""

    def __init__(
        self,
        run: str | os.PathLike,
        settled_ns: int = 2 * SECOND_NS,
        turn_ns: int = SECOND_NS,
        step_ns: int = SECOND_NS,
    ):
        """step_ns: a part of a second; its rows then come a second at a time, without those that have no sample."""
        self._run, self._settled_ns, self._turn_ns, self._offset = run, settled_ns, turn_ns, 0
        self._step_ns = step_ns
        self._decoder = Decoder()
        self._now_ns = 0  # latest record time
        self._used: dict[int, int] = {}  # rail -> samples held by the decoder that are already in a second
        self._next_ns: dict[int, int] = {}  # rail -> start of the next second to make

    def seconds(self, final: bool = False) -> Iterator[tuple[str, Second]]:
        """The seconds completed since the last call, as (name of the rail, second); final: the run is over, all the
        rest."""
        while True:
            records = piece(self._run, self._offset)
            if records.next_offset == self._offset:
                break
            self._offset = records.next_offset
            yield from self._take(records)
        if final:
            yield from self._make(self._now_ns + 2 * PATIENCE_NS)

    @property
    def offset(self) -> int:
        """How many bytes of rig.bin have been read."""
        return self._offset

    @property
    def hello(self) -> dict | None:
        """The board's latest message, of the frames read so far."""
        return next((boot.hello for boot in reversed(self._decoder.boots) if boot.hello), None)

    def rail_names(self) -> list[str]:
        """Names of the rails of the rig, in the frames read so far."""
        return list(self._decoder.rail_names().values())

    def _take(self, records: rigrecords.Records) -> Iterator[tuple[str, Second]]:
        """Decode up to each record that is the first of a new turn, and make the seconds due then."""
        latest = np.maximum.accumulate(np.maximum(records.t_ns, self._now_ns))
        turns = np.flatnonzero(np.diff(latest // self._turn_ns, prepend=self._now_ns // self._turn_ns)) + 1
        done = 0
        for turn in turns.tolist():
            self._decoder.feed(records.part(done, turn))
            done = turn
            yield from self._make(int(latest[turn - 1]))
        self._decoder.feed(records.part(done, len(records)))
        self._now_ns = int(latest[-1])

    def _make(self, now_ns: int) -> Iterator[tuple[str, Second]]:
        names = self._decoder.rail_names()
        for rail in self._decoder.rails():
            if not self._explained(rail, now_ns):
                continue
            power = assemble(self._decoder.frames(rail), self._decoder.boots, None, rail, RECENT_PINGS)
            if not len(power.t_ns):
                continue
            start_ns = self._next_ns.get(rail, int(power.t_ns[0]) // SECOND_NS * SECOND_NS)
            used = self._used.get(rail, 0)
            passed_ns = max(min(now_ns - self._settled_ns, int(power.t_ns[-1])), now_ns - PATIENCE_NS)
            end_ns = min(passed_ns, int(power.t_ns[-1]) + SECOND_NS) // SECOND_NS * SECOND_NS
            if end_ns <= start_ns:
                continue
            edges = np.arange(start_ns, end_ns + 1, self._step_ns)
            cuts = np.maximum(np.searchsorted(power.t_ns, edges), used)
            cuts[0] = used  # the clock is refitted meanwhile: a sample at an edge still counts once
            rows = _rows(power, edges, cuts)
            columns = {name: getattr(rows, name) for name in Second.__annotations__ if hasattr(rows, name)}
            columns |= {f"p_max_{ms}ms_W": highest_mean_W(power, edges, ms * 10**6) for ms in (10, 100)}
            for k in np.flatnonzero(rows.samples).tolist():
                yield (
                    names[rail],
                    Second(*(_number(columns[name][k], kind) for name, kind in Second.__annotations__.items())),
                )
            self._next_ns[rail] = end_ns
            self._used[rail] = self._forget(rail, int(cuts[-1]))

    def _explained(self, rail: int, now_ns: int) -> bool:
        """Whether each frame's boot and configuration are known. One whose hello was lost is waited for, then
        dropped."""
        frames = self._decoder.frames(rail)
        unknown = ~explained(frames, self._decoder.boots, rail)
        if (frames.arrival_ns[unknown] > now_ns - PATIENCE_NS).any():
            return False
        if unknown.any():
            self._decoder.keep(rail, ~unknown)
        return True

    def _forget(self, rail: int, used: int) -> int:
        """Drop frames that are used up, except two that the next second needs. Returns the number still held and
        used."""
        n = self._decoder.frames(rail).n
        ends = np.cumsum(n)
        frames = max(0, int(np.searchsorted(ends, used, "right")) - 2)
        self._decoder.keep(rail, np.arange(len(n)) >= frames)
        return used - (int(ends[frames - 1]) if frames else 0)


def _number(value, kind) -> Any:
    if kind is int:
        return round(float(value)) if isinstance(value, np.floating) else int(value)
    return None if np.isnan(value) else float(value)
