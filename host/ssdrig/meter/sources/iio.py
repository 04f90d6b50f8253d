"""The kernel's Industrial I/O: `iio:FOLDER`, one of /sys/bus/iio/devices, such as an INA226 on a Raspberry Pi's header
by ina2xx-adc, polled. Options as of hwmon.py: `?rate=`, `?V=`.

A value is (raw + offset) x scale, in mV, mA and mW. The accuracy is not known but of an INA226 with its shunt
resistor."""

import math
import re
from collections.abc import Iterator
from pathlib import Path

from ssdrig.base.errors import RigError, UsageError
from ssdrig.meter import chips, meter
from ssdrig.meter.sources import hwmon

ROOT = Path("/sys/bus/iio/devices")
ASKED_NS = 10_000_000  # of a time: what a reading takes
KINDS = ("voltage", "current", "power")
CONVERSIONS = 2  # of current and voltage in a set, which a reading may be older by once more


class Channel:
    """A value of a device: a voltage, a current or a power, by the beginning of its files' names."""

    def __init__(self, folder: Path, name: str):
        self._folder, self._name = folder, name
        self._offset, self.scale = self._constant("offset", 0.0), self._constant("scale", 1.0)

    def _constant(self, what: str, usual: float) -> float:
        path = self._folder / f"{self._name}_{what}"
        value = float(path.read_text()) if path.exists() else usual
        if not math.isfinite(value):
            raise ValueError(f"{path.name} is {value}")
        return value

    def read(self) -> float:
        """In V, A or W. Raises OSError, ValueError."""
        raw = (self._folder / f"{self._name}_raw").read_text()
        return (float(raw) + self._offset) * self.scale / 1000


class Iio:
    """See meter.Meter: one rail, of the device's bus voltage and its current or, without one, its power."""

    def __init__(self, folder: Path, rate_Hz: float, nominal_V: float | None):
        self._rate_Hz, self._nominal_V = rate_Hz, nominal_V
        chip = (folder / "name").read_text().strip()
        self.name, self.serial = f"{chip} of the kernel", str(folder.resolve())
        by_kind = channels(folder)
        self._volts, self._amperes, self._watts = (by_kind.get(kind) for kind in KINDS)
        self._accuracy, self._bound_ns = accuracy(folder, chip), bound_ns(folder)

    def _read(self) -> tuple[float, float]:
        volts = self._volts.read() if self._volts else self._nominal_V or 1.0
        if self._amperes:
            return volts, self._amperes.read()
        assert self._watts
        return volts, self._watts.read() / volts if volts else 0.0

    def rails(self) -> list[meter.Rail]:
        digit_V, digit_A = (of.scale / 1000 if of else 0.0 for of in (self._volts, self._amperes))
        known = 1 / self._rate_Hz, self._accuracy, 0.0, self._nominal_V
        return [meter.Rail("supply", *known, digit_V=digit_V, digit_A=digit_A)]

    def clock(self) -> meter.Clock:
        return meter.Clock(self._bound_ns)

    def blocks(self) -> Iterator[meter.Block]:
        return meter.polled(0, 1 / self._rate_Hz, self._read)

    def close(self) -> None:
        pass


def channels(folder: Path) -> dict[str, Channel]:
    """The voltage, the current and the power of a device. Of an INA2xx voltage0 is the shunt and voltage1 the bus: of
    several voltages the last one."""
    names = sorted(m[1] for path in folder.iterdir() if (m := re.fullmatch(r"(in_[a-z]+\d*)_raw", path.name)))
    kinds = {kind: [name for name in names if name.startswith(f"in_{kind}")] for kind in KINDS}
    return {kind: Channel(folder, of[-1]) for kind, of in kinds.items() if of}


def accuracy(folder: Path, chip: str) -> meter.Accuracy:
    """The folder of a device, by its name."""
    shunt = folder / "in_shunt_resistor"
    if chip.upper() in chips.CHIPS and shunt.exists():
        return meter.Accuracy(chip=chip.upper(), shunt_uOhm=round(float(shunt.read_text()) * 1e6))
    return meter.Accuracy(unknown=f"the kernel states no accuracy of {chip}")


def bound_ns(folder: Path) -> int:
    """By how much the times of a device's readings may be off: a reading is the mean of one set of conversions, and may
    be another one old. A device that does not report their length is taken to convert when it is asked."""
    spans_s = [float(path.read_text()) for path in folder.glob("in*_integration_time")]
    ratios = [int(path.read_text()) for path in folder.glob("in*_oversampling_ratio")]
    set_s = max(spans_s, default=0.0) * CONVERSIONS * max(ratios, default=1)
    return ASKED_NS + round(2 * set_s * 1e9)


def check(rest: str) -> None:
    """Raises UsageError for a folder other than a device with a current or a power."""
    _parts(rest)


def opened(rest: str) -> Iio:
    try:
        return Iio(*_parts(rest))
    except (OSError, ValueError) as error:
        raise RigError("a device of the kernel that can be read", str(error), f"see {ROOT}") from error


def _parts(rest: str) -> tuple[Path, float, float | None]:
    options = hwmon.parts(rest, "iio", ROOT)
    if not any(re.fullmatch(r"in_(current|power)\d*_raw", of.name) for of in options[0].iterdir()):
        do = f"see which it is: grep . {ROOT}/*/name"
        raise UsageError(f"a device with a current or a power in {options[0]}", "none", do)
    return options
