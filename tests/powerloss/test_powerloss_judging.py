"""powerloss/judging.py: whom a session without a cut accuses."""

import numpy as np
import pytest
from test_smartlog import HEALTH

from ssdrig.drive.smart import counters
from ssdrig.plan.kinds import cut_schedule
from ssdrig.powerloss import health, history, judging
from ssdrig.powerloss.aim import Plan
from ssdrig.powerloss.cycle import Lived
from ssdrig.powerloss.history import BLANK, FLUSH, TRIM, WRITE
from ssdrig.powerloss.promise import FLUSH as KEPT_ONCE_FLUSHED
from ssdrig.powerloss.promise import Promise
from ssdrig.powerloss.supply import Outcome
from ssdrig.powerloss.verdict import Blocks
from ssdrig.virtual.device import smartlog

PROMISE = Promise(KEPT_ONCE_FLUSHED, 512, 1, 0, 0, "zeros", True, "")


@pytest.mark.parametrize(("seen", "finding", "harness"), [(1, "TRIM_KEPT", False), (0, "LOST_ACKED", True)])
def test_a_drive_that_ignores_a_trim_is_no_fault_of_the_harness(seen, finding, harness):
    """A trim is advice; but a write that is not there without a cut was lost by cable, host or ssdrig."""
    rows = np.zeros(5 if seen else 1, history.ROW)
    for row, kind, t_ns in zip(rows, (WRITE, TRIM, TRIM, BLANK, FLUSH), (10, 30, 30, 42, 50)):
        row["seq"], row["n"], row["kind"], row["submit_ns"], row["done_ns"] = t_ns // 10, 1, kind, t_ns, t_ns + 10
    rows["lba"][2:4] = 1  # a trim that is executed
    cut = cut_schedule.Cut(1, "random", 0, None, cut_schedule.NO_CUT, 1, 1.0)
    lived = Lived(rows, 70, 70, 80, None, Plan(cut_schedule.NO_CUT, 70))
    blocks = Blocks(*(np.array([value]) for value in (0, 0, seen, False)))
    none, nothing = health.State(0.0), lambda lba: None
    judged = judging.judge(cut, lived, blocks, 90, PROMISE, True, none, none, None, None, nothing)
    assert bool(judged.harness) == harness and judged.record["judged"] != harness
    assert judged.record["findings"] == {finding: 1} and not judged.record["failed"]
    assert (finding in judged.harness) == harness == bool(judged.record["harness"])


def session(ready_s, after, tries=1, stalled_s=0.0, **how):
    """The record of a cut with one write, which is there; after: what the drive says then."""
    row = np.zeros(1, history.ROW)
    row["seq"], row["n"], row["kind"], row["submit_ns"], row["done_ns"] = 1, 1, WRITE, 10, 20
    cut = cut_schedule.Cut(1, "random", 0, "command", None, 1, 1.0)
    lived = Lived(row, 70, 70, 80, Outcome(70, 0, 75, 1.0), Plan("random", 70), ready_s=ready_s, tries=tries)
    lived.stalled_s = stalled_s
    blocks = Blocks(*(np.array([value]) for value in (0, 0, 1, False)))
    before = health.State(0.0, power_cycles=5, unsafe_shutdowns=5, capacitor_health=100, incomplete_dumps=0)
    nothing = lambda lba: None
    return judging.judge(cut, lived, blocks, 90, PROMISE, True, before, after, 1.0, None, nothing, **how).record


def test_a_drive_that_is_ready_later_than_the_plan_allows_breaks_that_promise():
    after = health.State(4.0, power_cycles=6, unsafe_shutdowns=6, capacitor_health=100, incomplete_dumps=0)
    late = session(4.0, after, limit_s=3.0)
    assert late["findings"] == {"READY_TOO_LATE": 1} and late["failed"]
    assert late["words"] == ["ready after 4 s; the plan allows 3 s"]
    assert session(4.0, after, limit_s=4.0)["findings"] == session(4.0, after)["findings"] == {}


def test_a_host_without_a_cpu_to_spare_is_no_fault_of_the_drive():
    """A server that starts in 0.1 s was ready after 1.2 to 4.6 s on a busy host: 3 suspicions in 320 clean cuts."""
    after = health.State(12.0, power_cycles=6, unsafe_shutdowns=6, capacitor_health=100, incomplete_dumps=0)
    slow, stalled = session(12.0, after, stalled_s=1.5), session(12.0, after, stalled_s=2.5)
    assert slow["suspicion"] and slow["words"] == [
        "ready after 10.5 to 12 s (this host may have taken the difference); usually 1 s"
    ]
    assert not stalled["findings"] and stalled["ready_s"] == 12.0 and stalled["stalled_s"] == 2.5


def test_limit_inside_the_interval_is_no_accusation_and_no_clean_bill():
    after = health.State(4.0, power_cycles=6, unsafe_shutdowns=6, capacitor_health=100, incomplete_dumps=0)
    for stalled_s, findings in ((0.5, {"READY_TOO_LATE": 1}), (2.0, {"READY_UNSURE": 1}), (4.0, {"READY_UNSURE": 1})):
        record = session(4.0, after, stalled_s=stalled_s, limit_s=3.0)
        assert record["findings"] == findings and record["judged"] and not record["suspicion"]
        assert record["failed"] == ("READY_TOO_LATE" in findings)
    assert session(4.0, after, stalled_s=4.0, limit_s=4.0)["findings"] == {}
    slow = health.State(14.0, power_cycles=6, unsafe_shutdowns=6, capacitor_health=100, incomplete_dumps=0)
    both = session(14.0, slow, stalled_s=2.0, limit_s=13.0)
    assert both["findings"] == {"READY_UNSURE": 1, "SLOW_READY": 1} and both["suspicion"]


def test_a_drive_that_came_back_at_its_second_power_cycle_only_is_no_clean_cut():
    after = health.State(1.0, power_cycles=7, unsafe_shutdowns=7, capacitor_health=100, incomplete_dumps=0)
    missing = session(1.0, after, tries=2)
    assert missing["findings"] == {"MISSING": 1} and missing["suspicion"] and not missing["failed"]


def test_what_the_drive_counts_of_its_capacitors_reaches_the_verdict():
    """They were judged, and never read."""
    page = smartlog.log_c0h(HEALTH)
    document = {"kind": "poll", "t_start_ns": 1, "t_end_ns": 2, "log_c0h": page.hex()}
    document["smartctl"] = {"device": {"protocol": "NVMe"}}
    after = judging.state(counters.snapshot(document), 1.0)
    assert (after.incomplete_dumps, after.capacitor_health) == (2, 87)
    judged = session(1.0, after._replace(power_cycles=6, unsafe_shutdowns=6))
    assert judged["findings"] == {"PLP_DEGRADED": 1} and judged["suspicion"]
    assert judged["words"] == ["capacitor_health 100 is now 87, incomplete_dumps 0 is now 2"]


@pytest.mark.parametrize("settled_ns", [None, 80])
def test_a_drive_that_stays_away_is_dead_whatever_still_hangs(settled_ns):
    row = np.zeros(1, history.ROW)
    row["seq"], row["n"], row["kind"], row["submit_ns"], row["done_ns"] = 1, 1, WRITE, 10, history.NEVER
    lived = Lived(row, 70, 70, settled_ns, Outcome(70, 0, 75, 1.0), Plan("random", 70), tries=health.DEAD_CYCLES)
    cut, before = cut_schedule.Cut(1, "random", 0, "command", None, 1, 1.0), health.State(0.1)
    none = Blocks(*(np.zeros(0, kind) for kind in (np.int64, np.int64, np.int64, bool)))
    how = health.State(None), None, None, lambda lba: None
    record = judging.judge(cut, lived, none, 90, PROMISE, True, before, *how).record
    assert record["judged"] and record["failed"] and record["findings"] == {"DEAD": 1}


def test_a_drive_that_is_read_only_is_one_event_whatever_the_sessions_after_it_try():
    """A session that writes nothing between them made it new, and a control session then accused the harness."""
    kinds = {"write": ("random", None), "again": ("again", None), "control": ("random", cut_schedule.NO_CUT)}
    before, earlier, findings = health.State(0.1), None, []
    for number, name in enumerate(("write", "write", "again", "control", "write", "again", "write"), 1):
        aim, control = kinds[name]
        row = np.zeros(int(name != "again"), history.ROW)
        row["seq"], row["n"], row["kind"], row["submit_ns"], row["done_ns"] = number, 1, WRITE, 10, 20
        row["status"] = -5
        cut = cut_schedule.Cut(number, aim, 0, None if control else "command", control, 1, 1.0)
        outcome = None if control else Outcome(70, 0, 75, 1.0)
        lived = Lived(row, 70, 70, 80, outcome, Plan(aim, 70), ready_s=None if control else 0.1, link_lost=True)
        blocks = Blocks(*(np.array([value]) for value in (0, 0, 0, False)))
        how = None, None, lambda lba: None, earlier
        earlier = judging.judge(cut, lived, blocks, 90, PROMISE, True, before, before, *how).record
        findings.append((set(earlier["findings"]), earlier["failed"], earlier["judged"], earlier["harness"]))
    assert findings[:2] == [({"REFUSED"}, False, True, ""), ({"READ_ONLY"}, True, True, "")]
    assert all(outcome == ({"READ_ONLY"}, False, False, "") for outcome in findings[2:])
