"""What a drive's own latency monitor has counted: log page C3h of the OCP Datacenter NVMe SSD Specification, and what
happened between two readings of it. Pure.

Four buckets count the reads, writes and deallocations that took at least threshold A, B, C or D and less than the next.
After a time that the host sets, the active buckets are copied to the static ones and begin again at zero.

Source: OCP Datacenter NVMe SSD Specification 2.0, 4.8.9 (LMDATA) and appendix C; 2.5 has the same fields. Little
endian. A bucket has deallocations first, then writes, then reads; stamps and measured latencies begin with bucket 3."""

from collections.abc import Mapping
from typing import Any

from ssdrig.base.errors import DriveError
from ssdrig.base.words import digits
from ssdrig.drive.smart.nvme_pages import PAGE_BYTES

PAGE = 0xC3
GUID = bytes.fromhex("927AC08CD0846C9C7043E6D4585ED485")
DIRECTIONS = ("read", "write", "trim")
BUCKETS = ("A", "B", "C", "D")
STEP_MS = 5  # of thresholds; a field of 0 is one step
TIMER_S = 300  # of the buckets' timer
SATURATED = 0xFFFFFFFF
NOT_REPORTED_MS = 0xFFFF  # of a measured latency
ENABLED, MEASURES = 0b1, 0b100  # of the feature's status
THRESHOLDS, COUNTERS, STAMPS, MEASURED, STATIC_COUNTERS = 6, 32, 96, 192, 240
STATIC_END = 426  # the static buckets, their stamps, measured latencies and units


def decode(page: bytes) -> dict[str, Any]:
    """{"enabled", "timer", "timer_threshold" (of 5 min; 0: none), "thresholds_ms": of A to D, "counters": {direction:
    of each bucket}, "static_counters": the same, "measured_ms": {direction: of each bucket, None where unknown},
    "stamps": {direction: of each bucket, raw}, "config", "static": these fields as hex, "version"}.

    Raises DriveError for a page of another length, or without the GUID."""
    if len(page) != PAGE_BYTES:
        raise DriveError(f"{PAGE_BYTES} bytes of log C3h", f"{len(page)}", "read the page again")
    if page[496:] != GUID:
        expected = f"the GUID {GUID.hex()} at the end of log C3h"
        raise DriveError(expected, page[496:].hex(), "do not use this drive's C3h: its layout is unknown")

    def number(at: int, size: int) -> int:
        return int.from_bytes(page[at : at + size], "little")

    def counters(begin: int) -> dict[str, list[int]]:
        return {name: [number(begin + 16 * n + 12 - 4 * d, 4) for n in range(4)] for d, name in enumerate(DIRECTIONS)}

    def backwards(begin: int, size: int) -> dict[str, list[int]]:
        last = begin + 11 * size
        return {name: [number(last - size * (3 * n + d), size) for n in range(4)] for d, name in enumerate(DIRECTIONS)}

    measures = number(0, 1) & MEASURES
    return {
        "enabled": bool(number(0, 1) & ENABLED),
        "timer": number(2, 2),
        "timer_threshold": number(4, 2),
        "thresholds_ms": [STEP_MS * (number(THRESHOLDS + n, 1) + 1) for n in range(4)],
        "config": page[10:13].hex(),
        "counters": counters(COUNTERS),
        "static_counters": counters(STATIC_COUNTERS),
        "measured_ms": {
            name: [ms if measures and 0 < ms < NOT_REPORTED_MS else None for ms in of]
            for name, of in backwards(MEASURED, 2).items()
        },
        "stamps": backwards(STAMPS, 8),
        "static": page[STATIC_COUNTERS:STATIC_END].hex(),
        "version": number(494, 2),
    }


def between(first: Mapping, last: Mapping, elapsed_s: float) -> dict[str, Any]:
    """What the drive saw from one reading (decode()) to a later one.

    elapsed_s: between them, drive time
    Returns {"thresholds_ms", "counts": {direction: of each bucket}, "least_ms": {direction: its longest took at least
    this; None: all took less than A}, "most_ms": {direction: and less than this; None: no bound}, "why": None}, or the
    same keys with None and the reason in "why"."""
    why = _why_not(first, last, elapsed_s)
    if why:
        return {"thresholds_ms": None, "counts": None, "least_ms": None, "most_ms": None, "why": why}
    edges, cleared = last["thresholds_ms"], _cleared(first, last)
    counts, least, most = {}, {}, {}
    for name in DIRECTIONS:
        before, after, static = (of[name] for of in (first["counters"], last["counters"], last["static_counters"]))
        whole = [a + s for a, s in zip(after, static, strict=True)] if cleared else after
        counts[name] = [w - b for w, b in zip(whole, before, strict=True)]
        slowest = max((n for n, count in enumerate(counts[name]) if count), default=None)
        most[name] = edges[0] if slowest is None else edges[slowest + 1] if slowest < 3 else None
        least[name] = None if slowest is None else edges[slowest]
        if slowest is not None and edges[slowest] < (ms := _measured(first, last, name, slowest)):
            least[name] = ms if most[name] is None or ms < most[name] else least[name]
    return {"thresholds_ms": edges, "counts": counts, "least_ms": least, "most_ms": most, "why": None}


def _why_not(first: Mapping, last: Mapping, elapsed_s: float) -> str | None:
    if not first["enabled"] or not last["enabled"]:
        return "the drive's latency monitor is off (feature C5h)"
    for key, words in (("thresholds_ms", "thresholds"), ("timer_threshold", "timer"), ("config", "configuration")):
        if first[key] != last[key]:
            return f"the {words} of its latency monitor changed"
    edges = last["thresholds_ms"]
    if any(low >= high for low, high in zip(edges, edges[1:])):
        return f"the thresholds of its latency monitor do not rise: {', '.join(map(str, edges))} ms"
    lasts_s = TIMER_S * last["timer_threshold"]
    if lasts_s and elapsed_s >= lasts_s:
        apart_min = digits(elapsed_s / 60, 3)
        return f"its buckets are cleared each {lasts_s / 60:g} min, and the readings are {apart_min} min apart"
    cleared = _cleared(first, last)
    if not cleared and last["timer"] < first["timer"] and any(map(any, first["counters"].values())):
        return "the timer of its buckets began again, and the static ones are as before"
    for name in DIRECTIONS:
        before, after, static = (of[name] for of in (first["counters"], last["counters"], last["static_counters"]))
        if SATURATED in after or cleared and SATURATED in static:
            return "its counters are full"
        if any(b > (s if cleared else a) for b, a, s in zip(before, after, static, strict=True)):
            return "its counters were reset"
    return None


def _cleared(first: Mapping, last: Mapping) -> bool:
    """Whether the active buckets were copied to the static ones in between."""
    return first["static"] != last["static"]


def _measured(first: Mapping, last: Mapping, name: str, bucket: int) -> int:
    """A measured latency of a bucket that certainly came after the first reading, ms: it or its stamp changed, and the
    bucket counts. 0 without one."""
    same = all(last[key][name][bucket] == first[key][name][bucket] for key in ("stamps", "measured_ms"))
    counts = last["counters"][name][bucket]
    return 0 if same or not counts else last["measured_ms"][name][bucket] or 0
