"""Seconds of a fio step from the documents that it prints once a second. Pure."""

from dataclasses import replace

import numpy as np

from ssdrig.load.fioclock import LONGEST_HANG_S
from ssdrig.load.fioseconds import QUANTILES, TAIL_MS, WINDOW_MS, Seconds, Senseless, empty, quantiles, seconds
from ssdrig.load.fiotext import BINS, DIRECTIONS, bins, totals

PAUSE_MS = 1500  # documents further apart than this: all I/O hung in between
LONGEST_DETAIL_MS = 65_000  # percentiles over longer times are not shown as a second's


def from_status(documents: list[dict], start_ms: int | None, direction: str | None, torn_bytes: int = 0) -> Seconds:
    """Seconds from the once-a-second documents alone: by choice for long steps (Job.detail), and the remains when fio
    was killed, because it writes its logs at its end, or when its logs are torn.

    I/Os of the time between two documents are spread evenly over it; those of a longer pause (fio prints nothing while
    all its I/O hangs) over its first second. The percentiles of a second are those of the time between the two
    documents with histograms around its middle, if that is no longer than a minute, otherwise 0."""
    if not documents:
        return empty("status", totals(None))
    ordered, left = _in_order(documents, direction)
    at_ms = np.array([0, *(now["runtime_ms"] for now, _ in ordered)], np.int64)
    n = max(1, -(-(int(at_ms[-1]) - TAIL_MS) // WINDOW_MS))
    if n > 2 * len(ordered) + LONGEST_HANG_S:
        raise Senseless(f"{len(ordered)} documents, the last after {at_ms[-1] / 1000:.0f} s")
    knots_ms, ios, lat_ns = [0.0], [0.0], [0.0]
    for before_ms, (now, _) in zip(at_ms.tolist(), ordered, strict=False):
        if now["runtime_ms"] - before_ms > PAUSE_MS:
            knots_ms.append(before_ms + WINDOW_MS)
            ios.append(now["ios"])
            lat_ns.append(now["lat_sum_ns"])
        knots_ms.append(now["runtime_ms"])
        ios.append(now["ios"])
        lat_ns.append(now["lat_sum_ns"])
    edges_ms = WINDOW_MS * np.arange(n + 1.0)
    edges_ms[-1] = np.inf  # a tail belongs to the last second
    iops = np.diff(np.rint(np.interp(edges_ms, knots_ms, ios)).astype(np.int64))
    mean = np.diff(np.interp(edges_ms, knots_ms, lat_ns)) / np.maximum(iops, 1)
    of_status = _status_quantiles(ordered, direction, np.where(iops > 0, edges_ms[:-1] + WINDOW_MS / 2, np.nan))
    partial = int(at_ms[-1]) < n * WINDOW_MS - TAIL_MS
    notes = (f"{left} documents that do not follow the one before were not used",) if left else ()
    made = seconds(
        start_ms or 0, iops, np.where(iops > 0, mean, 0), of_status, partial, "status", ordered[-1][0], torn_bytes
    )
    return replace(made, notes=notes, hist_of=_kind(ordered).removesuffix("_ns"))


def _kind(ordered) -> str:
    """The histograms that documents have: "lat_ns", which our own status lines keep, otherwise "clat_ns"."""
    return "lat_ns" if any(_has_bins(document, "lat_ns") for _, document in ordered) else "clat_ns"


def _has_bins(document: dict, kind: str) -> bool:
    return any(((job.get(d) or {}).get(kind) or {}).get("bins") for job in document["jobs"] for d in DIRECTIONS)


def _in_order(documents: list[dict], direction: str | None) -> tuple[list[tuple[dict, dict]], int]:
    """(totals, document) of those documents in which no count is less than in the one before, and how many others there
    are. A damaged count that is too high is not less than any before it, but more than all after it: of the orders
    from either end the one that keeps more documents is taken. Documents before the first I/O do not count among the
    others: of threads that begin one after the other the mean run time falls until all have begun."""
    pairs = _begun([(totals(document, direction), document) for document in documents])
    forth = _rising(pairs, 1)
    back = _rising(pairs[::-1], -1)[::-1] if len(forth) < len(pairs) else forth
    longer = back if len(back) > len(forth) else forth
    return longer, len(pairs) - len(longer)


def _begun(pairs: list[tuple[dict, dict]]) -> list[tuple[dict, dict]]:
    """Without those that have no I/O and a longer run time than a later one."""
    begun: list[tuple[dict, dict]] = []
    least = None
    for now in reversed(pairs):
        if now[0]["ios"] or least is None or now[0]["runtime_ms"] <= least:
            begun.append(now)
            least = now[0]["runtime_ms"] if least is None else min(least, now[0]["runtime_ms"])
    return begun[::-1]


def _rising(pairs: list[tuple[dict, dict]], sign: int) -> list[tuple[dict, dict]]:
    """Documents without a count less (sign -1: more) than in the previous accepted one."""
    rising: list[tuple[dict, dict]] = []
    for now in pairs:
        if not rising or all(sign * (now[0][key] - rising[-1][0][key]) >= 0 for key in ("ios", "bytes", "runtime_ms")):
            rising.append(now)
    return rising


def _status_quantiles(ordered, direction: str | None, middles_ms: np.ndarray) -> dict:
    """Percentiles (see _quantiles) of the seconds with these middles (not-a-number: without I/O), from the histograms
    of documents."""
    held, kind = [(0, np.zeros(BINS, np.int64))], _kind(ordered)
    for now, document in ordered:
        if not _has_bins(document, kind):
            continue
        counts = bins(document, direction, kind)
        if counts.any() and (counts >= held[-1][1]).all():
            held.append((now["runtime_ms"], counts))
    n = len(middles_ms)
    ends_ms = np.array([ms for ms, _ in held])
    of = np.searchsorted(ends_ms, middles_ms, "left")  # NaN sorts after all of them
    of = np.where(of >= len(held), 0, of)
    if of[-1] == 0 and np.isfinite(middles_ms[-1]):
        of[-1] = len(held) - 1  # a last second shorter than half
    nothing = np.array([], np.int64).reshape(-1, 3)
    cells, placed = [nothing], [nothing]
    for i in range(1, len(held)):
        new = held[i][1] - held[i - 1][1]
        there = np.flatnonzero(new)
        second = min(n - 1, int(ends_ms[i - 1] + min(ends_ms[i], ends_ms[i - 1] + WINDOW_MS)) // 2 // WINDOW_MS)
        placed.append(np.stack([np.full(len(there), second), there, new[there]], axis=1))
        if ends_ms[i] - ends_ms[i - 1] <= LONGEST_DETAIL_MS:
            cells.append(placed[-1] + np.array([i - second, 0, 0]))
    levels = quantiles(np.concatenate(cells), len(held))
    return {q: levels[q][of] for q in (*QUANTILES, "max")} | {"hist": quantiles(np.concatenate(placed), n)["hist"]}
