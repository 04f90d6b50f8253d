"""hardware/spice/fast.cir: the fast current channel, as its ADC samples it, against closed forms; and the budget of its
errors in hardware/README.md, worked out again."""

import bisect
import functools
import itertools
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
BURST_PART, INL_COUNTS = fast.BURST_PART, fast.BOARDS.inl_counts  # what the host states
WINDOW_s = STEP_s * WIDTH
FILTER_s = V["fast_filter_resistor"] * V["fast_filter_capacitor"]
AMPLIFIER_s = 1 / (2 * math.pi * V["fast_bandwidth"])
NO_INDUCTANCE = 1e-12  # H: the shunt's adds L dI/dt to an edge


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

    means = []
    for phase in range(8):
        taken = [at(0.9e-3 + (n + phase / 8) * STEP_s) for n in range(140)]
        means.append(max(sum(taken[i : i + WIDTH]) / WIDTH for i in range(len(taken) - WIDTH)))
    return min(means), max(means)


def test_a_steady_current_is_the_shunts_times_the_gain():
    assert run()[0]["level"] == pytest.approx(0.1, rel=1e-3)
    assert run()[0]["top"] == pytest.approx(3.0, rel=1e-3)


@pytest.mark.slow
def test_a_burst_as_long_as_the_window_is_hidden_by_the_lag_and_a_longer_one_is_not():
    """tau ln 2 / window of one pole; of two, and of samples that lie anyhow in the burst, within half a sample."""
    height = 3 - 0.1
    assert 1 - (highest_means()[0] - 0.1) / height < BURST_PART  # what the host states
    low, high = highest_means(shunt_inductance=NO_INDUCTANCE)
    lag = math.log(2) * (FILTER_s + AMPLIFIER_s) / WINDOW_s
    assert 1 - (low + high - 0.2) / 2 / height == pytest.approx(lag, rel=0.1)
    assert highest_means(width=2e-4) == pytest.approx((3.0, 3.0), rel=1e-3)
    low, high = highest_means(width=5e-5)  # half of the window
    assert (low + high) / 2 == pytest.approx(1.55, rel=2e-3) and high - low <= STEP_s / WINDOW_s * height


def test_a_slower_filter_breaks_what_is_stated():
    low, _ = highest_means(fast_filter_capacitor=1e-8)
    assert 1 - (low - 0.1) / 2.9 > 2 * BURST_PART


def test_firmware_and_host_know_the_circuit():
    constants = dict(re.findall(r"^_?(\w+) = const\((\d+)\)", (ROOT / "firmware/fast.py").read_text(), re.M))
    assert (int(constants["STEP_us"]), int(constants["WIDTH"])) == (round(STEP_s * 1e6), WIDTH)
    assert int(constants["LIMIT"]) == int((V["logic"] - V["fast_swing"]) / V["logic"] * 4096)
    assert (fast.GAIN, fast.REFERENCE_V) == (V["fast_gain"], V["logic"])
    assert fast.nA_per_count(8000) == pytest.approx(3.3 / 4096 / (V["fast_gain"] * V["shunt"]) * 1e9, rel=1e-6)


def test_it_settles_within_two_samples_to_99_percent():
    """A step behind two poles of its own: a exp(-t / a) / (a - b) is left of it, and the other's part is over by then;
    so small a step is not slowed by the slew rate. The shunt's inductance only makes it faster."""
    edge_s = 0.1e-6  # half of the current's
    left = 0.01 * (FILTER_s - AMPLIFIER_s) / FILTER_s
    settled_s = run(peak=0.2, shunt_inductance=NO_INDUCTANCE)[0]["settled"]
    assert settled_s == pytest.approx(-math.log(left) * FILTER_s + edge_s, rel=0.02)
    assert run()[0]["settled"] < run(shunt_inductance=NO_INDUCTANCE)[0]["settled"] < 2 * STEP_s


def test_what_lags_is_the_sum_of_both_poles():
    """The area that a step is behind: the filter is no load for the amplifier's output, so neither pole shifts the
    other. Without a buffer between them the filter's capacitor would add a third of a microsecond."""
    _, t, amps = run(peak=0.2, shunt_inductance=NO_INDUCTANCE)
    rows = [(s, a) for s, a in zip(t, amps, strict=True) if 1e-3 <= s <= 1.09e-3]
    behind_s = sum((0.2 - (a + b) / 2) / 0.1 * (z - s) for (s, a), (z, b) in itertools.pairwise(rows))
    assert behind_s - 0.1e-6 == pytest.approx(FILTER_s + AMPLIFIER_s, rel=0.01)


def test_the_wiring_in_the_readme_is_what_is_simulated():
    """INA240 by its pins: what lies between OUT and the ADC's pin, and on which nets."""
    match = re.search(r"\| 5 OUT \| (\d+) kOhm, then Pico pin 34 \(GP28, ADC2\), there (\d+) nF to AGND \|", README)
    assert (float(match[1]) * 1e3, float(match[2]) * 1e-9) == pytest.approx(
        (V["fast_filter_resistor"], V["fast_filter_capacitor"])
    )
    assert "| 8 IN+, 1 IN- | the shunt's own ends" in README and "| 2 GND, 3 REF2, 7 REF1 | Pico pin 33" in README
    lines = (simulate.HERE / "rig.lib").read_text().partition(".subckt fast_channel ")[2].partition(".ends")[0]
    nets = {words[0]: tuple(words[1:3]) for line in lines.splitlines()[1:] if len(words := line.split()) > 2}
    assert nets["Rfast"] == ("amp", "adc") and nets["Cfast"] == ("adc", "0") and nets["Eout"] == ("amp", "0")
    assert {net for name, pair in nets.items() for net in pair if name != "Bfast"} == {"amp", "adc", "pole", "0"}
    assert "Xf sw2 out amp adc fast_channel" in (simulate.HERE / "fast.cir").read_text()


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
    assert (max(seen) - min(seen)) / 0.4 == pytest.approx(through, rel=0.08)
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
