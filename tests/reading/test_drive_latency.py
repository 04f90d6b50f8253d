"""Latencies by the drive's own monitor beside those of the host."""

from types import SimpleNamespace

import numpy as np
import pytest
from pages import page

from ssdrig.drive.smart import latency_monitor
from ssdrig.reading import drive_latency
from ssdrig.report import drive_latency as shown

S = 10**9
HEAD = {0: (1, 7), 4: (2, 480), 6: (1, 1), 7: (1, 5), 8: (1, 15), 9: (1, 255), 494: (2, 1)}
HEAD |= {496: (16, int.from_bytes(latency_monitor.GUID, "little"))}


def reading(at_s, reads=0, trims=0, **more):
    fields = HEAD | {60: (4, reads), 36: (4, trims)}  # 63:60 reads from 30 ms, 39:36 trims from 10 ms
    times = {"t_ns": at_s * S, "t_start_ns": at_s * S, "t_end_ns": at_s * S}
    return times | {"latency_monitor": latency_monitor.decode(page(fields)), "unknown": []} | more


def load(path, from_s, to_s, **figures):
    act = SimpleNamespace(path=path, do="load")
    return SimpleNamespace(
        act=act, part=None, t0_ns=from_s * S, t0_s=from_s, t1_s=to_s, k=1, windows={"all": figures or None}
    )


def table(snapshots, rows):
    data = SimpleNamespace(snapshots=snapshots, k=1, axis_s=lambda t_ns: np.array(t_ns) / S)
    return SimpleNamespace(data=data, rows=rows)


def test_load_is_between_the_readings_around_it():
    figures = {"read_lat_max_us": 41_000.0, "read_lat_p999_us": 9000.0, "write_lat_max_us": None}
    run = table([reading(1), reading(5, 2), reading(20, 9), reading(30, 9)], [load("a", 6, 15, **figures)])
    (stretch,) = drive_latency.of(run)
    assert (stretch.steps, stretch.from_s, stretch.to_s) == (("a",), 5, 20)
    assert stretch.drive["counts"]["read"] == [0, 7, 0, 0] and stretch.drive["most_ms"]["write"] == 10
    assert stretch.host["read"] == {"p999_us": 9000.0, "max_us": 41_000.0}
    assert stretch.host["write"] == stretch.host["trim"] == {"p999_us": None, "max_us": None}
    html = shown.section(run)
    assert "<td>7</td>" in html and "30 to 80" in html and "below 10" in html and ">41.0<" in html


def test_loads_between_the_same_readings_are_one_stretch_without_a_percentile():
    rows = [load("a", 2, 4, read_lat_max_us=5.0, read_lat_p999_us=1.0), load("b", 5, 9, read_lat_max_us=7.0)]
    (stretch,) = drive_latency.of(table([reading(1), reading(10)], rows))
    assert stretch.steps == ("a", "b") and stretch.host["read"] == {"p999_us": None, "max_us": 7.0}


def test_load_without_a_reading_on_either_side_has_no_stretch():
    assert drive_latency.of(table([reading(3), reading(10)], [load("a", 2, 4)])) == []
    assert drive_latency.of(table([reading(1)], [load("a", 2, 4)])) == []


def test_wrong_page_is_a_reason_and_none_is_nothing():
    wrong = reading(1, latency_monitor=None, unknown=["other", "log C3h: 00 instead of the GUID <b>"])
    (stretch,) = drive_latency.of(table([wrong], [load("a", 2, 4)]))
    assert stretch.drive["counts"] is None and stretch.drive["why"].startswith("log C3h")
    assert stretch.as_json()["steps"] == []
    assert "&lt;b&gt;" in shown.section(table([wrong], []))
    assert drive_latency.of(table([reading(1, latency_monitor=None)], [load("a", 2, 4)])) == []
    assert shown.section(table([], [])) == ""


@pytest.mark.parametrize(("bounds", "words"), [((None, 10), "below 10"), ((1280, None), "from 1280")])
def test_bounds_in_words(bounds, words):
    assert shown.in_words(*bounds) == words
