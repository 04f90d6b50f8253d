"""The view `demand`: latency and power over IOPS, for more and more I/Os in flight."""

import re

import browser
import pytest
from synthetic_plan import Writer

from ssdrig.reading import table
from ssdrig.report import page
from ssdrig.views.context import Context
from ssdrig.views.demand import html as demand_html

pytestmark = pytest.mark.slow

THREADS, DEPTHS = (32, 8, 1), (32, 16, 8, 4, 2, 1)
LIMIT, HALF = 40_000, 4  # IOPS that the drive comes to at most; I/Os in flight for half of them
PLAN = f"""schema = 1
name = "demo"
title = "Demand"
source = "a test"
about = "Threads by queue depths, in rounds."
[[step]]
name = "demand"
do = "repeat"
times = 2
  [[step.step]]
  name = "point"
  do = "load"
  pattern = "random"
  read = 65
  block = "4 KiB"
  over = [{{ threads = {list(THREADS)} }}, {{ qd = {list(DEPTHS)} }}]
  time = "2 s"
"""
SHOW = '[[show]]\nview = "demand"\nof = "demand/point"\nby = "threads"\n'


def rate(threads: int, depth: int) -> int:
    """IOPS at these threads and queue depth; threads cost the host a little."""
    return round((LIMIT - 50 * threads) * threads * depth / (threads * depth + HALF))


def sweep(runs, shows=SHOW, rounds=2, power=True, lacking=(), **more):
    w = Writer(runs, PLAN + shows, **more)
    for number in range(1, rounds + 1):
        for i, threads in enumerate(THREADS):
            for k, depth in enumerate(DEPTHS):
                label = f"demand/point threads={threads} qd={depth}"
                if (threads, depth) in lacking:
                    w.not_run(label, "the host has too few CPUs")
                    continue
                iops = rate(threads, depth)
                w.load(
                    "demand/point",
                    [iops] * 2,
                    1 + iops / LIMIT,
                    lat_ns=round(1e9 * threads * depth / iops),
                    folder=f"demand/point/r{number:02}/p{i * len(DEPTHS) + k + 1:02}",
                    round=number,
                    point={"threads": threads, "qd": depth},
                )
    return w.end(power=power)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return table.load(sweep(tmp_path_factory.mktemp("demand"), lacking=[(32, 32)]))


def test_a_line_for_each_number_of_threads_along_the_queue_depth(run):
    lines = demand_html.lines(run, "demand/point", run.plan.shows[0], "lat_mean")
    assert list(lines) == ["threads 32", "threads 8", "threads 1"]
    for threads, dots in zip(THREADS, lines.values(), strict=True):
        assert [dot.at for dot in dots] == [f"queue depth {depth}" for depth in DEPTHS]
        for depth, dot in zip(DEPTHS, dots, strict=True):
            if (threads, depth) == (32, 32):
                assert dot[1:] == (None, None, "not run: the host has too few CPUs")
                continue
            assert dot.speed == pytest.approx(rate(threads, depth), rel=0.01)
            assert dot.speed * dot.value / 1e6 == pytest.approx(threads * depth, rel=0.02), "Little's law"


def test_the_page_has_latency_and_power_over_iops(run):
    made = page.render([run])
    assert "Demand intensity</b>" in made and "Demand intensity, power</b>" in made
    words = "Rounds 1 to 2 together. Next to the marks: queue depth. Not drawn: not run: the host has too few CPUs."
    assert made.count(words) == 2
    assert "threads 1, queue depth 1: 7\u202f990 IOPS, 0.125 ms" in made, "what a pointer reads"
    assert "threads 8, queue depth 4: 35\u202f200 IOPS, 1.88 W" in made
    assert made.count('class="line"') == 3 * len(THREADS) and "IOPS over I/Os in flight</b>" in made
    assert "threads 32, 512 in flight: 38" in made and "threads 1, 2 in flight: " in made


def test_a_line_breaks_at_a_point_that_is_not_known(tmp_path):
    run = table.load(sweep(tmp_path, SHOW + 'where = "threads=8"\n', rounds=1, lacking=[(8, 8)]))
    made = page.render([run])
    path, *others = re.findall(r'<path class="line"[^>]* d="([^"]*)"', made)
    assert [len(piece.split("L")) for piece in path.split("M")[1:]] == [2, 3], "32, 16; 4, 2, 1"
    assert len(others) == 2


def test_marks_that_lie_on_each_other_have_one_label(run):
    """8 threads at queue depth 1 do what 1 thread does at 8."""
    made = demand_html.demand(Context([run], ["x"], run.plan.shows[0]))
    for plot in made.split("<svg")[1::2]:  # of latency and of power
        labels = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" class="soft small">(\d+)<', plot)
        boxes = [(float(x), float(y), len(words)) for x, y, words in labels]
        near = [(a, b) for a in boxes for b in boxes if a != b and abs(a[1] - b[1]) < 9 and 0 <= b[0] - a[0] < 6 * a[2]]
        assert near == [] and {"1", "2", "4"} <= {words for *_, words in labels}


def test_without_power_there_is_one_panel(tmp_path):
    made = page.render([table.load(sweep(tmp_path, rounds=1, power=False))])
    assert "Demand intensity</b>" in made and "Demand intensity, power" not in made


def test_a_plan_names_other_figures(tmp_path):
    show = '[[show]]\nview = "demand"\nof = "demand/point"\nwhere = "threads=8"\nspeed = "MB/s"\nvalue = "J/GB"\n'
    run = table.load(sweep(tmp_path, show))
    html = demand_html.demand(Context([run], ["one"], run.plan.shows[0], 0))
    assert html.count("<figure") == 1 and ">MB/s</text>" in html and "J/GB" in html and ">IOPS</text>" not in html
    iops = rate(8, 32)
    speed, energy = iops * 4096 / 1e6, (1 + iops / LIMIT) / (iops * 4096 / 1e9)
    (dots,) = demand_html.lines(run, "demand/point", run.plan.shows[0], "J/GB").values()
    assert dots[0].speed == pytest.approx(speed, rel=0.01) and dots[0].value == pytest.approx(energy, rel=0.02)


def test_where_picks_one_line_and_the_plan_names_scale_and_title(tmp_path):
    show = SHOW + 'where = "threads=8"\nscale = "linear"\ntitle = "How deep"\ntop = 50\n'
    run = table.load(sweep(tmp_path, show, rounds=1))
    assert list(demand_html.lines(run, "demand/point", run.plan.shows[0], "W")) == ["threads 8"]
    made = page.render([run])
    assert "How deep</b>" in made and made.count('class="line"') == 3


def test_a_sweep_of_one_key_is_dots_each_a_line_of_its_own(run):
    show = {"view": "demand", "of": "demand/point", "by": "qd", "where": "threads=1"}
    lines = demand_html.lines(run, "demand/point", show, "lat_mean")
    assert [len(dots) for dots in lines.values()] == [1] * len(DEPTHS) and lines["queue depth 2"][0].at == ""


@pytest.mark.slow
def test_without_by_all_runs_share_a_panel(run):
    show = {"view": "demand", "of": "demand/point", "where": "threads=8"}
    assert list(demand_html.lines(run, "demand/point", show, "lat_mean")) == [""]
    made = demand_html.demand(Context([run, run], ["first", "second"], show))
    assert made.count("<figcaption>") == 2 and made.count("first, queue depth 16:") == 2  # of latency, of power
    legends = re.findall(r'class="legend".*?</ul>', made)
    assert len(legends) == 2 and all("first" in legend and "second" in legend for legend in legends)
    alone = demand_html.demand(Context([run], ["first"], show))
    assert alone.count("<figcaption>") == 2 and 'class="legend"' not in alone


def test_in_a_browser_it_fits_a_phone(run, tmp_path):
    if not browser.find():
        pytest.skip("no Chromium is installed: the page was not run")
    out = tmp_path / "page.html"
    out.write_text(page.render([run]))
    with browser.Browser(390) as b:
        b.open(out)
        assert b.js("document.documentElement.scrollWidth <= innerWidth") and b.complaints() == []
