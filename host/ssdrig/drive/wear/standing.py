"""A drive's wear against its limits, from one reading and earlier ones. Pure."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import NamedTuple

from ssdrig.base.words import size
from ssdrig.drive.smart import smart_answer
from ssdrig.drive.smart.plausible import ENOUGH_BYTES, in_words
from ssdrig.drive.smart.smart_answer import answered
from ssdrig.drive.wear import endurance, raw_nand, retention, wa

HARD_DISK = "A hard disk: wear of flash does not apply"
FROM_BIRTH = (  # 0 when the drive was new
    "host_written_bytes",
    "nand_written_bytes",
    "host_program_pages",
    "nand_program_pages",
    "nand_written_tlc_bytes",
    "fdp_host_written_bytes",
)


HOUR_NS = 3_600_000_000_000
CLOCK_SLACK, CLOCK_SLACK_H = 1.02, 2  # a drive's clock, and whole hours at both ends
FORGOTTEN_H = 24  # hours that a drive may forget when it loses its power
# share of a counter: a drive that loses its power between two savings of its counters forgets less, or ENOUGH_BYTES, or
# its writes of FORGOTTEN_H at BUSY times its mean rate
SMALL_FALL, BUSY = 0.1, 10
PAGE_BYTES = 16384  # of flash, about
PAGE_MOST_BYTES = 4 << 20  # of the host for a page that a drive counts; 16 to 64 KiB on Crucial's and Micron's


def is_a_date(utc_ns: int | None) -> bool:
    """Whether a time (ns since 1970) that a file names can be one of a reading: to 2116."""
    return utc_ns is not None and 0 <= utc_ns < 1 << 62


def _day(reading: dict) -> date:
    return datetime.fromtimestamp(reading["utc_ns"] / 1e9, UTC).date()


def since_last_fall(read: list[dict]) -> dict:
    """The first of at least two readings, by time, after which no counter of bytes or pages goes back; if only the
    last of them is left, the one before it."""
    for i in range(len(read) - 1, 0, -1):
        before, after = read[i - 1], read[i]
        lower = any((after.get(name) or 0) < (before.get(name) or 0) for name in FROM_BIRTH)
        if lower and any(flag.endswith("went_back") for flag in wa.between(before, after).flags):
            return read[min(i, len(read) - 2)]
    return read[0]


LIFE_COUNTERS = {  # the counter, what else must be equal in two readings, a fall that may be forgotten
    "host": ("host_written_bytes", ("host_written_source", "host_written_unit_bytes"), ENOUGH_BYTES),
    "nand": ("nand_written_bytes", ("nand_written_source", "nand_written_unit_bytes"), ENOUGH_BYTES),
    "pages": ("host_program_pages", (), ENOUGH_BYTES // PAGE_BYTES),
}


def fell(before: Mapping, after: Mapping, kind: str) -> bool:
    """Whether a counter went back by more than a drive forgets when it loses its power. kind: a key of LIFE_COUNTERS"""
    name, kinds, least = LIFE_COUNTERS[kind]
    if None in (before.get(name), after.get(name)) or any(before.get(what) != after.get(what) for what in kinds):
        return False
    less, hours = before[name] - after[name], before.get("power_on_hours")
    small = min(SMALL_FALL, BUSY * FORGOTTEN_H / hours) if hours else SMALL_FALL
    return less > least and less > small * before[name]


def reset_reason(read: list[dict], kind: str) -> str | None:
    """Why a counter does not hold the drive's whole life: among the readings, by time, it fell. None if it did not, or
    by little. kind: a key of LIFE_COUNTERS."""
    name = LIFE_COUNTERS[kind][0]
    known = [snapshot for snapshot in read if snapshot.get(name) is not None]
    for before, after in reversed(list(zip(known, known[1:], strict=False))):
        if fell(before, after, kind):
            was, now = (size(one[name]) if name.endswith("_bytes") else f"{one[name]}" for one in (before, after))
            return (
                f"{in_words(name)} of its whole life: the counter was {was} on {_day(before)}, {now} on {_day(after)}:"
                " it was reset, has wrapped, or a clock was wrong"
            )
    return None


def consistent(history: list[dict], snapshot: dict) -> tuple[list[dict], str | None]:
    """(the readings of `history`, by time, that can be of the drive of `snapshot`, why the others cannot): those after
    the last two in a row that contradict the clock or the drive's size."""
    read = [*history, snapshot]
    for i in range(len(read) - 1, 0, -1):
        why = contradiction(read[i - 1], read[i])
        if why:
            return read[i:-1], f"readings before {_day(read[i])} are not a history of this drive: {why}"
    return history, None


def contradiction(before: Mapping, after: Mapping) -> str | None:
    """Why two readings in a row cannot be of one drive; None if they can."""
    hours, later = before["power_on_hours"], after["power_on_hours"]
    if None not in (hours, later, before["utc_ns"], after["utc_ns"]):
        passed = (after["utc_ns"] - before["utc_ns"]) / HOUR_NS
        if later - hours > passed * CLOCK_SLACK + CLOCK_SLACK_H:
            return f"its power-on hours rose by {later - hours} in {passed:.0f} hours"
        if hours - later > FORGOTTEN_H:
            return f"its power-on hours went back from {hours} to {later}"
    capacities = before["capacity_bytes"], after["capacity_bytes"]
    if None not in capacities and abs(capacities[0] - capacities[1]) > 0.01 * max(capacities):
        return f"its capacity was {size(capacities[0])}, then {size(capacities[1])}"
    return None


class Amplification(NamedTuple):
    """Write amplification of one reading with those before it.

    of_life: the reading, without the counters that do not hold the drive's whole life
    resets: why they do not, by key of LIFE_COUNTERS
    first: the reading at which the period began
    lately: over the period; None without history
    life: over the drive's life"""

    of_life: dict
    resets: dict[str, str]
    first: dict
    lately: wa.WriteAmplification | None
    life: wa.WriteAmplification


def amplification(history: list[dict], snapshot: dict) -> Amplification:
    """history: consistent() readings of the same drive before, by time."""
    read = [*history, snapshot]
    first = since_last_fall(read) if history else snapshot
    lately = wa.between(first, snapshot) if history else None
    resets = {kind: why for kind in LIFE_COUNTERS if (why := reset_reason(read, kind))}
    if "pages" not in resets and (why := _few_pages(snapshot)):
        resets["pages"] = why
    of_life = snapshot | {LIFE_COUNTERS[kind][0]: None for kind in resets}
    life = wa.between(of_life | {name: 0 for name in FROM_BIRTH if of_life[name] is not None}, of_life)
    return Amplification(of_life, resets, first, lately, life)


def _few_pages(snapshot: dict) -> str | None:
    """In words that the drive counted too few pages for what its host wrote in its life; None if it did not."""
    name, written = LIFE_COUNTERS["pages"][0], snapshot["host_written_bytes"]
    pages = snapshot[name]
    if pages is None or written is None or written < ENOUGH_BYTES or written <= PAGE_MOST_BYTES * pages:
        return None
    return f"{in_words(name)} of its whole life: {pages} for {size(written)} of the host: it was reset, or has wrapped"


def report(
    snapshot: dict,
    document: dict,
    limits: endurance.Limits,
    history: list[dict],
    rate: endurance.Rate | None,
    storage_C: float,
) -> dict:
    """The snapshot with "limits", "projection", "retention", "wa", "messages" and "unknown" of it. history: earlier
    snapshots of the same drive, by utc_ns; it gives the rate and the write amplification of the workload where it
    can. Of a hard disk limits, projection and retention are empty."""
    today = _day(snapshot) if is_a_date(snapshot["utc_ns"]) else datetime.now(UTC).date()
    history, broken = consistent(history, snapshot)
    out, read = dict(snapshot), [*history, snapshot]
    out["messages"] = smart_answer.messages(document.get("smartctl"))
    flash = not snapshot["hard_disk"]
    of_life, resets, first, lately, life = amplification(history, snapshot)
    if flash:
        rate = rate or endurance.rate_of_history(read) or endurance.rate_of_life(of_life, limits.start, today)
        if limits.pe_cycles is None and snapshot["pe_cycles_rated"] is not None:
            limits = limits._replace(pe_cycles=snapshot["pe_cycles_rated"])
    else:
        rate, limits = None, endurance.Limits(start=limits.start)
    projection = endurance.project(of_life, limits, rate, lately, today)
    used = [
        projection[name]
        for name in ("percentage_used", "tbw_used_percent", "pe_mean_used_percent")
        if projection[name] is not None
    ]
    out["limits"] = limits._asdict() if limits != endurance.Limits() else None
    out["retention"] = retention.bound(limits.drive_class, max(used, default=None), storage_C)
    if not flash:
        out["retention"] |= {"state": "hard disk", "words": HARD_DISK}
    out["retention"]["unpowered_hours_at_most"] = (
        retention.unpowered_hours(history[0], snapshot) if history and flash else None
    )
    measured = lately if lately and (lately.value is not None or life.value is None) else life
    known = raw_nand.of_model(snapshot["model"], snapshot["capacity_bytes"])
    raw_bytes = known.raw_bytes if known else None
    estimated = wa.estimate(of_life, raw_bytes) if measured.value is None and flash else None
    measured = estimated or measured
    since = str(_day(first)) if history and measured is lately else None
    out["wa"] = measured._asdict() | {"since": since, "words": wa.words(measured)}
    out["unknown"] = list(snapshot["unknown"])
    out["sources"] = dict(snapshot["sources"])
    if measured.value is not None:
        out["sources"]["wa"] = {"source": measured.source, "error": measured.error, "unit": "1"}
    out["unknown"] += resets.values()
    if broken:
        out["unknown"].append(broken)
    if flash and answered(document):
        out["unknown"] += projection["unknown"]
        if measured.value is None and not any("NAND" in words for words in snapshot["unknown"]):
            out["unknown"].append(f"write amplification: {wa.words(measured).removeprefix('not known: ')}")
        elif lately and lately is not measured:
            out["unknown"].append(f"write amplification lately: {wa.words(lately).removeprefix('not known: ')}")
    del projection["unknown"]
    out["projection"] = projection
    return out
