"""hardware/spice/fast.cir: the fast current channel, as its ADC samples it, against closed forms; and the budget of its
errors in hardware/README.md, worked out again."""

import bisect
import functools
import math
import re
import shutil

import picture_of_study as pictures
import pytest
from board_files import README
from conftest import ROOT

from ssdrig.meter import fast

simulate = pictures.simulator()
V = simulate.values("m2_3v3")
STEP_s, WIDTH = 4e-6, 25  # of the ADC's samples, and of a mean
BURST_PART, INL_COUNTS = fast.BURST_PART, fast.INL_COUNTS  # what the host states
WINDOW_s = STEP_s * WIDTH
FILTER_s = V["fast_filter_resistor"] * V["fast_filter_capacitor"]
AMPLIFIER_s = 1 / (2 * math.pi * V["fast_bandwidth"])


@pytest.fixture(autouse=True)
def ngspice():
    if shutil.which("ngspice") is None:
        pytest.skip("ngspice is not installed (apt-get install ngspice): the electrical studies were not run")


@functools.cache
def run(**changes):
    """(measures, times in s, current at the ADC's pin in A)."""
    measures, names, rows = simulate.run("fast", "m2_3v3", **changes)
    column = names.index("v(current)")
    return measures, [row[0] for row in rows], [row[column] for row in rows]


def highest_means(**changes):
    """The highest mean of WIDTH samples in a row (A), for eight places of the samples: (lowest, highest of them)."""
    _, t, amps = run(**changes)

    def at(s):
        i = min(max(1, bisect.bisect(t, s)), len(t) - 1)
        return amps[i - 1] + (amps[i] - amps[i - 1]) * (s - t[i - 1]) / (t[i] - t[i - 1])

    found = []
    for phase in range(8):
        taken = [at(0.9e-3 + (n + phase / 8) * STEP_s) for n in range(140)]
        found.append(max(sum(taken[i : i + WIDTH]) / WIDTH for i in range(len(taken) - WIDTH)))
    return min(found), max(found)


def test_a_steady_current_is_the_shunts_times_the_gain():
    assert run()[0]["level"] == pytest.approx(0.1, rel=1e-3)
    assert run()[0]["top"] == pytest.approx(3.0, rel=1e-3)


def test_a_burst_as_long_as_the_window_is_hidden_by_the_lag_and_a_longer_one_is_not():
    """tau ln 2 / window of one pole; of two, and of samples that lie anyhow in the burst, within half a sample."""
    height = 3 - 0.1
    low, high = highest_means()
    lag = math.log(2) * (FILTER_s + AMPLIFIER_s) / WINDOW_s
    assert 1 - (low - 0.1) / height < BURST_PART  # what the host states
    assert 1 - (low + high - 0.2) / 2 / height == pytest.approx(lag, abs=0.5 * STEP_s / WINDOW_s)
    assert highest_means(width=2e-4) == pytest.approx((3.0, 3.0), rel=1e-3)
    assert highest_means(width=5e-5) == pytest.approx((1.55, 1.55), rel=BURST_PART)  # half of the window


def test_a_slower_filter_breaks_what_is_stated():
    low, _ = highest_means(fast_filter_capacitor=1e-8)
    assert 1 - (low - 0.1) / 2.9 > 2 * BURST_PART


def test_firmware_and_host_know_the_circuit():
    said = dict(re.findall(r"^_?(\w+) = const\((\d+)\)", (ROOT / "firmware/fast.py").read_text(), re.M))
    assert (int(said["STEP_us"]), int(said["WIDTH"])) == (round(STEP_s * 1e6), WIDTH)
    assert int(said["LIMIT"]) == int((V["logic"] - V["fast_swing"]) / V["logic"] * 4096)
    assert (fast.GAIN, fast.REFERENCE_V) == (V["fast_gain"], V["logic"])
    assert fast.nA_per_count(8000) == pytest.approx(3.3 / 4096 / (V["fast_gain"] * V["shunt"]) * 1e9, rel=1e-6)


def test_it_settles_within_two_samples_to_99_percent():
    slew_s = 2.9 * V["shunt"] * V["fast_gain"] / 2e6
    assert run()[0]["settled"] < 2 * STEP_s
    assert run()[0]["settled"] == pytest.approx(-math.log(0.01) * (FILTER_s + AMPLIFIER_s) + slew_s, rel=0.15)


def test_its_end_lies_above_the_sensors():
    """The output ends 0.2 V below the supply: there the reading stays."""
    end_A = (V["logic"] - V["fast_swing"]) / (V["fast_gain"] * V["shunt"])
    assert end_A > 1.5 * V["shunt_limit"]
    assert run(peak=9)[0]["top"] == pytest.approx(end_A, rel=1e-3)


@pytest.mark.parametrize("henry", [5e-10, 5e-9])
def test_ripple_of_the_drives_converters_is_small_at_the_pin(henry):
    _, t, amps = run(base=1.0, peak=1.5, ripple=0.2, shunt_inductance=henry)
    seen = [a for s, a in zip(t, amps, strict=True) if 0.95e-3 < s < 0.99e-3]
    hz = 1e6
    through = math.hypot(1, 2 * math.pi * hz * henry / V["shunt"])
    for pole_s in (FILTER_s, AMPLIFIER_s):
        through /= math.hypot(1, 2 * math.pi * hz * pole_s)
    assert (max(seen) - min(seen)) / 0.4 == pytest.approx(through, rel=0.15)
    assert through < 0.25


# ---- the budget


def test_the_budget_in_the_readme_is_what_the_values_give():
    """Each error of one reading of 100 us at 8 mOhm, in mA."""
    A_per_V = 1 / (V["fast_gain"] * V["shunt"])
    count_mA = V["logic"] / 4096 * A_per_V * 1e3
    rows = {
        "offset of the amplifier, 25 uV": 25e-6 / V["shunt"] * 1e3,
        "its drift over 25 K, 250 nV/K": 25 * 250e-9 / V["shunt"] * 1e3,
        "common mode, 120 dB of 12 V": 12e-6 / V["shunt"] * 1e3,
        "supply, 10 uV/V of 0.1 V": 1e-6 / V["shunt"] * 1e3,
        "one count of the ADC": count_mA,
        f"integral non-linearity of the RP2040's ADC, {INL_COUNTS:g} counts": INL_COUNTS * count_mA,
        "noise of a mean of 25, 2 counts rms a sample": 2 / math.sqrt(WIDTH) * count_mA,
    }
    for words, mA in rows.items():
        assert f"| {words} | {mA:.2f} |" in README, (words, round(mA, 2))


@pytest.mark.slow
def test_the_committed_picture_is_what_the_study_gives():
    pictures.compare(simulate, "fast")
