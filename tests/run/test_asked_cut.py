"""A cut of the drive's power that the run's owner asks for: what refuses it, what it leaves, what is said of it. On
stand-ins for rig and drive; on the whole bench, from a button: test_bench_cut.py."""

from types import SimpleNamespace

import pytest
import synthetic_run

from ssdrig.base.errors import DriveError, ExchangedDrive, LoadError, PowerCut, RigError, UsageError
from ssdrig.plan.kinds import KINDS
from ssdrig.powerloss.supply import Outcome
from ssdrig.reading import table
from ssdrig.reading.rundata import asked_cut_ns, before_cut_ns
from ssdrig.run import asked_cut, control, cut_short, cutting, options
from ssdrig.run.asked_cut import HOLD_S, LATE_S, STEPS, WHY_NOT, WITHIN_S, AskedCut
from ssdrig.run.stage import Stage
from ssdrig.runs import journal
from ssdrig.serve import app as asking

LOAD = SimpleNamespace(do="load", path="load")
OTHER_NS = 7


class Bench:
    """One cut away from a run: the clock stands unless a test moves it. `outcome`: what the rig comes back with, or an
    error; `reads`: what the drive answers, an error or a block each."""

    def __init__(self, book, monkeypatch):
        self.now_s, self.book, self.stopped = 1000.0, book, False
        self.outcome = Outcome(5_000, 100, 9_000, 2.0)
        self.reads: list = [bytes(4096)]
        self.did: list[str] = []
        clock = SimpleNamespace(
            monotonic=lambda: self.now_s, monotonic_ns=lambda: int(self.now_s * 1e9), sleep=self.pass_s
        )
        monkeypatch.setattr(asked_cut, "time", clock)
        monkeypatch.setattr(asked_cut, "RigSupply", lambda rig, run: SimpleNamespace(cut=self._cut))
        target = SimpleNamespace(
            away=lambda: self.did.append("away"), back=lambda: self.did.append("back"), ended=lambda: False
        )
        bench_ = SimpleNamespace(target=target, read_blocks=self._read)
        stop = SimpleNamespace(
            asked=lambda: self.stopped, held=self._none, second_raises=self._none, check=lambda: None
        )
        self.cut = AskedCut(bench_, book, SimpleNamespace(), stop)
        self.stage = Stage(None, book, SimpleNamespace(second=self.did.append), stop, None, None, 1, cut=self.cut)

    class _none:
        def __enter__(self): ...

        def __exit__(self, *_): ...

    def pass_s(self, seconds: float) -> None:
        self.now_s += seconds

    def _cut(self, shape, at_ns, off_s):
        self.did.append(f"{shape} {off_s:g} s")
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def _read(self, offsets):
        content = self.reads.pop(0) if len(self.reads) > 1 else self.reads[0]
        if isinstance(content, Exception):
            raise content
        return [content]

    def hold(self, seconds: float = HOLD_S) -> dict:
        armed = self.cut.arm()
        self.pass_s(seconds)
        return self.cut.ask(armed.get("token", ""), uid=1, pid=2)

    def kinds(self) -> list[str]:
        return [event["kind"] for event in journal.events(self.book.path)]

    def last(self, kind: str) -> dict:
        return next(event for event in reversed(journal.events(self.book.path)) if event["kind"] == kind)


@pytest.fixture
def bench(tmp_path, monkeypatch):
    book = journal.create(tmp_path / "runs", {"method": {"name": "x"}, "drive": {"model": "m"}})
    yield Bench(book, monkeypatch)
    book.close("complete")


def test_it_is_made_once_in_the_step_recorded_and_ends_it(bench):
    words = "cut from the web in load: 2.00 s without power, ready"
    with pytest.raises(PowerCut, match=words) as raised, bench.cut.within(LOAD):
        assert not bench.stage.asked() and bench.hold() == {"ok": True}
        assert bench.cut.arm()["ok"] is False and bench.did == []  # it is the run's thread that cuts
        assert bench.stage.asked() and bench.stage.asked()
        bench.stage.second({"iops": 1})  # fio says so of a drive without power
        assert bench.did == ["crowbar 2 s"]
        bench.stage.check()
    assert raised.value.exit_code == 17 and bench.did == ["crowbar 2 s", "away", "back"]
    assert bench.kinds() == ["cut.asked", "cut.fired", "cut.on", "drive.ready"]
    asked, fired = bench.last("cut.asked"), bench.last("cut.fired")
    assert (asked["step"], asked["uid"], asked["pid"]) == ("load", 1, 2)
    assert (fired["fired_ns"], fired["bound_ns"], fired["cut"], fired["why"]) == (5_000, 100, None, None)
    assert "asked for already" in bench.cut.arm()["why"]


@pytest.mark.parametrize("do", [*KINDS])
def test_only_steps_that_judge_no_data_and_erase_nothing_allow_it(bench, do):
    with bench.cut.within(SimpleNamespace(do=do, path=f"its {do}")):
        answer = bench.hold()
        if do in STEPS:
            assert answer["ok"]
            bench.cut._asked_at = None  # called off, or the step would not end
        else:
            assert not answer["ok"] and do in answer["why"] and not bench.cut.due() and bench.did == []
    assert not ({*STEPS} & {*WHY_NOT}) and {*STEPS, *WHY_NOT} <= {*KINDS}


def test_between_steps_and_while_the_run_ends_it_is_refused(bench):
    assert "no step" in bench.hold()["why"]
    with bench.cut.within(LOAD):
        bench.stopped = True
        assert "ending" in bench.hold()["why"]
    bench.stopped = False
    assert "no step" in bench.cut.arm()["why"] and bench.kinds() == []


@pytest.mark.parametrize("seconds", [0.0, HOLD_S - 0.01, WITHIN_S + 0.01, 3600.0])
def test_who_lets_go_or_comes_late_asks_for_nothing(bench, seconds):
    with bench.cut.within(LOAD):
        assert "after it was armed" in bench.hold(seconds)["why"]
        assert not bench.cut.due() and bench.kinds() == []


def test_a_token_is_for_one_hold(bench):
    with bench.cut.within(LOAD):
        first, second = (bench.cut.arm()["token"] for _ in range(2))
        bench.pass_s(HOLD_S)
        assert "not armed" in bench.cut.ask(first, uid=1, pid=2)["why"]
        assert "not armed" in bench.cut.ask(second, uid=1, pid=2)["why"]  # the wrong one has used it up
        assert "not armed" in bench.cut.ask("", uid=1, pid=2)["why"] and not bench.cut.due()
        bench.cut.arm()  # half a surrogate is no text that UTF-8 can say
        assert "not armed" in bench.cut.ask("\ud800", uid=1, pid=2)["why"] and not bench.cut.due()


def test_a_run_that_comes_to_it_late_drops_it_and_takes_the_next(bench):
    with pytest.raises(PowerCut), bench.cut.within(LOAD):
        assert bench.hold()["ok"]
        bench.pass_s(LATE_S + 1)  # it was suspended
        assert not bench.cut.due() and bench.did == [] and "5 s" in bench.last("cut.dropped")["why"]
        assert bench.hold()["ok"] and bench.cut.due()


def test_a_step_that_ends_before_it_drops_it(bench):
    with bench.cut.within(LOAD):
        assert bench.hold()["ok"]
    assert "ended before" in bench.last("cut.dropped")["why"]
    with bench.cut.within(LOAD):
        assert not bench.cut.due()
    assert bench.did == []


def test_what_the_rig_refuses_leaves_the_load_alone(bench):
    bench.outcome = RigError("the rig to execute `cut`", "refused: rail 0 is off", "correct that")
    with bench.cut.within(LOAD):
        assert bench.hold()["ok"] and not bench.cut.due()
        bench.stage.second({"iops": 1})
    assert bench.kinds() == ["cut.asked", "cut.dropped"] and bench.did[-1] == {"iops": 1}


def test_where_nobody_knows_what_the_rig_did_the_run_fails_with_its_words(bench):
    bench.outcome = RigError("the rig's report of the switch", "nothing", "look at its cable")
    with pytest.raises(RigError, match="look at its cable"), bench.cut.within(LOAD):
        assert bench.hold()["ok"]
        bench.cut.due()
    fired = bench.last("cut.fired")
    assert "look at its cable" in fired["why"] and fired["fired_ns"] - fired["bound_ns"] <= 1001.5e9


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ValueError("rig.bin")])
def test_so_it_does_where_its_clock_cannot_be_read(bench, error):
    bench.outcome = error
    with pytest.raises(type(error)), bench.cut.within(LOAD):
        bench.hold()
        bench.cut.due()
    assert bench.cut.made and str(error) in bench.last("cut.fired")["why"] and bench.kinds()[-1] == "cut.fired"


def test_who_asks_for_the_end_before_it_has_the_end(bench):
    with bench.cut.within(LOAD):
        bench.hold()
        bench.stopped = True
        assert not bench.cut.due() and bench.stage.asked()
    assert bench.did == [] and "end of the run" in bench.last("cut.dropped")["why"]


def test_who_asks_for_the_end_while_it_is_made_is_told_of_the_cut(bench):
    with pytest.raises(PowerCut, match="cut from the web"), bench.cut.within(LOAD):
        bench.hold()
        assert bench.stage.asked()
        bench.stopped = True
        bench.stage.check()


def test_a_rail_that_was_not_seen_low_is_said(bench):
    bench.outcome = bench.outcome._replace(why_not="rail 0 was not seen below 3750 mV")
    with pytest.raises(PowerCut), bench.cut.within(LOAD):
        bench.hold()
        bench.cut.due()
    assert "3750" in bench.last("cut.fired")["why"]


def test_an_error_of_the_load_that_follows_from_it_is_not_the_reason(bench):
    with pytest.raises(PowerCut), bench.cut.within(LOAD):
        bench.hold()
        bench.cut.due()
        raise LoadError("fio to end well", "it saw an I/O error", "look")


def test_an_error_without_a_cut_is_itself(bench):
    with pytest.raises(LoadError), bench.cut.within(LOAD):
        bench.hold()
        raise LoadError("fio to end well", "it saw an I/O error", "look")
    assert bench.kinds() == ["cut.asked", "cut.dropped"]


def test_a_drive_that_comes_late_is_waited_for(bench):
    bench.reads = [OSError(5, "I/O error"), None, bytes(4096)]
    with pytest.raises(PowerCut), bench.cut.within(LOAD):
        bench.hold()
        bench.cut.due()
    assert bench.did.count("back") == 3 and bench.kinds()[-1] == "drive.ready"


@pytest.mark.parametrize("error", [None, OSError(5, "I/O error")])
def test_a_drive_that_stays_away_is_missing(bench, error):
    bench.reads = [error]
    with pytest.raises(DriveError, match="within 130 s"), bench.cut.within(LOAD):
        bench.hold()
        bench.cut.due()
    assert bench.kinds()[-1] == "drive.missing"


def test_another_drive_in_its_place_ends_it_at_once(bench):
    bench.reads = [ExchangedDrive("this drive", "another", "look")]
    with pytest.raises(ExchangedDrive), bench.cut.within(LOAD):
        bench.hold()
        bench.cut.due()
    assert bench.did.count("back") == 1


# ---- over the socket


def test_over_the_socket_it_takes_both_requests_and_the_callers_ids_are_kept(bench):
    one = control.Control(bench.book, lambda: None, bench.cut)
    try:
        with bench.cut.within(LOAD):
            armed = asking.ask_run(bench.book.path, {"do": "arm"})
            assert armed["ok"] and (armed["hold_s"], armed["off_s"]) == (HOLD_S, asked_cut.OFF_S)
            cut = {"do": "cut", "token": armed["token"]}
            assert "after it was armed" in asking.ask_run(bench.book.path, cut)["why"]
            cut["token"] = asking.ask_run(bench.book.path, {"do": "arm"})["token"]
            bench.pass_s(HOLD_S)
            assert asking.ask_run(bench.book.path, cut) == {"ok": True, "why": ""}
            assert bench.last("cut.asked")["pid"] > 1
            for wrong in (
                {"do": "cut"},
                {"do": "cut", "token": ""},
                {"do": "cut", "token": 5},
                {"do": "cut", "token": "x" * 65},
            ):
                with pytest.raises(UsageError):
                    asking.ask_run(bench.book.path, wrong)
            bench.cut._asked_at = None
    finally:
        one.close()


def test_a_run_that_was_not_started_with_it_refuses(bench):
    one = control.Control(bench.book, lambda: None)
    try:
        assert asking.ask_run(bench.book.path, {"do": "arm"}) == {"ok": False, "why": control.NO_CUT}
        assert asking.ask_run(bench.book.path, {"do": "cut", "token": "x"}) == {"ok": False, "why": control.NO_CUT}
    finally:
        one.close()


def test_without_a_rig_that_switches_it_is_refused_before_anything_starts():
    with pytest.raises(UsageError, match="--allow-cut"):
        options.check(options.parse(["consistency", "--drive", "S1", "--allow-cut"]))
    options.check(options.parse(["consistency", "--drive", "S1", "--rig", "/dev/null", "--allow-cut"]))
    with pytest.raises(UsageError, match="only measures") as raised:
        cutting.refuse_rig({"switch": None}, SimpleNamespace(target=None), [], True)
    assert "--allow-cut" in raised.value.do
    cutting.refuse_rig({"switch": None}, SimpleNamespace(target=None), [])


# ---- what is made of it


def cut_run(tmp_path, at_s: float | None) -> dict:
    """Figures of a load of 14 s, with 4 s of rest from 14.5 s on, that was cut so late."""
    made = synthetic_run.write(
        tmp_path, [900] * 5 + [300, 500, 400] * 3, zoom_s=5, smart_every_s=3, idle_s=4, name=f"at-{at_s}"
    )
    if at_s is not None:
        fired_ns = (table.in_full(made).data.t0_ns or 0) + round(at_s * 1e9)
        fired = {"t_ns": fired_ns + OTHER_NS, "kind": "cut.fired", "step": "load", "cut": None}
        fired |= {"fired_ns": fired_ns, "bound_ns": 1000, "why": None}
        synthetic_run.seal(made, sorted([*journal.events(made), fired], key=lambda event: event["t_ns"]))
    data, figures, _ = table.in_full(made)
    return figures | {"data": data}


def test_figures_are_of_the_time_before_it(tmp_path):
    whole, cut = cut_run(tmp_path, None), cut_run(tmp_path, 9.5)
    assert whole["windows"]["all"]["t1_s"] == 14 and cut["windows"]["all"]["t1_s"] == 9
    assert (cut["windows"]["steady"]["t0_s"], cut["windows"]["steady"]["t1_s"]) == (5, 9)
    assert cut["iops_all_mean"] is None and whole["iops_all_mean"]
    assert any("cut from the web after 9.50 s" in note for note in cut["notes"])
    assert (9.5, "power cut from the web") in [(round(t, 3), words) for t, words in cut["data"].marks]
    assert max(cut["data"].axis_s(s["t_end_ns"]) for s in cut["data"].snapshots) < 9.5
    assert max(whole["data"].axis_s(s["t_end_ns"]) for s in whole["data"].snapshots) > 9.5
    polls_s = cut["windows"]["steady"]["wa_polls_s"]
    assert polls_s is None or max(polls_s) < 9.5


def test_so_are_those_of_a_rest_and_a_fill_has_none(tmp_path):
    whole = cut_run(tmp_path, None)
    events = whole["data"].events
    begin_ns = next(e["t_ns"] for e in events if e["kind"] == "step.start" and e["step"] == "idle")
    in_idle = cut_run(tmp_path, (begin_ns - whole["data"].t0_ns) / 1e9 + 1.5)
    assert whole["idle_s"] == 4 and in_idle["idle_s"] == pytest.approx(1.5, abs=1e-3) and in_idle["idle_mean_W"]
    assert in_idle["windows"]["all"]["t1_s"] == 14 and in_idle["iops_all_mean"]  # the load was over
    in_fill = cut_run(tmp_path, -1.5)
    assert whole["fill_s"] and in_fill["fill_s"] is None and in_fill["fill_MBps"] is None
    assert any("fill: the power was cut" in note for note in in_fill["notes"])


def test_a_campaigns_cuts_are_none_of_these(tmp_path):
    document = cut_run(tmp_path, None)["data"]
    document.events.append({"kind": "cut.fired", "t_ns": 1, "cut": 3, "fired_ns": 1, "bound_ns": 1})
    assert document.before_cut_ns() is None


@pytest.mark.parametrize("fields", [{}, {"fired_ns": "x", "bound_ns": 1}, {"fired_ns": -5, "bound_ns": True}])
def test_one_that_a_foreign_run_tells_in_other_words_is_where_it_is_told(fields):
    assert asked_cut_ns({"kind": "cut.fired", "t_ns": 7, "cut": None} | fields) == 7
    assert asked_cut_ns({"kind": "cut.fired", "t_ns": 7, "cut": 2, "fired_ns": 1, "bound_ns": 0}) is None


def test_who_goes_on_knows_that_the_drive_was_without_power():
    of = lambda *events: SimpleNamespace(parts=[({}, []), ({}, list(events))])
    fired, asked, dropped = (
        {"kind": f"cut.{word}", "t_ns": n} for n, word in enumerate(("fired", "asked", "dropped"), 5)
    )
    assert cut_short.lost_power(of(asked, fired)) and not cut_short.lost_power(of(fired | {"cut": 1}))
    assert cut_short.lost_power(of(asked)) and not cut_short.lost_power(of(asked, dropped))  # killed while it cut
    assert before_cut_ns([asked]) == 6 and before_cut_ns([asked, dropped, asked, fired]) == 5
