"""Plots of the report page that Python draws: two figures of the runs against each other, the rails of a run."""

import csv
import io
import re

import pytest
import synthetic_run

from ssdrig.reading import table
from ssdrig.report import loads, plates
from ssdrig.views.svg import extent

TWELVE = ("12V <b>", ((-100, 0.5), (0, 6.0), (10, 3.0)), 740_000, None)
MARK = re.compile(r'<path class="of-run r(\d)" d="[^"]*" transform="translate\(([\d.]+) ([\d.]+)\)')


@pytest.fixture(scope="module")
def side(tmp_path_factory):
    """The loads of three runs: the first has two rails, the last no rig."""
    base = tmp_path_factory.mktemp("runs")
    runs = [
        synthetic_run.write(base, [900, 1100] * 10, zoom_s=4, more_rails=[TWELVE], name="two"),
        synthetic_run.write(base, [2000, 2010] * 10, zoom_s=4, name="one"),
        synthetic_run.write(base, [500] * 20, zoom_s=4, name="none", power=False),
    ]
    return loads.Loads([table.in_full(run)[:2] for run in runs], 0)


def of_kind(side, name):
    return [one for one in plates.every(side.runs, side.views, side.names, side.looks, 0) if one.name == name]


@pytest.mark.parametrize(
    ("name", "x_key", "y_key", "drawn"),
    [("iops-sigma", "iops_mean", "iops_sd", [0, 1]), ("energy-speed", "bw_mean_MBps", "energy_J_per_GB", [0, 1])],
)
def test_a_mark_for_each_run_at_its_figures(side, name, x_key, y_key, drawn):
    made = of_kind(side, name)
    assert made
    for plate in made:
        figures = side.views[plate.view].figures
        rows = list(csv.DictReader(io.StringIO(plate.csv)))
        known = [i for i in drawn if figures[i][x_key] and figures[i][y_key]]
        assert [float(row[x_key]) for row in rows] == pytest.approx(
            [figures[i][x_key] for i in reversed(known)], rel=1e-5
        )
        marks = {int(run): float(x) for run, x, _ in MARK.findall(plate.svg)}
        assert sorted(marks) == known
        axis = plates.Plot(
            "", plates.WIDTH, plates.HEIGHT, extent([figures[i][x_key] for i in known], True), (1, 2), x_log=True
        )
        assert marks == {i: axis.x(figures[i][x_key]) for i in known}


def test_each_window_has_its_plot_and_one_run_has_none(side):
    assert {plate.view for plate in of_kind(side, "iops-sigma")} == set(range(len(side.views)))
    alone = loads.Loads([(side.runs[0], side.figures[0])], 0)
    assert not of_kind(alone, "iops-sigma") and not of_kind(alone, "energy-speed")


def test_dotted_lines_are_of_equal_power(side):
    """J/GB times MB/s is a thousand times W: a line's two ends agree."""
    of = next(one for one in plates.FRONTIERS if one.name == "energy-speed")
    plot = plates.Plot("", plates.WIDTH, plates.HEIGHT, (1.0, 100.0), (1.0, 1000.0), x_log=True, y_log=True)
    plates._iso(plot, of, 2.0, (1.0, 100.0), (1.0, 1000.0), [])
    ((_, ((x0, y0), (x1, y1))),) = plot.drawn
    assert (x0 * y0, x1 * y1) == (pytest.approx(2000), pytest.approx(2000)) and (x0, x1) == (2.0, 100.0)


def test_rails_lie_on_each_other(side):
    plate = plates.still("rails", side.runs, side.looks, 0)
    assert plate is not None
    names = re.findall(r"<title>(.*?)</title>", plate.svg)
    assert set(names) == {"5V", "12V &lt;b&gt;"} and "<b>" not in plate.svg
    assert plates.still("rails", side.runs[1:], side.looks[1:], 0) is None
    assert 'data-panel="rails"' in side.shown()
    alone = loads.Loads([(side.runs[1], side.figures[1])], 0)
    assert 'data-panel="rails"' not in alone.shown()


def test_the_panel_of_the_tail_is_there_where_a_run_has_it(side, tmp_path):
    assert 'data-panel="tail"' in side.shown()  # 40 000 I/Os
    few = table.in_full(synthetic_run.write(tmp_path, [100] * 20, zoom_s=4))[:2]
    assert 'data-panel="tail"' not in loads.Loads([few], 0).shown()
