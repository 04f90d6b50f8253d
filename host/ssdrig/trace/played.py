"""Figures of a played trace, from its records and rows. Pure."""

import numpy as np

from ssdrig.trace.form import READ, WRITE

LATE_NS = 1_000_000
LAGS_MOST = 0.01  # share of I/Os later than that, above which the play was not as recorded
SLOW_NS = (10_000_000, 100_000_000)
PERCENTILES = {"p99": (0.99, 1000), "p999": (0.999, 10_000)}  # of at least so many I/Os


def figures(rows: np.ndarray, records: np.ndarray, t0_ns: int, closed: bool, dilation: int = 1) -> dict:
    """Of the first len(records) rows, times in the drive's own (ours / dilation); `records` has one at least.

    {"ios", "bytes" (read and written), "time_s" (from the trace's beginning to the last end),
    "busy_s" (with I/O under way), "data_rate_MBps" (bytes / busy_s), "lag": {"mean_us", "p99_us", "max_us",
    "late_percent" (of I/Os later than 1 ms), "as_recorded" (at most 1 % of them)} or None for a closed play,
    "all", "reads", "writes": {"ios", "bytes", "mean_us", "p99_us", "p999_us", "max_us", "over_10ms_percent",
    "over_100ms_percent"}, "not_known": {figure: why}}. Service time: from submission to end."""
    rows = rows[: len(records)]
    op, length = np.array(rows["op"]), np.array(rows["length_bytes"], np.int64)
    length[op > WRITE] = 0
    issued, done = np.array(records["issued_ns"]), np.array(records["done_ns"])
    service = (done - issued) / dilation
    busy_ns = _busy_ns(issued, done) / dilation
    not_known: dict[str, str] = {}
    found = {
        "ios": len(rows),
        "bytes": int(length.sum()),
        "time_s": float((done.max() - t0_ns) / dilation / 1e9),
        "busy_s": busy_ns / 1e9,
        "data_rate_MBps": float(length.sum() / busy_ns * 1e3) if busy_ns else None,
        "lag": None if closed else _lag(issued - records["intended_ns"], dilation),
    }
    if closed:
        not_known["lag"] = "a closed play has no times to be late against"
    for name, chosen in (("all", op <= WRITE), ("reads", op == READ), ("writes", op == WRITE)):
        found[name] = _service(service[chosen], int(length[chosen].sum()), name, not_known)
    return found | {"not_known": not_known}


def _busy_ns(issued: np.ndarray, done: np.ndarray) -> int:
    """How long at least one I/O was under way. `issued` rises."""
    until = np.maximum.accumulate(done)
    before = np.concatenate([issued[:1], until[:-1]])
    return int((until - np.maximum(before, issued)).clip(0).sum())


def _lag(lag_ns: np.ndarray, dilation: int) -> dict:
    late = float(np.mean(lag_ns > LATE_NS * dilation))
    return {
        "mean_us": float(lag_ns.mean() / dilation / 1e3),
        "p99_us": float(np.quantile(lag_ns, 0.99) / dilation / 1e3),
        "max_us": float(lag_ns.max() / dilation / 1e3),
        "late_percent": 100 * late,
        "as_recorded": late <= LAGS_MOST,
    }


def _service(service_ns: np.ndarray, moved: int, name: str, not_known: dict[str, str]) -> dict:
    n = len(service_ns)
    out: dict[str, float | None] = {"ios": n, "bytes": moved}
    out["mean_us"] = float(service_ns.mean() / 1e3) if n else None
    for key, (share, least) in PERCENTILES.items():
        out[f"{key}_us"] = float(np.quantile(service_ns, share) / 1e3) if n >= least else None
        if n < least:
            not_known[f"{name}.{key}_us"] = f"{n} I/Os: it takes {least}"
    out["max_us"] = float(service_ns.max() / 1e3) if n else None
    for slow in SLOW_NS:
        out[f"over_{slow // 1_000_000}ms_percent"] = float(100 * np.mean(service_ns > slow)) if n else None
    return out
