"""Where a run stands that was cut short: which acts are done, what state the drive is in, and what is to be done to go
on. Pure: from the acts of its plan and the events of its parts.

What an act needs is the state that the acts before it leave in an unbroken run (plan/state.py). Where that no longer
holds, the run goes back to the nearest step from which on it can be had again: one that follows on the state the drive
is in, or a purge, which follows on any, or the first. So a continuation never measures a drive in another state than
the unbroken run would have.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ssdrig.errors import UsageError
from ssdrig.plan import grammar, state
from ssdrig.plan.expand import Act, Repeat
from ssdrig.plan.state import UNKNOWN, State

# what ends with the run, and is done again where it lies before the place where the run goes on: conditions; the
# operating points, which are the same again because what was measured is read from the parts before (earlier.points)
AGAIN = ("set", "ask", "choose")


@dataclass(frozen=True)
class Past:
    """`at`: index of the act to go on with, the number of acts where all are done. `cut`: the act that was begun and
    did not end. `rounds`: of the repeat in work, how many are done. `state`: what the acts left, the one cut short
    included. `jobs`: how many fio jobs were begun."""

    at: int = 0
    cut: Act | None = None
    rounds: int = 0
    state: State = UNKNOWN
    jobs: int = 0


@dataclass(frozen=True)
class Todo:
    """How to go on. `acts`: all that is still to be carried out, in order; `begins`: index of the first of them in the
    plan, `round`: its number if that is a repeat. `kept`: the state that still holds; `void`: what does not, and why;
    `redone`: what was done or begun and is done again, in words."""

    acts: tuple[Act, ...]
    begins: int
    round: int
    kept: State
    void: tuple[str, ...] = ()
    redone: tuple[str, ...] = ()


def past(acts: Sequence[Act], parts: Iterable[tuple[Mapping, Sequence[Mapping]]]) -> Past:
    """What the parts of a run show, each (its run.json, its events). An event that is about no act is passed over."""
    index = {act.label: i for i, act in enumerate(acts)}
    found = Past(_runnable(acts, 0))
    for header, events in parts:
        resumed = header.get("resumed")
        if resumed:
            found = Past(resumed["begins"], None, resumed["round"] - 1, State(**resumed["state"]), found.jobs)
        last = {act.repeat.path: act.repeat.most for act in acts if act.repeat}
        here = acts[found.at].repeat if resumed and found.at < len(acts) else None
        if here:
            last[here.path] = _again(here, found.rounds + 1).last
        for event in events:
            i = index.get(_label(event), -1)
            kind = event.get("kind")
            if kind == "step.start" and i >= 0:
                found = _begun(acts, found, i, event)
            elif kind == "step.end" and i >= 0 and event.get("ok") and found.cut is acts[i]:
                found = _ended(acts, found, i, event, last)
            elif kind == "round":
                found = _judged(acts, found, event, last)
            elif kind == "run.end" and event.get("state") == "complete" and event.get("why") is None:
                found = replace(found, at=len(acts), cut=None)
    if found.cut:
        found = replace(found, state=state.cut_short(found.state, found.cut))
    return found


def changed(parts: Iterable[tuple[Mapping, Sequence[Mapping]]], boot_id: str | None) -> dict[str, list[str]]:
    """{key: what it was} of all that `set` has changed and nobody has put back: a process that was killed leaves it. A
    reboot sets all anew but what the drive keeps, its write cache."""
    found: dict[str, list[str]] = {}
    for header, events in parts:
        same = boot_id is not None and (header.get("host") or {}).get("boot_id") == boot_id
        for event in events:
            key = event.get("key")
            if event.get("kind") == "set" and event.get("before") and (same or key == "write_cache"):
                found.setdefault(str(key), event["before"])
            elif event.get("kind") == "put_back":
                found.pop(str(key), None)
    return found


def todo(acts: Sequence[Act], done: Past, now: State, void: Sequence[str] = (), moved_bytes: int = 0) -> Todo:
    """What is to be done to end the run on a drive in the state `now`, which is done.state or less: what an
    interruption, a foreign write or another firmware left of it; `void`: why, in words. `moved_bytes`: how far the act
    came that was cut short, which counts where it says resume = "continue". No acts: all are done."""
    if done.at >= len(acts):
        return Todo((), len(acts), 1, now, tuple(void))
    begins, number = _place(acts, done, now)
    try:
        found = _from(acts, begins, number, done)
        state.prove(found, now)
    except UsageError as error:  # what a plan reads must have been written: the whole of it is proven
        void = [*void, f"the data, for {error.expected.removeprefix('data in ')}"]
        begins, number = 0, 1
        found = _from(acts, 0, 1, done)
    act = acts[begins]
    if act is done.cut and act.keys.get("resume") == "continue" and act.amount_bytes and now.workload == act.path:
        block_bytes = max(size for size, _ in act.keys["block"])
        rest_bytes = max(act.keys["threads"] * block_bytes, act.amount_bytes - moved_bytes // block_bytes * block_bytes)
        found = tuple(replace(a, amount_bytes=rest_bytes) if a is act else a for a in found)
    return Todo(found, begins, number, now, tuple(void), _redone(acts, done, begins))


def _place(acts: Sequence[Act], done: Past, now: State) -> tuple[int, int]:
    """The index of the act to go on with, and the number of its round."""
    wanted = _wanted(acts)
    act = acts[done.at]
    word = act.repeat.resume if act.repeat else act.keys.get("resume", "restart")
    if word == "plan":
        return 0, 1
    first, end = _group(acts, done.at)
    if act.repeat:
        rounds_follow = state.holds(now, state.prove(acts[first:end], wanted[first]))
        if (state.holds(now, wanted[first]) or rounds_follow) and word != "restart":
            return first, done.rounds + 1
        if state.holds(now, wanted[first]):
            return first, 1
    elif state.holds(now, _before(acts, wanted, first)) or (word == "continue" and now.workload == act.path):
        return first, 1
    while first > 0:
        first = _group(acts, first - 1)[0]
        if acts[first].do == "purge" or state.holds(now, _before(acts, wanted, first)):
            break
    return first, 1


def _before(acts: Sequence[Act], wanted: Sequence[State], i: int) -> State:
    """The state that act i follows on. Only a load measures a steady state: what comes after it may come later."""
    return wanted[i] if acts[i].do == "load" else replace(wanted[i], steady=False)


def _wanted(acts: Sequence[Act]) -> list[State]:
    """The state before each act in an unbroken run."""
    found, at = [], UNKNOWN
    for act in acts:
        found.append(at)
        at = state.after(at, act)
    return found


def _from(acts: Sequence[Act], begins: int, number: int, done: Past) -> tuple[Act, ...]:
    """The acts from one on, after the conditions that were set before it."""
    again = [act for act in acts[:begins] if act.do in AGAIN]  # what could not be set is said again, too
    found, here = [], acts[begins].repeat
    for act in acts[begins:]:
        repeat = act.repeat
        if repeat and repeat == here:
            repeat = _again(repeat, number)
        found.append(replace(act, repeat=repeat) if repeat != act.repeat else act)
    return (*again, *found)


def _again(repeat: Repeat, number: int) -> Repeat:
    """A repeat that goes on with this round. Rounds count over all parts, up to the most of the plan. Where a rule ends
    it, the first round of a part only preconditions the drive again (it has rested, and what the last writes laid down
    is not what a whole round leaves), the rule uses those behind it, and there are always enough of them for it."""
    if not repeat.until:
        left = repeat.most - number + 1
        return replace(repeat, first=number, most=left, least=min(repeat.least, left))
    judged = max(repeat.judged, number + 1)
    least = judged - number + repeat.least - (repeat.judged - 1)
    return replace(repeat, first=number, judged=judged, least=least, most=max(repeat.most - number + 1, least))


def _redone(acts: Sequence[Act], done: Past, begins: int) -> tuple[str, ...]:
    words = [] if done.cut is None else [f"{done.cut.label}, which was cut short"]
    here = acts[done.at].repeat
    if here and done.rounds and begins <= done.at:
        rounds = "round 1" if done.rounds == 1 else f"rounds 1 to {done.rounds}"
        if acts[begins].repeat != here:
            words.append(f"{rounds} of {here.path}: the drive is no longer in their state")
        elif here.until:
            words.append(f"the steady state of {here.path}: a round that preconditions, then five new ones")
    paths = dict.fromkeys(act.repeat.path if act.repeat else act.path for act in acts[begins : done.at])
    words += [path for path in paths if not here or path != here.path]
    return tuple(words)


def _label(event: Mapping) -> str:
    point = event.get("point")
    points = point if isinstance(point, Mapping) else {}
    return grammar.label(str(event.get("step")), points)


def _begun(acts: Sequence[Act], found: Past, i: int, event: Mapping) -> Past:
    """An act begins; one that had not ended was cut short where nobody could say so."""
    act = acts[i]
    if act.do in AGAIN and i < found.at:
        return found  # a condition that a continuation has set again
    left = state.cut_short(found.state, found.cut) if found.cut else found.state
    rounds = _round(event) - 1 if act.repeat else 0
    return Past(i, act, rounds, left, found.jobs + (act.do in ("fill", "load")))


def _ended(acts: Sequence[Act], found: Past, i: int, event: Mapping, last: Mapping[str, int]) -> Past:
    act = acts[i]
    left, (first, end) = state.after(found.state, act), _group(acts, i)
    following = _runnable(acts, i + 1)
    if act.repeat and following >= end:  # the round is over; one that a rule ends is judged then
        judged = bool(act.repeat.until) or found.rounds + 1 < last[act.repeat.path]
        following = _runnable(acts, first) if judged else following
        return Past(following, None, found.rounds + 1 if judged else 0, left, found.jobs)
    return Past(following, None, found.rounds, left, found.jobs)


def _judged(acts: Sequence[Act], found: Past, event: Mapping, last: Mapping[str, int]) -> Past:
    """A round was judged: the repeat is over when it was steady, or the last that there may be."""
    path = event.get("step")
    here = [i for i, act in enumerate(acts) if act.repeat and act.repeat.path == path]
    if not here or not (event.get("steady") is True or _round(event) >= last[str(path)]):
        return found
    return Past(_runnable(acts, here[-1] + 1), None, 0, found.state, found.jobs)


def _round(event: Mapping) -> int:
    number = event.get("round")
    return number if isinstance(number, int) else 1


def _group(acts: Sequence[Act], i: int) -> tuple[int, int]:
    """Index of the first act of the repeat that act i is in, and of the first behind it; of one act by itself."""
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
