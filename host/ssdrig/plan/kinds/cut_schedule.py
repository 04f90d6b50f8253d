"""Which cut comes when: a pure function of the plan and the seed, so that a resumed campaign goes on with the same cuts
and one of them can be repeated alone."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ssdrig.plan.kinds import cut_aims
from ssdrig.plan.kinds.cut_aims import AGAIN
from ssdrig.switch.profiles import PROFILES

NO_CUT, ANNOUNCED = "no-cut", "announced"  # control sessions
NOT_FIRST = (AGAIN, "recovery")  # aims: nothing was written that a cut could take again; the power is taken twice
LEAST_SHARE = 0.05  # of the longest write phase


class Cut(NamedTuple):
    """One session of the campaign. `number` from 1; `aim` as the plan words it, and the how manieth cut with it this
    is, from 0; `control` None, or the kind of control session; a session without a cut has no shape. `seed`
    determines the data and its places; `share`: a control session writes for this share of the longest write phase;
    `follows_again`: the session before wrote nothing, so its first FLUSH is the drive's first since power returned."""

    number: int
    aim: str
    nth: int
    shape: str | None
    control: str | None
    seed: int
    share: float
    follows_again: bool = False


def controls(count: int, percent: int) -> int:
    """Number of control sessions in addition to `count` cuts."""
    return max(1, round(count * percent / 100)) if percent else 0


def cuts(
    seed: int, count: int, controls: int, aims: Mapping[str, int], shapes: Mapping[str, int], announces: bool
) -> list[Cut]:
    """All sessions in order: `count` cuts, with aims and shapes in proportion to their weights, each as near as whole
    cuts come, mixed by the seed, with the control sessions among them. `announces`: the bench can announce power
    loss to the drive; otherwise no control session is announced."""
    chance = random.Random(f"schedule {seed}")
    kinds = [NO_CUT, ANNOUNCED] if announces else [NO_CUT]
    control: list[str | None] = [kinds[i % len(kinds)] for i in range(controls)] + [None] * count
    chance.shuffle(control)
    aimed = _dealt(aims, count, chance)
    if aimed:
        _put(count - 1, aimed, lambda word: cut_aims.parse(word).name not in NOT_FIRST)
    shaped = _dealt(shapes, len(control), chance)
    if (first := next((i for i, kind in enumerate(control) if kind != NO_CUT), None)) is not None:
        # the first loss of power is one that the drive cannot but feel: it shows whose power is taken
        _put(first, control, lambda kind: kind is None)
        _put(first, shaped, lambda shape: shape not in PROFILES or not PROFILES[shape].back_by_itself)
    sessions: list[Cut] = []
    had: Counter[str] = Counter()
    for number, (kind, shape) in enumerate(zip(control, shaped), 1):
        own = random.Random(f"cut {seed} {number}")
        aim = "random" if kind else aimed.pop()
        share = LEAST_SHARE + (1 - LEAST_SHARE) * own.random()
        falls = None if kind == NO_CUT else shape
        after_again = bool(sessions) and sessions[-1].aim == AGAIN
        sessions.append(Cut(number, aim, 0 if kind else had[aim], falls, kind, own.getrandbits(31), share, after_again))
        had[aim] += not kind
    return sessions


def own(cut: Cut, bulk_uF: float | None) -> dict | None:
    """The fields of the cut's shape (firmware/cut.py), drawn by its seed. None for a ramp until the capacitance of the
    rail is known from a crowbar cut."""
    profile = PROFILES.get(cut.shape or "")
    return profile.draw(random.Random(f"shape {cut.seed}"), bulk_uF) if profile else {}


def _put(place: int, words: list, fits: Callable[[Any], bool]) -> None:
    """Exchange the word at this place, unless it fits, for the first that does."""
    other = place if fits(words[place]) else next((i for i, word in enumerate(words) if fits(word)), place)
    words[place], words[other] = words[other], words[place]


def _dealt(weights: Mapping[str, int], count: int, chance: random.Random) -> list[str]:
    """`count` words in proportion to their weights (largest remainders), in an order of chance."""
    total = sum(weights.values())
    exact = {word: count * weight / total for word, weight in weights.items()}
    whole = {word: int(share) for word, share in exact.items()}
    rest = sorted(exact, key=lambda word: whole[word] - exact[word])[: count - sum(whole.values())]
    drawn = [word for word in weights for _ in range(whole[word] + (word in rest))]
    chance.shuffle(drawn)
    return drawn
