"""The notes of a run on the terminal."""

from ssdrig.report import screen


def test_percentiles_that_a_run_is_too_short_for_are_one_line():
    notes = [
        "peak_100us_W: the rig has no fast current channel",
        "all, 0–60 s: iops_p0_1: 60 s are too few for this percentile, which needs 10000",
        "steady, 42–60 s: iops_p0_1: 18 s are too few for this percentile, which needs 10000",
        "steady, 42–60 s: lat_p99999_us: 150698 I/Os are too few for this percentile, which needs 1000000",
    ]
    first, line = screen.short_notes(notes)
    assert first == notes[0]
    assert line.endswith(": IOPS, P0.1; P99.999 latency (lat)")


def test_other_notes_stay_as_they_are():
    assert screen.short_notes(["a", "b: c"]) == ["a", "b: c"]
