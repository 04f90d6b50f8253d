"""What the plots of a report show, as CSV with all digits, of each run: seconds, cells below the second, samples around
moments, and the latency histogram. Made from the data, not from what a page packs."""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from ssdrig.files import write_atomically
from ssdrig.report.plates import upper_us
from ssdrig.words import as_cell, unique


def tables(data) -> Iterator[tuple[str, list[str], Iterable]]:
    """(name, columns, rows) of a run (analysis.RunData)."""
    n = len(data.iops)
    none = np.full(n, np.nan)
    columns = {
        "iops": data.iops,
        "bw_Bps": data.bw_Bps,
        "lat_mean_us": data.lat_mean_us,
        "clat_p99_us": data.lat_p99_us,
        "power_mean_W": data.power_mean_W,
        "power_min_W": data.power_min_W,
        "power_max_W": data.power_max_W,
        "energy_J": data.energy_J,
        **{f"power_mean_W {rail.name}": rail.power_mean_W for rail in data.rails if len(data.rails) > 1},
    }
    found = [values if len(values) == n else none for values in columns.values()]
    yield "seconds", ["t_s", *columns], zip(range(n), *found, strict=True)
    if len(data.fine_mean_W):
        t = np.arange(len(data.fine_mean_W)) * data.fine_step_s
        fine = (data.fine_mean_W, data.fine_min_W, data.fine_max_W)
        yield "cells", ["t_s", "power_mean_W", "power_min_W", "power_max_W"], zip(t.round(6), *fine, strict=True)
    if data.moments:
        rows = ((words, t, P) for words, times, watts in data.moments for t, P in zip(times, watts, strict=True))
        yield "samples", ["moment", "t_s", "power_W"], rows
    if len(data.hist):
        edges = upper_us(data.k)
        rows = ((second, edges[bin_], count) for second, bin_, count in data.hist.tolist())
        yield "latency", ["t_s", f"{data.hist_of}_upper_us", "ios"], rows


def write(folder: Path, name: str, data) -> list[Path]:
    """The tables of a run into `folder`, which is made; `name`: of file_names(). Returns the files. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    out = []
    for kind, columns, rows in tables(data):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([_cell(column) for column in columns])
        writer.writerows([[_cell(value) for value in row] for row in rows])
        out.append(folder / f"{name}-{kind}.csv")
        write_atomically(out[-1], text.getvalue().encode(), durable=False)
    return out


def file_names(runs: Iterable[str]) -> list[str]:
    """The names of runs as parts of files' names: a run.json may say anything, and two may say the same."""
    return unique(re.sub(r"[^\w. +=-]", "_", str(run), flags=re.ASCII).lstrip(".")[:100] or "run" for run in runs)


def _cell(value):
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{float(value):.9g}"
    return as_cell(value)
