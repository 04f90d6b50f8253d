"""What a plan shows: its views, and whether what they name is there. Pure."""

import difflib
import re

from ssdrig.errors import UsageError

VIEWS = (
    *("scatter", "series", "rounds", "steady", "matrix", "lines", "heat", "bars", "histogram", "demand", "figure"),
)
KEYS = ("view", "of", "where", "by", "x", "rows", "columns", "value", "window", "scale", "title", "top")
FIGURE = ("name", "formula", "unit")
# what a view can show of a step: in the plan's words -> the figure of the analysis, and its unit
VALUES = {
    "iops": ("iops_mean", "IOPS"),
    "MB/s": ("bw_mean_MBps", "MB/s"),
    "W": ("power_mean_W", "W"),
    "uJ/IO": ("energy_uJ_per_io", "µJ"),
    "J/GB": ("energy_J_per_GB", "J/GB"),
    "iops/W": ("iops_per_W", "IOPS/W"),
    "lat_mean": ("lat_mean_us", "µs"),
    "lat_p99": ("lat_p99_us", "µs"),
    "wa": ("wa", ""),
    "C": ("temperature_max_C", "°C"),
    "host_cpu": ("host_cpu_percent", "%"),
}
SCALES = ("linear", "log")


def check(plan, where: str) -> None:
    """Raises UsageError for a view that names what the plan does not have."""
    paths: dict = {}
    for step in plan.steps:
        for each in (step, *step.steps):
            paths[each.path] = each
    for number, show in enumerate(plan.shows, 1):
        place = f"{where}, show {number}"
        view = show.get("view")
        if view not in VIEWS:
            raise UsageError("a view", f"{view!r} in {place}", _mean(str(view), VIEWS))
        known = (*KEYS, *FIGURE) if view == "figure" else KEYS
        for key in show:
            if key not in known:
                raise UsageError(f"a key of the view {view}", f"{key!r} in {place}", _mean(key, known))
        if show.get("scale", "linear") not in SCALES:
            raise UsageError("scale linear or log", f"{show['scale']!r} in {place}", "correct it")
        if view == "figure":
            _formula(show, paths, place)
            continue
        for path in listed(show.get("of")):
            if path not in paths:
                raise UsageError("the path of a step", f"of = {path!r} in {place}", _mean(path, paths))
            step = paths[path]
            axes = {key for each in (step, *step.steps) for axis in each.said.get("over", []) for key in axis}
            for key in ("by", "x", "rows", "columns"):
                if key in show and show[key] not in axes:
                    raise UsageError(
                        f"{key} to be one of the points of {path}",
                        f"{show[key]!r} in {place}",
                        _mean(str(show[key]), axes),
                    )
            for word in str(show.get("where", "")).split():
                if word.partition("=")[0] not in axes:
                    raise UsageError(f"where to name points of {path}", f"{word!r} in {place}", _mean(word, axes))
            window = show.get("window")
            if window is not None and window not in step.keys.get("windows", {}):
                raise UsageError(
                    f"a window of {path}", f"{window!r} in {place}", _mean(str(window), step.keys.get("windows", {}))
                )
        if not listed(show.get("of")):
            raise UsageError("a view of a step", f"no `of` in {place}", 'add of = "…"')
        for value in listed(show.get("value")):
            if value not in VALUES:
                raise UsageError("a value", f"{value!r} in {place}", _mean(str(value), VALUES))


def listed(value) -> list:
    """One or a list of them, as a list; nothing as none."""
    return [] if value is None else value if isinstance(value, list) else [value]


def _formula(show: dict, paths: dict, place: str) -> None:
    """step.value with + - * / ( ) and numbers."""
    formula = show.get("formula")
    if not isinstance(formula, str) or re.sub(r"[a-z0-9-]+\.[A-Za-z/_]*[A-Za-z]|[\d.]+|[-+*/() ]", "", formula):
        raise UsageError("a formula of step.value with + - * / ( )", f"{formula!r} in {place}", "correct it")
    for path, value in re.findall(r"([a-z][a-z0-9-]*)\.((?:MB/s|uJ/IO|J/GB|iops/W|[A-Za-z_0-9]+))", formula):
        if path not in paths:
            raise UsageError("the path of a step", f"{path!r} in {place}", _mean(path, paths))
        if value not in VALUES:
            raise UsageError("a value", f"{value!r} in {place}", _mean(value, VALUES))


def _mean(word: str, known) -> str:
    names = sorted(map(str, known))
    near = difflib.get_close_matches(word, names, 1)
    return f"do you mean {near[0]!r}?" if near else f"use one of {', '.join(names) or 'none'}"
