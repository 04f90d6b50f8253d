"""`report` of runs of any plan: the reviewed run on top, further windows, one plot alone, several runs in one plot."""

import html
import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
import synthetic_plan
import synthetic_run

from ssdrig import cli
from ssdrig.reading import table, whole_run
from ssdrig.report import page
from ssdrig.views.context import Context

SOURCES = {  # of a plot alone: plan and method
    "consistency": "consistency, AnandTech 7074, 8979, 10296: the reviewers' test of 2012 to 2016",
    "steps": "demo --variant quick, a test",
    "grid": "demo, a test",
}
CAPTIONS = {"consistency": "", "steps": "", "grid": "Shaded: "}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    base = tmp_path_factory.mktemp("runs")
    main = [synthetic_run.write(base, [4000] * 6 + [level] * 24, zoom_s=20, name=f"m{level}") for level in (900, 700)]
    steps = [synthetic_plan.steps(base, synthetic_plan.STEP_SHOWS, name=name) for name in ("s1", "s2")]
    grid = [synthetic_plan.grid(base, name=name) for name in ("g1", "g2")]
    return {"consistency": main, "steps": steps, "grid": grid}


def reported(tmp_path, *words) -> str:
    """The page; `report` prints its documents."""
    out = tmp_path / "page.html"
    assert cli.main(["report", *map(str, words), "--quiet", "--output", str(out)]) == 0
    return out.read_text()


@pytest.mark.parametrize("name", ["consistency", "steps", "grid"])
def test_each_run_has_rows_and_figures_of_the_whole_run(folders, name, tmp_path, capsys):
    reported(tmp_path, *folders[name], "--json")
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [document["run"] for document in documents] == [folder.name for folder in folders[name]]
    for document in documents:
        load = document["whole_run"]["load"]
        assert load.partition(" ")[0] in {row["path"] for row in document["rows"]}
        assert document["whole_run"]["iops_all_mean"] > 0 and document["whole_run"]["closure_percent"] < 0.01


def test_the_figures_of_a_whole_run(folders):
    table_ = table.load(folders["consistency"][0])
    rows, whole = {row.act.path: row for row in table_.rows}, whole_run.of(table_)
    assert whole["load"] == "load" and whole["fill_s"] == pytest.approx(2)
    assert whole["fill_MBps"] == pytest.approx(synthetic_run.TESTED_BYTES / 2e6, rel=1e-6)
    assert whole["iops_all_mean"] == pytest.approx((6 * 4000 + 24 * 900) / 30)
    assert whole["fill_energy_J"] == pytest.approx(2 * 4.0, rel=1e-3)
    assert whole["tested_bytes"] == rows["load"].act.range_bytes
    assert whole["alpha"] == pytest.approx(5153960755 / whole["tested_bytes"])
    assert whole["time_to_complete_s"] == pytest.approx(rows["load"].t1_s - rows["purge"].t0_s)


@pytest.mark.parametrize("name", ["consistency", "steps", "grid"])
def test_further_windows(folders, name, tmp_path, capsys):
    """One that a step did not reach has none, and a note."""
    reported(tmp_path, folders[name][0], "--json", "--window", "early=0:2", "--window", "never=0:9999")
    (document,) = map(json.loads, capsys.readouterr().out.splitlines())
    busy = [row for row in document["rows"] if row["do"] in ("fill", "load") and row["windows"]]
    assert busy
    for row in busy:
        assert row["windows"]["early"]["t1_s"] == 2 and row["windows"]["never"] is None
        assert any(note.startswith("window never: ") for note in row["notes"])


def test_further_windows_are_rows_of_the_page(folders, tmp_path):
    page = reported(tmp_path, folders["steps"][0], "--window", "early=1:3")
    assert page.count('<tr class="of-window"><th scope="row">early</th>') == 2


def view(folders, review=1, **show) -> str:
    tables = [table.load(folder) for folder in folders]
    return page.html_of(show["view"])(Context(tables, ["one", "two"][: len(tables)], show, review))


SHOWS = [
    ("steps", {"view": "scatter", "of": "clean"}, 1),
    ("steps", {"view": "scatter", "of": "clean", "along": "written"}, 1),
    ("steps", {"view": "series", "of": ["clean", "after"], "value": ["W", "MB/s"]}, 2),
    ("grid", {"view": "rounds", "of": "rounds/point", "where": "read=0", "value": "iops", "by": "block"}, 2),
    ("grid", {"view": "lines", "of": "rounds/point", "x": "block", "by": "read", "value": "iops"}, 2),
]


@pytest.mark.parametrize(("name", "show", "plots"), SHOWS)
@pytest.mark.parametrize("review", [0, 1])
def test_several_runs_are_in_one_plot_the_reviewed_one_on_top(folders, name, show, plots, review):
    made = view(folders[name], review, **show)
    drawn = re.findall("<svg.*?</svg>", made, re.S)
    assert len(drawn) == plots == made.count('<ul class="legend">')
    other = ("--blue", "--green")[1 - review]
    for plot in drawn:
        assert plot.rindex("var(--review)") > plot.rindex(f"var({other})") > 0


def test_one_run_has_the_colours_of_its_steps(folders):
    made = view(folders["steps"][:1], 0, view="series", of=["clean", "after"], value="W")
    assert "--review" not in made and 'class="legend"' not in made


@pytest.mark.parametrize("name", ["consistency", "steps", "grid"])
def test_the_reviewed_run_is_named_by_place_or_word(folders, name, tmp_path):
    for word in ("2", folders[name][1].name):
        page = reported(tmp_path, *folders[name], "--review", word)
        assert "--review" in page
    words = ["report", *map(str, folders[name]), "--review", "3", "--output", str(tmp_path / "x.html")]
    assert cli.main(words) == 2 and not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("suffix", ["svg", "html"])
@pytest.mark.parametrize(("name", "panel"), [("consistency", "whole"), ("steps", "series-2"), ("grid", "steady")])
def test_one_plot_alone(folders, name, panel, suffix, tmp_path):
    out = tmp_path / f"one.{suffix}"
    words = [*map(str, folders[name]), "--embed", panel, "--review", "2", "--quiet", "--output", str(out)]
    assert cli.main(["report", *words]) == 0
    text = out.read_text()
    assert folders[name][0].name in text and "SIMULATED" in text and ("data-trust" in text or "trust " in text)
    read = " ".join(html.unescape(" ".join(re.findall(">([^<]+)<", text))).split())
    assert f"· {SOURCES[name]}; {folders[name][0].name}" in read and CAPTIONS[name] in read
    if suffix == "svg":
        assert ElementTree.fromstring(text).tag.endswith("svg")
    words[words.index(panel)] = "nothing"
    assert cli.main(["report", *words]) == 2


def test_points_that_no_plan_repeats_have_windows_too(tmp_path):
    table_ = table.load(synthetic_plan.grid(tmp_path), more=[("early", 0, 2)])
    assert all(row.windows["early"]["t1_s"] == 2 for row in table_.rows if row.windows)


@pytest.mark.parametrize("name", ["consistency", "steps", "grid"])
def test_all_samples_of_the_load(folders, name, tmp_path):
    """The page of the load in full: each run's samples, and the views of its plan."""
    page = reported(tmp_path, *folders[name], "--samples", "--review", "2")
    data = json.loads(re.search('<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
    assert data["review"] == 1 and [run["id"] for run in data["runs"]] == [folder.name for folder in folders[name]]
    for run in data["runs"]:
        assert sum(piece["n"] for piece in run["moments"]) == pytest.approx(run["n"] * 1005, rel=0.02)
    assert ('id="views-h"' in page) == (name != "consistency")
