"""firmware/switch.py by hand: from the edge of a cut until the rails are back."""

import pytest
from switchbench import Board, MHz, NOW_us


def low(board, us, mV=100, rails=(0,)):
    """The rails read mV us later."""
    board.pass_us(us)
    for rail in rails:
        board.sample(rail, mV)


def test_a_rail_is_off_once_it_was_low_for_long_enough():
    board = Board()
    switch = board.fire(residual_mV=200, residual_ms=100)
    low(board, 1000, 200)
    low(board, 1000, 199)
    low(board, 99_999, 199)
    switch.turn()
    assert switch.state == "fired"
    board.taken()
    low(board, 1)
    switch.turn()
    assert switch.state == "off" and switch.describe()["off"] == [0]
    report = board.report()
    assert (report["ok"], report["why"], report["on_us"], report["off_us"]) == (True, "", None, None)
    assert report["fired_us"] == NOW_us and report["rails"][0]["safe"] and len(report["rails"]) == 1


def test_power_returns_after_off_ms_and_not_before():
    board = Board()
    switch = board.fire(off_ms=2000)
    for _ in range(3):
        low(board, 600_000)
    switch.turn()
    board.pass_us(200_000 - 1)
    switch.turn()
    assert switch.state == "fired"
    board.taken()
    board.pass_us(1)
    switch.turn()
    assert switch.state == "rising"
    # the discharge switch lets go 50 us before the series switch closes
    assert board.taken() == [("step", 10, 1 | (50 * MHz - 4) << 2, 0)]
    assert switch.on_us == NOW_us + 2_000_050 and switch.describe()["off"] == []
    low(board, 1500, 4499)
    low(board, 600, 4500)
    switch.turn()
    assert switch.state == "idle"
    report = board.report()
    assert report["ok"] and report["off_us"] == 2_000_050 and report["on_us"] - report["fired_us"] == 2_000_050
    assert report["rails"][0]["residual_mV"] == 100


def test_nothing_moves_while_a_ramp_runs():
    board = Board()
    switch = board.fire(off_ms=1000)
    switch.pulse.more = True
    for _ in range(3):
        low(board, 600_000)
    switch.turn()
    assert switch.state == "fired"
    switch.pulse.more = False
    switch.turn()
    assert switch.state == "rising"


@pytest.mark.parametrize(
    ("how", "limit_us"),
    [
        ({}, 10_000_000),
        ({"off_ms": 3000}, 13_000_000),
        ({"profile": "ramp", "fall_us": 9000, "bulk_uF": [1000]}, 10_009_000),
        ({"profile": "ramp", "fall_us": 9000, "bulk_uF": [1000], "off_ms": 3000}, 13_000_000),
    ],
)
def test_a_rail_that_stays_high_keeps_the_power_off(how, limit_us):
    board = Board()
    switch = board.fire(rails=[0], **how)
    for _ in range(3):
        low(board, limit_us // 4, 1000)
    board.pass_us(NOW_us + limit_us - board.time.us)
    switch.turn()
    assert switch.state == "fired"
    board.taken()
    board.pass_us(1)
    switch.turn()
    assert switch.state == "off"
    report = board.report()
    assert not report["ok"] and report["why"] == "unsafe: rail 0 is at 1000 mV; power stays off"


def test_one_safe_rail_of_two_is_not_enough():
    board = Board()
    switch = board.fire(rails=[0, 1])
    for _ in range(3):
        low(board, 600_000)
        low(board, 0, 1000, rails=[1])
    switch.turn()
    assert switch.state == "fired"
    board.pass_us(10_000_000)
    switch.turn()
    assert "rail 1 is" in (why := board.report()["why"]) and "rail 0" not in why


@pytest.mark.parametrize(("us", "mV", "state"), [(2000, 5000, "rising"), (2001, 5000, "idle"), (2001, 4499, "rising")])
def test_a_rail_is_back_at_nine_tenths_after_two_milliseconds(us, mV, state):
    board = Board()
    switch = board.off(off_ms=1000)
    assert switch.state == "rising"
    board.taken()
    board.pass_us(50 + us)
    board.sample(0, mV)
    switch.turn()
    assert switch.state == state
    assert board.taken()[:2] == ([("stop",), ("watchdog off",)] if state == "idle" else [])


def test_a_rail_that_does_not_come_back_is_said():
    board = Board()
    switch = board.off(rails=[0, 1], off_ms=1000)
    low(board, 50 + 500_000, 5000)
    switch.turn()
    assert switch.state == "rising"
    board.taken()
    board.pass_us(1)
    switch.turn()
    assert switch.state == "idle"
    report = board.report()
    assert (report["ok"], report["why"]) == (False, "a rail did not return to 90 % of its earlier voltage")


def test_perst_is_released_late():
    board = Board(sideband=20)
    switch = board.off(off_ms=1000)
    board.taken()
    low(board, 3000, 5000)
    switch.turn()
    assert switch.state == "held" and board.taken() == [("step", 20, 1)]
    board.pass_us(119_999)
    switch.turn()
    assert switch.state == "held" and board.taken() == []
    board.pass_us(1)
    switch.turn()
    assert switch.state == "idle" and board.did[:3] == [("step", 20, 0), ("stop",), ("watchdog off",)]
    report = board.report()
    assert report["ok"] and report["perst_us"] == NOW_us + 1_200_000 + 3000 + 120_000


def test_a_glitch_comes_back_by_itself_and_leaves_the_side_band_alone():
    board = Board(sideband=20)
    switch = board.fire(profile="glitch", glitch_us=700)
    assert switch.state == "rising" and switch.on_us == NOW_us + 700
    assert ("gates", (10,), 22) in board.taken()
    board.pass_us(300)
    board.sample(0, 4000)
    board.pass_us(400 + 2000)
    board.sample(0, 5000)
    switch.turn()
    assert switch.state == "rising"
    board.pass_us(1)
    switch.turn()
    report = board.report()
    assert switch.state == "idle" and report["ok"] and report["off_us"] == 700 and report["perst_us"] is None
    assert report["rails"][0]["residual_mV"] == 4000


def test_power_for_rails_that_are_off():
    board = Board()
    switch = board.off(rails=[0, 1])
    assert switch.state == "off"
    for bad, words in (
        ([], "a JSON object"),
        ({"other": 1}, "a JSON object"),
        ({"rails": [0]}, "come back together"),
        ({"rails": [7]}, "rails must be"),
        ({"call_off": True}, "no cut is waiting"),
    ):
        with pytest.raises(board.Refused, match=words):
            switch.on(bad)
    assert switch.state == "off"
    board.taken()
    switch.on({"rails": [1, 0]})
    assert switch.state == "rising" and [what[1] for what in board.taken()] == [10, 12]
    with pytest.raises(board.Refused, match="nothing is off"):
        switch.on({})


@pytest.mark.parametrize(("unsafe", "goes"), [(True, True), (False, False), (1, False), (None, False)])
def test_power_before_the_rails_are_low_needs_a_word(unsafe, goes):
    board = Board()
    switch = board.fire()
    board.pass_us(100)
    board.sample(0, 3000)
    if goes:
        switch.on({"unsafe": unsafe})
        assert switch.state == "rising"
    else:
        with pytest.raises(board.Refused, match="rail 0 is at 3000 mV"):
            switch.on({"unsafe": unsafe})
        assert switch.state == "fired"


def test_no_power_during_a_ramp():
    board = Board()
    switch = board.fire()
    switch.pulse.more = True
    with pytest.raises(board.Refused, match="the ramp has not ended"):
        switch.on({"unsafe": True})


def test_what_has_not_fired_can_be_called_off():
    board = Board()
    for started in (False, True):
        switch = board.cut()
        if started:
            board.sample(0, 5000)
            switch.turn()
            assert switch.state == "started"
        board.taken()
        switch.on({"call_off": True})
        assert switch.state == "idle" and board.did[0] == ("stop",)
        assert ("watchdog off",) in board.did or not started
        assert board.report()["why"] == "called off"
    with pytest.raises(board.Refused):
        switch.on({"call_off": True})
    switch = board.cut()
    board.sample(0, 5000)
    switch.turn()
    switch.pulse.has_fired = True
    with pytest.raises(board.Refused):
        switch.on({"call_off": True})


def test_without_a_stream_nothing_is_known_of_the_rails():
    board = Board()
    switch = board.off(rails=[0, 1])
    assert all(w.safe for w in switch.cutting)
    board.taken()
    switch.stop()
    assert not any(w.safe for w in switch.cutting) and switch.state == "off" and board.taken() == []
    board = Board()
    switch = board.cut()
    board.taken()
    switch.stop()
    assert switch.state == "idle" and board.report()["why"] == "called off: the stream was stopped"


def test_a_defect_gives_the_power_back():
    board = Board()
    board.switch.release()
    assert board.taken() == []
    switch = board.fire()
    board.taken()
    switch.release()
    assert board.taken() == [("stop",), ("watchdog off",)] and switch.state == "idle" and switch.wdt is None


def test_a_sample_of_an_idle_switch_is_not_looked_at():
    board = Board()
    switch = board.fire()
    switch.release()
    switch.cutting[0].v = 1
    board.sample(0, 5000)
    assert switch.cutting[0].v == 1
    board = Board()
    switch = board.cut(rails=[0, 1])
    board.sample(1, 0x0E0D0C)
    assert [w.v for w in switch.cutting] == [0, 0x0E0D0C]
