"""Marks by which the recording of another instrument is laid on a run: bursts in a random pattern before the first step
and after the last (meter/sync.py finds them). They are reads; before a step that erases the drive anyway, writes.

The pattern is followed by trains of bursts, whose one thread is rarely late: as many as it takes until the host knows
ENOUGH rises to NARROW_NS; on a busy host, or of a slow drive, more."""

import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ssdrig.base import words
from ssdrig.base.deferred import Deferred
from ssdrig.base.errors import UsageError
from ssdrig.base.progress import Progress
from ssdrig.base.words import digits
from ssdrig.meter import pairing
from ssdrig.plan.expand import Act
from ssdrig.run import bursts
from ssdrig.run import pairing as signature
from ssdrig.runs.journal import Journal

if TYPE_CHECKING:
    from ssdrig.meter import sync
    from ssdrig.run.bench import Bench
else:
    sync = Deferred("ssdrig.meter.sync")  # the table of a dry run does without NumPy

REST_S = 1.0  # before and after a mark
LEAD_IN = (True, True, False, False)  # wakes a drive that sleeps, before the mark
TRAIN = (False, True) * 4
MOST_TRAINS = 4
ENOUGH, NARROW_NS = 8, 3_000_000
LASTS_S = (len(LEAD_IN) + pairing.SLOTS + len(TRAIN)) * pairing.SLOT_S + 2 * REST_S
MOST_S = LASTS_S + (MOST_TRAINS - 1) * len(TRAIN) * pairing.SLOT_S
MOST_BYTES = signature.MOST_BYTES + MOST_TRAINS * sum(TRAIN) * bursts.SLOT_BYTES
LOOK_S = 0.1


def refuse(acts: Sequence[Act]) -> None:
    """Raises UsageError for a plan that can have no marks."""
    if signature.at_end(acts):
        what = "a plan whose drive may be read before it is judged, for --sync"
        raise UsageError(what, "one that reads a sealed drive back", "leave --sync out")


def dry_run_words(write: bool) -> str:
    """The line of a dry run. `write`: the first mark writes."""
    does = "the first writes, the last reads" if write else "each reads"
    return (
        f"marks {digits(LASTS_S, 3)} to {digits(MOST_S, 3)} s before the first step and after the last,"
        f" {does} at most {words.size(MOST_BYTES)}:"
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
    show.show(f"mark for a recording, {digits(LASTS_S, 3)} to {digits(MOST_S, 3)} s")
    _rest(check)
    slots = sync.pattern(source or random.SystemRandom())
    reach, write = write_bytes or bench.drive["capacity_bytes"], write_bytes > 0
    bursts.play(bench.connect, LEAD_IN, pairing.SLOT_S, reach, write, check)
    played = bursts.play(bench.connect, slots, pairing.SLOT_S, reach, write, check)
    rises, why = rises_of(slots, played), played.why
    for _ in range(MOST_TRAINS):
        if why or sum(end_ns - begin_ns <= NARROW_NS for begin_ns, end_ns in rises) >= ENOUGH:
            break
        train = bursts.play(bench.connect, TRAIN, pairing.SLOT_S, reach, write, check, thread_count=1)
        rises, why = rises + rises_of(TRAIN, train), train.why
    if why:
        show.warn(f"mark: {why}")
    event = book.event(
        sync.EVENT,
        op="write" if write else "read",
        slots="".join("1" if slot else "0" for slot in slots),
        begin_ns=played.begin_ns,
        slot_ns=played.slot_ns,
        slot_bytes=list(played.done_bytes),
        rises_ns=rises,
        why=why or None,
    )
    _rest(check)
    return event


def _rest(check: Callable[[], None]) -> None:
    until = time.monotonic() + REST_S
    while time.monotonic() < until:
        check()
        time.sleep(LOOK_S)


def rises_of(slots: Sequence[bool], played: bursts.Played) -> list[list[int]]:
    """For each burst after a rest: host ns between which its rise is, see sync.rise(). A burst that the host did not
    draw as one rise has none."""
    rises = []
    for slot, (rest, burst) in enumerate(zip((False, *slots[:-1]), slots)):
        if burst and not rest:
            begin_ns = played.begin_ns + slot * played.slot_ns
            interval = sync.rise(played.ios_ns, begin_ns, begin_ns + played.slot_ns)
            rises += [[*interval]] if interval else []
    return rises
