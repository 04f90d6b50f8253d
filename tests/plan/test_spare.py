"""plan/rules/spare.py: no steady state before the spare area is used up."""

from types import SimpleNamespace

import numpy as np
import pytest

from ssdrig.plan import values
from ssdrig.plan.rules import ends, spare, steady
from ssdrig.plan.rules.laid import Laid
from ssdrig.plan.rules.spare import Spare
from ssdrig.reading import steady_state

GB, GIB = 10**9, 1 << 30
UNTIL = values.until([{"steady": "pts", "value": "iops"}], "until")
FRESH, USED = 50_000, 30_000  # IOPS


def two_levels(spare_bytes, fresh=FRESH, used=USED, s=40_000):
    """I/Os of each second of a filled drive, 4 KiB each, until its spare area is used up and after."""
    at = int(spare_bytes / 4096 / fresh)
    return np.concatenate([np.full(at, float(fresh)), np.full(s, float(used))])


def ended(counts, drive, until=UNTIL, cold_s=None):
    """(second, drive writes of the load, verdict) at which the rule ends a load."""
    watch = ends.Watch(until, drive.capacity_bytes, drive, cold_s=lambda: cold_s)
    written = np.cumsum(counts) * 4096
    for second in range(60, len(counts), 20):
        if watch.met(counts[:second], int(written[second])):
            return second, written[second] / drive.capacity_bytes, watch.verdict
    return None, None, watch.verdict


def filled(capacity, raw=None, churned=0):
    return Spare(int(capacity), raw, int(capacity), int(churned))


@pytest.mark.parametrize(("gb", "gib"), [(200, 336), (480, 768), (800, 1024), (1000, 1024), (4000, 4096)])
@pytest.mark.parametrize("known", [True, False])
def test_no_drive_of_a_review_is_steady_on_its_fresh_plateau(gb, gib, known):
    size = gib * GIB - gb * GB
    second, _, verdict = ended(two_levels(size), filled(gb * GB, gib * GIB if known else None))
    plateau_s = int(size / 4096 / FRESH)
    assert second >= plateau_s + 5 * 60
    assert verdict["average"] == pytest.approx(USED) and verdict["past_spare"] is True
    wrote, oracle = (size + (s - plateau_s) * USED * 4096 for s in (second, plateau_s + 300))
    assert wrote <= 1.25 * oracle


def test_a_fall_that_no_rule_sees_needs_the_raw_nand_or_a_drive_write():
    size = 300 * GB
    counts = two_levels(size, used=45_000)
    second, writes, verdict = ended(counts, filled(1000 * GB))
    assert writes >= 1 and verdict["past_spare_by"] == "written"
    second, writes, verdict = ended(counts, filled(1000 * GB, 1300 * GB))
    assert 0.3 < writes < 0.4 and verdict["past_spare_by"] == "raw"


def test_an_empty_drive_needs_a_drive_write_more():
    counts = np.full(12_000, 50_000.0)  # 2.46 TB
    assert ended(counts, Spare(1000 * GB))[1] >= 2
    assert 1.3 <= ended(counts, Spare(1000 * GB, 1300 * GB))[1] < 1.5


def test_what_was_overwritten_before_counts():
    counts = np.full(1000, 30_000.0)
    assert ended(counts, filled(1000 * GB, 1300 * GB, churned=400 * GB))[0] == 300
    assert ended(counts, filled(1000 * GB, 1300 * GB, churned=100 * GB))[0] is None
    assert ended(counts, filled(1000 * GB, churned=1000 * GB))[0] == 300
    assert ended(counts, filled(1000 * GB, churned=700 * GB))[0] is None


def test_the_end_of_an_slc_cache_is_no_cliff():
    """20 GB at three times the speed, then the plateau of 300 GB."""
    cache = np.full(33, 150_000.0)
    counts = np.concatenate([cache, two_levels(300 * GB - 20 * GB)])
    second, _, verdict = ended(counts, filled(1000 * GB))
    assert verdict["average"] == pytest.approx(USED) and second > 1400


@pytest.mark.parametrize("lasts_s", [20, 120])
def test_a_dip_of_the_fresh_plateau_is_no_cliff(lasts_s):
    counts = two_levels(300 * GB)
    counts[800 : 800 + lasts_s] = 10_000
    _, _, verdict = ended(counts, filled(1000 * GB))
    assert verdict["average"] == pytest.approx(USED, rel=0.02)


def test_fall_by_heat_is_no_cliff():
    """It slows down to 60 % at second 400, on the fresh plateau of 300 GB, and counts that."""
    counts = np.concatenate([np.full(400, float(FRESH)), np.full(20_000, 0.6 * FRESH)])
    second, writes, verdict = ended(counts, filled(1000 * GB), cold_s=390.0)
    assert writes >= 1 and verdict["past_spare_by"] == "written"
    _, writes, verdict = ended(counts[:5000], filled(1000 * GB), cold_s=390.0)
    assert writes is None and (verdict["passed"], verdict["why"]) == (False, spare.HOT)
    second, writes, verdict = ended(counts, filled(1000 * GB, 1300 * GB), cold_s=390.0)
    assert 0.3 < writes < 0.5 and verdict["past_spare_by"] == "raw"
    for cold_s in (None, 410.0):  # it was cold when its level fell
        assert ended(counts, filled(1000 * GB), cold_s=cold_s)[2]["past_spare_by"] == "cliff"


@pytest.mark.parametrize(
    ("minutes", "why"),
    [
        ({-5: 7, 380: 7, 440: 8}, spare.HOT),
        ({-900: 6, -5: 7, 440: 7, 900: 9}, None),  # before the load, and after the fall
        ({-5: None, 440: None}, None),  # not counted
        ({10: 7, 440: 8}, spare.HOT),
        ({}, None),
    ],
)
def test_window_after_a_fall_by_heat_is_not_steady(minutes, why):
    counts = np.concatenate([np.full(400, float(FRESH)), np.full(2600, 0.6 * FRESH)])
    snapshots = [{"t_ns": at_s * 10**9, "warning_temp_min": count} for at_s, count in minutes.items()]
    verdict = of_load(counts, 1000 * GB, snapshots)(2000, 3000)
    assert (verdict["passed"], verdict["why"]) == (why is None, why)


def test_a_level_that_still_moves_is_not_steady():
    """After the cliff it recovers from 20 000 to 30 000 over the spare area's size; the PTS rule holds."""
    size = 300 * GB
    wrote, counts = 0.0, []
    while wrote < 2.5 * size:
        past = max(0.0, wrote - size) / size
        counts.append(FRESH if wrote < size else USED - 10_000 * np.exp(-past / 0.3))
        wrote += counts[-1] * 4096
    plain = values.until([{"steady": "pts", "value": "iops", "spare": "any"}], "until")
    counts = np.array(counts)
    assert ended(counts, filled(1000 * GB), plain)[2]["average"] == pytest.approx(FRESH)
    assert ended(counts, filled(1000 * GB))[2]["average"] == pytest.approx(USED, rel=0.05)


def test_the_standards_rule_ends_on_the_plateau_and_says_so():
    plain = values.until([{"steady": "pts", "value": "iops", "spare": "any"}], "until")
    second, _, verdict = ended(two_levels(300 * GB), filled(1000 * GB), plain)
    assert second == 300 and verdict["passed"] is True and verdict["past_spare"] is False


def test_reads_use_up_nothing_and_need_no_spare_area():
    watch = ends.Watch(UNTIL, GB, filled(GB), reads_only=True)
    assert watch.met([1000.0] * 300, 0) and watch.ended_by == "steady"


def test_a_window_of_the_plateau_is_not_steady():
    counts = two_levels(300 * GB)
    written = np.cumsum(counts) * 4096.0
    spare_ = spare.used_up(counts, written, filled(1000 * GB))
    flat = {"passed": True, "why": None}
    assert spare.judged(flat, spare_, 100, written[1000])["passed"] is False
    assert spare.judged(flat, spare_, 1500, written[1600])["passed"] is False, "it has not settled"
    settled = spare.judged(flat, spare_, 1500, written[2500])
    assert settled["passed"] and settled["past_spare_by"] == "cliff"
    since = (written[2500] - 300 * GB) / (300 * GB)
    assert settled["spare_areas_since"] == pytest.approx(since, rel=0.05) and f"{since:.1f}" in steady.rests_on(
        settled | {"drive_writes": 1.4}
    )
    assert spare.judged(flat, None, 1500, 1e15)["passed"] is False
    assert spare.judged({"passed": None, "why": "w"}, None, 0, 0)["why"] == "w"


def slow_dips(spare_bytes, dip=0.6, every_s=3600, lasts_s=1200, s=20_000):
    """Two levels, the second one with slow dips, the first of which begins `every_s` after the cliff."""
    counts = two_levels(spare_bytes, s=s)
    at = int(spare_bytes / 4096 / FRESH)
    for begin in range(at + every_s, len(counts), every_s):
        counts[begin : begin + lasts_s] = dip * USED
    return counts, at


def of_load(counts, capacity, snapshots=()):
    """The judge of the windows of such a load on a filled drive whose raw NAND is not known."""
    header = {"drive": {"capacity_bytes": capacity}}
    data = SimpleNamespace(iops=counts, bw_Bps=counts * 4096, header=header, asked=lambda key: capacity)
    data.t0_ns, data.snapshots, data.load_s, data.axis_s = 0, snapshots, len(counts), lambda t_ns: t_ns / 1e9
    return steady_state.judge(data, Laid(capacity, capacity), 0)


def test_a_window_within_a_slow_dip_is_not_steady():
    """The seconds that follow it show that the drive came back; a dip that lasts to the end cannot be told."""
    counts, at = slow_dips(300 * GB)
    judged = of_load(counts, 1000 * GB)
    inside = judged(at + 3650, at + 4750)
    assert inside["average"] == pytest.approx(0.6 * USED) and inside["range_percent"] == 0
    assert inside["passed"] is False and inside["why"] == spare.LATER
    assert judged(at + 2500, at + 3500)["passed"] is False, "at the level, and the load left it for 20 minutes"
    steady_ = of_load(two_levels(300 * GB, s=20_000), 1000 * GB)
    assert steady_(at + 2500, at + 3500)["passed"] is True
    assert of_load(counts[: at + 4750], 1000 * GB)(at + 3650, at + 4750)["passed"] is True


@pytest.mark.parametrize(
    ("later", "unlike"),
    [([], False), ([100] * 49, False), ([70] * 49, False), ([70] * 50, True), ([100] * 400, False)]
    + [([100] * 300 + [0] * 15, False), ([100] * 300 + [70] * 100, True), ([130] * 100 + [100] * 300, True)],
)
def test_a_stall_later_is_no_other_level(later, unlike):
    assert spare.unlike_later(100.0, 100, later) is unlike


def test_no_count_breaks_it():
    for counts in ([], [0.0], [0.0] * 400, [1e300] * 400):
        watch = ends.Watch(UNTIL, 1000, filled(1000))
        watch.met(counts, 10)
    assert spare.used_up([], [], filled(1000)) is None


def test_drive_writes_stand_beside_a_verdict():
    made = {"drive_writes": 1.4, "past_spare": True, "past_spare_by": "cliff"}
    assert "1.40 drive writes" in steady.rests_on(made)
    many = steady.rests_on(made | {"drive_writes": 302.35, "spare_areas_since": 4210.02, "passed": True})
    assert "at 302 drive writes" in many and ", 4210 × the spare area" in many
    assert steady.rests_on(made | {"past_spare": False}) != steady.rests_on(made)
    assert steady.rests_on(steady.untested("short")) == "" == steady.rests_on({})


@pytest.mark.parametrize(("since", "passed", "more"), [(0.3, True, True), (0.3, False, False), (1.2, True, False)])
def test_a_verdict_soon_after_the_cliff_says_what_it_cannot_exclude(since, passed, more):
    """Models of drives that recover stay in their dip for up to one spare area of writes; 28 of 40 are called steady
    in it, and no load tells it from the last level before it ends."""
    verdict = {"drive_writes": 1.4, "past_spare": True, "past_spare_by": "raw", "spare_areas_since": since}
    later = verdict | {"passed": passed, "spare_areas_since": 2.0}
    words, plain = steady.rests_on(verdict | {"passed": passed}), steady.rests_on(later)
    assert (len(words) > len(plain)) is more
