"""What is looked at on a report's page at each size and medium, for tests and for `selfcheck page`: texts that are cut
off or lie on each other, the bars' scale, what axe-core calls a barrier."""

from test_report_seen import VENDOR, sized

SHEET_PX = 703  # A4 but for the page's margins
WIDTHS = (1400, 1024, 390)
FOLD_PX = 900  # height of the window, in which the first plot begins
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
# report.js lets a window rest before it draws the plots again
DRAWN = """[...document.querySelectorAll('.panel')].every((panel) =>
  Math.abs(panel.clientWidth - panel.querySelector('.uplot').clientWidth) < 2)"""
CLICK = "document.querySelector('.card[data-key=iops_mean] button.row[data-run=\"0\"]').click()"
BARRIERS = """axe.run(document,
  {resultTypes: ['violations'], preload: false}).then((r) => r.violations.filter((v) =>
  ['serious', 'critical'].includes(v.impact)).map((v) => [v.id, v.nodes.slice(0, 3).map((n) => n.html)]))"""


# words of a plot that stick out of it
CUT_IN_PLOTS = """[...document.querySelectorAll('svg.plot text')].filter((text) => {
  const of = text.ownerSVGElement.getBoundingClientRect(), at = text.getBoundingClientRect();
  return at.width && text.checkVisibility() && (at.left < of.left - 1 || at.right > of.right + 1 || at.top < of.top - 1
    || at.bottom > of.bottom + 1); }).map((text) => text.textContent)"""
# how far what was drawn moved while the page was loaded
SHIFT = """new Promise((resolve) => { let sum = 0;
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) sum += entry.value; })
    .observe({type: 'layout-shift', buffered: true});
  setTimeout(() => resolve(sum), 100); })"""
MOST_SHIFT = 0.05
# the answer that a page begins with, unless it is within the first screen
ANSWERS = ".headline p b, .verdict:not(.headline) p:not(.hidden) b"
BELOW_FIRST_SCREEN = f"""[...document.querySelectorAll('{ANSWERS}')]
  .filter((line) => line.checkVisibility()).slice(0, 1)
  .filter((line) => {{ const at = line.getBoundingClientRect(); return !at.height || at.bottom + scrollY > innerHeight
    || at.right > innerWidth || at.left < 0; }}).map((line) => line.textContent)"""


def with_axe(chromium) -> None:
    """What BARRIERS asks, in the page that is open."""
    chromium.js((VENDOR / "axe.min.js").read_text("utf-8") + "; 0")


def medium(chromium, dark: bool, paper: bool = False) -> None:
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    chromium.send("Emulation.setEmulatedMedia", {"media": "print" if paper else "", "features": [scheme]})


def placed(chromium, width: int, paper: bool = False) -> None:
    """The page at that width, or on paper, its plots drawn."""
    sized(chromium, width)
    if paper:
        medium(chromium, True, paper)
        chromium.js("dispatchEvent(new Event('beforeprint'))")
    else:
        chromium.wait(DRAWN)


def misfits(chromium, width: int, paper: bool = False) -> list[str]:
    """What is cut off, lies on another, or makes the page wider."""
    misfits_ = chromium.js(CUT) + chromium.js(f"{OVERLAP} ? ['values lie on each other'] : []")
    if chromium.js("document.documentElement.scrollWidth") > width:
        misfits_.append("it scrolls sideways")
    return misfits_ + (chromium.js(OFF_SHEET) if paper else [])


def folded(chromium) -> list[str]:
    """Where the first plot begins below the fold."""
    top_px = chromium.js(PLOT)
    return [f"the first plot begins at {top_px:.0f} px"] if top_px > FOLD_PX - 40 else []


def off_scale_percent(bars: list) -> float:
    """By how much the worst of the BARS is longer or shorter than its value says, on the scale of its card; 0.05 px
    are rounding. 100: a longer bar has a smaller value."""
    worst = 0.0
    for key in {bar[0] for bar in bars}:
        of_card = sorted((value, px) for name, _, value, px in bars if name == key)
        scale = max(px for _, px in of_card) / max(value for value, _ in of_card)
        if [px for _, px in of_card] != sorted(px for _, px in of_card):
            return 100.0
        for value, px in of_card:
            worst = max(worst, 100 * max(0.0, abs(px - value * scale) - 0.05) / max(value * scale, 1e-9))
    return worst
