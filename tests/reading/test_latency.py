"""The latency histogram by the second, put together: nothing is lost, and each cell goes where its second lies."""

import json

import numpy as np
import pytest
import synthetic_run
from test_report import run_command

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
    found = latency.over_time(data)
    assert {(s, b): n for s, b, n in found.tolist()} == want and len(found) == len(want)
    assert latency.stretches(data) == 240 and found[:, 2].sum() == data.hist[:, 2].sum()


def test_a_window_has_its_own_seconds(data):
    for t0_s, t1_s in ((0, SECONDS), (100, 101), (105, 105), (500, 2000)):
        inside = (data.hist[:, 0] >= t0_s) & (data.hist[:, 0] < t1_s)
        found = latency.of_window(data.hist, t0_s, t1_s)
        assert (found == data.hist[inside]).all() and latency.counts(found).sum() == data.hist[inside, 2].sum()


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
