"""The capacitors of one SIMULATED drive: charged, used at a cut, charged again. The physics is in capacitor.py."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ssdrig.virtual.flash import capacitor, ftl, nand
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import Preset

if TYPE_CHECKING:
    from ssdrig.virtual.device.powercut import Cut


def of(preset: Preset) -> "Reserve | None":
    """None of a drive without capacitors."""
    capacity = capacitor.of(preset)
    return Reserve(*capacity, preset.program_pages) if capacity else None


class Reserve:
    """health: of the capacitance, 1 of new capacitors; a fault may lower it, at_this_cut for one cut. Times: model."""

    def __init__(self, bank: capacitor.Bank, work: capacitor.Work, program_pages: int):
        self.bank, self.work, self.program_pages = bank, work, program_pages
        self.health = self.at_this_cut = 1.0
        self.volts, self._charging_ns = bank.full_V, 0  # as of then
        self.incomplete_dumps = 0
        self.lost_pages: list[int] = []  # of the last cut

    def at_cut(self, cut: "Cut", announced: bool) -> None:
        """Answered data not yet on NAND is saved oldest first; the rest is lost when the energy ends."""
        rows, health = cut.versions, self.health * self.at_this_cut
        dirty = np.flatnonzero(~rows["trim"] & (rows["done_ns"] <= cut.t_ns) & (rows["nand_ns"] > cut.t_ns))
        volts = capacitor.charged_V(self.bank, health, self.volts, (cut.t_ns - self._charging_ns) / 1e9)
        units = -(-len(dirty) // self.program_pages)
        dump = capacitor.dump(self.bank, self.work, health, volts, units)
        lost = dirty[dump.units * self.program_pages :]
        rows["durable_ns"][lost] = ftl.FAR
        self.lost_pages = np.unique(rows["page"][lost]).tolist()
        self.incomplete_dumps += dump.units < units
        self.volts = dump.volts if announced else min(volts, self.bank.least_V)

    def saved_state(self, now: int) -> dict:
        """What outlives the server of the drive."""
        volts = capacitor.charged_V(self.bank, self.health, self.volts, (now - self._charging_ns) / 1e9)
        return {"health": self.health, "volts": volts, "incomplete_dumps": self.incomplete_dumps}

    def restore(self, state: Mapping) -> None:
        """Continue with the state of kept(), from model time 0 on."""
        self.health, self.volts, self._charging_ns = float(state["health"]), float(state["volts"]), 0
        self.incomplete_dumps = int(state["incomplete_dumps"])

    def charging_ns(self) -> int:
        """How long the rail must be up until they are full."""
        return round(capacitor.missing_J(self.bank, self.health, self.volts) / self.bank.charge_W * 1e9)

    def charge(self, drive: VirtualDrive, now: int, since: int) -> None:
        """The rail is back since then, now or before: the missing charge is drawn from it."""
        joules = capacitor.missing_J(self.bank, self.health, self.volts)
        self._charging_ns = since
        if joules:
            drive.draw(now, now + self.charging_ns(), joules, nand.E_CHARGE)
