"""The fast current channel in the RP2 port of MicroPython on an emulated RP2040: its ADC, its DMA, its processor. What
rp2040js cannot show: the ADC's noise and non-linearity, and that its clock is another PLL's."""

import json
import re
import struct
from types import SimpleNamespace

import emulated
import numpy as np
import pytest

from ssdrig.meter import wire

pytestmark = pytest.mark.slow

ROW = {"rail": 0, "gpio": 28, "nA_per_count": 2_014_160}
SHIPPED = {"vbus_us": 50, "vshunt_us": 1052, "temp_us": None}
QUICK = {"vbus_us": 84, "vshunt_us": 150, "temp_us": None}
STREAMS = {"two rails": ([SHIPPED] * 2, 1000), "a fast rail": ([QUICK], 4500)}  # and samples with the heap locked
REST, WIDTH = 50, 25  # counts between the bursts of adc.mjs
HEIGHTS = {"none": 50, "100 us": 1500, "60 us": (15 * 2600 + 10 * 50) / 25, "300 us": 3900}  # of a mean of 100 us
COMPARED = """
import array, fast
ring = bytearray(16384)
for k in range(8192):
    ring[2 * k], ring[2 * k + 1] = k * 37 & 255, k * 53 & 15
value = lambda k: ring[2 * (k % 8192)] | ring[2 * (k % 8192) + 1] << 8
state = array.array("i", [8050, fast.window(ring, 8050), 0, 0, -1, -1])
fast.scan(ring, state[1], -1, ring, 250, state)
best, total = -1, 0
for k in range(8050, 8300):
    total += value(k)
    run = sum([value(k - j) for j in range(25)])
    if run > best:
        best, where = run, k
begun = time.ticks_us()
fast.scan(ring, 0, -1, ring, 10000, array.array("i", [25, 0, 0, 0, -1, -1]))
print(list(state) == [8300, run, 0, total, best, where], time.ticks_us() - begun)
"""


@pytest.fixture(scope="module")
def seen():
    if why := emulated.missing():
        pytest.skip(why)
    sensors = [{"address": 0x40 + n, "alert": 6 + n, "fast_ppm": 3000 * n} for n in range(2)]
    with emulated.Emulated(sensors) as board:
        board.raw_repl()
        streams = {}
        for name, (conversions, locked) in STREAMS.items():
            board.begin_anew(emulated.rows(conversions), compiled=True, fast=ROW)
            streams[name] = board.stream(locked)
        same, took_us = board.run(COMPARED).split()
        board.end()
    return SimpleNamespace(same=same, took_us=int(took_us), streams=streams)


def test_a_look_is_what_it_should_be_and_leaves_the_processor_its_time(seen):
    """Every sample of a ring that goes round, against plain Python; 250 000 of them a second."""
    assert seen.same == "True"
    assert seen.took_us / 10_000 < 0.35  # of the 4 us that there are


@pytest.mark.parametrize("name", STREAMS)
def test_the_sensors_lose_nothing_and_the_peaks_are_there(seen, name):
    """With the heap locked; the rail of 4250/s gives one conversion a second to its accumulators, as without it."""
    frames = seen.streams[name]
    assert json.loads(emulated.bodies(frames, wire.HELLO)[0])["fast"]["width"] == WIDTH
    given_up = 1 if name == "a fast rail" else 0
    assert [emulated.missed(frames, rail) for rail in range(len(STREAMS[name][0]))] in ([given_up], [0, 0])
    assert emulated.bodies(frames, wire.LOG) == []
    intervals = [struct.unpack(wire.FAST_BODY, body) for body in emulated.bodies(frames, wire.FAST)]
    assert len(intervals) >= 10 and {of[-2] for of in intervals} == {0}
    assert [of[3] - intervals[0][3] for of in intervals] == [100_000 * k for k in range(len(intervals))]
    for _, _, _, _, n, total, _, at, *_ in intervals:
        assert n == 25_000 and 0 <= at < n
        assert REST * n < total < (REST + 25) * n
    assert wrong_peaks([(peak, at, limited) for *_, peak, at, limited, _, _ in intervals]) == []


def wrong_peaks(intervals) -> list[int]:
    """Which of the intervals' (peak, at, limited) are not as the bursts make them, wherever an interval begins. Its
    edge may lie in a burst of 300 us, so that the interval has some of its samples only: at its end, which go on in the
    next one, or at its beginning. Of the shorter ones another always lies whole in the same interval."""
    limit, rest = HEIGHTS["300 us"], HEIGHTS["none"]
    wrong = []
    for k, (peak, at, limited) in enumerate(intervals):
        height = peak / WIDTH
        beside = {0: k - 1, 25_000 - 1: k + 1}.get(at)
        some = beside is not None and (not 0 <= beside < len(intervals) or intervals[beside][0] == WIDTH * limit)
        if limited:  # so many of the window's samples lie in that burst
            good = peak == limited * limit + (WIDTH - limited) * rest and (limited == WIDTH or some)
        else:
            good = min(abs(height - of) for name, of in HEIGHTS.items() if name != "300 us") < 1
        wrong += [] if good else [k]
    whole = any(limited == WIDTH for _, _, limited in intervals)
    return wrong if whole else [*wrong, len(intervals)]


def intervals_of(first_us: int, n: int = 6) -> list:
    """(peak, at, limited) of n intervals from that time on, as firmware/fast.py has them, of the bursts of adc.mjs."""
    text = emulated.EMULATOR.with_name("adc.mjs").read_text()
    bursts = [
        [int(word.replace("_", "")) // 1000 for word in row[:3]] + [int(row[3])]
        for row in re.findall(r"^  \[([\d_]+), ([\d_]+), ([\d_]+), ([\d_]+)\]", text, re.MULTILINE)
    ]
    t_us = first_us + 4 * np.arange(-WIDTH, 25_000 * n)
    counts = np.full(len(t_us), REST)
    for begin, every, length, height in bursts:
        counts[(t_us >= begin) & ((t_us - begin) % every < length)] = height
    runs, high = (np.convolve(series, np.ones(WIDTH, int), "valid")[1:] for series in (counts, counts >= 3847))
    rows = runs.reshape(n, 25_000)
    return [
        (int(row[at]), int(at), int(high[25_000 * k + at])) for k, (row, at) in enumerate(zip(rows, rows.argmax(1)))
    ]


def test_an_interval_may_begin_anywhere_in_a_burst():
    """In the burst of 300 us at 523 ms, from 0.1 ms before it to 0.1 ms behind it, and places without one."""
    for first_us in (*range(122_900, 123_420, 4), 100_000, 111_111, 143_050):
        intervals = intervals_of(first_us)
        assert wrong_peaks(intervals) == [], first_us
        for k, (peak, at, limited) in enumerate(
            intervals
        ):  # a window too long, another place, other counts at the limit
            for odd in ((peak + 2 * WIDTH, at, limited), (peak, at, limited + 1), (REST * WIDTH - WIDTH, at, 0)):
                assert wrong_peaks([*intervals[:k], odd, *intervals[k + 1 :]]), (first_us, k)
