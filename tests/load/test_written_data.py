"""Whether fio's data can be compressed or deduplicated, measured from what fio writes."""

import pytest

from ssdrig.base.errors import LoadError
from ssdrig.load import written_data
from ssdrig.load.written_data import Kind


def test_new_data_cannot_be_compressed_and_compressible_data_can():
    new, half = written_data.measured([Kind(0, False), Kind(50, False)])
    assert new["bytes"] == written_data.BYTES and new["compressed_percent"] >= 99 and new["distinct_percent"] == 100
    assert 40 < half["compressed_percent"] < 65


def test_a_block_that_repeats_is_counted():
    block = bytes(range(256)) * 16
    assert written_data.figures(4 * block)["distinct_percent"] == 25
    assert written_data.figures(4 * block)["compressed_percent"] < 20


def test_a_fio_that_fails_is_named():
    with pytest.raises(LoadError) as error:
        written_data.measured([Kind(0, False)], fio="false")
    assert "exit code 1" in error.value.seen
