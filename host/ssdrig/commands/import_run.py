"""`ssdrig import FILE` without --run: a run folder made from files alone. Its clock is the files' clock, and the user
names its drive."""

import argparse
import contextlib
import re
import tomllib
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ssdrig import __version__
from ssdrig.base import files, owner, temporary
from ssdrig.base.errors import JournalError, SsdrigError, UsageError
from ssdrig.base.words import digits, parse_seconds
from ssdrig.load import foreign
from ssdrig.load.foreign import Job
from ssdrig.meter.recordings import Recording
from ssdrig.meter.tape import Knot
from ssdrig.plan import grammar
from ssdrig.runs import journal

PLAN = Path(__file__).resolve().parents[1] / "plan" / "imported.toml"
NAME = "imported"
HIDDEN = ".import-"  # begins the name of a folder of what is being imported
T0_NS = 1_000_000_000_000  # of the run's axis: its beginning
LEAD_NS = 1_000_000_000  # of the run before its first sample or I/O
RECORDING = "recording"  # the step of power alone
STEP = '\n[[step]]\nname = "{0}"\ndo   = "record"\n'
RECORDED = '\n[[show]]\nview = "recorded"\nof   = [{0}]\n'
SHOW = '\n[[show]]\nview  = "series"\nof    = [{0}]\nvalue = [{1}]\n'


class Axis(NamedTuple):
    """The run's clock: `utc_ns` was at T0_NS."""

    utc_ns: int

    def ns(self, utc_ns: float) -> int:
        """CLOCK_MONOTONIC of the run at a time."""
        return T0_NS + round(utc_ns) - self.utc_ns


class Step(NamedTuple):
    """`name` of the plan's; `begin_ns`, `end_ns` on the run's axis."""

    name: str
    job: Job
    begin_ns: int
    end_ns: int


def make(
    args: argparse.Namespace, hidden: Path, recording: Recording | None, jobs: Sequence[Job]
) -> tuple[Path, list[Knot], dict]:
    """The run folder of a recording, of fio's jobs, or of both, in `hidden` until finish(): a kill leaves no run that
    looks complete. Returns it, the recording's clock on its axis, and the claim of that clock.

    Raises UsageError, JournalError, LoadError."""
    if any(job.utc_ms is None for job in jobs):
        do = "give fio's JSON with its logs, or log with log_unix_epoch=1"
        raise UsageError("a time of day in fio's files", "times since the start alone", do)
    if recording and jobs and not args.clock_error:
        do = "add --clock-error TIME if you know by how much the two may be apart"
        raise UsageError("how well the recording's clock and fio's agree", "no --clock-error", do)
    axis = Axis(min(_begins_utc_ns(recording, jobs)) - LEAD_NS)
    if axis.utc_ns < 0:
        do = "set the instrument's clock, or give relative times and --begins"
        raise UsageError("a time of day after 1970", f"{digits(-axis.utc_ns / 1e9, 3)} s before", do)
    steps = _steps(axis, recording, jobs)
    text = _plan(steps, recording is not None)
    model = args.model or next((job.disk for job in jobs if job.disk), None) or "drive not stated"
    versions = dict.fromkeys(job.version for job in jobs if job.version)
    header = {
        "ssdrig": __version__,
        "simulated": False,
        "plan": {**dict.fromkeys(("variant", "jobs_crc", "kept")), "name": NAME, "scaled": False, "params": {}}
        | {"text": text, "acts": [step.name for step in steps], "can": [], "finish": "keep"},
        "method": {"name": NAME, "seed": 0, "tested_bytes": None, "op_percent": None},
        "budget_bytes": None,
        "drive": {"model": model, "serial": args.serial, "interface": None, "capacity_bytes": None},
        "rig": None,
        "host": {"fio": ", ".join(versions) or None},
        "started": {"t_ns": T0_NS, "utc_ns": axis.utc_ns},
    }
    try:
        book = journal.create(hidden, header)
        try:
            _write(book, axis, steps)
        except (OSError, SsdrigError) as error:
            book.close("failed", str(error), JournalError.exit_code)
            raise
        journal.run_header(book.path)
    except OSError as error:
        raise JournalError(f"to write {args.parent}", error.strerror or str(error), "make room") from error
    return book.path, *_clock(axis, recording, args.clock_error)


@contextlib.contextmanager
def hidden(parent: str) -> Iterator[Path]:
    """A hidden folder in the folder of the runs, removed with what finish() did not move. Raises JournalError."""
    with contextlib.ExitStack() as stack:
        try:
            owner.new(parent)
            Path(parent).mkdir(parents=True, exist_ok=True)
            folder = stack.enter_context(temporary.folder(HIDDEN, parent))
        except OSError as error:
            do = "choose another --runs, or make room"
            raise JournalError(f"a new run folder in {parent}", error.strerror or str(error), do) from error
        yield folder


def finish(run: Path) -> Path:
    """Move the folder of make() to its place among the runs. Returns it there. Raises JournalError."""
    target = run.parent.parent / run.name
    try:
        owner.new(target)
        if target.exists():  # rename would replace an empty folder
            raise FileExistsError(17, "File exists")
        run.rename(target)
        files.fsync_folder(target.parent)
    except OSError as error:
        raise JournalError(f"a new run folder {target}", error.strerror or str(error), "import again") from error
    return target


def _begins_utc_ns(recording: Recording | None, jobs: Sequence[Job]) -> list[int]:
    begins = [round((job.utc_ms or 0.0) * 1e6) for job in jobs]
    return begins + ([min(int(rail.t_ns[0]) for rail in recording.rails)] if recording else [])


def _steps(axis: Axis, recording: Recording | None, jobs: Sequence[Job]) -> list[Step]:
    if not jobs and recording:
        begin, end = (fold(int(rail.t_ns[at]) for rail in recording.rails) for fold, at in ((max, 0), (min, -1)))
        if end - begin < 10**9:
            raise UsageError(
                "a recording of at least a second", f"{digits((end - begin) / 1e9, 3)} s", "name another file"
            )
        job = foreign.nothing((end - begin) // 10**6)
        return [Step(RECORDING, job, axis.ns(begin), axis.ns(end))]
    steps: list[Step] = []
    for job in sorted(jobs, key=lambda job: job.utc_ms or 0.0):
        name = re.sub("[^a-z0-9]+", "-", job.name.lower()).strip("-")[:40] or "fio"
        name = name if name[0].isalpha() else f"fio-{name}"
        taken = {step.name for step in steps}
        free = next(one for one in chain([name], (f"{name}-{n}" for n in count(2))) if one not in taken)
        begin = axis.ns((job.utc_ms or 0.0) * 1e6)
        steps.append(Step(free, job, begin, begin + job.runtime_ms * 10**6))
    return steps


def _plan(steps: Sequence[Step], power: bool) -> str:
    """The plan of these steps, as run.json has it."""
    names = ", ".join(f'"{step.name}"' for step in steps)
    words = (["iops", "MB/s", "lat_mean"] if any(step.job.sides for step in steps) else []) + ["W"] * power
    shown = ", ".join(f'"{word}"' for word in words)
    text = PLAN.read_text(encoding="utf-8") + "".join(STEP.format(step.name) for step in steps)
    text += RECORDED.format(names) if any(step.job.sides for step in steps) else ""
    text += SHOW.format(names, shown)
    grammar.of_tables(tomllib.loads(text), text, NAME)  # a name that it refuses is our mistake, seen before it is kept
    return text


def _write(book: journal.Journal, axis: Axis, steps: Sequence[Step]) -> None:
    book.event("run.start", T0_NS, pid=0)
    book.event("clock.anchor", T0_NS, utc_ns=axis.utc_ns)
    for step in steps:
        foreign.write(book.path / "recorded" / step.name, step.job, step.begin_ns)
        foreign.content(book.path / "recorded" / step.name)  # what a reader refuses is refused now
        book.event("step.start", step.begin_ns, step=step.name, recorded=step.name)
        book.event("load.first_io", step.begin_ns, step=step.name)
        book.event("step.end", step.end_ns, step=step.name, ok=True)
    end_ns = max(step.end_ns for step in steps) + LEAD_NS
    book.event("clock.anchor", end_ns, utc_ns=axis.utc_ns + end_ns - T0_NS)
    book.close("complete", t_ns=end_ns)


def _clock(axis: Axis, recording: Recording | None, clock_error: str | None) -> tuple[list[Knot], dict[str, Any]]:
    """The recording's clock on the run's axis. Alone it is that axis: its samples are known to one of them."""
    if recording is None:
        return [], {}
    period_ns = max(int(np.median(np.diff(rail.t_ns))) for rail in recording.rails)
    claimed_ns = round(parse_seconds(clock_error) * 1e9) if clock_error else 0
    bound_ns = period_ns + claimed_ns
    words = (
        f"its UTC claimed to {digits(claimed_ns / 1e6, 3)} ms"
        if clock_error
        else "its UTC as it states it, not checked"
    )
    own = [int(rail.t_ns[at]) for rail in recording.rails for at in (0, -1)]
    knots = [Knot(at, axis.ns(at), bound_ns) for at in sorted({min(own), max(own)})]
    clock = f"time by its own clock, to a sample of {digits(period_ns / 1e6, 3)} ms; {words}"
    return knots, {"clock": clock, "bound_ns": bound_ns, "correlation": None}


def notes(jobs: Sequence[Job]) -> list[str]:
    """The notes on fio's files."""
    return [f"{job.name}: {note}" for job in jobs for note in job.notes]
