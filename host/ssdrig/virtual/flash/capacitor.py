"""The capacitors of a drive with power-loss protection: the data they save at a cut, their charge when power is back.
Pure; SIMULATED.

    energy from V0 down to V1 = C (V0^2 - V1^2) / 2,  C the nominal capacitance times its health

At a cut the cache is programmed from them, round after round, all dies at a time: the controller and each die at work
draw their power for the time of one program. Data beyond their energy is lost. After an unannounced cut
the controller runs on down to the least voltage, so the charge missing at the next power-on shows the capacitance from
outside; after an announced shutdown they stay full (both assumed). Then the charger draws its power from the rail, on
top of the drive's own, without its own loss (assumed), until they are full."""

from math import sqrt
from typing import NamedTuple

from ssdrig.virtual.flash.presets import Preset


class Bank(NamedTuple):
    """Capacitors of nominal capacitance."""

    farads: float
    full_V: float
    least_V: float  # below it the drive's converters stop
    charge_W: float


class Work(NamedTuple):
    """What programming the cache takes."""

    dies: int
    program_s: float
    base_W: float  # of the controller
    die_W: float  # of each die at work


class Dump(NamedTuple):
    units: int  # program units saved
    used_J: float
    volts: float  # after it
    took_s: float


def of(preset: Preset) -> tuple[Bank, Work] | None:
    """None of a drive without capacitors."""
    if not preset.plp or not preset.cap_uF:
        return None
    bank = Bank(preset.cap_uF / 1e6, preset.cap_V, preset.cap_V_min, preset.cap_charge_mW / 1e3)
    base_W = (preset.P_idle_mW + preset.P_active_mW) / 1e3
    return bank, Work(preset.dies, preset.t_PROG_ns / 1e9, base_W, preset.P_prog_mW / 1e3)


def energy_J(bank: Bank, health: float, volts: float) -> float:
    """Usable, of capacitors at `volts`. health: 1 of new ones."""
    return max(0.0, bank.farads * health * (volts**2 - bank.least_V**2) / 2)


def dump(bank: Bank, work: Work, health: float, volts: float, units: int) -> Dump:
    """Program this many units of the cache at a cut."""
    left_J = energy_J(bank, health, volts)
    saved = rounds = 0
    used_J = 0.0
    while saved < units:
        spare_W = (left_J - used_J) / work.program_s - work.base_W
        dies = min(work.dies, units - saved, int(spare_W / work.die_W + 1e-9))
        if dies <= 0:
            break
        used_J += (work.base_W + dies * work.die_W) * work.program_s
        saved, rounds = saved + dies, rounds + 1
    after_V = sqrt(max(0.0, volts**2 - 2 * used_J / (bank.farads * health))) if used_J else volts
    return Dump(saved, used_J, after_V, rounds * work.program_s)


def missing_J(bank: Bank, health: float, volts: float) -> float:
    """What full capacitors have more, J."""
    return energy_J(bank, health, bank.full_V) - energy_J(bank, health, max(volts, bank.least_V))


def charged_V(bank: Bank, health: float, volts: float, charging_s: float) -> float:
    """Their voltage after charging for this long from `volts`, at least the least voltage, on."""
    if health <= 0:
        return bank.full_V  # nothing to charge
    start_V = max(volts, bank.least_V)
    return min(bank.full_V, sqrt(start_V**2 + 2 * bank.charge_W * charging_s / (bank.farads * health)))
