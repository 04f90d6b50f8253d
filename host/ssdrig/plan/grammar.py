"""A plan: TOML text -> Plan, checked whole before any drive is looked at. schemas/plan.md has the grammar in words.

No expressions, no templates, no conditions: named parameters ($name, for whole values), variants (named sets of
parameters), `over`, `repeat`, `until`, `use`. Pure, except `find`, which reads a file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean
from ssdrig.plan import check, document, headline, params, reader, shows, values
from ssdrig.plan.document import shown
from ssdrig.plan.reader import CAPABILITIES as CAPABILITIES
from ssdrig.plan.step import Step as Step
from ssdrig.plan.step import every as every
from ssdrig.plan.step import label as label
from ssdrig.plan.step import value_text as value_text

SHIPPED = Path(__file__).parent / "plans"
SCHEMA = 1
TOP = (
    *("schema", "name", "title", "source", "about", "headline", "needs", "scaled", "param", "variant", "workload"),
    *("step", "show"),
)


@dataclass(frozen=True)
class Plan:
    """A checked plan. `text` is the file, verbatim; `params`: their values, in the plan's words; `variant`: its
    name; `scaled`: results are marked SCALED; `headline`: its parts (plan/headline.py), () without one."""

    name: str
    title: str
    source: str
    about: str
    needs: tuple[str, ...]
    params: dict
    variant: str | None
    variants: tuple[str, ...]
    scaled: bool
    steps: tuple[Step, ...]
    shows: tuple[dict, ...]
    text: str
    headline: tuple[str, ...] = ()

    @property
    def asks(self) -> frozenset[str]:
        """The abilities that it or any of its steps needs, of CAPABILITIES."""
        return frozenset(need for one in (self, *every(self.steps)) for need in one.needs)


def shipped() -> dict[str, Path]:
    """The plans of ssdrig: name -> file."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.toml"))}


def find(name: str) -> tuple[str, str]:
    """The text of a shipped plan or of a plan file, and what to call it in messages. Raises UsageError."""
    known = shipped()
    if name not in known and not name.endswith(".toml"):
        do = do_you_mean(name, known)
        if do.startswith("use"):
            do = "list them: ./ssdrig plans"
        raise UsageError("the name of a plan, or a plan file (….toml)", shown(name), do)
    path = known.get(name) or Path(name)
    return document.load(path), shown(path.name)[1:-1]


def read(text: str, where: str = "plan", variant: str | None = None, sets: Mapping | None = None) -> Plan:
    """The plan of this text, with the parameters of a variant, then those of `sets` (--set, the values as words) put
    in. Raises UsageError for whatever is wrong with it: expected, seen with the place, do."""
    return of_tables(document.parse(text, where), text, where, variant, sets)


def of_run(header: Mapping, where: str) -> Plan:
    """The plan as a run.json has it: {"text", "variant", "params"}, see read()."""
    plan = read(header["text"], where, header.get("variant"))
    other = {name: value for name, value in (header.get("params") or {}).items() if plan.params.get(name) != value}
    return read(header["text"], where, header.get("variant"), other) if other else plan


def of_tables(tables: Mapping, text: str, where: str, variant: str | None = None, sets: Mapping | None = None) -> Plan:
    """The plan of a parsed text, see read(). All variants are read, too: one that is broken breaks the plan."""
    plan = _one(tables, text, where, variant, sets)
    for other in plan.variants:
        if other != variant:
            chosen = params.chosen(params.read(tables, where), tables["variant"], other, {}, where)
            _steps(tables, chosen, f"{where}, variant {other}")
    return plan


def of_variants(text: str, where: str = "plan") -> dict[str | None, Plan]:
    """The plan without and with each of its variants, see read(); faster than a call each, because every call reads all
    n variants."""
    tables = document.parse(text, where)
    plain = of_tables(tables, text, where)
    return {None: plain} | {name: _one(tables, text, where, name) for name in plain.variants}


def _one(tables: Mapping, text: str, where: str, variant: str | None, sets: Mapping | None = None) -> Plan:
    """The plan with this variant; no other is read."""
    reader.known_keys(tables, TOP, "a plan", where)
    if type(tables.get("schema")) is not int or tables["schema"] != SCHEMA:
        seen = f"schema = {shown(tables.get('schema'))} in {where}"
        raise UsageError(f"schema = {SCHEMA}", seen, f"write schema = {SCHEMA}, or use a newer ssdrig")
    words = _words(tables, where)
    _kinds(tables, where)
    defaults, variants = params.read(tables, where), tables.get("variant", {})
    scaled = _scaled(tables, where)
    chosen = params.chosen(defaults, variants, variant, sets or {}, where)
    plan = Plan(
        **words,
        needs=reader.needs(tables, where),
        params=chosen,
        variant=variant,
        variants=tuple(variants),
        scaled=variant in scaled,
        steps=_steps(tables, chosen, where if variant is None else f"{where}, variant {variant}"),
        shows=tuple(tables.get("show", [])),
        text=text,
        headline=headline.read(tables["headline"], where) if "headline" in tables else (),
    )
    shows.check(plan, where)
    headline.check(plan, where)
    return plan


def _steps(tables: Mapping, chosen: Mapping, where: str) -> tuple[Step, ...]:
    """The steps with these parameters. Raises UsageError, also for a parameter or a workload that none uses."""
    read = reader.Reader(where, chosen, tables.get("workload", {}))
    steps = read.steps(tables.get("step"), "", where)
    if read.unused:
        names = ", ".join(sorted(read.unused))
        raise UsageError("each parameter and workload in use", f"no use of {names} in {where}", "use it or remove it")
    check.plan(steps, where)
    return steps


def _words(tables: Mapping, where: str) -> dict[str, str]:
    try:
        words = {key: values.text(tables.get(key), key) for key in ("name", "title", "source", "about")}
        values.name(words["name"])
    except values.Wrong as error:
        raise UsageError(error.expected, f"{error.seen} in {where}", error.do) from error
    return words


def _kinds(tables: Mapping, where: str) -> None:
    """Tables are tables and lists are lists, before anything is taken out of them."""
    for key in ("param", "variant", "workload"):
        table = tables.get(key, {})
        if not isinstance(table, dict):
            raise UsageError(f"{key} to be a table", f"{key} = {shown(table)} in {where}", f"write [{key}] above it")
        if key != "param":
            for name, inner in table.items():
                if not isinstance(inner, dict):
                    seen = f"{shown(name)[1:-1]} = {shown(inner)} in {where}"
                    raise UsageError(f"each {key} to be a table", seen, f"write [{key}.NAME] above its keys")
    for key in ("step", "show"):
        value = tables.get(key, [])
        if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
            seen = f"{key} = {shown(value)} in {where}"
            raise UsageError(f"{key} to be a list of tables", seen, f"write [[{key}]] above each")


def _scaled(tables: Mapping, where: str) -> list[str]:
    """The variants whose results are marked SCALED."""
    names = tables.get("scaled", [])
    if not isinstance(names, list):
        raise UsageError("scaled to be a list of variants", f"scaled = {shown(names)} in {where}", "write a list")
    try:
        return [values.one_of(name, tables.get("variant", {}), "each of scaled") for name in names]
    except values.Wrong as error:
        raise UsageError(error.expected, f"{error.seen} in {where}", error.do) from error
