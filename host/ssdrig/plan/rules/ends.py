"""Rules that end a load or a repeat: pure functions of the data so far. The steady-state rule itself is
steady.py (SNIA PTS 2.0.2, clause 2.1.24)."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ssdrig.base.deferred import Deferred
from ssdrig.base.words import size
from ssdrig.plan.rules import spare, steady, steady_wa, windows
from ssdrig.plan.rules.spare import Spare

if TYPE_CHECKING:
    import numpy as np

    from ssdrig.plan import values
else:
    np = Deferred("numpy")

RECORD_S = 60.0  # a PTS round is a minute


def edges_s(spans: Mapping[str, "values.Span"], time_s: float | None) -> tuple[float, ...]:
    """The seconds of a step of `time_s` at which its windows begin and end, those of the step's own begin left out:
    there SMART is read."""
    if time_s is None:
        return ()
    bounds = {time_s}
    for span in spans.values():
        bounds.add(begins_s(span, time_s))
        bounds.add(time_s if span.to_s is None else span.to_s)
    return tuple(sorted(at_s for at_s in bounds if 0 < at_s <= time_s))


def begins_s(span: "values.Span", time_s: float) -> float:
    """The whole second at which a window of a step of `time_s` begins."""
    if span.from_share is not None:
        return float(int(span.from_share * time_s + 1e-6))
    begin = span.from_s or 0.0
    return begin if begin >= 0 else time_s + begin


def spans_s(spans: Mapping[str, "values.Span"], lasted_s: float) -> dict[str, list[int]]:
    """The windows of a step of length `lasted_s`, in whole seconds: {name: [from, to]}; the fresh one, which the cliff
    ends, is left to the analysis."""
    whole = int(lasted_s)
    windows = {}
    for name, span in spans.items():
        begin = int(begins_s(span, whole))
        end = whole if span.to_s is None else min(whole, int(span.to_s))
        if not span.cliff and 0 <= begin < end:
            windows[name] = [begin, end]
    return windows


class Watch:
    """Whether the end of a load has come. `spare`: the drive at the load's begin, by default filled and of unknown raw
    NAND; `reads_only`: the load uses up no spare area; `cold_s`: limits.cold_s() of the readings so far. `ended_by`:
    which of the ends it was; `verdict`: of the rule."""

    def __init__(
        self,
        until: Sequence["values.Until"],
        capacity_bytes: int,
        spare: Spare | None = None,
        reads_only: bool = False,
        cold_s: Callable[[], float | None] = lambda: None,
    ):
        self.rules = [entry for entry in until if entry.rule == "pts" or entry.written or entry.cliff]
        self.capacity_bytes = capacity_bytes
        self.spare = spare or Spare(capacity_bytes, valid_bytes=capacity_bytes)
        self.reads_only, self.cold_s = reads_only, cold_s
        self.ended_by: str | None = None
        self.verdict: dict = steady.untested("the load was too short for five records")
        self._records = self._written_bytes = 0

    def words(self) -> str:
        """Progress of the rule, for the live line; "" without a rule."""
        entry = next((entry for entry in self.rules if entry.rule), None)
        if entry is None:
            return ""
        far = steady.words(self.verdict) or f"record {self._records} of {steady.ROUNDS}"
        least = max(
            self._bytes(entry.after) if entry.after else 0,
            self.spare.earliest_bytes - self.spare.laid_bytes if entry.past_spare and not self.reads_only else 0,
        )
        if self._written_bytes < least:
            far += f", {size(self._written_bytes)} of {size(least)} first"
        elif self.verdict.get("past_spare") is False:
            far += ", spare area not used up"
        return far

    def met(self, counts: "Sequence[float] | np.ndarray", written_bytes: int) -> bool:
        """Asked each second: `counts` are the I/Os of each second so far."""
        for entry in self.rules:
            if entry.written and written_bytes >= self._bytes(entry.written):
                self.ended_by = "written"
            elif entry.cliff and windows.falls(list(counts)):
                self.ended_by = "cliff"
            elif entry.rule and self._steady(entry, counts, written_bytes):
                self.ended_by = "steady"
        return self.ended_by is not None

    def _steady(self, entry: "values.Until", counts: "Sequence[float] | np.ndarray", written_bytes: int) -> bool:
        record_s = entry.record_s or RECORD_S
        self._written_bytes = written_bytes
        if entry.past_spare and not self.reads_only:
            self._records = len(counts) // max(1, round(record_s))
            written = by_second(counts, written_bytes)
            self.verdict = spare.verdict(counts, written, self.spare, record_s, entry.spaced_s, self.cold_s())
        else:
            means = steady.records(counts, record_s, entry.spaced_s)
            self._records = len(means)
            if len(means) >= steady.ROUNDS:
                self.verdict = self._of_the_standard(counts, written_bytes, means[-steady.ROUNDS :], entry)
        enough = entry.after is None or written_bytes >= self._bytes(entry.after)
        return bool(enough and self.verdict["passed"])

    def _of_the_standard(self, counts, written_bytes: int, means: Sequence[float], entry: "values.Until") -> dict:
        """The PTS verdict, with whether all five records are past the cliff."""
        verdict = steady.verdict(means)
        if self.reads_only or not verdict["passed"]:
            return verdict
        record_s = entry.record_s or RECORD_S
        begin_s = len(counts) - round((entry.spaced_s or record_s) * (steady.ROUNDS - 1) + record_s)
        evidence = spare.used_up(counts, by_second(counts, written_bytes), self.spare, record_s, self.cold_s())
        return verdict | spare.past(evidence, begin_s)

    def _bytes(self, amount) -> float:
        return amount.fixed_bytes or amount.times * self.capacity_bytes


def by_second(counts: "Sequence[float] | np.ndarray", written_bytes: float) -> "np.ndarray":
    """Bytes written by the end of each second, of I/Os that write alike (n,)."""
    done = np.cumsum(np.asarray(counts, float))
    return done * (written_bytes / done[-1]) if len(done) and done[-1] else done


def tracked(rounds: Mapping[str, Sequence[float]], rule: str = "pts") -> dict[str, dict]:
    """The rule on the last five rounds of each tracked value: {words: verdict}; a repeat is steady when all pass."""
    few, limits = f"the rule needs {steady.ROUNDS} rounds", steady_wa.LIMITS if rule == "wa" else steady.PTS

    def verdict(seen: Sequence[float]) -> dict:
        if len(seen) < steady.ROUNDS:
            return steady.untested(few, limits)
        return steady_wa.verdict(seen) if rule == "wa" else steady.verdict(seen[-steady.ROUNDS :])

    return {words: verdict(seen) for words, seen in rounds.items()}


def far(verdicts: Mapping[str, dict]) -> str:
    """How far a repeat is from steady: of several tracked values the one that is furthest, and how many hold."""
    tested = [verdict for verdict in verdicts.values() if verdict["range_percent"] is not None]
    if not tested:
        return ""
    worst = steady.words(max(tested, key=steady.excess))
    held = sum(bool(verdict["passed"]) for verdict in verdicts.values())
    return worst if len(verdicts) == 1 else f"{worst}, {held} of {len(verdicts)} steady"
