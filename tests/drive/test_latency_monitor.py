"""Log C3h, written by the byte addresses of the OCP Datacenter NVMe SSD Specification 2.0, 4.8.9."""

import pytest
from pages import page

from ssdrig.base.errors import DriveError
from ssdrig.drive.smart import counters, latency_monitor

# 0 status; 3:2 timer; 5:4 its threshold (40 h); 6 to 9 thresholds 10, 30, 80, 1280 ms; 495:494 version; 511:496 GUID
GUID = bytes.fromhex("927ac08cd0846c9c7043e6d4585ed485")
HEAD = {0: (1, 7), 2: (2, 3), 4: (2, 480), 6: (1, 1), 7: (1, 5), 8: (1, 15), 9: (1, 255), 10: (2, 0xFFF), 494: (2, 1)}
HEAD |= {496: (16, int.from_bytes(GUID, "little"))}
# 47:44 read, 43:40 write, 39:36 trim of bucket 0; 63:60 read of 1; 91:88 write of 3
FIRST = HEAD | {44: (4, 100), 40: (4, 7), 36: (4, 2), 60: (4, 5), 88: (4, 1)}
STATIC = {252: (4, 9), 248: (4, 8), 244: (4, 6)}  # 255:252 read, 251:248 write, 247:244 trim of bucket 0


def reading(fields):
    return latency_monitor.decode(page(fields))


def test_fields_lie_where_the_specification_has_them():
    stamps = {184: (8, 11), 176: (8, 12), 168: (8, 13), 96: (8, 14)}  # bucket 0: read, write, trim; bucket 3: trim
    measured = {214: (2, 21), 212: (2, 22), 210: (2, 23), 192: (2, 24)}
    figures = reading(FIRST | STATIC | stamps | measured)
    assert (figures["enabled"], figures["timer"], figures["timer_threshold"], figures["version"]) == (True, 3, 480, 1)
    assert figures["thresholds_ms"] == [10, 30, 80, 1280]
    assert figures["counters"] == {"read": [100, 5, 0, 0], "write": [7, 0, 0, 1], "trim": [2, 0, 0, 0]}
    assert [of[0] for of in figures["static_counters"].values()] == [9, 8, 6]
    assert [of[0] for of in figures["stamps"].values()] == [11, 12, 13] and figures["stamps"]["trim"][3] == 14
    assert [of[0] for of in figures["measured_ms"].values()] == [21, 22, 23] and figures["measured_ms"]["trim"][3] == 24
    assert figures["measured_ms"]["read"][1:] == [None, None, None]


def test_measured_latency_that_is_not_supported_is_unknown():
    assert reading(FIRST | {0: (1, 3), 214: (2, 21)})["measured_ms"]["read"] == [None] * 4


@pytest.mark.parametrize("wrong", [b"", bytes(512), page(FIRST | {496: (16, 1)}), page(FIRST)[:511], page(FIRST) * 2])
def test_another_page_is_refused(wrong):
    with pytest.raises(DriveError):
        latency_monitor.decode(wrong)


def test_counts_and_bounds_between_two_readings():
    last = FIRST | {44: (4, 130), 60: (4, 6), 208: (2, 45), 40: (4, 9)}
    figures = latency_monitor.between(reading(FIRST), reading(last), 600)
    assert figures["counts"] == {"read": [30, 1, 0, 0], "write": [2, 0, 0, 0], "trim": [0, 0, 0, 0]}
    assert figures["least_ms"] == {"read": 45, "write": 10, "trim": None}  # 209:208: measured, read of bucket 1
    assert figures["most_ms"] == {"read": 80, "write": 30, "trim": 10} and figures["why"] is None


def test_slowest_bucket_has_no_upper_bound():
    figures = latency_monitor.between(reading(FIRST), reading(FIRST | {88: (4, 2)}), 600)
    assert (figures["least_ms"]["write"], figures["most_ms"]["write"]) == (1280, None)


def test_measured_latency_of_before_the_first_reading_bounds_nothing():
    old = {208: (2, 70), 160: (8, 5)}
    figures = latency_monitor.between(reading(FIRST | old), reading(FIRST | old | {60: (4, 6)}), 600)
    assert (figures["least_ms"]["read"], figures["most_ms"]["read"]) == (30, 80)
    figures = latency_monitor.between(reading(FIRST | old), reading(FIRST | old | {60: (4, 6), 160: (8, 6)}), 600)
    assert figures["least_ms"]["read"] == 70
    lie = {60: (4, 6), 208: (2, 60_000)}  # longer than its bucket
    assert latency_monitor.between(reading(FIRST), reading(FIRST | lie), 600)["least_ms"]["read"] == 30


def test_measured_latency_that_is_not_reported_or_was_left_from_before_bounds_nothing():
    slowest = FIRST | {92: (4, 1)}  # 95:92: read of bucket 3, without an upper bound
    for odd in ({196: (2, 0xFFFF)}, {196: (2, 0xFFFF), 112: (8, (1 << 64) - 1)}):  # 197:196: measured, read of bucket 3
        figures = latency_monitor.between(reading(FIRST), reading(slowest | odd), 600)
        assert (figures["least_ms"]["read"], figures["most_ms"]["read"]) == (1280, None)
    left = {196: (2, 9000)}  # the drive did not clear it with its bucket
    figures = latency_monitor.between(reading(FIRST | left), reading(slowest | left), 600)
    assert figures["least_ms"]["read"] == 1280
    assert latency_monitor.between(reading(FIRST), reading(slowest | left), 600)["least_ms"]["read"] == 9000


def test_timer_that_began_again_without_new_static_buckets_is_a_reason():
    """Cleared with what the static buckets had already, or a timer that was set: the counts differ by these."""
    static = {252: (4, 100), 248: (4, 7), 244: (4, 2), 268: (4, 5), 296: (4, 1)}
    figures = latency_monitor.between(reading(FIRST | static), reading(FIRST | static | {2: (2, 0), 44: (4, 101)}), 600)
    assert figures["why"] and figures["counts"] is None
    figures = latency_monitor.between(reading(HEAD), reading(HEAD | {2: (2, 0), 44: (4, 9)}), 600)  # nothing before
    assert figures["counts"]["read"] == [9, 0, 0, 0]


def test_buckets_that_were_cleared_once_are_added_up():
    static = {252: (4, 110), 248: (4, 7), 244: (4, 2), 268: (4, 5), 296: (4, 1)}  # 299:296 write of bucket 3
    last = HEAD | static | {2: (2, 0), 44: (4, 3), 36: (4, 1)}
    figures = latency_monitor.between(reading(FIRST), reading(last), 600)
    assert figures["counts"] == {"read": [13, 0, 0, 0], "write": [0, 0, 0, 0], "trim": [1, 0, 0, 0]}


@pytest.mark.parametrize(
    ("change", "elapsed_s"),
    [
        ({0: (1, 6)}, 600),  # off
        ({7: (1, 6)}, 600),
        ({4: (2, 100)}, 600),
        ({10: (2, 0)}, 600),
        ({44: (4, 99)}, 600),  # reset
        ({44: (4, 0xFFFFFFFF)}, 600),  # full
        ({}, 480 * 300),  # it may have been cleared more than once
        ({252: (4, 99)}, 600),  # cleared, with less than there was
    ],
)
def test_what_is_not_known_has_its_reason(change, elapsed_s):
    figures = latency_monitor.between(reading(FIRST), reading(FIRST | change), elapsed_s)
    assert figures["why"] and {figures[key] for key in ("counts", "thresholds_ms", "least_ms", "most_ms")} == {None}


def test_thresholds_that_do_not_rise_bound_nothing():
    wrong = FIRST | {9: (1, 15)}
    assert latency_monitor.between(reading(wrong), reading(wrong), 600)["why"]


def test_buckets_that_are_never_cleared_count_for_any_time():
    never = {4: (2, 0)}
    figures = latency_monitor.between(reading(FIRST | never), reading(FIRST | never | {36: (4, 9)}), 10**8)
    assert figures["counts"]["trim"] == [7, 0, 0, 0]


def test_snapshot_has_it_or_the_reason():
    known = counters.snapshot({"log_02h": page({3: (1, 100)}).hex(), "log_c3h": page(FIRST).hex(), "smartctl": {}})
    assert known["latency_monitor"]["counters"]["read"][0] == 100
    wrong = counters.snapshot({"log_02h": page({3: (1, 100)}).hex(), "log_c3h": page({0: (1, 7)}).hex()})
    assert wrong["latency_monitor"] is None and any(words.startswith("log C3h") for words in wrong["unknown"])
