"""What the picture of a fall shows, against the SIMULATED supply's closed forms; what a start's samples show."""

import numpy as np
import pytest
from standins import STAND_INS, load

from ssdrig.powerloss import boot, fall
from ssdrig.reading import cuts

SUPPLY = load(STAND_INS / "supply.py", "supply")
T0_ns, STEP_ns, BEFORE = 10**12, 2000, 500
COUNT_V = 1.611328e-3


class Constant:
    def __init__(self, watts, volts):
        self.volts, self.amps = volts, watts / volts

    def window(self, t0, t1, t2):
        return self.amps, self.volts


def picture(watts, steps, after=6500, bulk_uF=470.0, uvlo_percent=80.0, noise=2.0):
    """A rail of 5 V at the gates' steps [(us, pins)]: (its picture, us at which the drive lost its supply)."""
    rail = SUPPLY.Supply(Constant(watts, 5.0), SUPPLY.Load(4.0, bulk_uF=bulk_uF, uvlo_percent=uvlo_percent))
    times, volts, down, steps = np.arange(-BEFORE, after) * STEP_ns + T0_ns, [], [], list(steps)
    for t in times:
        while True:
            due = rail.plan[0][0] if rail.plan else SUPPLY.NEVER
            asked = T0_ns + steps[0][0] * 1000 if steps else SUPPLY.NEVER
            if min(due, asked) > t:
                break
            if due <= asked:
                was = rail.powered
                rail.due()
                down += [(due - T0_ns) / 1000] if was and not rail.powered else []
            else:
                rail.gate(asked, steps.pop(0)[1])
        volts.append(rail.at(int(t))[1])
    counts = np.clip(
        np.rint(np.array(volts) / COUNT_V + noise * np.random.default_rng(1).standard_normal(len(volts))), 0, 4095
    )
    return {"t0_ns": int(times[0]), "dt_ns": STEP_ns, "volts": counts * COUNT_V}, down[0] if down else None


FLOAT, CROWBAR = [(0, 1)], [(0, 1), (50, 3)]


@pytest.mark.parametrize(("watts", "bulk_uF", "uvlo"), [(1.0, 470, 80), (2.5, 470, 80), (5.0, 100, 60), (0.3, 100, 90)])
def test_a_float_shows_its_knee(watts, bulk_uF, uvlo):
    seen, down_us = picture(watts, FLOAT, bulk_uF=bulk_uF, uvlo_percent=uvlo)
    figures = fall.of(seen, T0_ns, "float", bulk_uF=bulk_uF)
    assert figures.holdup_us == pytest.approx(down_us, rel=0.02, abs=3)
    assert figures.knee_uV == pytest.approx(5e6 * uvlo / 100, rel=0.005) and figures.before_uV == pytest.approx(
        5e6, rel=0.001
    )
    assert figures.drive_W == pytest.approx(watts, rel=0.02)
    assert figures.energy_J == pytest.approx(watts * (down_us - 10) * 1e-6, rel=0.03)
    assert figures.t90_10_us is None and "comes down to" in figures.why["t90_10_us"]


@pytest.mark.parametrize(("watts", "bulk_uF"), [(1.0, 470), (2.5, 470), (5.0, 470), (5.0, 1500)])
def test_a_crowbar_shows_its_knee_and_the_capacitance(watts, bulk_uF):
    seen, down_us = picture(watts, CROWBAR, bulk_uF=bulk_uF)
    figures = fall.of(seen, T0_ns, "crowbar", {"residual_mV": 31, "t90_10_us": 1}, 2.2)
    assert figures.holdup_us == pytest.approx(down_us, rel=0.05, abs=5)
    assert figures.capacitance_uF == pytest.approx(bulk_uF, rel=0.01) and figures.drive_W == pytest.approx(
        watts, rel=0.05
    )
    assert figures.residual_uV == 31_000 and figures.source == "picture" and figures.why == {}
    v = np.asarray(picture(watts, CROWBAR, bulk_uF=bulk_uF, noise=0)[0]["volts"])
    exact = float(np.diff([(v < share * 5).argmax() for share in (0.9, 0.1)])[0]) * STEP_ns / 1000
    assert figures.t90_10_us == pytest.approx(exact, rel=0.01)


def test_what_a_picture_does_not_show_is_none_with_a_reason():
    rail = {"residual_mV": 12, "t90_10_us": 15_000}
    for seen, shape, ohm, reason in (
        (None, "float", None, "no picture"),
        (picture(0.05, FLOAT)[0], "float", None, "no knee shows"),
        (picture(0.0, CROWBAR)[0], "crowbar", 2.2, "draws too little"),
        (picture(2.5, CROWBAR)[0], "ramp", 2.2, "pulses of the ramp"),
        (picture(2.5, [], after=900)[0], "float", None, "hardly falls"),
        (picture(2.5, CROWBAR, after=200)[0], "crowbar", 2.2, "end of the discharge"),
    ):
        figures = fall.of(seen, T0_ns, shape, rail, ohm)
        assert figures.holdup_us is figures.knee_uV is figures.energy_J is None
        assert reason in figures.why["holdup_us"] and {"knee_uV", "energy_J", "drive_W"} <= set(figures.why), reason
        assert figures.residual_uV == 12_000 and figures.t90_10_us is not None
        assert (figures.source == "readings") == (figures.t90_10_us == 15_000)
    late = {**picture(2.5, FLOAT)[0], "t0_ns": T0_ns}
    assert "begins too late" in fall.of(late, T0_ns, "float").why["holdup_us"]


def test_a_glitch_is_looked_at_until_power_returns():
    seen, down_us = picture(5.0, [(0, 1), (1500, 0)], bulk_uF=100)
    assert fall.of(seen, T0_ns, "glitch", back_us=1500).holdup_us == pytest.approx(down_us, abs=5)


def test_recharge_is_more_than_after_an_announced_shutdown():
    assert boot.recharge(1.5, [1.0, 1.1, 0.9])[:2] == (pytest.approx(0.5), pytest.approx(2 * 0.1 * (4 / 3) ** 0.5))
    assert boot.recharge(1.5, [1.0])[:2] == (0.5, None) and "no scatter" in boot.recharge(1.5, [1.0]).why
    assert boot.recharge(1.5, []).energy_J is boot.recharge(None, [1.0]).energy_J is None


def test_capacitors_that_age():
    numbers = list(range(1, 101))
    noise = np.random.default_rng(2).normal(0, 0.005, 100)
    recharge_J = [0.2 * (1 - 0.4 * (n - 1) / 99) + e for n, e in zip(numbers, noise)]
    recharge_J[5] = None
    health = boot.health(numbers, recharge_J)
    assert health.percent[0] == 100 and health.percent[-1] == pytest.approx(60, abs=2) and health.error_percent < 1
    assert boot.health([1, 2], [1.0, 1.0]) is boot.health([1, 2, 3], [-1.0, -1.0, -1.0]) is None


def test_the_volatile_window():
    chance = np.random.default_rng(3)
    age = chance.uniform(0, 200, 2000)
    window = cuts.cut_window(age, age < 52)
    assert window.window_ms == pytest.approx(52, abs=0.3) and window.wrong == 0 and 51 < window.longest_ms < 52
    window = cuts.cut_window(age, (age < 52) != (chance.random(2000) < 0.1))
    assert window.window_ms == pytest.approx(52, abs=3) and window.wrong == pytest.approx(0.1, abs=0.03)
    assert "no acknowledged write" in cuts.cut_window([1, 2], [False, False]).why
    assert cuts.cut_window([1, 2], [True, True])[:3] == (None, 2, None)
