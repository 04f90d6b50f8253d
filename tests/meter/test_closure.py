"""Closure of a fast rail, whose accumulators are read instead of a sample once a second: against a stream made by hand
from a known power, and through the SIMULATED board."""

import time

import numpy as np
import pytest
import stream
from simboard import REAL_TIME, Board, lent_port, until
from test_rails import W

from ssdrig.meter import samples, wire
from ssdrig.meter.pico.stream import Rig
from ssdrig.runs import journal
from ssdrig.virtual import cable
from ssdrig.virtual.flash import feed

pytestmark = pytest.mark.keeps_time

NOMINAL_US = 84 + 150


def fast_run(tmp_path, watts, seconds=8, oscillator=1.005, lie=1.0, lose=(), before_J=0.0):
    """Conversions of nominally 234 us by a chip whose clock is off; after each second of them the accumulators are read
    instead of the values of one. watts: of the time in s. The chip's energy is that of all conversions, in its own
    time, and of magnitudes. lose: numbers of S frames that do not arrive. before_J: what the register held at `go`."""
    tape = stream.started(conversion_ns=NOMINAL_US * 1000)
    per_second = 1_000_000 // NOMINAL_US
    n = seconds * per_second
    t = tape.t_us + NOMINAL_US / oscillator * np.arange(1, n + 1)
    t_us = np.floor(t).astype(np.int64)
    raw = np.rint(np.array([watts((x - stream.TICK0_US) * 1e-6) for x in t]) * W).astype(int)
    joules = before_J + np.cumsum(np.abs(raw)) / W * NOMINAL_US * 1e-6 * lie
    at = missed = frames = 0
    for end in range(per_second, n + 1, per_second):
        while at < end - 1:
            size = min(50, end - 1 - at)
            tape.t_us = int(t_us[at + size - 1])
            body = stream.samples(
                at, t_us[at : at + size], [25_600] * size, raw[at : at + size].tolist(), missed=missed
            )
            tape.frame(wire.SAMPLES, body, lost=frames in lose)
            frames += 1
            at += size
        tape.ping()
        missed, at = missed + 1, end
        tape.t_us = int(t_us[end - 1])
        tape.frame(wire.ENERGY, stream.energy(end, tape.t_us, joules[end - 1]))
    return samples.load(tape.run(tmp_path)), per_second


def sine(t):
    return 3.0 + 2.0 * np.sin(2 * np.pi * 7.3 * t)


def test_known_energy_closes(tmp_path):
    power, per_second = fast_run(tmp_path, sine)
    c = power.closure
    assert c.corrected_percent == pytest.approx(0, abs=0.005) and c.raw_percent == pytest.approx(
        100 * (1 / 1.005 - 1), abs=0.01
    )
    assert c.chip_clock_ppm == pytest.approx(5000, abs=5)
    assert c.seconds == pytest.approx(7 * per_second * NOMINAL_US * 1e-6 / 1.005, rel=1e-6) and c.instead == 8
    assert power.lost == 7 and power.counts["missed"] == 7  # the last one has no sample behind it
    assert c.chip_J == pytest.approx(3.0 * 7 * per_second * NOMINAL_US * 1e-6, rel=3e-3)


def test_the_chip_counts_magnitudes(tmp_path):
    """A current that flows back lowers the host's energy and raises the chip's."""
    c = fast_run(tmp_path, lambda t: -2.0 if int(3 * t) % 3 else 3.0)[0].closure
    assert c.corrected_percent == pytest.approx(0, abs=0.005)


def test_the_register_may_wrap_between_two_energy_frames(tmp_path):
    """40 bits of 0.4 mJ: after 4 days at 1.3 kW."""
    lsb_J = 16 * 3.2 * stream.CURRENT_LSB_PA * 1e-12
    c = fast_run(tmp_path, sine, before_J=(1 << 40) * lsb_J - 10.0)[0].closure
    assert c.corrected_percent == pytest.approx(0, abs=0.005) and c.chip_J == pytest.approx(c.host_J, rel=0.01)


def test_a_wrong_energy_is_seen(tmp_path):
    assert fast_run(tmp_path, sine, lie=1.01)[0].closure.corrected_percent == pytest.approx(-0.99, abs=0.01)


def test_a_step_right_where_the_accumulators_are_read(tmp_path):
    """The host's ends lie one conversion before the chip's: with a step of 4 W just there, that is 4 W x 234 us of 4.7
    s x 3 W."""

    def step(t):
        return 1.0 if t < 1.0 or 3.0 < t < 4.0 else 5.0

    assert abs(fast_run(tmp_path, step, seconds=6)[0].closure.corrected_percent) < 100 * 2 * 4 * 234e-6 / 12


def test_an_energy_frame_whose_samples_were_lost_is_not_used(tmp_path):
    """Frame 85 of a second (4250 of 4273 conversions read by then) is its last: without it, the accumulators of that
    second stand on nothing; the others still close."""
    frames_per_second = -(-(1_000_000 // NOMINAL_US - 1) // 50)
    power, per_second = fast_run(tmp_path, sine, lose={frames_per_second - 1, 3 * frames_per_second - 1})
    assert power.closure.instead == 6 and power.closure.corrected_percent == pytest.approx(0, abs=0.05)
    assert power.closure.seconds == pytest.approx(6 * per_second * NOMINAL_US * 1e-6 / 1.005, rel=1e-4)


def test_a_rail_with_time_enough_gives_up_nothing(tmp_path):
    from test_samples_closure import with_energy

    tape = stream.started()
    with_energy(tape, 5, 3)
    assert samples.load(tape.run(tmp_path)).closure.instead == 0


def test_the_simulated_board_with_a_fast_rail(tmp_path):
    """A load that changes each 50 ms; the chip's clock 0.5 % fast."""
    ring = feed.create(str(tmp_path / "feed"), time.monotonic_ns())
    for k in range(0, 60_000, 200):
        cable.fill(ring, 1.0 + 3.0 * (k // 200 % 2), range(k, k + 200))
    faults = REAL_TIME | {"noise": 1, "osc_ppm": 5000.0, "rail": {"vbus_us": 84, "vshunt_us": 150, "temp_us": None}}
    with Board(tmp_path, faults=faults, feed_path=tmp_path / "feed") as board, lent_port(board) as port:
        book = journal.create(tmp_path / "runs", {"run": "r"})
        rig = Rig(port, book)
        rig.start()
        until(lambda: rig.live()["samples"] > 3.3e6 / NOMINAL_US)
        rig.stop()
        book.close("complete")
    power = samples.load(book.path)
    assert power.counts["frames_lost"] == 0 and power.closure.instead >= 3
    assert power.closure.instead - power.lost in (0, 1)  # one at the very end has no sample behind it
    assert power.closure.corrected_percent == pytest.approx(0, abs=0.1)
    board_s = (power.t_us[-1] - power.t_us[0]) * 1e-6 / (1 + 15e-6)
    assert (power.index[-1] - power.index[0]) * NOMINAL_US * 1e-6 / board_s == pytest.approx(1.005, abs=2e-5)
    # a busy host knows the board's clock less well, and says by how much
    bar_ppm = 1e-3 * 2 * float(power.err_ns.max()) / power.closure.seconds
    assert power.closure.chip_clock_ppm == pytest.approx(5000, abs=20 + bar_ppm)
    assert power.facts["conversion_ns"] == 1000 * NOMINAL_US
    assert rig.lost() == 0  # shown live: what was given up is not lost
