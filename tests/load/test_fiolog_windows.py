"""fio's histogram log as seconds, from arrays made by hand: where windows begin, where the job ends, and what no fio
run can have left; each limit from both sides."""

import numpy as np
import pytest
from test_fiolog_limits import side

from ssdrig.load import fiolog, fioseconds, fiostatus
from ssdrig.load.fioclock import LATEST_MS, LONGEST_HANG_S
from ssdrig.load.fiotext import plat_ns

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
    except fioseconds.Senseless:
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
        # documents may all come late, but nothing was done before fio was started
        ([log([10**6 + 1000])], {"start_ms": 10**6 + 1000}, True),
        ([log([10**6 + 1000])], {"start_ms": 10**6 + 1001}, False),
        ([log([10**6 + 1000])], {"start_ms": 10**6 + 20_000, "earliest_ms": 10**6}, True),
        ([log([10**6 + 1000])], {"start_ms": 10**6 + 20_000, "earliest_ms": 10**6 + 1}, False),
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
    seconds = fiolog.from_logs([log(stamps)], [], [], last(20, stamps[-1] - 5), start_ms)
    assert seconds.t_ns[0] == zero_ms * 10**6 and seconds.iops.tolist() == iops and not seconds.partial
    assert seconds.zero_seconds == iops.count(0)


@pytest.mark.parametrize(
    ("later_ms", "ran_ms", "iops"),
    [
        (499, 2000, [20, 20]),
        (501, 2000, [10, 20, 10]),  # the run time is that of the first
        (501, 2501, [10, 20, 10]),
        (501, 3000, [10, 20, 10]),
        (1000, 3000, [10, 20, 10]),
    ],
)
def test_jobs_that_began_at_different_times(later_ms, ran_ms, iops):
    hists = [log([1000, 2000]), log([1000 + later_ms, 2000 + later_ms])]
    seconds = fiolog.from_logs(hists, [], [], last(40, ran_ms), 0)
    assert seconds.iops.tolist() == iops and seconds.totals["ios"] == 40


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
    seconds = fiolog.from_logs([log([1005, 2010], [10, 20])], [], [], last(30, ran_ms), 5)
    assert (seconds.iops.tolist(), seconds.partial) == (iops, partial)
    assert seconds.hist.tolist() == [[i, 300, n] for i, n in enumerate(iops) if n]


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
    seconds = fiolog.from_logs([log([1005, 2005], [10, 20])], [], [], last(35, ran_ms, held), 5)
    assert seconds.iops.tolist() == iops and seconds.hist[:, 2].sum() == in_histogram
    assert seconds.notes == () and seconds.totals["ios"] == 35 and seconds.bw_bytes.sum() == 350


@pytest.mark.parametrize("late_ms", [0, 700, 999])
def test_a_job_whose_rows_all_come_late_is_whole(late_ms):
    """Seen beside other work: at 30 I/Os a second each row was closed 0.6 s late, and a whole fill was refused."""
    start_ms = 10**6
    stamps = [start_ms + late_ms + 1000 * i for i in (1, 2, 3)]
    made = fiolog.from_logs([log(stamps)], [], [], last(35, 3400), start_ms=start_ms, start_error_ms=5)
    assert (made.totals["ios"], int(made.iops.sum())) == (35, 35)
    short = fiolog.from_logs([log(stamps)], [], [], last(35, 2899), start_ms=start_ms, start_error_ms=5)
    assert short.totals["ios"] is None  # three seconds are in the log


def test_without_a_document_the_log_stands_for_itself():
    seconds = fiolog.from_logs([log([1005, 2005], [10, 20], torn=7)], [], [], None, block_bytes=512)
    assert seconds.iops.tolist() == [10, 20] and seconds.bw_bytes.tolist() == [5120, 10240]
    assert not seconds.partial and seconds.torn_bytes == 7 and seconds.directions == ("write",)
    assert seconds.notes == ("out.json has no whole document; totals are not known",)
    names = ("ios", "bytes", "lat_sum_ns", "slat_sum_ns", "runtime_ms")
    assert [seconds.totals[name] for name in names] == [None, None, None, None, 2000]


def test_a_document_of_a_part_of_the_log_gives_the_size_of_an_io():
    """5 I/Os of 10 B, and the log counts 30: 300 B. Two logs, of which one is torn."""
    hists = [log([1005, 2005], [10, 10], torn=3), log([1005, 2005], [5, 5], d=0, torn=4)]
    seconds = fiolog.from_logs(hists, [], [], last(5, 900), 5)
    assert seconds.iops.tolist() == [15, 15] and seconds.bw_bytes.tolist() == [150, 150] and seconds.torn_bytes == 7
    assert seconds.directions == ("read", "write") and len(seconds.notes) == 1
    assert fiolog.from_logs(hists, [], [], last(5, 900), 5, None, "read").iops.tolist() == [5, 5]


def test_a_direction_without_io_has_no_seconds():
    seconds = fiolog.from_logs([log([1005])], [], [], last(10, 1000), 5, None, "read")
    assert len(seconds.iops) == 0 and seconds.source == "logs" and seconds.hist.shape == (0, 3)


@pytest.mark.parametrize(("ran_ms", "good"), [(3255, True), (3256, False)])
def test_a_log_that_lost_its_end(ran_ms, good):
    """Of 30 I/Os the documents after the log's next window, with a quarter of a second's delay, must have all."""
    tail = [last(25, ran_ms)]
    more = dict(start_ms=5, earliest_ms=5, tail=tail)
    call = lambda *hists, **other: fiolog.from_logs(list(hists), [], [], last(30, 3400), **more | other)
    if good:
        assert call(log([1010, 2010], [10, 15])).iops.sum() == 30
    else:
        with pytest.raises(fioseconds.Senseless, match="ends before"):
            call(log([1010, 2010], [10, 15]))
        assert call(log([1010, 2010], [10, 16])).iops.sum() == 30  # the document is from before the last row
        assert call(log([1010, 2010], [10, 15]), earliest_ms=4).iops.sum() == 30  # the job may have begun then
        assert call(log([1010, 2010], [5, 10]), log([1010, 2010], [5, 10])).iops.sum() == 30  # of several jobs unknown


def test_percentiles_of_documents_are_of_their_second():
    """Two documents a second apart, then none of I/O: each second has its own, one without I/O none."""
    fast, slow = str(int(plat_ns(300))), str(int(plat_ns(500)))
    seconds = fiostatus.from_status(
        [side(10, 1000, bins={fast: 10}), side(10, 2000, bins={fast: 10}), side(30, 3000, bins={fast: 10, slow: 20})],
        0,
        None,
    )
    assert seconds.iops.tolist() == [10, 0, 20]
    assert seconds.lat_p50_ns.tolist() == [plat_ns(300), 0, plat_ns(500)]
    assert seconds.hist.tolist() == [[0, 300, 10], [2, 500, 20]]


# ---- latency of the seconds of a log


def lat_log(*rows, d=1) -> np.ndarray:
    return np.array([[t, ns, d] for t, ns in rows], np.int64).reshape(-1, 3)


def test_the_lat_log_gives_the_mean_where_no_closing_io_was_moved():
    """The second row closed late, so seconds 1 and 2 have the histogram's mean and the time before submission."""
    hists, lat = [log([1005, 2010], [10, 20])], lat_log((1005, 7777), (2005, 8888), (2100, 9999))
    bare = float(plat_ns(300))
    seconds = fiolog.from_logs(hists, [lat], [], last(30, 2900), 5)
    assert seconds.iops.tolist() == [10, 19, 1] and seconds.lat_mean_ns.tolist() == [7777, bare, bare]
    slat = lat_log((1005, 100), (2005, 200), (3005, 300))
    seconds = fiolog.from_logs(hists, [lat], [slat], last(30, 2900), 5)
    assert seconds.lat_mean_ns.tolist() == [7777, bare + 200, bare + 300]
    seconds = fiolog.from_logs(
        [log([1005, 2010], [10, 20], d=0)], [lat], [slat], last(30, 2900), 5
    )  # another direction's
    assert seconds.lat_mean_ns.tolist() == [bare, bare, bare]


def test_a_second_without_io_has_no_mean():
    seconds = fiolog.from_logs(
        [log([1005, 2005], [10, 0])], [lat_log((2005, 5))], [lat_log((1005, 9))], last(10, 2000), 5
    )
    assert seconds.iops.tolist() == [10, 0] and seconds.lat_mean_ns.tolist() == [plat_ns(300) + 9, 0]


def test_the_first_row_may_be_the_late_one():
    seconds = fiolog.from_logs([log([1205, 2005])], [], [], last(20, 2000))
    assert seconds.t_ns[0] == 5_000_000 and seconds.iops.tolist() == [9, 11]


def test_jobs_in_which_a_row_has_several_bins_are_not_longer():
    heads, cells, torn = log([1000])
    wide = (heads, np.concatenate([cells, cells + (0, 1, 0)]), torn)
    assert sensible(wide, log([2000 + HANG_MS])) and not sensible(wide, log([2001 + HANG_MS]))


def test_one_io_is_a_whole_second():
    seconds = fiolog.from_logs([log([1005], [1])], [], [], last(1, 1000), 5)
    assert seconds.lat_p50_ns.tolist() == seconds.lat_p999_ns.tolist() == seconds.lat_mean_ns.tolist() == [plat_ns(300)]
    assert seconds.bw_bytes.tolist() == [10] and seconds.zero_seconds == 0
    assert fiolog.from_logs([log([1005], [1])], [], [], None).bw_bytes.tolist() == [0]  # of a size that is not known


def test_the_row_nearest_each_second():
    rows = lat_log((1000, 10), (2000, 20), (3000, 30))
    assert fiolog._nearest(rows, 0, 3).tolist() == [10, 20, 30] and fiolog._nearest(rows[1:], 0, 3).tolist() == [
        20,
        20,
        30,
    ]
    assert fiolog._nearest(rows, 500, 3).tolist() == [10, 20, 30]  # of two that are as near the earlier


# ---- seconds of documents

FAST, SLOW = (str(int(plat_ns(i))) for i in (300, 500))


def status(*rows) -> fioseconds.Seconds:
    """Seconds of documents, each (I/Os, ms, fast ones, slow ones)."""
    documents = []
    for ios, ms, *held in rows:
        documents.append(side(ios, ms, bins={key: n for key, n in zip((FAST, SLOW), held, strict=False) if n}))
    return fiostatus.from_status(documents, 0, None)


def test_counts_of_documents_to_the_io():
    assert status((1_500_000, 1500)).iops.tolist() == [10**6, 500_000]
    seconds = status((1, 1000))
    assert seconds.iops.tolist() == [1] and seconds.lat_mean_ns.tolist() == [1000] and seconds.torn_bytes == 0
    seconds = status((1, 1400))  # 1000 ns spread over 1.4 s, and the I/O in the first second
    assert seconds.iops.tolist() == [1, 0] and seconds.lat_mean_ns.tolist() == [714, 0]
    assert status((10, 1500)).iops.tolist() == [7, 3]
    assert status((10, 1501)).iops.tolist() == [10, 0]  # a pause from the start


@pytest.mark.parametrize("ios", [10**12, 3])
def test_one_document_whose_count_is_damaged_is_left_out(ios):
    """One that was too high became the load's total, and all behind it were left out."""
    seconds = status((10, 1000), (ios, 2000), (30, 3000), (40, 4000))
    assert seconds.iops.tolist() == [10, 20, 0, 10] and seconds.totals["ios"] == 40
    assert seconds.notes == ("1 documents that do not follow the one before were not used",)


def test_documents_before_the_first_io_may_run_backwards():
    """Of threads that begin one after the other; seen with fio 3.33 on a busy host, where it ended the load."""
    seconds = status((0, 1279), (0, 858), (10, 1877), (20, 2900))
    assert seconds.notes == () and seconds.totals["ios"] == 20 and int(seconds.iops.sum()) == 20
    seconds = status((0, 1279), (10, 1000), (20, 2000))
    assert seconds.notes == () and seconds.iops.tolist() == [10, 10]
    assert status((5, 1279), (5, 858), (10, 1877)).notes  # with I/O it is damage


def test_more_seconds_than_two_documents_explain():
    longest = 1000 * (4 + LONGEST_HANG_S) + 100
    assert len(status((5, 1000), (9, longest)).iops) == 4 + LONGEST_HANG_S
    with pytest.raises(fioseconds.Senseless):
        status((5, 1000), (9, longest + 1))


@pytest.mark.parametrize(
    ("rows", "p50"),
    [
        ([(10, 1000, 10), (30, 4000, 10, 20)], [300, 500, None, None]),  # all of a pause is in its first second
        ([(10, 400, 10), (40, 1000, 10, 30)], [500]),  # of the two documents around the middle
        ([(10, 600, 10), (40, 1000, 10, 30)], [300]),
        ([(10, 1000, 10), (20, 2000, 20), (30, 2400, 20, 10)], [300, 300, 500]),  # shorter than half a second
        ([(10, 1000, 10), (20, 2000, 20), (20, 2400)], [300, 300, None]),
        ([(10, 1000, 10), (20, 2000, 5, 15)], [300, 300]),  # a histogram in which a count fell
        ([(1, 1000, 1)], [300]),
    ],
)
def test_which_documents_histogram_a_second_has(rows, p50):
    assert status(*rows).lat_p50_ns.tolist() == [0 if i is None else plat_ns(i) for i in p50]


def test_percentiles_of_documents_count_each_io_once():
    assert status((100, 1000, 99, 1)).lat_p99_ns.tolist() == [plat_ns(300)]
    assert status((100, 1000, 98, 2)).lat_p99_ns.tolist() == [plat_ns(500)]


def test_a_tail_of_documents_is_in_the_last_second():
    seconds = status((10, 1000, 10), (20, 2000, 20), (30, 2100, 20, 10))
    assert seconds.iops.tolist() == [10, 20] and seconds.hist.tolist() == [[0, 300, 10], [1, 300, 10], [1, 500, 10]]


def test_a_minute_is_counted_from_the_document_before():
    seconds = status((10, 60_000, 10), (30, 61_000, 10, 20))
    assert seconds.lat_p50_ns[[0, 60]].tolist() == [plat_ns(300), plat_ns(500)]


def test_nothing_read_is_nothing():
    seconds = fiostatus.from_status([], 5, None)
    assert len(seconds.t_ns) == seconds.torn_bytes == seconds.zero_seconds == 0 and not seconds.partial
