"""The report page: everything of some runs in one HTML file that needs no network. Words, tables and bars are plain
HTML made here, so that they are there without JavaScript; panels.js and report.js add the plots and what can be
clicked."""

import base64
import datetime
import hashlib
import json
from html import escape
from pathlib import Path

from ssdrig.analysis import window_figures
from ssdrig.report import comparable, over_op, pack, repeats, views, words
from ssdrig.report.cards import cards, spread
from ssdrig.report.rows import of_figures
from ssdrig.report.terms import TERMS, number
from ssdrig.report.words import labels
from ssdrig.words import size

HERE = Path(__file__).parent
# what every page begins with, and hardly any other file
OPENING = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy"'
    " content=\"default-src 'none'; script-src '"
)
STATES = {
    "complete": ("✓", "complete"),
    "failed": ("✕", "failed"),
    "interrupted": ("■", "interrupted"),
    "died": ("†", "aborted: the process ended unexpectedly"),
    "running": ("…", "still running"),
}
RAIL_COLUMNS = [  # key of a rail's figures, words, unit, places
    ("power_mean_W", "Mean power", "W", 3),
    ("share", "Share", "%", 1),
    ("power_max_W", "Highest sample", "W", 3),
    ("energy_J", "Energy", "J", 1),
    ("idle_mean_W", "Idle power", "W", 3),
    ("power_uncertainty_percent", "Uncertainty", "%", 2),
    ("samples", "Samples", "", 0),
    ("samples_lost", "Lost", "", 0),
    ("closure_percent", "Closure", "%", 3),
]


def render(runs: list, figures: list[dict], review: int, more: str = "", host: str = "") -> str:
    """The page for `runs` (analysis.RunData each) with their `figures`; `review` is the index of the reviewed run,
    `more` and `host` pieces of the page before the notes: the parts of runs, and what drive and host were set to."""
    names = labels(figures)
    shown = views.of(figures)
    looks = [pack.look(i) for i in range(len(runs))]
    apart = comparable.reasons(runs, figures)
    payload = {
        "review": review,
        "apart": apart,
        "columns": list(pack.COLUMNS.items()),
        "views": [view.label for view in shown],
        "dilated": any((f["time_dilation"] or 1) != 1 for f in figures),
        "runs": [
            pack.run_data(d, f, n, i, [view.figures[i] for view in shown])
            for i, (d, f, n) in enumerate(zip(runs, figures, names, strict=True))
        ],
    }
    # "</script>" in a drive's name must not end the block
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    scripts = [
        (HERE / name).read_text("utf-8") for name in ("vendor/uPlot.iife.min.js", "panels.js", "cards.js", "report.js")
    ]
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    style = (HERE / "vendor/uPlot.min.css").read_text("utf-8") + (HERE / "report.css").read_text("utf-8")
    style += views.style(shown) + ((HERE / "plan.css").read_text("utf-8") if more or host else "")
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
        " form-action 'none'"
    )
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            (
                '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme"'
                ' content="light dark">'
            ),
            f"<title>{escape(page_title(runs, figures))}</title><style>{style}</style></head><body>",
            head(runs, figures, names, apart[review], review),
            controls(shown, names, review),
            cards(shown, names, looks, apart[review], review),
            (HERE / "panels.html").read_text("utf-8"),
            views.phase_table(figures, names),
            over_op.section(figures),
            repeats.section(
                [data.header for data in runs],
                [list(of_figures(found)) for found in figures],
                [label for _, _, label, _ in names],
            ),
            table(shown, names, review),
            rails_table(shown, names),
            more,
            host,
            notes(runs, figures, names),
            footer(runs),
            f'<script type="application/json" id="data">{text}</script>',
            *[f"<script>{s}</script>" for s in scripts],
            "</body></html>\n",
        ]
    )


def page_title(runs: list, figures: list[dict]) -> str:
    models = dict.fromkeys(f["model"] or "unknown drive" for f in figures)
    return f"{words.title(runs)}: {', '.join(models)}"


def head(runs: list, figures: list[dict], names: list, apart: list[str | None], review: int) -> str:
    simulated = [f for f in figures if f["simulated"]]
    out = [f'<header><div class="title"><h1>{escape(words.title(runs))}</h1>']
    if simulated:
        what = "every run" if len(simulated) == len(figures) else f"{len(simulated)} of {len(figures)} runs"
        out.append(f'<strong class="badge">SIMULATED</strong><span class="soft">drive and sensor: {what}</span>')
    tests = [words.description(data, f) for data, f in zip(runs, figures, strict=True)]
    one_test = len(set(tests)) == 1
    out.append(f"</div><p>{escape(tests[0]) if one_test else 'The runs differ in their test, see below.'}")
    out.append(" One count per second; power, temperature and wear on the same clock.</p><ul class='runs'>")
    for i, (data, f, (_, _, label, _)) in enumerate(zip(runs, figures, names, strict=True)):
        sign, state_words = STATES.get(f["state"], ("?", f["state"]))
        state = (
            f'<span class="state {escape(f["state"])}"><b aria-hidden="true">{sign}</b> {escape(state_words)}</span>'
        )
        k = f["time_dilation"] or 1
        firmware = data.header["drive"].get("firmware")
        facts = [
            started(data),
            f'<span title="{number(f["tested_bytes"], 0)} bytes">{size(f["tested_bytes"])} tested</span>'
            if f["tested_bytes"]
            else None,
            f"raw NAND assumed: {size(f['raw_nand_bytes'])}" if f["raw_nand_assumed"] else None,
            f"{number(f['duration_s'], 0)} s" if f["duration_s"] else None,
            f"serial {escape(str(f['serial']))}" + (f", firmware {escape(str(firmware))}" if firmware else ""),
            f"SIMULATED preset {escape(str(f['preset']))}" if f["preset"] else None,
            f"time-dilated: 1 s of drive time took {k:g} s, all figures are in drive time" if k != 1 else None,
            None if one_test else escape(tests[i]),
        ]
        reviewed = ' <span class="review">reviewed</span>' if i == review else ""
        out.append(f'<li data-run="{i}"><b>{escape(label)}</b>{reviewed} {state} <span class="soft">')
        out.append(" · ".join(x for x in facts if x) + f" · <code>{escape(f['run'])}</code></span>")
        if f["state"] != "complete":
            out.append(unfinished(f["state"], f["why"]))
        out.append(f'<p class="warn apart{"" if apart[i] else " hidden"}">{not_comparable(apart[i])}</p></li>')
    return "".join(out) + "</ul></header>"


def unfinished(state: str, why: str | None) -> str:
    """What the page says of a run that is not complete, or whose end has a reason."""
    nothing = "The run still goes on" if state == "running" else "No reason was recorded"
    return f'<p class="warn">{escape(why or nothing)}. The figures below cover the recorded part only.</p>'


def started(data) -> str:
    """When a run began, UTC."""
    utc_s = data.header["started"]["utc_ns"] / 1e9
    return datetime.datetime.fromtimestamp(utc_s, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def not_comparable(why: str | None) -> str:
    return f"Not comparable: {escape(why)}. Left out of every ranking." if why else ""


def group(kind: str, words: str, choices: list[str]) -> str:
    boxes = "".join(
        f'<label><input type="checkbox" name="{kind}" value="{i}" checked> {escape(c)}</label>'
        for i, c in enumerate(choices)
    )
    return f"<fieldset><legend>{words}</legend>{boxes}</fieldset>"


def controls(shown: list, names: list, review: int) -> str:
    drives, ops = (list(dict.fromkeys(n[k] for n in names)) for k in (0, 1))
    options = "".join(
        f'<option value="{i}"{" selected" if i == review else ""}>{escape(n[2])}</option>' for i, n in enumerate(names)
    )
    return (
        '<form class="controls" aria-label="What is shown">'
        + views.switch(shown)
        + group("drive", "Drive", drives)
        + group("op", "Over-provisioning", ops)
        + '<fieldset><legend>Reviewed run</legend><select name="review" aria-label="Reviewed'
        f' run">{options}</select></fieldset>'
        + '<fieldset><legend>Plots</legend><label><input type="checkbox" name="trend" checked> trend</label></fieldset>'
        + "</form>"
    )


def table(shown: list, names: list, review: int) -> str:
    """Each figure and what it means: those of the chosen window, then those of the run as a whole."""
    out = [
        '<section aria-labelledby="table-h"><h2 id="table-h">All figures and their meaning</h2><div class="scroll">'
        '<table class="figures"><thead><tr><th scope="col">Figure</th>'
    ]
    for i, (_, _, label, _) in enumerate(names):
        out.append(f'<th scope="col" data-run="{i}"{" class=top" if i == review else ""}>{escape(label)}')
        out.append(f'<br><button type="button" class="csv" data-run="{i}">CSV, per second</button></th>')
    out.append("</tr></thead>")
    of_window = [t for t in TERMS if t.key in window_figures.KEYS]
    for index, view in enumerate(shown):
        out += [
            rows(title, terms, view, shown, names, review, f' data-view="{index}"')
            for title, terms in groups(of_window, f"{view.label}: ")
        ]
    rest = [t for t in TERMS if t.key not in window_figures.KEYS]
    out += [rows(title, terms, shown[0], shown, names, review) for title, terms in groups(rest, "Whole run: ")]
    return "".join(out) + "</table></div></section>"


def groups(terms: list, before: str) -> list[tuple[str, list]]:
    """Terms by their group, each with a title."""
    return [
        (before + name[0].lower() + name[1:], [t for t in terms if t.group == name])
        for name in dict.fromkeys(t.group for t in terms)
    ]


def rows(title: str, terms: list, view, shown: list, names: list, review: int, attributes: str = "") -> str:
    out = [
        f'<tbody{attributes}><tr><th colspan="{len(names) + 1}" scope="rowgroup"'
        f' class="group">{escape(title)}</th></tr>'
    ]
    for term in terms:
        unit = words.unit(term, [f[term.key] for one in shown for f in one.figures])
        name = f' <span class="unit">{unit.name}</span>' if unit.name else ""
        out.append(f'<tr><th scope="row">{term.label}{name}<small>{escape(term.meaning)}</small></th>')
        for i, f in enumerate(view.figures):
            text = unit.text(f[term.key], f["wa_error"] if term.key == "wa" else None)
            if term.key == "iops_sd" and spread(f) is not None:
                text += f" <small>{number(spread(f), 1)} % of the mean</small>"
            tip = words.exact(term, f[term.key])
            tip = f' title="{tip}"' if tip else ""
            out.append(f'<td data-run="{i}"{" class=top" if i == review else ""}{tip}>{text}</td>')
        out.append("</tr>")
    return "".join(out) + "</tbody>"


def rails_table(shown: list, names: list) -> str:
    """What each rail of a rig with several had of the drive's power; nothing where all runs had one rail."""
    if all(len(f["rails"]) < 2 for view in shown for f in view.figures):
        return ""
    out = ['<section aria-labelledby="rails-h"><h2 id="rails-h">Rails</h2><p class="soft">']
    out.append("The drive's power is the sum of its rails. The highest sample is the rail's own: the rails need not")
    out.append(" have theirs at one time, so these do not add up to the highest of the sum.</p>")
    out.append('<div class="scroll"><table class="rails"><thead><tr><th scope="col">Run</th><th scope="col">Rail</th>')
    out.append(
        "".join(f'<th scope="col">{label}<span class="unit"> {unit}</span></th>' for _, label, unit, _ in RAIL_COLUMNS)
    )
    out.append("</tr></thead>")
    for index, view in enumerate(shown):
        out.append(f'<tbody data-view="{index}">')
        for i, (f, (_, _, label, _)) in enumerate(zip(view.figures, names, strict=True)):
            out += [rail_row(rail, f["power_mean_W"], label, i) for rail in f["rails"]]
        out.append("</tbody>")
    return "".join(out) + "</table></div></section>"


def rail_row(rail: dict, of_W: float | None, label: str, run: int) -> str:
    share = 100 * rail["power_mean_W"] / of_W if rail["power_mean_W"] is not None and of_W else None
    cells = "".join(f"<td>{number({**rail, 'share': share}[key], places)}</td>" for key, _, _, places in RAIL_COLUMNS)
    return f'<tr data-run="{run}"><th scope="row">{escape(label)}</th><td>{escape(rail["name"])}</td>{cells}</tr>'


def notes(runs: list, figures: list[dict], names: list) -> str:
    out = ['<section aria-labelledby="notes-h"><h2 id="notes-h">Gaps and event log</h2>']
    for i, (data, f, (_, _, label, _)) in enumerate(zip(runs, figures, names, strict=True)):
        out.append(f'<div class="notes" data-run="{i}"><h3>{escape(label)}</h3>')
        items = "".join(f"<li>{escape(n)}</li>" for n in f["notes"])
        out.append(f"<ul>{items}</ul>" if items else '<p class="soft">No gaps: every figure is known.</p>')
        out.append(f'<details><summary>Event log <span class="soft">{len(data.log)} events</span></summary>')
        out.append(
            '<div class="scroll"><table class="log"><thead><tr><th scope="col">t, s</th><th'
            ' scope="col">event</th></tr></thead><tbody>'
        )
        out.append("".join(f"<tr><td>{number(t, 2)}</td><td>{escape(text)}</td></tr>" for t, text in data.log[:500]))
        out.append("</tbody></table></div></details></div>")
    return "".join(out) + "</section>"


def footer(runs: list) -> str:
    versions = sorted({str(d.header.get("ssdrig")) for d in runs})
    tools = sorted({str(d.header.get("host", {}).get("fio")) for d in runs})
    return (
        f"<footer class='soft'>Made by ssdrig {escape(', '.join(versions))} from the run folders alone; load by"
        f" {escape(', '.join(tools))}. t = 0 is the first I/O of the load. Plots by uPlot (MIT). No part of this page"
        " is fetched from a network.</footer>"
    )
