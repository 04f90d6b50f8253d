"""The headline of a plan: what its text may name, how it is filled, and when nothing is claimed."""

import dataclasses
import importlib
import re

import pytest
import test_slc_run as cache

from ssdrig.base.errors import UsageError
from ssdrig.base.uncertain import Uncertain
from ssdrig.plan import grammar, headline, shows
from ssdrig.plan.headline import Figure
from ssdrig.reading import table
from ssdrig.report import page, screen
from ssdrig.views import documents
from ssdrig.views import headline as filled

SWEEP = """schema = 1
name = "x"
title = "X"
source = "none"
about = "A test."
headline = {}
[[step]]
name = "load"
do = "load"
pattern = "random"
read = 0
over = [{{ qd = [1, 32] }}]
block = "4 KiB"
time = "1 s"
windows = {{ end = "last 20 %" }}
[[show]]
view = "figure"
name = "gain"
formula = "1 + 1"
"""


@pytest.mark.parametrize(
    ("text", "figure"),
    [
        ("gain", Figure(name="gain")),
        ("load.MB/s", Figure("", "load", value="MB/s")),
        ("r/p read=0 block=4KiB.iops", Figure("", "r/p", (("read", "0"), ("block", "4KiB")), value="iops")),
        ("wake every=1.5s.lat_mean", Figure("", "wake", (("every", "1.5s"),), value="lat_mean")),
        ("load@end.W", Figure("", "load", window="end", value="W")),
        ("load qd=1.iops, highest", Figure("", "load", (("qd", "1"),), value="iops", pick="highest")),
    ],
)
def test_a_figure_is_read(text, figure):
    assert headline.parse(f"a {{{text}}} b") == ["a ", figure, " b"]


@pytest.mark.parametrize(
    ("parts", "seen"),
    [
        ('"text"', "headline = "),
        ("[]", "headline = []"),
        ('["no figure"]', "no figure in it"),
        ('["a { b"]', "a brace"),
        ('["{load}"]', '"load"'),
        ('["{lod.iops, highest}"]', '"lod"'),
        ('["{load.iop, highest}"]', '"iop"'),
        ('["{load.iops}"]', "without qd"),
        ('["{load qd=1.iops, highest}"]', "load.iops"),
        ('["{load depth=1.iops}"]', '"depth"'),
        ('["{load qd=1@start.iops}"]', '"start"'),
        ('["{load.cache}"]', '"cache"'),
        ('["{gan}"]', '"gan"'),
        ("[1]", "headline = 1"),
        ('["{a..b}"]', "names no figure"),
        ('["{gain}", "{gain}", "{gain}", "{gain}", "{gain}"]', "headline = "),
    ],
)
def test_a_figure_that_the_plan_does_not_have_is_refused_with_a_hint(parts, seen):
    with pytest.raises(UsageError) as raised:
        grammar.read(SWEEP.format(parts))
    assert seen in raised.value.seen and raised.value.do


def test_what_the_plan_has_is_read():
    parts = '["{gain}", "{load qd=1.iops} one at a time", "{load.iops, highest}, {load qd=32@end.W}"]'
    assert len(grammar.read(SWEEP.format(parts)).headline) == 3
    assert grammar.read(SWEEP.format('["{gain}"]').replace('headline = ["{gain}"]', "")).headline == ()


def test_every_plan_has_a_headline():
    plans = {name: grammar.read(*grammar.find(name)) for name in grammar.shipped()}
    assert [name for name, plan in plans.items() if plan.shows and not plan.headline] == []


def test_every_fact_that_a_view_names_is_made():
    made = {name: view.facts for name, view in shows.views().items() if view.facts}
    for name in made:
        assert name in importlib.import_module(f"{shows.folders()[name].__name__}.facts").FACTS
    used = {figure.value for plan in _plans() for part in plan.headline for figure in headline.figures(part)}
    assert {"cache", "broken", "bad", "waf", "K_per_W", "lowest", "awake", "steady"} <= used


def _plans():
    return [grammar.read(*grammar.find(name)) for name in grammar.shipped()]


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (Uncertain(9412.3, 120.0), "IOPS", "9\u202f412 ± 120 IOPS"),
        (Uncertain(94123.0, 1200.0), "IOPS", "94\u202f123 ± 1\u202f200 IOPS"),
        (Uncertain(2100.0, 30.0), "MB/s", "2\u202f100 ± 30 MB/s"),
        (Uncertain(42e9, 1e8), "B", "42.00 ± 0.10 GB"),
        (Uncertain(0.0123, 0.0004), "W", "0.01230 ± 0.00040 W"),
        (Uncertain(12_500.0, 300.0), "µJ", "12\u202f500 ± 300 µJ"),
        (Uncertain(1500.0), "µs", "1.50 ms"),
        (Uncertain(0.0, 0.0), "IOPS", "0 IOPS"),
        (Uncertain(1.25, 0.01), "", "1.250 ± 0.010"),
    ],
)
def test_a_value_is_printed_in_the_unit_of_the_tables(value, unit, words):
    assert filled.in_words(value, unit) == words


@pytest.mark.parametrize(
    ("value", "error", "claimed"), [(5.0, 4.9, True), (5.0, 5.0, False), (-5.0, 6.0, False), (0.0, 0.0, True)]
)
def test_figure_within_its_error_is_not_claimed(value, error, claimed):
    figure = filled._filled("rate", filled.Fact(Uncertain(value, error), "W"), None)
    assert bool(figure.text) == claimed and bool(figure.why) != claimed


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return _with(
        cache.made(tmp_path_factory.mktemp("cache")), "SLC cache {fill.cache} at {fill.fast}, then {fill.slow}"
    )


def _with(run: table.Table, *parts: str) -> table.Table:
    return dataclasses.replace(run, plan=dataclasses.replace(run.plan, headline=parts))


def test_a_cache_is_in_the_headline_of_page_terminal_and_json(run):
    (part,) = filled.of(run)
    assert (
        re.fullmatch(r"SLC cache 4\.19\d* ± \S+ GB at 1\u202f049 MB/s, then 262 MB/s", part.text) and not part.lacking
    )
    html = page.render([run])
    assert html.index('class="trust"') < html.index('aria-label="Headline"') < html.index('id="views-h"')
    assert part.text in html
    lines = screen.of_plan(run)
    assert part.text in " ".join(line.strip() for line in lines[-2:]) and any("trust" in line for line in lines[-4:])
    assert documents.of_table(run)["headline"] == [{"text": part.text, "why": None}]


def test_a_part_with_an_unknown_figure_is_left_out_with_the_reason(run):
    run = _with(run, "{fill.MB/s} of all", "{fill.slow} and {fill.lat_p99999}, then {fill.lat_p99999}")
    parts = filled.of(run)
    ((name, why), again) = parts[1].lacking
    assert not parts[0].lacking and parts[1].text == "" and (name, why) == again and why
    assert filled.claimed(parts) == parts[0].text
    assert filled.left_out(parts) == [f"not claimed: {name} ({why})"] and name.endswith(" during fill")
    assert filled.as_json(run)[1] == {"text": name, "why": why}


def test_what_is_not_claimed_has_a_name_in_every_plan(run):
    """No sentence with holes: "write amplification – to –"."""
    empty = dataclasses.replace(run, rows=[], verdicts=[])
    for plan in _plans():
        parts = filled.of(dataclasses.replace(empty, plan=plan))
        words = " ".join(filled.left_out(parts))
        assert filled.claimed(parts) == "" or plan.shows, plan.name
        assert all(part.text or part.lacking for part in parts) and "–" not in words, (plan.name, words)
        for part in parts:
            for name, why in part.lacking:
                assert re.fullmatch(r"\w.* during [a-z0-9/-]+( \S+=\S+)*|[A-Z].*", name) and why, (plan.name, name, why)


def test_nothing_is_claimed_where_the_strip_is_red(tmp_path):
    busy = _with(cache.made(tmp_path, [99.0, 96.0]), "{fill.MB/s}", "{again.MB/s}")
    first, again = filled.of(busy)
    ((name, why),) = first.lacking
    assert first.text == "" and "host" in why and not again.lacking
    assert f"not claimed: {filled.in_a_sentence(name)} (host" in page.render([busy])


def test_of_several_runs_the_better_is_named_only_beyond_the_errors(run):
    same = filled.compared([run, run], ["a", "b"])
    assert same.startswith("a and b do not differ beyond their errors in cache size during fill (")
    one, other = (filled.Fact(Uncertain(value, 10.0), "IOPS", better="more") for value in (1000.0, 2000.0))
    assert filled._verdict("mean IOPS of load", [one, other], ["a", "b"]) == (
        "b is better than a: higher mean IOPS of load (2\u202f000 ± 10 IOPS against 1\u202f000 ± 10 IOPS)"
    )
    unknown = one._replace(of=Uncertain(1000.0))
    assert filled._verdict("mean IOPS", [unknown, other], ["a", "b"]).startswith(
        "b and a are not compared, the error of"
    )
    assert filled.compared([run], ["a"]) == ""


@pytest.mark.parametrize("width", [40, 60, 100, 200])
def test_the_last_lines_of_the_terminal_are_the_headline_at_any_width(run, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = screen.text([run]).splitlines()[-8:]
    (part,) = filled.of(run)
    assert part.text in " ".join(line.strip() for line in lines)
    after = lines[max(i for i, line in enumerate(lines) if line.startswith("  trust ")) :]
    assert all(len(line) <= width for line in after)


def test_a_figure_by_formula_that_is_not_claimed_says_so_once():
    part = filled.Part("", (("Restored by idle", "not claimed, host: late"), ("Mean IOPS", "host: late")))
    assert filled.left_out([part]) == ["not claimed: restored by idle, mean IOPS (host: late)"]
