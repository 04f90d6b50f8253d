"""The view `histogram`: how the latencies of a load are spread, and how that changed with time."""

import math

import numpy as np

from ssdrig.analysis import window_figures
from ssdrig.analysis.table import WHOLE, Row
from ssdrig.report import svg
from ssdrig.report.shown import Context, figure, panel, place, rows_at
from ssdrig.steps import FIO

STEPS = 160  # of time, of a picture of latencies
PER_OCTAVE = 4
ROOM = 3  # above the highest column
LEVELS = {"99 %": 100, "99.9 %": 1000, "99.99 %": 10_000, "99.999 %": 100_000}  # one I/O in so many lies above it


def histogram(context: Context) -> str:
    """Which share of the I/Os took longer than a time; and for each load how its latencies changed with time."""
    out = []
    for each, name in context.runs():
        rows = [row for path in context.paths for row in rows_at(each, path, place(context.show)) if len(row.lat)]
        title = context.title("Latency: the share of I/Os that took longer") + name
        out.append(_slower(title, rows) if rows else panel(title, "", "No figures: fio left no histogram of lat."))
        out += [_counted(row, name) for row in rows]
        for path in context.paths:
            out += [_over_time(row, name) for row in each.of(path) if row.data is not None and len(row.data.hist)]
    return "".join(out)


def _slower(title: str, rows: list[Row]) -> str:
    found = [(row.act.label + (f", round {row.round}" if row.round else ""), *row.latencies()) for row in rows]
    most = max(int(count.sum()) for *_, count in found)
    low, high = min(float(ms[0]) for _, ms, _ in found), max(float(ms[-1]) for _, ms, _ in found)
    floor = 0.5 / most
    plot = svg.Plot(title, 480, 300, (0.9 * low, 1.01 * high), (floor, 1.0), x_log=True, y_log=True)
    looks = [svg.look(i) for i in range(len(found))]
    for (_, ms, count), look in zip(found, looks, strict=True):
        slower = np.append(1.0, (count.sum() - np.cumsum(count)) / count.sum()).clip(floor)  # a step at each latency
        corners = zip(np.repeat(ms, 2).tolist(), np.repeat(slower, 2)[1:-1].tolist(), strict=True)
        plot.line(list(corners), f"stroke:var({look['colour']})")
    plot.axes("ms, submission included (lat)", "share of the I/Os")
    return panel(title, plot.text() + svg.legend([words for words, *_ in found], looks))


def _counted(row: Row, name: str) -> str:
    """I/Os of each latency, logarithmic, with the mean, the levels of confidence and the longest."""
    ms, ios = row.latencies()
    octave = np.floor(np.log2(np.maximum(ms, 1e-6)) * PER_OCTAVE + 1e-9).astype(np.int64)
    cells, of = np.unique(octave, return_inverse=True)
    counts = np.bincount(of.ravel(), ios).astype(float)
    low, high = (float(2 ** (edge / PER_OCTAVE)) for edge in (cells[0], cells[-1] + 1))
    title = f"Latency histogram, {row.act.label}{f', round {row.round}' if row.round else ''}{name}"
    plot = svg.Plot(title, 480, 300, (low, high), (0.5, ROOM * counts.max()), x_log=True, y_log=True)
    for step, count in zip(cells.tolist(), counts.tolist(), strict=True):
        plot.cell(2 ** (step / PER_OCTAVE), 2 ** ((step + 1) / PER_OCTAVE), 0.5, count, "fill:var(--blue);opacity:.55")
    lacking, said = [], []
    for i, (words, at) in enumerate(levels(row).items()):
        if at is None:
            lacking.append(words)
            continue
        look = svg.look(i)
        plot.line([(at, 0.5), (at, ROOM * counts.max())], f"stroke:var({look['colour']})", "dashed")
        said.append((f"{words}: {figure(at)} ms", look))
    plot.axes("ms, submission included (lat)", "I/Os")
    soft = f"Too few I/Os for {', '.join(lacking)}." if lacking else ""
    return panel(title, plot.text() + svg.legend([words for words, _ in said], [look for _, look in said]), soft)


def levels(row: Row) -> dict[str, float | None]:
    """ms of the mean, of each level of confidence (None: too few I/Os for it) and of the longest."""
    figures, (ms, ios) = row.windows.get(WHOLE) or {}, row.latencies()
    n, rising = int(ios.sum()), np.cumsum(ios)
    found: dict[str, float | None] = {}
    for words, one_in in LEVELS.items():
        enough = n >= window_figures.TAIL * one_in
        found[words] = float(ms[np.searchsorted(rising, n - n // one_in)]) if enough else None
    ends = {words: figures.get(key) for words, key in (("mean", "lat_mean_us"), ("longest", "lat_max_us"))}
    mean, longest = (None if us is None else us / 1000 for us in ends.values())
    return {"mean": mean, **found, "longest": longest}


def _over_time(row: Row, name: str) -> str:
    """I/Os by time and latency, the darker the more; STEPS of time, PER_OCTAVE steps of latency to a doubling. fio's
    documents have a histogram in longer stretches, which stands at the second with which its stretch begins."""
    second, ms, ios = row.latencies_by_second()
    stretched = row.data is not None and row.data.hist_of == "lat" and row.act.do in FIO
    n = int(second.max()) + 1
    if stretched and row.data is not None:
        n = max(n, len(row.data.iops))
    wide = -(-n // STEPS)
    begins = np.unique(second // wide)
    until = np.append(begins[1:], -(-n // wide)) if stretched else begins + 1
    ends = dict(zip(begins.tolist(), until.tolist(), strict=True))
    octave = np.floor(np.log2(np.maximum(ms, 1e-6)) * PER_OCTAVE + 1e-9).astype(np.int64)
    cells, of = np.unique(np.stack([second // wide, octave], axis=1), axis=0, return_inverse=True)
    counts = np.bincount(of.ravel(), ios).astype(float)
    edge = 2 ** (np.array([octave.min(), octave.max() + 1]) / PER_OCTAVE)
    title = f"Latency {'over the time' if stretched else 'by the second'}, {row.act.label}{name}"
    plot = svg.Plot(title, 960, 300, (0, wide * -(-n // wide)), (float(edge[0]), float(edge[1])), y_log=True)
    top = math.log1p(counts.max())
    for (at, step), count in zip(cells.tolist(), counts.tolist(), strict=True):
        part = math.log1p(count) / top
        low, high = 2 ** (step / PER_OCTAVE), 2 ** ((step + 1) / PER_OCTAVE)
        plot.cell(at * wide, ends[at] * wide, low, high, f"fill:var(--blue);opacity:{part:.2f}")
    kind = row.data.hist_of if row.data is not None else "lat"
    plot.axes("s since the first I/O", f"ms ({kind})")
    since = "when the drive was given the I/O" if kind == "clat" else "submission"
    return panel(title, plot.text(), f"Time from {since} ({kind}). The darker, the more I/Os (logarithmic).", "wide")
