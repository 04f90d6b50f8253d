"""What flash that makes the processor wait leaves of stamps and samples, in the RP2 port of MicroPython on an emulated
RP2040: for each line of 8 bytes that is not in the cache 112 cycles, 28 clocks of the flash at a quarter of the
processor's 125 MHz, or 56, as a Pico's boot code has it."""

import itertools
import json
from types import SimpleNamespace

import emulated
import pytest

from ssdrig.meter import fits, wire

pytestmark = pytest.mark.slow

WAIT, PICO_WAIT = 112, 56
FAST = {"vbus_us": 84, "vshunt_us": 150, "temp_us": None}
THREE = {"vbus_us": 150, "vshunt_us": 540, "temp_us": 280}
SHIPPED = {"vbus_us": 50, "vshunt_us": 1052, "temp_us": None}
STREAMS = {"as shipped": ([SHIPPED], 300), "three rails": ([THREE] * 3, 300), "four rails": ([SHIPPED] * 4, 300)}
UNCOUNTED = ("four rails", 3)  # no machine is left for its line


@pytest.fixture(scope="module")
def seen():
    if why := emulated.missing():
        pytest.skip(why)
    sensors = [{"address": 0x40 + n, "alert": 6 + n, "fast_ppm": (0, 3000, -3000, 1500)[n]} for n in range(4)]
    streams = {}
    for name, (conversions, locked) in STREAMS.items():  # a board for each: edges are counted from its start
        with emulated.Emulated(sensors, wait=WAIT) as board:
            board.raw_repl()
            board.begin_anew(emulated.rows(conversions), compiled=True)
            frames = board.stream(locked)
            streams[name] = SimpleNamespace(frames=frames, report=board.end())
    return streams


@pytest.mark.parametrize(
    ("name", "rail"), [(name, rail) for name, (rows, _) in STREAMS.items() for rail in range(len(rows))]
)
def test_a_stamp_misses_its_edge_by_what_the_board_states(seen, name, rail):
    stream = seen[name]
    off_us = emulated.off_us(emulated.samples(stream.frames, rail), stream.report["sensors"][rail]["edges_ns"])
    assert len(off_us) > 250
    if (name, rail) == UNCOUNTED:
        stated_us = json.loads(emulated.bodies(stream.frames, wire.HELLO)[0])["stamp_ns"] / 1000
        assert 10 < off_us[0] and fits.AGED_us < off_us[-1] < stated_us == fits.FLASH * fits.delay_us(4)
    else:
        assert -fits.AGED_us / 2 < off_us[0] and off_us[-1] < fits.AGED_us / 2


def test_the_board_states_it(seen):
    for name in ("as shipped", "three rails"):
        hello = json.loads(emulated.bodies(seen[name].frames, wire.HELLO)[0])
        assert hello["stamp_ns"] == 1000 * fits.AGED_us


def test_a_fast_rail_loses_nothing_on_a_pico():
    """4273/s: of its 234 us the interrupt has up to 90, and the reading's last register begins 138 us after it."""
    if why := emulated.missing():
        pytest.skip(why)
    with emulated.Emulated([{"address": 0x40, "alert": 6, "fast_ppm": 5000}], wait=PICO_WAIT) as board:
        board.raw_repl()
        board.begin_anew(emulated.rows([FAST]), compiled=True)
        frames = board.stream(4500)
    samples = emulated.samples(frames)
    assert all((vbus, current) == emulated.values(index) for index, _, vbus, current in samples)
    given_up = len(emulated.bodies(frames, wire.ENERGY)) - 1  # conversions, one a second, for the accumulators
    gaps = [(a[:2], b[:2]) for a, b in itertools.pairwise(samples) if b[0] != a[0] + 1]
    assert emulated.missed(frames) == given_up == samples[-1][0] + 1 - len(samples), gaps
