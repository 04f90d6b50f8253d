"""Views that draw all runs in one plot: each run in its own style, each figure with its error."""

import pytest
import synthetic_plan
from synthetic_reviews import SIX, Carried

from ssdrig.reading import table
from ssdrig.report import page
from ssdrig.views import svg
from ssdrig.views.context import Context

NAMES = ["one", "two", "three"]
STYLES = [svg.look(i) | {"colour": f"--m{i}"} for i in range(3)]


def drawn(tables, view, **more):
    show = next(show for show in tables[0].plan.shows if show["view"] == view)
    return page.html_of(view)(Context(tables, NAMES[: len(tables)], show | more, 0, STYLES[: len(tables)], 1))


@pytest.fixture(scope="module")
def grids(tmp_path_factory):
    base = tmp_path_factory.mktemp("runs")
    return [table.load(synthetic_plan.grid(base, name=f"p-{i}"), by_second=True) for i in range(3)]


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    base = tmp_path_factory.mktemp("runs")
    return [table.load(synthetic_plan.steps(base, name=f"p-{i}"), by_second=True) for i in range(3)]


def test_bars_of_three_runs_are_marks_in_one_plot(steps):
    html = drawn(steps, "bars", value="iops")
    assert html.count("<svg") == 1 and html.count("<title>") == 6  # two steps of three runs
    assert all(f"{name}, clean: 2\u202f000 IOPS" in html for name in NAMES)
    assert all(f"var(--m{i})" in html for i in range(3))
    assert 'class="card"' in drawn(steps[:2], "bars", value="iops")


@pytest.mark.parametrize("view", ["rounds", "lines"])
def test_points_of_each_run_are_in_one_plot(grids, view):
    html = drawn(grids, view)
    plots = html.split("<svg")[1:]
    assert plots and all(f"var(--m{i})" in plot for plot in plots for i in range(3))


def test_load_lines_of_several_runs_are_in_one_plot_a_step(tmp_path):
    runs = [table.load(Carried(tmp_path, "load-line", of, {}, None, 1_700_000_000).all()) for of in SIX[:3]]
    html = drawn(runs, "load-line")
    assert html.count("<svg") == 3  # writes, mixed, reads
    for plot in html.split("<svg")[1:]:
        assert all(plot.count(f'class="line" style="stroke:var(--m{i})') == 1 for i in range(3))
    assert html.count("to keep it awake") == 3, "words of the run that the page is about"
    alone = page.html_of("load-line")(Context(runs[:1], [""], runs[0].plan.shows[0]))
    assert alone.count("<svg") == 3 and alone.count("to keep it awake") == 3


def test_an_error_is_a_line_through_its_mark():
    plot = svg.Plot("x", 480, 300, (0, 10), (0, 100))
    for error in (None, 0.0, 0.01, float("nan")):
        plot.whisker(5, 50, error, STYLES[0])
    assert plot.out == []
    plot.whisker(5, 50, 10.0, STYLES[0])
    (line,) = plot.out
    low, high = plot.y(40), plot.y(60)
    assert f"M{plot.x(5)} {low}V{high}" in line and "var(--m0)" in line


def test_many_runs_share_the_points_of_a_plot():
    assert svg.most_dots(1) == svg.most_dots(2) == svg.MOST_DOTS and svg.most_dots(13) == svg.MOST_DOTS // 12


@pytest.mark.parametrize(("points", "paths"), [([], 0), ([(0.0, 1.0), (1.0, 2.0)], 1), ([(0.0, float("nan"))], 0)])
def test_an_area_without_points_is_not_drawn(points, paths):
    """Seen: `d="Mz"`, an error in the browser's console, for episodes without a deviation."""
    plot = svg.Plot("x", 100, 100, (0.0, 1.0), (0.0, 2.0))
    plot.area(points, points, "fill:red", "band")
    assert plot.text().count('<path class=""') == paths


@pytest.mark.parametrize(
    ("label", "small", "narrowed"), [("PS0", 0, 0), ("ALPM min_power", 3, 0), ("ALPM med_power_with_dipm", 3, 3)]
)
def test_a_label_does_not_reach_into_its_neighbours(label, small, narrowed):
    """Seen: the names of SATA's link states, one over the other."""
    plot = svg.Plot("x", 340, 100, (-0.5, 2.5), (0.0, 2.0))
    plot.axes("State", "W", [(i, label) for i in range(3)])
    assert (plot.text().count('class="mid small"'), plot.text().count("textLength=")) == (small, narrowed)
