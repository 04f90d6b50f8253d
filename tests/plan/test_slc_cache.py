"""The plateaus of a fill and the recovery of an SLC cache: synthetic fills, the model's own figures, and the views."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from synthetic_plan import DRIVE

from ssdrig.load import fiofine
from ssdrig.plan import expand, grammar, state
from ssdrig.plan.rules import plateaus
from ssdrig.reading import cache_recovery as recovery
from ssdrig.reading import filling
from ssdrig.reading.cache_recovery import Rest
from ssdrig.run import dry_run, prepare
from ssdrig.run.budget import Budget
from ssdrig.views.plateaus import html as plateaus_html
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import NVME_TLC_SLC

GB, S, MS, MIB = 1e9, 1_000_000_000, 1_000_000, 1 << 20


def fill(parts, step_s=0.1, noise=0.0, stalls=0, seed=1):
    """Times and bytes of a fill in parts (bytes, bytes a second), a row each step_s."""
    rng = np.random.default_rng(seed)
    took, moved = (
        np.concatenate([[0], np.cumsum(column)]) for column in ([b / v for b, v in parts], [b for b, _ in parts])
    )
    t = np.append(np.arange(0, took[-1], step_s), took[-1])
    done = np.interp(t, took, moved)
    t = np.concatenate([[0], np.cumsum(np.diff(t) * np.exp(rng.normal(0, noise, len(t) - 1)))])
    for at in rng.integers(1, len(t), stalls):
        t[at:] += 0.7
    return t, done


def off(share, ratio, noise, stalls, seed):
    """How far off the cliff of a fill of 200 s is found, of what it may be: 0.5 % of all that is written, and 1 % of
    the cache where this is a good part of it. Where the cliff's sample or its neighbour holds a stall, little shows on
    which side of it the cliff is: two samples. Infinity: it is not found."""
    cliff, slow = 10 * share * GB, 10 * GB / (share / ratio + 1 - share) / 200  # the cache in 0.8 s or more
    t, done = fill([(cliff, ratio * slow), (10 * GB - cliff, slow)], 0.1, noise, stalls, seed)
    stalled = np.diff(t) > 0.7
    edges = plateaus.find(t, done)
    size, why = plateaus.cache_bytes(edges)
    at = int(np.searchsorted(done, cliff)) - 1
    beside = bool(stalled[max(0, at - 1) : at + 2].any())
    most = max(0.01 * cliff, 0.005 * 10 * GB, 2 * 0.1 * ratio * slow * beside)
    return abs(size - cliff) / most if why is None and len(edges) >= 2 else np.inf


@settings(max_examples=20, deadline=None)
@given(st.floats(0.03, 0.6), st.floats(1.5, 8), st.floats(0, 0.04), st.integers(0, 2), st.integers(0, 1000))
@example(0.36442549355898923, 7.9375, 0.0, 1, 111)  # a stall right before the cliff
def test_the_cliff_is_found_where_it_is(share, ratio, noise, stalls, seed):
    """More noise, or two stalls side by side, look like a plateau of their own in one of thousands of fills."""
    assert off(share, ratio, noise, stalls, seed) <= 1


@pytest.mark.parametrize("seed", range(12))
def test_the_cliff_is_found_in_much_noise(seed):
    """8 % from sample to sample, and stalls: the same twelve fills at each run."""
    rng = np.random.default_rng(seed)
    assert off(rng.uniform(0.03, 0.6), rng.uniform(1.5, 8), 0.08, seed % 5, seed) <= 1


def test_a_stall_beside_the_change_does_not_move_it():
    """A sample takes 1 s, from the tenth on 10 s; one of those before stood still for 3 s."""
    took = np.array([1.0] * 10 + [10.0] * 10)
    took[8] = 4.0
    t, done = np.concatenate([[0.0], np.cumsum(took)]), np.arange(21.0)
    assert plateaus._place(t, done, (0.0, 20.0), 0.0, -np.log(10)) == pytest.approx((13.0, 10.0))


def test_three_plateaus_and_none():
    plateaus_ = plateaus.find(*fill([(42 * GB, 0.53 * GB), (200 * GB, 0.16 * GB), (758 * GB, 0.08 * GB)], 0.1, 0.1, 3))
    assert [plateau.to_bytes / GB for plateau in plateaus_] == [pytest.approx(at, rel=0.01) for at in (42, 242, 1000)]
    assert [plateau.speed_Bps / GB for plateau in plateaus_] == [
        pytest.approx(at, rel=0.03) for at in (0.53, 0.16, 0.08)
    ]
    for parts in ([(100 * GB, 0.5 * GB)], [(50 * GB, 0.5 * GB), (50 * GB, 0.44 * GB)]):
        assert plateaus.cache_bytes(plateaus.find(*fill(parts, 0.1, 0.1, 5)))[1].startswith("the speed did not fall")
    assert plateaus.cache_bytes(plateaus.find([0, 1, 2], [0, 1, 2])) == (None, "too few samples of the written bytes")
    rising = plateaus.find(*fill([(10 * GB, 0.1 * GB), (10 * GB, 0.3 * GB)]))
    assert plateaus.cache_bytes(rising) == (None, "the speed rose first")
    tiny = [(0.05 * GB, 5 * GB), (99.95 * GB, GB)]  # less than a hundredth of what is written is no plateau
    assert plateaus.cache_bytes(plateaus.find(*fill(tiny)))[0] is None


def test_the_fine_log_adds_up_to_the_job():
    log = np.array([[1100, 1000, 1, 0], [1200, 3000, 1, 0], [1200, 500, 0, 0], [1400, 1000, 1, 0]])
    at_ns, done, why = fiofine.moved(log, 1_000_000, 1000)
    assert why is None and (at_ns / 1e6).tolist() == [1000, 1100, 1200, 1400]
    assert done == pytest.approx(np.array([0, 100, 450, 650]) / 650 * 1e6)
    assert fiofine.moved(log, 1_000_000, None)[0][0] == 950 * MS  # by its usual step
    for bad in (log[:1], log[::-1], log * [1, 0, 1, 1]):
        assert len(fiofine.moved(bad, 1_000_000, 1000)[0]) == 0 and fiofine.moved(bad, 1_000_000, 1000)[2]
    assert fiofine.moved(log, None, 1000)[2]


def test_a_log_of_averages_leaves_out_rows_without_io():
    """Seen with fio 3.33: the row behind a stall says what was moved since fio looked last, not since the row before;
    where fio itself was late, the row is of all of the time."""
    times = [1100, 1200, 1300, 2300, 2400, 2590]
    log = np.array([[at, 1000, 1, 0] for at in times])
    _, done, _ = fiofine.moved(log, 69_000, 1000)
    assert done == pytest.approx(100 * np.array([0, 100, 200, 300, 400, 500, 690]))


def test_a_log_of_each_io_is_exact():
    """Whatever the rates beside it; the first I/Os of a millisecond and the last count alike."""
    log = np.array([[1001, 77, 1, 4096], [1001, 99999, 0, 8192], [1007, 1, 1, 4096], [2300, 5, 1, 4096]])
    at_ns, done, why = fiofine.moved(log, 20480, 1000)
    assert why is None and (at_ns / 1e6).tolist() == [1000, 1001, 1007, 2300]
    assert done.tolist() == [0, 12288, 16384, 20480]


def test_a_step_is_of_many_ios_and_of_many_stamps():
    at_ns, done = np.arange(0, 1000, 5) * MS, np.arange(200) * 4096.0
    for step_bytes, rows in ((4096, 5), (8 * 4096, 8)):  # 25 ms, and 40 ms of eight I/Os
        assert fiofine.in_steps(at_ns, done, step_bytes, 25).tolist() == [*range(0, 199, rows), 199]
    assert fiofine.in_steps(at_ns * 1000, done, 1, 25).tolist() == list(range(200))
    long_ns = np.arange(10**6) * 100 * MS
    assert len(fiofine.in_steps(long_ns, np.arange(10**6) * 1e6, 1, 25)) == fiofine.MOST_STEPS + 1
    assert fiofine.in_steps(at_ns[:0], done[:0], 1, 25).tolist() == []


@pytest.mark.parametrize("folded_MB", [20, 45, 150])
def test_what_came_back_is_found_behind_a_drive_that_is_still_busy(folded_MB):
    """Seen with fio: the first writes of a burst wait until the drive has ended what it folds. 128 KiB at a time."""
    rng = np.random.default_rng(folded_MB)
    stall_s, fast_Bps, slow_Bps = 0.009, 2.68e9, 0.61e9
    took = np.full(3280, 131072 / slow_Bps)
    took[: round(folded_MB * 1e6 / 131072)] = 131072 / fast_Bps
    took[0] += stall_s
    ended = np.floor(np.cumsum(took * rng.uniform(0.8, 1.2, len(took))) * 1e4).astype(int)  # 0.1 ms: dilated 10 times
    at_ns, done, _ = fiofine.moved(np.array([[10_000 + at, 1, 1, 131072] for at in ended]), 3280 * 131072, 10_000)
    size, why = plateaus.cache_bytes(filling.find(at_ns, done, 131072, 10))
    assert why is None and size == pytest.approx(folded_MB * 1e6, abs=1.5e6)


# --- the model


SAMPLE_NS = MS // 4
BUFFER_BYTES = 2 << 20  # the write buffer in front of the cache


class Drive:
    """The model's own drive, half of its size, in model time."""

    def __init__(self, blocks=983, borrowed=737, capacity_bytes=2 << 30):
        preset = replace(NVME_TLC_SLC, slc_blocks=blocks, slc_borrowed=borrowed, cache_bytes=BUFFER_BYTES)
        self.drive, self.now = VirtualDrive(preset, capacity_bytes=capacity_bytes), 0

    def burst(self, ns: int, first: int = 0):
        """Rows of bytes by SAMPLE_NS, the ledger before and after."""
        before, window = self.drive.ledger(), {"window_ns": SAMPLE_NS, "npages": 64, "random": False}
        rows, _ = self.drive.closed_loop(queue_depth=16, t_ns=self.now, duration_ns=ns, first=first, **window)
        self.now += ns
        return rows << 18, before, self.drive.ledger()

    def rest(self, ns: int, step_ns: int = 10 * MS) -> float:
        """Returns joules."""
        begin, self.now = self.now, self.now + ns
        for t in range(begin, self.now + 1, step_ns):
            self.drive.advance(t)
        return self.drive.energy_between(begin, self.now)


@pytest.fixture(scope="module")
def aged():
    """A pass over the empty drive, the begin of one over the full drive after a rest, and that of the part that follows
    each rest."""
    model = Drive()
    bursts = [model.burst(3500 * MS)]
    for rest_ns, ns in ((3 * S, 800 * MS), (100 * MS, 120 * MS), (S, 120 * MS)):
        model.rest(rest_ns)
        bursts.append(model.burst(ns))
    return bursts


def measured(rows, first=4, step=4):
    """Plateaus of samples of `step` rows, the first one of so many."""
    at = np.concatenate([[0], np.arange(first, len(rows) + 1, step)])
    return plateaus.find(at * SAMPLE_NS / S, np.concatenate([[0], np.cumsum(rows)])[at])


def took(before, after, key="nand_slc_bytes"):
    return after[key] - before[key]


@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_the_models_cache_is_found_empty_and_full(aged, first):
    """Wherever a sample of 1 ms begins, of which the cache of the full drive lasts 25."""
    sizes = []
    fast, slow = measured(aged[0][0], first)
    assert fast.speed_Bps == pytest.approx(8 * (64 << 10) / 200e-6, rel=0.03)  # all dies, 64 KiB each in 200 us
    assert slow.speed_Bps == pytest.approx(8 * (192 << 10) / 2600e-6, rel=0.03)
    for rows, before, after in aged[:2]:
        size, why = plateaus.cache_bytes(measured(rows, first))
        assert why is None and size == pytest.approx(took(before, after) + BUFFER_BYTES, rel=0.01)
        sizes.append(size)
    assert sizes[0] > 3 * sizes[1]  # a dynamic cache gives back what it borrows


def test_what_the_model_folds_in_a_rest_comes_back(aged):
    """Nothing within 0.1 s, before the drive begins; all within a second."""
    (tired, before, after), (rested, begun, ended) = aged[2:]
    assert took(before, after) == 0 and (plateaus.cache_bytes(measured(tired))[0] or 0) < 10e6
    assert before["slc_blocks_used"] > 100 and begun["slc_blocks_used"] == 0
    assert plateaus.cache_bytes(measured(rested))[0] == pytest.approx(took(begun, ended) + BUFFER_BYTES, rel=0.01)


WORK = ("controller", "read", "program", "erase", "transfer")  # energies of the ledger that rest alone does not take


def test_folding_rate_and_energy_are_the_models():
    """Rests of a drive that begins to fold after 0.5 s, each with a full cache before it; the ledger knows what was
    folded and what that took."""
    model, rests, folded, work_J = Drive(491, 368, 1 << 30), [], [], []
    model.burst(2 * S)
    for ms in (200, 300, 400, 525, 537, 550, 562, 575, 587, 600, 750, 900):
        model.rest(800 * MS, MS)
        model.burst(100 * MS)
        before = model.drive.ledger()
        joules = model.rest(ms * MS, MS)
        after = model.drive.ledger()
        size, _ = plateaus.cache_bytes(measured(model.burst(100 * MS)[0]))
        if ms < 500:
            size = 0.0  # what the buffer takes is no cache
        rests.append(Rest(ms / 1000, size, joules, 0.0))
        if 500 < ms <= 600:
            folded.append(took(before, after, "nand_slc_fold_bytes"))
            work_J.append(sum(took(before, after, f"energy_{work}_J") for work in WORK))
    recovery_ = recovery.of(rests)
    rate_Bps = np.polyfit([0.525, 0.537, 0.55, 0.562, 0.575, 0.587, 0.6], folded, 1)[0]
    assert recovery_.used == 7 and abs(recovery_.rate_Bps - rate_Bps) <= recovery_.rate_error_Bps < 0.3 * rate_Bps
    assert recovery_.delay_s == pytest.approx(0.5, abs=0.02)
    cost = 1e9 * np.polyfit(folded, work_J, 1)[0]
    assert abs(recovery_.energy_J_per_GB - cost) <= recovery_.energy_error_J_per_GB < 0.3 * cost


@pytest.mark.parametrize("beside", [True, False])
def test_bursts_side_by_side_take_what_was_folded(beside):
    """As slc-recovery's are (their offsets: below). At one place each overwrites what it holds."""
    model = Drive(491, 368, 1 << 30)
    model.burst(2 * S)
    model.rest(800 * MS)
    ended, folded, seen = model.burst(100 * MS)[2], [], []
    for number, ms in enumerate((525, 550, 575, 600), 1):
        model.rest(ms * MS, MS)
        _, begun, after = model.burst(100 * MS, beside * number * model.drive.pages // 10)
        folded.append(took(ended, begun, "nand_slc_fold_bytes"))
        seen.append(took(begun, after))
        ended = after
    assert (seen == folded) is beside and sum(seen) >= sum(folded) > 0


# --- the law of recovery


def test_a_straight_line_until_the_cache_is_whole():
    """4 GB at 0.5 GB/s, begun 2 s after the last write; 3 W while it folds, 1 W else."""

    def rest(t, joules=True):
        folds_s = min(max(0.0, t - 2), 8)
        return Rest(t, 0.5 * GB * folds_s, t + 2 * folds_s if joules else None, 0.0)

    recovery_ = recovery.of([rest(t) for t in (1, 3, 5, 8, 20, 60, 300)])
    assert (recovery_.rate_Bps, recovery_.delay_s, recovery_.used) == (pytest.approx(0.5 * GB), pytest.approx(2), 3)
    assert (recovery_.whole_bytes, recovery_.whole_s) == (4 * GB, 20)
    assert (recovery_.folding_W, recovery_.floor_W, recovery_.energy_J_per_GB) == pytest.approx((3, 1, 4))
    sentence = " ".join(plateaus_html.recovery_in_words(recovery_, 2))
    assert (
        "500 MB/s of cache came back, from 2.00 s of rest on; by 3 rests" in sentence and "2 rests left out" in sentence
    )
    assert "–" not in " ".join(plateaus_html.recovery_in_words(recovery_._replace(delay_s=None)))
    awake = recovery.of([rest(t) for t in (0.5, 1.5, 3, 5, 8, 20, 60)])  # its floor is that before it begins to fold
    assert awake.energy_J_per_GB == pytest.approx(4)
    idle = recovery.of([rest(t)._replace(rest_J=4 * t) for t in (0.5, 1.5, 3, 5, 8, 20)])
    assert idle.energy_J_per_GB is None and "no more while it folded than at rest" in idle.energy_why
    dark = recovery.of([rest(t, False) for t in (1, 3, 20)])
    assert dark.rate_Bps is None and "1 rests" in dark.why and dark.energy_J_per_GB is None and dark.energy_why
    none = recovery.of([])
    assert none.whole_bytes is None and none.rate_Bps is None and none.why == none.energy_why
    assert plateaus_html.recovery_in_words(none, 9) == [
        "9 rests left out: the host limited the load after them",
        "no load with a rest before it whose cache is known",
    ]
    flat = recovery.of([Rest(1, 2 * GB), Rest(2, 2 * GB), Rest(3, GB), Rest(4, GB / 2), Rest(5, 4 * GB)])
    assert flat.rate_Bps is None and "did not grow" in flat.why


@pytest.mark.parametrize(
    "speeds, begins",
    [((2100.0, 600.0), "cache 42.0 GB ± 100 MB at 2 100 MB/s, then 600"), ((900.0,), "cache 42.0 GB ± 100 MB at 900")],
)
def test_the_answer_has_the_size_of_the_cache_and_the_speed_of_each_plateau(speeds, begins):
    rows = [{"bw_mean_MBps": speed} for speed in speeds]
    result = {"cache_bytes": 42 * GB, "cache_error_bytes": 0.1 * GB, "plateaus": rows}
    row = SimpleNamespace(result=result, value=lambda key: 740.0)
    words = plateaus_html.in_words(row).replace("\u202f", " ")
    assert words.startswith(begins) and words.endswith("; all of it 740 MB/s")
    row.value = lambda key: None
    assert "–" not in plateaus_html.in_words(row)


# --- the plans and their page


def test_a_pass_in_order_leaves_data_everywhere():
    acts = expand.expand(grammar.read(*grammar.find("slc-cache")), DRIVE, frozenset(grammar.CAPABILITIES))
    assert state.prove(acts).valid_bytes == DRIVE["capacity_bytes"]
    (passed,) = (act for act in acts if act.path == "empty")
    for less in ({"pattern": "random"}, {"threads": 2}, {"offset": 1 << 20}, {"read": 50}):
        assert not state.after(state.UNKNOWN, replace(passed, keys=passed.keys | less)).valid_bytes
    assert not state.after(state.UNKNOWN, replace(passed, amount_bytes=1 << 30)).valid_bytes


def test_a_repeat_sweeps_the_time_of_the_rest_and_leaves_the_load_its_amount():
    plan = grammar.read(*grammar.find("slc-recovery"), variant="quick")
    acts = expand.expand(plan, DRIVE, frozenset(grammar.CAPABILITIES))
    rests = [act for act in acts if act.path == "rests/pause"]
    again = [act for act in acts if act.path == "rests/again"]
    assert [act.keys["time"] for act in rests][:3] == pytest.approx([0.25, 0.35, 0.45])
    assert len(again) == len(rests) == 10
    assert all("time" not in act.keys and act.amount_bytes == DRIVE["capacity_bytes"] // 10 for act in again)
    assert len({act.label for act in again}) == 10
    bursts = [next(act for act in acts if act.path == "use-up"), *again]
    begins = [act.keys.get("offset", 0) for act in bursts]  # seven in a row fit into the 80 % that are filled
    assert begins[:2] == [0, -(-bursts[0].amount_bytes // MIB) * MIB] and begins[:4] == begins[7:]
    for begin, act in zip(begins, bursts, strict=True):
        assert begin + act.amount_bytes <= act.range_bytes <= 0.8 * DRIVE["capacity_bytes"]
    made = prepare.prepare("slc-recovery", DRIVE, variant="quick")
    shown = "\n".join(dry_run.table(made, Budget(None)))
    assert "10 points x 0.25…2.5 s" in shown and "10 points x 429 MB (SEQ 128 KiB write 1x32)" in shown
