"""What an interrupted first power-up leaves on disk, and what of it is offered again."""

import json
from random import Random

import pytest

from selfcheck import bring_up as bench
from ssdrig.rig import answers, bring_up, builds, stored_steps

BUILD = builds.read(bench.BUILD)


@pytest.fixture(autouse=True)
def done(tmp_path, monkeypatch):
    """Steps 1 to 6 of a sound rig, stored."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rig = bench.Rig(Random(5), BUILD)
    done = bring_up.by_hand(BUILD, answers.Questions(lambda words: rig.answer(words, bring_up.readings(BUILD)), print))
    stored_steps.keep(BUILD, None, done)
    return done


def test_steps_come_back_as_they_were(done):
    assert stored_steps.read(BUILD, None) == done and [one.step for one in done] == [1, 2, 3, 4, 5, 6]
    assert stored_steps.path(BUILD, None) == stored_steps.path(BUILD, "prototyping")
    assert stored_steps.read(BUILD, "board") == stored_steps.read(builds.read("one_rail"), None) == []
    stored_steps.forget(BUILD, None)
    stored_steps.forget(BUILD, None)
    assert stored_steps.read(BUILD, None) == []


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": 1}', "[" * 100_000])
def test_a_file_that_is_damaged_offers_nothing(text):
    stored_steps.path(BUILD, None).write_text(text)
    assert stored_steps.read(BUILD, None) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["asked"].pop(),
        lambda document: document["steps"].pop(0),
        lambda document: document["steps"][0]["checks"].pop(),
        lambda document: document["steps"][0]["checks"][0].update(ok=False),
        lambda document: document.update(schema=2),
        lambda document: document.update(steps=[]),
    ],
)
def test_stored_steps_of_another_kind_are_not_offered(change):
    path = stored_steps.path(BUILD, None)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    assert stored_steps.read(BUILD, None) == []
