"""In which order the plans of a review are run: one whose first steps make a state that another has just left comes
after that one, and leaves them out (plan/history.py). Pure, except reading plans and earlier runs."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ssdrig.base.errors import SsdrigError
from ssdrig.plan import cost, history, reviews
from ssdrig.plan.expand import Act
from ssdrig.reading.review_folder import Planned
from ssdrig.run import given_again, prepare
from ssdrig.run.options import SEEDS_EACH
from ssdrig.run.prepare import Prepared


@dataclass(frozen=True)
class Item:
    """A plan of a review. `prepared`: on its drive, None if it is not run, for the reason `why`; `leaves_out`: how many
    of its first acts, since `after`, the plan before it, leaves the drive as they make it."""

    name: str
    plan: str
    variant: str | None
    sets: Mapping[str, str]
    prepared: Prepared | None = None
    why: str | None = None
    leaves_out: int = 0
    after: str | None = None

    @property
    def shortened(self) -> Prepared:
        """Without the acts that are left out."""
        assert self.prepared is not None
        return prepare.leave_out(self.prepared, self.leaves_out, str(self.after))


def item_of(planned: Planned) -> Item:
    """A plan of review.json, not prepared."""
    return Item(planned.name, planned.plan, planned.variant, planned.sets, why=planned.why)


def plans(level: str) -> list[str]:
    """The plans that a review of this level may run."""
    return [entry.plan for entry in reviews.entries() if not entry.why_not(level)]


def of_level(
    level: str, drive: Mapping, can: frozenset[str], runs: str | Path, seed: int, entries: Sequence[reviews.Entry] = ()
) -> list[Item]:
    """The plans of a review on this drive, those that are run in the order to run them, then the others with the
    reason."""
    ordered = []
    for i, entry in enumerate(entries or reviews.entries()):
        variant, sets = entry.at(level)
        item = Item(entry.name, entry.plan, variant, sets, why=entry.why_not(level))
        ordered.append(item if item.why else on(item, drive, can, runs, seed + i * SEEDS_EACH))
    return [*arranged([item for item in ordered if item.prepared]), *(item for item in ordered if not item.prepared)]


def on(item: Item, drive: Mapping, can: frozenset[str], runs: str | Path, seed: int) -> Item:
    """The item prepared for a drive, or why it does not run there."""
    try:
        sets = dict(item.sets)
        prepared = prepare.prepare(item.plan, drive, item.variant, sets, seed, can, runs)
        if given_again.files(prepared.acts):
            return replace(item, why="it reads a file, and a review names none")
        return replace(item, prepared=prepared)
    except SsdrigError as error:
        return replace(item, why=f"it needs {error.expected}; here: {error.seen}")


def arranged(items: Sequence[Item]) -> list[Item]:
    """These plans so that little is done twice: while it saves time one of them is moved, that which saves most.
    Else they keep their order."""
    lefts = [history.left(_acts(item)).at_the_end() for item in items]
    saves: dict[tuple[int, int], float] = {}
    for j, item in enumerate(items):
        for i, left in enumerate(lefts):
            assert item.prepared
            if i != j and (count := history.may_leave_out(left, _acts(item), item.prepared.plan)):
                saves[i, j] = saved_s(item.prepared, count)

    def saved(order: Sequence[int]) -> float:
        return sum(saves.get(pair, 0.0) for pair in itertools.pairwise(order))

    order = list(range(len(items)))
    while saves:
        moved = [_moved(order, at, to) for at in range(len(order)) for to in range(len(order)) if at != to]
        best = max(moved, key=saved, default=order)
        if saved(best) <= saved(order):
            break
        order = best
    return chained([items[i] for i in order])


def chained(items: Sequence[Item]) -> list[Item]:
    """These plans in this order, each with the acts it may skip after its predecessor."""
    out: list[Item] = []
    for item in items:
        assert item.prepared
        left = history.left(_acts(out[-1])).at_the_end() if out else history.Left()
        count = history.may_leave_out(left, _acts(item), item.prepared.plan)
        out.append(replace(item, leaves_out=count, after=out[-1].name if count else None))
    return out


def saved_s(prepared: Prepared, count: int) -> float:
    """Drive time that it saves, on average, to leave out this many of the first acts."""
    rest = prepare.leave_out(prepared, count, "")
    return sum(prepared.cost.time_s) / 2 - sum(rest.cost.time_s) / 2


def host_s(prepared: Prepared) -> tuple[float, float]:
    """How long it takes, (least, most)."""
    k = prepared.drive["time_dilation"]
    return k * prepared.cost.time_s[0], k * prepared.cost.time_s[1]


def total(items: Sequence[Item]) -> cost.Cost:
    """The cost of the acts that run, without the skipped ones."""
    return sum((item.shortened.cost for item in items if item.prepared), cost.Cost())


def _acts(item: Item) -> tuple[Act, ...]:
    assert item.prepared is not None
    return item.prepared.acts


def _moved(order: Sequence[int], at: int, to: int) -> list[int]:
    """The order with one of its members at another place."""
    rest = [*order[:at], *order[at + 1 :]]
    return [*rest[:to], order[at], *rest[to:]]
