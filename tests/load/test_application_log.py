"""A log that an application kept during a recording: read as people have it, placed with a stated error, harmless."""

import gzip

import numpy as np
import pytest

from ssdrig.base import table_file
from ssdrig.base.errors import LoadError, UsageError
from ssdrig.load import application_log, followed_log
from ssdrig.load.application_log import Log

S = 10**9
UTC_S = 1_795_177_507  # of an anchor below
ANCHOR = {"kind": "clock.anchor", "t_ns": 5000 * S, "utc_ns": UTC_S * S}


def of_text(tmp_path, text):
    path = tmp_path / "log.csv"
    path.write_text(text)
    return application_log.read(path)


def command(from_s, to_s, step="record"):
    start = {"kind": "command.start", "step": step, "t_ns": round((from_s + 0.01) * S), "from_ns": round(from_s * S)}
    return [ANCHOR, start, {"kind": "command.end", "step": step, "t_ns": round(to_s * S)}]


@pytest.mark.parametrize(
    ("text", "is_utc", "first_ns", "resolution_ns", "names"),
    [
        # RocksDB's db_bench --report_file
        ("secs_elapsed,interval_qps\n1,812\n2,790\n", False, S, S, ["interval_qps"]),
        # pgbench --log --aggregate-interval=1: no headings, blanks, Unix time
        (f"{UTC_S} 120 812000 9 1\n{UTC_S + 1} 118 9 9 1\n", True, UTC_S * S, S, [f"column {n}" for n in range(2, 6)]),
        ("time_ms\ttps\n250\t1\n500\t2\n", False, S // 4, S // 100, ["tps"]),
        (f"timestamp,state,tps\n{UTC_S}125,run,5\n{UTC_S + 1}250,run,6\n", True, UTC_S * S + S // 8, 10**6, ["tps"]),
        ("date;tps\n2026-11-20T12:25:07Z;1,5\n2026-11-20T12:25:08Z;2,5\n", True, UTC_S * S, S, ["tps"]),
        ("# made by x\n# t lat_ms\n0.5 3\n1.5 4\n", False, S // 2, S // 10, ["lat_ms"]),
        ("tps,elapsed\n10,1\n20,2\n", False, S, S, ["tps"]),
    ],
)
def test_logs_as_applications_write_them(tmp_path, text, is_utc, first_ns, resolution_ns, names):
    log = of_text(tmp_path, text)
    assert (log.utc, int(log.t_ns[0]), log.resolution_ns) == (is_utc, first_ns, resolution_ns)
    assert [*log.values] == names


@pytest.mark.parametrize(
    "text",
    [
        *("20261120122507,1\n", "\ufeff".join("t,a")),
        "",
        "\n",
        "a,b\nc,d\n",
        "t,a\n1,x\n2,y\n",
        "t,a\n5,1\n4,1\n",
        "t,a\n-1,1\n",
        "\0" * 100,
        "t,a\n1e300,1\n",
    ],
)
def test_what_is_no_log_is_refused(tmp_path, text):
    with pytest.raises(LoadError):
        of_text(tmp_path, text)


def test_utf16_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes("t,a\n1,2\n".encode("utf-16"))
    with pytest.raises(LoadError):
        application_log.read(path)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ('t,a,b\n1,"1,234",5\n2,"2,345",6\n', {"b": [5, 6]}),
        ('t,s,b\n1,"x, 7",5\n2,"y, 8",6\n', {"b": [5, 6]}),
        ('t,a,s\n1,10,"a;b"\n2,20,"c"\n', {"a": [10, 20]}),
        ('t,s,b\n1,x,5\n2,"y, 8",6\n', {"b": [5, 6]}),
        ("t;a\n1;100\n2;99,5\n3;101,5\n", {"a": [100, 99.5, 101.5]}),
        ("t;a\n1;987,5\n2;1.234,5\n", {"a": [987.5, 1234.5]}),
        ("t;a\n1;987,5\n2;1.234\n", {"a": [987.5, np.nan]}),
        ("t\ta\tb\n1\t7\t1,234\n2\t8\t2,345\n", {"a": [7, 8]}),
        ("t\ta\n1\t0,234\n2\t1,345\n", {"a": [0.234, 1.345]}),
        ("t,a\n-1,1\n0,2\n", {"a": [2]}),
        ("t,column 4,b,b\n1,1,10,100\n", {"column 4": [1], "b": [10], "column 5": [100]}),
    ],
)
def test_no_figure_is_made_of_a_part_of_a_number_or_of_another_column(tmp_path, text, columns):
    values = of_text(tmp_path, text).values
    assert [*values] == [*columns]
    for name, numbers in columns.items():
        np.testing.assert_equal(values[name], numbers)


def test_time_with_a_decimal_comma_leaves_the_numbers_their_point(tmp_path):
    log = of_text(tmp_path, "t;a\n2026-11-20 12:00:00,125;5.5\n2026-11-20 12:00:01,125;6.5\n")
    assert log.values["a"].tolist() == [5.5, 6.5] and log.resolution_ns == 10**6 and not log.zoned


@pytest.mark.parametrize(
    ("times", "resolution_s"),
    [
        (("2026-11-20T12:25Z", "2026-11-20T12:26Z"), 60),
        (("2026-11-20T12:25:00Z", "2026-11-20T12:26:00Z"), 1),
        (("2026-11-20T12+01:00", "2026-11-20T13+01:00"), 3600),
        (("1", "2"), 1),
    ],
)
def test_times_are_as_exact_as_they_are_written(tmp_path, times, resolution_s):
    assert of_text(tmp_path, "t,a\n" + "".join(f"{time},1\n" for time in times)).resolution_ns == resolution_s * S
    assert of_text(tmp_path, "elapsed_min,a\n1,1\n2,2\n").resolution_ns == 60 * S


def test_columns_that_are_left_out_are_named(tmp_path):
    late = "".join(f"{n},1,{n if n > 30 else ''},x\n" for n in range(60))
    (note,) = of_text(tmp_path, f"t,a,p99,state\n{late}").notes
    assert "p99" in note and "state" in note


def event(**more):
    return {"kind": application_log.EVENT, "step": "record", "t_ns": 5020 * S, "changed": True, "why": None} | more


def laid(tmp_path, text, span_s, events):
    (tmp_path / application_log.NAME).write_text(text)
    return application_log.laid(tmp_path, events, "record", (span_s[0] * S, span_s[1] * S), 1)


@pytest.mark.parametrize(("offset_s", "noted"), [(0, "UTC"), (3600, "UTC+1 h"), (-19_800, "UTC-5.5 h")])
def test_times_without_a_zone_are_utc_or_the_local_time_of_the_host(tmp_path, offset_s, noted):
    times = np.datetime_as_string(np.datetime64(UTC_S + offset_s, "s") + np.arange(3))
    text = "t,a\n" + "".join(f"{time},1\n" for time in times)
    figures, _, at = laid(tmp_path, text, (4999, 5003), [ANCHOR, event(utc_offsets_s=[offset_s])])
    assert at.t_ns.tolist() == [5000 * S, 5001 * S, 5002 * S]
    assert figures["notes"] == [f"its times state no zone and are taken as {noted}"]


def test_times_without_a_zone_that_fit_twice_place_nothing(tmp_path):
    """Of a recording of five hours; a log that reaches beyond its copy is of local time."""
    times = np.datetime_as_string(np.datetime64(UTC_S, "s") + np.array([-9000, -5400]))
    text = "t,a\n" + "".join(f"{time},1\n" for time in times)
    events = [ANCHOR, event(t_ns=5000 * S, utc_offsets_s=[3600])]
    with pytest.raises(LoadError):
        laid(tmp_path, text, (5000 - 18_000, 5000), events)
    times = np.datetime_as_string(np.datetime64(UTC_S, "s") + np.array([-5400, 1800]))
    text = "t,a\n" + "".join(f"{time},1\n" for time in times)
    _, _, at = laid(tmp_path, text, (5000 - 18_000, 5000), events)
    assert at.t_ns.tolist() == [(5000 - 9000) * S, (5000 - 1800) * S]


@pytest.mark.parametrize("stated", [None, 3, ["x", 10**12, True], {}])
def test_forged_offsets_are_not_taken(tmp_path, stated):
    text = "t,a\n" + "".join(f"{np.datetime64(UTC_S + n, 's')},1\n" for n in range(3))
    figures, _, _ = laid(tmp_path, text, (4999, 5019), [ANCHOR, event(utc_offsets_s=stated)])
    assert figures["rows"] == 3


def test_log_without_its_event_is_placed_as_utc(tmp_path):
    text = "t,a\n" + "".join(f"{np.datetime64(UTC_S + n, 's')},1\n" for n in range(3))
    assert laid(tmp_path, text, (4999, 5019), [ANCHOR])[0]["rows"] == 3


def test_seconds_of_an_earlier_run_in_the_log_are_not_of_this_one(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("t,a\n1,900\n")
    log = followed_log.FollowedLog(path)
    path.write_text("t,a\n1,900\n2,5\n3,6\n")
    sizes = log.copied(tmp_path / "copy.csv")
    assert sizes["older_bytes"] == len("t,a\n1,900\n")
    with pytest.raises(LoadError):
        laid(tmp_path, path.read_text(), (5000, 5010), [*command(5000, 5010), event(**sizes)])
    path.write_text("t,a\n1,5\n2,6\n3,7\n")  # the command replaced it
    sizes = log.copied(tmp_path / "copy.csv")
    figures, _, _ = laid(tmp_path, path.read_text(), (5000, 5010), [*command(5000, 5010), event(**sizes)])
    assert figures["rows"] == 3 and sizes["older_bytes"] == 0


def test_cells_and_lines_that_are_left_out_are_counted(tmp_path):
    text = f"t,a\n{UTC_S},1\n{UTC_S},\n{UTC_S + 1},x\n{UTC_S + 2},4\n"
    figures, _, _ = laid(tmp_path, text, (4999, 5003), [ANCHOR, event(left_bytes=3)])
    assert figures["notes"] == ["its last line has no end and is left out", "a: 2 of 4 rows have no number"]
    assert figures["period_s"] == 1.0


def test_packed_log_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(gzip.compress(b"t,a\n1,1\n2,1\n"))
    with pytest.raises(LoadError):
        application_log.read(path)


def test_too_many_rows_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(application_log, "MOST_ROWS", 5)
    with pytest.raises(LoadError):
        of_text(tmp_path, "t,a\n" + "".join(f"{n},1\n" for n in range(6)))


def test_cells_without_a_number_are_unknown_and_the_rest_stays(tmp_path):
    log = of_text(tmp_path, "t,a,b\n1,,1\n2,1e308,2\n3,nan,inf\n4,7,4\nt,a,b\n5\n6,8,6\n")
    assert log.t_ns.tolist() == [n * S for n in (1, 2, 3, 4, 5, 6)]
    np.testing.assert_equal(log.values["a"], [np.nan, np.nan, np.nan, 7, np.nan, 8])
    np.testing.assert_equal(log.values["b"], [1, 2, np.nan, 4, np.nan, 6])


def test_columns_are_limited_and_names_are_apart_and_short(tmp_path):
    head = ",".join(["t", "a", "a", "x" * 500, *(f"c{n}" for n in range(20))])
    row = ",".join(["1"] * 24)
    log = of_text(tmp_path, f"{head}\n{row}\n")
    assert [*log.values][:3] == ["a", "column 3", "x" * application_log.MOST_NAME]
    assert len(log.values) == application_log.MOST_COLUMNS and log.notes


def test_utc_is_placed_by_the_anchors_to_its_resolution(tmp_path):
    log = of_text(tmp_path, f"t,a\n{UTC_S + 3},1\n{UTC_S + 4},1\n")
    moved = {"kind": "clock.anchor", "t_ns": 5010 * S, "utc_ns": (UTC_S + 10) * S + 4_000_000}
    at = application_log.placed(log, [ANCHOR, moved], "record", False)
    assert at.clock == "utc" and abs(int(at.t_ns[0]) - 5003 * S) <= at.error_ns == S + 2_000_000


def test_clock_that_was_set_places_nothing(tmp_path):
    log = of_text(tmp_path, f"t,a\n{UTC_S + 3},1\n")
    moved = {"kind": "clock.anchor", "t_ns": 5010 * S, "utc_ns": (UTC_S + 70) * S}
    for events in ([ANCHOR, moved], []):
        with pytest.raises(LoadError):
            application_log.placed(log, events, "record", True)


@pytest.mark.parametrize("began_s", [5000.0, 5000.2, 5001.4])
def test_seconds_since_a_start_are_within_the_stated_error(tmp_path, began_s):
    """The application begins anywhere after its command does and ends with or before it."""
    log = of_text(tmp_path, "t,a\n0.5,1\n1.5,1\n")
    at = application_log.placed(log, command(5000, 5003), "record", True)
    truth_ns = np.array([began_s + 0.5, began_s + 1.5]) * S
    assert at.clock == "command" and at.error_ns == round(0.75 * S) + S // 10
    assert (np.abs(at.t_ns - truth_ns) <= at.error_ns).all()


def test_seconds_of_another_run_are_refused():
    log = Log(False, np.array([S, 9 * S]), {"a": np.ones(2)}, S, ())
    for events, changed in ((command(5000, 5003), True), (command(5000, 5010), False), ([ANCHOR], True)):
        with pytest.raises(LoadError):
            application_log.placed(log, events, "record", changed)
    with pytest.raises(LoadError):
        application_log.placed(log, command(5000, 5010, "other"), "record", True)


def test_rows_closer_than_a_second_are_its_mean():
    t_s = np.array([0.2, 0.7, 1.0, 2.4, 2.5, 2.6])
    seconds, means = application_log.by_second(t_s, np.array([1, 3, 5, 1, np.nan, 2.0]))
    assert seconds.tolist() == [0, 1, 2] and means.tolist() == [2, 5, 1.5]
    t_s, values = application_log.by_second(np.array([0.2, 1.4, 9.0]), np.array([1, 2, 3.0]))
    assert t_s.tolist() == [0.2, 1.4, 9.0] and values.tolist() == [1, 2, 3]


def test_last_line_without_an_end_is_no_row(tmp_path):
    (tmp_path / "log.csv").write_text("t,a\n1,10\n2,11\n3,1")
    log = application_log.read(tmp_path / "log.csv")
    assert log.values["a"].tolist() == [10, 11] and table_file.NO_LINE_END in log.notes


def test_refused_before_anything_starts(tmp_path):
    path = tmp_path / "log.csv"
    application_log.check(path, True)  # the command makes it
    for wrong in (path, tmp_path, tmp_path / "no" / "log.csv"):
        with pytest.raises(UsageError):
            application_log.check(wrong, wrong != path)
    path.write_text("")
    application_log.check(path, False)
    path.write_text("nothing of it\nis a number\n")
    with pytest.raises(UsageError):
        application_log.check(path, True)
    path.write_text("t,a\n1,10\n")
    application_log.check(path, True)
    with pytest.raises(UsageError):  # since when?
        application_log.check(path, False)


def test_log_of_the_whole_recording_has_no_such_note(tmp_path):
    (tmp_path / application_log.NAME).write_text("t,a\n" + "".join(f"{UTC_S + n},{n}\n" for n in range(60)))
    figures, _, _ = application_log.laid(tmp_path, command(5000, 5060), "record", (5000 * S, 5060 * S), 1)
    assert figures["notes"] == []
