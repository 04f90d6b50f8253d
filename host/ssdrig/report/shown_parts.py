"""A run that was cut short and went on: all its parts on one axis, UTC. No line is drawn from one to the next."""

from html import escape
from pathlib import Path
from time import gmtime, strftime

from ssdrig.base.words import clock
from ssdrig.reading import timeline
from ssdrig.reading.timeline import Line, Part
from ssdrig.views import svg
from ssdrig.views.context import panel

LABELS = 6  # of the axis, at most
BACK = "not known: UTC went back"
ROOM = 1.15  # above the values, for words
LEAST_SHARE = 0.08  # of the axis that has room for words
STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


def section(run: Path, name: str = "") -> str:
    """The parts of a run as a piece of its page, "" for a run with one. Raises JournalError."""
    parts = timeline.of(run)
    if not parts:
        return ""
    title = "Parts of the run" + (f": {name}" if name else "")
    back = any(one.end_utc_ns > two.begin_utc_ns for one, two in zip(parts, parts[1:], strict=False))
    plots = (
        [] if back else [_plot(f"{words} of all parts, by UTC", parts, lines, words) for words, lines in _values(parts)]
    )
    if back:
        title += ", whose clock went back between two of them: they have no common axis"
    soft = "Each part has its own clock; UTC joins them. Between two parts nothing was measured."
    return (
        f'<section><h2>{escape(title)}</h2><div class="scroll">{_table(parts)}</div><div class="plots">'
        + "".join(panel(label, plot, soft, "wide") for label, plot in plots)
        + "</div></section>"
    )


def _values(parts: list[Part]) -> list[tuple[str, list[Line]]]:
    every = [("IOPS", [line for part in parts for line in part.iops])]
    every.append(("Power, W", [line for part in parts for line in part.watts]))
    return [(words, lines) for words, lines in every if lines]


def _plot(label: str, parts: list[Part], lines: list[Line], words: str) -> tuple[str, str]:
    zero_s = parts[0].begin_utc_ns / 1e9
    whole_s = max(1.0, parts[-1].end_utc_ns / 1e9 - zero_s)
    values = [float(value) for line in lines for value in line.values]
    plot = svg.Plot(label, 960, 250, (0.0, whole_s), (0.0, ROOM * svg.extent(values, False)[1]))
    for line in lines:
        pairs = list(zip((line.utc_s - zero_s).tolist(), line.values.tolist(), strict=True))
        if len(pairs) == 1:  # a line needs two
            pairs.append((pairs[0][0] + whole_s / 960, pairs[0][1]))
        plot.line(svg.thinned(pairs), "stroke:var(--blue)")
    before_s = 0.0
    for part in parts:
        begin_s, end_s = part.begin_utc_ns / 1e9 - zero_s, part.end_utc_ns / 1e9 - zero_s
        plot.band(begin_s, end_s, "part")
        if end_s - begin_s > LEAST_SHARE * whole_s:
            plot.words(plot.x((begin_s + end_s) / 2), plot.TOP + 12, f"part {part.number}", "mid soft")
        if begin_s - before_s > LEAST_SHARE * whole_s:
            plot.words(plot.x((before_s + begin_s) / 2), plot.TOP + 12, "nothing measured", "mid soft")
        before_s = end_s
    plot.axes(f"UTC, {strftime('%Y-%m-%d', gmtime(zero_s))}", words, _labels(zero_s, whole_s))
    return label, plot.text()


def _labels(zero_s: float, whole_s: float) -> list[tuple[float, str]]:
    """Round times of day."""
    step_s = next((step for step in STEPS_S if whole_s / step <= LABELS), -(-whole_s // LABELS))
    first = -(-zero_s // step_s) * step_s
    times = [first + i * step_s for i in range(LABELS + 1) if first + i * step_s <= zero_s + whole_s]
    return [(at_s - zero_s, strftime("%H:%M:%S" if step_s < 60 else "%H:%M", gmtime(at_s))) for at_s in times]


def _table(parts: list[Part]) -> str:
    head = "".join(
        f'<th scope="col">{words}</th>' for words in ("Part", "Began, UTC", "Lasted", "After a gap of", "Goes on with")
    )
    rows = []
    for i, part in enumerate(parts):
        gap_s = (part.begin_utc_ns - parts[i - 1].end_utc_ns) / 1e9 if i else None
        began = strftime("%Y-%m-%d %H:%M:%S", gmtime(part.begin_utc_ns / 1e9))
        cells = [began, clock((part.end_utc_ns - part.begin_utc_ns) / 1e9)]
        cells += ["–" if gap_s is None else clock(gap_s) if gap_s >= 0 else BACK, part.begins or "–"]
        text = f"{part.state}: {part.why}" if part.why else part.state
        badge = f'<span class="state {escape(part.state)}">{escape(text)}</span>'
        rows.append(
            f'<tr><th scope="row">part {part.number} {badge}</th>'
            + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            + "</tr>"
        )
    return f'<table class="steps"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
