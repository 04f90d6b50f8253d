"""Views of points: matrix, heat, lines, bars, and a figure by formula."""

import math
import re
from collections.abc import Iterable
from html import escape
from typing import NamedTuple

from ssdrig.base.uncertain import NOT_TRUSTED, Uncertain
from ssdrig.plan import formula
from ssdrig.reading.row import Table
from ssdrig.views import svg, trust_strip
from ssdrig.views.context import (
    AXES,
    Context,
    axis,
    doubt_at,
    figure,
    label,
    panel,
    panels,
    place,
    plus_minus,
    point,
    points,
    rising,
    rounds_in_words,
    rows_at,
    uncertain_at,
    unit,
    value_at,
)
from ssdrig.views.terms import number

EVERY = ("iops", "MB/s", "W", "uJ/IO", "iops/W")  # where a plan names no value
LETTER = 8.0  # px of a plot, widest
MOST_BARS = 2  # runs whose bars have room in a card
NARROW = 4  # columns of a matrix that need no more width than a plot
BRIGHTEST = 52  # percent of the colour in the highest cell: the words on it stay legible


def matrix(context: Context, heat: bool = False) -> str:
    """A table of rows by columns for each value; with `heat` its cells are coloured by their figure."""
    show, out = context.show, []
    rows_key, columns_key = show["rows"], show["columns"]
    for word in context.words(*EVERY):
        grids_of = [
            (path, [_grid(run, path, rows_key, columns_key, word, context) for run in context.tables])
            for path in context.paths
        ]
        values = [v for _, grids in grids_of for grid in grids for line in grid for v, *_ in line if v is not None]
        shown = unit(word, values)
        reach = (min(values, default=0.0), show.get("top") or max(values, default=1.0))
        for path, grids in grids_of:
            for (table, name), grid in zip(context.runs(), grids, strict=True):
                rows, columns = points(table, path, rows_key), points(table, path, columns_key)
                head = "".join(f'<th scope="col">{escape(point(columns_key, c))}</th>' for c in columns)
                lines = [
                    f'<tr><th scope="row">{escape(point(rows_key, r))}</th>'
                    + "".join(_cell(cell, shown, reach if heat else None) for cell in line)
                    + "</tr>"
                    for r, line in zip(rows, grid, strict=True)
                ]
                title = context.title(f"{label(word)} by {axis(rows_key)} and {axis(columns_key)}", word, path)
                title += f", {shown.name}" if shown.shows_unit else ""
                corner = f"{axis(rows_key)} ↓ {axis(columns_key)} →"
                body = (
                    f'<div class="scroll"><table class="matrix"><thead><tr><th scope="col">{escape(corner)}</th>{head}'
                    f"</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
                )
                reasons = merged(why for line in grid for v, why, _ in line if v is None)
                notes = [rounds_in_words(table, path), trust_strip.meaning_of_mark(body)]
                soft = " ".join([*filter(None, notes), *(f"–: {why}." for why in reasons)])
                out.append(panel(title + name, body, soft, "wide" if len(columns) > NARROW else ""))
    return "".join(out)


def _grid(run, path: str, rows_key: str, columns_key: str, word: str, context: Context) -> list[list[tuple]]:
    where, window = place(context.show), context.show.get("window")
    return [
        [
            (*value_at(run, path, at, word, window), doubt_at(run, path, at, word, window))
            for c in points(run, path, columns_key)
            if (at := where | {rows_key: r, columns_key: c})
        ]
        for r in points(run, path, rows_key)
    ]


FEW = re.compile(r"(\d+)(?= I/Os are too few)")


def merged(reasons: Iterable[str]) -> list[str]:
    """Each reason once; of those that differ in the number of I/Os only, one with the least and the most."""
    numbers: dict[str, list[int]] = {}
    for why in reasons:
        numbers.setdefault(FEW.sub("{}", why), []).extend(map(int, FEW.findall(why)))
    return [
        why.replace("{}", " to ".join(number(n, 0) for n in dict.fromkeys((min(seen), max(seen))))) if seen else why
        for why, seen in numbers.items()
    ]


def _cell(of: tuple, shown, reach: tuple[float, float] | None) -> str:
    """A cell of a matrix, (figure, why not, doubt); with `reach`, where its colour begins and ends."""
    value, why, doubt = of
    reasons = "; ".join(filter(None, [why, doubt]))
    tip = f' title="{escape(reasons)}"' if reasons else ""
    if value is None:
        return f'<td class="soft"{tip}>–</td>'
    style = ""
    if reach:
        low, high = reach
        if low > 0 and high / low > 20:
            low, high, at = math.log(low), math.log(high), math.log(value)
        else:
            low, at = min(0.0, low), value
        part = min(1.0, (at - low) / (high - low)) if high > low else 1.0
        style = f' style="background:color-mix(in srgb, var(--blue) {BRIGHTEST * part:.0f}%, var(--paper))"'
    return f"<td{tip}{style}>{trust_strip.with_mark(shown.text(value), doubt)}</td>"


def heat(context: Context) -> str:
    return matrix(context, heat=True)


def lines(context: Context) -> str:
    """A figure against one key of the points, a line for each value of another."""
    show, out = context.show, []
    x_key, by = show["x"], show.get("by")
    for word in context.words("iops"):
        found_at = [
            (path, [(run, name, _lines(context, run, path, word)) for run, name in context.runs()])
            for path in context.paths
        ]
        values = [v for _, series in found_at for *_, of in series for _, line in of for v, *_ in line if v is not None]
        shown = unit(word, values)
        reach = svg.extent([v * shown.scale for v in values], context.log, show.get("top"))
        for path, parts in found_at:
            for table, names, words, of, looks in panels(context, parts, by):
                xs = rising(points(table, path, x_key))
                ticks = [point(x_key, x).removesuffix(AXES.get(x_key, ("", ""))[1]) for x in xs]
                title = context.title(f"{label(word)} by {axis(x_key)}", word, path) + words
                plot = svg.Plot(title, 480, 300, (-0.4, len(xs) - 0.6), reach, y_log=context.log)
                for name, line, look in zip(names, of, looks, strict=True):
                    dots = [(i, v * shown.scale) for i, (v, *_) in enumerate(line) if v is not None]
                    plot.line(dots, svg.stroke(look))
                    for i, (v, error, _) in enumerate(line):
                        if v is not None and error is not None:
                            plot.whisker(i, v * shown.scale, error * shown.scale, look)
                    for i, v in dots:
                        plot.mark(i, v, look, f"{name + ', ' if name else ''}{ticks[int(i)]}: {figure(v)} {shown.name}")
                plot.axes(axis(x_key), shown.title, list(enumerate(ticks)))
                out.append(panel(title, plot.text() + svg.legend(names, looks), rounds_in_words(table, path)))
    return "".join(out)


def _lines(context: Context, run: Table, path: str, word: str) -> list[tuple]:
    """(value of `by`, [the Uncertain figure of each x]) of each line."""
    show, x_key, by = context.show, context.show["x"], context.show.get("by")
    where, window = place(show), show.get("window")
    series = points(run, path, by) if by else [None]
    if by in where:
        series = [s for s in series if str(s).replace(" ", "") == where[by]]
    xs = rising(points(run, path, x_key))
    return [
        (s, [_point_of(run, path, where | {x_key: x} | ({by: s} if by else {}), word, window) for x in xs])
        for s in series
    ]


class _Point(NamedTuple):
    value: float | None
    error: float | None
    why: str


def _point_of(run: Table, path: str, where: dict, word: str, window: str | None) -> _Point:
    value, why = value_at(run, path, where, word, window)
    return _Point(value, uncertain_at(run, path, where, word, window).error, why)


def bars(context: Context) -> str:
    """A bar for each step and run, a card for each value; of more than MOST_BARS runs a plot for each value, with a
    mark for each step and run."""
    if len(context.tables) > MOST_BARS:
        return "".join(_marks(context, word) for word in context.words("iops"))
    out = []
    for word in context.words("iops"):
        values = []
        for i, (run, name) in enumerate(context.runs()):
            for path in context.paths:
                rows = rows_at(run, path, place(context.show))
                for point_of in {row.act.label: row.act.point for row in rows}.values() or [{}]:
                    where = place(context.show) | dict(point_of)
                    at = run, path, where, word, context.show.get("window")
                    value, why = value_at(*at)
                    doubt = doubt_at(*at)
                    words = ", ".join([path, *(f"{axis(key)} {point(key, v)}" for key, v in point_of.items())])
                    own = uncertain_at(*at)._replace(value=value)
                    values.append((words + name, value, why, svg.look(i)["colour"], doubt, own))
        shown = unit(word, [value for _, value, *_ in values])
        top = context.show.get("top") or max((v for _, v, *_ in values if v is not None), default=0) or 1
        out.append(f'<div class="card"><h3>{shown.heading}</h3>')
        for words, value, why, colour, doubt, own in values:
            width = 0 if value is None else min(100.0, 100 * value / top)
            number_of, sign, error = plus_minus(own.scaled(shown.scale)).partition(" ± ")
            text = trust_strip.with_mark(number_of, doubt)
            text += f'<small class="error">{sign}{error}</small>' if error else ""
            note = f"not claimed, {doubt}" if doubt and not context.brief else ""  # a brief page explains the mark once
            aside = escape(why if value is None else note)
            out.append(
                f'<div class="row bar" style="--bar:var({colour})"><span class="head"><span>{escape(words)}</span>'
                f'<span class="value">{text}</span></span><span class="track"><span class="fill"'
                f' style="width:{width:.2f}%"></span></span></div>' + (f'<p class="soft">{aside}</p>' if aside else "")
            )
        out.append("</div>")
    title = f"<h3>{escape(str(context.show['title']))}</h3>" if context.show.get("title") else ""
    return f'{title}<div class="cards">{"".join(out)}</div>'


def _marks(context: Context, word: str) -> str:
    """The steps along the axis, the runs next to each other, each with its error."""
    window, seen = context.show.get("window"), []
    for run, table in enumerate(context.tables):
        for path in context.paths:
            rows = rows_at(table, path, place(context.show))
            for point_of in {row.act.label: row.act.point for row in rows}.values():
                where = place(context.show) | dict(point_of)
                value = _point_of(table, path, where, word, window)
                words = ", ".join([path, *(point(key, v) for key, v in point_of.items())])
                seen.append((run, words, value, doubt_at(table, path, where, word, window)))
    steps = list(dict.fromkeys(words for _, words, *_ in seen))
    known = [(run, words, of, doubt) for run, words, of, doubt in seen if of.value is not None]
    default = f"{label(word)} of {', '.join(context.paths)}" + (f", window {window}" if window else "")
    title = context.title(default, word)
    if not known:
        return panel(title, "", f"No figures: {seen[0][2].why if seen else 'no such step was run'}.")
    shown = unit(word, [of.value for _, _, of, _ in known])
    tops = [(of.value or 0.0) + (of.error or 0.0) for _, _, of, _ in known]
    reach = svg.extent([top * shown.scale for top in tops], context.log, context.show.get("top"))
    plot = svg.Plot(title, 480, 300, (-0.5, max(len(steps), 1) - 0.5), reach, y_log=context.log)
    apart = 0.8 / len(context.tables)
    for run, words, of, doubt in sorted(known, key=lambda entry: context.order.index(entry[0])):
        x = steps.index(words) - 0.4 + apart * (run + 0.5)
        value, look = (of.value or 0.0) * shown.scale, context.looks[run]
        plot.whisker(x, value, None if of.error is None else of.error * shown.scale, look)
        text = f"{context.names[run]}, {words}: {figure(value)} {shown.name}"
        plot.mark(x, value, look, f"{text}, not claimed: {doubt}" if doubt else text)
    room = (plot.x(1) - plot.x(0)) / LETTER
    fit = all(len(words) < room for words in steps)
    plot.axes("", shown.title, [(i, words if fit else str(i + 1)) for i, words in enumerate(steps)])
    soft = "" if fit else "; ".join(f"{i}: {words}" for i, words in enumerate(steps, 1)) + "."
    return panel(title, plot.text() + context.legend(), soft)


def formula_of(of: Table, text: str) -> Uncertain:
    """What a plan's formula comes to, of the figures of a run; unknown where one of them is not to be trusted."""

    doubts: list[str] = []

    def lookup(path: str, word: str, window: str | None = None) -> Uncertain:
        doubts.extend(filter(None, [doubt_at(of, path, {}, word, window)]))
        return uncertain_at(of, path, {}, word, window)

    result = formula.evaluate(formula.parse(text), lookup)
    return Uncertain(None, None, NOT_TRUSTED, f"not claimed, {doubts[0]}") if doubts else result


def by_formula(context: Context) -> str:
    """A figure that the plan computes of its steps."""
    show, out = context.show, []
    percent = show.get("unit") == "%"
    for run, name in context.runs():
        result = formula_of(run, show["formula"])
        why = result.why if result.value is None else ""
        text = plus_minus(result.scaled(100) if percent else result)
        out.append(
            f'<div class="card"><h3>{escape(context.title(show["name"]) + name)}</h3><p class="big">{text}'
            f' <span class="unit">{escape(show.get("unit", ""))}</span></p>'
            f'<p class="soft">{escape(why + ". " if why else "")}<code>{escape(show["formula"])}</code></p></div>'
        )
    return f'<div class="cards">{"".join(out)}</div>'


HTML = {"matrix": matrix, "heat": heat, "lines": lines, "bars": bars, "figure": by_formula}  # view -> how it is drawn
