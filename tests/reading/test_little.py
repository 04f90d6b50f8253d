"""reading/little.py: Little's check of whole loads, those whose threads end one after the other included, and where
it cannot be made."""

from types import SimpleNamespace

import pytest

from ssdrig.load import fiotext
from ssdrig.reading import little, table
from ssdrig.report import little as page


def load(threads_s, depth, latency_ms, lost=0.0, user=0.0):
    """fio's totals of threads that ran so many seconds, each with `depth` I/Os of this latency under way but for the
    share `lost` of the time."""
    ms = [1000 * s for s in threads_s]
    lat_sum_ns = sum(ms) * depth * (1 - lost) * 1e6
    side = {"total_ios": round(lat_sum_ns / 1e6 / latency_ms), "runtime": round(max(ms))}
    side |= {"clat_ns": {"N": side["total_ios"]}, "lat_ns": {"mean": lat_sum_ns / side["total_ios"]}}
    job = {"job_runtime": round(sum(ms)), "usr_cpu": user, "sys_cpu": 20.0, "write": side}
    return fiotext.totals({"jobs": [job]})


def of(totals, depth, threads):
    return little.of_load(totals, depth * threads, threads)


def test_threads_that_end_one_after_the_other_change_nothing():
    """By the longest of them 12.5 % would be missing."""
    law = of(load([3.0, 3.5, 3.5, 4.0], 32, 2.0), 32, 4)
    assert law.in_flight == pytest.approx(128, rel=1e-6) and abs(law.error_percent) < 1e-3 and law.why is None


@pytest.mark.parametrize(("lost", "percent"), [(0.03, -3.0), (-0.05, 5.0)])
def test_what_is_off_is_off(lost, percent):
    assert of(load([10.0] * 4, 32, 2.0, lost), 32, 4).error_percent == pytest.approx(percent, abs=1e-3)


def test_the_end_of_a_short_load_leaves_nothing_to_check():
    """128 I/Os of 0.33 s within 2.3 s; one at a time a thread ends with its last I/O."""
    law = of(load([2.33] * 4, 32, 330.0, 0.07), 32, 4)
    assert law.error_percent is None and law.end_percent == pytest.approx(6.9, abs=0.1)
    assert "it lasted 7 mean latencies, so that its end may take 6.9 %" in law.why and "fio" not in law.why
    assert of(load([2.33], 1, 330.0), 1, 1).why is None


def test_fio_counts_whole_milliseconds():
    """Seen of one read that woke a drive: 1.54 I/Os in flight, for its 1.5 ms were 1."""
    law = of(load([0.001], 1, 1.54, -0.54), 1, 1)
    assert law.error_percent is None and law.in_flight == pytest.approx(1.54)
    assert "fio's time, in whole ms, may be off by 100.0 %" in law.why and "own work" not in law.why
    assert of(load([0.05], 1, 0.1, 0.02), 1, 1).error_percent is None
    assert of(load([0.2], 1, 0.1, 0.02), 1, 1).why is None


def test_fios_own_work_between_two_ios_is_no_time_of_the_drive():
    """Of a queue it takes one slot at a time."""
    law = of(load([60.0], 1, 0.1, 0.04, user=6.0), 1, 1)
    assert law.error_percent is None and law.in_flight == pytest.approx(0.96)
    assert "fio's own work between two I/Os may take 6.0 % of the time" in law.why
    assert of(load([60.0], 32, 0.1, user=6.0), 32, 1).why is None
    assert of(load([60.0], 1, 10.0, user=0.5), 1, 1).why is None


def test_a_document_without_threads_or_io():
    totals = load([4.0], 32, 1.0) | {"threads_ms": 0, "user_percent": None}
    assert of(totals, 32, 1).in_flight == pytest.approx(32, rel=1e-6)
    assert of(fiotext.totals(None), 32, 1) is None


def row(name, qd, error, note=""):
    keys = {"qd": qd, "threads": 1}
    return SimpleNamespace(
        act=SimpleNamespace(label=name, keys=keys),
        round=None,
        state="done",
        windows={"all": {"littles_qd": 0.9 * qd, "littles_error_percent": error}},
        notes=[note],
    )


def test_what_is_not_checked_counts_as_neither_and_says_why():
    rows = [
        row("a", 32, -0.5),
        row("b", 1, None, "littles_error_percent: not checked: too <short>"),
        row("c", 4, -10.0),
    ]
    assert little.summary(rows) == {
        **{"limit_percent": 2, "loads": 2, "within": 1, "worst_percent": -10.0, "not_checked": 1}
    }
    assert "1 of 2 loads of a closed loop within 2 %, the worst −10.00 % off; 1 not checked" in little.words(rows)
    text = page.section(rows)
    assert "1 beyond 2 %" in text and "1 not checked" in text and "too &lt;short&gt;" in text
    alone = little.words(rows[1:2])
    assert "0 of 0 loads" in alone and "worst" not in alone and "warn" not in page.section(rows[1:2])


def test_a_write_that_is_flushed_is_no_closed_loop():
    """fio's latency is that of the write alone: seen as 82 % off."""
    keys = {"qd": 1, "threads": 4, "engine": "auto"}
    asked = [
        table.method_of(SimpleNamespace(do="load", keys=keys | more, range_bytes=1))["queue_depth"]
        for more in ({"sync": "none"}, {"sync": "each"}, {"sync": "flush"}, {"off": 5.0})
    ]
    assert asked == [4, 4, None, None]
