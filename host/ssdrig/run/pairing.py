"""The signature by which a run finds out whether its rig feeds its drive: bursts of reads, in a random pattern, that
must show on the rail (meter/pairing.py). It comes before the first step, so no window has it, and no purge, fill or
rest follows it. A signature that does not show is tried once more; with writes where the run destroys the data anyway
and nothing that it needs is on the drive."""

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdrig.base import words
from ssdrig.base.deferred import Deferred
from ssdrig.base.errors import NotPaired, RigError
from ssdrig.meter import pairing
from ssdrig.meter.pairing import EVENT, LOOKS, NOT_PAIRED, PAIRED, SLOT_S, SLOTS, TRIES, UNKNOWN, Look, Rail
from ssdrig.plan.expand import MAY_WRITE, Act
from ssdrig.run import bursts
from ssdrig.runs.journal import Journal

if TYPE_CHECKING:
    import numpy as np

    from ssdrig.meter import samples
    from ssdrig.meter.pico.stream import Rig
    from ssdrig.meter.power import Power
    from ssdrig.run.bench import Bench
else:
    np, samples = Deferred("numpy"), Deferred("ssdrig.meter.samples")  # the table of a dry run does without

LASTS_S = SLOTS * SLOT_S
MOST_BYTES = SLOTS // 2 * bursts.SLOT_BYTES
LONGEST_SLOT_S = 2.5  # slower meters show no signature
BEHIND_S = 30.0  # so late the last samples may come
OWN_REPORT = "drive"  # the meter that is the drive itself: its serial shows whose power it is
STAYS = ("set", "ask", "choose", "settle", "flush")


def wanted(acts: Sequence[Act]) -> bool:
    """Whether a plan has anything that power is measured of, or that is cut."""
    return any(not act.not_run for act in acts)


def at_end(acts: Sequence[Act]) -> bool:
    """Whether the signature comes after the steps: a sealed drive's blocks must not be read before they are judged."""
    return any(act.do == "recall" and not act.not_run for act in acts)


def may_write(acts: Sequence[Act], capacity_bytes: int, resumed: bool = False) -> int:
    """Bytes from the drive's beginning that the run overwrites before it needs the data there; 0: none."""
    live = [act for act in acts if not act.not_run and act.do not in STAYS]
    if resumed or not live or not any(act.do in MAY_WRITE for act in live):
        return 0
    if live[0].do == "purge":
        return capacity_bytes
    return live[0].range_bytes if live[0].do == "cuts" else 0


def dry_run_words(acts: Sequence[Act], capacity_bytes: int, rig: bool) -> str | None:
    """The line of a dry run; None without a rig."""
    if not rig or not wanted(acts):
        return None
    again = f"once more, {LASTS_S:g} s{', with writes' if may_write(acts, capacity_bytes) else ''}"
    when = "after the last step" if at_end(acts) else "before the first step"
    cuts = "; no cut before they do" if any(act.do == "cuts" and not act.not_run for act in acts) else ""
    return (
        f"pairing {LASTS_S:g} s {when}, reads at most {words.size(MOST_BYTES)}:"
        f" bursts that must show on the rig's rail; if they do not, {again} (busy host: at most {TRIES * LASTS_S:g} s)"
        f"{cuts}"
    )


def as_json(acts: Sequence[Act], capacity_bytes: int, rig: bool) -> dict[str, Any] | None:
    """The same for a script."""
    if not rig or not wanted(acts):
        return None
    outcome: dict[str, Any] = {"least_s": LASTS_S, "most_s": LOOKS * LASTS_S, "busy_most_s": TRIES * LASTS_S}
    outcome["most_read_bytes"] = TRIES * MOST_BYTES
    return outcome | {
        "most_written_bytes": MOST_BYTES if may_write(acts, capacity_bytes) else 0,
        "at_end": at_end(acts),
    }


def carry_out(
    bench: "Bench",
    book: Journal,
    rig: "Rig",
    write_bytes: int = 0,
    busy: bool = False,
    check: Callable[[], None] = lambda: None,
    source: random.Random | None = None,
) -> dict[str, Any]:
    """The signature of one run: its event.

    bench: whose drive the bursts are for.
    rig: streams into the journal `book`.
    write_bytes: that a second try may overwrite, from the drive's beginning.
    busy: the drive may be at work on its own.
    check: raises what ends the run."""
    if bench.connect is None:
        return book.event(EVENT, verdict=UNKNOWN, why="this bench has no link for bursts", looks=[])
    hello = rig.hello() or {}
    if hello.get("source") == OWN_REPORT:
        same = hello.get("serial") == str(bench.drive.get("serial")).strip()
        why = f"the report of another drive: {hello.get('serial')}"
        return book.event(EVENT, verdict=PAIRED if same else NOT_PAIRED, why=None if same else why, looks=[])
    source = source or random.SystemRandom()
    capacity_bytes = bench.drive["capacity_bytes"]
    looks: list[list[Look]] = []
    tries: list[dict[str, Any]] = []
    verdict, why, wrote, blind = UNKNOWN, "no signature", False, 0
    lasts_s = slot_s(hello)
    while len(tries) < TRIES and (counted := sum(not pairing.few(look) for look in looks)) + blind < LOOKS:
        write = bool(counted and write_bytes and not wrote)
        wrote |= write
        slots = pairing.pattern(source)
        within_bytes = write_bytes if write else capacity_bytes
        played = bursts.play(bench.connect, slots, lasts_s, within_bytes, write, check)
        by_rail = rails(lambda: powers(book.path), played, rig.live, check)
        seen = [pairing.look(slots, played.done_bytes, lasts_s, rail, write) for rail in by_rail.values()]
        names = list(by_rail)
        tries.append(figures(slots, played, write, dict(zip(names, seen, strict=True))))
        if not seen:
            verdict, why = UNKNOWN, f"no samples of the rig: {played.why}" if played.why else "no samples of the rig"
            blind += 1
            continue
        looks.append(seen)
        judged = [look for look in looks if len(look) == len(seen)]
        verdict, why = pairing.verdict(judged, busy and not write_bytes)
        if verdict == PAIRED:
            break
        if played.why:
            why = f"{why}; {played.why}"
    return book.event(
        EVENT, verdict=verdict, why=why or None, duration_s=round(SLOTS * lasts_s * len(tries), 3), looks=tries
    )


def slot_s(hello: Mapping[str, Any]) -> float:
    """How long a slot lasts: of our board SLOT_S; of a slow meter until enough readings lie in it, and until what its
    times may be off is a small part of it."""
    periods_s = [rail["conversion_ns"] / 1e9 for rail in hello.get("rails") or ()]
    enough_s = (pairing.LEAST_SAMPLES + 1) * max(periods_s, default=0.0) / (1 - pairing.SETTLE)
    off_s = (hello.get("stamp_ns") or 0) / 1e9 * 2 / pairing.SETTLE
    return min(max(SLOT_S, enough_s, off_s), LONGEST_SLOT_S)


def put_off(book: Journal) -> dict[str, Any]:
    """Record that the signature comes after the last step: the event. Until then no power is sent to a database."""
    return book.event(EVENT, verdict=UNKNOWN, why="the drive is judged before its blocks are read", late=True, looks=[])


def forbids_cuts(event: Mapping, simulated: bool) -> str:
    """Why the rig may cut no power after this signature, or "". A drive that lost its power by mistake may be anyone's;
    a simulated one is the bench's own, so its first cut may be the proof.

    event: the last of the run's."""
    return "" if simulated and event["verdict"] == UNKNOWN else pairing.unpaired([event])


def refuse_cuts(why: str, acts: Sequence[Act], commands: bool) -> None:
    """Raises NotPaired where acts cut by a rig that may not, because of `why`."""
    if why and not commands and any(act.do == "cuts" and not act.not_run for act in acts):
        raise not_paired(why)


def not_paired(why: str) -> NotPaired:
    """The error of a rig that was not seen to feed the drive of its run."""
    do = "connect this drive to this rig; let a busy drive or host come to rest; begin again"
    return NotPaired("a rig that was seen to feed the drive of this run: no cut is made", why, do)


def powers(run: Path) -> "dict[str, Power]":
    """Rails of the rig so far, by name."""
    try:
        return {power.name: power for power in samples.load_rails(run)}
    except RigError:
        return {}


def rails(
    read: "Callable[[], Mapping[str, Power]]",
    played: bursts.Played,
    live: Callable[[], object],
    check: Callable[[], None] = lambda: None,
) -> dict[str, Rail]:
    """Each rail's power in the slots, and that of all together. Waits until its samples have come.

    read: all samples so far.
    live: raises what the rig met."""
    edges_ns = played.begin_ns + played.slot_ns * np.arange(len(played.done_bytes) + 1, dtype=np.int64)
    deadline = time.monotonic() + BEHIND_S
    while True:
        reading = read()
        done = reading and all(len(power.t_ns) and power.t_ns[-1] >= edges_ns[-1] for power in reading.values())
        if done or time.monotonic() > deadline:
            break
        live()
        check()
        time.sleep(0.2)
    slots = {
        name: pairing.slots_of(power.t_ns, power.P, edges_ns, _digit_W(power))
        for name, power in reading.items()
        if len(power.t_ns)
    }
    return {**slots, "all": pairing.together(list(slots.values()))} if len(slots) > 1 else slots


def figures(slots: Sequence[bool], played: bursts.Played, write: bool, looks: Mapping[str, Look]) -> dict[str, Any]:
    """One attempt, as the event records it."""
    return {
        "slots": "".join("1" if slot else "0" for slot in slots),
        "begin_ns": played.begin_ns,
        "end_ns": played.begin_ns + len(slots) * played.slot_ns,
        "op": "write" if write else "read",
        "bytes": sum(played.done_bytes),
        "slot_bytes": list(played.done_bytes),
        "rails": {
            name: {
                "p": look.p,
                "p_asked": look.p_asked,
                "correlation": _rounded(look.correlation),
                "step_W": _rounded(look.step_W),
                "bound_W": _rounded(look.bound_W),
                "bursts": look.bursts,
                "rests": look.rests,
            }
            for name, look in looks.items()
        },
    }


def _digit_W(power: "Power") -> float:
    """The last digit of the rail's current, at its voltage."""
    volts = float(power.V[-1]) if len(power.V) else 0.0
    return float(power.facts["current_lsb_pA"]) * 1e-12 * abs(volts)


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
