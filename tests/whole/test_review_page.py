"""The page of a review, from synthetic runs: what is there and what is not, the cards of its library, and in a browser
what can be clicked."""

import json
import re
from argparse import ArgumentParser
from pathlib import Path

import browser
import pytest
from synthetic_plan import DRIVE, Writer
from synthetic_run import seal

from ssdrig import report
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.plan import grammar, reviews
from ssdrig.report import page as pages
from ssdrig.report import review_page
from ssdrig.runs import journal, parts

OP = {"range": "raw 75 %"}
SMALL = DRIVE | {"capacity_bytes": 64 << 20, "raw_nand_bytes": 76 << 20}  # a load of a minute is past its spare area
NAME = "SIMULATED <b>one</b>"


def run(folder, plan, sets=None, review=None, model=NAME, op=None, iops=1000, utc_s=0, **more):
    """A run of a shipped plan at level quick."""
    text, where = grammar.find(plan)
    read = grammar.read(text, where, "quick", sets)
    header = {
        "plan": {"name": plan, "variant": "quick", "scaled": True, "params": read.params, "text": text, "acts": []},
        "method": {"name": plan, "seed": 1, "tested_bytes": None, "op_percent": op},
        "drive": SMALL | {"model": model},
    }
    header |= {"review": {"folder": folder.name, "plan": review}} if review else {}
    name = f"{review or plan}-{iops}".replace(" ", "-")
    made = Writer(folder, text, "quick", name=name, utc_ns=utc_s * 10**9, more=header)
    if plan == "consistency":
        made.step("purge", 1, method="format")
        made.load("load", [iops] * 60, 2.0)
    else:  # four-states
        for i, path in enumerate(("fresh", "used", "rested", "trimmed")):
            made.load(path, [iops * (4 - i)] * 20, 2.0)  # shorter ones have no error
    return made.end(**more)


def review(base, name="20261122T180000Z-review-x-0001", model=NAME, iops=1000, utc_s=100):
    folder = base / name
    folder.mkdir(parents=True)
    whys = {entry.name: entry.why_not("quick") for entry in reviews.entries()}
    done = ("consistency", "consistency op25", "four-states")
    plans = [
        {"name": e.name, "plan": e.plan, "variant": "quick", "sets": {}, "seed": 1, "why": whys[e.name]}
        for e in reviews.entries()
    ]
    document = {"schema": 1, "review": name, "level": "quick", "options": {}, "budget_bytes": None, "plans": plans}
    (folder / parts.REVIEW).write_text(json.dumps(document | {"drive": SMALL | {"model": model}, "rated_bytes": 1e12}))
    for of, sets, op, times in zip(done, (None, OP, None), (None, 25, None), (1, 2, 1), strict=True):
        run(folder, of.split()[0], sets, of, model, op, iops * times, utc_s)
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A review, an earlier one of another drive, a run by itself, one that died, one with other parameters."""
    base = tmp_path_factory.mktemp("runs")
    review(base)
    review(base, "20261101T000000Z-review-y-0002", "SIMULATED two", 1500, 50)
    run(base, "consistency", {"steady": "from 50 %"}, model="SIMULATED three", iops=9000)
    run(base, "consistency", model="SIMULATED four", iops=8000, state=None)
    return base


@pytest.fixture(scope="module")
def page(runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "review.html"
    assert reported(runs / "20261122T180000Z-review-x-0001", "--out", out) == 0
    return out


def reported(*words):
    parser = ArgumentParser()
    report.add_arguments(parser)
    return report.command(parser.parse_args([*map(str, words), "--quiet"]))


def card(html, title):
    """Name and value of each bar of a card, and whether it is hatched."""
    text = next(part for part in html.split('<div class="card"') if f"<h3>{title}" in part)
    bars = re.findall(r'class="(row[^"]*)".*?</i>([^<]*)</span><span class="value">([^<]*)', text)
    return [(name, value, "apart" in kind) for kind, name, value in bars]


def scorecard(html):
    """Of each row its title, the places of the reviewed drive, and (run, classes, value, comparison) of its cells; the
    value with what a screen reader adds to it."""
    out = []
    for row in re.findall(r'<tr data-key="[^"]*">.*?</tr>', html.split('class="scorecard"')[1].split("</table>")[0]):
        row = row.replace("\xa0", " ")  # what keeps a value, its error and its marks in one line
        cells = re.findall(
            r'<td data-run="(\d+)"(?: class="([^"]*)")?[^>]*>(?:★ )?([^<]*(?:<span class="sr"> not comparable</span>)?)'
            r' ?(?:<i data-against="(\w+)".*?)?</td>',
            row,
        )
        places = re.search(r'data-place="([^"]*)"', row)
        cells = [(i, classes, re.sub("<[^>]*>", "", value).strip(), how) for i, classes, value, how in cells]
        out.append((re.search(r'<a href="#s\d+">([^<]*)', row)[1], places and places[1], cells))
    return out


@pytest.mark.slow
def test_each_section_is_there_with_what_was_run_and_why_the_rest_was_not(page):
    html = page.read_text()
    heads = re.findall(r'<h2 id="s\d+">([^<]*)', html)
    assert heads == [section.title for section in reviews.sections()]
    shown = html.split("<main>")[1]
    for entry in reviews.entries():
        why = entry.why_not("quick")
        if why:
            match = re.search(rf"Not run: [^<]*\b{re.escape(entry.name)}\b[^:;]*: ([^<;]*)[;.]", shown)
            assert match and match[1] == why, entry.name
        elif entry.plan not in ("consistency", "four-states"):
            assert re.search(rf"Not run: [^<]*\b{entry.name}\b[^:;]*: the review ended before[;.]", shown), entry.name
    assert shown.count('<figure class="wide">') >= 10 and page.stat().st_size < 1_500_000
    assert "<b>one" not in html and "&lt;b&gt;one" in html and "SCALED" in html and "SIMULATED" in html


def test_the_verdicts_are_those_of_the_runs(page):
    html = page.read_text()
    full, energy, *_, fresh, used, rested, trimmed = scorecard(html)
    assert full[0] == "Random writes on a full drive, at the end: Mean IOPS" and full[1] == "2 2 2"
    assert full[2] == [
        ("0", "top", "1\u202f000", ""),
        ("1", "top", "2\u202f000", ""),
        ("2", "best", "1\u202f500", "better"),
        ("4", "apart", "9\u202f000 not comparable", ""),
    ]
    assert energy[2][2][3] == "better"
    assert [row[2][0][2].split(" ± ")[0] for row in (fresh, used, rested, trimmed)] == [
        f"{n}\u202f000" for n in (4, 3, 2, 1)
    ]
    assert "Restored by idle: -100.0 ± " in html.replace("−", "-")
    assert "average power with downtime: not known, no plan measured a rest with the rig" in html


def test_a_card_has_the_library_the_best_first_and_what_cannot_be_ranked_last(page):
    card_ = card(page.read_text(), "Random writes on a full drive, at the end: Mean IOPS")
    assert card_ == [
        ("two, 25 % OP", "3\u202f000", False),
        ("&lt;b&gt;one&lt;/b&gt;, 25 % OP", "2\u202f000", False),
        ("two, default OP", "1\u202f500", False),
        ("&lt;b&gt;one&lt;/b&gt;, default OP", "1\u202f000", False),
        ("three, default OP", "9\u202f000", True),
    ], "what died is left out"
    assert "not comparable, steady from 50 %, reviewed run from 70 %" in page.read_text()
    after_idle = card(page.read_text(), "Random writes, after idle")
    assert [name for name, *_ in after_idle] == ["two", "&lt;b&gt;one&lt;/b&gt;"], (
        "all have their own over-provisioning"
    )


@pytest.mark.slow
def test_the_library_is_what_was_asked_for(runs, tmp_path):
    own = runs / "20261122T180000Z-review-x-0001"
    alone = review_page.render(own, [])
    assert len(card(alone, "Random writes on a full drive, at the end: Mean IOPS")) == 2
    died = runs / "consistency-8000"
    card_ = card(review_page.render(own, [died]), "Random writes on a full drive, at the end: Mean IOPS")
    assert card_[-1] == ("four, default OP", "8\u202f000", True)
    other = review_page.render(own, [runs / "20261101T000000Z-review-y-0002", own])
    assert len(card(other, "Random writes on a full drive, at the end: Mean IOPS")) == 4
    with pytest.raises(JournalError, match="for --against"):
        review_page.render(own, [tmp_path])


@pytest.mark.parametrize("words", [["--json"], ["--review", "1"], ["--window", "a=1:2"]])
def test_what_a_review_has_not_is_refused(runs, words):
    with pytest.raises(UsageError, match="one review"):
        reported(runs / "20261122T180000Z-review-x-0001", *words)


@pytest.mark.parametrize(
    ("was", "now", "ranked"),
    [
        ("title ", "# another text\ntitle ", True),
        ('title  = "', 'title  = "Other: ', True),
        ("qd      = 32", "qd      = 16", False),
        ('block   = "4 KiB"', 'block   = "4096 B"', True),
    ],
)
def test_a_run_whose_plan_does_something_else_is_not_ranked(runs, tmp_path, was, now, ranked):
    other = run(tmp_path, "four-states", iops=5000)
    header = json.loads((other / "run.json").read_text())
    text = header["plan"]["text"]
    assert was in text, text[:3000]
    header["plan"]["text"] = text.replace(was, now)
    (other / "run.json").write_text(json.dumps(header))
    html = review_page.render(runs / "20261122T180000Z-review-x-0001", [other])
    assert ("of another version of the plan" in html) is not ranked
    assert bool(card(html, "Random writes, fresh")[-1][2]) is not ranked


def test_the_example_is_a_page_of_the_tool():
    """python host/docs/make_review.py makes it anew."""
    html = (Path(__file__).parents[2] / "host/docs/use/example-review.html").read_text()
    assert html.startswith(pages.OPENING) and len(html.encode()) <= 1_500_000 and "SIMULATED" in html
    assert "Performance consistency" in html and "average power" in html and not re.search(r'(src|href)="(?!#)', html)


def test_against_is_of_reviews(runs):
    with pytest.raises(UsageError, match="--against with the folder of a review"):
        reported(runs / "consistency-9000", "--against", runs / "consistency-8000")


@pytest.mark.skipif(not browser.find(), reason="no Chromium is installed")
@pytest.mark.slow
def test_in_a_browser(page):
    of = "[...document.querySelectorAll('.card[data-key=consistency-iops] button.row')]"
    with browser.Browser() as b:
        b.open(page, ready="document.body && document.body.dataset.ready")
        assert b.js("document.body.dataset.errors") == "" and b.complaints() == []
        assert b.js(f"{of}.map(row => row.classList.contains('best'))") == [True, False, False, False, False]
        b.js(f"{of}[3].click()")
        assert b.js(f"{of}.map(row => row.querySelector('.percent').textContent)") == [
            "+200.0 %, better",
            "+100.0 %, better",
            "+50.0 %, better",
            "= 100 %",
            "not comparable",
        ]
        number = b.js(f"{of}[3].dataset.run")
        assert b.js("location.hash") == f"#ref={number}"
        b.js("document.querySelectorAll('input[name=op]')[1].click()")
        assert b.js(f"{of}.map(row => row.offsetParent !== null)") == [False, False, True, True, True]
        b.js("document.querySelectorAll('input[name=drive]')[0].click()")
        assert b.js(f"{of}.map(row => row.offsetParent !== null)") == [False, False, True, False, True]
        b.open(page, f"#ref={number}", ready="document.body && document.body.dataset.ready")
        assert b.js(f"{of}[3].getAttribute('aria-pressed')") == "true"
        phone = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        b.send("Emulation.setDeviceMetricsOverride", phone)
        assert b.js("document.documentElement.scrollWidth") == 390


def test_nothing_is_claimed_of_a_run_on_a_busy_host(tmp_path):
    """No star, no sentence and no figure by a formula: the reason in their place."""
    own = review(tmp_path)
    for name, label in (("consistency-op25-2000", "load"), ("four-states-1000", "rested")):
        events = journal.events(own / name)
        busy = {"kind": "witness", "step": label, "label": label, "cpus_busy_percent": [100.0]}
        seal(own / name, [*events[:-1], {"t_ns": events[-1]["t_ns"], **busy}, events[-1]])
    html = review_page.render(own, [])
    assert html.index('data-trust="host"') < html.index('id="short-h"')
    cards = card(html, "Random writes on a full drive, at the end: Mean IOPS")
    assert [apart for _, _, apart in cards] == [False, True]
    first = next(part for part in html.split('<div class="card"') if "<h3>Random writes on a full drive" in part)
    assert " best" not in first
    full = scorecard(html)[0]
    assert full[2] == [("0", "top", "1\u202f000", ""), ("1", "top apart", "not claimed", "")]
    assert full[1] is None, "no other drive"
    article = next(part for part in html.split("<article")[1:] if "Four states" in part).split("</article>")[0]
    assert re.findall(r"<li>(Not claimed[^<]*)", article) == ["Not claimed (host): Restored by idle"]
    assert re.findall(r'class="state">(?:<[^>]*>|[^<])*?</span> ([^<]*)</span>', article) == ["host"]
