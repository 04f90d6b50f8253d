"""firmware/sampler.py by hand: samples that are moved many at once, accumulators, and what goes wrong."""

import types

import pytest
from samplerbench import EXTRA, SAMPLE, TORN, WRAP, BASE_us, Board, SensorError, energy_of, samples_of

from ssdrig.meter import wire

# ---- many at once


def test_how_many_may_be_moved_at_once():
    made = Board()
    s = made.started()
    lane = made.lane
    made.convert(200)
    assert lane.did == [  # none goes in with others, so one goes in by itself and is what they could go in with
        ("drain", wire.S_FIRST, BASE_us % WRAP, 299, wire.MAX_SAMPLES, False),
        ("drain", wire.S_FIRST + 8, (BASE_us + 200) % WRAP, 299, wire.MAX_SAMPLES - 1, False),
    ]
    for learn_at, energy_at, asked, most in ((31, 5000, False, 30), (5000, 21, False, 20), (5000, 21, True, 49)):
        s.learn_at, s.energy_at, s.asked = learn_at, energy_at, asked
        lane.did.clear()
        s._drain()
        assert lane.did[0][4] == min(most, wire.MAX_SAMPLES - 1)
    s.accumulates, s.asked, s.n = False, False, wire.MAX_SAMPLES - 4
    s._drain()
    assert lane.did[-1][4] == 4
    s.n = 0
    lane.did.clear()
    assert s._drain() is False and lane.did[0][4] == wire.MAX_SAMPLES


def test_samples_that_were_moved_are_counted():
    made = Board()
    s = made.started()
    made.convert(200)
    made.lane.moves = 5
    assert s._drain() is True and (s.n, s.next, s.at) == (6, 6, wire.S_FIRST + 48)
    assert s.last == (BASE_us + 1200) % WRAP and made.chip.flags == 77 and s._drain() is False
    made.lane.moves = 1000
    assert s._drain() is True and len(made.link.frames) == 1 and s.n == 0
    ((head, rows),) = map(samples_of, made.link.frames)
    assert head[2] == len(rows) == wire.MAX_SAMPLES and rows[1] == (200, 0, 0) and rows[5] == (200, 0x040404, 0x040404)


@pytest.mark.parametrize("alone", [False, True])
def test_a_frame_begins_and_goes_on_with_samples_that_go_in_together(alone):
    made = Board()
    s = made.started()
    made.lane.moves = 0 if alone else 3
    made.convert(200)
    assert s.n == (1 if alone else 3) and made.lane.moves == 0
    made.lane.moves = 2
    assert made.convert(1000) is True and s.n == (3 if alone else 5)
    # a slot that was looked at is one of those that moved
    assert (made.lane.taken, len(made.lane.slots)) == ((1, 1) if alone else (0, 2))


@pytest.mark.parametrize(("state", "most"), [("waiting", 8), ("idle", wire.MAX_SAMPLES)])
def test_a_switch_sees_eight_samples_at_once(state, most):
    made = Board()
    s = made.started()
    seen = []
    note = lambda rail, stamp, frame, at: seen.append((rail, (stamp - BASE_us) % WRAP, frame[at] + 256 * frame[at + 1]))
    s.watch = types.SimpleNamespace(state=state, sample=note)
    made.lane.moves = 4
    made.convert(200)
    assert made.lane.did[0][4] == most
    calls = [(3, 200, 0), *((3, 200 * k, 200) for k in range(2, 5))]
    assert seen == (calls if state == "waiting" else [])
    made.lane.slots.clear()  # they were moved
    made.lane.busy = 1
    assert s.turn() == (1 if state == "waiting" else False)


# ---- accumulators


def test_the_accumulators_are_asked_for_once_a_second():
    made = Board()
    s = made.started()
    s.energy_at = 2
    for k, asked in enumerate((False, False, True, True)):
        made.convert(200 * (k + 1))
        assert s.asked is asked and ("ask" in made.lane.did) is asked
    assert made.lane.did.count("ask") == 1
    words = (0x010203, 0x040506, 0x070809, 0x0A0B0C)  # charge 5, energy 5, temperature 2
    made.convert(800, kind=EXTRA, words=words)
    assert energy_of(made.link.frames[-1]) == (3, 0, 4, BASE_us + 800, 0x060708090A, 0x0102030405, 0x0B0C, 0x5602)
    assert not s.asked and s.energy_at == 4 + 5000 and s.missed[0] == 0


@pytest.mark.parametrize(
    ("energy_at", "stamp_us", "kind"), [(1, 200, EXTRA), (0, 199, EXTRA), (0, 200, EXTRA | TORN), (0, 300, TORN)]
)
def test_accumulators_that_belong_to_no_sample_are_dropped(energy_at, stamp_us, kind):
    made = Board()
    s = made.started()
    s.energy_at = 5
    made.convert(200)
    s.energy_at, s.asked = energy_at, True
    made.convert(stamp_us, kind=kind, words=(1, 2, 3, 4))
    assert made.link.frames == [] and not s.asked and s.next == 1 and made.lane.taken == 2


def test_accumulators_read_instead_of_a_sample_cost_it():
    made = Board(fits=False)
    s = made.started()
    s.energy_at = 0
    made.convert(200)
    assert "ask instead" in made.lane.did and "ask" not in made.lane.did
    made.convert(600, kind=EXTRA, words=(0x12AB01, 0x020304, 0x050607, 0x08090A))  # flags, -, charge 5, energy 5
    samples, energy = made.link.frames
    assert samples_of(samples)[0] == (3, 0, 1, 0, 0, BASE_us + 200)
    assert energy_of(energy) == (3, 0, 3, BASE_us + 600, 0x060708090A, 0x0102030405, 0x1234, 0x12AB)
    assert s.next == 3 and s.missed[0] == 2 and s.energy_at == 5003 and s.last == (BASE_us + 600) % WRAP


def test_bytes_of_what_a_script_has_read():
    byte = Board().module.byte
    assert [byte([9, 0x010203, 0x040506], 1, n) for n in range(6)] == [1, 2, 3, 4, 5, 6]


# ---- what goes wrong


@pytest.mark.parametrize(("us", "waits", "asks"), [(50_000, 0, False), (50_001, 0, True), (50_001, 1, False)])
def test_a_silent_chip_is_asked_after_50_ms(us, waits, asks):
    made = Board()
    s = made.started()
    s.heard = BASE_us % WRAP
    made.us = BASE_us + us
    made.lane.busy = waits
    if asks:
        with pytest.raises(SensorError, match="no conversion"):
            s.turn()
        assert made.chip.did == ["check"]
    else:
        assert s.turn() is False and made.chip.did == []


@pytest.mark.parametrize(
    ("us", "alert", "waits", "freed"), [(1400, 0, 0, 0), (1401, 0, 0, 1), (1401, 1, 0, 0), (1401, 0, 1, 0)]
)
def test_a_conversion_whose_edge_was_lost_is_let_go_and_counted(us, alert, waits, freed):
    """A millisecond behind two conversions of 200 us: ALERT is still low, and falls again only when its flags have been
    read. What was not stamped is missed; index and time of the next one are its own."""
    made = Board()
    s = made.started()
    made.convert(200)
    s.heard = BASE_us % WRAP
    made.us, made.alert, made.lane.busy = BASE_us + us, alert, waits
    made.lane.did.clear()
    assert s.turn() is False and made.chip.did == []
    assert made.lane.did == [("let go", made.chip.FLAGS, BASE_us % WRAP)] * freed
    made.convert(1600)
    assert (s.next, s.missed[0], s.last) == (8, 6, (BASE_us + 1600) % WRAP)
    assert samples_of(made.link.frames[0])[0][2:5] == (1, 0, 0)


def test_a_reading_that_waits_for_the_bus_is_something_to_do():
    made = Board()
    s = made.started()
    assert s.turn() is False
    made.lane.queued = True
    assert s.turn() is True


def test_a_conversion_that_arrives_just_before_the_question_answers_it():
    made = Board()
    s = made.started()
    made.us += 60_000
    answers = iter([0, SAMPLE])
    made.lane.take = lambda: next(answers)
    assert s.turn() is False and made.chip.did == []


def test_each_slot_is_a_sign_of_life():
    made = Board()
    s = made.started()
    made.convert(60_000, kind=TORN)
    assert s.heard == (BASE_us + 60_000) % WRAP and s.turn() is False


def test_flags_that_are_not_ours_are_asked_about():
    made = Board()
    s = made.started()
    made.chip.good = False
    with pytest.raises(SensorError):
        made.convert(200)
    assert made.chip.did == ["check"] and s.next == 0


def test_a_reading_without_a_conversion_is_dropped():
    """Nothing is counted or framed for it; the next conversion is, by the time that has passed."""
    made = Board()
    s = made.started()
    made.convert(200)
    made.chip.reads = 0x5600
    made.convert(270)
    assert (s.n, s.next, s.last) == (1, 1, (BASE_us + 200) % WRAP) and made.lane.taken == 2
    made.chip.reads = 0x5602
    made.convert(400)
    assert (s.n, s.next, s.missed[0]) == (2, 2, 0)
    assert made.lane.dropped == 1


def test_accumulators_read_without_a_conversion_are_asked_for_again():
    made = Board(fits=False)
    s = made.started()
    s.energy_at = 0
    made.convert(200)
    made.convert(290, kind=EXTRA, words=(0x12A901, 0x020304, 0x050607, 0x08090A))
    assert made.link.frames == [] and s.next == 1 and s.missed[0] == 0
    made.convert(400)
    assert made.lane.did.count("ask instead") == 2
    made.convert(600, kind=EXTRA, words=(0x12AB01, 0x020304, 0x050607, 0x08090A))
    assert energy_of(made.link.frames[-1])[2] == 3


def test_edges_without_conversions_alone_are_a_fault():
    """A chip that has stopped, on a line that something else pulls."""
    made = Board()
    s = made.started()
    made.convert(200)
    made.chip.reads = 0x5600
    for k in range(1, 251):
        made.convert(200 + 200 * k)
    with pytest.raises(SensorError, match="ALERT falls, but no conversion is complete"):
        made.convert(200 + 200 * 251)
    assert made.chip.did == ["check"] and s.next == 1


def test_the_first_zero_of_several_is_asked_about():
    made = Board()
    s = made.started()
    zeros = [(5, 5), (0, 5), (5, 0), (5, 5), (0, 0)]
    checks = []
    for k, (vbus, current) in enumerate(zeros):
        made.convert(200 * (k + 1), vbus, current)
        checks.append(len(made.chip.did))
    assert checks == [0, 1, 1, 1, 2] and s.zero is True and s.n == 5
