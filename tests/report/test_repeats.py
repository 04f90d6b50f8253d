"""report/repeats.py: runs of one plan on one drive, mean and standard deviation, on the page and at the end."""

import json
from types import SimpleNamespace

import pytest
import synthetic_plan
import synthetic_run

from ssdrig.base.progress import Progress
from ssdrig.reading import table, trust
from ssdrig.report import page, repeats, rows, screen
from ssdrig.run import run
from ssdrig.runs import journal
from ssdrig.views import trust_strip

# n = 3 of 98, 100, 105: mean 101, s = sqrt((9 + 1 + 16) / 2)
VALUES, MEAN, S = (98.0, 100.0, 105.0), 101.0, 13**0.5


def approx(mean, s, n, not_claimed=None) -> dict:
    return {"mean": pytest.approx(mean), "s": pytest.approx(s), "n": n, "not_claimed": not_claimed}


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    """Three runs of a plan whose load `one` has these I/Os in each second, and one with another parameter."""
    base = tmp_path_factory.mktemp("repeats")
    folders = []
    for i, (count, time) in enumerate([(98, "4 s"), (100, "4 s"), (105, "4 s"), (300, "5 s")]):
        w = synthetic_plan.Writer(base, synthetic_plan.STEPS, "quick", {"time": time}, name=f"run-{i}")
        w.load("clean", [count] * 4, 2.0)
        folders.append(w.end())
    return folders


def test_mean_and_s():
    assert repeats.mean_and_s(VALUES)[:3] == pytest.approx((MEAN, S, 3))
    assert repeats.mean_and_s(VALUES).text == "101.0 ± 3.6"
    assert repeats.mean_and_s((5.0, 5.0)).text == "5.00 ± 0"


def test_each_row_of_the_runs_has_one(plans):
    lines, spreads = screen.repeated(plans[:3])
    assert spreads["clean"]["iops_mean"] == approx(MEAN, S, 3)
    assert spreads["clean, late"]["iops_mean"] == approx(MEAN, S, 3)
    assert "wa" not in spreads["clean"], "none of them knows it"
    head = next(i for i, line in enumerate(lines) if line.startswith("  mean ± s, n = 3"))
    assert "SCALED" in lines[0] and head > 0 and "101.0 ± 3.6" in lines[head + 1]


@pytest.mark.parametrize("id_", trust.NAMES)
def test_a_mean_says_what_one_of_its_runs_rests_on_and_is_bad(id_):
    """One red run among three: a mean of it is marked, in text, page and JSON, by what the figure rests on."""
    bad = [trust.Item(id_, "bad", why="seen").as_json()]
    of = [
        rows.Line("a", 1, {"iops_mean": 100.0 + i, "power_mean_W": 2.0 + i, "trust": bad if i == 1 else None}, [])
        for i in range(3)
    ]
    spreads = repeats.spreads([[line] for line in of])
    document = repeats.as_json(spreads)["a"]
    assert bool(document["power_mean_W"]["not_claimed"])
    assert bool(document["iops_mean"]["not_claimed"]) == (id_ in trust.OF_LOAD)
    marks = "\n".join(repeats.text(spreads, 3, 60)).count(trust_strip.MARK)
    assert marks == 1 + (2 if id_ in trust.OF_LOAD else 1), "a mark beside each, and what it means"


def test_what_only_two_know_says_so(plans):
    of = [rows.Line("a", 1, {"iops_mean": v}, []) for v in VALUES[:2]] + [rows.Line("a", 1, {"iops_mean": None}, [])]
    spreads = repeats.spreads([[line] for line in of])
    assert spreads["a"]["iops"].n == 2 and any("(n = 2)" in line for line in repeats.text(spreads, 3, 200))
    assert repeats.spreads([[of[0]], [of[2]]]) == {}
    assert "no figure" in repeats.text({}, 2, 80)[0]


def test_repeats_are_of_the_same_plan_parameters_and_drive(plans):
    headers = [journal.run_header(folder) for folder in plans]
    assert repeats.groups(headers) == [[0, 1, 2]]
    other = json.loads(json.dumps(headers[0]))
    other["method"]["seed"], other["drive"]["serial"] = 99, "SIM0002"
    assert repeats.groups([headers[0], other]) == [[0, 1]], "a SIMULATED drive has a new serial each time"
    other["drive"]["preset"] = None
    assert repeats.groups([headers[0], other]) == []


def test_the_page_of_a_plan_has_them(plans):
    tables = [table.load(folder) for folder in plans]
    made = page.render(tables)
    assert "mean ± standard deviation" in made and "<td>101.0 ± 3.6</td>" in made
    assert made.count('class="repeats"') == 1 and "3 runs of the same plan" in made
    assert "standard deviation" not in page.render(tables[:1])


def test_the_page_of_the_main_job_has_them(tmp_path):
    folders = [
        synthetic_run.write(tmp_path, [4000] * 4 + [count] * 16, zoom_s=10, name=f"r{count}") for count in (1000, 1100)
    ]
    runs = [table.in_full(folder).data for folder in folders]
    figures = [table.in_full(folder).figures for folder in folders]
    made = page.render([], 0, list(zip(runs, figures, strict=True)))
    assert "1\u202f050 ± 71</td>" in made and '<th scope="row">steady</th>' in made
    assert "standard deviation</h2>" not in page.render([], 0, [(runs[0], figures[0])])


def test_the_end_of_the_last_run_prints_them(plans, capsys):
    args = SimpleNamespace(json=True, jsonl=False)
    run._repeated(plans[:3], args, Progress())
    out, err = capsys.readouterr()
    assert json.loads(out)["spread"]["clean"]["iops_mean"]["n"] == 3 and "101.0 ± 3.6" in err
    run._repeated([plans[0] / "none"] * 2, args, Progress())
    assert "not to be had" in capsys.readouterr().err
