"""Samples into energy, on arrays made by hand: gaps, the chip's period, closure; each limit from both sides."""

import numpy as np
import pytest
import stream

from ssdrig.meter import power, samples, wire
from ssdrig.meter.frames import ENERGY, Boot, Decoder, Frames

MS = 10**6
S = 10**9


# ---- running energy and its gaps


def energy(t_ms, watts, at=(), lost=(), segment=(0,), period_ms=10):
    t_ns = (np.array(t_ms, float) * MS).astype(np.int64)
    arrays = (np.array(v, np.int64) for v in (at, lost, segment))
    at, lost, segment = arrays
    return power.running_J(t_ns, np.array(watts, float), at, lost, segment, np.full(len(segment), period_ms * 1e6))


def test_each_sample_stands_for_the_time_before_it():
    joules, gaps = energy([100, 110, 125], [1, 2, 4])
    assert joules == pytest.approx([0.010, 0.030, 0.090]) and [len(g) for g in gaps] == [0] * 4
    joules, gaps = energy([], [])
    assert len(joules) == 0 and [len(g) for g in gaps] == [0] * 4


def test_a_gap_is_filled_with_the_mean_of_both_sides():
    joules, (at, lost, dark_ns, filled_J) = energy([100, 110, 150], [1, 2, 4], at=[2], lost=[3])
    assert (at.tolist(), lost.tolist(), dark_ns.tolist()) == ([2], [3], [30 * MS])
    assert filled_J == pytest.approx([3 * 0.030]) and joules[-1] == pytest.approx(0.030 + 0.040 + 0.090)

    assert energy([100, 130], [1, 5], at=[1], lost=[2])[1][3] == pytest.approx([3 * 0.020])


def test_conversions_lost_before_the_first_sample_count_by_their_number():
    joules, (at, lost, dark_ns, filled_J) = energy([100, 110], [2, 2], at=[0], lost=[4])
    assert (at.tolist(), lost.tolist(), dark_ns.tolist()) == ([0], [4], [40 * MS])
    assert filled_J == pytest.approx([0.080]) and joules == pytest.approx([0.100, 0.120])
    _, gaps = energy([100, 110], [2, 2], at=[0], lost=[0])
    assert [len(g) for g in gaps] == [0] * 4


@pytest.mark.parametrize(
    ("dark_ms", "known", "counted"),
    [(5.1, 0, 1), (5, 0, 0), (4.9, 0, 0), (4.9, 3, 0), (5, 3, 3), (24, 0, 2), (26, 0, 3), (26, 7, 7)],
)
def test_a_new_segment_counts_what_the_chip_must_have_converted(dark_ms, known, counted):
    """After a reset the number of the conversion says little: the time counts, from half a period on."""
    _, (at, lost, *_) = energy([100, 110, 120 + dark_ms], [1, 1, 1], at=[2], lost=[known], segment=[0, 2])
    assert lost.tolist() == ([counted] if counted else []) and at.tolist() == ([2] if counted else [])


def test_within_a_segment_the_number_counts():
    _, (_, lost, dark_ns, _) = energy([100, 110, 124.9], [1, 1, 1], at=[2], lost=[3])
    assert (lost.tolist(), dark_ns.tolist()) == ([3], [round(4.9 * MS)])


def test_each_segment_has_its_period():
    t_ns, segment = np.array([100, 110, 150, 160], np.int64) * MS, np.array([0, 2])
    at, lost, period = np.array([2]), np.array([0]), np.array([10e6, 20e6])
    _, (_, lost, dark_ns, _) = power.running_J(t_ns, np.ones(4), at, lost, segment, period)
    assert (lost.tolist(), dark_ns.tolist()) == ([1], [20 * MS])


# ---- a stream


def assembled(tape) -> power.Power:
    decoder = Decoder()
    decoder.feed(tape.records())
    return power.assemble(decoder.frames(0), decoder.boots)


@pytest.mark.parametrize(
    ("real_us", "followed"), [(1099, True), (1101, False), (901, True), (899, False), (1000, True)]
)
def test_the_chips_period_is_taken_up_to_a_tenth_off(real_us, followed):
    """Two frames lost: the gap is as long as time says, less one period."""
    tape = stream.started()
    tape.stream(8, lose=(4, 5), period_us=real_us)
    power_ = assembled(tape)
    assert power_.lost == 100 and power_.gap.tolist() == [200]
    period = real_us if followed else 1000
    assert power_.gap_ns[0] == pytest.approx((101 * real_us - period) * 1000, abs=2500)


@pytest.mark.parametrize(("n", "followed"), [(101, True), (100, False)])
def test_the_chips_period_needs_a_hundred_conversions(n, followed):
    tape = stream.started()
    tape.stream(1, n=n - 51, period_us=1050)
    tape.stream(1, n=50, first_index=n - 50, skip=1, period_us=1050)
    power_ = assembled(tape)
    expected_us = 1050 if followed else 2 * 1050 - 1000
    assert power_.gap_ns[0] == pytest.approx(expected_us * 1000, abs=2500)


def test_the_integral_goes_back_one_sample_before_the_first():
    tape = stream.started()
    tape.stream(2)
    power_ = assembled(tape)
    start_ns = int(power_.t_ns[0]) - MS
    values = power.integral_J(power_, [start_ns - S, start_ns, start_ns + MS // 2, int(power_.t_ns[-1]) + S])
    assert values == pytest.approx([0, 0, 0.0005, 0.1], abs=2e-6)


def test_the_time_of_a_boot_without_a_ping_is_a_second_wide():
    tape = stream.started()
    tape.frame(wire.SAMPLES, stream.samples(0, np.array([2_000_000, 2_001_000]), [1, 1], [1, 1]))
    power_ = assembled(tape)
    assert power_.err_ns[1] == pytest.approx(0.5e9, rel=1e-3)
    assert tape.rows[-1][2] - power_.t_ns[1] == pytest.approx(0.5e9, rel=1e-3)


def test_a_follower_fits_the_clock_from_the_latest_pings():
    tape = stream.started()
    tape.stream(5)
    decoder = Decoder()
    decoder.feed(tape.records())
    for recent, pings in ((None, 5), (2, 2), (9, 5)):
        (clock,) = power.assemble(decoder.frames(0), decoder.boots, None, 0, recent).clocks
        assert clock.pings == pings
    assert clock.base_us == decoder.boots[0].pings[0][1]


def test_what_an_earlier_host_did_not_read_was_not_lost_by_this_one():
    """A host that is killed leaves a stream that nobody reads: the board's queue is full of old frames, a gap behind
    them, when the next one asks who is there."""
    tape = stream.Tape()
    tape.stream(4, first_index=5000, lose=(1, 2), missed=543)
    tape.frame(wire.HELLO, stream.hello())
    tape.stream(3, missed=7, skip=7, first_index=7)
    power_ = assembled(tape)
    assert (power_.lost, power_.counts["missed"], len(power_.t_ns)) == (7, 7, 250)
    tape.stream(2, first_index=300)
    assert assembled(tape).lost == 7 + 143


def test_which_frames_a_hello_explains():
    boots = [Boot(rails={(0, 255): {}, (1, 1): {}}), Boot(rails={(0, 1): {}})]
    none = np.zeros(4, np.int64)
    boot, config = np.array([0, 0, 1, 1]), np.array([255, 1, 1, 255])
    frames = Frames(none, boot, config, none, none, none, none, none, none, none)
    assert power.explained(frames, boots, 0).tolist() == [True, False, True, False]
    assert power.explained(frames, boots, 1).tolist() == [False, True, False, False]


def test_what_the_board_missed_counts_once_for_each_go():
    """Its counter begins anew with `go`; the last frame before that has all."""
    tape = stream.started()
    for index, missed in ((0, 1), (3, 4), (6, 5), (0, 2), (2, 9)):
        t_us = tape.t_us + 1000 * np.arange(1, 3)
        tape.t_us = int(t_us[-1])
        tape.frame(wire.SAMPLES, stream.samples(index, t_us, [1, 1], [1, 1], missed=missed))
    tape.ping()
    power_ = assembled(tape)
    assert power_.counts["missed"] == 5 + 9
    assert (power_.gap.tolist(), power_.gap_lost.tolist(), power_.segment.tolist()) == ([2, 4], [1, 1], [0, 6])


def test_measured_and_filled_energy_are_all_there_is():
    """1 W: 200 conversions of 1 ms are there, 50 between them are not."""
    tape = stream.started()
    tape.stream(5, lose=(2,))
    power_ = assembled(tape)
    assert (power_.energy_measured_J, power_.energy_filled_J) == pytest.approx((0.2, 0.05), rel=1e-3)
    assert power_.energy_J[-1] == pytest.approx(0.25, rel=1e-3) and power_.lost == 50
    none = power.assemble(Decoder().frames(0), [Boot()])
    assert (none.energy_measured_J, none.energy_filled_J, none.lost) == (0, 0, 0)
    assert np.isnan(none.uncertainty_W(1.0)) and power.integral_J(none, [1, 2]).tolist() == [0, 0]


def test_a_single_sample_stands_for_one_conversion():
    tape = stream.started()
    tape.stream(1, n=1)
    power_ = assembled(tape)
    t = int(power_.t_ns[0])
    assert power_.energy_J == pytest.approx([0.001]) and power.integral_J(power_, [t - 1, t + 1]) == pytest.approx(
        [0, 0.001]
    )


def rows(*frames) -> np.ndarray:
    out = np.zeros(len(frames), ENERGY)
    for i, (index, t_us, register) in enumerate(frames):
        out[i]["index"], out[i]["t_us"], out[i]["energy"] = index, t_us, register
    return out


LSB_J = 16 * 3.2 * stream.CURRENT_LSB_PA * 1e-12


def closed(*frames) -> power.Closure | None:
    tape = stream.started()
    tape.stream(40)  # 2000 conversions of 1 mJ
    return power.closure(assembled(tape), rows(*frames))


def test_closure_worked_by_hand():
    """1000 conversions of 1 mJ; the chip counts 2500 steps of 0.4 mJ."""
    c = closed((500, 1_500_000, 7), (1500, 2_500_000, 2507))
    assert (c.host_J, c.chip_J, c.seconds) == (pytest.approx(1, rel=1e-6), pytest.approx(1), pytest.approx(1, rel=1e-6))
    assert (c.raw_percent, c.corrected_percent) == pytest.approx((0, 0), abs=1e-3)
    assert c.chip_clock_ppm == pytest.approx(0, abs=5) and c.instead == 0
    assert c.resolution_percent == pytest.approx(100 * (3.2 * 7_812_500e-12 + LSB_J), rel=1e-5)
    half = closed((500, 1_500_000, 7), (1500, 2_500_000, 5007))
    assert (half.raw_percent, half.corrected_percent) == pytest.approx((-50, -50), abs=1e-3)


@pytest.mark.parametrize(
    ("frames", "there"),
    [
        ([(500, 1_500_000, 0)], False),
        ([(500, 1_500_000, 0), (500, 1_500_000, 9)], False),  # no conversion between them
        ([(500, 1_500_000, 0), (1500, 2_500_000, 0)], False),  # the chip counted nothing
        ([(500, 1_500_000, 0), (1500, 2_500_000, 1)], True),
        ([(500, 1_500_000, 2**39), (1500, 2_500_000, 0)], True),  # half of the register: it wrapped
        ([(500, 1_500_000, 2**39), (1500, 2_500_000, 1)], False),  # more than half: it was reset
        ([(500, 1_500_000, 0), (2000, 3_005_000, 9)], True),  # 5 ms behind the last sample
        ([(500, 1_500_000, 0), (2000, 3_005_001, 9)], False),
        ([(500, 1_000_999, 0), (1500, 2_500_000, 9)], False),  # before the first sample
        ([(500, 1_001_000, 0), (1500, 2_500_000, 9)], True),
    ],
)
def test_which_energy_frames_close(frames, there):
    assert (closed(*frames) is not None) == there


# ---- seconds


def second(t_s, watts, joules=1.0, n=10, lost=1, error=5) -> samples.Second:
    return samples.Second(t_s * S, *[0.0] * 6, watts, 0.0, 0.0, None, None, 0.0, joules, n, lost, error)


def test_seconds_of_two_rails_are_added_when_both_are_there():
    both, together = ["a", "b"], samples.Together()
    assert together.add("a", second(1, 2.0), both) is None and together.add("a", second(2, 3.0), both) is None
    out = together.add("b", second(2, 4.0, joules=2.0, n=20, lost=2, error=7), both)
    assert out == {"t_ns": 2 * S, "p_mean_W": 7.0, "energy_J": 3.0, "samples": 30, "lost": 3, "rails": 2, "t_err_ns": 7}
    assert together.add("b", second(1, 4.0), both) is None  # that second was given up
    assert together.add("a", second(3, 1.0), ["a"])["p_mean_W"] == 1.0


@pytest.mark.parametrize(("value", "kind", "number"), [(2.6, int, 3), (2.4, int, 2), (2.6, float, 2.6)])
def test_numbers_are_rounded_to_their_kind(value, kind, number):
    rounded = samples._number(np.float64(value), kind)
    assert rounded == number and type(rounded) is kind


def test_the_extremes_and_deviation_of_a_second():
    tape = stream.started()
    tape.stream(20, vbus=25_600, current=25_600)
    tape.stream(20, first_index=1000, vbus=25_600, current=3 * 25_600)
    power_ = assembled(tape)
    rows = samples.per_second(power_, stream.T0_NS + 500 * MS, 3)
    assert rows.samples[0] == pytest.approx(1000, abs=1) and rows.samples[2] == 0
    assert (rows.p_min_W[0], rows.p_max_W[0]) == (pytest.approx(1), pytest.approx(3))
    assert rows.p_std_W[0] == pytest.approx(1, abs=0.01) and rows.p_mean_W[0] == pytest.approx(2, abs=0.01)
    assert rows.p_std_W[1] == pytest.approx(0, abs=1e-9) and np.isnan(rows.p_std_W[2])
    assert rows.i_max_A[0] == pytest.approx(0.6) and rows.v_mean_V[1] == pytest.approx(5)
    assert rows.t_ns.tolist() == [stream.T0_NS + 500 * MS + i * S for i in range(3)]
