"""The view `episodes`: short events of one kind laid on each other, their mean and scatter, and what one costs."""

from collections.abc import Mapping, Sequence
from html import escape

from ssdrig.base.uncertain import Uncertain
from ssdrig.reading.row import Row
from ssdrig.views import svg
from ssdrig.views.context import Context, figure, panel, plus_minus
from ssdrig.views.episodes.figures import BURST, IO, SMART

WIDTH, HEIGHT = 660, 300
TITLES = {SMART: "SMART readings", IO: "I/Os after a pause", BURST: "Bursts of power"}
SOFT = "Aligned where they begin. Line: their mean; band: ± standard deviation; dotted: the level before and after."
Curve = list[tuple[float, float]]


def episodes(context: Context) -> str:
    """For each step and kind a panel with the episodes of all runs."""
    out = []
    for path in context.paths:
        rows = [
            (row, run)
            for run, table in enumerate(context.tables)
            for row in table.rows
            if row.act.path == path and row.episodes
        ]
        for label in dict.fromkeys(row.label for row, _ in rows):
            of_label = [(row, run) for row, run in rows if row.label == label]
            for kind in TITLES:
                out.append(_panel(context, path, kind, _of_kind(of_label, kind)))
    return "".join(out) or panel(context.title("Episodes"), "<p>no step of it was run</p>")


def _of_kind(rows: Sequence[tuple[Row, int]], kind: str) -> list[tuple[dict, Row, int]]:
    return [(of, row, run) for row, run in rows for of in row.episodes if of["of"] == kind]


def _panel(context: Context, path: str, kind: str, shown: Sequence[tuple[dict, Row, int]]) -> str:
    if not shown:
        return ""
    label = shown[0][1].label
    point = label.partition(" ")[2]
    title = context.title(TITLES[kind], "", path) + f"{', ' if point else ''}{point.replace('=', ' ')}"
    names = [_named(context, row, run) for _, row, run in shown]
    curves = [(of, context.looks[run], f"of-run r{run}" if context.styles else "") for of, _, run in shown]
    plot = drawn(title, curves)
    looks = [look for _, look, _ in curves]
    lines = "".join(f"<p>{escape(line(of, name))}</p>" for (of, *_), name in zip(shown, names, strict=True))
    body = plot.text() + svg.legend(names, looks) if plot else ""
    return panel(title, body + lines, SOFT if plot else "")


def _named(context: Context, row: Row, run: int) -> str:
    """The run, where there are several, and the round of a repeat."""
    words = [context.names[run]] * (len(context.tables) > 1) + [f"round {row.round}"] * (row.round is not None)
    return ", ".join(words)


def drawn(title: str, curves: Sequence[tuple[Mapping, dict, str]]) -> svg.Plot | None:
    """The plot of the episodes of one kind, each curve with its look and a class; the band where there is one run.
    None without a curve."""
    lines = [(of, points(of), look, kind) for of, look, kind in curves]
    lines = [line for line in lines if line[1]]
    if not lines:
        return None
    ends = [end for of, *_ in lines for end in _edges(of) if end is not None] if len(lines) == 1 else []
    values = [watts for _, curve, _, _ in lines for _, watts in curve] + ends
    low_s, high_s = min(curve[0][0] for _, curve, *_ in lines), max(curve[-1][0] for _, curve, *_ in lines)
    scale, unit = (1.0, "s") if high_s - low_s >= 1 else (1e3, "ms")
    x = low_s * scale, high_s * scale
    plot = svg.Plot(title, WIDTH, HEIGHT, x, svg.extent(values, False))
    plot.axes(f"{unit} since it began", "W")
    for of, curve, look, kind in lines:
        if len(lines) == 1:
            low, high = ([(at * scale, watts) for at, watts in side] for side in _band(of))
            plot.area(high, low, f"fill:var({look['colour']});fill-opacity:.2", "mean ± standard deviation", kind)
        curve = [(at * scale, watts) for at, watts in curve]
        level = [(curve[0][0], of["level_W"]), (curve[-1][0], of["level_W"])]
        style = svg.stroke(look)
        plot.line(level, f"{style};stroke-width:1;stroke-dasharray:2 3", kind, "level")
        plot.line(curve, f"{style};stroke-width:1.8", kind, "mean")
    return plot


def _times_s(of: Mapping) -> list[float]:
    """Middle of each step."""
    return [of["begins_s"] + (i + 0.5) * of["step_s"] for i in range(len(of["mean_W"]))]


def points(of: Mapping) -> Curve:
    """The mean: (s since the begin, W)."""
    return [(at, watts) for at, watts in zip(_times_s(of), of["mean_W"], strict=True) if watts is not None]


def _band(of: Mapping) -> tuple[Curve, Curve]:
    known = [
        (at, mean, sd)
        for at, mean, sd in zip(_times_s(of), of["mean_W"], of["sd_W"], strict=True)
        if mean is not None and sd is not None
    ]
    return [(at, max(0.0, mean - sd)) for at, mean, sd in known], [(at, mean + sd) for at, mean, sd in known]


def _edges(of: Mapping) -> list[float]:
    return [watts for side in _band(of) for _, watts in side]


def line(of: Mapping, name: str = "") -> str:
    """The episodes of a run in a line: how many, and the energy of one or why it is not known."""
    number = f"{f'{name}: ' if name else ''}{of['laid']} of {of['count']} averaged"
    if of["energy_J"] is None:
        return f"{number}; energy of one not known: {of['why']}."
    energy = plus_minus(Uncertain(of["energy_J"], of["energy_error_J"]).scaled(1e3), "mJ")
    level = f"{figure(of['level_W'])} W, over {figure(1e3 * of['lasts_s'])} ms"
    return f"{number}; energy of one: {energy} above its level of {level}."


HTML = {"episodes": episodes}  # view -> how it is drawn
