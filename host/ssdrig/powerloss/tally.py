"""Counts of a campaign over its judged sessions, and its outcome; all else of them is on the
disk (sessions.py), so its memory grows by four bytes a session."""

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from ssdrig.base.errors import CannotTell, ControlFailed, PromiseBroken, SsdrigError, Suspicion
from ssdrig.base.words import counted, digits
from ssdrig.plan.kinds import cut_aims, cut_schedule
from ssdrig.plan.rules import chance
from ssdrig.powerloss import health
from ssdrig.powerloss.findings import UNSURE

NAMED = 10  # failing sessions named at the end
REASONS = 3  # why sessions were not judged
LOOK = "the cables, the host's memory, and who else writes"


def takes_power(record: Mapping) -> bool:
    """Whether the session took the drive's power, or tried to."""
    return record.get("control") != cut_schedule.NO_CUT and record.get("fired_ns") is not None


def is_cut(record: Mapping) -> bool:
    """Whether the session is a judged cut; control sessions are not."""
    return bool(record.get("judged")) and not record.get("control")


def interval_of(record: Mapping) -> tuple[int, int, int] | None:
    """(first, last, earliest) of the damage that a session found, see statistics.Failing; None: it found none."""
    own = record.get("interval")
    if isinstance(own, Sequence) and len(own) == 3 and all(type(value) is int for value in own):
        return own[0], own[1], own[2]
    return (record["cut"],) * 3 if record.get("failed") else None


def is_unsure(record: Mapping) -> bool:
    """Whether it is a judged cut with an unknown answer to whether the drive was ready in time."""
    return is_cut(record) and UNSURE in (record.get("findings") or {})


def failing(records: Iterable[Mapping], among: Container[int] | None = None) -> chance.Failing:
    """How many of the judged cuts among these sessions broke a promise, records in the order of their numbers; `among`:
    only of these cuts, while any other one may have done the damage as well."""
    result = chance.Failing()
    for record in records:
        own = is_cut(record) and (among is None or record["cut"] in among)
        result.add(record["cut"], own, is_cut(record) or takes_power(record), interval_of(record), is_unsure(record))
    return result


def in_hindsight(records: Iterable[Mapping]) -> list[Mapping]:
    """The records of a campaign, with SLOW_READY for each of its first cuts that was slow by what later ones have shown
    to be usual."""
    records = list(records)
    slow = {*health.slow_first([seconds for seconds in map(time_of, records) if seconds][: health.USUAL_OF])}
    return [_slow(record) if record["cut"] in slow and is_cut(record) else record for record in records]


def time_of(record: Mapping) -> tuple[int, float, float] | None:
    """(cut, ready_s, of it the drive's own), None where the drive was not away."""
    ready_s = record.get("ready_s")
    return None if ready_s is None else (record["cut"], ready_s, ready_s - (record.get("stalled_s") or 0.0))


def _slow(record: Mapping) -> dict:
    findings = {**(record.get("findings") or {}), "SLOW_READY": 1}
    words = f"ready after {digits(record['ready_s'], 3)} s, as later cuts show"
    more = {"findings": findings, "words": [*(record.get("words") or []), words]}
    return {**record, **more, "suspicion": not record.get("failed")}


class Tally:
    """`cuts`: judged ones; `unsure`: of them, is_unsure(); `broken`: sessions that found a broken promise; `failing`:
    how many cuts broke one; `last`: the record of the latest session; `last_cut`: the latest that took power; `first`:
    time_of() the first ones; `named`: the first failing sessions; `reasons`: why cuts were not judged, some of them;
    `harness`: (session, why) of the first that suspect the harness."""

    def __init__(self, records: Iterable[Mapping] = ()):
        self.cuts = self.broken = self._suspicious = self.most_bytes = self.tried = self.last_cut = 0
        self.unsure = 0
        self.named: list[int] = []
        self.first: list[tuple[int, float, float]] = []
        self._passed: set[int] = set()  # of the first cuts, those that are judged and have no finding
        self.reasons: list[str] = []
        self.harness: list[tuple[int, str]] = []
        self.last: Mapping = {}
        self._tried: Mapping = {}  # of the latest session that was to write
        self.failing = chance.Failing()
        for record in records:
            self.add(record)

    def add(self, record: Mapping) -> None:
        """One more session, records in the order of their numbers."""
        cut = is_cut(record)
        of_cut = cut or "REFUSED" in (record.get("findings") or {})  # a control session refused what a cut has done
        self.cuts, self._suspicious = self.cuts + cut, self._suspicious + (of_cut and bool(record["suspicion"]))
        self.most_bytes = max(self.most_bytes, record["written_bytes"])
        if record["failed"]:
            self.broken += 1
            self.named = sorted([*self.named, record["cut"]])[:NAMED]
        self.unsure += is_unsure(record) and not record["failed"]
        self.failing.add(record["cut"], cut, takes_power(record), interval_of(record), is_unsure(record))
        if takes_power(record):
            self.last_cut = max(self.last_cut, record["cut"])
        if (time := time_of(record)) and len(self.first) < health.USUAL_OF:
            self.first.append(time)
            self._passed |= {record["cut"]} if cut and not record["failed"] and not record["suspicion"] else set()
        if record.get("harness"):
            self.harness = [*self.harness, (record["cut"], record["harness"])][:REASONS]
        if not record["control"]:
            self.tried += 1
            if not record["judged"]:
                self.reasons = sorted({*self.reasons, record["why_not"]})[:REASONS]
        self.last = record
        self._tried = record if record.get("aim") != cut_aims.AGAIN else self._tried

    @property
    def ready_s(self) -> list[float]:
        """Times of the first cuts, for health.usual_s()."""
        return [ready_s for _, ready_s, _ in self.first]

    @property
    def suspicious(self) -> int:
        """Sessions with a suspicion of the drive, those among them that only later ones show to be slow."""
        return self._suspicious + len(self._passed & {*health.slow_first(self.first)})

    def before(self, number: int) -> Mapping | None:
        """The record of the session before this one, None where the latest is another. One that was to write nothing
        has the commands of the session before it."""
        if self.last.get("cut") != number - 1:
            return None
        if self._tried.get("cut") != number - 2:
            return self.last
        return {**self.last, **{key: self._tried.get(key) for key in ("refused", "acknowledged")}}

    def outcome(self, where: Path) -> SsdrigError | None:
        """What the campaign has come to so far: a broken promise of the drive before all else, then the harness, then a
        suspicion, then unknown answers; None where all is clean. `where`: the folder of its sessions."""
        harness = "; ".join(f"session {number}: {why}" for number, why in self.harness)
        if self.broken:
            numbers = ", ".join(map(str, self.named)) + (", …" if self.broken > len(self.named) else "")
            seen = f"{of(self.failing.least, self.failing.most, self.cuts)}, found in session {numbers}"
            beside = f"; and the harness is suspected ({harness}): look at {LOOK}" if harness else ""
            do = f"read the proofs: {where}/*/proofs.json, or ./ssdrig report{beside}"
            return PromiseBroken("no cut that breaks a promise of the drive", seen, do)
        if harness:
            do = f"nothing is proven of the drive: look at {where}, {LOOK}"
            return ControlFailed("control sessions without a finding", harness, do)
        if not self.cuts and self.tried:
            seen, do = f"none: {'; '.join(self.reasons)}", "the drive is not judged: see ./ssdrig report"
            return ControlFailed("at least one cut that can be judged", seen, do)
        if self.suspicious:
            seen, do = f"{self.suspicious} of {self.cuts} cuts", "./ssdrig report has the details"
            return Suspicion("nothing suspicious after a cut", seen, do)
        if self.unsure:
            seen = f"unknown for {of(self.unsure, self.unsure, self.cuts)}: this host may have taken the time"
            do = "nothing else was found: run it again on a host with a CPU to spare, or with a longer `ready`"
            return CannotTell("the drive ready within the plan's `ready`", seen, do)
        return None


def of(least: int, most: int, cuts: int) -> str:
    """ "2 of 60 cuts", "1 to 9 of 60 cuts"."""
    return f"{least if least == most else f'{least} to {most}'} of {counted(cuts, 'cut')}"
