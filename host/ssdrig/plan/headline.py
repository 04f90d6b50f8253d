"""The headline of a plan: parts of text with figures in braces, "SLC cache {empty.cache} at {empty.fast}". Pure.

    figure = name                                     a figure of the plan: a [[show]] with view = "figure"
           | step [" " key "=" value …] ["@" window] "." value [", highest" | ", lowest"]

`value` is one of a step (plan/formula.py), or a fact of a view that shows it (shows.View.facts). A step that sweeps
keys is named with a value of each; with "highest" or "lowest" the figure is that of such a point, among those that the
named keys leave. schemas/plan.md has the rules in words; views/headline.py fills the parts."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean
from ssdrig.plan import shows, values
from ssdrig.plan.document import shown
from ssdrig.plan.formula import VALUES

HIGHEST, LOWEST = PICKS = ("highest", "lowest")
MOST_PARTS = 4
_NAME = "[a-z0-9][a-z0-9-]*"
_FIGURE = re.compile(
    rf"(?P<path>{_NAME}(?:/{_NAME})?)(?P<where>(?: [a-z_]+=[^ @{{}}]+)*)(?:@(?P<window>{_NAME}))?"
    rf"\.(?P<value>[^.,{{}}]+)(?:, (?P<pick>{'|'.join(PICKS)}))?"
)


class Figure(NamedTuple):
    """A figure in a part.

    name: of a figure of the plan; "" where it is a step's
    path, where, window, value: the step, its point, a window of it ("": the whole step), and the value or fact
    pick: HIGHEST or LOWEST; "" where the point is named
    """

    name: str = ""
    path: str = ""
    where: tuple[tuple[str, str], ...] = ()
    window: str = ""
    value: str = ""
    pick: str = ""


def parse(part: str) -> list[str | Figure]:
    """The pieces of a part in their order: text, and figures. Raises ValueError."""
    pieces = re.split(r"\{([^{}]*)\}", part)
    if any(brace in text for text in pieces[::2] for brace in "{}"):
        raise ValueError("a brace without its other half")
    if len(pieces) == 1:
        raise ValueError("no figure in it")
    return [piece if i % 2 == 0 else _figure(piece) for i, piece in enumerate(pieces) if piece or i % 2]


def _figure(text: str) -> Figure:
    if values.NAME.fullmatch(text):
        return Figure(name=text)
    match = _FIGURE.fullmatch(text)
    if not match:
        raise ValueError(f"{{{text}}} names no figure")
    where = tuple((key, value) for key, _, value in (word.partition("=") for word in match["where"].split()))
    return Figure("", match["path"], where, match["window"] or "", match["value"], match["pick"] or "")


def figures(part: str) -> Iterator[Figure]:
    """The figures of a part. Raises ValueError."""
    yield from (piece for piece in parse(part) if isinstance(piece, Figure))


def read(value, where: str) -> tuple[str, ...]:
    """The parts of a plan's `headline`. Raises UsageError."""
    do = 'write it like headline = ["{load.iops} random writes"]'
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_PARTS:
        seen = f"headline = {shown(value)} in {where}"
        raise UsageError(f"headline to be a list of 1 to {MOST_PARTS} texts", seen, do)
    for part in value:
        try:
            list(figures(values.text(part, "headline")))
        except values.Wrong as error:
            raise UsageError(error.expected, f"{error.seen} in {where}", error.do) from error
        except ValueError as error:
            expected = 'a part of headline with figures such as "{load.iops} random writes"'
            raise UsageError(expected, f"{shown(part)} in {where}: {error}", do) from error
    return tuple(value)


def check(plan, where: str) -> None:
    """Raises UsageError for a figure that the plan does not have."""
    for part in plan.headline:
        for figure in figures(part):
            try:
                _check(figure, plan)
            except values.Wrong as error:
                seen = f"{error.seen} in {shown(part)} of headline in {where}"
                raise UsageError(error.expected, seen, error.do) from error


def _check(figure: Figure, plan) -> None:
    """Raises values.Wrong."""
    named = [show["name"] for show in plan.shows if show["view"] == "figure"]
    if figure.name:
        _known(figure.name, named, "the name of a figure of the plan")
        return
    paths, axes = shows.steps_of(plan)
    step = paths[_known(figure.path, paths, "a step of the plan")]
    facts = [fact for _, fact in facts_of(plan.shows, figure.path)]
    _known(figure.value, [*VALUES, *facts], f"a value of {figure.path}")
    for key, _ in figure.where:
        _known(key, axes[figure.path], f"a key that {figure.path} sweeps")
    if figure.window:
        _known(figure.window, step.keys.get("windows", {}), f"a window of {figure.path}")
    if figure.value in facts:
        if figure.where or figure.window or figure.pick:
            raise values.Wrong(f"{figure.path}.{figure.value} alone", "a point, a window or a pick", "leave it out")
        return
    open_keys = [key for key in axes[figure.path] if key not in dict(figure.where)]
    if bool(open_keys) != bool(figure.pick):
        seen = f"{figure.path}.{figure.value}"
        if figure.pick:
            raise values.Wrong(f"{figure.pick} only among several points", seen, f'leave out ", {figure.pick}"')
        do = f'add {open_keys[0]}=… , or ", highest" at its end'
        raise values.Wrong(f"each key that {figure.path} sweeps", f"{seen} without {', '.join(open_keys)}", do)


def _known(word: str, known: Iterable[str], what: str) -> str:
    known = list(known)
    if word not in known:
        do = do_you_mean(word, known) if known else "leave it out"
        raise values.Wrong(f"{what}{': ' * bool(known)}{', '.join(known)}", shown(word), do)
    return word


def facts_of(plan_shows: Iterable[Mapping], path: str) -> Iterator[tuple[Mapping, str]]:
    """Each fact of a step with the [[show]] whose view has it."""
    for show in plan_shows:
        if path in shows.listed(show.get("of")):
            for fact in shows.views()[show["view"]].facts:
                yield show, fact
