import pytest

from ssdrig.errors import UsageError
from ssdrig.plan import consistency

MIB, GIB = 1 << 20, 1 << 30


def test_defaults_follow_the_reviews():
    p = consistency.plan(240_000_000_000, 256 * GIB, None, 2000, None, None, 1)
    assert (p.zoom_s, p.smart_interval_s, p.block_bytes, p.queue_depth, p.fill_block_bytes) == (
        1400,
        60,
        4096,
        32,
        131072,
    )
    assert p.tested_bytes == 240_000_000_000 // MIB * MIB


@pytest.mark.parametrize("duration, zoom", [(3, None), (60, 59), (60, -1)])
def test_durations_that_do_not_fit_are_refused(duration, zoom):
    with pytest.raises(UsageError):
        consistency.plan(GIB, 2 * GIB, None, duration, zoom, None, 1)


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
