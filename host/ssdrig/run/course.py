"""How far a run has come: the act in work, what is written, and how long the rest of it takes, as a range. Pure: who
uses it says how much time has passed.

What an act took in this run is what the same act is priced by from then on, so the range narrows as the run goes on.
"""

import itertools
from collections.abc import Mapping, Sequence

from ssdrig import words
from ssdrig.plan import cost
from ssdrig.plan.expand import Act
from ssdrig.run.budget import Budget

FEWEST_SHARE = 0.02  # of an act's bytes, before its own speed says how long the rest takes


class Course:
    """The acts of a run on a drive; `earlier`: see plan/cost.py. `budget` is the run's own: the engine counts in it."""

    def __init__(self, acts: Sequence[Act], drive: Mapping, earlier: Mapping[str, tuple[float, float]], budget: Budget):
        self._groups = [
            (repeat, list(grouped)) for repeat, grouped in itertools.groupby(acts, key=lambda act: act.repeat)
        ]
        self._drive, self._known, self.budget = drive, dict(earlier), budget
        self.k = drive["time_dilation"]
        self.act: Act | None = None
        self._behind = self._present = cost.Cost()

    def begin(self, act: Act, round_: int | None = None) -> None:
        """An act begins, in a repeat in this round."""
        self.act, self._present = act, cost.of(act, self._drive, self._known)
        self._behind = cost.Cost()
        ahead = False
        for repeat, group in self._groups:
            place = next((i for i, each in enumerate(group) if each.label == act.label), None)
            if place is not None:
                ahead = True
                self._behind += self._once(group[place + 1 :])
                if repeat and round_ is not None:
                    least = max(0, repeat.first - 1 + repeat.least - round_)
                    self._behind += self._once(group).times(least, max(0, repeat.last - round_))
            elif ahead:
                self._behind += cost.total(group, self._drive, self._known)

    def end(self, act: Act, host_s: float, moved_bytes: int) -> None:
        """The act took so long and moved so many bytes."""
        self._known[act.label] = (host_s / self.k, moved_bytes)

    def left_s(self, elapsed_s: float, share: float | None = None) -> tuple[float, float]:
        """Host seconds to the end of the run, (least, most). `elapsed_s`: of the act in work, host time; `share`: how
        much of its bytes is done, None where it is not bytes that end it. Purges, SMART readings and what a rule may
        end sooner than the plan says are not known in advance."""
        least, most = self._present.time_s
        elapsed = elapsed_s / self.k
        if share is None:
            rest = (max(0.0, least - elapsed), max(0.0, most - elapsed))
        elif share < FEWEST_SHARE:
            rest = (least * (1 - share), most * (1 - share))
        else:
            rest = (elapsed * (1 - share) / share,) * 2
        behind = self._behind.time_s
        return self.k * (rest[0] + behind[0]), self.k * (rest[1] + behind[1])

    def written_bytes(self, moved_bytes: int = 0) -> int:
        """By the whole run, `moved_bytes` of it by the act in work."""
        return self.budget.written_bytes + (self.budget.share(self.act, moved_bytes) if self.act else 0)

    def written_words(self, moved_bytes: int = 0) -> str:
        """ "wrote 1.20 GB", with a budget "wrote 1.20 GB of 5.00 TB"."""
        most = self.budget.most_bytes
        of = "" if most is None else f" of {words.size(most)}"
        return f"wrote {words.size(self.written_bytes(moved_bytes))}{of}"

    def _once(self, acts: Sequence[Act]) -> cost.Cost:
        return sum((cost.of(act, self._drive, self._known) for act in acts), cost.Cost())


def range_words(seconds: tuple[float, float]) -> str:
    """A range of time, "2:10…18:40"; "2:10" where both ends read alike."""
    return "…".join(dict.fromkeys(map(words.clock, seconds)))
