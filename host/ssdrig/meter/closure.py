"""The host's integral of a rail's power against the chip's own accumulator over the same conversions. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ssdrig.meter import clock
from ssdrig.meter.frames import Boot

BEHIND_US = 5000  # an energy frame is read right after the conversion that it ends with


@dataclass(frozen=True)
class Closure:
    """Percent = 100 x (host / chip - 1)."""

    raw_percent: float
    corrected_percent: float  # with the chip's oscillator taken out
    chip_clock_ppm: float  # how much faster than nominal the chip converts
    host_J: float
    chip_J: float  # as the chip counts
    seconds: float
    resolution_percent: float  # what the chip's rounding of power and energy leaves open
    chip_clock_error_ppm: float = float("nan")  # largest error of that by the clock
    instead: int = 0  # conversions of a fast rail that were not read because the accumulators were


class Stretch(NamedTuple):
    """One segment of a rail's samples. `holds`: conversion numbers (int64) -> the last sample before each (-1: none in
    the segment), and its own number."""

    boot: int  # position in boots
    first_us: int  # board time of its first and of its last sample
    last_us: int
    holds: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class Bracket(NamedTuple):
    """Two energy frames of one stretch, as far apart as can be."""

    first: int  # the sample that each ends with
    last: int
    nominal_s: float  # of the conversions between them
    chip_J: float
    power_lsb_W: float


def brackets(
    stretches: Iterable[Stretch], energies: np.ndarray, rail: int, boots: list[Boot]
) -> tuple[list[Bracket], int]:
    """The brackets of all stretches with at least two energy frames; and Closure.instead.

    energies: rows of frames.ENERGY of this rail. The register is 40 bits wide and may wrap between two frames."""
    pairs, instead = [], 0
    for boot, first_us, last_us, held in stretches:
        mine = energies[
            (energies["boot"] == boot) & (energies["t_us"] >= first_us) & (energies["t_us"] <= last_us + BEHIND_US)
        ]
        holds, index = held(mine["index"])
        # 0: that sample is the last conversion it holds. 1 in all: a fast rail reads its accumulators instead of a
        # sample; then the host's end and the chip's are both one conversion apart, at both ends of the interval.
        apart = np.where(holds >= 0, mine["index"] - 1 - index, 2)
        least = int(apart.min(initial=2)) % 2
        exact = apart == least
        instead += int(exact.sum()) * least
        inside, holds, index = mine[exact], holds[exact], index[exact]
        if len(inside) < 2 or len(np.unique(inside["config"])) > 1:
            continue
        facts = boots[boot].rails[(rail, int(inside["config"][0]))]
        conversions = int(index[-1] - index[0])
        steps = np.diff(inside["energy"]) % (1 << 40)
        if conversions < 1 or (steps > 1 << 39).any():  # it fell: the accumulator was reset without a `go`
            continue
        power_lsb_W = 3.2 * facts["current_lsb_pA"] * 1e-12
        nominal_s = conversions * facts["conversion_ns"] * 1e-9
        chip_J = float(steps.sum()) * 16 * power_lsb_W
        pairs.append(Bracket(int(holds[0]), int(holds[-1]), nominal_s, chip_J, power_lsb_W))
    return pairs, instead


def closed(
    pairs: list[Bracket], instead: int, t_ns: np.ndarray, error_ns: np.ndarray, raw_J: np.ndarray
) -> Closure | None:
    """Host against chip, summed over all brackets; None without one. t_ns (int64), error_ns, raw_J (float64):
    (brackets, 2) host time of the samples at both ends, its largest error, and Power.raw_J there."""
    host_J = chip_J = corrected_J = nominal_s = seen_s = rounding_J = open_s = 0.0
    columns = np.diff(t_ns)[:, 0].tolist(), (error_ns.sum(axis=1) * 1e-9).tolist(), np.diff(raw_J)[:, 0].tolist()
    for one, ns, open_here_s, joules in zip(pairs, *columns, strict=True):
        seconds = ns * 1e-9
        if seconds <= 0:
            continue
        host_J += joules
        chip_J += one.chip_J
        corrected_J += one.chip_J * seconds / one.nominal_s
        rounding_J += one.power_lsb_W * seconds + 16 * one.power_lsb_W
        nominal_s += one.nominal_s
        seen_s += seconds
        open_s += min(open_here_s, 2e-6 * clock.NOMINAL_PPM * seconds)
    if chip_J <= 0:
        return None
    return Closure(
        100 * (host_J / chip_J - 1),
        100 * (host_J / corrected_J - 1),
        1e6 * (nominal_s / seen_s - 1),
        host_J,
        chip_J,
        seen_s,
        100 * rounding_J / chip_J,
        1e6 * open_s / seen_s,
        instead,
    )
