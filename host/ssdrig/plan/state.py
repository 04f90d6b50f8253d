"""The drive's state as a plan knows it: the state that each act needs and leaves, the check before the start that every
need is met, and the state after an interruption. Pure.

    purged     after purge; any write ends it
    filled     the first `valid_bytes` hold data, written sequentially
    written    the same, written by a load since
    rested     as written, and left alone until its background work had ended, or for a time
    trimmed    after trim, or a reset of all zones; a write ends it
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ssdrig.base import words
from ssdrig.base.errors import UsageError
from ssdrig.plan import kinds
from ssdrig.plan.expand import Act
from ssdrig.plan.kinds import replay
from ssdrig.plan.rules.laid import RESTS_S


@dataclass(frozen=True)
class State:
    """`name` as above, or "unknown". `valid_bytes`: from the beginning of the drive, known to hold data.
    `workload`: the last one written; `steady`: a rule has shown a steady state, and the drive has not rested since."""

    name: str = "unknown"
    valid_bytes: int = 0
    workload: str | None = None
    steady: bool = False

    def words(self) -> str:
        """ "written by load, steady"."""
        by = f" by {self.workload}" if self.workload and self.name in ("written", "filled") else ""
        return f"{self.name}{by}{', steady' if self.steady else ''}"


UNKNOWN = State()


def after(state: State, act: Act) -> State:
    """The state after a complete act."""
    if act.not_run:
        return state
    if act.do == "purge":
        return State("purged")
    if act.do == "reset":
        return State("trimmed")
    if act.do == "trim":
        # all of it, or from a point on: the part before is untouched, but a range begins at 0
        return replace(state, name="trimmed", valid_bytes=0, steady=False)
    if act.do == "fill":
        whole = (act.amount_bytes or 0) >= act.range_bytes
        valid_bytes = max(state.valid_bytes, act.range_bytes if whole else 0)
        return State("filled", valid_bytes, act.path)
    if act.do in ("wear", "cuts", "retain"):
        return State("written", state.valid_bytes, act.path)
    if act.do == "recall":  # it only reads
        return replace(state, name="written" if state.name in ("rested", "unknown") else state.name)
    if act.do == "load":
        ruled = any(entry.rule == "pts" for entry in act.keys.get("until", ()))
        if act.keys["read"] == 100:
            return replace(state, name="written" if state.name == "rested" else state.name, steady=state.steady)
        valid_bytes = max(state.valid_bytes, act.range_bytes if _covers(act) else 0)
        return State("written", valid_bytes, act.path, steady=ruled or state.steady)
    if act.do == "replay":
        if not replay.writes(act) and not replay.trims(act):
            return replace(state, name="written" if state.name == "rested" else state.name)
        valid_bytes = max(state.valid_bytes, act.range_bytes) if replay.covers(act) else state.valid_bytes
        return State("written", 0 if replay.trims(act) else valid_bytes, act.path)
    if act.do in ("idle", "settle"):
        lasts = act.keys.get("time", act.keys.get("most", 0.0))
        return replace(
            state,
            name="rested" if state.name in ("written", "filled") else state.name,
            steady=state.steady and lasts <= RESTS_S,
        )
    if act.do == "record":  # others may have written anything
        return UNKNOWN
    return state  # set, ask, choose, flush


def _covers(act: Act) -> bool:
    """Whether a load writes all of its range: in order, from its beginning, as much as it holds."""
    keys = act.keys
    plain = keys["pattern"] == "sequential" and not keys["read"] and keys["threads"] == 1 and not keys.get("offset")
    return plain and "amount" in keys and (act.amount_bytes or 0) >= act.range_bytes


def course(acts: Iterable[Act], state: State = UNKNOWN) -> list[State]:
    """The state before each act, and after the last: a repeat that a rule ends leaves a steady state."""
    acts, states = list(acts), [state]
    for act, following in itertools.zip_longest(acts, acts[1:]):
        state = after(state, act)
        if act.repeat and act.repeat.ruled and (following is None or following.repeat != act.repeat):
            state = replace(state, steady=True)
        states.append(state)
    return states


def prove(acts: Iterable[Act], state: State = UNKNOWN) -> State:
    """The state that the acts leave when they begin in `state`. Raises UsageError for the first act whose need is not
    met: a load or a trace that reads wants data in its whole range, or it would measure how fast the drive makes
    zeros."""
    acts = list(acts)
    states = course(acts, state)
    for act, state in zip(acts, states, strict=False):
        if act.do == "replay" and not act.not_run and replay.reads(act) and state.valid_bytes < act.range_bytes:
            raise _unwritten(act, state)
        for choice in act.choices or (act,) if act.do == "load" and not act.not_run else ():
            if kinds.KINDS["load"].reads(choice.keys) and state.valid_bytes < choice.range_bytes:
                raise _unwritten(choice, state)
    return states[-1]


def _unwritten(act: Act, state: State) -> UsageError:
    return UsageError(
        f"data in all {words.size(act.range_bytes)} that {act.path} reads",
        f"{words.size(state.valid_bytes)} written before it, the drive {state.words()}",
        "put a fill of that range before it",
    )


def cut_short(state: State, act: Act) -> State:
    """The state after an act that began in `state` and was interrupted: between two states."""
    if act.do in ("purge", "record"):
        return UNKNOWN
    if act.do in ("trim", "reset"):
        return State()
    if act.do == "fill":  # it only adds data, but the drive is neither in its old state nor filled
        return State(valid_bytes=state.valid_bytes)
    left = replace(state, steady=False)
    if act.do == "replay" and replay.trims(act):
        left = replace(left, valid_bytes=0)
    if (
        act.do in ("wear", "cuts", "retain")
        or (act.do == "load" and act.keys["read"] != 100)
        or (act.do == "replay" and replay.writes(act))
    ):
        return replace(left, name="written", workload=act.path)
    return left


def holds(state: State, wanted: State) -> bool:
    """Whether a step that follows on `wanted` may begin in `state`. One that follows on nothing always may."""
    if wanted == UNKNOWN:
        return True
    same = (state.name, state.workload) == (wanted.name, wanted.workload)
    return same and state.valid_bytes >= wanted.valid_bytes and (state.steady or not wanted.steady)


def interrupted(state: State, powered: bool = True) -> State:
    """The state after the host process died. `powered`: the drive kept its supply."""
    left = replace(state, steady=False)
    if left.name == "rested" and not powered:
        return replace(left, name="written")
    return left


def foreign(state: State, ours_bytes: int, counted_bytes: int | None, unit_bytes: int) -> State:
    """The state once the drive's own counter was read: `counted_bytes` have been written to it since our last reading,
    `ours_bytes` of them by us. More than the counter's unit that is not ours voids everything; so does a drive that
    does not count."""
    if counted_bytes is None or abs(counted_bytes - ours_bytes) > 2 * unit_bytes:
        return UNKNOWN
    return state
