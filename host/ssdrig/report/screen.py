"""What runs came to, as text for a terminal: at the end of a run, and beside a page. The figures are those of the page
and of figures.json."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ssdrig.base import overprovisioning
from ssdrig.base.progress import columns
from ssdrig.plan import shows
from ssdrig.plan.rules import steady
from ssdrig.reading import gaps, little, summary, table, trust, witness
from ssdrig.reading.row import Row, Table
from ssdrig.report import over_op, phases, repeats, rows
from ssdrig.report.plan_page import labels
from ssdrig.views import documents, found, trust_strip
from ssdrig.views.context import figure
from ssdrig.views.cuts import sentences as cuts_sentences
from ssdrig.views.life import figures as life_figures
from ssdrig.views.retention import sentences as retention_sentences
from ssdrig.views.terms import with_error
from ssdrig.views.wear import html as wear_html


class Lacking:
    """Which figures of which rows are not known, by the reason."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, list[str]]] = {}  # reason -> heading -> rows

    def add(self, why: str, heading: str, name: str) -> None:
        self._found.setdefault(why, {}).setdefault(heading, []).append(name)

    def lines(self) -> list[str]:
        """ "no W, µJ per I/O: the reason (fill and 2 more)"."""
        out = []
        for why, headings in self._found.items():
            alike: dict[tuple[str, ...], list[str]] = {}
            for heading, names in headings.items():
                alike.setdefault(tuple(names), []).append(heading)
            out += [f"  no {', '.join(heads)}: {why} ({_some(names)})" for names, heads in alike.items()]
        return out


def ended(folder: Path) -> tuple[list[str], dict]:
    """What a run that has just ended came to: lines for a person, and the figures as `report --json` gives them.
    Raises JournalError."""
    found = table.load(folder)
    return of_plan(found), documents.of_table(found)


def phase_table(found: Sequence[dict]) -> list[str]:
    """phases.rows() for a terminal."""
    lines = phases.text([list(phases.HEAD), *map(phases.cells, found)], "  ", columns())
    return lines + trust_strip.key_of_marks(lines, columns())


def scaled(is_scaled: bool) -> list[str]:
    """What a scaled plan is, as lines for a terminal."""
    return trust_strip.wrapped(trust_strip.SCALED, columns()) if is_scaled else []


def text(tables: list[Table]) -> str:
    """Runs of a plan beside its page."""
    out: list[str] = []
    for each, name in zip(tables, labels(tables), strict=True):
        marks = " SIMULATED" * bool(each.data.header.get("simulated")) + " SCALED" * each.plan.scaled
        out += [f"{each.plan.title}: {name}{marks}, {each.data.state}", *of_plan(each)]
    return "\n".join(out)


def of_plan(each: Table) -> list[str]:
    """A row for each step, each of its windows and each point, then the reasons of what is not known, what the rule
    said, and what was not run."""
    lines = list(rows.of_plan(each))
    cells = [["step", "s", *(heading for _, heading in rows.COLUMNS)]]
    lacking = Lacking()
    for line in lines:
        cells.append([line.name, figure(line.seconds), *(_cell(line.figures, word) for word, _ in rows.COLUMNS)])
        for word, heading in rows.COLUMNS:
            if line.wanted and line.figures.get(shows.VALUES[word][0]) is None:
                lacking.add(rows.reason(shows.VALUES[word][0], line.notes), heading, line.name.strip())
    out = scaled(each.plan.scaled) + trust_strip.lines(each.trust, columns())
    made = phases.text(cells, "  ", columns()) if lines else []
    out += made + trust_strip.key_of_marks(made, columns()) + lacking.lines()
    out += limits(each.data.notes)
    out += limits(f"{line.name.strip()}, {note}" for line in lines for note in line.notes)
    out += [f"  {row.act.path}, {line}{_mark(row)}" for row in each.rows for line in found.said(row)]
    for one in each.verdicts:
        said = "steady" if one.verdict["passed"] else f"{steady.heading([one.verdict])}{_why(one.verdict)}"
        at = steady.rests_on(one.verdict)
        out.append(f"  {one.path.partition(' ')[0]}, {one.words}: {said}{f', {at}' if at else ''}")
    out += [f"  {said}" for said in [little.words(each.rows)] if said]
    out += [f"  {said}" for said in gaps.words(each.rows)]
    for _, life in life_figures.lives(each):
        out += [f"  {what}: {value}" for what, value in life_figures.lines(life)]
        out += [f"  {line}" for line in (*life.formulas, *(f"not known: {words}" for words in life.unknown))]
    for row in each.rows:
        if row.found.get("slices"):
            out += [f"  {row.act.path}: {line}" for line in wear_html.lines(each, row)]
        if row.found.get("kind") == "cuts":
            out += [f"  {row.act.path}: {line}" for line in cuts_sentences.lines(row.found)]
        if row.found.get("kind") == "retention":
            out += [f"  {row.act.path}: {line}" for line in retention_sentences.lines(row.found)]
    drive = each.data.header["drive"]
    out += [f"  {overprovisioning.assumed_words(drive['raw_nand_bytes'])}"] if drive.get("raw_nand_assumed") else []
    left_out: dict[str, list[str]] = {}
    for row in each.rows:
        if row.state == "not run":
            left_out.setdefault(str(row.why), []).append(row.act.label)
    return out + [f"  not run: {_some(of)}, {why}" for why, of in left_out.items()]


def limits(notes: Iterable[str]) -> list[str]:
    """The notes that say what disagrees with fio, and what has limited a load."""
    return [f"  {note}" for note in notes if any(word in note for word in witness.SAYS)]


def repeated(folders: Sequence[Path]) -> tuple[list[str], dict]:
    """Mean and standard deviation of runs of one plan that have just ended: lines, and the object for --json."""
    lines_of, is_scaled = [], False
    for folder in folders:
        of = table.load(folder)
        lines_of.append(list(rows.of_plan(of)))
        is_scaled |= of.plan.scaled
    spreads = repeats.spreads(lines_of)
    return scaled(is_scaled) + repeats.text(spreads, len(folders), columns()), repeats.as_json(spreads)


def of_series(folders: Sequence[Path]) -> list[str]:
    """Runs with different over-provisioning: one row each."""
    return over_op.lines([summary.load(folder)[1] for folder in folders], columns())


def _mark(row: Row) -> str:
    """Behind what a step has found, where its figures rest on what is bad."""
    return f" {trust_strip.MARK}" if trust.why_not(table.strip([row])) else ""


def _cell(figures: Mapping, word: str) -> str:
    key = shows.VALUES[word][0]
    value = figures.get(key)
    known = with_error(value, figures.get("wa_error"), 3) if word == "wa" and value is not None else figure(value)
    return trust_strip.marked(known, key, figures)


def _why(verdict: Mapping) -> str:
    return f": {steady.why_unknown(verdict)}" if verdict["passed"] is None else ""


def _some(of: Sequence[str]) -> str:
    return of[0] if len(of) == 1 else f"{of[0]} and {len(of) - 1} more"
