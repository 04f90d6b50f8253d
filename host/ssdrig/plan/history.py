"""What of a plan's beginning need not be done again: the drive is in the state that it makes, left by the plan before.
Pure.

A plan prepares the drive by its first steps, those that no view shows. They may be left out where the drive had the
same done to it since it was purged, or where they end in a steady state and a rule has shown that of the same writes: a
steady state does not depend on the way to it. No state is carried over a rest (laid.RESTS_S), and none that a repeat
has left, whose points have written in turns."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ssdrig.plan import formula, grammar, headline, shows, state
from ssdrig.plan.expand import Act
from ssdrig.plan.state import UNKNOWN, State

PREPARES = ("purge", "fill", "load", "trim", "flush", "settle", "idle", "set", "ask")
KEEPS = ("flush", "choose", "ask")  # kinds that leave the drive's data as they are
STAYS = ("set", "ask")  # done in each run, whatever state the drive is in
# keys of a step that make no difference to the drive
ASIDE = ("smart", "detail", "windows", "judge", "engine", "resume", "least", "arrival")
ENDS = ("time", "amount", "until", "cycles")  # what ends a load: in a steady state no matter


@dataclass(frozen=True)
class Left:
    """The effect of acts on a drive: its `state`; `made`, the work since its purge, equal for acts of other names that
    do the same, None if unknown; `steady_by`: the writes that a rule has shown to be steady; `settings`: changed by
    `set` and restored at the end of the run."""

    state: State = UNKNOWN
    made: tuple | None = None
    steady_by: tuple | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def at_the_end(self) -> "Left":
        """Once the run is over."""
        return Left(self.state, self.made, self.steady_by)


def left(acts: Sequence[Act], not_steady: Collection[str] = ()) -> Left:
    """The effect of all these acts on a drive of unknown state. not_steady: paths of the loads whose rule did not hold,
    once known."""
    state = Left()
    for act in acts:
        state = _after(state, act, act.path in not_steady)
    return state


def _after(before: Left, act: Act, not_steady: bool) -> Left:
    if act.not_run:
        return before
    now, settings, made = state.after(before.state, act), dict(before.settings), before.made
    if act.do == "set":
        values = {key: str(value) for key, value in act.keys.items() if isinstance(value, str) and key not in ASIDE}
        return Left(now, made, before.steady_by, settings | values)
    if act.do in KEEPS or (act.do == "load" and act.keys["read"] == 100):
        return Left(now, made, before.steady_by, settings)
    if act.repeat or act.choices or act.do not in PREPARES:
        return Left(now if act.do in PREPARES else UNKNOWN, None, None, settings)
    if act.do == "purge":
        return Left(now, (_done(act, settings),), None, settings)
    made = None if made is None else (*made, _done(act, settings))
    if act.do in ("idle", "settle"):
        return Left(now, made, before.steady_by if now.steady else None, settings)
    if act.do != "load":
        return Left(now, made, None, settings)
    writes = _done(act, settings, ENDS)
    ruled = any(entry.rule == "pts" for entry in act.keys.get("until", ())) and not not_steady
    steady = ruled or (before.steady_by == writes and not not_steady)
    return Left(now, made, writes if steady else None, settings)


def _done(act: Act, settings: Mapping[str, str], aside: Collection[str] = ()) -> tuple:
    """What an act does to the drive, under the settings that hold."""
    keys = {key: str(value) for key, value in act.keys.items() if key not in (*ASIDE, *aside, "range")}
    sizes = (act.range_bytes, None if aside else act.amount_bytes)
    return (act.do, *sizes, tuple(sorted(keys.items())), tuple(sorted(settings.items())))


def prepares(acts: Sequence[Act], plan: grammar.Plan) -> int:
    """How many of the first acts only prepare the drive: no view shows them, they are not points of a repeat, and other
    acts follow."""
    seen = shown(plan)
    first = itertools.takewhile(
        lambda act: act.do in PREPARES and not act.repeat and not act.choices and act.path not in seen, acts
    )
    return min(len(list(first)), max(0, len(acts) - 1))


def shown(plan: grammar.Plan) -> set[str]:
    """The paths of the steps that a view shows, that the headline names, or that operating points are picked from."""
    paths = {path for show in plan.shows for path in shows.listed(show.get("of"))}
    paths |= {figure.path for part in plan.headline for figure in headline.figures(part) if figure.path}
    for show in plan.shows:
        if text := show.get("formula"):
            paths |= {name.path for name in formula.names(formula.parse(text))}
    return paths | {str(step.keys["from"]) for step in grammar.every(plan.steps) if step.do == "choose"}


def may_leave_out(now: Left, acts: Sequence[Act], plan: grammar.Plan) -> int:
    """How many of the first acts of a plan may be left out on a drive in this state: the most that make it; 0: none."""
    for count in range(prepares(acts, plan), 0, -1):
        if acts[count - 1].do in ("purge", "fill", "load", "trim") and serves(now, left(acts[:count])):
            return count
    return 0


def serves(now: Left, wanted: Left) -> bool:
    """Whether the present state of a drive satisfies the wanted one."""
    if wanted.steady_by is not None:
        same = now.steady_by == wanted.steady_by and now.state.name == wanted.state.name == "written"
        return same and now.state.valid_bytes >= wanted.state.valid_bytes
    return wanted.made is not None and now.made == wanted.made
