"""Views of time and of rounds: scatter, series, rounds, steady."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ssdrig.plan.formula import VALUES
from ssdrig.plan.rules import steady as rule
from ssdrig.plan.step import every, value_text
from ssdrig.reading import errors, latency
from ssdrig.reading.row import WHOLE, Row, Table, Verdict
from ssdrig.views import svg
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
    panels,
    place,
    point,
    points,
    rounds_in_words,
    unit,
)
from ssdrig.views.terms import number

LETTER = 6.5  # px of a plot, widest
BETWEEN = 0.02  # of a series, between two steps
WORDS_PX = 13  # from one line of words in a plot to the next


def scatter(context: Context) -> str:
    """Each second of a step as a point, of all runs in one plot; a window alone where the plan names one."""
    if context.along != TIME:
        return drawn(context)
    out, window = [], context.show.get("window")
    for word in context.words("iops"):
        of_paths = {path: _within(context, path, word, window) for path in context.paths}
        every = [float(v) for times in of_paths.values() for of in times for *_, values in of for v in values]
        shown = unit(word, every)
        reach = svg.extent([v * shown.scale for v in every], context.log, context.show.get("top"))
        for path, lists in of_paths.items():
            if not lists:
                title = context.title(f"{timed(word)} by the second, {path}")
                out.append(panel(title, "", f"No figures: {_none_by_second(context)}.", "wide"))
            out += [_scatter(context, word, path, window, of, shown, reach) for of in lists]
    return "".join(out)


def _scatter(context: Context, word: str, path: str, window: str | None, of: list[tuple], shown: Unit, reach) -> str:
    """A panel of one row of each run: (run, row, from and to in s, times, values)."""
    rows = [row for _, row, *_ in of]
    where = (f", window {window}" if window else "") + ", logarithmic" * context.log
    title = context.title(f"{timed(word, rows)} by the second, {path}{where}")
    from_s, to_s = min(entry[2] for entry in of), max(entry[3] for entry in of)
    plot = svg.Plot(title, 960, 300, (from_s, max(to_s, from_s + 1)), reach, y_log=context.log)
    reviewed = next((row for run, row, *_ in of if run == context.review), None)
    marked = reviewed.windows.get("steady") if reviewed and not window else None
    if marked:
        plot.band(marked["t0_s"], marked["t1_s"])
    longest = max(len(t) for *_, t, _ in of)
    size = 5 if longest < 400 else 3 if longest < 2500 else 2
    for run, _, _, _, t, values in sorted(of, key=lambda item: context.order.index(item[0])):
        look = context.looks[run] if len(context.tables) > 1 else svg.look(0)
        name = context.names[run] if len(context.tables) > 1 else path
        pairs = svg.thinned(list(zip(t.tolist(), (values * shown.scale).tolist())), svg.most_dots(len(context.tables)))
        _dots(plot, pairs, look, size, name)
    plot.axes("s since the first I/O", axis_title(word, shown.name, rows))
    whose = f" of {context.names[context.review]}" * (len(context.tables) > 1)
    soft = f"Shaded: the window steady{whose}." if marked else ""
    return panel(title, plot.text() + context.legend(), soft, "wide")


def _dots(plot: svg.Plot, pairs: Sequence[svg.Point], look: Mapping, size: int, name: str) -> None:
    """The seconds of a run; squares of a line where its marks are hollow."""
    colour = f"stroke:var({look['colour']})"
    if look.get("hollow"):
        plot.dots(pairs, f"{colour};stroke-width:1", name=name, hollow_px=max(2, size - 1))
    else:
        plot.dots(pairs, f"{colour};stroke-width:{size}", name=name)


def _within(context: Context, path: str, word: str, window: str | None) -> list[list[tuple]]:
    """(run, row, from and to in s, times, values) of a step, in the window or in all of it: a list for each
    execution of the step, with an entry for each run that has it."""
    out: list[list[tuple]] = []
    for run, table in enumerate(context.tables):
        for time, row in enumerate(row for row in table.of(path) if row.data is not None):
            assert row.data is not None
            t, values = seconds(row, word)
            figures = row.windows.get(window) if window else None
            from_s, to_s = (figures["t0_s"], figures["t1_s"]) if figures else (0, len(row.data.iops))
            keep = (t >= from_s) & (t <= to_s)
            out += [[]] * (time == len(out))
            out[time] = [*out[time], (run, row, from_s, to_s, t[keep], values[keep])]
    return out


def _none_by_second(context: Context) -> str:
    """Why a step has no figures by the second."""
    rows = [row for table in context.tables for path in context.paths for row in table.of(path)]
    return "points of a repeat are kept as a whole" if rows else "no such step was run"


def series(context: Context) -> str:
    """Figures by the second of one or several steps, one after the other: a plot for each figure, of all runs."""
    if context.along != TIME:
        return drawn(context)
    out = []
    for word in context.words("MB/s", "W"):
        by_run = []
        for table in context.tables:
            rows = [row for path in context.paths for row in table.of(path) if row.data is not None]
            by_run.append([(row, *seconds(row, word)) for row in rows])
        every = [
            float(v) for of in by_run for row, _, values in of for v in (*values, row.value(word)) if v is not None
        ]
        shown = unit(word, every)
        reach = svg.extent([v * shown.scale for v in every], context.log, context.show.get("top"))
        out.append(_series(context, word, by_run, shown, reach))
    return "".join(out)


def _series(context: Context, word: str, by_run: list[list], shown: Unit, reach: tuple[float, float]) -> str:
    """A panel of all runs. A step begins at one place for all of them: after the longest of the one before."""
    rows = [row for of in by_run for row, *_ in of]
    title = context.title(f"{timed(word, rows)}: {', '.join(context.paths)}", word)
    if not any(
        v is not None and math.isfinite(v) for of in by_run for row, _, vs in of for v in (*vs, row.value(word))
    ):
        reason = rows[0].why_not(word) if rows else _none_by_second(context)
        return panel(title, "", f"No figures: {reason}.", "wide")
    long: dict[tuple, float] = {}
    for row, t, _ in (entry for of in by_run for entry in of):
        lasts = max(len(row.data.iops), row.data.load_s, float(t.max(initial=0)))
        long[row.act.label, row.round] = max(lasts, long.get((row.act.label, row.round), 0.0))
    gap = BETWEEN * sum(long.values())
    begins = dict(zip(long, (sum([*long.values()][:i]) + gap * i for i in range(len(long))), strict=True))
    end = max((begins[key] + long[key] for key in long), default=1.0)
    plot = svg.Plot(title, 960, 250, (0, end or 1.0), reach, y_log=context.log)
    labels = _parts(plot, begins, long, end) if len(long) > 1 else []
    for run in context.order:
        for row, t, values in by_run[run]:
            key = row.act.label, row.round
            look = context.looks[run] if len(by_run) > 1 else svg.look([*long].index(key))
            name = f"{context.names[run]}, {row.act.label}" if len(by_run) > 1 else row.act.label
            most = svg.most_dots(len(by_run))
            _course(plot, word, row, t + begins[key], values, begins[key], shown, look, name, most)
    axis_words = "one step after the other" if len(long) > 1 else "s since the first I/O"
    plot.axes(axis_words, axis_title(word, shown.name, rows), labels or None)
    short = [label.partition(" ")[0] for (label, _), lasts in long.items() if lasts <= 0.06 * end]
    soft = f"Too short for its name: {', '.join(short)}." if short and len(long) > 1 else ""
    return panel(title, plot.text() + context.legend(), soft, "wide")


def _parts(plot: svg.Plot, begins: dict, long: dict, end: float) -> list[tuple[float, str]]:
    """The steps of a plot as bands with their names. Returns the axis labels of those with room for one."""
    labels = []
    for (label_, round_), begin in begins.items():
        lasts = long[label_, round_]
        plot.band(begin, begin + lasts, "part")
        if lasts > 0.06 * end:
            room = (plot.x(begin + lasts) - plot.x(begin)) / LETTER
            words = label_ if len(label_) < room else label_.partition(" ")[0]
            plot.words(plot.x(begin + lasts / 2), plot.TOP + 12, words, "mid soft")
            labels.append((begin + lasts / 2, f"{figure(lasts)} s"))
    return labels


def _course(
    plot: svg.Plot, word: str, row: Row, t, values, begin: float, shown: Unit, look: dict, name: str, most: int
) -> None:
    """The line of one step of one run; marks for what SMART reads now and then; the mean of a step of one second."""
    pairs, mean = svg.thinned(list(zip(t.tolist(), (values * shown.scale).tolist())), most), row.value(word)
    style = svg.stroke(look)
    if word in ("wa", "C"):
        plot.line(pairs, style, name=name)
        for x, y in pairs:
            plot.mark(x, y, look, f"{row.act.path}, {figure(x - begin)} s: {figure(y)} {shown.name}", 3)
    elif len([1 for _, y in pairs if math.isfinite(y)]) > 1:
        plot.line(pairs, style, name=name)
    elif mean is not None:
        lasts = max(len(row.data.iops), row.data.load_s) if row.data else 0.0
        plot.line([(begin, mean * shown.scale), (begin + lasts, mean * shown.scale)], style)


def rounds(context: Context) -> str:
    """A figure by the round: of one run a line for each value of a point's key; of several a plot for each value, with
    a line for each run."""
    out = []
    for word in context.words("iops"):
        of_paths = {
            path: [(table, "", _by_round(context, table, path, word)) for table in context.tables]
            for path in context.paths
        }
        lines = [line for of_runs in of_paths.values() for *_, of in of_runs for _, line in of]
        values = [v for line in lines for _, v, _ in line]
        shown = unit(word, values)
        reach = svg.extent([v * shown.scale for v in values], context.log, context.show.get("top"))
        last = max((n for line in lines for n, *_ in line), default=1)
        for path, groups in of_paths.items():
            for run, names, words, of, looks in panels(context, groups, context.show.get("by")):
                out.append(_rounds(context, path, run, names, words, of, looks, shown, reach, last))
    return "".join(out)


def _by_round(context: Context, table: Table, path: str, word: str) -> list[tuple]:
    """(point, [(round, value, error), …]) of each line."""
    by, where = context.show.get("by"), place(context.show)
    rows = [r for r in table.of(path) if all(value_text(r.act.point.get(k)) == value_text(v) for k, v in where.items())]
    lines = []
    for p in points(table, path, by) if by else [None]:
        of = [(r.round or 1, r.value(word), _error(r, word)) for r in rows if not by or r.act.point.get(by) == p]
        if of:
            lines.append((p, [(n, v, error) for n, v, error in of if v is not None]))
    return lines


def _error(row: Row, word: str) -> float | None:
    return errors.of(VALUES[word][0], row.windows.get(WHOLE) or {}).error


def _rounds(context: Context, path: str, table: Table, names, words: str, of, looks, shown, reach, last: int) -> str:
    where = "".join(f", {axis(key)} {point(key, value)}" for key, value in place(context.show).items())
    title = context.title(f"{label(shown.word)} by the round{where}", shown.word, path) + words
    plot = svg.Plot(title, 480, 300, (0.6, last + 0.4), reach, y_log=context.log)
    last_ones = last_rounds(table, path)
    if last_ones and len(last_ones) < last and len(context.tables) == 1:
        plot.band(last_ones[0] - 0.4, last_ones[-1] + 0.4)
    for name, line, look in zip(names, of, looks, strict=True):
        dots = [(n, v * shown.scale) for n, v, _ in line]
        plot.line(dots, svg.stroke(look), name=name or path)
        for n, v, error in line:
            plot.whisker(n, v * shown.scale, None if error is None else error * shown.scale, look)
        for n, v in dots:
            plot.mark(n, v, look, f"round {n}{f', {name}' if name else ''}: {figure(v)} {shown.name}", 3)
    plot.axes("round", shown.title, svg.counted(last))
    soft = rounds_in_words(table, path) if len(context.tables) == 1 else ""
    return panel(title, plot.text() + svg.legend(names, looks), soft)


def steady(context: Context) -> str:
    """The window of the steady-state rule: rounds, average, 110 %, 90 %, slope line, and its numbers."""
    out = []
    for table, name in context.runs():
        for path in context.paths:
            out += [_steady(context, table, v, name) for v in table.verdicts if v.path.partition(" ")[0] == path]
    if not out:
        why = "The run ended before the rule could be applied."
        if all(_never(table, path) for table in context.tables for path in context.paths):
            why = "This variant asks for no steady state: the rule ended nothing."
        return panel(context.title("Steady state", path=", ".join(context.paths)), "", why)
    return "".join(out)


def _never(of: Table, path: str) -> bool:
    """Whether the rule of a step never holds, in this variant."""
    until = (entry for step in every(of.plan.steps) if step.path == path for entry in step.keys.get("until", ()))
    return any(entry.rule == "never" for entry in until)


def _steady(context: Context, table: Table, one: Verdict, name: str) -> str:
    verdict, values = one.verdict, [v for v in one.values if v is not None]
    word = one.words.split()[0].strip(",")
    title = context.title(f"Steady state: {one.words}") + name
    if verdict["passed"] is None or not values:
        return panel(title, "", f"{rule.heading([verdict])}: {verdict['why']}.")
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
    plot.line([(i, v * scale) for i, v in enumerate(values, one.first)], svg.stroke(look))
    for i, v in enumerate(values, one.first):
        plot.mark(i, v * scale, look, f"round {i}: {figure(v * scale)} {shown.name}")
    plot.axes("round", shown.title, svg.counted(last, one.first))
    outcome = "Steady state reached." if verdict["passed"] else f"{rule.NOT_ACHIEVED}."
    source = "SNIA PTS 2.0.2, clause 2.1.24" if held.slope_percent else "the rule"
    soft = f"{outcome} Shaded: the five rounds of {source}. Orange: their least-squares line."
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


MINUTES = "minutes"
AXIS = {
    MINUTES: "minute",
    "written": "GB written by this load (TGBW)",
    "fills": "drive fills: bytes written / user capacity",
}
TITLE = {MINUTES: "by the minute", "written": "over the bytes written", "fills": "over drive fills"}


def drawn(context: Context) -> str:
    """A panel for each value and step, with all runs; the points of a value of SMART, and minutes, have marks."""
    out = []
    for word in context.words("iops"):
        of_paths = {path: _of(context, word, path) for path in context.paths}
        every = [
            v
            for of in of_paths.values()
            for entries in of
            for *_, values, _ in entries
            for v in values.tolist()
            if np.isfinite(v)
        ]
        shown = unit(word, every)
        reach = svg.extent([v * shown.scale for v in every], context.log, context.show.get("top"))
        for path, of in of_paths.items():
            if not of:
                title = context.title(f"{timed(word)} {TITLE[context.along]}, {path}")
                out.append(panel(title, "", "No figures by the second: no such step, or one of a repeat.", "wide"))
            out += [_panel(context, word, path, entries, shown, reach) for entries in of]
    return "".join(out)


def _of(context: Context, word: str, path: str) -> list[list[tuple]]:
    """(run, row, x, values, note) of a step: a list an execution, with an entry for each run that has it."""
    out: list[list[tuple]] = []
    for run, table in enumerate(context.tables):
        for number_of, row in enumerate(row for row in table.of(path) if row.data is not None):
            of = by_minute(row, word) if context.along == MINUTES else over_written(row, word, table, context.along)
            out += [[]] * (number_of == len(out))
            out[number_of] = [*out[number_of], (run, row, *of)]
    return out


def _panel(context: Context, word: str, path: str, entries: list[tuple], shown: Unit, reach) -> str:
    """One row of each run."""
    rows = [row for _, row, *_ in entries]
    title = f"{timed(word, rows)} {TITLE[context.along]}, {path}" + ", logarithmic" * context.log
    title = context.title(title, word)
    several = len(context.tables) > 1
    softs = [f"{context.names[run]}: {soft}" if several else soft for run, *_, soft in entries if soft]
    known = [(run, x, values) for run, _, x, values, _ in entries if np.isfinite(values).any()]
    if not known:
        return panel(title, "", f"No figures: {' '.join(softs) or rows[0].why_not(word)}.", "wide")
    last = max(float(x[np.isfinite(values)].max()) for _, x, values in known)
    plot = svg.Plot(title, 960, 250, (0.0, last * 1.01), reach, y_log=context.log)
    for run, x, values in sorted(known, key=lambda entry: context.order.index(entry[0])):
        pairs = [(a, b) for a, b in zip(x.tolist(), (values * shown.scale).tolist(), strict=True) if np.isfinite(b)]
        look = context.looks[run] if several else svg.look(0)
        name = context.names[run] if several else ""
        if context.along == MINUTES or word in ("wa", "C"):
            plot.line(pairs, svg.stroke(look), name=name)
            for a, b in pairs:
                place = f"minute {a + 0.5:.0f}" if context.along == MINUTES else figure(a)
                plot.mark(a, b, look, f"{place}: {figure(b)} {shown.name}", 3)
        else:
            size = 5 if len(pairs) < 400 else 3 if len(pairs) < 2500 else 2
            most = svg.most_dots(len(context.tables))
            _dots(plot, svg.thinned(pairs, most), look, size, name)
    plot.axes(AXIS[context.along], axis_title(word, shown.name, rows))
    return panel(title, plot.text() + context.legend(), " ".join(softs), "wide")


def by_minute(row: Row, word: str) -> tuple[np.ndarray, np.ndarray, str]:
    """(minutes from 0.5 on, value of each, note on the rest after the last whole one) of a step by the second."""
    assert row.data is not None
    minutes = latency.of(row.data)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = {
            "iops": minutes.ios / minutes.record_s,
            "MB/s": minutes.bytes_ / minutes.record_s / 1e6,
            "W": minutes.energy_J / minutes.record_s,
            "uJ/IO": 1e6 * minutes.energy_J / minutes.ios,
            "J/GB": 1e9 * minutes.energy_J / minutes.bytes_,
            "iops/W": minutes.ios / minutes.energy_J,
            "lat_mean": minutes.lat_mean_us,
            "lat_max": minutes.lat_max_us,
        }.get(word, np.full(len(minutes.ios), np.nan))
    x = np.arange(len(values)) + 0.5
    if not len(values):
        return x, values, f"the load lasted {minutes.left_s} whole seconds, less than a minute"
    left = f"; the last {minutes.left_s} s, {number(minutes.left_ios, 0)} I/Os, left out" if minutes.left_s else ""
    return x, values, f"{len(values)} whole minutes{left}."


def over_written(row: Row, word: str, table: Table, along: str) -> tuple[np.ndarray, np.ndarray, str]:
    """(GB or drive fills that the load had written by then, value of each second or reading, "")."""
    assert row.data is not None
    t, values = seconds(row, word)
    bw = np.nan_to_num(row.data.bw_Bps) * (1 - row.act.keys.get("read", 0) / 100)
    written_bytes = np.concatenate([[0.0], np.cumsum(bw)])
    written = np.interp(t, np.arange(len(written_bytes)), written_bytes)
    return written / (1e9 if along == "written" else table.data.header["drive"]["capacity_bytes"]), values, ""


BY_SECOND = {  # what a figure is called where it is shown by the second
    "iops": "IOPS",
    "W": "Power",
    "lat_p99": "P99 of completion time (clat)",
    "wa": "Write amplification since the start of the step",
    "C": "Temperature that the drive reports",
}


P99 = {  # the latency that P99 by the second covers, in a title and at an axis
    "clat": (BY_SECOND["lat_p99"], "P99 (clat)"),
    "lat": ("P99 latency (lat)", "P99 (lat)"),
    "": ("P99 of latency (lat, of some steps clat)", "P99 (lat, clat)"),
}


def timed(word: str, of: Sequence[Row] = ()) -> str:
    return _p99_words(of)[0] if word == "lat_p99" else BY_SECOND.get(word) or label(word)


def axis_title(word: str, name: str, of: Sequence[Row] = ()) -> str:
    words = {"wa": "NAND / host bytes", "C": "Temperature", "lat_p99": _p99_words(of)[1]}.get(word) or timed(word)
    return f"{words}, {name}" if name and name not in words else words


def _p99_words(of: Sequence[Row]) -> tuple[str, str]:
    """Axis and title of these rows, by their RunData.hist_of."""
    kinds = {row.data.hist_of for row in of if row.data is not None} or {"clat"}
    return P99[kinds.pop() if len(kinds) == 1 else ""]


def seconds(row: Row, word: str) -> tuple[np.ndarray, np.ndarray]:
    """A figure of each second of a step: (s since its first I/O, value); of SMART at each poll. P99 covers
    the latency that RunData.hist_of names, even if that of a whole step covers lat."""
    data = row.data
    if data is None:
        return np.zeros(0), np.zeros(0)
    middle = np.arange(len(data.iops)) + 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        values = {
            "iops": data.iops,
            "MB/s": data.bw_Bps / 1e6,
            "W": data.power_mean_W,
            "uJ/IO": np.where(data.iops > 0, 1e6 * data.energy_J / data.iops, np.nan),
            "J/GB": np.where(data.bw_Bps > 0, 1e9 * data.energy_J / data.bw_Bps, np.nan),
            "iops/W": data.iops / data.energy_J,
            "lat_mean": data.lat_mean_us,
            "lat_p99": data.lat_p99_us,
            "lat_max": latency.max_us(data, len(data.iops)),
        }
    if word == "wa":
        return data.wa_t_s, data.wa_value
    if word == "C":
        return data.temp_t_s, data.temperature_C
    if word not in values:
        return np.zeros(0), np.zeros(0)
    return middle, values[word]
