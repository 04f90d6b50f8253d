"""firmware/switch.py by hand: tokens, triggers, and what is told of a cut that has fired."""

import types

import pytest
from switchbench import WRAP, Board, Link, MHz, NOW_us

from ssdrig.meter import wire


def test_a_board_and_its_rows():
    """A switch without a sensor is left alone: nothing would be known of its rail."""
    board = Board(rails=(0, 1, 2), measured=(1, 0))
    assert board.switch.describe() == {
        "rails": [
            {"rail": r, "profiles": ["float", "crowbar", "ramp", "glitch", "dips"], "discharge_mOhm": 2200}
            for r in (0, 1)
        ],
        "sideband": False,
        "lock_outs": False,
        "resolution_ns": 8,
        "dead_us": 50,
        "state": "idle",
        "off": [],
        "tripped": [],
    }
    assert all(s.watch is board.switch for s in board.samplers)
    bare = Board(rails=())
    assert bare.switch.describe() is None
    with pytest.raises(bare.Refused, match="no switch"):
        bare.switch.arm()
    assert bare.taken() == []


@pytest.mark.parametrize(("sideband", "gates"), [(None, (10, 12)), (20, (10, 12, 20))])
def test_at_first_all_gates_are_let_go(sideband, gates):
    board = Board(sideband=sideband)
    made = board.module.Switch(
        list(board.switch.rows.values()), sideband, 22, board.samplers, Link(board.did, board.logged), board.clock
    )
    assert board.taken() == [("gates", gates, 22), ("stop",)]
    assert made.describe()["sideband"] == bool(sideband)
    assert (made.state, made.armed, made.token, made.wdt, made.pulse, made.scope) == (
        "idle",
        False,
        0,
        None,
        None,
        None,
    )


def test_a_token_says_itself_and_how_long_it_holds():
    board = Board()
    board.switch.arm()
    ((_, frame),) = board.taken()
    assert frame[:5] == bytes([wire.ARMED, 0, 0, 0, 0]) and len(frame) == wire.A_END
    assert int.from_bytes(frame[wire.A_TOKEN : wire.A_TOKEN + 4], "little") == board.switch.token < 1 << 32
    assert int.from_bytes(frame[wire.A_VALID : wire.A_VALID + 4], "little") == 10_000


@pytest.mark.parametrize(("after_us", "holds"), [(10_000_000, True), (10_000_001, False)])
def test_a_token_holds_for_ten_seconds(after_us, holds):
    board = Board()
    board.switch.arm()
    board.pass_us(after_us)
    board.switch.turn()
    assert board.switch.armed == holds


def test_a_token_is_good_once_and_by_itself():
    board = Board()
    how = {"rails": [0], "profile": "float", "when": {"now": True}}
    for bad in ([], {**how, "token": 0}, how):
        with pytest.raises(board.Refused):
            board.switch.cut(bad)
        board.switch.arm()
        with pytest.raises(board.Refused):
            board.switch.cut({**how, "token": board.switch.token + 1} if bad else [])
        assert not board.switch.armed and board.switch.state == "idle"
    switch = board.cut()
    assert not switch.armed
    switch.arm()
    with pytest.raises(board.Refused, match="a cut is waiting"):
        switch.cut({**how, "token": switch.token})


def test_a_cut_is_loaded_and_waits_for_a_reading_of_each_rail():
    """No reading, no height to tell the fall from."""
    board = Board(sideband=20)
    switch = board.cut(rails=[1, 0], profile="crowbar")
    steps = [(1 | 6246 << 2, 3)] * 2 + [(3,)]  # 50 us of 125 cycles; the first 4 are not counted
    assert board.taken() == [("gates", (12, 10, 20), 22), ("load", "", 0, 0, steps)]
    assert switch.describe()["state"] == "waiting" and switch.describe()["off"] == []
    board.sample(0, 5000)
    switch.turn()
    assert switch.state == "waiting" and board.taken() == []
    board.sample(1, 3300)
    switch.turn()
    assert switch.state == "started" and board.taken() == [("watchdog", 8000), ("start", -1)]
    assert board.fed == 0
    switch.turn()
    assert board.fed == 1 and switch.state == "started"


@pytest.mark.parametrize(
    ("when", "patience_us", "why"),
    [
        ({"now": True}, 1000, "the pulse did not start"),
        ({"edge": "rising", "gpio": 3, "timeout_ms": 6}, 6000 + 1000, "no edge came"),
    ],
)
def test_how_long_a_trigger_is_waited_for(when, patience_us, why):
    """One turn of an edge's program is three cycles."""
    board = Board()
    switch = board.cut(when=when)
    turns = 6 * MHz * 1000 // 3
    assert board.taken()[1] == (("load", "rising", 3, turns, [(1,)]) if "edge" in when else ("load", "", 0, 0, [(1,)]))
    board.sample(0, 5000)
    switch.turn()
    board.pass_us(patience_us)
    switch.turn()
    assert switch.state == "started"
    board.taken()
    board.pass_us(1)
    switch.turn()
    assert board.did[:2] == [("stop",), ("watchdog off",)] and switch.wdt is None
    assert board.report() == {
        "token": switch.token,
        **dict.fromkeys(("fired_us", "off_us", "on_us", "perst_us")),
        "ok": False,
        "why": why,
        "rails": [],
    }
    assert switch.state == "idle"


@pytest.mark.parametrize(("raws", "goes"), [([8, 9, 10], True), ([8, 9, 7, 8, 9], False), ([8, -9, 8, 8, 8], True)])
def test_samples_in_a_row_above_a_threshold(raws, goes):
    board = Board()
    switch = board.cut(when={"samples": 3, "above_raw": 7, "rail": 1})
    for raw in raws[:-1]:
        board.sample(1, 5000, raw)
        board.sample(0, 5000, 100)  # another rail's do not count
        switch.turn()
        assert switch.state == "waiting"
    board.sample(1, 5000, raws[-1])
    assert switch.state == ("started" if goes else "waiting")


@pytest.mark.parametrize(("raws", "goes"), [([6, 5, 6], True), ([6, 7, 6, 6], False), ([-9, 6, 6], True)])
def test_samples_in_a_row_below_a_threshold_and_a_delay_behind_them(raws, goes):
    """The delay is counted by the PIO, which is loaded before: what starts it allocates nothing."""
    board = Board()
    after = {"after_us": [900, 900], "seed": 4}
    switch = board.cut(when={"samples": 3, "below_raw": 7, "rail": 0, **after})
    assert board.taken()[1] == ("load", "", 0, 900 * MHz - 7, [(1,)])
    for raw in raws:
        board.sample(0, 5000, raw)
    assert switch.state == ("started" if goes else "waiting")
    if goes:
        board.pass_us(1900)
        switch.turn()
        assert switch.state == "started"
        board.pass_us(1)
        switch.turn()
        assert switch.state == "idle"


@pytest.mark.parametrize(
    ("raws", "goes"), [([8, 9, 10], False), ([8, 9, 7, 8, 9], False), ([8, 7, 8, 9, 8], True), ([7, 8, 9, 8], True)]
)
def test_only_the_beginning_of_a_burst_counts_where_a_threshold_must_be_crossed(raws, goes):
    """Armed in the midst of one, it fired at once."""
    board = Board()
    switch = board.cut(when={"samples": 3, "above_raw": 7, "rail": 1, "after_us": [9, 9], "seed": 4, "crosses": True})
    for raw in raws:
        assert switch.state == "waiting"
        board.sample(1, 5000, raw)
    assert switch.state == ("started" if goes else "waiting")


@pytest.mark.parametrize(
    ("raws", "goes"), [([7, 8, 8], False), ([7, 8, 8, 8], True), ([8, 8, 7, 8, 8, 7, 8, 8], True), ([8, 7] * 9, False)]
)
def test_a_cut_within_a_burst_comes_while_the_current_still_has_it(raws, goes):
    """A drawn time after the second sample of a burst lay behind the end of each that was shorter."""
    board = Board()
    level = {"samples": 2, "above_raw": 7, "rail": 1, "nth": 2, "crosses": True}
    switch = board.cut(when={**level, "after_us": [9, 9], "seed": 4})
    for raw in raws:
        assert switch.state == "waiting"
        board.sample(1, 5000, raw)
    assert switch.state == ("started" if goes else "waiting")


def test_a_current_has_three_bytes():
    board = Board()
    switch = board.cut(when={"samples": 1, "above_raw": 0x12345, "rail": 0})
    for raw, state in ((0x12345, "waiting"), (0x02346, "waiting"), (0x12346, "started")):
        board.sample(0, 5000, raw)
        assert switch.state == state


def test_a_current_is_signed():
    board = Board()
    switch = board.cut(when={"samples": 1, "above_raw": -3, "rail": 0})
    for raw, state in ((-(1 << 23), "waiting"), (-3, "waiting"), (-2, "started")):
        board.sample(0, 5000, raw)
        assert switch.state == state


@pytest.mark.parametrize("late", [0, 1, 2, 3])
def test_a_cut_at_a_time_is_given_to_the_hardware_half_a_second_before(late):
    """Each further attempt leaves twice the time for loading."""
    board = Board()
    switch = board.cut(when={"t_us": NOW_us + 900_000})
    switch.pulse.late = late
    assert [what[0] for what in board.taken()] == ["gates"]
    board.pass_us(400_000)
    switch.turn()
    assert board.taken() == [] and switch.state == "waiting"
    board.pass_us(1)
    board.time.step_us = 1
    switch.turn()
    assert switch.state == "started"
    *loads, start = [what for what in board.taken() if what[0] in ("load", "start")]
    assert len(loads) == late + 1
    ahead_us = NOW_us + 900_000 - start[1]
    assert loads[-1] == ("load", "", 0, ahead_us * MHz - 7, [(1,)]) and switch.started == start[1]
    assert switch.patience_us == ahead_us + 1000 and 0 <= start[1] - board.time.us <= 100
    # the first begins 400 us behind the third reading of the clock, the next 800 us
    assert ahead_us == pytest.approx(499_999 - sum(400 << k for k in range(late + 1)), abs=110 * (late + 1))


@pytest.mark.parametrize(("left_us", "made"), [(452, True), (451, False)])
def test_a_cut_needs_50_us_behind_what_loading_takes(left_us, made):
    """Two readings of the clock, 1 us each, and 400 us for loading."""
    board = Board()
    switch = board.cut(when={"t_us": NOW_us + 900_000})
    board.pass_us(900_000 - left_us)
    board.time.step_us = 1
    switch.turn()
    assert switch.state == ("started" if made else "idle")
    if not made:
        assert "too busy" in board.report()["why"]


def test_four_attempts_are_made():
    board = Board()
    switch = board.cut(when={"t_us": NOW_us + 900_000})
    switch.pulse.late = 4
    board.pass_us(400_001)
    board.time.step_us = 1
    switch.turn()
    did = board.taken()
    assert switch.state == "idle" and [w[0] for w in did].count("load") == 4 and did[-1][1]["ok"] is False


def test_a_cut_that_fired_knows_its_time_and_tells_the_scope():
    board = Board()
    events = []
    board.switch.scope = types.SimpleNamespace(event=events.append)
    switch = board.cut(rails=[0, 1])
    board.sample(0, 5000)
    board.sample(1, 3300)
    switch.turn()
    board.pass_us(70)
    switch.pulse.has_fired, switch.pulse.after_ns = True, 12_999
    switch.turn()
    assert switch.state == "fired" and events == [NOW_us + 12] and switch.fired_us == NOW_us + 12
    assert [(w.fired, w.tick, w.v90, w.v10) for w in switch.cutting] == [
        (True, NOW_us + 12, 4500, 500),
        (True, NOW_us + 12, 2970, 330),
    ]
    assert switch.describe()["off"] == [0, 1]


def test_times_across_a_wrap_of_the_ticks():
    board = Board()
    board.pass_us(3_000_000 - 5)
    switch = board.cut()
    board.sample(0, 5000)
    switch.turn()
    board.time.us += 100
    switch.pulse.has_fired, switch.pulse.after_ns = True, 20_000
    switch.turn()
    assert switch.fired_us == WRAP + 15
    board.time.us += 10
    assert switch._at(WRAP - 1) == WRAP - 1
    board.pass_us(1_000_000)
    board.time.us += 600_000_000  # more than half a wrap without an update
    assert switch._at(board.time.us % WRAP) == board.time.us
