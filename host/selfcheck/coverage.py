"""What the conversions see of a load that comes in bursts: the register-level model of the INA228, configured as
firmware/board.py has it (order temperature, current, voltage), against the exact integral of the same load.

The supply is stiff. A supply that sags by a burst adds an error of its own, which is printed without a bar: V is taken
behind I (hardware/README.md)."""

import functools
import importlib.util
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from selfcheck import Figure, at_least, at_most, in_turn
from ssdrig.meter import ina228, uncertainty

MODELS = Path(__file__).resolve().parents[1] / "ssdrig" / "virtual" / "board"
DEFAULT, BEFORE = (50, 1052, None), (150, 540, 50)  # us of V, I and T: as board.py has them, and as it once had
SECOND_NS = 10**9
BASE_A, PEAK_A, VOLTS = 0.05, 3.0, 5.0
LOADS = 150  # of each kind
SAG_OHM = 0.05  # of supply, fuse, switch and shunt, for the figure without a bar
SHUNT_uOhm, LSB_pA, BUS_LSB_nV = 8000, 9_765_625, 195_312.5


class Load(NamedTuple):
    """Current (A) that changes at `edges_ns` (float64, rising), and its integral and that of its square up to each."""

    edges_ns: np.ndarray
    amperes: np.ndarray
    charge: np.ndarray
    square: np.ndarray

    def mean(self, begin_ns: float, end_ns: float) -> float:
        charge = np.interp([begin_ns, end_ns], self.edges_ns, self.charge)
        return float(charge[1] - charge[0]) / (end_ns - begin_ns)

    def mean_square(self, begin_ns: float, end_ns: float) -> float:
        square = np.interp([begin_ns, end_ns], self.edges_ns, self.square)
        return float(square[1] - square[0]) / (end_ns - begin_ns)


def load_of(begins_ns: np.ndarray, width_ns: np.ndarray | float, peak_A: np.ndarray | float) -> Load:
    """BASE_A, and from each of these times on, which are at least as far apart as wide, peak_A."""
    edges = np.stack([begins_ns, begins_ns + width_ns], axis=1).ravel()
    amperes = np.stack([np.broadcast_to(peak_A, len(begins_ns)), np.full(len(begins_ns), BASE_A)], axis=1).ravel()
    edges = np.concatenate([[-4e7], edges, [max(float(edges[-1]), 1.2e9) + 1]])
    amperes = np.concatenate([[BASE_A], amperes, [BASE_A]])
    steps = np.diff(edges)
    charge, square = (np.concatenate([[0], np.cumsum(steps * of[:-1])]) for of in (amperes, amperes**2))
    return Load(edges, amperes, charge, square)


def even(dice: np.random.Generator, per_s: float, width_ns: float, peak_A: float = PEAK_A, jitter: bool = False):
    """Bursts at an even rate; jitter: each anywhere within its own period."""
    period_ns = SECOND_NS / per_s
    begins = np.arange(-1, 1.15 * per_s) * period_ns + dice.uniform(0, period_ns)
    if jitter:
        begins += dice.uniform(0, period_ns - width_ns, len(begins))
    return load_of(begins, width_ns, peak_A)


def bursts(dice: np.random.Generator) -> Load:
    per_s = 10 ** dice.uniform(0.7, 3.7)
    return even(dice, per_s, min(10 ** dice.uniform(4, 7), 0.5 * SECOND_NS / per_s), dice.uniform(0.2, PEAK_A))


def square(dice: np.random.Generator) -> Load:
    per_s = 10 ** dice.uniform(1.7, 4.3)
    return even(dice, per_s, 0.5 * SECOND_NS / per_s, dice.uniform(0.2, PEAK_A))


def by_chance(dice: np.random.Generator) -> Load:
    """As independent requests come."""
    width_ns = 10 ** dice.uniform(4, 6)
    per_s = min(10 ** dice.uniform(1, 3.3), 0.5 * SECOND_NS / width_ns)
    begins = np.cumsum(width_ns + dice.exponential(SECOND_NS / per_s - width_ns, int(1.2 * per_s) + 20))
    return load_of(begins - 2e7, width_ns, dice.uniform(0.2, PEAK_A))


def mixed(dice: np.random.Generator) -> Load:
    """What a drive under load looks like: stretches of some milliseconds in which it programs pages, each of another
    rate, with its own current, and rests between them."""
    begins, widths, peaks = [], [], []
    at = -2e7
    while at < 1.15 * SECOND_NS:
        if dice.random() < 0.3:
            at += dice.exponential(5e6)
            continue
        until, period = at + dice.exponential(2e7), dice.uniform(1.5e5, 1.5e6)
        width, peak = period * dice.uniform(0.1, 0.9), dice.uniform(0.3, PEAK_A)
        while at < until:
            begins.append(at)
            widths.append(width * dice.uniform(0.7, 1.0))
            peaks.append(peak)
            at += period * dice.uniform(1.0, 1.1)
    return load_of(np.array(begins), np.array(widths), np.array(peaks))


def in_step(dice: np.random.Generator) -> Load:
    """In step with the conversions: what QD 1 with just this service time would do."""
    period_ns = 1000 * sum(us for us in DEFAULT if us)
    per_s = SECOND_NS / period_ns * float(dice.choice([0.5, 1, 2, 3]))
    return even(dice, per_s, dice.uniform(0.02, 0.9) * SECOND_NS / per_s)


BURSTS_100us = functools.partial(even, per_s=500, width_ns=1e5, jitter=True)
KINDS: dict[str, Callable[[np.random.Generator], Load]] = {
    "100 us at 500/s": lambda dice: BURSTS_100us(dice),
    "bursts, 5 to 5000/s": bursts,
    "bursts by chance": by_chance,
    "square waves, 50 Hz to 20 kHz": square,
    "mixed traces": mixed,
}


@functools.cache
def model() -> Any:
    """ina228_model.py, which is a MicroPython module that finds ina_model.py by name."""
    made = {}
    for name in ("ina_model", "ina228_model"):
        spec = importlib.util.spec_from_file_location(name, MODELS / f"{name}.py")
        assert spec and spec.loader
        made[name] = importlib.util.module_from_spec(spec)
        sys.modules[name] = made[name]
        spec.loader.exec_module(made[name])
    return made["ina228_model"]


def seen(load: Load, times_us: tuple, osc_ppm: float, sag_ohm: float = 0.0) -> tuple[float, float, float]:
    """One second through the chip: measured mean power, the true one of the same time, and what the stated uncertainty
    (k = 2) has for the window: its coverage and its noise. W."""

    def supply(t0, t1, t2):
        return load.mean(t0, t1), VOLTS - sag_ohm * (load.mean(t1, t2) if t2 > t1 else 0.0)

    adc = ina228.adc_config(*times_us)
    chip = model().INA228(supply, 0, SHUNT_uOhm, osc_ppm)
    for register, value in ((0, ina228.RANGE_40mV), (2, ina228.shunt_cal(LSB_pA, SHUNT_uOhm, True)), (1, adc)):
        chip.write(register, value, 0)
    watts, begin_ns = [], chip.start
    end_ns = begin_ns
    while chip.set_end() <= begin_ns + SECOND_NS:
        end_ns = chip.set_end()
        chip.advance(end_ns)
        watts.append(chip.current * LSB_pA * 1e-12 * chip.vbus * BUS_LSB_nV * 1e-9)
    true_W = VOLTS * load.mean(begin_ns, end_ns) - sag_ohm * load.mean_square(begin_ns, end_ns)
    conversion_ns = 1000 * sum(us for us in times_us if us)
    rail = {"chip": "INA228", "adc_config": adc, "conversion_ns": conversion_ns, "shunt_ns": 1000 * times_us[1]}
    rail |= {"shunt_uOhm": SHUNT_uOhm, "current_lsb_pA": LSB_pA, "vbus_lsb_nV": BUS_LSB_nV}
    mean = uncertainty.Mean(rail, VOLTS, float(np.mean(watts)), len(watts), float(np.std(watts)))
    of_window = [t.u_W for t in uncertainty.budget(mean) if t.name in ("coverage", "noise")]
    return mean.watts, true_W, 2 * math.hypot(*of_window)


def errors(kind: Callable, times_us: tuple = DEFAULT, loads: int = LOADS, sag_ohm: float = 0.0) -> np.ndarray:
    """float64 (loads, 2): relative error of one second's mean power, and its stated limit, of loads and chips that are
    drawn at random; a chip's oscillator is anywhere within 0.5 %, but in step where the load is."""
    dice, out = np.random.default_rng(1), []
    for _ in range(loads):
        osc_ppm = 0.0 if kind is in_step else float(dice.uniform(-5000, 5000))
        measured_W, true_W, limit_W = seen(kind(dice), times_us, osc_ppm, sag_ohm)
        out.append((measured_W / true_W - 1, limit_W / true_W))
    return np.array(out)


def rms_percent(errors: np.ndarray) -> float:
    return 100 * float(np.sqrt((errors[:, 0] ** 2).mean()))


def held(errors: np.ndarray) -> np.ndarray:
    """Which errors lie inside what was stated (bool)."""
    return np.abs(errors[:, 0]) <= errors[:, 1]


def coverage() -> list[Figure]:
    vbus_us, vshunt_us, temp_us = DEFAULT
    share = vshunt_us / (vbus_us + vshunt_us + (temp_us or 0))
    of = {name: errors(kind) for name, kind in in_turn_items(KINDS)}
    every = np.concatenate(list(of.values()))
    first = next(iter(KINDS))
    out = [
        at_least("time in which the current is seen, as shipped", 100 * share, "%", 95),
        at_most(f"{first}, one second, rms", rms_percent(of[first]), "%", 0.5),
        at_least("all bursts: error inside what is stated", 100 * float(held(every).mean()), "%", 95),
    ]
    out += [at_least(f"  {name}", 100 * float(held(series).mean()), "%", 94) for name, series in of.items()]
    for name, series in (
        (f"{first}, rms, {BEFORE[0]} + {BEFORE[1]} + {BEFORE[2]} us", errors(BURSTS_100us, BEFORE, LOADS // 3)),
        (f"{first}, rms, supply sags by {1000 * SAG_OHM:g} mOhm", errors(BURSTS_100us, DEFAULT, LOADS // 3, SAG_OHM)),
    ):
        out.append(Figure(name, rms_percent(series), "%", "none", True))
    worst = 100 * float(np.abs(errors(in_step, loads=LOADS // 3)[:, 0]).max())
    out.append(Figure("in step with the conversions, most", worst, "%", "none", True))
    return out


def in_turn_items(of: dict) -> list[tuple]:
    return [(name, of[name]) for name in in_turn(list(of), "coverage")]


BENCHES = {
    "coverage": ("what the conversions see of bursts, square waves and traces, through the chip's model", coverage)
}
