"""The view `under`: how long reads take while another thread writes, against how much it writes (reading/under.py)."""

from collections.abc import Sequence

import numpy as np

from ssdrig.base.uncertain import UNKNOWN, Uncertain, ratio
from ssdrig.load import fiotext
from ssdrig.reading import errors
from ssdrig.reading import under as told_apart
from ssdrig.reading.row import Row, Table
from ssdrig.views import numbers, svg
from ssdrig.views.context import Context, figure, panel, plus_minus
from ssdrig.views.numbers import Cell

WIDTH, HEIGHT = 480, 320
LATENCIES = (
    *(("p50_us", "P50"), ("p99_us", "P99"), ("p999_us", "P99.9"), ("p9999_us", "P99.99")),
    ("max_us", "longest"),
)
HEADS = (
    *(("Writes", "IOPS"), ("of what it writes alone", "%"), ("Reads", "IOPS")),
    *((f"Read, {name}", "µs") for _, name in LATENCIES),
    *(("Write, mean", "µs"), ("Power", "W")),
)


def under(context: Context) -> str:
    """A panel for each run: read latencies over the writes beside them, and a row for each rate."""
    out = []
    for each, name in context.runs():
        rows = [row for path in context.paths for row in each.of(path)]
        title = context.title("Reads while it writes") + name
        if not rows:
            out.append(panel(title, "<p>not run</p>"))
            continue
        alone = written_alone(each, str(context.show["against"]))
        lines = [(_named(row), cells(row, alone)) for row in rows]
        known = "not known" if alone.value is None else plus_minus(alone, "IOPS")
        soft = (
            f"Reads and writes are threads of their own. What it writes alone: {known}, of {context.show['against']}."
        )
        out.append(panel(title, _plot(title, rows) + numbers.rows("Writes asked for", HEADS, lines), soft, "wide"))
    return "".join(out)


def reads(row: Row) -> dict:
    """Figures of its reads, under.KEYS; of a load that only reads those of all its I/Os."""
    if row.found.get("kind") == "under":
        return row.found["reads"]
    counts = np.zeros(fiotext.BINS, np.int64)
    np.add.at(counts, row.lat[:, 1], row.lat[:, 2])
    whole = row.windows.get("all") or {}
    host_s = (whole.get("t1_s", 0.0) - whole.get("t0_s", 0.0)) * row.k
    return told_apart.side(counts, host_s, row.k)


def written_alone(each: Table, path: str) -> Uncertain:
    """What the drive writes a second with nothing beside it: in the window `steady` of that step, where it has one."""
    row = next((row for row in each.of(path)), None)
    if row is None:
        return Uncertain(None, None, UNKNOWN, f"{path} was not carried out")
    return errors.of("iops_mean", row.windows.get("steady") or row.windows.get("all") or {})


def share_percent(row: Row, done: float | None, alone: Uncertain) -> Uncertain:
    """Of what the drive writes alone. Its writes scatter as all its I/Os do."""
    of_all = errors.of("iops_mean", row.windows.get("all") or {})
    if done is None or alone.value is None:
        return Uncertain(None, None, UNKNOWN, "what it writes alone is not known")
    if not done:
        return Uncertain(0.0, 0.0)
    error = of_all.error / of_all.value * done if of_all.error is not None and of_all.value else None
    return ratio(Uncertain(done, error), alone).scaled(100)


def cells(row: Row, alone: Uncertain) -> list[Cell]:
    """In the order of HEADS."""
    of, writes = reads(row), row.found.get("writes") or {}
    done = writes.get("iops", 0.0 if row.act.keys["read"] == 100 else None)
    share = share_percent(row, done, alone)
    return [
        Cell(done),
        Cell(share.value, share.error, share.why),
        Cell(of["iops"]),
        *(Cell(of[key], why=told_apart.WHY) for key, _ in LATENCIES),
        Cell(writes.get("mean_us"), why="no writes"),
        Cell(row.value("W"), why=row.why_not("W")),
    ]


def _named(row: Row) -> str:
    return str(row.act.point.get("rate") or ("none" if row.act.keys["read"] == 100 else row.act.label))


def _plot(title: str, rows: Sequence[Row]) -> str:
    places = [(row.found.get("writes") or {}).get("iops") or 0.0 for row in rows]
    found = [(name, [(at, reads(row)[key]) for at, row in zip(places, rows, strict=True)]) for key, name in LATENCIES]
    dots = [value for _, line in found for _, value in line if value is not None]
    plot = svg.Plot(title, WIDTH, HEIGHT, svg.extent(places, False), svg.extent(dots, True), y_log=True)
    lines = [(name, [(at, value) for at, value in line if value is not None]) for name, line in found]
    lines = [(name, known) for name, known in lines if known]
    looks = [svg.look(i) for i in range(len(lines))]
    for (name, known), look in zip(lines, looks, strict=True):
        plot.line(known, f"stroke:var({look['colour']})")
        for at, value in known:
            plot.mark(at, value, look, f"{figure(at)} writes a second, {name}: {figure(value)} µs")
    plot.axes("Writes, IOPS", "Read latency, µs")
    return plot.text() + svg.legend([name for name, _ in lines], looks)


HTML = {"under": under}  # view -> how it is drawn
