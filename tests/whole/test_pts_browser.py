"""The pages of the PTS plans in headless Chromium, as wide as a phone: all plots and tables that the standard
prescribes are there and drawn, with named axes, and nothing complains."""

import re

import browser
import pts_runs
import pytest

from ssdrig.report import page

WIDTH = 390  # px
SMALLEST = 7.5  # px of the words of a plot
# SNIA PTS 2.0 as its implementations print it: words of the titles; a table stands for what is none of a plot
PRESCRIBED = {
    "pts-iops": {
        "plots": ["Mean IOPS by the round", *["Steady state: iops read="] * 3, "Mean IOPS by block size"],
        "tables": ["Mean IOPS by block size and read share", "Mean power by block size", "IOPS per watt by block size"],
    },
    "pts-tp": {
        "plots": [
            "Throughput by the round, 1024",
            "Throughput by the round, 128",
            "Steady state, 1024",
            "Steady state, 128",
        ],
        "tables": ["Throughput, power and energy"],
    },
    "pts-lat": {
        "plots": ["Mean latency (lat) by the round", "Longest latency (lat) by the round", "Steady state: lat_mean"]
        + ["Latency histogram", "the share of I/Os that took longer"],
        "tables": ["Mean latency (lat) by", "P99.999 latency (lat) by", "Longest latency (lat) by"],
    },
    "pts-wsat": {
        "plots": ["IOPS by the second", "IOPS by the minute", "IOPS over the bytes written", "IOPS over drive fills"]
        + ["Steady state: iops", "Latency histogram", "Energy per I/O over drive fills", "Power over drive fills"]
        + ["Write amplification since the start of the step over drive fills"],
        "tables": ["Saturated: the last 20 %", "All of it, the fresh drive too"],
    },
    "pts-hir": {
        "plots": ["IOPS: precondition, wait-5, after-5", "Steady state of the preconditioning", "Power: precondition"],
        "tables": ["The last cycles of each pause"],
    },
    "pts-xsr": {
        "plots": ["Throughput: before, stimulus, after", "Mean latency (lat): before", "Longest latency (lat): before"],
        "tables": ["Recovery of after", "The end of each group", "Each group"],
    },
    "pts-dirth": {
        "plots": ["IOPS: precondition", "Steady state of the preconditioning", "Writes between the rounds, Mean IOPS"]
        + ["Mean IOPS by the round, threads 32", "Steady state: iops threads=32", "Mean IOPS by queue depth"]
        + ["Demand intensity", "IOPS over I/Os in flight", "IOPS: histograms/before"]
        + [f"Latency histogram, histograms/histogram at={at}" for at in ("max", "mid", "min")],
        "tables": ["Mean IOPS by threads and queue depth", "CPU of the host", "Operating points"],
    },
}
UNIT = re.compile(r"IOPS|MB/s|\bW\b|µJ|J/GB|\bms\b|µs|°C|NAND / host bytes|share of the I/Os|I/Os")
ALONG = re.compile(
    r"^(round|block size|queue depth|minute|IOPS|MB/s|ms,|s since|one step after|GB written|drive fills|I/Os in)"
)
# of each plot: the title of its panel, of its axes, how much is drawn in it, and how high its words are on the screen
PLOTS = """[...document.querySelectorAll('figure svg.plot')].map((plot) => {
  const soft = [...plot.querySelectorAll('text.mid.soft')], box = plot.viewBox.baseVal;
  const drawn = [...plot.querySelectorAll('path:not(.grid):not(.tick):not(.axis)')].filter((path) => {
    const at = path.getBBox(); return path.getAttribute('d').length > 3 && at.width + at.height >= 0; });
  const seen = (text) => text.getBoundingClientRect().height > 0;
  return {title: plot.closest('figure').querySelector('b').textContent, drawn: drawn.length,
    x: soft.find((text) => text.getAttribute('y') == box.height - 6 && seen(text))?.textContent,
    y: soft.find((text) => (text.getAttribute('transform') || '').includes('rotate') && seen(text))?.textContent,
    px: 12 * plot.getBoundingClientRect().width / box.width};
})"""
TABLES = """[...document.querySelectorAll('figure')].filter((figure) => figure.querySelector('td')).map((figure) =>
  [figure.querySelector('b').textContent, figure.querySelectorAll('td').length])"""
# entries of legends: that can be seen, and all
LEGENDS = """(() => { const all = [...document.querySelectorAll('figure .legend li')];
  return [all.filter((entry) => entry.getBoundingClientRect().height > 0).length, all.length]; })()"""


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def phone():
    """One browser, as wide as a phone, for all pages."""
    if not browser.find():
        pytest.skip("no Chromium is installed: the pages were not run")
    with browser.Browser(WIDTH) as b:
        size = {"width": WIDTH, "height": 844, "deviceScaleFactor": 1, "mobile": False}
        b.send("Emulation.setDeviceMetricsOverride", size)
        yield b


@pytest.mark.parametrize("name", pts_runs.ALL)
def test_all_prescribed_plots_are_drawn_on_a_phone(phone, tmp_path_factory, name):
    wanted, (_, table_) = PRESCRIBED[name], pts_runs.made(tmp_path_factory, name)
    file = tmp_path_factory.mktemp("page") / f"{name}.html"
    file.write_text(page.render([table_]))
    phone.open(file)
    assert phone.js("innerWidth") == WIDTH and phone.js("document.documentElement.scrollWidth") <= WIDTH
    plots, tables = phone.js(PLOTS), phone.js(TABLES)
    for plot in plots:
        assert plot["drawn"] and plot["px"] >= SMALLEST, plot
        assert UNIT.search(plot["y"]) and ALONG.search(plot["x"]), plot
    for title in wanted["plots"]:
        assert sum(title in plot["title"] for plot in plots) >= wanted["plots"].count(title), title
    for title in wanted["tables"]:
        assert any(title in of and cells for of, cells in tables), title
    views = sum(show["view"] not in ("bars", "figure") for show in table_.plan.shows)
    assert len(plots) + len(tables) >= views > 2
    seen, entries = phone.js(LEGENDS)  # a line that nothing names says nothing
    assert seen == entries and (entries or name in ("pts-hir", "pts-xsr"))
    assert phone.complaints() == [] and phone.requests() == [file.resolve().as_uri()]
