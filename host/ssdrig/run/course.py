"""How far a run has come: the current act, the bytes written, and the time left, as a range. Pure: the
caller passes the elapsed time.

What an act took in this run is what the same act is priced by from then on, so the range narrows as the run goes on.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ssdrig.base import words
from ssdrig.plan import cost
from ssdrig.plan.expand import Act, Repeat
from ssdrig.run.budget import Budget

FEWEST_SHARE = 0.02  # of an act's bytes, before its own speed predicts the rest
Ahead = Sequence[tuple[Repeat | None, Sequence[Act], int, int]]  # acts with the least and the most rounds of them


class Course:
    """The acts of a run on a drive; `earlier`: see plan/cost.py. `budget` is the run's own: the engine counts in it.
    `after_s`: host seconds of what comes after the run, such as the other plans of a review (least, most)."""

    def __init__(
        self,
        acts: Sequence[Act],
        drive: Mapping,
        earlier: Mapping[str, tuple[float, float]],
        budget: Budget,
        after_s: tuple[float, float] = (0.0, 0.0),
    ):
        self._after_s = after_s
        self._groups = [
            (repeat, list(grouped)) for repeat, grouped in itertools.groupby(acts, key=lambda act: act.repeat)
        ]
        self._drive, self._known, self.budget = drive, dict(earlier), budget
        self.k = drive["time_dilation"]
        self.act: Act | None = None
        self._present = cost.Cost()
        self._later_s = (0.0, 0.0)

    def begin(self, act: Act, round_: int | None = None) -> None:
        """An act begins, in a repeat in this round."""
        self.act, self._present = act, cost.of(act, self._drive, self._known)
        ahead: list = []
        reached = False
        for repeat, group in self._groups:
            place = next((i for i, row in enumerate(group) if row.label == act.label), None)
            if place is not None:
                reached = True
                ahead.append((None, group[place + 1 :], 1, 1))
                if repeat and round_ is not None:
                    least = max(0, repeat.first - 1 + repeat.least - round_)
                    ahead.append((repeat, group, least, max(0, repeat.last - round_)))
            elif reached:
                ahead.append((repeat, group, *_rounds(repeat)))
        self._later_s = self._range_s(ahead, self._present.written_bytes)

    def place(self, act: Act) -> tuple[int, int]:
        """The number of an act in the plan, from 1, and how many acts the plan has, each counted once."""
        labels = [member.label for _, group in self._groups for member in group]
        return labels.index(act.label) + 1 if act.label in labels else 0, len(labels)

    def whole_s(self) -> tuple[float, float]:
        """Host seconds of the run before it begins, (least, most)."""
        ahead = [(repeat, group, *_rounds(repeat)) for repeat, group in self._groups]
        least, most = self._range_s(ahead, (0.0, 0.0))
        return self.k * least, self.k * most

    def end(self, act: Act, host_s: float, moved_bytes: int) -> None:
        """The act took this long and moved this many bytes."""
        self._known[act.label] = (host_s / self.k, moved_bytes)

    def read(self, host_s: float) -> None:
        """A SMART reading took this long."""
        self._known[cost.READING] = (host_s / self.k, 0)

    def left_s(self, elapsed_s: float, share: float | None = None) -> tuple[float, float]:
        """Host seconds to the end of the run's steps and of what comes after them, or to where the budget ends them,
        (least, most). `elapsed_s`: of
        the act in work, host time; `share`: how much of its bytes is done, None where it is not bytes that end it. What
        a rule may end sooner than the plan states is not known in advance."""
        least, most = self._present.time_s
        elapsed = elapsed_s / self.k
        if share is None:
            rest = (max(0.0, least - elapsed), max(0.0, most - elapsed))
        elif share < FEWEST_SHARE:
            rest = (least * (1 - share), most * (1 - share))
        else:
            rest = (elapsed * (1 - share) / share,) * 2
        estimates = (self.k * (mine + later) for mine, later in zip(rest, self._later_s, strict=True))
        least_s, most_s = (s + after for s, after in zip(estimates, self._after_s, strict=True))
        return least_s, most_s

    def written_bytes(self, moved_bytes: int = 0) -> int:
        """By the whole run, `moved_bytes` of it by the act in work."""
        return self.budget.written_bytes + (self.budget.share(self.act, moved_bytes) if self.act else 0)

    def written_words(self, moved_bytes: int = 0) -> str:
        """ "wrote 1.20 GB", with a budget "wrote 1.20 GB of 5.00 TB"."""
        most = self.budget.most_bytes
        of = "" if most is None else f" of {words.size(most)}"
        return f"wrote {words.size(self.written_bytes(moved_bytes))}{of}"

    def _range_s(self, ahead: Ahead, present_bytes: tuple[float, float]) -> tuple[float, float]:
        """Drive time of the remaining acts. It ends soonest where most is written and the budget ends it, latest where
        least is."""
        priced = [
            (
                [(act, cost.of(act, self._drive, self._known)) for act in acts],
                cost.reading(self._drive, self._known).time_s if repeat else (0.0, 0.0),
                rounds,
            )
            for repeat, acts, *rounds in ahead
        ]

        def passes(time: int, bytes_: int, rounds: int) -> float:
            budget = replace(self.budget, written_bytes=int(self.budget.written_bytes + present_bytes[bytes_]))
            seconds = 0.0
            for acts, reading_s, of in priced:
                took, ended = _walk(acts, reading_s[time], of[rounds], time, bytes_, budget)
                seconds += took
                if ended:
                    break
            return seconds

        return min(passes(0, 1, 0), passes(0, 1, 1)), passes(1, 0, 1)


def _rounds(repeat: Repeat | None) -> tuple[int, int]:
    """The least and the most rounds of acts."""
    return (repeat.least, repeat.most) if repeat else (1, 1)


def _walk(
    acts: Sequence[tuple[Act, cost.Cost]], reading_s: float, rounds: int, time: int, bytes_: int, budget: Budget
) -> tuple[float, bool]:
    """(seconds of this many rounds of acts, whether the budget has ended them before), each with one side of its range.
    Counts in the budget."""
    once_s = reading_s + sum(act.time_s[time] for _, act in acts)
    once_bytes = sum(act.written_bytes[bytes_] for _, act in acts)
    left_bytes = budget.left_bytes()
    whole = rounds if left_bytes is None or not once_bytes else min(rounds, max(0, int(left_bytes / once_bytes) - 1))
    budget.written_bytes += int(whole * once_bytes)
    seconds = whole * once_s
    for _ in range(rounds - whole):
        seconds += reading_s
        for act, current in acts:
            if not act.not_run and budget.why_not(act):
                return seconds, True
            seconds += current.time_s[time]
            budget.written_bytes += int(current.written_bytes[bytes_])
    return seconds, False


def range_words(seconds: tuple[float, float]) -> str:
    """A range of time, "2:10…18:40"; "2:10" where both ends read alike."""
    return "…".join(dict.fromkeys(map(words.clock, seconds)))
