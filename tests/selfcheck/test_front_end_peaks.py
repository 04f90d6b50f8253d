"""The front end's check: peaks of bursts against what the rail drew, later than any feed of a run lasts."""

import pytest

from selfcheck import front_end as bench


@pytest.mark.slow
def test_a_burst_after_half_a_minute_is_within_its_bar():
    figures = bench.front_end(lasts_s=30)
    assert [figure.met for figure in figures] == [True] * len(figures), figures


def test_a_wrong_peak_is_beyond_it():
    (burst,) = bench.bursts_of(bench.random.Random(bench.SEED), 30)
    at_ns = round(burst.at_s * 1e9) + 150_000
    peaks = lambda amps, volts: bench.fast.Peaks(
        *(bench.np.array([value]) for value in (at_ns - 50_000_000, at_ns + 50_000_000, at_ns, amps, 0)),
        *(0.5, 0.0, 0.0, 0.0, 1.0, 0.0),
        highest_V=bench.np.array([volts]),
    )
    assert bench.off(peaks(burst.amps, burst.volts), burst) == (0, 0)
    for share, bad in ((1.005, False), (1.03, True), (0.97, True)):
        amps, volts = bench.off(peaks(share * burst.amps, share * burst.volts), burst)
        assert (amps > 1) == bad and (100 * volts > bench.VOLTS_PERCENT) == bad
    later = burst._replace(at_s=burst.at_s + 0.001)
    assert bench.off(peaks(burst.amps, burst.volts), later) is None


def test_the_load_changes_in_each_minute():
    bursts = bench.bursts_of(bench.random.Random(1), 600)
    assert len(bursts) == 20 and bursts[-1].at_s < 577
    rows = bench.settings(bench.random.Random(1), bursts, 600)["rail"]["true"]["surges"]
    for burst in bursts:
        drawn = sum(amps for t, amps, _ in rows if t <= burst.at_s)
        assert drawn == pytest.approx(burst.amps)
        assert sum(amps for t, amps, _ in rows if t <= burst.at_s + bench.BURST_s) == pytest.approx(
            burst.amps - burst.more_A
        )
