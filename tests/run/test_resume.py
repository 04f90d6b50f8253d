"""run/resume.py: what a run folder and the drive's counter say, and where the run goes on. In process."""

import json
import os
import socket
from types import SimpleNamespace
from unittest import mock

import pytest
import teardowns
from killed_runs import DRIVE, MEAN, PLAN, UNIT, asked, killed, smart, story, wrote  # noqa: F401  fixture

from ssdrig.base.errors import JournalError
from ssdrig.drive import conditions
from ssdrig.plan.state import UNKNOWN, State
from ssdrig.reading import table
from ssdrig.run import cut_short, prepare, resume, standing, steps
from ssdrig.runs import integrity, journal, parts


def test_a_story_says_what_is_done_and_what_was_written_since_the_last_reading(story):
    run = killed(story)
    assert journal.state(run) == "died"
    story_ = cut_short.read(run)
    assert story_.past.cut.label == "rounds/point" and story_.past.rounds == 1 and story_.past.jobs == 3
    assert story_.plan.params == {"most": 6}
    assert story_.before.firmware == "F1" and story_.before.host_written_bytes == 101 * UNIT
    assert story_.ours == (10 << 20, (10 << 20) + cut_short.UNSEEN_S * (6 << 20))
    assert story_.moved_bytes == 0  # of a round nothing counts
    prepared, _ = resume.rest_of(story_, DRIVE, story_.past.state, ())
    assert prepared.seen == {"rounds/point": {1: MEAN}}


def test_a_run_that_goes_on_is_refused(story):
    with pytest.raises(JournalError, match="still writes it"):
        cut_short.read(story.path)
    with pytest.raises(JournalError, match="still writes it"):
        parts.begin(story.path, {})


def test_a_run_without_a_plan_is_refused(tmp_path, story):
    run = killed(story)
    header = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({key: value for key, value in header.items() if key != "plan"}))
    with pytest.raises(JournalError, match="the run of a plan"):
        cut_short.read(run)
    header["plan"]["acts"][0] = "other"
    (run / "run.json").write_text(json.dumps(header))
    with pytest.raises(JournalError, match="read as when it began"):
        cut_short.read(run)


def test_a_part_is_a_folder_of_its_own_and_the_first_stays_as_it_was(story):
    story.event("load.first_io", step="fill")
    story.close("interrupted", "by a test", 130)
    run = story.path
    assert integrity.damage(run) == []
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    header = {key: value for key, value in journal.open_run(run).items() if key not in ("schema", "started")}
    book = parts.begin(run, header | {"resumed": {"part": 2, "begins": 2, "round": 2, "state": vars(UNKNOWN)}})
    assert book.path == run / "part-2" and parts.root(book.path) == run and parts.of(run) == [run, book.path]
    assert journal.lock_is_held(run) and journal.state(book.path) == "running"
    with pytest.raises(JournalError, match="still writes it"):
        cut_short.read(run)
    assert parts.shown(run)[0] == run  # the part has no I/O yet
    book.event("load.first_io", step="rounds/point")
    book.close("complete")
    assert {path: path.read_bytes() for path in before} == before
    assert integrity.damage(run) == [] and integrity.damage(book.path) == []
    shown, words = parts.shown(run)
    assert shown == book.path and "2 parts" in words
    data, figures, _ = table.in_full(run)
    assert data.header["run"] == run.name and data.state == "complete"
    assert any("2 parts" in note for note in figures["notes"])
    story = cut_short.read(book.path)  # the part names its run
    assert story.run == run and story.past.at == len(story.acts)
    third = parts.begin(run, header)
    assert third.path.name == "part-3"
    third.close("failed")


def test_the_socket_that_a_killed_part_left_goes_with_the_next(story):
    run = killed(story)
    with socket.socket(socket.AF_UNIX) as left:
        fd = os.open(run, os.O_RDONLY | os.O_DIRECTORY)
        left.bind(f"/proc/self/fd/{fd}/{integrity.CONTROL}")  # a socket's name is short
        os.close(fd)
    header = {key: value for key, value in journal.open_run(run).items() if key not in ("schema", "started")}
    part = parts.begin(run, header)
    assert not (run / integrity.CONTROL).exists()
    part.close("interrupted")
    (part.path / integrity.CONTROL).write_text("a file of someone")
    parts.begin(run, header).close("interrupted")
    assert (part.path / integrity.CONTROL).read_text() == "a file of someone"


def test_a_dry_run_says_what_holds_and_what_is_done_again(story, capsys, monkeypatch):
    run = killed(story)
    from ssdrig.virtual.device import persistence

    facts = {"firmware": "F1", "host_written_bytes": (101 + 20) * UNIT + (1 << 20)}
    monkeypatch.setattr(persistence, "facts", lambda folder: facts)
    args = asked(run, "--dry-run", "--json")
    args.quiet = False
    assert resume.command(args) == 0
    output = capsys.readouterr()
    document = json.loads(output.out)["resume"]
    assert document["state"]["name"] == "written" and not document["state"]["steady"] and document["round"] == 2
    assert document["void"] == ["the steady state: an interruption ends it"] and document["part"] == 2
    assert "cut short in rounds/point, round 2; part 2 goes on with rounds, round 2" in output.err
    assert "holds           the drive is written by rounds/point" in output.err and not (run / "part-2").exists()
    facts["host_written_bytes"] *= 10
    assert resume.command(args) == 0
    document = json.loads(capsys.readouterr().out)["resume"]
    assert document["begins"] == "purge" and "everything" in document["void"][-1]
    monkeypatch.setattr(persistence, "facts", lambda folder: None)
    assert resume.command(args) == 0
    assert "was not kept" in capsys.readouterr().err


def test_a_dry_run_says_that_a_steady_state_is_had_again(tmp_path, capsys, monkeypatch):
    """A run killed in a load behind its rounds, as `pts-lat` in its histogram."""
    later = PLAN[PLAN.rindex("  [[step.step]]") :].replace("[[step.step]]", "[[step]]").replace("point", "later")
    (tmp_path / "small.toml").write_text(PLAN + later)
    prepared = prepare.prepare(str(tmp_path / "small.toml"), DRIVE)
    book = journal.create(tmp_path / "runs", {**prepare.header(prepared), "drive": DRIVE, "host": {}, "rig": None})
    for act in prepared.acts:
        for number in range(1, 6) if act.repeat else (None,):
            more = {"round": number} if number else {}
            if act.path == "later":
                smart(book, 1, 100 * UNIT)
            book.event("step.start", step=act.path, **more)
            if act.do != "purge":
                wrote(book, act.folder(number, 1), [10 << 20])
            if act.path != "later":
                book.event("step.end", step=act.path, ok=True, **more)
            if number:
                book.event("round", step="rounds", round=number, steady=number == 5, tracked={})
    from ssdrig.virtual.device import persistence

    monkeypatch.setattr(
        persistence, "facts", lambda _: {"firmware": "F1", "host_written_bytes": 100 * UNIT + (10 << 20)}
    )
    args = asked(killed(book), "--dry-run", "--json")
    args.quiet = False
    assert resume.command(args) == 0
    output = capsys.readouterr()
    document = json.loads(output.out)["resume"]
    assert (document["begins"], document["round"], document["void"]) == (
        "rounds/point",
        6,
        ["the steady state: an interruption ends it"],
    )
    assert "cut short in later; part 2 goes on with rounds, round 6" in output.err
    assert "done again      the steady state of rounds: a round that preconditions, then five new ones" in output.err


def test_what_a_killed_part_had_set_is_put_back_by_the_next(tmp_path):
    (tmp_path / "sys/cpu0").mkdir(parents=True)
    file = tmp_path / "sys/cpu0/governor"
    file.write_text("powersave\n")
    pattern = {"governor": str(file)}
    events, duties = [], []
    with mock.patch.object(conditions, "FILES", pattern), mock.patch.object(conditions, "_paths", lambda *_: [file]):
        stage = SimpleNamespace(
            bench=SimpleNamespace(
                drive={"preset": "sata-tlc"},
                setting=lambda key: conditions.setting(key, "sda"),
                change=lambda key, value: conditions.change(key, value, "sda"),
                put_back=lambda key, before: conditions.put_back(key, before, "sda"),
            ),
            book=SimpleNamespace(path=tmp_path, event=lambda kind, **more: events.append({"kind": kind, **more})),
            teardown=SimpleNamespace(push=lambda words, duty: duties.append(duty)),
        )
        act = SimpleNamespace(keys={"governor": "performance"})
        steps.of("set").carry_out(act, stage, 1)  # and killed: no duty is carried out
        assert file.read_text() == "performance"
        first = ({"host": {"boot_id": "b"}}, list(events))
        assert standing.changed([first], "b") == {"governor": ["powersave"]}
        assert standing.changed([first], "another boot") == {} == standing.changed([first], None)
        events.clear()
        steps.of("set").carry_out(act, stage, 1)  # a part that sees what is left of it, killed, too
        second = ({"host": {"boot_id": "b"}}, list(events))
        assert standing.changed([first, second], "b") == {"governor": ["powersave"]}
        duties[0]()
        assert file.read_text() == "powersave" and events[-1]["kind"] == "put_back"
    ended = ({"host": {"boot_id": "b"}}, [*first[1], events[-1]])
    assert standing.changed([ended], "b") == {}
    values = [{"before": ["0"]}, {"before": ["1"]}]  # set twice, and killed when the second value was put back
    twice = [{"kind": "set", "key": "power_state", **value} for value in values]
    twice.append({"kind": "put_back", "key": "power_state", "value": ["1"]})
    assert standing.changed([({"host": {"boot_id": "b"}}, twice)], "b") == {"power_state": ["0"]}
    cache = ({"host": {"boot_id": "b"}}, [{"kind": "set", "key": "write_cache", "before": ["write back"]}])
    assert standing.changed([cache], "another boot") == {"write_cache": ["write back"]}  # the drive may keep it
    done = teardowns.carried_out(tmp_path, changed={"governor": ["powersave"]})
    assert done.put_back == [("governor", ["powersave"])]
    assert [e["key"] for e in journal.events(done.folder) if e["kind"] == "put_back"] == ["governor"]


def test_the_budget_is_of_all_parts(story):
    story_ = cut_short.read(killed(story))
    args = SimpleNamespace(budget="1 GB")
    budget = resume._budget(story_, args, None)
    assert (budget.most_bytes, budget.written_bytes) == (10**9, (64 << 20) + 2 * (10 << 20))


def test_a_run_that_is_done_has_nothing_left(story, capsys):
    for number in range(2, 7):
        story.event("round", step="rounds", round=number, steady=number == 6, tracked={})
    run = killed(story)
    args = asked(run, "--json")
    args.quiet = False
    assert resume.command(args) == 0
    output = capsys.readouterr()
    assert "nothing is left to do" in output.err and json.loads(output.out)["acts"] == []


def test_what_counts_of_an_act_that_was_cut_short_twice(tmp_path):
    load = PLAN[PLAN.index('[[step]]\nname = "purge"') : PLAN.index('[[step]]\nname = "rounds"')]
    load += '[[step]]\nname = "wear"\ndo = "load"\npattern = "random"\nread = 0\nblock = "4 KiB"\namount = "2 x"\n'
    plan = tmp_path / "wear.toml"
    plan.write_text(PLAN[: PLAN.index("[param]")] + load + 'resume = "continue"\n')
    prepared = prepare.prepare(str(plan), DRIVE)
    header = {"simulated": True, **prepare.header(prepared), "drive": DRIVE, "rig": None}
    book = journal.create(tmp_path / "runs", header)
    for name in ("purge", "fill"):
        book.event("step.start", step=name)
        book.event("step.end", step=name, ok=True)
    book.event("step.start", step="wear")
    wrote(book, "wear", [30 << 20])
    run = killed(book)
    resumed = {"part": 2, "begins": 2, "round": 1, "state": vars(State("written", 64 << 20, "wear"))}
    book = parts.begin(run, header | {"run": run.name, "resumed": resumed})
    book.event("step.start", step="wear")
    wrote(book, "wear", [20 << 20])
    killed(book)
    story_ = cut_short.read(run)
    assert story_.moved_bytes == 50 << 20
    todo = standing.todo(story_.acts, story_.past, story_.past.state, (), story_.moved_bytes)
    assert [act.path for act in todo.acts] == ["wear"] and todo.acts[0].amount_bytes == 78 << 20


def test_what_the_bench_could_do_when_the_run_began_still_counts():
    header = {"drive": {}, "plan": {"can": ["purge", "write-cache"]}, "rig": None}
    assert cut_short._capabilities(header) == {"purge", "write-cache"}
    assert cut_short._capabilities(header | {"plan": {}}) == prepare.REAL
