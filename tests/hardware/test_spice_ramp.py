"""hardware/spice/ramp.cir: the fall that pulses of the crowbar make, its heat, its interlock; and that its pulses are
the firmware's."""

import functools
import math
import shutil
import subprocess

import picture_of_study as pictures
import pytest
from board_files import circuit, farad, ohm
from conftest import ROOT

pytestmark = pytest.mark.slow

simulate = pictures.simulator()
simulate.run = functools.cache(simulate.run)  # tests and the picture look at the same runs
# the ramps; nothing but the capacitance on the rail
PURE = {ms: {"fall_time": f"{ms}m", "stop": f"{ms + 10}m", "leakage_off": 1e-6} for ms in (20, 100)}
ngspice = pytest.mark.skipif(
    shutil.which("ngspice") is None, reason="ngspice is not installed (apt-get install ngspice)"
)


def measures(rail="m2_3v3", **changes):
    return simulate.run("ramp", rail, **changes)[0]


def part(m, name, rail):
    return m[name] / simulate.values(rail)["voltage"]


# pulse.py imports what only the board has: its constants and word() stand before the first PIO program
HEAD = """
import sys
sys.path.insert(0, "firmware")
lines = open("firmware/pulse.py").read().split("@rp2")[0].split("\\n")
names = {"const": int}
exec("\\n".join(line for line in lines if not line.startswith(("import", "from"))), names)
class pulse:
    pass
for name in ("OPEN", "DISCHARGE", "SHORTEST", "word"):
    setattr(pulse, name, names[name])
sys.modules["pulse"] = pulse
import ramp
def cycles(w):
    return (w >> 2) + pulse.SHORTEST
"""
PULSES = """
at = 0
for w in ramp.words(FALL, TAU, DEAD, 125):
    if w & 3 == pulse.DISCHARGE:
        print(at, at + cycles(w))
    at += cycles(w)
"""
# every R C and fall that a command may ask for, in steps: each length between the shortest and the first gap
ALL = """
for tau in (ramp.LEAST_us, 17, 31, 32, 33, 63, 64, 65, 100, 220, 470, 1034, 2200, 4700, 10000, 44000, 200000):
    for times in (3, 4, 5, 7, 10, 22, 50, 100, 333, 1000):
        words = ramp.words(tau * times, tau, 50, 125)
        longest = max(cycles(w) for w in words)
        shortest = min(cycles(w) for w in words[:-1])
        apart = longest > tau * times * 125 // 7 + 50 * 125 or shortest < 2 * 125
        if apart or words[-1] & 3 != pulse.DISCHARGE or len(words) > 451:
            print(tau, times, shortest, longest, len(words))
"""


def firmware(micropython, script):
    done = subprocess.run([*micropython, "-c", HEAD + script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [tuple(map(int, line.split())) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("fall_us", "tau_us"), [(20_000, 1034), (100_000, 1034), (20_000, 4700), (100_000, 4700), (2000, 40), (60_000, 220)]
)
def test_the_simulated_pulses_are_those_of_the_firmware(micropython, fall_us, tau_us):
    script = PULSES.replace("FALL", str(fall_us)).replace("TAU", str(tau_us)).replace("DEAD", str(simulate.DEAD_us))
    *theirs, closed = [(start / 125, end / 125) for start, end in firmware(micropython, script)]
    *ours, last = simulate.pulses(fall_us, tau_us)
    assert len(theirs) == len(ours) + 1 > 16
    assert closed[0] == theirs[-1][1] and last[1] == math.inf  # the last pulse does not end
    for mine, real in zip(ours, theirs):
        assert real == pytest.approx(mine, abs=0.5)
    assert theirs[-1][0] == pytest.approx(last[0], abs=0.5)


def test_no_pulse_or_gap_of_the_firmware_is_too_short_or_endless(micropython):
    """A gap that the shrinking voltage leaves no room for must end the pulses, not wrap round to 8.6 s."""
    assert firmware(micropython, ALL) == []


def test_pulses_take_the_same_part_each_and_leave_gaps():
    *pulses, last = simulate.pulses(20_000, 1034)
    widths = {round(end - start, 6) for start, end in pulses}
    assert widths == {round(-1034 * math.log(1 - 1 / 32), 6)}
    gaps = [start - end for (_, end), (start, _) in zip(pulses, [*pulses[1:], last])]
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] >= simulate.SHORTEST_us
    assert pulses[0][0] >= simulate.DEAD_us


@ngspice
@pytest.mark.parametrize("rail", ["m2_3v3", "sata_12v"])
@pytest.mark.parametrize("ms", [20, 100])
def test_fall_is_a_line_to_one_step_of_it(rail, ms):
    v, m = simulate.values(rail), measures(rail, **PURE[ms])
    for name, left in (("at_quarter", 0.75), ("at_half", 0.5), ("at_three_quarters", 0.25)):
        assert part(m, name, rail) == pytest.approx(left, abs=1 / 32)
    # 80 % of the time from 90 to 10 %, or less where R C / T of the voltage is more than 10 %: the crowbar alone from
    # there
    tail = (v["crowbar"] + v["crowbar_fuse_ohm"]) * 470e-6 / (ms * 1e-3)
    line = 0.8 if tail < 0.1 else 0.9 - tail + tail * math.log(tail / 0.1)
    assert m["fall"] == pytest.approx(line * ms * 1e-3, rel=0.04)
    assert m["residual"] < 0.3


@ngspice
@pytest.mark.parametrize(("rail", "heat"), [("m2_3v3", 2.6e-3), ("sata_5v", 5.9e-3), ("sata_12v", 34e-3)])
def test_heat_is_the_capacitors_and_the_small_fet_gets_little_of_it(rail, heat):
    v, m = simulate.values(rail), measures(rail, **PURE[20])
    with_fuse = m["bar_heat"] * (1 + v["crowbar_fuse_ohm"] / v["crowbar"])
    assert with_fuse + m["q4_heat"] == pytest.approx(470e-6 * v["voltage"] ** 2 / 2, rel=0.05)
    assert m["bar_heat"] <= heat  # what hardware/README.md allows for one cut
    assert m["bar_peak"] <= v["voltage"] ** 2 / v["crowbar"]
    assert m["q4_heat"] < 0.03 * m["bar_heat"]


@ngspice
@pytest.mark.parametrize("rail", ["m2_3v3", "sata_5v", "sata_12v"])
def test_the_gate_is_faster_than_the_shortest_pulse(rail):
    m = measures(rail, **PURE[20])
    assert 0.5e-6 < m["gate_on"] < 1.3e-6
    assert 0.5e-6 < m["gate_off"] < 1.0e-6
    largest = measures(rail, small_fet_ciss=1.1e-9, small_fet_crss=6.5e-11, stop="5m")  # of an older data sheet
    assert largest["gate_on"] < simulate.SHORTEST_us * 1e-6


def pin_V(rows, sw, upper, lower, c_upper, c_lower):
    """The voltage behind the scope's divider, by its equation: (Cu + Cl) dv/dt = Cu dsw/dt + (sw - v)/Ru - v/Rl,
    implicit Euler."""
    (t0, before), v = (rows[0][0], rows[0][sw]), rows[0][sw] * lower / (upper + lower)
    seen = [v]
    for row in rows[1:]:
        dt, change = row[0] - t0, row[sw] - before
        v = (v + (c_upper * change + dt * row[sw] / upper) / (c_upper + c_lower)) / (
            1 + dt * (1 / upper + 1 / lower) / (c_upper + c_lower)
        )
        t0, before = row[0], row[sw]
        seen.append(v)
    return min(seen), max(seen)


@ngspice
@pytest.mark.parametrize("n", range(3))
@pytest.mark.parametrize("study", ["fall", "ramp"])
def test_a_cut_at_5_A_and_the_pulses_of_a_ramp_leave_the_adc_pin_whole(study, n):
    """The cable's current has nowhere to go when a switch opens: SW rings. Data sheets of RP2040 and RP2350: a pin
    bears -0.5 V to IOVDD + 0.5 V."""
    rail, _, _, divider = circuit.RAILS[n]
    v = simulate.values(rail)
    changes = (
        {"p_load": v["peak_current"] * v["voltage"], "stop": 0.01}
        if study == "fall"
        else {"stop": "8m", "leakage_off": 1e-6}
    )
    measured, names, rows = simulate.run(study, rail, **changes)
    sw = names.index("v(sw)")
    upper, lower, c_upper, c_lower = (ohm(word) if "p" not in word else farad(word) for word in divider)
    low, high = pin_V(rows, sw, upper, lower, c_upper, c_lower)
    assert -0.5 < low and high < v["logic"]
    assert max(row[sw] for row in rows) < v["fet_vds_max"]
    if study == "fall":  # the same divider, made flat for all frequencies, would hand the ringing on
        low, high = pin_V(rows, sw, upper, lower, c_lower * lower / upper, c_lower)
        assert low < -0.4 or high > v["logic"] + 0.5


@ngspice
def test_a_fast_crowbar_gate_throws_sw_to_three_times_the_rail():
    assert measures("m2_3v3", **PURE[20])["sw_max"] < 1.7 * 3.3
    assert measures("m2_3v3", crowbar_gate_resistor=100, stop="4m")["sw_max"] > 2.8 * 3.3


@ngspice
@pytest.mark.parametrize("rail", ["m2_3v3", "sata_12v"])
@pytest.mark.parametrize("crash", [PURE[20], {"crash": "8.01m", "stop": "25m"}])
def test_never_both_switches(rail, crash):
    """Also when the microcontroller is reset in the middle of a ramp; the rail then comes back softly."""
    v, m = simulate.values(rail), measures(rail, **crash)
    assert m["through"] < 0.1 * v["voltage"] / v["crowbar"]
    if "crash" in crash:
        assert m["residual"] == pytest.approx(v["voltage"], rel=0.01)
        assert m["inrush"] <= v["connector_limit"]


@ngspice
def test_the_committed_picture_is_what_the_study_gives():
    pictures.compare(simulate, "ramp")


@ngspice
def test_a_drive_at_work_and_a_wrong_capacitance_bend_the_line():
    assert part(measures(p_load=3, stop="12m"), "at_half", "m2_3v3") < 0.4
    assert part(measures(assumed="1e-3", stop="12m", leakage_off=1e-6), "at_half", "m2_3v3") == pytest.approx(
        0.5 ** (1000 / 470), abs=0.03
    )
    leaking = measures(fall_time="100m", stop="52m")  # 10 mA take 2 V in 100 ms from 470 uF
    assert part(leaking, "at_half", "m2_3v3") == pytest.approx(0.5 - 0.010 * 0.05 / 470e-6 / 3.3 * 0.6, abs=0.05)
