"""The report page: everything of some runs in one HTML file that needs no network. Words, tables and bars are plain
HTML made here, so that they are there without JavaScript; panels.js and report.js add the plots and what can be
clicked."""

import base64
import hashlib
import json
from html import escape
from pathlib import Path

import numpy as np

from ssdrig.report.terms import BARS, BY_KEY, TERMS, number, with_error

HERE = Path(__file__).parent
SHAPES = ["circle", "square", "up", "diamond", "down", "plus", "bar", "dash", "left", "right"]
STATES = {
    "complete": ("✓", "complete"),
    "failed": ("✕", "failed"),
    "interrupted": ("■", "interrupted"),
    "died": ("†", "died: its process ended without a word"),
    "running": ("…", "still running"),
}
MISSING = 65535
RAIL_COLUMNS = [  # key of a rail's figures, words, unit, places
    ("power_mean_W", "Mean power", "W", 3),
    ("share", "of the drive's", "%", 1),
    ("power_max_W", "Highest sample", "W", 3),
    ("energy_J", "Energy", "J", 1),
    ("idle_mean_W", "Idle power", "W", 3),
    ("power_uncertainty_percent", "Uncertain by", "%", 2),
    ("samples", "Samples", "", 0),
    ("samples_lost", "Lost", "", 0),
    ("closure_percent", "Closure", "%", 3),
]


def counts(values: np.ndarray) -> dict:
    """Whole numbers >= 0, exact: uint16 or uint32, base64, little endian."""
    values = np.rint(values)
    kind = "<u2" if values.size == 0 or values.max() < MISSING else "<u4"
    return {"as": kind[1:], "b": base64.b64encode(values.astype(kind).tobytes()).decode()}


def linear(values: np.ndarray) -> dict:
    """Numbers as uint16 steps from lo to hi (1/65534 of the range each); not-a-number stays missing."""
    good = values[np.isfinite(values)]
    lo, hi = (float(good.min()), float(good.max())) if good.size else (0.0, 0.0)
    step = (hi - lo) / (MISSING - 1) or 1.0
    code = np.where(np.isfinite(values), np.rint((values - lo) / step), MISSING)
    return {"as": "lin", "lo": lo, "step": step, "b": base64.b64encode(code.astype("<u2").tobytes()).decode()}


def logarithmic(values: np.ndarray) -> dict:
    """Numbers > 0 over many decades: `linear` of their logarithm."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return {**linear(np.where(values > 0, np.log(values), np.nan)), "as": "log"}


def op_words(op_percent) -> str:
    return "drive's own" if op_percent is None else f"{op_percent:g} % of raw"


def labels(figures: list[dict]) -> list[tuple[str, str, str, str]]:
    """(drive, op, label, short label) of each run; a drive is its model, with the serial where two of a model differ (a
    SIMULATED drive is its model alone: it gets a serial each time it starts), and runs that are otherwise alike are
    numbered. The short label leaves out what all runs have in common."""
    serials = {}
    for f in figures:
        serials.setdefault(f["model"], set()).add(f["serial"])
    pairs = []
    for f in figures:
        serial = f" {f['serial']}" if len(serials[f["model"]]) > 1 and not f["simulated"] else ""
        pairs.append(((f["model"] or "unknown drive") + serial, op_words(f["op_percent"])))
    one_drive, one_op = len({d for d, _ in pairs}) == 1, len({o for _, o in pairs}) == 1
    out = []
    for i, (drive, op) in enumerate(pairs):
        number_of = f" (run {pairs[: i + 1].count((drive, op))})" if pairs.count((drive, op)) > 1 else ""
        brief = drive.removeprefix("SIMULATED ")  # the page's head says it of every run
        short = brief if one_op else f"OP {op}" if one_drive else f"{brief}, OP {op.removesuffix(' of raw')}"
        out.append((drive, op, f"{drive}, OP {op}{number_of}", short + number_of))
    return out


def run_data(data, figure: dict, names: tuple[str, str, str, str], index: int) -> dict:
    """What report.js gets of one run (analysis.RunData): typed arrays as base64, t in seconds of drive time."""
    drive, op, label, short = names
    return {
        "id": figure["run"],
        "label": label,
        "short": short,
        "drive": drive,
        "op": op,
        "index": index,
        "shape": SHAPES[index % len(SHAPES)],
        "n": int(data.iops.size),
        "zoom": figure["zoom_s"] or 0,
        "iops": counts(data.iops),
        "power_mean": linear(data.power_mean_W),
        "power_min": linear(data.power_min_W),
        "power_max": linear(data.power_max_W),
        "lat_mean": logarithmic(data.lat_mean_us),
        "lat_p99": logarithmic(data.lat_p99_us),
        "temp": {"t": rounded(data.temp_t_s), "v": rounded(data.temperature_C)},
        "wa": {"t": rounded(data.wa_t_s), "v": rounded(data.wa_value, 5), "e": rounded(data.wa_error, 5)},
        "rails": (
            [{"name": rail.name, "mean": linear(rail.power_mean_W)} for rail in data.rails]
            if len(data.rails) > 1
            else []
        ),
        "polls": [[round(a, 3), round(b, 3)] for a, b, _ in data.polls],
        "marks": [[round(t, 3), text[:40]] for t, text in data.marks],
    }


def rounded(values, places: int = 3) -> list[float]:
    return [round(float(v), places) for v in values]


def render(runs: list, figures: list[dict], review: int) -> str:
    """The page for `runs` (analysis.RunData each) with their `figures`; `review` is the index of the reviewed run."""
    names = labels(figures)
    payload = {
        "review": review,
        "dilated": any((f["time_dilation"] or 1) != 1 for f in figures),
        "runs": [run_data(d, f, n, i) for i, (d, f, n) in enumerate(zip(runs, figures, names, strict=True))],
    }
    # "</script>" in a drive's name must not end the block
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    scripts = [(HERE / name).read_text() for name in ("vendor/uPlot.iife.min.js", "panels.js", "report.js")]
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    style = (HERE / "vendor/uPlot.min.css").read_text() + (HERE / "report.css").read_text()
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
            f"<title>{escape(title(figures))}</title><style>{style}</style></head><body>",
            head(figures, names, review),
            controls(names, review),
            bars(figures, names, review),
            (HERE / "panels.html").read_text(),
            table(figures, names, review),
            rails_table(figures, names),
            notes(runs, figures, names),
            footer(runs),
            f'<script type="application/json" id="data">{text}</script>',
            *[f"<script>{s}</script>" for s in scripts],
            "</body></html>\n",
        ]
    )


def title(figures: list[dict]) -> str:
    models = list(dict.fromkeys(f["model"] or "unknown drive" for f in figures))
    return "Performance consistency: " + ", ".join(models)


def head(figures: list[dict], names: list, review: int) -> str:
    simulated = [f for f in figures if f["simulated"]]
    out = ['<header><div class="title"><h1>Performance consistency</h1>']
    if simulated:
        what = "every run" if len(simulated) == len(figures) else f"{len(simulated)} of {len(figures)} runs"
        out.append(f'<strong class="badge">SIMULATED</strong><span class="soft">drive and sensor: {what}</span>')
    out.append(
        "</div><p>4 KiB random write over the whole tested range at queue depth 32 with incompressible data, after a"
        " purge and"
    )
    out.append(
        " a sequential fill. One count a second; power, temperature and wear on the same clock.</p><ul class='runs'>"
    )
    for i, (f, (_, _, label, _)) in enumerate(zip(figures, names, strict=True)):
        sign, words = STATES.get(f["state"], ("?", f["state"]))
        state = f'<span class="state {escape(f["state"])}"><b aria-hidden="true">{sign}</b> {escape(words)}</span>'
        k = f["time_dilation"] or 1
        facts = [
            f"{number(f['tested_bytes'] / 1e9, 2)} GB tested" if f["tested_bytes"] else None,
            f"{number(f['duration_s'], 0)} s" if f["duration_s"] else None,
            f"serial {escape(str(f['serial']))}",
            f"SIMULATED preset {escape(str(f['preset']))}" if f["preset"] else None,
            f"time-dilated: 1 s of drive time took {k:g} s, all figures are in drive time" if k != 1 else None,
        ]
        reviewed = ' <span class="review">reviewed</span>' if i == review else ""
        out.append(f'<li data-run="{i}"><b>{escape(label)}</b>{reviewed} {state} <span class="soft">')
        out.append(" · ".join(x for x in facts if x) + f" · <code>{escape(f['run'])}</code></span>")
        if f["state"] != "complete":
            why = escape(f["why"] or "no reason was recorded")
            out.append(f'<p class="warn">{why}. The figures below are from what there is.</p>')
        out.append("</li>")
    return "".join(out) + "</ul></header>"


def group(kind: str, words: str, choices: list[str]) -> str:
    boxes = "".join(
        f'<label><input type="checkbox" name="{kind}" value="{i}" checked> {escape(c)}</label>'
        for i, c in enumerate(choices)
    )
    return f"<fieldset><legend>{words}</legend>{boxes}</fieldset>"


def controls(names: list, review: int) -> str:
    drives, ops = (list(dict.fromkeys(n[k] for n in names)) for k in (0, 1))
    options = "".join(
        f'<option value="{i}"{" selected" if i == review else ""}>{escape(n[2])}</option>' for i, n in enumerate(names)
    )
    return (
        '<form class="controls" aria-label="What is shown">'
        + group("drive", "Drive", drives)
        + group("op", "Over-provisioning", ops)
        + '<fieldset><legend>Reviewed, drawn on top</legend><select name="review" aria-label="Reviewed'
        f' run">{options}</select></fieldset>'
        + '<fieldset><legend>Plots</legend><label><input type="checkbox" name="trend" checked> trend ±'
        " sd</label></fieldset>" + "</form>"
    )


def bars(figures: list[dict], names: list, review: int) -> str:
    out = ['<section aria-labelledby="bars-h"><h2 id="bars-h">Key figures</h2><p class="soft" id="bars-hint">']
    out.append("Click a bar, and the others show how far they are from that run, in percent.</p><div class='cards'>")
    for key in BARS:
        term, values = BY_KEY[key], [f[key] for f in figures]
        top = max((v for v in values if v is not None), default=0) or 1
        better = {"more": "more is better", "less": "less is better"}[term.better]
        unit = f" <span class='unit'>{term.unit}</span>" if term.unit else ""
        out.append(f'<div class="card" data-key="{key}"><h3>{term.label}{unit}</h3><p class="soft">{better}</p>')
        for i, (value, (_, _, _, label)) in enumerate(zip(values, names, strict=True)):
            width = 0 if value is None else max(0.0, 100 * value / top)
            text = with_error(value, figures[i]["wa_error"] if key == "wa" else None, term.places)
            data = "" if value is None else f' data-value="{value!r}" data-better="{term.better}"'
            strong = " top" if i == review else ""
            out.append(
                f'<button type="button" class="row{strong}" data-run="{i}"{data}'
                f' aria-pressed="false"{" disabled" if value is None else ""} title="{escape(names[i][2])}"><span'
                f' class="name"><i class="key" data-run="{i}"></i>{escape(label)}</span><span class="track"><span'
                f' class="fill" style="width:{width:.2f}%"></span></span><span class="value">{text}</span><span'
                ' class="percent"></span></button>'
            )
        out.append("</div>")
    return "".join(out) + "</div></section>"


def table(figures: list[dict], names: list, review: int) -> str:
    out = [
        '<section aria-labelledby="table-h"><h2 id="table-h">All figures, and what each means</h2><div'
        ' class="scroll"><table><thead><tr>'
    ]
    out.append('<th scope="col">Figure</th>')
    for i, (_, _, label, _) in enumerate(names):
        out.append(f'<th scope="col" data-run="{i}"{" class=top" if i == review else ""}>{escape(label)}')
        out.append(f'<br><button type="button" class="csv" data-run="{i}">CSV, per second</button></th>')
    out.append("</tr></thead>")
    for name in dict.fromkeys(t.group for t in TERMS):
        out.append(f'<tbody><tr><th colspan="{len(names) + 1}" scope="rowgroup" class="group">{name}</th></tr>')
        for term in (t for t in TERMS if t.group == name):
            unit = f' <span class="unit">{term.unit}</span>' if term.unit else ""
            out.append(f'<tr><th scope="row">{term.label}{unit}<small>{escape(term.meaning)}</small></th>')
            for i, f in enumerate(figures):
                text = with_error(f[term.key], f["wa_error"] if term.key == "wa" else None, term.places)
                out.append(f'<td data-run="{i}"{" class=top" if i == review else ""}>{text}</td>')
            out.append("</tr>")
        out.append("</tbody>")
    return "".join(out) + "</table></div></section>"


def rails_table(figures: list[dict], names: list) -> str:
    """What each rail of a rig with several had of the drive's power; nothing where all runs had one rail."""
    if all(len(f["rails"]) < 2 for f in figures):
        return ""
    out = [
        '<section aria-labelledby="rails-h"><h2 id="rails-h">Rails</h2><p class="soft">The drive\'s power is the sum of'
        " its rails."
    ]
    out.append(
        " The highest sample is the rail's own; the sum's is not the sum of these, because they need not come at one"
        " time.</p>"
    )
    out.append('<div class="scroll"><table class="rails"><thead><tr><th scope="col">Run</th><th scope="col">Rail</th>')
    out.append(
        "".join(f'<th scope="col">{words}<span class="unit"> {unit}</span></th>' for _, words, unit, _ in RAIL_COLUMNS)
    )
    out.append("</tr></thead><tbody>")
    for i, (f, (_, _, label, _)) in enumerate(zip(figures, names, strict=True)):
        for rail in f["rails"]:
            share = (
                100 * rail["power_mean_W"] / f["power_mean_W"]
                if rail["power_mean_W"] is not None and f["power_mean_W"]
                else None
            )
            cells = "".join(
                f"<td>{number({**rail, 'share': share}[key], places)}</td>" for key, _, _, places in RAIL_COLUMNS
            )
            out.append(
                f'<tr data-run="{i}"><th scope="row">{escape(label)}</th><td>{escape(rail["name"])}</td>{cells}</tr>'
            )
    return "".join(out) + "</tbody></table></div></section>"


def notes(runs: list, figures: list[dict], names: list) -> str:
    out = ['<section aria-labelledby="notes-h"><h2 id="notes-h">What happened, and what is missing</h2>']
    for i, (data, f, (_, _, label, _)) in enumerate(zip(runs, figures, names, strict=True)):
        out.append(f'<details data-run="{i}"{" open" if f["notes"] else ""}><summary>{escape(label)}')
        out.append(f" <span class='soft'>{len(f['notes'])} notes, {len(data.log)} events</span></summary>")
        if f["notes"]:
            out.append("<ul>" + "".join(f"<li>{escape(n)}</li>" for n in f["notes"]) + "</ul>")
        out.append(
            '<div class="scroll"><table class="log"><thead><tr><th scope="col">t, s</th><th'
            ' scope="col">what</th></tr></thead><tbody>'
        )
        out.append("".join(f"<tr><td>{number(t, 2)}</td><td>{escape(text)}</td></tr>" for t, text in data.log[:500]))
        out.append("</tbody></table></div></details>")
    return "".join(out) + "</section>"


def footer(runs: list) -> str:
    versions = sorted({str(d.header.get("ssdrig")) for d in runs})
    tools = sorted({str(d.header.get("host", {}).get("fio")) for d in runs})
    return (
        f"<footer class='soft'>Made by ssdrig {escape(', '.join(versions))} from the run folders alone; load by"
        f" {escape(', '.join(tools))}. t = 0 is the first I/O of the load. Plots by uPlot (MIT). No part of this page"
        " is fetched from a network.</footer>"
    )
