"""schemas/json: what commands print with --json is as it says there, and what is not is found. Those of `drives`,
`push` and `rig info` are looked at where their tests have the tools for it (test_drives, test_points_push,
test_rig_info)."""

import copy
import dataclasses
import json
from pathlib import Path

import pytest
import synthetic_plan
import synthetic_run
from json_documents import FOLDER, checked, schema, wrong
from wear_documents import NVME

from ssdrig import cli
from ssdrig.drive import guard, inventory
from ssdrig.drive.smart import counters
from ssdrig.drive.wear import endurance, wa
from ssdrig.plan.kinds import KINDS
from ssdrig.plan.rules import steady
from ssdrig.publish.influx import push
from ssdrig.publish.verdicts import acceptance, comparison
from ssdrig.reading import bursts, cache_recovery, gaps, index, whole_run, window_figures, witness
from ssdrig.reading.row import KEYS
from ssdrig.runs import journal
from ssdrig.views.life import figures as life_figures

NAMES = {"check", "compare", "drives", "plans", "push", "report", "rig-info", "runs", "wear"}


def printed(capsys, *words) -> list:
    assert cli.main([*map(str, words), "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines  # or nothing would be checked
    return [json.loads(line) for line in lines]


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
        for document in printed(capsys, "report", runs / name, "--quiet"):
            checked("report", document)
    for made in (synthetic_plan.grid(runs, name="g"), synthetic_plan.steps(runs, name="s")):
        for document in printed(capsys, "report", made, "--quiet"):
            checked("report", document)
    (runs / "e").mkdir()
    (runs / "e/run.json").write_text("{")
    cli.main(["label", str(runs / "a"), "--title", "Fan off", "--tag", "review"])
    capsys.readouterr()
    listed = printed(capsys, "runs", runs)
    assert len(listed) == 7
    for document in listed:
        checked("runs", document)


@pytest.mark.slow
def test_plans(capsys):
    checked("plans", printed(capsys, "plans")[0])
    checked("plans", printed(capsys, "plans", "--virtual", "sata-tlc")[0])


def test_wear(tmp_path, capsys):
    saved = Path(__file__).parents[1] / "data/smartctl"
    (tmp_path / "one.json").write_text(json.dumps(NVME))
    for folder in (tmp_path, saved):
        documents = printed(capsys, "wear", "--smartctl", folder)
        assert documents
        for document in documents:
            checked("wear", document)


def properties(of: dict, *path: str) -> dict:
    """The properties of what lies there: "[]" an array's items, "*" an object's values."""
    for name in path:
        of = of["items"] if name == "[]" else of["additionalProperties"] if name == "*" else of["properties"][name]
    return of["properties"]


def test_the_keys_that_the_code_writes_are_the_keys_of_the_schemas():
    """Each of them required, and no other, also those that no document of a test has."""
    plan, wear = schema("report"), schema("wear")
    verdict = {*steady.untested("")}
    written = [
        (plan, ("whole_run",), {"load", *whole_run.KEYS}),
        (plan, ("rows", "[]", "kernel"), witness.KEYS),
        (plan, ("cache_recovery", "[]"), {"of", "left_out", *cache_recovery.Recovery._fields}),
        (plan, ("gaps", "[]"), gaps.Gaps._fields),
        (plan, ("life", "[]"), {"of", *life_figures.Life._fields}),
        (schema("runs"), (), {*index.Run._fields, "started"} - {"path"}),
        (schema("push"), (), {"run", "to", "missing", *push.Sent._fields}),
        (wear, ("limits",), endurance.Limits._fields),
        (wear, ("wa",), {"since", "words", *wa.WriteAmplification._fields}),
        (schema("check"), ("cases", "[]"), acceptance.Case._fields),
        (schema("compare"), (), {"window", "conditions", *comparison.Difference._fields}),
        (schema("drives"), ("[]", "refusals", "[]"), {fact.name for fact in dataclasses.fields(guard.Refusal)}),
    ]
    for of, path, keys in written:
        assert {*properties(of, *path)} == {*keys}, (of["title"], path)
    assert {*properties(wear)} >= {*counters.KEYS}
    of_plan = properties(plan, "rows", "[]", "windows", "*")
    assert {*of_plan} == {*KEYS, *window_figures.KEYS, *bursts.KEYS, "floor_W"} - {"name", "label", "unfinished"}
    assert {*properties(plan, "steady", "verdicts", "[]")} >= verdict
    drive = {fact.name: fact.type for fact in dataclasses.fields(inventory.Drive)}
    for of in (properties(schema("drives"), "[]"), properties(schema("plans"), "drive")):
        assert {name: of[name]["type"] for name in drive if name != "simulated"} == {
            name: WORDS[kind] for name, kind in drive.items() if name != "simulated"
        }


WORDS = {
    **{str: "string", int: "integer", bool: "boolean"},
    **{str | None: ["string", "null"], int | None: ["integer", "null"]},
}


def test_the_words_that_a_state_or_a_step_may_be():
    word = lambda name, *path: {*properties(schema(name), *path[:-1])[path[-1]]["enum"]}
    verdicts = {acceptance.PASS, acceptance.FAIL, acceptance.CANNOT_TELL}
    assert word("check", "verdict") == word("check", "cases", "[]", "verdict") == verdicts
    assert word("compare", "verdict") == {comparison.HIGHER, comparison.LOWER, comparison.CANNOT_TELL}
    assert word("runs", "state") == {*index.STATES} and word("report", "state") == {*index.STATES} - {"unreadable"}
    assert word("report", "rows", "[]", "do") == {*KINDS} - {"repeat"}


def odd_runs(folder):
    """Runs without a window, without SMART, of which nothing was measured, cut from the web."""
    how = {"zoom_s": 5, "logs": False}
    yield synthetic_run.write(folder, [9000] * 3, name="short", **how)
    yield synthetic_run.write(folder, [0] * 8, name="still", power=False, **how)
    whole = synthetic_run.write(folder, [900] * 12, name="cut", **how)
    events = journal.events(whole)
    fired_ns = next(e["t_ns"] for e in events if e["kind"] == "step.start" and e["step"] == "load") + 10**9
    event = {"t_ns": fired_ns, "kind": "cut.fired", "step": "load", "cut": None, "fired_ns": fired_ns, "bound_ns": 9}
    synthetic_run.seal(whole, sorted([*events, event], key=lambda e: e["t_ns"]))
    yield whole
    for name, kind in (("lines", "load"), ("events", "run")):
        made = synthetic_run.write(folder, [900] * 12, name=name, **how)
        (made / "fio/load/out.json" if kind == "load" else made / "events.jsonl").write_text("")
        yield made


@pytest.mark.slow
def test_runs_that_lack_something_are_as_it_says_too(tmp_path, capsys):
    for made in odd_runs(tmp_path / "runs"):
        for document in printed(capsys, "report", made, "--quiet"):
            checked("report", document)
    assert len(printed(capsys, "runs", tmp_path / "runs")) == 5


def test_each_has_a_schema_and_each_of_them_its_words():
    schemas = {path.name.removesuffix(".schema.json") for path in FOLDER.iterdir()}
    assert schemas == NAMES
    listed = (FOLDER.parent / "README.md").read_text()
    for name in NAMES:
        assert schema(name)["title"].startswith("ssdrig ") and f"json/{name}.schema.json" in listed, name


GOOD = {"run": "r", "to": "t", "lines": 5, "pending": 0, "rejected": 0, "left_out": 0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("lines"), "$: lines is missing"),
        (lambda d: d.update(lines=5.5), "$.lines: 5.5 is no integer"),
        (lambda d: d.update(lines=True), "$.lines: True is no integer"),
        (lambda d: d.update(lines=None), "$.lines: None is no integer"),
        (lambda d: d.update(more=1), "$: more is in no schema"),
        (lambda d: d.update(missing={"power": "3"}), "$.missing.power: '3' is no integer"),
    ],
)
def test_what_is_not_as_it_says_is_found(change, message):
    document = copy.deepcopy(GOOD)
    assert [*wrong(document, schema("push"))] == []
    change(document)
    assert [*wrong(document, schema("push"))] == [message]


def test_a_schema_says_nothing_that_is_not_looked_at():
    for name in NAMES:
        everything = [schema(name)]
        while everything:
            part = everything.pop()
            list(wrong(None, part))  # raises for a word that is not looked at
            everything += part.get("properties", {}).values()
            everything += [part[word] for word in ("items", "additionalProperties") if isinstance(part.get(word), dict)]
    with pytest.raises(ValueError):
        [*wrong("x", {"type": "string", "pattern": "y"})]
    assert [*wrong("x", {"type": "string", "enum": ["y"]})] == ["$: 'x' is none of ['y']"]
    assert [*wrong(float("nan"), {"type": "number"})] and [*wrong([1, "x"], {"items": {"type": "integer"}})]
