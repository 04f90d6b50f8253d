"""Energy between two readings of a RAPL counter."""

import pytest

from ssdrig.base import rapl

RANGE_UJ = 262_143_328_850  # of a Xeon


@pytest.mark.parametrize(
    ("first_uJ", "last_uJ", "lasted_s", "spent_uJ"),
    [
        (0, 0, 1, 0),
        (5, 200_000_005, 1, 200_000_000),
        (RANGE_UJ - 100, 199_999_900, 1, 200_000_000),  # it wrapped
        (200_000_000, 5, 1, None),  # it was reset: 262 kW is no processor
        (100_000_000_000, 0, 10, None),
        (RANGE_UJ + 1, 5, 1, None),
        (1000, 900, 0.001, None),
    ],
)
def test_a_wrap_is_energy_and_a_new_begin_is_not(first_uJ, last_uJ, lasted_s, spent_uJ):
    assert rapl.spent_uJ(first_uJ, last_uJ, RANGE_UJ, round(lasted_s * 1e9)) == spent_uJ


def test_no_range():
    assert rapl.spent_uJ(0, 1, 0, 10**9) is None
