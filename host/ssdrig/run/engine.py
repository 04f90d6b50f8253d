"""Runs the acts of a plan in order: their events, rounds until the rule holds, and the acts not run with
the reason. The check before and the teardown after are run.py's."""

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import replace
from math import isnan

from ssdrig.drive import block
from ssdrig.drive.wear import wa
from ssdrig.plan.expand import ERASES, MAY_WRITE, WRITES, Act, Repeat, tracked
from ssdrig.plan.rules import choose, ends, laid
from ssdrig.plan.rules import spare as spares
from ssdrig.plan.rules.steady import ROUNDS
from ssdrig.run import steps
from ssdrig.run.budget import Budget
from ssdrig.run.live import Pace
from ssdrig.run.stage import Stage, step

MARKS = 8  # places that are read before the first step that writes and after each, to know the drive by
MARKED = (*ERASES, *WRITES, "replay")  # kinds of step after which they are read


def carry_out(acts: Sequence[Act], stage: Stage, budget: Budget | None = None) -> str | None:
    """All acts. Returns None, or why it ended before the last one (the budget). Raises what a step raises."""
    stage.budget = budget = budget or Budget(None)
    stage.marked = False
    for repeat, grouped in itertools.groupby(acts, key=lambda act: act.repeat):
        group = list(grouped)
        ended = _rounds(repeat, group, stage, budget) if repeat else _once(group, stage, budget)
        if ended:
            return ended
    stage.book.event("laid", **laid.as_json(stage.laid))
    return None


def _once(acts: Sequence[Act], stage: Stage, budget: Budget) -> str | None:
    for number, act in enumerate(acts, 1):
        act = _at_its_point(act, stage)
        if act.not_run:
            stage.book.event("not_run", step=act.path, label=act.label, why=act.not_run)
            continue
        why = budget.why_not(act)
        if why:
            stage.book.event("budget", step=act.path, why=why, written_bytes=budget.written_bytes)
            return why
        stage.stop.check()
        more: dict = {"round": stage.round} if stage.round else {}
        if act.do in laid.CHANGES:
            more["laid"] = laid.as_json(stage.laid)
        if act.point:
            more["point"] = dict(act.point)
        if act.chosen:
            more["chosen"] = dict(act.chosen)
        if act.do in WRITES:
            more["fio"] = act.folder(stage.round, number)
        if act.do == "replay":
            more["played"] = act.folder(stage.round, number)
        if act.do == "record":
            more["recorded"] = act.folder(stage.round, number)
        with stage.stop.second_raises():  # a reading of the step before is waited for
            stage.live.act(act, stage.round, number, len(acts))
        if act.do in (*MARKED, *MAY_WRITE) and not stage.marked:
            mark(act, stage)
        kind = steps.of(act.do)
        first = kind.before(act, stage) if hasattr(kind, "before") else None
        cut = stage.cut.within(act) if stage.cut else contextlib.nullcontext()
        with step(stage.book, act.path, stage.live.left_s(), **more) as shown, cut:
            shown |= kind.carry_out(act, stage, number)
            if (mean := stage.means.get(act.label)) and act.point:
                shown["mean"] = mean
                choose.remember(stage.seen, act.label, stage.round or 1, mean)
        if hasattr(kind, "after"):
            kind.after(act, stage, first, shown)
        if act.do in MARKED:  # between steps: no figure has it
            mark(act, stage)
        budget.wrote(act, shown.get("bytes", 0))
        stage.laid = laid.after(stage.laid, act, shown.get("bytes", 0))
        stage.live.act_done(act, shown.get("bytes", 0))
    return None


def mark(act: Act, stage: Stage) -> None:
    """Have the bench remember what the drive is known by after an absence."""
    stage.marked = True
    digests = stage.bench.remember(block.sample_offsets(act.range_bytes or stage.bench.drive["capacity_bytes"], MARKS))
    if digests is not None:
        stage.book.event("marks", step=act.path, digests={str(at): digest for at, digest in digests.items()})


def _at_its_point(act: Act, stage: Stage) -> Act:
    """An act at an operating point, with what the choose step before it has picked."""
    if act.do == "choose" or not act.choices:
        return act
    pick = stage.picked.get(act.point["at"])
    if pick is None:
        return replace(act, not_run="the choose step before it was not run")
    if pick.point is None:
        return replace(act, not_run=f"no operating point {pick.at}: {pick.why}")
    return act.at(pick.point)


def _rounds(repeat: Repeat, acts: Sequence[Act], stage: Stage, budget: Budget) -> str | None:
    """Rounds until the rule holds for every tracked value, or the most there are."""
    wanted = [words for entry in repeat.until if repeat.ruled for words in entry.track if _tracked(words, acts)]
    seen: dict[str, list[float]] = {words: [] for words in wanted}
    of_wear = repeat.rule == "wa"
    after, begun = None, []
    try:
        for number in range(repeat.first, repeat.last + 1):
            stage.round = number
            begun.append(stage.laid)
            before = after or _counted(repeat, stage)  # for a resume: the bytes written since
            ended = _once(acts, stage, budget)
            if ended:
                return ended
            after = _counted(repeat, stage) if of_wear else None
            for words in wanted if number >= repeat.judged else ():
                seen[words].append(_wa(before, after) if of_wear else _value(words, acts, stage))
            verdicts = ends.tracked(seen, repeat.rule or "pts")
            if verdicts:
                verdicts = _past_the_cliff(verdicts, repeat, acts, stage, begun[-ROUNDS:][0])
            passed = bool(verdicts) and all(verdict["passed"] for verdict in verdicts.values())
            stage.live.rule_words = ends.far(verdicts)
            if repeat.until:
                stage.book.event("round", step=repeat.path, round=number, steady=passed, tracked=verdicts)
            if passed:
                return None
            if of_wear and number >= repeat.judged + ROUNDS - 1 and all(isnan(value) for value in seen[wanted[0]]):
                stage.book.event(
                    "note", text=f"{repeat.path}: its rule needs NAND bytes, which the drive does not count"
                )
                break  # further rounds would wear it and show nothing
    finally:
        stage.round = None
        stage.live.rule_words = ""
    if wanted:
        stage.book.event("note", text=f"{repeat.path}: STEADY STATE NOT ACHIEVED in {number} rounds")
    return None


def _past_the_cliff(verdicts: dict, repeat: Repeat, acts: Sequence[Act], stage: Stage, begun: laid.Laid) -> dict:
    """The verdicts of a repeat's rounds with the drive writes at which they were reached; not steady where the plan
    asks for a spare area that was used up when the rounds `begun`."""
    spare, asks = laid.spare(begun, stage.bench.drive), any(e.past_spare for e in repeat.until if e.rule)
    made = laid.drive_writes(stage.laid, max(act.range_bytes for act in acts))
    return {
        words: spares.of_rounds(verdict, spare, asks) | {"drive_writes": made} for words, verdict in verdicts.items()
    }


def _counted(repeat: Repeat, stage: Stage) -> dict | None:
    """What the drive has counted by now."""
    with stage.stop.second_raises():
        stage.live.begin(Pace(repeat.path))
        return stage.live.poll_smart("round")


def _wa(before: dict | None, after: dict | None) -> float:
    """Write amplification of a round."""
    wa_value = wa.between(before, after).value if before and after else None
    return float("nan") if wa_value is None else wa_value


def _tracked(words: str, acts: Sequence[Act]) -> Act | None:
    """The act of a tracked point; None where it does not run on this drive."""
    return next((act for act in tracked(words, acts) if not act.not_run), None)


def _value(words: str, acts: Sequence[Act], stage: Stage) -> float:
    """The value of a tracked point in the round that has just ended."""
    act = _tracked(words, acts)
    means = stage.means.get(act.label, {}) if act else {}
    return means.get(words.split()[0], float("nan"))
