"""powerloss/judging.py: what a session came to, beside the verdict on its blocks."""

import errno
from pathlib import Path

import numpy as np
import pytest

from selfcheck.powerloss_scenes import KEPT, rows
from ssdrig.plan.kinds import cut_aims, cut_schedule
from ssdrig.plan.kinds.cut_schedule import Cut
from ssdrig.powerloss import aim, health, judging, tally
from ssdrig.powerloss.cycle import Lived
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, NEVER, NOT_BLANK, TRIM, WRITE
from ssdrig.powerloss.supply import Outcome
from ssdrig.powerloss.verdict import Blocks

FIRED_NS, ON_NS, SETTLED_NS = 1_000_000, 600_000_000, 700_000_000
DONE = (WRITE, 0, 1, 10, 20, FUA)
BY_COMMAND = Outcome(FIRED_NS, 5_000, ON_NS, 0.6)
BY_RIG = BY_COMMAND._replace(report={"rails": []})
READY = health.State(1.0)


def refused(code, lba=1, done_ns=40):
    return (WRITE, lba, 1, 30, done_ns, 0, -code)


def judged(commands, seen=None, control=None, outcome=BY_RIG, earlier=None, after=READY, tries=1, before=READY, **how):
    """The verdict on a session; `seen`: {lba: (content before, content now)}, else what was acknowledged is there."""
    shape = how.pop("shape", "command")
    seen = {0: (7, 100)} if seen is None else seen
    lba, (base, now) = np.array(list(seen), np.int64), np.array(list(seen.values()), np.int64).reshape(-1, 2).T
    cut = Cut(5, "random", 0, None if control else shape, control, 1, 0.5)
    lived = Lived(rows(commands), None, SETTLED_NS, SETTLED_NS, None if control else outcome, aim.Plan("random", None))
    lived.ready_s, lived.tries, lived.by_kernel = after.ready_s, tries, how.pop("by_kernel", True)
    blocks = Blocks(lba, base, now, np.zeros(len(lba), bool))
    return judging.judge(
        cut, lived, blocks, SETTLED_NS + 1, KEPT, True, before, after, None, None, lambda lba: None, earlier, **how
    )


def test_a_clean_cut_is_clean():
    record = judged([DONE]).record
    assert record["judged"] and not record["failed"] and not record["suspicion"] and not record["findings"]
    assert (record["acknowledged"], record["refused"]) == (1, 0)


def test_a_drive_that_refuses_commands_while_it_has_power_is_suspicious_and_not_clean():
    record = judged([DONE, refused(errno.EIO)]).record
    assert record["suspicion"] and record["findings"] == {"REFUSED": 1} and "(EIO)" in record["words"][0]


@pytest.mark.parametrize(
    "command",
    [
        refused(errno.ENODEV),  # it is not there: the link broke
        refused(errno.EIO, done_ns=FIRED_NS + 50),  # its power had gone
        (BLANK, 1, 1, 30, 40, 0, NOT_BLANK),
    ],
)
def test_what_is_no_refusal(command):
    assert judged([DONE, command]).record["refused"] == 0
    assert not judged([DONE, command]).record["suspicion"]


def test_a_drive_that_takes_no_writes_in_two_sessions_is_read_only():
    none = {0: (7, 7)}
    first = judged([refused(errno.EROFS)], none).record
    assert first["suspicion"] and not first["failed"] and first["judged"]
    second = judged([refused(errno.EROFS)], none, earlier=first).record
    assert second["failed"] and second["findings"] == {"READ_ONLY": 1}
    assert not judged([DONE, refused(errno.EROFS)], earlier=first).record["failed"]
    control = judged([refused(errno.EROFS)], none, cut_schedule.NO_CUT, earlier=first)
    assert control.record["failed"] and not control.harness


def test_a_session_without_an_acknowledged_write_tests_nothing():
    hangs = [(WRITE, 0, 1, 10, NEVER), (FLUSH, 0, 0, 10, 20)]
    record = judged(hangs).record
    assert not record["judged"] and "no write was acknowledged" in record["why_not"]
    assert judged(hangs, {0: (7, 6)}).record["failed"]  # an accusation stands all the same


def test_a_drive_that_works_on_after_the_off_command_was_not_cut():
    on = [DONE, (WRITE, 1, 1, FIRED_NS + 6_000, FIRED_NS + 9_000)]
    record = judged(on, outcome=BY_COMMAND).record
    assert not record["judged"] and "still executed commands" in record["why_not"]
    assert judged(on, outcome=BY_RIG).record["judged"]  # the rail falls for some ms
    during = [DONE, (WRITE, 1, 1, FIRED_NS + 4_000, FIRED_NS + 9_000)]
    again = [DONE, (WRITE, 1, 1, FIRED_NS + 6_000, ON_NS + 9_000)]
    assert judged(during, outcome=BY_COMMAND).record["judged"] and judged(again, outcome=BY_COMMAND).record["judged"]


@pytest.mark.parametrize("submit_ns", [30, FIRED_NS + 6_000])
@pytest.mark.parametrize("shape", ["command", "crowbar"])
@pytest.mark.parametrize(("after_ms", "unfelt"), [(50, False), (200, True), (400, True), (590, True)])
def test_commands_done_without_power_are_the_harness(submit_ns, shape, after_ms, unfelt):
    """A capacitor feeds the drive's own flush, not acknowledgements over a link without supply."""
    on = [DONE, (WRITE, 1, 1, submit_ns, FIRED_NS + after_ms * 1_000_000, FUA)]
    judgement = judged(on, {0: (7, 100), 1: (7, 101)}, shape=shape)
    assert bool(judgement.unfelt) == unfelt and judgement.record["judged"] != unfelt
    assert not judgement.record["failed"] and not judgement.record["suspicion"]


def test_a_host_that_saw_the_end_late_of_a_drive_that_counts_the_cycle_is_no_harness_failure():
    late = [DONE, (WRITE, 1, 1, 30, FIRED_NS + 200_000_000, FUA)]
    before, after = READY._replace(power_cycles=7), READY._replace(power_cycles=8)
    assert not judged(late, {0: (7, 100), 1: (7, 101)}, before=before, after=after).unfelt


@pytest.mark.parametrize(("counts", "unfelt"), [(None, True), (7, True), (8, False)])
def test_a_cut_that_came_late_to_a_drive_that_counts_the_cycle_is_not_judged(counts, unfelt):
    """A dock's capacitors, or a SIMULATED drive on a starved host: another drive's cut counts no cycle of this one."""
    begun = [DONE, (WRITE, 1, 1, FIRED_NS + 6_000, FIRED_NS + 174_000_000, FUA)]
    before = READY._replace(power_cycles=counts and 7)
    judgement = judged(begun, {0: (7, 100), 1: (7, 101)}, before=before, after=READY._replace(power_cycles=counts))
    assert bool(judgement.unfelt) == unfelt
    assert not judgement.record["judged"] and not judgement.record["failed"] and not judgement.record["suspicion"]
    assert "174 ms" in judgement.record["why_not"]


@pytest.mark.parametrize("sign", [refused(errno.ENODEV, done_ns=FIRED_NS + 50), (WRITE, 2, 1, 40, NEVER, FUA)])
def test_a_host_that_saw_the_end_late_of_a_drive_that_went_away_is_no_harness_failure(sign):
    """A bridge, and many a SATA drive, counts no power cycles; its lost link is as good a sign."""
    late = [DONE, (WRITE, 1, 1, 30, FIRED_NS + 200_000_000, FUA)]
    assert judged(late, {0: (7, 100), 1: (7, 101)}).unfelt
    assert not judged([*late, sign], {0: (7, 100), 1: (7, 101)}).unfelt


@pytest.mark.parametrize("outcome", [BY_RIG, BY_COMMAND, BY_COMMAND._replace(why_not="it answered")])
def test_a_first_cut_without_a_sign_of_a_loss_is_the_harness(outcome):
    cycles = READY._replace(power_cycles=7)
    judgement = judged([DONE], outcome=outcome, before=cycles, after=cycles, felt=False)
    assert judgement.unfelt and not judgement.record["judged"]
    assert not judgement.record["findings"] and not judgement.record["words"]  # no SMART_MISCOUNT of the drive
    assert not judged([DONE], outcome=outcome, before=cycles, after=cycles._replace(power_cycles=8), felt=False).unfelt
    gone = [DONE, refused(errno.ENODEV, done_ns=FIRED_NS + 50)]
    assert not judged(gone, outcome=outcome, before=cycles, after=cycles, felt=False).unfelt
    assert not judged([DONE], outcome=outcome, control=cut_schedule.NO_CUT, felt=False).unfelt


def test_commands_that_a_kernel_repeats_once_power_is_back_are_a_sign_of_a_loss():
    """A SATA link that is tried again ends none of them, and many a drive counts no power cycles."""
    cycles = READY._replace(power_cycles=7)
    repeated = [DONE, (WRITE, 1, 1, 30, ON_NS + 9_000)]
    assert not judged(repeated, before=cycles, after=cycles, felt=False).unfelt
    during = [DONE, (WRITE, 1, 1, 30, FIRED_NS + 9_000)]
    assert judged(during, before=cycles, after=cycles, felt=False).unfelt


@pytest.mark.parametrize("done_ns", [ON_NS + 9_000, NEVER])
def test_commands_of_a_slow_server_are_no_sign_where_it_counts_its_power_cycles(done_ns):
    """One that did nothing for as long as the cut of another drive lasted was taken for that drive."""
    slow = [DONE, (WRITE, 1, 1, 30, done_ns)]
    cycles, unknown = READY._replace(power_cycles=7), READY
    assert judged(slow, before=cycles, after=cycles, felt=False, by_kernel=False).unfelt
    assert not judged(slow, before=unknown, after=unknown, felt=False, by_kernel=False).unfelt
    counted = cycles._replace(power_cycles=8)
    assert not judged(slow, before=cycles, after=counted, felt=False, by_kernel=False).unfelt


def test_a_trim_that_is_ignored_is_no_fault_of_the_harness():
    trims = [DONE, (TRIM, 1, 1, 10, 20), (TRIM, 2, 1, 10, 20), (BLANK, 2, 1, 30, 40), (FLUSH, 0, 0, 50, 60)]
    judgement = judged(trims, {0: (7, 100), 1: (7, 7)}, control=cut_schedule.NO_CUT)
    assert not judgement.harness and judgement.record["judged"] and "TRIM_KEPT" in judgement.record["findings"]
    lost = judged(trims, {0: (7, 7), 1: (7, 7)}, control=cut_schedule.NO_CUT)
    assert "LOST_FUA" in lost.harness or "LOST_ACKED" in lost.harness


def test_control_session_right_after_the_cut_that_made_a_drive_read_only_is_no_harness_failure():
    none, control = {0: (7, 7)}, cut_schedule.NO_CUT
    judgement = judged([refused(errno.EROFS)], none, control, last_cut=4)
    assert not judgement.harness and judgement.record["judged"] and judgement.record["findings"] == {"REFUSED": 1}
    assert tally.Tally([judgement.record]).outcome(Path("run")).exit_code == 12
    then = judged([refused(errno.EROFS)], none, earlier=judgement.record)
    assert then.record["failed"] and then.record["findings"] == {"READ_ONLY": 1}
    again = {**judgement.record, "cut": 6, "aim": cut_aims.AGAIN, "refused": 0}
    assert (
        tally.Tally([judgement.record, again]).before(7)["refused"] == 1
        and not tally.Tally([again]).before(7)["refused"]
    )
    assert judged([refused(errno.EROFS)], none, control, last_cut=3).harness  # its power was on all the time
    assert judged([DONE, refused(errno.EROFS)], control=control, last_cut=4).harness


def test_a_refusal_in_a_control_session_is_the_harness():
    assert "refused 1 commands (EIO)" in judged([DONE, refused(errno.EIO)], control=cut_schedule.NO_CUT).harness


def test_a_counter_that_wraps_or_of_another_source_has_not_gone_back():
    counters = {"nand_written_bytes": 7, "nand_written_source": "C0h", "protocol": "NVMe"}
    first, wraps = judging.state(counters, 1.0), judging.state({**counters, "nand_written_wrap_bytes": 1 << 48}, 1.0)
    assert (first.nand_write_bytes, first.nand_source, first.protocol) == (7, "C0h", "NVMe")
    assert wraps.nand_write_bytes is None


def test_a_drive_that_smartctl_names_otherwise_than_the_kernel_is_the_same_drive():
    smartctl = {"model": "Samsung SSD 870 EVO 1TB", "capacity_bytes": 10**12, "exit_status": 4}
    before, after = (
        judging.state(smartctl, 1.0),
        judging.state({**smartctl, "model": "Samsung SSD 870", "exit_status": 2}, 1.0),
    )
    assert health.judge(before, after) == []
    other = judging.state({**smartctl, "model": "SATAFIRM   S11"}, 1.0)
    assert [symptom.name for symptom in health.judge(before, other)] == ["IDENTITY"]


def test_a_drive_that_does_not_come_back_is_what_the_cut_did():
    gone = {"seen": {}, "after": health.State(None)}
    record = judged([(WRITE, 0, 1, 10, NEVER)], **gone, tries=10).record
    assert record["judged"] and record["failed"] and record["findings"] == {"DEAD": 1}
    record = judged([DONE], **gone, tries=9).record
    assert record["suspicion"] and record["findings"] == {"MISSING": 1} and record["words"]
