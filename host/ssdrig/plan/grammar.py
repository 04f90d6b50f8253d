"""A plan: TOML text -> Plan, checked whole before any drive is looked at. schemas/plan.md has the grammar in words.

No expressions, no templates, no conditions: named parameters ($name, for whole values), variants (named sets of
parameters), `over`, `repeat`, `until`, `use`. Pure, but for `find`, which reads a file.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ssdrig import steps
from ssdrig.errors import UsageError
from ssdrig.plan import quantity, shows, values

SHIPPED = Path(__file__).parent / "plans"
SCHEMA = 1
TOP = ("schema", "name", "title", "source", "about", "needs", "scaled", "param", "variant", "workload", "step", "show")
# what a plan may ask of the bench; what lacks it does not run, with the reason
CAPABILITIES = ("purge", "trim", "write-cache", "rig", "nand-counter")
STEP_KEYS = ("name", "do", "use", "needs", "optional", "step")
MOST_BYTES = 1 << 20  # of a file that a person wrote
NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


@dataclass(frozen=True)
class Step:
    """One step as it stands in the plan, parameters put in. `keys`: what the kind may say, read (plan/values.py), each
    default filled in; `said`: the values in the plan's own words, for people and for points."""

    name: str
    path: str
    do: str
    keys: dict
    said: dict
    needs: tuple[str, ...] = ()
    optional: bool = False
    steps: tuple["Step", ...] = ()


@dataclass(frozen=True)
class Plan:
    """A checked plan. `text` is the file, verbatim; `params` what was put in, in the plan's words; `variant` which of
    the variants that was; `scaled`: results say SCALED."""

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


def shipped() -> dict[str, Path]:
    """The plans of ssdrig: name -> file."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.toml"))}


def find(name: str) -> tuple[str, str]:
    """The text of a shipped plan or of a plan file, and what to call it in messages. Raises UsageError."""
    known = shipped()
    path = known.get(name) or Path(name)
    if name not in known and not name.endswith(".toml"):
        near = difflib.get_close_matches(name, known, 1)
        do = f"do you mean {near[0]}?" if near else "list them: ./ssdrig plans; or name a file that ends in .toml"
        raise UsageError(f"one of the plans {', '.join(known)}, or a plan file", repr(name), do)
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ValueError(f"more than {MOST_BYTES >> 20} MiB")
        return data.decode(), path.name
    except (OSError, ValueError) as error:
        raise UsageError(f"a plan file {path} that can be read", str(error), "name another file") from error


def read(text: str, where: str = "plan", variant: str | None = None, sets: Mapping[str, str] | None = None) -> Plan:
    """The plan of this text, with the parameters of a variant, then those of `sets` (--set, the values as words) put
    in. Raises UsageError for whatever is wrong with it: expected, seen with the place, do."""
    try:
        document = tomllib.loads(text.replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError("TOML", f"{error} in {where}", "correct it; see schemas/plan.md") from error
    _known(document, TOP, "a plan", where)
    if document.get("schema") != SCHEMA or isinstance(document["schema"], bool):
        raise UsageError(f"schema = {SCHEMA}", f"{document.get('schema')!r} in {where}", "see schemas/plan.md")
    words = {key: _text(document, key, where) for key in ("name", "title", "source", "about")}
    if not NAME.fullmatch(words["name"]):
        raise UsageError("a name of a-z, 0-9 and -", f"{words['name']!r} in {where}", "rename the plan")
    _kinds(document, where)
    params, scaled = _params(document, where, variant, sets or {})
    reader = _Reader(where, params, document.get("workload", {}))
    found = reader.steps(document.get("step"), "", where)
    if reader.unused:
        raise UsageError(
            f"each parameter used, as ${min(reader.unused)}",
            f"no {', '.join('$' + name for name in sorted(reader.unused))} in {where}",
            "use it or leave it out",
        )
    plan = Plan(
        **words,
        needs=_needs(document, where),
        params=params,
        variant=variant,
        variants=tuple(document.get("variant", {})),
        scaled=scaled,
        steps=found,
        shows=tuple(document.get("show", [])),
        text=text,
    )
    shows.check(plan, where)
    return plan


def every(found: Iterable[Step]) -> Iterable[Step]:
    """The steps and those inside of them, in the order of the plan."""
    for step in found:
        yield step
        yield from every(step.steps)


def do_you_mean(word: str, known: Iterable[str]) -> str:
    """ "do you mean 'pattern'?", or what there is."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, 1)
    return f"do you mean {near[0]!r}?" if near else f"use one of {', '.join(names)}"


def _known(table: Mapping, known: Iterable[str], of: str, where: str) -> None:
    for key in table:
        if key not in known:
            raise UsageError(f"a key of {of}", f"{key!r} in {where}", do_you_mean(key, known))


def _text(document: dict, key: str, where: str) -> str:
    try:
        return values.text(document.get(key))
    except ValueError as error:
        raise UsageError(f"{key} = {error}", f"{document.get(key)!r} in {where}", "say it in one sentence") from error


def _needs(table: dict, where: str) -> tuple[str, ...]:
    needs = table.get("needs", [])
    if not isinstance(needs, list) or not all(isinstance(word, str) for word in needs):
        raise UsageError('needs as a list such as ["purge"]', f"{needs!r} in {where}", "write a list")
    for word in needs:
        if word not in CAPABILITIES:
            raise UsageError("something that a bench can have", f"{word!r} in {where}", do_you_mean(word, CAPABILITIES))
    return tuple(needs)


def _kinds(document: dict, where: str) -> None:
    """Tables are tables and lists are lists, before anything is taken out of them."""
    for key in ("param", "variant", "workload"):
        table = document.get(key, {})
        if not isinstance(table, dict) or (key != "param" and not all(isinstance(v, dict) for v in table.values())):
            raise UsageError(f"{key} as a table", f"{table!r} in {where}", f"write [{key}…] above it")
    for key in ("step", "show"):
        tables = document.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(v, dict) for v in tables):
            raise UsageError(f"{key} as a list of tables", f"{tables!r} in {where}", f"write [[{key}]] above each")
    scaled = document.get("scaled", [])
    if not isinstance(scaled, list) or not all(name in document.get("variant", {}) for name in scaled):
        raise UsageError("scaled as a list of variants", f"{scaled!r} in {where}", "name variants of this plan")


def _params(document: dict, where: str, variant: str | None, sets: Mapping[str, str]) -> tuple[dict, bool]:
    """The parameters' values in the plan's words, and whether the variant's results are SCALED."""
    params = dict(document.get("param", {}))
    for name, value in params.items():
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise UsageError("a parameter name of a-z, 0-9 and _", f"{name!r} in {where}", "rename it")
        if values.kind_of(value) is None and not isinstance(value, dict):
            raise UsageError("a parameter with a unit, or a count", f"{name} = {value!r} in {where}", 'e.g. "60 s"')
    variants = document.get("variant", {})
    if variant is not None and variant not in variants:
        raise UsageError(f"a variant of {where}", repr(variant), do_you_mean(variant, variants))
    for name, table in variants.items():
        for key, value in table.items():
            _fits(params, key, value, f"{where}, variant {name}")
    chosen = params | variants.get(variant, {})
    for key, words in sets.items():
        value = quantity.from_words(words)
        _fits(params, key, value, f"--set {key}={words}")
        chosen[key] = value
    return chosen, variant in document.get("scaled", [])


def _fits(params: dict, key: str, value, where: str) -> None:
    if key not in params:
        raise UsageError("a parameter of the plan", f"{key!r} in {where}", do_you_mean(key, params))
    table = isinstance(value, dict) and not isinstance(params[key], int)  # a mix of blocks for a block
    if not table and not values.same_unit(params[key], value):
        raise UsageError(f"{key} in the unit of {params[key]!r}", f"{value!r} in {where}", "write it with that unit")


class _Reader:
    """Reads the steps of one plan. `unused`: parameters that no step has named so far."""

    def __init__(self, where: str, params: dict, workloads: dict):
        self.where, self.params, self.workloads = where, params, workloads
        self.unused = set(params)

    def steps(self, tables, above: str, where: str) -> tuple[Step, ...]:
        if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
            raise UsageError("at least one [[step]]", f"none in {where}", "add a step")
        found: list[Step] = []
        for number, table in enumerate(tables, 1):
            step = self.step(table, above, f"{where}, step {number}")
            if step.name in (other.name for other in found):
                raise UsageError("each name once", f"{step.name!r} again in {where}", "rename one of the steps")
            found.append(step)
        return tuple(found)

    def step(self, table: dict, above: str, where: str) -> Step:
        name = table.get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise UsageError("a step with a name of a-z, 0-9 and -", f"{name!r} in {where}", 'add name = "…"')
        path = f"{above}/{name}" if above else name
        where = f"{self.where}, step {path}"
        table = self._with_workload(table, where)
        do = table.get("do")
        if do in steps.LATER:
            raise UsageError(
                f"steps that this ssdrig can do ({', '.join(steps.KINDS)})",
                f"{do!r} in {where}",
                f"leave it out: {do} comes with {steps.LATER[do]}",
            )
        if do not in steps.KINDS:
            raise UsageError("a kind of step", f"do = {do!r} in {where}", do_you_mean(str(do), steps.KINDS))
        kind = steps.KINDS[do]
        allowed = [key for key in STEP_KEYS if key != "step" or do == "repeat"]
        _known(table, (*kind.KEYS, *allowed), f"a step that does {do}", where)
        said = {key: self._put_in(table[key], where) for key in kind.KEYS if key in table}
        keys = self._keys(kind, said, where)
        inner: tuple[Step, ...] = ()
        if do == "repeat":
            if above:
                raise UsageError("repeat on the first level", f"one inside of another in {where}", "take it out")
            inner = self.steps(table.get("step"), path, where)
        optional = table.get("optional", False)
        if not isinstance(optional, bool):
            raise UsageError("optional = true", f"{optional!r} in {where}", "write true or leave it out")
        step = Step(name, path, do, keys, said, _needs(table, where), optional, inner)
        _check(step, where)
        return step

    def _with_workload(self, table: dict, where: str) -> dict:
        """`use` names a workload; the step's own keys win."""
        if "use" not in table:
            return table
        if table["use"] not in self.workloads:
            words = do_you_mean(str(table["use"]), self.workloads)
            raise UsageError("a workload of the plan", f"use = {table['use']!r} in {where}", words)
        return {**self.workloads[table["use"]], **table}

    def _put_in(self, value, where: str):
        """$name is replaced by the parameter, also inside lists and tables; it is a whole value, never part of one."""
        if isinstance(value, list):
            return [self._put_in(entry, where) for entry in value]
        if isinstance(value, dict):
            return {key: self._put_in(entry, where) for key, entry in value.items()}
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        name = value[1:]
        if name not in self.params:
            words = do_you_mean(name, self.params)
            raise UsageError("a parameter of the plan", f"{value!r} in {where}", words)
        self.unused.discard(name)
        return self.params[name]

    def _keys(self, kind, said: dict, where: str) -> dict:
        """Each key of the kind, read; what is left out has its default, or is not there."""
        swept = {key for axis in said.get("over", []) if isinstance(axis, dict) for key in axis}
        found = {}
        for key, spec in kind.KEYS.items():
            value = said.get(key, spec.default)
            if value is None:
                if spec.required and key not in swept:
                    raise UsageError(f"{key} in a step like this", f"none in {where}", f"add {key} = …")
                continue
            try:
                found[key] = values.read(value, spec.kind)
            except ValueError as error:
                raise UsageError(f"{key} as {error}", f"{value!r} in {where}", "correct it") from error
            if spec.words and value not in spec.words:
                raise UsageError(
                    f"{key} to be one of {', '.join(spec.words)}",
                    f"{value!r} in {where}",
                    do_you_mean(str(value), spec.words),
                )
        return found


def _check(step: Step, where: str) -> None:
    """What a single key cannot show: exactly one end, points that fit, rules where they can hold."""
    kind = steps.KINDS[step.do]
    ends = [key for key in getattr(kind, "ENDS", ()) if key in step.keys]
    swept = {key for axis in step.said.get("over", []) for key in axis}
    if hasattr(kind, "ENDS") and step.do != "set" and len(ends) + len(swept & set(kind.ENDS)) != 1:
        raise UsageError(
            f"exactly one of {', '.join(kind.ENDS)}", f"{' and '.join(ends) or 'none'} in {where}", "say how it ends"
        )
    if step.do == "set" and not ends:
        raise UsageError(f"at least one of {', '.join(kind.ENDS)}", f"none in {where}", "say what to set")
    rules = [entry for entry in step.keys.get("until", []) if not isinstance(entry, str) and entry.rule]
    if step.do == "repeat":
        _check_repeat(step, rules, where)
    elif any(entry.track for entry in rules):
        raise UsageError("track in a repeat", f"track in {where}", "a load has value instead")
    if step.do == "load":
        _check_load(step, swept, where)
    if step.do == "idle" and ("most" in step.keys) != ("until" in step.keys):
        raise UsageError('most beside until = "quiet"', f"{' and '.join(ends)} in {where}", "add or leave out most")


def _check_repeat(step: Step, rules: list[values.Until], where: str) -> None:
    if ("most" in step.keys) != ("until" in step.keys):
        raise UsageError(
            "most beside until",
            f"{'most' if 'most' in step.keys else 'until'} alone in {where}",
            "say how many rounds there are at most",
        )
    for entry in step.keys.get("until", []):
        if entry.written or entry.time_s or entry.cliff:
            raise UsageError("a repeat that ends by a rule", f"another end in {where}", "use steady with track")
    inner = {axis for child in step.steps for table in child.said.get("over", []) for axis in table}
    for words in (words for rule in rules for words in rule.track):
        value, *points = words.split()
        for point in points:
            key, _, wanted = point.partition("=")
            if key not in inner:
                raise UsageError("a point of this repeat", f"{point!r} of track in {where}", do_you_mean(key, inner))
            known = [told(v) for child in step.steps for t in child.said.get("over", []) for v in t.get(key, [])]
            if wanted not in known:
                raise UsageError(
                    f"{key} to be one of {', '.join(known)}",
                    f"{point!r} of track in {where}",
                    do_you_mean(wanted, known),
                )
        if value not in shows.VALUES:
            raise UsageError("a value to track", f"{value!r} in {where}", do_you_mean(value, shows.VALUES))
    for axis in step.keys.get("over", []):
        for key in axis:
            if key != "at" and not any(key in steps.KINDS[child.do].KEYS for child in step.steps):
                raise UsageError("a key of a step inside", f"over {key!r} in {where}", "name a key that they have")


def _check_load(step: Step, swept: set[str], where: str) -> None:
    kind = steps.KINDS["load"]
    for axis in step.said.get("over", []):
        for key, points in axis.items():
            if key not in kind.KEYS or key in ("over", "until", "windows", "judge", "resume"):
                raise UsageError("a key of a load", f"over {key!r} in {where}", do_you_mean(key, kind.KEYS))
            for point in points:
                try:
                    values.read(point, kind.KEYS[key].kind)
                except ValueError as error:
                    raise UsageError(f"{key} as {error}", f"{point!r} in {where}", "correct it") from error
    if ("on" in step.keys) != ("cycles" in step.keys) and "on" not in swept:
        raise UsageError("on and cycles together", f"one of them in {where}", "say both: on = …, off = …, cycles = …")
    if "off" in step.keys and not {"on"} & (set(step.keys) | swept):
        raise UsageError("on beside off", f"off alone in {where}", "say how long the bursts are")
    window = step.keys.get("judge", {}).get("window")
    if window is not None and window not in step.keys.get("windows", {}):
        try:
            values.span(window)
        except ValueError as error:
            known = step.keys.get("windows", {})
            raise UsageError(
                f"a window of the step, or {error}", f"{window!r} in {where}", do_you_mean(window, known)
            ) from error


def told(value) -> str:
    """A value of a point in one word: "4KiB", "65"."""
    return str(value).replace(" ", "")
