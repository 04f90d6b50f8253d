"""The computation of our own that test_plan_percentiles.py compares with: equal on a made run, and off where the
reading is changed."""

import json
import shutil
from dataclasses import replace

import numpy as np
import own_percentiles
import pytest
from fio_folders import START_MS, write_step
from synthetic_plan import GAP_NS, Writer

from ssdrig.load import fiotext
from ssdrig.reading import directions, table, window_figures
from ssdrig.views import documents

PLAN = """schema = 1
name = "demo"
title = "Reads with writes, and bursts"
source = "a test"
about = "Reads and writes together, then bursts."
scaled = ["quick"]
[variant.quick]
[[step]]
name = "mixed"
do = "load"
pattern = "random"
read = 50
block = "4 KiB"
qd = 1
time = "8 s"
windows = { middle = "2 s..5 s" }
[[step]]
name = "bursts"
do = "load"
pattern = "random"
read = 0
block = "4 KiB"
qd = 1
on = "2 s"
off = "3 s"
cycles = 2
"""
FIRST_S, ON_S, OFF_S = 5, 2, 3
LATE_MS = 300  # of each document after the second that it is of
LATEST_NS = 2_500_000  # an I/O of the first burst that completes in the pause after it


def put(run, label: str, io: list[tuple[float, int, int]], seconds: int, threads: int = 1) -> None:
    """fio's documents and its histogram log of this I/O, [(ms since job start, ns, direction)], in the place of a
    load's. The run time of a grouped job is that of its `threads` together."""
    folder = run / "fio" / label
    for log in folder.glob("*.log"):
        log.unlink()
    first_ns = next(e["t_ns"] for e in events(run) if e["kind"] == "step.start" and e["step"] == label) + GAP_NS
    made = write_step(folder / "made", io, 1000 * seconds, name=label, documents=False, started=False)
    rows = (made / f"{label}_clat_hist.1.log").read_text().splitlines()
    stamped = [(int(row.partition(",")[0]) - START_MS + first_ns // 10**6, row.partition(",")[2]) for row in rows]
    shutil.rmtree(made)
    (folder / f"{label}_clat_hist.1.log").write_text("".join(f"{ms},{rest}\n" for ms, rest in stamped))
    lines = []
    for ms in [*range(1000 + LATE_MS, 1000 * seconds, 1000), 1000 * seconds]:
        job = {"jobname": label, "error": 0, "job_runtime": threads * ms, "job options": {"numjobs": str(threads)}}
        for direction, side in enumerate(("read", "write")):
            done = [ns for at_ms, ns, of in io if of == direction and int(at_ms) <= ms]
            if done:
                index, counts = np.unique(fiotext.plat_index(np.array(done)), return_counts=True)
                held = dict(zip(map(str, fiotext.plat_ns(index).tolist()), counts.tolist(), strict=True))
                lat = {"N": len(done), "mean": float(np.mean(done)), "bins": held}
                job[side] = {"io_bytes": 4096 * len(done), "total_ios": len(done), "runtime": ms}
                job[side] |= {"clat_ns": lat, "lat_ns": lat}
        lines.append(json.dumps({"t_ns": first_ns + 10**6 * ms, "timestamp_ms": 0, "jobs": [job]}) + "\n")
    (folder / "out.json").write_text("".join(lines))


def events(run) -> list[dict]:
    return [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]


def second(number: int, count: int, us: float, direction: int, dice) -> list[tuple[float, int, int]]:
    """So many I/Os of a second, whose latency is by chance around `us`."""
    ns = (1000 * us * dice.lognormal(0, 0.3, count)).astype(int).tolist()
    return [(1000 * number + 1 + 998 * i / count, at, direction) for i, at in enumerate(ns)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of reads with writes that are slower, and of bursts after a first one that is slower than they and ends
    late."""
    writer, dice = Writer(tmp_path_factory.mktemp("run"), PLAN, "quick", {}), np.random.default_rng(3)
    bursting = [True] * FIRST_S + ([False] * OFF_S + [True] * ON_S) * 2
    writer.load("mixed", [5000] * 8, 2.0)
    writer.load("bursts", [2000 * on for on in bursting], 2.0)
    run = writer.end()
    mixed = [second(n, 2500, us + 10 * n, side, dice) for n in range(8) for side, us in enumerate((80, 300))]
    put(run, "mixed", sorted(sum(mixed, [])), 8)
    us = [3000] * FIRST_S + [200] * (OFF_S + ON_S) + [100] * (OFF_S + ON_S)
    bursts = [second(n, 2000, us[n], 1, dice) for n, on in enumerate(bursting) if on]
    put(run, "bursts", sorted([*sum(bursts, []), (1000 * FIRST_S + 4, LATEST_NS, 1)]), len(bursting), threads=4)
    return run


def compared(run) -> dict[str, own_percentiles.Compared]:
    return {row.label: row for row in own_percentiles.compared(run, documents.of_table(table.load(run)))}


def test_figures_of_a_made_run_are_equal(made):
    rows = compared(made)
    assert {label: row.off for label, row in rows.items()} == {"mixed": [], "mixed, middle": [], "bursts": []}
    assert [row.figures for row in rows.values()] == [18, 5, 4]


def test_error_of_the_longest_of_a_row_after_its_first_burst_covers_one_that_completed_late(made):
    """Of the row that it closes fio's log does not show which I/O it is, and slower ones are between the same two
    documents."""
    figures = next(row for row in table.load(made).rows if row.act.path == "bursts").windows["all"]
    assert abs(figures["lat_max_us"] - LATEST_NS / 1000) <= figures["errors"]["lat_max_us"] < figures["lat_max_us"]


def dropped(quantile: float):
    """The reading of histograms without the bin in which this share of the I/Os is reached."""
    bins = fiotext.bins

    def without(*args):
        counts = np.array(bins(*args))
        if counts.any():
            counts[np.searchsorted(np.cumsum(counts), quantile * counts.sum())] = 0
        return counts

    return fiotext, "bins", without


def merged():
    histograms = directions.histograms
    return (
        directions,
        "histograms",
        lambda document: dict.fromkeys(("read", "write"), sum(histograms(document).values())),
    )


def shifted(by_s: int):
    figures = window_figures.figures_in

    def late(data, window):
        at = [min(max(0, t_s + by_s), len(data.iops)) for t_s in (window.t0_s, window.t1_s)]
        at = at if at[0] < at[1] else [window.t0_s, window.t1_s]
        return figures(data, replace(window, t0_s=at[0], t1_s=at[1])) | {"t0_s": window.t0_s, "t1_s": window.t1_s}

    return window_figures, "figures_in", late


@pytest.mark.parametrize(
    ("change", "label"),
    [
        (lambda: dropped(0.5), "mixed"),
        (lambda: dropped(0.99), "mixed"),
        (lambda: dropped(1.0), "mixed"),
        (merged, "mixed"),
        (lambda: shifted(1), "mixed, middle"),
        (lambda: shifted(-1), "bursts"),
        (lambda: shifted(-FIRST_S), "bursts"),
        (lambda: shifted(FIRST_S), "bursts"),
    ],
    ids=["median bin", "P99", "longest", "reads with writes", "1 s late", "1 s early", "first burst", "a cycle late"],
)
def test_a_changed_reading_is_off(made, monkeypatch, change, label):
    monkeypatch.setattr(*change())
    assert compared(made)[label].off
