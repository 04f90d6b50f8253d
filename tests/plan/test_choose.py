"""plan/rules/choose.py by vectors, and a plan with a choose step in process: expanded, priced, run, resumed."""

import contextlib
from types import SimpleNamespace

import pytest
from small_plans import DRIVE, FILL, HEAD, operating_points

from ssdrig.base.errors import UsageError
from ssdrig.plan import cost, state, values
from ssdrig.plan.rules import choose
from ssdrig.plan.rules.laid import NOTHING
from ssdrig.run import dry_run, earlier, engine, prepare, standing
from ssdrig.run.budget import Budget

SWEEP, PICK, AGAIN = operating_points(
    qds="1, 8, 32",
    time_s=10,
    rounds=2,
    points='{ at = "max", where = "lat_mean < 2 ms" }, { at = "mid" }, { at = "min", qd = 1 }',
    picked='"max", "mid", "min"',
    again_s=60,
)
PLAN = HEAD + FILL + SWEEP + PICK + AGAIN
# by QD: IOPS, mean latency in µs
SHOWN = {1: (8_000, 125.0), 8: (30_000, 260.0), 32: (40_000, 800.0)}


def means(iops, lat_us):
    return {"iops": float(iops), "MB/s": iops * 0.004096, "lat_mean": float(lat_us)}


def picked(wanted, shown, value="iops"):
    """{at: qd, or why there is none} of points {qd: [(iops, lat), …] by the round}."""
    points = {f"p qd={qd}": {"qd": qd} for qd in shown}
    seen = {f"p qd={qd}": {i: means(*mean) for i, mean in enumerate(of, 1)} for qd, of in shown.items()}
    picks = choose.picks(values.points(wanted, "points"), points, value, seen)
    assert list(picks) == [pick["at"] for pick in wanted]
    return {at: pick.point["qd"] if pick.point else pick.why for at, pick in picks.items()}


MAX, MID, MIN = {"at": "max"}, {"at": "mid"}, {"at": "min"}


@pytest.mark.parametrize(
    ("wanted", "shown", "picks"),
    [
        ([MAX, MID, MIN], {1: [(10, 1)], 8: [(60, 2)], 32: [(100, 3)]}, {"max": 32, "mid": 8, "min": 1}),
        # PTS: the most IOPS with a mean response time below 5 ms; mid is nearest to the middle of the two picked
        (
            [MID, MAX | {"where": "lat_mean < 5 ms"}],
            {1: [(10, 1)], 2: [(30, 2)], 8: [(50, 4999)], 32: [(100, 5000)]},
            {"mid": 2, "max": 8},
        ),
        ([MID], {1: [(10, 1)], 2: [(54, 1)], 8: [(56, 1)], 32: [(100, 1)]}, {"mid": 2}),  # both 1 off: the first
        ([MAX, MIN], {1: [(7, 1)], 8: [(7, 1)]}, {"max": 1, "min": 1}),
        ([MIN | {"qd": 8}], {1: [(7, 1)], 8: [(9, 1)]}, {"min": 8}),
        # the last five rounds only
        ([MAX], {1: [(999, 1)] + 5 * [(10, 1)], 8: 6 * [(11, 1)]}, {"max": 8}),
        ([MAX | {"where": "iops > 200"}, MID], {1: [(10, 1)]}, {"max": "no point has iops > 200", "mid": "no max"}),
        ([MIN], {1: [(0, 0)]}, {"min": "no point has I/O"}),
        ([MIN], {1: [(0, 0)], 8: [(5, 1)]}, {"min": 8}),
    ],
)
def test_picks(wanted, shown, picks):
    assert picked(wanted, shown) == picks


def test_the_latency_of_a_point_is_weighted_by_the_ios_of_its_rounds():
    figures = choose.figures({1: means(100, 10), 2: means(300, 50)})
    assert figures == pytest.approx({"iops": 200, "MB/s": 200 * 0.004096, "lat_mean": 40})


def test_rounds_that_are_done_again_take_the_place_of_the_old_ones():
    seen = {}
    for number, iops in ((1, 10), (2, 20), (3, 30), (2, 25)):
        choose.remember(seen, "p", number, means(iops, 1))
    assert {number: figures["iops"] for number, figures in seen["p"].items()} == {1: 10, 2: 25}


# ---- a plan


class Book:
    def __init__(self):
        self.events = []

    def event(self, kind, **fields):
        self.events.append({"kind": kind, **fields})


def prepared(tmp_path, text=PLAN, drive=DRIVE):
    path = tmp_path / "x.toml"
    path.write_text(text)
    return prepare.prepare(str(path), drive)


def carry_out(monkeypatch, acts, seen=None, shown=SHOWN):
    """(events, [(path, qd) of each load]) of acts whose loads show what SHOWN says."""
    from ssdrig.run import steps

    book, done = Book(), []
    stage = SimpleNamespace(
        book=book,
        live=SimpleNamespace(**dict.fromkeys(("begin", "poll_smart", "act", "act_done", "left_s"), lambda *more: None)),
        stop=SimpleNamespace(check=lambda: None, second_raises=contextlib.nullcontext),
        cut=None,
        bench=SimpleNamespace(drive={"capacity_bytes": 1 << 30}, remember=lambda offsets: None),
        **{"round": None, "means": {}, "seen": seen or {}, "picked": {}, "laid": NOTHING},
    )

    def load(act, stage, number):
        done.append((act.path, act.keys["qd"]))
        stage.means[act.label] = means(*shown[act.keys["qd"]])
        return {"bytes": 1}

    monkeypatch.setattr(steps.of("load"), "carry_out", load)
    monkeypatch.setattr(steps.of("fill"), "carry_out", lambda act, stage, number: {"bytes": act.amount_bytes})
    assert engine.carry_out(acts, stage, Budget(None)) is None
    return book.events, done


def of(events, kind):
    return [event for event in events if event["kind"] == kind]


def test_the_points_that_were_picked_set_what_was_swept(tmp_path, monkeypatch):
    events, done = carry_out(monkeypatch, prepared(tmp_path).acts)
    assert [qd for path, qd in done if path == "again/long"] == [32, 8, 1]
    (event,) = of(events, "choose")
    assert (event["step"], event["value"]) == ("pick", "iops")
    assert [(row["at"], row["point"], row["value"], row["of"]) for row in event["points"]] == [
        ("max", {"qd": 32}, 40_000, 3),
        ("mid", {"qd": 8}, 30_000, 3),
        ("min", {"qd": 1}, 8_000, 3),
    ]
    begun = [event for event in of(events, "step.start") if event["step"] == "again/long"]
    assert [(event["point"], event["chosen"]) for event in begun] == [
        ({"at": "max"}, {"qd": 32}),
        ({"at": "mid"}, {"qd": 8}),
        ({"at": "min"}, {"qd": 1}),
    ]


def test_a_limit_that_no_point_keeps_leaves_out_what_comes_later_with_the_reason(tmp_path, monkeypatch):
    slow = {qd: (iops, 1e6) for qd, (iops, _) in SHOWN.items()}
    events, done = carry_out(monkeypatch, prepared(tmp_path).acts, shown=slow)
    assert [qd for path, qd in done if path == "again/long"] == [1], "min names its point, whatever it shows"
    assert {event["why"] for event in of(events, "not_run")} == {
        "no operating point max: no point has lat_mean < 2 ms",
        "no operating point mid: no max",
    }


def test_before_the_start_the_cost_is_that_of_any_of_the_points(tmp_path):
    text = PLAN.replace("over = [{ qd = [1, 8, 32] }]", 'over = [{ time = ["10 s", "90 s"] }]')
    text = text.replace('time = "10 s"\n', "").replace('  time = "60 s"\n', "").replace(", qd = 1", "")
    made = prepared(tmp_path, text)
    act = next(act for act in made.acts if act.label == "again/long at=mid")
    assert {load.keys["time"] for load in act.choices} == {10.0, 90.0}
    costs = cost.of(act, DRIVE)
    assert costs.time_s == (10.1, 91.0) and costs.written_bytes[0] < costs.written_bytes[1] <= costs.most_bytes
    rows = {row["path"]: row for row in prepare.as_json(made)["acts"]}
    assert rows["again/long"]["choices"] == [{"time": "10 s"}, {"time": "90 s"}]
    table = "\n".join(dry_run.table(made, Budget(None)))
    assert "max where lat_mean < 2 ms, mid, min: of 2 points" in table
    assert "3 points x 10…90 s, each of 2 that were swept" in table


def test_a_point_that_reads_what_was_never_written_is_refused_whichever_is_picked(tmp_path):
    text = PLAN.replace("over = [{ qd = [1, 8, 32] }]", "over = [{ read = [0, 50] }]")
    text = text.replace("  read = 0\n", "").replace(", qd = 1", "")
    assert prepared(tmp_path, text)
    with pytest.raises(UsageError, match="data in all"):
        prepared(
            tmp_path, text.replace('[[step]]\nname = "again', '[[step]]\nname="t"\ndo="trim"\n[[step]]\nname = "again')
        )


def test_points_that_the_drive_cannot_do_are_not_picked(tmp_path, monkeypatch):
    text = PLAN.replace("qd = [1, 8, 32]", 'block = ["512 B", "4 KiB"]')
    text = text.replace('  block = "4 KiB"\n', "").replace("qd = 1 }", 'block = "512 B" }')
    acts = prepared(tmp_path, text).acts
    why = {act.label: act.not_run for act in acts if act.path == "again/long"}
    assert why["again/long at=max"] is None
    assert why["again/long at=min"] == "no point that it could be at is run on this drive"
    events, done = carry_out(monkeypatch, acts, shown={1: (5, 5.0)})
    assert len([path for path, _ in done if path == "again/long"]) == 1
    assert "no operating point mid: no min" in {event["why"] for event in of(events, "not_run")}


@pytest.mark.parametrize(
    ("after", "begins"),
    [
        (("step.end", "sweep/point", 2), "pick"),
        (("step.start", "pick", None), "pick"),
        (("step.end", "pick", None), "again/long"),
    ],
)
def test_a_run_that_was_cut_short_picks_the_same_points_again(tmp_path, monkeypatch, after, begins):
    acts = prepared(tmp_path).acts
    events, _ = carry_out(monkeypatch, acts)
    kind, path, number = after
    at = max(i for i, e in enumerate(events) if (e["kind"], e.get("step"), e.get("round")) == (kind, path, number))
    part = events[: at + 1]
    past = standing.past(acts, [({}, part)])
    todo = standing.todo(acts, past, state.interrupted(past.state))
    assert acts[todo.begins].path == begins
    again, done = carry_out(monkeypatch, todo.acts, earlier.points(part), shown=dict.fromkeys(SHOWN, (1, 1.0)))
    assert done == [("again/long", 32), ("again/long", 8), ("again/long", 1)]
    assert of(again, "choose") == of(events, "choose"), "not by what the new part shows"


def test_what_a_choose_step_that_was_left_out_would_have_set_is_left_out(tmp_path, monkeypatch):
    text = HEAD + FILL + SWEEP + PICK + 'needs = ["write-cache"]\noptional = true\n' + AGAIN
    events, done = carry_out(monkeypatch, prepared(tmp_path, text).acts)
    assert "again/long" not in {path for path, _ in done}
    why = {event["step"]: event["why"] for event in of(events, "not_run")}
    assert why["again/long"] == "the choose step before it was not run" and "write-cache" in why["pick"]
