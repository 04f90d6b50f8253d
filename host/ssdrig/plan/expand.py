"""Plan + drive -> the flat list of acts: one Act for each step and each of its points. A dry run prices this list, the
engine runs it, progress counts it, resume compares it and the analysis reads it. Pure.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ssdrig.base import words
from ssdrig.base.errors import UsageError
from ssdrig.base.overprovisioning import MIB, own_percent, whole_MiB
from ssdrig.plan import grammar, kinds, quantity, values
from ssdrig.plan.step import taken

if TYPE_CHECKING:
    from ssdrig.load.trace_facts import Facts

LEAST_BYTES = 16 * MIB
HOST_MANAGED = "host-managed"  # of a drive's `zoned`; one that is "host-aware" takes any write
WRITES = ("fill", "load", "wear")  # kinds of step with jobs of fio
ERASES = ("purge", "trim", "reset")
MAY_WRITE = (*WRITES, "replay", "cuts", "retain")
STEADY_ROUNDS = 5  # the rule's window
MOST_THREADS = 1024  # fio 3.33 takes 4096 jobs
MOST_IN_FLIGHT = 1 << 16  # an NVMe queue, and what Linux lets all of AIO have (fs.aio-max-nr)
MOST_BUFFERS = 1 << 30  # bytes; fio fills a block for each I/O in flight


class TooSmall(UsageError):
    """A range of less than LEAST_BYTES."""


class Lacking(UsageError):
    """What the bench lacks for a plan. `needs`: of grammar.CAPABILITIES."""

    needs: tuple[str, ...] = ()


def _lacking(expected: str, needs: Iterable[str], do: str) -> Lacking:
    error = Lacking(expected, f"none of {', '.join(needs)} here", do)
    error.needs = tuple(needs)
    return error


@dataclass(frozen=True)
class Repeat:
    """A repeat: its acts run `least` to `most` times, `until` a rule holds. `first`: the number of its
    first round, above 1 in a run that was resumed; `judged`: of the first that the rule uses, those before it
    precondition the drive."""

    path: str
    least: int
    most: int
    until: tuple[values.Until, ...]
    resume: str
    first: int = 1
    judged: int = 1

    @property
    def last(self) -> int:
        """The number of the last round that there may be."""
        return self.first + self.most - 1

    @property
    def ruled(self) -> bool:
        """Whether a steady-state rule ends it."""
        return self.rule is not None

    @property
    def rule(self) -> str | None:
        """The rule, one of values.RULES; None: a number of rounds, or each point of `over`."""
        return next((entry.rule for entry in self.until if entry.rule not in (None, "never")), None)


@dataclass(frozen=True)
class Act:
    """One action of the run.

    path: of its step
    point: values set by `over`, in the plan's words
    keys: all keys of the step, sizes in bytes, times in seconds of drive time
    range_bytes: used part of the drive, from its beginning
    amount_bytes: bytes that it writes or reads unless its time ends first; None: something else ends it
    not_run: why it is left out
    choices: for a choose step the acts that it picks from; for an act at an operating point the acts it may become,
        each with its part of the picked point in `chosen`. Until then its keys are those of one of them
    trace: the totals of a replay's trace; None until it is read (plan/kinds/replay.py)"""

    path: str
    do: str
    keys: Mapping
    point: Mapping = field(default_factory=dict)
    repeat: Repeat | None = None
    range_bytes: int = 0
    amount_bytes: int | None = None
    not_run: str | None = None
    choices: tuple["Act", ...] = ()
    chosen: Mapping = field(default_factory=dict)
    trace: "Facts | None" = None

    @property
    def label(self) -> str:
        """ "rounds/point read=65 block=64KiB"."""
        return grammar.label(self.path, self.point)

    def at(self, point: Mapping) -> "Act":
        """The act after `point` was picked; itself if the point changes nothing or is not among the choices."""
        fits = (choice for choice in self.choices if choice.chosen and choice.chosen.items() <= point.items())
        return next(fits, self)

    def folder(self, round_: int | None, number: int) -> str:
        """Where fio writes, within the run's fio/: "load"; of the 17th act in the third round of a repeat
        "rounds/point/r03/p17"."""
        parts = [self.path, *([f"r{round_:02}"] if round_ is not None else [])]
        return "/".join([*parts, *([f"p{number:02}"] if self.point else [])])


def expand(plan: grammar.Plan, drive: Mapping, capabilities: frozenset[str] = frozenset()) -> list[Act]:
    """The acts of a plan on a drive: {"capacity_bytes", "raw_nand_bytes", "logical_block_bytes"} (the last two may be
    None or 0: unknown). `capabilities`: what of grammar.CAPABILITIES the bench has. Raises UsageError where the plan
    and the drive do not fit."""
    lacking = [need for need in plan.needs if need not in capabilities]
    if lacking:
        expected = f"a bench that can {' and '.join(plan.needs)} for {plan.name}"
        raise _lacking(expected, lacking, "use another drive, or another plan")
    zoned = drive.get("zoned") == HOST_MANAGED
    if zoned and "zoned" not in plan.needs:
        raise UsageError(
            f"a plan for a zoned drive, which takes writes only at the write pointers of its zones; {plan.name} is for"
            " drives without zones",
            "a zoned drive",
            'use the plan zones, or add needs = ["zoned"] to your own',
        )
    if not drive.get("capacity_bytes") and any(step.do != "record" for step in plan.steps):
        raise UsageError(f"a drive whose capacity is known, for {plan.name}", "none", "use another drive")
    acts: list[Act] = []
    picks: dict[str, tuple[Mapping, ...]] = {}
    for step in plan.steps:
        if step.do != "repeat":
            made = list(_acts(step, drive, capabilities, None, {}))
            if step.do == "choose":
                made, picks = _choose(step, acts, made)
            acts += made
            continue
        until = tuple(step.keys.get("until", ()))
        judged = max((entry.judged for entry in until), default=1)
        most = step.keys.get("most") or step.keys.get("times") or 1
        resume = step.keys.get("resume", "round")
        repeat = Repeat(step.path, most, most, until, resume, judged=judged)
        if repeat.ruled:
            repeat = replace(repeat, least=min(judged - 1 + STEADY_ROUNDS, most))
        begins = len(acts)
        for outer in _points(step):
            for inner in step.steps:
                acts += _acts(inner, drive, capabilities, repeat, outer, picks.get(outer.get("at", "")))
        _judgeable(repeat, acts[begins:])
    if acts and all(act.not_run for act in acts):
        why = "; ".join(dict.fromkeys(str(act.not_run) for act in acts))
        raise UsageError(f"a bench that can run a step of {plan.name}", why, "use another drive, or another plan")
    if zoned:
        _at_pointers(acts)
    return _placed(acts)


def _at_pointers(acts: Iterable[Act]) -> None:
    """Raises UsageError for an act that would write a zoned drive elsewhere than at a write pointer."""
    for act in acts:
        if act.do in (*MAY_WRITE, "trim") and not act.not_run and act.keys.get("read") != 100:
            if not act.keys.get("zones") or act.keys.get("offset") or act.keys.get("read"):
                expected = f"{act.path} to write at the write pointers of a zoned drive"
                raise UsageError(expected, f"a {act.do} without", "use fill or load with `zones`, without reads")


def _placed(acts: list[Act]) -> list[Act]:
    """The acts, with a place for each load that begins after the previous one: the next whole MiB, or the start of its
    range if there is no room. Raises UsageError for a range without room for two."""
    out, end = [], 0
    for act in acts:
        amount = act.amount_bytes or 0
        if act.keys.get("offset") == "behind":
            if 2 * amount > act.range_bytes:
                seen = f"{words.size(amount)} in {words.size(act.range_bytes)}"
                expected = f"a range with room for two of {act.path}, which would overwrite its own recent data"
                raise UsageError(expected, seen, "fill more of the drive, or write less at a time")
            begin = -(-end // MIB) * MIB
            act = replace(act, keys={**act.keys, "offset": begin if begin + amount <= act.range_bytes else 0})
        if act.do == "load" and not act.not_run:
            end = act.keys.get("offset", 0) + amount
        out.append(act)
    return out


def tracked(words: str, acts: Iterable[Act]) -> list[Act]:
    """The acts of a tracked point, "iops read=0 block=4KiB", also those that are not run."""
    points = set(words.split()[1:])
    loads = (act for act in acts if act.do in ("load", "replay"))
    return [act for act in loads if points <= {f"{key}={grammar.value_text(part)}" for key, part in act.point.items()}]


def _judgeable(repeat: Repeat, acts: Iterable[Act]) -> None:
    """Raises UsageError for a rule that has no point to judge: its rounds would go on to the last."""
    wanted = [words for entry in repeat.until if repeat.ruled for words in entry.track]
    tracked_acts = [act for words in wanted for act in tracked(words, acts)]
    if wanted and all(act.not_run for act in tracked_acts):
        why = "; ".join(dict.fromkeys(act.not_run for act in tracked_acts if act.not_run))
        raise UsageError(
            f"a tracked point of {repeat.path} that is run on this drive",
            f"none of {', '.join(wanted)}: {why}",
            "track another point, or use another drive",
        )


def tested_bytes(part: quantity.Range, drive: Mapping) -> int:
    """How much of the drive a range is, aligned down to 1 MiB. Raises UsageError."""
    capacity, raw = drive["capacity_bytes"], drive.get("raw_nand_bytes")
    if part.fixed_bytes is not None:
        size = part.fixed_bytes
    elif not part.raw:
        size = whole_MiB(capacity, part.percent or 0)
    elif not raw:
        raise UsageError("a drive whose raw NAND is known", "none", "give --raw-nand, or a range of the user capacity")
    else:
        size = whole_MiB(raw, part.percent or 0)
    if size > capacity:
        own = own_percent(capacity, raw) if raw else 0
        raise UsageError(
            f"a range within the drive's {words.size(capacity)}; its own over-provisioning is {own:.1f} % of raw NAND",
            words.size(size),
            "ask for less",
        )
    size = whole_MiB(size)
    if size < LEAST_BYTES:
        raise TooSmall("at least 16 MiB to test", words.exact_size(size), "ask for a larger range")
    return size


def _points(step: grammar.Step) -> Iterator[dict]:
    """Every combination of `over`, the first key slowest; one empty point without `over`."""
    axes = [next(iter(axis.items())) for axis in step.source.get("over", [])]
    for chosen in itertools.product(*(points for _, points in axes)):
        yield dict(zip((key for key, _ in axes), chosen))


def _choose(step: grammar.Step, acts: list[Act], made: list[Act]) -> tuple[list[Act], dict[str, tuple[Mapping, ...]]]:
    """The choose step with the acts that it picks from, and the points that each of its operating points may be."""
    path, points = step.keys["from"], step.keys["points"]
    swept = tuple(act for act in acts if act.path == path and not act.not_run)
    picks = {}
    for point in points:
        fixed = {key: value for key, value in point.items() if key not in ("at", "where")}
        picks[point["at"]] = tuple(act.point for act in swept if fixed.items() <= act.point.items())
    why = None if swept else f"no point of {path} is run on this drive"
    return [replace(act, choices=swept, not_run=act.not_run or why) for act in made], picks


def _acts(
    step: grammar.Step,
    drive: Mapping,
    capabilities,
    repeat: Repeat | None,
    outer: dict,
    picks: tuple[Mapping, ...] | None = None,
) -> Iterator[Act]:
    """The acts of a step. `picks`: what the point of a choose step may be that the repeat around it is at."""
    spec, takes = kinds.KINDS[step.do].KEYS, taken(step, kinds.KINDS[step.do], outer)
    lacking = [need for need in step.needs if need not in capabilities]
    why = f"needs {' and '.join(lacking)}, which this bench has not" if lacking else None
    if lacking and not step.optional:
        rig = "give --rig PORT, or " if "rig" in lacking else ""
        expected = f"a bench with {' and '.join(step.needs)} for step {step.path}"
        raise _lacking(expected, lacking, f"{rig}add optional = true to the step, or use another bench")

    def act(point: Mapping, chosen: Mapping) -> Act:
        keys = dict(step.keys)
        for key, value in {**point, **chosen}.items():
            if key in spec and (key not in outer or key in takes):
                keys[key] = values.read(value, spec[key].kind)
        keys.pop("over", None)
        if "off" in outer and "on" not in keys:
            keys.pop("off", None)  # pauses that the repeat sweeps, of a load without bursts
        plain = Act(step.path, step.do, keys, point, repeat, chosen=chosen)
        try:
            made = _sized(plain, drive)
        except TooSmall as error:
            if "range" not in point:
                raise
            return replace(plain, not_run=why or f"{error.seen} of this drive, less than is tested")
        _under_way(made)
        return replace(made, not_run=why or _unfit(made, drive, capabilities))

    for inner in _points(step):
        point = {**outer, **inner}
        chosen: list[Mapping] = []  # what the picked point may set of this step, each once
        for pick in picks or ():
            part = {key: value for key, value in pick.items() if key in spec and key not in inner}
            chosen += [part] if part not in chosen else []
        if picks == ():
            why_none = "no point that it could be at is run on this drive"
            yield replace(Act(step.path, step.do, dict(step.keys), point, repeat), not_run=why_none)
        elif not any(chosen):
            yield act(point, {})
        else:
            choices = tuple(act(point, part) for part in chosen)
            runs = [choice for choice in choices if not choice.not_run] or choices
            largest = max(runs, key=lambda choice: (choice.range_bytes, choice.keys.get("read") != 100))
            yield replace(largest, chosen={}, choices=tuple(runs) if not largest.not_run else ())


def _sized(act: Act, drive: Mapping) -> Act:
    keys = act.keys
    if act.do == "cuts":
        return _of_cuts(act, drive)
    if "range" not in keys:
        return act
    size = tested_bytes(keys["range"], drive)
    if act.do == "wear":
        return _of_wear(replace(act, range_bytes=size), drive)
    if act.do == "retain":
        return _of_retain(replace(act, range_bytes=size), drive)
    amount = keys.get("amount")
    bytes_ = None
    if amount is not None:
        bytes_ = amount.fixed_bytes or int(amount.times * drive["capacity_bytes"])
    elif act.do == "fill":
        bytes_ = size
    elif ios := kinds.KINDS["load"].most_ios(keys):
        bytes_ = ios * sum(block * percent for block, percent in keys["block"]) // 100
    blocks, threads = keys.get("block", ()), keys.get("threads", 1)
    largest = blocks if isinstance(blocks, int) else max((block for block, _ in blocks), default=0)
    if bytes_ is not None and bytes_ // threads < largest:
        raise UsageError(
            f"an amount of at least {words.exact_size(threads * largest)} for {act.path}, a block for each thread",
            words.exact_size(bytes_),
            "write more, in smaller blocks, or from fewer threads",
        )
    return replace(act, range_bytes=size, amount_bytes=bytes_)


def _under_way(act: Act) -> None:
    """Raises UsageError for more threads or I/Os in flight than a host supports: fio would only fail hours later."""
    keys = act.keys
    threads = keys.get("threads", 1)
    in_flight = threads * keys.get("qd", 1) + keys.get("read_qd", 0)
    if threads > MOST_THREADS or in_flight > MOST_IN_FLIGHT:
        raise UsageError(
            f"at most {MOST_THREADS} threads with {MOST_IN_FLIGHT} I/Os in flight in all for {act.path}",
            f"{threads} threads, {in_flight} I/Os",
            "lower qd or threads",
        )
    blocks = keys.get("block", ())
    held = in_flight * (blocks if isinstance(blocks, int) else max((size for size, _ in blocks), default=0))
    if held > MOST_BUFFERS:
        raise UsageError(
            f"at most {words.exact_size(MOST_BUFFERS)} of memory for the I/Os in flight of {act.path}",
            f"{in_flight} I/Os, {words.exact_size(held)}",
            "lower qd, threads or the block size",
        )


def _of_wear(act: Act, drive: Mapping) -> Act:
    """A wear step with its sizes: `slice_bytes`, `total_bytes`, `samples_bytes`."""
    keys, wear = act.keys, kinds.KINDS["wear"]
    if not keys["to"]:
        return act
    part = keys["samples"]
    samples = part.fixed_bytes or int(drive["capacity_bytes"] * (part.percent or 0) / 100)
    sizes = {f"{key}_bytes": _wear_bytes(keys[key], drive, act.path) for key in ("slice", "total")}
    if keys["to"] < 100 and (rated := drive.get("rated_write_bytes")):  # of a drive that counts nothing, too
        sizes["total_bytes"] = max(sizes["slice_bytes"], min(sizes["total_bytes"], int(keys["to"] / 100 * rated)))
    sized = replace(act, keys={**keys, **sizes, "samples_bytes": samples}, amount_bytes=sizes["total_bytes"])
    if part.raw or sizes["slice_bytes"] > sizes["total_bytes"] or sizes["slice_bytes"] < wear.smallest_bytes(sized):
        least = words.exact_size(wear.smallest_bytes(sized))
        raise UsageError(
            f"a slice of at least {least}, a block for each thread, and at most the total of {act.path}; samples of the"
            " user capacity",
            f"a slice of {words.size(sizes['slice_bytes'])}, a total of {words.size(sizes['total_bytes'])}",
            "correct slice, total or samples",
        )
    if why := _unfit(sized, drive, frozenset()):
        raise UsageError(f"blocks for {act.path} that the drive has", why, "use other sizes, or another drive")
    try:
        wear.layout(sized, 0)
    except ValueError as error:
        seen = f"{words.size(samples)} of {words.size(act.range_bytes)}"
        raise UsageError(f"{error} of {act.path}", seen, "ask for fewer samples") from None
    return sized


def _of_cuts(act: Act, drive: Mapping) -> Act:
    """A cuts step with its window, at most the whole drive."""
    size = whole_MiB(min(act.keys["window"], drive["capacity_bytes"]))
    if size < LEAST_BYTES:
        raise UsageError(f"a window of at least 16 MiB for {act.path}", words.exact_size(size), "ask for a larger one")
    return replace(act, range_bytes=size)


def _of_retain(act: Act, drive: Mapping) -> Act:
    """A retain step with all that it writes."""
    from ssdrig.plan.kinds import retention_layout

    return replace(act, amount_bytes=retention_layout.written_bytes(retention_layout.of_drive(drive, act.range_bytes)))


def _wear_bytes(amount: quantity.Wear, drive: Mapping, path: str) -> int:
    if amount.percent is None:
        return amount.fixed_bytes or int((amount.times or 0) * drive["capacity_bytes"])
    if not drive.get("rated_write_bytes"):
        raise UsageError(
            f"a drive whose rated endurance is known, for {path}",
            "no TBW of this model",
            'add it to warranty.toml, or write bytes: --set slice="600 GB" --set total="600 TB"',
        )
    return int(amount.percent / 100 * drive["rated_write_bytes"])


def _unfit(act: Act, drive: Mapping, capabilities) -> str | None:
    """Why this drive or bench cannot do it, or why there is nothing to do."""
    if act.do == "wear" and not act.keys["to"]:
        return "no wear is asked for"
    if act.do in ("idle", "settle") and not act.keys.get("time", act.keys.get("most")):
        return "0 s"
    state, states = act.point.get("power_state", act.keys.get("power_state")), drive.get("power_states")
    if state is not None and states and state >= len(states):
        return f"this drive has {len(states)} power states"
    if state is not None and states and "time" in act.keys and act.do == "load" and not states[state]["operational"]:
        return f"a drive does no I/O in power state {state}"
    highest, known = max(kinds.KINDS["load"].handles(act.keys), default=None), drive.get("placement_handles")
    if highest is not None and known and highest not in known:
        return f"this drive has the placement handles {', '.join(map(str, known))}"
    if act.keys.get("sync") == "each" and "fua" not in capabilities:
        return "writes reach the drive of this bench without FUA"
    if act.keys.get("engine") == "polled" and "polled" not in capabilities:
        return "the drive of this bench has no polled queues"
    block = drive.get("logical_block_bytes") or 512
    blocks = act.keys.get("block", ())
    for size in (blocks,) if isinstance(blocks, int) else (size for size, _ in blocks):
        if size % block:
            return f"this drive has blocks of {block} bytes"
    return None
