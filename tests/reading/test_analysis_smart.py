"""SMART polls of a run on its axis, from snapshots made by hand: which polls count, and how far their figure is off."""

import json

import numpy as np
import pytest
from test_analysis_events import AT_REST, SECOND, polled, run, shares

from ssdrig.drive.smart import counters
from ssdrig.plan.rules.windows import Window
from ssdrig.reading import smart
from ssdrig.reading.smart import place_polls, read_polls, window_wa

GB = 10**9


def snapshot(t_s: float, reason: str, host=0, nand=0, temperature=None, took_s=0.0) -> dict:
    """A poll that ends at t_s of the axis (t0 is 1 s)."""
    end = round((t_s + 1) * SECOND)
    return {
        "t_ns": end,
        "t_start_ns": end - round(took_s * SECOND),
        "t_end_ns": end,
        "reason": reason,
        "host_written_bytes": host,
        "nand_written_bytes": nand,
        "host_written_unit_bytes": 1,
        "nand_written_unit_bytes": 1,
        "temperature_C": temperature,
    }


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """A function that reads snapshots as the polls of a run."""
    monkeypatch.setattr(counters, "snapshot", lambda document: document)
    (tmp_path / "smart").mkdir()

    def load(*snapshots, t0_ns=SECOND):
        for i, snapshot in enumerate(snapshots):
            (tmp_path / "smart" / f"{i:03d}.json").write_text(json.dumps(snapshot))
        data = run([], t0_ns=t0_ns)
        data.own_work = AT_REST
        read_polls(data, tmp_path)
        place_polls(data)
        return data

    return load


def test_polls_are_in_the_order_of_time_whatever_their_names(loaded):
    data = loaded(snapshot(5, "poll", temperature=40), snapshot(2, "poll"), snapshot(1, "poll", temperature=30))
    assert [s["t_ns"] for s in data.snapshots] == [2 * SECOND, 3 * SECOND, 6 * SECOND]
    assert data.temp_t_s.tolist() == [1, 5] and data.temperature_C.tolist() == [30, 40]


@pytest.mark.parametrize("key", ["t_ns", "t_start_ns", "t_end_ns", "reason"])
def test_a_poll_that_does_not_say_when_or_why_is_left_out(loaded, key):
    data = loaded(snapshot(5, "poll") | {key: None})
    assert data.snapshots == [] and data.notes[0].startswith("smart/000.json cannot be read: it lacks its time")


@pytest.mark.parametrize(
    ("first_s", "reason", "missing"),
    [
        (0, "before", None),  # begun at the very moment of the first I/O
        (1e-9, "before", "before"),
        (-1, "poll", "before"),
        (None, None, "before"),
    ],
)
def test_a_reading_before_the_load_is_needed(loaded, first_s, reason, missing):
    first = [] if first_s is None else [snapshot(first_s, reason)]
    data = loaded(*first, snapshot(5, "poll", GB, 2 * GB))
    assert data.notes == ([] if missing is None else [f"wa: no SMART reading {missing} the load"])
    assert data.wa_value.tolist() == ([2.0] if missing is None else [])


def test_a_reading_since_the_start_of_the_load_is_needed(loaded):
    data = loaded(snapshot(-1, "before"), snapshot(0, "poll", GB, 2 * GB))
    assert data.notes == ["wa: no SMART reading since the start of the load"] and len(data.wa_value) == 0
    data = loaded(snapshot(-1, "before"), snapshot(1e-9, "poll", GB, 2 * GB))
    assert data.notes == [] and data.wa_value.tolist() == [2.0]


def test_without_a_first_io_there_is_no_axis_for_them(loaded):
    data = loaded(snapshot(-1, "before", temperature=30), snapshot(5, "poll", GB, GB), t0_ns=None)
    assert len(data.snapshots) == 2 and data.notes == [] and len(data.temp_t_s) == 0


def test_the_figure_counts_from_the_last_reading_before_the_load(loaded):
    data = loaded(
        snapshot(-2, "before", 0, 0),
        snapshot(-1, "before", GB, 5 * GB),
        snapshot(4, "poll", 2 * GB, 6 * GB),
        snapshot(6, "edge", 3 * GB, 9 * GB),
        snapshot(8, "new", 3 * GB, 20 * GB),  # of a kind that does not count
        snapshot(10, "after", 5 * GB, 17 * GB),
        snapshot(12, "after", 5 * GB, 90 * GB),  # a second one neither
    )
    assert data.wa_t_s.tolist() == [4, 6, 10] and data.wa_value.tolist() == [1, 2, 3]
    assert data.wa_error.tolist() == pytest.approx([2e-9, 1.5e-9, 1e-9], rel=0.01)


def test_a_poll_that_took_time_is_less_exact_under_load_and_not_after_it(loaded):
    data = loaded(
        snapshot(-1, "before"), snapshot(9, "poll", GB, 2 * GB, took_s=1), snapshot(10, "after", GB, 2 * GB, took_s=1)
    )
    assert data.wa_error.tolist() == pytest.approx([2 * 0.1, 0], abs=1e-6)


# ---- a window


def exact(*polls, **more):
    data = polled(*polls, **more)
    for snapshot in data.snapshots:
        snapshot |= {"host_written_unit_bytes": 0, "nand_written_unit_bytes": 0}
    return data


def window(t0_s, t1_s):
    return Window("some", t0_s, t1_s, {})


def test_a_run_without_readings_says_so():
    assert window_wa(exact(), window(0, 10)) == (None, None, "no SMART reading belongs to it")
    data = exact((2, "poll", 0, 0))
    data.t0_ns = None
    assert window_wa(data, window(0, 10)) == (None, None, "no SMART reading belongs to it")


def test_of_polls_between_which_there_was_no_io_the_nearer_is_taken():
    data = exact((0, "poll", 0, 0), (4.2, "poll", 5, 5), (5.5, "edge", 5, 6), (10, "poll", 10, 16))
    data.iops[4:6] = 0
    assert window_wa(data, window(5, 10))[1] == [5.5, 10]


def test_one_io_is_a_window_s_whole():
    data = exact()
    data.iops = np.array([0.0, 1, 0, 0])
    assert shares(data, window(0, 4), [2.0], 0) == [1.0]


def test_a_poll_that_began_after_the_load_is_not_the_one_before_it():
    polls = [(-2, "before", 0, 0), (0.5, "before", 1, 9), (10, "edge", 10, 20)]
    assert window_wa(exact(*polls), window(0, 10))[1] == [-2, 10]


def test_what_the_drive_wrote_before_the_load_is_no_measure_of_the_window():
    """100 between two polls before the load; 2 in the window, with 5 % of its I/O off the edge."""
    polls = [(-3, "before", 0, 0), (-2, "before", 1, 100), (5.25, "poll", 11, 120), (10, "edge", 20, 138)]
    assert window_wa(exact(*polls), window(5, 10))[0].relative_error == pytest.approx(0.05)


def test_a_single_poll_under_load_bounds_nothing_but_itself():
    amplification, _, _ = window_wa(exact((5.25, "poll", 0, 0), (10, "after", 10, 4)), window(5, 10))
    assert amplification.value == 0.4 and amplification.relative_error == pytest.approx(0.05)


def test_polls_at_the_edges_give_an_exact_figure():
    data = exact((2, "poll", 0, 0), (4, "poll", GB, 3 * GB), (6, "edge", 2 * GB, 4 * GB))
    amplification, times, why = window_wa(data, window(2, 6))
    assert (amplification.value, amplification.error, amplification.relative_error, times, why) == (
        2,
        0,
        0,
        [2, 6],
        None,
    )


@pytest.mark.parametrize(
    ("before", "wa", "wide"),
    [
        (1.5, 1.5, 1.0),  # between the poll and the edge it was anything from 0 to 1.5
        (1.0, 4.0, 1.0),
        (3.0, 4.0, 1.0),
        (1.0, 0.4, 1.5),  # 0.6 off, which is one and a half of 0.4
    ],
)
def test_io_between_a_poll_and_the_edge_widens_the_error(before, wa, wide):
    """A quarter of one of five seconds: 5 % of the I/O, at any write amplification that the run had."""
    polls = [(0, "before", 0, 0), (5.25, "poll", 10, 10 * before), (10, "edge", 20, 10 * before + 10 * wa)]
    amplification, times, why = window_wa(exact(*polls), window(5, 10))
    assert times == [5.25, 10] and why is None and amplification.value == pytest.approx(wa)
    assert amplification.relative_error == pytest.approx(0.05 * wide) and amplification.error == pytest.approx(
        0.05 * wide * wa
    )


@pytest.mark.parametrize(
    ("directions", "unit", "share"),
    [
        (("write",), 1, 0.06),  # 60 of 1000 I/Os came after the poll
        (("write",), 100 * 4096, 0.02),  # a second's writes: too coarse, so spread evenly over the second
        (("read", "write"), 1, 0.02),  # which of a second's I/Os were writes is not known
    ],
)
def test_io_between_a_poll_and_the_edge_is_by_the_drives_own_count(directions, unit, share):
    """Collection held the drive up until 9.8 s; most of the last second's I/O came after it, at no amplification."""
    data = polled((-1, "before", 0, 0), (9.8, "edge", 940 * 4096, 4 * 940 * 4096))
    for snapshot_ in data.snapshots:
        snapshot_ |= {"host_written_unit_bytes": unit, "nand_written_unit_bytes": 0}
    data.bw_Bps, data.totals = data.iops * 4096, {"directions": directions}
    amplification, times, _ = window_wa(data, window(0, 10))
    of_unit = unit / (940 * 4096) / (1 - unit / (940 * 4096))
    assert times == [-1, 9.8] and amplification.value == 4
    assert amplification.relative_error == pytest.approx(share + of_unit)


@pytest.mark.parametrize(
    ("reasons", "rest_s"), [(("before", "edge"), 0.5), (("edge", "edge"), 0.0), (("before", "after"), 0.5 + 0.25)]
)
def test_what_the_drive_may_have_written_on_its_own_widens_the_error(reasons, rest_s):
    """0.5 s before a load of 10 s, and 0.25 s after it, at 4 units a second, of 1000 in all; 2 s in which it rests."""
    at_s = {"before": -0.5, "edge": 10, "after": 10.25}
    first_s = 0 if reasons[0] == "edge" else at_s["before"]
    data = exact((first_s, reasons[0], 0, 0), (at_s[reasons[1]], reasons[1], 500, 1000))
    data.own_work = AT_REST._replace(most_per_s=4.0)
    amplification, _, why = window_wa(data, window(0, 10))
    assert why is None and amplification.relative_error == pytest.approx(rest_s * 4 / 1000)
    data.own_work = AT_REST._replace(most_per_s=4e3)
    amplification, _, why = window_wa(data, window(0, 10))
    assert (amplification.value is None) == (why is not None) == (rest_s > 0)


def test_pauses_of_a_load_next_to_a_reading_are_rests():
    data = exact((0, "before", 0, 0), (7.5, "edge", 10, 1000))
    data.iops[6:] = 0
    data.own_work = AT_REST._replace(most_per_s=4.0)
    assert window_wa(data, window(0, 10))[0].relative_error == pytest.approx(2.5 * 4 / 1000)


def test_the_course_of_the_amplification_has_the_rest_before_the_load(loaded):
    polls = snapshot(-1, "before"), snapshot(5, "edge", 1000, 2000), snapshot(9, "poll", 2000, 4000)
    quiet = loaded(*polls).wa_error
    data = loaded(*polls)
    data.own_work, data.load_s = AT_REST._replace(most_per_s=10.0), 10.0
    place_polls(data)
    assert (data.wa_error - quiet).tolist() == pytest.approx([10 / 1000, 10 / 2000])


def test_an_error_above_a_fifth_is_no_figure():
    """15 % at each edge are 30 %."""
    data = exact((1.5, "poll", 0, 0), (8.5, "edge", 10 * GB, 20 * GB))
    amplification, times, why = window_wa(data, window(0, 10))
    assert (amplification.value, amplification.error, amplification.relative_error) == (None, None, None) and times == [
        1.5,
        8.5,
    ]
    assert why == amplification.why == f"its error would be 30 %, over 20 %: {smart.OFF_EDGES}"
    data = exact((1, "poll", 0, 0), (9, "edge", 10 * GB, 20 * GB))
    assert window_wa(data, window(0, 10))[0].relative_error == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("off", "own", "cause"), [(0.02, 0.15, smart.OWN_WORK), (0.15, 0.1, smart.OFF_EDGES), (0.05, 0.09, smart.COUNTED)]
)
def test_an_error_that_is_too_large_names_the_largest_part_of_it(off, own, cause):
    amplification = window_wa(exact((0, "before", 0, 0), (10, "edge", 1000, 2000)), window(0, 10))[0]
    wide = smart.wider(amplification._replace(relative_error=0.1), off, own)
    assert wide.value is None and wide.why.endswith(f": {cause}")


def test_the_drives_own_work_before_a_load_is_named_as_the_cause():
    data = exact((-0.5, "before", 0, 0), (10, "edge", 500, 1000))
    data.own_work = AT_REST._replace(most_per_s=4e3)
    assert window_wa(data, window(0, 10))[2].endswith(f": {smart.OWN_WORK}")


def test_one_poll_for_both_edges_gives_none():
    data = exact((5, "poll", 0, 0))
    amplification, times, why = window_wa(data, window(4, 6))
    assert amplification is None and times == [5, 5] and "50 %" in why and "end, at 5.0 s" in why
    data.iops = np.zeros(10)  # no I/O: nothing lies between, and still it is one poll
    assert window_wa(data, window(4, 6))[0] is None


def test_counters_that_say_nothing_say_why():
    data = exact((2, "poll", 0, 0), (6, "poll", GB, 0))
    amplification, times, why = window_wa(data, window(2, 6))
    assert (
        amplification.value is None and times == [2, 6] and why == amplification.why == "the NAND counter did not move"
    )


def test_only_the_last_poll_before_and_the_first_after_stand_for_an_edge():
    data = exact(
        (-3, "before", 0, 0), (-2, "before", GB, GB), (11, "after", 3 * GB, 5 * GB), (12, "after", 9 * GB, 9 * GB)
    )
    amplification, times, _ = window_wa(data, window(0, 10))
    assert times == [-2, 11] and amplification.value == 2
