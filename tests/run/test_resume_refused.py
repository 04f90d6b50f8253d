"""run/resume.py: run folders that cannot be gone on with, or of which nothing is believed; what the rest cannot be done
with. In process."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

import folder_fuzz
import pytest
from drives import a_drive
from killed_runs import DRIVE, PLAN, UNIT, asked, killed, story  # noqa: F401  fixture
from small_plans import FILLED

from ssdrig import cli
from ssdrig.base.errors import ExchangedDrive, JournalError, UnsafeTarget, UsageError
from ssdrig.plan import expand, grammar, kinds
from ssdrig.plan.state import UNKNOWN
from ssdrig.run import able, cut_short, cutting, prepare, resume
from ssdrig.runs import journal, parts


def test_parts_that_cannot_be_are_refused_and_reports_say_so(story, tmp_path):
    run = killed(story)
    header = {key: value for key, value in journal.open_run(run).items() if key not in ("schema", "started")}
    resumed = {"begins": 2, "round": 2, "state": vars(UNKNOWN)}
    for number in (2, 3):
        parts.begin(run, header | {"resumed": resumed | {"part": number}}).close("interrupted")
    with pytest.raises(JournalError, match="another process has gone on"):
        parts.begin(run, header | {"resumed": resumed | {"part": 3}})
    assert not journal.lock_is_held(run)
    assert cut_short.read(run).past.at == 2
    lone = tmp_path / "elsewhere/part-3"
    shutil.copytree(run / "part-3", lone)
    with pytest.raises(JournalError, match="a later part of a run"):
        cut_short.read(lone)
    assert "a later part" in parts.shown(lone)[1]
    shutil.move(run / "part-2", tmp_path / "lost")
    with pytest.raises(JournalError, match="part 2 is missing"):
        cut_short.read(run)
    assert "part 2 is missing" in parts.shown(run)[1]
    shutil.move(tmp_path / "lost", run / "part-2")
    file = run / "part-3/run.json"
    file.write_text(file.read_text().replace(run.name, "other"))
    with pytest.raises(JournalError, match="part-3 belongs to another run, other"):
        cut_short.read(run)


@pytest.mark.parametrize("wrong", [{"begins": 99}, {"begins": None}, {"round": 0}, {"state": {"x": 1}}])
def test_a_part_that_says_nonsense_is_refused(story, wrong):
    run = killed(story)
    header = {key: value for key, value in journal.open_run(run).items() if key not in ("schema", "started")}
    resumed = {"part": 2, "begins": 2, "round": 2, "state": vars(UNKNOWN)}
    killed(parts.begin(run, header | {"resumed": resumed | wrong}))
    with pytest.raises(JournalError, match="it is damaged"):
        cut_short.read(run)


def test_a_journal_that_lacks_lines_voids_all(story):
    run = killed(story)
    file = run / "events.jsonl"
    whole = file.read_bytes().splitlines(keepends=True)
    begun = next(i for i, line in enumerate(whole) if b'"round": 2' in line)
    for lines, words in ((whole[:begun], "fio was started 3 times"), (whole[:2] + whole[3:], "1 lines are missing")):
        file.write_bytes(b"".join(lines))
        story_ = cut_short.read(run)
        _, todo = resume.rest_of(story_, DRIVE, story_.past.state, ())
        assert todo.state == UNKNOWN and words in todo.void[-1] and todo.begins == 0
    file.write_bytes(b"".join(whole) + whole[0][:-9])  # what a kill may leave
    assert not cut_short.read(run).doubts
    file.write_bytes(b"".join(whole))
    book = parts.begin(run, {k: v for k, v in json.loads((run / "run.json").read_text()).items() if k != "started"})
    book.close("interrupted")
    (book.path / "run.json").write_text((book.path / "run.json").read_text().replace("S1", "S2"))
    with pytest.raises(JournalError, match="run.json: is damaged"):
        cut_short.read(run)


def test_what_the_rest_cannot_be_done_with_is_said_first(story, monkeypatch):
    story_ = cut_short.read(killed(story))
    done = (64 << 20) + 2 * (10 << 20)
    prepared, _ = resume.rest_of(story_, DRIVE, story_.past.state, ())
    args = SimpleNamespace(budget=f"{done} B", dry_run=True)
    with pytest.raises(UsageError, match="a budget of at least"):
        resume._able(story_, args, prepared, None, prepare.VIRTUAL)
    args.budget = ""
    with pytest.raises(UsageError, match="--budget"):
        resume._able(story_, args, prepared, None, prepare.VIRTUAL)
    args.budget = f"{done + (1 << 30)} B"
    assert resume._able(story_, args, prepared, None, prepare.VIRTUAL).left_bytes() == 1 << 30
    asked = replace(prepared, acts=(expand.Act("heat", "ask", {"text": "x"}), *prepared.acts))
    args.dry_run = False
    with mock.patch("sys.stdin.isatty", lambda: False), pytest.raises(UsageError, match="asks the user"):
        resume._able(story_, args, asked, None, prepare.VIRTUAL)


def test_a_rest_needs_the_bench_it_began_on(tmp_path):
    idle = '[[step]]\nname = "rest"\ndo = "idle"\nuntil = "quiet"\nmost = "5 min"\n'
    for more in ("", "optional = true\n"):
        plan = grammar.read(PLAN[: PLAN.index("[param]")] + FILLED + idle + more)
        acts = expand.expand(plan, DRIVE, prepare.VIRTUAL)
        able.the_rest(plan, acts, DRIVE, prepare.VIRTUAL)
        with pytest.raises(UsageError, match="rig"):
            able.the_rest(plan, acts, DRIVE, prepare.REAL)
    able.same_format(DRIVE, {})
    able.same_format(DRIVE, DRIVE)
    with pytest.raises(UsageError, match="logical_block_bytes 512"):
        able.same_format(DRIVE, DRIVE | {"logical_block_bytes": 512})


@pytest.mark.parametrize("key", ["point", "chosen", "mean"])
def test_an_event_of_another_kind_with_a_right_seal_is_a_damaged_line(story, key):
    story.event("step.end", step="rounds/point", ok=True, round=2, **{key: "x"})
    story_ = cut_short.read(killed(story))
    assert any("1 damaged lines" in words for words in story_.doubts)
    assert resume.rest_of(story_, DRIVE, story_.past.state, ())[1].state == UNKNOWN


@pytest.mark.parametrize(("trims", "used", "known"), [(False, 5, 5), (False, True, None), (True, 5, None)])
def test_how_much_the_drive_holds_is_compared_unless_the_run_trimmed_it_itself(story, trims, used, known):
    path = story.path / "smart/002.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"used_bytes": used}))
    if trims:
        story.event("step.start", step="purge")
    assert cut_short.read(killed(story)).before.used_bytes == known


def test_another_ssdrig_goes_on_with_the_same_fio_jobs_only_and_says_so(story, capsys, monkeypatch):
    run = killed(story)
    from ssdrig.virtual.device import persistence

    monkeypatch.setattr(
        persistence, "facts", lambda _: {"firmware": "F1", "host_written_bytes": 101 * UNIT + (10 << 20)}
    )
    monkeypatch.setattr(resume, "__version__", "0.3.0")
    header = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(header | {"ssdrig": "0.2.0"}))
    args = asked(run, "--dry-run")
    args.quiet = False
    assert resume.command(args) == 0
    assert "ssdrig 0.2.0 began this run, 0.3.0 goes on" in capsys.readouterr().err
    (run / "run.json").write_text(json.dumps(header | {"ssdrig": "0.3.0"}))
    assert resume.command(args) == 0 and "began this run" not in capsys.readouterr().err
    fill = kinds.KINDS["fill"]
    monkeypatch.setattr(fill, "job", lambda *args, own=fill.job: replace(own(*args), queue_depth=7))
    with pytest.raises(UsageError, match="fio jobs that the run began with"):
        resume.command(args)
    monkeypatch.undo()
    monkeypatch.setattr(
        persistence, "facts", lambda _: {"firmware": "F1", "host_written_bytes": 101 * UNIT + (10 << 20)}
    )
    del header["plan"]["jobs_crc"]
    (run / "run.json").write_text(json.dumps(header))
    with pytest.raises(UsageError, match="fio jobs that the run began with"):
        resume.command(args)


def test_a_run_that_began_with_a_rig_goes_on_without_only_when_asked_to():
    known = {"port": "/dev/ttyACM0", "simulated": False}
    with pytest.raises(UsageError, match="/dev/ttyACM0.*--without-rig"):
        able.same_rig(known, None, False)
    able.same_rig(known, None, True)
    able.same_rig(known, "/dev/ttyACM1", False)
    able.same_rig(None, None, False)
    with pytest.raises(UsageError, match="both"):
        able.same_rig(known, "/dev/ttyACM1", True)


def test_a_real_run_is_refused_without_its_rig_before_the_drive_is_asked(story, monkeypatch):
    story_ = cut_short.read(killed(story))
    drive = a_drive(model="SIMULATED", serial="S1", capacity_bytes=64 << 20, logical_block_bytes=4096)
    monkeypatch.setattr(resume.inventory, "find", lambda serial: drive)
    monkeypatch.setattr(resume.bench, "polled", lambda drive: pytest.fail("the drive was asked"))
    part = story_.parts[-1][0] | {"rig": {"port": "/dev/ttyACM0"}}
    args = SimpleNamespace(drive=None, rig=None, without_rig=False, power_off=None)
    with pytest.raises(UsageError, match="no --rig"):
        resume._on_real(replace(story_, parts=[(part, [])]), args, None, None, None)


def test_resumed_campaign_is_refused_by_slot_and_switch_as_a_new_one(tmp_path, monkeypatch):
    """The drive may be in another slot by now."""
    run, asked = folder_fuzz.folder_of("real-cut", tmp_path), []

    def describe(drive, plp_claimed, commands, acts, say):
        asked.append((drive.serial, commands, [act.do for act in acts if act.do == "cuts"]))
        raise UnsafeTarget("a slot that gives the drive back", "none", "use another")

    words = ["resume", str(run), *folder_fuzz.GIVEN["real-cut"], "--quiet"]
    with folder_fuzz.stubbed(monkeypatch, []):
        monkeypatch.setattr(cutting, "describe", describe)
        assert {cli.main([*words, *more]) for more in ([], ["--dry-run"])} == {UnsafeTarget.exit_code}
    assert asked == 2 * [("REAL1", ("typed off", "typed on"), ["cuts"])]


def test_a_real_run_goes_on_with_the_states_and_handles_it_began_with():
    known = {"power_states": [{"operational": True}], "placement_handles": [0, 1], "raw_nand_bytes": 1 << 30}
    rest = resume._of_run(known)
    assert rest["power_states"] == known["power_states"] and rest["placement_handles"] == [0, 1]


def counters(host_bytes=500 * 10**9, hours=900, utc_ns=10**18, **more):
    named = {"host_written_bytes": host_bytes, "host_written_source": "ata:241", "host_written_unit_bytes": 512}
    named |= {"nand_written_bytes": 900 * 10**9, "nand_written_source": "ata:249", "nand_written_unit_bytes": 1 << 30}
    return named | {"power_on_hours": hours, "utc_ns": utc_ns, "capacity_bytes": 64 << 20} | more


@pytest.mark.parametrize(
    "now, other",
    [
        ({}, False),
        ({"host_bytes": 499 * 10**9}, False),  # what a drive forgets that has lost its power
        ({"host_bytes": 100 * 10**9}, True),
        ({"nand_written_bytes": 500 * 10**9}, True),
        ({"nand_written_bytes": 890 * 10**9}, False),
        ({"host_bytes": None}, False),
        ({"host_written_source": "nvme"}, False),
        ({"hours": 890}, False),
        ({"hours": 800}, True),
        ({"hours": 2000, "utc_ns": 10**18 + 3600 * 10**9}, True),
        ({"hours": 901, "utc_ns": 10**18 + 3600 * 10**9}, False),
    ],
)
def test_twin_is_told_by_counters_that_only_rise(story, monkeypatch, now, other):
    """Two drives of one serial: the run of one does not go on upon the other."""
    story_ = replace(cut_short.read(killed(story)), snapshot=counters())
    drive = a_drive(model="SIMULATED", serial="S1", capacity_bytes=64 << 20, logical_block_bytes=4096)
    monkeypatch.setattr(resume.inventory, "find", lambda serial: drive)
    monkeypatch.setattr(resume.bench, "polled", lambda drive: {})
    monkeypatch.setattr(cut_short, "snapshot_of", lambda document: counters(**now))
    monkeypatch.setattr(cut_short, "reading_of", mock.Mock(side_effect=KeyboardInterrupt))  # it would go on here
    args = SimpleNamespace(drive=None, rig=None, without_rig=False, power_off=None)
    with pytest.raises(ExchangedDrive if other else KeyboardInterrupt):
        resume._on_real(story_, args, None, None, None)


def test_digests_are_those_of_the_last_marks(story):
    assert cut_short.digests([story.path]) is None
    for row in ({"4096": "aa"}, {"0": "bb", "x": "cc", "9" * 30: "dd"}):
        story.event("marks", step="fill", digests=row)
    assert cut_short.digests([killed(story)]) == {0: "bb"}
