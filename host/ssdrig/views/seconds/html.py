"""Views of time and of rounds: scatter, series, rounds, steady."""

import math

from ssdrig.plan.rules import steady as rule
from ssdrig.plan.step import every, told
from ssdrig.reading.row import Table, Verdict
from ssdrig.views import svg
from ssdrig.views.by_second import axis_title, seconds, timed
from ssdrig.views.context import (
    ROUNDS,
    TIME,
    Context,
    Unit,
    axis,
    figure,
    label,
    last_rounds,
    panel,
    place,
    point,
    points,
    rounds_in_words,
    unit,
)
from ssdrig.views.seconds import along as seconds_along
from ssdrig.views.terms import number

LETTER = 6.5  # px of a plot, widest
BETWEEN = 0.02  # of a series, between two steps
WORDS_PX = 13  # from one line of words in a plot to the next


def scatter(context: Context) -> str:
    """Each second of a step as a point; a window alone where the plan names one."""
    if context.along != TIME:
        return seconds_along.drawn(context)
    out, window = [], context.show.get("window")
    for word in context.words("iops"):
        of_paths = {path: _within(context, path, word, window) for path in context.paths}
        every = [float(v) for found in of_paths.values() for *_, values in found for v in values]
        shown = unit(word, every)
        reach = svg.extent([v * shown.scale for v in every], context.log, context.show.get("top"))
        for path, found in of_paths.items():
            if not found:
                title = context.title(f"{timed(word)} by the second, {path}")
                out.append(panel(title, "", f"No figures: {_none_by_second(context)}.", "wide"))
            for name, row, from_s, to_s, t, values in found:
                where = (f", window {window}" if window else "") + ", logarithmic" * context.log
                title = context.title(f"{timed(word, [row])} by the second, {path}{where}") + name
                plot = svg.Plot(title, 960, 300, (from_s, max(to_s, from_s + 1)), reach, y_log=context.log)
                marked = row.windows.get("steady")
                if marked and not window:
                    plot.band(marked["t0_s"], marked["t1_s"])
                size = 5 if len(t) < 400 else 3 if len(t) < 2500 else 2
                style = f"stroke:var(--blue);stroke-width:{size}"
                plot.dots(svg.thinned(list(zip(t.tolist(), (values * shown.scale).tolist()))), style, name=path)
                plot.axes("s since the first I/O", axis_title(word, shown.name, [row]))
                soft = "Shaded: the window steady." if marked and not window else ""
                out.append(panel(title, plot.text(), soft, "wide"))
    return "".join(out)


def _within(context: Context, path: str, word: str, window: str | None) -> list[tuple]:
    """(name of the run, row, from and to in s, times, values) of a step in each run, in the window or in all of it."""
    out = []
    for each, name in context.runs():
        for row in each.of(path):
            if row.data is None:
                continue
            t, values = seconds(row, word)
            figures = row.windows.get(window) if window else None
            from_s, to_s = (figures["t0_s"], figures["t1_s"]) if figures else (0, len(row.data.iops))
            keep = (t >= from_s) & (t <= to_s)
            out.append((name, row, from_s, to_s, t[keep], values[keep]))
    return out


def _none_by_second(context: Context) -> str:
    """Why a step has no figures by the second."""
    rows = [row for each in context.tables for path in context.paths for row in each.of(path)]
    return "points of a repeat are kept as a whole" if rows else "no such step was carried out"


def series(context: Context) -> str:
    """Figures by the second of one or several steps, one after the other, a plot for each figure."""
    if context.along != TIME:
        return seconds_along.drawn(context)
    out = []
    for word in context.words("MB/s", "W"):
        of_runs = []
        for each, name in context.runs():
            rows = [row for path in context.paths for row in each.of(path) if row.data is not None]
            of_runs.append((name, [(row, *seconds(row, word)) for row in rows]))
        every = [
            float(v)
            for _, found in of_runs
            for row, _, values in found
            for v in (*values, row.value(word))
            if v is not None
        ]
        shown = unit(word, every)
        reach = svg.extent([v * shown.scale for v in every], context.log, context.show.get("top"))
        out += [_series(context, word, name, found, shown, reach) for name, found in of_runs]
    return "".join(out)


def _series(context: Context, word: str, name: str, found: list, shown: Unit, reach: tuple[float, float]) -> str:
    """A panel of one run; unit and range are those of all runs."""
    rows = [row for row, *_ in found]
    title = context.title(f"{timed(word, rows)}: {', '.join(context.paths)}", word) + name
    long = [max(len(row.data.iops), row.data.load_s, float(t.max(initial=0))) for row, t, _ in found]
    gap = BETWEEN * sum(long)
    begins = [sum(long[:i]) + gap * i for i in range(len(long))]
    means = [v for row, *_ in found if (v := row.value(word)) is not None]
    all_values = [float(v) * shown.scale for *_, values in found for v in values] + [v * shown.scale for v in means]
    if not any(map(math.isfinite, all_values)):
        reason = found[0][0].why_not(word) if found else _none_by_second(context)
        return panel(title, "", f"No figures: {reason}.", "wide")
    end = (begins[-1] + long[-1]) if long else 1.0
    plot = svg.Plot(title, 960, 250, (0, end or 1.0), reach, y_log=context.log)
    labels: list[tuple[float, str]] = []
    for i, ((row, t, values), begin, length) in enumerate(zip(found, begins, long, strict=True)):
        look = svg.look(i)
        pairs = svg.thinned(list(zip((begin + t).tolist(), (values * shown.scale).tolist())))
        mean = row.value(word)
        if word in ("wa", "C"):
            plot.line(pairs, f"stroke:var({look['colour']})", name=row.act.label)
            for x, y in pairs:
                plot.mark(x, y, look, f"{row.act.path}, {figure(x - begin)} s: {figure(y)} {shown.name}", 3)
        elif len([1 for _, y in pairs if math.isfinite(y)]) > 1:
            plot.line(pairs, f"stroke:var({look['colour']})", name=row.act.label)
        elif mean is not None:  # shorter than two seconds: its mean
            plot.line(
                [(begin, mean * shown.scale), (begin + length, mean * shown.scale)], f"stroke:var({look['colour']})"
            )
        if len(found) > 1:
            plot.band(begin, begin + length, "part")
            if length > 0.06 * end:
                room = (plot.x(begin + length) - plot.x(begin)) / LETTER
                words = row.act.label if len(row.act.label) < room else row.act.path
                plot.words(plot.x(begin + length / 2), plot.TOP + 12, words, "mid soft")
                labels.append((begin + length / 2, f"{figure(length)} s"))
    axis_words = "one step after the other" if len(found) > 1 else "s since the first I/O"
    plot.axes(axis_words, axis_title(word, shown.name, rows), labels or None)
    short = [row.act.path for (row, *_), length in zip(found, long, strict=True) if length <= 0.06 * end]
    soft = f"Too short for its name: {', '.join(short)}." if short and len(found) > 1 else ""
    return panel(title, plot.text(), soft, "wide")


def rounds(context: Context) -> str:
    """A figure by the round, a line for each value of a point's key."""
    out = []
    for word in context.words("iops"):
        found = [
            (each, path, name, _by_round(context, each, path, word))
            for path in context.paths
            for each, name in context.runs()
        ]
        values = [v for *_, of in found for _, line in of for _, v in line]
        shown = unit(word, values)
        reach = svg.extent([v * shown.scale for v in values], context.log, context.show.get("top"))
        last = max((n for *_, of in found for _, line in of for n, _ in line), default=1)
        out += [_rounds(context, each, path, name, of, shown, reach, last) for each, path, name, of in found]
    return "".join(out)


def _by_round(context: Context, each: Table, path: str, word: str) -> list[tuple]:
    """(point, [(round, value), …]) of each line."""
    by, where = context.show.get("by"), place(context.show)
    rows = [r for r in each.of(path) if all(told(r.act.point.get(k)) == told(v) for k, v in where.items())]
    lines = []
    for p in points(each, path, by) if by else [None]:
        of = [(r.round or 1, r.value(word)) for r in rows if not by or r.act.point.get(by) == p]
        if of:
            lines.append((p, [(n, v) for n, v in of if v is not None]))
    return lines


def _rounds(context: Context, each: Table, path: str, name: str, of: list[tuple], shown, reach, last: int) -> str:
    by, words = context.show.get("by"), f", {context.show['where']}" if context.show.get("where") else ""
    title = context.title(f"{label(shown.word)} by the round{words}", shown.word, path) + name
    plot = svg.Plot(title, 480, 300, (0.6, last + 0.4), reach, y_log=context.log)
    kept = last_rounds(each, path)
    if kept and len(kept) < last:
        plot.band(kept[0] - 0.4, kept[-1] + 0.4)
    looks = [svg.look(i) for i in range(len(of))]
    for (p, line), look in zip(of, looks, strict=True):
        dots = [(n, v * shown.scale) for n, v in line]
        plot.line(dots, f"stroke:var({look['colour']})", name=f"{axis(by)} {point(by, p)}" if by else path)
        for n, v in dots:
            of_line = f", {point(by, p)}" if by else ""
            plot.mark(n, v, look, f"round {n}{of_line}: {figure(v)} {shown.name}", 3)
    plot.axes("round", shown.title, svg.counted(last))
    names = [f"{axis(by)} {point(by, p)}" for p, _ in of] if by else []
    return panel(title, plot.text() + svg.legend(names, looks), rounds_in_words(each, path))


def steady(context: Context) -> str:
    """The window of the steady-state rule: rounds, average, 110 %, 90 %, slope line, and its numbers."""
    out = []
    for each, name in context.runs():
        for path in context.paths:
            out += [_steady(context, each, v, name) for v in each.verdicts if v.path.partition(" ")[0] == path]
    if not out:
        why = "The run ended before the rule could be applied."
        if all(_never(each, path) for each in context.tables for path in context.paths):
            why = "This variant asks for no steady state: the rule ended nothing."
        return panel(context.title("Steady state", path=", ".join(context.paths)), "", why)
    return "".join(out)


def _never(of: Table, path: str) -> bool:
    """Whether the rule of a step never holds, in this variant."""
    until = (entry for step in every(of.plan.steps) if step.path == path for entry in step.keys.get("until", ()))
    return any(entry.rule == "never" for entry in until)


def _steady(context: Context, each: Table, one: Verdict, name: str) -> str:
    verdict, values = one.verdict, [v for v in one.values if v is not None]
    word = one.words.split()[0].strip(",")
    title = context.title(f"Steady state: {one.words}") + name
    if verdict["passed"] is None or not values:
        return panel(title, "", f"STEADY STATE NOT ACHIEVED: {verdict['why']}.")
    shown, last = unit(word, values), one.first + len(values) - 1
    first, scale = last - len(verdict["rounds"]) + 1, shown.scale
    average, m, b = verdict["average"], verdict["m"], verdict["b"]
    ends = [m * x + b for x in (1, ROUNDS)]
    low, high = min(*values, 0.85 * average, *ends), max(*values, 1.15 * average, *ends)
    room = 0.05 * (high - low)
    plot = svg.Plot(title, 480, 300, (one.first - 0.4, last + 0.4), ((low - room) * scale, (high + room) * scale))
    plot.band(first - 0.4, last + 0.4)
    look = svg.look(0)
    held = rule.limits_of(verdict)
    off = held.range_percent / 200
    limits = (
        (1 + off, "dashed", f"{100 * (1 + off):g} %"),
        (1, "", "average"),
        (1 - off, "dashed", f"{100 * (1 - off):g} %"),
    )
    heights = [plot.y(share * average * scale) for share, *_ in limits]
    beside = [y - 4 for y in heights]
    if heights[1] - heights[0] < WORDS_PX:  # no room between the lines: all above them, or all below
        lowest = heights[0] - 8
        lowest = lowest if lowest - 3 * WORDS_PX > plot.TOP else heights[2] + 4 + 3 * WORDS_PX
        beside = [lowest - 2 * WORDS_PX, lowest - WORDS_PX, lowest]
    for (_, style, words), y, at in zip(limits, [share * average * scale for share, *_ in limits], beside, strict=True):
        plot.line([(first - 0.4, y), (last + 0.4, y)], "stroke:var(--green)", style)
        plot.words(plot.x(last + 0.4) - 3, round(at, 1), words, "end soft halo")
    plot.line([(first, ends[0] * scale), (last, ends[1] * scale)], "stroke:var(--review);stroke-width:2")
    plot.line([(i, v * scale) for i, v in enumerate(values, one.first)], f"stroke:var({look['colour']})")
    for i, v in enumerate(values, one.first):
        plot.mark(i, v * scale, look, f"round {i}: {figure(v * scale)} {shown.name}")
    plot.axes("round", shown.title, svg.counted(last, one.first))
    said = "Steady state reached." if verdict["passed"] else "STEADY STATE NOT ACHIEVED."
    source = "SNIA PTS 2.0.2, clause 2.1.24" if held.slope_percent else "the rule"
    soft = f"{said} Shaded: the five rounds of {source}. Orange: their least-squares line."
    return panel(title, plot.text() + numbers(verdict, shown), soft)


def numbers(verdict: dict, shown: Unit) -> str:
    """The rule's numbers as a table; its line is over n = 1 to 5, the rounds of the window."""
    sign = "+" if verdict["m"] >= 0 else "−"
    r = "–" if verdict["r"] is None else number(verdict["r"], 3)
    held = rule.limits_of(verdict)
    rows = [
        ("Average", f"{shown.text(verdict['average'])} {shown.name}", ""),
        ("Data excursion", f"{number(verdict['range_percent'], 1)} %", f"at most {held.range_percent:g} %"),
        (
            "Slope excursion",
            f"{number(verdict['slope_percent'], 1)} %",
            f"at most {held.slope_percent:g} %" if held.slope_percent else "",
        ),
        ("Line", f"{shown.text(verdict['b'])} {sign} {shown.text(abs(verdict['m']))} × n", f"r = {r}"),
        ("Steady state", "yes" if verdict["passed"] else "no", ""),
    ]
    if at := rule.rests_on(verdict):
        rows.append(("Reached" if verdict["passed"] else "Asked", at, ""))
    if verdict.get("error_percent") is not None:
        bar, most = verdict["error_percent"], verdict["error_limit_percent"]
        rows.insert(3, ("Average of all rounds known to", f"{number(bar, 1)} %", f"or at most {most:g} %"))
    body = "".join(f'<tr><th scope="row">{a}</th><td>{b}</td><td class="soft">{c}</td></tr>' for a, b, c in rows)
    return f'<table class="numbers"><tbody>{body}</tbody></table>'


HTML = {"scatter": scatter, "series": series, "rounds": rounds, "steady": steady}  # view -> how it is drawn
