"""firmware/switch.py by hand: a rail that trips. Its drive gets nothing through the side-band, its crowbar closes, and
both stay so over a reset of the board."""

import pytest
from switchbench import Board

OFF, PERST = 10, 18  # gate of rail 0; PERST_LOW, the next pin isolates the rest
SEALED = [("pin", PERST, 1), ("pin", PERST + 1, 1)]


def pins(board):
    return [what for what in board.taken() if what[0] == "pin"]


def state_of(did):
    """{gpio: what it was driven to last, None where it was let go}."""
    return {gpio: None if level == "in" else level for _, gpio, level in did}


def tripped(board):
    board.switch.trip(board.samplers[0], "A")
    return board.switch


def test_the_side_band_is_sealed_with_the_rail_and_the_crowbar_closes_after_the_dead_time():
    board = Board(sideband=PERST)
    before = board.time.us
    tripped(board)
    did = pins(board)
    assert did[:3] == [("pin", OFF, 1), *SEALED] and did[-1] == ("pin", OFF + 1, 1)
    assert board.time.us - before >= 50
    assert board.switch.describe()["tripped"] == [0] and board.switch.state == "tripped"


def test_without_a_side_band_only_the_rail_is_touched():
    board = Board()
    tripped(board)
    assert state_of(pins(board)) == {OFF: 1, OFF + 1: 1}


@pytest.mark.parametrize("at", ["fired", "off"])
def test_a_trip_in_a_cut_at_no_moment_lets_perst_go(at):
    board = Board(sideband=PERST)
    board.fire() if at == "fired" else board.off()
    board.taken()
    board.switch.trip(board.samplers[0], "V")
    did = [what for what in board.taken() if what[0] in ("pin", "stop")]
    stop = did.index(("stop", OFF, PERST, PERST + 1))
    assert did[:stop] == [("pin", OFF, 1), *SEALED]
    assert not [what for what in did if what[1:] in ((PERST, "in"), (PERST + 1, "in"), (OFF, "in"))]


def test_the_crowbar_of_a_rail_that_is_fed_lets_go():
    board = Board(sideband=PERST)
    switch = tripped(board)
    board.taken()
    for _ in range(200):
        board.pass_us(1100)
        board.sample(0, 4000)
        switch.turn()
    assert ("pin", OFF + 1, "in") in pins(board) and len(board.logged) == 1
    assert switch.state == "tripped" and switch.describe()["tripped"] == [0]


def test_the_crowbar_of_a_rail_that_falls_stays_closed():
    board = Board()
    switch = tripped(board)
    board.taken()
    for k in range(500):
        board.pass_us(1100)
        board.sample(0, max(5, 5000 - 1000 * k))
        switch.turn()
    assert pins(board) == [] and board.logged == []


def test_power_returns_with_perst_low_for_longer_than_pcie_asks():
    board = Board(sideband=PERST)
    switch = tripped(board)
    board.taken()
    switch.on({"rails": [0]})
    did = pins(board)
    assert did == [("pin", OFF + 1, "in"), ("pin", OFF, "in"), ("pin", PERST + 1, "in")]
    assert board.samplers[0].guard.armed and switch.describe()["tripped"] == []
    board.pass_us(119_000)
    switch.turn()
    assert pins(board) == [] and switch.state == "returning"
    board.pass_us(25_000)
    switch.turn()
    did = board.taken()
    assert ("pin", PERST, "in") in did and switch.state == "idle"
    (about,) = [what[1] for what in did if what[0] == "report"]
    assert about["ok"] and about["perst_us"] - about["on_us"] >= 100_000


def test_a_trip_survives_a_reset_and_ends_with_on():
    board = Board(sideband=PERST)
    tripped(board)
    assert board.scratch == 1
    again = Board(sideband=PERST, scratch=board.scratch)
    assert again.switch.state == "tripped" and again.switch.describe()["tripped"] == [0]
    again.switch.on({"rails": [0]})
    assert again.scratch == 0
    assert Board(sideband=PERST, scratch=again.scratch).switch.state == "idle"


def test_a_rail_that_is_not_there_is_not_remembered():
    assert Board(rails=(0,), scratch=0b10).switch.state == "idle"


def test_a_defect_leaves_what_has_tripped_off_and_opens_its_crowbar():
    board = Board(sideband=PERST)
    switch = tripped(board)
    board.taken()
    switch.release()
    assert state_of(pins(board)) == {OFF + 1: None} and switch.state == "tripped" and board.scratch == 1


@pytest.mark.parametrize("profile, mV, fed_mA", [("crowbar", 100, 45), ("crowbar", 0, 0), ("float", 100, None)])
def test_a_report_says_what_the_closed_crowbar_carries(profile, mV, fed_mA):
    board = Board()
    switch = board.fire(profile=profile)
    for _ in range(2):
        board.pass_us(600_000)
        board.sample(0, mV)
    switch.turn()
    (about,) = board.report()["rails"]
    assert about["fed_mA"] == fed_mA


def test_the_trip_of_another_rail_is_added():
    board = Board(sideband=PERST)
    tripped(board)
    board.switch.trip(board.samplers[1], "V")
    assert board.switch.describe()["tripped"] == [0, 1] and board.scratch == 0b11
