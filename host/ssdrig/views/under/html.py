"""The view `under`: how long reads take while another thread writes, against how much it writes."""

from collections.abc import Sequence

from ssdrig.base.uncertain import UNKNOWN, Uncertain, ratio
from ssdrig.plan.shows import VALUES
from ssdrig.reading import errors
from ssdrig.reading.row import Row, Table
from ssdrig.views import svg
from ssdrig.views.context import Cell, Context, figure, number_table, panel, plus_minus

WIDTH, HEIGHT = 480, 320
LATENCIES = (
    *(("lat_p50", "P50"), ("lat_p99", "P99"), ("lat_p999", "P99.9"), ("lat_p9999", "P99.99")),
    ("lat_max", "longest"),
)
HEADS = (
    *(("Writes", "IOPS"), ("of its writes alone", "%"), ("Reads", "IOPS")),
    *((f"Read, {name}", "µs") for _, name in LATENCIES),
    *(("Write, mean", "µs"), ("Power", "W")),
)


def under(context: Context) -> str:
    """A panel for each run: read latencies over the concurrent writes, and a row for each rate."""
    out = []
    for run, name in context.runs():
        rows = [row for path in context.paths for row in run.of(path)]
        title = context.title("Reads while it writes") + name
        if not rows:
            out.append(panel(title, "<p>not run</p>"))
            continue
        alone = written_alone(run, str(context.show["against"]))
        lines = [(_named(row), cells(row, alone)) for row in rows]
        known = "not known" if alone.value is None else plus_minus(alone, "IOPS")
        soft = f"Reads and writes are separate threads. Writes alone: {known}, of {context.show['against']}."
        out.append(panel(title, _plot(title, rows) + number_table("Writes asked for", HEADS, lines), soft, "wide"))
    return "".join(out)


def written_alone(run: Table, path: str) -> Uncertain:
    """Writes a second with no other load: in the window `steady` of that step, if it has one."""
    row = next((row for row in run.of(path)), None)
    if row is None:
        return Uncertain(None, None, UNKNOWN, f"{path} did not run")
    return errors.of("iops_mean", row.windows.get("steady") or row.windows.get("all") or {})


def share_percent(row: Row, alone: Uncertain) -> Uncertain:
    """Writes, as a share of the drive's writes alone."""
    written = errors.of("write_iops", row.windows.get("all") or {})
    if written.value is None or alone.value is None:
        return Uncertain(None, None, UNKNOWN, "its writes alone are not known")
    return ratio(written, alone).scaled(100) if written.value else Uncertain(0.0, 0.0)


def cells(row: Row, alone: Uncertain) -> list[Cell]:
    """In the order of HEADS."""
    share = share_percent(row, alone)
    return [
        _cell(row, "write_iops"),
        Cell(share.value, share.error, share.why),
        _cell(row, "read_iops"),
        *(_cell(row, f"read_{word}") for word, _ in LATENCIES),
        _cell(row, "write_lat_mean"),
        Cell(row.value("W"), why=row.why_not("W")),
    ]


def _cell(row: Row, word: str) -> Cell:
    of = errors.of(VALUES[word][0], row.windows.get("all") or {}, row.why_not(word))
    return Cell(of.value, of.error, of.why)


def _named(row: Row) -> str:
    return str(row.act.point.get("rate") or ("none" if row.act.keys["read"] == 100 else row.act.label))


def _plot(title: str, rows: Sequence[Row]) -> str:
    places = [row.value("write_iops") or 0.0 for row in rows]
    percentiles = [
        (name, [(at, row.value(f"read_{word}")) for at, row in zip(places, rows, strict=True)])
        for word, name in LATENCIES
    ]
    dots = [value for _, line in percentiles for _, value in line if value is not None]
    plot = svg.Plot(title, WIDTH, HEIGHT, svg.extent(places, False), svg.extent(dots, True), y_log=True)
    lines = [(name, [(at, value) for at, value in line if value is not None]) for name, line in percentiles]
    lines = [(name, known) for name, known in lines if known]
    looks = [svg.look(i) for i in range(len(lines))]
    for (name, known), look in zip(lines, looks, strict=True):
        plot.line(known, svg.stroke(look))
        for at, value in known:
            plot.mark(at, value, look, f"{figure(at)} writes a second, {name}: {figure(value)} µs")
    plot.axes("Writes, IOPS", "Read latency, µs")
    return plot.text() + svg.legend([name for name, _ in lines], looks)


HTML = {"under": under}  # view -> how it is drawn
