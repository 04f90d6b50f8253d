"""`check`: limits of a file against figures with their errors, and the verdict of the plan itself."""

import json
import random
import xml.etree.ElementTree as ElementTree

import pytest
import synthetic_cuts
import synthetic_run
from json_documents import checked

from ssdrig import cli
from ssdrig.base.errors import CannotTell, LimitMissed, UsageError
from ssdrig.base.uncertain import NO_ERROR, NOT_TRUSTED, Uncertain
from ssdrig.publish.verdicts import acceptance, junit, ocptv
from ssdrig.publish.verdicts.acceptance import CANNOT_TELL, FAIL, NOT_CLEAR, PASS, Case
from ssdrig.reading import table, trust

POWER = '[[limit]]\nfigure = "power_mean_W"\nunit = "W"\n'


def limit(text: str) -> acceptance.Limit:
    return acceptance.parse(text, "limits.toml").limits[0]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The run "load" at 2.5 W, and two campaigns: of an honest drive and of one that lies."""
    folder = tmp_path_factory.mktemp("runs")
    synthetic_run.write(folder, [9000] * 6 + [4000, 4001, 3999] * 8, zoom_s=12, idle_s=10, name="load")
    synthetic_cuts.write(folder, 30, 0.0, name="honest")
    synthetic_cuts.write(folder, 30, 0.5, name="lying")
    return folder


@pytest.mark.parametrize(
    "value, error, verdict, reason",
    [
        (5.0, 0.5, PASS, None),  # on the edge of the guard band
        (5.01, 0.5, CANNOT_TELL, NOT_CLEAR),
        (6.0, 0.5, CANNOT_TELL, NOT_CLEAR),
        (6.01, 0.5, FAIL, None),
        (5.4, None, CANNOT_TELL, NO_ERROR),
        (None, None, CANNOT_TELL, "unknown"),
        (float("nan"), 0.1, CANNOT_TELL, "unknown"),
        (5.4, float("inf"), CANNOT_TELL, NO_ERROR),
    ],
)
def test_guard_band_of_an_upper_limit(value, error, verdict, reason):
    judged = acceptance.judged(limit(POWER + "max = 5.5"), Uncertain(value, error))
    assert (judged.verdict, judged.reason) == (verdict, reason)
    assert judged.why


@pytest.mark.parametrize(("value", "error"), [(9800.0, 900.0), (1_234_567.0, 120_000.0), (2e6, 1.5e6)])
def test_large_figures_are_printed_without_exponents(value, error):
    judged = acceptance.judged(limit(POWER + f"max = {value}"), Uncertain(value, error))
    assert judged.reason == NOT_CLEAR and "e+" not in judged.why


def test_simple_acceptance_needs_no_error():
    asked = limit(POWER + "max = 5.5\nguard = 0")
    assert acceptance.judged(asked, Uncertain(5.5)).verdict == PASS
    assert acceptance.judged(asked, Uncertain(5.51)).verdict == FAIL


def test_interval_narrower_than_the_guard_bands_is_never_passed():
    asked = limit(POWER + "min = 5\nmax = 5.5")
    assert {acceptance.judged(asked, Uncertain(v / 10, 0.3)).verdict for v in range(51, 56)} == {CANNOT_TELL}


def test_limit_in_another_unit_of_the_same_kind():
    text = '[[limit]]\nfigure = "power_mean_W"\nmax = 70\nunit = "mW"'
    verdict = acceptance.judged(limit(text), Uncertain(0.0712, 0.0002))
    assert (verdict.verdict, verdict.value, verdict.error) == (FAIL, pytest.approx(71.2), pytest.approx(0.2))


def test_a_thousand_simulated_limits_are_judged_wrong_in_at_most_5_percent():
    """A true value, a measurement of it with a known uncertainty, a limit near it: the worst place for a verdict."""
    dice, wrong, reasons, verdicts = random.Random(1), 0, set(), []
    for _ in range(1000):
        true, error = dice.uniform(1, 10), dice.uniform(0.01, 1)
        most = true + dice.uniform(-2, 2) * error
        seen = dice.gauss(true, error / 1.96)
        verdict = acceptance.judged(limit(POWER + f"max = {max(0, most)!r}"), Uncertain(seen, error))
        verdicts.append(verdict.verdict)
        wrong += verdict.verdict == (FAIL if true <= most else PASS)
        reasons |= {verdict.reason} if verdict.verdict == CANNOT_TELL else set()
    assert wrong <= 50
    assert reasons == {NOT_CLEAR}
    assert min(verdicts.count(PASS), verdicts.count(FAIL)) > 100


def test_a_true_value_at_its_limit_is_passed_in_at_most_2_5_percent():
    dice = random.Random(2)
    asked = limit(POWER + "max = 5")
    passed = sum(acceptance.judged(asked, Uncertain(dice.gauss(5, 0.1), 0.196)).verdict == PASS for _ in range(10_000))
    assert 150 < passed < 300


@pytest.mark.parametrize(
    "text, named",
    [
        ("", "[[limit]]"),
        ("limit = 3", "[[limit]]"),
        ('[[limit]]\nfigure = "power_W"\nmax = 1\nunit = "W"', "power"),
        ('[[limit]]\nfigure = "power_mean_W"\nmax = 1', "unit"),
        ('[[limit]]\nfigure = "power_mean_W"\nmax = 1\nunit = "V"', "unit"),
        ('[[limit]]\nfigure = "power_mean_W"\nunit = "W"', "min or max"),
        (POWER + "min = 2\nmax = 1", "min below max"),
        (POWER + "max = nan", "limits.toml"),
        (POWER + "max = true", "number"),
        (POWER + "max = 1\nguard = -1", "guard"),
        (POWER + "maximum = 1", "max"),
        ("[[limit]\n", "TOML"),
        ('colour = "red"\n' + POWER + "max = 1", "colour"),
    ],
)
def test_a_limit_file_with_an_error_names_it(text, named):
    with pytest.raises(UsageError) as error:
        acceptance.parse(text, "limits.toml")
    assert named in str(error.value)


def test_every_shipped_limit_file_reads_and_has_a_source():
    assert len(acceptance.shipped()) >= 4
    for name in acceptance.shipped():
        assert acceptance.read(name).source and acceptance.read(name).title


@pytest.mark.usefixtures("short_loads_have_errors")
def test_figures_of_a_run_are_judged_at_their_step_and_window(runs):
    text = POWER + 'step = "load"\nwindow = "steady"\nmax = 2.6\nname = "load"\n'
    text += '[[limit]]\nfigure = "idle_mean_W"\nmax = 70\nunit = "mW"\n[[limit]]\nfigure = "iops_mean"\nmin = 3990\n'
    text += 'step = "load"\nwindow = "steady"\n'
    cases = acceptance.cases(table.load(runs / "load"), acceptance.parse(text, "x").limits)
    assert [case.verdict for case in cases] == [PASS, PASS, FAIL, PASS]
    assert cases[1].value == pytest.approx(2.5, rel=0.01) and cases[1].error == pytest.approx(0.03, abs=0.02)


@pytest.mark.parametrize("key, value", [("step", "lode"), ("window", "stedy"), ("where", "read=7")])
def test_a_place_that_the_plan_lacks_is_refused(runs, key, value):
    asked = limit(POWER + f'max = 1\nstep = "load"\n{key} = "{value}"'.replace('step = "load"\nstep', "step"))
    with pytest.raises(UsageError):
        acceptance.cases(table.load(runs / "load"), [asked])


def test_a_figure_that_rests_on_what_is_bad_is_not_judged(runs, monkeypatch):
    monkeypatch.setattr(acceptance.trust, "why_not", lambda items, ids=(): "closure: open")
    cases = acceptance.cases(table.load(runs / "load"), [limit(POWER + "max = 100")])
    assert (cases[-1].verdict, cases[-1].reason) == (CANNOT_TELL, NOT_TRUSTED)
    assert trust is acceptance.trust


def test_a_run_that_died_is_not_passed(tmp_path):
    synthetic_run.write(tmp_path, [4000] * 30, zoom_s=12, state=None, name="died")
    cases = acceptance.cases(table.load(tmp_path / "died"), [])
    assert (cases[0].verdict, cases[0].reason) == (CANNOT_TELL, "not-complete")


@pytest.mark.parametrize("name, verdict", [("honest", PASS), ("lying", FAIL)])
def test_verdict_of_a_campaign_of_power_cuts_is_a_case(runs, name, verdict):
    cases = acceptance.cases(table.load(runs / name), [])
    assert [case.verdict for case in cases] == [PASS, verdict]


@pytest.mark.parametrize("name, verdict", [("honest", CANNOT_TELL), ("lying", FAIL)])
def test_file_system_that_lacks_promised_data_is_not_passed(runs, name, verdict):
    of = table.load(runs / name)
    row = next(row for row in of.rows if row.act.do == "cuts")
    row.result = row.result | {"filesystems": [{"failing": [4, 2]}, {"failing": []}, {"failing": [2]}]}
    case = acceptance.of_plan(of)[-1]
    assert (case.verdict, case.reason) == (verdict, "suspicion" if verdict == CANNOT_TELL else None)
    row.result = row.result | {"filesystems": [{"failing": []}]}
    assert acceptance.of_plan(of)[-1].verdict == (PASS if verdict == CANNOT_TELL else FAIL)


def test_damaged_records_of_a_campaign_are_not_passed(runs):
    of = table.load(runs / "honest")
    row = next(row for row in of.rows if row.act.do == "cuts")
    row.result = row.result | {"cuts": [{"cut": 1}]}
    case = acceptance.of_plan(of)[-1]
    assert (case.verdict, case.reason) == (CANNOT_TELL, "damaged")


CASES = [
    Case("good", PASS, "2 W", figure="power_mean_W", value=2.0, error=0.1, most=3.0, unit="W", guard=1.0),
    Case('bad <"&\x00>', FAIL, "4 W", figure="power_mean_W", value=4.0, error=0.1, most=3.0, unit="W", guard=1.0),
    Case("vague", CANNOT_TELL, "3 W", NOT_CLEAR, figure="power_mean_W", value=3.0, error=0.1, most=3.0, unit="W"),
    Case("absent", CANNOT_TELL, "not known", "unknown", figure="wa", most=3.0),
]
RUN = {"run": "r\x1b", "plan": "p", "utc": "2026-01-31T12:00:00Z", "model": "m", "serial": "s", "simulated": True}


def test_junit_has_the_published_structure():
    top = ElementTree.fromstring(junit.document([(RUN, CASES)]))
    assert (top.tag, top.get("tests"), top.get("failures"), top.get("errors")) == ("testsuites", "4", "1", "2")
    (suite,) = top
    assert (suite.tag, suite.get("tests"), suite.get("timestamp")) == ("testsuite", "4", "2026-01-31T12:00:00")
    children = {case.get("name"): [child.tag for child in case] for case in suite.findall("testcase")}
    assert [*children.values()] == [["system-out"], ["failure"], ["error"], ["error"]]
    assert suite.findall("testcase/failure")[0].get("message") == "4 W; limit: at most 3 W"


def test_ocptv_lines_follow_the_specification():
    """json_spec of ocp-diag-core: one artifact a line, numbered; enumerations of validators, diagnoses, results."""
    lines = [json.loads(line) for line in ocptv.lines(RUN, CASES, "2026-01-31T12:00:00Z", "ssdrig check r", "1")]
    assert [line["sequenceNumber"] for line in lines] == list(range(len(lines)))
    kinds = {"schemaVersion", "testRunArtifact", "testStepArtifact"}
    assert all(
        len(kinds & line.keys()) == 1 and line.keys() - kinds == {"sequenceNumber", "timestamp"} for line in lines
    )
    assert lines[0]["schemaVersion"] == {"major": 2, "minor": 0}
    start = lines[1]["testRunArtifact"]["testRunStart"]
    assert {"name", "version", "commandLine", "parameters", "dutInfo"} <= start.keys() and start["dutInfo"]["id"]
    assert lines[-1]["testRunArtifact"]["testRunEnd"] == {"status": "COMPLETE", "result": "FAIL"}
    steps = [line["testStepArtifact"] for line in lines if "testStepArtifact" in line]
    assert [s["diagnosis"]["type"] for s in steps if "diagnosis" in s] == ["PASS", "FAIL", "UNKNOWN", "UNKNOWN"]
    measured = [s["measurement"] for s in steps if "measurement" in s]
    assert [m["value"] for m in measured] == [2.0, 4.0, 3.0]
    assert measured[0]["validators"] == [{"type": "LESS_THAN_OR_EQUAL", "value": 3.0}]
    assert measured[0]["hardwareInfoId"] == start["dutInfo"]["hardwareInfos"][0]["hardwareInfoId"]


def test_command_writes_junit_and_ends_with_the_code_of_the_worst(runs, tmp_path, capsys):
    limits = tmp_path / "limits.toml"
    limits.write_text(POWER + "max = 2.6")
    xml = tmp_path / "check.xml"
    words = ["check", str(runs / "load"), "--limits", str(limits), "--json"]
    assert cli.main([*words, "--junit", str(xml)]) == 0
    assert checked("check", json.loads(capsys.readouterr().out))["verdict"] == PASS
    assert ElementTree.parse(xml).getroot().get("tests") == "2"
    limits.write_text(POWER + "max = 2.4")
    assert cli.main([*words, "--limits", "measurement"]) == LimitMissed.exit_code
    assert checked("check", json.loads(capsys.readouterr().out))["verdict"] == FAIL
    limits.write_text(POWER + "max = 2.5")
    assert cli.main(words) == CannotTell.exit_code
    assert checked("check", json.loads(capsys.readouterr().out))["verdict"] == CANNOT_TELL
    assert cli.main(["check", str(runs / "load")]) == UsageError.exit_code
    assert cli.main(["check", str(runs / "load"), "--limits", "mesurement"]) == UsageError.exit_code
    assert "measurement" in capsys.readouterr().err
