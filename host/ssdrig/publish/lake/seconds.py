"""Each step of a part by the second, as rows of the kind `second`: what fio or the player counted, and the power of the
same seconds. A step's grid begins with its first I/O; of a step without I/O with its start."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ssdrig.base.errors import LoadError, RigError
from ssdrig.base.utc import Utc
from ssdrig.load.fioseconds import Seconds
from ssdrig.meter import rails, reduced
from ssdrig.meter.reduced import Heads
from ssdrig.publish.lake import schema
from ssdrig.publish.lake.rows import number_of
from ssdrig.publish.lake.sampling import constant
from ssdrig.reading import fio

if TYPE_CHECKING:
    import pyarrow as pa

SECOND_NS = 1_000_000_000
ALL_NS = 1 << 62  # after all samples
LEAST_IOS = 1000  # per second, needed for a P99
DIRECTIONS = ("read", "write", "trim")


class Step(NamedTuple):
    """A step that was begun. `edges_ns`: int64 (seconds + 1,), the grid of all its I/O together, which the report has,
    too. `both`: that I/O; None without any. `io`: its seconds by direction, each on its own grid."""

    path: str
    round: int | None
    point: str | None
    edges_ns: np.ndarray
    both: Seconds | None
    io: dict[str, Seconds]


def steps(part: Path, events: Sequence[Mapping[str, Any]]) -> list[Step]:
    """The steps of a part, by their start."""
    out = []
    for i, event in enumerate(events):
        if event["kind"] != "step.start" or not isinstance(event.get("step"), str):
            continue
        same = lambda other, of=event: all(other.get(key) == of.get(key) for key in ("step", "round", "point"))
        ends = (e["t_ns"] for e in events[i + 1 :] if e["kind"] == "step.end" and same(e))
        begin_ns, end_ns = event["t_ns"], next(ends, events[-1]["t_ns"])
        both, io = _io(part, event)
        if both:
            zero_ns = int(both.t_ns[0]) or begin_ns  # without fio's own start its seconds count from 0
            n = max(len(both.t_ns), *(_later(both, of) + len(of.t_ns) for of in io.values()))
        else:
            zero_ns, n = begin_ns, max(0, int((end_ns - begin_ns) // SECOND_NS))
        edges_ns = zero_ns + SECOND_NS * np.arange(n + 1, dtype=np.int64)
        point = json.dumps(event["point"], sort_keys=True) if event.get("point") else None
        if n:
            out.append(Step(event["step"], number_of(event.get("round")), point, edges_ns, both, io))
    return out


def _later(both: Seconds, of: Seconds) -> int:
    """The second of the whole in which a direction's grid begins; below 0 where its first seconds, of which none has an
    I/O, lie before the whole; 0 where that is not known."""
    later = round(int(of.t_ns[0] - both.t_ns[0]) / SECOND_NS)
    return later if of.t_ns[0] and both.t_ns[0] and abs(later) < len(both.t_ns) else 0


def _io(part: Path, event: Mapping[str, Any]) -> tuple[Seconds | None, dict[str, Seconds]]:
    played, counted = event.get("played"), event.get("recorded")
    folder = part / "fio" / str(event.get("fio") or event["step"])
    folder = part / "played" / str(played) if played else part / "recorded" / str(counted) if counted else folder
    load = fio.loader(folder)
    if not os.path.isdir(folder):  # also when the step's name is not a valid file name
        return None, {}
    try:
        both = load(folder)
        io = {d: load(folder, d) if both.directions[1:] else both for d in both.directions}
    except LoadError:  # no I/O or no readable log; the figures state the reason
        return None, {}
    io = {d: of for d, of in io.items() if len(of.t_ns)}
    return (both, io) if len(both.t_ns) and io else (None, {})


def powers_of(part: Path, steps: Sequence[Step], heads: Heads | None) -> list[reduced.Reduced]:
    """The rails of a part, reduced to the edges of its steps and to all samples (ALL_NS); [] without samples."""
    if heads is None:
        return []
    with contextlib.suppress(RigError):  # not one sample
        edges_ns = np.concatenate([np.array([ALL_NS]), *(step.edges_ns for step in steps)])
        return reduced.load_rails(part, edges_ns, heads)
    return []


def tables(
    steps: Sequence[Step], powers: list[reduced.Reduced], utc: Utc, same: Mapping[str, Any]
) -> Iterator["pa.Table"]:
    """A table for each step; powers: the rails, reduced to the edges of all steps; [] without samples."""
    for step in steps:
        yield _table(step, powers, utc, same)


def _table(step: Step, powers: list[reduced.Reduced], utc: Utc, same: Mapping[str, Any]) -> "pa.Table":
    import pyarrow as pa

    n, of = len(step.edges_ns) - 1, schema.of("second")
    one, many = {**same, **constants(step)}, columns(step, powers, utc)
    arrays = []
    for field in of:
        if field.name in many:
            values, unknown = many[field.name]
            arrays.append(pa.array(values, field.type, mask=unknown))
        else:
            arrays.append(constant(field, one.get(field.name), n))
    return pa.Table.from_arrays(arrays, schema=of)


def constants(step: Step) -> dict[str, Any]:
    """The columns that are the same in all seconds of a step."""
    p99_of = step.both.hist_of if step.both else None
    return {"step": step.path, "round": step.round, "point": step.point, "p99_of": p99_of}


def columns(step: Step, powers: list[reduced.Reduced], utc: Utc) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    """The other columns of a step that has them: values, and where they are not known (None: nowhere)."""
    n, both = len(step.edges_ns) - 1, step.both
    many: dict[str, tuple[np.ndarray, np.ndarray | None]] = {
        "t_utc": (utc.at_all(step.edges_ns[:-1]) // 1000, None),
        "t_ns": (step.edges_ns[:-1], None),
        "second": (np.arange(n, dtype=np.int32), None),
        "partial": (np.arange(n) == (n - 1 if both and (both.partial or n > len(both.t_ns)) else -1), None),
    }
    if both:
        for direction, seconds in step.io.items():
            many |= _of_direction(direction, seconds, _later(both, seconds), n)
    if powers:
        many |= _of_power(powers, step.edges_ns)
    return many


def _of_direction(name: str, seconds: Seconds, later: int, n: int) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    """Zeros pad a direction that began after the step or ended before it."""

    def filled(values: np.ndarray) -> np.ndarray:
        out = np.zeros(n, np.int64)
        out[max(0, later) : later + len(values)] = values[max(0, -later) :]
        return out

    ios, p99, latency = filled(seconds.iops), filled(seconds.lat_p99_ns), filled(seconds.lat_mean_ns)
    return {
        f"{name}_ios": (ios, None),
        f"{name}_bytes": (filled(seconds.bw_bytes), None),
        f"{name}_lat_mean_ns": (latency, (ios == 0) | (latency == 0)),
        f"{name}_p99_ns": (p99, (ios < LEAST_IOS) | (p99 == 0)),
    }


def _of_power(powers: list[reduced.Reduced], edges_ns: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    joules = rails.steps_J(powers, edges_ns)
    lowest, highest = reduced.extremes_W(powers, edges_ns)
    samples, lost = np.zeros(len(joules), np.int64), np.zeros(len(joules), np.int64)
    error_ns = np.zeros(len(joules))
    for power in powers:
        before = power.samples_before(edges_ns)
        samples += np.diff(before)
        row = np.searchsorted(before, power.gaps.at, "right") - 1
        inside = (row >= 0) & (row < len(lost))
        np.add.at(lost, row[inside], power.gaps.lost[inside])
        error_ns = np.maximum(error_ns, power.largest_error_ns(edges_ns))
    out = {"energy_J": joules, "power_mean_W": joules, "power_min_W": lowest, "power_max_W": highest}
    known = {name: (values, np.isnan(values)) for name, values in out.items()}
    return {
        **known,
        "samples": (samples, None),
        "samples_lost": (lost, None),
        "clock_error_ns": (error_ns, samples == 0),
    }
