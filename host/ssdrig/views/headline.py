"""The headline of a run: the parts that its plan words (plan/headline.py), with the figures of the run, their unit and
their error.

A part is claimed only if each of its figures is known and nothing that it rests on is bad in the trust strip. Any other
part is left out of the headline; the names of its figures that are not claimed stand after it, with the reasons."""

import importlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from ssdrig.base.uncertain import UNKNOWN, Uncertain, differ
from ssdrig.plan import headline, shows
from ssdrig.plan.document import toml
from ssdrig.plan.headline import Figure
from ssdrig.reading import table, trust
from ssdrig.reading.row import WHOLE, Row, Table
from ssdrig.views.context import axis, doubt_at, label, plus_minus, point, rows_at, uncertain_at
from ssdrig.views.points.html import formula_of
from ssdrig.views.terms import BY_KEY
from ssdrig.views.trust_strip import wrapped

# unit: (from which value on, factor, the unit then), the largest first. Others are kept: a table, a plot and a headline
# state one figure in one unit
SCALES = {
    "µs": ((1e6, 1e-6, "s"), (1e3, 1e-3, "ms"), (0, 1, "µs")),
    "s": ((7200, 1 / 3600, "h"), (1, 1, "s"), (0, 1e3, "ms")),
    "B": ((1e12, 1e-12, "TB"), (1e9, 1e-9, "GB"), (1e6, 1e-6, "MB"), (0, 1, "B")),
}


class Fact(NamedTuple):
    """A figure that a view gives to headlines: views/<view>/facts.py has FACTS, view -> facts(run, show, path), which
    gives them by their keys in View.facts, which has their names.

    of: the value in `unit` with its error, or why it is not known
    words: in place of a number
    better: "more" or "less" where runs are compared; "": it is not compared
    rests: the items of the trust strip that it rests on
    paths: the steps whose strips count; () for the step that the plan names
    """

    of: Uncertain
    unit: str = ""
    words: str = ""
    better: str = ""
    rests: tuple[str, ...] = trust.OF_LOAD
    paths: tuple[str, ...] = ()


class Filled(NamedTuple):
    """A figure of a part for one run: its name, and `text`, or "" where it is not claimed, then `why`."""

    name: str
    text: str = ""
    why: str = ""
    fact: Fact | None = None


class Part(NamedTuple):
    """A part of a headline: `text`, or "" where it is left out; `lacking`: the names of the figures that are not
    claimed, each with the reason."""

    text: str
    lacking: tuple[tuple[str, str], ...] = ()


def of(run: Table) -> list[Part]:
    """The parts of a run's headline, in the order of its plan."""
    return [_part(run, pieces) for pieces in map(headline.parse, run.plan.headline)]


def _part(run: Table, pieces: Sequence[str | Figure]) -> Part:
    filled = [piece if isinstance(piece, str) else fill(run, piece) for piece in pieces]
    lacking = tuple((piece.name, piece.why) for piece in filled if isinstance(piece, Filled) and not piece.text)
    words = (piece if isinstance(piece, str) else piece.text for piece in filled)
    return Part("" if lacking else "".join(words), lacking)


def fill(run: Table, figure: Figure) -> Filled:
    """A figure with its unit and error, or why it is not claimed."""
    if figure.name:
        show = next(show for show in run.plan.shows if show.get("name") == figure.name)
        percent = show.get("unit") == "%"
        result = formula_of(run, show["formula"])
        fact = Fact(result.scaled(100) if percent else result, show.get("unit", ""))
        return _filled(show.get("title") or figure.name, fact, None)
    for show, fact in headline.facts_of(run.plan.shows, figure.path):
        if fact == figure.value:
            return _of_view(run, figure, show)
    return _picked(run, figure) if figure.pick else _at(run, figure, dict(figure.where))


def _of_view(run: Table, figure: Figure, show: Mapping) -> Filled:
    name = show["view"]
    folder = shows.folders()[name].__name__
    fact: Fact = importlib.import_module(f"{folder}.facts").FACTS[name](run, show, figure.path)[figure.value]
    rows = [row for path in fact.paths or (figure.path,) for row in run.of(path)]
    named = f"{shows.views()[name].facts[figure.value]} during {figure.path}"
    return _filled(named, fact, trust.why_not(table.strip(rows), fact.rests))


def _at(run: Table, figure: Figure, where: Mapping) -> Filled:
    key, unit = shows.VALUES[figure.value]
    known = uncertain_at(run, figure.path, dict(where), figure.value, figure.window or None)
    term = BY_KEY.get(key)
    named = " ".join([figure.path, *(f"{name}={value}" for name, value in where.items())])
    fact = Fact(known, unit, "", term.better if term else "")
    doubt = doubt_at(run, figure.path, dict(where), figure.value, figure.window or None)
    return _filled(f"{label(figure.value)} during {named}", fact, doubt)


def _picked(run: Table, figure: Figure) -> Filled:
    """The highest or the lowest of the points; known only if each point that ran is."""
    fixed = dict(figure.where)
    where = "".join(f" {key}={value}" for key, value in fixed.items())
    name = f"{figure.pick} {in_a_sentence(label(figure.value))} during {figure.path}{where}"
    of_points: dict[str, Row] = {row.act.label: row for row in rows_at(run, figure.path, dict(figure.where))}
    if not of_points:
        return _at(run, figure, dict(figure.where))._replace(name=name)
    points = {name: _at(run, figure, dict(row.act.point)) for name, row in of_points.items()}
    if lacking := next((at for at, one in points.items() if not one.text), None):
        return points[lacking]._replace(name=name, why=f"{lacking}: {points[lacking].why}")
    values = {at: one.fact.of.value for at, one in points.items() if one.fact and one.fact.of.value is not None}
    pick = (max if figure.pick == headline.HIGHEST else min)(values, key=lambda at: values[at])
    open_keys = {key: value for key, value in of_points[pick].act.point.items() if key not in fixed}
    at = ", ".join(f"{axis(key)} {point(key, value)}" for key, value in open_keys.items())
    best = points[pick]
    return Filled(name, f"{best.text} ({at})" if len(of_points) > 1 else best.text, "", best.fact)


def _filled(name: str, fact: Fact, doubt: str | None) -> Filled:
    if doubt:
        return Filled(name, "", doubt, fact)
    if fact.words:
        return Filled(name, fact.words, "", fact)
    if fact.of.value is None:
        return Filled(name, "", fact.of.why or "not known", fact)
    if too_large := as_large(fact.of, fact.unit):
        return Filled(name, "", too_large, fact)
    return Filled(name, in_words(fact.of, fact.unit), "", fact)


def as_large(value: Uncertain, unit: str = "") -> str | None:
    """Why a figure with an error as large as itself is not claimed; None: its error is smaller, or not known."""
    if value.value is None or not value.error or value.error < abs(value.value):
        return None
    return f"its error is as large: {in_words(value, unit)}"


def in_a_sentence(name: str) -> str:
    """A name within a sentence: "Mean IOPS" with a small letter, "IOPS" and "P99" as they are."""
    return name[:1].lower() + name[1:] if name[1:2].islower() else name


def in_words(value: Uncertain, unit: str = "") -> str:
    """ "9.41 ± 0.12 ms": in the unit in which it reads best."""
    _, factor, name = next(
        (scale for scale in SCALES.get(unit, ()) if abs(value.value or 0.0) >= scale[0]), (0, 1, unit)
    )
    return plus_minus(value.scaled(factor), name)


def left_out(parts: Iterable[Part]) -> list[str]:
    """The figures that are not claimed: each reason once, after the names of its figures."""
    by_reason: dict[str, dict[str, None]] = {}
    for name, why in (figure for part in parts for figure in part.lacking):
        by_reason.setdefault(why.removeprefix("not claimed, "), {})[in_a_sentence(name)] = None
    return [f"not claimed: {', '.join(names)} ({why})" for why, names in by_reason.items()]


def claimed(parts: Iterable[Part]) -> str:
    """The parts that are claimed, as one line; "" without any."""
    text = "; ".join(part.text for part in parts if not part.lacking)
    return text[:1].upper() + text[1:]


def lines(run: Table, width: int, name: str = "") -> list[str]:
    """For a terminal `width` columns wide: the claimed parts, then the others with their reasons; [] without any."""
    parts = of(run)
    words = [claimed(parts), *left_out(parts)]
    return [line for text in words if text for line in wrapped(f"{name}: {text}" if name else text, width)]


def compared(runs: Sequence[Table], names: Sequence[str]) -> str:
    """Which of several runs is better, by the first figure of the headline that has a better and is claimed of
    all; "" without one, or of one run."""
    if len(runs) < 2:
        return ""
    for part in runs[0].plan.headline:
        for figure in headline.figures(part):
            figures = [fill(run, figure) for run in runs]
            facts = [one.fact for one in figures if one.text and one.fact and one.fact.better and not one.fact.words]
            if len(facts) == len(runs):
                return _verdict(in_a_sentence(figures[0].name), facts, names) + _unlike(runs)
    return ""


def _verdict(what: str, facts: Sequence[Fact], names: Sequence[str]) -> str:
    sign = -1 if facts[0].better == "more" else 1
    ranked = sorted(zip(facts, names, strict=True), key=lambda pair: sign * (pair[0].of.value or 0.0))
    (best, name), (second, other) = ranked[:2]
    unit = best.unit
    values = f"{in_words(best.of, unit)} against {in_words(second.of, unit)}"
    if not (best.of.known and second.of.known):
        return f"{name} and {other} are not compared, the error of {what} is not known ({values})"
    if not differ(best.of, second.of, len(facts)):
        alike = f"{name} and {other}" if len(facts) == 2 else f"The best two of {len(facts)}, {name} and {other},"
        return f"{alike} do not differ beyond their errors in {what} ({values})"
    more = "higher" if best.better == "more" else "lower"
    rank = f"{name} is better than {other}" if len(facts) == 2 else f"{name} is the best of {len(facts)}, then {other}"
    return f"{rank}: {more} {what} ({values})"


def _unlike(runs: Sequence[Table]) -> str:
    """The parameters in which the runs differ."""
    params = [run.plan.params for run in runs]
    keys = [key for key in params[0] if any(of.get(key) != params[0].get(key) for of in params)]
    of_keys = [f"{key} {', '.join(toml(of.get(key)).replace(chr(34), '') for of in params)}" for key in keys]
    return f"; the runs differ in {'; '.join(of_keys)}" if of_keys else ""


def section(runs: Sequence[Table], names: Sequence[str]) -> str:
    """The headline of each run, as the second piece of a page, after the trust strips; "" for a plan without one."""
    if not runs or not runs[0].plan.headline:
        return ""
    out = ['<section class="verdict headline" aria-label="Headline">']
    if best := compared(runs, names):
        out.append(f"<p><b>{escape(best)}.</b></p>")
    for run, name in zip(runs, names, strict=True):
        parts = of(run)
        words = escape(claimed(parts))
        whose = f'<span class="of">{escape(name)}</span> ' if len(runs) > 1 else ""
        if words:
            out.append(f"<p>{whose}{words}.</p>" if best else f"<p>{whose}<b>{words}.</b></p>")
        out += [f'<p class="soft">{whose}{escape(line)}.</p>' for line in left_out(parts)]
    return "".join(out) + "</section>"


def as_json(run: Table) -> list[dict]:
    """For `report --json`: each part with its text and null, or the names of figures that are not claimed and why."""
    return [
        {
            "text": part.text or "; ".join(dict.fromkeys(name for name, _ in part.lacking)),
            "why": "; ".join(dict.fromkeys(why for _, why in part.lacking)) or None,
        }
        for part in of(run)
    ]


def lacking(why: str) -> Uncertain:
    """A figure that is not known, with the reason."""
    return Uncertain(None, None, UNKNOWN, why)


def whole(row: Row) -> Mapping:
    """The figures of the whole step."""
    return row.windows.get(WHOLE) or {}
