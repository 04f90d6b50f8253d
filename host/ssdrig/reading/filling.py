"""The drive from a load that is recorded finely (`detail = "fine"`): the plateaus of its speed over the amount
written, each with its energy and its write amplification, the size of the cache, and the rest before it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ssdrig.base import words
from ssdrig.base.uncertain import mean_error, stretch_error
from ssdrig.drive.wear import wa
from ssdrig.load import fioclock, fiofine
from ssdrig.meter import rails
from ssdrig.meter.reduced import Asked, Reduced
from ssdrig.plan.rules import plateaus
from ssdrig.reading import cache_recovery, smart, witness
from ssdrig.reading.errors import AROUND_LEAST_S, AROUND_S, LEAST_S
from ssdrig.reading.row import Row
from ssdrig.reading.rundata import SECOND_NS, RunData

COVERED = 0.5  # least share of a plateau's bytes between the SMART readings of its write amplification
MOST_POINTS = 1000  # of a curve
STEP_BLOCKS = 8  # a speed covers at least this many I/Os
STEP_MS = 25  # and this long; four of them make the shortest plateau, so that filling a write buffer is not one
VAGUE = 1 / 2  # error of a cache's size, as a share of it, beyond which it is not reported
TAIL_S = 0.1  # of a rest, in which the drive still writes acknowledged data, now more, now less
SLICE_S, FEWEST_SLICES = 0.5, 8  # in which a speed is seen to vary: reviews read it twice a second
LAST_BYTES, LAST_SHARE = 16e9, 1 / 16  # of a load, whichever is less: its last part
PLACE_MS = 5  # where a plateau ends is found by such


class Filled(NamedTuple):
    """A load of `row`, and when the load before it ended (None: not known); host ns, bytes by then."""

    row: "Row"
    at_ns: np.ndarray
    done: np.ndarray
    levels: list[plateaus.Plateau]
    before_ns: int | None

    edges_ns = np.empty(0, np.int64)

    @property
    def timed(self) -> Asked:
        """Edges of each plateau, and of the rest before the load; fio's fine log has whole ms."""
        rest_ns = [] if self.before_ns is None else [self.before_ns, self._late_ns(self.before_ns), int(self.at_ns[0])]
        return Asked.of(
            [*rest_ns, *(at for plateau in self.levels for at in self._span_ns(plateau))], 1e6 * fioclock.STAMP_MS
        )

    def _late_ns(self, before_ns: int) -> int:
        """When the tail of the writes before has ended, the load's begin at the latest."""
        return min(before_ns + round(TAIL_S * self.row.k * SECOND_NS), int(self.at_ns[0]))

    def _span_ns(self, plateau: plateaus.Plateau) -> list[int]:
        return [int(self.at_ns[0]) + round(at * self.row.k * SECOND_NS) for at in (plateau.from_s, plateau.to_s)]

    def put(self, base: RunData, powers: list[Reduced]) -> None:
        row = self.row
        limited = witness.slowed_by_host(base.events, row)
        levels = [] if limited else self.levels
        size, error, why = (None, None, limited)
        if not limited:
            size, error, why = cache(levels, self.at_ns, self.done, _block_bytes(row), row.k)
        at_s, done = steps(self.at_ns, self.done, _block_bytes(row), row.k)
        speeds = np.diff(done) / np.diff(at_s) / 1e6
        row.result = {
            "kind": "plateaus",
            "cache_bytes": size,
            "cache_error_bytes": error,
            "cache_why": why,
            "host_limited": limited,
            "plateaus": [self._plateau(plateau, powers, (at_s, done)) for plateau in levels],
            "last": None if limited else last(at_s, done, levels[-1].from_s if levels else 0.0),
            "curve_GB_MBps": thinned(np.stack([done[1:] / 1e9, speeds], axis=1)),
        }
        if self.before_ns is not None:
            late_ns, end_ns = self._late_ns(self.before_ns), int(self.at_ns[0])
            row.result |= _rest(self.before_ns, end_ns, row.k, powers)
            row.result["rest_late_J"] = _rest(late_ns, end_ns, row.k, powers)["rest_J"]
            row.result["rest_late_error_J"] = _rest_error_J(late_ns, end_ns, row.k, powers)

    def _plateau(self, plateau: plateaus.Plateau, powers: list[Reduced], course: tuple[np.ndarray, np.ndarray]) -> dict:
        """Bytes and s since the first I/O, MB/s, energy, write amplification; a None has its `..._why`. `course`: of
        steps()."""
        moved, edges = plateau.to_bytes - plateau.from_bytes, self._span_ns(plateau)
        timed = rails.timed_J(powers, *edges) if powers else rails.Timed(why=rails.NO_POWER)
        joules, powered = timed.J / self.row.k, timed.why is None
        out: dict[str, Any] = {**plateau._asdict(), "bw_mean_MBps": plateau.speed_Bps / 1e6}
        out |= varied(*course, plateau.from_s, plateau.to_s)
        out |= {"energy_J": joules if powered else None, "power_why": timed.why}
        out["energy_time_percent"] = timed.percent if powered else None
        out["power_mean_W"] = joules / (plateau.to_s - plateau.from_s) if powered else None
        out["energy_J_per_GB"] = 1e9 * joules / moved if powered else None
        first, last = plateau is self.levels[0], plateau is self.levels[-1]
        seen, why = _amplified(edges, moved, first, last, self.at_ns, self.done, self.row.data)
        return out | {"wa": seen.value if seen else None, "wa_error": seen.error if seen else None, "wa_why": why}


def read(base: RunData, rows: Sequence["Row"], fio: Path) -> Iterator[Filled]:
    """Each such row; one without its fine log gets a note."""
    ended_ns: int | None = None
    for row in rows:
        if row.act.keys.get("detail") == "fine" and row.state == "done":
            at_ns, done, why = fiofine.read(fio / row.folder)
            if why:
                row.notes.append(f"plateaus: {why}")
            else:
                yield Filled(row, at_ns, done, find(at_ns, done, _block_bytes(row), row.k), ended_ns)
            ended_ns = int(at_ns[-1]) if len(at_ns) else None
        elif row.act.do in ("fill", "load"):
            end_s = row.t1_s  # since the run's start
            ended_ns = None if end_s is None else base.header["started"]["t_ns"] + round(end_s * row.k * SECOND_NS)


def find(at_ns: np.ndarray, done: np.ndarray, block_bytes: int, k: int) -> list[plateaus.Plateau]:
    """In the rows of a fine log (fiofine.read) of I/Os of this size, `k` times dilated; in s of the drive."""
    at_s, by = steps(at_ns, done, block_bytes, k)
    return plateaus.find(at_s, by, steps(at_ns, done, block_bytes, k, PLACE_MS))


def cache(
    levels: Sequence[plateaus.Plateau], at_ns: np.ndarray, done: np.ndarray, block_bytes: int, k: int
) -> tuple[float | None, float | None, str | None]:
    """(bytes, their error, None) of the cache, from the plateaus of find(); or why it is unknown."""
    size, why = plateaus.cache_bytes(levels)
    if size is None:
        return None, None, why
    error = plateaus.cache_error_bytes(levels, *steps(at_ns, done, block_bytes, k, PLACE_MS))
    if error > VAGUE * size:
        return None, None, f"its end is not clear: {words.size(size)} ± {words.size(error)}"
    return size, error, None


def steps(
    at_ns: np.ndarray, done: np.ndarray, block_bytes: int, k: int, step_ms: int = STEP_MS
) -> tuple[np.ndarray, np.ndarray]:
    """(s of the drive since the first row, bytes) of such rows, in steps whose speed is one."""
    chosen = fiofine.in_steps(at_ns, done, STEP_BLOCKS * block_bytes, step_ms)
    return (at_ns[chosen] - at_ns[0]) / SECOND_NS / k, done[chosen]


def varied(at_s: np.ndarray, done: np.ndarray, from_s: float, to_s: float, since_s: float | None = None) -> dict:
    """The error of a mean speed, and the lowest and the highest speed of its slices, in MB/s; None of a stretch with
    fewer than two samples, the error also of one that is too short for it, which `speed_why` then states.

    at_s, done: of steps()
    since_s: since when the speed has been about the same; None: since from_s"""
    speeds = _speeds(at_s, done, from_s, to_s)
    if len(speeds) < 2:
        return dict.fromkeys(("bw_error_MBps", "bw_low_MBps", "bw_high_MBps", "speed_why"))
    since_s = from_s if since_s is None else min(since_s, from_s)
    error, why = None, None
    if to_s - from_s >= LEAST_S:
        error = mean_error(speeds)
    elif to_s - since_s >= AROUND_LEAST_S:
        error = stretch_error(speeds, _speeds(at_s, done, max(since_s, to_s - AROUND_S), to_s))
    else:
        why = f"{words.digits(to_s - from_s, 2)} s are too short for an error; {LEAST_S} s have one"
    return {
        "bw_error_MBps": error,
        "bw_low_MBps": float(speeds.min()),
        "bw_high_MBps": float(speeds.max()),
        "speed_why": why,
    }


def _speeds(at_s: np.ndarray, done: np.ndarray, from_s: float, to_s: float) -> np.ndarray:
    """MB/s of the slices of a stretch; empty where it has fewer than two samples."""
    samples = int(((at_s > from_s) & (at_s <= to_s)).sum())
    count = min(samples, max(FEWEST_SLICES, round((to_s - from_s) / SLICE_S)))
    if count < 2:
        return np.empty(0)
    edges_s = np.linspace(from_s, to_s, count + 1)
    return np.diff(np.interp(edges_s, at_s, done)) / np.diff(edges_s) / 1e6


def last(at_s: np.ndarray, done: np.ndarray, since_s: float | None = None) -> dict | None:
    """The bytes of the last part of a load, its speed and how that varied; None of a load with too few samples.
    `since_s`: see varied()."""
    if len(at_s) < 2:
        return None
    size = min(LAST_BYTES, LAST_SHARE * float(done[-1]))
    from_s, to_s = float(np.interp(done[-1] - size, done, at_s)), float(at_s[-1])
    if not to_s > from_s:
        return None
    return {"bytes": size, "bw_mean_MBps": size / (to_s - from_s) / 1e6} | varied(at_s, done, from_s, to_s, since_s)


def _block_bytes(row: "Row") -> int:
    return max(size for size, _ in row.act.keys["block"])


def thinned(curve: np.ndarray) -> list[list[float]]:
    """[GB, MB/s], at most MOST_POINTS: of neighbours their mean speed by bytes, where they end."""
    if len(curve) > MOST_POINTS:
        moved = np.diff(curve[:, 0], prepend=0.0)
        took = moved / np.where(curve[:, 1] > 0, curve[:, 1], np.inf)
        edges = np.linspace(0, len(curve), MOST_POINTS + 1).astype(int)
        moved, took = (np.add.reduceat(column, edges[:-1]) for column in (moved, took))
        speeds = np.divide(moved, took, out=np.zeros(len(moved)), where=took > 0)
        curve = np.stack([curve[edges[1:] - 1, 0], speeds], axis=1)
    return [[round(float(at), 4), round(float(speed), 2)] for at, speed in curve]


def rested(rows: Sequence["Row"]) -> list[cache_recovery.Rest]:
    """The rests before these loads, with the bytes that the cache then took. A load that was as slow from its begin on
    as the others after their cache had none. One that was slower than they are was disturbed, and is left out."""
    rows = [row for row in rows if row.result.get("rest_s") is not None]
    known = [row.result["plateaus"] for row in rows if row.result["cache_bytes"]]
    fast, slow = ([plateau[at]["bw_mean_MBps"] for plateau in known] for at in (0, 1))
    usual, least = (float(np.median(slow)), min(fast)) if known else (0.0, 0.0)
    visible = (least * max(slow, default=0.0)) ** 0.5
    out = []
    for row in rows:
        cache, error, levels = row.result["cache_bytes"], row.result["cache_error_bytes"], row.result["plateaus"]
        if cache is None and known and levels and all(plateau["bw_mean_MBps"] < visible for plateau in levels):
            cache, error = 0.0, 0.0
        if cache is None or levels[-1 if not cache else 1]["bw_mean_MBps"] < (1 - plateaus.JUMP) * usual:
            continue
        energy = (row.result.get(f"rest_late_{key}") for key in ("J", "error_J"))
        out.append(cache_recovery.Rest(row.result["rest_s"], cache, *energy, cache_error_bytes=error))
    return out


def recovery(rows: Sequence["Row"]) -> tuple[cache_recovery.Recovery, int]:
    """The recovery from the loads of a step, and the number of rests left out because the host limited the load after
    them."""
    of = [row for row in rows if row.result.get("rest_s") is not None]
    limited, known = sum(bool(row.result.get("host_limited")) for row in rows), rested(rows)
    law = cache_recovery.of(known)
    more = len([row for row in of if not row.result.get("host_limited")]) - len(known)
    return law._replace(disturbed=law.disturbed + more), limited


def recoveries(shows: Sequence[Mapping], rows: Sequence["Row"]) -> list[dict]:
    """For JSON: of each step that the view cache-recovery shows, recovery() with `of`, the step, and `left_out`."""
    out = []
    for show in shows:
        of = show["of"] if show["view"] == "cache-recovery" else []
        for path in of if isinstance(of, list) else [of]:
            law, limited = recovery([row for row in rows if row.state == "done" and row.act.path == path])
            out.append({"of": path, "left_out": limited} | law._asdict())
    return out


def _amplified(edges, moved, first: bool, last: bool, at_ns, done, data: RunData | None):
    """Write amplification between the first and the last SMART reading of a plateau; those of before and after the load
    stand for its begin and its end, and what the drive may have written on its own meanwhile widens the error."""
    of = [
        poll
        for poll in (data.snapshots if data else [])
        if not poll.get("foreign_bytes")
        and (
            (poll["t_start_ns"] >= edges[0] and poll["t_end_ns"] <= edges[1])
            or (first and poll["reason"] == "before")
            or (last and poll["reason"] == "after")
        )
    ]
    covered = float(np.diff(np.interp([of[0]["t_ns"], of[-1]["t_ns"]], at_ns, done))[0]) / moved if of else 0.0
    if data is None or len(of) < 2 or covered < COVERED:
        return None, f"{len(of)} SMART readings in it, with {100 * covered:.0f} % of the writes between"
    amplification, ends = wa.between(of[0], of[-1]), (of[0], of[-1])
    edges_s = [float(data.axis_s(min(max(poll["t_ns"], int(at_ns[0])), int(at_ns[-1])))) for poll in ends]
    own = smart.own_share(data, amplification, ends, (edges_s[0], edges_s[1]))
    amplification = smart.wider(amplification, own=own)
    return amplification, amplification.why


def _rest_error_J(begin_ns: int, end_ns: int, k: int, powers: list[Reduced]) -> float | None:
    """Error of the rest's energy (k = 2), in J of drive time."""
    edges, host_s = [begin_ns, end_ns], (end_ns - begin_ns) / SECOND_NS
    if not powers or host_s <= 0 or not rails.known(powers, edges).all():
        return None
    watts = [float(np.diff(power.integral_J(edges))[0]) / host_s for power in powers]
    error_W = rails.uncertainty_W(powers, edges, watts) * host_s / k
    return error_W if np.isfinite(error_W) else None


def _rest(begin_ns: int, end_ns: int, k: int, powers: list[Reduced]) -> dict:
    """How long nothing was asked of the drive before the load, and its energy."""
    timed = rails.timed_J(powers, begin_ns, end_ns) if powers and end_ns > begin_ns else rails.Timed(why=rails.NO_POWER)
    return {
        "rest_s": (end_ns - begin_ns) / SECOND_NS / k,
        "rest_J": None if timed.why else timed.J / k,
        "rest_why": timed.why,
    }
