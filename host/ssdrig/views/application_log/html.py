"""The view of an application's own log: a table of its columns, and a plot of each on the axis of the recording."""

from ssdrig.reading.row import Row
from ssdrig.views import svg
from ssdrig.views.context import Cell, Context, figure, number_table, panel

HEADS = (("Rows", ""), ("Mean", ""), ("Least", ""), ("Most", ""))
NO_NUMBER = "no row has a number"
CLOCKS = {"utc": "UTC of this host", "command": "seconds since a start within the command's run"}


def application_log(context: Context) -> str:
    """Nothing for recordings without a log."""
    logged: list[tuple[int, Row]] = [
        (number, row)
        for number, table in enumerate(context.tables)
        for path in context.paths
        for row in table.of(path)
        if row.data is not None and row.result.get("application_log")
    ]
    out = "".join(_table(context, number, row) for number, row in logged)
    names = dict.fromkeys(name for _, row in logged if row.data for name, *_ in row.data.logged)
    return out + "".join(_plot(context, name, logged) for name in names)


def _table(context: Context, number: int, row: Row) -> str:
    log = row.result["application_log"]
    whose = f": {context.names[number]}" if len(context.tables) > 1 else ""
    lines = [
        (of["name"], [Cell(words=str(of["rows"])), *(Cell(of[key], why=NO_NUMBER) for key in ("mean", "min", "max"))])
        for of in log["columns"]
    ]
    period = "" if log["period_s"] is None else f", a row each {figure(log['period_s'])} s"
    soft = (
        f"{log['file']}, by {CLOCKS[log['clock']]}; times to {figure(log['time_error_s'])} s{period}. "
        "Whether a row's time is the begin or the end of its interval is the application's own."
    )
    title = context.title("Log of the application") + whose
    return panel(title, number_table("Column", HEADS, lines), soft)


def _plot(context: Context, name: str, logged: list[tuple[int, Row]]) -> str:
    """A column of all runs."""
    lines = [
        (number, t_s, values)
        for number, row in logged
        if row.data
        for of, t_s, values in row.data.logged
        if of == name and len(values)
    ]
    if not lines:
        return ""
    end = max((row.data.load_s for _, row in logged if row.data), default=0.0)
    reach = svg.extent([value for *_, values in lines for value in (values.min(), values.max())], False)
    title = f"{name}, by the application"
    plot = svg.Plot(title, 960, 250, (0.0, end or 1.0), reach)
    for number, t_s, values in lines:
        look = context.looks[number] if len(context.tables) > 1 else svg.look(0)
        pairs = svg.thinned(list(zip(t_s.tolist(), values.tolist(), strict=True)), svg.most_dots(len(context.tables)))
        plot.line(pairs, svg.stroke(look), name=context.names[number])
    plot.axes("s since the first I/O", name)
    return panel(title, plot.text() + context.legend(), "", "wide")


HTML = {"application-log": application_log}  # view -> how it is drawn
