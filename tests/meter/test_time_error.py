"""The error of the clock in energies: of windows whose edges are known to so much, against all that may be true."""

import numpy as np
import pts_runs
import pytest
import synthetic_run

from ssdrig.meter import rails, reduced, samples, uncertainty
from ssdrig.reading import table
from ssdrig.reading.window_figures import TIMED

S = 1e9
IOPS = [1000] * 30


def edges_of(energy_J, t_ns, error_ns) -> uncertainty.Edges:
    t_ns, error_ns = np.asarray(t_ns), np.asarray(error_ns, float)
    return uncertainty.Edges(t_ns, error_ns, energy_J(t_ns[:, None] + uncertainty.shifts_ns(error_ns)))


def powers(rng):
    """Running energy (J) of a drive that is in turn at rest, under load and in between, for 0.02 to 5 s each."""
    widths = rng.uniform(0.02, 5.0, 400) * S
    watts = rng.choice([0.05, 1.0, 2.5, 6.0], 400)
    at, joules = (np.concatenate([[0.0], np.cumsum(of)]) for of in (widths, widths * watts / S))
    return lambda t_ns: np.interp(t_ns, at, joules)


@pytest.mark.parametrize("error_s", [0.0003, 0.02, 1.0, 5.0])
def test_no_true_energy_is_further_off(error_s):
    """The clock is off by any error up to its bound at both edges, its rate by at most 1000 ppm."""
    rng = np.random.default_rng(round(error_s * 1e4))
    for _ in range(150):
        energy_J, lasts = powers(rng), rng.uniform(0.05, 60) * S
        begin = rng.uniform(20, 60) * S
        errors = np.array([rng.uniform(0.1, 1), rng.uniform(0.1, 1)]) * error_s * S
        edges = edges_of(energy_J, [begin, begin + lasts], errors)
        stated = float(energy_J(begin + lasts) - energy_J(begin))
        first = rng.uniform(-errors[0], errors[0], 300)
        last = np.clip(first + rng.uniform(-1, 1, 300) * 1e-3 * lasts, -errors[1], errors[1])
        seen_s, true_s = lasts + last - first, lasts
        true = (energy_J(begin + lasts + last) - energy_J(begin + first)) * true_s / seen_s
        possible = np.abs(last - first) <= 2e-3 * lasts
        assert np.abs(true - stated)[possible].max(initial=0) <= edges.time_J() * 1.005 + 0.002 * stated


@pytest.mark.parametrize(("error_s", "most"), [(0.001, 0.0003), (0.1, 0.003), (2.0, 0.026)])
def test_a_steady_power_is_known_however_late_the_clock_is(error_s, most):
    """Of 10 s at a constant power: no window is of another energy."""
    edges = edges_of(lambda t_ns: 2.5 * t_ns / S, [20 * S, 30 * S], [error_s * S] * 2)
    assert edges.time_J() / 25.0 <= most + 0.002


def test_an_edge_at_a_step_costs_the_step_by_hand():
    """1 W before the window, 3 W in it: by 10 ms sooner it loses 20 mJ."""
    energy_J = lambda t_ns: np.where(t_ns < 20 * S, t_ns / S, 20 + 3 * (t_ns / S - 20))
    time_J = edges_of(energy_J, [20 * S, 25 * S], [0.01 * S] * 2).time_J()
    assert 0.02 <= time_J <= 0.02 + 2 * 3 * 0.02 / uncertainty.MANY_SHIFTS + 3 * 0.01


def test_edges_without_error_cost_nothing():
    assert edges_of(lambda t_ns: t_ns / S, [S, 2 * S], [0.0, 0.0]).time_J() == 0


@pytest.mark.parametrize(("time_J", "joules", "known"), [(0.05, 1.0, True), (0.0501, 1.0, False), (0.01, 0.0, False)])
def test_above_five_percent_an_energy_is_not_known(time_J, joules, known):
    why = uncertainty.untimed(time_J, joules, 1e6)
    assert (why is None) == known and (known or why.startswith(uncertainty.UNTIMED))


def test_rails_share_the_error_of_the_clock():
    rail = {"chip": "INA228", "shunt_uOhm": 15000, "current_lsb_pA": 7_812_500, "vbus_lsb_nV": 195_312.5}
    none, one = (uncertainty.Mean(rail, 5.0, 2.0, time_W=time_W) for time_W in (0.0, 0.1))
    alone, both = (uncertainty.expanded_W([mean] * n) for n, mean in ((2, none), (2, one)))
    assert both**2 - alone**2 == pytest.approx((2 * 0.2 / 3**0.5) ** 2, rel=1e-9)


# ---- whole runs that were read late: their times are off by half of that


STEPS = ((-100, 1.0), (0, 4.0), (15, 2.0), (30, 1.0))
TRUE_J = 15 * 4.0 + 15 * 2.0


def late_run(tmp_path, read_late_s, watts=STEPS, **more):
    return synthetic_run.run_of(tmp_path, IOPS, zoom_s=20, watts=watts, read_late_s=read_late_s, **more)


@pytest.mark.parametrize("read_late_s", [0.05, 0.4, 1.5])
def test_stated_uncertainty_holds_the_truth(tmp_path, read_late_s):
    data, f = late_run(tmp_path, read_late_s)
    whole = f["windows"]["all"]
    assert whole["clock_error_us"] == pytest.approx(5e5 * read_late_s, rel=0.02, abs=200)
    error = abs(whole["energy_J"] / TRUE_J - 1) * 100
    assert error > 0.3 * read_late_s  # it is off
    assert error <= whole["power_uncertainty_percent"]
    assert abs(whole["power_mean_W"] / 3.0 - 1) * 100 <= whole["power_uncertainty_percent"]
    prompt = late_run(tmp_path / "prompt", 0.0)[1]["windows"]["all"]["power_uncertainty_percent"]
    assert whole["power_uncertainty_percent"] > prompt


def test_beyond_five_percent_power_is_null_with_its_reason_and_io_stays(tmp_path):
    data, f = late_run(tmp_path, 8.0, idle_s=6)
    whole = f["windows"]["all"]
    assert [whole[key] for key in TIMED.split(", ")] == [None] * len(TIMED.split(", "))
    assert whole["iops_mean"] == 1000 and whole["clock_error_us"] > 3.9e6
    assert any(note.startswith(f"{TIMED}: {uncertainty.UNTIMED}") for note in whole["notes"])
    assert all(rail["energy_J"] is rail["power_mean_W"] is None for rail in whole["rails"])
    assert f["fill_energy_J"] is f["idle_mean_W"] is f["own_power_ratio"] is None
    assert any(note.startswith("fill_energy_J: ") for note in f["notes"])


def test_a_steady_drive_is_known_though_the_clock_is_late(tmp_path):
    _, f = late_run(tmp_path, 1.0, watts=((-100, 2.5),))
    whole = f["windows"]["all"]
    assert whole["energy_J"] == pytest.approx(75, rel=1e-3)
    prompt = late_run(tmp_path / "prompt", 0.0, watts=((-100, 2.5),))[1]["windows"]["all"]
    assert whole["power_uncertainty_percent"] < prompt["power_uncertainty_percent"] + 0.5


def test_idle_power_after_a_load_carries_the_error(tmp_path):
    """10 s at rest at 1 W, of which 0.5 s may be of the load."""
    _, late = late_run(tmp_path, 1.0, watts=((-100, 1.0), (0, 6.0), (30.7, 1.0)), idle_s=10)
    _, prompt = late_run(tmp_path / "prompt", 0.0, watts=((-100, 1.0), (0, 6.0), (30.7, 1.0)), idle_s=10)
    assert late["idle_mean_W"] is None or abs(late["idle_mean_W"] - 1.0) <= late["idle_uncertainty_W"]
    assert prompt["idle_mean_W"] == pytest.approx(1.0, abs=prompt["idle_uncertainty_W"])


def test_reduced_and_whole_samples_say_the_same(tmp_path):
    run = synthetic_run.write(tmp_path, IOPS, watts=STEPS, read_late_s=0.3)
    begin = synthetic_run.T_RUN_NS + 5 * 10**9
    span = [begin, begin + 20 * 10**9]
    (plain,) = samples.load_rails(run)
    (rail,) = reduced.load_rails(run, [], timed=reduced.Asked.of(span))
    one, other = plain.edges(span), rail.edges(span)
    assert other.error_ns == pytest.approx(one.error_ns, rel=1e-3)
    assert other.time_J() == pytest.approx(one.time_J(), rel=1e-2, abs=1e-3)
    assert rails.timed_J([rail], *span).J == pytest.approx(rails.timed_J([plain], *span).J, rel=1e-9)
    with pytest.raises(ValueError, match="these edges"):
        rail.edges([span[0] + 1])


# ---- rows of a plan


@pytest.mark.parametrize(("read_late_s", "known"), [(0.02, True), (8.0, False)])
def test_a_row_of_a_plan_carries_the_error_or_is_null_with_its_reason(tmp_path, read_late_s, known):
    rows = [row for row in table.load(pts_runs.lat(tmp_path).end(read_late_s=read_late_s)).rows if row.act.do == "load"]
    assert rows
    for row in rows:
        whole = row.windows["all"]
        assert whole["iops_mean"] > 0
        if whole["samples"]:  # the last second of the run may not have come
            assert whole["clock_error_us"] == pytest.approx(5e5 * read_late_s, rel=0.1, abs=2000)
        assert (whole["power_mean_W"] is not None) == (whole["power_uncertainty_percent"] is not None)
        if whole["power_mean_W"] is None:
            assert whole["energy_J"] is whole["iops_per_W"] is None
            why = next(note for note in row.notes if note.startswith("power_mean_W"))
            assert uncertainty.UNTIMED in why or rails.NO_POWER in why
    assert any(row.windows["all"]["power_mean_W"] is None for row in rows) != known


def test_what_is_interpolated_over_gaps_counts(tmp_path):
    """Frames of 0.5 to 0.9 s lost from a drive that takes 1 W and 4 W in turn: the truth is inside what is stated."""

    def watts(t_s):
        return np.where(np.floor(t_s / 1.3) % 2 == 0, 4.0, 1.0)

    true_J, inside, rng = float(watts(np.arange(0, 30, 1e-4)).mean()) * 30, 0, np.random.default_rng(1)
    clean = synthetic_run.run_of(tmp_path / "clean", IOPS, zoom_s=20, watts=watts)[1]["windows"]["all"]
    assert clean["energy_J"] == pytest.approx(true_J, rel=2e-3)
    for n in range(20):
        first = int(rng.integers(300, 700))
        lost = range(first, first + int(rng.integers(14, 26)))
        f = synthetic_run.run_of(tmp_path / str(n), IOPS, zoom_s=20, watts=watts, lose_frames=lost)[1]["windows"]["all"]
        assert f["filled_s"] > 0.3 and f["power_uncertainty_percent"] > clean["power_uncertainty_percent"]
        inside += abs(f["energy_J"] / true_J - 1) * 100 <= f["power_uncertainty_percent"]
    assert inside >= 19
