"""An INA229 at 10 000 samples/s in the real RP2 port of MicroPython on an emulated RP2040: what the SIMULATED board
assumes of costs, is here the interpreter's own."""

import bisect

import emulated
import pytest

from ssdrig import wire

pytestmark = pytest.mark.slow
RAIL = {
    "rail": 0,
    "name": "fast",
    "chip": "INA229",
    "bus": "SPI0",
    "cs": 1,
    "alert": 6,
    "shunt_uOhm": 8000,
    "shunt_tolerance_ppm": 10_000,
    "current_lsb_pA": 9_765_625,
    "fine": True,
    "vbus_us": 50,
    "vshunt_us": 50,
    "temp_us": None,
}
MADE = (
    "import board;board.RAILS=(%r,);import"
    " gc,machine,micropython,rig;r=rig.Rig();gc.collect();micropython.alloc_emergency_exception_buf(200)"
)


@pytest.mark.parametrize("fast_ppm", [5000])
def test_ten_thousand_a_second_without_loss(fast_ppm):
    """More than a second with the heap locked, the accumulators read on the way: every conversion, each with its own
    values, and CURRENT taken before the next shunt conversion replaces it, 50 us after the edge."""
    if why := emulated.missing():
        pytest.skip(why)
    with emulated.Emulated([{"address": 0, "alert": 6, "cs": 1, "fast_ppm": fast_ppm}]) as board:
        board.raw_repl()
        board.copy()
        board.run(MADE % RAIL)
        board.start(emulated.LOCKED % 10_400)
        board.send(wire.ASK_HELLO)
        board.send(wire.GO)
        board.listen(lambda: sum(body[2] for body in board.bodies(wire.SAMPLES)) >= 10_500)
        report = board.end()
    assert board.bodies(wire.LOG) == []
    samples, sensor = emulated.samples(board), report["sensors"][0]
    assert [index for index, *_ in samples] == list(range(len(samples))) and emulated.missed(board) == 0 == sensor[
        "unread"
    ]
    assert [(vbus, current) for _, _, vbus, current in samples] == [emulated.values(n) for n, *_ in samples]
    assert (samples[-1][0] - samples[0][0]) / (samples[-1][1] - samples[0][1]) * 1e6 == pytest.approx(
        10_000 * (1 + fast_ppm * 1e-6), rel=1e-4
    )
    starts = [body for body in board.bodies(wire.ENERGY) if int.from_bytes(body[2:6], "little")]
    assert len(starts) == 1
    index, energy, charge = (int.from_bytes(starts[0][a:b], "little") for a, b in ((2, 6), (14, 19), (19, 24)))
    assert (energy, charge) == (16 * index, index)
    edges = sensor["edges_ns"]
    after_us = [(t - edges[bisect.bisect(edges, t) - 1]) / 1000 for t in sensor["current_read_ns"] if t > edges[0]]
    assert max(after_us[:10_500]) < 45
