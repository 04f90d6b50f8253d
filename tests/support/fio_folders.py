"""For tests of fio's logs: a step's folder as fio writes it."""

import json
from pathlib import Path

import numpy as np

from ssdrig.load import fiotext

RECORDED = Path(__file__).parents[1] / "data" / "fio-3.33-stall"
START_MS = 5_000_000  # CLOCK_MONOTONIC at job start in made-up logs
UTC_MINUS_MONOTONIC_MS = 1_790_000_000_000


def fio_plat_index(ns: int) -> int:
    """The bin of a latency as fio's plat_val_to_idx finds it: most significant bit, error bits, base and offset."""
    msb = ns.bit_length() - 1
    if msb <= 6:
        return ns
    error_bits = msb - 6
    return min(((error_bits + 1) << 6) + ((64 - 1) & (ns >> error_bits)), 29 * 64 - 1)


def write_step(
    folder: Path, io, runtime_ms: int, *, started=True, name="load", block=4096, number=1, documents=True
) -> Path:
    """A step's folder as fio 3.33 leaves it. io = [(ms since job start, latency ns, direction)] in order of completion;
    the loops below follow add_clat_sample and add_log_sample of stat.c."""
    folder.mkdir(parents=True, exist_ok=True)
    hist, lat = [], []
    bins, since, last, window, last_ms = {}, {}, {}, {}, {}
    for ms, ns, d in io:
        elapsed = int(ms)
        window.setdefault(d, []).append(ns)
        if elapsed - last_ms.get(d, 0) >= 1000:
            lat.append((elapsed, round(np.mean(window[d])), d))
            window[d], last_ms[d] = [], elapsed - elapsed % 1000
        bins.setdefault(d, np.zeros(fiotext.BINS, int))[fio_plat_index(ns)] += 1
        if not last.get(d):
            last[d] = elapsed
        if elapsed - last[d] >= 1000:
            hist.append((elapsed, d, bins[d] - since.get(d, 0)))
            since[d] = bins[d].copy()
            last[d] += 1000
    for d, rest in window.items():
        if rest:
            lat.append((runtime_ms, round(np.mean(rest)), d))
    text = "".join(f"{START_MS + t}, {d}, {block}, {', '.join(map(str, row))}\n" for t, d, row in hist)
    (folder / f"{name}_clat_hist.{number}.log").write_text(text)
    (folder / f"{name}_lat.{number}.log").write_text("".join(f"{START_MS + t}, {v}, {d}, 0, 0\n" for t, v, d in lat))
    if documents:
        write_documents(folder, io, runtime_ms, block)
    if started:
        start = {"t_ns": (START_MS - 250) * 10**6, "utc_ns": (START_MS - 250 + UTC_MINUS_MONOTONIC_MS) * 10**6}
        (folder / "start.json").write_text(json.dumps(start))
    return folder


def document(io, upto_ms: int, block=4096) -> dict:
    job = {"jobname": "load", "error": 0, "job_runtime": upto_ms}
    for d, name in enumerate(fiotext.DIRECTIONS):
        done = [ns for ms, ns, direction in io if direction == d and int(ms) <= upto_ms]
        bins = {}
        for ns in done:
            middle = str(int(fiotext.plat_ns(fio_plat_index(ns))))
            bins[middle] = bins.get(middle, 0) + 1
        job[name] = {
            "io_bytes": block * len(done),
            "total_ios": len(done),
            "clat_ns": {"N": len(done), "bins": bins},
            "lat_ns": {"N": len(done), "mean": float(np.mean(done)) if done else 0.0},
        }
    return {"fio version": "fio-3.33", "timestamp_ms": START_MS + UTC_MINUS_MONOTONIC_MS + upto_ms, "jobs": [job]}


def write_documents(folder: Path, io, runtime_ms: int, block=4096) -> None:
    ends = [*range(900, runtime_ms, 1000)[:10], runtime_ms]
    text = "".join(json.dumps(document(io, end, block), indent=2) + "\n" for end in ends)
    (folder / "out.json").write_text("fio: connected to NBD server\n" + text)


def steady(seconds: float, iops: int, ns: int = 1_000_000, d: int = 1, first_ms: float = 1.0):
    """The first completion at first_ms opens fio's windows; the others lie half a period away from their edges."""
    return [(first_ms + (i and i + 0.5) * 1000 / iops, ns, d) for i in range(round(seconds * iops))]


def near(iops, want) -> bool:
    """A closing I/O up to 1 ms late is counted one second early; a second without I/O is exact all the same."""
    return len(iops) == len(want) and all(
        got == w if w == 0 else abs(got - w) <= 1 for got, w in zip(iops, want, strict=True)
    )
