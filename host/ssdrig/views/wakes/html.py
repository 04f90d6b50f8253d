"""The view `wakes`: latency and energy of a single I/O, against the pause before it. Where the drive falls asleep
in longer pauses both rise by a step."""

import math

import numpy as np

from ssdrig.base.uncertain import NO_DIFFERENCE, UNKNOWN, Uncertain, difference, mean_error
from ssdrig.reading.errors import LEAST_S
from ssdrig.reading.row import Row, Table
from ssdrig.views import svg
from ssdrig.views.context import Cell, Context, figure, number_table, panel, plus_minus, points, rows_at

WIDTH, HEIGHT = 480, 320
HEADS = (
    *(("I/Os", ""), ("Median", "µs"), ("P99", "µs"), ("Longest", "µs"), ("Mean power", "W")),
    *(("Energy of an I/O", "mJ"), ("Above the floor", "mJ")),
)
SOFT = (
    "Energy of an I/O: all that the drive drew, by its I/Os, the pause included. Above the floor: less the energy of"
    " its rest over the same time, so the cost of waking up, working and falling asleep again."
)


def wakes(context: Context) -> str:
    """Panels for each step and run: latency, energy, and a row for each pause."""
    out = []
    for path in context.paths:
        for run, name in context.runs():
            rest = floor(run, str(context.show["rest"]))
            intervals = [
                (row, above_mJ(row, rest).value)
                for every in points(run, path, "every")
                for row in _at(run, path, every)
            ]
            title = context.title("A single I/O after a pause", "", path) + name
            lines = [(str(row.act.point["every"]), cells(row, rest)) for row, _ in intervals]
            median = [(row.act.keys["every"], _us(row, "p50")) for row, _ in intervals]
            longest = [(row.act.keys["every"], row.value("lat_max")) for row, _ in intervals]
            energy = [(row.act.keys["every"], mJ) for row, mJ in intervals]
            plots = _plot(f"{title}, latency", [("median", median), ("longest", longest)], "Latency, µs")
            plots += _plot(f"{title}, energy", [("above the floor", energy)], "Energy above the floor, mJ")
            known = "not known" if rest.value is None else plus_minus(rest, "W")
            out.append(panel(title, plots + number_table("Pause", HEADS, lines), f"{SOFT} Its floor: {known}.", "wide"))
    return "".join(out)


def _at(run: Table, path: str, every) -> list[Row]:
    return rows_at(run, path, {"every": every})


def floor(run: Table, rest: str) -> Uncertain:
    """Power of the drive at rest: of the idle step that lasted until it was quiet."""
    event = next((row.result for row in run.rows if row.act.path == rest and row.result), {})
    return Uncertain(event.get("floor_W"), event.get("floor_error_W"))


def above_mJ(row: Row, rest: Uncertain) -> Uncertain:
    """mJ of drive time for each I/O above the floor over the same time; null where that is within the uncertainty of
    both. Without their errors its own error is unknown."""
    whole = row.windows.get("all") or {}
    if rest.value is None or not whole.get("ios") or whole.get("energy_J") is None:
        return Uncertain(None, None, UNKNOWN)
    percent, per_io = whole.get("power_uncertainty_percent"), 1e3 / whole["ios"]
    drawn = Uncertain(whole["energy_J"], None if percent is None else percent / 100 * whole["energy_J"]).scaled(per_io)
    still = rest.scaled(whole["t1_s"] - whole["t0_s"]).scaled(per_io)
    if not (drawn.known and still.known):
        return Uncertain((drawn.value or 0.0) - (still.value or 0.0))
    above = difference(drawn, still)
    scatter_W = _scatter_W(row)
    if above.value is not None and above.error is not None:
        own_mJ = None if scatter_W is None else scatter_W * (whole["t1_s"] - whole["t0_s"]) * per_io
        above = above._replace(error=None if own_mJ is None else math.hypot(above.error, own_mJ))
    if (above.value or 0.0) <= (above.error or 0.0):
        return Uncertain(None, None, NO_DIFFERENCE, f"{plus_minus(above, 'mJ')}: within its uncertainty")
    return above


def _scatter_W(row: Row) -> float | None:
    """The error of the mean power by how its pauses differ, each with the I/O before it; where they are shorter than a
    second, by how its seconds differ. None of a single pause, and of fewer seconds than show it."""
    if row.data is None or len(watts := row.data.power_mean_W) < 2:
        return None
    if row.act.keys["every"] < 1:
        return mean_error(watts) if len(watts) >= LEAST_S else None
    edges_s = np.linspace(0, len(watts), (row.windows["all"] or {})["ios"] + 1)
    joules = np.interp(edges_s, np.arange(len(watts) + 1), np.concatenate([[0.0], np.cumsum(watts)]))
    return mean_error(np.diff(joules) / np.diff(edges_s))


def cells(row: Row, rest: Uncertain) -> list[Cell]:
    """In the order of HEADS."""
    each_uJ, above = row.value("uJ/IO"), above_mJ(row, rest)
    no_floor = "the drive's floor is not known: no rest until it was quiet"
    no_floor = above.why or (no_floor if rest.value is None else row.why_not("uJ/IO"))
    ios = (row.windows.get("all") or {}).get("ios")
    return [
        Cell(words=str(ios) if ios else "–"),
        Cell(_us(row, "p50"), why="too few I/Os for it"),
        Cell(row.value("lat_p99"), why=row.why_not("lat_p99")),
        Cell(row.value("lat_max"), why=row.why_not("lat_max")),
        Cell(row.value("W"), why=row.why_not("W")),
        Cell(None if each_uJ is None else each_uJ / 1e3, why=row.why_not("uJ/IO")),
        Cell(above.value, above.error, no_floor),
    ]


def _us(row: Row, name: str) -> float | None:
    return (row.windows.get("all") or {}).get(f"lat_{name}_us")


def _plot(title: str, lines: list[tuple[str, list[tuple[float, float | None]]]], y_title: str) -> str:
    known = [(name, [(at, value) for at, value in line if value]) for name, line in lines]
    dots = [dot for _, line in known for dot in line]
    if not dots:
        return ""
    x, y = svg.extent([at for at, _ in dots], True), svg.extent([value for _, value in dots], True)
    plot, looks = svg.Plot(title, WIDTH, HEIGHT, x, y, x_log=True, y_log=True), []
    for i, (_, line) in enumerate(known):
        looks.append(svg.look(i))
        plot.line(line, svg.stroke(looks[i]))
        for at, value in line:
            plot.mark(at, value, looks[i], f"{figure(at)} s: {figure(value)}")
    plot.axes("Pause before it, s", y_title)
    return plot.text() + svg.legend([name for name, _ in known], looks)


HTML = {"wakes": wakes}  # view -> how it is drawn
