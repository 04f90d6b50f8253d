"""firmware/switch.py by hand: the lock-outs are tripped while every rail is off, and looked at."""

import pytest
from switchbench import WRAP, Board

from ssdrig.meter import wire

TRIPS, OFF, PERST = 0, 10, 18  # pin that trips the lock-outs; gate of rail 0, rail 1 has 12; PERST_LOW


def board_with(**of):
    board = Board(**of)
    board.switch.lock_outs = board.lock_outs.LockOuts(TRIPS, board.switch)
    return board


def ask(board, **more):
    board.switch.arm()
    board.taken()
    board.switch.lock_outs.test({"token": board.switch.token} | more)


def pins(board):
    return [what[1:] for what in board.taken() if what[0] == "pin"]


def empty(board, mV=(10, 10)):
    for _ in range(2):
        board.pass_us(20_000)
        for rail, of in enumerate(mV):
            board.sample(rail, of)
    board.switch.turn()


def finish(board, mV):
    """Samples of the test, and its end."""
    for of in mV:
        board.pass_us(5000)
        for rail, volts in enumerate(of):
            if volts is not None:
                board.sample(rail, volts)
        board.switch.turn()
    board.pass_us(20_000)
    board.switch.turn()


def test_the_reference_falls_after_the_rails_and_rises_before_them():
    board = board_with()
    ask(board)
    assert pins(board) == [(OFF, 1), (OFF + 2, 1)]
    board.switch.turn()
    assert pins(board) == []
    empty(board)
    assert pins(board) == [(TRIPS, 1), (OFF, "in"), (OFF + 2, "in")]
    finish(board, [(0, 0)])
    assert pins(board) == [(OFF, 1), (OFF + 2, 1), (TRIPS, "in"), (OFF, "in"), (OFF + 2, "in")]


def test_the_report_has_the_highest_reading_of_each_rail_in_the_test():
    board = board_with()
    ask(board)
    board.sample(0, 5000)  # falls
    empty(board)
    finish(board, [(3, 20), (7, 4900), (5, 4700)])
    assert board.switch.state == "returning" and board.switch.describe()["off"] == []
    board.taken()
    board.pass_us(150_000)
    board.switch.turn()
    report = board.report()
    assert report["ok"] and report["token"] == 0 and report["rails"] == []
    assert report["lock_outs"] == [{"rail": 0, "mV": 7}, {"rail": 1, "mV": 4900}]
    assert board.switch.state == "idle" and report["perst_us"] is None


@pytest.mark.parametrize(
    "seen, mV",
    [
        ([], [None, None]),
        ([(5, 6)] * 2, [None, None]),
        ([(5, 6)] * 3, [5, 6]),
        ([(5, 6), (None, 7), (5, 8)], [None, 8]),
    ],
)
def test_a_rail_with_too_few_readings_in_the_test_has_none(seen, mV):
    board = board_with()
    ask(board)
    empty(board)
    for k in range(9):  # on their way when the test began
        board.switch.sample(0, (board.time.us - k) % WRAP, bytes(12), 0)
    finish(board, seen)
    board.pass_us(150_000)
    board.switch.turn()
    assert [row["mV"] for row in board.report()["lock_outs"]] == mV


@pytest.mark.parametrize("conversion_us, least, test_us", [(100, 100, 20_000), (1102, 9, 20_000), (16_488, 3, 98_928)])
def test_readings_that_a_rail_needs_are_half_of_those_that_the_test_has_time_for(conversion_us, least, test_us):
    board = board_with()
    for w in board.switch.watches.values():
        w.conversion_us = conversion_us
    for readings in (least - 1, least):
        ask(board)
        empty(board)
        began = board.time.us
        for _ in range(readings):
            board.pass_us(1)
            board.sample(0, 5)
            board.sample(1, 5)
        board.pass_us(test_us - 1 - (board.time.us - began))
        board.switch.turn()
        assert board.switch.state == "testing"
        board.pass_us(1)
        board.switch.turn()
        assert [row["mV"] for row in board.switch.tested] == ([5, 5] if readings == least else [None, None])
        board.pass_us(150_000)
        board.switch.turn()


def test_perst_stays_low_until_power_is_stable():
    board = board_with(sideband=PERST)
    ask(board)
    assert pins(board)[:2] == [(PERST, 1), (PERST + 1, 1)]
    empty(board)
    finish(board, [(0, 0)])
    assert pins(board)[-1] == (PERST + 1, "in")
    board.pass_us(150_000)
    board.switch.turn()
    assert (PERST, "in") in pins(board)


def test_rails_that_do_not_fall_are_not_tested():
    board = board_with()
    ask(board)
    for _ in range(60):
        empty(board, (10, 900))
        board.pass_us(100_000)
    did = board.taken()
    assert ("pin", TRIPS, 1) not in did
    (report,) = [what[1] for what in did if what[0] == "report"]
    assert not report["ok"] and "rail 1" in report["why"] and "lock_outs" not in report


@pytest.mark.parametrize("end", ["stop", "release", "trip"])
@pytest.mark.parametrize("state", ["emptying", "testing"])
def test_nothing_leaves_the_reference_low_or_a_rail_off(state, end):
    board = board_with(sideband=PERST)
    ask(board)
    if state == "testing":
        empty(board)
    assert board.switch.state == state
    board.taken()
    switch = board.switch
    switch.trip(board.samplers[0], "V") if end == "trip" else switch.stop() if end == "stop" else switch.release()
    last = dict(pins(board))
    assert last[TRIPS] == "in" and last[OFF + 2] == "in"
    assert last[OFF] == (1 if end == "trip" else "in")
    assert last.get(PERST) == {"trip": 1, "stop": None, "release": "in"}[end]
    assert switch.state == {"trip": "tripped", "stop": "returning", "release": "idle"}[end]


@pytest.mark.parametrize("state", ["emptying", "testing"])
def test_a_rail_that_trips_in_the_test_has_no_power_at_any_moment_after(state):
    board = board_with(sideband=PERST)
    ask(board)
    if state == "testing":
        empty(board)
    board.taken()
    board.switch.trip(board.samplers[0], "V")
    did = [what for what in board.taken() if what[0] in ("pin", "report", "trip")]
    assert did[0] == ("pin", OFF, 1) and ("pin", OFF, "in") not in did
    assert did.index(("pin", TRIPS, "in")) < did.index(("pin", OFF + 2, "in"))
    assert [what[0] for what in did[-2:]] == ["report", "trip"] and not did[-2][1]["ok"]
    assert not [what for what in did if what[1:] in ((PERST, "in"), (PERST + 1, "in"))]


@pytest.mark.parametrize("state", ["emptying", "testing"])
def test_a_trip_of_a_rail_without_a_switch_ends_the_test_and_all_get_power(state):
    board = board_with(rails=(1,), sideband=PERST)
    ask(board)
    if state == "testing":
        empty(board)
    board.taken()
    board.switch.trip(board.samplers[0], "V")
    assert pins(board)[-2:] == [(OFF + 2, "in"), (PERST + 1, "in")] and board.switch.state == "returning"
    board.pass_us(150_000)
    board.switch.turn()
    report = board.report()
    assert not report["ok"] and "rail 0" in report["why"] and report["on_us"] and board.switch.state == "idle"


def test_a_trip_after_the_test_leaves_nothing_of_it_for_the_next_report():
    board = board_with()
    ask(board)
    board.switch.stop()
    board.switch.trip(board.samplers[0], "V")
    board.taken()
    board.switch.on({"rails": [0]})
    assert board.report()["ok"]


@pytest.mark.parametrize("how", [{}, {"rails": [0, 1], "unsafe": False}])
@pytest.mark.parametrize("state", ["emptying", "testing", "returning"])
def test_on_ends_the_test_and_is_answered_when_all_have_power(state, how):
    board = board_with(sideband=PERST)
    ask(board)
    if state != "emptying":
        empty(board)
    if state == "returning":
        board.switch.stop()
    assert board.switch.state == state
    board.switch.on(how)
    last = dict(pins(board))
    assert last[TRIPS] == last[OFF] == last[OFF + 2] == "in" and board.switch.describe()["off"] == []
    board.pass_us(150_000)
    board.switch.turn()
    report = board.report()
    assert report["ok"] and report["on_us"] and report["perst_us"] and "lock_outs" not in report
    assert board.switch.state == "idle"


def test_on_for_some_of_the_rails_is_refused_in_the_test():
    board = board_with()
    ask(board)
    with pytest.raises(board.Refused, match="together"):
        board.switch.on({"rails": [1]})
    assert board.switch.state == "emptying"


def test_the_watchdog_runs_while_the_reference_is_low():
    board = board_with()
    board.switch.arm()
    board.switch.lock_outs.test({"token": board.switch.token})
    empty(board)
    finish(board, [(0, 0)])
    did = [what[0] for what in board.taken()]
    assert did.index("watchdog") < did.index("watchdog off") and board.fed > 1


def test_what_is_refused():
    board = board_with()
    with pytest.raises(board.Refused, match="not armed"):
        board.switch.lock_outs.test({"token": 1})
    with pytest.raises(board.Refused, match="token alone"):
        ask(board, rails=[0])
    assert Board().switch.describe()["lock_outs"] is False and wire.LOCK_OUTS == ord("l")
    ask(board)
    with pytest.raises(board.Refused, match="emptying"):
        ask(board)
