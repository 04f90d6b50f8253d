"""The view `thermal`: the temperature that the drive reported, and the body that fits it (views/thermal/figures.py)."""

from html import escape

from ssdrig.reading.row import Table
from ssdrig.views import svg
from ssdrig.views.context import Context, figure, panel

WIDTH, HEIGHT = 640, 320


def thermal(context: Context) -> str:
    """A panel for each run."""
    events = [(name, _of(table, context.paths)) for table, name in context.runs()]
    dots = [dot for _, of in events for dot in of.get("readings_s_C", [])]
    x = svg.extent([at for at, _ in dots], False)
    top = context.show.get("top") or max((c for _, c in dots), default=50.0) + 5
    y = (min((c for _, c in dots), default=20.0) - 5, top)
    out = []
    for name, of in events:
        title = context.title("Temperature") + name
        if not of:
            out.append(panel(title, "", "none of its steps with I/O was run"))
            continue
        plot = svg.Plot(title, WIDTH, HEIGHT, x, y)
        plot.band(*of["load_s"])
        plot.dots([(at, c) for at, c in of["readings_s_C"]], "fill:var(--blue)")
        plot.line([(at, c) for at, c in of["fitted_s_C"]], "stroke:var(--red)")
        plot.axes("Drive time, s", "°C")
        lines = "".join(f"<p>{escape(line)}</p>" for line in in_words(of))
        soft = "Dots: the drive's readings; line: the fit; shaded: the load. Airflow and heatsink belong to the result."
        out.append(panel(title, plot.text() + lines, soft, "wide"))
    return "".join(out)


def _of(table: Table, paths: list[str]) -> dict:
    events = (row.result for row in table.rows if row.act.path in paths)
    return next((of for of in events if of.get("kind") == "thermal"), {})


def in_words(of: dict) -> list[str]:
    """Resistance, time constant and throttle threshold, each with the reason where it is not known."""
    if of["K_per_W"] is None:
        lines = [f"thermal resistance not known: {of['why']}"]
    else:
        R = f"{figure(of['K_per_W'])} K/W ± {figure(of['K_per_W_error'])} K/W"
        tau = f"time constant {figure(of['tau_s'])} s ± {figure(of['tau_error_s'])} s"
        rest = f"{figure(of['rest_C'])} °C without power"
        by = f"by {of['readings']} readings, {figure(of['scatter_K'])} K about the fit"
        lines = [f"{R}, {tau}, {rest}; {by}"]
    slowed = of["throttled"]
    if slowed["celsius"] is None:
        lines.append(f"no throttling seen: {slowed['why']}")
    else:
        fell = f"fell to {100 * slowed['share']:.0f} % of its speed before"
        when = f"throttled at {figure(slowed['celsius'])} °C, {figure(slowed['at_s'])} s into the load"
        lines.append(f"{when}: its speed {fell}")
    warm, hot = of["warning_temp_min"], of["critical_temp_min"]
    if warm is not None and hot is not None:
        lines.append(f"by its own counters {warm} min above its warning, {hot} min above its critical temperature")
    sensors = [f"{i}: {c} °C" for i, c in enumerate(of.get("sensors_max_C", []), 1) if c is not None]
    return [*lines, f"highest of its sensors {', '.join(sensors)}"] if len(sensors) > 1 else lines


HTML = {"thermal": thermal}  # view -> how it is drawn
