"""What a run will do, before anything is touched: the plan with its parameters, expanded on this drive, proven and
priced."""

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ssdrig.base import overprovisioning, uring, words
from ssdrig.base.errors import UsageError
from ssdrig.base.terminal import printable
from ssdrig.load.fiojob import Job, job_file
from ssdrig.plan import cost, expand, grammar, history, kinds, state
from ssdrig.plan.expand import Act
from ssdrig.plan.rules import choose, ends
from ssdrig.plan.rules.laid import NOTHING, Laid
from ssdrig.run import earlier, pairing
from ssdrig.run.budget import Budget

VIRTUAL = frozenset({"purge", "trim", "nand-counter", "rig", "player", "cut"})  # what the virtual bench can do
REAL = frozenset({"purge", "trim", "fua"})
SET = {"NVMe": frozenset({"power-states", "apst"}), "SATA": frozenset({"alpm"})}  # what of a virtual drive can be set


@dataclass(frozen=True)
class Prepared:
    """A plan for one drive. `acts`: see plan/expand.py; `seed`: of the first fio job; `cost`: of all, in drive time;
    `leaves`: the state of the drive after it; `earlier`: what acts took in an earlier run of this plan on this
    model; `seen`: what points showed before the run was cut short that goes on;
    `can`: what the bench can do, of grammar.CAPABILITIES; `jobs_crc`: see jobs_crc(); `predecessor`: see leave_out();
    `laid`: bytes written to the drive before, if known; `sync`: marks are made at both ends."""

    plan: grammar.Plan
    acts: tuple[Act, ...]
    seed: int
    cost: cost.Cost
    leaves: state.State
    earlier: Mapping[str, tuple[float, float]]
    drive: Mapping
    seen: choose.Seen = field(default_factory=dict)
    can: frozenset[str] = frozenset()
    jobs_crc: str | None = None
    predecessor: Mapping | None = None
    laid: Laid = NOTHING
    sync: bool = False

    @property
    def main(self) -> Act | None:
        """The main load, which a run's figures describe: the last one that is not a point of a repeat."""
        loads = [act for act in self.acts if act.do == "load" and not act.not_run and not act.repeat]
        return loads[-1] if loads else None


def prepare(
    name: str,
    drive: Mapping,
    variant: str | None = None,
    sets: Mapping[str, str] | None = None,
    seed: int = 4242,
    capabilities: frozenset[str] = VIRTUAL,
    runs: str | Path | None = None,
    finish: str = "keep",
    exact: bool = True,
) -> Prepared:
    """The plan `name` (shipped, or a file) on a drive: its part of run.json. `runs`: where earlier runs lie; `finish`:
    "keep", or "trim" or "purge", done last; `exact`: the rows of traces are looked at. Raises UsageError for a plan
    that is wrong, or that does not fit the drive."""
    text, where = grammar.find(name)
    plan = grammar.read(text, where, variant, sets)
    acts = measured(expand.expand(plan, drive, capabilities), drive, exact)
    if finish != "keep":
        if any(act.path == "finish" for act in acts):
            raise UsageError(
                "no step named finish together with --finish", f"one in {where}", "rename it, or leave --finish out"
            )
        acts += (last_act(finish, drive),)
    leaves = state.prove(acts)
    for act in acts:
        for choice in act.choices or (act,) if act.do == "load" else ():
            _windows_fit(choice)
    known = earlier.speeds(runs, plan, drive) if runs else {}
    prepared = Prepared(plan, acts, seed, cost.total(acts, drive, known), leaves, known, drive, can=capabilities)
    return replace(prepared, jobs_crc=jobs_crc(prepared))  # what fio would misread or refuse is stated now


def of_virtual(preset: str) -> frozenset[str]:
    """What the virtual bench can do with a drive of this preset, of grammar.CAPABILITIES."""
    from ssdrig.virtual.flash.presets import PRESETS

    known = PRESETS.get(preset)
    if known is None:
        raise UsageError(
            "a SIMULATED drive of this ssdrig", repr(printable(preset))[:80], "see ./ssdrig virtual --list-presets"
        )
    return VIRTUAL | (SET[known.interface] if known.power_states else frozenset())


def leave_out(prepared: Prepared, count: int, by: str, laid: Laid = NOTHING) -> Prepared:
    """The same without its first `count` acts: the drive is in the state that they make (plan/history.py), left by the
    run `by`, which had written `laid`. Conditions are set all the same. `kept` of run.json states so: {"acts",
    "state", "by"}."""
    if not count:
        return prepared
    acts = prepared.acts
    drive_state = state.course(acts)[count]
    why = f"the drive is {drive_state.name}{', steady' if drive_state.steady else ''}, as {by} has left it"
    first = tuple(act if act.do in history.STAYS or act.not_run else replace(act, not_run=why) for act in acts[:count])
    rest = (*first, *acts[count:])
    return replace(
        prepared,
        acts=rest,
        cost=cost.total(rest, prepared.drive, prepared.earlier),
        leaves=state.prove(rest, drive_state),
        predecessor={"acts": count, "state": asdict(drive_state), "by": by},
        laid=laid,
    )


def measured(acts: Iterable[Act], drive: Mapping, exact: bool = True) -> tuple[Act, ...]:
    """The acts with what the traces of replays will do. Raises UsageError."""
    return tuple(kinds.KINDS["replay"].measured(act, drive, exact) for act in acts)


def last_act(do: str, drive: Mapping) -> Act:
    """What --finish adds to a plan: "trim" or "purge", of the whole drive."""
    whole = overprovisioning.whole_MiB(drive["capacity_bytes"])
    return Act("finish", do, {"method": "auto"} if do == "purge" else {}, range_bytes=whole)


def header(prepared: Prepared) -> dict:
    """The parts of run.json with the plan: "plan", and "method" with the figures of the main load."""
    plan, finish = prepared.plan, prepared.acts[-1]
    document = {
        "name": plan.name,
        "variant": plan.variant,
        "scaled": plan.scaled,
        "params": plan.params,
        "text": plan.text,
        "acts": [act.label for act in prepared.acts],
        "can": sorted(prepared.can),
        "jobs_crc": prepared.jobs_crc,
        "kept": prepared.predecessor,
        "finish": finish.do if finish.path == "finish" != plan.steps[-1].path else "keep",
    }
    return {"plan": document, "method": method(prepared)}


def method(prepared: Prepared) -> dict:
    """The main load in figures: {"name", "seed", "tested_bytes", "op_percent", "duration_s", …}; what a plan has no
    figure for is None."""
    main, drive = prepared.main, prepared.drive
    fill = next((act for act in prepared.acts if act.do == "fill"), None)
    plan: dict = {"name": prepared.plan.name, "seed": prepared.seed, "tested_bytes": None, "op_percent": None}
    if main is None:
        return plan
    keys, raw = main.keys, drive.get("raw_nand_bytes")
    longest_s = kinds.KINDS["load"].longest_s(main)
    spans = keys.get("windows", {})
    steady = spans.get("steady")
    part = keys["range"]
    if part.raw:
        plan["op_percent"] = round(100 - part.percent, 6)
    elif part.percent != 100 and raw:
        plan["op_percent"] = round(100 * (1 - main.range_bytes / raw), 1)
    settle = next((act for act in prepared.acts if act.do == "settle"), None)
    idle = next((act for act in prepared.acts if act.do == "idle"), None)
    return plan | {
        "tested_bytes": main.range_bytes,
        "duration_s": round(longest_s) if longest_s else None,
        "zoom_s": round(ends.begins_s(steady, longest_s)) if steady and longest_s else 0,
        "smart_interval_s": round(keys["smart"]) if isinstance(keys["smart"], float) else None,
        "settle": bool(settle and not settle.not_run),
        "idle_s": round(idle.keys.get("time", 0)) if idle and not idle.not_run else 0,
        "read_percent": keys["read"],
        "block_bytes": min(size for size, _ in keys["block"]),
        "queue_depth": keys["qd"] * keys["threads"],
        "threads": keys["threads"],
        "fill_block_bytes": fill.keys["block"] if fill else None,
    }


def budget(text: str | None, prepared: Prepared, rated_bytes: float | None) -> Budget:
    """--budget; raises UsageError where not even the first writes fit."""
    from ssdrig.run import budget as budgets

    budget = budgets.parse(text, rated_bytes) if text is not None else Budget(None)
    fits(budget, prepared.acts, str(text))
    return budget


def fits(budget: Budget, acts: Iterable[Act], text: str) -> None:
    """Raises UsageError if the rest of a budget is too small for the first writes."""
    first = next((act for act in acts if act.do in expand.MAY_WRITE and not act.not_run), None)
    if first and budget.why_not(first):
        least_bytes = budget.written_bytes + (first.keys.get("slice_bytes") or first.amount_bytes or 1)
        raise UsageError(f"a budget of at least {words.size(least_bytes)}, for {first.path}", text, "allow more")


def jobs(prepared: Prepared, target: str) -> list[tuple[Act, Job]]:
    """Each act with its fio job, one at an operating point with each that it may be; rounds but the first left out: for
    a look at fio's job."""
    loads, seed = [], prepared.seed
    for act in prepared.acts:
        if act.not_run or act.do not in expand.WRITES:
            continue
        more = (prepared.drive["interface"],) if act.do == "load" else ()
        for choice in act.choices or (act,):
            loads.append(
                (choice, kinds.KINDS[act.do].job(choice, target, seed, prepared.drive["time_dilation"], *more))
            )
        seed += 1
    return loads


def jobs_crc(prepared: Prepared) -> str:
    """CRC-32 of all its fio job files and of the traces that it plays, in hexadecimal. Raises UsageError for one that
    fio would misread or refuse."""
    crc, target = 0, "nbd://checked" if prepared.drive["interface"] == "nbd" else "checked"  # of NBD no host's engine
    for act, job in jobs(prepared, target):
        if job.engine == "io_uring" and target == "checked" and not uring.allowed():
            raise UsageError(f"io_uring for {act.path}", uring.FORBIDDEN, 'allow it, or engine = "libaio" in the plan')
        crc = zlib.crc32(job_file(job).encode(), crc)
    for act in prepared.acts:
        if act.trace:
            how = kinds.KINDS["replay"].how(act.keys, prepared.drive["time_dilation"])
            crc = zlib.crc32(f"{act.trace.sha256} {how}".encode(), crc)
    return f"{crc:08x}"


def warnings(drive: Mapping) -> list[str]:
    """What makes the figures of this drive worse, known before anything starts."""
    slow = words.slow_link(drive.get("link") or "")
    return [slow] if slow else []


def as_json(prepared: Prepared) -> dict:
    """What a dry run prints: the plan, each act with its range of time and bytes, and the whole."""
    k, acts = prepared.drive["time_dilation"], []
    for act in prepared.acts:
        price = cost.of(act, prepared.drive, prepared.earlier)
        row = {"path": act.path, "do": act.do, "point": dict(act.point), "range_bytes": act.range_bytes}
        row |= {
            "host_s": [round(s * k, 1) for s in price.time_s],
            "written_bytes": [round(b) for b in price.written_bytes],
        }
        row |= {"rounds": [act.repeat.least, act.repeat.most] if act.repeat else None, "not_run": act.not_run}
        if act.choices:
            row["choices"] = [dict(choice.point if act.do == "choose" else choice.chosen) for choice in act.choices]
        acts.append(row)
    whole = prepared.cost
    fill = next((act for act in prepared.acts if act.do == "fill"), None)
    return {
        "dry_run": True,
        "warnings": warnings(prepared.drive),
        "plan": {"name": prepared.plan.name, "variant": prepared.plan.variant, "params": prepared.plan.params},
        "scaled": prepared.plan.scaled,
        "method": method(prepared),
        "drive": dict(prepared.drive),
        "acts": acts,
        "pairing": pairing.as_json(prepared.acts, prepared.drive["capacity_bytes"], "rig" in prepared.can),
        "jobs": list(whole.jobs),
        "fill_bytes": fill.amount_bytes if fill else 0,
        "host_s": [round(s * k) for s in whole.time_s],
        "written_bytes": [round(b) for b in whole.written_bytes],
        "most_bytes": round(whole.most_bytes),
        "log_bytes": [round(b) for b in whole.log_bytes],
        "leaves": prepared.leaves.words(),
    }


def _windows_fit(act: Act) -> None:
    """Raises UsageError for a window that does not lie within its load."""
    longest_s = kinds.KINDS["load"].longest_s(act)
    if longest_s is None:
        return
    if longest_s < 1:
        raise UsageError("a load of at least 1 s", f"{longest_s:g} s of {act.path}", "allow more time")
    for name, span in act.keys.get("windows", {}).items():
        begin = ends.begins_s(span, longest_s)
        end = longest_s if span.to_s is None else span.to_s
        if not (0 <= begin <= end - 2 and end <= longest_s):
            raise UsageError(
                f"a window {name} of at least 2 s within the {longest_s:g} s of {act.path}",
                f"{begin:g} s to {end:g} s",
                "correct the window (--steady-from), or allow more time",
            )


def dumps(prepared: Prepared) -> str:
    """as_json as one line."""
    return json.dumps(as_json(prepared), default=str)
