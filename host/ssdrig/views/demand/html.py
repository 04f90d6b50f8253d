"""The view `demand`: what more I/Os in flight gain and cost. Mean latency over IOPS, then power over IOPS, with a line
for each value of one key, such as the number of threads, along another, such as the queue depth (the demand intensity
of SNIA PTS 2.0, CBW and DIRTH; power is ours). Up and to the left is worse: a line that turns upward has reached what
the drive can do, and only the time in its queue still grows. Without `by` there is one line a run, all runs of a step
in one panel. A plan may name other figures, such as the energy per GB over MB/s."""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from ssdrig.plan.shows import VALUES
from ssdrig.plan.step import every
from ssdrig.reading.row import Table
from ssdrig.views import svg
from ssdrig.views.context import (
    Context,
    Unit,
    axis,
    figure,
    label,
    panel,
    place,
    point,
    rounds_in_words,
    unit,
    value_at,
)
from ssdrig.views.points.html import merged

LATENCY, POWER = "lat_mean", "W"
WIDTH, HEIGHT = 480, 320
MARK_PX, LETTER_PX, LINE_PX = 5, 6, 9  # half a mark; a digit of the small print and its height


class Dot(NamedTuple):
    """A point of a line: its place along it, its speed, and its figure (None where not known, with `why`)."""

    at: str
    speed: float | None
    value: float | None
    why: str


def demand(context: Context) -> str:
    """A panel of each figure for each step and run, all of a step on the same axes."""
    out = []
    words = context.words(LATENCY, POWER)
    every = {
        word: [
            dot
            for path in context.paths
            for run in context.tables
            for dot in itertools.chain(*lines(run, path, context.show, word).values())
        ]
        for word in words
    }
    for path in context.paths:
        names = [name for _, name in context.runs()]
        for word in words:
            series = [lines(run, path, context.show, word) for run in context.tables]
            if word == words[0] or any(dot.value is not None for of in series for dot in itertools.chain(*of.values())):
                of_runs = list(zip(context.tables, names, series, strict=True))
                if "by" not in context.show:
                    of_runs = [
                        (context.tables[0], "", dict(zip(context.names, (of[""] for of in series), strict=True)))
                    ]
                out += _panels(context, path, word, of_runs, every[word])
            if word == LATENCY and "by" in context.show and _speed(context.show) == "iops":
                out += _outstanding(context, path, list(zip(context.tables, names, series, strict=True)))
    return "".join(out)


def lines(of: Table, path: str, show: dict, word: str) -> dict[str, list[Dot]]:
    """{the line's name: its dots in the plan's order}: a line for each value of `by`, and of any further key but the
    last one that is swept, along which it runs."""
    where, by = place(show), str(show.get("by", ""))
    axes = {key: values for key, values in swept(of, path).items() if key not in where and key != by}
    *more, along = axes or {by: []}
    own = [v for v in swept(of, path)[by] if by not in where or str(v).replace(" ", "") == where[by]] if by else [None]
    series = {}
    for values in itertools.product(own, *(axes[key] for key in more)):
        at = {key: value for key, value in zip((by, *more), values, strict=True) if key}
        name = ", ".join(f"{axis(key)} {point(key, v)}" for key, v in at.items())
        series[name] = [_dot(of, path, where | at, along, v, word, show) for v in axes.get(along, [None])]
    return series


def swept(of: Table, path: str) -> dict[str, list]:
    """{key: its values} of all keys that `over` sweeps for a step, in the plan's order."""
    return next(
        {**step.axes, **act.axes} for step in of.plan.steps for act in every([step]) if path in (act.path, step.path)
    )


def _speed(show: dict) -> str:
    """The figure on the x axis."""
    return show.get("speed", "iops")


def _dot(of: Table, path: str, where: dict, along: str, v, word: str, show: dict) -> Dot:
    where = where if v is None else where | {along: v}
    speed, no_speed = value_at(of, path, where, _speed(show), show.get("window"))
    value, why = value_at(of, path, where, word, show.get("window"))
    at = "" if v is None else f"{axis(along)} {point(along, v)}"
    return Dot(at, speed, value, no_speed if speed is None else why)


def _panels(context: Context, path: str, word: str, series: Sequence[tuple], every_dot: Sequence[Dot]) -> list[str]:
    """The panels of a step; `every_dot` of the view sets unit and axes."""
    drawn = [dot for dot in every_dot if dot.speed is not None and dot.value is not None]
    shown, speed = unit(word, [dot.value for dot in drawn]), VALUES[_speed(context.show)][1]
    log = word != POWER and context.show.get("scale", "log" if word == LATENCY else "linear") == "log"
    top = context.show.get("top") if word == LATENCY else None
    about = "" if word == context.words(LATENCY, POWER)[0] else f", {'power' if word == POWER else label(word)}"
    x = svg.extent([dot.speed for dot in drawn if dot.speed is not None], False)
    y = svg.extent([dot.value * shown.scale for dot in drawn if dot.value is not None], log, top)
    out = []
    for run, name, of in series:
        title = context.title("Demand intensity", "", path) + about + name
        plot = svg.Plot(title, WIDTH, HEIGHT, x, y, y_log=log)
        of_runs = "by" not in context.show
        looks = context.looks if of_runs and len(of) > 1 else [svg.look(i) for i in range(len(of))]
        for (line, dots), look in zip(of.items(), looks, strict=True):
            _draw(plot, line, dots, look, shown, speed)
        _label(plot, of, shown.scale)
        plot.axes(speed, shown.title)
        along = next((dot.at.rpartition(" ")[0] for dots in of.values() for dot in dots), "")
        lacking = (dot.why for dots in of.values() for dot in dots if dot.speed is None or dot.value is None)
        beside = f"Next to the marks: {along}." if along else ""
        soft = " ".join(
            [rounds_in_words(run, path), beside, *(f"Not drawn: {why}." for why in merged(lacking))]
        ).strip()
        out.append(panel(title, plot.text() + (context.legend() if of_runs else svg.legend(list(of), looks)), soft))
    return out


def _outstanding(context: Context, path: str, series: Sequence[tuple]) -> list[str]:
    """IOPS over the I/Os in flight, threads x queue depth, where these two are swept."""
    by, out = context.show["by"], []
    if set(swept(series[0][0], path)) != {"threads", "qd"}:
        return []
    dots = [(name, _in_flight(of)) for _, name, of in series]
    x = svg.extent([float(at) for _, of in dots for line in of.values() for at, _ in line], True)
    y = svg.extent([iops for _, of in dots for line in of.values() for _, iops in line], False)
    for name, of in dots:
        title = context.title("IOPS over I/Os in flight") + name
        plot = svg.Plot(title, WIDTH, HEIGHT, x, y, x_log=True)
        looks = [svg.look(i) for i in range(len(of))]
        for (line, points_of), look in zip(of.items(), looks, strict=True):
            plot.line(points_of, svg.stroke(look))
            for at, iops in points_of:
                plot.mark(at, iops, look, f"{line}, {at} in flight: {figure(iops)} IOPS")
        plot.axes("I/Os in flight: threads × queue depth", "IOPS")
        out.append(panel(title, plot.text() + svg.legend(list(of), looks), f"A line for each {axis(by)}."))
    return out


def _in_flight(of: dict[str, list[Dot]]) -> dict[str, list[tuple[int, float]]]:
    """{line: [(threads x queue depth, IOPS)]} of the dots that are known."""
    depth = {line: int(line.rpartition(" ")[2]) for line in of}
    return {
        line: [(depth[line] * int(dot.at.rpartition(" ")[2]), dot.speed) for dot in dots if dot.speed is not None]
        for line, dots in of.items()
    }


def _known(dots: Sequence[Dot], scale: float) -> list[tuple[Dot, float, float]]:
    return [(dot, dot.speed, dot.value * scale) for dot in dots if dot.speed is not None and dot.value is not None]


def _draw(plot: svg.Plot, line: str, dots: Sequence[Dot], look: dict, shown: Unit, speed: str) -> None:
    """A line, which breaks where a point is not known, and its marks."""
    known = {dot: (x, y) for dot, x, y in _known(dots, shown.scale)}
    plot.line([known.get(dot, (0.0, math.nan)) for dot in dots], svg.stroke(look))
    for dot, (x, y) in known.items():
        words = ", ".join(filter(None, (line, dot.at)))
        plot.mark(x, y, look, f"{words}: {figure(x)} {speed}, {figure(y)} {shown.name}")


def _label(plot: svg.Plot, of: dict[str, list[Dot]], scale: float) -> None:
    """How far along its line a mark is, in small print next to it, wherever there is room: paper has no pointer."""
    marks = [(dot, plot.x(x), plot.y(y)) for dots in of.values() for dot, x, y in _known(dots, scale)]
    taken = [(x - MARK_PX, x + MARK_PX, y) for _, x, y in marks]
    for dot, x, y in marks:
        words = dot.at.rpartition(" ")[2]
        box = (x + MARK_PX, x + MARK_PX + 3 + LETTER_PX * len(words), y)
        free = all(b <= box[0] or a >= box[1] or abs(at - y) >= LINE_PX for a, b, at in taken)
        if words and free and box[1] <= WIDTH:
            taken.append(box)
            plot.words(box[0] + 3, y + 3.5, words, "soft small")


HTML = {"demand": demand}  # view -> how it is drawn
