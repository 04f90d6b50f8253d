"""For tests of the run folder."""

import pytest

from ssdrig.runs import journal

HEADER = {
    "method": {"name": "consistency"},
    "drive": {"preset": "sata-tlc"},
    "started": {"t_ns": 5, "utc_ns": 1_795_177_507_894_000_000},
}


@pytest.fixture
def book(tmp_path):
    book = journal.create(tmp_path, HEADER)
    yield book
    book.close("failed", "test over", 1)
