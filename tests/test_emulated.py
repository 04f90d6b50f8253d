"""The firmware on a Raspberry Pi Pico that is emulated instruction by instruction, in the RP2 port of MicroPython
itself: its compiler, its viper code, its machine.I2C, its interrupts and USB, the RP2040's registers. One session is
recorded; the tests look at what came of it."""

import json
import struct
from types import SimpleNamespace

import emulated
import pytest

from ssdrig import wire

pytestmark = pytest.mark.slow
CUT = """
from pulse import DISCHARGE, ON, OPEN, Pulse, word
p = Pulse([10], 22)
p.load("", None, 1000, [[word(OPEN, 6250), word(DISCHARGE, 12500), word(ON, 1000)]])
p.start()
time.sleep_ms(2)
print(p.fired(), p.after_start_ns())
p.stop()
"""


@pytest.fixture(scope="module")
def seen():
    if why := emulated.missing():
        pytest.skip(why)
    with emulated.Emulated(gpios=[10, 11, 22]) as board:
        board.raw_repl()
        about = board.run("import sys;print(sys.implementation._machine);print(sys.maxsize)").split("\n")
        board.copy()
        board.run(
            "import"
            " gc,machine,micropython,time,rig;r=rig.Rig();gc.collect();micropython.alloc_emergency_exception_buf(200)"
        )
        free = int(board.run("print(gc.mem_free())"))
        board.start(emulated.LOCKED % 1400)
        board.send(wire.ASK_HELLO)
        board.send(wire.GO)
        board.listen(lambda: sum(body[2] for body in board.bodies(wire.SAMPLES)) > 1500)
        board.send(wire.STOP)
        board.send(wire.ASK_HELLO)
        board.listen(lambda: len(board.bodies(wire.HELLO)) == 2)
        board.send(wire.QUIT)
        board.until(b"\x04\x04>")
        cut = board.run(CUT)
        report = board.end()
    return SimpleNamespace(about=about, free=free, board=board, samples=emulated.samples(board), cut=cut, report=report)


def test_it_is_the_port_and_its_integers(seen):
    assert seen.about[:2] == ["Raspberry Pi Pico with RP2040", str(2**31 - 1)]
    hello = json.loads(seen.board.bodies(wire.HELLO)[0])
    assert hello["board"] == seen.about[0] and hello["simulated"] is False
    assert seen.free > 100_000  # bytes of heap beside the firmware


def test_every_conversion_is_a_sample_with_its_own_values(seen):
    """With the heap locked: 1351 samples/s of V and I, none lost, and what is in a sample belongs to its index."""
    assert [seq for _, seq, _ in seen.board.frames] == list(range(len(seen.board.frames)))
    assert seen.board.bodies(wire.LOG) == []
    assert [index for index, *_ in seen.samples] == list(range(len(seen.samples))) and len(seen.samples) > 1500
    assert emulated.missed(seen.board) == 0 == seen.report["sensors"][0]["unread"]
    assert [(vbus, current) for _, _, vbus, current in seen.samples] == [emulated.values(n) for n, *_ in seen.samples]


def test_the_accumulators_are_those_of_their_index(seen):
    ends = [struct.unpack(wire.ENERGY_BODY, body) for body in seen.board.bodies(wire.ENERGY)]
    assert len(ends) >= 2 and ends[-1][2] > 1300
    for _, _, index, _, energy, charge, temp, flags in ends:
        # ina228.mjs
        assert int.from_bytes(charge, "little") == index and int.from_bytes(energy, "little") == 16 * index
        assert temp in (0, 3200) and flags & 0xC000 == 0xC000


def test_a_stamp_is_right_after_its_edge(seen):
    late = emulated.latencies_us(seen.samples, seen.report)
    assert len(late) > 1500
    assert 5 < late[0] and late[len(late) // 2] < 20 and late[-1] < 60


def test_a_cut_takes_the_cycles_that_it_says(seen):
    """The series switch opens, 50 us later the discharge switch closes, 100 us after that both let go; the start is
    said to 8 ns."""
    levels = [(cycle, gpio) for cycle, gpio, level in seen.report["changes"] if level == "High" and gpio in (10, 11)]
    (opened, _), (closed, _) = levels[-2:]
    assert [gpio for _, gpio in levels[-2:]] == [10, 11]
    lows = [cycle for cycle, gpio, level in seen.report["changes"] if gpio == 10 and level == "Low" and cycle > closed]
    assert (closed - opened, lows[0] - closed) == (6250, 12500)
    assert seen.cut.split() == ["True", str((1000 + 7) * 8)]
