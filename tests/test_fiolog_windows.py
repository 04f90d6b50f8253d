"""fio's histogram log as seconds, from arrays made by hand: where windows begin, where the job ends, and what no fio
run can have left; each limit from both sides."""

import numpy as np
import pytest
from test_fiolog_limits import side

from ssdrig import fiolog
from ssdrig.fioclock import LATEST_MS, LONGEST_HANG_S
from ssdrig.fiotext import plat_ns

HANG_MS = 1000 * LONGEST_HANG_S


def log(stamps, counts=None, d=1, torn=0) -> tuple:
    """What hist_rows() gives of a log with so many latencies of bin 300 in each row."""
    counts = [10] * len(stamps) if counts is None else counts
    return (
        np.array([[t, d] for t in stamps], np.int64),
        np.array([[i, 300, n] for i, n in enumerate(counts)], np.int64),
        torn,
    )


def last(ios: int, ms: int, held: int = 0) -> dict:
    return side(ios, ms, bins={str(int(plat_ns(300))): held} if held else None)


def sensible(*hists, **more) -> bool:
    try:
        fiolog.from_logs(list(hists), [], [], None, **more)
    except fiolog._Senseless:
        return False
    return True


@pytest.mark.parametrize(
    ("hists", "more", "good"),
    [
        ([log([1005], d=2)], {}, True),
        ([log([1005], d=3)], {}, False),
        ([log([0])], {}, True),
        ([log([-1])], {}, False),
        ([log([LATEST_MS])], {}, True),
        ([log([LATEST_MS + 1])], {}, False),
        ([log([5000, 5000])], {}, True),  # two rows of one completion after a stall
        ([log([5000, 4999])], {}, False),
        # a row covers two seconds at most but for one hang
        ([log([10**6])], {"begun_ms": 10**6 - 2000 - HANG_MS}, True),
        ([log([10**6])], {"begun_ms": 10**6 - 2001 - HANG_MS}, False),
        ([log([10**6 - 1000, 10**6])], {"begun_ms": 10**6 - 4000 - HANG_MS}, True),
        ([log([10**6 - 1000, 10**6])], {"begun_ms": 10**6 - 4001 - HANG_MS}, False),
        # jobs of one run begin within a hang and their own length of each other
        ([log([1000]), log([1000 + 1000 + HANG_MS])], {}, True),
        ([log([1000]), log([1001 + 1000 + HANG_MS])], {}, False),
        ([log([1000, 2000]), log([1000 + 2000 + HANG_MS])], {}, True),
        ([log([10**6])], {"start_ms": 10**6 - 1000 - HANG_MS}, True),
        ([log([10**6])], {"start_ms": 10**6 - 1001 - HANG_MS}, False),
    ],
)
def test_time_stamps_that_make_sense(hists, more, good):
    assert sensible(*hists, **more) == good


@pytest.mark.parametrize(
    ("stamps", "start_ms", "zero_ms", "iops"),
    [
        ([1005, 2005], None, 5, [10, 10]),
        ([1005, 2005], 7, 5, [10, 10]),
        ([1005, 2005], 5, 5, [10, 10]),
        ([2004, 3004], 5, 1004, [10, 10]),
        ([2005, 3005], 5, 5, [0, 10, 10]),  # a whole second later: one without I/O
        ([4205, 5205], 5, 205, [0, 0, 0, 10, 10]),
    ],
)
def test_where_the_first_second_begins(stamps, start_ms, zero_ms, iops):
    found = fiolog.from_logs([log(stamps)], [], [], last(20, stamps[-1] - 5), start_ms)
    assert found.t_ns[0] == zero_ms * 10**6 and found.iops.tolist() == iops and not found.partial
    assert found.zero_seconds == iops.count(0)


@pytest.mark.parametrize(("later_ms", "iops"), [(499, [20, 20]), (501, [10, 20, 10]), (1000, [10, 20, 10])])
def test_jobs_that_began_at_different_times(later_ms, iops):
    hists = [log([1000, 2000]), log([1000 + later_ms, 2000 + later_ms])]
    found = fiolog.from_logs(hists, [], [], last(40, 1000 * len(iops)), 0)
    assert found.iops.tolist() == iops


@pytest.mark.parametrize(
    ("ran_ms", "iops", "partial"),
    [
        (2010, [10, 20], False),
        (2099, [10, 20], False),
        (2100, [10, 19, 1], True),
        (2899, [10, 19, 1], True),
        (2900, [10, 19, 1], False),
        (3099, [10, 19, 1], False),
        (3100, [10, 19, 1, 0], True),
        (4000, [10, 19, 1, 0], False),
    ],
)
def test_a_late_closing_io_makes_a_second_only_if_the_job_went_on(ran_ms, iops, partial):
    found = fiolog.from_logs([log([1005, 2010], [10, 20])], [], [], last(30, ran_ms), 5)
    assert (found.iops.tolist(), found.partial) == (iops, partial)
    assert found.hist.tolist() == [[i, 300, n] for i, n in enumerate(iops) if n]


@pytest.mark.parametrize(
    ("ran_ms", "held", "iops", "in_histogram"),
    [
        (2050, 35, [10, 25], 35),  # the rest of a tail belongs to the last second
        (2400, 35, [10, 20, 5], 35),
        (4400, 35, [10, 20, 5, 0, 0], 35),  # it completed before the next window would have been closed
        (2400, 0, [10, 20, 5], 30),  # counted by the document, but not in its histogram
        (2400, 34, [10, 20, 5], 30),
    ],
)
def test_ios_behind_the_last_row(ran_ms, held, iops, in_histogram):
    found = fiolog.from_logs([log([1005, 2005], [10, 20])], [], [], last(35, ran_ms, held), 5)
    assert found.iops.tolist() == iops and found.hist[:, 2].sum() == in_histogram
    assert found.notes == () and found.totals["ios"] == 35 and found.bw_bytes.sum() == 350


def test_without_a_document_the_log_stands_for_itself():
    found = fiolog.from_logs([log([1005, 2005], [10, 20], torn=7)], [], [], None, block_bytes=512)
    assert found.iops.tolist() == [10, 20] and found.bw_bytes.tolist() == [5120, 10240]
    assert not found.partial and found.torn_bytes == 7 and found.directions == ("write",)
    assert found.notes == ("out.json has no whole document; totals are not known",)
    names = ("ios", "bytes", "lat_sum_ns", "slat_sum_ns", "runtime_ms")
    assert [found.totals[name] for name in names] == [None, None, None, None, 2000]


def test_a_document_of_a_part_of_the_log_gives_the_size_of_an_io():
    """5 I/Os of 10 B, and the log counts 30: 300 B. Two logs, of which one is torn."""
    hists = [log([1005, 2005], [10, 10], torn=3), log([1005, 2005], [5, 5], d=0, torn=4)]
    found = fiolog.from_logs(hists, [], [], last(5, 900), 5)
    assert found.iops.tolist() == [15, 15] and found.bw_bytes.tolist() == [150, 150] and found.torn_bytes == 7
    assert found.directions == ("read", "write") and len(found.notes) == 1
    assert fiolog.from_logs(hists, [], [], last(5, 900), 5, None, "read").iops.tolist() == [5, 5]


def test_a_direction_without_io_has_no_seconds():
    found = fiolog.from_logs([log([1005])], [], [], last(10, 1000), 5, None, "read")
    assert len(found.iops) == 0 and found.source == "logs" and found.hist.shape == (0, 3)


@pytest.mark.parametrize(("ran_ms", "good"), [(3255, True), (3256, False)])
def test_a_log_that_lost_its_end(ran_ms, good):
    """Of 30 I/Os the documents after the log's next window, with a quarter of a second's delay, must have all."""
    tail = [last(25, ran_ms)]
    more = dict(start_ms=0, tail=tail)
    call = lambda *hists: fiolog.from_logs(list(hists), [], [], last(30, 3400), **more)
    if good:
        assert call(log([1005, 2005], [10, 20])).iops.sum() == 30
    else:
        with pytest.raises(fiolog._Senseless, match="ends before"):
            call(log([1005, 2005], [10, 20]))
        assert call(log([1005, 2005], [5, 10]), log([1005, 2005], [5, 10])).iops.sum() == 30  # of several jobs unknown


def test_percentiles_of_documents_are_of_their_second():
    """Two documents a second apart, then none of I/O: each second has its own, one without I/O none."""
    fast, slow = str(int(plat_ns(300))), str(int(plat_ns(500)))
    found = fiolog.from_status(
        [side(10, 1000, bins={fast: 10}), side(10, 2000, bins={fast: 10}), side(30, 3000, bins={fast: 10, slow: 20})],
        0,
        None,
    )
    assert found.iops.tolist() == [10, 0, 20]
    assert found.lat_p50_ns.tolist() == [plat_ns(300), 0, plat_ns(500)]
    assert found.hist.tolist() == [[0, 300, 10], [2, 500, 20]]
