"""Limits against the figures of a run: pass, fail or cannot tell, with guard bands (JCGM 106:2012, 8.3). Pure.

A figure v with expanded uncertainty U (95 %) meets an upper limit T where v <= T - w and misses it where v > T + w,
with w = guard * U; between these nothing is claimed. With a guard of 1, the default, at most 2.5 % of the passes and of
the fails at one limit are wrong. A guard of 0 decides by the value alone (simple acceptance, 8.2): a file must state
it.

A limit file is TOML:

    title  = "…"                  source = "the document that has the limits"
    [[limit]]
    figure = "power_mean_W"       # a key of host/docs/reference/figures.md
    step   = "load"               # a step of the plan; default: the run's longest load, or a figure of the whole run
    where  = "read=0 block=4KiB"  # the point of a step that is swept
    window = "steady"             # a window that the plan names; default: the whole step
    max    = 5.5                  # and, or, min
    unit   = "W"                  # of max and min
    name   = "…"                  guard = 1"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ssdrig.base.arguments import listed
from ssdrig.base.errors import CannotTell, ControlFailed, PromiseBroken, UsageError
from ssdrig.base.terminal import printable
from ssdrig.base.uncertain import NO_ERROR, NOT_TRUSTED, UNKNOWN, Uncertain
from ssdrig.base.words import do_you_mean
from ssdrig.plan import document
from ssdrig.powerloss import above, tally
from ssdrig.reading import errors, results, trust, whole_run
from ssdrig.reading.row import WHOLE, Row, Table
from ssdrig.reading.table import together
from ssdrig.views import context
from ssdrig.views.cuts import sentences as cuts_sentences
from ssdrig.views.retention import sentences as retention_sentences
from ssdrig.views.terms import BY_KEY

PASS, FAIL, CANNOT_TELL = "pass", "fail", "cannot tell"
FOLDER = Path(__file__).parent / "limits"
KEYS = {"figure", "name", "step", "where", "window", "min", "max", "unit", "guard"}
HEAD = {"title", "source", "limit"}
# counts that are exact; other figures need an error
EXACT = {"ios", "samples", "samples_lost", "samples_clipped", "zero_seconds", "cycles"}
EXACT |= {"host_written_bytes", "nand_written_bytes"}
OWN_ERROR = {"idle_mean_W": "idle_uncertainty_W"}  # figures of a whole run whose error is a figure
PREFIXES = {"n": 1e-9, "µ": 1e-6, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
SCALED = ("W", "J", "s", "B/s", "B", "J/GB")  # units that take a prefix
SUFFIXES = {"_W": "W", "_J": "J", "_s": "s", "_us": "µs", "_MBps": "MB/s", "_percent": "%", "_C": "°C", "iops": "IOPS"}
FIGURES = (*results.NUMBERS, *whole_run.KEYS)
NOT_CLEAR = "guard-band"


class Limit(NamedTuple):
    """One limit of a file. `least`, `most`: in `unit`; None: no such bound. `scale`: one `unit` in the figure's own."""

    figure: str
    name: str
    step: str | None
    where: str
    window: str
    least: float | None
    most: float | None
    unit: str
    scale: float
    guard: float


class File(NamedTuple):
    """A limit file."""

    title: str
    source: str
    limits: tuple[Limit, ...]


class Case(NamedTuple):
    """A verdict. `reason`: the id of a doubt, `why`: words. `value`, `error`, `least`, `most`: in `unit`."""

    name: str
    verdict: str
    why: str = ""
    reason: str | None = None
    figure: str | None = None
    step: str | None = None
    window: str | None = None
    value: float | None = None
    error: float | None = None
    least: float | None = None
    most: float | None = None
    unit: str = ""
    guard: float | None = None

    def as_json(self) -> dict:
        return {key: value for key, value in self._asdict().items() if key != "unit"} | {"unit": self.unit or None}


def shipped() -> dict[str, Path]:
    """The limit files that ssdrig has, by their names."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def read(word: str) -> File:
    """A limit file by its path, or by its name where ssdrig has it. Raises UsageError."""
    path = Path(word)
    if word in shipped():
        path = shipped()[word]
    elif not path.exists() and path.name == word and not word.endswith(".toml"):
        near = do_you_mean(word, shipped())
        raise UsageError(f"a limit file, or {listed(shipped(), 'or')}", repr(printable(word)), near)
    text = document.load(path, "limit file", f"name another file, or one of {', '.join(shipped())}")
    return parse(text, printable(str(path)))


def parse(text: str, place: str) -> File:
    """The limits of a file's text. Raises UsageError."""
    document_ = document.parse(text, place)
    unknown = sorted(document_.keys() - HEAD)
    if unknown:
        raise UsageError(f"only {listed(sorted(HEAD), 'and')} in {place}", unknown[0], do_you_mean(unknown[0], HEAD))
    rows = document_.get("limit")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"at least one [[limit]] in {place}", "none", "see host/docs/use/check.md")
    title, source = document_.get("title", ""), document_.get("source", "")
    if not isinstance(title, str) or not isinstance(source, str):
        raise UsageError(f"title and source of {place} as text", "another value", "put them in quotes")
    limits = tuple(_limit(row, f"limit {number} of {place}") for number, row in enumerate(rows, 1))
    return File(title, source, limits)


def _limit(row: Mapping[str, Any], place: str) -> Limit:
    if unknown := sorted(row.keys() - KEYS):
        raise UsageError(f"only {listed(sorted(KEYS), 'and')} in {place}", unknown[0], do_you_mean(unknown[0], KEYS))
    for key in ("figure", "name", "step", "where", "window", "unit"):
        if key in row and not isinstance(row[key], str):
            raise UsageError(f"{key} of {place} as text", repr(row[key])[:80], "put it in quotes")
    for key in ("min", "max", "guard"):
        value = row.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise UsageError(f"{key} of {place} as a number", repr(value)[:80], "give a finite number")
    figure = row.get("figure")
    if figure not in FIGURES:
        raise UsageError(f"a figure in {place}", repr(figure)[:80], do_you_mean(str(figure), FIGURES))
    if "min" not in row and "max" not in row:
        raise UsageError(f"min or max in {place}", "neither", "give one or both")
    if row.get("min", -math.inf) > row.get("max", math.inf):
        raise UsageError(f"min below max in {place}", f"{row['min']} and {row['max']}", "exchange them")
    if row.get("guard", 1) < 0:
        raise UsageError(f"a guard of 0 or more in {place}", f"{row['guard']}", "1: the figure's own uncertainty")
    own = unit_of(figure)
    unit = row.get("unit", "" if own in ("", "IOPS") else None)
    scale = None if unit is None else _scale(unit or own, own)
    if scale is None or unit is None:
        seen = "none" if unit is None else repr(unit)
        raise UsageError(f"the unit of {figure} in {place}, {own or 'none'}", seen, f'unit = "{own}"')
    limit = Limit(
        figure,
        row.get("name", ""),
        row.get("step"),
        row.get("where", ""),
        row.get("window", WHOLE),
        row.get("min"),
        row.get("max"),
        unit or own,
        scale,
        float(row.get("guard", 1)),
    )
    return limit._replace(name=limit.name or _named(limit))


def _named(limit: Limit) -> str:
    words = [limit.step or "run", limit.where, "" if limit.window == WHOLE else limit.window, limit.figure]
    return " ".join(filter(None, words))


def unit_of(figure: str) -> str:
    """The unit of a figure, "" for a plain number."""
    if figure in BY_KEY:
        return BY_KEY[figure].unit
    return next((unit for end, unit in SUFFIXES.items() if figure.endswith(end)), "")


def _scale(unit: str, own: str) -> float | None:
    """One `unit` in the figure's own; None: another kind of unit."""
    if unit == own:
        return 1.0
    for base in SCALED:
        ours, theirs = (PREFIXES.get(text.removesuffix(base)) if text.endswith(base) else None for text in (own, unit))
        if ours and theirs:
            return theirs / ours
    return None


def figure_at(table: Table, figure: str, step: str | None, where: str, window: str) -> Uncertain:
    """A figure of a run with its error, or with the reason why nothing is claimed of it. Raises UsageError for a step,
    point or window that its plan does not have."""
    if step is None and figure in whole_run.KEYS:
        return _of_run(table, figure)
    rows = rows_of(table, step, where, window)
    if isinstance(rows, Uncertain):
        return rows
    figures = together(rows, window) if len(rows) > 1 else rows[0].windows.get(window)
    if not figures:
        return Uncertain(None, None, UNKNOWN, f"{rows[0].label} has no window {window}: {_notes(rows) or 'too short'}")
    if doubt := trust.why_not(figures.get("trust"), trust.rests_on(figure)):
        return Uncertain(None, None, NOT_TRUSTED, doubt)
    error = errors.of(figure, figures, _why(figure, figures, rows))
    return error._replace(error=0.0) if figure in EXACT and error.value is not None else error


def rows_of(table: Table, step: str | None, where: str, window: str) -> list[Row] | Uncertain:
    """The rows of one point of a step that represent it, or the reason without any. Raises UsageError."""
    if step is None:
        main = whole_run.principal(table)
        if main is None:
            return Uncertain(None, None, UNKNOWN, "the run has no load")
        step = main.act.path
    acts = [act for act in table.acts if act.path == step]
    if not acts:
        paths = dict.fromkeys(act.path for act in table.acts)
        near = do_you_mean(step, paths)
        raise UsageError(f"a step of the plan {table.plan.name}", repr(printable(step))[:80], near)
    named = {WHOLE, *(name for act in acts for name in act.keys.get("windows", {}))}
    if window not in named:
        raise UsageError(f"a window of {step}: {listed(sorted(named), 'or')}", repr(printable(window))[:80], "name one")
    point = {key: value for key, _, value in (word.partition("=") for word in where.split())}
    rows = context.rows_at(table, step, point)
    if len({row.act.label for row in rows}) > 1:
        labels = [row.act.label for row in rows]
        do = f'where = "{labels[0].partition(" ")[2]}"'
        raise UsageError(f"one point of {step}", f"{len(set(labels))} of them", do)
    if rows:
        return rows
    lacking = next((row for row in table.rows if row.act.path == step), None)
    if lacking is None:
        return Uncertain(None, None, UNKNOWN, f"{step} did not run: {table.data.why or table.data.state}")
    if lacking.state == "done":
        raise UsageError(f"a point of {step}", where or "none", f"such as {lacking.act.label.partition(' ')[2]}")
    return Uncertain(None, None, UNKNOWN, f"{step}: {lacking.why or lacking.state}")


def _of_run(table: Table, figure: str) -> Uncertain:
    duration = whole_run.of(table)
    value = duration[figure]
    if not isinstance(value, int | float):
        return Uncertain(None, None, UNKNOWN, _note(figure, table.data.notes) or f"{figure} is not known")
    if doubt := trust.why_not(table.trust, trust.rests_on(figure)):
        return Uncertain(None, None, NOT_TRUSTED, doubt)
    error = duration.get(OWN_ERROR.get(figure, ""))
    return Uncertain(float(value), error if isinstance(error, int | float) else None)


def _why(figure: str, figures: Mapping, rows: Sequence[Row]) -> str:
    notes = [*(figures.get("notes") or ()), *(note for row in rows for note in row.notes)]
    return _note(figure, notes) or f"{figure} is not known"


def _note(figure: str, notes: Sequence[str]) -> str | None:
    split = (note.rpartition("all: ")[2].partition(": ") for note in notes)
    return next((reason for keys, _, reason in split if figure in keys.split(", ")), None)


def _notes(rows: Sequence[Row]) -> str:
    return "; ".join(dict.fromkeys(note for row in rows for note in row.notes))


def judged(limit: Limit, measured: Uncertain) -> Case:
    """The verdict about a figure in its own unit."""
    about = Case(
        limit.name,
        CANNOT_TELL,
        figure=limit.figure,
        step=limit.step,
        window=limit.window,
        least=limit.least,
        most=limit.most,
        unit=limit.unit,
        guard=limit.guard,
    )
    if measured.value is None or not math.isfinite(measured.value):
        return about._replace(reason=measured.reason or UNKNOWN, why=measured.why or "it is not known")
    value = measured.value / limit.scale
    error = None if measured.error is None or not math.isfinite(measured.error) else measured.error / limit.scale
    about = about._replace(value=value, error=error)
    if error is None and limit.guard:
        return about._replace(reason=NO_ERROR, why=f"the error of {limit.figure} is not known")
    band = limit.guard * (error or 0.0)
    least, most = (-math.inf if limit.least is None else limit.least), (math.inf if limit.most is None else limit.most)
    text = context.plus_minus(Uncertain(value, error), limit.unit)
    if least <= value - band and value + band <= most:
        return about._replace(verdict=PASS, why=text)
    if value + band < least or value - band > most:
        return about._replace(verdict=FAIL, why=text)
    return about._replace(reason=NOT_CLEAR, why=f"{text}: a limit is within its guard band of ± {context.figure(band)}")


def cases(table: Table, limits: Sequence[Limit]) -> list[Case]:
    """The verdicts of a run: whether it is complete, what its plan judges itself, each limit. Raises UsageError."""
    cases = [judged(limit, figure_at(table, *limit[:1], *limit[2:5])) for limit in limits]
    return [*of_plan(table), *cases]


def of_plan(table: Table) -> list[Case]:
    """Whether the run is complete, and the verdict of each step that has one: power cuts, retention."""
    broken = [case for row in table.rows for case in _of_step(row)]
    why = table.data.why or table.data.state
    if table.data.state == "complete" or any(case.verdict == FAIL for case in broken):
        return [Case("run complete", PASS), *broken] if table.data.state == "complete" else broken
    return [Case("run complete", CANNOT_TELL, str(why), "not-complete"), *broken]


def _of_step(row: Row) -> list[Case]:
    kind = row.result.get("kind")
    if row.act.do == "cuts" and row.state != "not run":
        return [_of_cuts(row)]
    if kind == "retention":
        return [_of_retention(row)]
    if row.act.do in ("cuts", "recall"):
        return [Case(f"{row.act.path}: {row.act.do}", CANNOT_TELL, row.why or row.state, "not-run")]
    return []


def _of_cuts(row: Row) -> Case:
    about = Case(f"{row.act.path}: no promise broken", CANNOT_TELL, reason="not-judged", step=row.act.path)
    try:
        words = cuts_sentences.verdict(row.result)
        damaged = sorted({number for part in row.result.get("filesystems") or () for number in part["failing"]})
        outcome = tally.Tally(row.result["cuts"]).outcome(Path(row.folder)) or above.outcome(damaged)
    except (KeyError, TypeError, ValueError) as error:
        return about._replace(
            reason="damaged", why=f"its sessions have no whole records ({type(error).__name__}: {error})"
        )
    if isinstance(outcome, PromiseBroken):
        return about._replace(verdict=FAIL, why=words, reason=None)
    if outcome is not None:
        kinds: dict[type, str] = {ControlFailed: "control", CannotTell: "cannot-tell"}
        reason = kinds.get(type(outcome), "suspicion")
        return about._replace(reason=reason, why=f"{outcome.expected}: {outcome.seen}")
    if not row.result["judged"]:
        return about._replace(why=words)
    if row.state != "done":
        return about._replace(reason="not-complete", why=f"{words} It did not finish: {row.why or row.state}")
    return about._replace(verdict=PASS, why=words, reason=None)


def _of_retention(row: Row) -> Case:
    retention = row.result
    name = "sealed" if retention["phase"] == "write" else "data held"
    about = Case(f"{row.act.path}: {name}", CANNOT_TELL, retention_sentences.verdict(retention), "not-judged")
    about = about._replace(step=row.act.path)
    if retention["phase"] == "write":
        return about._replace(verdict=PASS, reason=None) if retention["digest"] else about
    if any(pass_["bad"] for pass_ in retention["passes"]):
        return about._replace(verdict=FAIL, reason=None)
    if not retention["passes"] or row.state != "done":
        return about._replace(why=f"{about.why} {row.why or ''}".strip())
    return about._replace(verdict=PASS, reason=None)


def worst(cases: Sequence[Case]) -> str:
    """The verdict of all cases together."""
    verdicts = {case.verdict for case in cases}
    return next((verdict for verdict in (FAIL, CANNOT_TELL) if verdict in verdicts), PASS)
