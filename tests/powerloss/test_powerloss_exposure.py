"""powerloss/exposure.py: what a cut put at stake, against hand-made sessions and against the truth of a drive that
shares no code with the judge."""

import numpy as np
import pytest
from support.faulty_drive import Drive
from support.model_campaign import campaign

from selfcheck.powerloss_scenes import KEPT, rows
from ssdrig.plan.kinds import cut_mixes
from ssdrig.powerloss import exposure, verdict
from ssdrig.powerloss.history import FLUSH, FUA, NEVER, TRIM, WRITE
from ssdrig.powerloss.promise import ACK
from ssdrig.powerloss.verdict import Blocks, Session
from ssdrig.views.cuts import sentences as cuts_sentences

MIB = 1 << 20


def at_stake(commands, promise=KEPT, blocks=8):
    of = rows(commands)
    seen = np.zeros(blocks, np.int64)
    for row in of:
        if row["kind"] == WRITE:
            seen[int(row["lba"]) : int(row["lba"] + row["n"])] = row["seq"]
    blocks_ = Blocks(np.arange(blocks), np.zeros(blocks, np.int64), seen, np.zeros(blocks, bool))
    session = Session(of, 100, 200, 300, 400)
    return exposure.of(session, blocks_, promise, verdict.judge(session, blocks_, promise))


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        ([], (0, 0, 0, 8)),
        ([(WRITE, 0, 2, 1, 2)], (0, 0, 0, 6)),  # nothing had to survive
        ([(WRITE, 0, 2, 1, 2), (FLUSH, 0, 0, 3, 4)], (1, 0, 0, 6)),
        ([(WRITE, 0, 2, 1, 2), (FLUSH, 0, 0, 3, 4), (FLUSH, 0, 0, 5, 6)], (0, 0, 0, 6)),  # the second makes it good
        ([(WRITE, 0, 2, 1, 2), (FLUSH, 0, 0, 3, 4), (WRITE, 0, 2, 5, NEVER)], (0, 0, 1, 6)),  # it may be overwritten
        ([(WRITE, 0, 1, 1, 2), (WRITE, 1, 1, 1, 2), (FLUSH, 0, 0, 3, 4), (WRITE, 0, 1, 5, 6)], (1, 0, 0, 6)),
        ([(WRITE, 0, 1, 1, 2, FUA), (WRITE, 1, 1, 3, 4, FUA), (WRITE, 1, 1, 5, 6, FUA)], (0, 2, 0, 6)),
        ([(WRITE, 0, 1, 1, 2, FUA), (FLUSH, 0, 0, 3, 4)], (0, 0, 0, 7)),
        ([(TRIM, 0, 4, 1, 2), (FLUSH, 0, 0, 3, 4)], (0, 0, 0, 4)),
    ],
)
def test_what_a_cut_put_at_stake(commands, expected):
    assert at_stake(commands) == dict(zip(("flush", "fua", "open", "rest"), expected, strict=True))


def test_of_a_drive_without_a_volatile_cache_each_newest_write_counts():
    commands = [(WRITE, 0, 1, 1, 2), (WRITE, 0, 1, 3, 4), (WRITE, 2, 4, 5, 6), (WRITE, 3, 1, 7, NEVER)]
    assert at_stake(commands, KEPT._replace(mode=ACK)) == {"acked": 2, "open": 1, "rest": 3}


@pytest.mark.parametrize(
    ("begun", "lacks"),
    [
        ({"queues": 4, "precondition": 2}, ()),
        ({"queues": 1, "precondition": 2}, ("queues",)),
        ({"queues": 4, "precondition": 0}, ("precondition",)),
        ({"queues": 1, "precondition": None}, ("queues", "precondition")),
        ({}, ()),
        (None, ()),
    ],
)
def test_faults_that_the_set_up_cannot_show_are_named(begun, lacks):
    sentences = cuts_sentences.not_exposed({"begun": begun})
    assert [key for key in exposure.NEEDS if key in sentences] == [*lacks]


def test_rates_are_those_that_no_failing_cut_leaves_open():
    records = [{"exposed": {"flush": 1, "rest": 100}}] * 60 + [{}, {"exposed": None}, {"exposed": {"x": 1, "fua": "1"}}]
    of = exposure.total(records)
    assert {kind: rate["n"] for kind, rate in of.items()} == {"flush": 60, "rest": 6000}
    assert of["flush"]["rate"] == pytest.approx(1 - 0.05 ** (1 / 60))
    assert (
        "1 in 20 FLUSHes" in cuts_sentences.exposed({"exposed": of}) and cuts_sentences.exposed({"exposed": {}}) == ""
    )


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["fua_1in20", "lie_1in20"])
def test_what_is_at_stake_meets_the_fault_as_often_as_the_drive_says(tmp_path, fault):
    """Of a fault that hits one in twenty, one in twenty of what is at stake is hit, however often it is tried."""
    drive = Drive(64 * MIB, 5, fault)
    cut, hit = drive.cut, []

    def counted():
        last = {page: of[-1] for page, of in drive.pages.items()}
        lost = [command for command in drive.unkept if any(v.owed and last[page] is v for page, v in command.versions)]
        hit.append(
            sum(command.fua for command in lost) if fault == "fua_1in20" else any(not command.fua for command in lost)
        )
        cut()

    drive.cut = counted
    campaign_ = campaign(drive, tmp_path, 60, 5, 16 * MIB, 0, weights={cut_mixes.USUAL: 1}, aims={"random": 1})
    kind = "fua" if fault == "fua_1in20" else "flush"
    n = exposure.total(campaign_.sessions)[kind]["n"]
    assert abs(sum(hit) - n / 20) <= 4 * (n / 20) ** 0.5 and n >= 50
