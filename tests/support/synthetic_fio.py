"""Writes what fio leaves of a step, byte by byte, from I/Os of each second and one latency."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ssdrig.load.fiotext import plat_ns, thin

HIST_BINS = 1856


def hist_bin(ns: int) -> int:
    """Index of fio's latency histogram (64 values a group, 6 bits) that holds `ns`."""
    if ns < 128:
        return ns
    shift = ns.bit_length() - 7
    return (shift + 1) * 64 + ((ns >> shift) - 64)


def hist_windows(iops) -> list[tuple[int, int]]:
    """(stamp in ms since the first I/O, count) of each row of fio's histogram log. The row of a window is written by
    the first completion after the window's end, which it counts too; after a stall the rows of all windows that had to
    wait are written one a completion. Here that first completion comes just when a window ends, or with the I/O after a
    stall."""
    rows, owed = [], 0
    for second, count in enumerate(iops):
        if count == 0:
            owed += 1
            continue
        # the window before the stall, then one row for each idle second, closed by the first I/O after it
        if owed and rows:
            before = rows.pop()
            at = second * 1000 + 500
            rows += [(at, before[1] + 1)] + [(at, 1)] * owed
            count -= owed + 1
        owed = 0
        rows.append(((second + 1) * 1000, count))
    if owed:  # nothing came to close the window before the last stall: fio never writes its row
        rows.pop()
    return rows


def step(
    folder: Path,
    started: dict,
    first_ns: int,
    iops,
    block: int,
    lat_ns: int,
    name: str,
    logs: bool = True,
    tail: Sequence[float] = (1.0,),
) -> None:
    """fio's files for one step: per-second logs without rows for idle seconds, cumulative JSON documents. started: t_ns
    and utc_ns of one moment. Without `logs` as of a long step: none, and of the documents what thin() leaves, with the
    latencies, in a hundred bins, once a minute. tail: shares of a second's I/O in the bin of lat_ns and in those behind
    it, by chance; the means stay lat_ns."""
    folder.mkdir(parents=True)
    (folder / "job.fio").write_text(f"[{name}]\n")
    (folder / "stderr.txt").write_text("")
    (folder / "start.json").write_text(json.dumps(started))
    first_ms, utc_ms = first_ns // 1_000_000, (first_ns - started["t_ns"] + started["utc_ns"]) // 1_000_000
    rows = {"iops": [], "bw": [], "clat": [], "lat": []}
    for i, count in enumerate(iops):
        t = first_ms + 1000 * (i + 1)
        if count:
            for kind, value in (("iops", count), ("bw", count * block // 1024), ("clat", lat_ns), ("lat", lat_ns)):
                rows[kind].append(f"{t}, {value}, 1, 0, 0")
    at = hist_bin(lat_ns)
    before, after, dice = ", 0" * at, ", 0" * (HIST_BINS - at - len(tail)), np.random.default_rng(at)
    rows["clat_hist"] = logs and [
        f"{first_ms + t}, 1, {block}{before}, {', '.join(map(str, dice.multinomial(count, tail)))}{after}"
        for t, count in hist_windows(iops)
    ]
    for kind, lines in rows.items() if logs else ():
        (folder / f"{name}_{kind}.1.log").write_text("".join(line + "\n" for line in lines))
    documents = []
    for end, total in enumerate(np.cumsum(iops, dtype=np.int64).tolist(), 1):
        runtime = end * 1000
        bins = {str(lat_ns): total}
        write = {
            "io_bytes": total * block,
            "total_ios": total,
            "runtime": runtime,
            "clat_ns": {
                "mean": float(lat_ns),
                "N": total,
                "percentile": {"99.000000": lat_ns, "99.900000": lat_ns},
                "bins": bins,
            },
            "lat_ns": {"mean": float(lat_ns), "N": total},
        }
        none = {"io_bytes": 0, "total_ios": 0, "runtime": 0, "clat_ns": {"N": 0, "bins": {}}}
        job = {"jobname": name, "error": 0, "job_runtime": runtime, "read": none, "write": write, "trim": none}
        document = {"fio version": "fio-3.33", "timestamp_ms": utc_ms + runtime, "jobs": [job]}
        if not logs:
            wide = plat_ns(np.arange(at, at + 100)).tolist()
            write["lat_ns"]["bins"] = {str(ns): total // 100 + (ns == wide[0]) * (total % 100) for ns in wide}
        documents.append(
            json.dumps(document) if logs else thin(document, first_ns + runtime * 1_000_000, end % 60 == 0)
        )
    (folder / "out.json").write_text("\n".join(documents) + "\n")
