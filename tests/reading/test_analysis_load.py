"""What fio left of a run on the run's axis, from seconds made by hand: the start, the grid, what is said of gaps."""

import json

import numpy as np
import pytest
from test_analysis_events import SECOND, event, run

from ssdrig import reading
from ssdrig.base.errors import LoadError
from ssdrig.load import fiolog, fioseconds
from ssdrig.load.fiotext import plat_ns
from ssdrig.plan.rules import windows
from ssdrig.reading import window_figures
from ssdrig.reading.fio import _load_lat, load_step


def seconds(iops, *, begin_s=5.0, lat_ns=1000, p99_ns=2000, **more) -> fioseconds.Seconds:
    n, iops = len(iops), np.array(iops, np.int64)
    every = lambda value: np.broadcast_to(np.array(value, np.int64), n)
    values = {
        "t_ns": round(begin_s * SECOND) + SECOND * np.arange(n, dtype=np.int64),
        "iops": iops,
        "bw_bytes": 10 * iops,
        "lat_mean_ns": every(lat_ns),
        "lat_p99_ns": every(p99_ns),
        "hist": np.array([[i, 300, c] for i, c in enumerate(iops)], np.int64).reshape(-1, 3),
        "zero_seconds": 0,
        "partial": False,
        "source": "logs",
        "directions": ("write",),
        "totals": {"ios": int(iops.sum()), "bytes": 10 * int(iops.sum()), "runtime_ms": 1000 * n},
        "torn_bytes": 0,
    }
    return fioseconds.Seconds(**dict.fromkeys(("lat_p50_ns", "lat_p999_ns", "lat_max_ns"), every(0)) | values | more)


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """A function that reads a load of which this is left (None: nothing)."""

    def load(of, events=(), k=1):
        def left(folder):
            if of is None:
                raise LoadError("I/O", "none", "look")
            return of

        monkeypatch.setattr(fiolog, "load", left)
        data = run(list(events), k=k, t0_ns=None)
        load_step(data, tmp_path, next((e["t_ns"] for e in events if e.get("step") == "load"), 77))
        return data

    return load


STARTS = [event(1, "step.start", step="fill"), event(2, "step.start", step="load"), event(3, "step.start", step="load")]


@pytest.mark.parametrize(
    ("begin_s", "source", "t0_ns", "note"),
    [
        (5, "logs", 5 * SECOND, None),
        (5, "status", 5 * SECOND, "load: the seconds are made of fio's once-a-second documents, good to a second"),
        (0, "logs", 3 * SECOND, "load: fio's own start is not known; the axis begins when it was started, good to a"),
        (0, "status", 3 * SECOND, "load: fio's own start is not known; the axis begins when it was started, good to a"),
    ],
)
def test_when_the_load_began(loaded, begin_s, source, t0_ns, note):
    data = loaded(seconds([2000, 2000], begin_s=begin_s, source=source), STARTS)
    assert data.t0_ns == t0_ns and len(data.notes) == (note is not None)
    assert note is None or data.notes[0].startswith(note)


def test_a_load_without_io_is_none(loaded):
    data = loaded(seconds([]), STARTS)
    assert data.t0_ns is None and len(data.notes) == 1 and data.notes[0].startswith("load: ")


def test_seconds_of_the_load(loaded):
    """The last second was cut short: its I/O count in the whole alone."""
    load = seconds([3000, 0, 999, 5], partial=True, notes=("odd",), lat_ns=[1000, 0, 3000, 7])
    data = loaded(load)
    assert (data.load_s, data.ios, data.iops.tolist(), data.bw_Bps.tolist()) == (
        4.0,
        4004,
        [3000, 0, 999],
        [30_000, 0, 9990],
    )
    assert data.lat_mean_us[[0, 2]].tolist() == [1, 3] and np.isnan(data.lat_mean_us[1])
    assert data.lat_p99_us[0] == 2 and np.isnan(data.lat_p99_us[1:]).all()
    assert data.hist.tolist() == [[0, 300, 3000], [1, 300, 0], [2, 300, 999], [3, 300, 5]] and data.hist_of == "clat"
    assert data.notes == [
        "load: odd",
        "P99 by the second: the I/Os of 1 s are too few for this percentile, which needs 1000",
    ]


def test_a_thousand_ios_are_enough_for_a_p99(loaded):
    data = loaded(seconds([1000, 1000]))
    assert data.lat_p99_us.tolist() == [2, 2] and data.notes == []
    data = loaded(seconds([1000, 2000, 2000], p99_ns=[0, 1, 2]))  # 0: not known
    assert np.isnan(data.lat_p99_us[0]) and data.lat_p99_us[1:].tolist() == [0.001, 0.002] and len(data.notes) == 1
    assert len(loaded(seconds([5], partial=True)).lat_p99_us) == 0
    assert loaded(seconds([1, 0, 2])).notes[0].startswith("P99 by the second: the I/Os of 2 s are")
    data = loaded(seconds([1000], hist_of="lat", source="status"))
    assert data.hist_of == "lat" and data.notes[-1].startswith("P99 by the second covers lat")


def test_seconds_of_a_dilated_drive(loaded):
    """Two host seconds are one of the drive's; of five, the last has no other half."""
    load = seconds([1000, 3000, 999, 1, 5], lat_ns=[4000, 8000, 2000, 2000, 1], p99_ns=[6000, 9000, 7000, 7000, 1])
    data = loaded(load, k=2)
    assert (data.load_s, data.ios, data.iops.tolist(), data.bw_Bps.tolist()) == (
        2.5,
        5005,
        [4000, 1000],
        [40_000, 10_000],
    )
    assert data.lat_mean_us.tolist() == [3.5, 1.0]  # (1000 x 4 + 3000 x 8) / 4000 / 2
    assert data.lat_p99_us[0] == 4.5 and np.isnan(data.lat_p99_us[1])
    assert data.hist.tolist() == [[0, 300, 1000], [0, 300, 3000], [1, 300, 999], [1, 300, 1], [2, 300, 5]]
    assert [note[:34] for note in data.notes] == [
        "P99 by the second: the I/Os of 1 s",
        "P99 of clat by the second: the lar",
    ]
    assert "the largest of the 2 host seconds'" in data.notes[1]


# ---- the histograms of lat in our own status lines


def line(ms: int, slow: int, fast: int = 0, t_ns=True) -> str:
    bins = {str(int(plat_ns(i))): n for i, n in ((300, fast), (500, slow)) if n}
    done = {"N": slow + fast, "mean": 1.0, "bins": bins}
    job = {"jobname": "x", "job_runtime": ms, "write": {"io_bytes": 1, "total_ios": slow + fast, "lat_ns": done}}
    return json.dumps(({"t_ns": 1} if t_ns else {}) | {"jobs": [job]}) + "\n"


@pytest.mark.parametrize(
    ("lines", "times", "cells", "left"),
    [
        ([line(1000, 5), line(3000, 9, 2)], [0, 0.5, 1.5], [[1, 500, 5], [2, 300, 2], [2, 500, 4]], 0),
        ([line(1000, 5), line(2000, 5), line(3000, 6)], [0, 0.5, 1.0, 1.5], [[1, 500, 5], [3, 500, 1]], 0),  # a stall
        ([line(1000, 5), line(1000, 5), line(900, 5)], [0, 0.5], [[1, 500, 5]], 0),  # the same again
        ([line(2000, 7), line(1000, 5), line(3000, 9)], [0, 1.0, 1.5], [[1, 500, 7], [2, 500, 2]], 1),
        (
            [line(1000, 5, 5), line(2000, 9, 4), line(3000, 6, 5)],
            [0, 0.5, 1.5],
            [[1, 300, 5], [1, 500, 5], [2, 500, 1]],
            1,
        ),
        ([line(1000, 5)], [0, 0.5], [[1, 500, 5]], 0),
        ([line(1000, 5, t_ns=False)], None, None, 0),  # fio's own
        (["fio: what\n", '{"t_ns": 1, "bins": 5}\n', line(1000, 5)[:-9]], None, None, 2),
        ([], None, None, 0),
    ],
)
def test_latencies_with_submission(tmp_path, lines, times, cells, left):
    data = run([], k=2)
    (tmp_path / "out.json").write_text("".join(lines))
    _load_lat(data, tmp_path / "out.json")
    assert data.lat_t_s.tolist() == (times or []) and data.lat_hist.tolist() == (cells or [])
    notes = [note for note in data.notes if "documents that do not follow the one before" in note]
    assert len(notes) == bool(left) and all(f": {left} doc" in note for note in notes)
    _load_lat(data, tmp_path / "none.json")
    assert data.lat_t_s.tolist() == (times or [])


# ---- the run as a whole


@pytest.mark.parametrize(("drive", "k"), [({}, 1), ({"time_dilation": None}, 1), ({"time_dilation": 3}, 3)])
def test_the_dilation_of_a_run(tmp_path, drive, k):
    header = {"schema": 1, "run": "r", "started": {"t_ns": 5, "utc_ns": 0}, "drive": drive, "method": {}, "rig": None}
    (tmp_path / "run.json").write_text(json.dumps(header))
    (tmp_path / "events.jsonl").write_bytes(b"")
    data = reading.begin(tmp_path)
    assert data.k == k and data.state == "died" and data.t0_ns is None
    assert data.notes[0] == "events.jsonl: has no event" and data.log == data.marks == []


def test_an_edge_in_a_stall_has_its_documents(tmp_path):
    """Of seconds without I/O fio prints documents, too; without them the window had no latencies with submission."""
    done = [2000 * min(s, 7) if s < 14 else 2000 * (s - 6) for s in range(1, 21)]
    with open(tmp_path / "out.json", "w") as out:
        for s, n in enumerate(done, 1):
            job = {"io_bytes": 0, "total_ios": n, "runtime": 1000 * s, "clat_ns": {"mean": 9e5, "N": n}}
            job["lat_ns"] = {"mean": 9e5, "N": n, "bins": {"900000": n}}
            line = {"t_ns": s * 10**9, "jobs": [{"jobname": "x", "error": 0, "write": job}]}
            out.write(json.dumps(line, separators=(",", ":")) + "\n")
    data = run([])
    data.iops = np.zeros(20)
    _load_lat(data, tmp_path / "out.json")
    counts = [
        window_figures.lat_counts(data, windows.Window("some", *span, {})) for span in ((0, 10), (10, 20), (0, 20))
    ]
    assert [counts_.sum() for counts_ in counts] == [14_000, 14_000, 28_000]
