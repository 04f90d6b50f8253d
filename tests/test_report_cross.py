"""The report's page at all sizes: 1 to 24 runs, at three widths and on paper, light and dark, before and after a click.
A page is loaded once; then only the window and the medium change."""

import pytest
from browser import chromium  # noqa: F401  a fixture
from test_report import READY
from test_report_bars import BARS, check_scale
from test_report_seen import VENDOR, page_of, runs_of, sized

pytestmark = pytest.mark.slow

SHEET_PX = 703  # A4 but for the page's margins
WIDTHS = (1400, 1024, 390)
# texts of the head, the table, the legend and the controls that stick out of their box or of the page
CUT = """[...document.querySelectorAll('h1, .verdict p, .cap h3, .row .name, .row .value, .row .percent, .why,'
  + '#legend li, .readout th, .readout td, label, th, figcaption')]
  .filter(e => !e.closest('.scroll') && (e.scrollWidth > e.clientWidth + 1
    || e.getBoundingClientRect().right > document.documentElement.clientWidth + 1))
  .filter(e => e.checkVisibility() && getComputedStyle(e).position !== 'absolute'
    && (getComputedStyle(e).display !== 'inline'
      || e.getBoundingClientRect().right > document.documentElement.clientWidth + 1))
  .map(e => e.className + ' ' + e.textContent)"""
# how many values of a table lie on each other
OVERLAP = """[...document.querySelectorAll('.ranking')].filter(t => t.getClientRects().length).flatMap(t => {
  const box = (e) => { const r = document.createRange(); r.selectNodeContents(e.firstChild);
    return r.getBoundingClientRect(); };
  const texts = [...t.querySelectorAll('button.row .value')].map(box);
  const on = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  return texts.flatMap((a, i) => texts.slice(i + 1).filter(b => on(a, b))); }).length"""
# what makes the sheet wider: a browser then prints all of it smaller
OFF_SHEET = """[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1
  && e.getBoundingClientRect().width > 1 && e.checkVisibility())
  .map((e) => e.tagName + '.' + (e.className.baseVal ?? e.className) + ' ' + e.textContent.slice(0, 40))"""
PLOT = "document.querySelector('[data-panel=whole] .u-over').getBoundingClientRect().top"
# report.js lets a window rest before it draws the plots anew
DRAWN = """[...document.querySelectorAll('.panel')].every((panel) =>
  Math.abs(panel.clientWidth - panel.querySelector('.uplot').clientWidth) < 2)"""
CLICK = "document.querySelector('.card[data-key=iops_mean] button.row[data-run=\"0\"]').click()"
BARRIERS = """axe.run(document,
  {resultTypes: ['violations'], preload: false}).then((r) => r.violations.filter((v) =>
  ['serious', 'critical'].includes(v.impact)).map((v) => [v.id, v.nodes.slice(0, 3).map((n) => n.html)]))"""
# looking for barriers takes longer than all the rest: each width and each scheme, with few runs and many
CLICKED = (1400, 390)  # the widest and the narrowest
LOOKED_AT = {1: [(1400, False)], 2: [(390, True)], 6: [(1024, True)], 12: [(1400, False)]}


def medium(chromium, dark: bool, paper: bool = False) -> None:
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    chromium.send("Emulation.setEmulatedMedia", {"media": "print" if paper else "", "features": [scheme]})


def wrong(chromium, width, paper=False):
    """What does not fit; the bars' scale is asserted."""
    check_scale(chromium.js(BARS) * 21)
    found = chromium.js(CUT) + chromium.js(f"{OVERLAP} ? ['values lie on each other'] : []")
    if chromium.js("document.documentElement.scrollWidth") > width:
        found.append("it scrolls sideways")
    return found + (chromium.js(OFF_SHEET) if paper else [])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return runs_of(tmp_path_factory.mktemp("runs"), 24)


@pytest.mark.parametrize("count", [24, 12, 6, 2, 1])  # the first reads all runs, which are then kept
def test_a_page_of_any_number_of_runs_at_any_size(chromium, runs, count):
    sized(chromium, WIDTHS[0])
    medium(chromium, False)
    chromium.open(page_of(runs[:count]), ready=READY)
    chromium.js((VENDOR / "axe.min.js").read_text("utf-8") + "; 0")
    found = {}
    for i, width in enumerate((*WIDTHS, SHEET_PX)):
        paper = width == SHEET_PX
        sized(chromium, width)
        if paper:
            medium(chromium, True, paper)
            chromium.js("dispatchEvent(new Event('beforeprint'))")
        else:
            chromium.wait(DRAWN)
        if width == 1400 and count <= 6:
            found["fold"] = [plot] if (plot := chromium.js(PLOT)) > 900 - 40 else []
        for dark in ((False, True), (True, False))[i % 2]:  # each change draws all plots again
            medium(chromium, dark, paper)
            found[width, dark] = wrong(chromium, width, paper)
            if not dark and width in CLICKED:  # a click moves what a scheme does not
                chromium.js(CLICK)
                found[width, "clicked"] = wrong(chromium, width, paper)
                chromium.js(CLICK)
            if (width, dark) in LOOKED_AT.get(count, ()):
                found["axe", width, dark] = chromium.js(BARRIERS)
    chromium.js("dispatchEvent(new Event('afterprint'))")
    assert {where: what for where, what in found.items() if what} == {}
    assert chromium.complaints() == [] and chromium.js("document.body.dataset.errors") == ""
    medium(chromium, False)
    chromium.send("Emulation.clearDeviceMetricsOverride")
