"""What the plots of a report show, as CSV with all digits, of each run: seconds, cells below the second, samples around
moments, the latency histogram and marks; of a plan its figures and those of each step. Made from the data, not from
what a page packs."""

import contextlib
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from ssdrig.base import owner
from ssdrig.base.files import replacing
from ssdrig.base.words import as_cell, unique
from ssdrig.report.plates import upper_us

Tables = Iterable[tuple[str, Sequence[str], Iterable]]  # name, columns, rows
WHO = ("step", "round", "point", "part")  # the step that a row of a plan belongs to
NOT_FLAT = ("rails", "notes", "steady_state")


def tables(data) -> Tables:
    """The tables of a run (analysis.RunData)."""
    yield "seconds", *_seconds(data)
    if len(data.fine_mean_W):
        t = np.arange(len(data.fine_mean_W)) * data.fine_step_s
        fine = (data.fine_mean_W, data.fine_min_W, data.fine_max_W)
        yield "cells", ["t_s", "power_mean_W", "power_min_W", "power_max_W"], zip(t.round(6), *fine, strict=True)
    if data.moments:
        rows = (
            (words, t, P)
            for words, times, watts in data.moments
            for t, P in zip(np.round(times, 9), watts, strict=True)  # of samples, known to the nanosecond
        )
        yield "samples", ["moment", "t_s", "power_W"], rows
    if len(data.hist):
        edges = upper_us(data.k)
        rows = ((second, edges[bin_], count) for second, bin_, count in data.hist.tolist())
        yield "latency", ["t_s", f"{data.hist_of}_upper_us", "ios"], rows
    yield from _marks(data)


def plan_tables(of) -> Tables:
    """The tables of a run of a plan (analysis.table.Table). t_s of a step is drive time since its first I/O, of
    marks since the start of the run; "steps" has a row for each window of each step, "all" the whole of it."""
    figures = [(row, name, window) for row in of.rows for name, window in (row.windows or {"": None}).items()]
    keys = dict.fromkeys(key for *_, window in figures for key in window or () if key not in NOT_FLAT)
    head = [
        *WHO,
        "state",
        "why",
        "t0_s",
        "t1_s",
        "window",
        *(f"window_{k}" if k in ("t0_s", "t1_s") else k for k in keys),
    ]
    yield "steps", [*head, "notes"], (_figures(row, name, window or {}, keys) for row, name, window in figures)
    sampled = [row for row in of.rows if row.data is not None and len(row.data.iops) and row.t0_s is not None]
    if sampled:  # a column that any of them has: rails and the kind of percentile may differ from part to part
        columns = list(dict.fromkeys(column for row in sampled for column in _seconds(row.data)[0]))
        yield (
            "seconds",
            [*WHO, *columns],
            ([*_who(row), *of_s] for row in sampled for of_s in _seconds(row.data, columns)[1]),
        )
    timed = [row for row in of.rows if len(row.lat)]
    if timed:
        cells = ([*_who(row), us, ios] for row in timed for us, ios in _latencies(row))
        yield "latency", [*WHO, "lat_upper_us", "ios"], cells
    yield from _marks(of.data)


def _who(row) -> list:
    return [row.act.path, row.round, row.act.label.partition(" ")[2], row.part]


def _figures(row, name: str, window: dict, keys: Iterable[str]) -> list:
    notes = "; ".join(map(str, [*(row.notes if name in ("", "all") else ()), *window.get("notes", ())]))
    state = [row.state, row.why, row.t0_s, row.t1_s, name]
    return [*_who(row), *state, *(window.get(key) for key in keys), notes]


def _latencies(row) -> Iterator[tuple[float, int]]:
    edges = upper_us(row.k)
    return ((float(edges[bin_]), ios) for _, bin_, ios in row.lat.tolist())


def _marks(data) -> Tables:
    """The marks on the time axis: notes of the user, and events."""
    if data.marks:
        yield "marks", ["t_s", "words"], sorted(data.marks)


def _seconds(data, columns: Sequence[str] = ()) -> tuple[list[str], Iterable]:
    """Columns and rows of each second; `columns`: only these; one without values is empty."""
    n = len(data.iops)
    none = np.full(n, np.nan)
    names = unique(rail.name for rail in data.rails)  # a board may give two of them one name
    known = {
        "iops": data.iops,
        "bw_Bps": data.bw_Bps,
        "lat_mean_us": data.lat_mean_us,
        f"{data.hist_of}_p99_us": data.lat_p99_us,
        "power_mean_W": data.power_mean_W,
        "power_min_W": data.power_min_W,
        "power_max_W": data.power_max_W,
        "energy_J": data.energy_J,
        **{f"power_mean_W {name}": of.power_mean_W for name, of in zip(names, data.rails, strict=True) if names[1:]},
    }
    named = list(columns)[1:] or list(known)
    series = [known[name] if len(known.get(name, ())) == n else none for name in named]
    return ["t_s", *named], zip(range(n), *series, strict=True)


def write(folder: Path, name: str, tables_of: Tables) -> list[Path]:
    """The tables of a run into `folder`, which is made; `name`: of file_names(). Its files get their names when all of
    them are complete: on a full disk the earlier ones stay. Returns them. Raises OSError."""
    if not folder.exists():
        owner.new(folder)
    folder.mkdir(parents=True, exist_ok=True)
    out = []
    with contextlib.ExitStack() as whole:
        for kind, columns, rows in tables_of:
            out.append(folder / f"{name}-{kind}.csv")
            file = whole.enter_context(replacing(out[-1], durable=False))
            text = io.TextIOWrapper(file, "utf-8", "replace", "")
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow([_cell(column) for column in columns])
            writer.writerows([_cell(value) for value in row] for row in rows)
            text.detach().flush()  # a full disk shows before the first has its name
    return out


def file_names(runs: Iterable[str]) -> list[str]:
    """The names of runs as parts of files' names: a run.json may contain anything, and two may contain the same."""
    return unique(re.sub(r"[^\w. +=-]", "_", str(run), flags=re.ASCII).lstrip(".")[:100] or "run" for run in runs)


def _cell(value):
    """The shortest digits that identify a number among those of its type; whole numbers without a point."""
    if isinstance(value, np.floating) and not isinstance(value, float):
        return "" if np.isnan(value) else str(value).removesuffix(".0")
    if isinstance(value, float):
        return "" if np.isnan(value) else repr(float(value)).removesuffix(".0")
    return as_cell(value)
