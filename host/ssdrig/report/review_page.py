"""The page of a review: what the drive is, verdicts in sentences, then a section for each part of the table
(plan/sections.toml) with the library's cards and the views of its plans. Made from the folders of its runs alone."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path

from ssdrig.base.errors import JournalError, SsdrigError
from ssdrig.base.files import write_atomically
from ssdrig.base.terminal import shown
from ssdrig.base.words import size
from ssdrig.plan import reviews, shows
from ssdrig.reading import errors, review_folder, table, trust
from ssdrig.reading import gaps as gap_words
from ssdrig.reading.review_folder import Done, Review
from ssdrig.reading.row import Row, Table
from ssdrig.report import about, economy, library, page, review_says, scorecard, shown_parts
from ssdrig.report import publication as publications
from ssdrig.report.library import Member
from ssdrig.views import headline, svg, trust_strip
from ssdrig.views.context import Cell, Context, Unit, number_table, plus_minus, unit

NARROW, WIDE, ROW = 3, 6, 12  # columns of a figure, and of a row of plots
ROWS_OF_HEADLINE, ROWS = 2, 1  # of plots that are not folded
MOST_LISTED = 2  # members whose table is not folded
AVERAGE = "average-power"  # the view of a plan
WINDOWS = {  # columns of the table of windows, by the plan's word
    "iops": "IOPS",
    "lat_mean": "Mean latency",
    "lat_p99": "P99",
    "W": "Power",
    "uJ/IO": "Energy per I/O",
    "iops/W": "IOPS per watt",
    "wa": "WA",
}
NAMED = ("iops", "iops/W")  # of them those whose headings have the unit
# views that draw all runs in one plot; the others are tables and panels of a run each
TOGETHER = ("scatter", "series", "rounds", "lines", "bars", "histogram", "load-line", "plateaus", "demand")
PLOT = '<svg class="plot"'
MARKED = f" {trust_strip.MARKED}"
POWER, ENDURANCE = "Power", "Endurance"  # sections with more than their plans
SAYS = {
    "SLC cache": review_says.slc_cache,
    "Trace benches": review_says.traces,
}  # in addition to the figures of the library


def render(
    folder: Path, against: Sequence[Path] | None = None, warn: Callable[[str], object] = lambda line: None
) -> str:
    """The page of a review folder. `against`: the library, run folders and folders of reviews; None: all complete runs
    next to the review; `warn` gets what of review.toml is not used. Raises JournalError for a folder that is not a
    review, or for what `against` names."""
    review, publication = review_folder.read(folder), publications.read(folder)
    tables, entries = _read(review)
    others, notes = library.read(folder, against)
    own = library.facts_of_folder(folder)
    members = library.members([(own, run) for run in tables.values()] + others, own, publication.prices)
    for line in publications.unused_prices(publication, [member.drive for member in members]):
        warn(line)
    text = json.dumps(library.data(members), separators=(",", ":")).replace("<", "\\u003c")
    title = publication.texts.get("title", f"Review: {review.document['drive'].get('model') or 'unknown drive'}")
    price_note = publication.texts.get("price_note", "")
    body = [
        head(title, tables),
        "<main>",
        strips(tables),
        headlines(tables),
        lacking(review, entries),
        publications.beginning(publication),
        tested(review, tables, publication),
        publications.device(publication),
        in_short(review, tables, members),
        library_section(members, notes, any(trust.red(run.trust) for run in tables.values())),
        *[section(i, part, review, entries, tables, members, publication) for i, part in enumerate(reviews.sections())],
        economy.section(members, price_note),
        publications.conclusion(publication),
        gaps(tables),
        about.hosts_of_review({name: run.data for name, run in tables.items()}),
        "</main>",
        footer(tables),
        f'<script type="application/json" id="data">{text}</script>',
    ]
    scripts = ("cards.js", "review.js", *page.SCRIPTS[1:])
    return page.html_page(title, ("report.css", "plan.css", "review.css"), scripts, body, colours(members))


def colours(members: Sequence[Member]) -> str:
    """A custom property for each member's colour, which review.js makes transparent where the member is not shown."""
    rules = (f"{library.property_of(i)}:var({library.colour_of(members, i)})" for i in range(len(members)))
    return f":root{{{';'.join(rules)}}}"


def _read(review: Review) -> tuple[dict[str, Table], dict[str, Done]]:
    """The run of each plan, or why it cannot be read."""
    entries = dict(review_folder.done(review))
    loaded: dict[str, Table] = {}
    for name, one in entries.items():
        if one.run:
            try:
                loaded[name] = table.load(one.run)
            except SsdrigError as error:
                entries[name] = Done(None, why=str(error))
    return loaded, entries


def tables(folder: Path) -> list[tuple[str, Table]]:
    """The runs of a review folder, by their names. Raises JournalError for a folder that is not a review."""
    return [(run.data.header["run"], run) for run in _read(review_folder.read(folder))[0].values()]


def write(
    folder: Path, against: Sequence[Path] | None, out: Path, warn: Callable[[str], object] = lambda line: None
) -> None:
    """render() into a file, whole or not at all. Raises JournalError."""
    text = render(folder, against, warn)
    try:
        write_atomically(out, shown(text).encode())
    except OSError as error:
        do = "name another file with --out FILE, or make room"
        raise JournalError(f"to write {out}", error.strerror or str(error), do) from error


def head(title: str, tables: Mapping[str, Table]) -> str:
    """The title and the marks of the runs: the first screen is for the headlines."""
    out = [
        f'<a class="skip" href="#short-h">Skip to the results</a><header><div class="title"><h1>{escape(title)}</h1>'
    ]
    if any(run.data.header.get("simulated") for run in tables.values()):
        out.append('<strong class="badge">SIMULATED</strong>')
    if any(run.plan.scaled for run in tables.values()):
        out.append('<strong class="badge">SCALED</strong>')
    runs = [run.data for run in tables.values()]
    return "".join(out) + f"</div>{about.unhealthy(runs[-1:])}{about.unfit(runs, [*tables])}</header>"


def headlines(tables: Mapping[str, Table]) -> str:
    """What the plans that reviews.headline() names have found, a line each; unclaimed figures are folded."""
    out, left_out = [], []
    for name in reviews.headline():
        parts = headline.of(tables[name]) if name in tables else []
        whose = f'<span class="of">{escape(name)}</span> '
        words = headline.claimed(parts)
        out += [f"<p>{whose}<b>{escape(words)}.</b></p>"] if words else []
        left_out += [f'<p class="soft">{whose}{escape(line)}.</p>' for line in headline.left_out(parts)]
    if left_out:
        out.append(f"<details><summary>Not claimed, and why</summary>{''.join(left_out)}</details>")
    return f'<section class="verdict headline" aria-label="Headline">{"".join(out)}</section>' if out else ""


def tested(review: Review, tables: Mapping[str, Table], publication: publications.Publication) -> str:
    """What the drive is, and how it was tested: what the runs report, then what the reviewer states."""
    drive = review.document["drive"]
    host: Mapping = next((run.data.header.get("host") or {} for run in tables.values()), {})
    rig = next((run.data.header["rig"] for run in tables.values() if run.data.header.get("rig")), None)
    first = next(iter(tables.values()), None)
    price = publication.prices.get(str(drive.get("model")))
    device = [
        ("Drive", drive.get("model")),
        ("Capacity", size(drive["capacity_bytes"])),
        ("Raw NAND", _raw(drive)),
        ("Interface", drive.get("link") or drive.get("interface")),
        ("Rated endurance", _rated(review)),
        *publication.specification.items(),
        ("Price", str(price) if price else None),
        ("Serial, firmware", ", ".join(str(drive[key]) for key in ("serial", "firmware") if drive.get(key))),
        ("Before the review", _used(tables)),
        ("SIMULATED preset", drive.get("preset")),
    ]
    system = [
        ("Host", f"{host.get('fio')}, kernel {host.get('kernel')}, {host.get('cpus')} CPUs" if host else None),
        *publication.test_system.items(),
        (
            "Power",
            "measured by the rig" + " (SIMULATED)" * bool(rig.get("simulated")) if rig else "not measured: no rig",
        ),
        (
            "Level",
            f"{review.document['level']}, begun {about.started(first.data)}" if first else review.document["level"],
        ),
        ("Time-dilated", f"1 s of drive time took {drive['time_dilation']} s; all figures are in drive time")
        if drive.get("time_dilation", 1) != 1
        else ("", None),
    ]
    warn = f'<p class="warn">{trust_strip.SCALED}</p>' if any(run.plan.scaled for run in tables.values()) else ""
    both = "".join(
        _facts(*of) for of in (("specification", "Specification", device), ("system", "Test system", system))
    )
    return f'<section class="tested" aria-label="Test">{warn}{both}</section>'


def _facts(key: str, title: str, facts: Sequence[tuple[str, object]]) -> str:
    """A table of the facts that are known."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(str(text))}</td></tr>' for name, text in facts if text
    )
    return f'<div class="scroll"><table class="about {key}"><caption>{title}</caption>{rows}</table></div>'


def _used(tables: Mapping[str, Table]) -> str | None:
    """What the drive had been used by its first reading of SMART."""
    readings = sorted((s for run in tables.values() for s in run.data.snapshots), key=lambda s: s["t_start_ns"])
    if not readings:
        return None
    known = [
        f"{size(written)} written" if (written := readings[0]["host_written_bytes"]) is not None else "",
        f"{hours} power-on hours" if (hours := readings[0].get("power_on_hours")) is not None else "",
        f"{used} % used" if (used := readings[0].get("percentage_used")) is not None else "",
    ]
    return ", ".join(filter(None, known)) or None


def strips(tables: Mapping[str, Table]) -> str:
    """What the figures rest on: the worst of each item over all runs, then the runs one by one."""
    return trust_strip.of_runs({name: one.trust for name, one in tables.items()}) if tables else ""


def _raw(drive: Mapping) -> str | None:
    raw = drive.get("raw_nand_bytes")
    return f"{size(raw)}{' (assumed)' if drive.get('raw_nand_assumed') else ''}" if raw else None


def _rated(review: Review) -> str | None:
    rated, scaled = review.document.get("rated_bytes"), review.document["drive"].get("preset")
    return f"{size(rated)}{', scaled with the capacity' if scaled else ''}" if rated else None


def lacking(review: Review, done: Mapping[str, Done]) -> str:
    """Which plans of a review that did not end well lack; "" where all of its level are complete."""
    ends = [(entry.name, done[entry.name]) for entry in review.plans if not entry.why]
    missing = [f"{name} ({one.state if one.run else 'not run'})" for name, one in ends if not one.complete]
    return f'<p class="warn"><b>NOT COMPLETE</b>: {escape(", ".join(missing))}.</p>' if missing else ""


def in_short(review: Review, tables: Mapping[str, Table], members: Sequence[Member]) -> str:
    """The scorecard, then sentences on the rest."""
    out = ['<section aria-labelledby="short-h"><h2 id="short-h">In short</h2>', scorecard.table(members)]
    out.append('<ul class="short">')
    for i, part in enumerate(reviews.sections()):
        sentence = ""
        failed = review_says.not_steady(
            {entry.name: tables[entry.name] for entry in part.plans if entry.name in tables}
        )
        if part.title in SAYS:
            tested = [tables[entry.name] for entry in part.plans if entry.name in tables]
            good = [one for one in tested if not trust.red(one.trust, trust.OF_LOAD)]
            unclaimed = [one for one in tested if one not in good]
            sentence = " ".join(filter(None, (SAYS[part.title](good), review_says.unclaimed(unclaimed))))
        if part.title == ENDURANCE:
            sentence = review_says.endurance(list(tables.values()), *_rating(review))[0]
            sentence = f"{sentence}."
        if sentence or failed:
            warn = "".join(f' <span class="state">{escape(line)}</span>' for line in failed)
            out.append(f'<li><a href="#s{i}">{escape(part.title)}</a>: {escape(sentence)}{warn}</li>')
    if sentence := economy.sentence(members):
        out.append(f'<li><a href="#price-h">Price</a>: {escape(sentence)}</li>')
    return "".join(out) + "</ul></section>"


def _rating(review: Review) -> tuple[float | None, str]:
    rated = review.document.get("rated_bytes")
    return rated, f"its rated {size(rated)}" if rated else ""


def library_section(members: Sequence[Member], notes: Sequence[str], marked: bool) -> str:
    """The drives of all cards and plots; a long table of them is folded. `marked`: some figures are not claimed."""
    table_of_members = library.listed(members, notes)
    if len(members) > MOST_LISTED:
        table_of_members = f"<details><summary>Where they come from</summary>{table_of_members}</details>"
    return (
        '<section aria-labelledby="library-h"><h2 id="library-h">Compared with</h2><p class="soft">'
        '<span class="screen click">Click a bar of any card to compare all with it. </span>★ is the best of the'
        f" comparable; hatched bars are not comparable with the reviewed drive.{MARKED * marked}</p>"
        f"{library.controls(members)}{table_of_members}</section>"
    )


def section(
    number: int,
    part: reviews.Section,
    review: Review,
    done: Mapping[str, Done],
    tables: Mapping[str, Table],
    members: Sequence[Member],
    publication: publications.Publication,
) -> str:
    """A section: its prose and cards, then each plan with its views, then the missing plans and why."""
    out = [f'<section aria-labelledby="s{number}"><h2 id="s{number}">{escape(part.title)}</h2>']
    out.append(f'<p class="soft">{escape(part.about)}</p>')
    out.append(publications.prose(publication.sections.get(part.title, "")))
    out.append(library.cards(part, members))
    for name in dict.fromkeys(entry.plan for entry in part.plans):
        entries = [entry for entry in part.plans if entry.plan == name and entry.name in tables]
        if entries:
            own = [tables[entry.name] for entry in entries]
            out.append(plan(own, [done[entry.name] for entry in entries], members))
    by_name = {one.plan.name: one for one in tables.values()}
    if part.title == POWER:
        out.append(f"<h3>Average power with downtime</h3>{review_says.nested(review_says.average(by_name))}")
    if part.title == ENDURANCE:
        out.append(review_says.items(review_says.endurance(list(tables.values()), *_rating(review))))
    whys: dict[str, list[str]] = {}
    for entry in part.plans:
        if entry.name not in tables:
            one = done.get(entry.name, Done(None, why="the review began before its table had it"))
            whys.setdefault(str(one.why), []).append(entry.name)
    if whys:
        listed = "; ".join(f"{', '.join(names)}: {why}" for why, names in whys.items())
        out.append(f'<p class="soft">Not run: {escape(listed)}.</p>')
    return "".join(out) + "</section>"


def plan(tables: Sequence[Table], done: Sequence[Done], members: Sequence[Member]) -> str:
    """The runs of one plan: in the plots with those of the library, in tables and words by themselves."""
    first = tables[0].plan
    own = [_member_of(run, members) for run in tables]
    names = [members[i].op for i in own] if len(tables) > 1 else [""]
    others = library.comparable(first.name, tables[0], members)
    shown = [*tables, *(members[i].tables[first.name] for i in others)]
    labels = list(library.names_of(members, (*own, *others)).values()) if len(shown) > 1 else [""]
    styles = [library.look_of(members, i) for i in (*own, *others)]
    variant = f" --variant {first.variant}" if first.variant else ""
    out = [
        f"<article{' class=together' * (len(shown) > 1)}"
        f' data-source="{escape(about.source([run.data for run in tables]))}">'
        f'<h3 class="plan">{escape(first.title)}</h3>{_reds(tables, names)}<p class="soft">{escape(first.about)} <code>'
        f"{escape(first.name + variant)}</code> · {escape(first.source)}</p>{svg.legend(labels, styles)}"
    ]
    for one_run, one, name in zip(tables, done, names, strict=True):
        if not one.complete:
            warning = f"{name}: " * bool(name) + f"{one.state}. {one.why or 'No reason was recorded'}"
            out.append(f'<p class="warn">{escape(warning)}. The figures cover the recorded part only.</p>')
        out.append(review_says.items([f"{name}: {line}" if name else line for line in review_says.of_plan(one_run)]))
    out.append(windows(tables, names))
    plots, apart = [], []
    for show in first.shows:
        if show["view"] == AVERAGE:  # the review has its own, of all plans
            continue
        own_runs = Context(tables, names, show, brief=True)
        if show["view"] in TOGETHER:
            plots.append(_drawn(Context(shown, labels, show, 0, styles, len(tables), brief=True), own_runs))
        else:
            pieces = re.split("(?=<figure )", page.html_of(show["view"])(own_runs))
            bare = [PLOT in piece and "<table" not in piece for piece in pieces]
            plots += [piece for piece, alone in zip(pieces, bare, strict=True) if alone]
            apart += [piece for piece, alone in zip(pieces, bare, strict=True) if not alone]
    in_headline = any(name.split()[0] == first.name for name in reviews.headline())
    first_plots, more = _split("".join(plots), ROWS_OF_HEADLINE if in_headline else ROWS)
    out.append(f'<div class="plots">{first_plots}</div>')
    if more:
        count = more.count("<figure")
        out.append(
            f'<details><summary>{count} more plot{"s" * (count > 1)}</summary><div class="plots">{more}</div></details>'
        )
    if any(apart):
        title = "Tables with plots" if any(PLOT in piece for piece in apart) else "Tables"
        out.append(f'<details><summary>{title}</summary><div class="plots">{"".join(apart)}</div></details>')
    out += [shown_parts.section(run.path, name) for run, name in zip(tables, names, strict=True)]
    steps = "".join(page.steps(run, name, bool(name)) for run, name in zip(tables, names, strict=True))
    return "".join(out) + f"<details><summary>Steps</summary>{steps}</details></article>"


def _reds(tables: Sequence[Table], names: Sequence[str]) -> str:
    """The bad items of the trust strips of a plan's runs; the strips at the head of the page have the reasons."""
    marks: dict[str, list[str]] = {}
    for run, name in zip(tables, names, strict=True):
        if red := [trust.NAMES[item["id"]] for item in trust.red(run.trust)]:
            marks.setdefault(", ".join(red), []).append(name)
    out = []
    for items, of in marks.items():
        whose = f" ({', '.join(of)})" if len(of) < len(tables) else ""
        mark = f'<b aria-hidden="true">{trust_strip.MARK}</b><span class="sr">BAD:</span>'
        out.append(f' <span class="state">{mark} {escape(items + whose)}</span>')
    return "".join(out)


def _split(plots: str, rows: int) -> tuple[str, str]:
    """The figures that fill the first `rows` of an article, and the others."""
    figures, used = re.split("(?=<figure )", plots), 0
    for i, text in enumerate(figures):
        used += WIDE if text.startswith('<figure class="wide"') else NARROW if text.startswith("<figure ") else 0
        used += NARROW * (text.count('<div class="card">') == 1)  # a lone card is as wide as a figure
        if used > rows * ROW:
            return "".join(figures[:i]), "".join(figures[i:])
    return plots, ""


def windows(tables: Sequence[Table], names: Sequence[str]) -> str:
    """The windows that a plan names in its loads, with their figures; "" without any."""
    shown = [
        (name, row, window)
        for run, name in zip(tables, names, strict=True)
        for row in run.rows
        if row.state == "done" and row.round is None and len(row.windows) > 1
        for window, figures in row.windows.items()
        if figures
    ]
    units = {word: unit(word, [row.value(word, window) for _, row, window in shown]) for word in WINDOWS}
    lines = [
        (
            ", ".join(filter(None, (row.act.label, window, name))),
            [_span(row.windows[window] or {}), *(_of_window(row, window, of) for of in units.values())],
        )
        for name, row, window in shown
    ]
    heads = [("From, to", "s"), *((WINDOWS[word], "" if word in NAMED else of.name) for word, of in units.items())]
    return number_table("Window", heads, lines) if lines else ""


def _span(figures: Mapping) -> Cell:
    return Cell(words=f"{figures['t0_s']:.0f} to {figures['t1_s']:.0f}")


def _of_window(row: Row, window: str, of: Unit) -> Cell:
    """A figure with its error, and the mark of one that is not claimed; or why it is not known."""
    key, figures = shows.VALUES[of.word][0], row.windows.get(window) or {}
    value = errors.of(key, figures)
    if value.value is None:
        return Cell(why=row.why_not(of.word))
    return Cell(words=trust_strip.marked(plus_minus(value.scaled(of.scale)), key, figures))


def _drawn(context: Context, own: Context) -> str:
    """A view with the runs of the library, or where a summary from another house cannot be drawn, without them."""
    draw = page.html_of(context.show["view"])
    if all(table.data.header.get("imported") is None for table in context.tables):
        return draw(context)
    try:
        return draw(context)
    except Exception:  # whatever a stranger's figures raise in a view; check_drawable() refuses them at import
        return draw(own)


def check_drawable(path: Path, tables: Sequence[Table]) -> None:
    """Raises JournalError for runs of a library file that a view of their plan cannot draw, or whose figures cannot be
    on a card."""
    for one in tables:
        where = ""
        try:
            for show in one.plan.shows:
                if (where := show["view"]) in TOGETHER:
                    page.html_of(where)(Context([one], [""], show))
            where = "cards"
            library.check_readable(one)
        except Exception as error:  # whatever a stranger's figures raise
            seen = f"{one.plan.name}: {type(error).__name__} in {where}"
            do = "get it again from who made it"
            raise JournalError(f"runs in {path} whose views can be drawn", seen, do) from error


def _member_of(run: Table, members: Sequence[Member]) -> int:
    """The place of the reviewed drive's member that a run belongs to."""
    op = library.op_of(run)
    return next(i for i, member in enumerate(members) if member.own and member.op == op)


def gaps(tables: Mapping[str, Table]) -> str:
    """Why a figure is not known, or limited, of each plan."""
    out = ['<section aria-labelledby="gaps-h"><h2 id="gaps-h">Gaps and limits</h2>']
    for name, run in tables.items():
        remarks = list(dict.fromkeys(page.notes(run)))
        if remarks:
            head = f"{escape(name)} <span class='soft'>{len(remarks)} notes</span>"
            out.append(f"<details><summary>{head}</summary>{review_says.items(remarks)}</details>")
    if any(gap_words.words(run.rows) for run in tables.values()):
        out.append(f'<p class="soft">{gap_words.WHY}.</p>')
    return "".join(out) + "</section>"


def footer(tables: Mapping[str, Table]) -> str:
    versions = ", ".join(sorted({str(run.data.header.get("ssdrig")) for run in tables.values()}))
    return (
        f"<footer class='soft'>Made by ssdrig {escape(versions)} from the folders of the runs alone. <span"
        " class='screen'>Point at a cell for its rounds, or for the reason why it is empty. </span>No part of this page"
        " is fetched from a network.</footer>"
    )
