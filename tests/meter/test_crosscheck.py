"""crosscheck.py: two meters of one supply in model time, each off by what it states at most."""

import numpy as np
import pytest

from ssdrig.meter import crosscheck, samples, tape
from ssdrig.meter.recordings import Rail, Recording

T_NS = 10**12
LASTS_S = 20
FAST = "V: 0.1% + 5 mV, A: 0.3% + 2 mA"
SLOW = "V: 0.2% + 10 mV, A: 0.5% + 5 mA"


def watts(t_s: np.ndarray, seed: int) -> np.ndarray:
    """What the drive draws: levels of some seconds, and a fast ripple."""
    rng = np.random.default_rng(seed)
    levels = rng.uniform(0.5, 6.0, LASTS_S + 3)
    return levels[t_s.astype(int) + 1] * (1 + 0.1 * np.sin(2 * np.pi * 37.0 * t_s))


def measured(folder, seed, period_ns, stated, bound_ns, gain=1.0) -> list:
    """The rails of a meter: means over its period, its own V and A off within its limits, its times within its bound.
    gain: beyond that."""
    rng = np.random.default_rng([seed, period_ns])
    edges = np.arange(0, LASTS_S * 10**9 + 2 * period_ns, period_ns)
    fine = np.arange(0, edges[-1], 1_000_000)
    running = np.concatenate([[0.0], np.cumsum(watts(fine / 1e9, seed))])
    W = np.diff(running[edges // 1_000_000]) / np.diff(edges // 1_000_000)
    limits = {of["of"]: of for of in tape.accuracy(stated or FAST)}
    u, v = rng.uniform(-1, 1, 2)
    V = 5 * (1 + u * limits["V"]["percent"] / 100) + u * limits["V"]["V"]
    A = W / 5 * (1 + v * limits["A"]["percent"] / 100) + v * limits["A"]["A"]
    off_ns = round(float(rng.uniform(-bound_ns, bound_ns)))
    t_ns = (T_NS + edges[1:] + off_ns).astype(np.int64)
    rail = Rail("5V", t_ns, np.full(len(W), V), gain * V * A)
    knots = [tape.Knot(int(t_ns[0]), int(t_ns[0]), bound_ns)]
    folder.mkdir()
    (folder / "rig.bin").write_bytes(
        tape.rig_bin(Recording("a meter", False, [rail]), knots, stated and tape.accuracy(stated))
    )
    return samples.load_rails(folder)


def compared(tmp_path, seed, gain=1.0) -> crosscheck.Ratio:
    first = measured(tmp_path / f"a{seed}", seed, 1_000_000, FAST, 100_000)
    second = measured(tmp_path / f"b{seed}", seed, 100_000_000, SLOW, 105_000_000, gain)
    return crosscheck.compare(first, second, T_NS + 2 * 10**9, T_NS + (LASTS_S - 2) * 10**9)


def test_one_is_within_the_error_in_95_of_100_runs(tmp_path):
    comparisons = [compared(tmp_path, seed) for seed in range(100)]
    assert all(one.error is not None and 0 < one.error < 0.05 for one in comparisons), comparisons[0]
    assert sum(bool(one.agree) for one in comparisons) >= 95


def test_a_meter_that_is_off_by_a_tenth_is_found(tmp_path):
    assert all(compared(tmp_path, seed, gain).agree is False for seed, gain in ((1, 1.1), (2, 0.9)))


def test_what_is_not_known_has_no_error(tmp_path):
    known = measured(tmp_path / "a", 1, 1_000_000, FAST, 100_000)
    other = measured(tmp_path / "b", 1, 1_000_000, None, 100_000)
    begin_ns, end_ns = T_NS + 10**9, T_NS + 9 * 10**9
    comparison = crosscheck.compare(known, other, begin_ns, end_ns)
    assert comparison.ratio == pytest.approx(1, abs=0.01) and comparison.error is None and "second" in comparison.why
    assert comparison.agree is None
    assert crosscheck.compare(known, known, begin_ns, begin_ns + 1000).ratio is None
    assert crosscheck.compare(known, known, T_NS - 9 * 10**9, end_ns).ratio is None
