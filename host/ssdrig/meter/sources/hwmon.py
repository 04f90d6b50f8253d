"""The kernel's sensors: `hwmon:FOLDER`, one of /sys/class/hwmon, polled. `?rate=` readings a second (default 50),
`?V=` nominal voltage.

A chip of the INA2xx family with its shunt resistor has the budget of its data sheet, as on our board. The accuracy of
any other sensor is not known: the kernel does not state it. The share of time that readings cover is not known either,
because the kernel does not report when a chip converts: nothing is taken to be seen between them."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl

from ssdrig.base.errors import RigError, UsageError
from ssdrig.meter import chips, meter

ROOT = Path("/sys/class/hwmon")
# of a time: what a reading takes, and twice the chip's interval: its mean, which may be as old once more
ASKED_NS = 10_000_000
LIVE = ("INA219", "INA220", "INA226", "INA228", "INA230", "INA231", "INA238", "CORSAIRPSU")  # asked at each reading
CACHED_NS = 1_000_000_000  # by a driver that is not known to ask, and does not state its interval
RATE_HZ = 50.0
FASTEST_HZ = 500.0
UNITS = {"in": 1e-3, "curr": 1e-3, "power": 1e-6}  # of a sysfs value, in V, A and W


class Channel:
    """One supply line of a sensor: its voltage, and its current or power."""

    def __init__(self, name: str, files: list[Path | None], nominal_V: float | None):
        self.name, (self._volts, self._amperes, self._watts), self._nominal_V = name, files, nominal_V

    def read(self) -> tuple[float, float]:
        """V and A. Raises OSError, ValueError."""
        volts = _value(self._volts) if self._volts else self._nominal_V or 1.0
        if self._amperes:
            return volts, _value(self._amperes)
        assert self._watts
        return volts, _value(self._watts) / volts if volts else 0.0

    @property
    def digit_A(self) -> float:
        """Last digit of its current; 0 of one that is made of its power."""
        return UNITS["curr"] if self._amperes else 0.0


class Hwmon:
    """See meter.Meter."""

    def __init__(self, folder: Path, rate_Hz: float, nominal_V: float | None):
        self._folder, self._rate_Hz, self._nominal_V = folder, rate_Hz, nominal_V
        chip = (folder / "name").read_text().strip()
        self.name, self.serial = f"{chip} of the kernel", str(folder.resolve())
        self._channels = channels(folder, chip, nominal_V)
        self._accuracy, self._bound_ns = accuracy(folder, chip), bound_ns(folder, chip)

    def rails(self) -> list[meter.Rail]:
        period_s = 1 / self._rate_Hz
        known = period_s, self._accuracy, 0.0, self._nominal_V
        return [meter.Rail(of.name, *known, digit_V=UNITS["in"], digit_A=of.digit_A) for of in self._channels]

    def clock(self) -> meter.Clock:
        return meter.Clock(self._bound_ns)

    def blocks(self) -> Iterator[meter.Block]:
        streams = [meter.polled(n, 1 / self._rate_Hz, channel.read) for n, channel in enumerate(self._channels)]
        while True:
            for readings in streams:
                yield next(readings)

    def close(self) -> None:
        pass


def channels(folder: Path, chip: str, nominal_V: float | None) -> list[Channel]:
    """The supply lines of a sensor. Of an INA2xx in1 is the bus and in0 the shunt."""
    files = {path.name: path for path in folder.iterdir() if path.name.endswith("_input")}
    out = []
    for number in sorted(int(m[1]) for name in files if (m := re.fullmatch(r"(?:curr|power)(\d+)_input", name))):
        label = folder / f"power{number}_label"
        name = label.read_text().strip() if label.exists() else f"{chip} {number}"
        if all(of.name != name for of in out):
            out.append(Channel(name, [files.get(f"{kind}{number}_input") for kind in UNITS], nominal_V))
    return out


def accuracy(folder: Path, chip: str) -> meter.Accuracy:
    """The folder of a sensor, by its name."""
    shunt = folder / "shunt_resistor"
    if chip.upper() in chips.CHIPS and shunt.exists():
        return meter.Accuracy(chip=chip.upper(), shunt_uOhm=int(shunt.read_text()))
    return meter.Accuracy(unknown=f"the kernel states no accuracy of {chip}")


def bound_ns(folder: Path, chip: str) -> int:
    """By how much the times of a sensor's readings may be off."""
    interval = folder / "update_interval"
    if interval.exists():
        return ASKED_NS + 2 * int(interval.read_text()) * 1_000_000
    return ASKED_NS + (0 if chip.upper() in LIVE else CACHED_NS)


def check(rest: str) -> None:
    """Raises UsageError for a folder other than a sensor with a current or a power."""
    _parts(rest)


def opened(rest: str) -> Hwmon:
    try:
        return Hwmon(*_parts(rest))
    except (OSError, ValueError) as error:
        raise RigError("a sensor of the kernel that can be read", str(error), "see /sys/class/hwmon") from error


def _parts(rest: str) -> tuple[Path, float, float | None]:
    options = parts(rest, "hwmon", ROOT)
    path = options[0]
    if not any(re.fullmatch(r"(curr|power)\d+_input", of.name) for of in path.iterdir()):
        do = f"see which it is: grep . {ROOT}/*/name"
        raise UsageError(f"a sensor with a current or a power in {path}", "none", do)
    return options


def parts(rest: str, scheme: str, root: Path) -> tuple[Path, float, float | None]:
    """Folder, readings a second and nominal voltage of `FOLDER?rate=50&V=5`. Raises UsageError."""
    folder, _, query = rest.partition("?")
    path, asked, do = Path(folder), dict(parse_qsl(query)), f"{scheme}:FOLDER?rate=50&V=5"
    if not (path / "name").is_file():
        hint = f"see which it is: grep . {root}/*/name"
        raise UsageError(f"--meter {scheme}:FOLDER with a folder of {root}", folder or "no folder", hint)
    try:
        rate_Hz, nominal_V = float(asked.pop("rate", RATE_HZ)), float(of) if (of := asked.pop("V", "")) else None
    except ValueError as error:
        raise UsageError("numbers for rate and V", str(error), do) from error
    if asked or not 0.5 <= rate_Hz <= FASTEST_HZ or (nominal_V is not None and not 0 < nominal_V <= 80):
        raise UsageError(f"?rate= from 0.5 to {FASTEST_HZ:g}, ?V= up to 80", query, do)
    return path, rate_Hz, nominal_V


def _value(path: Path) -> float:
    kind = re.match("[a-z]+", path.name)
    assert kind
    return int(path.read_text()) * UNITS[kind[0]]
