"""run/given_again.py: no command, target, file or consent is taken from a run folder."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from killed_runs import DRIVE, PLAN, asked, killed, story  # noqa: F401  fixture

from ssdrig.base.errors import JournalError, UsageError
from ssdrig.plan import expand, grammar
from ssdrig.run import cut_short, cutting, given_again, prepare, resume

NBD = {
    "preset": None,
    "target": "nbd+unix:///?socket=/run/it's",
    "power_off": "id >x; sleep 1",
    "power_on": "a\x1b[2Jb",
}
AGAIN = ["--target", NBD["target"], "--power-off", "off", "--power-on", "on"]


def made_with(story, **more):
    run = killed(story)
    header = json.loads((run / "run.json").read_text())
    header["drive"] |= more
    (run / "run.json").write_text(json.dumps(header))
    return run


@pytest.mark.parametrize("lacking", [AGAIN, AGAIN[2:], AGAIN[:4], ["--target", "nbd://other/x", *AGAIN[2:]]])
def test_a_target_and_its_commands_have_to_be_typed(story, monkeypatch, lacking):
    run = made_with(story, **NBD)
    monkeypatch.setattr(cutting, "server", lambda drive: pytest.fail("the bench was started"))
    with pytest.raises(UsageError) as error:
        resume.command(asked(run, *lacking))
    assert error.value.exit_code == 2 and error.value.do.isprintable() and error.value.seen.isprintable()
    words = shlex.split(error.value.do.partition(": ")[2])
    assert words[:3] == ["./ssdrig", "resume", str(run)]
    options = dict(zip(words[3::2], words[4::2], strict=True))
    assert options["--power-off"] == NBD["power_off"] and options["--destroy-data"] == NBD["target"]
    assert options["--power-on"] == r"a\x1b[2Jb"


def test_what_was_typed_is_used_and_not_the_folder(story, monkeypatch):
    run, used = made_with(story, **NBD, plp_claimed=1), []

    def server(drive):
        used.append(drive)
        raise KeyboardInterrupt

    monkeypatch.setattr(cutting, "server", server)
    monkeypatch.setattr(resume, "_able", lambda *_: resume.Budget(None))
    args = asked(run, *AGAIN, "--destroy-data", NBD["target"])
    with pytest.raises(KeyboardInterrupt):
        resume._on_target(cut_short.read(run), args, resume.Progress(True), None, None)
    assert used[0]["target"] == NBD["target"] and (used[0]["power_off"], used[0]["power_on"]) == ("off", "on")


def plan_of(story, folder) -> list[str]:
    """The words that name the plan of a run, which is not one of ssdrig's."""
    path = folder / "own.toml"
    path.write_text(story.header["plan"]["text"])
    return ["--plan", str(path)]


def test_a_real_drive_gets_only_commands_that_were_typed(story, tmp_path):
    run = made_with(story, preset=None, power_off="evil", power_on="evil")
    story = cut_short.read(run)
    plan = plan_of(story, tmp_path)
    with pytest.raises(UsageError, match="--power-off, --power-on on the command line"):
        given_again.check(asked(run, *plan), run, story.header, story.acts)
    given_again.check(asked(run, *plan, *AGAIN[2:]), run, story.header, story.acts)
    with pytest.raises(UsageError, match="begun without"):
        given_again.check(asked(run, *plan, *AGAIN[2:]), run, {"drive": {}}, story.acts)
    with pytest.raises(JournalError, match="damaged"):
        given_again.check(asked(run), run, {"drive": {"power_off": "evil"}}, story.acts)


def test_a_plan_that_is_not_ssdrigs_is_typed_for_a_real_drive(story, tmp_path):
    run = made_with(story, preset=None)
    story = cut_short.read(run)
    plan = plan_of(story, tmp_path)
    given_again.check(asked(run, *plan), run, story.header, story.acts)
    given_again.check(asked(run, "--dry-run"), run, story.header, story.acts)
    for text in ("", PLAN + "# changed\n"):
        Path(plan[1]).write_text(text)
        with pytest.raises(UsageError, match="--plan on the command line"):
            given_again.check(asked(run, *plan), run, story.header, story.acts)
    shipped = grammar.shipped()["consistency"].read_text()
    given_again.check(asked(run), run, {**story.header, "plan": {"text": shipped}}, story.acts)
    given_again.check(asked(run), run, {**story.header, "drive": DRIVE}, story.acts)


@pytest.mark.parametrize("most_bytes", [0, 10**9, 10**18])
def test_a_budget_is_typed_for_a_real_drive(story, tmp_path, most_bytes):
    run = made_with(story, preset=None)
    story = cut_short.read(run)
    plan, header = plan_of(story, tmp_path), {**story.header, "budget_bytes": most_bytes}
    with pytest.raises(UsageError, match="--budget on the command line") as error:
        given_again.check(asked(run, *plan), run, header, story.acts)
    assert f"--budget '{most_bytes} B'" in error.value.do
    given_again.check(asked(run, *plan, "--budget", f"{most_bytes} B"), run, header, story.acts)
    given_again.check(asked(run, *plan, "--dry-run"), run, header, story.acts)


@pytest.mark.parametrize("key", ["target", "power_off", "power_on"])
@pytest.mark.parametrize("value", [["sh", "-c", "id"], 7, True, {"x": 1}])
def test_a_command_or_target_of_another_type_is_damage(story, key, value):
    with pytest.raises(JournalError, match=f"drive.{key}"):
        cut_short.read(made_with(story, **{key: value}))


@pytest.mark.parametrize(
    ("step", "names"),
    [
        ('do = "replay"\nfile = "/x/secret"\n', ["/x/secret"]),
        ('do = "recall"\nstorage = "/x/log"\nmanifest = "../m"\n', ["/x/log", "../m"]),
        ('do = "recall"\n', []),
    ],
)
def test_a_file_that_the_plan_reads_has_to_be_named(tmp_path, step, names):
    plan = grammar.read(PLAN + '[[step]]\nname = "again"\n' + step)
    acts = expand.expand(plan, DRIVE, prepare.VIRTUAL)
    assert given_again.files(acts) == names
    if names:
        for words in ([], ["--dry-run"], ["--read", "other"], ["--read", "other", "--dry-run"]):
            with pytest.raises(UsageError) as error:
                given_again.check(asked(tmp_path, *words), tmp_path, {"drive": DRIVE}, acts)
            assert all(f"--read {name}" in error.value.do for name in names)
    given = [word for name in names for word in ("--read", name)]
    given_again.check(asked(tmp_path, *given), tmp_path, {"drive": DRIVE}, acts)


def test_a_resumed_run_opens_no_file_before_it_was_named(story, monkeypatch):
    story_ = cut_short.read(killed(story))
    replay = expand.Act("play", "replay", {"file": "/x/secret"})
    monkeypatch.setattr(cut_short, "read", lambda _: replace(story_, acts=(*story_.acts, replay)))
    monkeypatch.setattr(prepare, "measured", lambda *_: pytest.fail("the file was opened"))
    with pytest.raises(UsageError, match="--read"):
        resume.command(asked(story_.run, "--dry-run"))
