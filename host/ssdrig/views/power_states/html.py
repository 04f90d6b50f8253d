"""The view `power-states`: power of the drive in each of them, and time and energy of going there and back
(views/power_states/figures.py), next to the drive's own figures."""

import math
from collections.abc import Mapping, Sequence

from ssdrig.reading.row import Row, Table
from ssdrig.views import svg
from ssdrig.views.context import Cell, Context, axis, figure, number_table, panel

WIDTH, HEIGHT = 480, 320
HEADS = (
    *(("Rated, at most", "W"), ("Measured", "W"), ("Lowest second", "W"), ("Highest second", "W")),
    *(("Entry, rated", "ms"), ("Entry", "ms"), ("Exit, rated", "ms"), ("Exit", "ms"), ("First I/O", "ms")),
    *(("Energy of a sleep", "mJ"), ("Pays off after", "ms")),
)
NAMES = {"power_state": "PS{}", "alpm": "ALPM {}", "aspm": "ASPM {}", "apst": "APST {}"}
SOFT = (
    "Measured: the last half of the longest stay, ± with 95 %. Entry: from the command until the power has"
    " come down. Exit: the first I/O's latency above that of the awake drive. Energy of a sleep: what entering and"
    " leaving cost next to the state's own power; a pause too short for it to pay off is better spent awake."
)


def power_states(context: Context) -> str:
    """A panel for each run: a row for each state, and its power."""
    out = []
    for run, name in context.runs():
        of_state = visits(run, context.paths)
        title = context.title("Power states") + name
        if not of_state:
            out.append(panel(title, "<p>no state was visited</p>", _not_run(run, context.paths)))
            continue
        rated = run.data.header["drive"].get("power_states") or []
        lines = [(state, cells(rows, rated)) for state, rows in of_state.items()]
        body = _plot(title, of_state) + number_table("State", HEADS, lines)
        out.append(panel(title, body, " ".join(filter(None, (SOFT, _not_run(run, context.paths)))), "wide"))
    return "".join(out)


def visits(run: Table, paths: Sequence[str]) -> dict[str, list[Row]]:
    """The visits of each state, in the order of the run."""
    of_state: dict[str, list[Row]] = {}
    for row in run.rows:
        if row.act.path in paths and row.result.get("kind") == "power-state":
            of_state.setdefault(_named(row), []).append(row)
    return of_state


def _named(row: Row) -> str:
    words = [NAMES.get(key, f"{axis(key)} {{}}").format(value) for key, value in row.act.point.items()]
    return ", ".join(words) or row.act.path


def cells(rows: Sequence[Row], rated: Sequence[Mapping]) -> list[Cell]:
    """A state's cells, in the order of HEADS: power of its longest stay, the rest as the mean of its visits, ± half of
    their range and of the error of the clock."""
    longest = max(rows, key=lambda row: row.data.load_s if row.data is not None else 0.0).result
    number = rows[0].act.point.get("power_state")
    says = rated[number] if number is not None and number < len(rated) else {}
    why = longest.get("why") or ""

    def mean(key: str, scale: float = 1.0, known_to: str = "") -> Cell:
        values = [row.result[key] * scale for row in rows if row.result.get(key) is not None]
        if not values:
            return Cell(why=next((row.result["why"] for row in rows if row.result.get("why")), "") or "not seen")
        errors = [(max(values) - min(values)) / 2] if len(values) > 1 else []
        errors += [max(row.result.get(known_to) or 0.0 for row in rows) * scale] if known_to else []
        return Cell(sum(values) / len(values), math.hypot(*errors) if errors else None)

    def of_drive(key: str, scale: float = 1.0) -> Cell:
        value = says.get(key)
        return Cell(why="the drive does not report it") if value is None else Cell(value * scale)

    return [
        of_drive("max_W"),
        Cell(longest["mean_W"], longest["uncertainty_W"], why),
        Cell(longest["lowest_W"], None, why),
        Cell(longest["highest_W"], None, why),
        of_drive("enter_us", 1e-3),
        mean("entry_ms", 1.0, "time_error_ms"),
        of_drive("exit_us", 1e-3),
        mean("exit_ms"),
        mean("first_io_ms"),
        mean("wake_J", 1e3, "wake_error_J"),
        mean("break_even_s", 1e3, "break_even_error_s"),
    ]


def _plot(title: str, of_state: Mapping[str, Sequence[Row]]) -> str:
    means = [(i, state, row.result["mean_W"]) for i, (state, rows) in enumerate(of_state.items()) for row in rows]
    known = [(i, state, watts) for i, state, watts in means if watts]
    if not known:
        return ""
    plot = svg.Plot(
        title, WIDTH, HEIGHT, (-0.5, len(of_state) - 0.5), svg.extent([w for *_, w in known], True), y_log=True
    )
    for i, state, watts in known:
        plot.mark(i, watts, svg.look(0), f"{state}: {figure(watts)} W")
    plot.axes("State", "Mean power, W", [(i, state) for i, state in enumerate(of_state)])
    return plot.text()


def _not_run(run: Table, paths: Sequence[str]) -> str:
    lacking = {row.why: None for row in run.rows if row.act.path in paths and row.state == "not run" and row.why}
    return f"Not run: {'; '.join(lacking)}." if lacking else ""


HTML = {"power-states": power_states}  # view -> how it is drawn
