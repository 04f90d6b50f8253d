"""How far an interrupted run got: the acts done, the state of the drive, and the acts needed to go
on. Pure: from the acts of its plan and the events of its parts.

What an act needs is the state that the acts before it leave in an unbroken run (plan/state.py). Where that no longer
holds, the run goes back to the nearest step from which on it can be had again: one that follows on the state the drive
is in, or a purge, which follows on any, or the first. So a continuation never measures a drive in another state than
the unbroken run would have.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ssdrig.base.errors import UsageError
from ssdrig.plan import grammar, kinds, state
from ssdrig.plan.expand import ERASES, Act, Repeat
from ssdrig.plan.state import UNKNOWN, State

# what ends with the run, and is done again where it is before the place where the run goes on: conditions; the
# operating points, which are the same again because the measurements are read from earlier parts (earlier.points)
AGAIN = ("set", "ask", "choose")


@dataclass(frozen=True)
class Past:
    """`at`: index of the act to go on with, the number of acts where all are done. `cut`: the act that was begun and
    did not end. `rounds`: of the repeat in work, how many are done. `state`: what the acts left, the one cut short
    included. `jobs`: how many fio jobs were begun. `over`: of each repeat that is over, by its path, the number of its
    last round. `was_steady`: the drive was in a steady state when the run was cut short."""

    at: int = 0
    cut: Act | None = None
    rounds: int = 0
    state: State = UNKNOWN
    jobs: int = 0
    over: Mapping[str, int] = field(default_factory=dict)
    was_steady: bool = False


@dataclass(frozen=True)
class Todo:
    """How to go on. `acts`: all that is still to be executed, in order; `begins`: index of the first of them in the
    plan, `round`: its number if that is a repeat. `state`: that of the drive which still holds; `void`: the other
    parts, with reasons; `redone`: acts done or begun that are repeated, in words."""

    acts: tuple[Act, ...]
    begins: int
    round: int
    state: State
    void: tuple[str, ...] = ()
    redone: tuple[str, ...] = ()


def past(acts: Sequence[Act], parts: Iterable[tuple[Mapping, Sequence[Mapping]]]) -> Past:
    """What the parts of a run show, each (its run.json, its events). An event that is about no act is passed over."""
    index = {act.label: i for i, act in enumerate(acts)}
    past = Past(_runnable(acts, 0))
    for header, events in parts:
        resumed, stored = header.get("resumed"), (header.get("plan") or {}).get("kept")
        if stored and not resumed:  # the plan before it left the drive as its first acts make it
            past = replace(past, at=_runnable(acts, stored["acts"]), state=State(**stored["state"]))
        if resumed:
            left = State(**resumed["state"])
            past = replace(past, at=resumed["begins"], cut=None, rounds=resumed["round"] - 1, state=left)
        last = {act.repeat.path: act.repeat.most for act in acts if act.repeat}
        repeat = acts[past.at].repeat if resumed and past.at < len(acts) else None
        if repeat:
            last[repeat.path] = _again(repeat, past.rounds + 1).last
        for event in events:
            i = index.get(_label(event), -1)
            kind = event.get("kind")
            if kind == "step.start" and i >= 0:
                past = _begun(acts, past, i, event)
            elif kind == "step.end" and i >= 0 and event.get("ok") and past.cut is acts[i]:
                past = _ended(acts, past, i, event, last)
            elif kind == "slice.start" and past.cut:  # each slice of a wear step is a fio job
                past = replace(past, jobs=past.jobs + 1)
            elif kind == "round":
                past = _judged(acts, past, event, last)
            elif kind == "run.end" and event.get("state") == "complete" and event.get("why") is None:
                past = replace(past, at=len(acts), cut=None)
    was_steady = past.state.steady
    left = state.cut_short(past.state, past.cut) if past.cut else past.state
    return replace(past, state=left, was_steady=was_steady)


def changed(parts: Iterable[tuple[Mapping, Sequence[Mapping]]], boot_id: str | None) -> dict[str, list[str]]:
    """{key: earlier value} of all settings changed by `set` and not restored: a killed process leaves them. A
    reboot sets all again but what the drive keeps, its write cache."""
    redone: dict[str, list[str]] = {}
    for header, events in parts:
        same = boot_id is not None and (header.get("host") or {}).get("boot_id") == boot_id
        for event in events:
            key = event.get("key")
            if event.get("kind") == "set" and event.get("before") and (same or key == "write_cache"):
                redone.setdefault(str(key), event["before"])
            elif event.get("kind") == "put_back" and redone.get(str(key)) == event.get("value"):
                redone.pop(str(key))  # of a setting that was changed several times, each value is put back in turn
    return redone


def todo(acts: Sequence[Act], done: Past, now: State, void: Sequence[str] = (), moved_bytes: int = 0) -> Todo:
    """The acts that end the run on a drive in the state `now`, which is done.state or less: what an
    interruption, a foreign write or another firmware left of it; `void`: why, in words. `moved_bytes`: how far the act
    came that was cut short, which counts if it has resume = "continue". No acts: all are done."""
    if done.at >= len(acts):
        return Todo((), len(acts), 1, now, tuple(void))
    begins, number = _place(acts, done, now)
    try:
        past = _from(acts, begins, number, done)
        state.prove(past, now)
    except UsageError as error:  # what a plan reads must have been written: the whole of it is proven
        void = [*void, f"the data, for {error.expected.removeprefix('data in ')}"]
        begins, number = 0, 1
        past = _from(acts, 0, 1, done)
    act = acts[begins]
    if act is done.cut and act.do == "wear" and now.workload == act.path:
        keys = {**act.keys, "done_bytes": moved_bytes}
        rest = replace(act, keys=keys, amount_bytes=max(0, (act.amount_bytes or 0) - moved_bytes))
        past = tuple(rest if a is act else a for a in past)
    elif act is done.cut and act.keys.get("resume") == "continue" and act.amount_bytes and now.workload == act.path:
        block_bytes = max(size for size, _ in act.keys["block"])
        rest_bytes = max(act.keys["threads"] * block_bytes, act.amount_bytes - moved_bytes // block_bytes * block_bytes)
        past = tuple(replace(a, amount_bytes=rest_bytes) if a is act else a for a in past)
    return Todo(past, begins, number, now, tuple(void), _redone(acts, done, begins, number))


def _place(acts: Sequence[Act], done: Past, now: State) -> tuple[int, int]:
    """The index of the act to go on with, and the number of its round."""
    wanted = _wanted(acts)
    act = acts[done.at]
    usual = "continue" if act.do in ("wear", "cuts") else "restart"
    word = act.repeat.resume if act.repeat else act.keys.get("resume", usual)
    if word == "plan":
        return 0, 1
    first, end = _group(acts, done.at)
    if act.repeat:
        rounds_follow = _rounds_follow(acts, first, end, wanted, now)
        rounds_follow |= done.rounds > 0 and _new_rounds_do(acts, first, end, wanted, now)
        if (state.holds(now, wanted[first]) or rounds_follow) and word != "restart":
            return first, done.rounds + 1
        if state.holds(now, wanted[first]):
            return first, 1
    elif state.holds(now, wanted[first]):
        return first, 1
    elif word == "continue" and now.workload == act.path and not wanted[first].steady:
        return first, 1
    while first > 0:
        first, end = _group(acts, first - 1)
        repeat = acts[first].repeat
        if repeat and repeat.path in done.over and _new_rounds_do(acts, first, end, wanted, now):
            return first, done.over[repeat.path] + 1
        if acts[first].do == "purge" or state.holds(now, wanted[first]):
            break
    return first, 1


def _rounds_follow(acts: Sequence[Act], first: int, end: int, wanted: Sequence[State], now: State) -> bool:
    """Whether a further round of a repeat may follow in the state `now`: it is what a round leaves. Where a rule ends
    the repeat, the further ones make a steady state of their own."""
    left, repeat = state.prove(acts[first:end], wanted[first]), acts[first].repeat
    if repeat and repeat.ruled:
        left = replace(left, steady=False)
    return state.holds(now, left)


def _new_rounds_do(acts: Sequence[Act], first: int, end: int, wanted: Sequence[State], now: State) -> bool:
    """Whether new rounds of a repeat that was begun make its steady state again. The first of them preconditions: the
    drive may have rested, and acts after the repeat may have written as one of its points does."""
    repeat = acts[first].repeat
    if not repeat or not repeat.ruled or repeat.resume != "round":
        return False
    points = {_writes(load) for act in acts[first:end] for load in _loads(act)}
    alike = {act.path for act in acts[first:end]}
    for act in acts[end:]:
        if act.do in (*ERASES, "fill", "replay") or not {_writes(load) for load in _loads(act)} - {None} <= points:
            alike.discard(act.path)
            break
        alike.add(act.path)
    enough = now.valid_bytes >= state.prove(acts[first:end], wanted[first]).valid_bytes
    return now.name in ("written", "rested") and now.workload in alike and enough


def _loads(act: Act) -> tuple[Act, ...]:
    return act.choices or (act,) if act.do == "load" and not act.not_run else ()


def _writes(act: Act) -> tuple | None:
    """The pattern of a load's writes that stays on the drive; None for one that only reads."""
    if act.keys["read"] == 100:
        return None
    words = (str(act.keys.get(key)) for key in ("pattern", "read", "block", "offset", "hot", "data"))
    return (act.range_bytes, *words)


def _wanted(acts: Sequence[Act]) -> list[State]:
    """The state that each act follows on: that before it in an unbroken run. Only a load measures a steady state; what
    no load follows on in the same one may come later."""
    runnable = state.course(acts)[: len(acts)]
    needed = False
    for i in reversed(range(len(acts))):
        needed = runnable[i].steady and (needed or bool(_loads(acts[i])))
        runnable[i] = replace(runnable[i], steady=needed)
    return runnable


def _from(acts: Sequence[Act], begins: int, number: int, done: Past) -> tuple[Act, ...]:
    """The acts from one on, after the conditions that were set before it."""
    again = [act for act in acts[:begins] if act.do in AGAIN]  # what could not be set is stated again, too
    redone, begun = [], acts[begins].repeat
    for act in acts[begins:]:
        repeat = act.repeat
        if repeat and repeat == begun:
            repeat = _again(repeat, number)
        redone.append(replace(act, repeat=repeat) if repeat != act.repeat else act)
    return (*again, *redone)


def _again(repeat: Repeat, number: int) -> Repeat:
    """A repeat that goes on with this round. Rounds count over all parts, up to the most of the plan. Where a rule ends
    it, the first round of a part only preconditions the drive again (it has rested, and what the last writes laid down
    is not what a whole round leaves), the rule uses the later ones, and there are always enough of them for it."""
    if not repeat.ruled:
        left = repeat.most - number + 1
        return replace(repeat, first=number, most=left, least=min(repeat.least, left))
    judged = max(repeat.judged, number + 1)
    least = judged - number + repeat.least - (repeat.judged - 1)
    return replace(repeat, first=number, judged=judged, least=least, most=max(repeat.most - number + 1, least))


def _redone(acts: Sequence[Act], done: Past, begins: int, number: int) -> tuple[str, ...]:
    words = [] if done.cut is None else [f"{done.cut.label}, which was cut short"]
    interrupted, back = acts[done.at].repeat, acts[begins].repeat
    if interrupted and done.rounds and begins <= done.at and back != interrupted:
        rounds = "round 1" if done.rounds == 1 else f"rounds 1 to {done.rounds}"
        words.append(f"{rounds} of {interrupted.path}: the drive is no longer in their state")
    if back and back.ruled and number > 1:
        words.append(f"the steady state of {back.path}: a round that preconditions, then five new ones")
    paths = dict.fromkeys(act.repeat.path if act.repeat else act.path for act in acts[begins : done.at])
    named = {repeat.path for repeat in (interrupted, back if number > 1 else None) if repeat}
    return (*words, *(path for path in paths if path not in named))


def _label(event: Mapping) -> str:
    point = event.get("point")
    points = point if isinstance(point, Mapping) else {}
    return grammar.label(str(event.get("step")), points)


def _begun(acts: Sequence[Act], past: Past, i: int, event: Mapping) -> Past:
    """An act begins; one without an end was cut short without a record."""
    act = acts[i]
    if act.do in AGAIN and i < past.at:
        return past  # a condition that a continuation has set again
    left = state.cut_short(past.state, past.cut) if past.cut else past.state
    rounds = _round(event) - 1 if act.repeat else 0
    jobs = past.jobs + (act.do in kinds.FIO)
    return replace(past, at=i, cut=act, rounds=rounds, state=left, jobs=jobs)


def _ended(acts: Sequence[Act], past: Past, i: int, event: Mapping, last: Mapping[str, int]) -> Past:
    act = acts[i]
    left, (first, end) = state.after(past.state, act), _group(acts, i)
    following = _runnable(acts, i + 1)
    if act.repeat and following >= end:  # the round is over; one that a rule ends is judged then
        judged = bool(act.repeat.until) or past.rounds + 1 < last[act.repeat.path]
        following = _runnable(acts, first) if judged else following
        return replace(past, at=following, cut=None, rounds=past.rounds + 1 if judged else 0, state=left)
    return replace(past, at=following, cut=None, state=left)


def _judged(acts: Sequence[Act], past: Past, event: Mapping, last: Mapping[str, int]) -> Past:
    """A round was judged: the repeat is over when it was steady, or the last that there may be."""
    path = event.get("step")
    acts_ = [i for i, act in enumerate(acts) if act.repeat and act.repeat.path == path]
    if not acts_ or not (event.get("steady") is True or _round(event) >= last[str(path)]):
        return past
    left = replace(past.state, steady=event.get("steady") is True)
    over = {**past.over, str(path): _round(event)}
    return replace(past, at=_runnable(acts, acts_[-1] + 1), cut=None, rounds=0, state=left, over=over)


def _round(event: Mapping) -> int:
    number = event.get("round")
    return number if isinstance(number, int) else 1


def _group(acts: Sequence[Act], i: int) -> tuple[int, int]:
    """Index of the first act of the repeat that act i is in, and of the first after it; for a single act, of itself."""
    first, end = i, i + 1
    if acts[i].repeat:
        while first > 0 and acts[first - 1].repeat == acts[i].repeat:
            first -= 1
        while end < len(acts) and acts[end].repeat == acts[i].repeat:
            end += 1
    return first, end


def _runnable(acts: Sequence[Act], i: int) -> int:
    """Index of the next act from i on that is run at all."""
    while i < len(acts) and acts[i].not_run:
        i += 1
    return i
