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

    t_ns: np.ndarray  # CLOCK_MONOTONIC at the start of each second, 1e9 apart, good to 2 ms ("status" without start.json: from 0)
    iops: np.ndarray  # I/Os completed in the second; the sum is the job's total
    bw_bytes: np.ndarray
    lat_mean_ns: np.ndarray  # submission to completion
    lat_p50_ns: np.ndarray
    lat_p99_ns: np.ndarray
    lat_p999_ns: np.ndarray
    lat_max_ns: np.ndarray  # upper edge of the highest histogram bin used
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
    logs = sorted(folder.glob("*_clat_hist.[0-9]*.log"))
    parsed = [hist_rows(p.read_bytes()) for p in logs]
    start_ms = _job_start_ms(folder, first)
    torn = sum(t for _, _, t in parsed)
    if any(len(heads) for heads, _, _ in parsed) and not (torn and last):
        lat = [rows(p.read_bytes())[0] for p in sorted(folder.glob("*_lat.[0-9]*.log"))]
        return from_logs(parsed, lat, last, start_ms, direction, _begun_ms(first))
    if last is None:
        raise LoadError(f"fio's logs or status documents in {folder}", "neither", "the step did no I/O; see its stderr.txt")
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


def _job_start_ms(folder: Path, document: dict | None) -> int | None:
    """CLOCK_MONOTONIC at which fio started the job's clock. fio 3.33 does not print it: a status document's UTC less its
    run time, brought over by the two clocks as read when fio was started (start.json). None: not known."""
    try:
        start = json.loads((folder / "start.json").read_text())
        utc_ms, runtime = document["timestamp_ms"], totals(document)["runtime_ms"]
        return round(utc_ms - runtime + (start["t_ns"] - start["utc_ns"]) / 1e6)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def from_logs(hists, lats, last: dict | None, start_ms: int | None, direction: str | None, begun_ms: int | None = None) -> Seconds:
    """Seconds from hist_rows() of each job's log, rows() of its lat log, the last document, the start of the job, and a
    run time by which some I/O had completed (all rows of a very slow drive may be late, then L0 is not known from them)."""
    streams = []  # one each job and direction: stamps, count of each row, cells (row, bin, count), L0
    for heads, cells, _ in hists:
        for d in np.unique(heads[:, 1]):
            own = np.flatnonzero(heads[:, 1] == d)
            if direction not in (None, DIRECTIONS[d]):
                continue
            number = np.full(len(heads), -1)
            number[own] = np.arange(len(own))
            mine = cells[number[cells[:, 0]] >= 0].copy()
            mine[:, 0] = number[mine[:, 0]]
            stamp = heads[own, 0]
            origin = int((stamp - WINDOW_MS * np.arange(1, len(own) + 1)).min())
            streams.append((int(d), stamp, mine, origin))
    if not streams:
        return _empty("logs", totals(last, direction))
    if start_ms is not None and begun_ms is not None:
        streams = [(*stream, min(origin, start_ms + begun_ms)) for *stream, origin in streams]
    zero_ms = min(origin for *_, origin in streams)
    if start_ms is not None and zero_ms > start_ms:
        zero_ms -= (zero_ms - start_ms) // WINDOW_MS * WINDOW_MS
    total = totals(last, direction)
    end_ms = (zero_ms if start_ms is None else start_ms) + total["runtime_ms"]
    second, index, count, moved = [], [], [], []
    n = closed = 0
    for _, stamp, cells, origin in streams:
        shift = round((origin - zero_ms) / WINDOW_MS)
        second.append(cells[:, 0] + shift)
        index.append(cells[:, 1])
        count.append(cells[:, 2])
        n = max(n, len(stamp) + shift)
        closed = max(closed, len(stamp) + shift)
        window_end = origin + WINDOW_MS * np.arange(1, len(stamp) + 1)
        late = np.flatnonzero(stamp > window_end + LATE_MS)
        if len(late):  # move the closing I/O, which of its row has waited longest
            top = np.zeros(len(stamp), np.int64)
            np.maximum.at(top, cells[:, 0], cells[:, 1])
            to = (stamp[late] - zero_ms) // WINDOW_MS
            second += [late + shift, to]
            index += [top[late], top[late]]
            count += [np.full(len(late), -1), np.ones(len(late), np.int64)]
            n = max(n, int(to.max()) + 1)
            moved += [*late + shift, *to]
    second, index, count = (np.concatenate(x) for x in (second, index, count))
    rest_bins = np.maximum(bins(last, direction) - np.bincount(index, count, minlength=BINS).astype(np.int64), 0)
    rest = max(0, total["ios"] - int(count.sum()))
    tail_ms = end_ms - (zero_ms + WINDOW_MS * n)
    partial = False
    extra = 0
    if tail_ms >= TAIL_MS:
        extra = -(-(tail_ms - TAIL_MS) // WINDOW_MS) or 1
        partial = tail_ms - WINDOW_MS * extra < -TAIL_MS
    n += extra
    iops = np.bincount(second, count, minlength=n).astype(np.int64)
    into = min(closed, n - 1)  # the rest completed before the next window would have been closed
    iops[into] += rest
    left = np.flatnonzero(rest_bins)
    if rest_bins.sum() == rest:
        second, index = np.concatenate([second, np.full(len(left), into)]), np.concatenate([index, left])
        count = np.concatenate([count, rest_bins[left]])
    quantiles = _quantiles(second, index, count, n)
    mean = _lat_means(lats, [d for d, *_ in streams], zero_ms, iops, quantiles.pop("mean"), set(moved))
    return _seconds(zero_ms, iops, mean, quantiles, partial, "logs", total, sum(torn for *_, torn in hists))


def _quantiles(second, index, count, n: int) -> dict:
    """Per second p50, p99, p999 (nearest rank, as fio does), max and mean of sparse histograms, ns; 0 where empty."""
    key, where = np.unique(second * BINS + index, return_inverse=True)
    held = np.bincount(where, count, minlength=len(key)).astype(np.int64)
    key, held = key[held > 0], held[held > 0]
    second, index = np.divmod(key, BINS)
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
    return out


def _lat_means(lats, wanted: list[int], zero_ms: int, iops: np.ndarray, fallback: np.ndarray, moved: set) -> np.ndarray:
    """Mean latency of each second from the lat log, exact; from the histogram where two streams would have to be mixed,
    where a closing I/O was `moved`, or where the log has no row."""
    mean = fallback.copy()
    if len(lats) == 1 and len(wanted) == 1:
        log = lats[0][lats[0][:, 2] == wanted[0]]
        at = np.rint((log[:, 0] - zero_ms) / WINDOW_MS).astype(np.int64) - 1  # rows are stamped at the end of a second
        for second, value in zip(at.tolist(), log[:, 1], strict=True):
            if 0 <= second < len(iops) and second not in moved:
                mean[second] = value
                moved.add(second)  # the first row of a second is the whole one, a second one the rest at the job's end
    return np.where(iops > 0, mean, 0)


def from_status(found: list[dict], start_ms: int | None, direction: str | None, torn_bytes: int = 0) -> Seconds:
    """Seconds from the once-a-second documents alone: what is left when fio was killed, for it writes its logs at its end,
    or when its logs are torn.

    I/Os of the time between two documents are counted in the second that holds most of it; of a longer pause (fio
    prints nothing while all its I/O hangs) in its first second."""
    if not found:
        return _empty("status", totals(None, None))
    skew = min(d["timestamp_ms"] - totals(d)["runtime_ms"] for d in found)
    before, at_ms = {"ios": 0, "lat_sum_ns": 0.0}, 0
    parts, cells, bins_before = [], [], np.zeros(BINS, np.int64)
    for document in found:
        now, bins = totals(document, direction), bins(document, direction)
        second = int((at_ms + min(document["timestamp_ms"] - skew, at_ms + WINDOW_MS)) / 2) // WINDOW_MS
        at_ms = max(document["timestamp_ms"] - skew, at_ms)
        parts.append((second, now["ios"] - before["ios"], now["lat_sum_ns"] - before["lat_sum_ns"]))
        new = np.flatnonzero(bins > bins_before)
        cells.append(np.stack([np.full(len(new), second), new, (bins - bins_before)[new]], axis=1))
        before, bins_before = now, bins
    total = totals(found[-1], direction)
    n = max(-(-(at_ms - TAIL_MS) // WINDOW_MS), parts[-1][0] + 1, 1)
    second = np.array([p[0] for p in parts])
    iops = np.bincount(second, [p[1] for p in parts], minlength=n).astype(np.int64)
    mean = np.bincount(second, [p[2] for p in parts], minlength=n) / np.maximum(iops, 1)
    cells = np.concatenate(cells)
    quantiles = _quantiles(cells[:, 0], cells[:, 1], cells[:, 2], n)
    quantiles.pop("mean")
    partial = at_ms < n * WINDOW_MS - TAIL_MS
    return _seconds(start_ms or 0, iops, mean, quantiles, partial, "status", total, torn_bytes)


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
        zero_seconds=int((iops == 0).sum()),
        partial=bool(partial),
        source=source,
        directions=total["directions"],
        totals=total,
        torn_bytes=torn,
    )


def _empty(source: str, total: dict) -> Seconds:
    none = np.zeros(0, np.int64)
    return _seconds(0, none, none, {0.5: none, 0.99: none, 0.999: none, "max": none}, False, source, total, 0)
