"""Points of a power-loss campaign: one for each judged cut, and the bound on the chance per cut as it stood then."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from ssdrig import journal, parts
from ssdrig.influx import line_protocol
from ssdrig.powerloss import statistics

Point = tuple[str, dict, dict]  # measurement, tags, fields
MIX = "mix"  # aim and shape of the bound on all cuts together
LOST = ("LOST_FUA", "LOST_FLUSHED", "LOST_ACKED")
TORN = ("TORN_LB", "TORN_ATOMIC")
COPIED = ("cut", "in_flight", "unflushed_bytes", "delta_flush_us", "lost_volatile", "recharge_J", "boot_J")
OF_FALL = ("t90_10_us", "holdup_us")


class Cuts:
    """The points of a run folder's sessions, taken up in the order of their events. Of a part of a run the cuts of the
    parts before it count in the bound, too."""

    def __init__(self, run: Path):
        self._counts: dict[tuple[str, str], tuple[int, int]] = {}  # aim, shape -> failing, cuts
        folders = parts.of(parts.root(run)) if parts.root(run) != run else []
        for folder in folders[: folders.index(run)] if run in folders else []:
            for event in journal.events(folder):
                if event["kind"] == "session.judged":
                    self._count(event)

    def points(self, event: Mapping) -> Iterator[Point]:
        """Of an event session.judged; none of a control session, and of a cut that was not judged."""
        groups = self._count(event)
        if not groups:
            return
        aim, shape = groups[0]
        yield "powerloss_cut", {"aim": aim, "shape": shape}, _fields(event)
        for group in groups:
            failing, cuts = self._counts[group]
            fields = {"k": failing, "n": cuts, "p_upper": statistics.upper_bound(failing, cuts)}
            yield "powerloss_bound", {"aim": group[0], "shape": group[1]}, fields

    def _count(self, event: Mapping) -> list[tuple[str, str]]:
        """The groups that the cut belongs to; none where it is in none."""
        if not event.get("judged") or event.get("control"):
            return []
        groups = [(str(event.get("aim")), str(event.get("shape"))), (MIX, MIX)]
        for group in groups:
            failing, cuts = self._counts.get(group, (0, 0))
            self._counts[group] = failing + bool(event.get("failed")), cuts + 1
        return groups


def time_ns(event: Mapping) -> int:
    """When the power was cut; where that is not known, when it was judged."""
    fired_ns = event.get("fired_ns")
    return fired_ns if type(fired_ns) is int and 0 <= fired_ns < 1 << 62 else event["t_ns"]


def _fields(event: Mapping) -> dict:
    raw = event.get("findings")
    found: Mapping = raw if isinstance(raw, Mapping) else {}
    fall = event.get("fall")
    count = lambda value: value if type(value) is int else 0
    blocks = lambda *names: sum(count(found.get(name)) for name in names)
    fields = {"fail": int(bool(event.get("failed"))), "classes": ",".join(sorted(found))}
    fields |= {"lost_durable": blocks(*LOST), "torn": blocks(*TORN)}
    fields |= {"corrupt": blocks("CORRUPT"), "unreadable": blocks("UNREADABLE")}
    fields |= {name: event.get(name) for name in COPIED}
    fields |= {name: fall.get(name) if isinstance(fall, Mapping) else None for name in OF_FALL}
    ready_s = event.get("ready_s")
    fields["ready_ms"] = 1e3 * ready_s if isinstance(ready_s, int | float) else None
    fields["unsafe"] = event.get("unsafe_shutdowns")
    return line_protocol.fitting("powerloss_cut", fields)
