"""run/course.py: what is left of a run, as a range."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from ssdrig.plan import cost
from ssdrig.plan.expand import Act, Repeat
from ssdrig.plan.kinds import speeds
from ssdrig.run.budget import Budget
from ssdrig.run.course import Course, range_words

DRIVE = {"interface": "SATA", "capacity_bytes": 10**12, "time_dilation": 1}
KEYS = {"pattern": "random", "read": 0, "block": ((4096, 100.0),), "qd": 32, "threads": 1}
ROUNDS = Repeat("rounds", 5, 25, (), "round")


def load(path, time_s, repeat=None, **more):
    return Act(path, "load", {**KEYS, "time": time_s, **more}, {"n": path}, repeat, 10**12)


FILL = Act("fill", "fill", {"block": 131072, "qd": 32, "threads": 1}, range_bytes=10**12, amount_bytes=10**12)
ACTS = [FILL, load("rounds/a", 60.0, ROUNDS), load("rounds/b", 40.0, ROUNDS, read=75), load("last", 100.0)]
START_S, READING_S = cost.JOB_S, speeds.READING_S


def course(earlier=None, k=1):
    return Course(ACTS, {**DRIVE, "time_dilation": k}, earlier or {}, Budget(None))


def near(least, most, jobs=(1, 1), rounds=(0, 0)):
    """So many seconds, the fio jobs' own time, and the SMART readings before the rounds."""
    added = [n * start_s + m * s for n, start_s, m, s in zip(jobs, START_S, rounds, READING_S)]
    return pytest.approx((least + added[0], most + added[1]))


def test_the_whole_run_is_the_dry_runs_range_before_it_begins():
    made, whole = course(), cost.total(ACTS, DRIVE)
    made.begin(FILL)
    assert made.left_s(0, 0.0) == pytest.approx(whole.time_s)


def test_rounds_are_a_range_until_the_last_one():
    made = course()
    made.begin(ACTS[1], 3)
    assert made.left_s(10) == near(50 + 40 + 2 * 100 + 100, 50 + 40 + 22 * 100 + 100, (2 + 4 + 1, 2 + 44 + 1), (2, 22))
    made.begin(ACTS[2], 7)  # the fewest have been
    assert made.left_s(0) == near(40 + 100, 40 + 18 * 100 + 100, (2, 38), (0, 18))
    made.begin(ACTS[2], 25)
    assert made.left_s(30) == near(10 + 100, 10 + 100, (2, 2))
    made.begin(ACTS[3])
    assert made.left_s(99) == near(1, 1)
    assert made.left_s(200) == (0, 0)


def test_an_act_at_a_picked_point_has_the_others_behind_it():
    made, placed = course(), replace(ACTS[1], keys={**KEYS, "time": 60.0, "qd": 1})
    made.begin(placed, 25)
    assert made.left_s(0) == near(60 + 40 + 100, 60 + 40 + 100, (3, 3))


def test_a_run_that_was_resumed_counts_from_its_first_round():
    repeat = Repeat("rounds", 5, 19, (), "round", first=7)
    acts = [load("rounds/a", 60.0, repeat)]
    made = Course(acts, DRIVE, {}, Budget(None))
    made.begin(acts[0], 7)
    assert made.left_s(0) == near(60 + 4 * 60, 60 + 18 * 60, (5, 19), (4, 18))


def test_what_is_ended_by_bytes_goes_on_as_fast_as_it_went():
    made = course()
    made.begin(FILL)
    behind = near(5 * 100 + 100, 25 * 100 + 100, (11, 51), (5, 25))
    rest = made.left_s(900, 0.25)
    assert (rest[0] - 2700, rest[1] - 2700) == behind
    least, most = made.left_s(1, 0.01)  # too early to say
    assert most - least > 2000


def test_what_an_act_took_prices_the_next_one():
    made = course()
    made.begin(ACTS[1], 1)
    made.end(FILL, 3000.0, 10**12)
    made.begin(FILL)
    assert made._present.time_s == pytest.approx((2700.1, 3301.0))


def test_a_reading_and_a_purge_of_this_run_price_the_next_ones():
    purge = Act("purge", "purge", {"method": "auto"})
    made = Course([purge, *ACTS[1:3]], DRIVE, {}, Budget(None))
    made.begin(purge)
    jobs, rounds = (10, 50), (5, 25)
    assert made.left_s(0) == near(5 * 100 + 0.1, 25 * 100 + 600, jobs, rounds)  # no drive says it in advance
    assert made.left_s(30) == near(5 * 100, 25 * 100 + 570, jobs, rounds)
    made.read(0.4)
    made.end(purge, 50.0, 0)
    made.begin(ACTS[1], 1)
    assert made.left_s(0) == near(500 + 4 * 0.2, 2500 + 24 * 0.8, jobs)


def test_a_budget_may_end_the_run_sooner():
    """At the boundary of an act: with 1.35 to 1.65 GB a round and 4.2 GB left in the third or the fourth round. An act
    that says what it writes is not begun where that is too much."""
    known = {ACTS[1].label: (60.0, 1.5e9), ACTS[2].label: (40.0, 0)}
    made = Course(ACTS[1:], DRIVE, known, Budget(10**10, 10**10 - 42 * 10**8))
    made.begin(ACTS[1], 1)
    assert made.left_s(0) == near(3 * 60 + 2 * 40, 4 * 66 + 3 * 44, (5, 7), (2, 3))
    free = Course(ACTS, DRIVE, {}, Budget(None)).whole_s()
    assert Course(ACTS, DRIVE, {}, Budget(10**15)).whole_s() == pytest.approx(free)
    least, most = Course(ACTS, DRIVE, {}, Budget(10**12 + 5 * 10**10)).whole_s()
    assert least < free[0] - 200 and most == pytest.approx(free[1])  # at its slowest it does not write so much
    assert Course([FILL, FILL], DRIVE, {}, Budget(10**12 + 1)).whole_s() == pytest.approx(cost.of(FILL, DRIVE).time_s)


def test_dilated_seconds_are_the_hosts():
    made = course(k=4)
    made.begin(ACTS[3])
    assert made.left_s(200) == pytest.approx((4 * 50 + 0.1, 4 * 50 + 1.0))


def test_bytes_written_are_counted_with_those_of_the_act_in_work():
    made = Course(ACTS, DRIVE, {}, Budget(5 * 10**12))
    made.begin(FILL)
    assert made.written_words(4 * 10**11) == "wrote 400 GB of 5.00 TB"
    made.budget.wrote(FILL, 10**12)
    made.begin(ACTS[2], 1)
    assert made.written_bytes(10**12) == 10**12 + 25 * 10**10  # 75 % of it was read
    assert course().written_words() == "wrote 0 B"


def test_a_range_is_one_time_where_both_ends_read_alike():
    assert range_words((130, 67200)) == "2:10…18:40:00"
    assert range_words((129.6, 130.4)) == "2:10"


def test_what_comes_behind_the_run_is_in_what_is_left():
    made = Course(ACTS, {**DRIVE, "time_dilation": 10}, {}, Budget(None), (7.0, 700.0))
    made.begin(ACTS[3])
    assert made.left_s(2000) == (7, 700)


# ---- a fixed amount that a time may end, after an earlier run of it

AMOUNT = 4096 * 600_000


def amount_cost(earlier, interface="SATA", read=0, longest_s=60.0):
    entry = SimpleNamespace(time_s=longest_s, rule=None, cliff=None, written=None)
    keys = {**KEYS, "read": read, "until": (entry,)}
    act = Act("a", "load", keys, {}, range_bytes=10**12, amount_bytes=AMOUNT)
    return cost.of(act, {**DRIVE, "interface": interface}, earlier)


@pytest.mark.parametrize("interface", ["SATA", speeds.VIRTUAL])
def test_an_amount_that_was_reached_is_expected_again(interface):
    assert amount_cost({}, interface).written_bytes[0] < AMOUNT / 2
    assert amount_cost({"a": (8.0, AMOUNT)}, interface).written_bytes == (AMOUNT, AMOUNT)


def test_an_amount_that_its_time_ended_is_expected_within_a_spread():
    assert amount_cost({"a": (60.0, AMOUNT / 2)}).written_bytes == (0.9 * AMOUNT / 2, AMOUNT)
    assert amount_cost({"a": (58.0, AMOUNT)}).written_bytes == (0.9 * AMOUNT, AMOUNT)


def test_a_mix_of_a_reached_amount_writes_as_it_is_drawn():
    least, most = amount_cost({"a": (8.0, AMOUNT)}, read=55).written_bytes
    assert 0.97 * 0.45 * AMOUNT < least < 0.45 * AMOUNT < most < 1.03 * 0.45 * AMOUNT


def test_random_writes_of_large_blocks_may_be_slower_than_sequential_ones():
    large = load("large", 10.0, block=((1 << 20, 100.0),))
    assert cost.of(large, DRIVE).written_bytes[0] == pytest.approx(10 * 150e6 / 4)
    assert cost.of(replace(large, keys={**large.keys, "pattern": "sequential"}), DRIVE).written_bytes[0] > 1e9
