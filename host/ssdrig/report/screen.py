"""What runs came to, as text for a terminal: at the end of a run, and beside a page. The figures are those of the page
and of figures.json."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ssdrig import analysis, overprovisioning
from ssdrig.analysis import table
from ssdrig.analysis.figures import figures_of
from ssdrig.analysis.table import Row, Table
from ssdrig.plan import shows
from ssdrig.report import found, phases
from ssdrig.report.plan_page import labels
from ssdrig.report.shown import figure, rows_at
from ssdrig.report.terms import with_error

OWN_PAGE = (None, "consistency")  # of what plan: runs older than plans, and the main job, have a page of their own
COLUMNS = (  # the plan's word, heading
    ("iops", "IOPS"),
    ("MB/s", "MB/s"),
    ("lat_mean", "mean lat, µs"),
    ("W", "W"),
    ("uJ/IO", "µJ per I/O"),
    ("wa", "WA"),
)


class Line(NamedTuple):
    """A row of the table: a step, one of its windows, or a point of a repeat. `figures`: by their keys; `notes`:
    "keys: reason" of those that are None."""

    name: str
    seconds: float | None
    figures: Mapping
    notes: Iterable[str]
    wanted: bool = True  # whether a figure that is None needs a reason: of a step with I/O


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
    if table.plan_of(folder) in OWN_PAGE:
        figures = figures_of(analysis.load(folder))
        return of_figures(figures), figures
    found = table.load(folder)
    return of_plan(found), found.as_json()


def of_figures(figures: dict) -> list[str]:
    """The phases of a run of the main job (figures.figures_of)."""
    rows = phases.rows(figures)
    if not rows:
        return [f"no figures: {note}" for note in figures["notes"][:1]]
    lacking = Lacking()
    assumed = [overprovisioning.assumed_words(figures["raw_nand_bytes"])] if figures["raw_nand_assumed"] else []
    for row in rows:
        window = next((each for each in figures["windows"].values() if each and each["label"] == row["label"]), None)
        for word, heading in COLUMNS:
            key = shows.VALUES[word][0]
            if window and key in row and row[key] is None:
                lacking.add(reason(key, window["notes"]), heading, row["phase"])
    return phases.text([list(phases.HEAD), *map(phases.cells, rows)], "  ") + lacking.lines() + assumed


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
    lines = list(_lines(each))
    rows = [["step", "s", *(heading for _, heading in COLUMNS)]]
    lacking = Lacking()
    for line in lines:
        rows.append([line.name, figure(line.seconds), *(_cell(line.figures, word) for word, _ in COLUMNS)])
        for word, heading in COLUMNS:
            if line.wanted and line.figures.get(shows.VALUES[word][0]) is None:
                lacking.add(reason(shows.VALUES[word][0], line.notes), heading, line.name.strip())
    out = (phases.text(rows, "  ") if lines else []) + lacking.lines()
    out += [f"  {row.act.path}, {line}" for row in each.rows for line in found.said(row)]
    for one in each.verdicts:
        said = "steady" if one.verdict["passed"] else f"STEADY STATE NOT ACHIEVED{_why(one.verdict)}"
        out.append(f"  {one.path.partition(' ')[0]}, {one.words}: {said}")
    drive = each.data.header["drive"]
    out += [f"  {overprovisioning.assumed_words(drive['raw_nand_bytes'])}"] if drive.get("raw_nand_assumed") else []
    left_out: dict[str, list[str]] = {}
    for row in each.rows:
        if row.state == "not run":
            left_out.setdefault(str(row.why), []).append(row.act.label)
    return out + [f"  not run: {_some(of)}, {why}" for why, of in left_out.items()]


def reason(key: str, notes: Iterable[str]) -> str:
    """Why a figure is not known, from notes "key, key: reason"."""
    split = (note.partition(": ") for note in notes)
    return next((why for keys, _, why in split if key in keys.split(", ")), "not known")


def _lines(each: Table) -> Iterable[Line]:
    seen: set[str] = set()
    for row in each.rows:
        if row.act.repeat is None:
            yield from _of_step(row)
        elif row.state == "done" and row.act.label not in seen:
            seen.add(row.act.label)
            kept = rows_at(each, row.act.path, dict(row.act.point))
            if kept:
                found = table.together(kept)
                yield Line(row.act.label, found.get("t1_s"), found, kept[0].notes)


def _of_step(row: Row) -> Iterable[Line]:
    if row.t0_s is None or row.t1_s is None or row.act.do == "choose":
        return
    with_io = row.act.do in ("fill", "load")
    state = "" if row.state == "done" else f" ({row.state})"
    for name, figures in row.windows.items():
        whole = name == table.WHOLE
        if figures is None:
            yield Line(f"  {name}", None, {}, [f"{_keys()}: {_of_window(row, name)}"])
            continue
        notes = row.notes if whole else figures["notes"]
        seconds = row.t1_s - row.t0_s if whole else figures["t1_s"] - figures["t0_s"]
        yield Line(row.act.label + state if whole else f"  {name}", seconds, figures, notes, with_io)
    if not row.windows:
        yield Line(row.act.label + state, row.t1_s - row.t0_s, {}, row.notes, with_io)


def _of_window(row: Row, name: str) -> str:
    return reason(f"window {name}", row.notes)


def _keys() -> str:
    return ", ".join(shows.VALUES[word][0] for word, _ in COLUMNS)


def _cell(figures: Mapping, word: str) -> str:
    value = figures.get(shows.VALUES[word][0])
    if word == "wa" and value is not None:
        return with_error(value, figures.get("wa_error"), 3)
    return figure(value)


def _why(verdict: Mapping) -> str:
    return f": {verdict['why']}" if verdict.get("why") else ""


def _some(of: Sequence[str]) -> str:
    return of[0] if len(of) == 1 else f"{of[0]} and {len(of) - 1} more"
