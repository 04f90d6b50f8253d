"""Everything a step needs to run."""

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from ssdrig.base.errors import JournalError, SsdrigError, UsageError, words_of
from ssdrig.base.words import size
from ssdrig.plan.rules.laid import NOTHING, Laid

if TYPE_CHECKING:
    from ssdrig.base.progress import Progress
    from ssdrig.load.ceiling import Ceiling, Shape
    from ssdrig.load.fio import Result
    from ssdrig.load.fiojob import Job
    from ssdrig.meter.pico.stream import Rig
    from ssdrig.plan.expand import Act
    from ssdrig.plan.rules.choose import Pick, Seen
    from ssdrig.run.asked_cut import AskedCut
    from ssdrig.run.bench import Bench
    from ssdrig.run.budget import Budget
    from ssdrig.run.live import Live
    from ssdrig.run.pace import Pace
    from ssdrig.run.teardown import Stop, Teardown
    from ssdrig.runs.journal import Journal


@dataclass
class Stage:
    """The bench, the run's journal, what happens each second, and what the steps before have shown. `seed` of the run:
    each fio job has the next one, or the random order of one would repeat what another wrote. `round`: of the repeat
    that is being executed, from 1. `means`: {act's label: {"iops", "MB/s", "lat_mean"}} of the last time; `seen`:
    the same of every round, of earlier parts of the run too; `picked`: by the latest choose step. `rig`: that powers
    the drive. `outcome`: the finding about the drive, if it sets the exit code of a run that has done all it
    should. `off`: set once the drive has no power, and is not to have any when the run ends. `cut`: of the drive's
    power, that the run's owner may ask for; None: not of this run. `marked`: places to know the drive by after an
    absence have been read. `laid`: bytes written by the steps before. `words`: the command of a recording; `log`: that
    its application keeps. `ceilings`: of the load generator on this host, by the shape of a load."""

    bench: "Bench"
    book: "Journal"
    live: "Live"
    stop: "Stop"
    progress: "Progress"
    teardown: "Teardown"
    seed: int
    jobs: int = 0
    round: int | None = None
    means: dict[str, dict[str, float]] = field(default_factory=dict)
    seen: "Seen" = field(default_factory=dict)
    picked: "Mapping[str, Pick]" = field(default_factory=dict)
    budget: "Budget | None" = None
    rig: "Rig | None" = None
    outcome: "SsdrigError | None" = None
    off: Event = field(default_factory=Event)
    cut: "AskedCut | None" = None
    marked: bool = False
    laid: Laid = NOTHING
    words: tuple[str, ...] = ()
    log: Path | None = None
    ceilings: "Mapping[Shape, Ceiling]" = field(default_factory=dict)

    @property
    def dilation(self) -> int:
        return self.bench.drive["time_dilation"]

    def asked(self) -> bool:
        """Whether what goes on is to end: someone asked for that, or for a cut of the drive's power, which is made
        here."""
        return self.stop.asked() or self.cut is not None and self.cut.due()

    def check(self) -> None:
        """Raises PowerCut or KeyboardInterrupt if so."""
        if self.cut:
            self.cut.check()
        self.stop.check()

    def second(self, now: dict) -> None:
        """The report of a load each second; reports after the power is off are ignored."""
        if not (self.cut and self.cut.made):
            self.live.second(now)

    def ask(self) -> str:
        """A line typed at the terminal. Raises UsageError without a terminal."""
        import sys

        if not sys.stdin.isatty():
            raise UsageError("a user at a terminal, whom the plan asks", "no terminal", "start it in a terminal")
        return sys.stdin.readline().strip()

    def next_seed(self) -> int:
        self.jobs += 1
        return self.seed + self.jobs - 1

    def folder(self, act: "Act", number: int = 0) -> Path:
        return self.book.path / "fio" / act.folder(self.round, number)

    def over_budget(self, written_bytes: int, next_bytes: int) -> str | None:
        """Why an act may not write `more_bytes` after `written_bytes`; None: it may."""
        left = self.budget.left_bytes() if self.budget else None
        if left is None or written_bytes + next_bytes <= left:
            return None
        return f"the budget: {size(left - written_bytes)} are left of it, and {size(next_bytes)} come next"

    def fio(
        self,
        act: "Act",
        job: "Job",
        pace: "Pace",
        number: int = 0,
        met=lambda iops, moved_bytes: False,
        within: str = "",
    ) -> "Result":
        """Execute one fio job, `within` a folder of the act's where it has several. `met(iops, moved_bytes)`, asked
        each second with the I/Os of each second of drive time and the bytes read and written so far, ends it."""
        from ssdrig.drive import witness
        from ssdrig.load import ceiling, fio

        if self.ceilings and ceiling.pooled(self.ceilings, act.do, act.keys):
            job = replace(job, pool=True)
        counts: list[float] = []  # of each second of drive time
        held: list[float] = []  # of the host's seconds that make up the next one
        ended = [False]

        def second(now: dict) -> None:
            if "read_qd" in act.keys:  # for a load that writes, concurrent reads never count
                now = now | {"total_bytes": now["written_bytes"]}
            self.second(now)
            held.append(now["iops"])
            if len(held) == self.dilation:
                counts.append(sum(held))
                held.clear()
                ended[0] = ended[0] or met(counts, now["total_bytes"])

        self.live.begin(pace)
        self.means.pop(act.label, None)
        before = self.bench.witness(witness.NOW)
        result = fio.run(
            job, self.folder(act, number) / within, on_second=second, should_stop=lambda: ended[0] or self.asked()
        )
        counted = witness.between(before, self.bench.witness(witness.NOW))
        if {"handle", "handles"} & set(act.keys):
            counted |= {"drive": None, "why": witness.PASSED_BY}
        more = {"round": self.round} if self.round else {}
        self.book.event("witness", step=act.path, label=act.label, **more, **counted)
        if result.seconds:
            self.book.event("load.first_io", t_ns=int(result.seconds.t_ns[0]), step=act.path)
            if means := _means(act, result, self.dilation):
                self.means[act.label] = means
        self.check()
        return result


def _means(act: "Act", result: "Result", dilation: int) -> dict[str, float] | None:
    """The means of a load, in drive time: of all of it, or of the whole seconds after its first burst."""
    from ssdrig.plan.kinds import load

    assert result.seconds is not None
    seconds, totals = result.seconds, result.seconds.totals
    ios, moved, lat_ns, host_s = totals["ios"], totals["bytes"], totals["lat_sum_ns"], result.runtime_s
    if begin_s := load.begins_s(act.keys) if act.do == "load" else 0.0:
        begin, end = math.ceil(begin_s * dilation), len(seconds.iops) - seconds.partial
        counts = seconds.iops[begin:end]
        ios, moved = int(counts.sum()), int(seconds.bw_bytes[begin:end].sum())
        lat_ns, host_s = float((counts * seconds.lat_mean_ns[begin:end]).sum()), max(0, end - begin)
    if not host_s or not ios:
        return None
    return {
        "iops": dilation * ios / host_s,
        "MB/s": dilation * moved / host_s / 1e6,
        "lat_mean": lat_ns / ios / 1000 / dilation,
    }


@contextlib.contextmanager
def step(book: "Journal", name: str, left_s: tuple[float, float] | None = None, **more) -> Iterator[dict]:
    """Events around a step; entries of the yielded dict are added to step.end. The step's exception goes
    on, also when the journal takes no more events. left_s: host seconds to the end of the run, (least, most)."""
    forecast: dict = {} if left_s is None else {"left_s": [round(seconds) for seconds in left_s]}
    book.event("step.start", step=name, **more, **forecast)
    shown: dict = {}
    try:
        yield shown
    except BaseException as error:
        with contextlib.suppress(JournalError):
            book.event("step.end", step=name, ok=False, why=words_of(error), **more)
        raise
    book.event("step.end", step=name, ok=True, **more, **shown)
