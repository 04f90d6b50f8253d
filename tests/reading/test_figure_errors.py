"""What each figure of a window is uncertain by: it covers the truth as often as it says, and no W, J, IOPS or latency
is without it where it can be known."""

from types import SimpleNamespace

import numpy as np
import pytest
import synthetic_plan
import synthetic_run
import test_wear_run

from ssdrig.load.fiotext import plat_ns, plat_upper_ns
from ssdrig.reading import errors, table
from ssdrig.reading.gaps import RATES

UNCERTAIN = (
    "_W",
    "_J",
    "_uJ_per_io",
    "_J_per_GB",
    "iops_per_W",
    "lat_mean_us",
    "lat_p50_us",
    "lat_p99_us",
    "lat_max_us",
)
NO_ESTIMATE = {"filled_J", "iops_min"}  # of what is missing, and a count


def figures_of(data, **known):
    return {"iops_mean": float(data.iops.mean()), "iops_sd": float(data.iops.std(ddof=1))} | known


def data_of(counts, watts=()):
    counts = np.asarray(counts, float)
    return SimpleNamespace(
        iops=counts, bw_Bps=4096 * counts, lat_mean_us=1e6 / counts, power_mean_W=np.asarray(watts, float)
    )


@pytest.mark.parametrize(
    ("key", "truth"), [("iops_mean", 1000.0), ("iops_sd", 50.0), ("iops_p50", 1000.0), ("iops_p5", 1000 - 1.6449 * 50)]
)
def test_the_truth_lies_within_the_error_in_95_percent_of_cases(key, truth, monkeypatch):
    monkeypatch.setattr(errors, "above_idle_W", lambda *_: SimpleNamespace(known=False))
    rng, within, cases = np.random.default_rng(3), 0, 300
    for _ in range(cases):
        data = data_of(rng.normal(1000, 50, 240))
        known = figures_of(data, iops_p50=float(np.median(data.iops)), iops_p5=float(np.percentile(data.iops, 5)))
        error = errors.of_window(data, known, 0, 240)[key]
        within += abs(known[key] - truth) <= error
        assert error < 0.5 * truth  # and it says something
    assert within >= 0.93 * cases


def test_the_longest_latency_lies_within_its_bin():
    for bin_ in (700, 1100, 1500):
        counts = np.zeros(1856)
        counts[[500, bin_]] = 1000, 1
        upper, middle = plat_upper_ns(np.array([bin_]))[0] / 1000, plat_ns(np.array([bin_]))[0] / 1000
        error = errors.of_percentiles("lat", counts, {"p50": 2}, 1)["lat_max_us"]
        assert error == pytest.approx(2 * (upper - middle)) and 0 < error < 0.035 * upper


def test_energy_has_the_budget_of_the_rig_and_power_its_scatter_too(monkeypatch):
    monkeypatch.setattr(errors, "above_idle_W", lambda *_: SimpleNamespace(known=False))
    known = {"power_uncertainty_percent": 2.0, "power_mean_W": 4.0, "energy_J": 40.0}
    steady = errors.of_window(data_of([1000] * 10, [4.0] * 10), figures_of(data_of([1000] * 10), **known), 0, 10)
    assert steady["energy_J"] == pytest.approx(0.8) and steady["power_mean_W"] == pytest.approx(0.08)
    restless = errors.of_window(data_of([1000] * 10, [1.0, 7.0] * 5), figures_of(data_of([1000] * 10), **known), 0, 10)
    assert restless["energy_J"] == pytest.approx(0.8) and restless["power_mean_W"] > 1
    short = errors.of_window(data_of([1000], [4.0]), {"iops_mean": 1000.0, **known, "energy_uJ_per_io": 4000.0}, 0, 1)
    assert short["power_mean_W"] == pytest.approx(0.08) and not {"iops_mean", "energy_uJ_per_io"} & {*short}


def test_energies_of_rounds_add_up_with_their_errors():
    figures = [
        {"energy_J": 10.0, "lat_max_us": m, "errors": {"energy_J": 0.2, "lat_max_us": e}} for m, e in ((5, 1), (9, 2))
    ]
    assert errors.together(figures, {"energy_J": 20.0, "lat_max_us": 9}) == {"energy_J": 0.4, "lat_max_us": 2}


def lacking(rows):
    """(step, window, key) of the figures that should have an error and have none."""
    return [
        (row.act.path, name, key)
        for row in rows
        for name, of in row.windows.items()
        for key, value in (of or {}).items()
        if key.endswith(UNCERTAIN) and key not in NO_ESTIMATE and value is not None and not key.startswith("peak")
        if (of.get("errors") or {}).get(key) is None
    ]


def test_no_power_energy_or_latency_of_a_row_is_without_its_error(tmp_path):
    consistency = synthetic_run.write(tmp_path, [9000] * 12 + [3000, 4000] * 15, idle_s=3, tail=(0.9, 0.1))
    assert lacking(table.load(consistency).rows) == []
    assert lacking(table.load(synthetic_plan.steps(tmp_path, name="steps")).rows) == []
    short = {key for *_, key in lacking(table.load(synthetic_plan.grid(tmp_path, rounds=2, name="grid")).rows)}
    assert short <= {*RATES}  # of loads of 2 s behind gaps: no bound


def test_the_rates_of_a_wear_step_have_the_scatter_of_its_slices(tmp_path):
    events = [
        {"kind": "slice", "step": "wear", "ios": n, "bytes": n * 4096, "io_s": 2.0} for n in (1000, 1100, 900, 1000)
    ]
    rates = test_wear_run.wear_run.rates(events, "wear")
    assert rates["iops_mean"] == [500, 550, 450, 500] and rates["bw_mean_MBps"][0] == pytest.approx(500 * 4096 / 1e6)
    figures = errors.of_totals({"iops_mean": 500.0, "power_mean_W": 2.0, "power_uncertainty_percent": 1.0}, rates)
    assert 20 < figures["iops_mean"] < 200 and figures["power_mean_W"] > 0.02
