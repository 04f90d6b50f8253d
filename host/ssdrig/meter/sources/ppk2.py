"""Nordic's Power Profiler Kit II: `ppk2:SERIAL?V=5`, by ppk2lab. `V` is the voltage of the rail, which it does not
measure: power is as right as that. `?rate=` means a second of its 100 000 samples (1000).

It measures up to 1 A, and is not set: whether it supplies the drive or only looks is left as it is, and so is its
output when the run ends. Nordic states typical figures alone (10 %, 15 % above 50 mA), no limits."""

import importlib
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

from ssdrig.base.deferred import is_installed
from ssdrig.base.errors import RigError, ToolMissing, UsageError, words_of
from ssdrig.meter import meter
from ssdrig.meter.numbered import Numbered

EXAMPLE = "ppk2:E1B2C3D4?V=5"
NATIVE_HZ, RATE_HZ, SLOWEST_HZ = 100_000, 1000.0, 10.0
MOST_A = 1.0
PERIOD_NS = 10_000
BOUND_NS = 10_000_000  # of a time: what USB holds back at least, and the first seconds
UNKNOWN = "Nordic states typical figures of current alone (10 %, 15 % above 50 mA), and its voltage is taken as given"


class Ppk2:
    """See meter.Meter."""

    def __init__(self, device: Any, volts: float, rate_Hz: float):
        self._device, self._volts, self._of = device, volts, max(1, round(NATIVE_HZ / rate_Hz))
        self.serial = str(device.info.serial_number or "")
        self.name = f"PPK2 {self.serial}".strip()

    def rails(self) -> list[meter.Rail]:
        accuracy = meter.Accuracy(unknown=UNKNOWN)
        return [meter.Rail("ppk2", self._of / NATIVE_HZ, accuracy, 1.0, self._volts, 2 * self._volts, 2 * MOST_A)]

    def clock(self) -> meter.Clock:
        return meter.Clock(BOUND_NS)

    def blocks(self) -> Iterator[meter.Block]:
        """Means of neighbouring samples; where samples are lost, the mean that they belong to is lost."""
        clock, missed, part = Numbered(PERIOD_NS), 0, []
        calibration = self._device.calibration
        try:
            with self._device.stream() as events:
                for event in events:
                    if hasattr(event, "missing"):  # a gap: a begun block is lost with it
                        missed += 1 + (event.missing or 0) // self._of
                        part = []
                        continue
                    clock.came(event.end_index, time.monotonic_ns())
                    part += calibration.convert_block(event)
                    whole = len(part) // self._of
                    if not whole:
                        continue
                    first = event.end_index - len(part)
                    times_ns = [clock.end_ns(first + (k + 1) * self._of) for k in range(whole)]
                    means = [sum(part[k * self._of : (k + 1) * self._of]) / self._of * 1e-6 for k in range(whole)]
                    part = part[whole * self._of :]
                    yield meter.Block(0, times_ns, [self._volts] * whole, means, missed, BOUND_NS)
                    missed = 0
        except importlib.import_module("ppk2lab").Ppk2labError as error:
            raise OSError(words_of(error)) from error

    def close(self) -> None:
        self._device.close(restore_power=False)


def check(rest: str) -> None:
    """Raises UsageError for another kind of URL, ToolMissing without ppk2lab."""
    _parts(rest)
    _require()


def opened(rest: str) -> Ppk2:
    serial, volts, rate_Hz = _parts(rest)
    _require()
    ppk2lab = importlib.import_module("ppk2lab")
    try:
        device = ppk2lab.PPK2.open(serial_number=serial or None, simulate=None)
    except (OSError, ppk2lab.Ppk2labError) as error:
        raise RigError(
            f"a PPK2 {serial} that answers", words_of(error), "see what is there: ppk2lab devices"
        ) from error
    return Ppk2(device, volts, rate_Hz)


def _require() -> None:
    if not is_installed("ppk2lab"):
        do = "pip install 'ssdrig[ppk2]'; in a clone: .venv/bin/pip install ppk2lab"
        raise ToolMissing("the Python package ppk2lab", "it is not installed", do)


def _parts(rest: str) -> tuple[str, float, float]:
    serial, _, query = rest.partition("?")
    options = dict(parse_qsl(query))
    try:
        volts, rate_Hz = float(options.pop("V", "0")), float(options.pop("rate", RATE_HZ))
    except ValueError as error:
        raise UsageError("numbers for V and rate", str(error), EXAMPLE) from error
    if options or not 0 < volts <= 5.5 or not SLOWEST_HZ <= rate_Hz <= NATIVE_HZ:
        raise UsageError(f"?V= of the rail up to 5.5, ?rate= from {SLOWEST_HZ:g} to {NATIVE_HZ}", query, EXAMPLE)
    return serial, volts, rate_Hz
