"""The verdict after a cut: scenes whose verdict is known, random histories against two references, broken judges. The
full numbers: `./ssdrig selfcheck powerloss-verdict`."""

import numpy as np
import pytest

from selfcheck import powerloss, powerloss_scenes
from selfcheck.powerloss_scenes import FIRST_SEQ, KEPT, SCENES, TWO_CUTS, W0, Scene, rows
from ssdrig.powerloss import record, verdict
from ssdrig.powerloss.findings import CLASSES, NAMES
from ssdrig.powerloss.history import FLUSH, FUA, NEVER, TRIM, WRITE, ZEROS
from ssdrig.powerloss.judging import proof
from ssdrig.powerloss.verdict import Blocks, Session


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_scene(scene):
    assert powerloss_scenes.judged(scene) == powerloss_scenes.expected(scene)


def test_the_scenes_have_every_class():
    assert {name for scene in SCENES for name in powerloss_scenes.expected(scene)} == set(NAMES)


def test_only_what_is_certain_fails():
    every = verdict.Verdict(np.arange(len(CLASSES)), *[np.zeros(0)] * 5, "")
    assert [NAMES[i] for i in every.failed()] == [finding.name for finding in CLASSES[1:] if finding.certain]


def test_with_bytes_an_error_is_counted_once():
    assert powerloss_scenes.two_cuts() == TWO_CUTS


def test_what_was_lost_as_allowed_is_counted():
    commands = [W0, (WRITE, 1, 1, 10, 20), (WRITE, 2, 1, 10, NEVER), (WRITE, 3, 1, 10, 20, FUA)]
    scene = Scene("", commands, {0: (7, 7, ""), 1: (7, 101, ""), 2: (7, 7, ""), 3: (7, 103, "")})
    ruling = verdict.judge(*powerloss_scenes.asked(scene), KEPT)
    assert ruling.lost_volatile.tolist() == [0] and ruling.why_not == ""


def test_why_a_session_is_not_judged():
    scene = Scene("", [W0], {0: (7, 6, "")}, session={"settled_ns": None})
    ruling = verdict.judge(*powerloss_scenes.asked(scene), KEPT)
    assert ruling.why_not == "blocks were read while commands were outstanding" and not ruling.failed().size


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
    ruling = verdict.judge(session, blocks, KEPT)
    assert not ruling.finding.any() and not ruling.failed().size
    older = verdict.judge(session, blocks._replace(seen=np.zeros_like(blocks.lba)), KEPT)
    lost = {NAMES[n] for n in older.finding}
    assert lost == {"LOST_FUA", "LOST_FLUSHED", "OK"} and (older.finding > 0).sum() > 4500
    assert session.rows["seq"][0] == 1 and FIRST_SEQ > 1


def test_a_lost_write_with_fua_is_a_lost_flush_where_the_kernel_sends_no_fua():
    commands = rows([(WRITE, 0, 1, 10, 20, FUA)])
    session = Session(commands, 100, 200, 300, 400)
    blocks = Blocks(*(np.array([values]) for values in (0, 7, 7)), np.zeros(1, bool))
    for fua, name in ((True, "LOST_FUA"), (False, "LOST_FLUSHED")):
        held = KEPT._replace(fua=fua)
        ruling = verdict.judge(session, blocks, held)
        assert [NAMES[n] for n in ruling.finding] == [name]
        sentences = proof(session, blocks, held, ruling, 0, None)["sentences"]
        assert ("with FUA" in sentences[0]) is fua


def test_zeros_that_were_written_are_a_content_like_any_other():
    """A Write Zeroes must survive as a write must; a trim need not."""
    lost, written, trim = (WRITE, 0, 1, 30, 40, ZEROS), (WRITE, 0, 1, 30, 40, ZEROS | FUA), (TRIM, 0, 1, 30, 40)
    flush = (FLUSH, 0, 0, 50, 60)
    for commands, seen, name in (
        ([(*W0, FUA), lost], FIRST_SEQ, "OK"),
        ([(*W0, FUA), lost], record.ZEROS, "OK"),
        ([(*W0, FUA), lost, flush], FIRST_SEQ, "LOST_FLUSHED"),
        ([(*W0, FUA), written], FIRST_SEQ, "LOST_FUA"),
        ([(*W0, FUA), written], record.ZEROS, "OK"),
        ([(*W0, FUA), written], record.ONES, "LOST_FUA"),
        ([(*W0, FUA), trim, flush], FIRST_SEQ, "OK"),
        ([written, (WRITE, 0, 1, 50, 60, FUA)], record.ZEROS, "LOST_FUA"),
        ([(*W0, FUA)], record.ZEROS, "LOST_FUA"),
    ):
        session = Session(rows(commands), 100, 200, 300, 400)
        blocks = Blocks(*(np.array([values]) for values in (0, 7, seen)), np.zeros(1, bool))
        assert [NAMES[n] for n in verdict.judge(session, blocks, KEPT).finding] == [name], commands


NBD = KEPT._replace(block_bytes=4096, atomic_blocks=0, after_trim=None)
OLD, NEW = 3, 101  # before the session, and by its only write


def torn(parts, base_parts=None):
    """A block of eight sectors with these contents; before the session it had `base_parts`, or the content OLD."""
    known = verdict.known(1, OLD)
    if base_parts:
        known.content[:], known.parts[0] = record.TORN, np.array(base_parts)
    whole = parts[0] if len(set(parts)) == 1 else record.TORN
    lba = np.zeros(8 * (whole == record.TORN), np.int64)
    blocks = Blocks(np.array([0]), known.content.copy(), np.array([whole]), np.zeros(1, bool), part_lba=lba)
    return known, verdict.asked(known, np.array([0]), blocks._replace(part_seen=np.array(parts)[: len(lba)]))


WRITTEN = rows([(WRITE, 0, 1, 10, NEVER)], NEW)
NOTHING = WRITTEN[:0]
MIXED = [OLD] * 4 + [NEW] * 4


@pytest.mark.parametrize(
    ("commands", "before", "now", "name"),
    [
        (WRITTEN, None, MIXED, "OK"),  # the write under way is there in part, which nobody promises it is not
        (NOTHING, MIXED, MIXED, "OK"),
        (NOTHING, MIXED, [*MIXED[:7], OLD], "STALE"),  # a later cut changes one sector of it
        (NOTHING, MIXED, [OLD] * 8, "STALE"),
        (NOTHING, None, MIXED, "GHOST"),
        (WRITTEN, [OLD] * 4 + [5] * 4, [OLD] * 4 + [NEW] * 2 + [5] * 2, "OK"),  # torn over a torn one
        (WRITTEN, [OLD] * 4 + [5] * 4, [OLD] * 4 + [NEW] * 2 + [OLD] * 2, "STALE"),
    ],
)
def test_each_sector_of_a_torn_block_is_known_to_later_cuts(commands, before, now, name):
    known, blocks = torn(now, before)
    session = Session(commands, 100, 200, 300, 400)
    ruling = verdict.judge(session, blocks, NBD)
    assert [NAMES[n] for n in ruling.finding] == [name]
    verdict.take(known, np.array([0]), blocks, ruling, 1)
    assert known.content[0] == blocks.seen[0]
    assert [part.tolist() for part in known.parts.values()] == ([now] if len(set(now)) > 1 else [])
    assert verdict.unjudged(NOTHING, blocks, NBD)[1].finding.any() == (before != now)
    one = proof(session, blocks, NBD, ruling, 0)["parts"]
    assert one is None or [seen for seen, _ in one] == now and {"OK", name} >= {of for _, of in one}


@pytest.mark.parametrize("promised", [None, "zeros"])
def test_a_trimmed_block_may_read_as_anything_but_must_be_read(promised):
    session = Session(rows([(TRIM, 0, 1, 10, 20)], NEW), 100, 200, 300, 400)
    held = NBD._replace(after_trim=promised)
    for seen, name in ((record.CORRUPT, "OK" if promised is None else "CORRUPT"), (record.UNREADABLE, "UNREADABLE")):
        blocks = Blocks(np.array([0]), np.array([OLD]), np.array([seen]), np.zeros(1, bool))
        assert [NAMES[n] for n in verdict.judge(session, blocks, held).finding] == [name]


@pytest.mark.parametrize(
    ("was", "seen", "name"),
    [
        (record.CORRUPT, record.UNREADABLE, "UNREADABLE"),
        (record.CORRUPT, record.CORRUPT, "OK"),
        (record.UNREADABLE, record.UNREADABLE, "OK"),
        (record.UNREADABLE, record.CORRUPT, "OK"),
    ],
)
@pytest.mark.parametrize("trimmed", [False, True])
def test_block_that_could_be_read_is_read_after_the_next_cut(was, seen, name, trimmed):
    """Whatever it held: an error is counted once, and another one is another."""
    at = np.array([0])
    known, before = verdict.known(1, OLD), Blocks(at, np.array([OLD]), np.array([was]), np.zeros(1, bool))
    session = Session(NOTHING, 100, 200, 300, 400)
    verdict.take(known, at, before, verdict.judge(session, before, NBD), 1)
    known.trimmed[:] = trimmed
    blocks = verdict.asked(known, at, Blocks(at, known.content, np.array([seen]), np.zeros(1, bool)))
    assert [NAMES[n] for n in verdict.judge(session, blocks, NBD).finding] == [name]


def test_a_torn_block_of_a_drive_that_keeps_blocks_whole_names_its_sectors():
    _, blocks = torn([OLD] + [NEW + 1] * 7)
    session = Session(rows([(WRITE, 0, 1, 10, 20, FUA), (WRITE, 0, 1, 30, 40)], NEW), 100, 200, 300, 400)
    for whole, name in ((0, "LOST_FUA"), (1, "TORN_LB")):
        held = NBD._replace(atomic_blocks=whole)
        ruling = verdict.judge(session, blocks, held)
        out = proof(session, blocks, held, ruling, 0)
        assert out["class"] == name and out["parts"] == [[OLD, "LOST_FUA"], *[[NEW + 1, "OK"]] * 7]
        assert "sector 0: the content of command 3, LOST_FUA" in " ".join(out["sentences"])
