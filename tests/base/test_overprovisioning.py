import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.base import overprovisioning
from ssdrig.base.errors import UsageError
from ssdrig.base.overprovisioning import MIB

GIB = 1 << 30


@pytest.mark.parametrize("raw_gib, tested_gb", [(128, 103.08), (256, 206.16), (512, 412.32), (1024, 824.63)])
def test_25_percent_means_three_quarters_of_raw_nand(raw_gib, tested_gb):
    raw = raw_gib * GIB
    tested = overprovisioning.tested_bytes(raw * 93 // 100, raw, 25)
    assert tested / 1e9 == pytest.approx(tested_gb, abs=0.005)
    assert tested % MIB == 0


def test_published_over_provisioning_figures_come_out():
    # P400m 200 GB on 336 GiB of NAND is called 44.6 %, M500DC 800 GB on 1024 GiB 27.2 %
    assert 100 * (1 - 200e9 / (336 * GIB)) == pytest.approx(44.6, abs=0.05)
    assert overprovisioning.tested_bytes(200_000_000_000, 336 * GIB, 44.6) <= 200_000_000_000
    with pytest.raises(UsageError, match="own 44.6 %"):
        overprovisioning.tested_bytes(200_000_000_000, 336 * GIB, 44.0)


def test_less_than_the_drives_own_is_refused():
    with pytest.raises(UsageError, match="own 6.9 %"):
        overprovisioning.tested_bytes(256_000_000_000, 256 * GIB, 5)


def test_nothing_left_is_refused():
    for least in (MIB, 64 * MIB):
        with pytest.raises(UsageError, match=f"at least {least // MIB} MiB left"):
            overprovisioning.tested_bytes(GIB, 50 * MIB, 99, least)
    assert overprovisioning.tested_bytes(GIB, 100 * MIB, 99, MIB) == MIB


@settings(max_examples=50)
@given(st.integers(16, 400) | st.integers(256, 1 << 20), st.floats(0, 60))
def test_tested_range_is_never_larger_than_asked(raw_mib, op):
    raw = raw_mib * MIB
    try:
        tested = overprovisioning.tested_bytes(raw, raw, op, 64 * MIB)
    except UsageError:
        assert raw * (1 - op / 100) < 65 * MIB
    else:
        assert raw * (1 - op / 100) - MIB <= tested <= raw * (1 - op / 100) + 1


def test_over_provisioning_is_a_share_of_raw_nand():
    raw = 1000 << 20
    assert overprovisioning.tested_bytes(900 << 20, raw, None) == 900 << 20
    assert overprovisioning.tested_bytes(900 << 20, raw, 25) == 750 << 20
    assert overprovisioning.tested_bytes(900 << 20, raw, 25.01) == 749 << 20  # down to a whole MiB
    assert overprovisioning.tested_bytes(900 << 20, raw, 10) == 900 << 20
    for less_than_its_own in (9, 0, -1, 100):
        with pytest.raises(UsageError):
            overprovisioning.tested_bytes(900 << 20, raw, less_than_its_own)


def test_a_share_that_floats_cannot_hold_is_not_a_MiB_short():
    """1000 MiB x (1 - 0.3) is 1e-7 bytes below 700 MiB in doubles."""
    assert overprovisioning.tested_bytes(1000 * MIB, 1000 * MIB, 30) == 700 * MIB
