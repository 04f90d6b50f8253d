"""Power of the host by step, from the events `host`: context next to the drive's power, never the drive's. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ssdrig.reading.rundata import SECOND_NS

EVENT = "host"  # of the journal
BMC = "BMC"


class Power(NamedTuple):
    """Mean power of a zone of the host, such as package-0, for `lasted_s` from `begin_ns` on (CLOCK_MONOTONIC). BMC:
    of the whole host, by samples of its BMC, so its energy is not known."""

    zone: str
    begin_ns: int
    lasted_s: float
    power_W: float
    energy_J: float | None


@dataclass
class Step:
    """A step, or all points of a repeat: how long its events cover, s of the host, and of each zone, such as package-0,
    the energy, J. `bmc_Js`: the sum of mean power x time by the BMC, with the time `bmc_s` that it covers."""

    path: str
    covered_s: float = 0.0
    energy_J: dict[str, float] = field(default_factory=dict)
    bmc_Js: float = 0.0
    bmc_s: float = 0.0

    @property
    def power_W(self) -> dict[str, float]:
        """Mean power of each zone over the time covered, and of the whole host by its BMC."""
        out = {zone: joules / self.covered_s for zone, joules in self.energy_J.items()} if self.covered_s else {}
        return out | ({BMC: self.bmc_Js / self.bmc_s} if self.bmc_s else {})

    def as_json(self) -> dict:
        """{"step", "covered_s", "power_W"}."""
        return {"step": self.path, "covered_s": self.covered_s, "power_W": self.power_W}


def of_steps(events: Iterable[dict]) -> list[Step]:
    """The steps during which the host's energy was read, in order. A step shorter than the interval of these events has
    none. A zone counts only where each event of the step has it."""
    steps: dict[str, Step] = {}
    now: Step | None = None
    for event in events:
        if event["kind"] == "step.start":
            now = steps.setdefault(event["step"], Step(event["step"]))
        elif event["kind"] == "step.end":
            now = None
        elif now:
            _add(now, of_event(event))
    return [step for step in steps.values() if step.power_W]


def of_event(event: Mapping) -> list[Power]:
    """The zones of an event `host`; [] of others, and of one without a usable time."""
    seconds = event.get("lasted_s")
    if event["kind"] != EVENT or not seconds or not _number(seconds, 1e6):
        return []
    lasted_s = float(seconds)
    begin_ns = event["t_ns"] - round(lasted_s * SECOND_NS)
    energies = event.get("energy_J")
    zones = [
        Power(str(zone)[:40], begin_ns, lasted_s, joules / lasted_s, float(joules))
        for zone, joules in (energies if isinstance(energies, dict) else {}).items()
        if _number(joules, 1e9)
    ]
    if _number(event.get("bmc_W"), 1e6):
        zones.append(Power(BMC, begin_ns, lasted_s, float(event["bmc_W"]), None))
    return zones


def _add(step: Step, zones: list[Power]) -> None:
    """Take up the zones of one event."""
    if not zones:
        return
    lasted_s = zones[0].lasted_s
    joules = {power.zone: power.energy_J for power in zones if power.energy_J is not None}
    known = joules.keys() & step.energy_J.keys() if step.covered_s else joules.keys()
    step.energy_J = {zone: step.energy_J.get(zone, 0.0) + joules[zone] for zone in joules if zone in known}
    step.covered_s += lasted_s
    if zones[-1].zone == BMC:
        step.bmc_Js += zones[-1].power_W * lasted_s
        step.bmc_s += lasted_s


def _number(value, most: float) -> bool:
    return type(value) in (int, float) and 0 <= value < most
