"""The parameters of a plan: their defaults, and what a variant and --set may put in their place. The default gives the
unit. Pure."""

import functools
import re
import tomllib
from collections.abc import Callable, Mapping

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean
from ssdrig.plan import quantity, values
from ssdrig.plan.document import check, shown

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
# kinds of values that may stand for one another: "75 %" for "10 GiB", "edges" for "60 s", a mix for a block, "never"
# for a count
FAMILIES = (
    frozenset({"count", "index", "percent"}),
    frozenset({"bytes", "block", "amount", "range", "wear", "blocks"}),
    frozenset({"time", "pause", "smart"}),
    frozenset({"rate"}),
    frozenset({"word"}),
    frozenset({"span"}),
    frozenset({"hot"}),
    frozenset({"bound"}),
    frozenset({"shares"}),
    frozenset({"filesystems"}),
)

OPEN = "not given"  # a parameter with this value accepts any text from the user


def families(value) -> frozenset[frozenset[str]]:
    """The families that a value may belong to; a list of points belongs to those that its members share."""
    return _of_members(value) if isinstance(value, (dict, list)) else _of_scalar(value)


# a plan asks for each of its values many times, and a review reads many plans
@functools.lru_cache(4096, typed=True)
def _of_scalar(value) -> frozenset[frozenset[str]]:
    return _among(value, ("span", "bound", "filesystems"))


def _of_members(value: dict | list) -> frozenset[frozenset[str]]:
    names = _among(value, ("blocks", "hot", "shares"))
    if not names and isinstance(value, list) and value and not any(isinstance(point, list) for point in value):
        names = frozenset(frozenset({*family, "list"}) for family in frozenset.intersection(*map(families, value)))
    return names


def _among(value, others: tuple[str, ...]) -> frozenset[frozenset[str]]:
    kinds = {kind for kind in quantity.EXPECTED if _can_be(quantity.parse, value, kind)}
    kinds |= {kind for kind in others if _can_be(values.read, value, kind)}
    if value in ("edges", "none"):
        kinds.add("smart")
    if value == "never":
        kinds.add("count")  # a number of I/Os ends a load, or "never"
    return frozenset(family for family in FAMILIES if kinds & family)


def _can_be(read: Callable, value, kind: str) -> bool:
    try:
        read(value, kind)
    except ValueError:
        return False
    return True


def read(document: Mapping, where: str) -> dict:
    """The defaults. Raises UsageError for what cannot be a parameter, and for variants that do not fit them."""
    params = dict(document.get("param", {}))
    for name, value in params.items():
        if not NAME.fullmatch(name):
            raise UsageError("parameter names of a-z, 0-9 and _", f"{shown(name)} in {where}", "rename it")
        if value != OPEN and not families(value):
            raise UsageError(
                f"parameter {name} to be a quantity, a window, a mix of blocks, or a list of quantities of one unit",
                f"{name} = {shown(value)} in {where}",
                'write it like "60 s", "4 KiB", 32 or [1, 32]',
            )
    for variant, table in document.get("variant", {}).items():
        try:
            values.name(variant, "each name of a variant")
        except values.Wrong as error:
            raise UsageError(error.expected, f"{error.seen} in {where}", error.do) from error
        for name, value in table.items():
            _fits(params, name, value, f"{where}, variant {variant}")
    return params


def chosen(params: dict, variants: Mapping, variant: str | None, sets: Mapping, where: str) -> dict:
    """The parameters with a variant's put in, then those of --set: words, or the values that a run.json has. Raises
    UsageError."""
    if variant is not None and variant not in variants:
        raise UsageError(f"a variant of {where}", shown(variant), do_you_mean(variant, variants))
    values = params | variants.get(variant, {})
    for name, words in sets.items():
        place = f"--set {shown(name)[1:-1]}={shown(words)[1:-1]}"
        value = of_words(words, place) if isinstance(words, str) else words
        _fits(params, name, value, place)
        values[name] = str(value) if params[name] == OPEN else value
    return values


def of_words(words: str, where: str):
    """A value of the command line: 32, 60 s, or as in the plan: "60 s", ["4 KiB", "8 KiB"], { "4 KiB" = 100 }."""
    if re.fullmatch(r"[0-9]{1,9}", words):
        return int(words)
    if not words.startswith(("[", "{", '"')):
        return words
    try:
        document = tomllib.loads(f"value = {words[:1000]}")
        check(document, where)
    except (ValueError, RecursionError) as error:
        raise UsageError("a value as a plan writes it", where, "quote it for the shell; see schemas/plan.md") from error
    return document["value"]


def _fits(params: dict, name: str, value, where: str) -> None:
    if name not in params:
        raise UsageError("a parameter of the plan", f"{shown(name)[1:-1]} in {where}", do_you_mean(name, params))
    if params[name] == OPEN and isinstance(value, str | int | float):
        return
    if not families(params[name]) & families(value):
        kinds = (kind for family in families(params[name]) for kind in family if kind in quantity.EXPECTED)
        likely = next(filter(None, (quantity.suggest(value, kind) for kind in sorted(kinds))), None)
        raise UsageError(
            f"{name} in the unit of its default, {shown(params[name])}",
            f"{name} = {shown(value)} in {where}",
            f"do you mean {likely}?" if likely else "write it with that unit",
        )
