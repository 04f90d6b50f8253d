"""Each item of the trust strip held bad in turn: what a page, the terminal and the JSON then still claim."""

import json
import re

import pytest
import synthetic_plan
from synthetic_run import run_of

from ssdrig import report
from ssdrig.reading import table, trust
from ssdrig.reading.index import Index
from ssdrig.report import cards as cards_of
from ssdrig.report import embed, page, review_says, screen, views
from ssdrig.runs import integrity
from ssdrig.serve import app
from ssdrig.views import documents, svg, trust_strip
from ssdrig.views.terms import with_error

FRESH, SLOW, FAST = [9000] * 6, [4000, 4001, 3999] * 6, [6000, 6001, 5999] * 6
POWER_ONLY = [name for name in trust.NAMES if name not in trust.OF_LOAD]


@pytest.fixture
def held(monkeypatch, request):
    """of_window() with one item bad in each window, as in mutants of the journal."""
    of_window, name = trust.of_window, request.param
    bad = trust.Item(name, trust.BAD, 9.0, 1.0, "RED")
    if name == "host":
        monkeypatch.setattr(trust, "host_of", lambda loads: bad)
    elif name == "steady":
        for of in ("steady_of", "steady_by"):
            monkeypatch.setattr(trust, of, lambda data: bad)
    elif name:
        monkeypatch.setattr(
            trust,
            "of_window",
            lambda *args, **more: [bad.as_json() if item["id"] == name else item for item in of_window(*args, **more)],
        )
    return name


def cards(html: str) -> dict[str, str]:
    """The class of each row, by the card's key."""
    classes: dict[str, str] = {}
    for card in re.split(r'<div class="card" data-key="', html)[1:]:
        classes.setdefault(
            card.split('"', 1)[0], " ".join(re.findall(r'<button type="button" class="(row[^"]*)"', card))
        )
    return classes


@pytest.fixture
def two(held, tmp_path):
    """A run whose verdict is clear, twice as fast as the other in figures of every kind."""
    return [
        run_of(tmp_path / str(i), iops, model=f"SIMULATED drive {i}")
        for i, iops in enumerate((FRESH + SLOW, FRESH + FAST))
    ]


CLAIMS_OF_LOAD = re.compile(r"[\d.]+ × the writes|In the steady state|beyond their errors|the fastest")
CLAIMS_OF_POWER = re.compile(r"energy per write|(more|less) power|a write costs")


@pytest.mark.usefixtures("short_loads_have_errors")
@pytest.mark.parametrize("held", [None, *trust.NAMES], indirect=True)
def test_what_a_page_of_two_runs_claims(held, two):
    runs, figures = zip(*two, strict=True)
    html = page.render([], 0, list(zip(runs, figures, strict=True)))
    text = html[html.index('class="verdict"') : html.index("</section>", html.index('class="verdict"'))]
    stars = {key for key, rows in cards(html).items() if "best" in rows.split()}
    of_load, of_power = CLAIMS_OF_LOAD.search(text), CLAIMS_OF_POWER.search(text)
    assert bool(of_load) == (held not in trust.OF_LOAD), text
    assert bool(of_power) == (held is None)
    assert ("iops_mean" in stars) == (held not in trust.OF_LOAD) and ("energy_uJ_per_io" in stars) == (held is None)
    claimed = "<b>yes</b>" in html[html.index('class="scroll facts"') :]
    assert claimed == (held != "host"), "a verdict of the rule on what a busy host did"
    assert ("steady state," in html[html.index('<main class="load"') :]) == (held != "host")
    assert (trust_strip.MARKED in html) == (held is not None)


@pytest.mark.parametrize("held", [None, *trust.NAMES], indirect=True)
@pytest.mark.parametrize("columns", [60, 200])
def test_what_the_terminal_and_the_json_claim(held, two, columns, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", str(columns))
    figures, (folder,) = [of for _, of in two], (tmp_path / "0").iterdir()
    text = screen.short_table(figures)
    last = screen.ending(two, 0)
    last_words = " ".join(line.strip() for line in last)
    assert bool(CLAIMS_OF_LOAD.search(last_words)) == (held not in trust.OF_LOAD), last_words
    assert last[0].startswith("  trust ") and all(len(line) <= columns for line in last)
    marked = {line.split("  ")[0] for line in text.splitlines() if trust_strip.MARK in line and "claimed" not in line}
    assert ("Mean IOPS" in marked) == (held in trust.OF_LOAD) and ("Mean power, W" in marked) == (held is not None)
    assert not any("Samples lost" in line for line in marked)
    assert ("yes: range" in text) == (held != "host")
    for of in (*figures, *(window for f in figures for window in f["windows"].values() if window)):
        assert [item["id"] for item in trust.red(of["trust"])] == ([held] if held else [])
    assert all((f["steady_state"]["passed"] is True) == (held != "host") for f in figures)
    lines = "\n".join(screen.of_plan(table.load(folder)))
    assert (trust_strip.MARK in lines) == (held is not None)
    json.dumps(figures, allow_nan=False)


@pytest.mark.parametrize("held", [None, "host", "time_error"], indirect=True)
def test_what_the_page_of_a_plan_claims(held, tmp_path):
    of = table.load(synthetic_plan.grid(tmp_path))
    html, text, sentences = page.render([of]), "\n".join(screen.of_plan(of)), "\n".join(review_says.of_plan(of))
    steady = held != "host"
    assert ("Steady state reached" in html) == ("Steady state reached" in sentences) == steady
    assert ("STEADY STATE NOT KNOWN" in text) == (not steady)
    assert (
        "STEADY STATE NOT ACHIEVED" not in html + text + sentences and "not tested: not claimed" not in html + sentences
    )
    assert bool(of.achieved) == documents.of_table(of)["steady"]["achieved"] == steady
    assert (trust_strip.MARKED in html) == (held is not None) == (trust_strip.MARK in text)


@pytest.mark.parametrize("held", [None, "gaps"], indirect=True)
def test_a_view_that_marks_no_figures_says_it_ahead_of_them(held, tmp_path):
    of = table.load(synthetic_plan.grid(tmp_path))
    view = page.view(page.Context([of], ["a"], {"view": "load-line", "of": "rounds/point"}))
    assert (trust_strip.MARK in view) == (held is not None)


def test_a_card_has_the_error_of_its_figure(tmp_path):
    """In the unit of the figure; nothing where the error is not known."""
    figures = [run_of(tmp_path / str(i), iops)[1] for i, iops in enumerate((FRESH + SLOW, FRESH + FAST))]
    view = next(view for view in views.of(figures) if "iops_mean" in (view.figures[0].get("errors") or {}))
    error, view.figures[1]["errors"] = view.figures[0]["errors"]["iops_mean"], {}
    names = [("", "", f"run {i}", str(i)) for i in range(2)]
    html = cards_of.ranking([view], names, [svg.look(i) for i in range(2)], [None, None], 0)
    card = next(part for part in html.split('<div class="card"') if 'data-key="iops_mean"' in part)
    values = card.split('<span class="value">')[1:]
    errors = [re.search(r'^[^<]*<small class="error"> ± ([^<]*)</small>', value) for value in values]
    assert values[0].replace('<small class="error">', "").startswith(with_error(view.figures[0]["iops_mean"], error, 0))
    assert float(errors[0][1].replace("\u202f", "")) == pytest.approx(error, rel=0.05) and not errors[1]


@pytest.mark.parametrize("held", [None, *trust.NAMES], indirect=True)
@pytest.mark.parametrize("panel", ["power", "whole"])
def test_what_an_embedded_plot_says_it_rests_on(held, two, panel, tmp_path):
    """No verdict and no star is in it; the strip of each run is, and names what is bad."""
    for as_svg in (True, False):
        made = embed.text(list(two), 0, panel, as_svg)
        shown = re.sub(r"<style>.*?</style>", "", made, flags=re.DOTALL)
        assert not CLAIMS_OF_LOAD.search(shown) and not CLAIMS_OF_POWER.search(shown) and "★" not in shown
        name = trust.NAMES[held] if held else ""
        if as_svg:
            assert shown.count(f"{trust_strip.TITLE} BAD: {name}" if held else f"{trust_strip.TITLE} ok") == 2
        else:
            bad = re.findall(r'<li class="bad" data-trust="(\w+)"', shown)
            assert bad == [held, held] if held else not bad


STARTED = {"host": {"kind": "host", "cpus_busy_percent": [100.0, 100.0], "steal_percent": 0.0}}
OF_LIVE: dict[str, tuple[dict, dict]] = {  # what is bad of a run that goes on: its latest events, its power so far
    "host": (STARTED, {}),
    "samples": ({}, {"samples_lost": 500}),
    "time_error": ({}, {"clock_error_us": 5e6}),
    "gaps": ({}, {"breaks": 1}),
    "pairing": ({"pairing": {"kind": "pairing", "verdict": "unknown", "why": "busy"}}, {}),
    "calibration": ({"rig.certificate": {"kind": "rig.certificate", "passed": False}}, {}),
}


@pytest.mark.parametrize("name", OF_LIVE)
def test_what_a_run_that_goes_on_rests_on(name):
    last, power = OF_LIVE[name]
    good = {"samples": 1000, "samples_lost": 0, "clock_error_us": 10.0, "breaks": 0}
    paired = {"pairing": {"kind": "pairing", "verdict": "paired"}}
    header = {"rig": {"port": "x"}, "drive": {}}
    assert not trust.red(trust.live(header, paired, good))
    (bad,) = trust.red(trust.live(header, paired | last, good | power))
    (shown,) = [
        item for item in trust.in_words(trust.live(header, paired | last, good | power)) if item["kind"] == "bad"
    ]
    assert bad["id"] == shown["id"] == name and shown["text"] == bad["why"]


@pytest.mark.parametrize("held", [None, *trust.NAMES], indirect=True)
def test_what_the_list_of_runs_in_serve_claims(held, tmp_path):
    """Each run with the state of each item, and no verdict of the rule on what a busy host did."""
    run_of(tmp_path / "runs", FRESH + SLOW)
    (folder,) = (tmp_path / "runs").iterdir()
    report.write(folder / integrity.FIGURES, json.dumps(documents.of_table(table.load(folder))))
    index = Index(tmp_path / "runs")
    try:
        index.refresh()
        (run,) = index.find()
        row = json.loads(json.dumps(app._row(run)))
    finally:
        index.close()
    figures = row["figures"]
    assert [id_ for id_, state in figures["trust"].items() if state == trust.BAD] == ([held] if held else [])
    assert (figures["steady"]["passed"] is True) == (held != "host")
