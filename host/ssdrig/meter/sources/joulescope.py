"""A Joulescope JS110, JS220 or JS320: `joulescope:SERIAL`, or `joulescope:` where there is one, by pyjoulescope_driver.
`?rate=` samples a second (1000), which the driver makes from its own rate; `V=` and `A=` are limits of its manual.

The driver gives current and voltage by topic, each block with the number of its first sample and the driver's own UTC
of it, which it makes from the instrument's clock and this host's. That UTC is taken where it fits to when the block
came; a block whose time does not fit is lost, and counted. Its ranges are left as they are: a range that is set again,
or off, takes the drive's power."""

import importlib
import queue
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

from ssdrig.base.deferred import is_installed
from ssdrig.base.errors import RigError, ToolMissing, UsageError, words_of
from ssdrig.meter import manual, meter

EXAMPLE = "joulescope:001122?V=0.1%+3mV&A=0.3%+1mA"
RATE_HZ, SLOWEST_HZ, FASTEST_HZ = 1000.0, 10.0, 5000.0
TIME64_SECOND, TIME64_EPOCH_S = 1 << 30, 1_514_764_800  # since 2018-01-01 UTC, pyjoulescope_driver's time64
BOUND_NS = 10_000_000  # of a time
OLDEST_NS = 1_000_000_000  # so old a block may be when it comes
SILENT_S = 3.0
MOST_V, MOST_A = 20.0, 16.0
UNKNOWN = "its maker's limits of this range are not known here: state V= and A= of its manual"
TOPICS = {"v": "s/v/!data", "i": "s/i/!data"}


class Joulescope:
    """See meter.Meter."""

    def __init__(self, driver: Any, path: str, rate_Hz: float, accuracy: meter.Accuracy):
        self._driver, self._path, self._rate_Hz, self._accuracy = driver, path, rate_Hz, accuracy
        _, model, self.serial = path.rsplit("/", 2)
        self.name = f"Joulescope {model.upper()} {self.serial}"
        self._blocks: queue.SimpleQueue = queue.SimpleQueue()
        driver.open(path, mode="restore")
        driver.publish(f"{path}/h/fs", round(rate_Hz))
        self._takers = {}
        for name, topic in TOPICS.items():
            self._takers[name] = take = self._taker(name)
            driver.subscribe(f"{path}/{topic}", ["pub"], take)
            driver.publish(f"{path}/s/{name}/ctrl", 1)

    def _taker(self, name: str):
        def take(topic: str, value: dict) -> None:
            anchor_ns = time.time_ns() - time.monotonic_ns()
            self._blocks.put((name, value, time.monotonic_ns(), anchor_ns))

        return take

    def rails(self) -> list[meter.Rail]:
        return [meter.Rail("joulescope", 1 / self._rate_Hz, self._accuracy, 1.0, None, MOST_V, MOST_A)]

    def clock(self) -> meter.Clock:
        return meter.Clock(BOUND_NS)

    def blocks(self) -> Iterator[meter.Block]:
        """Samples with both quantities."""
        pending: dict[str, dict[int, tuple[float, int, int]]] = {name: {} for name in TOPICS}
        next_, missed = None, 0
        while True:
            try:
                name, value, came_ns, anchor_ns = self._blocks.get(timeout=SILENT_S)
            except queue.Empty:
                raise OSError(f"no samples for {SILENT_S:g} s") from None
            for number, sample, t_ns, bound_ns in samples(value, came_ns, anchor_ns):
                pending[name][number] = sample, t_ns, bound_ns
            both = sorted(pending["v"].keys() & pending["i"].keys())
            if not both:
                continue
            for of in pending.values():  # a sample without a partner by now has none
                for number in [number for number in of if number < both[0]]:
                    del of[number]
            at = 0
            while at < len(both):
                end = at + 1
                while end < len(both) and both[end] == both[end - 1] + 1:
                    end += 1
                numbers = both[at:end]
                missed = numbers[0] - next_ if next_ is not None else 0
                volts, amperes = ([pending[name].pop(number) for number in numbers] for name in ("v", "i"))
                next_ = numbers[-1] + 1
                yield meter.Block(
                    0,
                    [t_ns for _, t_ns, _ in amperes],
                    [sample for sample, _, _ in volts],
                    [sample for sample, _, _ in amperes],
                    max(0, missed),
                    max(bound_ns for _, _, bound_ns in (*volts, *amperes)),
                )
                at = end

    def close(self) -> None:
        for name, topic in TOPICS.items():
            self._driver.unsubscribe(f"{self._path}/{topic}", self._takers[name])
            self._driver.publish(f"{self._path}/s/{name}/ctrl", 0)
        self._driver.close(self._path)
        self._driver.finalize()


def samples(value: dict, came_ns: int, anchor_ns: int) -> Iterator[tuple[int, float, int, int]]:
    """Number, reading, time (CLOCK_MONOTONIC ns) and by how much that may be off, of each sample of a block.

    value: as the driver publishes it.
    came_ns: CLOCK_MONOTONIC when it came.
    anchor_ns: UTC less CLOCK_MONOTONIC then."""
    decimated = int(value["decimate_factor"])
    first, step_ns = int(value["sample_id"]) // decimated, decimated / float(value["sample_rate"]) * 1e9
    utc = int(value["utc"])
    utc_ns = (utc // TIME64_SECOND + TIME64_EPOCH_S) * 10**9 + (utc % TIME64_SECOND) * 10**9 // TIME64_SECOND
    begin_ns = utc_ns - anchor_ns
    end_ns = begin_ns + round((len(value["data"]) - 1) * step_ns)
    fits = came_ns - OLDEST_NS <= begin_ns and end_ns <= came_ns + BOUND_NS
    for i, reading in enumerate(value["data"]):
        yield first + i, float(reading), begin_ns + round(i * step_ns), BOUND_NS if fits else 2 * BOUND_NS


def check(rest: str) -> None:
    """Raises UsageError for another kind of URL, ToolMissing without the driver."""
    _parts(rest)
    _require()


def opened(rest: str) -> Joulescope:
    serial, rate_Hz, accuracy = _parts(rest)
    _require()
    driver = importlib.import_module("pyjoulescope_driver").Driver()
    try:
        paths = [path for path in driver.device_paths() if not serial or path.rsplit("/", 1)[-1] == serial]
        if len(paths) != 1:
            raise OSError(f"{len(paths)} of them: {', '.join(driver.device_paths()) or 'none'}")
        return Joulescope(driver, paths[0], rate_Hz, accuracy)
    except (OSError, RuntimeError, TimeoutError) as error:
        driver.finalize()
        raise RigError(f"one Joulescope {serial}".strip(), words_of(error), EXAMPLE) from error


def _require() -> None:
    if not is_installed("pyjoulescope_driver"):
        do = "pip install 'ssdrig[joulescope]'; in a clone: .venv/bin/pip install pyjoulescope-driver"
        raise ToolMissing("the Python package pyjoulescope-driver", "it is not installed", do)


def _parts(rest: str) -> tuple[str, float, meter.Accuracy]:
    serial, _, query = rest.partition("?")
    options = dict(parse_qsl(query))
    accuracy = manual.accuracy(options, EXAMPLE, UNKNOWN)
    try:
        rate_Hz = float(options.pop("rate", RATE_HZ))
    except ValueError as error:
        raise UsageError("a number for rate", str(error), EXAMPLE) from error
    if options.keys() - {"V", "A"} or not SLOWEST_HZ <= rate_Hz <= FASTEST_HZ:
        raise UsageError(f"?rate= from {SLOWEST_HZ:g} to {FASTEST_HZ:g}, V=, A=", query, EXAMPLE)
    return serial, rate_Hz, accuracy
