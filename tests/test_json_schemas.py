"""schemas/json: what commands print with --json is as it says there, and what is not is found. Those of `drives`,
`push` and `rig info` are looked at where their tests have the tools for it (test_drives, test_points_push,
test_rig_info)."""

import copy
import json
from pathlib import Path

import pytest
import synthetic_plan
import synthetic_run
from json_documents import FOLDER, checked, schema, wrong
from wear_documents import NVME

from ssdrig import cli

NAMES = {"drives", "plans", "push", "report", "report-plan", "rig-info", "runs", "wear"}


def printed(capsys, *words) -> list:
    assert cli.main([*map(str, words), "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.slow
def test_report_and_runs(tmp_path, capsys):
    runs = tmp_path / "runs"
    iops = [9000] * 12 + [3000, 4000] * 15
    for name, more in (
        ("a", {}),
        ("b", {"power": False}),
        ("c", {"state": None}),
        ("d", {"more_rails": [("12V", ((-100.0, 1.0), (0.0, 2.0)), 1_000_000, None)], "idle_s": 2}),
    ):
        synthetic_run.write(runs, iops, name=name, **more)
        for each in printed(capsys, "report", runs / name, "--quiet"):
            checked("report", each)
    for made in (synthetic_plan.grid(runs, name="g"), synthetic_plan.steps(runs, name="s")):
        for each in printed(capsys, "report", made, "--quiet"):
            checked("report-plan", each)
    (runs / "e").mkdir()
    (runs / "e/run.json").write_text("{")
    cli.main(["label", str(runs / "a"), "--title", "Fan off", "--tag", "review"])
    capsys.readouterr()
    found = printed(capsys, "runs", runs)
    assert len(found) == 7
    for each in found:
        checked("runs", each)


@pytest.mark.slow
def test_plans(capsys):
    checked("plans", printed(capsys, "plans")[0])
    checked("plans", printed(capsys, "plans", "--virtual", "sata-tlc")[0])


def test_wear(tmp_path, capsys):
    saved = Path(__file__).parent / "data/smartctl"
    (tmp_path / "one.json").write_text(json.dumps(NVME))
    for folder in (tmp_path, saved):
        for each in printed(capsys, "wear", "--smartctl", folder):
            checked("wear", each)


def test_each_has_a_schema_and_each_of_them_its_words():
    found = {path.name.removesuffix(".schema.json") for path in FOLDER.iterdir()}
    assert found == NAMES
    listed = (FOLDER.parent / "README.md").read_text()
    for name in NAMES:
        assert schema(name)["title"].startswith("ssdrig ") and f"json/{name}.schema.json" in listed, name


GOOD = {"run": "r", "to": "t", "lines": 5, "pending": 0, "rejected": 0, "left_out": 0}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.pop("lines"), "$: lines is missing"),
        (lambda d: d.update(lines=5.5), "$.lines: 5.5 is no integer"),
        (lambda d: d.update(lines=True), "$.lines: True is no integer"),
        (lambda d: d.update(lines=None), "$.lines: None is no integer"),
        (lambda d: d.update(more=1), "$: more is in no schema"),
        (lambda d: d.update(missing={"power": "3"}), "$.missing.power: '3' is no integer"),
    ],
)
def test_what_is_not_as_it_says_is_found(change, said):
    document = copy.deepcopy(GOOD)
    assert [*wrong(document, schema("push"))] == []
    change(document)
    assert [*wrong(document, schema("push"))] == [said]


def test_a_schema_says_nothing_that_is_not_looked_at():
    for name in NAMES:
        everything = [schema(name)]
        while everything:
            each = everything.pop()
            list(wrong(None, each))  # raises for a word that is not looked at
            everything += each.get("properties", {}).values()
            everything += [each[word] for word in ("items", "additionalProperties") if isinstance(each.get(word), dict)]
    with pytest.raises(ValueError):
        [*wrong("x", {"type": "string", "pattern": "y"})]
    assert [*wrong(float("nan"), {"type": "number"})] and [*wrong([1, "x"], {"items": {"type": "integer"}})]
