"""The report's page of 1, 2 and 12 runs, at three widths and on paper, light and dark, before and after a click. A page
is loaded once; then only the window and the medium change. 6 and 24 runs, and axe-core at all: `selfcheck page`."""

import pytest
from browser import chromium  # noqa: F401  a fixture
from page_cross import (
    BARRIERS,
    BELOW_FIRST_SCREEN,
    CLICK,
    MOST_SHIFT,
    SHEET_PX,
    SHIFT,
    WIDTHS,
    folded,
    medium,
    misfits,
    off_scale_percent,
    placed,
    with_axe,
)
from test_report import READY
from test_report_bars import BARS, check_scale
from test_report_seen import page_of, runs_of, sized

pytestmark = pytest.mark.slow

# looking for barriers takes longer than all the rest: each width and each scheme, with few runs and many
CLICKED = (1400, 390)  # the widest and the narrowest
LOOKED_AT = {1: [(1400, False)], 2: [(390, True)], 12: [(1024, True)]}


def wrong(chromium, width, paper=False):
    """What does not fit; the bars' scale is asserted."""
    check_scale(chromium.js(BARS) * 21)
    return misfits(chromium, width, paper)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return runs_of(tmp_path_factory.mktemp("runs"), 12)


@pytest.mark.parametrize("count", [12, 2, 1])  # the first reads all runs, which are then kept
def test_a_page_of_any_number_of_runs_at_any_size(chromium, runs, count):
    sized(chromium, WIDTHS[0])
    medium(chromium, False)
    chromium.open(page_of(runs[:count]), ready=READY)
    with_axe(chromium)
    counts = {}
    for i, width in enumerate((*WIDTHS, SHEET_PX)):
        paper = width == SHEET_PX
        placed(chromium, width, paper)
        if not paper and count <= 2:
            counts["first screen", width] = chromium.js(BELOW_FIRST_SCREEN)
        if not paper:
            counts["fold", width] = folded(chromium)
        for dark in ((False, True), (True, False))[i % 2]:  # each change draws all plots again
            medium(chromium, dark, paper)
            counts[width, dark] = wrong(chromium, width, paper)
            if not dark and width in CLICKED:  # a click moves what a scheme does not
                chromium.js(CLICK)
                counts[width, "clicked"] = wrong(chromium, width, paper)
                chromium.js(CLICK)
            if (width, dark) in LOOKED_AT.get(count, ()):
                counts["axe", width, dark] = chromium.js(BARRIERS)
    chromium.js("dispatchEvent(new Event('afterprint'))")
    assert {where: what for where, what in counts.items() if what} == {}
    assert chromium.complaints() == [] and chromium.js("document.body.dataset.errors") == ""
    medium(chromium, False)
    chromium.send("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("count", [1, 2, 6])
def test_nothing_moves_while_a_page_is_loaded(chromium, runs, count, width):
    """A starved browser paints what it has of the page, whose rest comes late: the least of up to four loads."""
    sized(chromium, width)
    medium(chromium, False)
    page, shifts = page_of(runs[:count]), []
    while len(shifts) < 4 and min(shifts, default=1.0) > MOST_SHIFT:
        chromium.open(page, ready=READY)
        shifts.append(chromium.js(SHIFT))
    assert min(shifts) <= MOST_SHIFT
    chromium.send("Emulation.clearDeviceMetricsOverride")


def test_a_bar_that_is_off_its_scale_is_found():
    of = lambda *pixels: [["iops_mean", i, 100.0 * (i + 1), px] for i, px in enumerate(pixels)]
    assert off_scale_percent(of(50.0, 100.0, 150.03)) < 0.1
    assert off_scale_percent(of(52.0, 100.0, 150.0)) > 3 and off_scale_percent(of(50.0, 160.0, 150.0)) == 100


SEEN_ROWS = """[...document.querySelectorAll('[data-view="0"] .card[data-key={}] button.row')]
  .filter((row) => row.checkVisibility()).map((row) => +row.dataset.run).sort((a, b) => a - b)"""


@pytest.mark.parametrize(("width", "key", "shown"), [(1400, "iops_mean", 6), (390, "iops_mean", 4), (390, "wa", 3)])
def test_best_runs_and_the_reviewed_one_are_shown_until_all_are_asked_for(chromium, runs, width, key, shown):
    """Run 0 is reviewed: the slowest, with the lowest write amplification. Run 11 is the fastest."""
    sized(chromium, width)
    chromium.open(page_of(runs), ready=READY)
    rows = chromium.js(SEEN_ROWS.format(key))
    assert len(rows) == shown and 0 in rows and (11 in rows) == (key == "iops_mean")
    chromium.js("document.querySelector('.all-runs').click()")
    assert chromium.js(SEEN_ROWS.format(key)) == list(range(12))
    assert chromium.js("document.activeElement.className") == "sort"
    assert chromium.js("document.querySelector('.all-runs')") is None
    chromium.send("Emulation.clearDeviceMetricsOverride")


def test_a_table_of_six_runs_shows_them_all(chromium, runs):
    sized(chromium, 1400)
    chromium.open(page_of(runs[:6]), ready=READY)
    assert chromium.js(SEEN_ROWS.format("iops_mean")) == list(range(6))
    assert not chromium.js("document.querySelector('.all-runs').checkVisibility()")
    chromium.send("Emulation.clearDeviceMetricsOverride")


def test_rows_fold_by_the_runs_that_are_chosen(chromium, runs):
    """Of six drives the last three, with the fastest runs, are hidden: the other six runs have room."""
    sized(chromium, 1400)
    chromium.open(page_of(runs), ready=READY)
    for drive in (3, 4, 5):
        chromium.js(f"document.querySelector('input[name=drive][value=\"{drive}\"]').click()")
    assert chromium.js(SEEN_ROWS.format("iops_mean")) == list(range(6))
    chromium.send("Emulation.clearDeviceMetricsOverride")
