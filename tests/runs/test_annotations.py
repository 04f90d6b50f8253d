"""Notes of people beside a run: kept, read back, and never taken for the run's own."""

import json
import os

import pytest
import synthetic_run

from ssdrig import cli
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.runs import annotations, integrity


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return synthetic_run.write(tmp_path_factory.mktemp("run"), [1000] * 5, zoom_s=2, power=False)


def test_notes_come_back_in_order_and_the_run_is_as_it_was(run):
    before = integrity.damage(run)
    assert cli.main(["note", str(run), " fan\n off ", "--at", "620"]) == 0
    assert cli.main(["note", str(run), "on again", "--at", "11m"]) == 0
    assert [(note["text"], note["at_s"]) for note in annotations.read(run)] == [("fan off", 620.0), ("on again", 660.0)]
    assert integrity.damage(run) == before


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["x", "--at", "soon"], 2),
        (["x"], 2),
        (["", "--at", "1"], 2),
        (["y" * 201, "--at", "1"], 2),
        (["\x1b[2J", "--at", "1"], 2),
        (["\udcff", "--at", "1"], 2),
    ],
)
def test_what_is_no_note_is_refused(run, words, code):
    before = (run / integrity.NOTES).read_bytes() if (run / integrity.NOTES).exists() else b""
    assert cli.main(["note", str(run), *words]) == code
    assert (run / integrity.NOTES).exists() == bool(before) and (
        not before or (run / integrity.NOTES).read_bytes() == before
    )


def test_no_run_no_note(tmp_path):
    assert cli.main(["note", str(tmp_path), "x", "--at", "1"]) != 0 and list(tmp_path.iterdir()) == []


def test_lines_that_are_no_note_are_left_out(tmp_path):
    good = {"text": "a", "utc_ns": 1, "at_s": 2.5}
    bad = [
        "",
        "{",
        "[1]",
        '{"text": 3, "at_s": 1}',
        '{"text": "b"}',
        '{"text": "b", "at_s": "1"}',
        '{"text": "b", "at_s": -1}',
    ]
    bad += ['{"text": "b", "at_s": true}', '{"text": "b", "at_s": NaN}', "[" * 100_000]
    (tmp_path / integrity.NOTES).write_text("\n".join([*bad, json.dumps(good), json.dumps(good)[:-3]]))
    assert annotations.read(tmp_path) == [good]
    (tmp_path / integrity.NOTES).unlink()
    (tmp_path / integrity.NOTES).symlink_to("/dev/zero")
    assert annotations.read(tmp_path) == []


def test_half_a_character_of_a_foreign_folder_breaks_nothing(tmp_path):
    (tmp_path / integrity.NOTES).write_text('{"text": "a\\ud800b \\ud83d\\ude00", "at_s": 1}\n')
    assert [note["text"] for note in annotations.read(tmp_path)] == ["a?b \U0001f600"]
    assert integrity.document(b'{"k\\udcff": ["\\uDfff", 1.5, null]}') == {"k?": ["?", 1.5, None]}
    line = b'{"t_ns": 1, "kind": "note", "text": "\\udcff"}\n'
    assert integrity.lines(line).events == [{"t_ns": 1, "kind": "note", "text": "?"}]


def test_what_a_killed_writer_left_takes_no_note_with_it(tmp_path):
    annotations.add(tmp_path, "one", 1.0)
    with open(tmp_path / integrity.NOTES, "a") as file:
        file.write('{"text": "tor')
    annotations.add(tmp_path, "two 👩‍🚀", 2.0)
    assert [note["text"] for note in annotations.read(tmp_path)] == ["one", "two 👩‍🚀"]


def test_a_note_goes_nowhere_else(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("kept")
    run = tmp_path / "run"
    run.mkdir()
    (run / integrity.NOTES).symlink_to(outside)
    with pytest.raises(JournalError):
        annotations.add(run, "x", 1.0)
    assert outside.read_text() == "kept"
    (run / integrity.NOTES).unlink()
    os.mkfifo(run / integrity.NOTES)
    with pytest.raises(JournalError):
        annotations.add(run, "x", 1.0)


def test_note_on_a_copy_of_hard_links_leaves_the_run_it_was_made_of(tmp_path):
    """`cp -al runs backup`: both folders have the same file."""
    for name in ("run", "copy"):
        (tmp_path / name).mkdir()
    annotations.add(tmp_path / "run", "first", 1.0)
    os.link(tmp_path / "run" / integrity.NOTES, tmp_path / "copy" / integrity.NOTES)
    annotations.add(tmp_path / "copy", "second", 2.0)
    texts = {name: [note["text"] for note in annotations.read(tmp_path / name)] for name in ("run", "copy")}
    assert texts == {"run": ["first"], "copy": ["first", "second"]}


def test_now_is_only_for_a_run_that_goes_on(run):
    with pytest.raises(UsageError, match="--at TIME for a run that has ended"):
        annotations.add(run, "x", None)
