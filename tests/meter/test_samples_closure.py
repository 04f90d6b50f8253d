"""Closure: the chip's own energy against the sum of its samples."""

import numpy as np
import pytest
import stream
from sample_tapes import W, loaded

from ssdrig.meter import wire


def with_energy(tape, seconds, watts, oscillator=1.005, lie=1.0, lose=()):
    """Stream with an energy frame every 1000 conversions; the chip's clock is fast: conversions of nominally 1 ms come
    every 1/1.005 ms, and its accumulator believes in the nominal time. Board ticks are whole microseconds."""
    joules, index, t = 0.0, 0, float(tape.t_us)
    for s in range(seconds):
        for k in range(20):
            t_us = np.floor(t + 1000 / oscillator * np.arange(1, 51)).astype(int)
            t += 50_000 / oscillator
            tape.t_us = int(t_us[-1])
            tape.frame(wire.SAMPLES, stream.samples(index, t_us, [25_600] * 50, [watts * W] * 50), lost=(s, k) in lose)
            index += 50
            joules += watts * 0.050 * lie
            tape.ping()
        tape.frame(wire.ENERGY, stream.energy(index, tape.t_us, joules))


def test_closure_takes_the_chip_s_oscillator_out(tmp_path):
    tape = stream.started()
    with_energy(tape, 30, 3)
    c = loaded(tape, tmp_path).closure
    assert c.raw_percent == pytest.approx(100 * (1 / 1.005 - 1), abs=0.002)
    assert c.corrected_percent == pytest.approx(0, abs=0.002)
    assert c.chip_clock_ppm == pytest.approx(5000, abs=10)
    assert c.seconds == pytest.approx(29 / 1.005, rel=1e-5) and c.chip_J == pytest.approx(87, rel=1e-4)


def test_closure_sees_a_host_that_is_wrong(tmp_path):
    tape = stream.started()
    with_energy(tape, 30, 3, lie=1.01)
    assert loaded(tape, tmp_path).closure.corrected_percent == pytest.approx(-0.99, abs=0.01)


def test_closure_over_lost_frames_and_resets(tmp_path):
    tape = stream.started(boot=1)
    with_energy(tape, 10, 3, lose={(2, 5), (4, 19), (9, 19)})  # two of the energy frames have no sample to stand on
    tape.reset(dark_us=300_000)
    tape.frame(wire.HELLO, stream.hello(boot=2))
    with_energy(tape, 10, 2)
    c = loaded(tape, tmp_path).closure
    assert c.corrected_percent == pytest.approx(0, abs=0.005)
    assert c.seconds == pytest.approx((8 + 9) / 1.005, rel=1e-4)


def test_closure_is_not_fooled_by_an_accumulator_that_fell(tmp_path):
    tape = stream.started()
    with_energy(tape, 3, 3)
    tape.frame(wire.ENERGY, stream.energy(3000, tape.t_us, 0.0))
    assert loaded(tape, tmp_path).closure is None


def test_no_closure_without_two_energy_frames(tmp_path):
    tape = stream.started()
    with_energy(tape, 1, 3)
    assert loaded(tape, tmp_path).closure is None
