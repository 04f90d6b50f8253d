"""Marks by which the recording of another instrument is laid on a run: bursts in a random pattern before the first step
and after the last (meter/sync.py finds them). They are reads; before a step that erases the drive anyway, writes."""

import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ssdrig.base import words
from ssdrig.base.deferred import Deferred
from ssdrig.base.errors import UsageError
from ssdrig.base.progress import Progress
from ssdrig.meter import pairing
from ssdrig.plan.expand import Act
from ssdrig.run import bursts
from ssdrig.run.pairing import MOST_BYTES, at_end
from ssdrig.runs.journal import Journal

if TYPE_CHECKING:
    from ssdrig.meter import sync
    from ssdrig.run.bench import Bench
else:
    sync = Deferred("ssdrig.meter.sync")  # the table of a dry run does without NumPy

REST_S = 1.0  # before and after a mark
LEAD_IN = (True, True, False, False)  # wakes a drive that sleeps, before the mark
LASTS_S = (len(LEAD_IN) + pairing.SLOTS) * pairing.SLOT_S + 2 * REST_S
LOOK_S = 0.1


def refuse(acts: Sequence[Act]) -> None:
    """Raises UsageError for a plan that can have no marks."""
    if at_end(acts):
        what = "a plan whose drive may be read before it is judged, for --sync"
        raise UsageError(what, "one that reads a sealed drive back", "leave --sync out")


def dry_run_words(write: bool) -> str:
    """The line of a dry run. `write`: the first mark writes."""
    does = "the first writes, the last reads" if write else "each reads"
    return (
        f"marks {LASTS_S:g} s before the first step and after the last, {does} at most {words.size(MOST_BYTES)}:"
        " bursts that `import --sync` finds in a recording"
    )


def make(
    bench: "Bench",
    book: Journal,
    check: Callable[[], None],
    show: Progress,
    source: random.Random | None = None,
    write_bytes: int = 0,
) -> dict:
    """Make a mark now: its event. Raises what `check` raises.

    write_bytes: from the drive's beginning that may be overwritten: bursts are writes then, because an empty drive
    answers reads with hardly any power. 0: they are reads."""
    assert bench.connect is not None
    show.show(f"mark for a recording, {LASTS_S:g} s")
    _rest(check)
    slots = sync.pattern(source or random.SystemRandom())
    reach, write = write_bytes or bench.drive["capacity_bytes"], write_bytes > 0
    bursts.play(bench.connect, LEAD_IN, pairing.SLOT_S, reach, write, check)
    played = bursts.play(bench.connect, slots, pairing.SLOT_S, reach, write, check)
    if played.why:
        show.warn(f"mark: {played.why}")
    event = book.event(
        sync.EVENT,
        op="write" if write else "read",
        slots="".join("1" if slot else "0" for slot in slots),
        begin_ns=played.begin_ns,
        slot_ns=played.slot_ns,
        slot_bytes=list(played.done_bytes),
        rises_ns=rises(slots, played.firsts_ns),
        why=played.why or None,
    )
    _rest(check)
    return event


def _rest(check: Callable[[], None]) -> None:
    until = time.monotonic() + REST_S
    while time.monotonic() < until:
        check()
        time.sleep(LOOK_S)


def rises(slots: Sequence[bool], firsts_ns: Sequence[tuple[int, int] | None]) -> list[list[int]]:
    """For each burst after a rest: host ns of its first submission and of the end of its first reads."""
    before = (False, *slots[:-1])
    return [
        [*first] for burst, rest, first in zip(slots, before, firsts_ns, strict=True) if burst and not rest and first
    ]
