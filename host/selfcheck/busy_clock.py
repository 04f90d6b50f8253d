"""A board's crystal and a busy host's answers in device time: the clock's bound through a minute without a quick one.

The crystal is an AT cut (rate against temperature is a cubic) on a board that a drive warms and cools, with small steps
of the rate. The host is late in one of four ways for a minute: each way of a ping random or slow alone, both, or a
reader that wakes every five seconds. One run in three has a ping that is wrong."""

from typing import NamedTuple

import numpy as np

from selfcheck import Figure, at_least, at_most
from ssdrig.meter import clock

HOST0_NS, TICK0_US = 17_000_000_000_000, 1_068_741_824
STEP_S = 0.01
HZ = 10
LATE = ("there", "back", "both", "reader")
MINUTE_S = 60.0
RUNS = 300


class Crystal(NamedTuple):
    """Host time (ns) against device time (us), both from 0, on a grid of STEP_S; their offset is linear in between."""

    device_us: np.ndarray
    host_ns: np.ndarray

    def at(self, device_us) -> np.ndarray:
        return np.interp(device_us, self.device_us, self.host_ns)


def crystal(rng: np.random.Generator, seconds: float, ppm: float = 37.0, warming_C_per_min: float = 6.0) -> Crystal:
    """One whose board warms and cools by turns, as fast as given right after each turn, between 25 and 45 C."""
    n = round(seconds / STEP_S) + 1
    lag_s, celsius, aim = 20.0 * 60 / warming_C_per_min, 25.0, 45.0
    turns = np.cumsum(rng.uniform(20, 200, n // 2000 + 2))
    t_s, temperature = np.arange(n) * STEP_S, np.empty(n)
    for begin, end in zip([0.0, *turns[:-1]], turns):
        part = slice(*np.searchsorted(t_s, (begin, end)))
        temperature[part] = aim + (celsius - aim) * np.exp(-(t_s[part] - begin) / lag_s)
        celsius, aim = aim + (celsius - aim) * np.exp(-(end - begin) / lag_s), 70.0 - aim
        if end > t_s[-1]:
            break
    steps = np.repeat(rng.uniform(-1, 1, n // 500 + 1), 500)[:n] * clock.STEADY_PPM
    rate_ppm = ppm - 0.4 * (temperature - 25) + 1.05e-4 * (temperature - 25) ** 3 + steps
    host_ns = np.concatenate([[0.0], np.cumsum(1e9 * STEP_S / (1 + 1e-6 * rate_ppm[:-1]))])
    return Crystal(t_s * 1e6, host_ns)


def pings(rng: np.random.Generator, of: Crystal, seconds: float, late: str, begin_s: float, end_s: float):
    """t1 (ns), tick (us), t4 (ns) of each ping; late, in one of the ways of LATE, from begin_s to end_s."""
    device_us = np.cumsum(rng.uniform(0.8, 1.2, int(seconds * HZ * 0.99))) * 1e6 / HZ
    device_us = device_us[device_us < seconds * 1e6]
    true_ns, n = of.at(device_us), len(device_us)
    there, back = 60e3 + rng.exponential(80e3, n), 120e3 + rng.exponential(150e3, n)
    slow = (device_us >= begin_s * 1e6) & (device_us < end_s * 1e6)
    if late in ("there", "both"):
        there += slow * rng.uniform(2.5e9, 5e9, n)
    if late in ("back", "both"):
        back += slow * rng.uniform(2.5e9, 5e9, n)
    if late == "reader":
        back += slow * (5e9 + np.ceil((true_ns + back) / 5e9) * 5e9 - true_ns - back)
    t1, t4 = np.floor(true_ns - there), np.ceil(true_ns + back)
    return (
        t1.astype(np.int64) + HOST0_NS,
        np.floor(device_us).astype(np.int64) + TICK0_US,
        t4.astype(np.int64) + HOST0_NS,
    )


def errors_ns(rng: np.random.Generator, of: Crystal, made: clock.ClockMap, begin_s: float, end_s: float, n: int = 4000):
    """Error of the map at random moments between two, and its stated bound."""
    device_us = rng.uniform(begin_s * 1e6, end_s * 1e6, n)
    ticks = np.floor(device_us).astype(np.int64) + TICK0_US
    return made.t_ns(ticks) - HOST0_NS - of.at(device_us), made.bound_ns(ticks)


def one(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Errors and bounds through the late minute of one run of 2 to 10 minutes."""
    rng = np.random.default_rng(seed)
    seconds = float(rng.uniform(120, 600))
    begin_s = float(rng.uniform(0, seconds - MINUTE_S))
    of = crystal(rng, seconds, float(rng.uniform(-100, 100)))
    t1, tick, t4 = pings(rng, of, seconds, LATE[seed % len(LATE)], begin_s, begin_s + MINUTE_S)
    if seed % 3 == 0:
        at = int(np.searchsorted(tick, TICK0_US + (begin_s + rng.uniform(0, MINUTE_S)) * 1e6))
        at = min(at, len(tick) - 1)
        wrong_ns = of.at(tick[at] - TICK0_US) + rng.choice([-1, 1]) * 10 ** rng.uniform(6, 10)
        t1[at], t4[at] = int(wrong_ns - 1e5) + HOST0_NS, int(wrong_ns + 1e5) + HOST0_NS
    return errors_ns(rng, of, clock.fit(t1, tick, t4), begin_s, begin_s + MINUTE_S)


def busy_clock_figures() -> list[Figure]:
    error, bound = (np.concatenate(of) for of in zip(*map(one, range(RUNS)), strict=True))
    return [
        at_most("largest stated bound of 300 late minutes", float(bound.max()) / 1e6, "ms", 5.0),
        at_least("share of moments inside it", 100 * float((np.abs(error) <= bound).mean()), "%", 99.9),
        at_most("largest error", float(np.abs(error).max()) / 1e6, "ms", 5.0),
    ]


BENCHES = {
    "busy-clock": (
        "error of a time through a minute in which the host answers its pings 5 s late, in device time",
        busy_clock_figures,
    )
}
