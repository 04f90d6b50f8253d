"""The view `load-line`: power over the I/Os that a drive did a second in an open loop, and the straight line through
it: the cost of keeping the drive awake, and the cost of one more I/O.

P = P0 + e x rate, by ordinary least squares (uncertain.line). The errors, of 95 %, cover the scatter about the line
and, in quadrature, what all points share, such as the error of the meter's gain: of P0 that of the point with the
lowest rate, of e the share of its power by which the highest point may be off.
A point whose drive did not reach the rate is left out: there a queue grows, and power no longer follows it."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from ssdrig.base.uncertain import Uncertain, line, ratio
from ssdrig.reading import errors
from ssdrig.reading.row import WHOLE, Table
from ssdrig.views import svg
from ssdrig.views.context import (
    Context,
    doubt_at,
    figure,
    panel,
    panels,
    place,
    plus_minus,
    points,
    rounds_in_words,
    rows_at,
)

WIDTH, HEIGHT = 480, 320
REACHED = 0.97  # of the rate that was asked for
FEWEST = 3


class Point(NamedTuple):
    """I/Os a second and W of one point; `asked`: I/Os a second, None: as many as the drive does; `error_W`: by the
    meter's budget, None: not known."""

    iops: float
    power_W: float
    asked: float | None = None
    error_W: float | None = 0.0


class Line(NamedTuple):
    """P0_W and e_uJ, each with its error; `used` points, `left_out` that did not reach their rate. None:
    `why`."""

    P0_W: float | None = None
    P0_error_W: float | None = None
    e_uJ: float | None = None
    e_error_uJ: float | None = None
    used: int = 0
    left_out: int = 0
    why: str | None = None


def fit(points: Sequence[Point]) -> Line:
    """The line through at least FEWEST points of different rates."""
    used = [sample for sample in points if sample.asked is None or sample.iops >= REACHED * sample.asked]
    out = Line(used=len(used), left_out=len(points) - len(used))
    rate, power = (np.array([sample[i] for sample in used], float) for i in (0, 1))
    if len(used) < FEWEST or not np.ptp(rate) > 0:
        why = f"{len(used)} of {len(points)} points reached their rate, a line with its errors needs {FEWEST}"
        return out._replace(why=why)
    fitted = line(rate, power)
    slope = fitted.slope.scaled(1e6)
    low, high = (end(used, key=lambda sample: sample.iops) for end in (min, max))
    share = ratio(Uncertain(high.error_W, 0.0), Uncertain(high.power_W, 0.0)).value
    return out._replace(
        P0_W=fitted.at_0.value,
        P0_error_W=_with_shared(fitted.at_0, low.error_W),
        e_uJ=slope.value,
        e_error_uJ=_with_shared(slope, None if share is None else share * (slope.value or 0.0)),
    )


def _with_shared(fitted: Uncertain, shared: float | None) -> float | None:
    """The error of a fitted figure and one that all points share; None where either is not known."""
    return None if fitted.error is None or shared is None else math.hypot(fitted.error, shared)


class _Series(NamedTuple):
    """The points of one line. `doubt`: why nothing is claimed of it."""

    points: list[Point]
    doubt: str | None


def _series(run: Table, path: str, where: Mapping) -> _Series:
    return _Series(measured(run, path, where), doubt_at(run, path, dict(where), "W"))


def load_line_view(context: Context) -> str:
    """A panel for each step: of one run a line for each value of `by`; of several a line for each run."""
    show = context.show
    by, where = show.get("by"), place(show)
    of_paths = {
        path: [
            (run, name, [(v, _series(run, path, where | ({by: v} if by else {}))) for v in values])
            for run, name in context.runs()
            if (values := points(run, path, by) if by else [None])
        ]
        for path in context.paths
    }
    dots = [dot for series in of_paths.values() for *_, of in series for _, one in of for dot in one.points]
    x = svg.extent([dot.iops for dot in dots], False)
    y = svg.extent([dot.power_W for dot in dots], False, show.get("top"))
    out = []
    for path, series in of_paths.items():
        for table, names, words, of, looks in panels(context, series, by):
            title = context.title("Load line", "W", path) + words
            plot = svg.Plot(title, WIDTH, HEIGHT, x, y)
            sentences: dict[str, str] = {}
            for name, (seen, doubt), look in zip(names, of, looks, strict=True):
                line = fit(seen)
                if line.P0_W is not None and line.e_uJ is not None:
                    ends = [(at, line.P0_W + line.e_uJ * 1e-6 * at) for at in (0.0, max(dot.iops for dot in seen))]
                    plot.line(ends, svg.stroke(look))
                for dot in seen:
                    plot.whisker(dot.iops, dot.power_W, dot.error_W, look)
                    words_of_dot = f"{name + ', ' if name else ''}{figure(dot.iops)} IOPS: {figure(dot.power_W)} W"
                    plot.mark(dot.iops, dot.power_W, look, words_of_dot)
                sentences[name] = (
                    f"<p>{escape(f'{name}: ' if name else '')}{escape(in_words(line, context.reason(doubt)))}</p>"
                )
            plot.axes("IOPS", "Mean power, W")
            subjects = context.names[: context.subjects or None] if len(context.tables) > 1 else names
            lines = "".join(sentences.get(name, "") for name in subjects)
            body = plot.text() + svg.legend(names, looks) + lines
            out.append(panel(title, body, rounds_in_words(table, path)))
    return "".join(out)


def measured(of: Table, path: str, where: Mapping) -> list[Point]:
    """The step's points there whose figures are known, with the rate that each was asked for."""
    out = []
    for row in rows_at(of, path, dict(where)):
        iops, watts, rate = row.value("iops"), row.value("W"), row.act.keys.get("rate")
        if iops is not None and watts is not None:
            out.append(Point(iops, watts, rate, errors.of("power_mean_W", row.windows.get(WHOLE) or {}).error))
    return out


def in_words(line: Line, doubt: str | None = None) -> str:
    """ "1.250 ± 0.013 W to keep it awake, 12.30 ± 0.20 µJ for one more I/O; by 11 points". `doubt`: why it is not
    claimed."""
    if doubt:
        return f"not claimed, {doubt}"
    left = f"; {line.left_out} left out, below the rate asked for" if line.left_out else ""
    if line.P0_W is None:
        return f"no line: {line.why}{left}"
    awake = f"{plus_minus(Uncertain(line.P0_W, line.P0_error_W), 'W')} to keep it awake"
    more = f"{plus_minus(Uncertain(line.e_uJ, line.e_error_uJ), 'µJ')} for one more I/O"
    return f"{awake}, {more}; by {line.used} points{left}"


HTML = {"load-line": load_line_view}  # view -> how it is drawn
