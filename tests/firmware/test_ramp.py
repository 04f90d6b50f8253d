"""The ramp: its pulses against the closed form, on the SIMULATED rail, cycle by cycle through DMA and PIO, and what is
refused. With it what a cut's steps are, and that rails that are cut together move in the same cycle."""

import csv
import math
import re
import subprocess
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simboard import ROOT, interpreter
from standins import STAND_INS, Bench, MHz, firmware, load

FILES = firmware()
FALLS = st.integers(16, 20_000).flatmap(
    lambda tau: st.tuples(st.integers(3 * tau, min(1000 * tau, 2_000_000)), st.just(tau))
)


def lengths(words):
    """[(pins, us)] of all but the last word."""
    return [(w & 3, ((w >> 2) + FILES.pulse.SHORTEST) / MHz) for w in words[:-1]]


def fall_us(words, tau_us, level):
    """When exp(-t / tau) of the pulses has come down to `level`, in closed form."""
    t, left = 0.0, 1.0
    for pins, us in [*lengths(words), (3, math.inf)]:
        if pins == 3 and left * math.exp(-us / tau_us) <= level:
            return t + tau_us * math.log(left / level)
        left *= math.exp(-us / tau_us) if pins == 3 else 1
        t += us
    raise AssertionError("it never falls")


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(FALLS)
def test_the_pulses_follow_the_line(fall):
    t_us, tau = fall
    words = FILES.ramp.words(t_us, tau, 50, MHz)
    steps = lengths(words)
    assert [pins for pins, _ in steps] == [1, 3] * (len(steps) // 2) and words[-1] & 3 == 3
    assert len(words) <= 451 and steps[0][1] >= 50 and min(us for _, us in steps) >= 2
    first = t_us * (1 - math.exp(-steps[1][1] / tau)) - steps[1][1]
    late = max(0, steps[0][1] - first)  # the dead time may be longer than the first gap
    t, left = 0.0, 1.0
    for pins, us in steps:
        t += us
        left *= math.exp(-us / tau) if pins == 3 else 1
        if pins == 3:  # at the end of each pulse the voltage is on the line, to the rounding of w
            assert abs(left - (1 - t / t_us)) <= 0.01 + late / t_us
    assert tau * 0.7 < t_us - (t - late) or left < 0.01  # and the switch stays closed from R C before the end on


@pytest.mark.parametrize(
    "t_us, tau, wanted", [(50_000, 1034, 0.8), (10_340, 1034, 0.8), (1_000_000, 4700, 0.8), (500, 16, 0.8)]
)
def test_90_to_10_percent(t_us, tau, wanted):
    words = FILES.ramp.words(t_us, tau, 50, MHz)
    assert fall_us(words, tau, 0.1) - fall_us(words, tau, 0.9) == pytest.approx(wanted * t_us, rel=0.03)


def test_the_fastest_is_near_the_crowbar():
    """Three R C: the last third falls as by the crowbar, so 90 to 10 % take 2.9 R C instead of 2.2."""
    words = FILES.ramp.words(3000, 1000, 50, MHz)
    exact = (0.9 - 1 / 3) * 3000 + 1000 * math.log(1 / 3 / 0.1)
    assert (
        fall_us(words, 1000, 0.1) - fall_us(words, 1000, 0.9)
        == pytest.approx(exact, rel=0.02)
        == pytest.approx(2904, rel=0.001)
    )


def test_the_interpreters_own_machine_code_makes_the_same_words(tmp_path):
    """ramp.py as it is, viper and all, on MicroPython."""
    falls = [(3000, 1000), (48, 16), (2_000_000, 2000), (2_000_000, 20_000), (54_321, 123), (50_000, 1034)]
    script = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import ramp
for t, tau in {falls!r}:
    print(list(ramp.words(t, tau, 50, {MHz})))
"""
    (tmp_path / "pulse.py").write_text(
        "OPEN, DISCHARGE, SHORTEST = 1, 3, 4\ndef word(pins, cycles):\n    return pins | (cycles - SHORTEST) << 2\n"
    )
    (tmp_path / "ramp.py").write_text((ROOT / "firmware/ramp.py").read_text())
    done = subprocess.run([*interpreter(), "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines() == [str(list(FILES.ramp.words(t, tau, 50, MHz))) for t, tau in falls], done.stderr


def test_no_pulse_is_shorter_than_the_hardware_can_make():
    """hardware/values.csv: 100 Ohm into the gate of the discharge switch, and its two NAND gates; ten times that."""
    values = {
        (row["rail"], row["name"]): float(row["value"])
        for row in csv.DictReader(open(ROOT / "hardware/values.csv", newline=""))
    }
    gate_s = values["all", "gpio_resistor"] * values["all", "small_fet_ciss"] + values["all", "schmitt_delay"]
    assert FILES.ramp.SHORTEST_us * 1e-6 >= 10 * gate_s
    # with its fuse (2.0 + 0.17 or 0.28, 10 + 0.28 Ohm), or a breakout's resistor without one
    rails = [rail for rail, name in values if name == "crowbar"]
    most = {1000 * (values[rail, "crowbar"] + values[rail, "crowbar_fuse_ohm"]) for rail in rails}
    stated_mOhm = [
        int(mOhm) for mOhm in re.findall(r'"discharge_mOhm": (\d+)', (ROOT / "firmware/board.py").read_text())
    ]
    assert stated_mOhm and all(
        any(mOhm == pytest.approx(limit_mOhm, rel=0.05) for limit_mOhm in most) for mOhm in stated_mOhm
    )
    # what the crowbar study of hardware/spice allows
    most_J = 0.5 * values["sata_12v", "load_max"] * values["sata_12v", "voltage"] ** 2
    assert FILES.cut.PULSE_uJ == pytest.approx(1e6 * most_J)


# --- on the rail


def fallen(words, watts, bulk_uF, leak_mA=0.0, volts=5.0):
    """90 to 10 %, us, of the SIMULATED rail with 2.2 Ohm, by the pulses."""
    supply, reader = (load(STAND_INS / f"{name}.py", name) for name in ("supply", "feed_reader"))
    s = supply.Supply(
        reader.Constant(watts / volts, volts), supply.Load(4.0, bulk_uF=bulk_uF, leak_mA=leak_mA, gate_us=0)
    )
    t, events = 10**9, []

    def until(end):
        nonlocal t
        while s.plan and s.plan[0][0] <= end:
            s.due()
        for level in (0.9, 0.1)[len(events) :]:
            if s.at(end)[1] <= level * volts:
                low, high = t, end
                while high - low > 1000:
                    low, high = (
                        ((low + high) // 2, high)
                        if s.at((low + high) // 2)[1] > level * volts
                        else (low, (low + high) // 2)
                    )
                events.append(high)
        t = end

    for pins, us in lengths(words):
        s.gate(t, pins)
        until(t + round(us * 1000))
    s.gate(t, 3)
    until(t + 200_000_000)
    return (events[1] - events[0]) / 1000


def test_a_rail_that_is_as_said_falls_as_asked():
    assert fallen(FILES.ramp.words(50_000, 1034, 50, MHz), 0.0, 470) == pytest.approx(40_000, rel=0.03)


def test_half_the_capacitance_bends_the_line():
    """(1 - t / T)^2: 90 to 10 % in T (sqrt 0.9 - sqrt 0.1)."""
    exact = 50_000 * (math.sqrt(0.9) - math.sqrt(0.1))
    assert fallen(FILES.ramp.words(50_000, 1034, 50, MHz), 0.0, 235) == pytest.approx(exact, rel=0.04)


def test_a_drive_that_works():
    """5 W empty 470 uF from 4.5 V to the lock-out at 4 V in 0.2 ms, whatever the pulses do; these take away their
    shares of what is left, so that the line then goes from 4 V to nothing in T: 10 % of 5 V come at T (1 - 0.5 / 4)."""
    words = FILES.ramp.words(50_000, 1034, 50, MHz)
    took = fallen(words, 5.0, 470)
    assert took == pytest.approx(50_000 * (1 - 0.5 / 4) - 200, rel=0.02)
    assert fallen(words, 5.0, 470, leak_mA=10.0) < 0.93 * took


# --- through PIO and DMA


def run(steps, gates, ns, **more):
    """The Bench after a cut of `gates` at once, and the Pulse."""
    bench = Bench(FILES, **more)
    pulse = FILES.pulse.Pulse(gates, 22)
    pulse.load("", 0, 1000, steps)
    pulse.start()
    bench.wait(ns)
    return bench, pulse


def test_words_beyond_the_queue_come_without_a_gap():
    words = FILES.ramp.words(10_000, 1034, 50, MHz)
    bench, pulse = run([words], [10], 8_800_000)
    assert pulse.stepping()
    begun = bench.edges(10)
    assert not bench.wait(400_000) and not pulse.stepping()
    edges = bench.edges(10)
    assert edges[: len(begun)] == begun and [pins for _, pins in edges] == [
        w & 3 for w in words[:-1]
    ]  # the last one goes on
    at = edges[0][0]
    for (cycle, _), w in zip(edges, words):
        assert cycle == at
        at += (w >> 2) + FILES.pulse.SHORTEST


def test_a_ramp_that_is_stopped_lets_the_discharge_switch_go_first():
    bench, pulse = run([FILES.ramp.words(50_000, 1034, 50, MHz)], [10], 20_000_000)
    before = len(bench.moves)
    pulse.stop()
    moves = [(gpio, what) for _, gpio, what in bench.moves[before:] if what == "let go"]
    assert moves == [(11, "let go"), (10, "let go")]
    t = {gpio: t for t, gpio, what in bench.moves[before:] if what == "let go"}
    assert t[10] - t[11] >= 50_000 and bench.moves[-1][1:] == (22, 0)
    after = len(bench.moves)
    bench.wait(50_000_000)
    assert len(bench.moves) == after  # nothing goes on by itself
    pulse.load("", 0, 1000, [(FILES.pulse.word(1, 4),)])  # nor into the next cut
    pulse.start()
    bench.wait(50_000_000)
    assert [pins for _, pins in bench.edges(10)] == [1]


def test_rails_of_different_ramps_and_the_side_band_begin_in_one_cycle():
    slow, fast = FILES.ramp.words(50_000, 1034, 50, MHz), FILES.ramp.words(16_000, 4700, 50, MHz)
    bench, _ = run([slow, fast, (FILES.pulse.word(3, 4),)], [10, 12, 18], 60_000_000)
    first = bench.edges(10)[0]
    assert bench.edges(12)[0] == first and first[1] == 1
    assert bench.edges(18) == [(first[0], 3)] and bench.edges(22) == [(first[0], 1)]  # PERST# low, isolated; SYNC
    assert bench.edges(10)[-1][1] == bench.edges(12)[-1][1] == 3 and len(bench.edges(10)) > len(bench.edges(12))


@pytest.mark.parametrize("edge", ["", "rising", "falling"])
@pytest.mark.parametrize("profile", ["float", "crowbar", "glitch"])
def test_rails_move_in_the_same_cycle_whatever_starts_them(edge, profile):
    bench = Bench(
        FILES,
        [(t, 20, t // 5000 % 2) for t in range(5000, 60_000, 5000)]
        + [(400_000, 20, 0), (700_000, 20, 1), (900_000, 20, 0)],
    )
    pulse = FILES.pulse.Pulse([10, 12], 22)
    steps = cut(profile=profile, rails=[0, 1], **({"glitch_us": 30} if profile == "glitch" else {})).steps(MHz)
    pulse.load(edge, 20, 100_000, steps)
    began = bench.t
    pulse.start()
    bench.wait(3_000_000)
    assert pulse.fired()
    edges = bench.edges(10)
    assert (
        edges == bench.edges(12)
        and {pins for _, pins in edges} == {"float": {1}, "crowbar": {1, 3}, "glitch": {1, 0}}[profile]
    )
    assert pulse.after_start_ns() == pytest.approx(edges[0][0] * 8 - began, abs=40)
    if profile != "float":
        assert edges[1][0] - edges[0][0] == {"crowbar": 50, "glitch": 30}[profile] * MHz


# --- what is asked


def cut(volts_mV=5000, sideband=False, **how):
    """The Cut of a command for rails 0 (2.2 Ohm) and 1 (10 Ohm), or the words of its refusal."""
    watch = lambda rail: SimpleNamespace(
        rail=rail, v=volts_mV, mV=lambda raw: raw, sampler=SimpleNamespace(running=True)
    )
    rows = {
        0: {"gate": 10, "discharge_mOhm": 2200},
        1: {"gate": 12, "discharge_mOhm": 10_000},
        2: {"gate": 14, "discharge_mOhm": 2200},
        3: {"gate": 16, "discharge_mOhm": 2200},
    }
    how = {"token": 1, "rails": [0], "profile": "ramp", "when": {"now": True}, **how}
    clock = SimpleNamespace(update=lambda: None, wraps=0, ticks=0)
    try:
        return FILES.cut.Cut(how, rows, {n: watch(n) for n in rows}, clock, sideband)
    except FILES.cut.Refused as why:
        return str(why)


def test_a_ramp_of_two_rails():
    asked = cut(rails=[1, 0], fall_us=20_000, bulk_uF=[100, 470], off_ms=600)
    assert (asked.profile.fall_us, asked.profile.taus_us, asked.off_us) == (20_000, [1000, 1034], 600_000)
    one, other = asked.steps(MHz)
    assert list(one) == list(FILES.ramp.words(20_000, 1000, 50, MHz)) and list(other) == list(
        FILES.ramp.words(20_000, 1034, 50, MHz)
    )


@pytest.mark.parametrize(
    "how, words",
    [
        ({}, "fall_us and bulk_uF belong to ramp"),
        ({"fall_us": 50_000}, "fall_us and bulk_uF belong to ramp"),
        ({"bulk_uF": [470]}, "fall_us and bulk_uF belong to ramp"),
        ({"profile": "crowbar", "fall_us": 50_000, "bulk_uF": [470]}, "fall_us and bulk_uF belong to ramp"),
        ({"fall_us": 50_000, "bulk_uF": 470}, "a capacitance for each of the rails"),
        ({"fall_us": 50_000, "bulk_uF": [470, 470]}, "a capacitance for each of the rails"),
        ({"fall_us": 50_000, "bulk_uF": [True]}, "bulk_uF must be an integer from 1 to 20000"),
        ({"fall_us": 50_000, "bulk_uF": [20_001]}, "bulk_uF must be an integer from 1 to 20000"),
        ({"fall_us": 47, "bulk_uF": [470]}, "fall_us must be an integer from 48 to 2000000"),
        ({"fall_us": 2_000_001, "bulk_uF": [4700]}, "fall_us must be an integer from 48 to 2000000"),
        ({"fall_us": "1", "bulk_uF": [470]}, "fall_us must be"),
        (
            {"fall_us": 3101, "bulk_uF": [470]},
            "rail 0: 2200 mOhm x 470 uF = 1034 us; fall_us must be an integer from 3102 to 1034000",
        ),
        ({"fall_us": 5000, "bulk_uF": [7]}, "15 us; below 16 us its pulses are too short for the switch"),
        (
            {"fall_us": 50_000, "bulk_uF": [1001], "rails": [1], "volts_mV": 12_000},
            "at 12000 mV that is more than the 72 mJ of its resistor",
        ),
        ({"fall_us": 50_000, "bulk_uF": [470], "off_ms": 49}, "off_ms is shorter than the fall"),
        ({"fall_us": 50_000, "bulk_uF": [470], "glitch_us": 5}, "glitch_us belongs to glitch"),
        ({"profile": "float", "rails": [0, 1, 2, 3], "sideband": True}, "with the side-band, rails must be 3 at most"),
        ({"profile": "float", "when": {"edge": "rising", "gpio": 13, "timeout_ms": 1}}, "GPIO 13 is a gate"),
    ],
)
def test_what_is_refused(how, words):
    report = cut(**how)
    assert isinstance(report, str) and words in report


def test_what_just_goes():
    assert cut(fall_us=3102, bulk_uF=[470]).profile.taus_us == [1034]
    assert cut(fall_us=50_000, bulk_uF=[1000], rails=[1], volts_mV=12_000).profile.taus_us == [10_000]  # 72 mJ
    assert cut(profile="float", rails=[0, 1, 3], sideband=True).sideband
    assert cut(profile="float", rails=[0, 1, 2, 3]).rails == [0, 1, 2, 3]


@pytest.mark.parametrize("sideband", [False, True])
def test_the_steps_of_the_other_profiles(sideband):
    """A crowbar's first step opens the series switch, and the discharge switch comes after the dead time; a glitch
    never closes it and leaves the side-band alone."""
    words = lambda **how: [[(w & 3, (w >> 2) + 4) for w in steps] for steps in cut(sideband=sideband, **how).steps(MHz)]
    sealed = [[(3, 4)]] if sideband else []
    assert words(profile="crowbar", rails=[0, 1]) == [[(1, 50 * MHz), (3, 4)]] * 2 + sealed
    assert words(profile="float") == [[(1, 4)]] + sealed
    assert words(profile="glitch", glitch_us=100, rails=[0, 1]) == [[(1, 12500), (0, 4)]] * 2


def test_random_phases_are_uniform_and_the_same_for_the_same_seed():
    draw = FILES.cut.draw
    drawn = [draw(1000, 1999, seed) for seed in range(4000)]
    assert min(drawn) >= 1000 and max(drawn) <= 1999
    assert drawn == [draw(1000, 1999, seed) for seed in range(4000)]
    bins = [sum(1000 + 100 * k <= d < 1100 + 100 * k for d in drawn) for k in range(10)]
    assert sum((b - 400) ** 2 / 400 for b in bins) < 27.9  # chi square, 9 degrees of freedom, 0.1 %
