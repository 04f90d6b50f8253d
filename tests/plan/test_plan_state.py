"""plan/state.py and plan/cost.py: what acts need and leave, what an interruption leaves, what they take; and what
run/resume.py then says of the drive."""

import math
from dataclasses import replace

import pytest
from killed_runs import UNIT

from ssdrig.base.errors import UsageError
from ssdrig.plan import cost, expand, grammar, state
from ssdrig.plan.kinds import load, speeds
from ssdrig.plan.state import UNKNOWN, State
from ssdrig.run import cut_short, earlier, standing
from ssdrig.run.cut_short import Reading

GIB = 1 << 30
DRIVE = {"interface": "SATA", "capacity_bytes": 10**12, "raw_nand_bytes": 1 << 40, "time_dilation": 1}
DRIVE |= {"logical_block_bytes": 512, "rated_write_bytes": 600 * 10**12}
HEAD = 'schema = 1\nname = "x"\ntitle = "x"\nsource = "x"\nabout = "x"\n'
FILL = '[[step]]\nname = "fill"\ndo = "fill"\nrange = "50 %"\n'
READING_S = speeds.READING_S
READ = '[[step]]\nname = "read"\ndo = "load"\npattern = "random"\nread = 100\nblock = "4 KiB"\ntime = "60 s"\n'


def acts(body, variant=None):
    return expand.expand(grammar.read(HEAD + body, "x.toml", variant), DRIVE, frozenset(grammar.CAPABILITIES))


def shipped(name, variant=None, sets=None):
    text, where = grammar.find(name)
    return expand.expand(grammar.read(text, where, variant, sets), DRIVE, frozenset(grammar.CAPABILITIES))


@pytest.mark.slow
@pytest.mark.parametrize("name", grammar.shipped())
def test_every_shipped_plan_is_proven(name):
    for variant in (None, *grammar.read(*grammar.find(name)).variants):
        acts_ = shipped(name, variant)
        assert state.prove(acts_).name != "unknown" or {act.do for act in acts_} <= {"set", "idle"}


@pytest.mark.parametrize("body", [READ, FILL + READ, '[[step]]\nname = "p"\ndo = "purge"\n' + READ])
def test_what_was_never_written_is_not_read(body):
    with pytest.raises(UsageError, match="data in all 1.00 TB that read reads"):
        state.prove(acts(body))


def test_trim_takes_back_what_a_fill_has_made():
    whole = FILL.replace("50 %", "100 %")
    assert state.prove(acts(whole + READ)).name == "filled"
    with pytest.raises(UsageError, match="the drive trimmed"):
        state.prove(acts(whole + '[[step]]\nname = "t"\ndo = "trim"\n' + READ))


def test_a_steady_state_does_not_outlive_a_rest_or_an_interruption():
    steady = state.prove(shipped("consistency"))
    assert steady == state.State("written", DRIVE["capacity_bytes"] >> 20 << 20, "load", True)
    assert not state.prove(shipped("consistency", None, {"idle": "2 min"})).steady
    assert state.prove(shipped("consistency", None, {"idle": "30 s"})).steady
    assert not state.interrupted(steady).steady
    rested = state.State("rested", 5, "load")
    assert state.interrupted(rested).name == "rested" and state.interrupted(rested, powered=False).name == "written"


def test_a_foreign_write_voids_everything():
    filled = state.State("filled", 100)
    assert state.foreign(filled, 1000, 1000, 512) == filled == state.foreign(filled, 1000, 1500, 512)
    assert state.foreign(filled, 1000, 10_000, 512) == state.UNKNOWN == state.foreign(filled, 1000, None, 512)


def test_the_cost_of_the_reviews_test_by_hand():
    """1 TB over SATA, 2000 s."""
    fill, load = (act for act in shipped("consistency", "2013") if act.do in ("fill", "load"))
    size = 10**12 >> 20 << 20
    assert cost.of(fill, DRIVE).time_s == pytest.approx((size / 540e6 + 0.1, size / 150e6 + 1))
    costs = cost.of(load, DRIVE)
    assert (
        costs.time_s == pytest.approx((2000.1 + READING_S[0], 2001 + READING_S[1]))
        and costs.most_bytes == 800_000_000_000
    )
    assert costs.written_bytes == pytest.approx((2000 * 2000 * 4096, 2000 * 60_000 * 4096))
    whole = cost.total(shipped("consistency", "2013"), DRIVE)
    assert whole.most_bytes == size + 800_000_000_000 and whole.jobs == (2, 2)
    both_s = [a + b for a, b in zip(cost.of(fill, DRIVE).time_s, costs.time_s)]
    assert whole.time_s == pytest.approx([s + erase_s for s, erase_s in zip(both_s, speeds.ERASE_S["purge"])])


def test_a_rule_ends_between_the_least_it_needs_and_its_time():
    load = next(act for act in shipped("consistency") if act.do == "load")
    costs = cost.of(load, DRIVE)
    assert costs.time_s[1] == 6 * 3600 + 1 + READING_S[1]
    costs = cost.of(load, DRIVE | {"raw_nand_bytes": 13 * 10**11})  # its spare area, and a quarter of it more
    assert costs.written_bytes[0] == pytest.approx(0.375e12, rel=1e-4)
    assert costs.time_s[0] == pytest.approx(0.375e12 / (60_000 * 4096), rel=0.01)
    for unknown in ({"raw_nand_bytes": None}, {"raw_nand_bytes": 13 * 10**11, "raw_nand_assumed": True}):
        assert cost.of(load, DRIVE | unknown).written_bytes[0] == pytest.approx(0.0875e12, rel=1e-4)


def test_an_amount_that_ends_a_load_is_the_most_that_is_expected():
    load = next(act for act in shipped("pts-wsat") if act.path == "wsat")
    costs = cost.of(load, DRIVE)
    assert costs.written_bytes[1] == 4e12 + 60_000 * 4096  # what it writes in the second before it is seen
    assert costs.time_s[1] == 6 * 3600 + 1 + READING_S[1]
    small = DRIVE | {"capacity_bytes": 10**9}  # 4 GB, at 2000 IOPS
    assert cost.of(load, small).time_s[1] == pytest.approx(4e9 / (2000 * 4096) + 1 + READING_S[1])


def test_rounds_are_counted_least_to_most():
    whole = cost.total(shipped("pts-iops"), DRIVE)
    assert whole.jobs == (1 + 5 * 56, 1 + 25 * 56)
    assert whole.time_s[0] == pytest.approx(2e12 / 540e6 + 5 * (56 * 60 + READING_S[0]) + 0.1 * 281 + 0.1)


def test_an_earlier_run_narrows_the_range():
    fill, load = (act for act in shipped("consistency", "2013") if act.do in ("fill", "load"))
    known = {"fill": (4000.0, fill.amount_bytes), "load": (2000.0, 100e9)}
    assert cost.of(fill, DRIVE, known).time_s == pytest.approx((3600.1, 4401))
    assert cost.of(fill, DRIVE, known).written_bytes == (fill.amount_bytes, fill.amount_bytes)  # whatever it took
    assert cost.of(load, DRIVE, known).time_s == pytest.approx((2000.1, 2201))
    assert cost.of(load, DRIVE, known | {"load": (1500.0, 100e9)}).time_s == (2000.1, 2001)
    assert cost.of(load, DRIVE, known).written_bytes == pytest.approx((90e9, 110e9))
    assert cost.of(load, DRIVE, known).most_bytes == cost.of(load, DRIVE).most_bytes


def test_what_a_number_of_ios_ends_writes_the_same_on_any_machine():
    """A SIMULATED drive is as fast as its host; its time is a wide range, and ends at the load's own."""
    ended = READ.replace("100", "35").replace('time = "60 s"', 'until = [{ ios = 1000 }, { time = "60 s" }]')
    act = acts(FILL.replace("50 %", "100 %") + ended)[1]
    written = 0.65 * 1000 * 4096
    drive = DRIVE | {"interface": "nbd"}
    for known in ({}, {act.label: (0.5, 9.9)}, {act.label: (50.0, 9.9)}):
        costs = cost.of(act, drive, known)
        assert costs.written_bytes == pytest.approx((0.59 * 4096e3, 0.71 * 4096e3), rel=0.01)  # fio draws the mix
        assert sum(costs.written_bytes) / 2 == pytest.approx(written) and costs.most_bytes == costs.written_bytes[1]
    start_s = cost.JOB_S
    first_s = [a + b for a, b in zip(start_s, READING_S)]
    assert cost.of(act, drive).time_s == pytest.approx((1 / 60 + first_s[0], 1000 / 300 + first_s[1]))
    assert cost.of(act, drive, {act.label: (5.0, 9.9)}).time_s == pytest.approx((5 / 3 + start_s[0], 15 + start_s[1]))
    assert cost.of(act, drive, {act.label: (50.0, 9.9)}).time_s == pytest.approx((50 / 3 + start_s[0], 60 + start_s[1]))
    assert cost.of(act, DRIVE, {act.label: (5.0, 9.9)}).time_s == pytest.approx((4.5 + start_s[0], 5.5 + start_s[1]))
    only = replace(act, keys={**act.keys, "read": 0})
    assert cost.of(only, drive).written_bytes == (4096e3, 4096e3)
    slow = replace(act, amount_bytes=10**9)  # more than the slowest drive writes in its time
    assert cost.of(slow, drive).written_bytes == pytest.approx((0.65 * 60 * 300 * 4096, 0.65e9), rel=0.01)


def test_an_earlier_campaign_narrows_the_bytes_too():
    (act,) = shipped("powerloss", "quick")
    of_class, again = cost.of(act, DRIVE), cost.of(act, DRIVE, {"cuts": (400.0, 100e9)})
    assert of_class.written_bytes[0] < 100e9 < of_class.written_bytes[1]
    drawn = 2 * math.sqrt(2 / 63) * 0.7 * (100e9 - act.range_bytes)  # 63 sessions of each, drawn by their seeds
    assert again.written_bytes == pytest.approx((90e9 - drawn, 110e9 + drawn))
    assert again.time_s == pytest.approx((400 / 1.1, 440))
    assert again.most_bytes == of_class.most_bytes == of_class.written_bytes[1]


def test_an_earlier_run_is_known_by_the_mean_of_its_rounds():
    events, t_ns = [], 0
    for seconds, size in ((2, 100), (4, 400)):
        step = {"step": "point", "point": {"read": 0}}
        events.append({"kind": "step.start", "t_ns": t_ns, **step})
        t_ns += seconds * 10**9
        events.append({"kind": "step.end", "t_ns": t_ns, "ok": True, "bytes": size, **step})
    events += [{"kind": "smart.start", "t_ns": 0}, {"kind": "smart.end", "t_ns": 4 * 10**8, "ok": True}]
    events += [{"kind": "step.start", "t_ns": 0, "step": "purge"}]
    events += [{"kind": "step.end", "t_ns": 7 * 10**9, "ok": True, "step": "purge"}]
    by_act = earlier._of(events, 1)
    assert by_act == {"point read=0": (3.0, 250.0), "purge": (7.0, 0.0), cost.READING: (0.4, 0.0)}
    purge, *_ = shipped("consistency")
    assert cost.of(purge, DRIVE).time_s == speeds.ERASE_S["purge"]
    assert cost.of(purge, DRIVE, by_act).time_s == pytest.approx((6.3, 7.7))
    assert cost.reading(DRIVE, by_act).time_s == pytest.approx((0.2, 0.8))


def test_an_earlier_run_of_a_mix_is_known_by_its_writes():
    mix = acts(FILL.replace("50 %", "100 %") + READ.replace("read = 100", "read = 65"))[1]
    assert cost.of(mix, DRIVE, {"read": (60.0, 1e9)}).written_bytes == pytest.approx((0.315e9, 0.385e9))


@pytest.mark.slow
@pytest.mark.parametrize(("interface", "fastest_Bps"), [("SATA", 560e6), ("SAS", 4.3e9), ("NVMe", 14e9)])
def test_no_drive_of_its_class_is_too_fast_for_a_shipped_plan(interface, fastest_Bps):
    """fio is ended where it has moved more than a job's most_bytes: that must be above all that such a drive does,
    reads of a mix included, and what it writes until then is what was said before."""
    for name in grammar.shipped():
        for act in shipped(name):
            job = load.job(act, "/dev/x", 1, 1, interface) if act.do == "load" else None
            small = job and job.rw.startswith("rand") and job.block_bytes <= 4096  # bound by the I/Os
            if job and job.most_bytes and not small:
                assert job.most_bytes > fastest_Bps * job.time_s, (name, act.label)
            if job and job.most_bytes and not load.most_ios(act.keys):  # those end by themselves
                most_bytes = cost.of(act, DRIVE | {"interface": interface}).most_bytes
                assert job.most_bytes * (1 - act.keys["read"] / 100) == pytest.approx(most_bytes, rel=1e-6), (
                    name,
                    act.label,
                )


def test_a_dilated_drive_is_as_fast_for_the_host_as_any_virtual_one():
    """At 10 times slower a second of the drive is ten of the host."""
    body = FILL.replace("50 %", "10 GB") + READ.replace("100", "0")
    fill, write = expand.expand(grammar.read(HEAD + body, "x.toml"), DRIVE, frozenset())
    one, ten = ({"interface": "nbd", "time_dilation": k} for k in (1, 10))
    times = [cost._by_class(fill, DRIVE | k).time_s for k in (one, ten)]
    sizes = [cost._by_class(write, DRIVE | k).written_bytes for k in (ten, one)]
    for more, less in (times, sizes):
        assert more == pytest.approx([10 * value for value in less])


def test_reads_write_nothing():
    read = acts(FILL.replace("50 %", "100 %") + READ)[1]
    assert cost.of(read, DRIVE).written_bytes == (0, 0) and cost.of(read, DRIVE).most_bytes == 0


def test_classes_are_ranges():
    for kind in (*speeds.SPEEDS, "NVMe"):
        costs = cost.total(shipped("consistency", "2013"), DRIVE | {"interface": kind})
        assert costs.time_s[0] < costs.time_s[1]
        assert costs.written_bytes[0] < costs.written_bytes[1] <= costs.most_bytes


PAST = standing.Past(1, None, 3, State("written", 100, "l"))
BEFORE = Reading("F1", 1000 * UNIT, UNIT, 8 << 30)


@pytest.mark.parametrize(
    ("now", "ours", "powered", "holds", "words"),
    [
        (Reading("F1", 1100 * UNIT, UNIT), (100 * UNIT, 100 * UNIT), True, True, "steady"),
        (Reading("F1", 1102 * UNIT, UNIT), (100 * UNIT, 100 * UNIT), False, True, "steady"),
        (Reading("F1", 1150 * UNIT, UNIT), (100 * UNIT, 200 * UNIT), True, True, "steady"),
        (Reading("F1", 1103 * UNIT, UNIT), (100 * UNIT, 100 * UNIT), True, False, "52.7 MB were written"),
        (Reading("F1", 1000 * UNIT, UNIT), (100 * UNIT, 100 * UNIT), True, False, "0 B were written"),
        (Reading("F1", 900 * UNIT, UNIT), (0, 0), True, False, "went back"),
        (Reading("F2", 1100 * UNIT, UNIT), (100 * UNIT, 100 * UNIT), True, False, "the firmware was F1, now it is F2"),
        (Reading("F1", None, UNIT), (100 * UNIT, 100 * UNIT), True, False, "no reading"),
        (Reading("F1", 1000 * UNIT, UNIT, 8 << 30), (0, 0), True, True, "steady"),
        (Reading("F1", 1000 * UNIT, UNIT, (8 << 30) - (1 << 20)), (0, 0), True, True, "steady"),
        (Reading("F1", 1000 * UNIT, UNIT, 7 << 30), (0, 0), True, False, "holds 1.07 GB less"),
        (Reading("F1", 1000 * UNIT, UNIT, 9 << 30), (0, 0), True, True, "steady"),  # written since
    ],
)
def test_what_is_left_of_a_state(now, ours, powered, holds, words):
    state, void = cut_short.left(PAST, BEFORE, now, ours, powered)
    assert state == (PAST.state if holds else UNKNOWN) and words in "; ".join(void)


def test_a_steady_state_never_survives_and_rest_needs_power():
    steady = replace(PAST, state=replace(PAST.state, steady=True), was_steady=True)
    assert cut_short.left(steady, BEFORE, Reading("F1", 1000 * UNIT, UNIT), (0, 0), True)[0].steady is False
    rested = replace(PAST, state=State("rested", 100, "l"))
    state, void = cut_short.left(rested, BEFORE, Reading("F1", 1000 * UNIT, UNIT), (0, 0), False)
    assert state.name == "written" and any("supply" in words for words in void)


def test_a_drive_of_which_nothing_is_known_has_nothing_to_lose():
    assert cut_short.left(standing.Past(), None, Reading("F1", None, 0), (0, 0), True) == (UNKNOWN, ())
