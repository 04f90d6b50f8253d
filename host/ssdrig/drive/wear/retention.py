"""How long data is required to survive on an SSD without power (JESD218): bounds, never a promise. Pure.

JESD218 requires of a drive at the end of its rated endurance that it keeps data for a time at a storage temperature:
client 1 year at 30 C, enterprise 3 months at 40 C. Other storage temperatures follow from Arrhenius with 1.1 eV, the
standard's figure for detrapping in NAND: AF(T1 -> T2) = exp(Ea / k (1/T1 - 1/T2)), t(T2) = t(T1) / AF. Other mechanisms
(early loss in 3D charge-trap NAND) have lower energies, so Ea is a parameter.
"""

import math
from typing import Any, NamedTuple

from ssdrig.base.words import period

BOLTZMANN_EV_PER_K = 8.617333e-5
ACTIVATION_ENERGY_EV = 1.1
_KELVIN = 273.15


class Requirement(NamedTuple):
    """What a drive class has to hold at 100 % of its rated endurance: hours without power at off_C. The standard writes
    the data at 40 C (client) or 55 C (enterprise); written warm and stored cool it stays longer. How much longer is not
    1.1 eV (x5 from 40 to 55 C, not x6.4), so no other writing temperature is extrapolated."""

    hours: float
    off_C: float


REQUIREMENTS = {"client": Requirement(8760, 30), "enterprise": Requirement(2190, 40)}

EXPLANATION = (
    "JESD218 requires a drive to hold its data for this long without power once its rated endurance is used up:"
    " {words}. {storage}It is a bound from the standard, not a promise for this drive: it assumes the temperature at"
    " which the class is written, and a drive worn quickly at room temperature keeps data for less time than one worn"
    " slowly in use. A drive with less wear keeps it longer; the standard does not say how much."
)


def acceleration(from_C: float, to_C: float, ea_eV: float = ACTIVATION_ENERGY_EV) -> float:
    """How many times faster charge is lost at to_C than at from_C."""
    return math.exp(ea_eV / BOLTZMANN_EV_PER_K * (1 / (from_C + _KELVIN) - 1 / (to_C + _KELVIN)))


def bound_hours(drive_class: str, storage_C: float, ea_eV: float = ACTIVATION_ENERGY_EV) -> float:
    """Hours without power at storage_C that the class ("client" or "enterprise") requires at 100 % of the rated
    endurance."""
    requirement = REQUIREMENTS[drive_class]
    return requirement.hours / acceleration(requirement.off_C, storage_C, ea_eV)


def equivalent_hours(profile: list[tuple[float, float]], at_C: float, ea_eV: float = ACTIVATION_ENERGY_EV) -> float:
    """Hours at at_C that cost as much as the profile, a list of (hours, C): sum of dt x AF(at_C -> T)."""
    return sum(hours * acceleration(at_C, temperature, ea_eV) for hours, temperature in profile)


def effective_temperature(profile: list[tuple[float, float]], ea_eV: float = ACTIVATION_ENERGY_EV) -> float:
    """The constant temperature, C, that costs as much as the profile, a list of (hours, C) with some hours: from the
    mean of exp(-Ea / kT). It is above the mean temperature."""
    # against the hottest step, so that the exponentials neither underflow nor overflow
    hot = max(temperature for hours, temperature in profile if hours > 0)
    mean = equivalent_hours(profile, hot, ea_eV) / sum(hours for hours, _ in profile)
    return 1 / (1 / (hot + _KELVIN) - BOLTZMANN_EV_PER_K / ea_eV * math.log(mean)) - _KELVIN


def unpowered_hours(before: dict, after: dict) -> float | None:
    """Hours between two snapshots (with "utc_ns") that a drive was without power, at most: no SMART counter has it, so
    it is the calendar time less the power-on hours, which round down and may leave out time in low-power states."""
    spans = []
    for name in ("utc_ns", "power_on_hours"):
        begin, end = before.get(name), after.get(name)
        if begin is None or end is None or end < begin:
            return None
        spans.append(end - begin)
    passed_ns, powered_h = spans
    return max(0.0, passed_ns / 3.6e12 - powered_h + 1)


def bound(
    drive_class: str | None, wear_percent: float | None, storage_C: float, ea_eV: float = ACTIVATION_ENERGY_EV
) -> dict:
    """The retention bound of one drive: {"state", "hours", "drive_class", "storage_C", "wear_percent", "ea_eV",
    "words", "explanation"}.

    state: "holds" up to 100 % of the rated endurance: hours is the standard's requirement at the end of it; the
    standard does not state how much longer a less worn drive holds. "wear not known": hours holds if the wear is within
    the rating. "void" above the rating and "class not known": hours is None."""
    out: dict[str, Any] = {
        "state": "class not known",
        "hours": None,
        "drive_class": drive_class,
        "storage_C": storage_C,
        "wear_percent": wear_percent,
        "ea_eV": ea_eV,
        "explanation": None,
    }
    if drive_class not in REQUIREMENTS:
        return out | {"words": "No retention bound: the drive's class, client or enterprise, is unknown (--class)."}
    if wear_percent is not None and wear_percent > 100:
        words = f"No retention bound: {wear_percent:.0f} % of the rated endurance is used, the standard ends at 100 %."
        return out | {"state": "void", "words": words}
    hours, requirement = bound_hours(drive_class, storage_C, ea_eV), REQUIREMENTS[drive_class]
    rule = f"{drive_class} class, {period(requirement.hours / 24)} at {requirement.off_C:g} °C"
    storage = f"For {storage_C:g} °C it is converted with an activation energy of {ea_eV:g} eV (Arrhenius). "
    out["explanation"] = EXPLANATION.format(words=rule, storage="" if storage_C == requirement.off_C else storage)
    text = (
        f"Without power at {storage_C:g} °C: at least {period(hours / 24)} when worn out (JESD218 {drive_class} class)."
    )
    if wear_percent is None:
        return out | {
            "state": "wear not known",
            "hours": hours,
            "words": f"{text} The drive's wear is unknown: above 100 % the bound is void.",
        }
    return out | {"state": "holds", "hours": hours, "words": text}
