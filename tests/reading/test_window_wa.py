"""Write amplification of a window, from the SMART polls nearest its edges."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import synthetic_plan
import synthetic_run
from synthetic_run import IOPS, run_of

from ssdrig.plan.rules.windows import Window
from ssdrig.reading import table
from ssdrig.reading.smart import window_wa

STEADY = [10_000] * 40


def data_of(tmp_path, iops=STEADY, **more):
    return run_of(tmp_path, iops, **({"zoom_s": 20, "power": False, "fill_s": 1} | more))[0]


def window(t0_s, t1_s):
    return Window("some", t0_s, t1_s, {"passed": None})


def nand(data, per_second):
    """The run with counters that count what was written by the time of each poll, the NAND's by the write amplification
    of each second (n,)."""
    t_s, grid = data.axis_s([s["t_ns"] for s in data.snapshots]), np.arange(len(data.iops) + 1)
    host, flash = (
        np.interp(t_s, grid, np.concatenate([[0.0], np.cumsum(data.iops * 4096 * np.asarray(factor, float))]))
        for factor in (np.ones(len(data.iops)), per_second)
    )
    unit = 512_000
    snapshots = [
        s | {"host_written_bytes": int(h) // unit * unit, "nand_written_bytes": int(n)}
        for s, h, n in zip(data.snapshots, host, flash, strict=True)
    ]
    return replace(data, snapshots=snapshots, own_work=None)


def test_a_window_has_its_own(tmp_path):
    """1 until the zoom, 4 after it: the whole load's 2.5 is neither."""
    data = nand(data_of(tmp_path), [1.0] * 20 + [4.0] * 20)
    for (t0_s, t1_s), true in {(0, 40): 2.5, (0, 20): 1.0, (20, 40): 4.0}.items():
        amplification, polls_s, why = window_wa(data, window(t0_s, t1_s))
        assert why is None and abs(amplification.value - true) <= amplification.error, (t0_s, t1_s)
        assert polls_s == pytest.approx([t0_s or -0.55, t1_s], abs=0.2)


@pytest.mark.parametrize("late_s", [0.3, 1.0, 2.0])
def test_a_poll_off_the_edge_widens_the_error_enough(tmp_path, late_s):
    """The zoom's poll came so much later, at the time of the change from 1 to 4."""
    data = data_of(tmp_path, smart_every_s=7)
    t_ns = data.t0_ns + round((20 + late_s) * 1e9)
    moved = [
        s | {"t_ns": t_ns} if s["reason"] == "edge" and 19.9 < data.axis_s(s["t_ns"]) < 20.1 else s
        for s in data.snapshots
    ]
    data = nand(replace(data, snapshots=sorted(moved, key=lambda s: s["t_ns"])), [1.0] * 20 + [4.0] * 20)
    for (t0_s, t1_s), true in {(0, 20): 1.0, (20, 40): 4.0}.items():
        amplification, _, why = window_wa(data, window(t0_s, t1_s))
        assert why is not None or abs(amplification.value - true) <= amplification.error, (t0_s, t1_s)
    assert window_wa(data, window(20, 40))[2] is None


def test_polls_too_far_from_the_edges_give_none_and_say_how_far(tmp_path):
    data = data_of(tmp_path, smart_every_s=15, edges=False)  # at 15 and 30 s
    amplification, polls_s, why = window_wa(data, window(20, 40))
    assert amplification is None and polls_s[0] == pytest.approx(15, abs=0.1)
    assert re.findall(r"[\d.]+ %?|start|end", why) == ["start", "15.0 ", "25 %", "15 %"]
    (folder,) = tmp_path.iterdir()
    f = table.in_full(folder).figures
    assert f["wa"] is f["wa_error"] is f["nand_written_bytes"] is None
    assert any(note.startswith("steady, 20–40 s: wa: ") for note in f["notes"])


def test_what_the_drive_writes_after_the_load_is_not_the_windows(tmp_path):
    """A poll at the load's end is used rather than the one after it, when the cache has been emptied."""
    data = nand(data_of(tmp_path), [4.0] * 40)
    drained = data.snapshots[-1]
    data.snapshots[-1] = drained | {"nand_written_bytes": drained["nand_written_bytes"] + 10**9}
    amplification, polls_s, _ = window_wa(data, window(20, 40))
    assert abs(amplification.value - 4.0) <= amplification.error < 0.2 and polls_s[1] < 40


def test_the_poll_after_the_load_serves_where_there_is_no_other(tmp_path):
    data = nand(data_of(tmp_path, edges=False, smart_every_s=20), [4.0] * 40)
    amplification, polls_s, why = window_wa(data, window(20, 40))
    assert why is None and polls_s[1] > 40 and abs(amplification.value - 4.0) <= amplification.error


def test_a_window_between_two_polls_has_none(tmp_path):
    data = data_of(tmp_path, smart_every_s=15, edges=False)
    assert window_wa(data, window(21, 23))[0] is None


def test_without_polls_it_says_so(tmp_path):
    run = synthetic_run.write(tmp_path, IOPS, power=False)
    for path in (run / "smart").iterdir():
        path.unlink()
    f = table.in_full(run).figures
    assert f["wa"] is None and any("no SMART reading belongs to it" in note for note in f["notes"])


def test_polls_without_a_time_are_left_out(tmp_path):
    run = synthetic_run.write(tmp_path, IOPS, power=False)
    path = run / "smart" / "003.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"t_start_ns": None, "t_end_ns": None}))
    assert table.in_full(run).data.snapshots


BRACKETED = """schema = 1
name = "demo"
title = "Neighbours"
source = "a test"
about = "Three loads, of which the middle one has no reading of its own."
[[step]]
name = "one"
do = "load"
pattern = "random"
read = 0
block = "4 KiB"
time = "20 s"
[[step]]
name = "two"
do = "load"
pattern = "random"
read = 0
block = "4 KiB"
time = "20 s"
[[step]]
name = "three"
do = "load"
pattern = "random"
read = 0
block = "4 KiB"
time = "20 s"
"""


def bracketed(tmp_path, off_s, amplified):
    """Readings off_s of I/O before the end of `one` and behind the begin of `three`; each load amplifies by its own."""
    w = synthetic_plan.Writer(tmp_path, BRACKETED)
    bytes_, rate = 20_000 * 20 * 4096, 20_000 * 4096
    begun = {}
    for name in ("one", "two", "three"):
        w.load(name, [20_000] * 20, 2.0)
        begun[name] = w.t_ns
    end_ns = w.t_ns
    done = lambda first, second, third: (
        first + second + third,
        1e9 + amplified[0] * first + amplified[1] * second + amplified[2] * third,
    )
    for reason, t_ns, at in (
        ("before", begun["one"] - 3 * synthetic_plan.GAP_NS - 20 * 10**9, (0, 0, 0)),
        ("edge", begun["one"] - 2 * synthetic_plan.GAP_NS - round(off_s * 1e9), (bytes_ - off_s * rate, 0, 0)),
        ("edge", begun["two"] + synthetic_plan.GAP_NS + round(off_s * 1e9), (bytes_, bytes_, off_s * rate)),
    ):
        w.t_ns = t_ns
        w.poll(reason, *(int(n) for n in done(*at)))
    w.t_ns = end_ns
    w.poll("after", *(int(n) for n in done(bytes_, bytes_, bytes_)))
    rows = table.load(w.end()).rows
    return {row.act.label: row.windows["all"] for row in rows}


@pytest.mark.parametrize("amplified", [(1, 4, 1), (4, 1, 4), (3, 3, 3)])
def test_readings_of_the_neighbours_count_for_a_step_between_them(tmp_path, amplified):
    """Seen: a reading at 9.5 s, 102 % of its I/O from its start."""
    ratio_ = bracketed(tmp_path, 0.2, amplified)["two"]
    assert ratio_["wa"] is not None and abs(ratio_["wa"] - amplified[1]) <= ratio_["wa_error"] < 0.5 * amplified[1]


def test_readings_deep_within_the_neighbours_count_for_nothing(tmp_path):
    assert bracketed(tmp_path, 6.0, (1, 4, 1))["two"]["wa"] is None
