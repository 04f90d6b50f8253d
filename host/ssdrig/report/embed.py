"""One plot of the report alone, to put into an article: SVG, or a small page for an iframe, with title, legend
and origin."""

import re
import textwrap
from collections.abc import Sequence
from html import escape, unescape
from pathlib import Path

from ssdrig.base.errors import UsageError
from ssdrig.reading import trust
from ssdrig.reading.row import Table
from ssdrig.reading.rundata import RunData
from ssdrig.report import about, page, plates, words
from ssdrig.report.loads import Loads
from ssdrig.report.plates import Plate
from ssdrig.views import svg, trust_strip
from ssdrig.views.context import Context

NO_XML = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]"
)  # no browser shows an SVG with one, as of a model
FIGURE, SVG = re.compile("<figure.*?</figure>", re.S), re.compile("<svg.*?</svg>", re.S)
LEGEND = re.compile('<ul class="legend">.*?</ul>', re.S)
CAPTION = re.compile('<figcaption><b>(.*?)</b>(?:<span class="soft">(.*?)</span>)?', re.S)
TAGS = re.compile("<[^>]*>")
ENTRY = re.compile('<li><span style="color:var[(]([^)]*)[)]" aria-hidden="true">([^<]*)</span> ([^<]*)</li>')
SVG_OPENING = '<svg xmlns="http://www.w3.org/2000/svg" class="plot ssdrig"'
LETTER, LINE = 5.8, 14  # px of small print: the width of a letter, from line to line
POLICY = "none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def text(loads: Sequence[tuple[RunData, dict]], review: int, panel: str, as_svg: bool) -> str:
    """The panel `panel` of the first window that has it, as SVG or HTML. Raises UsageError for one they have not."""
    side = Loads(loads, review)
    runs, figures, names = side.runs, side.figures, side.names
    every = [plate for name in plates.PANELS if (plate := plates.still(name, runs, side.looks, review))]
    every += plates.every(runs, side.views, names, side.looks, review)
    chosen = [plate for plate in every if plate.name == panel and plate.run in (None, review)]
    if not chosen:
        there = ", ".join(dict.fromkeys(plate.name for plate in every)) or "none: the runs have no data"
        raise UsageError("--embed with a panel of these runs", panel, f"name one of {there}")
    whole = side.title
    if any(f["simulated"] for f in figures):
        whole += ", SIMULATED"
    if any(f["scaled"] for f in figures):
        whole += ", SCALED"
    of = range(len(figures)) if chosen[0].run is None else [chosen[0].run]
    strips = [(names[i][3] if len(figures) > 1 else "", figures[i]["trust"]) for i in of]
    looks = plates.with_review(side.looks, review)
    legend = "" if chosen[0].run is not None else svg.legend([short for *_, short in names], looks)
    return _made(chosen[0], whole, _origin(runs), legend, strips, as_svg)


def of_plan(tables: Sequence[Table], review: int, panel: str, as_svg: bool) -> str:
    """The same of runs of one plan. A panel is called by its view; of several of one view the later ones are numbered,
    as in series-2."""
    names = words.drives(tables)
    drawings: dict[str, tuple[str, str]] = {}
    for show in tables[0].plan.shows:
        html = page.html_of(show["view"])(Context(tables, names, show, review))
        for figure in FIGURE.findall(html):
            if drawn := SVG.search(figure):
                before = sum(name.rpartition("-")[0] == show["view"] or name == show["view"] for name in drawings)
                drawings[f"{show['view']}-{before + 1}" if before else show["view"]] = (figure, drawn[0])
    if panel not in drawings:
        there = ", ".join(drawings) or "none: the runs have no data"
        raise UsageError("--embed with a panel of these runs", panel, f"name one of {there}")
    figure, drawn = drawings[panel]
    title, caption = (unescape(TAGS.sub("", part)) for part in CAPTION.findall(figure)[0])
    models = dict.fromkeys(words.model(run) for run in tables)
    whole = f"{', '.join(models)}: {tables[0].plan.title.lower()}"
    whole += ", SIMULATED" * any(bool(run.data.header.get("simulated")) for run in tables)
    whole += ", SCALED" * any(run.plan.scaled for run in tables)
    strips = [(name if len(tables) > 1 else "", run.trust) for name, run in zip(names, tables, strict=True)]
    origin = _origin([run.data for run in tables])
    legend = "".join(LEGEND.findall(figure))
    return _made(Plate(panel, None, title, caption, drawn), whole, origin, legend, strips, as_svg)


def _made(plate: Plate, whole: str, origin: str, legend: str, strips: Sequence[tuple], as_svg: bool) -> str:
    return NO_XML.sub("\ufffd", (_svg if as_svg else _html)(plate, whole, origin, legend, strips))


def style() -> str:
    return "".join((page.HERE / name).read_text("utf-8") for name in ("report.css", "plan.css"))


def _origin(runs: Sequence) -> str:
    return f"Source: ssdrig · {about.days(runs)} · {about.source(runs)}"


def _html(plate: Plate, whole: str, origin: str, legend: str, strips: Sequence[tuple]) -> str:
    rests = trust_strip.section(trust_strip.row(items, name) for name, items in strips)
    caption = f'<p class="soft">{escape(plate.about)}</p>' if plate.about else ""
    return (
        f'{page.OPENING}{POLICY}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(plate.title)}</title>'
        f"<style>{style()} body {{ padding: 8px; }} @media screen {{ .legend {{ display: flex !important; }} }}</style>"
        f'</head><body><figure><figcaption><b>{escape(plate.title)}</b><span class="soft">{escape(whole)}</span>'
        f"</figcaption>{rests}{legend}{plate.svg}{caption}"
        f'<p class="soft">{escape(origin)}</p></figure></body></html>\n'
    )


def _svg(plate: Plate, whole: str, origin: str, legend: str, strips: Sequence[tuple]) -> str:
    """With the rules of the page's colours inside, light or dark as the reader has it."""
    width, height = (int(side) for side in plate.svg.split('viewBox="0 0 ', 1)[1].split('"')[0].split())
    head, rows, x = 44, [], 12
    for name, items in strips:
        brief = trust_strip.brief(trust_strip.states(items) or {})
        weight = ' style="font-weight:650"' if trust.red(items) else ""
        rows.append(f'<text x="12" y="{head + 12}"{weight}>{escape(f"{name}: " * bool(name) + brief)}</text>')
        head += 17
    for colour, glyph, name in ENTRY.findall(legend):
        short = unescape(name)
        wide = 24 + 7 * len(short)
        if x + wide > width and x > 12:
            head, x = head + 17, 12
        mark = f'<tspan style="fill:var({colour})">{glyph}</tspan>'
        rows.append(f'<text x="{x}" y="{head + 12}">{mark} {escape(short)}</text>')
        x += wide
    top = head + 20 if x > 12 else head
    letters = int((width - 24) / LETTER)
    below = [line for part in (plate.about, origin) for line in textwrap.wrap(part, letters)]
    foot = "".join(
        f'<text x="12" y="{top + height + 13 + LINE * n}" class="soft small">{escape(line)}</text>'
        for n, line in enumerate(below)
    )
    inner = plate.svg.partition(">")[2].removesuffix("</svg>")
    rules = "".join(
        line
        for line in style().splitlines(True)
        if line.startswith((":root", "@media screen and (pre", "  --", ".plot"))
    )
    size = f"{width} {top + height + 6 + LINE * len(below)}"
    return (
        f'{SVG_OPENING} viewBox="0 0 {size}" role="img"><title>{escape(plate.title)}</title>'
        f"<style>{escape(rules, quote=False)} svg.plot {{ font: 12px system-ui, sans-serif; fill: var(--ink);"
        f" background: var(--paper); }}</style>"
        f'<text x="12" y="20" style="font-size:15px;font-weight:650">{escape(plate.title)}</text>'
        f'<text x="12" y="38" class="soft">{escape(whole)}</text>{"".join(rows)}<g transform="translate(0 {top})">'
        f"{inner}</g>{foot}</svg>\n"
    )


def default_name(panel: str) -> Path:
    return Path(f"{''.join(c for c in panel if c.isalnum() or c == '-') or 'panel'}.html")
