"""plan/rules/quiet.py by vectors, and the idle step that ends by it on a stage of stand-ins, second by second."""

import contextlib
from types import SimpleNamespace

import pytest
from small_plans import DRIVE, HEAD

from ssdrig.base.errors import UsageError
from ssdrig.plan import cost
from ssdrig.plan.rules import quiet
from ssdrig.plan.rules.laid import NOTHING
from ssdrig.run import budget, dry_run, engine, prepare
from ssdrig.views.step_results import sentences

FLOOR, WORK = 0.5, 1.5
WORKED = [WORK] * 30 + [FLOOR] * 90


@pytest.mark.parametrize(
    ("power_W", "reached", "after_s", "above_J"),
    [
        ([FLOOR] * 119, False, None, None),  # two windows at least
        ([FLOOR] * 120, True, 0, 0.0),
        (WORKED, True, 30, 30.0),
        (WORKED[:-1], False, None, None),
        ([WORK] * 100 + [FLOOR] * 59, False, None, None),
        ([WORK] * 100 + [FLOOR] * 60, True, 100, 100.0),
        ([FLOOR] * 60 + [WORK] + [FLOOR] * 59, False, None, None),  # one burst, and the window begins anew
        ([FLOOR] * 60 + [WORK] + [FLOOR] * 60, True, 61, 1.0),
        ([FLOOR] * 119 + [FLOOR * 1.02], True, 0, 0.01),  # 2 % is within the band
        ([FLOOR] * 119 + [FLOOR * 1.03], False, None, None),
        ([0.05] * 119 + [0.055], True, 0, 0.005),  # 5 mW
        ([0.05] * 119 + [0.0552], False, None, None),
        ([FLOOR] * 119 + [FLOOR * 0.9], False, None, None),  # below the floor: it has not settled either
        ([FLOOR, WORK] * 120, False, None, None),  # as much work as rest is no noise, however regular
        ([0.49, 0.51] * 60, True, 0, 0.0),  # 2 % of noise is within its own 3 sigma
        ([FLOOR] * 60 + [None] + [FLOOR] * 59, False, None, None),
        ([FLOOR] * 60 + [None] + [FLOOR] * 60, True, 61, None),
        ([None] * 500, False, None, None),
    ],
)
def test_the_rule(power_W, reached, after_s, above_J):
    verdict = quiet.verdict(power_W)
    assert (verdict.reached, verdict.after_s) == (reached, after_s)
    assert verdict.above_J is None if above_J is None else verdict.above_J == pytest.approx(above_J, abs=0.011)
    assert verdict.reached or verdict.why


def test_what_draws_the_same_power_for_longer_than_the_least_looks_like_a_floor():
    assert quiet.verdict([WORK] * 120).reached and not quiet.verdict([WORK] * 120, 240).reached
    # once it has ended the floor is the lower one, whatever was before
    assert quiet.verdict([WORK] * 300 + [FLOOR] * 60).floor_W == FLOOR


def test_the_figures_of_a_rest():
    verdict = quiet.verdict(WORKED)
    assert (verdict.floor_W, verdict.band_W) == (FLOOR, 0.02 * FLOOR) and verdict.why is None
    assert verdict.energy_J == pytest.approx(30 * WORK + 90 * FLOOR)
    gap = quiet.verdict([None] + WORKED)
    assert gap.reached and gap.energy_J is None and gap.why == "1 s have no power samples"


# ---- the step

PLAN = (
    HEAD
    + """[[step]]
name = "rest"
do = "idle"
until = "quiet"
most = "10 min"
"""
)


def prepared(tmp_path, text=PLAN, capabilities=prepare.VIRTUAL, drive=DRIVE):
    path = tmp_path / "x.toml"
    path.write_text(text)
    return prepare.prepare(str(path), drive, capabilities=capabilities)


def rest(acts, power_W, nand=(10**9, 10**9 + 5 * 10**8), k=1):
    """(events in order, how many drive seconds it took); power_W of each drive second, the last one for ever."""
    events, seconds = [], [0]
    counts = iter(nand)

    class Live:
        idle = False

        def begin(self, pace):
            self.idle = pace.step == "idle"

        def poll_smart(self, reason):
            assert not self.idle, "SMART wakes the drive"
            events.append({"kind": "poll", "reason": reason})
            count = next(counts)
            return {"nand_written_bytes": count, "host_written_bytes": 7, "nand_written_unit_bytes": 1000}

        def power_W(self):
            return power_W[min(seconds[0] // k, len(power_W) - 1)]

        def wait(self, host_s, check, ended=lambda: False):
            while seconds[0] < host_s:
                check()
                watts_read = ended()
                seconds[0] += 1
                if watts_read:
                    return

        act = act_done = left_s = lambda self, *more: None

    book = SimpleNamespace(event=lambda kind, **fields: kind == "laid" or events.append({"kind": kind, **fields}))
    stop = SimpleNamespace(check=lambda: None, second_raises=contextlib.nullcontext)
    stage = SimpleNamespace(
        book=book, live=Live(), stop=stop, round=None, means={}, seen={}, dilation=k, cut=None, check=lambda: None
    )
    stage.laid = NOTHING
    stage.bench = SimpleNamespace(drive={"capacity_bytes": 1 << 30}, remember=lambda offsets: None)
    assert engine.carry_out(acts, stage, budget.Budget(None)) is None
    return events, seconds[0] // k


@pytest.mark.parametrize("k", [1, 3])
def test_an_idle_until_quiet_ends_when_power_has_come_down(tmp_path, k):
    events, lasted_s = rest(prepared(tmp_path).acts, [WORK] * 100 + [FLOOR], k=k)
    assert lasted_s == 160
    kinds = [event["kind"] for event in events]
    assert kinds == ["poll", "step.start", "step.end", "poll", "quiet"], "no poll between the two"
    event = events[-1]
    assert event["step"] == "rest" and event["reached"] and (event["after_s"], event["lasted_s"]) == (100, 160)
    assert event["energy_J"] == pytest.approx(100 * WORK + 60 * FLOOR)
    assert event["above_J"] == pytest.approx(100 * (WORK - FLOOR))
    assert (event["nand_written_bytes"], event["host_written_bytes"]) == (5 * 10**8, 0)
    assert {event["reason"] for event in events if event["kind"] == "poll"} == {"idle"}


def test_one_that_never_is_quiet_ends_at_most_and_says_so(tmp_path):
    events, lasted_s = rest(prepared(tmp_path).acts, [FLOOR, WORK] * 300)
    assert lasted_s == 600 and not events[-1]["reached"] and "left the band" in events[-1]["why"]


def test_a_drive_that_does_not_count_nand_bytes_has_none_with_the_reason(tmp_path):
    events, _ = rest(prepared(tmp_path).acts, [FLOOR], nand=(None, None))
    assert events[-1]["nand_written_bytes"] is None and events[-1]["nand_why"] == "the drive does not count NAND bytes"


def test_the_least_is_a_key_and_scales_the_window(tmp_path):
    acts = prepared(tmp_path, PLAN + 'least = "10 s"\n').acts
    assert rest(acts, [WORK] * 3 + [FLOOR])[1] == 10


def test_a_rest_of_a_fixed_time_counts_what_the_drive_writes_by_itself(tmp_path):
    fixed = PLAN.replace('until = "quiet"\nmost = "10 min"', 'time = "30 s"')
    assert rest(prepared(tmp_path, fixed).acts, [FLOOR])[0][-1]["kind"] == "step.end"
    events, lasted_s = rest(prepared(tmp_path, fixed + 'smart = "edges"\n').acts, [FLOOR])
    assert [event["kind"] for event in events] == ["poll", "step.start", "step.end", "poll", "rest"] and lasted_s == 30
    assert events[-1]["lasted_s"] == 30 and events[-1]["nand_written_bytes"] == 5 * 10**8
    unasked = rest(prepared(tmp_path, PLAN + 'smart = "none"\n').acts, [FLOOR])[0]
    assert [event["kind"] for event in unasked] == ["step.start", "step.end", "quiet"]
    assert "asks for no SMART reading" in unasked[-1]["nand_why"]
    row = SimpleNamespace(result=events[-1], windows={"all": {"energy_J": 15.0, "errors": {"energy_J": 0.25}}})
    assert [line.partition(" ")[0] for line in sentences(row)] == ["15.00", "500"] and "0.25" in sentences(row)[0]
    assert len(sentences(SimpleNamespace(result=events[-1], windows={}))) == 1


def test_without_a_rig_it_is_refused_before_the_start_or_left_out(tmp_path):
    with pytest.raises(UsageError, match=r"a bench with rig for step rest.*--rig PORT"):
        prepared(tmp_path, capabilities=prepare.REAL)
    with pytest.raises(UsageError, match="needs rig"):  # nothing is left
        prepared(tmp_path, PLAN + "optional = true\n", prepare.REAL)
    more = 'optional = true\n[[step]]\nname = "flush"\ndo = "flush"\n'
    act, _ = prepared(tmp_path, PLAN + more, prepare.REAL).acts
    assert act.not_run == "needs rig, which this bench has not"


def test_what_it_takes_is_a_range(tmp_path):
    made = prepared(tmp_path)
    assert cost.of(made.acts[0], DRIVE).time_s == pytest.approx((120 + 0.1, 600 + 10))  # and two SMART readings
    assert "until quiet, 120…600 s" in "\n".join(dry_run.table(made, budget.Budget(None)))
    assert prepare.method(made)["tested_bytes"] is None
    with pytest.raises(UsageError, match="`most` of at least `least`, 120 s"):
        prepared(tmp_path, PLAN.replace("10 min", "1 min"))
    with pytest.raises(UsageError, match="`least` only with `until`"):
        prepared(tmp_path, PLAN.replace('until = "quiet"\nmost = "10 min"', 'time = "5 s"\nleast = "2 s"'))
