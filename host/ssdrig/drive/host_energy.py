"""Energy of the host's processors by RAPL: a context channel next to the drive's power,
never the drive's.

Sources: Documentation/power/powercap/powercap.rst of the Linux kernel: energy_uj counts up and wraps at
max_energy_range_uj; one zone a package, and where the machine has it psys, which holds the whole board. Only root may
read energy_uj since 2020 (CVE-2020-8694)."""

import os
import time
from typing import NamedTuple

from ssdrig.base import rapl
from ssdrig.drive import sysfs

FOLDER = "/sys/class/powercap"


class Zone(NamedTuple):
    """A counter: its name, such as package-0, where it is, and at how many uJ it wraps."""

    name: str
    folder: str
    range_uJ: int


def zones(root: str | os.PathLike = "/") -> list[Zone]:
    """The packages, and psys, that this process may read; their parts, such as cores, are in them. [] where there are
    none."""
    readings = []
    for entry in sorted(sysfs.listing(sysfs.within(root, FOLDER))):
        folder = sysfs.within(root, FOLDER, entry)
        name, most = sysfs.text(folder, "name"), sysfs.number(folder, "max_energy_range_uj")
        if entry.count(":") == 1 and name and most and energy_uJ(folder) is not None:
            taken = {zone.name for zone in readings}
            readings.append(Zone(name if name not in taken else f"{name} {entry}", folder, most))
    return readings


class Energies:
    """Energy of each zone from one reading to the next. `root`: where /sys is."""

    def __init__(self, root: str | os.PathLike = "/"):
        self._zones = zones(root)
        self._before, self._before_ns = self._read()

    def _read(self) -> tuple[list[int | None], int]:
        return [energy_uJ(zone.folder) for zone in self._zones], time.monotonic_ns()

    def since(self) -> dict[str, float]:
        """J of each zone since the last call, the first time since this was made; without a zone that one of the two
        readings lacks, or that was reset in between. Right while a zone does not wrap twice in between."""
        (now, now_ns), before, before_ns = self._read(), self._before, self._before_ns
        self._before, self._before_ns = now, now_ns
        spent = {
            zone.name: rapl.spent_uJ(first, last, zone.range_uJ, now_ns - before_ns)
            for zone, first, last in zip(self._zones, before, now, strict=True)
            if first is not None and last is not None
        }
        return {name: uJ / 1e6 for name, uJ in spent.items() if uJ is not None}


def energy_uJ(folder: str) -> int | None:
    """The counter of a zone now; None: it cannot be read."""
    return sysfs.number(folder, "energy_uj")
