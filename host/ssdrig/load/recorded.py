"""The folder of a recording (schemas/journal.md, recorded/): the kernel's counts of a drive, read once a second, and
their seconds and figures.

Readings are not exactly a second apart, so each second of the grid has what the counts were at its edges, in between
the two readings around each. Sums are those of the first and the last reading, exactly."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ssdrig.base import rapl
from ssdrig.base.errors import LoadError
from ssdrig.base.system import MS_WRAP
from ssdrig.load import fioseconds, fiotext
from ssdrig.load.fioseconds import TAIL_MS, WINDOW_MS, Seconds

COUNTERS = "counters.csv"
STAT = (  # the fields of /sys/block/NAME/stat in their order; ms are summed over the requests
    *("reads", "read_merges", "read_sectors", "read_ms", "writes", "write_merges", "write_sectors", "write_ms"),
    *("in_flight", "busy_ms", "queue_ms", "discards", "discard_merges", "discard_sectors", "discard_ms"),
    *("flushes", "flush_ms"),
)
ENERGY = "energy_uJ"  # of a column of a zone of the host's processors: "energy_uJ NAME RANGE"
SECTOR_BYTES = 512
SECOND_NS = 1_000_000_000
FEWEST_MS = 20  # of a second's waiting: below that whole milliseconds are too coarse for its mean latency
LATE_NS = 1_500_000_000  # between two readings: the seconds between have no reading of their own
GONE = "the drive was gone, or counted again"
DIRECTIONS = {  # direction -> columns of I/Os, sectors, ms
    "read": ("reads", "read_sectors", "read_ms"),
    "write": ("writes", "write_sectors", "write_ms"),
    "trim": ("discards", "discard_sectors", "discard_ms"),
}


def head(zones: Sequence[tuple[str, int]] = ()) -> str:
    """The first line. zones: name and range (uJ) of each counter of the host's energy."""
    return (
        ",".join(["t_ns", "took_ns", *STAT, *(f"{ENERGY} {name.replace(',', ' ')} {most}" for name, most in zones)])
        + "\n"
    )


def line(t_ns: int, took_ns: int, stat: Sequence[int], energies_uJ: Sequence[int | None] = ()) -> str:
    """A reading that began at t_ns and took this long. A kernel of before 5.5 has fewer fields: the rest is empty."""
    fields = [*stat[: len(STAT)], *[None] * (len(STAT) - len(stat)), *energies_uJ]
    return ",".join([str(t_ns), str(took_ns), *("" if value is None else str(value) for value in fields)]) + "\n"


@dataclass(frozen=True)
class Readings:
    """`t_ns`, `took_ns`: int64, of each reading. `counted`: what each column has counted since the first one, int64; a
    column that the kernel does not have is missing. `in_flight`: at each reading. `energy_J`: since the first, of each
    zone."""

    t_ns: np.ndarray
    took_ns: np.ndarray
    counted: Mapping[str, np.ndarray]
    in_flight: np.ndarray
    energy_J: Mapping[str, np.ndarray]


def read(folder: Path) -> Readings:
    """The readings of a folder, two at least; a torn last line is left. Raises LoadError."""
    path = folder / COUNTERS
    try:
        names, *lines = path.read_text(encoding="ascii", errors="replace").split("\n")[:-1]
        names = names.split(",")
        if names[: len(STAT) + 2] != ["t_ns", "took_ns", *STAT]:
            raise ValueError("another first line")
        table = [[int(word) if word else -1 for word in row.split(",")] for row in lines]
        if len(table) < 2 or {len(row) for row in table} != {len(names)}:
            raise ValueError("fewer than two whole readings" if len(table) < 2 else "rows of different lengths")
        columns = dict(zip(names, np.array(table, np.int64).T, strict=True))
    except (OSError, ValueError, OverflowError) as error:
        raise LoadError(f"counts of the kernel in {path}", str(error), "take it from a copy of the run") from error
    t_ns, counted = columns["t_ns"], {}
    if (np.diff(t_ns) <= 0).any() or t_ns[0] <= 0:
        raise LoadError(f"rising times in {path}", "a time that goes back", "the file is damaged")
    for name in STAT:
        values = columns[name]
        if name == "in_flight" or (values < 0).any():
            continue
        more = np.diff(values, prepend=values[0])
        more = more % MS_WRAP if name.endswith("_ms") else more
        if (more < 0).any():
            raise LoadError(f"counts that rise in {path}", GONE, "record it again")
        counted[name] = np.cumsum(more)
    energies = {}
    for name, values in columns.items():
        if name.startswith(f"{ENERGY} ") and not (values < 0).any():
            zone, most = name.removeprefix(f"{ENERGY} ").rpartition(" ")[::2]
            joules = _joules(values, most, t_ns)
            energies |= {} if joules is None else {zone: joules}
    missing = [name for name in ("reads", "read_sectors", "writes", "write_sectors") if name not in counted]
    if missing:
        raise LoadError(f"{', '.join(missing)} of each reading in {path}", "none", "the file is damaged")
    return Readings(t_ns, columns["took_ns"], counted, columns["in_flight"], energies)


def _joules(values_uJ: np.ndarray, most: str, t_ns: np.ndarray) -> np.ndarray | None:
    """What a counter of energy has counted since the first reading; None if it was reset, or without its range."""
    if not re.fullmatch("[0-9]{1,18}", most):
        return None
    pairs = zip(values_uJ[:-1].tolist(), values_uJ[1:].tolist(), np.diff(t_ns).tolist(), strict=True)
    spent = [rapl.spent_uJ(first, last, int(most), lasted_ns) for first, last, lasted_ns in pairs]
    known = [uJ for uJ in spent if uJ is not None]
    return np.cumsum([0, *known]) / 1e6 if len(known) == len(spent) else None


def load(folder: Path, direction: str | None = None) -> Seconds:
    """Requests of the block layer by the second, from the first reading on. `direction` "read", "write" or "trim":
    those only, otherwise reads and writes. A second whose latency is not known has 0 there. Raises LoadError."""
    recording = read(folder)
    t0_ns, end_ns = int(recording.t_ns[0]), int(recording.t_ns[-1])
    runtime_ms = (end_ns - t0_ns) / 1e6
    n = max(1, -(-int(runtime_ms - TAIL_MS) // WINDOW_MS))
    edges = np.minimum(SECOND_NS * np.arange(n + 1, dtype=np.int64), end_ns - t0_ns)
    edges[-1] = end_ns - t0_ns
    seen = tuple(
        name for name, (ios, *_) in DIRECTIONS.items() if ios in recording.counted and recording.counted[ios][-1]
    )
    chosen = [direction] if direction else ["read", "write"]

    def by_second(at: int) -> tuple[np.ndarray, int]:
        """Sums over the columns of each direction with this number: per second, and total."""
        whole = np.zeros(len(recording.t_ns), np.int64)
        for name in chosen:
            whole = whole + recording.counted.get(DIRECTIONS[name][at], 0)
        between = np.rint(np.interp(edges, recording.t_ns - t0_ns, whole)).astype(np.int64)
        return np.diff(between), int(whole[-1])

    (ios, all_ios), (sectors, all_sectors), (waited_ms, all_ms) = (by_second(at) for at in range(3))
    lat_ns = np.where((ios > 0) & (waited_ms >= FEWEST_MS), waited_ms * 1e6 / np.maximum(ios, 1), 0)
    total = fiotext.totals(None) | {
        "ios": all_ios,
        "bytes": all_sectors * SECTOR_BYTES,
        "runtime_ms": runtime_ms,
        "lat_sum_ns": all_ms * 1e6 if all_ms >= FEWEST_MS else None,
        "directions": seen,
    }
    late = int((np.diff(recording.t_ns) > LATE_NS).sum())
    notes = (f"{late} readings came late; the seconds before each have the mean of all of them",) if late else ()
    empty = fioseconds.quantiles(np.zeros((0, 3), np.int64), n)
    partial = runtime_ms < n * WINDOW_MS - TAIL_MS
    made = fioseconds.seconds(0, ios, lat_ns, empty, partial, "kernel", total, 0)
    t_ns = t0_ns + np.arange(n, dtype=np.int64) * SECOND_NS
    return replace(
        made,
        t_ns=t_ns,
        bw_bytes=sectors * SECTOR_BYTES,
        hist_of="lat",
        notes=notes,
        start_error_ns=float(recording.took_ns.max()),
    )


def figures(folder: Path, dilation: int) -> dict[str, Any]:
    """Totals of the counts besides the seconds: {"reads", "read_bytes", "writes", "written_bytes", "discards",
    "discarded_bytes", "flushes", "read_lat_us", "write_lat_us", "flush_lat_us", "queue_mean", "queue_most",
    "host_energy_J": {zone: J}, "host_power_W": {zone: W}, "time_s"}; None where it is not known. Times and powers in
    drive time. Raises LoadError."""
    recording = read(folder)
    last = {name: int(values[-1]) for name, values in recording.counted.items()}
    host_s = float(recording.t_ns[-1] - recording.t_ns[0]) / 1e9
    moved = lambda name: None if name not in last else last[name] * SECTOR_BYTES

    def mean_us(ios: str, ms: str) -> float | None:
        enough = last.get(ios) and last.get(ms, 0) >= FEWEST_MS
        return 1000 * last[ms] / last[ios] / dilation if enough else None

    waited = [last[ms] for *_, ms in DIRECTIONS.values() if ms in last]
    timed = any(waited)
    energy = {zone: float(joules[-1]) for zone, joules in recording.energy_J.items()}
    return {
        **{key: last.get(key) for key in ("reads", "writes", "discards", "flushes")},
        **{"read_bytes": moved("read_sectors"), "written_bytes": moved("write_sectors")},
        "discarded_bytes": moved("discard_sectors"),
        **{"read_lat_us": mean_us("reads", "read_ms"), "write_lat_us": mean_us("writes", "write_ms")},
        "flush_lat_us": mean_us("flushes", "flush_ms"),
        "queue_mean": sum(waited) / 1000 / host_s if timed and host_s else None,
        "queue_most": int(recording.in_flight.max()) if timed else None,
        "host_energy_J": energy,
        "host_power_W": {zone: joules / host_s for zone, joules in energy.items()} if host_s else {},
        "time_s": host_s / dilation,
        "readings": len(recording.t_ns),
    }
