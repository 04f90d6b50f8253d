"""Reads and writes told apart, against percentiles computed from every single I/O."""

import math

import numpy as np
import pytest

from ssdrig.load import fiotext
from ssdrig.reading import directions

RNG = np.random.default_rng(45)


def document(reads_ns: np.ndarray, writes_ns: np.ndarray) -> dict:
    """As fio prints its last one, with these I/Os, each in the middle of a bin of fio's histogram."""
    job = {}
    for direction, all_ns in (("read", reads_ns), ("write", writes_ns)):
        values, counts = np.unique(all_ns, return_counts=True)
        bins = {str(value): int(count) for value, count in zip(values, counts, strict=True)}
        job[direction] = {"lat_ns": {"bins": bins}, "total_ios": len(all_ns)}
    return {"jobs": [job]}


def in_bins(n: int, scale_ns: float) -> np.ndarray:
    """n latencies with a long tail, in ns, rounded to the values that fio's histogram prints."""
    raw = RNG.lognormal(math.log(scale_ns), 1.0, n)
    indices = fiotext.plat_index([int(ns) for ns in raw])
    return fiotext.plat_ns(np.asarray(indices))


def nearest_rank_us(all_ns: np.ndarray, one_in: int) -> float:
    """The smallest value that at most one I/O in so many exceeds."""
    rising = np.sort(all_ns)
    return float(rising[len(rising) - len(rising) // one_in - 1]) / 1000


@pytest.mark.parametrize("k", [1, 4])
def test_each_direction_has_the_percentiles_of_its_own_ios(k):
    reads, writes = in_bins(120_000, 80_000), in_bins(15_000, 400_000)
    figures = directions.figures(directions.histograms(document(reads, writes)), 10.0, k)
    for direction, all_ns in (("read", reads), ("write", writes)):
        assert figures[f"{direction}_iops"] == pytest.approx(len(all_ns) / 10)
        assert figures[f"{direction}_lat_mean_us"] == pytest.approx(float(all_ns.mean()) / 1000 / k, rel=1e-6)
        for name, one_in in (("p50", 2), ("p99", 100), ("p999", 1000)):
            expected = nearest_rank_us(all_ns, one_in) / k
            assert figures[f"{direction}_lat_{name}_us"] == pytest.approx(expected, rel=1e-6), (direction, name)
    assert figures["read_lat_p9999_us"] == pytest.approx(nearest_rank_us(reads, 10_000) / k, rel=1e-6)
    assert figures["write_lat_p9999_us"] is None  # 15 000 I/Os: 100 000 are needed


def test_a_direction_without_io_has_a_rate_of_zero_and_no_latency():
    figures = directions.figures(directions.histograms(document(in_bins(100, 50_000), np.zeros(0))), 2.0, 1)
    assert figures["write_iops"] == 0.0 and figures["read_iops"] == 50.0
    assert all(figures[key] is None for key in directions.KEYS if key.startswith("write_lat"))
    assert not any(key.startswith("write_") for key in figures["errors"])


def test_the_stated_errors_hold_the_truth_of_a_known_distribution():
    held = total = 0
    true_us = {"p50": 50.0, "p99": 50.0 * math.exp(2.326348)}
    for _ in range(60):
        reads = in_bins(3000, 50_000)
        figures = directions.figures(directions.histograms(document(reads, reads)), 1.0, 1)
        for name, expected in true_us.items():
            key = f"read_lat_{name}_us"
            held += abs(figures[key] - expected) <= figures["errors"][key]
            total += 1
    assert held >= 0.95 * total


def test_rates_scatter_as_all_ios_do():
    figures = {"iops_mean": 1000.0, "lat_mean_us": 100.0, "read_iops": 700.0, "write_iops": 300.0}
    figures |= {"read_lat_mean_us": 50.0, "write_lat_mean_us": None}
    bounds = {"iops_mean": 20.0, "lat_mean_us": 3.0, "read_lat_mean_us": 2.0}
    errors = directions.scattered(figures, bounds)
    assert errors["read_iops"] == pytest.approx(14.0) and errors["write_iops"] == pytest.approx(6.0)
    assert errors["read_lat_mean_us"] == pytest.approx(2.5) and "write_lat_mean_us" not in errors
