"""The fast current channel: firmware/fast.py on the SIMULATED board, against what its rail really drew."""

import itertools
import json
import struct
from typing import NamedTuple

import numpy as np
import pytest
from simboard import FAST, ROOT, Board, changed_firmware

from ssdrig.meter import wire

GPIO, NA = 28, 2_014_160
GAIN, ZERO = 0.99, 12  # of the amplifier, and counts of no current
LOAD_A = 0.5025  # 2.5 W behind 47 mOhm
BURSTS = [(1.5, 2.5, 100e-6), (2.2, 4.0, 60e-6), (2.75, 3.0, 300e-6)]  # after s, A, s


class Interval(NamedTuple):
    """An F frame."""

    rail: int
    channel: int
    number: int
    t0_us: int
    n: int
    sum: int
    peak: int
    at: int
    limited: int
    lost: int
    volts: int


def settings(bursts=BURSTS, **more):
    surges = [row for t, amps, lasts in bursts for row in ([t, amps, 0], [t + lasts, -amps, 0])]
    true = {"gain": GAIN, "zero": ZERO}
    fast = {"rail": 0, "gpio": GPIO, "nA_per_count": NA, "true": true}
    return {"fast": fast, "rail": {"true": {"surges": surges}}, **FAST, **more}


def intervals(board):
    return [Interval(*struct.unpack(wire.FAST_BODY, body)) for body in board.bodies(wire.FAST)]


def amperes(counts):
    """By what the test knows of the amplifier."""
    return (counts - ZERO) * NA * 1e-9 / GAIN


def starts_s(board, of):
    """When the first sample of an interval was complete, seconds since boot."""
    boot = board.truth()[-1]
    return (of.t0_us - boot["tick0"]) / (1 + boot["ppm"] * 1e-6) / 1e6


def drawn(start_s, bursts, late_s):
    """What an interval would have without an error but lateness: (mean, A; mean of each window that ends in it, A)."""
    t_s = start_s + 4e-6 * np.arange(-24, 25_000)
    amps = LOAD_A + sum([more * ((t_s > at + late_s) & (t_s <= at + lasts + late_s)) for at, more, lasts in bursts])
    return amps[24:].mean(), np.convolve(amps, np.full(25, 1 / 25), "valid")


def look_at(board, bursts):
    """Each interval has the bursts that fell into it, wherever its ends lie: that depends on when the board began.
    Returns in how many intervals a burst was seen."""
    intervals_, seen, slack_A = (
        intervals(board),
        0,
        0.04 * max(more for _, more, _ in bursts),
    )  # of one sample in a window
    for of in intervals_:
        might = [drawn(starts_s(board, of), bursts, late_us * 1e-6) for late_us in range(-20, 9, 4)]
        means, peaks = [mean for mean, _ in might], [windows.max() for _, windows in might]
        assert min(means) - 2e-3 * LOAD_A < amperes(of.sum / of.n) < max(means) + 2e-3 * LOAD_A
        near_A = slack_A if max(peaks) > LOAD_A else 0.01
        assert min(peaks) - near_A < amperes(of.peak / 25) < max(peaks) + near_A
        assert any(windows[of.at] > windows.max() - near_A for _, windows in might)
        seen += min(peaks) > LOAD_A + slack_A
    assert {of.n for of in intervals_} == {25_000} and {of.lost for of in intervals_} == {0}
    assert [b.t0_us - a.t0_us for a, b in itertools.pairwise(intervals_)] == [100_000] * (len(intervals_) - 1)
    assert [of.number for of in intervals_] == list(range(len(intervals_)))
    assert board.missed() == 0 and board.logs() == ""
    return seen


def test_bursts_are_found_where_they_were_and_the_sensor_loses_nothing(tmp_path):
    with Board(tmp_path, 2.5, settings()) as board:
        board.go()
        board.until(lambda: starts_s(board, intervals(board)[-1]) > 3.2 if intervals(board) else False)
        assert len(BURSTS) <= look_at(board, BURSTS) <= 2 * len(BURSTS)  # some may lie across a boundary


@pytest.mark.slow
def test_a_burst_across_a_boundary_is_in_both_intervals(tmp_path):
    """Bursts of 13 ms each 90 ms: wherever the boundaries lie, one of the twelve has one in it."""
    bursts = [(1.0 + 0.09 * k, 1.0, 13e-3) for k in range(12)]
    with Board(tmp_path, 2.5, settings(bursts)) as board:
        board.go()
        board.until(lambda: starts_s(board, intervals(board)[-1]) > 2.2 if intervals(board) else False)
        look_at(board, bursts)
        boundaries_s = [starts_s(board, of) for of in intervals(board)]
        assert any(at + 1e-3 < t_s < at + lasts - 1e-3 for at, _, lasts in bursts for t_s in boundaries_s)


def test_a_current_beyond_the_amplifiers_end_is_said_to_be_there(tmp_path):
    with Board(tmp_path, 2.5, settings([(0.5, 9.0, 200e-6)])) as board:
        board.go()
        board.until(lambda: len(intervals(board)) >= 6)
        assert max(of.limited for of in intervals(board)) == 25
        calm = [of for of in intervals(board) if not starts_s(board, of) - 1e-3 < 0.5 < starts_s(board, of) + 0.101]
        assert len(calm) >= 4 and {of.limited for of in calm} == {0}


def test_what_nobody_looked_at_in_time_is_counted_and_nothing_is_made_up(tmp_path):
    """The main loop stands still for longer than the ring lasts, in the middle of a burst that is not seen."""
    more = settings([(1.0, 4.0, 100e-6)], stalls=[[0.985, 60]])
    with Board(tmp_path, 2.5, more) as board:
        board.go()
        board.until(lambda: len(intervals(board)) >= 15)
        intervals_ = intervals(board)
        breaks = [(a, b) for a, b in itertools.pairwise(intervals_) if b.t0_us != a.t0_us + 4 * a.n]
        ((before, behind),) = breaks
        assert 0 < before.n <= 25_000 and intervals_[-1].lost * 4 == pytest.approx(
            behind.t0_us - before.t0_us - 4 * before.n, abs=8
        )
        assert intervals_[-1].lost * 4 > 40_000 and max(of.peak for of in intervals_) / 25 < 300


def test_the_scope_takes_the_adc_and_gives_it_back(tmp_path):
    with Board(tmp_path, 2.5, settings([])) as board:
        board.go()
        board.until(lambda: len(intervals(board)) >= 3)
        how = {"gpio": 26, "rate": 500_000, "before": 0, "after": 400, "trigger": "now"}
        board.send(wire.SCOPE, json.dumps(how).encode())
        board.until(lambda: len(board.bodies(wire.WAVEFORM)) >= 4)
        seen = len(intervals(board))
        board.until(lambda: len(intervals(board)) >= seen + 4)
        intervals_ = intervals(board)
        assert all(
            amperes(of.peak / 25) == pytest.approx(LOAD_A, rel=0.02) for of in intervals_
        )  # no voltage among them
        assert sum(b.t0_us != a.t0_us + 4 * a.n for a, b in itertools.pairwise(intervals_)) == 1
        volts = struct.unpack_from("<10H", board.bodies(wire.WAVEFORM)[0], struct.calcsize(wire.WAVEFORM_HEAD))
        assert all(3000 < value < 3150 for value in volts)


def test_the_ring_begins_anew_before_the_dma_has_counted_to_its_end(tmp_path):
    with Board(tmp_path, 2.5, settings([]) | changed_firmware(tmp_path, "fast.py", _LAST=60_000)) as board:
        board.go()
        board.until(lambda: len(intervals(board)) >= 10)
        gaps = [b.t0_us - a.t0_us - 4 * a.n for a, b in itertools.pairwise(intervals(board))]
        assert {gap > 0 for gap in gaps} == {False, True} and max(gaps) < 5000  # us
        assert intervals(board)[-1].lost * 4 == pytest.approx(sum(gaps), rel=0.2)  # but for the first window's samples
        assert all(amperes(of.peak / 25) == pytest.approx(LOAD_A, rel=0.02) for of in intervals(board))


def test_the_ring_begins_anew_also_where_no_interval_was_ever_whole(tmp_path):
    """Stalls, as of a host that reads nothing for minutes: without a new beginning the place of a sample would grow
    until its ticks are none (ticks_add raises), and the DMA would count to its end."""
    more = settings([], stalls=[[0.2, 60], [0.6, 60]])
    with Board(tmp_path, 2.5, more | changed_firmware(tmp_path, "fast.py", _LONGEST=10_000, _LAST=10_000)) as board:
        board.go()
        board.until(lambda: len(intervals(board)) >= 10)
        intervals_ = intervals(board)
        gaps = [b.t0_us - a.t0_us - 4 * a.n for a, b in itertools.pairwise(intervals_)]
        assert all(gap >= 0 for gap in gaps) and {of.n for of in intervals_} == {
            25_000
        }  # a partial one would be too old
        assert all(amperes(of.peak / 25) == pytest.approx(LOAD_A, rel=0.02) for of in intervals_) and board.logs() == ""


def test_go_begins_from_nothing_and_hello_says_what_is_there(tmp_path):
    with Board(tmp_path, 2.5, settings([])) as board:
        about = {"rail": 0, "gpio": GPIO, "nA_per_count": NA}
        about |= {"step_ns": 4000, "width": 25, "interval": 25_000, "limit": 3847}
        assert board.hello()["fast"] == about
        for _ in range(2):
            before = len(intervals(board))
            board.send(wire.GO)
            board.until(lambda: len(intervals(board)) >= before + 2)
            board.send(wire.STOP)
            board.hello()
            assert [of.number for of in intervals(board)[before : before + 2]] == [0, 1]


def test_a_board_without_it_sends_nothing_of_it(tmp_path):
    with Board(tmp_path, 2.5, FAST) as board:
        board.go()
        board.until(lambda: len(board.samples()) > 500)
        assert board.hello()["fast"] is None and intervals(board) == []


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"rail": 0}, "fast without gpio"),
        ("rail gpio nA_per_count", "fast without rail"),
        ({"rail": 0, "gpio": 5, "nA_per_count": NA}, "no input of the ADC"),
        ({"rail": 3, "gpio": GPIO, "nA_per_count": NA}, "fast of no rail"),
    ],
)
def test_a_file_that_makes_no_sense_of_it_is_said(tmp_path, row, says):
    flash = changed_firmware(tmp_path, "fast.py")
    own = json.loads((ROOT / "hardware/builds/one_rail.json").read_text()) | {"fast": row}
    (tmp_path / "flash/board.json").write_text(json.dumps(own))
    with Board(tmp_path, 2.5, flash | FAST) as board:
        board.until(lambda: says in board.logs())
