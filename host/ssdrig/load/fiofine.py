"""What fio's bandwidth log says of a step with `detail = "fine"`: how much it had moved by when. Pure but for `read`.

With log_avg_msec a row is (time stamp at its end, KiB/s since the row before, direction, …); fio takes the rate over
the time that has passed (stat.c, add_bw_samples). The stamps are CLOCK_MONOTONIC, by log_alternate_epoch."""

from pathlib import Path

import numpy as np

from ssdrig.load.fioclock import LATEST_MS, ends, job_clock
from ssdrig.load.fiojob import FINE_MS
from ssdrig.load.fiotext import rows, totals

LONGEST_MS = 1000  # a first row that is longer is not believed


def read(folder: Path) -> tuple[np.ndarray, np.ndarray, str | None]:
    """(CLOCK_MONOTONIC ns, bytes moved until then), the first with 0 bytes; both empty where there is no such log, or
    none that makes sense, and why. Directions together; of one thread."""
    none = np.zeros(0, np.int64), np.zeros(0)
    logs = sorted(Path(folder).glob("*_bw.[0-9]*.log"))
    if len(logs) != 1:
        return *none, "fio left no fine log" if not logs else "a fine log is of one thread"
    try:
        log, torn = rows(logs[0].read_bytes())
        head, tail, *_ = ends(Path(folder) / "out.json")
    except OSError as error:
        return *none, f"fio's fine log cannot be read: {error.strerror}"
    total = totals(tail[-1] if tail else None)
    begin_ms = job_clock(Path(folder), head, tail).start_ms
    return moved(log, total["bytes"], begin_ms) if not torn else (*none, "fio's fine log is torn")


def moved(log: np.ndarray, total_bytes: int | None, begin_ms: int | None) -> tuple[np.ndarray, np.ndarray, str | None]:
    """Of rows() of the log. The sum of what the rows say is made that of the job: `total_bytes`."""
    none = np.zeros(0, np.int64), np.zeros(0)
    stamps, rates = (np.asarray(log[:, i], np.int64) for i in (0, 1)) if len(log) else none
    if len(stamps) < 2 or not total_bytes:
        return *none, "fio's fine log has no two rows"
    at_ms, first = np.unique(stamps, return_index=True)
    rates = np.add.reduceat(rates, first)  # of reads and writes of a mix
    if (np.diff(stamps) < 0).any() or at_ms[0] < 0 or at_ms[-1] > LATEST_MS or (rates < 0).any():
        return *none, "fio's fine log makes no sense"
    if begin_ms is None or not 0 < at_ms[0] - begin_ms <= LONGEST_MS:
        begin_ms = int(at_ms[0]) - FINE_MS
    at_ms = np.concatenate([[begin_ms], at_ms])
    done = np.concatenate([[0.0], np.cumsum(rates * np.diff(at_ms) * 1.024)])
    if not done[-1] > 0:
        return *none, "fio's fine log counts no bytes"
    return at_ms * 1_000_000, done * (total_bytes / done[-1]), None
