"""The latency histogram by the second, put together: nothing is lost, and each cell goes where its second lies."""

import json

import numpy as np
import pytest
import synthetic_run
from test_report import run_command

from ssdrig.load.fiotext import plat_ns
from ssdrig.reading import RunData, latency, summary, table

SECONDS = 1001  # not a whole number of seconds in each stretch


@pytest.fixture(scope="module")
def data() -> RunData:
    dice = np.random.default_rng(3)
    cells = [(s, b, int(dice.integers(1, 9))) for s in range(SECONDS) if s % 7 for b in dice.choice(1856, 3, False)]
    run = RunData({}, [], "complete", None, 1)
    run.iops = np.ones(SECONDS)
    run.hist = np.array(cells, np.int64)
    return run


def test_each_cell_is_in_the_stretch_of_its_second(data):
    want: dict[tuple[int, int], int] = {}
    for second, bin_, count in data.hist.tolist():
        at = second * latency.STRETCHES // SECONDS, bin_
        want[at] = want.get(at, 0) + count
    cells = latency.over_time(data)
    assert {(s, b): n for s, b, n in cells.tolist()} == want and len(cells) == len(want)
    assert latency.stretches(data) == 240 and cells[:, 2].sum() == data.hist[:, 2].sum()


def test_a_window_has_its_own_seconds(data):
    for t0_s, t1_s in ((0, SECONDS), (100, 101), (105, 105), (500, 2000)):
        inside = (data.hist[:, 0] >= t0_s) & (data.hist[:, 0] < t1_s)
        cells = latency.of_window(data.hist, t0_s, t1_s)
        assert (cells == data.hist[inside]).all() and latency.counts(cells).sum() == data.hist[inside, 2].sum()


def test_a_load_without_histogram_has_none():
    run = RunData({}, [], "complete", None, 1)
    assert latency.over_time(run).shape == (0, 3) and latency.stretches(run) == 0


def test_a_load_that_ended_within_its_first_second_is_no_defect(tmp_path):
    """Of a SIMULATED drive whose second lasts two of the host's, and killed in it: I/Os, and no second to count in."""
    run = synthetic_run.write(tmp_path, [300], dilation=2, state=None, fill_s=1, zoom_s=0)
    header = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(header | {"host": None}))
    data, figures = summary.load(run)
    assert len(data.iops) == 0 < len(table.in_full(run).data.hist)
    assert not len(data.lat_over_time) and figures["windows"]["all"] is None
    code, out, _ = run_command(run, "--json", "--csv", tmp_path / "csv", "--quiet")
    assert code == 0 and json.loads(out)["rows"] and (run / "report.html").exists()


@pytest.fixture(scope="module")
def busy() -> RunData:
    """A load whose seconds have some 700 I/Os each, and one that has none."""
    dice = np.random.default_rng(5)
    bins = np.minimum(1300 + dice.exponential(40, (SECONDS, 70)), 1855).astype(int)
    cells = [
        (s, b, 10 * n) for s in range(SECONDS) if s != 500 for b, n in zip(*np.unique(bins[s], return_counts=True))
    ]
    run = RunData({}, [], "complete", None, 2)
    run.iops = np.full(SECONDS, 700.0)
    run.hist = np.array(cells, np.int64)
    run.lat_over_time = latency.over_time(run)
    return run


def test_a_tail_is_that_of_its_stretch_and_covers_the_load(busy):
    tail = latency.tail_over_time(busy)
    assert (tail.edges_s[0], tail.edges_s[-1]) == (0, SECONDS) and (np.diff(tail.edges_s) > 0).all()
    assert len(tail.us) == len(tail.edges_s) - 1 > 30
    for first, last, us in zip(tail.edges_s, tail.edges_s[1:], tail.us):
        inside = busy.hist[(busy.hist[:, 0] >= first) & (busy.hist[:, 0] < last)]
        values = np.sort(np.repeat(inside[:, 1], inside[:, 2]))
        assert len(values) >= latency.TAIL_IOS
        assert us == plat_ns(values[len(values) - len(values) // 1000 - 1]) / 1000 / 2


def test_a_load_of_too_few_ios_has_no_tail(data):
    few = RunData({}, [], "complete", None, 1)
    few.iops, few.hist = data.iops, data.hist[: len(data.hist) // 2]
    few.lat_over_time = latency.over_time(few)
    assert few.hist[:, 2].sum() < latency.TAIL_IOS
    for run in (few, RunData({}, [], "complete", None, 1)):
        assert not len(latency.tail_over_time(run).us)
