"""Read what fio wrote: a step's folder -> I/Os, bytes and latency of each second, on a 1-s grid. Pure except `load`.

How fio 3.x writes its histogram log (stat.c, add_clat_sample), which decides where an I/O is counted here: windows are
exactly 1000 ms long and follow each other without drift from the first completion L0 on. The k-th row is written by the
first completion at or after the end of window k and holds all completions since the row before, so of its n I/Os
n - 1 completed inside window k and one, the closing I/O, at the row's time stamp. After a stall of several
windows the rows catch up, one each completion, all stamped alike. Hence L0 = min(stamp_k - 1000 (k + 1)), window k
is second k, and a second without I/O is seen as one, although the row of the window before it is stamped after it.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ssdrig.base.errors import LoadError
from ssdrig.load.fioclock import LATEST_MS, LONGEST_HANG_S, UNKNOWN_MS, ends, error_ms, job_clock
from ssdrig.load.fioseconds import TAIL_MS, WINDOW_MS, Seconds, Senseless, empty, quantiles, seconds
from ssdrig.load.fiostatus import from_status
from ssdrig.load.fiotext import BINS, DIRECTIONS, bins, documents, hist_rows, rows, totals
from ssdrig.runs import integrity

LATE_MS = 1  # a closing I/O that came later than this is counted in the second of its stamp, not of its row
LATER_MS = 250  # most age of a document's counts


def load(folder, direction: str | None = None) -> Seconds:
    """Read a step's folder. `direction` "read", "write" or "trim"; None sums over them.

    Raises LoadError when there is nothing to read, or nothing that makes sense."""
    folder = Path(folder)
    try:
        head, tail, left_bytes, odd = ends(folder / "out.json")
        logs = {p.name: integrity.content(p) for p in sorted(folder.glob("*_clat_hist.[0-9]*.log"))}
        means = {
            kind: {p.name: rows(integrity.content(p)) for p in sorted(folder.glob(f"*_{kind}.[0-9]*.log"))}
            for kind in ("lat", "slat")
        }
    except OSError as error:
        raise LoadError(f"readable files in {folder}", error.strerror or str(error), "check their rights") from error
    parsed = [hist_rows(log) for log in logs.values()]
    lats, slats = ([figure for figure, _ in of_kind.values()] for of_kind in means.values())
    last = tail[-1] if tail else None
    clock = job_clock(folder, head, tail)
    notes = list(clock.notes)
    if left_bytes:
        notes.append(f"{left_bytes} bytes at the end of out.json are not a complete document and were not used")
    if odd:
        notes.append(f"{odd} documents of out.json are not as fio writes them and were not used")
    torn = sum(t for _, _, t in parsed)
    odd_bytes = {name: t for name, (_, _, t) in zip(logs, parsed, strict=True)}
    odd_bytes |= {name: t for of_kind in means.values() for name, (_, t) in of_kind.items()}
    notes += [f"{name}: {t} bytes are not as fio writes them and were not used" for name, t in odd_bytes.items() if t]
    whole = not any(odd_bytes.values())
    if not whole:
        lats, slats = [], []
    if any(len(heads) for heads, _, _ in parsed) and (whole or not last):
        try:
            read = from_logs(
                parsed,
                lats,
                slats,
                last,
                clock.start_ms,
                clock.begun_ms,
                direction,
                tail,
                _block_bytes(list(logs.values())),
                clock.earliest_ms,
                clock.error_ms,
            )
            return replace(read, notes=(*notes, *read.notes), clock_notes=clock.notes)
        except Senseless as error:
            if last is None:
                raise LoadError(f"logs of one fio run in {folder}", str(error), "the file is damaged") from None
            notes.append(f"{error}; the documents were used instead")
    elif last and not whole:
        notes.append("the documents were used instead of fio's logs")
    if last is None:
        raise LoadError(
            f"fio's logs or status documents in {folder}", "neither", "the step did no I/O; see its stderr.txt"
        )
    document = documents(integrity.content(folder / "out.json").decode(errors="replace"))[0]
    try:
        read = from_status(document, clock.start_ms, direction, torn)
    except Senseless as error:
        raise LoadError(f"documents of one fio run in {folder}", str(error), "out.json is damaged") from None
    return replace(read, notes=(*notes, *read.notes), clock_notes=clock.notes, start_error_ns=1e6 * clock.error_ms)


def _block_bytes(logs: list[bytes]) -> int:
    """The block size in the first row of the logs, 0 without one."""
    match = re.match(rb"[^,\n]*,[^,\n]*, *(\d+) *,", next((log for log in logs if log), b""))
    return int(match[1]) if match else 0


def _cut_short(edge_ms: float, counted: int, total: dict, tail: Sequence[dict], direction: str | None) -> None:
    """Raise Senseless if the log has fewer rows than fio wrote: I/O that completed after the last row's stamp and
    after the following window (edge_ms since job start) would have made one more.

    counted: I/Os in the rows. A document that counts fewer is from before the last row, whatever its run time: that of
    a thread which has not begun is the machine's (see fioclock.is_of_the_job)."""
    counts = [totals(d, direction) for d in tail]
    after = [now["ios"] for now in counts if now["runtime_ms"] > edge_ms + LATER_MS and now["ios"] >= counted]
    if after and min(after) < total["ios"]:
        raise Senseless("fio's histogram log ends before its documents stop counting")


def from_logs(
    hists,
    lats,
    slats,
    last: dict | None,
    start_ms: int | None = None,
    begun_ms: int | None = None,
    direction: str | None = None,
    tail: Sequence[dict] = (),
    block_bytes: int = 0,
    earliest_ms: int | None = None,
    start_error_ms: float = UNKNOWN_MS,
) -> Seconds:
    """Seconds from hist_rows() of each job's log, rows() of each lat and slat log, the last document and the known
    of the job's clock (see fioclock.job_clock; when all rows of a very slow drive are late, L0 is known from there
    only).

    `start_error_ms`: by how much start_ms may be off. `earliest_ms`: when fio was started; without it the job's clock
    is not believed to be late by more than a window.
    `tail`: the last documents, against which the log's end is checked. Where the last document holds less than the
    rows, its totals are those of a torn file: they are None then, and `notes` states it."""
    total = totals(last, direction)
    streams = []
    for heads, cells, _ in hists:
        if len(heads) and heads[:, 1].max() >= len(DIRECTIONS):
            raise Senseless("fio's histogram log names a direction that there is not")
        for d in np.unique(heads[:, 1]):
            if direction in (None, DIRECTIONS[d]):
                stamps, own = _stream(heads, cells, d)
                origin = int((stamps - WINDOW_MS * np.arange(1, len(stamps) + 1)).min())
                streams.append((d, stamps, own, origin if begun_ms is None else min(origin, begun_ms)))
    if not streams:
        return empty("logs", total)
    for _, stamps, _, origin in streams:
        span_ms = stamps.max() - origin
        if (
            stamps.min() < 0
            or stamps.max() > LATEST_MS
            or (np.diff(stamps) < 0).any()
            or span_ms > WINDOW_MS * (2 * len(stamps) + LONGEST_HANG_S)
        ):
            raise Senseless("the time stamps of fio's histogram log make no sense")
    zero_ms = min(origin for *_, origin in streams)
    longest = max(len(stamps) for _, stamps, *_ in streams)
    if max(origin for *_, origin in streams) - zero_ms > WINDOW_MS * (LONGEST_HANG_S + longest):
        raise Senseless("fio's histogram logs cover different times")
    if start_ms is not None:
        since_ms = start_ms - WINDOW_MS if earliest_ms is None else min(earliest_ms, start_ms)
        if not since_ms <= zero_ms <= start_ms + WINDOW_MS * LONGEST_HANG_S:
            raise Senseless("fio's histogram log and its documents cover different times")
        start_ms = min(start_ms, zero_ms)  # all documents came late
        if last and len(streams) == 1:
            _, stamps, own, origin = streams[0]
            # a busy host takes all documents late: the job may have begun any time since fio was started
            edge_ms = max(int(stamps[-1]), origin + WINDOW_MS * (len(stamps) + 1)) - min(since_ms, start_ms)
            _cut_short(edge_ms, int(own[:, 2].sum()), total, tail, direction)
    if start_ms is not None and zero_ms >= start_ms + WINDOW_MS:
        zero_ms = start_ms + (zero_ms - start_ms) % WINDOW_MS
    cells, moved, last_rows = [], set(), []
    for _, stamps, own, origin in streams:
        shift = round((origin - zero_ms) / WINDOW_MS)
        last_rows.append(shift + len(stamps))
        moves = _late(stamps, own, origin, zero_ms, shift)
        moved |= set(moves[:, 0].tolist())
        cells += [own + (shift, 0, 0), moves]
    cells = np.concatenate(cells)
    counted, closed = int(cells[:, 2].sum()), max(last_rows)
    n = max(closed, int(cells[:, 0].max()) + 1)
    end_ms = (zero_ms if start_ms is None else start_ms) + total["runtime_ms"]
    # threads begin apart, and the document's run time is the longest of any: the last window of one that began late may
    # come after it
    over_ms = min(zero_ms + WINDOW_MS * closed, min(origin for *_, origin in streams) + WINDOW_MS * longest)
    # a row is closed by the first I/O after its second: where all came late, the first second began earlier
    early_ms = 0 if start_ms is None else zero_ms - start_ms
    why = _disagreement(total if last else None, counted, closed, end_ms - over_ms, early_ms)
    if why:
        known, end_ms = total, zero_ms + WINDOW_MS * closed
        mean_bytes = known["bytes"] / known["ios"] if known["ios"] else block_bytes
        total = totals(None) | {"ios": counted, "bytes": round(counted * mean_bytes), "runtime_ms": WINDOW_MS * closed}
        total["directions"] = tuple(DIRECTIONS[d] for d in sorted({d for d, *_ in streams}))
        last = None
    elif max(int(stamps[-1]) for _, stamps, _, _ in streams) > end_ms + WINDOW_MS:
        raise Senseless("fio's histogram log goes on after the job's end")
    elif len(streams) > 1:
        latest_ms = max(origin + WINDOW_MS * len(stamps) for _, stamps, _, origin in streams)
        end_ms = max(end_ms, min(latest_ms, zero_ms + WINDOW_MS * closed))
    rest = max(0, total["ios"] - counted)
    if end_ms - zero_ms - WINDOW_MS * (n - 1) < TAIL_MS:
        # the last closing I/O came just past the end of its second, and the job ended there: not a separate second
        n -= 1
        cells[:, 0] = np.minimum(cells[:, 0], n - 1)
    extra, partial = _tail(end_ms - zero_ms - WINDOW_MS * n)
    partial = partial or end_ms - zero_ms < WINDOW_MS * n - TAIL_MS
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
    levels = quantiles(cells, n)
    mean = levels.pop("mean")
    if len(lats) == len(streams) == 1:  # lat = slat + clat, and the histogram has clat
        lat, slat = (log[log[:, 2] == streams[0][0]] for log in (lats[0], slats[0] if slats else lats[0][:0]))
        latest_ms = end_ms + WINDOW_MS * (LONGEST_HANG_S if why else 1)
        if not (_in_time(lat, zero_ms, latest_ms) and _in_time(slat, zero_ms, latest_ms)):
            raise Senseless("the rows of fio's log of mean latencies make no sense")
        mean = _lat_means(lat, zero_ms, mean + _nearest(slat, zero_ms, n), moved)
    torn = sum(torn for *_, torn in hists)
    made = seconds(zero_ms, iops, np.where(iops > 0, mean, 0), levels, partial, "logs", total, torn)
    late_ms = np.concatenate([stamps - WINDOW_MS * np.arange(1, len(stamps) + 1) for _, stamps, *_ in streams])
    by_documents_ms = UNKNOWN_MS if start_ms is None else zero_ms - start_ms + start_error_ms
    made = replace(made, start_error_ns=1e6 * min(error_ms(late_ms.tolist()), by_documents_ms))
    if why:
        made = replace(made, totals=total | dict.fromkeys(("ios", "bytes", "lat_sum_ns", "slat_sum_ns")), notes=(why,))
    return made


def _disagreement(total: dict | None, counted: int, closed: int, behind_ms: int, early_ms: int = 0) -> str | None:
    """Why the totals of the last document are not those of a job whose log counts this many I/Os in this many seconds,
    and which went on for behind_ms after the last of them, or for up to early_ms longer."""
    if total is None:
        return "out.json has no whole document; totals are not known"
    if counted <= total["ios"] and -TAIL_MS - early_ms <= behind_ms <= WINDOW_MS * LONGEST_HANG_S:
        return None
    return (
        f"the last whole document of out.json counts {total['ios']} I/Os in {total['runtime_ms'] / 1000:.1f} s, fio's"
        f" log {counted} in {closed} s; totals are not known"
    )


def _stream(heads, cells, direction: int) -> tuple[np.ndarray, np.ndarray]:
    """Time stamps and cells (row, bin, count) of one direction of a log, its rows numbered from 0."""
    own = np.flatnonzero(heads[:, 1] == direction)
    if len(own) == len(heads):
        return heads[:, 0], cells
    cells = cells[np.isin(cells[:, 0], own)]
    cells[:, 0] = np.searchsorted(own, cells[:, 0])
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
    """Further seconds that a job which ran that much longer than the last counted one has, and whether the last is
    partial."""
    if tail_ms < TAIL_MS:
        return 0, False
    extra = -(-(tail_ms - TAIL_MS) // WINDOW_MS) or 1
    return extra, tail_ms < WINDOW_MS * extra - TAIL_MS


def _lat_means(log: np.ndarray, zero_ms: int, fallback: np.ndarray, moved: set) -> np.ndarray:
    """Mean latency of each second from rows of a lat log, exact; `fallback` where a closing I/O was `moved`, or where
    the log has no row. Rows are stamped at the end of a second; a second row of it is the rest at the job's
    end."""
    mean, seen = fallback.copy(), set(moved)
    at = np.rint((log[:, 0] - zero_ms) / WINDOW_MS).astype(np.int64) - 1
    for second, value in zip(at.tolist(), log[:, 1], strict=True):
        if 0 <= second < len(mean) and second not in seen:
            mean[second] = value
            seen.add(second)
    return mean


def _in_time(log: np.ndarray, zero_ms: int, latest_ms: int) -> bool:
    """Whether the rows of a log of means lie in the order of time within the job, and no mean is longer than it."""
    stamps, values = log[:, 0], log[:, 1]
    if not len(log):
        return True
    inside = zero_ms - WINDOW_MS <= stamps[0] and stamps[-1] <= latest_ms and (np.diff(stamps) >= 0).all()
    return bool(inside and values.max() <= (latest_ms - zero_ms + WINDOW_MS) * 1_000_000)


def _nearest(log: np.ndarray, zero_ms: int, n: int) -> np.ndarray:
    """For each of n seconds, the value of the log's row that is stamped nearest its end; 0 where the log has no
    rows."""
    if not len(log):
        return np.zeros(n)
    ends_ms = zero_ms + WINDOW_MS * np.arange(1, n + 1)
    middles_ms = (log[1:, 0] + log[:-1, 0]) / 2
    return log[np.searchsorted(middles_ms, ends_ms), 1].astype(float)
