"""The page of a review with a library of six drives at two over-provisionings and eleven plans: its size, how far it
reaches on a desktop and on a phone, what axe-core finds, and that everything is compared beyond doubt only."""

import json
import re
from xml.etree import ElementTree

import browser
import pytest
import short_loads
from browser import chromium  # noqa: F401  a fixture
from page_cross import BARRIERS, CUT_IN_PLOTS, misfits, with_axe
from synthetic_reviews import PUBLICATION, SIX, TESTED, page_of, review
from test_report_seen import chunks, saved, sized
from test_review_page import scorecard

from ssdrig.report import review_page

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not browser.find(), reason="no Chromium is installed")]

MOST_BYTES = 1_500_000
SCREENS = {1400: (900, 12), 390: (844, 20)}  # width: height of a screen, most of them
BUSY = [name for name in TESTED if name not in ("four-states", "bs-sweep")]  # the runs of a host with other work
READY = "document.body && document.body.dataset.ready"


@pytest.fixture(scope="module")
def short_loads_of_pages():
    with short_loads.with_errors():
        yield


@pytest.fixture(scope="module")
def page(short_loads_of_pages, tmp_path_factory):
    return page_of(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def busy_page(page, tmp_path_factory):
    """The same review and library, most of whose runs the host disturbed."""
    own = review(tmp_path_factory.mktemp("busy"), SIX[0], busy=BUSY)
    (own / "review.toml").write_text(PUBLICATION)
    out = own.parent / "review.html"
    review_page.write(own, sorted(page.parent.glob("*.ssdlib")), out)
    return out


def test_size_and_drives_of_every_plot(page):
    html = page.read_text()
    assert page.stat().st_size <= MOST_BYTES
    with_plots = 0
    for article in html.split("<article")[1:]:
        shown = article.split("<details>")[0]
        plots = [part for part in shown.split("<figure")[1:] if "<svg" in part]
        assert all(part.count("<li>") >= 6 for part in plots), article[:200]
        with_plots += bool(plots)
    assert with_plots >= 9  # flushed writes have tables only


def test_no_star_and_no_sentence_within_the_doubt(page):
    """Alpha and Bravo do the same within their errors: neither is called better."""
    html = page.read_text()
    card = next(part for part in html.split('<div class="card"') if 'data-key="consistency-iops"' in part[:60])
    rows = re.findall(r'class="(row[^"]*)".*?</i>([^<]*)</span>', card)
    stars = [name for kind, name in rows if " best" in kind]
    assert stars == ["drive Foxtrot enterprise 1TB, 25 % OP"]
    rows = scorecard(html)
    title, places, cells = rows[0]
    assert title == "Random writes on a full drive, at the end: Mean IOPS" and places == "4 5 6"
    assert [how for *_, how in cells] == ["", "", "alike", "better", "worse", "better", "better"]
    assert [run for run, kind, *_ in cells if kind == "best"] == [cells[-1][0]]
    assert 'data-key="consistency-consistency"' in html.split('class="scorecard"')[1].split("</table>")[0]
    assert len(rows) >= 15 and all(" ± " in cells[0][2] for _, _, cells in rows)


CLICKED = """[...document.querySelectorAll('section > .cards .card')].map((card) => [
  card.querySelector('h3').firstChild.textContent.trim(),
  [...card.querySelectorAll('button.row')].map((row) => [row.dataset.run, row.querySelector('.percent').textContent]),
])"""


def test_a_clicked_bar_is_compared_as_the_scorecard_compares_it(chromium, page):
    """By one rule: a page that calls two drives alike in its table calls neither better in a card."""
    sized(chromium, 1400)
    chromium.open(page, ready=READY)
    chromium.js("document.querySelector('section > .cards button.row[data-run=\"0\"]').click()")
    clicked = {(title, run): words for title, rows in chromium.js(CLICKED) for run, words in rows}
    chromium.js("document.querySelector('section > .cards button.row[data-run=\"0\"]').click()")
    marks = {(title, cell[0]): cell[3] for title, _, cells in scorecard(page.read_text()) for cell in cells if cell[3]}
    ends = {"better": ", better", "worse": ", worse", "alike": "no difference beyond the uncertainty"}
    assert len(marks) > 80 and {of: clicked[of] for of in marks if not clicked[of].endswith(ends[marks[of]])} == {}


def test_an_error_above_a_tenth_has_its_cause(page):
    causes = page.read_text().split('class="causes"')[1].split("</details>")[0]
    lines = re.findall(r"<li>([^<]*)</li>", causes)
    assert any(line.startswith("Sequential reads: Throughput, default OP: 1\u202f630 ± 308 MB/s: ") for line in lines)
    for line in lines:
        value, error = (float(text.replace("\u202f", "")) for text in re.search(r"([^ ]+) ± ([^ :]+)", line).groups())
        assert error > 0.1 * value, line


def test_each_reason_for_not_claiming_is_stated_once(busy_page):
    lone = review_page.render(next(busy_page.parent.glob("*-review-*")), [])  # has bars in place of plots
    articles = busy_page.read_text().split("<article")[1:]
    shown = [re.split("<details|</article>", article)[0] for article in articles]
    assert len(shown) == len(BUSY) + 1  # the two runs of the consistency test have one
    assert sum('class="state"' in article for article in shown) == len(BUSY) - 1
    assert [article for article in shown if "of its service time" in article] == []
    alone = [re.split("<details|</article>", part)[0] for part in lone.split("<article")[1:]]
    assert len(alone) == len(shown) and [article for article in alone if "of its service time" in article] == []
    causes = busy_page.read_text().split('class="causes"')[1].split("</details>")[0]
    assert "Random writes, written twice" in causes and "Sequential" not in causes, (
        "the error of a figure that is not printed"
    )
    load_line = next(article for article in shown if "load-line" in article)
    assert re.findall(r"<li>(Not claimed[^<]*)", load_line) == ["Not claimed (host): writes, mixed, reads"]


@pytest.mark.parametrize("width", SCREENS)
@pytest.mark.parametrize("of", ["page", "busy_page"])
def test_how_far_it_reaches(chromium, request, of, width):
    page = request.getfixturevalue(of)
    high, most = SCREENS[width]
    sized(chromium, width)
    chromium.open(page, ready=READY)
    assert chromium.js("document.documentElement.scrollWidth") <= width
    if width > 700:  # on a phone plots and cards are swiped into view
        assert misfits(chromium, width) == []
        assert (
            chromium.js("((of) => of.scrollWidth - of.clientWidth)(document.querySelector('.scorecard').parentElement)")
            == 0
        )
    assert chromium.js("document.documentElement.scrollHeight") / high <= most
    assert chromium.js(CUT_IN_PLOTS) == []
    with_axe(chromium)
    assert chromium.js(BARRIERS) == []
    assert chromium.complaints() == [] and chromium.js("document.body.dataset.errors") == ""


def test_drives_and_over_provisioning_are_chosen_apart_in_plots_too(chromium, page):
    sized(chromium, 1400)
    chromium.open(page, ready=READY)
    of = "[...document.querySelectorAll('article .legend')][0].querySelectorAll('li:not(.hidden)').length"
    assert chromium.js(of) == 12
    chromium.js("document.querySelectorAll('input[name=op]')[1].click()")
    assert chromium.js(of) == 6
    chromium.js("document.querySelectorAll('input[name=drive]')[5].click()")
    assert chromium.js(of) == 5
    hidden = "getComputedStyle(document.documentElement).getPropertyValue('--m1')"
    assert chromium.js(hidden) == "transparent"


SAVED = """(async () => {
  const of = [], text = (el) => (el?.textContent ?? "").replace(/\\s+/g, " ").trim();
  Export.save = (name, content) => of.at(-1).push(name, content instanceof Blob ? content.type : content);
  for (const button of document.querySelectorAll("article figure .tools button")) {
    if (button.textContent !== "KIND") continue;
    const figure = button.closest("figure"), names = [...figure.querySelectorAll(".legend li")].map(text);
    const [title, caption] = ["b", ".soft"].map((part) => text(figure.querySelector(`figcaption ${part}`)));
    of.push([title, caption, names, figure.closest("article").dataset.source]);
    button.click();
    await new Promise((done) => setTimeout(done));
  }
  return of;
})()"""


def test_each_saved_plot_has_its_title_caption_legend_source_and_mark(chromium, page):
    sized(chromium, 1400)
    chromium.open(page, ready=READY)
    plots = chromium.js(SAVED.replace("KIND", "SVG"))
    assert len(plots) == page.read_text().count('<svg class="plot"') > 60
    for title, caption, names, source, file, svg in plots:
        root = ElementTree.fromstring(svg)
        texts = [" ".join("".join(el.itertext()).split()) for el in root.iter("{http://www.w3.org/2000/svg}text")]
        words = "".join(texts).replace(" ", "")
        heading = root.find("{http://www.w3.org/2000/svg}title").text
        assert heading.endswith(title) and heading.replace(" ", "") in words, file
        assert caption.replace(" ", "") in words and f"Source: ssdrig · {source}".replace(" ", "") in words, file
        assert "Alpha1TB·SIMULATED·SCALED" in words, file
        assert [name for name in names if name.replace(" ", "") not in words] == [], file
        assert "var(--" not in svg and file.endswith(".svg")


def test_a_saved_picture_has_its_settings_inside(chromium, page):
    sized(chromium, 1400)
    chromium.open(page, ready=READY)
    name, png = saved(chromium, 0, "PNG")
    texts = dict(body.split(b"\0", 1) for kind, body in chunks(png) if kind == b"iTXt")
    assert name.endswith(".png") and b"Source: ssdrig" in texts[b"Source"]
    assert json.loads(texts[b"Settings"][4:].decode())["marks"] == ["SIMULATED", "SCALED"]


def test_the_cards_of_a_section_are_side_by_side_in_print(chromium, page):
    sized(chromium, 720)
    chromium.open(page, ready=READY)
    chromium.send("Emulation.setEmulatedMedia", {"media": "print"})
    cards = "[...document.querySelectorAll('section > .cards')[0].children]"
    tops = chromium.js(f"{cards}.map(card => card.getBoundingClientRect().top)")
    lowest = chromium.js(f"Math.max(...{cards}.map(card => card.getBoundingClientRect().height))")
    chromium.send("Emulation.setEmulatedMedia", {"media": ""})
    assert len(tops) == 5 and len(set(tops)) == 1
    assert lowest < 400  # px; a sheet of A4 has about 1000


PRINTED = """(() => {
  const px = (of) => [...document.querySelectorAll(of)].map((el) => parseFloat(getComputedStyle(el).fontSize));
  return [
    Math.min(...px(".scorecard :is(th, td, a)")),
    [...new Set(px("article li, section > ul li, article > p, .headline p.soft, .about td"))],
    [...document.querySelectorAll(".headline > details, .causes, [aria-labelledby=library-h] > details")].map(
      (el) => el.lastElementChild.clientHeight > 0),
    [...document.querySelectorAll("section > .cards .name")].filter((el) => el.scrollWidth > el.clientWidth + 1).length,
    document.querySelector(".scorecard").scrollWidth,
  ];
})()"""


def test_a_printed_page_can_be_read(chromium, page):
    """No text of the table below 7 pt, all prose of one size, no name cut, and what is not claimed with its reasons."""
    sized(chromium, 717)  # px of A4 within its margins
    chromium.open(page, ready=READY)
    chromium.send("Emulation.setEmulatedMedia", {"media": "print"})
    smallest, prose, opened, cut, width = chromium.js(PRINTED)
    chromium.send("Emulation.setEmulatedMedia", {"media": ""})
    assert smallest >= 7 * 96 / 72 and prose == [11] and opened == [True] * 3 and cut == 0 and width <= 717


def test_an_axis_of_words_names_a_unit_once(page):
    titles = re.findall(r"<h3>([^<]*)(?: <span class=.unit.>([^<]*))?", page.read_text())
    assert len(titles) > 12 and [title for title, unit in titles if unit and unit in title] == []
    assert re.findall(r"<text[^>]*>([^<]*kIOPS)", page.read_text()) == []


def table_of(html, kind):
    rows = html.split(f'class="about {kind}"')[1].split("</table>")[0]
    return dict(re.findall(r'<th scope="row">([^<]*)</th><td>([^<]*)</td>', rows))


def test_the_specification_and_the_test_system(page):
    html = page.read_text()
    facts, system = table_of(html, "specification"), table_of(html, "system")
    assert facts["Capacity"] == "67.1 MB" and facts["Rated endurance"].startswith("40.3 GB")
    assert (facts["Controller"], facts["DRAM"], facts["Price"]) == ("E18", "1 GB DDR4", "79 USD")
    assert facts["Before the review"].startswith("1.10 TB written, 12 power-on hours")
    assert system["Mainboard"] == "A. Board 1" and system["Host"].startswith("fio-3.33, kernel 6.1")
    ends = html.split('id="end-h"')[1].split("</section>")[0]
    assert re.findall(r"<li>([^<]*)", ends.split('class="cons"')[0]) == ["Steady at the end", "Low idle power"]
    assert re.findall(r"<li>([^<]*)", ends.split('class="cons"')[1]) == ["Slow among its neighbours"]
    listed = html.split('class="facts library"')[1].split("</table>")[0]
    assert listed.count("67.1 MB, nbd, firmware 1") == 12


STOPS = """[...document.querySelectorAll('a[href], button, input, summary, [tabindex]')]
  .filter((el) => el.tabIndex >= 0 && !el.disabled && el.checkVisibility())"""
MOST_STOPS = 100


def test_the_keyboard_comes_to_every_bar_and_plot_without_a_stop_at_each(chromium, page):
    sized(chromium, 1400)
    chromium.open(page, ready=READY)
    assert chromium.js(f"{STOPS}.length") <= MOST_STOPS
    assert chromium.js(f"{STOPS}[0].hash") == "#short-h" and chromium.js("!!document.querySelector('#short-h')")
    chromium.js(f"{STOPS}.find((el) => el.matches('.cards .row')).focus()")
    bars = "[...document.querySelectorAll('section > .cards')[0].querySelectorAll('button.row')]"
    press = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'KEY', bubbles: true}))"
    for key, at in (("ArrowDown", 1), ("End", -1), ("Home", 0)):
        chromium.js(press.replace("KEY", key))
        assert chromium.js(f"{bars}.at({at}) === document.activeElement"), key
    chromium.js("document.querySelectorAll('input[name=drive]')[5].click()")  # the first bar of the first card is of it
    assert chromium.js(f"{bars}.filter((bar) => bar.tabIndex === 0 && bar.offsetParent).length") == 1
    chromium.js(f"{STOPS}.find((el) => el.matches('article .tools button')).focus()")
    for _ in range(3):
        chromium.js(press.replace("KEY", "ArrowRight"))
    second = "document.querySelectorAll('article .plots figure')[1]"
    assert chromium.js(f"{second}.contains(document.activeElement)")
