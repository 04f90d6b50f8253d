"""Results of runs, as text for a terminal: at the end of a run, and along with a page. The figures are those of the
page and of figures.json."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ssdrig.base import overprovisioning
from ssdrig.base.progress import columns
from ssdrig.plan import shows
from ssdrig.plan.rules import steady
from ssdrig.reading import errors, gaps, little, summary, table, trust, witness
from ssdrig.reading.row import Row, Table
from ssdrig.reading.rundata import RunData
from ssdrig.report import over_op, phases, repeats, rows, verdict, views, words
from ssdrig.views import documents, headline, step_results, trust_strip
from ssdrig.views.context import figure, plus_minus
from ssdrig.views.cuts import sentences as cuts_sentences
from ssdrig.views.life import figures as life_figures
from ssdrig.views.retention import sentences as retention_sentences
from ssdrig.views.terms import BY_KEY, number, with_error
from ssdrig.views.wear import html as wear_html


class Lacking:
    """The unknown figures by row and reason."""

    def __init__(self) -> None:
        self._headings: dict[str, dict[str, list[str]]] = {}  # reason -> heading -> rows

    def add(self, why: str, heading: str, name: str) -> None:
        self._headings.setdefault(why, {}).setdefault(heading, []).append(name)

    def lines(self) -> list[str]:
        """ "no W, µJ per I/O: the reason (fill and 2 more)"."""
        out = []
        for why, headings in self._headings.items():
            alike: dict[tuple[str, ...], list[str]] = {}
            for heading, names in headings.items():
                alike.setdefault(tuple(names), []).append(heading)
            out += [f"  no {', '.join(heads)}: {why} ({_some(names)})" for names, heads in alike.items()]
        return out


def ended(folder: Path) -> tuple[list[str], dict]:
    """The results of a run that has just ended: lines for the user, and the figures as `report --json` gives them.
    Raises JournalError."""
    run = table.load(folder)
    return of_plan(run), documents.of_table(run)


def phase_table(figures: Sequence[dict]) -> list[str]:
    """phases.rows() for a terminal."""
    lines = phases.text([list(phases.HEAD), *map(phases.cells, figures)], "  ", columns())
    return lines + trust_strip.key_of_marks(lines, columns())


def scaled(is_scaled: bool) -> list[str]:
    """What a scaled plan is, as lines for a terminal."""
    return trust_strip.wrapped(trust_strip.SCALED, columns()) if is_scaled else []


def text(tables: list[Table]) -> str:
    """The runs of a plan, in words."""
    out: list[str] = []
    for run, name in zip(tables, words.drives(tables), strict=True):
        marks = " SIMULATED" * bool(run.data.header.get("simulated")) + " SCALED" * run.plan.scaled
        out += [f"{run.plan.title}: {name}{marks}, {run.data.state}", *of_plan(run)]
    if best := headline.compared(tables, words.drives(tables)):
        out += trust_strip.wrapped(f"{best}.", columns())
    return "\n".join(out)


def of_plan(run: Table) -> list[str]:
    """A row for each step, each of its windows and each point, then the reasons of unknown figures, the rule's
    verdicts, and the steps that were not run."""
    lines = list(rows.of_plan(run))
    cells = [["step", "s", *(heading for _, heading in rows.COLUMNS)]]
    lacking = Lacking()
    for line in lines:
        cells.append([line.name, figure(line.seconds), *(_cell(line.figures, word) for word, _ in rows.COLUMNS)])
        for word, heading in rows.COLUMNS:
            if line.wanted and line.figures.get(shows.VALUES[word][0]) is None:
                lacking.add(rows.reason(shows.VALUES[word][0], line.notes), heading, line.name.strip())
    out = scaled(run.plan.scaled) + trust_strip.lines(run.trust, columns())
    table_lines = phases.text(cells, "  ", columns()) if lines else []
    out += table_lines + trust_strip.key_of_marks(table_lines, columns()) + lacking.lines()
    out += limits(run.data.notes)
    out += limits(f"{line.name.strip()}, {note}" for line in lines for note in line.notes)
    out += [f"  {row.act.path}, {line}{_mark(row)}" for row in run.rows for line in step_results.sentences(row)]
    for one in run.verdicts:
        outcome = "steady" if one.verdict["passed"] else f"{steady.heading([one.verdict])}{_why(one.verdict)}"
        at = steady.rests_on(one.verdict)
        out.append(f"  {one.path.partition(' ')[0]}, {one.words}: {outcome}{f', {at}' if at else ''}")
    out += [f"  {line}" for line in [little.words(run.rows)] if line]
    out += [f"  {line}. {gaps.WHY}" for line in gaps.words(run.rows)]
    for _, life in life_figures.lives(run):
        out += [f"  {what}: {value}" for what, value in life_figures.lines(life)]
        out += [f"  {line}" for line in (*life.formulas, *(f"not known: {words}" for words in life.unknown))]
    for row in run.rows:
        if row.result.get("slices"):
            out += [f"  {row.act.path}: {line}" for line in wear_html.lines(run, row)]
        if row.result.get("kind") == "cuts":
            out += [f"  {row.act.path}: {line}" for line in cuts_sentences.lines(row.result)]
        if row.result.get("kind") == "retention":
            out += [f"  {row.act.path}: {line}" for line in retention_sentences.lines(row.result)]
    drive = run.data.header["drive"]
    out += [f"  {overprovisioning.assumed_words(drive['raw_nand_bytes'])}"] if drive.get("raw_nand_assumed") else []
    left_out: dict[str, list[str]] = {}
    for row in run.rows:
        if row.state == "not run":
            left_out.setdefault(str(row.why), []).append(row.act.label)
    out += [f"  not run: {_some(of)}, {why}" for why, of in left_out.items()]
    return out + _headline(run)


def _headline(run: Table) -> list[str]:
    """The plan's headline after the state of the trust strip: the last lines, which stay on the screen."""
    lines = headline.lines(run, columns())
    return [f"  {trust_strip.brief(trust_strip.states(run.trust) or {})}", *lines] if lines else []


def limits(notes: Iterable[str]) -> list[str]:
    """The notes on disagreements with fio, and on limits of a load."""
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
    """The mark after a step's results, if its figures depend on a bad item."""
    return f" {trust_strip.MARK}" if trust.why_not(table.strip([row])) else ""


def _cell(figures: Mapping, word: str) -> str:
    key = shows.VALUES[word][0]
    return trust_strip.marked(plus_minus(errors.of(key, figures)), key, figures)


def _why(verdict: Mapping) -> str:
    return f": {steady.why_unknown(verdict)}" if verdict["passed"] is None else ""


def _some(of: Sequence[str]) -> str:
    return of[0] if len(of) == 1 else f"{of[0]} and {len(of) - 1} more"


TOO_SHORT = re.compile(r"(?:^|: )(\w+): \d+ (?:s|I/Os) are too few for this percentile")


def short_notes(notes: Iterable[str]) -> list[str]:
    """The notes in their order, then the line; the page and --json have each of them."""
    others, labels = [], []
    for note in notes:
        if match := TOO_SHORT.search(note):
            labels.append(BY_KEY[match[1]].label if match[1] in BY_KEY else match[1])
        else:
            others.append(note)
    if labels:
        others.append(f"not shown, the run is too short for them: {'; '.join(dict.fromkeys(labels))}")
    return others


MANY = 4  # runs; fewer are columns next to each other
HEADS = (
    ("iops_mean", "IOPS"),
    ("zero_seconds", "stalls s"),
    ("clat_p99_us", "P99 µs"),
    ("power_mean_W", "W"),
    ("energy_uJ_per_io", "µJ/IO"),
    ("wa", "WA"),
    ("samples_lost", "lost"),
)


def runs_in_rows(names: Sequence[str], figures: Sequence[dict], columns: int) -> list[str]:
    """The key figures of the window `steady`, a row for each run; long names are shortened from the left, until
    they would be equal."""
    rows = [["run", "state", *(head for _, head in HEADS)]]
    for name, of in zip(names, figures, strict=True):
        cells = [_cell_of_run(of, key) for key, _ in HEADS]
        rows.append([name, of["state"], *cells])
    over = max(map(len, phases.text(rows))) - columns
    longest = max(phases.LEAST_NAME, max(len(row[0]) for row in rows) - max(0, over))
    while len({phases.shortened(name, longest) for name in names}) < len(set(names)):
        longest += 1
    lines_ = phases.text([[phases.shortened(row[0], longest), *row[1:]] for row in rows], width=columns)
    return lines_ + trust_strip.key_of_marks(lines_, columns)


def _cell_of_run(of: dict, key: str) -> str:
    return trust_strip.marked(with_error(of[key], errors.of(key, of).error, BY_KEY[key].places), key, of)


SHORT = [
    "iops_mean",
    "consistency",
    "zero_seconds",
    "lat_mean_us",
    "clat_p99_us",
    "littles_qd",
    "power_mean_W",
    "energy_uJ_per_io",
    "wa",
    "time_to_complete_s",
    "samples_lost",
    "closure_percent",
    "clock_error_us",
]


def short_table(figures: list[dict]) -> str:
    """For a terminal: the phases of each run, then the key figures of the window `steady`, one column a run, then the
    notes; of many runs one row each."""
    shorts = [short for *_, short in words.labels(figures)]
    head = trusted(figures, shorts)
    if len(figures) >= MANY:  # a name may be shortened from the left there: SIMULATED is below
        simulated = [short for short, f in zip(shorts, figures, strict=True) if f["simulated"]]
        which = "all of them" if len(simulated) == len(figures) else "; ".join(simulated)
        notes = [f"{f['run']}: {note}" for f in figures for note in short_notes(f["notes"])]
        series = ["", *over_op.lines(figures, columns()), ""] if over_op.is_series(figures) else []
        simulated_note = [f"SIMULATED: {which}"] if simulated else []
        return "\n".join([*head, *runs_in_rows(shorts, figures, columns()), *simulated_note, *series, *notes])
    names = [f"{short}{' SIMULATED' * bool(f['simulated'])}" for short, f in zip(shorts, figures, strict=True)]
    lines = head
    for name, f in zip(names, figures, strict=True):
        if phase_rows := phases.rows(f):
            lines += [name, *phase_table(phase_rows), ""]
    rows = [["", *names], ["state", *(f["state"] for f in figures)]]
    rows.append(["window", *(f["window_label"] or "–" for f in figures)])
    rows += [
        ["steady by SNIA's rule", *(steady_words(f["steady_state"]) for f in figures)],
        ["  drive writes since purge", *(number((f["steady_state"] or {}).get("drive_writes"), 2) for f in figures)],
        ["  past the cliff", *(steady.cliff_words(f["steady_state"] or {}) or "–" for f in figures)],
    ]
    by_rail = [{rail["name"]: rail["power_mean_W"] for rail in f["rails"] if len(f["rails"]) > 1} for f in figures]
    for key in SHORT:
        term = BY_KEY[key]
        texts = [with_error(f[key], errors.of(key, f).error, term.places) for f in figures]
        cells = [trust_strip.marked(text, key, f) for text, f in zip(texts, figures, strict=True)]
        rows.append([term.label + (f", {term.unit}" if term.unit else ""), *cells])
        if key == "power_mean_W":
            rows += [
                [f"  of it {name}, W", *(number(of.get(name), term.places) for of in by_rail)]
                for name in dict.fromkeys(n for of in by_rail for n in of)
            ]
    grid = phases.text(rows, width=columns())
    lines += grid + trust_strip.key_of_marks(grid, columns())
    if over_op.is_series(figures):
        lines += ["", *over_op.lines(figures, columns()), ""]
    for f in figures:
        lines += [f"{f['run']}: {note}" for note in short_notes(f["notes"])]
    return "\n".join(lines)


def trusted(figures: list[dict], names: list[str]) -> list[str]:
    """What each run's figures rest on, and which plans are scaled; first of all."""
    out: list[str] = []
    for name, f in zip(names, figures, strict=True):
        if len(figures) >= MANY:
            out.append(f"{name}: {trust_strip.brief(trust_strip.states(f['trust']) or {})}")
        else:
            out += trust_strip.lines(f["trust"], columns(), "", name if len(figures) > 1 else "")
    return out + (scaled(True) if any(f["scaled"] for f in figures) else []) + [""]


def steady_words(verdict: dict | None) -> str:
    """The verdict of rules.steady in a cell: 'yes: range 8.3 %, slope 2.7 %'."""
    if verdict is None or verdict["passed"] is None:
        return "not tested"
    words_of = f"range {number(verdict['range_percent'], 1)} %, slope {number(verdict['slope_percent'], 1)} %"
    return f"{'yes' if verdict['passed'] else 'no'}: {words_of}"


BRIEF = (  # of the end of the demo: figure, its places where it has no error, heading
    ("iops_mean", 0, "IOPS"),
    ("power_mean_W", 2, "W"),
    ("energy_uJ_per_io", 1, "µJ per write"),
    ("wa", 3, "WA"),
)


def brief(folders: Iterable[Path], review: int) -> list[str]:
    """For a terminal, of the window `steady` if there is one. review: the index of the run that the verdict judges."""
    loads = list(summary.of_folders(list(folders)))
    of_runs, first = _verdict(loads, review)
    rows = [["", *(head for *_, head in BRIEF)]]
    for run in of_runs:
        known = ((run.figures[key], errors.of(key, run.figures).error, places) for key, places, _ in BRIEF)
        rows.append([run.name, *(with_error(*of) for of in known)])
    out = [first, *phases.text(rows, "  ", columns())]
    strips = _trusts(of_runs)
    return [*out, f"{strips}  SIMULATED" if all(figures["simulated"] for _, figures in loads) else strips]


def ending(loads: Sequence[tuple[RunData, dict]], review: int) -> list[str]:
    """The last lines of a report of loads, which stay on the screen: the trust strip in short, and the verdict."""
    of_runs, first = _verdict(loads, review)
    return [line for text in (_trusts(of_runs), first) for line in trust_strip.wrapped(text, columns())]


def _verdict(loads: Sequence[tuple[RunData, dict]], review: int) -> tuple[list[verdict.Run], str]:
    """The runs in their window `steady`, or the first that there is, and the first sentence of the verdict."""
    runs, figures = [data for data, _ in loads], [of_run for _, of_run in loads]
    view = views.of(figures)[0]
    names = [short for *_, short in words.labels(figures)]
    of_runs = [verdict.Run(name, of_window) for name, of_window in zip(names, view.figures, strict=True)]
    apart = verdict.reasons(runs, figures)[review]
    return of_runs, verdict.sentences(view.label, of_runs, apart, review)[0]


def _trusts(of_runs: Sequence[verdict.Run]) -> str:
    trusts = {run.name: trust_strip.brief(trust_strip.states(run.figures.get("trust")) or {}) for run in of_runs}
    alike = len(set(trusts.values())) == 1
    return next(iter(trusts.values())) if alike else "; ".join(f"{name}: {text}" for name, text in trusts.items())
