"""powerloss/tally.py, boardclock.py: what a campaign keeps in memory does not grow with its cuts."""

import pickle

import numpy as np
import pytest
import stream

from ssdrig import journal
from ssdrig.errors import RigError
from ssdrig.meter import samples
from ssdrig.powerloss import health, judging, tally
from ssdrig.powerloss.boardclock import PINGS, BoardClock


def record(number, **more):
    said = {"cut": number, "judged": True, "failed": False, "suspicion": False, "control": None, "why_not": ""}
    return said | {"written_bytes": number, "ready_s": number / 10, "refused": 0, "acknowledged": 9} | more


def test_it_says_of_the_sessions_what_all_of_their_records_say():
    chance, records = np.random.default_rng(1), []
    for number in range(1, 200):
        judged, failed = chance.random() < 0.9, chance.random() < 0.2
        how = {"judged": judged, "failed": judged and failed, "suspicion": judged and not failed and number % 3 == 0}
        how |= {"control": "no-cut" if number % 20 == 0 else None, "why_not": "" if judged else f"why {number % 5}"}
        records.append(record(number, **how, ready_s=None if number % 4 == 0 else chance.random()))
        told = tally.Tally(records)
        assert (told.cuts, told.failed, told.suspicious) == judging.counted(records)
        assert health.usual_s(told.ready_s) == health.usual_s([each["ready_s"] for each in records])
        assert told.named == [each["cut"] for each in records if each["failed"]][: tally.NAMED]
        assert told.before(number + 1) is records[-1] and told.before(number) is None
    assert told.most_bytes == 199 and told.tried == 190 and told.reasons == ["why 0", "why 1", "why 2"]
    nothing = tally.Tally()
    assert nothing.before(1) is None and nothing.tried == nothing.most_bytes == nothing.cuts == 0


def test_a_thousand_sessions_take_no_more_memory_than_a_hundred():
    made, sizes = tally.Tally(), []
    for number in range(1, 1001):
        made.add(record(number, failed=True, judged=number % 2 == 0, why_not=f"why {number}", words=["w"] * 100))
        sizes.append(len(pickle.dumps(made)))
    assert sizes[999] < 1.05 * sizes[99]


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
        found = asked.now()
        sizes.append(len(pickle.dumps(asked._decoder)))
    assert tape.token > 5 * PINGS and sizes[-1] < 1.05 * sizes[12]
    at_once = BoardClock(book.path).now()
    at_us = np.array([tape.t_us - 1000, tape.t_us])
    assert found.t_ns(at_us).tolist() == at_once.t_ns(at_us).tolist()
    assert np.abs(found.t_ns(at_us) - [tape.host_ns(t_us) for t_us in at_us]).max() <= found.bound_ns(at_us).max()
    book.close("complete")


def test_a_board_that_has_answered_no_ping_has_no_clock(tmp_path):
    with pytest.raises(RigError, match="answers pings"):
        BoardClock(stream.started().run(tmp_path)).now()
