"""What fio's bandwidth log states of a step with `detail = "fine"`: how much it had moved by when. Pure except `read`.

A row is (time stamp of its end, KiB/s, direction, bytes of the I/O). With log_avg_msec it covers several I/Os, and
those bytes are 0: fio takes the rate over the time since it looked last, and leaves a row without I/O out (stat.c,
add_bw_samples). The stamps are CLOCK_MONOTONIC, by log_alternate_epoch."""

from pathlib import Path

import numpy as np

from ssdrig.load.fioclock import LATEST_MS, ends, job_clock
from ssdrig.load.fiotext import rows, totals
from ssdrig.runs import integrity

LONGEST_MS = 1000  # a first row that is longer is not believed
MOST_STEPS = 20_000
LATE = 3  # fio looks this many times too late at most; in longer gaps it looked and there was no I/O


def read(folder: Path) -> tuple[np.ndarray, np.ndarray, str | None]:
    """(CLOCK_MONOTONIC ns, bytes moved until then), the first with 0 bytes; both empty without such a log, or
    none that makes sense, and why. Directions together; of one thread."""
    none = np.zeros(0, np.int64), np.zeros(0)
    logs = sorted(Path(folder).glob("*_bw.[0-9]*.log"))
    if len(logs) != 1:
        return *none, "fio left no fine log" if not logs else "a fine log needs one thread"
    try:
        log, torn = rows(integrity.content(logs[0]))
        head, tail, *_ = ends(Path(folder) / "out.json")
    except OSError as error:
        return *none, f"fio's fine log cannot be read: {error.strerror}"
    total = totals(tail[-1] if tail else None)
    begin_ms = job_clock(Path(folder), head, tail).start_ms
    return moved(log, total["bytes"], begin_ms) if not torn else (*none, "fio's fine log is torn")


def in_steps(at_ns: np.ndarray, done: np.ndarray, step_bytes: float, step_ms: int) -> np.ndarray:
    """Indices of read()'s rows that are both far enough after the previous one, and the last: the speed in
    shorter steps would be that of a few I/Os, or of the stamps' own steps."""
    if not len(at_ns):
        return np.zeros(0, np.int64)
    step_ns = max(step_ms * 1_000_000, int(at_ns[-1] - at_ns[0]) // MOST_STEPS)
    edges, at, last = [0], 0, len(at_ns) - 1
    while at < last:
        later = np.searchsorted(at_ns, at_ns[at] + step_ns), np.searchsorted(done, done[at] + step_bytes)
        at = min(last, int(max(later)))
        edges.append(at)
    return np.array(edges)


def moved(log: np.ndarray, total_bytes: int | None, begin_ms: int | None) -> tuple[np.ndarray, np.ndarray, str | None]:
    """From rows() of the log. Their sum is scaled to the job's `total_bytes`."""
    none = np.zeros(0, np.int64), np.zeros(0)
    stamps, rates, sizes = (np.asarray(log[:, i], np.int64) for i in (0, 1, 3)) if len(log) else (*none, none[0])
    if len(stamps) < 2 or stamps[0] == stamps[-1] or not total_bytes:
        return *none, "fio's fine log has no two rows"
    at_ms, first = np.unique(stamps, return_index=True)
    if (np.diff(stamps) < 0).any() or at_ms[0] < 0 or at_ms[-1] > LATEST_MS or (log < 0).any():
        return *none, "fio's fine log makes no sense"
    usual_ms = float(np.median(np.diff(at_ms)))
    if begin_ms is None or not 0 < at_ms[0] - begin_ms <= LONGEST_MS:
        begin_ms = int(at_ms[0]) - max(1, round(usual_ms))
    at_ms = np.concatenate([[begin_ms], at_ms])
    filled = (sizes > 0).all()
    by = np.add.reduceat(np.asarray(sizes if filled else rates, float), first)  # of reads and writes of a mix
    if not filled:
        took_ms = np.diff(at_ms)
        by *= np.where(took_ms > LATE * usual_ms, usual_ms, took_ms)
    done = np.concatenate([[0.0], np.cumsum(by)])
    if not done[-1] > 0:
        return *none, "fio's fine log counts no bytes"
    return at_ms * 1_000_000, done * (total_bytes / done[-1]), None
