"""firmware/cut.py, its very source on CPython: each limit of a cut from both sides."""

import types

import numpy as np
import pytest
import vipersource

NOW_us = 1000


def cut_module():
    time = types.SimpleNamespace(ticks_us=lambda: NOW_us, ticks_add=lambda a, b: a + b)
    ramp = types.SimpleNamespace(FASTEST=2, SLOWEST=5, LEAST_us=100, words=lambda *a: ("ramp", *a))
    pulse = types.SimpleNamespace(DISCHARGE=4, MACHINES=4, ON=1, OPEN=0, SEALED=8, SHORTEST=7)
    pulse.word = lambda state, long: (state, long)
    machine = types.SimpleNamespace(freq=lambda: 125_000_000)
    return vipersource.load("cut", {}, {"time": time, "ramp": ramp, "pulse": pulse, "machine": machine})


CUT = cut_module()
ROWS = {rail: {"gate": 10 + 2 * rail, "discharge_mOhm": 1000} for rail in range(4)}


def watch(rail: int, running=True):
    sampler = types.SimpleNamespace(running=running)
    return types.SimpleNamespace(rail=rail, sampler=sampler, v=12_000, mV=lambda v: v)


def cut(sideband=False, watches=None, **how):
    how = {"token": 1, "rails": [0], "profile": "float", "when": {"now": True}} | how
    watches = watches or {rail: watch(rail) for rail in ROWS}
    clock = types.SimpleNamespace(update=lambda: None, wraps=1, ticks=NOW_us)
    return CUT.Cut(how, ROWS, watches, clock, sideband)


def taken(**how) -> bool:
    try:
        cut(**how)
    except CUT.Refused as error:
        assert str(error)
        return False
    return True


@pytest.mark.parametrize("name", ["off_ms", "residual_mV", "residual_ms"])
@pytest.mark.parametrize("share", ["least", "most"])
def test_numbers_of_a_cut(name, share):
    low, high = {"off_ms": (1, 500_000), "residual_mV": (1, 2000), "residual_ms": (1, 60_000)}[name]
    good, bad = (low, low - 1) if share == "least" else (high, high + 1)
    assert taken(**{name: good}) and not taken(**{name: bad}) and not taken(**{name: float(good)})
    assert not taken(**{name: True}) and not taken(**{name: str(good)})


def test_what_a_cut_says_by_itself():
    made = cut()
    assert (made.off_us, made.residual_mV, made.residual_us) == (None, 300, 500_000)
    assert (made.token, made.rails, made.profile.back_us, made.profile.fall_us) == (1, [0], 0, 0)
    assert (made.edge, made.gpio, made.turns, made.need, made.level, made.count_rail, made.at) == ("", *[0] * 5, None)
    assert (cut(off_ms=3).off_us, cut(residual_ms=2).residual_us) == (3000, 2000)


@pytest.mark.parametrize("rails", [None, [], [4], [0, 0], [True], "0", [0.0]])
def test_rails_that_are_none(rails):
    assert not taken(rails=rails) and taken(rails=[0, 3])


def test_what_a_cut_needs():
    assert not taken(more=1) and not taken(profile="other") and not taken(profile=None)
    assert not taken(watches={0: watch(0, running=False)})
    assert taken(rails=[0, 1, 2, 3]) and taken(rails=[0, 1, 2], sideband=True)
    assert not taken(rails=[0, 1, 2, 3], sideband=True)
    assert taken(rails=[0, 1, 2, 3], sideband=True, profile="glitch", glitch_us=5)


@pytest.mark.parametrize(
    ("how", "good"),
    [
        ({"profile": "glitch", "glitch_us": 1}, True),
        ({"profile": "glitch", "glitch_us": 0}, False),
        ({"profile": "glitch", "glitch_us": 1_000_000}, True),
        ({"profile": "glitch", "glitch_us": 1_000_001}, False),
        ({"profile": "glitch"}, False),
        ({"profile": "glitch", "glitch_us": 5, "off_ms": 5}, False),
        ({"glitch_us": 5}, False),
        *(
            ({"profile": "dips", "dips": n, "down_us": down, "up_us": up}, good)
            for n, down, up, good in (
                (2, 1, 1, True),
                (1, 1, 1, False),
                (200, 5000, 5000, True),
                (201, 1, 1, False),
                (2, 0, 1, False),
                (2, 1, 0, False),
                (2, 900_000, 200_000, True),
                (2, 900_000, 200_001, False),
                (2, 1.0, 1, False),
            )
        ),
        ({"profile": "dips", "dips": 2, "down_us": 5}, False),
        ({"profile": "dips", "dips": 2, "down_us": 5, "up_us": 5, "off_ms": 1}, False),
        ({"dips": 2}, False),
        ({"profile": "ramp"}, False),
        ({"profile": "ramp", "fall_us": 1000}, False),
        ({"profile": "ramp", "bulk_uF": [500]}, False),
        ({"bulk_uF": [500]}, False),
        ({"fall_us": 1000, "bulk_uF": [500]}, False),
        ({"profile": "ramp", "fall_us": 1000, "bulk_uF": [500]}, True),
        ({"profile": "ramp", "fall_us": 999, "bulk_uF": [500]}, False),
        ({"profile": "ramp", "fall_us": 2500, "bulk_uF": [500]}, True),
        ({"profile": "ramp", "fall_us": 2501, "bulk_uF": [500]}, False),
        ({"profile": "ramp", "fall_us": 1000, "bulk_uF": [500, 500]}, False),
        ({"profile": "ramp", "fall_us": 1000, "bulk_uF": 500}, False),
        ({"profile": "ramp", "fall_us": 200, "bulk_uF": [100]}, True),
        ({"profile": "ramp", "fall_us": 200, "bulk_uF": [99]}, False),
        ({"profile": "ramp", "fall_us": 2000, "bulk_uF": [1000]}, True),  # 72 mJ at 12 V
        ({"profile": "ramp", "fall_us": 2002, "bulk_uF": [1001]}, False),
        ({"profile": "ramp", "fall_us": 1000, "bulk_uF": [500], "off_ms": 1}, True),
        ({"profile": "ramp", "fall_us": 1001, "bulk_uF": [500], "off_ms": 1}, False),
    ],
)
def test_profiles(how, good):
    assert taken(**how) == good


def test_the_ramp_of_a_rail():
    made = cut(profile="ramp", fall_us=1500, bulk_uF=[500], rails=[1])
    assert (made.profile.fall_us, made.profile.taus_us) == (1500, [500])


WHEN_us = (1 << 30) + NOW_us


@pytest.mark.parametrize(
    ("when", "good"),
    [
        ({}, False),
        (None, False),
        ({"now": 1, "t_us": 1}, False),
        ({"t_us": WHEN_us + 2000}, True),
        ({"t_us": WHEN_us + 1999}, False),
        ({"t_us": WHEN_us + 500_000_000}, True),
        ({"t_us": WHEN_us + 500_000_001}, False),
        ({"random_us": [2000, 2000], "seed": 0}, True),
        ({"random_us": [1999, 2000], "seed": 0}, False),
        ({"random_us": [2001, 2000], "seed": 0}, False),
        ({"random_us": [2000, 500_000_000], "seed": 0x7FFFFFFF}, True),
        ({"random_us": [2000, 500_000_001], "seed": 0}, False),
        ({"random_us": [2000, 3000], "seed": 0x80000000}, False),
        ({"random_us": [2000, 3000], "seed": -1}, False),
        ({"random_us": [2000], "seed": 0}, False),
        ({"random_us": 2000, "seed": 0}, False),
        *(
            ({"samples": n, "above_raw": raw, "rail": rail}, good)
            for n, raw, rail, good in (
                (1, 0, 0, True),
                (0, 0, 0, False),
                (1_000_000, 0, 3, True),
                (1_000_001, 0, 0, False),
                (1, -(1 << 19), 0, True),
                (1, -(1 << 19) - 1, 0, False),
                (1, 1 << 19, 0, True),
                (1, (1 << 19) + 1, 0, False),
                (1, 0, 4, False),
                (1, 0, -1, False),
            )
        ),
        *(
            ({"samples": 1, "below_raw": 5, "rail": 0, "after_us": span, "seed": 1}, good)
            for span, good in (
                ([1, 5_000_000], True),
                ([0, 1], False),
                ([1, 5_000_001], False),
                ([2, 1], False),
                ([1], False),
                (1, False),
            )
        ),
        ({"samples": 1, "below_raw": -(1 << 19), "rail": 0}, True),
        ({"samples": 1, "below_raw": 1 << 20, "rail": 0}, False),
        ({"samples": 1, "below_raw": 1, "above_raw": 1, "rail": 0}, False),
        ({"samples": 1, "above_raw": 1, "rail": 0, "after_us": [1, 1]}, False),
        ({"samples": 1, "above_raw": 1, "rail": 0, "seed": 1}, False),
        ({"samples": 1, "above_raw": 1, "rail": 0, "after_us": [1, 1], "seed": -1}, False),
        ({"t_us": WHEN_us + 2000, "after_us": [1, 1], "seed": 1}, False),
        ({"samples": 1, "above_raw": 1, "rail": 0, "crosses": True}, True),
        ({"samples": 1, "below_raw": 1, "rail": 0, "crosses": False, "after_us": [1, 1], "seed": 1}, True),
        ({"samples": 1, "above_raw": 1, "rail": 0, "crosses": 1}, False),
        ({"samples": 1, "above_raw": 1, "rail": 0, "crosses": None}, False),
        ({"t_us": WHEN_us + 2000, "crosses": True}, False),
        ({"samples": 1, "above_raw": 1, "rail": 0, "nth": 1_000_000}, True),
        *(({"samples": 1, "above_raw": 1, "rail": 0, "nth": nth}, False) for nth in (0, 1_000_001, None, True, 1.0)),
        ({"t_us": WHEN_us + 2000, "nth": 1}, False),
        *(
            ({"edge": edge, "gpio": gpio, "timeout_ms": ms}, good)
            for edge, gpio, ms, good in (
                ("rising", 0, 1, True),
                ("falling", 29, 60_000, True),
                ("both", 0, 1, False),
                ("rising", -1, 1, False),
                ("rising", 30, 1, False),
                ("rising", 10, 1, False),
                ("rising", 11, 1, False),
                ("rising", 18, 1, True),
                ("rising", 0, 0, False),
                ("rising", 0, 60_001, False),
            )
        ),
    ],
)
def test_triggers(when, good):
    assert taken(when=when) == good


def test_what_a_trigger_makes():
    assert cut(when={"t_us": WHEN_us + 5000}).at == NOW_us + 5000
    assert cut(when={"random_us": [3000, 3000], "seed": 5}).at == NOW_us + 3000
    made = cut(when={"samples": 5, "above_raw": -7, "rail": 2})
    assert (made.need, made.level, made.below, made.count_rail, made.delay_us) == (5, -7, False, 2, 0)
    assert made.nth == 1 and cut(when={"samples": 5, "above_raw": -7, "rail": 2, "nth": 9}).nth == 9
    assert not made.crosses and cut(when={"samples": 5, "above_raw": -7, "rail": 2, "crosses": True}).crosses
    after = {"after_us": [10, 1009], "seed": 1}
    made = cut(when={"samples": 5, "below_raw": 7, "rail": 0, **after})
    assert (made.level, made.below, made.delay_us) == (7, True, CUT.draw(10, 1009, 1))
    made = cut(when={"edge": "rising", "gpio": 3, "timeout_ms": 6})
    assert (made.edge, made.gpio, made.turns) == ("rising", 3, 6 * 125_000 // 3)


def test_a_draw_is_worked_by_hand():
    seed = 1 + 0x9E3779B9
    seed = (seed ^ seed // 2**16) * 0x7FEB352D % 2**32
    seed = (seed ^ seed // 2**15) * 0x846CA68B % 2**32
    seed ^= seed // 2**16
    assert CUT.draw(10, 1009, 1) == 10 + seed * 1000 // 2**32
    assert {CUT.draw(0, 1, s) for s in range(50)} == {0, 1} and CUT.draw(7, 7, 3) == 7
    assert all(0 <= CUT.draw(0, 9, s) <= 9 for s in (0, 2**30, 2**31 - 1))


def test_neighbouring_seeds_draw_unlike_numbers():
    drawn = np.array([CUT.draw(0, 1000, seed) for seed in range(1000)])
    for apart in range(1, 6):
        assert abs(np.corrcoef(drawn[:-apart], drawn[apart:])[0, 1]) < 0.1
    tenths = np.bincount(drawn * 10 // 1001)
    assert len(tenths) == 10 and ((tenths - 100) ** 2 / 100).sum() < 27.9  # chi square, 9 degrees of freedom, 0.1 %


@pytest.mark.parametrize(
    ("how", "steps"),
    [
        ({}, [((0, 7),)] * 2),
        ({"profile": "crowbar"}, [((0, 500), (4, 7))] * 2),
        ({"profile": "glitch", "glitch_us": 3}, [((0, 30), (1, 7))] * 2),
        ({"profile": "ramp", "fall_us": 1000, "bulk_uF": [500, 400]}, [("ramp", 1000, t, 50, 10) for t in (500, 400)]),
    ],
)
def test_the_words_of_each_rail_and_of_the_side_band(how, steps):
    assert cut(rails=[0, 1], **how).steps(10) == steps
    with_sideband = cut(rails=[0, 1], sideband=True, **how).steps(10)
    assert with_sideband == (steps if how.get("profile") == "glitch" else [*steps, ((8, 7),)])
