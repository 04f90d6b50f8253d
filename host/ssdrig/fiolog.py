"""Read what fio wrote: a step's folder -> I/Os, bytes and latency of each second, on a 1-s grid. Pure but for `load`.

How fio 3.x writes its histogram log (stat.c, add_clat_sample), which decides where an I/O is counted here: windows are
exactly 1000 ms long and follow each other without drift from the first completion L0 on. The k-th row is written by the
first completion at or after the end of window k and holds all completions since the row before, so of its n I/Os
n - 1 completed inside window k and one, the closing I/O, at the row's time stamp. After a stall of several
windows the rows catch up, one each completion, all stamped alike. Hence L0 = min(stamp_k - 1000 (k + 1)), window k
is second k, and a second without I/O is seen as one, although the row of the window before it is stamped after it.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ssdrig.errors import LoadError
from ssdrig.fiotext import BINS, DIRECTIONS, bins, documents, hist_rows, plat_ns, plat_upper_ns, rows, totals

WINDOW_MS = 1000
LATE_MS = 1  # a closing I/O that came later than this is counted in the second of its stamp, not of its row
TAIL_MS = 100  # a shorter rest at the end of a job is no second of its own
HEAD_BYTES = TAIL_BYTES = 1 << 18
QUANTILES = (0.5, 0.99, 0.999)


@dataclass(frozen=True)
class Seconds:
    """One fio step by the second. All arrays are int64 of the same length; a second without I/O is all zeros."""

    # CLOCK_MONOTONIC at the start of each second, 1e9 apart, good to 2 ms ("status" without start.json: from 0)
    t_ns: np.ndarray
    iops: np.ndarray  # I/Os completed in the second; the sum is the job's total
    bw_bytes: np.ndarray
    lat_mean_ns: np.ndarray  # submission to completion
    lat_p50_ns: np.ndarray
    lat_p99_ns: np.ndarray
    lat_p999_ns: np.ndarray
    lat_max_ns: np.ndarray  # upper edge of the highest histogram bin used
    hist: np.ndarray  # int64 (cells, 3), by second: second, bin of fiotext.plat_ns, completion latencies (clat) in it
    zero_seconds: int
    partial: bool  # the last second is shorter than one (job cut short or bounded by size)
    source: str  # "logs": as above; "status": fio left no logs, made from its once-a-second documents, good to a second
    directions: tuple[str, ...]  # those with I/O, of read, write, trim
    totals: dict  # see fiotext.totals()
    torn_bytes: int  # left at the end of logs that a crash cut off


def load(folder, direction: str | None = None) -> Seconds:
    """Read a step's folder. `direction` "read", "write" or "trim"; None sums over them.

    Raises LoadError when there is nothing to read."""
    folder = Path(folder)
    first, last = _ends(folder / "out.json")
    parsed = [hist_rows(p.read_bytes()) for p in sorted(folder.glob("*_clat_hist.[0-9]*.log"))]
    start_ms, begun_ms = _job_clock(folder, first, last)
    torn = sum(t for _, _, t in parsed)
    if any(len(heads) for heads, _, _ in parsed) and not (torn and last):
        lats = [rows(p.read_bytes())[0] for p in sorted(folder.glob("*_lat.[0-9]*.log"))]
        return from_logs(parsed, lats, last, start_ms, begun_ms, direction)
    if last is None:
        raise LoadError(
            f"fio's logs or status documents in {folder}", "neither", "the step did no I/O; see its stderr.txt"
        )
    return from_status(documents((folder / "out.json").read_text(errors="replace"))[0], start_ms, direction, torn)


def _ends(path: Path) -> tuple[dict | None, dict | None]:
    """First and last document of out.json, without reading all of what may be 100 MB."""
    if not path.exists():
        return None, None
    with open(path, "rb") as f:
        head = documents(f.read(HEAD_BYTES).decode(errors="replace"))[0]
        size = f.seek(0, 2)
        f.seek(max(0, size - TAIL_BYTES))
        tail = documents(f.read().decode(errors="replace"))[0] if size > HEAD_BYTES else head
    return (head[0] if head else None), (tail[-1] if tail else None)


def _start_utc_ms(found: list[dict]) -> int:
    """UTC of job start: of all documents the least time stamp less run time, for one that fio could not print at once
    (it waits while all I/O hangs) is stamped late."""
    return min(d["timestamp_ms"] - totals(d)["runtime_ms"] for d in found)


def _job_clock(folder: Path, first: dict | None, last: dict | None) -> tuple[int | None, int | None]:
    """CLOCK_MONOTONIC ms at which fio started the job's clock, and one by which some I/O had completed; None: not
    known.

    fio 3.33 does not print the start: it is the documents' UTC, brought over by both clocks as read when fio was
    started (start.json). A step of the clock in between would put it wrong, which costs leading idle seconds and
    nothing else."""
    try:
        start = json.loads((folder / "start.json").read_text())
        offset_ms = (start["t_ns"] - start["utc_ns"]) / 1e6
        start_ms = round(_start_utc_ms([first, last]) + offset_ms)
        begun_ms = round(first["timestamp_ms"] + offset_ms) if totals(first)["ios"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None, None
    return start_ms, begun_ms


def from_logs(
    hists,
    lats,
    last: dict | None,
    start_ms: int | None = None,
    begun_ms: int | None = None,
    direction: str | None = None,
) -> Seconds:
    """Seconds from hist_rows() of each job's log, rows() of each lat log, the last document and what is known of the
    job's clock (see _job_clock; when all rows of a very slow drive are late, L0 is known from there only)."""
    total = totals(last, direction)
    streams = []
    for heads, cells, _ in hists:
        for d in np.unique(heads[:, 1]):
            if direction in (None, DIRECTIONS[d]):
                stamps, own = _stream(heads, cells, d)
                origin = int((stamps - WINDOW_MS * np.arange(1, len(stamps) + 1)).min())
                streams.append((d, stamps, own, origin if begun_ms is None else min(origin, begun_ms)))
    if not streams:
        return _empty("logs", total)
    zero_ms = min(origin for *_, origin in streams)
    if start_ms is not None and zero_ms > start_ms:
        zero_ms -= (zero_ms - start_ms) // WINDOW_MS * WINDOW_MS
    cells, moved, closed = [], set(), 0
    for _, stamps, own, origin in streams:
        shift = round((origin - zero_ms) / WINDOW_MS)
        closed = max(closed, shift + len(stamps))
        moves = _late(stamps, own, origin, zero_ms, shift)
        moved |= set(moves[:, 0].tolist())
        cells += [own + (shift, 0, 0), moves]
    cells = np.concatenate(cells)
    rest = max(0, total["ios"] - int(cells[:, 2].sum()))
    n = max(closed, int(cells[:, 0].max()) + 1)
    end_ms = (zero_ms if start_ms is None else start_ms) + total["runtime_ms"]
    if n > closed and n > 1 and end_ms - zero_ms - WINDOW_MS * (n - 1) < TAIL_MS:
        # the last closing I/O came just past the end of its second, and the job ended there: no second of its own
        n -= 1
        cells[:, 0] = np.minimum(cells[:, 0], n - 1)
    extra, partial = _tail(end_ms - zero_ms - WINDOW_MS * n)
    partial = partial or n > closed and end_ms - zero_ms < WINDOW_MS * n - TAIL_MS
    n += extra
    into = min(closed, n - 1)  # the rest completed before the next window would have been closed
    rest_bins = bins(last, direction)
    rest_bins = np.maximum(rest_bins - np.bincount(cells[:, 1], cells[:, 2], minlength=BINS).astype(np.int64), 0)
    if rest_bins.sum() == rest:
        left = np.flatnonzero(rest_bins)
        cells = np.concatenate([cells, np.stack([np.full(len(left), into), left, rest_bins[left]], axis=1)])
        rest = 0
    iops = np.bincount(cells[:, 0], cells[:, 2], minlength=n).astype(np.int64)
    iops[into] += rest
    quantiles = _quantiles(cells, n)
    mean = quantiles.pop("mean")
    if len(lats) == len(streams) == 1:
        mean = _lat_means(lats[0][lats[0][:, 2] == streams[0][0]], zero_ms, mean, moved)
    return _seconds(
        zero_ms, iops, np.where(iops > 0, mean, 0), quantiles, partial, "logs", total, sum(torn for *_, torn in hists)
    )


def _stream(heads, cells, direction: int) -> tuple[np.ndarray, np.ndarray]:
    """Time stamps and cells (row, bin, count) of one direction of a log, its rows numbered from 0."""
    own = np.flatnonzero(heads[:, 1] == direction)
    number = np.full(len(heads), -1)
    number[own] = np.arange(len(own))
    cells = cells[number[cells[:, 0]] >= 0].copy()
    cells[:, 0] = number[cells[:, 0]]
    return heads[own, 0], cells


def _late(stamps, cells, origin: int, zero_ms: int, shift: int) -> np.ndarray:
    """Cells that take each closing I/O that came late out of its row's second and put it into its stamp's. It is taken
    for the slowest of its row: it has waited longest."""
    late = np.flatnonzero(stamps > origin + WINDOW_MS * np.arange(1, len(stamps) + 1) + LATE_MS)
    slowest = np.zeros(len(stamps), np.int64)
    np.maximum.at(slowest, cells[:, 0], cells[:, 1])
    one = np.ones(len(late), np.int64)
    out = np.stack([late + shift, slowest[late], -one], axis=1)
    into = np.stack([(stamps[late] - zero_ms) // WINDOW_MS, slowest[late], one], axis=1)
    return np.concatenate([out, into])


def _tail(tail_ms: int) -> tuple[int, bool]:
    """Further seconds that a job which ran so much longer than the last counted one has, and whether the last is
    partial."""
    if tail_ms < TAIL_MS:
        return 0, False
    extra = -(-(tail_ms - TAIL_MS) // WINDOW_MS) or 1
    return extra, tail_ms < WINDOW_MS * extra - TAIL_MS


def _lat_means(log: np.ndarray, zero_ms: int, fallback: np.ndarray, moved: set) -> np.ndarray:
    """Mean latency of each second from rows of a lat log, exact; from the histogram where a closing I/O was `moved`, or
    where the log has no row. Rows are stamped at the end of a second; a second row of it is the rest at the job's
    end."""
    mean, seen = fallback.copy(), set(moved)
    at = np.rint((log[:, 0] - zero_ms) / WINDOW_MS).astype(np.int64) - 1
    for second, value in zip(at.tolist(), log[:, 1], strict=True):
        if 0 <= second < len(mean) and second not in seen:
            mean[second] = value
            seen.add(second)
    return mean


def _quantiles(cells: np.ndarray, n: int) -> dict:
    """Per second p50, p99, p999 (nearest rank, as fio does), max and mean, ns, of cells (second, bin, count); 0 where
    empty. `hist`: the cells by second, each once."""
    key, where = np.unique(cells[:, 0] * BINS + cells[:, 1], return_inverse=True)
    held = np.bincount(where, cells[:, 2], minlength=len(key)).astype(np.int64)
    second, index = np.divmod(key[held > 0], BINS)
    held = held[held > 0]
    of = np.bincount(second, held, minlength=n).astype(np.int64)
    below = np.concatenate([[0], np.cumsum(of)])[:-1]
    rising = np.cumsum(held)
    some = of > 0
    out = {}
    for q in QUANTILES:
        rank = below[some] + np.ceil(np.round(q * of[some], 6)).astype(np.int64)
        out[q] = np.zeros(n, np.int64)
        out[q][some] = plat_ns(index[np.searchsorted(rising, rank)])
    out["max"] = np.zeros(n, np.int64)
    out["max"][some] = plat_upper_ns(index[np.searchsorted(rising, below[some] + of[some])])
    out["mean"] = np.bincount(second, held * plat_ns(index), minlength=n) / np.maximum(of, 1)
    out["hist"] = np.stack([second, index, held], axis=1)
    return out


def from_status(found: list[dict], start_ms: int | None, direction: str | None, torn_bytes: int = 0) -> Seconds:
    """Seconds from the once-a-second documents alone: what is left when fio was killed, for it writes its logs at its
    end, or when its logs are torn.

    I/Os of the time between two documents are counted in the second that holds most of it; of a longer pause (fio
    prints nothing while all its I/O hangs) in its first second."""
    if not found:
        return _empty("status", totals(None))
    start_utc_ms = _start_utc_ms(found)
    before, at_ms = totals(None), 0
    parts, cells, bins_before = [], [], np.zeros(BINS, np.int64)
    for document in found:
        now, now_bins, now_ms = (
            totals(document, direction),
            bins(document, direction),
            document["timestamp_ms"] - start_utc_ms,
        )
        second = int((at_ms + min(now_ms, at_ms + WINDOW_MS)) / 2) // WINDOW_MS
        parts.append((second, now["ios"] - before["ios"], now["lat_sum_ns"] - before["lat_sum_ns"]))
        new = np.flatnonzero(now_bins > bins_before)
        cells.append(np.stack([np.full(len(new), second), new, (now_bins - bins_before)[new]], axis=1))
        before, bins_before, at_ms = now, now_bins, max(now_ms, at_ms)
    n = max(-(-(at_ms - TAIL_MS) // WINDOW_MS), parts[-1][0] + 1)
    second, ios, lat_ns = (np.array(column) for column in zip(*parts, strict=True))
    iops = np.bincount(second, ios, minlength=n).astype(np.int64)
    mean = np.bincount(second, lat_ns, minlength=n) / np.maximum(iops, 1)
    quantiles = _quantiles(np.concatenate(cells), n)
    quantiles.pop("mean")
    partial = at_ms < n * WINDOW_MS - TAIL_MS
    return _seconds(start_ms or 0, iops, mean, quantiles, partial, "status", totals(found[-1], direction), torn_bytes)


def _seconds(zero_ms, iops, mean, quantiles, partial, source, total, torn) -> Seconds:
    whole = np.cumsum(iops)  # bytes in proportion, so that their sum is exact too
    moved = whole * (total["bytes"] / total["ios"]) if total["ios"] else whole * 0.0
    bw = np.diff(np.rint(moved).astype(np.int64), prepend=0)
    return Seconds(
        t_ns=zero_ms * 1_000_000 + np.arange(len(iops), dtype=np.int64) * 1_000_000_000,
        iops=iops,
        bw_bytes=bw,
        lat_mean_ns=np.rint(mean).astype(np.int64),
        lat_p50_ns=quantiles[0.5],
        lat_p99_ns=quantiles[0.99],
        lat_p999_ns=quantiles[0.999],
        lat_max_ns=quantiles["max"],
        hist=quantiles["hist"],
        zero_seconds=int((iops == 0).sum()),
        partial=bool(partial),
        source=source,
        directions=total["directions"],
        totals=total,
        torn_bytes=torn,
    )


def _empty(source: str, total: dict) -> Seconds:
    none = np.zeros(0, np.int64)
    return _seconds(
        0,
        none,
        none,
        {0.5: none, 0.99: none, 0.999: none, "max": none, "hist": none.reshape(0, 3)},
        False,
        source,
        total,
        0,
    )
