"""The SIMULATED rail's reader of the drive's power feed, on CPython."""

import pytest
from chips import BOARD, load

feed_reader = load(BOARD / "feed_reader.py")


def make_ring(tmp_path, bins, dilation=1, rail_mV=5000):
    """Feed with {bin: watts}, model time starting at 1 s."""
    from ssdrig.virtual.flash import feed

    path = tmp_path / "feed"
    ring = feed.create(str(path), 10**9, dilation, rail_mV)
    for b, watts in bins.items():
        ring[b % feed.BINS] = b & 0xFFFFFFFF, round(watts * feed.BIN_NS)
    return str(path)


def test_supply_solves_for_the_drive_side_voltage(tmp_path):
    """5 W from 5 V through 25 mOhm: I = (5 - sqrt(25 - 0.5)) / 0.05 = 1.005051 A, V = 4.974874 V, V I = 5 W."""
    rail = feed_reader.Feed(make_ring(tmp_path, dict.fromkeys(range(8), 5.0)), 15, 10_000, 0)
    amps, volts = rail.window(10**9, 10**9 + 540_000, 10**9 + 690_000)
    assert amps == pytest.approx((5 - 24.5**0.5) / 0.05, rel=1e-9)
    assert amps * volts == pytest.approx(5, rel=1e-9)
    assert volts == pytest.approx(5 - amps * 0.025, rel=1e-9)


def test_supply_weighs_bins_by_their_share_of_the_window(tmp_path):
    path = make_ring(tmp_path, {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0})
    rail = feed_reader.Feed(path, 0, 0, 0)  # no resistance: I = P / 5 V
    t = 10**9
    mean_W = (200 * 1 + 250 * 2 + 90 * 3) / 540
    assert rail.window(t + 50_000, t + 590_000, t + 740_000) == pytest.approx((mean_W / 5, 5))
    assert rail.window(t + 250_000, t + 300_000, t + 350_000)[0] == pytest.approx(0.4)
    assert rail.window(t + 250_000, t + 500_000, t + 500_000)[0] == pytest.approx(0.4)


def test_supply_delay_and_dilation(tmp_path):
    path = make_ring(tmp_path, {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}, dilation=10)
    rail = feed_reader.Feed(path, 0, 0, 250_000)
    assert rail.window(10**9 + 5_000_000, 10**9 + 5_540_000, 10**9 + 5_690_000)[0] == pytest.approx(0.4)  # bin 2 - 1


def test_supply_across_the_end_of_the_ring(tmp_path):
    path = make_ring(tmp_path, {65534: 1.0, 65535: 2.0, 65536: 3.0, 65537: 4.0})
    rail = feed_reader.Feed(path, 0, 0, 0)
    t = 10**9 + 65534 * 250_000
    assert rail.window(t, t + 10**6, t + 10**6)[0] == pytest.approx(0.5)


def test_a_feed_of_one_bin_is_the_power_of_now(tmp_path):
    from ssdrig.virtual import cable
    from ssdrig.virtual.flash import feed

    ring = feed.create(str(tmp_path / "feed"), 10**9, bins=1)
    rail = feed_reader.Feed(str(tmp_path / "feed"), 0, 0, 0)
    t = 10**9 + 3600 * 10**9
    assert rail.window(t, t + 540_000, t + 690_000) == (0.0, 5.0)
    for watts in (5.0, 2.5, 0.0):
        cable.fill(ring, watts)
        assert rail.window(t, t + 540_000, t + 690_000) == (pytest.approx(watts / 5), 5.0)
    feed.unlink(str(tmp_path / "feed"))
    assert not (tmp_path / "feed").exists()


def test_dead_drive_draws_nothing_and_the_rail_stands(tmp_path):
    rail = feed_reader.Feed(make_ring(tmp_path, {5: 1.0}), 15, 10_000, 0)
    t = 10**9
    assert rail.window(t, t + 540_000, t + 690_000) == (0.0, 5.0)
    assert rail.window(t - 10**6, t - 500_000, t - 400_000) == (0.0, 5.0)  # before the drive existed


def test_a_ring_that_has_gone_past_is_an_error_and_not_zero_watts(tmp_path):
    rail = feed_reader.Feed(make_ring(tmp_path, {0: 1.0, 65537: 4.0}), 15, 10_000, 0)
    with pytest.raises(feed_reader.FeedLost):
        rail.window(10**9, 10**9 + 540_000, 10**9 + 690_000)


def test_no_feed_is_refused(tmp_path):
    (tmp_path / "feed").write_bytes(bytes(100))
    with pytest.raises(feed_reader.FeedLost):
        feed_reader.Feed(str(tmp_path / "feed"), 15, 10_000, 0)
