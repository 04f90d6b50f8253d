"""A rail with two ranges (hardware/frontend), as the host reads its frames (wire.py)."""

import contextlib
import json

import numpy as np
import pytest
import stream
import test_reduced

from ssdrig.meter import calibration, chips, messages, pieces, rails, ranges, samples, uncertainty, wire

S_NS = 10**9
LOW = {"shunt_uOhm": 508_000, "shunt_tolerance_ppm": 1150, "feed_nA": 425}


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
