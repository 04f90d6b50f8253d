"""The RP2350's front end, V and I of a rail at 250 kS/s each: firmware/fast.py, scope.py on the SIMULATED board against
what the rail drew, and what the host makes of a peak."""

import itertools
import json
import struct

import numpy as np
import pytest
import test_fast
from simboard import Board, changed_firmware
from switchcuts import answer
from test_fast import BURSTS, GAIN, LOAD_A, NA, ZERO, intervals, look_at, starts_s

from ssdrig.meter import fast, wire
from ssdrig.rig import builds
from ssdrig.switch import pico

NV, SAG_ohm = 1_611_328, 0.05
PAIR = {"rail": 0, "gpio": 17, "volts": 16, "cs": 14, "adc": "ADS7042", "nA_per_count": NA, "nV_per_count": NV}


def settings(bursts=BURSTS, **more):
    """As test_fast's, with two converters; a burst of 1 A makes the rail 50 mV lower."""
    made = test_fast.settings(bursts, **more)
    edges = [(t + after, sign * amps) for t, amps, lasts in bursts for sign, after in ((1, 0.0), (-1, lasts))]
    rows = [[t, amps, -SAG_ohm * amps] for t, amps in edges]
    return made | {"fast": {**PAIR, "true": {"gain": GAIN, "zero": ZERO}}, "rail": {"true": {"surges": rows}}}


def test_bursts_are_found_with_the_voltage_beside_them(tmp_path):
    bursts = [(1.5, 2.5, 100e-6), (2.2, 4.0, 120e-6), (2.75, 3.0, 300e-6)]
    with Board(tmp_path, 2.5, settings(bursts)) as board:
        board.go()
        board.until(lambda: starts_s(board, intervals(board)[-1]) > 3.2 if intervals(board) else False)
        assert len(bursts) <= look_at(board, bursts) <= 2 * len(bursts)
        intervals_ = intervals(board)
        calm_V = np.median([of.volts for of in intervals_]) / 25 * NV * 1e-9
        assert calm_V == pytest.approx(5.0, abs=0.06)
        for t_s, amps, _ in bursts[1:]:  # at least as long as a window
            (of,) = [of for of in intervals_ if starts_s(board, of) <= t_s < starts_s(board, of) + 0.0999]
            assert of.volts / 25 * NV * 1e-9 == pytest.approx(calm_V - SAG_ohm * amps, abs=0.01)


def test_it_counts_on_from_a_later_sample_without_a_gap(tmp_path):
    changes = changed_firmware(tmp_path, "fast.py", _LONGEST=60_000)
    with Board(tmp_path, 2.5, settings([(2.0, 2.0, 300e-6)]) | changes) as board:
        board.go()
        board.until(lambda: len(intervals(board)) >= 25)
        look_at(board, [(2.0, 2.0, 300e-6)])


def test_a_picture_has_both_of_the_same_moments(tmp_path):
    """From now on: a step of 2 A and the sag that it makes begin within a sample of each other."""
    surge = [[k * 4e-3 + 1.0, (-1) ** k * 2.0, -((-1) ** k) * SAG_ohm * 2.0] for k in range(250)]
    with Board(tmp_path, 2.5, settings([]) | {"rail": {"true": {"surges": surge}}}) as board:
        board.go()
        board.until(lambda: board.samples() and starts_s_of(board) > 1.05)
        how = {"gpio": [16, 17], "rate": 500_000, "before": 0, "after": 5000, "trigger": "now"}
        answer(board, wire.SCOPE, json.dumps(how).encode(), wire.HELLO)
        board.until(lambda: len(board.bodies(wire.WAVEFORM)) >= 100)
    volts, amps = (picture(board, gpio) for gpio in (16, 17))
    assert len(volts) == len(amps) == 5000
    rises = np.flatnonzero(np.diff((amps > LOAD_A + 1).astype(int)) == 1)
    falls = np.flatnonzero(np.diff((volts < volts.max() - 0.05).astype(int)) == 1)
    assert len(rises) in (2, 3) and np.abs(rises - falls).max() <= 1
    assert np.diff(rises) == pytest.approx(2000, abs=1)  # 8 ms


def starts_s_of(board):
    boot = board.truth()[-1]
    return (board.samples()[-1][1] - boot["tick0"]) / 1e6


def picture_counts(board, gpio):
    """Counts of all W frames of an input."""
    pieces = {}
    for body in board.bodies(wire.WAVEFORM):
        _, channel, first, _, _, n = struct.unpack_from(wire.WAVEFORM_HEAD, body)
        if channel == gpio:
            pieces[first] = struct.unpack_from(f"<{n}H", body, struct.calcsize(wire.WAVEFORM_HEAD))
    return np.array(list(itertools.chain(*[pieces[first] for first in sorted(pieces)])))


def picture(board, gpio):
    """V or A of an input of the front end."""
    counts = picture_counts(board, gpio)
    return counts * NV * 1e-9 if gpio == 16 else (counts - ZERO) * NA * 1e-9 / GAIN


@pytest.mark.parametrize(
    "how",
    [{"gpio": [16, 26], "rate": 500_000}, {"gpio": [16, 17], "rate": 250_000}, {"gpio": 17, "rate": 500_000}],
    ids=["with the ADC's", "too slow", "too fast"],
)
def test_the_two_are_asked_alone_and_at_their_rate(tmp_path, how):
    with Board(tmp_path, 2.5, settings([])) as board:
        board.go()
        how = {"before": 0, "after": 100, "trigger": "now", **how}
        kind, body = answer(board, wire.SCOPE, json.dumps(how).encode(), wire.HELLO, wire.REFUSED)
        assert kind == wire.REFUSED and json.loads(body)["command"] == "s"


# ---- the host


def test_a_peak_is_within_a_percent_and_5_mA_of_any_front_end():
    """10 000 drawn within a converter's budget, corrected by the sensor as the host does."""
    rng, made = np.random.default_rng(46), NA * 1e-9
    of = fast.CONVERTERS["ADS7042"]
    errors, stated = [], []
    for _ in range(2000):
        gain, zero = 1 + rng.uniform(-1, 1) * of.gain_part, rng.uniform(0, 8)
        phase, bend = rng.uniform(0, 2 * np.pi), rng.uniform(0.5, 8)
        bent = lambda amps, p=phase, b=bend: of.inl_counts * np.sin(amps * b + p)
        true = np.repeat(rng.uniform(0.05, 3.5, 8), 20)  # the loads of a run
        counts = zero + gain * true / made + bent(true)
        a, b, fitted, why = fast._line(counts, true, {"nA_per_count": NA, "adc": "ADS7042", "volts": 16})
        assert why is None
        peak = rng.uniform(0.1, 7)
        seen = a + b * (zero + gain * peak / made + bent(peak))
        errors.append(abs(seen - peak) / (0.01 * peak + 0.005))
        stated.append(fitted[2])
    assert np.quantile(errors, 0.95) < 1 and stated[0] == pytest.approx(of.inl_counts * made)


def test_the_power_of_a_peak_is_by_its_own_voltage():
    ns = np.zeros(1, np.int64)
    rail = {"rail": 0, "chip": "INA228", "shunt_uOhm": 8000, "shunt_tolerance_ppm": 1, "current_lsb_pA": 7_812_500}
    rail |= {"vbus_lsb_nV": 195_312.5, "conversion_ns": 1_000_000}
    line = (0.5, 0.001, 0.001, 0.002, 1.0, 0.0)
    assumed = fast.Peaks(ns, ns, ns, np.array([4.0]), ns, *line)
    seen = fast.Peaks(ns, ns, ns, np.array([4.0]), ns, *line, highest_V=np.array([4.7]), volts_part=0.006)
    (watts, u_W), (own_W, own_u_W) = (fast.power_W(peaks, 0, rail, 5.0) for peaks in (assumed, seen))
    assert own_W == pytest.approx(4 * 4.7) and abs(watts - 4 * (5 - 0.025 * 3.5)) < 0.01
    assert own_u_W == pytest.approx(2 * np.hypot(u_W / 2, 0), rel=0.5)


PINS = {"gpio": 17, "volts": 16, "cs": 14}


@pytest.mark.parametrize(
    ("change", "wrong"),
    [({}, False), ({"adc": "ADS1"}, True), ({"volts": 6}, True), ({"cs": 9}, True), ({"nV_per_count": 0}, True)],
    ids=["as it is", "no converter of ours", "ALERT's pin", "SCLK on a gate", "no volts"],
)
def test_a_build_with_a_front_end(change, wrong):
    build = builds.read("one_rail") | {"lock_outs": None, "fast": PAIR | change}
    assert (builds.complaint(build) is not None) == wrong


def test_a_front_end_has_the_pin_of_the_breakouts_lock_out_test():
    complaint = builds.complaint(builds.read("one_rail") | {"fast": PAIR})
    assert complaint is not None and "15" in complaint


def test_what_its_scope_shows():
    hello = {"scope": [{"rail": 0, "gpio": 26, "nV_per_count": 1}]}
    both = hello | {"fast": PAIR | {"step_ns": 4000, "width": 25, "interval": 25_000, "limit": 3847}}
    assert pico.inputs_of(hello) == hello["scope"]
    rows = [(row["gpio"], "nA_per_count" in row) for row in pico.inputs_of(both)]
    assert rows == [(26, False), (16, False), (17, True)]
