"""The firmware on a Raspberry Pi Pico that is emulated instruction by instruction, in the RP2 port of MicroPython
itself: its compiler, its viper code, its machine.I2C and machine.SPI, its interrupts and USB, the RP2040's registers.
One board streams of each set of rails in turn, begun anew with its board.json for each, for more than a second of its
own time and with the heap locked; the tests look at what came of it."""

import bisect
import itertools
import json
import re
import struct
import subprocess
from types import SimpleNamespace

import emulated
import pytest

from ssdrig.meter import wire

pytestmark = pytest.mark.slow

FAST = {"vbus_us": 84, "vshunt_us": 150, "temp_us": None}
SLOW = {"vbus_us": 150, "vshunt_us": 540, "temp_us": 280}
SPI = {
    "rail": 0,
    "name": "spi",
    "chip": "INA229",
    "bus": "SPI0",
    "cs": 1,
    "alert": 21,
    "shunt_uOhm": 8000,
    "shunt_tolerance_ppm": 10_000,
    "current_lsb_pA": 9_765_625,
    "fine": True,
    "vbus_us": 50,
    "vshunt_us": 50,
    "temp_us": None,
}
SPI_PPM = 5000
TWO = {**SPI, "vbus_us": 50, "vshunt_us": 150}
# What streams: rows of board.RAILS (None: as shipped), and the samples of the first rail with the heap locked
# All but the first have their limits armed (protect.py), above what the sensors read
ARMED = {"protect": {"A": 5.0, "ms": 20, "V": 15.0}}
STREAMS = {
    "as shipped": (None, 1000),
    "spi": ([{**SPI, **ARMED}], 10_400),
    "two on spi": ([{**TWO, **ARMED}, {**TWO, **ARMED, "rail": 1, "cs": 12, "alert": 13}], 5200),
    "fast rail": (emulated.rows([{**FAST, **ARMED, "alert": 20}], first=4), 4500),
    "three rails": (emulated.rows([{**SLOW, **ARMED}] * 3, first=1), 1100),
    "interference": (emulated.rows([{"vbus_us": 50, "vshunt_us": 1052, "temp_us": None, "alert": 14}], first=5), 250),
}
COMPILED_THERE = "two on spi"  # by the board; the others by mpy-cross
SENSORS = [
    {"address": 0x40, "alert": 6},
    *({"address": 0x41 + n, "alert": 7 + n, "fast_ppm": (0, 3000, -3000)[n]} for n in range(3)),
    {"address": 0x44, "alert": 20},
    {"address": 0, "alert": 21, "cs": 1, "fast_ppm": SPI_PPM},
    {"address": 0, "alert": 13, "cs": 12, "fast_ppm": -SPI_PPM},
    {"address": 0x45, "alert": 14, "pulses": {"every_us": 3313, "low_us": [0.5, 30]}},
]
PIECE = """
low, high = 0, 1 << 17
while high - low > 256:
    middle = (low + high) // 2
    gc.collect()
    try:
        bytearray(middle)
        low = middle
    except MemoryError:
        high = middle
print(low)
"""
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
    with emulated.Emulated(SENSORS, gpios=[10, 11, 22]) as board:
        board.raw_repl()
        board.run("import sys;about=sys.implementation")
        about = board.run("print(about._machine);print(sys.maxsize);print('%d.%d.%d'%about.version[:3])").split("\n")
        streams = {}
        for name, (rows, locked) in STREAMS.items():
            more = {"lock_outs": 15} if name == COMPILED_THERE else {}  # what else a board may load
            board.begin_anew(rows, compiled=name != COMPILED_THERE, **more)
            if name == "as shipped":
                free = int(board.run("r=rig.Rig();gc.collect();print(gc.mem_free());del r"))
            if name == COMPILED_THERE:
                piece = int(board.run("import lock_outs\n" + PIECE))
            streams[name] = board.stream(locked)
        cut = board.run(CUT)
        report = board.end()
    return SimpleNamespace(about=about, free=free, piece=piece, streams=streams, cut=cut, report=report)


def test_it_is_a_version_that_the_page_says_is_proven(seen):
    (words,) = re.findall(r"Proven are ([\d. and]+),", (emulated.ROOT / "host/docs/use/rig.md").read_text())
    assert seen.about[2] in words.split(" and ")


def test_it_is_the_port_and_its_integers(seen):
    assert seen.about[:2] == ["Raspberry Pi Pico with RP2040", str(2**31 - 1)]
    hello = json.loads(emulated.bodies(seen.streams["as shipped"], wire.HELLO)[0])
    assert hello["board"] == seen.about[0] and hello["simulated"] is False
    assert seen.free > 100_000  # bytes of heap beside the firmware


def test_the_heap_is_not_broken_up(seen):
    """Behind all imports, with two sensors on SPI: several times the 8 KB of the link's queue. 12 KB were too few."""
    assert seen.piece > 40_000


@pytest.mark.parametrize(
    "name, rails, rate",
    [
        ("as shipped", 1, 907),
        ("fast rail", 1, 4250),
        ("three rails", 3, 1025),
        ("spi", 1, 10_000),
        ("two on spi", 2, 4970),
    ],
)
def test_nothing_is_lost(seen, name, rails, rate):
    """V and I of each conversion, with the values that belong to its index, the heap locked for a second and more; of
    three chips the oscillators differ, so that their edges meet in every way. The fast rail on I2C gives up one
    conversion a second for its accumulators, and counts it."""
    frames = seen.streams[name]
    assert [seq for _, seq, _ in frames] == list(range(frames[0][1], frames[0][1] + len(frames)))
    assert emulated.bodies(frames, wire.LOG) == []
    for rail in range(rails):
        samples = emulated.samples(frames, rail)
        ends = [body for body in emulated.bodies(frames, wire.ENERGY) if body[0] == rail]
        given_up = len(ends) - 1 if name == "fast rail" else 0
        assert len(ends) >= 2
        gaps = [(a[:2], b[:2]) for a, b in itertools.pairwise(samples) if b[0] != a[0] + 1]
        assert emulated.missed(frames, rail) == given_up == samples[-1][0] + 1 - len(samples), gaps
        last, first = samples[-1], samples[0]
        assert first[0] == 0 and last[1] - first[1] > 1_000_000
        assert (last[0] - first[0]) / (last[1] - first[1]) * 1e6 >= rate
        assert all((vbus, current) == emulated.values(index) for index, _, vbus, current in samples)


def test_edges_between_conversions_are_not_counted(seen):
    """ALERT is pulled low each third conversion, by turns too short for the interrupt to see it low: each value is that
    of its index, and what was being read at that moment is missed."""
    frames = seen.streams["interference"]
    samples = emulated.samples(frames)
    assert all((vbus, current) == emulated.values(index) for index, _, vbus, current in samples)
    lost = samples[-1][0] + 1 - len(samples)
    assert samples[-1][0] > 300 and emulated.missed(frames) == lost < len(samples) // 10
    (message,) = [body.decode() for body in emulated.bodies(frames, wire.LOG)]
    assert message.startswith("rail 0: ") and "edges of ALERT had no conversion" in message


@pytest.mark.parametrize(
    "name, rail, sensor",
    [("as shipped", 0, 0), *(("three rails", n, 1 + n) for n in range(3)), ("spi", 0, 5), ("two on spi", 1, 6)],
)
def test_no_sensor_but_the_one_that_gives_up_conversions_is_left_unread(seen, name, rail, sensor):
    """As long as it streams: `stop` leaves one after the other alone, and may take longer than a conversion."""
    times = [t_us for _, t_us, _, _ in emulated.samples(seen.streams[name], rail)]
    unread = [t / 1000 for t in seen.report["sensors"][sensor]["unread_ns"]]
    assert [t for t in unread if times[0] < t < times[-1]] == []


@pytest.mark.parametrize("name", ["as shipped", "spi"])
def test_the_accumulators_are_those_of_their_index(seen, name):
    ends = [struct.unpack(wire.ENERGY_BODY, body) for body in emulated.bodies(seen.streams[name], wire.ENERGY)]
    assert len(ends) >= 2 and ends[-1][2] > 900
    for _, _, index, _, energy, charge, temp, flags in ends:
        # ina228.mjs
        assert int.from_bytes(charge, "little") == index and int.from_bytes(energy, "little") == 16 * index
        assert temp in (0, 3200) and flags & 0xC000 == 0xC000


def test_current_is_read_before_the_next_shunt_conversion_replaces_it(seen):
    """50 us after the edge, at 10 000 samples/s; and the rate is that of the chip's oscillator."""
    samples, sensor = emulated.samples(seen.streams["spi"]), seen.report["sensors"][5]
    rate = (samples[-1][0] - samples[0][0]) / (samples[-1][1] - samples[0][1]) * 1e6
    assert rate == pytest.approx(10_000 * (1 + SPI_PPM * 1e-6), rel=1e-4)
    edges = sensor["edges_ns"]
    after_us = [(t - edges[bisect.bisect(edges, t) - 1]) / 1000 for t in sensor["current_read_ns"] if t > edges[0]]
    assert max(after_us[:10_400]) < 45


def test_a_cut_takes_the_cycles_that_it_says(seen):
    """The series switch opens, 50 us later the discharge switch closes, 100 us after that both let go; the start is
    said to 8 ns."""
    levels = [(cycle, gpio) for cycle, gpio, level in seen.report["changes"] if level == "High" and gpio in (10, 11)]
    (opened, _), (closed, _) = levels[-2:]
    assert [gpio for _, gpio in levels[-2:]] == [10, 11]
    lows = [cycle for cycle, gpio, level in seen.report["changes"] if gpio == 10 and level == "Low" and cycle > closed]
    assert (closed - opened, lows[0] - closed) == (6250, 12500)
    assert seen.cut.split() == ["True", str((1000 + 7) * 8)]


def test_the_fast_core_does_what_rp2040js_does():
    """Each instruction, from registers and memory of chance: the same registers, flags, memory and cycles,
    alone and in a row; and PIO programs of chance, whose cycles are taken one by one and at once."""
    if why := emulated.missing():
        pytest.skip(why)
    words = ["node", str(emulated.EMULATOR.with_name("compare.mjs")), str(emulated.modules())]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "26086"), done.stdout + done.stderr
