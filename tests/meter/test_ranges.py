"""A rail with two ranges (hardware/frontend): firmware and host on the SIMULATED board, against what the rail drew."""

import contextlib
import json
import random
from types import SimpleNamespace

import numpy as np
import pytest
import stream
import test_reduced
from simboard import FAST, Board

from selfcheck import front_end
from ssdrig.meter import calibration, chips, messages, pieces, power, rails, ranges, samples, uncertainty, wire
from ssdrig.rig import builds

S_NS = 10**9
SUPPLY_V = 5.0
LOW = {"shunt_uOhm": 508_000, "shunt_tolerance_ppm": 1150, "feed_nA": 425, "release": 2, "state": 3}
RAIL = {"fine": False, "current_lsb_pA": 39_062_500, "lead_mOhm": 0, "low": LOW}
# as a good rig is: a tenth of what its parts may be off
REAL = {"ppm": 0.0, "noise": 1, "offset_uV": 0.1, "gain_ppm": 50, "vbus_gain_ppm": 20}


def settings(steps, **true):
    """steps: [(s since boot, A from then on)], above what the feed gives."""
    amps = [0.0, *[amps for _, amps in steps]]
    surges = [[at, after - before, 0.0] for (at, after), before in zip(steps, amps)]
    return REAL | FAST | {"rail": RAIL | {"true": {"surges": surges, "low": 1.0004, **true}}}


def seen(folder, watts, steps, until_s, glitches=(), **true):
    """What the host makes of a load of `watts` and these steps; (Power, board)."""
    with Board(folder, watts, settings(steps, **true) | {"glitches": list(glitches)}) as board:
        board.go()
        tick0 = board.truth()[-1]["tick0"]
        board.until(lambda: board.samples() and board.samples()[-1][1] > tick0 + until_s * 1e6)
    assert board.damaged == []
    return front_end.power_of(board.frames, board.truth()[-1]["tick0"]), board


class Truth:
    """What the rail drew, in W and J by seconds since boot."""

    def __init__(self, watts, steps):
        self.at_s = np.array([0.0, *[at for at, _ in steps]])
        self.A = watts / SUPPLY_V + np.array([0.0, *[amps for _, amps in steps]])

    def mean_A(self, from_s, to_s):
        cuts = np.clip(np.append(self.at_s, 1e9), from_s, to_s)
        return float((np.diff(cuts) * self.A).sum() / (to_s - from_s))

    def J(self, from_s, to_s):
        return self.mean_A(from_s, to_s) * SUPPLY_V * (to_s - from_s)


def window(of, truth, from_s, to_s):
    """(energy, its stated error, what the rail drew) in J."""
    span_ns = [round(from_s * S_NS), round(to_s * S_NS)]
    joules = rails.energy_J([of], *span_ns)
    stated_J = rails.uncertainty_W([of], span_ns, [joules / (to_s - from_s)]) * (to_s - from_s)
    return joules, stated_J, truth.J(from_s, to_s)


def test_1_mW_and_25_W_in_one_run(tmp_path):
    steps = [(1.6, 5.0), (2.6, 0.0)]
    of, board = seen(tmp_path, 1e-3, steps, 4.6)
    truth = Truth(1e-3, steps)
    for from_s, to_s in ((0.8, 1.5), (2.9, 4.5)):
        joules, stated_J, true_J = window(of, truth, from_s, to_s)
        assert abs(joules - true_J) < stated_J < 0.03 * joules and true_J == pytest.approx(1e-3 * (to_s - from_s))
    joules, stated_J, true_J = window(of, truth, 1.7, 2.5)
    assert abs(joules - true_J) < stated_J < 0.015 * joules and true_J == pytest.approx(20, rel=1e-3)
    assert moves(of) <= 3 + 1 + 3  # to let go of the bypass takes a conversion more
    assert abs(of.closure.corrected_percent) < max(0.1, of.closure.resolution_percent)


def moves(of):
    """How many conversions in which the bypass moved there are: all that is lost."""
    number = len(of.boots[-1].moves[0])
    assert of.lost == number and of.counts["missed"] == 0 and of.counts["unconverted"] == 0
    return number


def bursts(dice, until_s):
    """Steps up and down, some through the threshold of 51 mA, from 20 us to 300 ms."""
    out, at = [], 0.7
    while at < until_s:
        high = dice.choice([0.035, 0.06, 0.3, 3.0])
        out += [(at, high), (at + 10 ** dice.uniform(-4.7, -0.5), dice.choice([0.0, 0.01, 0.04]))]
        at = out[-1][0] + 10 ** dice.uniform(-3, -0.4)
    return out


@pytest.mark.parametrize("seed", [46, 47])
def test_energy_of_a_load_that_goes_through_the_threshold(tmp_path, seed):
    steps = bursts(random.Random(seed), 6.0)
    of, board = seen(tmp_path, 5e-3, steps, 6.4)
    truth = Truth(5e-3, steps)
    joules, stated_J, true_J = window(of, truth, 0.7, 6.3)
    assert abs(joules - true_J) < stated_J
    assert moves(of) > 10 and of.in_low.any() and not of.in_low.all()
    assert board.logs() == ""


def test_no_sample_has_a_wrong_value(tmp_path):
    """Each is the mean of what flowed while its current was converted, in either range."""
    steps = bursts(random.Random(1), 6.0)
    of, _ = seen(tmp_path, 5e-3, steps, 6.4)
    assert worst_of_a_sample(of, Truth(5e-3, steps)) < 1


@pytest.mark.parametrize("low_us", [25, 90])
def test_an_edge_without_a_conversion_gives_no_sample_another_range(tmp_path, low_us):
    """Interference pulls ALERT low at all phases of a conversion, while the bypass moves some 150 times."""
    dice, steps = random.Random(2), []
    for k in range(160):
        steps += [(0.7 + 0.1 * k, 0.2), (0.7 + 0.1 * k + dice.uniform(1e-4, 2e-2), 0.0)]
    period_us = 1102 / 1.005
    glitches = [[0.6, 6_000, 2.38 * period_us, low_us]]
    of, _ = seen(tmp_path, 5e-3, steps, 16.7, glitches=glitches)
    assert len(of.boots[-1].moves[0]) > 100
    assert worst_of_a_sample(of, Truth(5e-3, steps)) < 1


STAMP_S = 10e-6  # that a stamp may be off
CONVERSION_S, PERIOD_S = 1052e-6 / 1.005, 1102e-6 / 1.005  # of the current; with the voltage's


def worst_of_a_sample(of, truth):
    """How far a sample is off what flowed while its current was converted, at most, of what it may be: its noise and
    gain. A burst may begin or end at an edge of a conversion, where the stamp decides how much of it is inside."""
    begin_s = of.t_ns / S_NS - PERIOD_S
    shifts_s = np.linspace(-STAMP_S, STAMP_S, 9)
    true_A = np.array([[truth.mean_A(at + by, at + by + CONVERSION_S) for by in shifts_s] for at in begin_s])
    low_A, high_A = true_A.min(axis=1), true_A.max(axis=1)
    noise_A = np.where(of.in_low, 4e-6, 2.4e-4)  # the other range is off by a hundredfold
    outside_A = np.maximum(0.0, np.maximum(low_A - of.I, of.I - high_A))
    return (outside_A / (6 * noise_A + 1e-3 * high_A)).max()


@pytest.mark.parametrize(("late_us", "of_it", "right"), [(0, 1, True), (8, 1, True), (-8, 1, True), (0, 0.9, False)])
def test_a_burst_across_the_begin_of_a_conversion_is_judged_within_the_stamps_error(late_us, of_it, right):
    """3 A from 30 us before a conversion until 228 us after its begin; its neighbours have none of it."""
    begin_s = 1.0 + PERIOD_S * np.arange(3)
    truth = Truth(5e-3, [(begin_s[1] - 30e-6, 3.0), (begin_s[1] + 228e-6, 0.0)])
    flowed_A = np.array([truth.mean_A(at + late_us * 1e-6, at + late_us * 1e-6 + CONVERSION_S) for at in begin_s])
    of = SimpleNamespace(t_ns=(begin_s + PERIOD_S) * S_NS, I=of_it * flowed_A, in_low=np.zeros(3, bool))
    assert (worst_of_a_sample(of, truth) < 1) == right


def test_a_load_beside_the_threshold_does_not_chatter(tmp_path):
    """45 and 55 mA every 3 ms: the bypass closes, and stays so."""
    steps = [(0.5 + 3e-3 * k, 0.055 if k % 2 == 0 else 0.045) for k in range(100)]
    of, _ = seen(tmp_path, 5e-5, steps, 0.79)
    after = of.t_ns > 0.51 * S_NS
    assert not of.in_low[after].any() and moves(of) <= 5


def test_a_line_that_never_reports_an_open_bypass_costs_samples_not_truth(tmp_path):
    of, board = seen(tmp_path, 1e-3, [], 1.5, state="stuck")
    assert "does not open" in board.logs()
    assert not of.in_low.any() and 30 <= moves(of) <= 40
    assert np.abs(of.I - 2e-4).max() < 2e-3


# ---- the host


def row_of(t_us, current, index, config):
    """An S frame of these conversions at 5 V."""
    return stream.samples(index, t_us, [25_600] * len(t_us), current, config=config)


def tape_of(spike):
    """Rest at 1 mW in the low range, a conversion in which the bypass closes, the high range; it opens again. `spike`:
    that conversion as one of the high range."""
    tape = stream.Tape()
    of = facts(current_lsb_pA=39_062_500, conversion_ns=1_000_000)
    hello = {"protocol": wire.PROTOCOL, "boot": 1, "board": "b", "firmware": "f", "simulated": True, "rails": [of]}
    tape.frame(wire.HELLO, json.dumps(hello).encode())
    index = 0
    for config, n, raw in ((1, 50, 325), (2, 1, spike), (4, 50, 5), (6, 2, 100), (9, 50, 325)):
        t_us = tape.t_us + 1000 * np.arange(1, n + 1)
        tape.t_us = int(t_us[-1])
        tape.frame(wire.SAMPLES, row_of(t_us, [raw] * n, index, config))
        tape.ping()
        index += n
    return tape


def test_a_burst_within_the_conversion_that_closes_the_bypass_is_in_the_energy(tmp_path):
    """0.5 ms of 2 A: neither side of it shows anything."""
    rest_A, burst_A = 325 * 615_157.5e-12 + 425e-9, 2.0
    seen_A = 0.4 * rest_A * 63.5 + 0.5 * burst_A + 0.1 * rest_A
    of = samples.load(tape_of(round(seen_A / 39.0625e-6)).run(tmp_path / "run"))
    assert of.gap_lost.tolist() == [1, 2] and of.in_low.sum() == 100 and len(of.I) == 150
    true_J = 5.0 * 1e-3 * (0.5 * burst_A + 0.5 * rest_A)
    assert abs(of.gap_J[0] - true_J) < of.gaps.bound_J[0] < 0.05 * true_J
    assert of.gap_J[1] == pytest.approx(2e-3 * 5 * rest_A, rel=0.1) and of.gaps.bound_J[1] < 1e-6
    span_ns = [int(of.t_ns[0]), int(of.t_ns[-1])]
    mean = rails.means([of], span_ns, [float(np.diff(of.integral_J(span_ns))[0]) / np.diff(span_ns)[0] * S_NS])[0]
    assert mean.moved_W * np.diff(span_ns)[0] / S_NS == pytest.approx(of.gaps.bound_J.sum())
    assert mean.low[0] == pytest.approx(100 / 150, abs=0.02)


@pytest.mark.parametrize("at_once", [1, 500])
def test_a_run_read_in_pieces_has_the_same(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(pieces, "FRAMES_AT_ONCE", at_once)
    run = tape_of(25_000).run(tmp_path / "run")
    (pieced,), (plain,) = test_reduced.assert_equal(run), samples.load_rails(run)
    edges = test_reduced.edges_of([plain])
    ends = int(edges[0]), int(edges[-1])
    assert pieced.low_in(*ends) == pytest.approx(plain.low_in(*ends))
    assert [of.tolist() for of in rails.filled(pieced, edges)] == [
        pytest.approx(of.tolist()) for of in rails.filled(plain, edges)
    ]


@pytest.mark.parametrize(
    ("most_A", "watts", "in_low", "low_A", "high_A"),
    [
        (1.0, (1e-3, 5.0), (True, False), 1 - 62.5 * 4e-4, 1.0),
        (0.0127, (1e-3, 1e-3), (False, True), 2e-4, 2e-4),
        (0.1, (1e-3, 1e-3), (False, True), 2e-4, 0.1 - 0.0127 + 2e-4),
        (6.35, (5.0, 5.0), (False, False), 0.1, 6.35),
        (-0.001, (1e-3, 1e-3), (True, False), 0.0, 0.0),
    ],
    ids=["closes", "opens at rest", "opens with a burst", "opens and closes", "noise"],
)
def test_what_flowed_while_the_bypass_moved_is_between_two_values(most_A, watts, in_low, low_A, high_A):
    of = ranges.moves([(5.0, most_A)], 63.5, watts, in_low)
    assert (of.W - of.bound_W, of.W + of.bound_W) == pytest.approx((5 * low_A, 5 * high_A), abs=1e-12)


def facts(**more):
    row = {"rail": 0, "config": 0, "name": "r", "chip": "INA228", "shunt_uOhm": 8000, "shunt_tolerance_ppm": 10_000}
    row |= {"current_lsb_pA": 39_062_500, "vbus_lsb_nV": 195_312.5, "conversion_ns": 1_102_000, "shunt_ns": 1_052_000}
    return row | {"adc_config": 0xB000 | 5 << 6, "shunt_cal": 4096, "low": LOW} | more


def test_each_config_has_the_facts_of_its_range():
    of = ranges.by_config([facts(), facts(rail=1, low=None, config=9)])
    assert len(of) == 3 * 64 + 1 and of[1, 9]["rail"] == 1
    assert {config % 4 for (rail, config), row in of.items() if rail == 0 and ranges.is_low(row)} == {1}
    assert {config % 4 for (rail, config), row in of.items() if rail == 0 and ranges.is_moving(row)} == {2}
    assert of[0, 1]["current_lsb_pA"] == pytest.approx(615_157.5) and of[0, 1]["shunt_uOhm"] == 508_000
    assert list(of)[-2] == (0, 252)  # the last one of a rail names what has no range


def test_a_calibration_of_the_current_is_that_of_the_high_range():
    line = {"x1_n": 0, "x2_n": 10**9, "r1_n": 0, "r2_n": 101 * 10**7, "c1_n": 0, "c2_n": 0, "u1_n": 0, "u2_n": 0}
    lines = {"V": line | {"g_ppb": 0}, "I": line | {"g_ppb": 0}}
    row = facts(calibration=lines)
    high, low = calibration.scales(row), calibration.scales(ranges.low(row))
    assert high[0] == low[0] and high[2] == pytest.approx(1.01 * 39.0625e-6)
    assert low[2] == pytest.approx(39.0625e-6 / 63.5) and low[3] == pytest.approx(425e-9)


@pytest.mark.parametrize(
    ("watts", "share", "low_W", "least", "most"),
    [
        (1e-3, 1.0, 1e-3, 0.005, 0.013),
        (1e-3, 0.0, 0.0, 0.3, 1.0),
        (2.5, 0.5, 0.5e-3, 0.010, 0.013),
        (5.0, 0.0, 0.0, 0.010, 0.013),
    ],
)
def test_the_error_is_that_of_the_ranges_of_a_window(watts, share, low_W, least, most):
    mean = uncertainty.Mean(facts(), 3.3, watts, 1000, low=(share, low_W))
    assert least < uncertainty.expanded_W([mean]) / watts < most


def test_a_mixed_window_is_between_its_ranges():
    of = lambda share: uncertainty.expanded_W([uncertainty.Mean(facts(), 3.3, 1e-3, 1000, low=(share, share * 1e-3))])
    assert of(0.0) > of(0.3) > of(0.9) > of(1.0)
    one = uncertainty.Mean(facts(low=None), 3.3, 1e-3, 1000)
    assert uncertainty.expanded_W([one]) == of(0.0)


def test_noise_of_the_low_range_is_finer():
    row = facts()
    assert chips.expected_noise(row) / chips.expected_noise(ranges.low(row)) == pytest.approx(63.5)


@pytest.mark.parametrize("low", [3, {"shunt_uOhm": 0, "shunt_tolerance_ppm": 1}, {"shunt_uOhm": 5}, {"x": 1}])
def test_a_board_may_say_anything(low):
    hello = {"protocol": wire.PROTOCOL, "boot": 1, "board": "b", "firmware": "f", "rails": [facts(low=low)]}
    assert messages.FORMS[wire.HELLO](hello)
    with contextlib.suppress(KeyError, TypeError):
        assert not messages.is_rail(facts(low=low))


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({}, None),
        ({"feed_nA": 0}, "above 0"),
        ({"shunt_uOhm": 9000}, "times"),
        ({"release": 6}, "pin twice"),
        ({"state": 40}, "GPIOs"),
        ({"x": 1}, "is not"),
    ],
)
def test_a_build_with_a_low_range(change, wrong):
    build = builds.read("one_rail")
    build = build | {"rails": [build["rails"][0] | {"low": LOW | change}]}
    if wrong is None:
        assert builds.complaint(build) is None
    else:
        assert wrong in builds.complaint(build)


def test_a_low_range_wants_a_chip_that_the_interrupt_reads():
    build = builds.read("ina229")
    row = build["rails"][0] | {"low": LOW | {"release": 20, "state": 21}}
    assert "I2C0" in builds.complaint(build | {"rails": [row]})
    for name in ("is_low", "low"):
        assert not power.corrected({name: None})
