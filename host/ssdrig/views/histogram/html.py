"""The view `histogram`: how the latencies of a load are spread, and how that changed with time."""

import math
from collections.abc import Iterator

import numpy as np

from ssdrig.plan.kinds import FIO
from ssdrig.reading import window_figures
from ssdrig.reading.row import WHOLE, Row
from ssdrig.views import svg
from ssdrig.views.context import Context, figure, panel, place, rows_at

STEPS = 160  # of time, of a picture of latencies
PER_OCTAVE = 4
ROOM = 3  # above the highest column
LEVELS = {"99 %": 100, "99.9 %": 1000, "99.99 %": 10_000, "99.999 %": 100_000}  # one I/O in this many is slower


def histogram(context: Context) -> str:
    """Which share of the I/Os took longer than a time; and for each load how its latencies changed with time."""
    out = []
    of_runs = [
        [row for path in context.paths for row in rows_at(run, path, place(context.show)) if len(row.lat)]
        for run in context.tables
    ]
    every = [row for rows in of_runs for row in rows]
    timed = [
        [row for path in context.paths for row in run.of(path) if row.data is not None and len(row.data.hist)]
        for run in context.tables
    ]
    ms = np.concatenate([row.latencies_by_second()[1] for rows in timed for row in rows] or [np.ones(1)])
    nothing = "No figures: fio left no histogram of lat."
    for title, names, rows, looks in _together(context, of_runs):
        out.append(_slower(title, names, rows, looks, every) if rows else panel(title, "", nothing))
    of_subjects = list(zip(context.runs(), of_runs, timed, strict=True))[: context.subjects or None]
    for (_, name), rows, by_second in of_subjects:
        out += [_counted(row, name, every) for row in rows]
        out += [_over_time(row, name, _octaves(ms)) for row in by_second]
    return "".join(out)


def _together(context: Context, of_runs: list[list[Row]]) -> Iterator[tuple]:
    """(title, names, rows, looks) of each plot: of one run all its rows; of several a plot for each row, with all
    runs."""
    title = context.title("Latency: the share of I/Os that took longer")
    if len(of_runs) == 1 or not any(of_runs):
        (rows, *_) = of_runs
        yield title, [row.label for row in rows], rows, [svg.look(i) for i in range(len(rows))]
        return
    labels = list(dict.fromkeys(row.label for rows in of_runs for row in rows))
    for label in labels:
        drawn = [(run, row) for run in context.order for row in of_runs[run] if row.label == label]
        names, looks = [context.names[run] for run, _ in drawn], [context.looks[run] for run, _ in drawn]
        yield title + f", {label}" * (len(labels) > 1), names, [row for _, row in drawn], looks


def _octaves(ms: np.ndarray) -> np.ndarray:
    """In which step of PER_OCTAVE to a doubling each latency is."""
    return np.floor(np.log2(np.maximum(ms, 1e-6)) * PER_OCTAVE + 1e-9).astype(np.int64)


def _slower(title: str, names: list[str], rows: list[Row], looks: list[dict], every: list[Row]) -> str:
    """The axes are those of all rows of the view."""
    all_of = [row.latencies() for row in every]
    most = max(int(count.sum()) for _, count in all_of)
    low, high = min(float(ms[0]) for ms, _ in all_of), max(float(ms[-1]) for ms, _ in all_of)
    floor = 0.5 / most
    plot = svg.Plot(title, 480, 300, (0.9 * low, 1.01 * high), (floor, 1.0), x_log=True, y_log=True)
    for row, look in zip(rows, looks, strict=True):
        ms, count = row.latencies()
        slower = np.append(1.0, (count.sum() - np.cumsum(count)) / count.sum()).clip(floor)  # a step at each latency
        corners = zip(np.repeat(ms, 2).tolist(), np.repeat(slower, 2)[1:-1].tolist(), strict=True)
        plot.line(list(corners), svg.stroke(look))
    plot.axes("ms, submission included (lat)", "share of the I/Os")
    return panel(title, plot.text() + svg.legend(names, looks))


def _by_octave(row: Row) -> tuple[np.ndarray, np.ndarray]:
    ms, ios = row.latencies()
    cells, of = np.unique(_octaves(ms), return_inverse=True)
    return cells, np.bincount(of.ravel(), ios).astype(float)


def _counted(row: Row, name: str, every: list[Row]) -> str:
    """I/Os of each latency, logarithmic, with the mean, the levels of confidence and the longest; axes as _slower's."""
    cells, counts = _by_octave(row)
    all_of = [_by_octave(measured) for measured in every]
    first, last = min(int(one[0]) for one, _ in all_of), max(int(one[-1]) for one, _ in all_of) + 1
    low, high = (float(2 ** (edge / PER_OCTAVE)) for edge in (first, last))
    top = ROOM * max(float(held.max()) for _, held in all_of)
    of = "" if row.act.label == "histogram" else f", {row.act.label}"
    title = f"Latency histogram{of}{f', round {row.round}' if row.round else ''}{name}"
    plot = svg.Plot(title, 480, 300, (low, high), (0.5, top), x_log=True, y_log=True)
    for step, count in zip(cells.tolist(), counts.tolist(), strict=True):
        plot.cell(2 ** (step / PER_OCTAVE), 2 ** ((step + 1) / PER_OCTAVE), 0.5, count, "fill:var(--blue);opacity:.55")
    lacking, percentiles = [], []
    for i, (words, at) in enumerate(levels(row).items()):
        if at is None:
            lacking.append(words)
            continue
        look = svg.look(i)
        plot.line([(at, 0.5), (at, top)], svg.stroke(look), "dashed")
        percentiles.append((f"{words}: {figure(at)} ms", look))
    plot.axes("ms, submission included (lat)", "I/Os")
    soft = f"Too few I/Os for {', '.join(lacking)}." if lacking else ""
    return panel(
        title, plot.text() + svg.legend([words for words, _ in percentiles], [look for _, look in percentiles]), soft
    )


def levels(row: Row) -> dict[str, float | None]:
    """ms of the mean, of each level of confidence (None: too few I/Os for it) and of the longest."""
    figures, (ms, ios) = row.windows.get(WHOLE) or {}, row.latencies()
    n, rising = int(ios.sum()), np.cumsum(ios)
    percentiles: dict[str, float | None] = {}
    for words, one_in in LEVELS.items():
        enough = n >= window_figures.TAIL * one_in
        percentiles[words] = float(ms[np.searchsorted(rising, n - n // one_in)]) if enough else None
    ends = {words: figures.get(key) for words, key in (("mean", "lat_mean_us"), ("longest", "lat_max_us"))}
    mean, longest = (None if us is None else us / 1000 for us in ends.values())
    return {"mean": mean, **percentiles, "longest": longest}


def _over_time(row: Row, name: str, octaves: np.ndarray) -> str:
    """I/Os by time and latency, the darker the more; STEPS of time, PER_OCTAVE steps of latency to a doubling. fio's
    documents have a histogram in longer stretches, which is drawn at the first second of its stretch.
    `octaves`: of all rows of the view."""
    second, ms, ios = row.latencies_by_second()
    stretched = row.data is not None and row.data.hist_of == "lat" and row.act.do in FIO
    n = int(second.max()) + 1
    if stretched and row.data is not None:
        n = max(n, len(row.data.iops))
    wide = -(-n // STEPS)
    begins = np.unique(second // wide)
    until = np.append(begins[1:], -(-n // wide)) if stretched else begins + 1
    ends = dict(zip(begins.tolist(), until.tolist(), strict=True))
    octave = _octaves(ms)
    cells, of = np.unique(np.stack([second // wide, octave], axis=1), axis=0, return_inverse=True)
    counts = np.bincount(of.ravel(), ios).astype(float)
    edge = 2 ** (np.array([octaves.min(), octaves.max() + 1]) / PER_OCTAVE)
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


HTML = {"histogram": histogram}  # view -> how it is drawn
