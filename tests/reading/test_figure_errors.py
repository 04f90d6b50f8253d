"""What each figure of a window is uncertain by: it covers the truth as often as it says, and no W, J, IOPS or latency
is without it where it can be known."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import synthetic_plan
import synthetic_run
import test_wear_run
from wandering import MEANS, SECONDS_OF, by_second, course

from ssdrig.base.uncertain import Uncertain
from ssdrig.load.fiotext import BINS, plat_index, plat_ns, plat_upper_ns
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


IOS = 10  # in each of SECONDS_OF parts of a second
NAMES = {"p50": 2, "p99": 100, "p999": 1000}


def latencies_us(kind, rng, lasts_s):
    """(second of each I/O, its latency) of a load on a drive whose speed wanders."""
    level = np.repeat(course(kind, rng, lasts_s), IOS)
    return np.repeat(np.arange(lasts_s), SECONDS_OF * IOS), 100 / level * np.exp(0.3 * rng.standard_normal(len(level)))


@pytest.mark.parametrize("kind", MEANS)
@pytest.mark.parametrize("lasts_s", [20, 60])
def test_percentiles_of_a_drive_that_wanders_hold_those_of_a_long_load(kind, lasts_s):
    rng, cases = np.random.default_rng(5), 200
    long = np.concatenate([latencies_us(kind, rng, 60)[1] for _ in range(60)])
    truth = {name: float(np.quantile(long, 1 - 1 / one_in)) for name, one_in in NAMES.items()}
    right, blind = dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, 0)
    for _ in range(cases):
        seconds, us = latencies_us(kind, rng, lasts_s)
        cells, counts = np.unique(seconds * BINS + plat_index(1000 * us), return_counts=True)
        hist = np.stack([cells // BINS, cells % BINS, counts], axis=1)
        by_bin = np.bincount(hist[:, 1], counts, BINS)
        ranks_off = errors.rank_errors(hist, 0, lasts_s)
        known = errors.of_percentiles("lat", by_bin, NAMES, 1, ranks_off)
        by_count = errors.of_percentiles("lat", by_bin, NAMES, 1)
        for name, one_in in NAMES.items():
            n = int(counts.sum())
            at = plat_ns(np.searchsorted(np.cumsum(by_bin), n - n // one_in)) / 1000
            right[name] += abs(at - truth[name]) <= known[f"lat_{name}_us"]
            blind[name] += abs(at - truth[name]) <= by_count[f"lat_{name}_us"]
    assert all(share >= 0.93 * cases for share in right.values()), right
    assert kind != "follows" or blind["p50"] < 0.6 * cases, blind


@pytest.mark.parametrize(
    ("begin_s", "end_s", "expected"), [(0, 25, (0, 42)), (20, 60, (20, 60)), (70, 74, (42, 100)), (2, 6, (0, 42))]
)
def test_the_seconds_around_a_short_stretch_are_those_on_its_side_of_the_cliff(begin_s, end_s, expected):
    data = data_of([9000] * 42 + [3000, 3100] * 29)
    assert errors.base(data, begin_s, end_s) == slice(*expected)
    assert errors.base(data_of([9000] * 12), 0, 12) is None


def test_no_error_is_claimed_of_a_stretch_that_is_too_short():
    data, bounds, notes = data_of([1000, 1100] * 4), {"iops_mean": 50.0, "lat_p50_us": 1.0, "energy_J": 0.1}, []
    assert errors.claimed(data, 0, 8, bounds, notes) == {"energy_J": 0.1} and len(notes) == 1
    data = data_of([1000, 1100] * 30)
    assert errors.claimed(data, 0, 8, bounds, []) == {"iops_mean": 50.0, "energy_J": 0.1}
    assert errors.claimed(data, 0, 20, bounds, []) == bounds


@pytest.mark.parametrize("kind", MEANS)
def test_power_and_energy_per_io_of_a_short_window_hold_those_of_the_drive(kind, monkeypatch):
    """The drive draws 2 W and 1 W more at its mean speed; a window of 4 s of a load of 60 s."""
    monkeypatch.setattr(errors, "above_idle_W", lambda *_: SimpleNamespace(known=False))
    rng, cases = np.random.default_rng(8), 400
    right = dict.fromkeys(("power_mean_W", "iops_mean", "energy_uJ_per_io"), 0)
    truth = {"power_mean_W": 2 + MEANS[kind], "iops_mean": 1000 * MEANS[kind]}
    truth["energy_uJ_per_io"] = 1e6 * truth["power_mean_W"] / truth["iops_mean"]
    for _ in range(cases):
        speed = by_second(course(kind, rng, 60))
        data, at = data_of(1000 * speed, 2 + speed), int(rng.integers(0, 57))
        cut = slice(at, at + 4)
        seen = {"power_mean_W": data.power_mean_W[cut].mean(), "iops_mean": data.iops[cut].mean()}
        seen["energy_uJ_per_io"] = 1e6 * seen["power_mean_W"] / seen["iops_mean"]
        known = errors.of_window(data, seen | {"power_uncertainty_percent": 0.1}, at, at + 4)
        for key in right:
            right[key] += abs(seen[key] - truth[key]) <= known[key]
    assert all(share >= 0.93 * cases for share in right.values()), right


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("kind", MEANS)
def test_quotients_hold_those_of_a_drive_whose_power_rises_or_falls_with_its_speed(kind, sign, monkeypatch):
    """Garbage collection draws more while the host gets less."""
    monkeypatch.setattr(errors, "above_idle_W", lambda _, figures: Uncertain(figures["power_mean_W"] - 1, 0.001))
    rng, cases, lasts_s = np.random.default_rng(8), 300, 60
    ios, watts = 1000 * MEANS[kind], 3 + 1.5 * sign * (MEANS[kind] - 1)
    truth = {"lat_mean_us": 32e6 / ios, "energy_uJ_per_io": 1e6 * watts / ios, "iops_per_W": ios / watts}
    truth |= {"energy_J_per_GB": 1e9 * watts / (4096 * ios), "energy_uJ_per_io_above_idle": 1e6 * (watts - 1) / ios}
    right = dict.fromkeys(truth, 0)
    for _ in range(cases):
        speed = by_second(course(kind, rng, lasts_s))
        data = data_of(1000 * speed, 3 + 1.5 * sign * (speed - 1))
        data.lat_mean_us, data.idle_mean_W = 32e6 / data.iops, 1.0
        ios, watts = data.iops.mean(), data.power_mean_W.mean()
        seen = {"lat_mean_us": 32e6 / ios, "energy_uJ_per_io": 1e6 * watts / ios, "iops_per_W": ios / watts}
        seen |= {"energy_J_per_GB": 1e9 * watts / (4096 * ios), "energy_uJ_per_io_above_idle": 1e6 * (watts - 1) / ios}
        given = {"power_mean_W": watts, "iops_mean": ios, "power_uncertainty_percent": 0.01}
        known = errors.of_window(data, seen | given, 0, lasts_s)
        for key in right:
            right[key] += abs(seen[key] - truth[key]) <= known[key]
    assert all(share >= 0.93 * cases for share in right.values()), right


def test_the_deviation_of_a_drive_that_stalls_holds_that_of_a_long_load():
    """One second in ten does nothing: the deviation rests on a few seconds."""
    rng, cases, right = np.random.default_rng(2), 300, 0
    truth = 1000 * math.sqrt(0.1 * 0.9)
    for _ in range(cases):
        data = data_of(np.where(rng.random(120) < 0.1, 1.0, 1000.0) + rng.normal(0, 5, 120))
        known = figures_of(data)
        right += abs(known["iops_sd"] - truth) <= errors.of_window(data, known, 0, 120)["iops_sd"]
    assert right >= 0.93 * cases, right


def test_a_window_of_20_s_has_the_error_of_the_load_around_it():
    """Of a drive that collects garbage for 9 s of each 30 s a window of 20 s sees one phase of it."""
    rng, cases, right = np.random.default_rng(4), 300, 0
    for _ in range(cases):
        at = (np.arange(240) + 30 * rng.random()) % 30
        data, begin_s = data_of(np.where(at < 9, 300.0, 1300.0) + rng.normal(0, 5, 240)), int(rng.integers(0, 220))
        seen = float(data.iops[begin_s : begin_s + 20].mean())
        error = errors.of_window(data, {"iops_mean": seen}, begin_s, begin_s + 20)["iops_mean"]
        right += abs(seen - 1000) <= error
    assert right >= 0.95 * cases, right


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
    loads = table.load(consistency).rows, table.load(synthetic_plan.steps(tmp_path, name="steps")).rows
    for rows in loads:
        of_short = {(row.act.path, name) for row in rows for name, of in row.windows.items() if of and is_short(of)}
        assert {(path, name) for path, name, _ in lacking(rows)} <= of_short
        assert {key for *_, key in lacking(rows)} <= errors.OF_STRETCH
    long = [
        (name, of) for row in loads[0] if row.act.do == "load" for name, of in row.windows.items() if not is_short(of)
    ]
    assert len(long) >= 2 and not {(path, name) for path, name, _ in lacking(loads[0])} & {
        ("load", name) for name, _ in long
    }
    short = {key for *_, key in lacking(table.load(synthetic_plan.grid(tmp_path, rounds=2, name="grid")).rows)}
    assert short <= errors.OF_STRETCH | {*RATES}  # of loads of 2 s after gaps: no bound


def is_short(of):
    return of["t1_s"] - of["t0_s"] < errors.LEAST_S


def test_the_rates_of_a_wear_step_have_the_scatter_of_its_slices(tmp_path):
    events = [
        {"kind": "slice", "step": "wear", "ios": n, "bytes": n * 4096, "io_s": 10.0} for n in (5000, 5500, 4500, 5000)
    ]
    rates = test_wear_run.wear_run.rates(events, "wear")
    assert rates["iops_mean"] == [500, 550, 450, 500] and rates["bw_mean_MBps"][0] == pytest.approx(500 * 4096 / 1e6)
    known = {"iops_mean": 500.0, "power_mean_W": 2.0, "energy_J": 80.0, "power_uncertainty_percent": 1.0}
    of_slices = errors.of_totals(known, rates, 40.0)
    assert 20 < of_slices["iops_mean"] < 200 and of_slices["power_mean_W"] > 0.02
    assert errors.of_totals(known, rates, 12.0) == {"energy_J": 0.8}
