"""The report of a rig with several rails: each rail beside the sum, in the page, its table and CSV, and on the
terminal."""

import browser
import numpy as np
import pytest
import synthetic_run
from packed import decoded
from test_report import READY, REVIEW, ink, run_command

from ssdrig.reading import table
from ssdrig.report import pack, page, words

TWELVE = ("12V <b>", ((-100, 0.5), (0, 6.0), (10, 3.0)), 740_000, (14.2, 16.4))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(page of a run with two rails, one of which goes for 2 s, and a run with one; what was said on the terminal;
    figures)"""
    base = tmp_path_factory.mktemp("runs")
    two = synthetic_run.write(base, [900, 1100] * 10, zoom_s=4, more_rails=[TWELVE], name="two")
    one = synthetic_run.write(base, [900, 1100] * 10, zoom_s=4, name="one", model="SIMULATED other")
    with pytest.MonkeyPatch.context() as m:
        m.setenv("COLUMNS", "200")
        code, _, stderr = run_command(two, one, "--out", base / "page.html")
    assert code == 0
    return base / "page.html", stderr, synthetic_run.shown([two, one])


def test_the_table_has_a_row_for_each_rail(made):
    html = made[0].read_text()
    start = html.index('<table class="rails">')
    rows = html[start : html.index("</table>", start)].split("<tr")[2:]
    assert (
        len(rows) == 6  # three for the window that is shown first, three for the whole load
        and "12V <b>" not in html
        and ">12V &lt;b&gt;</td>" in rows[1]
        and ">5V</td>" in rows[0]
        and ">5V</td>" in rows[2]
    )
    mean_W = made[2][0]["rails"][1]["power_mean_W"]
    assert mean_W == pytest.approx((6 * 6 + 7 * 3) / 13, rel=1e-3)
    assert f"<td>{mean_W:.3f}</td>" in rows[1] and "<td>100.0</td>" in rows[2]
    assert "<td>–</td>" in rows[1]  # its energy is not known


def test_the_terminal_says_each_rail(made):
    lines = [line for line in made[1].splitlines() if "of it" in line and "W  " in line]
    assert [line.split("W  ")[0].strip() for line in lines] == ["of it 5V,", "of it 12V <b>,"]
    assert lines[0].split()[-2:] == ["2.500", "–"] and lines[1].split()[-2:] == ["4.384", "–"]
    assert "of rail 1 (12V <b>), so the sum is not known there" in made[1]


def test_a_page_of_one_rail_has_no_table_of_rails(tmp_path):
    run = synthetic_run.write(tmp_path, [1000] * 6, zoom_s=2)
    data, f, _ = table.in_full(run)
    assert 'class="rails"' not in page.render([], 0, [(data, f)])
    assert pack.run_data(data, f, words.labels([f])[0], 0, [])["rails"] == []


def test_each_rail_s_seconds_are_in_the_page(made, tmp_path):
    data, f, _ = table.in_full(synthetic_run.write(tmp_path, [1000] * 20, zoom_s=2, more_rails=[TWELVE]))
    five, twelve = pack.run_data(data, f, words.labels([f])[0], 0, [])["rails"]
    assert (five["name"], twelve["name"]) == ("5V", "12V <b>")
    assert decoded(twelve["mean"]) == pytest.approx(
        [6.0] * 10 + [3.0] * 4 + [np.nan] * 3 + [3.0] * 3, rel=1e-3, nan_ok=True
    )


@pytest.mark.slow
def test_the_browser_draws_the_rails_and_writes_them_as_csv(made):
    if not browser.find():
        pytest.skip("no Chromium is installed: the page was not run")
    with browser.Browser() as b:
        b.open(made[0], ready=READY)
        assert b.js("document.body.dataset.errors") == "" and b.complaints() == []
        with_rails = ink(b, "power", REVIEW)
        lines = b.js("ssdrig.csv(0)").splitlines()
        assert lines[0].endswith('energy_uJ_per_io,"power_mean_W 5V","power_mean_W 12V <b>"')
        first, dark = lines[1].split(","), lines[16].split(",")
        assert [float(first[k]) for k in (4, 8, 9)] == pytest.approx([8.5, 2.5, 6.0], rel=1e-3)
        assert dark[4] == dark[9] == "" and float(dark[8]) == pytest.approx(2.5, rel=1e-3)
        assert not b.js("ssdrig.csv(1)").splitlines()[0].endswith('"')
        b.js("document.querySelector('select[name=review]').value = 1")
        b.js("document.querySelector('select[name=review]').dispatchEvent(new Event('change', {bubbles: true}))")
        b.wait("document.querySelector('.review') && document.querySelector('tr[data-run=\"1\"] .review')")
        b.wait("document.body.dataset.ready === '10'")
        assert ink(b, "power", REVIEW) < with_rails


@pytest.mark.slow
def test_each_run_and_rail_has_a_strip_and_events_their_lanes(made):
    """The sum of the reviewed run, its rails, the other run; below them lanes with the times of the events."""
    if not browser.find():
        pytest.skip("no Chromium is installed: the page was not run")
    run = table.in_full(made[0].parent / "two")
    with browser.Browser() as b:
        b.open(made[0], ready=READY)
        strips = b.js("ssdrig.strips()")
        tall = b.js("document.querySelector('[data-panel=samples] canvas').getBoundingClientRect().height")
        drawn = b.js("ssdrig.samples(0).short")
    assert strips["names"][1:3] == ["5V", "12V <b>"] and len(strips["names"]) == 4 and drawn in strips["names"]
    lanes = dict(strips["lanes"])
    assert [event[0] for event in lanes["SMART"]] == pytest.approx([poll[0] for poll in run.data.polls], abs=0.01)
    assert "window starts" in [words for _, _, words in lanes["Steps"]]
    assert any(words.startswith("no samples of rail 1") for _, _, words in lanes["Rig"])
    assert tall >= 4 * 60
