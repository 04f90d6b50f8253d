"""`ssdrig compare A B`: what differs between two runs, or two groups of repeats, beyond doubt."""

import argparse
import json
import os
from pathlib import Path

from ssdrig.base.arguments import listed
from ssdrig.base.errors import CannotTell, UsageError
from ssdrig.base.uncertain import NOT_TRUSTED, Uncertain
from ssdrig.base.words import do_you_mean
from ssdrig.publish.verdicts import acceptance, comparison
from ssdrig.publish.verdicts.comparison import Difference
from ssdrig.reading import library_file, table, whole_run
from ssdrig.reading.row import WHOLE, Table
from ssdrig.runs import named
from ssdrig.views.context import plus_minus
from ssdrig.views.terms import BY_KEY, number, with_error

FIGURES = ("iops_mean", "lat_p99_us", "power_mean_W", "energy_uJ_per_io", "wa")
VERDICT = True  # its exit code
EXAMPLES = (
    ("compare 3fa9 b071", "two runs: differences beyond their uncertainty"),
    ("compare before/ after/ --figure iops_mean", "two folders of repeats, one figure"),
    ("compare 3fa9,77c0 b071,19ee --step load --window steady", "repeats by their ids, one window"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = f"a run: {named.HELP}; a folder of repeats; several runs with commas between them; or a"
    " library file"
    parser.add_argument("a", metavar="A", help=words)
    parser.add_argument("b", metavar="B", help="the runs that A is compared with")
    named.add_parent(parser)
    parser.add_argument(
        "--figure",
        metavar="KEY",
        action="append",
        default=[],
        help=f"a key of host/docs/reference/figures.md; may be repeated (default: {', '.join(FIGURES)})",
    )
    parser.add_argument("--step", metavar="STEP", help="a step of the plan (default: the longest load)")
    parser.add_argument("--where", metavar="POINT", default="", help='the point of a swept step, such as "read=0 qd=1"')
    parser.add_argument(
        "--window", metavar="NAME", help="a window that the plan names (default: steady, otherwise all)"
    )
    parser.add_argument(
        "--level",
        metavar="PERCENT",
        type=float,
        default=95.0,
        help="confidence level of all verdicts together (default 95)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a line for each figure")


def check(args) -> None:
    """Raises UsageError, and JournalError for a folder that is not a run."""
    if not 50 <= args.level < 100:
        raise UsageError("--level from 50 to less than 100", f"{args.level:g}", "95 is usual")
    for key in args.figure:
        if key not in acceptance.FIGURES:
            raise UsageError("--figure with a key of figures.md", repr(key)[:80], do_you_mean(key, acceptance.FIGURES))
    if _is_file(args.a) and _is_file(args.b):
        do = "name a run as the other; a file gives the runs of its plan and parameters"
        raise UsageError("a library file as A or as B", "two of them", do)
    for word in (args.a, args.b):
        if not _is_file(word):
            named.check(_words(word), args.parent)
    of_a, of_b = ({os.path.realpath(run) for run in _folders(word, args.parent)} for word in (args.a, args.b))
    if both := of_a & of_b:
        raise UsageError("two groups without a common run", sorted(both)[0], "name each run once")


def command(args) -> int:
    """Print the differences. Raises CannotTell where no figure differs beyond doubt; UsageError, JournalError."""
    check(args)
    groups = [[table.load(folder) for folder in _folders(word, args.parent)] for word in (args.a, args.b)]
    if not all(groups):
        (like,) = (group[0] for group in groups if group)
        groups = [group or _of_file(Path(word), like) for group, word in zip(groups, (args.a, args.b), strict=True)]
    unlike = _other_plan([of for group in groups for of in group])
    for name, group in zip("AB", groups, strict=True):
        if differing := _differing(group):
            seen = f"runs in {name} with another {listed(differing, 'and')}"
            raise UsageError("repeats of one test in each group", seen, "group them by their parameters")
    conditions = _differing([groups[0][0], groups[1][0]])
    window = args.window or _window(groups[0][0], args.step)
    keys = list(dict.fromkeys(args.figure)) or list(FIGURES)
    differences = []
    for key in keys:
        a, b = ([_figure(of, key, args, window, unlike) for of in group] for group in groups)
        differences.append(comparison.compared(key, a, b, args.level / 100, len(keys)))
    for one in differences:
        print(
            json.dumps(one._asdict() | {"window": window, "conditions": conditions})
            if args.json
            else "\n".join(_lines(one))
        )
    if conditions and not unlike and not args.json:
        print(f"A and B were made with another {listed(conditions, 'and')}.")
    if all(one.verdict == comparison.CANNOT_TELL for one in differences):
        seen = f"none of {len(differences)} at {args.level:g} %; {differences[0].why}"
        raise CannotTell("a figure that differs beyond doubt", seen, "repeat both, or measure longer")
    return 0


def _words(word: str) -> list[str]:
    """ "3fa9,b071" -> its runs; a path with a comma in it is one."""
    return [word] if Path(word).exists() else [part for part in word.split(",") if part] or [word]


def _is_file(word: str) -> bool:
    return word.endswith(library_file.SUFFIX)


def _of_file(path: Path, like: Table) -> list[Table]:
    """The runs of a library file that ran the plan of a run with its parameters. Raises JournalError, UsageError."""
    alike = [one for one in library_file.read(path).tables if one.plan.text == like.plan.text]
    same = [one for one in alike if _params(one) == _params(like)] or alike[:1]
    if not same:
        raise UsageError(
            f"a run of {like.plan.name} in {path}", "none", "`ssdrig library list` has the plans of a file"
        )
    return same


def _folders(word: str, parent: str) -> list[Path]:
    """The run folders that a word names; none for a library file."""
    if _is_file(word):
        return []
    return named.several(_words(word), parent)


def _window(of: Table, step: str | None) -> str:
    main = whole_run.principal(of)
    path = step or (main.act.path if main else None)
    windows = {name for act in of.acts if act.path == path for name in act.keys.get("windows", {})}
    return "steady" if "steady" in windows else WHOLE


def _other_plan(tables: list[Table]) -> str | None:
    """Why these runs cannot be compared; None: they ran one plan."""
    first = tables[0]
    other = next((of for of in tables if of.plan.text != first.plan.text), None)
    return None if other is None else f"the plans differ: {first.plan.name} and {other.plan.name}"


def _differing(tables: list[Table]) -> list[str]:
    """The parameters of the plan that are not the same in all of these runs."""
    params = [{str(key): value for key, value in _params(of).items()} for of in tables]
    keys = sorted({key for param_set in params for key in param_set})
    return [key for key in keys if any(param_set.get(key) != params[0].get(key) for param_set in params)]


def _params(of: Table) -> dict:
    plan = of.data.header["plan"]
    return {**dict(plan.get("params") or {}), "variant": plan.get("variant")}


def _figure(of: Table, key: str, args, window: str, unlike: str | None) -> Uncertain:
    if unlike:
        return Uncertain(None, None, "not-comparable", unlike)
    if of.data.state != "complete":
        return Uncertain(None, None, NOT_TRUSTED, f"the run {of.data.header['run']} is {of.data.state}")
    return acceptance.figure_at(of, key, args.step, args.where, window)


def _lines(difference: Difference) -> list[str]:
    term = BY_KEY.get(difference.figure)
    name, unit = (term.label, term.unit) if term else (difference.figure, acceptance.unit_of(difference.figure))
    if difference.difference is None or difference.a is None or difference.b is None:
        return [f"{name}: cannot tell: {difference.why}"]
    places = term.places if term else 3
    values = f"A {number(difference.a, places)}, B {number(difference.b, places)} {unit}".strip()
    by = f"A - B = {with_error(difference.difference, difference.error, places)} {unit}".strip()
    share = ""
    if difference.percent is not None and not difference.reason:
        sign = "+" if difference.percent > 0 else ""
        share = f" ({sign}{plus_minus(Uncertain(difference.percent, difference.percent_error), '%')})"
    counts = f"{difference.repeats[0]} and {difference.repeats[1]} runs, {100 * difference.level:g} %"
    out = [f"{name}: {difference.verdict}", f"  {values}; {by}{share}; {counts}"]
    return out if not difference.reason else [*out, f"  {difference.why}"]
