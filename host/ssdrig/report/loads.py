"""The load that runs are about, side by side: the verdict, the key figures, the plots by the second and below it, the
windows, and all figures. Words, tables and bars are plain HTML, so that they are there without JavaScript; panels.js
and report.js add the plots and what can be clicked."""

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from ssdrig.reading import trust, window_figures
from ssdrig.reading.rundata import RunData
from ssdrig.report import about, over_op, pack, plates, verdict, views, words
from ssdrig.report.cards import ranking, spread
from ssdrig.report.words import labels
from ssdrig.views import svg, trust_strip
from ssdrig.views.terms import TERMS, number

MOST_STRIPS = 1  # of runs, before the verdict
MOST_NAMED = 60  # characters of drives' names in the title
SCRIPTS = (
    "vendor/uPlot.iife.min.js",
    *(f"{name}.js" for name in ("panels", "packed", "samples", "export", "cards", "tools", "report")),
)
P99_OF = {  # the latency that the marks of the panel "latency" show, as panels.html has it
    "clat": "from when the drive was given the I/O (clat)",
    "lat": "submission included (lat)",
    "": "from when the drive was given the I/O (clat), of long loads submission included (lat)",
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


class Loads:
    """Loads side by side. `loads`: each with its seconds and its figures (course.Course); `review`: the place of the
    reviewed one; `samples`: the loads have all their power samples."""

    def __init__(self, loads: Sequence[tuple[RunData, dict]], review: int, samples: bool = False) -> None:
        self.runs, self.figures = [data for data, _ in loads], [figures for _, figures in loads]
        self.review, self.samples = review, samples
        self.names, self.views = labels(self.figures), views.of(self.figures)
        self.looks = [svg.look(i) for i in range(len(loads))]
        self.apart = verdict.reasons(self.runs, self.figures)

    @property
    def title(self) -> str:
        """The drives and the test."""
        return page_title(self.runs, self.figures)

    def head(self) -> str:
        """Drive, test and date."""
        return head(self.runs, self.figures, [name for *_, name in self.names])

    def strips(self) -> str:
        """The trust strip of each window of each run."""
        return strips(self.views, self.names)

    @property
    def style(self) -> str:
        """Rules that hide all windows but the chosen one."""
        return views.style(self.views)

    def data(self) -> str:
        """What report.js needs, as a block of the page."""
        payload = {
            "review": self.review,
            "apart": self.apart,
            "columns": list(pack.columns(self.runs).items()),
            "views": [view.name for view in self.views],
            "simulated": any(f["simulated"] for f in self.figures),
            "days": about.days(self.runs),
            "dilated": any((f["time_dilation"] or 1) != 1 for f in self.figures),
            "runs": [
                pack.run_data(d, f, n, i, [view.figures[i] for view in self.views])
                | {
                    "about": about.facts(d, f),
                    "fine": pack.fine(d),
                    "moments": pack.moments(d, len(self.runs), self.samples),
                }
                for i, (d, f, n) in enumerate(zip(self.runs, self.figures, self.names, strict=True))
            ],
        }
        # "</script>" in a drive's name must not end the block
        text = json.dumps(payload, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        return f'<script type="application/json" id="data">{text}</script>'

    def shown(self) -> str:
        """Everything but the figures one by one, which end the page: figures_section()."""
        of = self.runs, self.views, self.names, self.looks, self.review
        return "".join(
            [
                verdicts(self.views, self.names, self.apart, self.review),
                controls(self.views, self.names, self.review),
                ranking(self.views, self.names, self.looks, self.apart[self.review], self.review),
                panels(self.runs, self.names, self.looks, self.review),
                plates.sections(plates.every(*of), any(data.rails for data in self.runs)),
                about.section(self.runs, self.figures, self.names),
                views.phase_table(self.figures, self.names, self.views),
                over_op.section(self.figures),
            ]
        )

    def figures_section(self) -> str:
        """Each figure and its meaning, and the share of each rail in the power."""
        return table(self.views, self.names, self.review) + rails_table(self.views, self.names)


def page_title(runs: list, figures: list[dict]) -> str:
    """The drives, while a title has room for them, and the test."""
    models = list(dict.fromkeys((f["model"] or "unknown drive").removeprefix("SIMULATED ") for f in figures))
    named = ", ".join(models)
    if len(models) > 1 and len(named) > MOST_NAMED:
        named = f"{len(models)} drives"
    return f"{named}: {words.title(runs).lower()}"


def head(runs: list, figures: list[dict], names: Sequence[str]) -> str:
    """Drive, test and date, and the deviations of the set-up."""
    simulated = [f for f in figures if f["simulated"]]
    out = ['<a class="skip" href="#plots-h">Skip to the plots</a><header><div class="title">']
    out.append(f"<h1>{escape(page_title(runs, figures))}</h1>")
    if simulated:
        what = "every run" if len(simulated) == len(figures) else f"{len(simulated)} of {len(figures)} runs"
        out.append(f'<strong class="badge">SIMULATED</strong><span class="soft">drive and sensor: {what}</span>')
    scaled = [f for f in figures if f["scaled"]]
    if scaled:
        what = "" if len(scaled) == len(figures) else f" ({len(scaled)} of {len(figures)} runs)"
        out.append(f'<strong class="badge">SCALED{what}</strong>')
    tests = [words.description(data, f) for data, f in zip(runs, figures, strict=True)]
    tested = tests[0] if len(set(tests)) == 1 else "The runs differ in their test, see the set-up."
    out.append(f'</div><p class="soft">{escape(tested)} {about.days(runs)}. <a href="#about-h">Test set-up</a></p>')
    warn = f'<p class="warn">{trust_strip.SCALED}</p>' if scaled else ""
    return "".join(out) + f"{warn}{about.unhealthy(runs)}{about.unfit(runs, names)}</header>"


def strips(shown: list, names: list) -> str:
    """The trust strip of each window of each run; those of one window are seen. Of more than MOST_STRIPS runs the worst
    of each item first, so that the verdict is on the first screen, and the runs folded."""
    by_run, worst = [], []
    for index, view in enumerate(shown):
        shorts = [short if len(names) > 1 else "" for *_, short in names]
        strips_of = [f["trust"] if has else None for f, has in zip(view.figures, view.has, strict=True)]
        known = [(short, items) for short, items in zip(shorts, strips_of, strict=True) if items]
        worst.append(trust_strip.row(trust.whole(known, "runs"), "", f' data-view="{index}"'))
        by_run += [
            trust_strip.row(items, short, f' data-view="{index}" data-run="{i}"')
            for i, (short, items) in enumerate(zip(shorts, strips_of, strict=True))
        ]
    return trust_strip.folded(worst, by_run) if len(names) > MOST_STRIPS else trust_strip.section(by_run)


def verdicts(shown: list, names: list, apart: list[list[str | None]], review: int) -> str:
    """The verdict of each window for each reviewed run; one of them is seen."""
    out = ['<section class="verdict" aria-label="Verdict">']
    for index, view in enumerate(shown):
        of_runs = [verdict.Run(name, f) for (*_, name), f in zip(names, view.figures, strict=True)]
        for i in range(len(names)):
            first, *rest = verdict.sentences(view.label, of_runs, apart[i], i)
            more = f" {escape(' '.join(rest))}" if rest else ""
            hidden = "" if i == review else ' class="hidden"'
            out.append(f'<p data-view="{index}" data-review="{i}"{hidden}><b>{escape(first)}</b>{more}</p>')
    return "".join(out) + "</section>"


def panels(runs: list, names: list, looks: list[dict], review: int) -> str:
    """The panels that JavaScript draws; without it each is a still picture."""
    html = (Path(__file__).parent / "panels.html").read_text("utf-8")
    stills = {name: plates.still(name, runs, looks, review) for name in plates.PANELS}
    for name in plates.OPTIONAL:
        if stills[name] is None:
            html = re.sub(rf'<figure>[^\n]*data-panel="{name}"[^\n]*\n', "", html)
    kinds = {data.hist_of for data in runs}
    html = html.replace(P99_OF["clat"], P99_OF[kinds.pop() if len(kinds) == 1 else ""])
    html = html.replace("<!--legend-->", svg.legend([short for *_, short in names], plates.with_review(looks, review)))
    for name, plate in stills.items():
        text = f"<noscript>{plate.svg}</noscript>" if plate else ""
        html = html.replace(f"<!--still {name}-->", text)
    return html


def group(kind: str, words: str, choices: list[str]) -> str:
    boxes = "".join(
        f'<label><input type="checkbox" name="{kind}" value="{i}" checked> {escape(c)}</label>'
        for i, c in enumerate(choices)
    )
    return f"<fieldset><legend>{words}</legend>{boxes}</fieldset>"


def controls(shown: list, names: list, review: int) -> str:
    drives, ops = (list(dict.fromkeys(n[k] for n in names)) for k in (0, 1))
    options = "".join(
        f'<option value="{i}"{" selected" if i == review else ""}>{escape(n[3])}</option>' for i, n in enumerate(names)
    )
    alone = " hidden" * (len(names) == 1)
    return (
        '<form class="controls" aria-label="Window and runs shown">'
        + views.switch(shown)
        + f'<fieldset{alone}><legend>Reviewed run</legend><select name="review" aria-label="Reviewed'
        f' run">{options}</select></fieldset>'
        + f'<details class="filter"{alone}><summary>Choose runs</summary>'
        + group("drive", "Drive", drives)
        + group("op", "Over-provisioning", ops)
        + "</details>"
        + '<label><input type="checkbox" name="trend" checked> trend line</label>'
        + '<button type="button" id="link">Copy link</button>'
        + "</form>"
    )


def table(shown: list, names: list, review: int) -> str:
    """Each figure and its meaning: those of the chosen window, then those of the run as a whole."""
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
    svg = f'<p class="soft">{trust_strip.MARKED}</p>' if any(trust_strip.MARK in row for row in out) else ""
    return "".join(out) + f"</table></div>{svg}</section>"


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
            text = unit.text(f[term.key], (f.get("errors") or {}).get(term.key))
            text = trust_strip.marked(text, term.key, f)
            if term.key == "iops_sd" and spread(f) is not None:
                text += f" <small>{number(spread(f), 1)} % of the mean</small>"
            tip = words.exact(term, f[term.key])
            tip = f' title="{tip}"' if tip else ""
            out.append(f"<td{' class=top' if i == review else ''}{tip}>{text}</td>")
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
