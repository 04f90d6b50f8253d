"""The guard of the discharge resistors (firmware/crowbar.py, switch.py), its very source on CPython: what energy it
sees, when it lets go, and what is said of it."""

import math

import pytest
from switchbench import Board

from ssdrig.meter import wire

STEP_us = 740  # between two readings
OHM = 2.2  # of switchbench's rails


def fall(board, volts, until_us, step_us=STEP_us):
    """Readings of rail 0 from the edge on, volts(us since the edge); the time of the release in us, or None."""
    board.taken()
    while (since := board.time.us - board.fired_at) < until_us:
        board.pass_us(step_us)
        board.sample(0, round(1000 * volts(since + step_us)))
        board.switch.turn()
        if ("let go", 10) in board.taken():
            return board.time.us - board.fired_at
    return None


def of(board):
    return board.switch.cutting[0].report(False)


@pytest.mark.parametrize("mV, farads", [(5000, 470e-6), (5000, 4700e-6), (12_000, 1000e-6)])
def test_a_rail_that_falls_is_left_alone_and_its_energy_is_half_c_v_squared(mV, farads):
    board = Board()
    board.fire(mV, profile="crowbar")
    assert fall(board, lambda us: mV / 1000 * math.exp(-us * 1e-6 / (OHM * farads)), 300_000) is None
    assert of(board)["released"] is None
    assert of(board)["crowbar_mJ"] == pytest.approx(0.5 * farads * (mV / 1000) ** 2 * 1000, rel=0.1, abs=1)


@pytest.mark.parametrize("mV, mOhm", [(3300, 2200), (5000, 2200), (12_000, 10_000)])
def test_a_rail_that_does_not_fall_is_released_at_half_a_joule_or_when_it_should_have_fallen(mV, mOhm):
    """The series switch is short. 10 R x 1000 uF are 22 and 100 ms; 0.5 J come after 35 ms at 12 V and 10 Ohm."""
    board = Board(mOhm=mOhm)
    board.fire(mV, profile="crowbar")
    at_us = fall(board, lambda us: mV / 1000, 10**6)
    watts = (mV / 1000) ** 2 / (mOhm / 1000)
    assert at_us <= 2 * STEP_us + min(0.5 / watts * 1e6, 10 * mOhm)
    report = of(board)
    assert report["crowbar_mJ"] == pytest.approx(watts * at_us / 1000, rel=0.05) and report["crowbar_mJ"] <= 520
    assert ("500 mJ" if mV == 12_000 else "did not fall") in report["released"]


def test_a_residual_that_is_held_up_is_released_by_its_energy():
    """2.8 V from the side-band burn 3.6 W; below a quarter of a watt the resistor may stay for ever."""
    board = Board()
    board.fire(10_000, profile="crowbar")
    assert fall(board, lambda us: 2.8 if us > 1000 else 10, 10**6) == pytest.approx(140_000, rel=0.1)
    board = Board()
    board.fire(5000, profile="crowbar", residual_mV=800)
    assert fall(board, lambda us: 0.7 if us > 5000 else 5 * math.exp(-us / 1000), 20_000_000, 20_000) is None


def test_a_ramp_counts_its_pulses_only():
    """A rail that falls evenly for 300 ms, R C 2.2 ms: the resistor has half C V^2, not a twentieth of a second of
    3.8 W; one that does not fall is let go before the pulses have made more than half a joule."""
    line = lambda us: max(5 * (1 - us / 300_000), 0.03)
    board = Board(LEAST_us=10)
    board.fire(5000, profile="ramp", fall_us=300_000, bulk_uF=[1000])
    assert fall(board, line, 600_000) is None
    assert of(board)["crowbar_mJ"] == pytest.approx(12.5, rel=0.3)
    board = Board(LEAST_us=10)
    board.fire(5000, profile="ramp", fall_us=300_000, bulk_uF=[1000])
    at_us = fall(board, lambda us: 5, 10**6)
    assert 290_000 < at_us < 330_000 and of(board)["crowbar_mJ"] < 520


@pytest.mark.parametrize("mV, goes", [(4000, True), (300, False)])
def test_without_readings_a_rail_that_was_high_is_released(mV, goes):
    """The sensor is lost, or the stream stops. A rail that was low stays discharged: that keeps it low."""
    board = Board()
    switch = board.fire(5000, profile="crowbar")
    board.pass_us(1000)
    board.sample(0, mV)
    switch.stop()
    board.pass_us(100_000)
    switch.turn()
    assert ("let go", 10) not in board.taken()
    board.pass_us(1)
    switch.turn()
    assert (("let go", 10) in board.taken()) == goes
    assert (of(board)["released"] is not None) == goes


def test_giving_up_releases_and_says_so():
    board = Board()
    switch = board.fire(5000, profile="crowbar")
    for _ in range(200):
        board.pass_us(50_001)
        board.sample(0, 500)
    switch.turn()
    assert switch.state == "off"
    did = board.taken()
    assert ("let go", 10) in did
    report = next(what[1] for what in did if what[0] == "report")
    assert not report["ok"] and "gave up" in report["rails"][0]["released"]


def test_it_is_said_at_once_and_in_the_answer_and_forgotten_at_the_next_cut():
    board = Board()
    switch = board.fire(5000, profile="crowbar", off_ms=500, residual_ms=100)
    assert fall(board, lambda us: 5, 10**6) < 25_000
    fall(board, lambda us: 0.1, 700_000)  # it falls all the same, late
    assert switch.state == "rising"
    assert [w for w in board.logged if "rail 0: the crowbar let go" in w] and len(board.logged) == 1
    board.pass_us(3000)
    board.sample(0, 5000)
    switch.turn()
    (entry,) = board.report()["rails"]
    assert "did not fall" in entry["released"] and entry["crowbar_mJ"] > 200
    board.fire(5000, profile="float")
    assert (of(board)["released"], of(board)["crowbar_mJ"]) == (None, None)
    assert fall(board, lambda us: 5, 200_000) is None


def test_a_float_has_no_resistor_to_guard_and_power_that_is_back_neither():
    board = Board()
    board.fire(5000)
    assert fall(board, lambda us: 5, 200_000) is None
    board = Board()
    switch = board.fire(5000, profile="crowbar", off_ms=500, residual_ms=100)
    fall(board, lambda us: 0.1, 500_000)
    assert switch.state == "rising" and fall(board, lambda us: 4.4, 900_000) is None
    assert of(board)["crowbar_mJ"] < 10  # of the first reading after the edge


def test_no_number_of_it_is_a_heap_object():
    """Small integers of a 32-bit board have 31 bits: the largest reading, at the largest distance, from the first to
    the last of ten minutes."""
    seen = []

    class Small(int):
        def _made(self, value):
            seen.append(value)
            return Small(value)

    for name in ("add", "sub", "mul", "floordiv", "rshift", "lshift", "neg", "radd", "rsub", "rmul", "rfloordiv"):
        own = getattr(int, f"__{name}__")
        setattr(Small, f"__{name}__", lambda self, *other, own=own: self._made(own(self, *other)))
    for lsb2 in (390_625, 2_500_000, 2_000_000):
        guard = Board().module_of["crowbar"].Resistor(10_000, lsb2, lambda a, b: Small(a - b))
        guard.begin(True, 0, 0)
        guard.edge(0, Small((1 << 20) - 1))
        for stamp in (700, 1 << 28, 1 << 29, (1 << 29) + 740):
            guard.sample(Small(stamp), Small(stamp), Small((1 << 20) - 1))
    assert len(seen) > 50 and max(map(abs, seen)) < 1 << 30


def test_the_wire_says_it():
    assert "crowbar_mJ" in wire.__doc__ and "released" in wire.__doc__
