"""Power of the host by step, from the events `host`: context next to the drive's power, never the drive's. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

BMC = "BMC"


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
        elif event["kind"] == "host" and now and _number(event.get("lasted_s"), 1e6):
            _add(now, event)
    return [step for step in steps.values() if step.power_W]


def _add(step: Step, event: dict) -> None:
    lasted_s = float(event["lasted_s"])
    energies = event.get("energy_J")
    joules = {
        str(zone)[:40]: float(value)
        for zone, value in (energies if isinstance(energies, dict) else {}).items()
        if _number(value, 1e9)
    }
    zones = joules if not step.covered_s else step.energy_J.keys() & joules.keys()
    step.energy_J = {zone: step.energy_J.get(zone, 0.0) + joules[zone] for zone in joules if zone in zones}
    step.covered_s += lasted_s
    if _number(event.get("bmc_W"), 1e6):
        step.bmc_Js += event["bmc_W"] * lasted_s
        step.bmc_s += lasted_s


def _number(value, most: float) -> bool:
    return type(value) in (int, float) and 0 <= value < most
