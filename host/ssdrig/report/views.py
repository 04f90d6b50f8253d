"""The windows of the runs side by side: the report shows one of them at a time, in cards, tables and plots."""

from html import escape
from typing import NamedTuple

from ssdrig.plan.rules import steady as rule
from ssdrig.reading import window_figures
from ssdrig.report import phases
from ssdrig.views import trust_strip
from ssdrig.views.terms import number

ORDER = ("steady", "all", "fresh")  # and then those that --window names
HIDE = 'body:has(#view-{0}:checked) [data-view]:not([data-view="{0}"]) {{ display: none !important }}'
UNTIL_READ = 'body:not(:has([name="view"])) [data-view]:not([data-view="0"]) { display: none !important }'


class View(NamedTuple):
    """One window of all runs. `figures` has for each run its figures (course.figures_of) with those of the window;
    all are unknown if the run has no such window. `has`: which runs have it; `name`: its name in links."""

    name: str
    label: str
    figures: list[dict]
    has: list[bool]


def of(figures: list[dict]) -> list[View]:
    """The windows that at least one run has; `steady` first. Without any, one view of nothing."""
    windows = dict.fromkeys(name for f in figures for name, window in f["windows"].items() if window)
    names = [name for name in ORDER if name in windows] + [name for name in windows if name not in ORDER]
    return [_view(figures, name) for name in names or ["steady"]]


def _view(figures: list[dict], name: str) -> View:
    windows = [f["windows"].get(name) for f in figures]
    nothing: dict = dict.fromkeys(window_figures.KEYS) | {"rails": []}
    merged = []
    for f, window in zip(figures, windows, strict=True):
        of_window = window or nothing
        rails = [own | other for own, other in zip(f["rails"], of_window["rails"], strict=False)]
        merged.append(f | of_window | {"rails": rails})
    return View(name, _label(name, [w["label"] for w in windows if w]), merged, [w is not None for w in windows])


def _label(name: str, labels: list[str]) -> str:
    """What the runs' windows have in common: 'steady state, 42–60 s', or 'fresh plateau' where the times differ. It
    is steady state only if the rule passed for each run, and whole load only if each load finished."""
    if not labels:
        return "no window"
    for part in (labels, [text.rpartition(", ")[2] for text in labels], [text.rpartition(", ")[0] for text in labels]):
        if len(set(part)) == 1 and part[0]:
            return part[0]
    return "load" if name == "all" else "end of the load"


def style(views: list[View]) -> str:
    """Rules that hide all but the chosen window; without JavaScript too."""
    return UNTIL_READ + "".join(HIDE.format(i) for i in range(len(views)))


def switch(views: list[View]) -> str:
    boxes = "".join(
        f'<label><input type="radio" name="view" id="view-{i}" value="{i}"{" checked" if i == 0 else ""}>'
        f" {escape(view.label)}</label>"
        for i, view in enumerate(views)
    )
    return f"<fieldset><legend>Window</legend>{boxes}</fieldset>"


def facts(view: View, index: int, names: list) -> str:
    """When the window was, how much had been written, whether it was steady, and whether IOPS and latency agree."""
    out = [
        f'<div class="scroll facts" data-view="{index}"><table><thead><tr><th scope="col">Run</th>'
        '<th scope="col">Time</th><th scope="col">Drive writes</th><th scope="col">Steady state (SNIA PTS)</th>'
        '<th scope="col">IOPS × mean latency (Little)</th></tr></thead><tbody>'
    ]
    for i, (f, has, (*_, short)) in enumerate(zip(view.figures, view.has, names, strict=True)):
        cells = (
            [_times(f), _drive_writes(f), steady(f["steady_state"]), little(f)]
            if has
            else ["not in this run"] + ["–"] * 3
        )
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        out.append(f'<tr data-run="{i}"><th scope="row">{escape(short)}</th>{row}</tr>')
    return "".join(out) + "</tbody></table></div>"


def _times(f: dict) -> str:
    if f["unfinished"]:
        return escape(f["label"].rpartition(", ")[2])
    return f"{number(f['t0_s'], 0)}–{number(f['t1_s'], 0)} s"


def _drive_writes(f: dict) -> str:
    if f["drive_writes_t0"] is None:
        return "–"
    return f"{number(f['drive_writes_t0'], 2)}–{number(f['drive_writes_t1'], 2)}"


def steady(verdict: dict) -> str:
    """The verdict of rules.steady with all that the rule looked at."""
    if verdict["passed"] is None:
        return escape(rule.why_unknown(verdict))
    sign = "+" if verdict["m"] >= 0 else "−"
    line = f"{number(verdict['b'], 0)} {sign} {number(abs(verdict['m']), 1)} × round"
    return (
        f"<b>{'yes' if verdict['passed'] else 'no'}</b>: average {number(verdict['average'], 0)} IOPS,"
        f" range {number(verdict['range_percent'], 1)} % (limit 20), slope {number(verdict['slope_percent'], 1)} %"
        f" (limit 10), line {line}{', ' * bool(at := rule.rests_on(verdict))}{at}"
    )


def little(f: dict) -> str:
    """Little's law: in a closed loop this is the queue depth."""
    if f["littles_qd"] is None:
        return "–"
    error = f["littles_error_percent"]
    if error is None:
        return number(f["littles_qd"], 2)
    sign = "+" if error > 0 else ""
    words = f"{number(f['littles_qd'], 2)} in flight, {sign}{number(error, 2)} % off the queue depth"
    return (
        words
        if abs(error) <= window_figures.LITTLE_PERCENT
        else f"<b>{words}: beyond {window_figures.LITTLE_PERCENT:g} %</b>"
    )


def phase_table(figures: list[dict], names: list, views: list[View]) -> str:
    """The chosen window; then all phases of all runs, a row each; all figures of a row cover the same time."""
    labels = "".join(f'<span data-view="{i}">: {escape(view.label)}</span>' for i, view in enumerate(views))
    out = [f'<section aria-labelledby="window-h"><h2 id="window-h">Window{labels}</h2>']
    out += [facts(view, i, names) for i, view in enumerate(views)]
    out.append('</section><section aria-labelledby="phases-h"><h2 id="phases-h">Phases</h2>')
    out.append('<p class="soft">All figures in a row cover the same time. Drive writes: how often the load had written')
    out.append(" the tested range.</p>")
    out.append('<div class="scroll"><table class="phases"><thead><tr><th scope="col">Run</th>')
    out.append("".join(f'<th scope="col">{escape(words)}</th>' for words in phases.HEAD) + "</tr></thead>")
    body = []
    for i, (f, (*_, short)) in enumerate(zip(figures, names, strict=True)):
        rows = [phases.cells(row) for row in phases.rows(f)]
        body.append(f'<tbody data-run="{i}">')
        for k, cells in enumerate(rows):
            run = f'<th scope="rowgroup" rowspan="{len(rows)}">{escape(short)}</th>' if k == 0 else ""
            first, *rest = (escape(cell) for cell in cells)
            row = "".join(f"<td>{cell}</td>" for cell in rest)
            body.append(f'<tr>{run}<th scope="row">{first}</th>{row}</tr>')
        body.append("</tbody>")
    marks = f'<p class="soft">{trust_strip.MARKED}</p>' if any(trust_strip.MARK in row for row in body) else ""
    return "".join(out + body) + f"</table></div>{marks}</section>"
