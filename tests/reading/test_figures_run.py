"""Figures of a run as a whole, of a run made by hand."""

import numpy as np
import pytest
from test_analysis_events import event, run
from test_analysis_power import closure
from test_window_figures import powered, rail_of

from ssdrig.reading import RunData
from ssdrig.reading.figures import figures_of

STEPS = [event(1, "step.start", step="purge"), event(9, "step.end", step="load", ok=True)]


def data(events=(), k=1, n=20, **fields) -> RunData:
    made = run(list(events), k=k)
    made.header |= {"run": "r", "drive": {}}
    made.iops = np.full(n, 10.0)
    made.bw_Bps = made.iops * 4096
    made.lat_mean_us = np.full(n, 100.0)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("events", "k", "seconds"),
    [
        (STEPS, 1, 8.0),
        (STEPS, 2, 4.0),
        (STEPS[:1], 1, None),
        (STEPS[1:], 1, None),
        ([STEPS[0], STEPS[1] | {"ok": False}], 1, None),
        ([], 1, None),
    ],
)
def test_time_to_complete(events, k, seconds):
    out = figures_of(data(events, k))
    assert out["time_to_complete_s"] == seconds
    assert ("time_to_complete_s: the load was not completed" in out["notes"]) == (seconds is None)


@pytest.mark.parametrize(
    ("fill_s", "fill_bytes", "rate"), [(4.0, 8_000_000, 2.0), (4.0, 0, 0.0), (4.0, None, None), (None, 5, None)]
)
def test_rate_of_the_fill(fill_s, fill_bytes, rate):
    out = figures_of(data(fill_s=fill_s, fill_bytes=fill_bytes))
    assert (out["fill_s"], out["fill_MBps"]) == (fill_s, rate)


@pytest.mark.parametrize(("ios", "load_s", "mean"), [(210, 20.0, 10.5), (210, 0.0, None), (None, 20.0, None)])
def test_mean_of_the_whole_load(ios, load_s, mean):
    assert figures_of(data(ios=ios, load_s=load_s))["iops_all_mean"] == mean


ENDED = event(9, "step.end", step="load", ok=True)
STOPPED = ENDED | {"ok": False}
CUT = event(5, "cut.fired", cut=None, fired_ns=4 * 10**9, bound_ns=1000)


@pytest.mark.parametrize(
    ("events", "state", "rule", "times"),
    [
        ([ENDED], "complete", None, "0–20 s"),
        ([ENDED], "failed", None, "0–20 s"),  # something later went wrong
        ([ENDED, event(9, "step.end", step="idle", ok=False)], "interrupted", None, "0–20 s"),
        ([STOPPED], "interrupted", None, "0–20 s of 60 s: cut short"),
        ([STOPPED], "failed", "never", "0–20 s of 60 s: cut short"),
        ([STOPPED], "interrupted", "pts", "0–20 s of at most 60 s: cut short"),
        ([], "died", None, "0–20 s of 60 s: cut short"),
        ([], "running", None, "0–20 s of 60 s: still running"),
        ([CUT, ENDED], "interrupted", None, "0–20 s of 60 s: cut short"),
        ([ENDED, CUT | {"fired_ns": 12 * 10**9}], "interrupted", None, "0–20 s"),
    ],
)
def test_a_load_that_did_not_come_to_its_end_is_not_called_whole(events, state, rule, times):
    made = data(events, state=state)
    made.header["method"]["duration_s"] = 60
    made.header["plan"] = {"params": {"rule": rule}} if rule else None
    out = figures_of(made)["windows"]["all"]
    how = times.partition(": ")[2] or None
    assert (out["label"], out["unfinished"]) == (f"{'load' if how else 'whole load'}, {times}", how)
    said = times.replace(": ", ", ")
    assert f"all, {said}: iops_p5: 20 s are too few for this percentile, which needs 200" in figures_of(made)["notes"]


def test_how_the_drive_was_purged():
    assert figures_of(data([event(1, "note"), event(2, "purge", method="sanitize")]))["purge"] == "sanitize"
    assert figures_of(data())["purge"] is None


def test_each_rail_has_an_entry():
    one, other = (rail_of([watts] * 20, rail=i, name=f"r{i}") for i, watts in enumerate((2, 3)))
    other.closure, other.idle_mean_W = closure(chip_clock_ppm=7.0, resolution_percent=0.0), 0.5
    for made in (powered(data(), one, other), powered(data(n=1), one, other)):
        rails = figures_of(made)["rails"]
        assert [(each["rail"], each["name"]) for each in rails] == [(0, "r0"), (1, "r1")]
        assert [each["chip_clock_ppm"] for each in rails] == [None, 7.0]
        assert [each["closure_percent"] for each in rails] == [None, 0.0]
        assert [each["idle_mean_W"] for each in rails] == [None, 0.5]
        steady = len(made.iops) > 1
        assert [each["power_mean_W"] for each in rails] == ([2, 3] if steady else [None, None])
        assert [each["energy_J"] for each in rails] == ([40, 60] if steady else [None, None])
    assert figures_of(data())["rails"] == []
