"""Aims: from a seed to the plan of a cut, and where it came to lie."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from ssdrig.base.errors import UsageError
from ssdrig.plan.kinds import cut_aims
from ssdrig.plan.kinds.cut_schedule import NO_CUT, Cut
from ssdrig.powerloss import aim, campaign, layout
from ssdrig.powerloss.history import FLUSH, FUA, NEVER, ROW, TRIM, WRITE
from ssdrig.virtual.flash.commands import WRITE as WRITES
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.feed import BIN_NS, BINS
from ssdrig.virtual.flash.presets import NVME_TLC_SLC

BEGIN, END = 10**12, 10**12 + 5 * 10**9
LEARNT = aim.Thresholds(0.1, 0.01, 0.14, 0.5, 0.05, 0.7, 0.1)


def plans(text, n=200, seed=7):
    return [aim.plan(cut_aims.parse(text), seed, k, BEGIN, END, LEARNT) for k in range(n)]


def test_words_of_an_aim():
    assert cut_aims.parse("random") == ("random", None, None) and cut_aims.parse("flush") == ("flush", -2, 2)
    assert cut_aims.parse("age:0..500") == ("age", 0, 500) and cut_aims.parse("bytes:8") == ("bytes", 8, 8)
    for bad in ("", "Flush", "random:1..2", "flush:2..-2", "flush:x", "age:-1..2", "recovery:0..1", "flush:nan..nan"):
        with pytest.raises(UsageError):
            cut_aims.parse(bad)


@pytest.mark.parametrize("name", [*cut_aims.RANGES, *cut_aims.PLAIN])
def test_the_same_seed_makes_the_same_plan_and_another_number_another_one(name):
    assert plans(name, 20) == plans(name, 20) and len(set(plans(name, 20))) == 20
    assert plans(name, 5) != plans(name, 5, seed=8)


def test_a_cut_lies_anywhere_in_the_phase():
    times = np.array([p.cut_ns for p in plans("random")])
    assert times.min() >= BEGIN and times.max() <= END
    assert np.histogram(times, 10, (BEGIN, END))[0].min() >= 8


@pytest.mark.parametrize(("name", "kind", "flags"), [("flush", FLUSH, 0), ("fua", WRITE, FUA), ("trim", TRIM, 0)])
def test_a_command_is_moved_to_the_cut_and_the_sweep_leaves_no_hole(name, kind, flags):
    made = plans(f"{name}:-2..2")
    assert {(p.kind, p.flags) for p in made} == {(kind, flags)}
    assert all(p.cut_ns - p.submit_ns == pytest.approx(p.delta_us * 1000, abs=1) for p in made)
    for n, count in ((40, 20), (200, 100)):
        assert np.histogram([p.delta_us for p in made[:n]], count, (-2000, 2000))[0].min() >= 1


@pytest.mark.parametrize(
    ("text", "record", "value", "is_hit"),
    [
        ("bytes:8..64", {"unflushed_bytes": 9 << 20}, 9, True),
        ("bytes:8..64", {"unflushed_bytes": 450_000}, 0.429, False),
        ("bytes:8..64", {"unflushed_bytes": 79 << 20}, 79, True),  # what was under way is in it
        ("bytes:8..64", {"unflushed_bytes": 81 << 20}, 81, False),
        ("flush:-2..2", {"delta_us": 2400.0, "delta_bound_us": 10}, 2.4, True),
        ("flush:-2..2", {"delta_us": -2700.0, "delta_bound_us": 10}, -2.7, False),
        ("flush:-2..2", {"delta_us": -2700.0, "delta_bound_us": 300}, -2.7, True),
    ],
)
def test_where_a_cut_came_to_lie_and_whether_that_is_its_aim(text, record, value, is_hit):
    achieved = aim.achieved(cut_aims.parse(text), record)
    assert achieved is not None and achieved[0] == pytest.approx(value, abs=1e-3)
    assert aim.hit(cut_aims.parse(text), *achieved) == is_hit


@pytest.mark.parametrize("text", ["random", "burst", "recovery:5..10", "bytes:8..64", "flush"])
def test_where_a_cut_came_to_lie_is_not_known(text):
    assert (
        aim.achieved(cut_aims.parse(text), {"unflushed_bytes": None, "delta_us": 1.0, "delta_bound_us": None}) is None
    )


def test_a_power_cycle_without_a_write_is_silent_from_its_start():
    made = aim.plan(cut_aims.parse("again"), 1, 3, 100, 900)
    assert 100 <= made.cut_ns <= 900 and (made.submit_ns, made.kind, made.delta_us) == (0, 0, None)
    assert made.silence_ns == NEVER


def test_silence_before_the_cut():
    for made in plans("age:0..1000", 50):
        assert made.kind == 0 and BEGIN <= made.submit_ns <= END and made.silence_ns == NEVER
        assert 0 <= made.cut_ns - made.submit_ns <= 10**9


def test_what_the_board_or_the_count_of_bytes_decides():
    burst, quiet = plans("burst", 1)[0], plans("quiet", 1)[0]
    assert (burst.cut_ns, quiet.cut_ns) == (None, None) and (burst.above_A, quiet.above_A) == (0.7, 0.14)
    assert quiet.arm_ns - quiet.submit_ns == 10**9 and quiet.kind == 0 and burst.submit_ns is None
    assert aim.when(burst, None, 1e-5, 1, 2**40 + 3) == {
        "samples": 8,
        "above_raw": 70_000,
        "rail": 1,
        "nth": burst.nth,
        "after_us": [1, 1000],
        "crosses": True,
        "seed": 3,
    }
    assert "crosses" not in aim.when(quiet, None, 1e-5, 1, 3)
    assert plans("bytes:4..4", 1)[0].unflushed_bytes == 4 << 20 and aim.when(plans("bytes", 1)[0], None, 1, 0, 0) == {
        "now": True
    }
    assert aim.when(plans("random", 1)[0], lambda t_ns: t_ns // 1000, 1, 0, 0) == {
        "t_us": plans("random", 1)[0].cut_ns // 1000
    }
    assert {p.nth for p in plans("burst")} == {p.nth for p in plans("quiet")} == set(range(1, 13))
    assert all(5000 <= p.second_us <= 2_000_000 for p in plans("recovery", 20))
    with pytest.raises(ValueError, match="thresholds"):
        aim.plan(cut_aims.parse("burst"), 1, 1, BEGIN, END)


def rows(*given):
    """(kind, flags, submit_us, done_us or None, status)"""
    rows_ = np.zeros(len(given), ROW)
    for row, (kind, flags, submit, done, status) in zip(rows_, given):
        row["kind"], row["flags"], row["submit_ns"], row["status"] = kind, flags, submit * 1000, status
        row["done_ns"] = NEVER if done is None else done * 1000
    return rows_


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
    at = lambda made, rows_=history: aim.reached(made, rows_, None, 4_000_000, 100_000, NEVER)
    assert at(silent) == (2500, None, 100) and at(silent, history[:0]) is None
    assert at(quiet) is None and at(plans("random", 1)[0]) is None


def test_thresholds_are_of_what_is_no_burst():
    chance = np.random.default_rng(1)
    idle, load = chance.normal(0.1, 0.01, 5000), chance.normal(0.5, 0.02, 5000)
    load[::4] += 0.3  # a quarter of the time
    thresholds = aim.learn(idle, load)
    assert thresholds.quiet_A == pytest.approx(0.14, abs=0.003) and thresholds.burst_A == pytest.approx(0.58, abs=0.005)
    assert thresholds.burst_share == pytest.approx(0.25, abs=0.005) and np.mean(idle > thresholds.quiet_A) < 0.001
    for bad in ([], [1.0], [1.0, float("nan")]):
        with pytest.raises(ValueError, match="samples"):
            aim.learn(idle, bad)


def test_a_drive_that_is_awake_before_it_sleeps_is_in_no_burst():
    """After 2 s of 10 it sleeps; while it is awake it works for 0.3 s. A cut at its bursts fired at its being awake."""
    chance = np.random.default_rng(1)
    idle = np.concatenate([chance.normal(0.1, 0.002, 2000), chance.normal(0.01, 0.0003, 8000)])
    idle[500:800] = chance.normal(0.3, 0.01, 300)
    thresholds = aim.learn(idle, chance.normal(0.5, 0.02, 5000))
    assert thresholds.idle_A == pytest.approx(0.1, abs=0.002) and thresholds.quiet_A == pytest.approx(0.108, abs=0.003)


class Folding:
    """The SIMULATED drive with a large cache in model time, as a rig sees its current: a supply and a link."""

    PAGES, MS, CONVERSION_BINS = 32, 1_000_000, 3

    def __init__(self, written_bytes: int):
        ring = np.full((BINS, 2), 0xFFFFFFFF, np.uint32)
        self.drive = VirtualDrive(replace(NVME_TLC_SLC, time_dilation=1), capacity_bytes=4 << 30, ring=ring)
        self.t_ns = 0
        for at in range(0, written_bytes >> 12, self.PAGES):
            self.t_ns = max(self.t_ns, self.do(at))

    def do(self, page: int) -> int:
        one = lambda value, kind=np.int64: np.full(1, value, kind)
        ended = self.drive.submit(one(WRITES, np.uint8), one(page), one(self.PAGES), one(0, np.uint8), self.t_ns)
        return int(ended[0])

    def currents(self, seconds: float) -> np.ndarray:
        currents_ = []
        for _ in range(round(seconds * 100)):
            bins = np.arange(self.t_ns // BIN_NS, (self.t_ns + 10 * self.MS) // BIN_NS)
            self.t_ns += 10 * self.MS
            self.drive.advance(self.t_ns)
            slots = self.drive.ring[bins % BINS]
            currents_.append(np.where(slots[:, 0] == bins & 0xFFFFFFFF, slots[:, 1], 0) / BIN_NS / NVME_TLC_SLC.rail_V)
        all_of = np.concatenate(currents_)
        return (
            all_of[: len(all_of) // self.CONVERSION_BINS * self.CONVERSION_BINS]
            .reshape(-1, self.CONVERSION_BINS)
            .mean(1)
        )


def test_what_a_drive_draws_at_rest_is_not_learnt_while_it_folds_what_was_written(monkeypatch):
    """A threshold learnt right after the fill lay above the folding itself: such a cut never fired."""
    monkeypatch.setattr(aim, "LEVEL_PARTS", 10)  # of the same length, in a tenth of the time
    monkeypatch.setattr(campaign, "LEARN_S", 1.0)
    made = Folding(1200 << 20)
    made.currents(0.9)
    folds = made.currents(1.0)
    assert not aim.rests(folds) and np.mean(folds > aim.learn(folds, folds).quiet_A) < 0.01
    monkeypatch.setattr(campaign.readback, "block", lambda link, layout, lba: made.do(0))
    notes, checks = [], []
    idle = campaign.rest_A(made, None, layout.make(4096, 64 << 20), lambda: checks.append(1), notes.append)
    thresholds = aim.learn(idle, folds)
    assert len(checks) > 1 and notes == [] and np.mean(folds > thresholds.quiet_A) > 0.9
    assert thresholds.idle_A == pytest.approx(NVME_TLC_SLC.P_idle_mW / 1000 / NVME_TLC_SLC.rail_V, rel=0.02)


def test_a_drive_that_never_rests_is_waited_for_so_long_and_a_person_is_told(monkeypatch):
    restless = np.random.default_rng(1).normal(0.5, 0.1, 2000)
    monkeypatch.setattr(campaign.readback, "block", lambda link, layout, lba: None)
    notes, supply = [], SimpleNamespace(currents=lambda seconds: restless)
    tell = lambda kind, text: notes.append((kind, text))
    currents_ = campaign.rest_A(supply, None, layout.make(4096, 64 << 20), lambda: None, tell, most_s=0.0)
    assert currents_ is restless and [kind for kind, _ in notes] == ["note"] and "not at rest" in notes[0][1]
    assert aim.rests(np.random.default_rng(1).normal(0.002, 0.0005, 2000))  # asleep: the sensor's own noise


def test_work_that_does_not_come_is_learnt_anew_less_and_less_often(monkeypatch):
    learnt = []
    it = object.__new__(campaign._Campaign)
    it.misses, it._learn = 0, lambda: learnt.append(it.misses)
    cut = Cut(1, "quiet", 0, "crowbar", None, 1, 1.0)
    for session in [cut._replace(control=NO_CUT), cut._replace(aim="bytes"), *[cut, cut._replace(aim="burst")] * 10]:
        it._missed(session)
    assert learnt == [1, 2, 4, 8, 16]
