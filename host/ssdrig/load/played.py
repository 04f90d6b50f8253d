"""Figures of a played trace, from its records and rows. Pure."""

from bisect import bisect_right

import numpy as np

from ssdrig.load.traceform import OPS, READ, WRITE

RECORD = np.dtype([("intended_ns", "<i8"), ("issued_ns", "<i8"), ("done_ns", "<i8")])  # CLOCK_MONOTONIC
LATE_US = 1000
LAGS_MOST = 0.01  # share of I/Os later than that, above which the play was not as recorded
SLOW_MS = (10, 100)
AT_ONCE = 1 << 20
PERCENTILES = {"p99": (0.99, 1000), "p999": (0.999, 10_000)}  # of at least this many I/Os


def figures(rows: np.ndarray, records: np.ndarray, t0_ns: int, closed: bool, dilation: int = 1) -> dict:
    """Figures of the first len(records) rows, in drive time (ours / dilation); `records` has at least one.

    {"ios", "bytes" (read and written), "time_s" (from the trace's beginning to the last end),
    "busy_s" (with I/O under way), "data_rate_MBps" (bytes / busy_s), "lag": {"mean_us", "p99_us", "max_us",
    "late_percent" (of I/Os later than 1 ms), "as_recorded" (at most 1 % of them)} or None for a closed play,
    "depth", "trace_depth": {"mean", "max"} of I/Os under way with a read or write once those of its time are submitted,
    in the play and in the trace, None where that is not known,
    "all", "reads", "writes": {"ios", "bytes", "mean_us", "p99_us", "p999_us", "max_us", "over_10ms_percent",
    "over_100ms_percent"}, "not_known": {figure: why}}. Service time: from submission to end."""
    n, closed_why = len(records), "a closed play has no times to be late against"
    service_us, lag_us, kinds = np.empty(n, np.float32), np.empty(0 if closed else n, np.float32), np.empty(n, np.uint8)
    moved, until_ns, busy_ns = np.zeros(len(OPS), np.int64), t0_ns, 0
    depths, played_depth, trace_depth = _Depths(), _Mean(), _Mean()
    for first in range(0, n, AT_ONCE):  # a full Destroyer takes 1.2 GB so, and 3.5 GB in one piece
        part = slice(first, first + AT_ONCE)
        accepted, op, length = records[part], rows["op"][:n][part], rows["length_bytes"][:n][part]
        issued, done = accepted["issued_ns"], accepted["done_ns"]
        service_us[part], kinds[part] = (done - issued) / (dilation * 1e3), op
        if not closed:
            lag_us[part] = (issued - accepted["intended_ns"]) / (dilation * 1e3)
        moved += np.bincount(op, length, len(OPS)).astype(np.int64)
        busy_ns += _busy_ns(issued, done, until_ns)
        until_ns = max(until_ns, int(done.max()))
        last = first + len(issued)
        same = bisect_right(records["issued_ns"], issued[-1], last) - last  # of one call to the kernel with the last
        played_depth.add(depths.of(issued, done, same)[op <= WRITE])
        trace_depth.add(rows["depth"][:n][part][op <= WRITE])
    bytes_ = int(moved[READ] + moved[WRITE])
    not_known = {"lag": closed_why} if closed else {}
    figures = {
        "ios": n,
        "bytes": bytes_,
        "time_s": (until_ns - t0_ns) / dilation / 1e9,
        "busy_s": busy_ns / dilation / 1e9,
        "data_rate_MBps": bytes_ / busy_ns * dilation * 1e3 if busy_ns else None,
        "lag": None if closed else _lag(lag_us),
        "depth": played_depth.words(),
        "trace_depth": trace_depth.words() if trace_depth.least else None,
    }
    if not trace_depth.least:
        not_known["trace_depth"] = "the trace's depths are not known"
    for name, ops in (("all", (READ, WRITE)), ("reads", (READ,)), ("writes", (WRITE,))):
        chosen = service_us[np.isin(kinds, ops)]
        figures[name] = _service(chosen, sum(int(moved[op]) for op in ops), name, not_known)
    return figures | {"not_known": not_known}


def _busy_ns(issued: np.ndarray, done: np.ndarray, until_ns: int) -> int:
    """How long at least one I/O was in flight after until_ns. `issued` rises."""
    until = np.maximum.accumulate(done).clip(until_ns)
    before = np.concatenate([[until_ns], until[:-1]])
    return int((until - np.maximum(before, issued)).clip(0).sum())


class _Mean:
    """The mean, the least and the most of depths."""

    def __init__(self) -> None:
        self._n = self._sum = self._most = 0
        self.least: int | None = None

    def add(self, depths: np.ndarray) -> None:
        if len(depths):
            self._n, self._sum = self._n + len(depths), self._sum + int(depths.sum(dtype=np.int64))
            least, self._most = int(depths.min()), max(self._most, int(depths.max()))
            self.least = least if self.least is None else min(self.least, least)

    def words(self) -> dict | None:
        return {"mean": self._sum / self._n, "max": self._most} if self._n else None


class _Depths:
    """How many I/Os are under way with each one. `issued` rises from one part to the next."""

    def __init__(self) -> None:
        self._ends = np.zeros(0, np.int64)  # of those that are under way when a part begins

    def of(self, issued: np.ndarray, done: np.ndarray, same: int) -> np.ndarray:
        """Of each I/O of a part; `same`: how many after it were submitted with its last one."""
        ends = np.sort(np.concatenate([self._ends, done]))
        begun = np.searchsorted(issued, issued, "right") + np.where(issued == issued[-1], same, 0)
        depth = len(self._ends) + begun - np.searchsorted(ends, issued, "right")
        self._ends = ends[np.searchsorted(ends, issued[-1], "right") :]
        return np.maximum(depth, 1)


def _lag(lag_us: np.ndarray) -> dict:
    """Changes the order of lag_us."""
    late = float(np.mean(lag_us > LATE_US))
    return {
        "mean_us": float(lag_us.mean(dtype=float)),
        "max_us": float(lag_us.max()),
        "p99_us": float(np.quantile(lag_us, 0.99, overwrite_input=True)),
        "late_percent": 100 * late,
        "as_recorded": late <= LAGS_MOST,
    }


def _service(service_us: np.ndarray, moved: int, name: str, not_known: dict[str, str]) -> dict:
    """Changes the order of service_us."""
    n = len(service_us)
    out: dict[str, float | None] = {"ios": n, "bytes": moved}
    out["mean_us"] = float(service_us.mean(dtype=float)) if n else None
    for key, (share, least) in PERCENTILES.items():
        out[f"{key}_us"] = float(np.quantile(service_us, share, overwrite_input=True)) if n >= least else None
        if n < least:
            not_known[f"{name}.{key}_us"] = f"{n} I/Os: it takes {least}"
    out["max_us"] = float(service_us.max()) if n else None
    for slow_ms in SLOW_MS:
        out[f"over_{slow_ms}ms_percent"] = float(100 * np.mean(service_us > slow_ms * 1e3)) if n else None
    return out
