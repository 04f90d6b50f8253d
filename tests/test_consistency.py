import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdrig.errors import UsageError
from ssdrig.plan import consistency

GIB = 1 << 30


@pytest.mark.parametrize("raw_gib, tested_gb", [(128, 103.08), (256, 206.16), (512, 412.32), (1024, 824.63)])
def test_25_percent_means_three_quarters_of_raw_nand(raw_gib, tested_gb):
    raw = raw_gib * GIB
    tested = consistency.tested_bytes(raw * 93 // 100, raw, 25)
    assert tested / 1e9 == pytest.approx(tested_gb, abs=0.005)
    assert tested % consistency.MIB == 0


def test_published_over_provisioning_figures_come_out():
    # P400m 200 GB on 336 GiB of NAND is called 44.6 %, M500DC 800 GB on 1024 GiB 27.2 %
    assert 100 * (1 - 200e9 / (336 * GIB)) == pytest.approx(44.6, abs=0.05)
    assert consistency.tested_bytes(200_000_000_000, 336 * GIB, 44.6) <= 200_000_000_000
    with pytest.raises(UsageError, match="own 44.6 %"):
        consistency.tested_bytes(200_000_000_000, 336 * GIB, 44.0)


def test_less_than_the_drives_own_is_refused():
    with pytest.raises(UsageError, match="own 6.9 % of raw NAND"):
        consistency.tested_bytes(256_000_000_000, 256 * GIB, 5)


def test_nothing_left_is_refused():
    with pytest.raises(UsageError, match="at least 64 MiB"):
        consistency.tested_bytes(GIB, GIB + 1, 99)


def test_defaults_follow_the_reviews():
    p = consistency.plan(240_000_000_000, 256 * GIB, None, 2000, None, None, 1)
    assert (p.zoom_s, p.smart_interval_s, p.block_bytes, p.queue_depth, p.fill_block_bytes) == (
        1400,
        60,
        4096,
        32,
        131072,
    )
    assert p.tested_bytes == 240_000_000_000 // consistency.MIB * consistency.MIB


@pytest.mark.parametrize("duration, zoom", [(3, None), (60, 59), (60, -1)])
def test_durations_that_do_not_fit_are_refused(duration, zoom):
    with pytest.raises(UsageError):
        consistency.plan(GIB, 2 * GIB, None, duration, zoom, None, 1)


@given(st.integers(16, 400) | st.integers(256, 1 << 20), st.floats(0, 60))
def test_tested_range_is_never_larger_than_asked(raw_mib, op):
    raw = raw_mib * consistency.MIB
    try:
        tested = consistency.tested_bytes(raw, raw, op)
    except UsageError:
        assert raw * (1 - op / 100) < 65 * consistency.MIB
    else:
        assert raw * (1 - op / 100) - consistency.MIB <= tested <= raw * (1 - op / 100)


def test_an_estimate_is_a_range_and_a_bound():
    """1 TB over SATA and NVMe, 2000 s: by hand."""
    p = consistency.plan(1_000_000_000_000, None, None, 2000, None, None, 1)
    sata = consistency.estimate(p, "SATA")
    assert sata.host_s == pytest.approx((p.tested_bytes / 540e6 + 2000, p.tested_bytes / 150e6 + 2005))
    assert sata.written_bytes == (p.tested_bytes + 2000 * 2000 * 4096, p.tested_bytes + 2000 * 60_000 * 4096)
    assert sata.most_bytes == consistency.most_written_bytes(p, "SATA") == p.tested_bytes + 800_000_000_000
    assert consistency.most_load_bytes(p, "SATA") == 800_000_000_000
    nvme, settled = (
        consistency.estimate(x, "NVMe", 4)
        for x in (p, consistency.plan(10**12, None, None, 2000, None, None, 1, settle=True, idle_s=60))
    )
    assert nvme.host_s[0] == pytest.approx(4 * (p.tested_bytes / 7e9 + 2000))
    assert settled.host_s[1] - nvme.host_s[1] == pytest.approx(4 * 360)
    for kind in (*consistency.SPEEDS, "NVMe"):
        found = consistency.estimate(p, kind)
        assert found.host_s[0] < found.host_s[1]
        assert found.written_bytes[0] < found.written_bytes[1] <= found.most_bytes
