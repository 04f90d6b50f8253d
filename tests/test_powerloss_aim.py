"""Aims: from a seed to the plan of a cut, and where it came to lie."""

import numpy as np
import pytest

from ssdrig.errors import UsageError
from ssdrig.powerloss import aim
from ssdrig.powerloss.history import FLUSH, FUA, NEVER, ROW, TRIM, WRITE

BEGIN, END = 10**12, 10**12 + 5 * 10**9
LEARNT = aim.Thresholds(0.1, 0.01, 0.14, 0.5, 0.05, 0.7, 0.1)


def plans(text, n=200, seed=7):
    return [aim.plan(aim.parse(text), seed, k, BEGIN, END, LEARNT) for k in range(n)]


def test_words_of_an_aim():
    assert aim.parse("random") == ("random", None, None) and aim.parse("flush") == ("flush", -2, 2)
    assert aim.parse("age:0..500") == ("age", 0, 500) and aim.parse("bytes:8") == ("bytes", 8, 8)
    for bad in ("", "Flush", "random:1..2", "flush:2..-2", "flush:x", "age:-1..2", "recovery:0..1", "flush:nan..nan"):
        with pytest.raises(UsageError):
            aim.parse(bad)


@pytest.mark.parametrize("name", [*aim.RANGES, *aim.PLAIN])
def test_the_same_seed_makes_the_same_plan_and_another_number_another_one(name):
    assert plans(name, 20) == plans(name, 20) and len(set(plans(name, 20))) == 20
    assert plans(name, 5) != plans(name, 5, seed=8)


def test_a_cut_lies_anywhere_in_the_phase():
    times = np.array([p.cut_ns for p in plans("random")])
    assert times.min() >= BEGIN and times.max() <= END
    assert aim.bins(times, BEGIN, END, 10).min() >= 8


@pytest.mark.parametrize(("name", "kind", "flags"), [("flush", FLUSH, 0), ("fua", WRITE, FUA), ("trim", TRIM, 0)])
def test_a_command_is_moved_to_the_cut_and_the_sweep_leaves_no_hole(name, kind, flags):
    made = plans(f"{name}:-2..2")
    assert {(p.kind, p.flags) for p in made} == {(kind, flags)}
    assert all(p.cut_ns - p.submit_ns == pytest.approx(p.delta_us * 1000, abs=1) for p in made)
    for n, count in ((40, 20), (200, 100)):
        assert aim.bins([p.delta_us for p in made[:n]], -2000, 2000, count).min() >= 1


def test_silence_before_the_cut():
    for made in plans("age:0..1000", 50):
        assert made.kind == 0 and BEGIN <= made.submit_ns <= END and made.silence_ns == NEVER
        assert 0 <= made.cut_ns - made.submit_ns <= 10**9


def test_what_the_board_or_the_count_of_bytes_decides():
    burst, quiet = plans("burst", 1)[0], plans("quiet", 1)[0]
    assert (burst.cut_ns, quiet.cut_ns) == (None, None) and (burst.above_A, quiet.above_A) == (0.7, 0.14)
    assert quiet.arm_ns - quiet.submit_ns == 10**9 and quiet.kind == 0 and burst.submit_ns is None
    assert aim.when(burst, None, 1e-5, 1, 2**40 + 3) == {
        "samples": 2,
        "above_raw": 70_000,
        "rail": 1,
        "after_us": [1, 20_000],
        "seed": 3,
    }
    assert plans("bytes:4..4", 1)[0].unflushed_bytes == 4 << 20 and aim.when(plans("bytes", 1)[0], None, 1, 0, 0) == {
        "now": True
    }
    assert aim.when(plans("random", 1)[0], lambda t_ns: t_ns // 1000, 1, 0, 0) == {
        "t_us": plans("random", 1)[0].cut_ns // 1000
    }
    assert all(5000 <= p.second_us <= 2_000_000 for p in plans("recovery", 20))
    with pytest.raises(ValueError, match="thresholds"):
        aim.plan(aim.parse("burst"), 1, 1, BEGIN, END)


def rows(*given):
    """(kind, flags, submit_us, done_us or None, status)"""
    found = np.zeros(len(given), ROW)
    for row, (kind, flags, submit, done, status) in zip(found, given):
        row["kind"], row["flags"], row["submit_ns"], row["status"] = kind, flags, submit * 1000, status
        row["done_ns"] = NEVER if done is None else done * 1000
    return found


def test_where_a_cut_came_to_lie():
    history = rows(
        (FLUSH, 0, 100, 900, 0), (WRITE, FUA, 1900, 1950, 0), (FLUSH, 0, 1500, 1800, 0), (FLUSH, 0, 5000, None, 0)
    )
    at = lambda us, kind=FLUSH, flags=0, **how: aim.actual(history, kind, flags, us * 1000, 200_000, **how)
    assert at(2000) == (500, 200, 200) and at(1700) == (200, -100, 200)
    assert at(4800) == (-200, None, 200) and at(2000, WRITE, FUA) == (100, 50, 200)
    assert at(2000, on_ns=1_700_000) == (500, None, 200) and at(2000, TRIM) is None
    history["status"] = -5
    assert at(2000).ack_us is None


def test_a_command_that_was_to_follow_the_cut_counts_as_if_it_had():
    history = rows((FLUSH, 0, 100, 900, 0), (FLUSH, 0, 1500, None, 0))
    history["seq"] = 1, 2
    made = plans("flush", 1)[0]._replace(submit_ns=3_000_000)
    at = lambda seq, us: aim.reached(made, history, seq, us * 1000, 100_000, NEVER)
    assert at(1, 1000) == (900, 100, 100) and at(2, 1000) == (-500, None, 100)
    assert at(None, 2000) == (-1000, None, 100) and at(None, 3050).delta_us == 50 and at(None, 3200) is None


def test_silence_is_reached_from_the_last_command_on_and_some_plans_have_no_distance():
    history = rows((WRITE, 0, 100, 900, 0), (FLUSH, 0, 1500, None, 0))
    quiet, silent = plans("quiet", 1)[0], plans("age", 1)[0]
    at = lambda made, found=history: aim.reached(made, found, None, 4_000_000, 100_000, NEVER)
    assert at(silent) == (2500, None, 100) and at(silent, history[:0]) is None
    assert at(quiet) is None and at(plans("random", 1)[0]) is None


def test_thresholds_are_of_what_is_no_burst():
    chance = np.random.default_rng(1)
    idle, load = chance.normal(0.1, 0.01, 5000), chance.normal(0.5, 0.02, 5000)
    load[::4] += 0.3  # a quarter of the time
    said = aim.learn(idle, load)
    assert said.quiet_A == pytest.approx(0.14, abs=0.003) and said.burst_A == pytest.approx(0.58, abs=0.005)
    assert said.burst_share == pytest.approx(0.25, abs=0.005) and np.mean(idle > said.quiet_A) < 0.001
    for bad in ([], [1.0], [1.0, float("nan")]):
        with pytest.raises(ValueError, match="samples"):
            aim.learn(idle, bad)


def test_a_drive_that_is_awake_before_it_sleeps_is_in_no_burst():
    """After 2 s of 10 it sleeps; while it is awake it works for 0.3 s. A cut at its bursts fired at its being awake."""
    chance = np.random.default_rng(1)
    idle = np.concatenate([chance.normal(0.1, 0.002, 2000), chance.normal(0.01, 0.0003, 8000)])
    idle[500:800] = chance.normal(0.3, 0.01, 300)
    said = aim.learn(idle, chance.normal(0.5, 0.02, 5000))
    assert said.idle_A == pytest.approx(0.1, abs=0.002) and said.quiet_A == pytest.approx(0.108, abs=0.003)
