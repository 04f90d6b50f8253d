"""The page of runs of any plan, in one HTML file that needs no network: the load that the runs are about, where it was
read in full (loads.py); the views of the plan in its order, in words, tables and SVG that need no JavaScript, which
only saves them (plots.js); the steps, the host, and the gaps."""

import base64
import hashlib
import importlib
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from ssdrig.base.words import clock, counted, size
from ssdrig.plan import document, shows
from ssdrig.plan import kinds as kinds
from ssdrig.plan.rules import steady as rule
from ssdrig.reading import gaps, trust, witness
from ssdrig.reading.row import WHOLE, Row, Table, Verdict
from ssdrig.reading.row_figures import FIRST_BURST, LAG, SCALED
from ssdrig.reading.rundata import RunData
from ssdrig.report import about, drive_latency, little, repeats, rows, shown_parts, words
from ssdrig.report import loads as of_loads
from ssdrig.report.loads import Loads
from ssdrig.runs import imported
from ssdrig.views import headline, trust_strip
from ssdrig.views.context import Context, View, figure, last_rounds
from ssdrig.views.step_results import sentences
from ssdrig.views.terms import number

HERE = Path(__file__).parent
# what every page begins with, and hardly any other file
OPENING = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy"'
    " content=\"default-src 'none'; script-src '"
)
MOST_EVENTS = 500  # of a run, in its log
SCRIPTS = ("cards.js", "export.js", "plots.js")
COLUMNS = (  # of the steps: the plan's word, heading, unit
    ("iops", "IOPS", ""),
    ("MB/s", "Throughput", "MB/s"),
    ("lat_mean", "Mean latency", "µs"),
    ("lat_p99", "P99", "µs"),
    ("W", "Power", "W"),
    ("uJ/IO", "Energy per I/O", "µJ"),
    ("J/GB", "Energy per GB", "J"),
    ("wa", "WA", ""),
    ("C", "Highest", "°C"),
    ("host_cpu", "Host CPU", "%"),
)


def render(
    tables: Sequence[Table],
    review: int = 0,
    loads: Sequence[tuple[RunData, dict]] = (),
    samples: bool = False,
    folders: Sequence[Path] = (),
) -> str:
    """The page of some runs.

    tables: the runs with their rows; all have the steps of the first one's plan, whose views are shown. [] where there
        are `loads` whose rows are not needed
    review: the place of the reviewed run
    loads: of each run the load that it is about, in full
    samples: the loads have all their power samples
    folders: of the runs, where they are not those of the tables
    """
    side = Loads(loads, review, samples) if loads else None
    runs = [data for data, _ in loads] or [one.data for one in tables]
    names = words.drives(tables)
    full = [label for _, _, label, _ in side.names] if side else names  # alone on its page a run has no name
    short = [""] * len(runs) if len(runs) == 1 else [name for *_, name in side.names] if side else names
    lines = [list(rows.of_figures(figures)) for _, figures in loads] or [list(rows.of_plan(one)) for one in tables]
    if side:
        title, heading, strips = side.title, side.head(), side.strips()
        remarks = [figures["notes"] for _, figures in loads]
    else:
        models = dict.fromkeys(words.model(one) for one in tables)
        title = f"{tables[0].plan.title}: {', '.join(models)}"
        heading, remarks = head(tables), [notes(one) for one in tables]
        strips = trusts(tables, short)
    pairs = list(zip(tables, short, strict=True)) if tables else []
    kind = ' class="load"' if side else ""
    return html_page(
        title,
        ["vendor/uPlot.min.css"] * bool(side) + ["report.css", "plan.css"],
        of_loads.SCRIPTS if side else SCRIPTS,
        [
            heading,
            f'<main{kind} data-source="{escape(about.source(runs))}">',
            strips,
            side.shown()
            if side
            else headline.section(tables, [name.removeprefix("SIMULATED ") for name in short])
            + not_steady(tables, names)
            + tested(tables, names),
            results(tables, names, review) if tables else "",
            *map(shown_parts.section, folders or [run.path for run in tables], short),
            repeats.section([data.header for data in runs], lines, full),
            side.figures_section() if side else "",
            *[little.section(run.rows, name) for run, name in pairs],
            *[steps(run, name, bool(name)) for run, name in pairs],
            *[drive_latency.section(run, name) for run, name in pairs],
            about.host_sections(runs, short),
            notes_section(runs, remarks, full),
            "</main>",
            footer(runs, side is not None, bool(tables)),
            side.data() if side else "",
        ],
        side.style if side else "",
    )


def html_page(title: str, styles: Iterable[str], scripts: Iterable[str], body: Iterable[str], more: str = "") -> str:
    """A page that loads nothing: files of this folder as its styles and scripts, `more` rules after the styles."""
    texts = [(HERE / name).read_text("utf-8") for name in scripts]
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in texts)
    style = "".join((HERE / name).read_text("utf-8") for name in styles) + more
    rest = "; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return "".join(
        [
            OPENING.removesuffix("'") + hashes + rest + '">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title><style>{style}</style></head><body>",
            *body,
            *(f"<script>{text}</script>" for text in texts),
            "</body></html>\n",
        ]
    )


def results(tables: Sequence[Table], names: Sequence[str], review: int) -> str:
    """All views of the first run's plan."""
    drawn = "".join(view(Context(tables, names, show, review)) for show in tables[0].plan.shows)
    return f'<section aria-labelledby="views-h"><h2 id="views-h">Results</h2><div class="plots">{drawn}</div></section>'


def html_of(name: str) -> View:
    """How a view is drawn: by html.py of its folder."""
    return importlib.import_module(f"{shows.folders()[name].__name__}.html").HTML[name]


def view(context: Context) -> str:
    """A view, after the reason of each run for which its figures are not claimed."""
    out = []
    for run, name in context.runs() if shows.views()[context.show["view"]].claims else ():
        if doubt := _doubt(run, context):
            out.append(f'<p class="warn">{trust_strip.MARK} not claimed{escape(name)}: {escape(doubt)}.</p>')
    return "".join([*out, html_of(context.show["view"])(context)])


def _doubt(run: Table, context: Context) -> str | None:
    """The bad items of the steps that a view shows; of all steps where it names none."""
    paths = [*context.paths, *shows.listed(context.show.get("against"))]
    rows_of = [row for path in paths for row in run.of(path)] if paths else run.rows
    strips = [
        (row.label if key == WHOLE else f"{row.label}, {key}", of["trust"])
        for row in rows_of
        for key, of in row.windows.items()
        if of and of.get("trust")
    ]
    rests = {item for word in context.words() for item in trust.rests_on(shows.VALUES[word][0])}
    return trust.why_not(trust.whole(strips), rests or trust.NAMES) if strips else None


def trusts(tables: Sequence[Table], names: Sequence[str]) -> str:
    """What the figures rest on: of one run its strip, of several the worst of each item first."""
    if len(tables) == 1:
        return trust_strip.section([trust_strip.row(tables[0].trust)])
    return trust_strip.of_runs({name: one.trust for name, one in zip(names, tables, strict=True)})


def head(tables: Sequence[Table]) -> str:
    """The plan's title and the marks of the runs: the first screen is for the headline."""
    plan = tables[0].plan
    out = [f'<header><div class="title"><h1>{escape(plan.title)}</h1>']
    simulated = [table for table in tables if table.data.header.get("simulated")]
    some = "" if len(simulated) == len(tables) else f" ({len(simulated)} of {len(tables)} runs)"
    if simulated:
        out.append(f'<strong class="badge">SIMULATED{some}</strong>')
    if any(table.plan.scaled for table in tables):
        out.append('<strong class="badge">SCALED</strong>')
    runs = [run.data for run in tables]
    return "".join(out) + f"</div>{about.unhealthy(runs)}{about.unfit(runs, words.drives(tables))}</header>"


def tested(tables: Sequence[Table], names: Sequence[str]) -> str:
    """What the plan does, the runs, and, folded, their parameters and set-up."""
    plan = tables[0].plan
    out = ['<section class="tested" aria-label="Test">']
    if any(table.plan.scaled for table in tables):
        out.append(f'<p class="warn">{trust_strip.SCALED}</p>')
    out.append(f'<p>{escape(plan.about)}</p><ul class="runs">')
    out += [_run(run, name) for run, name in zip(tables, names, strict=True)]
    out.append('</ul><details class="set-up"><summary>Parameters and set-up</summary>')
    out.append(f'<p class="soft">{escape(plan.source)}</p>' if plan.source else "")
    out += [_set_up(run, name if len(tables) > 1 else "") for run, name in zip(tables, names, strict=True)]
    return "".join(out) + "</details></section>"


def _worded(value) -> str:
    """A parameter's value, as in a plan without the quotes."""
    return document.toml(value).replace('"', "")


def _run(table: Table, name: str) -> str:
    """A run in a line: the drive, how the run ended, its date, its plan, what its figures assume."""
    data, drive = table.data, table.data.header["drive"]
    sign, words = about.STATES.get(data.state, ("?", data.state))
    variant = f", variant {table.plan.variant}" if table.plan.variant else ""
    facts = [
        about.started(data),
        f"plan {table.plan.name}{variant}{', SCALED' * table.plan.scaled}",
        f"raw NAND assumed: {size(drive['raw_nand_bytes'])}" if drive.get("raw_nand_assumed") else "",
        f"time-dilated: 1 s of drive time took {data.k} s, all figures are in drive time" if data.k != 1 else "",
    ]
    out = [f'<li><b>{escape(name)}</b> <span class="state {escape(data.state)}"><b aria-hidden="true">{sign}</b>']
    out.append(f" {escape(words)}</span> <span class='soft'>{' · '.join(escape(f) for f in facts if f)}")
    out.append(f" · <code>{escape(str(data.header['run']))}</code></span>")
    if data.state != "complete" or data.why:
        out.append(about.unfinished(data.state, data.why))
    return "".join(out) + "</li>"


def _set_up(table: Table, name: str) -> str:
    """The steady states that were reached, the effect of gaps, the drive and the host, the parameters of a run."""
    data, header = table.data, table.data.header
    drive, host = header["drive"], header.get("host") or {}
    reached = [_rule_terms(one) for one in table.verdicts if one.verdict["passed"]]
    lines = [f"Steady state reached by {'; '.join(reached)}."] if reached else []
    lines += [f"{line}. {gaps.WHY}." for line in gaps.words(table.rows)]
    facts = [
        *dict.fromkeys(f"purged by {method}" for method in table.purges),
        (f"serial {drive['serial']}" if drive.get("serial") else "serial not known")
        + (f", firmware {drive['firmware']}" if drive.get("firmware") else ""),
        f"SIMULATED preset {drive['preset']}" if drive.get("preset") else "",
        f"{host['fio']}" + (f", kernel {host['kernel']}" if host.get("kernel") else "") if host.get("fio") else "",
        f"power: {about.rig(data)}" if imported.of(header) else "",
    ]
    lines.append(" · ".join(fact for fact in facts if fact))
    lines += [f"{key} = {_worded(value)}" for key, value in table.plan.params.items()]
    heading = f"<h3>{escape(name)}</h3>" if name else ""
    return f"{heading}<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines if line)}</ul>"


def not_steady(tables: Sequence[Table], names: Sequence[str]) -> str:
    """A line for each steady state that was not reached or is not known."""
    out = []
    for table, name in zip(tables, names, strict=True):
        whose = f"{name}: " if len(tables) > 1 else ""
        for one in table.verdicts:
            if not one.verdict["passed"]:
                reason = f"{whose}{_rule_terms(one)}"
                out.append(f'<p class="warn"><b>{rule.heading([one.verdict])}</b> by {escape(reason)}.</p>')
    return "".join(out)


def _rule_terms(one: Verdict) -> str:
    verdict, of = one.verdict, f"{one.path.partition(' ')[0]}, {one.words}"
    at = rule.rests_on(verdict)
    of += f", {at}" if at else ""
    if verdict["passed"] is None:
        return f"{of} ({rule.why_unknown(verdict)})"
    spread, slope, limits = (
        number(verdict["range_percent"], 1),
        number(verdict["slope_percent"], 1),
        rule.limits_of(verdict),
    )
    terms = [f"range {spread} %, at most {limits.range_percent:g}"]
    terms += [f"slope {slope} %, at most {limits.slope_percent:g}"] if limits.slope_percent else []
    if verdict.get("error_percent") is not None:
        terms.append(f"or known to {number(verdict['error_percent'], 1)} %, at most {verdict['error_limit_percent']:g}")
    return f"{of} ({'; '.join(terms)})"


def steps(table: Table, name: str, named: bool) -> str:
    """The executed steps, a row a step; the points of a repeat are in the views."""
    title = "Steps" + (f": {name}" if named else "")
    heads = "".join(f'<th scope="col">{h}{f" <span class=unit>{u}</span>" if u else ""}</th>' for _, h, u in COLUMNS)
    out = [f'<section><h2>{escape(title)}</h2><div class="scroll"><table class="steps"><thead><tr>']
    out.append(
        '<th scope="col">Step</th><th scope="col">Begins</th><th scope="col">Takes <span class=unit>s</span></th>'
        + heads
    )
    out.append("</tr></thead><tbody>")
    repeats: dict[str, list[Row]] = {}
    for row in table.rows:
        if row.act.repeat:
            path = row.act.repeat.path
            if path not in repeats:
                repeats[path] = [r for r in table.rows if r.act.repeat and r.act.repeat.path == path]
                out.append(_repeat(path, repeats[path]))
            continue
        out.append(_step(row))
    marks = f'<p class="soft">{trust_strip.MARKED}</p>' if any(trust_strip.MARK in row for row in out) else ""
    return "".join(out) + f"</tbody></table></div>{marks}</section>"


def _step(row: Row) -> str:
    if row.act.do == "choose" and row.state == "done":
        return _text_row(_named(row.act.label, [row]), "", 2 + len(COLUMNS), "; ".join(sentences(row)))
    if row.state == "not run" or row.t0_s is None:
        why = ": ".join([row.state, *([row.why] if row.why else row.notes[:1])])
        return _text_row(_named(row.act.label, [row]), "", 2 + len(COLUMNS), why)
    words = sentences(row) if row.state == "done" else [rows.ended(row)]
    state = f' <span class="state">{escape("; ".join(words))}</span>' if words else ""
    long = "–" if row.t1_s is None else figure(row.t1_s - row.t0_s)
    name = _named(row.act.label, [row])
    out = f'<tr><th scope="row">{name}{state}</th><td>{clock(row.t0_s)}</td><td>{long}</td>{_cells(row, WHOLE)}</tr>'
    for window, of in row.windows.items():
        if of and window != WHOLE:
            begins, lasts = clock(row.t0_s + of["t0_s"]), figure(of["t1_s"] - of["t0_s"])
            out += f'<tr class="of-window"><th scope="row">{escape(window)}</th><td>{begins}</td><td>{lasts}</td>'
            out += f"{_cells(row, window)}</tr>"
    return out


def _cells(row: Row, window: str) -> str:
    """The figures of one window of a step."""
    return "".join(
        f"<td>{trust_strip.marked(figure(value), shows.VALUES[word][0], row.windows.get(window) or {})}</td>"
        if (value := row.value(word, window)) is not None
        else f'<td class="soft" title="{escape(row.why_not(word))}">–</td>'
        for word, *_ in COLUMNS
    )


def _repeat(path: str, rows: list[Row]) -> str:
    ran = [row for row in rows if row.state == "done"]
    points, rounds = len({row.act.label for row in ran}), len({row.round for row in ran})
    summary = f"{counted(rounds, 'round')} of {counted(points, 'point')}" if ran else "nothing was run"
    lacking: dict[str, list[str]] = {}
    for row in rows:
        if row.state != "done":
            lacking.setdefault(f"{row.state}: {row.why}" if row.why else row.state, []).append(
                " ".join(row.act.label.split()[1:])
            )
    summary += "".join(f"; {why} ({counted(len(of), 'point')})" for why, of in lacking.items())
    begin = min((row.t0_s for row in ran if row.t0_s is not None), default=None)
    end = max((row.t1_s for row in ran if row.t1_s is not None), default=None)
    times = "<td>–</td><td>–</td>"
    if begin is not None and end is not None:
        times = f"<td>{clock(begin)}</td><td>{figure(end - begin)}</td>"
    return _text_row(_named(path, ran), times, len(COLUMNS), summary)


def _named(name: str, rows: list[Row]) -> str:
    """The name of a step, in a resumed run with the parts that ran it."""
    of = sorted({row.part for row in rows if row.part})
    words = f"part{'s' * (len(of) > 1)} {' and '.join(map(str, of))}"
    return escape(name) + (f' <span class="soft">{words}</span>' if of else "")


def _text_row(name: str, cells: str, columns: int, words: str) -> str:
    """A row of the steps with words in place of figures. `name` is HTML."""
    cell = f'<td class="prose" colspan="{columns}">{escape(words)}</td>'
    return f'<tr><th scope="row">{name}</th>{cells}{cell}</tr>'


def notes(table: Table) -> list[str]:
    """Notes of the run, of its steps except points of a repeat (whose cells state why they are empty), and the limits
    of the points."""
    return [
        *table.data.notes,
        *_limits(table),
        *(
            f"{row.act.path}: {note}"
            for row in table.rows
            if row.act.do in kinds.IO and row.round is None
            for note in row.notes
        ),
    ]


def _limits(table: Table) -> Iterator[str]:
    """Each once: disagreements with fio in the rounds of a point, its limits, the begin of its figures, and how a trace
    was played."""
    remarks: dict[tuple[str, str], list[str]] = {}
    for row in table.rows:
        if row.round is not None and row.round in last_rounds(table, row.act.path):
            for note in row.notes:
                if note.startswith((*witness.SAYS, FIRST_BURST, LAG, SCALED)):
                    remarks.setdefault((row.act.label, note.partition(": ")[0]), []).append(note)
    for (label, _), remarks_of in remarks.items():
        more = f" ({len(remarks_of)} rounds alike)" if len(remarks_of) > 1 else ""
        yield f"{label}: {remarks_of[0]}{more}"


def notes_section(runs: Sequence[RunData], remarks: Sequence[Sequence[str]], names: Sequence[str]) -> str:
    """The gaps of each run, and its events."""
    out = ['<section aria-labelledby="notes-h"><h2 id="notes-h">Gaps and event log</h2>']
    for i, (data, notes_of, label) in enumerate(zip(runs, remarks, names, strict=True)):
        out.append(f'<div class="notes" data-run="{i}"><h3>{escape(label)}</h3>')
        items = "".join(f"<li>{escape(n)}</li>" for n in notes_of)
        out.append(f"<ul>{items}</ul>" if items else '<p class="soft">No gaps: every figure is known.</p>')
        out.append(f'<details><summary>Event log <span class="soft">{len(data.log)} events</span></summary>')
        # as text: a table of the events of ten runs is half of all elements of the page, and closed
        lines = [("t, s", "event"), *((number(t, 2), " ".join(event.split())) for t, event in data.log[:MOST_EVENTS])]
        text = "".join(f"{t:>10}  {escape(event)}\n" for t, event in lines)
        out.append(f'<pre class="log">{text}</pre></details></div>')
    return "".join(out) + "</section>"


def footer(runs: Sequence[RunData], of_load: bool, of_rows: bool) -> str:
    """Versions that made the page, and the time that its figures cover."""
    versions = ", ".join(sorted({str(run.header.get("ssdrig")) for run in runs}))
    tools = ", ".join(sorted({str((run.header.get("host") or {}).get("fio")) for run in runs}))
    origin_notes = [f"Made by ssdrig {versions} from the run folders alone."]
    if of_load:
        origin_notes.append(f"Load by {tools}. t = 0 is the first I/O of the load. Plots by uPlot (MIT).")
    if of_rows:
        origin_notes.append(
            "Figures of a step cover the time from its first I/O to its end, those of a window its whole seconds."
            " Point at a cell for its rounds, or for the reason why it is empty."
        )
    text = escape(" ".join(origin_notes))
    return f"<footer class='soft'>{text} No part of this page is fetched from a network.</footer>"
