"""The [[step]] tables of a plan -> Steps: workloads and parameters put in, every key read. Pure."""

from collections.abc import Iterable, Mapping

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean
from ssdrig.plan import check, values
from ssdrig.plan import kinds as steps
from ssdrig.plan.document import shown
from ssdrig.plan.step import Step

# what a plan may ask of the bench; what lacks it does not run, with the reason
CAPABILITIES = (
    *("purge", "trim", "write-cache", "rig", "nand-counter", "fua", "player"),
    *("power-states", "apst", "alpm", "aspm", "cut", "zoned", "hmb", "fdp", "polled"),
)
STEP_KEYS = ("name", "do", "use", "needs", "optional", "step")


def known_keys(table: Mapping, known: Iterable[str], of: str, where: str) -> None:
    """Raises UsageError for a key that is not known."""
    for key in table:
        if key not in known:
            raise UsageError(f"a key of {of}", f"{shown(key)[1:-1]} in {where}", do_you_mean(key, known))


def needs(table: Mapping, where: str) -> tuple[str, ...]:
    """What the bench must have. Raises UsageError."""
    needs = table.get("needs", [])
    if not isinstance(needs, list):
        raise UsageError("needs to be a list", f"needs = {shown(needs)} in {where}", 'write it like needs = ["purge"]')
    try:
        return tuple(values.one_of(word, CAPABILITIES, "each of needs") for word in needs)
    except values.Wrong as error:
        raise UsageError(error.expected, f"{error.seen} in {where}", error.do) from error


class Reader:
    """Reads the steps of one plan. `unused`: what no step has named so far, parameters as "$name"."""

    def __init__(self, where: str, params: Mapping, workloads: Mapping):
        self.where, self.params, self.workloads = where, params, workloads
        self.unused = {f"${name}" for name in params} | {f"workload {name}" for name in workloads}
        self.swept: dict[str, Mapping] = {}  # {path of a load: its axes}
        self.picked: Mapping = {}  # the keys that the latest choose step's points set
        for name, table in workloads.items():
            self._workload(table, f"{where}, workload {name}")

    def steps(self, tables, above: str, where: str, outer: Mapping | None = None) -> tuple[Step, ...]:
        """The steps of these tables. `above`: the path of the repeat that they stand in; `outer`: what that sweeps."""
        if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
            below = "[[step.step]]" if above else "[[step]]"
            raise UsageError(f"at least one {below}", f"{shown(tables)} in {where}", f"write {below} above each step")
        steps: list[Step] = []
        for number, table in enumerate(tables, 1):
            step = self._step(table, above, f"{where}, step {number}", outer or {})
            if step.name in (other.name for other in steps):
                raise UsageError("each name of a step once", f"{step.name} again in {where}", "rename one of the steps")
            steps.append(step)
        return tuple(steps)

    def _workload(self, table: Mapping, where: str) -> None:
        """Check a workload: the common keys of the steps that use it; without `use`, and without steps."""
        if "use" in table:
            raise UsageError("workloads that use no other", f"`use` in {where}", "write its keys there, too")
        do = table.get("do")
        kinds = [steps.KINDS[do]] if isinstance(do, str) and do in steps.KINDS else steps.KINDS.values()
        known = {key for kind in kinds for key in kind.KEYS} | {"do", "needs", "optional"}
        known_keys(table, known, "a workload", where)

    def _step(self, table: Mapping, above: str, where: str, outer: Mapping) -> Step:
        try:
            name = values.name(table.get("name"))
        except values.Wrong as error:
            raise UsageError(error.expected, f"{error.seen} in {where}", error.do) from error
        path = f"{above}/{name}" if above else name
        where = f"{self.where}, step {path}"
        table = self._with_workload(table, where)
        do = table.get("do")
        try:
            kind = steps.KINDS[values.one_of(do, steps.KINDS, "do")]
            known_keys(
                table, (*kind.KEYS, *(k for k in STEP_KEYS if k != "step" or do == "repeat")), f"a {do} step", where
            )
            given = {key: self._put_in(table[key], where) for key in kind.KEYS if key in table}
            keys = self._keys(kind, given, outer)
        except values.Wrong as error:
            raise UsageError(error.expected, f"{error.seen} in {where}", error.do) from error
        inner: tuple[Step, ...] = ()
        if do == "repeat":
            if above:
                raise UsageError(
                    "repeat on the first level", f"one inside another in {where}", "move it to the first level"
                )
            swept = {key: points for axis in given.get("over", []) for key, points in axis.items()}
            swept = {**(self.picked if "at" in swept else {}), **swept}
            inner = self.steps(table.get("step"), path, where, swept)
        optional = table.get("optional", False)
        if not isinstance(optional, bool):
            raise UsageError("optional to be true or false", f"optional = {shown(optional)} in {where}", "correct it")
        needed = [key.needs for name, key in kind.KEYS.items() if key.needs and (name in given or name in outer)]
        needed += [*getattr(kind, "NEEDS", ()), *needs(table, where)]
        step = Step(name, path, str(do), keys, given, tuple(sorted(set(needed))), optional, inner)
        check.step(step, where, outer)
        self.swept[path] = {**{key: points for key, points in outer.items() if key in kind.KEYS}, **step.axes}
        if do == "choose":
            self.picked = self.swept.get(keys["from"], {})
        return step

    def _with_workload(self, table: Mapping, where: str) -> Mapping:
        """`use` names a workload; the step's own keys win."""
        if "use" not in table:
            return table
        name = table["use"]
        if not isinstance(name, str) or name not in self.workloads:
            do = do_you_mean(name if isinstance(name, str) else shown(name), self.workloads)
            raise UsageError("a workload of the plan", f"use = {shown(name)} in {where}", do)
        self.unused.discard(f"workload {name}")
        return {**self.workloads[name], **table}

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
            raise UsageError("a parameter of the plan", f"{shown(value)} in {where}", do_you_mean(name, self.params))
        self.unused.discard(value)
        return self.params[name]

    def _keys(self, kind, given: Mapping, outer: Mapping) -> dict:
        """Each key of the kind, read; a missing key has its default, or is absent. Raises values.Wrong."""
        over = values.over(given["over"], "over") if "over" in given else []
        swept = {*outer, *(key for axis in over for key in axis)}
        read = {}
        for key, spec in kind.KEYS.items():
            value = given.get(key, spec.default)
            if value is not None:
                read[key] = check.key_value(value, spec, key)
            elif spec.required and key not in swept:
                raise values.Wrong(
                    f"`{key}` in a {kind.__name__.rpartition('.')[2]} step", f"no {key}", f"add {key} = …"
                )
        return read
