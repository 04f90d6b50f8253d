"""The verdict after a cut: scenes whose verdict is known, random histories against two references, broken judges. The
full numbers: `./ssdrig selfcheck powerloss-verdict`."""

import numpy as np
import pytest

from ssdrig.benchmarks import powerloss, powerloss_scenes
from ssdrig.benchmarks.powerloss_scenes import FIRST_SEQ, KEPT, SCENES, TWO_CUTS, W0, Scene, rows
from ssdrig.powerloss import verdict
from ssdrig.powerloss.findings import CLASSES, NAMES
from ssdrig.powerloss.history import FUA, NEVER, WRITE
from ssdrig.powerloss.proof import proof
from ssdrig.powerloss.verdict import Blocks, Session


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_scene(scene):
    assert powerloss_scenes.said(scene) == powerloss_scenes.expected(scene)


def test_the_scenes_have_every_class():
    assert {name for scene in SCENES for name in powerloss_scenes.expected(scene)} == set(NAMES)


def test_only_what_is_certain_fails():
    every = verdict.Verdict(np.arange(len(CLASSES)), *[np.zeros(0)] * 5, "")
    assert [NAMES[i] for i in every.failed()] == [each.name for each in CLASSES[1:] if each.certain]


def test_with_bytes_an_error_is_counted_once():
    assert powerloss_scenes.two_cuts() == TWO_CUTS


def test_what_was_lost_as_allowed_is_counted():
    commands = [W0, (WRITE, 1, 1, 10, 20), (WRITE, 2, 1, 10, NEVER), (WRITE, 3, 1, 10, 20, FUA)]
    scene = Scene("", commands, {0: (7, 7, ""), 1: (7, 101, ""), 2: (7, 7, ""), 3: (7, 103, "")})
    found = verdict.judge(*powerloss_scenes.asked(scene), KEPT)
    assert found.lost_volatile.tolist() == [0] and found.why_not == ""


def test_why_a_session_is_not_judged():
    scene = Scene("", [W0], {0: (7, 6, "")}, session={"settled_ns": None})
    found = verdict.judge(*powerloss_scenes.asked(scene), KEPT)
    assert found.why_not == "blocks were read while commands were outstanding" and not found.failed().size


@pytest.mark.slow
def test_the_verdict_is_the_searched_machines():
    shown, images, differ = powerloss.searched(150)
    assert shown == 150 and images > 400 and differ == 0


@pytest.mark.slow
def test_the_verdict_is_the_definitions_by_sets():
    assert powerloss.differences(800) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", powerloss.MUTANTS)
def test_a_broken_judge_is_noticed(name):
    assert powerloss.wrong(powerloss.mutated(name), 0)


def test_a_mutant_whose_text_is_gone_is_said(monkeypatch):
    monkeypatch.setitem(powerloss.MUTANTS, "new", ("verdict", "no such text", ""))
    with pytest.raises(ValueError, match="stands 0 times"):
        powerloss.mutated("new")


def test_a_long_session_without_fault_accuses_nobody():
    session, blocks = powerloss.large(5000)
    found = verdict.judge(session, blocks, KEPT)
    assert not found.finding.any() and not found.failed().size
    older = verdict.judge(session, blocks._replace(seen=np.zeros_like(blocks.lba)), KEPT)
    lost = {NAMES[n] for n in older.finding}
    assert lost == {"LOST_FUA", "LOST_FLUSHED", "OK"} and (older.finding > 0).sum() > 4500
    assert session.rows["seq"][0] == 1 and FIRST_SEQ > 1


def test_a_lost_write_with_fua_is_a_lost_flush_where_the_kernel_sends_no_fua():
    commands = rows([(WRITE, 0, 1, 10, 20, FUA)])
    session = Session(commands, 100, 200, 300, 400)
    blocks = Blocks(*(np.array([each]) for each in (0, 7, 7)), np.zeros(1, bool))
    for fua, name in ((True, "LOST_FUA"), (False, "LOST_FLUSHED")):
        held = KEPT._replace(fua=fua)
        found = verdict.judge(session, blocks, held)
        assert [NAMES[n] for n in found.finding] == [name]
        said = proof(session, blocks, held, found, 0, None)["sentences"]
        assert ("with FUA" in said[0]) is fua
