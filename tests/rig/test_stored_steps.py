"""What an interrupted first power-up leaves on disk, and what of it is offered again."""

import json
import os
from random import Random

import pytest

from selfcheck import bring_up as bench
from ssdrig.base.errors import UsageError
from ssdrig.rig import answers, bring_up, builds, stored_steps
from ssdrig.rig.stored_steps import Key

BUILD = builds.read(bench.BUILD)
KEY = Key(BUILD)


@pytest.fixture(scope="module")
def passed():
    """Steps 1 to 6 of a sound rig."""
    rig, readings = bench.Rig(Random(5), BUILD), bring_up.readings(BUILD)
    questions = answers.Questions(lambda words: rig.answer(words, readings), lambda words: None)
    return bring_up.by_hand(BUILD, questions)


@pytest.fixture(autouse=True)
def done(passed, tmp_path, monkeypatch):
    """The steps, stored."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    stored_steps.keep(KEY, passed)
    return passed


def offered(key=KEY):
    return stored_steps.read(key).done


def test_steps_come_back_as_they_were(done):
    assert offered() == done and [one.step for one in done] == [1, 2, 3, 4, 5, 6]
    assert stored_steps.path(KEY) == stored_steps.path(Key(BUILD, "prototyping"))
    assert offered(Key(BUILD, "board")) == offered(Key(builds.read("one_rail"))) == []
    stored_steps.forget(KEY)
    stored_steps.forget(KEY)
    assert offered() == []


def test_two_rigs_of_one_build_are_kept_apart_by_their_marks(done):
    one, other = Key(BUILD, mark="1"), Key(BUILD, mark="2")
    stored_steps.keep(one, done[:2])
    stored_steps.keep(other, done[:4], "E66")
    assert [len(offered(key)) for key in (KEY, one, other)] == [6, 2, 4]
    assert [stored_steps.read(key).serial for key in (KEY, one, other)] == [None, None, "E66"]
    stored_steps.path(one).replace(stored_steps.path(KEY))  # copied by hand: it is of another mark
    assert offered() == []


def test_one_process_stores_steps_under_a_key():
    with stored_steps.held(KEY):
        with pytest.raises(UsageError), stored_steps.held(KEY):
            pass
        with stored_steps.held(Key(BUILD, mark="2")):
            pass
    with stored_steps.held(KEY):
        pass


def test_a_folder_that_takes_no_file_holds_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with stored_steps.held(KEY), stored_steps.held(KEY):
        assert offered() == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"schema": 2}', "[" * 100_000, "\xff", '{"schema": 2, "x": NaN}']
)
def test_a_file_that_is_damaged_offers_nothing(text):
    stored_steps.path(KEY).write_bytes(text.encode("latin-1"))
    assert offered() == []


def test_a_folder_in_the_place_of_the_file_offers_nothing():
    stored_steps.path(KEY).unlink()
    os.mkdir(stored_steps.path(KEY))
    assert offered() == []


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["asked"].pop(),
        lambda document: document["steps"].pop(0),
        lambda document: document["steps"][0]["checks"].pop(),
        lambda document: document["steps"][0]["checks"][0].update(ok=False),
        lambda document: document["steps"][0]["checks"][0].update(value=999.0),  # outside, whatever `ok` has
        lambda document: document["steps"][3]["checks"][0].update(why="yes"),
        lambda document: document.update(schema=1),
        lambda document: document.update(steps=[]),
        lambda document: document.update(build="one_rail"),
    ],
)
def test_stored_steps_of_another_kind_are_not_offered(change):
    path = stored_steps.path(KEY)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    assert offered() == []


def test_any_value_of_another_type_is_refused_or_can_be_shown():
    """Each leaf of the file in turn: a string, a list, a number that is none, one that is too large, nothing."""
    path = stored_steps.path(KEY)
    text = path.read_text()

    def leaves(node, at=()):
        pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, below in pairs:
            yield from leaves(below, (*at, key))
        if at:
            yield at

    places = [at for at in leaves(json.loads(text)) if at[0] != "asked"]
    for at in (*places[:40], *places[40::17]):
        for wrong in ("x", [], {}, 1e308, float("nan"), -1, None, True):
            document = json.loads(text)
            parent = document
            for key in at[:-1]:
                parent = parent[key]
            parent[at[-1]] = wrong
            path.write_text(json.dumps(document))
            for step in offered():
                assert all(check.words() for check in step.checks) and 0 <= (step.utc_ns or 0) < stored_steps.LATEST_ns
