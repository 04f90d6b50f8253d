"""run/engine.py on a stage of stand-ins: order, rounds, the rule, the budget, what is not run. In process."""

import contextlib
from types import SimpleNamespace

import pytest
from event_book import Book
from small_plans import DRIVE, FILLED, HEAD

from ssdrig.base.errors import UsageError
from ssdrig.plan.rules.laid import NOTHING
from ssdrig.run import budget, engine, prepare, steps

PLAN = (
    HEAD
    + FILLED
    + """[[step]]
name = "rounds"
do = "repeat"
most = 9
until = [{ steady = "pts", track = ["iops read=0 block=4KiB", "iops read=100 block=8KiB"], spare = "any" }]
  [[step.step]]
  name = "point"
  do = "load"
  pattern = "random"
  over = [{ read = [100, 0] }, { block = ["8 KiB", "4 KiB", "512 B"] }]
  time = "2 s"
[[step]]
name = "rest"
do = "idle"
time = "0 s"
"""
)


@pytest.fixture
def carried_out(tmp_path, monkeypatch):
    """carried_out(iops(round, label), budget) -> (book, what was done, why it ended)."""

    def carry_out(iops=lambda number, label: 1000.0, most_bytes=None, size=1 << 20, plan=PLAN):
        path = tmp_path / "x.toml"
        path.write_text(plan)
        prepared = prepare.prepare(str(path), DRIVE)
        book, done, polls = Book(), [], []
        none = {name: lambda *words: None for name in ("begin", "act", "act_done")}
        live = SimpleNamespace(poll_smart=polls.append, rule_words="", left_s=lambda: (60.0, 90.4), **none)
        stop = SimpleNamespace(check=lambda: None, second_raises=contextlib.nullcontext)
        stage = SimpleNamespace(book=book, live=live, stop=stop, round=None, means={}, seen={}, cut=None)
        stage.laid, stage.bench = NOTHING, SimpleNamespace(drive=DRIVE, remember=lambda offsets: None)

        def stand_in(act, stage, number):
            done.append((stage.round, act.label, number))
            if act.point:
                stage.means[act.label] = {"iops": iops(stage.round, act.label), "MB/s": 1.0, "lat_mean": 1.0}
            return {"bytes": act.amount_bytes or size}

        for kind in ("purge", "fill", "load", "idle"):
            monkeypatch.setattr(steps.of(kind), "carry_out", stand_in)
        why = engine.carry_out(prepared.acts, stage, budget.Budget(most_bytes))
        assert polls == ["round"] * len({number for number, _, _ in done if number})  # one before each
        return book, done, why

    return carry_out


def test_rounds_end_when_every_tracked_value_is_steady(carried_out):
    """The writes are steady from round 2 on, so the rule holds after round 6."""
    book, done, why = carried_out(lambda number, label: 5000.0 if number == 1 and "read=0" in label else 1000.0)
    assert why is None and [label for _, label, _ in done[:2]] == ["purge", "fill"]
    assert max(number for number, *_ in done[2:]) == 6
    assert len(done) == 2 + 6 * 4, "the points of 512 B are left out on a drive with 4 KiB blocks"
    assert [event["steady"] for event in book.of("round")] == [False] * 5 + [True]
    assert len(book.of("round")[-1]["tracked"]) == 2
    assert all(event["left_s"] == [60, 90] for event in book.of("step.start"))
    assert not any("left_s" in event for event in book.of("step.end"))
    assert {event["why"] for event in book.of("not_run")} == {"this drive has blocks of 4096 bytes", "0 s"}
    assert [event["point"] for event in book.of("step.start")[2:4]] == [
        {"read": 100, "block": "8 KiB"},
        {"read": 100, "block": "4 KiB"},
    ]


def test_a_round_that_only_preconditions_is_not_judged(carried_out):
    """Within the rule's 20 % all the same."""
    book, done, why = carried_out(plan=PLAN.replace('steady = "pts", ', 'steady = "pts", from = 2, '))
    assert [event["steady"] for event in book.of("round")] == [False] * 5 + [True]
    assert all(len(verdict["rounds"]) == 5 for verdict in book.of("round")[-1]["tracked"].values())


def test_what_does_not_become_steady_ends_at_most_and_says_so(carried_out):
    book, done, why = carried_out(lambda number, label: 1000.0 * number)
    assert why is None and max(number or 0 for number, *_ in done) == 9
    assert "STEADY STATE NOT ACHIEVED in 9 rounds" in book.of("note")[0]["text"]


def test_rounds_are_not_steady_before_the_spare_area_is_used_up(carried_out):
    """2 x 64 MiB a round, on a drive of 1 GiB without spare area: 5 % more for what its NAND may have beyond it. From
    the second round on it is used up, and the fifth after that is the sixth."""
    asks = PLAN.replace(', spare = "any"', "")
    book, done, why = carried_out(plan=asks, size=64 << 20)
    rounds = book.of("round")
    assert [event["steady"] for event in rounds] == [False] * 5 + [True]
    last = [next(iter(event["tracked"].values())) for event in rounds]
    assert [verdict["past_spare"] for verdict in last] == [False] * 5 + [True]
    assert [verdict["drive_writes"] for verdict in last] == [1 + n / 8 for n in range(1, 7)]
    assert last[4]["why"] and last[5]["past_spare_by"] == "raw"
    book, *_ = carried_out(plan=PLAN, size=64 << 20)
    last = next(iter(book.of("round")[-1]["tracked"].values()))
    assert last["passed"] and not last["past_spare"] and last["drive_writes"] == 1 + 5 / 8
    assert book.events[-1] == {
        "kind": "laid",
        "written_bytes": 13 << 27,
        "valid_bytes": 1 << 30,
        "churned_bytes": 5 << 27,
    }


def test_a_repeat_that_says_never_is_not_judged(carried_out):
    book, done, why = carried_out(plan=PLAN.replace('"pts"', '"never"'))
    assert max(number or 0 for number, *_ in done) == 9 and not book.of("note")
    assert [(event["steady"], event["tracked"]) for event in book.of("round")] == [(False, {})] * 9


def test_a_rule_none_of_whose_points_runs_on_the_drive_is_refused(carried_out):
    """Else its rounds would go on to the last, and nothing could be judged."""
    tracked = '["iops read=0 block=4KiB", "iops read=100 block=8KiB"]'
    with pytest.raises(UsageError) as refused:
        carried_out(plan=PLAN.replace(tracked, '["iops read=0 block=512B"]'))
    assert "this drive has blocks of 4096 bytes" in str(refused.value) and "rounds" in str(refused.value)
    carried_out(plan=PLAN.replace(tracked, '["iops read=0 block=512B", "iops read=0 block=4KiB"]'))


def test_a_budget_ends_the_run_before_the_point_that_would_pass_it(carried_out):
    fill = 1 << 30
    book, done, why = carried_out(most_bytes=fill + (3 << 20))
    assert "budget" in why and book.of("budget")[0]["written_bytes"] == fill + (3 << 20)
    writes = [label for _, label, _ in done if "read=0" in label]
    assert len(writes) == 3 and len(done) == 2 + 2 * 2 + 2 + 1


@pytest.mark.parametrize(
    ("text", "rated", "size"), [("5 TB", None, 5 * 10**12), ("2 %", 100e12, 2 * 10**12), ("1 GiB", None, 1 << 30)]
)
def test_budgets(text, rated, size):
    assert budget.parse(text, rated).most_bytes == size


@pytest.mark.parametrize(
    ("text", "rated", "message"), [("2 %", None, "rated endurance"), ("5", None, "--budget"), ("-1 TB", 1, "--budget")]
)
def test_wrong_budgets(text, rated, message):
    with pytest.raises(UsageError, match=message):
        budget.parse(text, rated)


def test_a_budget_that_not_even_the_first_write_fits_is_refused():
    prepared = prepare.prepare("consistency", DRIVE, "quick")
    with pytest.raises(UsageError, match="for fill"):
        prepare.budget("1 MB", prepared, None)


def test_what_a_load_shows_is_in_drive_time(tmp_path, monkeypatch):
    """Of a drive that is dilated 4 times the host sees a quarter of the rate and four times the latency."""
    from ssdrig.drive import witness
    from ssdrig.load import fio
    from ssdrig.plan.expand import Act
    from ssdrig.run.stage import Stage

    totals = {"ios": 1000, "bytes": 4_096_000, "lat_sum_ns": 1000 * 4e6}
    shown = SimpleNamespace(runtime_s=40.0, seconds=SimpleNamespace(t_ns=[5], totals=totals))
    monkeypatch.setattr(fio, "run", lambda job, folder, **more: shown)
    book = Book()
    book.path = tmp_path
    bench_ = SimpleNamespace(drive={"time_dilation": 4}, witness=lambda since: witness.read(None))
    live = SimpleNamespace(begin=lambda pace: None)
    stop = SimpleNamespace(check=lambda: None, asked=lambda: False)
    stage = Stage(bench_, book, live, stop, None, None, 1)
    act = Act("load", "load", {}, {"qd": 1})
    stage.fio(act, None, None)
    assert stage.means == {"load qd=1": {"iops": 100.0, "MB/s": 0.4096, "lat_mean": 1000.0}}
    shown.seconds.totals = totals | {"ios": 0}
    stage.fio(act, None, None)
    assert stage.means == {}, "nothing of the last time stands for this one"


def test_only_writes_count_where_an_amount_of_them_ends_a_load(tmp_path, monkeypatch):
    """Of 1000 bytes that a load of 75 % reads has moved it wrote 250; fio is ended once 300 are written."""
    path = tmp_path / "x.toml"
    until = 'until = [{ written = "300 B" }, { time = "1 min" }]\nread = 75\nblock = "4 KiB"\npattern = "random"\n'
    path.write_text(HEAD + FILLED + f'[[step]]\nname = "load"\ndo = "load"\n{until}')
    load, asked = prepare.prepare(str(path), DRIVE).acts[-1], []

    def fio(act, job, pace, number, met):
        asked.extend(met([1.0], moved_bytes) for moved_bytes in (1000, 1199, 1200))
        return SimpleNamespace(bytes=1200, seconds=None)

    bench_ = SimpleNamespace(check=lambda: None, drive=DRIVE, fio_target="/dev/x")
    live = SimpleNamespace(poll_smart=lambda reason: None, cold_s=lambda: None)
    stop = SimpleNamespace(second_raises=contextlib.nullcontext)
    stage = SimpleNamespace(bench=bench_, live=live, stop=stop, round=None, dilation=1, book=Book(), fio=fio)
    stage.next_seed, stage.laid = lambda: 1, NOTHING
    assert steps.of("load").carry_out(load, stage, 0)["ended_by"] == "written" and asked == [False, False, True]


def test_what_fio_would_refuse_is_refused_before_the_start(tmp_path):
    path = tmp_path / "x.toml"
    few = 'rate = "3 IOPS"\n  threads = 4\n  time = "2 s"'
    path.write_text(PLAN.replace('time = "2 s"', few))
    with pytest.raises(UsageError, match="at least one I/O a second for each thread"):
        prepare.prepare(str(path), DRIVE)
