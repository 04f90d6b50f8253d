"""Points of a power-loss campaign: one for each judged cut, and the bound on the probability per cut at that time."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from ssdrig.plan.rules import chance
from ssdrig.powerloss import tally
from ssdrig.publish.influx import line_protocol
from ssdrig.runs import journal, parts

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
        self._counts: dict[tuple[str, str], tuple[chance.Failing, int]] = {}  # aim, shape -> failing, cuts
        self._sessions: list[tuple] = []  # all so far, as statistics.Failing takes those of another group
        folders = parts.of(parts.root(run)) if parts.root(run) != run else []
        for folder in folders[: folders.index(run)] if run in folders else []:
            for event in journal.events(folder):
                if event["kind"] == "session.judged":
                    self._count(event)

    def points(self, event: Mapping) -> Iterator[Point]:
        """Points of an event session.judged; empty for a control session or a cut without a verdict."""
        groups = self._count(event)
        if not groups:
            return
        aim, shape = groups[0]
        yield "powerloss_cut", {}, {"aim": aim, "shape": shape} | _fields(event)
        for group in groups:
            failing, cuts = self._counts[group]
            bound = chance.upper_bound(failing.most, cuts)
            counted = {"k": failing.least, "k_most": failing.most, "n": cuts, "p_upper": bound}
            yield "powerloss_bound", {}, {"aim": group[0], "shape": group[1]} | counted

    def _count(self, event: Mapping) -> list[tuple[str, str]]:
        """The groups that the cut belongs to; none where it is in none."""
        own = [(str(event.get("aim")), str(event.get("shape"))), (MIX, MIX)] if tally.is_cut(event) else []
        number = event.get("cut")
        number = number if type(number) is int else len(self._sessions)
        interval = tally.interval_of({**event, "cut": number})
        power = bool(own) or tally.takes_power(event)
        for group in own:
            if group not in self._counts:
                self._counts[group] = chance.Failing(), 0
                for other in self._sessions:
                    self._counts[group][0].add(*other)
        for group, (failing, cuts) in self._counts.items():
            failing.add(number, group in own, power, interval)
            self._counts[group] = failing, cuts + (group in own)
        self._sessions.append((number, False, power, interval))
        return own


def time_ns(event: Mapping) -> int:
    """When the power was cut; where that is not known, when it was judged."""
    fired_ns = event.get("fired_ns")
    return fired_ns if type(fired_ns) is int and 0 <= fired_ns < 1 << 62 else event["t_ns"]


def _fields(event: Mapping) -> dict:
    raw = event.get("findings")
    raw_map: Mapping = raw if isinstance(raw, Mapping) else {}
    fall = event.get("fall")
    count = lambda value: value if type(value) is int else 0
    blocks = lambda *names: sum(count(raw_map.get(name)) for name in names)
    fields = {"fail": int(bool(event.get("failed"))), "classes": ",".join(sorted(raw_map))}
    fields |= {"lost_durable": blocks(*LOST), "torn": blocks(*TORN)}
    fields |= {"corrupt": blocks("CORRUPT"), "unreadable": blocks("UNREADABLE")}
    fields |= {name: event.get(name) for name in COPIED}
    fields |= {name: fall.get(name) if isinstance(fall, Mapping) else None for name in OF_FALL}
    ready_s = event.get("ready_s")
    fields["ready_ms"] = 1e3 * ready_s if isinstance(ready_s, int | float) else None
    fields["unsafe"] = event.get("unsafe_shutdowns")
    return line_protocol.fitting("powerloss_cut", fields)
