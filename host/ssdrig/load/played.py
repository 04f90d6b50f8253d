"""Figures of a played trace, from its records and rows. Pure."""

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
    "all", "reads", "writes": {"ios", "bytes", "mean_us", "p99_us", "p999_us", "max_us", "over_10ms_percent",
    "over_100ms_percent"}, "not_known": {figure: why}}. Service time: from submission to end."""
    n, closed_why = len(records), "a closed play has no times to be late against"
    service_us, lag_us, kinds = np.empty(n, np.float32), np.empty(0 if closed else n, np.float32), np.empty(n, np.uint8)
    moved, until_ns, busy_ns = np.zeros(len(OPS), np.int64), t0_ns, 0
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
    bytes_ = int(moved[READ] + moved[WRITE])
    not_known = {"lag": closed_why} if closed else {}
    figures = {
        "ios": n,
        "bytes": bytes_,
        "time_s": (until_ns - t0_ns) / dilation / 1e9,
        "busy_s": busy_ns / dilation / 1e9,
        "data_rate_MBps": bytes_ / busy_ns * dilation * 1e3 if busy_ns else None,
        "lag": None if closed else _lag(lag_us),
    }
    for name, ops in (("all", (READ, WRITE)), ("reads", (READ,)), ("writes", (WRITE,))):
        chosen = service_us[np.isin(kinds, ops)]
        figures[name] = _service(chosen, sum(int(moved[op]) for op in ops), name, not_known)
    return figures | {"not_known": not_known}


def _busy_ns(issued: np.ndarray, done: np.ndarray, until_ns: int) -> int:
    """How long at least one I/O was in flight after until_ns. `issued` rises."""
    until = np.maximum.accumulate(done).clip(until_ns)
    before = np.concatenate([[until_ns], until[:-1]])
    return int((until - np.maximum(before, issued)).clip(0).sum())


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
