"""The highest rates in the RP2 port of MicroPython on an emulated RP2040: what the interpreter itself costs is all
there."""

import emulated
import pytest

from ssdrig import wire

pytestmark = pytest.mark.slow
FAST = {"vbus_us": 84, "vshunt_us": 150, "temp_us": None}
SLOW = {"vbus_us": 150, "vshunt_us": 540, "temp_us": 280}


@pytest.mark.parametrize("conversions, rate", [([SLOW] * 3, 1025), ([FAST], 4250)], ids=["three rails", "fast rail"])
def test_nothing_is_lost(conversions, rate):
    """V and I of each conversion, of chips whose oscillators differ so that their edges meet in every way; but for the
    one conversion a second that the fast rail gives up for its accumulators."""
    if why := emulated.missing():
        pytest.skip(why)
    rails = range(len(conversions))
    with emulated.Emulated(
        [{"address": 0x40 + n, "alert": 6 + n, "fast_ppm": (0, 3000, -3000)[n]} for n in rails]
    ) as board:
        board.raw_repl()
        board.copy()
        board.run(f"import board\nboard.RAILS={tuple(emulated.rows(conversions))!r}\nimport rig")
        board.start("rig.run()")
        board.send(wire.GO)
        board.listen(lambda: (seen := emulated.samples(board)) and seen[-1][1] - seen[0][1] > 1_150_000)
        board.send(wire.STOP)
        board.send(wire.ASK_HELLO)
        board.listen(lambda: board.bodies(wire.HELLO))
        board.end()
    assert board.bodies(wire.LOG) == []
    for n in rails:
        seen = emulated.samples(board, n)
        given_up = sum(body[0] == n for body in board.bodies(wire.ENERGY)) - 1 if conversions[n] is FAST else 0
        assert emulated.missed(board, n) == given_up == seen[-1][0] + 1 - len(seen)
        assert (seen[-1][0] - seen[0][0]) / (seen[-1][1] - seen[0][1]) * 1e6 > rate
        assert all((vbus, current) == emulated.values(index) for index, _, vbus, current in seen)
