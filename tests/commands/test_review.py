"""A review being carried out: what is done of it is seen from its run folders, so it goes on wherever it was cut short.
No bench: each run is a folder made here, in no time."""

import json
import os
import signal
from contextlib import ExitStack
from types import SimpleNamespace
from unittest import mock

import pytest
from drives import a_drive
from killed_runs import DRIVE, UNIT, killed, smart
from small_plans import FILLED, HEAD
from test_review_order import BEGINS, STEADY, load

from ssdrig import cli
from ssdrig.base.errors import ExchangedDrive, JournalError, LoadError, RigError, UsageError
from ssdrig.base.progress import Progress
from ssdrig.reading import review_folder
from ssdrig.reading.review_folder import Planned
from ssdrig.report import review_page
from ssdrig.run import prepare, resume, run
from ssdrig.run.bench import Bench
from ssdrig.run.budget import Budget
from ssdrig.run.review import perform
from ssdrig.run.teardown import Stop
from ssdrig.runs import journal, parts

OTHER = FILLED + load("load", 'time = "10 s"', block="8 KiB")
QUIET = Progress(quiet=True)


class Killed(BaseException):
    """The process is gone."""


class Bench_:
    """Stands for run.carry_out(): makes the folder of a run that does what `ends` says of its plan, or is complete."""

    def __init__(self, tmp_path, monkeypatch, **texts):
        self.ends, self.ran, self.written = {}, [], 0
        self.bench = Bench(DRIVE, lambda: "none", None, True, *(4 * [lambda *_: None]))
        object.__setattr__(self.bench, "poll", lambda like: self._document())
        plans = []
        for i, (name, text) in enumerate(texts.items()):
            (tmp_path / f"{name}.toml").write_text(HEAD + text)
            plans.append(vars(Planned(name, str(tmp_path / f"{name}.toml"), None, {}, i)))
        options = {"virtual": "sata-tlc", "capacity": "512MiB", "seed": 1}
        document = {"level": "quick", "drive": DRIVE, "options": options, "budget_bytes": None, "plans": plans}
        self.review = review_folder.create(tmp_path / "runs", document)
        monkeypatch.setattr(run, "carry_out", self._carry_out)
        monkeypatch.setattr(resume.able, "terminal", lambda acts: None)

    def __call__(self, budget=None) -> int:
        args = SimpleNamespace(runs=str(self.review.folder.parent), influx=None, jsonl=False, dry_run=False)
        with review_folder.held(self.review), Stop(QUIET) as stop, stop.held():
            of = perform.Carrying(self.review, self.bench, prepare.VIRTUAL, args, QUIET, stop, budget or Budget(None))
            return of.all()

    def _document(self):
        device = {"type": "nvme", "protocol": "NVMe"}
        log = {"data_units_written": self.written, "data_units_read": 0, "temperature": 30}
        answer = {"device": device, "firmware_version": "F1", "nvme_smart_health_information_log": log}
        return {"t_start_ns": 1, "t_end_ns": 1, "simulated": True, "smartctl": answer}

    def _carry_out(
        self, args, prepared, bench_, show, stop, budget, begin, jobs=0, changed=None, after_s=(0, 0), board=None
    ):
        made = {"simulated": True, **prepare.header(prepared), "drive": DRIVE, "rig": None, "host": {"boot_id": "b"}}
        made["budget_bytes"] = None
        journal_ = begin(made)
        own = (journal.run_header(parts.root(journal_.path)).get("review") or {}).get("plan")
        self.ran.append((own, [act.path for act in prepared.acts if not act.not_run], after_s))
        end = self.ends.pop(own, None)
        for act in prepared.acts:
            if act.not_run:
                continue
            journal_.event("step.start", step=act.path)
            if end is Killed:
                killed(journal_)
                raise Killed
            self.written += (act.amount_bytes or 0) // UNIT
            budget.wrote(act, act.amount_bytes or 0)
            journal_.event("step.end", step=act.path, ok=True, bytes=act.amount_bytes or 0)
            if any(entry.rule == "pts" for entry in act.keys.get("until", ())):
                journal_.event("steady", step=act.path, passed=end != "not steady", rounds=[])
        smart(journal_, 1, self.written * UNIT)
        if isinstance(end, Exception):
            return journal_.path, journal_.close("failed", str(end), end.exit_code)
        return journal_.path, journal_.close("complete", None, 0)

    def names(self):
        return [name for name, *_ in self.ran]


def test_all_plans_are_runs_of_the_review(tmp_path, monkeypatch):
    bench = Bench_(tmp_path, monkeypatch, one=STEADY, two=BEGINS, three=OTHER)
    assert bench() == 0 and bench.names() == ["one", "two", "three"]
    assert bench.ran[1][1] == ["reads"], "what the first has left is not made again"
    done = review_folder.done(bench.review)
    assert all(one.complete and one.run.parent == bench.review.folder for one in done.values())
    header = journal.run_header(done["two"].run)
    assert header["plan"]["kept"]["by"] == done["one"].run.name
    assert bench.ran[2][2] == (0, 0) and bench.ran[0][2][1] > bench.ran[1][2][1] > 0, "one ETA for all"
    assert bench() == 0 and len(bench.ran) == 3, "nothing is left to do"


@pytest.mark.parametrize("cut", ["one", "two", "three"])
def test_after_a_kill_it_goes_on_and_what_is_done_is_kept(tmp_path, monkeypatch, cut):
    bench = Bench_(tmp_path, monkeypatch, one=STEADY, two=BEGINS, three=OTHER)
    bench.ends = {cut: Killed}
    with pytest.raises(Killed):
        bench()
    before = {name: one.run for name, one in review_folder.done(bench.review).items() if one.complete}
    assert len(before) == ["one", "two", "three"].index(cut) and review_folder.done(bench.review)[cut].state == "died"
    bench.ran.clear()
    assert bench() == 0
    assert bench.names() == ["one", "two", "three"][len(before) :]
    after = review_folder.done(bench.review)
    assert (
        all(one.complete for one in after.values()) and before.items() <= {n: o.run for n, o in after.items()}.items()
    )
    assert [path.name for path in parts.of(after[cut].run)[1:]] == ["part-2"], "it was resumed, not begun anew"
    if cut == "two":  # the steady state did not outlive the kill
        assert bench.ran[0][1] == ["purge", "fill", "before", "reads"]


def test_a_rule_that_did_not_hold_and_a_foreign_write_let_the_next_plan_begin_at_its_beginning(tmp_path, monkeypatch):
    bench = Bench_(tmp_path, monkeypatch, one=STEADY, two=BEGINS)
    bench.ends = {"one": "not steady"}
    assert bench() == 0 and bench.ran[1][1][0] == "purge"
    (tmp_path / "other").mkdir()
    bench = Bench_(tmp_path / "other", monkeypatch, one=STEADY, two=BEGINS)
    own = bench._document
    bench._document = lambda: (setattr(bench, "written", bench.written + 10), own())[1]
    assert bench() == 0 and bench.ran[1][1][0] == "purge"


def test_a_plan_that_fails_does_not_keep_the_others_from_being_run(tmp_path, monkeypatch):
    bench = Bench_(tmp_path, monkeypatch, one=OTHER, two=OTHER, three=OTHER)
    bench.ends = {"two": LoadError("a", "b", "c")}
    assert bench() == LoadError.exit_code and bench.names() == ["one", "two", "three"]
    assert bench() == 0 and bench.names()[3:] == ["two"], "it goes on with that one"


def test_a_bench_that_is_lost_ends_the_review(tmp_path, monkeypatch):
    bench = Bench_(tmp_path, monkeypatch, one=OTHER, two=OTHER)
    bench.ends = {"one": RigError("a", "b", "c")}
    assert bench() == RigError.exit_code and bench.names() == ["one"]
    assert review_folder.done(bench.review)["two"].why == "the review ended before"


def test_one_budget_for_all(tmp_path, monkeypatch):
    bench = Bench_(tmp_path, monkeypatch, one=OTHER, two=OTHER)
    assert bench(Budget(100 << 20)) == 0 and bench.names() == ["one"], "a second fill of 64 MiB does not fit"


def test_a_review_that_goes_on_elsewhere_is_left_alone(tmp_path, monkeypatch):
    bench = Bench_(tmp_path, monkeypatch, one=OTHER)
    with review_folder.held(bench.review), pytest.raises(JournalError) as refusal:
        bench()
    assert str(bench.review.folder) in refusal.value.expected


def test_a_new_review_is_held_until_its_page_is_made(tmp_path, monkeypatch):
    held = []

    def look(review, *_):
        with pytest.raises(JournalError):
            review_folder.held(review_folder.read(review.folder)).__enter__()
        held.append(review)

    running = SimpleNamespace(kept_in=None, end=lambda folder: None)
    monkeypatch.setattr("ssdrig.virtual.bench.start", lambda *_, **more: running)
    monkeypatch.setattr(perform.bench, "virtual", lambda of: SimpleNamespace(drive=DRIVE, keep=lambda to: None))
    monkeypatch.setattr(perform, "_carried", lambda review, *_: look(review) or 0)
    monkeypatch.setattr(perform, "_page", look)
    assert cli.main(["review", "--virtual", "sata-tlc", "--runs", str(tmp_path / "runs"), "--quiet"]) == 0
    assert len(held) == 2
    with review_folder.held(held[0]):
        pass


@pytest.mark.parametrize("words", [["review", "--resume"], ["resume"]])
def test_a_review_that_is_complete_starts_nothing(tmp_path, monkeypatch, words, capsys):
    bench = Bench_(tmp_path, monkeypatch, one=OTHER)
    bench()
    monkeypatch.setattr("ssdrig.virtual.bench.start", lambda *_, **more: pytest.fail("a bench is started"))
    assert cli.main([*words, str(bench.review.folder), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["plans"][0]["state"] == "complete" and "complete: 1 plans" in err


def test_a_review_with_a_rig_does_not_go_on_without(tmp_path, monkeypatch):
    bench = Bench_(tmp_path, monkeypatch, one=OTHER)
    bench()
    perform._same_rig(bench.review, None)
    header = review_folder.done(bench.review)["one"].run / "run.json"
    header.write_text(header.read_text().replace('"rig": null', '"rig": {"port": "/dev/x"}'))
    perform._same_rig(bench.review, "/dev/y")
    with pytest.raises(UsageError, match="the rig of the review, which was at /dev/x"):
        perform._same_rig(bench.review, None)


@pytest.mark.parametrize(("units_less", "goes_on"), [(0, True), (1000, True), (900_000, False)])
def test_a_review_does_not_go_on_upon_a_drive_whose_counters_went_back(tmp_path, monkeypatch, units_less, goes_on):
    """Two drives of one serial: its counters tell the second. A drive forgets a little when it loses its power."""
    bench = Bench_(tmp_path, monkeypatch, one=OTHER, two=OTHER)
    bench.written, bench.ends = 1_000_000, {"two": Killed}
    with pytest.raises(Killed):
        bench()
    bench.written -= units_less
    drive = a_drive(model=DRIVE["model"], serial=DRIVE["serial"], capacity_bytes=64 << 20, logical_block_bytes=4096)
    monkeypatch.setattr(perform.inventory, "find", lambda serial: drive)
    monkeypatch.setattr(perform.bench, "polled", lambda drive: bench._document())
    monkeypatch.setattr(perform.options, "raw_nand", mock.Mock(side_effect=Killed))  # it would go on here
    args = SimpleNamespace(drive=drive.serial, rig=None)
    with pytest.raises(Killed if goes_on else ExchangedDrive):
        perform._on_real(args, args, bench.review, QUIET, None, None, ExitStack())


def test_run_folders_of_reviews_are_listed(tmp_path, monkeypatch, capsys):
    bench = Bench_(tmp_path, monkeypatch, one=OTHER, two=OTHER)
    bench()
    assert cli.main(["runs", "--runs", str(tmp_path / "runs"), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["state"] for row in rows] == ["complete", "complete"] and bench.review.folder.name in rows[0]["run"]


VIRTUAL = ["review", "--virtual", "sata-tlc"]


@pytest.mark.parametrize(
    ("words", "code", "seen"),
    [
        (["review"], 2, "a drive to test"),
        ([*VIRTUAL, "--drive", "X"], 2, "found: two"),
        (["review", "--virtual", "nothing"], 2, "sata-mlc"),
        ([*VIRTUAL, "--rig", "/dev/x"], 2, "--rig only with --drive"),
        ([*VIRTUAL, "--budget", "1 MB"], 2, "a budget of at least"),
        ([*VIRTUAL, "--budget", "much"], 2, "--budget"),
        (["review", "--drive", "no-such-drive", "--dry-run"], 2, "no-such-drive"),
        ([*VIRTUAL, "--drive-faults", "[]"], 2, "faults"),
        (["review", "--resume", "{tmp}"], 8, "a review in"),
        (["resume", "{tmp}"], 8, "run"),
        (["review", "--resume", "{damaged}"], 8, "as it was written"),
        (["review", "--resume", "{damaged}", "--virtual", "sata-tlc"], 2, "leave it out"),
        (["resume", "{damaged}", "--without-rig"], 2, "leave it out"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(tmp_path, capsys, words, code, seen):
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / parts.REVIEW).write_text('{"schema": 1}')
    words = [word.format(tmp=tmp_path, damaged=damaged) for word in words]
    assert cli.main([*words, *(["--runs", str(tmp_path / "runs")] if "review" == words[0] else [])]) == code
    assert seen in capsys.readouterr().err and not (tmp_path / "runs").exists()


def test_faults_of_the_drive_are_those_of_the_one_bench(tmp_path, monkeypatch):
    asked = []

    def start(preset, **how):
        asked.append(how["drive_faults"])
        raise RigError("a bench", "none", "no matter")

    monkeypatch.setattr("ssdrig.virtual.bench.start", start)
    words = [*VIRTUAL, "--runs", str(tmp_path), "--quiet", "--drive-faults", '{"lying_flush": 1}']
    assert cli.main(words) == RigError.exit_code and asked == [{"lying_flush": 1}]


def test_a_dry_run_touches_nothing(tmp_path, capsys):
    assert cli.main([*VIRTUAL, "--dry-run", "--json", "--runs", str(tmp_path / "runs")]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["rated_bytes"] and document["share_percent"][0] < document["share_percent"][1] and "in all" in err
    assert not (tmp_path / "runs").exists()


def test_a_signal_while_the_page_is_made_leaves_the_last_line(tmp_path, monkeypatch, capsys):
    made = Bench_(tmp_path, monkeypatch, one=STEADY)
    monkeypatch.setattr(review_page, "write", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    args = SimpleNamespace(drive=None, json=True, out=None, against=None)
    monkeypatch.setattr(perform, "_on_virtual", lambda *_: (made.review, 0))
    assert perform._performed(args, QUIET, SimpleNamespace(), made.review, ExitStack()) == 130
    document = json.loads(capsys.readouterr().out)
    assert document["exit_code"] == 130 and document["page"] is None


def test_review_that_was_killed_is_named_until_it_is_complete(tmp_path, monkeypatch):
    bench_ = Bench_(tmp_path, monkeypatch, one=OTHER)
    runs, drive = bench_.review.folder.parent, DRIVE
    with review_folder.held(bench_.review):
        assert review_folder.unfinished(runs, drive) is None
    assert review_folder.unfinished(runs, drive).folder == bench_.review.folder
    assert review_folder.unfinished(runs, drive | {"preset": "other"}) is None
    assert bench_() == 0
    assert review_folder.unfinished(runs, drive) is None
