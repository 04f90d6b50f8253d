"""powerloss/tally.py, boardclock.py: what a campaign keeps in memory does not grow with its cuts."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import stream

from ssdrig.base.errors import RigError
from ssdrig.meter import samples
from ssdrig.powerloss import health, tally
from ssdrig.powerloss.boardclock import PINGS, BoardClock
from ssdrig.runs import journal


def record(number, **more):
    made = {"cut": number, "judged": True, "failed": False, "suspicion": False, "control": None, "why_not": ""}
    made |= {"written_bytes": number, "ready_s": number / 10, "refused": 0, "acknowledged": 9, "fired_ns": 1} | more
    return {"interval": [number] * 3 if made["failed"] else None, "harness": ""} | made


def test_the_tally_counts_what_the_records_hold():
    chance, records = np.random.default_rng(1), []
    for number in range(1, 200):
        judged, failed = chance.random() < 0.9, chance.random() < 0.2
        how = {"judged": judged, "failed": failed, "suspicion": judged and not failed and number % 3 == 0}
        how |= {"control": "no-cut" if number % 20 == 0 else None, "why_not": "" if judged else f"why {number % 5}"}
        records.append(record(number, **how, ready_s=None if number % 4 == 0 else chance.random()))
        made = tally.Tally(records)
        cuts = [session for session in records if session["judged"] and not session["control"]]
        assert (made.cuts, made.suspicious) == (len(cuts), sum(session["suspicion"] for session in cuts))
        assert made.broken == sum(session["failed"] for session in records)
        assert made.failing.least == made.failing.most == sum(session["failed"] for session in cuts)
        assert health.usual_s(made.ready_s) == health.usual_s([session["ready_s"] for session in records])
        assert made.named == [session["cut"] for session in records if session["failed"]][: tally.NAMED]
        assert made.before(number + 1) is records[-1] and made.before(number) is None
    assert made.most_bytes == 199 and made.tried == 190 and made.reasons == ["why 0", "why 1", "why 2"]
    nothing = tally.Tally()
    assert nothing.before(1) is None and nothing.tried == nothing.most_bytes == nothing.cuts == 0


def test_a_session_takes_a_few_bytes_of_memory():
    made, sizes = tally.Tally(), []
    for number in range(1, 1001):
        made.add(record(number, failed=True, judged=number % 2 == 0, why_not=f"why {number}", words=["w"] * 100))
        sizes.append(len(pickle.dumps(made)))
    assert (sizes[999] - sizes[99]) / 900 < 16


def test_an_event_of_unknown_date_is_counted_once():
    damage = lambda *intervals: [
        record(n, failed=n in dict(intervals), interval=dict(intervals).get(n)) for n in range(1, 11)
    ]
    of = lambda *intervals: (lambda failing: (failing.least, failing.most))(tally.failing(damage(*intervals)))
    assert of((3, [3, 3, 3])) == (1, 1)
    assert of((3, [3, 3, 3]), (9, [4, 9, 2])) == (2, 8)  # 2 to 9
    assert of((3, [3, 3, 3]), (9, [3, 9, 3])) == (1, 7)  # the cut that is known explains both
    assert of((5, [1, 5, 1]), (9, [6, 9, 6])) == (2, 9)
    assert of((5, [1, 5, 1]), (9, [5, 9, 5])) == (1, 9)


def test_damage_that_a_session_which_is_no_judged_cut_may_have_done_is_no_cut_s_for_certain():
    brown = [record(1), record(2, judged=False, why_not="no reset"), record(3, failed=True, interval=[2, 3, 2])]
    failing = tally.failing(brown)
    assert (failing.least, failing.most) == (0, 1)
    idle = [record(1), record(2, control="no-cut", fired_ns=None), record(3, failed=True, interval=[2, 3, 2])]
    assert tally.failing(idle).least == 1


@pytest.mark.parametrize("seed", range(20))
def test_the_verdict_on_the_drive_outlives_every_other(seed):
    """Whatever the order of guilty, suspicious, harness and clean sessions: ten orders of each seed."""
    chance = np.random.default_rng(seed)
    kinds = {
        "guilty": {"failed": True},
        "harness": {"control": "no-cut", "judged": False, "fired_ns": None, "harness": "no power was cut, yet STALE"},
        "suspicious": {"suspicion": True},
        "unjudged": {"judged": False, "why_not": "no reset"},
        "unsure": {"findings": {"READY_UNSURE": 1}},
        "clean": {},
    }
    for _ in range(10):
        drawn = [str(name) for name in chance.choice(list(kinds), chance.integers(1, 12))]
        error = tally.Tally(record(n, **kinds[name]) for n, name in enumerate(drawn, 1)).outcome(Path("x"))
        code = error.exit_code if error else 0
        only_unjudged = not {"guilty", "suspicious", "clean", "unsure"} & set(drawn)
        ranks = {"guilty": 11, "harness": 13, "suspicious": 12, "unsure": 21}
        expected = next((ranks[name] for name in ranks if name in drawn), 13 if only_unjudged else 0)
        assert code == expected, drawn
        if "guilty" in drawn and "harness" in drawn:
            assert "STALE" in error.do


def test_cut_of_which_nobody_can_tell_counts_in_the_bound_alone():
    unsure = {"findings": {"READY_UNSURE": 1}}
    records = [record(1), record(2, **unsure), record(3, **unsure, judged=False, why_not="no reset"), record(4)]
    made = tally.Tally(records)
    assert (made.cuts, made.unsure, made.suspicious, made.broken) == (3, 1, 0, 0)
    for failing in (made.failing, tally.failing(records)):
        assert (failing.least, failing.most) == (0, 1)
    both = tally.Tally([record(1, **unsure, failed=True)])  # what is proven is said of it
    assert (both.unsure, both.failing.least, both.failing.most) == (0, 1, 1)


@pytest.mark.parametrize("late", [1, 2, 3])
def test_a_first_cut_that_was_slow_is_suspicious_once_the_usual_time_is_known(late):
    records = [record(n, ready_s=20.0 if n == late else 0.1, findings={}, words=[]) for n in range(1, 5)]
    assert [tally.Tally(records[:n]).suspicious for n in range(5)] == [0, 0, 0, 1, 1]
    assert tally.Tally(records).outcome(Path("x")).exit_code == 12
    sessions = tally.in_hindsight(records)
    assert [session["cut"] for session in sessions if session["suspicion"]] == [late] and sessions[late - 1][
        "findings"
    ]["SLOW_READY"]


@pytest.mark.parametrize(
    "how",
    [
        {"judged": False},  # nothing is said of it
        {"stalled_s": 19.5},  # this host was slow
        {"control": "announced"},
        {"suspicion": True},  # counted once
        {"failed": True},
    ],
)
def test_a_slow_first_cut_is_counted_once_and_only_where_it_is_judged(how):
    first = record(1, ready_s=20.0, findings={"SLOW_READY": 1} if "suspicion" in how else {}, words=[], **how)
    made = tally.Tally([first, *(record(n, ready_s=0.1) for n in (2, 3, 4))])
    assert made.suspicious == ("suspicion" in how)


@pytest.mark.slow
def test_the_clock_of_a_long_run_is_that_of_its_latest_minutes_and_takes_no_more_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "PIECE_BYTES", 4000)
    tape, sizes = stream.started(), []
    book = journal.create(tmp_path, {"run": "r"})
    asked = BoardClock(book.path)
    index = 0
    for _ in range(60):
        index = tape.stream(60, index, 5)
        tape.frame(stream.wire.ENERGY, stream.energy(index, tape.t_us, 1.0))
        book.record_all(tape.rows)
        tape.rows.clear()
        clock = asked.now()
        sizes.append(len(pickle.dumps(asked._decoder)))
    assert tape.token > 5 * PINGS and sizes[-1] < 1.05 * sizes[12]
    at_once = BoardClock(book.path).now()
    at_us = np.array([tape.t_us - 1000, tape.t_us])
    assert clock.t_ns(at_us).tolist() == at_once.t_ns(at_us).tolist()
    assert np.abs(clock.t_ns(at_us) - [tape.host_ns(t_us) for t_us in at_us]).max() <= clock.bound_ns(at_us).max()
    book.close("complete")


def test_a_board_that_has_answered_no_ping_has_no_clock(tmp_path):
    with pytest.raises(RigError, match="answers pings"):
        BoardClock(stream.started().run(tmp_path)).now()
