"""The sum over several rails: energy, seconds, extremes, closure, uncertainty; and where one rail is not known."""

import math

import numpy as np
import plain_rails
import pytest
import stream
import synthetic_run
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.base.errors import RigError
from ssdrig.meter import rails, samples, wire
from ssdrig.reading import table
from ssdrig.runs import journal

W = 25_600  # raw current of a watt at 5 V
S = 10**9


def interleaved(tmp_path, *tape, **more) -> list[samples.Power]:
    """The rails of a run with such a tape."""
    return samples.load_rails(interleaved_tape(*tape, **more).run(tmp_path))


def interleaved_tape(seconds, watts, periods_us=(1000, 740), gone=(), missed=()) -> stream.Tape:
    """A tape of rails whose chips convert at their own pace; watts: a function of the time in s for each rail.
    Frames of rail 1 that end within `gone` (from, to) do not exist; missed: (rail, frame) that the host does not
    get."""
    tape = stream.started(rails=tuple(range(len(watts))))
    frames = []
    for rail, period in enumerate(periods_us):
        t = stream.TICK0_US + period * np.arange(1, int(seconds * 1e6 / period) + 1)
        raw = np.rint(np.array([watts[rail]((x - stream.TICK0_US) * 1e-6) for x in t]) * W).astype(int).tolist()
        for k in range(0, len(t), 50):
            end_s = (t[min(k + 50, len(t)) - 1] - stream.TICK0_US) * 1e-6
            if not (rail == 1 and gone and gone[0] <= end_s < gone[1]):
                frames.append(
                    (
                        int(t[min(k + 50, len(t)) - 1]),
                        rail,
                        k,
                        t[k : k + 50],
                        raw[k : k + 50],
                        (rail, k // 50) in missed,
                    )
                )
    for end_us, rail, index, t, raw, lost in sorted(frames, key=lambda f: f[:2]):
        tape.t_us = end_us
        tape.frame(wire.SAMPLES, stream.samples(index, t, [25_600] * len(t), raw, rail=rail), lost=lost)
        tape.ping()
    return tape


def test_energy_is_the_sum_of_the_rails_integrals(tmp_path):
    powers = interleaved(tmp_path, 4, (lambda t: 2.0, lambda t: 1.0 + t))
    assert [p.rail for p in powers] == [0, 1] and [p.name for p in powers] == ["1 V", "2 V"]
    begin, end = stream.T0_NS + S, stream.T0_NS + 3 * S
    assert rails.energy_J(powers, begin, end) == pytest.approx(2 * 2 + 2 * 1 + (9 - 1) / 2, rel=1e-3)
    assert rails.energy_J(powers, begin, end) == sum(rails.energy_J([p], begin, end) for p in powers)
    edges = stream.T0_NS + S * np.array([1, 2, 3])
    assert rails.steps_J(powers, edges) == pytest.approx([3 + 1.5, 3 + 2.5], rel=1e-3)
    assert rails.energy_J(powers, begin, stream.T0_NS + 5 * S) is None
    assert rails.energy_J([], begin, end) is None


def test_a_rail_that_is_lost_makes_the_sum_unknown_there_not_low(tmp_path):
    powers = interleaved(tmp_path, 8, (lambda t: 2.0, lambda t: 3.0), gone=(3.5, 5.2))
    edges = stream.T0_NS + S * np.arange(1, 8)
    both, first, second = (rails.steps_J(some, edges) for some in (powers, powers[:1], powers[1:]))
    assert first == pytest.approx([2.0] * 6, rel=1e-3)
    assert np.isnan(second).tolist() == np.isnan(both).tolist() == [False, False, True, True, True, False]
    assert both[[0, 1, 5]] == pytest.approx([5.0] * 3, rel=1e-3)
    assert rails.energy_J(powers, stream.T0_NS + S, stream.T0_NS + 7 * S) is None
    assert rails.energy_J(powers[:1], stream.T0_NS + S, stream.T0_NS + 7 * S) == pytest.approx(12, rel=1e-3)
    low, high = plain_rails.extremes_W(powers, stream.T0_NS + S, 6, S)
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [False, False, True, True, True, False]
    assert low[0] == pytest.approx(5.0, rel=1e-6) and high[5] == pytest.approx(5.0, rel=1e-6)


def test_a_short_gap_is_filled_and_its_cells_give_no_extremes(tmp_path):
    """Frame 30 of rail 1 (50 conversions of 740 us from 1.110 s on) is lost; so is all that rail 0 would add to it
    there."""
    powers = interleaved(tmp_path, 3, (lambda t: 9.0 if 1.115 < t < 1.140 else 2.0, lambda t: 3.0), missed={(1, 30)})
    assert powers[1].lost == 50 and powers[0].lost == 0
    assert rails.energy_J(powers, stream.T0_NS + S, stream.T0_NS + 2 * S) == pytest.approx(5.0 + 7 * 0.025, abs=0.008)
    low, high = plain_rails.extremes_W(powers, stream.T0_NS + S, 1, S)
    assert (low[0], high[0]) == (pytest.approx(5.0, rel=1e-6), pytest.approx(5.0, rel=1e-6))
    assert plain_rails.extremes_W(powers[:1], stream.T0_NS + S, 1, S)[1][0] == pytest.approx(9.0)


def test_the_highest_sum_is_not_the_sum_of_the_highest(tmp_path):
    """Peaks of 4 W that alternate between the rails never add up; where they coincide they do."""
    apart = (lambda t: 5.0 if 1.0 <= t % 2 < 1.5 else 1.0, lambda t: 5.0 if 1.5 <= t % 2 < 2.0 else 1.0)
    low, high = plain_rails.extremes_W(interleaved(tmp_path / "apart", 3, apart), stream.T0_NS + S, 1, S)
    assert high[0] == pytest.approx(6.0, rel=1e-6) and low[0] == pytest.approx(6.0, abs=4.001)
    together = (lambda t: 5.0 if 1.2 <= t < 1.3 else 1.0, lambda t: 4.0 if 1.25 <= t < 1.35 else 1.0)
    low, high = plain_rails.extremes_W(interleaved(tmp_path / "together", 3, together), stream.T0_NS + S, 1, S)
    assert high[0] == pytest.approx(9.0, rel=1e-6) and low[0] == pytest.approx(2.0, rel=1e-6)


def test_the_grid_is_the_slowest_rail_and_flattens_a_shorter_peak_of_another(tmp_path):
    """Rail 1 converts each 100 us and has one conversion of 11 W; on the grid of rail 0's 1000 us that is 10 W x 1/10
    more."""
    powers = interleaved(
        tmp_path, 3, (lambda t: 1.0, lambda t: 11.0 if 1.50045 < t < 1.50055 else 1.0), periods_us=(1000, 100)
    )
    assert plain_rails.extremes_W(powers, stream.T0_NS + S, 1, S)[1][0] == pytest.approx(1 + 1 + 1.0, rel=0.02)
    assert plain_rails.extremes_W(powers[1:], stream.T0_NS + S, 1, S)[1][0] == pytest.approx(11.0, rel=1e-6)


def test_a_rail_that_never_sent_anything(tmp_path):
    tape = stream.started(rails=(0, 3))
    tape.stream(60)
    powers = samples.load_rails(tape.run(tmp_path))
    assert [(p.rail, len(p.t_ns)) for p in powers] == [(0, 3000), (3, 0)]
    assert rails.energy_J(powers[:1], stream.T0_NS + S, stream.T0_NS + 2 * S) == pytest.approx(1.0, rel=1e-3)
    assert rails.energy_J(powers, stream.T0_NS + S, stream.T0_NS + 2 * S) is None
    assert np.isnan(plain_rails.extremes_W(powers, stream.T0_NS + S, 1, S)).all()


def test_no_rail_with_a_sample_is_refused(tmp_path):
    with pytest.raises(RigError, match="frames without any"):
        samples.load_rails(stream.started(rails=(0, 1)).run(tmp_path))


# ---- closure


def closure(percent, resolution=0.01):
    return samples.Closure(percent, percent, 0.0, 1.0, 1.0, 1.0, resolution)


def test_the_worst_closure_is_judged_beside_what_the_chip_can_resolve():
    good, bad, faint = closure(0.02), closure(-0.3), closure(1.5, resolution=4.0)
    assert rails.worst([good, bad, faint, None]) is bad
    assert rails.worst([faint, good]) is good and rails.worst([None]) is None and rails.worst([]) is None


def test_a_rail_at_zero_closes_although_the_chip_adds_up_magnitudes(tmp_path):
    """Noise around 0 A: the chip's power register is a magnitude, so its energy grows; the host's own does not."""
    tape, dice, magnitude_J, index = stream.started(), np.random.default_rng(5), 0.0, 0
    for _k in range(100):
        t_us = tape.t_us + 1000 * np.arange(1, 51)
        tape.t_us = int(t_us[-1])
        raw = np.rint(dice.normal(0, W, 50)).astype(int)
        magnitude_J += float(np.abs(raw).sum()) / W * 1e-3
        tape.frame(wire.SAMPLES, stream.samples(index, t_us, [25_600] * 50, raw.tolist()))
        index += 50
        tape.ping()
        tape.frame(wire.ENERGY, stream.energy(index, tape.t_us, magnitude_J))
    (power,) = samples.load_rails(tape.run(tmp_path))
    assert abs(power.energy_J[-1]) < 0.1 * magnitude_J
    assert power.closure.raw_percent == pytest.approx(0, abs=0.05)
    assert power.closure.resolution_percent == pytest.approx(
        100 * (25e-6 * power.closure.seconds + 400e-6) / power.closure.chip_J, rel=1e-6
    )


# ---- a whole run


IOPS = [900, 1100] * 6
TWELVE = ("12V", ((-100, 0.5), (0, 6.0), (6, 3.0)), 740_000, None)


def run_of(tmp_path, *more_rails, **more):
    data, figures, _ = table.in_full(
        synthetic_run.write(tmp_path, IOPS, zoom_s=2, watts=((-100, 4.0), (0, 2.5)), more_rails=more_rails, **more)
    )
    return data, figures


def test_figures_of_a_run_are_those_of_the_sum(tmp_path):
    data, f = run_of(tmp_path, TWELVE)
    notes = synthetic_run.other_notes(f)
    f = synthetic_run.whole(f)
    joules = 12 * 2.5 + 6 * 6.0 + 6 * 3.0
    assert f["energy_J"] == pytest.approx(joules, rel=1e-3) and f["power_mean_W"] == pytest.approx(
        joules / 12, rel=1e-3
    )
    assert f["energy_uJ_per_io"] == pytest.approx(1e6 * joules / 12_000, rel=1e-3)
    assert f["power_max_W"] == pytest.approx(8.5, rel=1e-6)
    assert f["fill_energy_J"] == pytest.approx((4.0 + 0.5) * 2, rel=1e-3)
    assert data.power_mean_W == pytest.approx([8.5] * 6 + [5.5] * 6, rel=1e-3)
    five, twelve = f["rails"]
    assert (five["name"], twelve["name"]) == ("5V", "12V")
    assert five["energy_J"] + twelve["energy_J"] == pytest.approx(f["energy_J"], rel=1e-12)
    assert five["power_mean_W"] + twelve["power_mean_W"] == pytest.approx(f["power_mean_W"], rel=1e-12)
    assert (five["power_max_W"], twelve["power_max_W"]) == (pytest.approx(2.5), pytest.approx(6.0))
    assert f["samples"] == five["samples"] + twelve["samples"] and f["samples_lost"] == 0
    assert twelve["samples"] == pytest.approx(12e9 * 1.005 / 740_000, abs=2)
    assert abs(f["closure_percent"]) < 0.01 and f["chip_clock_ppm"] == pytest.approx(5000, abs=10)
    watts = [rail["power_mean_W"] for rail in f["rails"]]
    shares = [rail["power_uncertainty_percent"] * w / 100 for rail, w in zip(f["rails"], watts, strict=True)]
    # no calibration: independent but for the error of the clock, which is small
    assert f["power_uncertainty_percent"] == pytest.approx(100 * math.hypot(*shares) / sum(watts), rel=3e-3)
    own_work = "wa: its error would be "  # its fill was 50 times as fast as its load
    notes = [note for note in notes if own_work not in note and ": errors: " not in note]
    assert notes == ["own_power_ratio: the drive does not report its own energy or power"]


def test_one_rail_has_its_own_entry_and_the_same_figures(tmp_path):
    _, f = run_of(tmp_path)
    (rail,) = f["rails"]
    for name in (
        "energy_J",
        "power_mean_W",
        "power_max_W",
        "samples",
        "samples_lost",
        "closure_percent",
        "power_uncertainty_percent",
    ):
        assert rail[name] == f[name], name


def test_a_rail_that_goes_in_mid_load(tmp_path):
    data, f = run_of(tmp_path, (*TWELVE[:3], (4.2, 7.4)))
    notes, f = f["notes"], synthetic_run.whole(f)
    known = [0, 1, 2, 3, 8, 9, 10, 11]
    assert np.flatnonzero(np.isfinite(data.power_mean_W)).tolist() == known
    assert (
        f["energy_J"] is None
        and f["rails"][0]["energy_J"] == pytest.approx(30, rel=1e-3)
        and f["rails"][1]["energy_J"] is None
    )
    assert f["power_mean_W"] == pytest.approx((4 * 8.5 + 4 * 5.5) / 8, rel=1e-3)  # of the seconds that are known
    assert f["rails"][1]["power_mean_W"] == pytest.approx((4 * 6 + 4 * 3) / 8, rel=1e-3)
    assert f["samples_lost"] == f["rails"][1]["samples_lost"] == pytest.approx(3.2e9 * 1.005 / 740_000, abs=100)
    (note,) = [n for n in notes if n.startswith("all, 0–12 s: energy_J")]
    assert "4 of 12 s" in note and "of rail 1 (12V), so the sum is not known there" in note
    ((t, text),) = [mark for mark in data.marks if "rail" in mark[1]]
    assert 4.15 < t < 4.25 and text == "no samples of rail 1 (12V) for 3.2 s" and (t, text) in data.log
    assert [t for t, _ in data.log] == sorted(t for t, _ in data.log)


@pytest.mark.parametrize("gone", [None, (12.9, 14.2)])
def test_idle_power_is_of_all_rails_or_not_known(tmp_path, gone):
    """An idle step from 1 s to 2.5 s after the load."""
    run = synthetic_run.write(tmp_path, IOPS, zoom_s=2, more_rails=[(*TWELVE[:3], gone)])
    *events, end = journal.events(run)
    ends = {e["step"]: e["t_ns"] for e in events if e["kind"] == "step.end"}
    for kind, after_ns in (("step.start", S), ("step.end", 5 * S // 2)):
        events.append({"t_ns": ends["load"] + after_ns, "kind": kind, "step": "idle", "ok": True})
    synthetic_run.seal(run, [*events, end])
    f = table.in_full(run).figures
    assert f["rails"][0]["idle_mean_W"] == pytest.approx(2.5, rel=1e-3)
    if gone:
        assert f["idle_mean_W"] is None and f["idle_uncertainty_W"] is None and f["rails"][1]["idle_mean_W"] is None
        assert (
            "idle_mean_W: power samples do not cover the idle step of rail 1 (12V), so the sum is not known there"
            in f["notes"]
        )
        assert f["energy_J"] is not None  # the load was over by then
    else:
        assert f["idle_mean_W"] == pytest.approx(5.5, rel=1e-3) and f["rails"][1]["idle_mean_W"] == pytest.approx(
            3.0, rel=1e-3
        )
        assert 0 < f["idle_uncertainty_W"] < 0.1


@settings(max_examples=8, deadline=None)
@given(lost=st.sets(st.tuples(st.integers(0, 1), st.integers(5, 55)), max_size=12), longest=st.integers(0, 30))
def test_the_sum_is_additive_whatever_is_lost(tmp_path_factory, lost, longest):
    """Any frames of either rail, and a long stretch of one: where both are known the steps add up, where one is not
    neither is the sum."""
    lost = lost | {(1, 20 + k) for k in range(longest)}
    powers = interleaved(tmp_path_factory.mktemp("run"), 3, (lambda t: 1.0 + t, lambda t: 3.0 - t / 2), missed=lost)
    edges = stream.T0_NS + S * np.arange(0, 31) // 10
    both, first, second = (rails.steps_J(some, edges) for some in (powers, powers[:1], powers[1:]))
    assert both == pytest.approx(first + second, rel=1e-12, nan_ok=True)
    assert (np.isfinite(both) == (np.isfinite(first) & np.isfinite(second))).all()
    assert np.isfinite(both).sum() >= 10
    low, high = plain_rails.extremes_W(powers, int(edges[0]), 30, S // 10)
    some = np.isfinite(low)
    assert (low[some] <= high[some]).all() and not (some & ~np.isfinite(both)).any()
    assert (high[some] < 4 + 1.5 + 0.01).all() and (low[some] > 4 - 0.01).all()


def test_a_rail_that_goes_for_good_before_the_load(tmp_path):
    _, f = run_of(tmp_path, (*TWELVE[:3], (-0.5, 1000)))
    assert (
        f["energy_J"] is None
        and f["power_mean_W"] is None
        and f["power_max_W"] is None
        and f["power_uncertainty_percent"] is None
    )
    assert f["rails"][0]["power_mean_W"] == pytest.approx(2.5, rel=1e-3) and f["rails"][1]["power_mean_W"] is None
    assert f["rails"][1]["samples"] == 0
