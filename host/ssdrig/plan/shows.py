"""The views of a plan, and whether the steps that they name exist. Pure."""

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import NamedTuple

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean
from ssdrig.plan import formula, values
from ssdrig.plan.document import shown
from ssdrig.plan.formula import VALUES as VALUES
from ssdrig.plan.step import Step, value_text


class View(NamedTuple):
    """A view of a folder in views/: its required and optional keys besides `view`; check(step, axes): raises
    values.Wrong if it cannot show the step; `claims`: it makes statements about the drive in its own figures, which are
    withheld if one of its steps is not trusted; `facts`: its figures for a headline (views/headline.py), key -> what it
    is called."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    check: Callable[[Step, Mapping], None] | None = None
    claims: bool = False
    facts: Mapping[str, str] = MappingProxyType({})


@functools.cache
def folders() -> dict[str, ModuleType]:
    """View -> the package of views/ that names it; found because the folder is there."""
    top = Path(__file__).parents[1] / "views"
    names = sorted(path.parent.name for path in top.glob("*/__init__.py"))
    modules = [importlib.import_module(f"ssdrig.views.{name}") for name in names]
    return dict(sorted(((v, m) for m in modules for v in m.VIEWS), key=lambda pair: pair[0]))


def views() -> dict[str, View]:
    """All views by their names."""
    return {name: module.VIEWS[name] for name, module in folders().items()}


SCALES = ("linear", "log")
SPEEDS = ("iops", "MB/s")  # what the view `demand` may have on its x axis
ALONGS = ("time", "minutes", "written", "fills")  # the axis of a load by the second: see schemas/plan.md
AXES = ("by", "x", "rows", "columns")  # each one key that `over` sweeps


def steps_of(plan) -> tuple[dict[str, Step], dict[str, dict[str, list]]]:
    """The steps of a plan by their paths, and the axes of each path; a repeat has those of all inner steps."""
    paths: dict[str, Step] = {}
    axes: dict[str, dict[str, list]] = {}
    for step in plan.steps:
        paths[step.path], axes[step.path] = step, dict(step.axes)
        for inner in step.steps:
            paths[inner.path], axes[inner.path] = inner, {**step.axes, **inner.axes}
            axes[step.path] |= inner.axes
    return paths, axes


def check(plan, where: str) -> None:
    """Raises UsageError for a view that names what the plan does not have."""
    paths, axes = steps_of(plan)
    figures: list[str] = []
    for number, show in enumerate(plan.shows, 1):
        place = f"{where}, show {number}"
        try:
            view = values.one_of(show.get("view"), views(), "view")
            _keys(show, view)
            if view == "figure":
                _figure(show, paths, figures)
                continue
            for path in _texts(show["of"], "of"):
                values.one_of(path, paths, "of")
                _view(show, view, paths[path], axes[path])
            if "against" in show:
                values.one_of(show["against"], paths, "against")
            if "rest" in show:
                _rest(show["rest"], paths)
        except values.Wrong as error:
            raise UsageError(error.expected, f"{error.seen} in {place}", error.do) from error


def listed(value) -> list:
    """One or a list of them, as a list; nothing as none."""
    return [] if value is None else value if isinstance(value, list) else [value]


def _texts(value, key: str) -> list[str]:
    """One text or a list of texts, as a list. Raises values.Wrong."""
    paths_of = listed(value)
    if not paths_of or not all(isinstance(text, str) for text in paths_of) or len(set(paths_of)) != len(paths_of):
        raise values.wrong("one text, or a list of texts, each once", value, key)
    return paths_of


def _keys(show: Mapping, view: str) -> None:
    """Checks that do not need the steps. Raises values.Wrong."""
    known = views()[view]
    for key in show:
        if key not in ("view", *known.required, *known.optional):
            do = do_you_mean(key, (*known.required, *known.optional))
            raise values.Wrong(f"a key of the view {view}", shown(key)[1:-1], do)
    for key in known.required:
        if key not in show:
            raise values.Wrong(f"`{key}` in the view {view}", f"no {key}", f"add {key} = …")
    if "scale" in show:
        values.one_of(show["scale"], SCALES, "scale")
    if "speed" in show:
        values.one_of(show["speed"], SPEEDS, "speed")
    if "along" in show:
        values.one_of(show["along"], ALONGS, "along")
    if "title" in show:
        values.text(show["title"], "title")
    if "top" in show and (type(show["top"]) not in (int, float) or show["top"] <= 0):
        raise values.wrong("a number above 0, where the axis ends", show["top"], "top")
    if view != "figure":
        for value in _texts(show["value"], "value") if "value" in show else []:
            values.one_of(value, VALUES, "value")


def _view(show: Mapping, view: str, step: Step, axes: Mapping[str, Sequence]) -> None:
    """Checks that the step has the shown values. Raises values.Wrong."""
    used = [values.one_of(show[key], axes, f"{key} of {step.path}") for key in AXES if key in show]
    if len(set(used)) != len(used):
        raise values.Wrong("a different key for each axis", f"{used[0]} twice", "name another key that is swept")
    if "where" in show:
        _where(show["where"], step.path, axes)
    if "window" in show:
        values.one_of(show["window"], step.keys.get("windows", {}), f"window of {step.path}")
    if fits := views()[view].check:
        fits(step, axes)


def _rest(path, paths: Mapping[str, Step]) -> None:
    """Checks the step in which the drive comes to rest after the shown one."""
    step = paths[values.one_of(path, paths, "rest")]
    if step.keys.get("until") != "quiet":
        raise values.wrong('an idle step with until = "quiet"', path, "rest", "name such a step, or leave it out")


def _where(text, path: str, axes: Mapping[str, Sequence]) -> None:
    """ "read=0 block=4KiB": points that are there."""
    if not isinstance(text, str) or not text.split():
        raise values.wrong('points such as "read=0 block=4KiB"', text, "where")
    for word in text.split():
        key, _, wanted = word.partition("=")
        if key not in axes:
            raise values.Wrong(f"where to name what {path} sweeps", shown(word), do_you_mean(key, axes))
        points = [value_text(value) for value in axes[key]]
        if wanted not in points:
            raise values.wrong(f"one of {', '.join(points)}", wanted, f"{key} in where", "name a point that is swept")


def _figure(show: Mapping, paths: Mapping[str, Step], figures: list[str]) -> None:
    """Checks that the name is unique, and that the steps have the formula's values."""
    name = values.name(show["name"])
    if name in figures:
        raise values.Wrong("each name of a figure once", f"{name} again", "rename one of the figures")
    figures.append(name)
    if "unit" in show:
        values.text(show["unit"], "unit")
    text = show["formula"]
    try:
        node = formula.parse(values.text(text, "formula"))
    except values.Wrong:
        raise
    except ValueError as error:
        raise values.Wrong(
            'a formula such as "a.MB/s / (b.MB/s - 1)"', f"formula = {shown(text)}", f"correct it: {error}"
        ) from error
    for name_used in formula.names(node):
        if name_used.path not in paths:
            raise values.Wrong("paths of steps in formula", shown(str(name_used)), do_you_mean(name_used.path, paths))
        if name_used.window:
            values.one_of(
                name_used.window, paths[name_used.path].keys.get("windows", {}), f"window of {name_used.path}"
            )
        if paths[name_used.path].axes or "/" in name_used.path:
            raise values.Wrong(
                "steps in formula that have one value each",
                f"{name_used}, which has many points",
                "show it in a matrix",
            )
