"""Frames to watts on the host's clock: gaps, resets, configurations, sums."""

import json
import random

import numpy as np
import pytest
import stream
from sample_tapes import W, broken_tape, loaded

from ssdrig.base.errors import JournalError, RigError
from ssdrig.meter import power, samples, wire
from ssdrig.runs import rigbin, rigrecords


def test_worked_example_of_the_chip_s_maker(tmp_path):
    """TI's example (16.2 mOhm, 10 A full scale, SHUNT_CAL 4050): 97.2 mV is CURRENT 314572, which is 6 A; at 12 V 72 W.
    The chip's own POWER register, (VBUS x CURRENT) >> 14 with an LSB of 3.2 x CURRENT_LSB, says the same."""
    current_lsb_pA = 19_073_486  # 10 A / 2^19
    assert 13107.2e6 * current_lsb_pA * 1e-12 * 0.0162 == pytest.approx(4050, abs=0.01)
    hello = json.loads(stream.hello())
    hello["rails"][0] |= {"current_lsb_pA": current_lsb_pA, "shunt_uOhm": 16_200, "shunt_cal": 4050}
    tape = stream.Tape()
    tape.frame(wire.HELLO, json.dumps(hello).encode())
    tape.stream(4, vbus=61_440, current=314_572)
    tape.stream(4, first_index=200, vbus=61_440, current=-314_572)
    p = loaded(tape, tmp_path)
    assert p.V == pytest.approx(np.full(400, 12.0), rel=1e-12)
    assert p.I[:200] == pytest.approx(np.full(200, 6.0), rel=3e-6)
    assert p.I[200:] == pytest.approx(np.full(200, -6.0), rel=3e-6)
    assert p.P[:200] == pytest.approx(np.full(200, 72.0), rel=3e-6)
    assert p.P[0] == pytest.approx(((61_440 * 314_572) >> 14) * 3.2 * current_lsb_pA * 1e-12, rel=1e-6)


def test_constant_power_every_sample_on_the_host_s_clock(tmp_path):
    tape = stream.started()
    tape.stream(100, current=2 * W)
    p = loaded(tape, tmp_path)
    assert p.name == "1 V" and p.lost == 0 and len(p.gap) == 0
    assert (p.index == np.arange(5000)).all()
    assert np.abs(p.t_ns - (stream.T0_NS + 1_000_000 * np.arange(1, 5001))).max() < 1000
    assert (p.err_ns >= 125_000).all() and p.err_ns.max() < 140_000  # round trips of 200 us, stamps 25 us late
    assert (p.P == 2.0).all()
    assert p.energy_measured_J == pytest.approx(2.0 * 5.000, rel=1e-6) and p.energy_filled_J == 0
    assert p.counts["missed"] == 0 and p.counts["unconverted"] == 0


def test_energy_is_in_host_time_when_the_board_s_crystal_is_off(tmp_path):
    """A board 500 ppm fast: ticks say 5 s, the host knows it were 5 / 1.0005 s."""
    tape = stream.started()
    for _ in range(100):
        tape.stream(1)
    slow = [(k, p, stream.T0_NS + round((t - stream.T0_NS) / 1.0005)) for k, p, t in tape.rows]
    tape.rows = slow
    p = loaded(tape, tmp_path)
    assert p.energy_measured_J == pytest.approx(5.0 / 1.0005, rel=2e-5)
    assert p.clocks[0].rate_ppm() == pytest.approx(500, abs=2)


def test_a_lost_frame_is_a_gap_filled_with_the_mean_of_both_sides(tmp_path):
    tape = stream.started()
    tape.stream(10, current=1 * W)
    tape.stream(1, first_index=500, current=7 * W, lose=[0])  # what nobody will ever know
    tape.stream(10, first_index=550, current=3 * W)
    p = loaded(tape, tmp_path)
    assert p.lost == 50 and p.gap.tolist() == [500] and p.gap_lost.tolist() == [50]
    assert p.gap_ns[0] == pytest.approx(50e6, rel=1e-4)
    assert p.energy_filled_J == pytest.approx(2.0 * 0.050, rel=1e-4)
    assert p.energy_measured_J == pytest.approx(0.5 * 1 + 0.5 * 3, rel=1e-4)
    assert p.counts["frames_lost"] == 1


def test_conversions_that_the_rig_itself_missed(tmp_path):
    tape = stream.started()
    tape.stream(4)
    tape.stream(4, first_index=207, skip=7, missed=7)
    p = loaded(tape, tmp_path)
    assert p.lost == 7 and p.counts["missed"] == 7 and p.counts["frames_lost"] == 0
    assert p.energy_filled_J == pytest.approx(0.007, rel=1e-3)
    assert p.energy_measured_J + p.energy_filled_J == pytest.approx(0.407, rel=1e-4)


def test_first_samples_after_go_are_lost_too(tmp_path):
    tape = stream.started()
    tape.stream(5, lose=(0, 1))
    p = loaded(tape, tmp_path)
    assert p.lost == 100 and p.gap.tolist() == [0]
    assert p.energy_measured_J + p.energy_filled_J == pytest.approx(0.25, rel=1e-3)


def test_a_stream_that_an_earlier_host_left_running_has_no_lost_beginning(tmp_path):
    tape = stream.Tape()
    tape.stream(2, first_index=9_000)
    tape.frame(wire.HELLO, stream.hello())
    tape.stream(10)
    p = loaded(tape, tmp_path)
    assert p.lost == 0 and len(p.t_ns) == 600 and p.segment.tolist() == [0, 100]


@pytest.mark.parametrize("index_after", [0, 150])
def test_a_reset_is_a_gap_of_known_length(tmp_path, index_after):
    """The board is dark for half a second: 500 conversions that the chip would have made, of which it says 150
    itself."""
    tape = stream.started(boot=1)
    tape.stream(40, current=1 * W)
    tape.reset(dark_us=500_000)
    tape.frame(wire.HELLO, stream.hello(boot=2))
    tape.stream(40, first_index=index_after, current=2 * W)
    p = loaded(tape, tmp_path)
    assert len(p.segment) == 2 and p.counts["resets"] == 1
    assert p.lost == 500 and p.gap.tolist() == [2000]
    assert np.abs(p.t_ns[2000] - tape.host_ns(stream.TICK0_US + 1000)) < 2000
    assert p.energy_filled_J == pytest.approx(1.5 * 0.5, rel=1e-3)
    assert p.energy_measured_J == pytest.approx(2 * 1 + 2 * 2, rel=1e-3)


def test_a_second_go_on_the_same_boot_begins_a_segment(tmp_path):
    tape = stream.started()
    tape.stream(40)
    tape.stream(40, skip=100)
    p = loaded(tape, tmp_path)
    assert p.segment.tolist() == [0, 2000] and p.lost == 100
    assert p.energy_filled_J == pytest.approx(0.1, rel=1e-3)


def test_a_new_configuration_is_converted_by_its_own_facts(tmp_path):
    hello = json.loads(stream.hello(configs=(0, 1)))
    hello["rails"][1]["current_lsb_pA"] *= 4
    tape = stream.started()
    tape.stream(4)
    tape.frame(wire.HELLO, json.dumps(hello).encode())
    tape.stream(4, first_index=200, config=1)
    p = loaded(tape, tmp_path)
    assert p.P.tolist() == pytest.approx([1.0] * 200 + [4.0] * 200) and p.lost == 0
    assert p.segment.tolist() == [0, 200]


def test_samples_that_no_hello_explains_are_lost_not_guessed(tmp_path):
    tape = stream.started()
    tape.stream(4)
    tape.stream(1, first_index=200, config=9)
    tape.stream(4, first_index=250)
    p = loaded(tape, tmp_path)
    assert p.lost == 50 and p.counts["unconverted"] == 50 and len(p.t_ns) == 400


def test_a_boot_without_any_pong_still_has_a_place_in_time(tmp_path):
    tape = stream.started()
    tape.stream(40)
    tape.rows = [row for row in tape.rows if row[0] != rigbin.PING]
    p = loaded(tape, tmp_path)
    true = stream.T0_NS + 1_000_000 * np.arange(1, 2001)
    assert (np.abs(p.t_ns - true) <= p.err_ns).all() and p.err_ns.min() > 4e8


def test_per_second_numbers(tmp_path):
    tape = stream.started()  # sample k becomes ready at T0 + k ms
    tape.stream(20, current=1 * W)
    tape.stream(20, first_index=1000, current=3 * W)
    tape.stream(10, first_index=2000, current=5 * W, vbus=12_800)
    p = loaded(tape, tmp_path)
    s = samples.per_second(p, stream.T0_NS + 500_000_500, 3)
    assert s.t_ns.tolist() == [stream.T0_NS + 500_000_500 + k * 10**9 for k in range(3)]
    assert np.abs(s.samples - [1000, 1000, 0]).max() <= 1  # one lies within the clock's error of the edge
    assert s.p_mean_W[:2] == pytest.approx([2.0, 2.75], abs=0.005) and np.isnan(s.p_mean_W[2])
    assert s.p_min_W[:2].tolist() == pytest.approx([1.0, 2.5]) and s.p_max_W[:2].tolist() == pytest.approx([3.0, 3.0])
    assert s.p_std_W[:2] == pytest.approx([1.0, 0.25], abs=0.001)
    assert s.v_min_V[:2].tolist() == pytest.approx([5.0, 2.5]) and s.v_max_V[:2].tolist() == pytest.approx([5.0, 5.0])
    assert s.i_max_A[:2].tolist() == pytest.approx([0.6, 1.0]) and s.i_mean_A[0] == pytest.approx(0.4, abs=0.001)
    assert s.energy_J == pytest.approx([2.0, 2.75, 0.0], abs=0.002)
    assert s.t_err_ns[0] == pytest.approx(128_000, rel=0.04)
    whole = samples.per_second(p, stream.T0_NS - 10**9, 5)
    assert whole.samples.sum() == 2500 and whole.energy_J.sum() == pytest.approx(p.energy_J[-1], rel=1e-9)


def test_per_second_counts_lost_conversions_once(tmp_path):
    tape = stream.started()
    tape.stream(100, lose=(10, 11, 70))
    p = loaded(tape, tmp_path)
    s = samples.per_second(p, stream.T0_NS - 10**9, 8)
    assert s.lost.sum() == p.lost == 150 and s.lost.tolist().count(0) == 6
    assert s.energy_J.sum() == pytest.approx(5.0, rel=1e-5)


def test_the_first_sample_has_a_time_of_its_own(tmp_path):
    """It stands for the conversion before it: the integral begins there, not at its end."""
    tape = stream.started()
    tape.stream(2)
    power = samples.load(tape.run(tmp_path))
    t0, one_J = int(power.t_ns[0]), 1e-3  # 1 W for 1 ms
    got = samples.integral_J(power, [t0 - 2_000_000, t0 - 1_000_000, t0 - 500_000, t0, int(power.t_ns[-1])])
    assert got == pytest.approx([0, 0, one_J / 2, one_J, 100 * one_J], abs=1e-7)


def test_integral_between_two_times(tmp_path):
    tape = stream.started()
    tape.stream(40, current=2 * W)
    p = loaded(tape, tmp_path)
    a, b = samples.integral_J(p, [stream.T0_NS + 250_400_000, stream.T0_NS + 1_250_900_000])
    assert b - a == pytest.approx(2.001, rel=1e-5)
    assert samples.integral_J(p, [0, 2**62]).tolist() == pytest.approx([0.0, p.energy_J[-1]])


def test_what_cannot_be_loaded_is_said(tmp_path):
    with pytest.raises(JournalError):
        samples.load(tmp_path / "nothing")
    tape = stream.started()
    run = tape.run(tmp_path)
    with pytest.raises(RigError, match="rail 0"):
        samples.load(run)
    tape.stream(2)
    other = stream.Tape()
    other.rows = tape.rows
    with pytest.raises(RigError, match="rail 3"):
        samples.load(other.run(tmp_path / "more"), 3)


def test_a_torn_tail_is_told(tmp_path):
    tape = stream.started()
    tape.stream(10)
    run = tape.run(tmp_path)
    with open(run / "rig.bin", "ab") as f:
        f.write(rigbin.encode(1, b"x" * 100, 1)[:-1])
    p = samples.load(run)
    assert len(p.t_ns) == 500 and p.counts["left_bytes"] == 123


def test_damage_that_is_longer_than_what_is_read_at_once(tmp_path, monkeypatch):
    tape = stream.started()
    tape.stream(4)
    run, before = tape.run(tmp_path), len(tape.data())
    tape.stream(6, first_index=200)
    (run / "rig.bin").write_bytes(tape.data()[:before] + bytes(5000) + tape.data()[before:])
    monkeypatch.setattr(samples, "PIECE_BYTES", 1000)
    p = samples.load(run)
    assert len(p.t_ns) == 500 and (p.counts["skipped_bytes"], p.counts["left_bytes"]) == (5000, 0)
    assert sum(second.samples for _, second in samples.Follower(run).seconds(final=True)) == 500


def test_gaps_never_change_the_total_of_a_constant_power(tmp_path):
    """Whatever is lost of 2.5 W, measured + filled is 2.5 W times the time."""
    dice = np.random.default_rng(1)
    tape = stream.started()
    tape.stream(400, current=int(2.5 * W), lose=set(dice.integers(1, 399, 150).tolist()))
    p = loaded(tape, tmp_path)
    assert p.lost == 50 * p.counts["frames_lost"] > 3000
    assert p.energy_measured_J + p.energy_filled_J == pytest.approx(2.5 * 20, rel=1e-5)
    assert p.energy_filled_J == pytest.approx(2.5 * p.lost * 1e-3, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_nonsense_with_a_good_checksum_does_not_raise(seed):
    """Frames altered, cut, doubled, invented: the numbers stay finite, time does not fall, nothing is lost less than 0
    times."""
    dice = random.Random(seed)
    tape = broken_tape(np.random.default_rng(seed))
    rows = []
    for kind, payload, t_ns in tape.rows:
        fate = dice.random()
        if fate < 0.1:
            at = dice.randrange(len(payload))
            payload = payload[:at] + dice.randbytes(1) + payload[at + 1 :]
        elif fate < 0.12:
            payload = payload[: dice.randrange(len(payload))]
        elif fate < 0.14:
            payload = payload[:5] + dice.randbytes(dice.randrange(60))
        rows += [] if 0.14 < fate < 0.2 else [(kind, payload, t_ns)] * (1 + (fate > 0.97))
    decoder = samples.Decoder()
    decoder.feed(rigrecords.decode(b"".join(rigbin.encode(*row) for row in rows)))
    assert 0 in decoder.rails()
    for rail in decoder.rails():
        p = power.assemble(decoder.frames(rail), decoder.boots, decoder.counts, rail)
        energies = decoder.energies()
        power.closure(p, energies[energies["rail"] == rail])
        assert np.isfinite(p.energy_J).all() and (np.diff(p.t_ns) >= 0).all() and (p.gap_lost >= 0).all()


@pytest.mark.parametrize("rails", [1, 3, 4])
def test_the_stated_error_of_a_samples_time_holds_how_late_its_stamp_may_be(tmp_path, rails):
    """Stamps of three rails on one bus were seen 93 us late (host/docs/develop/decisions/stamp-by-age.md)."""
    tape = stream.started(rails=tuple(range(rails)))
    tape.stream(20)
    p = loaded(tape, tmp_path)
    late_ns = p.err_ns - p.clocks[0].bound_ns(p.t_us)
    assert late_ns == pytest.approx(np.full(1000, {1: 25_000, 3: 125_000, 4: 175_000}[rails]), abs=1)
    assert late_ns.min() >= {1: 18_000, 3: 93_000, 4: 112_000}[rails]


def test_power_module_is_importable_without_a_run():
    assert power.assemble(samples.Decoder().frames(0), samples.Decoder().boots).lost == 0
