"""The first power-up: what is asked, where it stops, what the certificate keeps."""

import csv
import hashlib
import io
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from random import Random

import pytest
from conftest import ROOT

from selfcheck import bring_up as bench
from selfcheck import doctor as doctor_bench
from selfcheck import drawn
from ssdrig import cli
from ssdrig.base.errors import NoAnswer, RigError, UsageError
from ssdrig.commands import rig_doctor
from ssdrig.meter.pico import certificate
from ssdrig.rig import answers, bring_up, builds, checks, stored_steps


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


BUILD = builds.read(bench.BUILD)
READINGS = bring_up.readings(BUILD)


def asked(typed, say=lambda words: None, tries=answers.TRIES):
    """Questions that are answered with these lines, in turn."""
    typed = iter(typed)
    return answers.Questions(lambda words: next(typed), say, tries)


QUICK = {build: faults for build, faults in bench.OF_BUILD.items() if build != bench.BOARD}


def soldered(seed, build=bench.BUILD, fault=None, digits=3):
    return bench.Rig(Random(seed), builds.read(build), fault, digits)


@pytest.mark.parametrize(("build", "name"), [(build, name) for build, faults in QUICK.items() for name in faults])
def test_a_fault_of_assembly_is_found_at_its_step(build, name):
    step, fault = QUICK[build][name]
    assert [bench.by_hand(soldered(seed, build, fault)) for seed in range(3)] == [step] * 3


@pytest.mark.slow
@pytest.mark.parametrize("name", bench.ON_BOARD)
def test_a_fault_of_the_board_is_found_at_its_step(name):
    step, fault = bench.ON_BOARD[name]
    assert bench.by_hand(soldered(3, bench.BOARD, fault)) == step


@pytest.mark.parametrize("name", [name for name, (_, fault) in bench.BY_THE_RIG.items() if fault])
def test_a_fault_that_no_meter_shows_passes_by_hand(name):
    assert bench.by_hand(soldered(1, fault=bench.BY_THE_RIG[name][1])) is None


@pytest.mark.parametrize("digits", [2, 3])
@pytest.mark.parametrize("build", QUICK)
def test_sound_rigs_pass(build, digits):
    """By a meter of either number of digits; the breakout's board feeds its gates from 12 V."""
    assert [bench.by_hand(soldered(seed, build, digits=digits)) for seed in range(20)] == [None] * 20


@pytest.mark.slow
def test_a_sound_board_of_four_rails_passes():
    """Its lock-outs tried, too."""
    rig = soldered(3, "four_rails")
    rig.tries_lock_out = True
    assert bench.by_hand(rig) is None


def test_one_rail_on_a_prototyping_board_has_gates_of_24_V_and_no_lock_out():
    build = builds.read("one_rail")
    seen = {one.key: one for one in bring_up.readings(build, "prototyping")}
    assert seen["gate supply"].low < 24 < seen["gate supply"].high and seen["input"].high is None
    assert not {"reference", "lock-out"} & {*seen}
    assert bring_up.readings(build) == bring_up.readings(build, "breakout") != bring_up.readings(build, "prototyping")


def test_lock_outs_divider_is_that_of_the_values():
    with open(ROOT / "hardware/values.csv", newline="") as file:
        rows = {(row["rail"], row["name"]): row["value"] for row in csv.DictReader(file)}
    for rail in ("m2_3v3", "sata_5v", "sata_12v"):
        kOhm = (float(rows[rail, "ovp_upper"]) + float(rows["all", "ovp_lower"])) / 1000
        assert bring_up.LOCK_OUT_kOhm[round(1000 * float(rows[rail, "voltage"]))] == pytest.approx(kOhm)


@pytest.mark.parametrize(
    ("supply", "drive", "ok"),
    [
        ("4.98", "4.97", None),
        ("12.02", "12.00", None),
        ("5.012", "5.004", True),
        ("5.00", "4.95", False),
        ("5", "5", None),
    ],
)
def test_a_loss_is_judged_within_the_meters_last_digit(supply, drive, ok):
    wanted = [one for one in bring_up.readings(builds.read("one_rail")) if one.key in ("supply", "drive")]
    if supply.startswith("12"):
        wanted = [one for one in READINGS if one.key in ("supply", "drive") and one.rail == 1]
    typed = [supply, drive, ""]
    done = bring_up.step(4, wanted, asked(typed))
    assert [check.ok for check in done.checks if check.name == "lost"] == [ok]


@pytest.mark.parametrize(
    ("supply_V", "reference_V", "share_V", "digit", "ok"),
    [
        (5.0, 2.495, 2.281, 0.001, True),
        (5.0, 2.495, 2.281, 0.1, None),
        (5.0, 2.495, 2.0, 0.001, False),
        (12.0, 2.495, 2.28, 0.001, True),
        (12.0, 2.495, 2.45, 0.001, False),
        (3.3, 2.495, 2.281, 0.001, True),
        (3.3, 2.495, 2.0, 0.001, False),
    ],
)
def test_where_a_lock_out_trips_follows_from_three_readings(supply_V, reference_V, share_V, digit, ok):
    values = {"supply": supply_V, "share": share_V}
    known = [checks.figure(name, 2, value, "V", None, None, "") for name, value in values.items()]
    known += [checks.figure("reference", None, reference_V, "V", None, None, "")]
    known += [checks.figure("supply", 1, 99.0, "V", None, None, "")]
    (check,) = bring_up.trips_at(2, known, digit)
    assert check.value == pytest.approx(supply_V * reference_V / share_V) and check.ok is ok
    assert bring_up.trips_at(0, known, digit) == []


@pytest.mark.parametrize(
    ("lead_V", "logic_V", "ok"),
    [(4.75, 4.61, True), (5.0, 4.87, True), (5.25, 4.93, True), (5.25, 4.72, False), (4.75, 4.49, False)],
)
def test_the_logics_drop_is_judged_by_the_supply(lead_V, logic_V, ok):
    leads = [checks.figure("leads", n, volts, "V", 0.0, 13.0, "") for n, volts in enumerate((3.3, lead_V, 12.0))]
    (drop,) = bring_up.derived(checks.figure("logic supply", None, logic_V, "V", 4.45, 5.2, ""), leads, {})
    assert (drop.name, drop.ok) == ("logic drop", ok) and drop.value == pytest.approx(min(5, lead_V) - logic_V)


def test_resistors_are_those_of_the_values():
    with open(ROOT / "hardware/values.csv", newline="") as file:
        rows = {(row["rail"], row["name"]): float(row["value"]) for row in csv.DictReader(file)}
    for rail in ("m2_3v3", "sata_5v", "sata_12v"):
        mV = round(1000 * rows[rail, "voltage"])
        assert bring_up.OFF_Ohm[mV] == rows[rail, "lockout_off_resistor"]
        assert bring_up.CROWBAR_FUSE_A == rows[rail, "crowbar_fuse"]
    assert pytest.approx(rows["all", "gate_isolation"] / 1000) == bring_up.GATE_ISOLATION_kOhm
    assert pytest.approx(rows["all", "ovp_lower"] / 1000) == bring_up.OVP_LOWER_kOhm
    assert pytest.approx(rows["all", "ovp_hysteresis"] / 1000) == bring_up.HYSTERESIS_kOhm
    assert pytest.approx(rows["all", "ovp_pull_up"] / 2000) == bring_up.PULL_UP_kOhm
    with open(ROOT / "hardware/breakout/board/values.csv", newline="") as file:
        own = {row["name"]: float(row["value"]) for row in csv.DictReader(file)}
    assert pytest.approx(own["ovp_pull_up"] / 2000) == bring_up.BREAKOUT_PULL_UP_kOhm
    assert own["lockout_off_resistor"] == bring_up.BREAKOUT_OFF_Ohm


def test_rails_without_a_resistor_are_not_looked_at():
    assert [(one.rail, one.ok) for one in bring_up.without_resistor(BUILD, 0)] == [(1, None)]
    assert [one.rail for one in bring_up.without_resistor(BUILD, None)] == [0, 1]
    assert {bring_up.step_of(one) for one in bring_up.without_resistor(BUILD, None)} == {8}


def test_faults_of_the_stand_in_belong_to_doctors_list():
    assert set(bench.BY_THE_RIG) <= set(doctor_bench.FAULTS)


def test_fuses_are_those_of_the_values():
    with open(ROOT / "hardware/values.csv", newline="") as file:
        parts = {row["rail"]: row["part"] for row in csv.DictReader(file) if row["name"] == "fuse"}
    for rail, mV in (("sata_5v", 5000), ("sata_12v", 12000)):
        assert f"(ATO blade {bring_up.FUSE_A[mV]:g} A)" in parts[rail]
    bill = (ROOT / "hardware/breakout/bom.csv").read_text()
    assert "0287003.PXCN before the 3.3 V converter" in bill and bring_up.FUSE_A[3300] == 3


def test_nothing_is_asked_after_a_step_that_failed():
    asked, rig = [], soldered(1, fault=bench.BY_HAND["fuse blown"][1])

    def ask(words):
        asked.append(words)
        return rig.answer(words, READINGS)

    done = bring_up.by_hand(BUILD, answers.Questions(ask, lambda words: None))
    assert [one.step for one in done] == [1, 2, 3, 4] and done[-1].checks[-1].name == "supply"
    assert not any(", GATE" in words or "SCOPE" in words for words in asked)


@pytest.mark.parametrize("name", builds.names())
def test_each_build_has_its_readings(name):
    build = builds.read(name)
    keys = {(one.key, one.rail) for one in bring_up.readings(build)}
    locks_out = bring_up.board_of(build) != "prototyping"
    for row in build["rails"]:
        assert {(key, row["rail"]) for key in ("input", "through", "back", "OFF", "drive", "gate")} <= keys
    assert {rail for key, rail in keys if key == "SCOPE"} == {row["rail"] for row in build["scope"]}
    assert (("reference", None) in keys) == locks_out == name.startswith(("four_rails", "one_"))


@pytest.mark.parametrize("name", builds.names())
def test_a_lock_out_is_proven_before_a_drive_is_connected(name):
    """Each rail that has one trips once, and no answer stands for that."""
    build = builds.read(name)
    trips = {one.rail: one for one in bring_up.readings(build) if one.key == "trips"}
    locks_out = bring_up.board_of(build) != "prototyping"
    assert set(trips) == ({row["rail"] for row in build["rails"]} if locks_out else set())
    assert not any(one.optional for one in trips.values())
    held = [one for one in bring_up.readings(build) if one.key == "PERST#"]
    assert len(held) == (build["sideband"] is not None)


def test_limits_are_those_of_the_readme():
    """hardware/README.md, First power-up."""
    text = (ROOT / "hardware/README.md").read_text()
    rows = re.findall(r"^\| (m2_3v3|sata_5v|sata_12v) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", text, re.M)
    limits = {(one.key, one.rail): one for one in bring_up.readings(builds.read("four_rails"))}
    assert len(rows) == 3
    for n, (_, volts, kOhm, scope_V, gate_V) in enumerate(rows):
        for key, value in (("output", kOhm), ("SCOPE", scope_V), ("gate", gate_V), ("supply", volts)):
            assert limits[key, n].low < float(value) < limits[key, n].high, (key, n)
        assert limits["output", n].low == pytest.approx(0.8 * float(kOhm), abs=0.01)
    breakout = {one.key: one for one in bring_up.readings(builds.read("one_rail"))}
    figure = r"([\d.]+)(?: \(([\d.]+)\))?"  # in brackets: of the breakout's board
    rows = re.findall(rf"^\| (?:3\.3|5|12) V \| ([\d.]+) \| {figure} \| ([\d.]+) \| {figure} \|$", text, re.M)
    assert len(rows) == 3
    for n, (bar, off, off_of_breakout, part, ramp, of_breakout) in enumerate(rows):
        supply_V = (limits["supply", n].low + limits["supply", n].high) / 2
        for key, value in (("crowbar path", bar), ("lock-out resistor", off), ("ramp", ramp)):
            assert limits[key, n].low < float(value) < limits[key, n].high, (key, n)
        # 2 x 2.2 kOhm of isolation and the lock-out's resistor below the gate resistor, from the gate supply
        middle_V = (limits["ramp", n].low / 0.95 / 0.97 + limits["ramp", n].high / 1.05 / 1.03) / 2
        assert middle_V == pytest.approx(float(ramp), abs=0.005)
        share = limits["share", n]
        assert supply_V * float(part) == pytest.approx(
            (share.low / 0.97 / 0.95 + share.high / 1.03 / 1.05) / 2, rel=2e-3
        )
        for key, value in (("ramp", of_breakout), ("lock-out resistor", off_of_breakout)):
            assert not value or breakout[key].low < float(value) < breakout[key].high, key
    low, high = (float(x) for x in re.search(r"gate supply 24 V \(([\d.]+) to ([\d.]+) V\)", text).groups())
    supply = limits["gate supply", None]
    assert (supply.low, supply.high) == (pytest.approx(low, abs=0.2), pytest.approx(high, abs=0.05))


@pytest.mark.parametrize(
    ("text", "ok"),
    [("2.31", True), ("2,31\n", True), ("2310 Ohm", True), ("22", False), ("ol", False), ("OL", False), ("0", False)],
)
def test_an_answer_is_judged(text, ok):
    reading = next(one for one in READINGS if one.key == "OFF")
    assert bring_up.asked([reading], asked([text]))[0][0].ok is ok


@pytest.mark.parametrize("text", ["", "x", "nan", "2.2 V", "y", "2300", "2.2.0"])
def test_an_answer_that_is_none_or_in_another_unit_is_asked_for_again(text):
    reading = next(one for one in READINGS if one.key == "OFF")
    done = bring_up.step(2, [reading], asked([text, "2.3", ""]))
    assert not done.failed and done.checks[0].value == 2.3


def test_a_step_is_not_failed_by_what_was_typed_wrong():
    """3.3 A for V, mV without a unit, an empty line, a comma; each is asked for again or understood."""
    wanted = [one for one in bring_up.readings(builds.read("one_m2_rail")) if one.step == 4]
    heard = []
    typed = ["3.31 A", "3310", "3310 mV", "", "3,305 V", "maybe", "y", "y", ""]
    done = bring_up.step(4, wanted, asked(typed, heard.append))
    names = ("supply", "drive", "lost", "lamp", "cold")
    assert {check.name: check.ok for check in done.checks} == dict.fromkeys(names, True)
    assert done.checks[0].value == pytest.approx(3.31) and sum("found:" in line for line in heard) == 4


def test_an_open_circuit_can_be_kept_as_json():
    reading = next(one for one in READINGS if one.key == "through")
    ((check, _),) = bring_up.asked([reading], asked(["ol"]))
    assert check.why == "open" and "seen" not in check.words() and ": open, expected" in check.words()
    assert check.ok and json.loads(json.dumps(check._asdict(), allow_nan=False))["value"] == 1e9


def test_a_photo_is_kept_by_name_and_content(tmp_path):
    path = tmp_path / "step 1.jpg"
    path.write_bytes(b"picture")
    assert bring_up.photo_of(f"{path}\n") == ("step 1.jpg", hashlib.sha256(b"picture").hexdigest())
    assert bring_up.photo_of("absent.jpg") == ("absent.jpg", None)
    assert bring_up.photo_of("\n") == bring_up.photo_of("") == (None, None)
    assert bring_up.photo_of("a\0b")[1] is None


@pytest.mark.parametrize("name", ["it's 5 V.jpg", "Foto \xe4\u00b5.jpg", "-x.jpg", "a\tb.jpg", "\udcff.jpg", '"q".jpg'])
def test_a_photo_may_have_any_name(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(b"picture")
    for words in (str(path), shlex.quote(str(path))):
        assert bring_up.photo_of(words) == (name, hashlib.sha256(b"picture").hexdigest())
    json.dumps(name).encode()


def test_what_is_no_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("/dev/zero", str(tmp_path / "pipe"), str(tmp_path), "~nobody-at-all/x.jpg", "'unbalanced"):
        assert bring_up.photo_of(name)[1] is None


def test_an_answer_of_any_bytes_is_one(monkeypatch):
    monkeypatch.setattr(rig_doctor.sys, "stdin", io.TextIOWrapper(io.BytesIO(b"st\xfcp 1.jpg\n"), "utf-8"))
    assert rig_doctor.answer("photo") == "st\udcfcp 1.jpg\n"


def test_the_voltmeter_and_the_rig_are_compared():
    done = [bring_up.Done(4, [checks.figure("drive", 0, 5.0, "V", 4.7, 5.3, "")])]
    figures = lambda volts: [checks.figure("voltage", 0, volts, "V", 4.7, 5.3, "")]
    assert [one.ok for one in bring_up.of_voltmeter(done, figures(5.04))] == [True]
    assert [one.ok for one in bring_up.of_voltmeter(done, figures(5.06))] == [False]
    assert bring_up.of_voltmeter([], figures(5.0)) == []


def test_the_voltage_with_run_held_is_a_number():
    (check,) = bring_up.run_held(builds.read("one_rail"), asked(["nan", "inf", "5 A", "", "5,01"]))
    assert check.value == 5.01 and check.ok


def test_a_board_of_another_build_is_refused():
    with pytest.raises(UsageError):
        bring_up.same_build(BUILD, {"build": "one_rail"})


def test_the_command_stops_before_it_needs_a_board(monkeypatch, capsys, tmp_path):
    rig = soldered(3, fault=bench.BY_HAND["gate supply not set"][1])
    monkeypatch.setattr(rig_doctor, "answer", lambda words: rig.answer(words, READINGS))
    monkeypatch.setattr(rig_doctor.ports, "find", lambda port: pytest.fail("no board is asked"))
    to = tmp_path / "mine.json"
    words = ["rig", "doctor", "--bring-up", "--build", bench.BUILD, "--json", "--to", str(to)]
    assert cli.main(words) == RigError.exit_code
    made = json.loads(to.read_text())
    assert made["failed"] == ["gate supply"] and [one["step"] for one in made["bring_up"]] == [1, 2, 3]
    assert made["id"] == certificate.id_of(made) and json.loads(capsys.readouterr().out) == made


@pytest.mark.parametrize(
    "words",
    [
        ["--bring-up"],
        ["--build", "two_rails"],
        ["--board", "breakout"],
        ["--bring-up", "--build", "two_rails", "--yes"],
        ["--afresh"],
        ["--mark", "2"],
        ["--bring-up", "--build", "two_rails", "--mark", "../x"],
    ],
)
def test_options_that_do_not_fit(words):
    assert cli.main(["rig", "doctor", *words]) == UsageError.exit_code


COMMAND = ["rig", "doctor", "--bring-up", "--build", bench.BUILD, "--rig", "/dev/null"]


def piped(text, *more):
    """The command with these lines on standard input, which is not a terminal."""
    argv = [sys.executable, "-m", "ssdrig", *COMMAND, *more]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "host")}
    return subprocess.run(argv, input=text, capture_output=True, text=True, env=env, cwd=ROOT)


def lines_of(rig, steps):
    """What the builder of a rig types in these steps, each with a line for its photo."""
    out = []
    for number in steps:
        kinds = dict.fromkeys((one.key, one.words) for one in READINGS if one.step == number)
        same = [[one for one in READINGS if one.step == number and (one.key, one.words) == kind] for kind in kinds]
        out += [rig.answer(bring_up.question_of(readings), READINGS) for readings in same] + [""]
    return [f"{line}\n" for line in out]


def stored():
    """The steps that have ended."""
    return [one for one in stored_steps.read(stored_steps.Key(BUILD)).done if one.utc_ns is not None]


def test_without_a_terminal_an_answer_that_is_none_ends_it_with_its_own_code():
    done = piped("10 7.5\n3.3 A\n")
    assert done.returncode == NoAnswer.exit_code == 22
    assert done.stderr.count("error:") == 1 and "found: amperes: '3.3 A'" in done.stderr and not stored()


@pytest.mark.parametrize("steps", [1, 3, 6])
def test_the_readings_before_an_interruption_are_not_asked_again(steps):
    """Standard input ends within the next step, as of a terminal that is closed."""
    typed, beyond = lines_of(soldered(7), range(1, steps + 1)), lines_of(soldered(7), [steps + 1])[:2]
    first = piped("".join([*typed, *beyond]))
    assert first.returncode == (NoAnswer.exit_code if steps < 6 else RigError.exit_code), first.stderr
    assert [one.step for one in stored()] == [*range(1, steps + 1)]
    begun = stored_steps.read(stored_steps.Key(BUILD)).done[steps:]
    assert [len(one.checks) > 1 for one in begun] == ([True] if steps < 6 else [])
    again = piped("\n")
    assert again.returncode == first.returncode and f"resumed at step {steps + 1}:" in again.stderr
    assert f"[{steps + 1} of 9]" in again.stderr or steps == 6
    assert f"[{steps} of 9]" not in again.stderr
    afresh = piped("1\n")
    assert "[1 of 9]" in afresh.stderr and "resumed" not in afresh.stderr and len(stored()) == steps


def test_a_repaired_rig_goes_on_at_the_step_that_had_failed():
    """What was read of the other rail stays; the certificate has what had failed."""
    sound, bad = soldered(7), soldered(7, fault=bench.BY_HAND["OFF without its pull-down"][1])
    first = piped("".join([*lines_of(sound, (1,)), *lines_of(bad, (2,))]), "--json")
    made = json.loads(first.stdout)
    assert first.returncode == RigError.exit_code and made["failed"] == ["rail 0: OFF"]
    assert "repair" in first.stderr
    failed = stored_steps.read(stored_steps.Key(BUILD)).done
    assert [one.failed for one in failed] == [False, True]
    asked_again = []

    def ask(words):
        asked_again.append(words)
        return "" if words.startswith("go on at step 2") else sound.answer(words, READINGS)

    questions = answers.Questions(ask, lambda words: None)
    with pytest.raises(UsageError):  # no board is there after step 6
        rig_doctor.brought_up("nowhere", stored_steps.Key(BUILD), None, questions)
    of_2 = asked_again[1 : asked_again.index("photo of this step, a file (Enter: none): ")]
    assert of_2 and all("rail 1" not in words or "rails" in words for words in of_2)
    done = stored_steps.read(stored_steps.Key(BUILD)).done
    assert [one.step for one in done] == [1, 2, 3, 4, 5, 6] and not any(one.failed for one in done)
    assert [(check.name, check.rail, check.ok) for check in done[1].repaired] == [("OFF", 0, False)]
    assert done[0] == failed[0]


def test_readings_of_several_rails_go_in_one_line_or_in_several():
    wanted = [one for one in READINGS if one.key in ("OFF", "DISCHARGE")]
    whole = bring_up.step(2, wanted, asked(["2.3 2,31 kOhm", "2.2 2.2", ""]))
    parts = bring_up.step(2, wanted, asked(["2.3", "2310 Ohm", "2.2", "2.2", ""]))
    assert [check.value for check in whole.checks] == [2.3, 2.31, 2.2, 2.2] and not whole.failed
    assert whole.checks == parts.checks
    stopped = bring_up.step(2, wanted, asked(["2.3 22", ""]))
    assert [(check.rail, check.ok) for check in stopped.checks] == [(0, True), (1, False)]


@pytest.mark.parametrize(
    ("typed", "bad"),
    [(["y"], []), (["1"], [1]), (["n 0 1"], [0, 1]), (["n", "0, 1"], [0, 1]), (["7", "maybe", "y"], [])],
)
def test_a_question_of_several_rails_names_those_that_are_not_so(typed, bad):
    wanted = [bring_up.Reading(1, "climbs", rail, "does it climb", "yes", 1, 1, "C01") for rail in (0, 1)]
    assert [check.rail for check, _ in bring_up.asked(wanted, asked(typed)) if not check.ok] == bad


@pytest.mark.parametrize(
    ("held_V", "digit", "ok"), [(2.305, 0.001, True), (2.281, 0.001, False), (2.35, 0.001, False), (2.29, 0.02, None)]
)
def test_the_hysteresis_is_what_the_share_rises_by(held_V, digit, ok):
    """25 mV at 5 V: 4.7 V of Q05's gate through 1 MOhm into 5.4 kOhm."""
    values = {"supply": 5.0, "share": 2.281, "lock-out gate": 4.7}
    known = [checks.figure(name, 1, value, "V", None, None, "") for name, value in values.items()]
    held = checks.figure("share held", 1, held_V, "V", None, None, "")
    digits = {("share", 1): digit, ("share held", 1): digit}
    (check,) = bring_up.derived(held, [*known, held], digits)
    assert check.name == "hysteresis" and check.ok is ok and check.value == pytest.approx(1000 * (held_V - 2.281))


def test_a_board_of_four_rails_asks_once_for_each_kind():
    """Not once for each rail."""
    wanted = bring_up.readings(builds.read("four_rails"))
    questions = {(one.step, one.key, one.words) for one in wanted}
    assert len(questions) < 0.4 * len(wanted)
    for step in {one.step for one in wanted}:
        kinds = [(one.key, one.words) for one in wanted if one.step == step]
        assert len(set(kinds)) == 1 + sum(a != b for a, b in zip(kinds, kinds[1:], strict=False))


def test_the_steps_of_one_rig_are_not_those_of_another():
    """Its board has answered, and the builder goes on with another one in the socket."""
    bring_up.same_rig(None, {"serial": "E66"})
    bring_up.same_rig("E66", {"serial": "E66"})
    with pytest.raises(UsageError):
        bring_up.same_rig("E66", {"serial": "E67"})


def test_two_rigs_are_brought_up_side_by_side():
    """A second process of the same key is refused; with a mark it has a file and a certificate of its own."""
    with stored_steps.held(stored_steps.Key(BUILD)):
        refused = piped("10\n")
        assert refused.returncode == UsageError.exit_code and "--mark" in refused.stderr
        fault = soldered(7, fault=bench.BY_HAND["gate supply not set"][1])
        marked = piped("".join(lines_of(fault, (1, 2, 3))), "--mark", "left", "--json")
    made = json.loads(marked.stdout)
    assert made["serial"] == "not-powered-left" and made["failed"] == ["gate supply"]
    assert certificate.read("not-powered-left") == made


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGHUP])
def test_a_signal_loses_the_step_under_way_alone(number):
    """At a terminal: two steps, then the signal, then the command again to a failed step, whose certificate has all."""
    typed = lines_of(soldered(9), (1, 2))
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "ssdrig", *COMMAND]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "host")}
    listens = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` has it ignored
    how = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "env": env, "cwd": ROOT, "preexec_fn": listens}
    process = subprocess.Popen(argv, **how)
    os.close(theirs)
    seen = until(ours, b"lead or holder, ")
    for line in typed:
        os.write(ours, line.encode())
    os.write(ours, b"".join(line.encode() for line in lines_of(soldered(9), (3,))[:1]))
    seen += until(ours, b"VGATE to GND, V: ")
    process.send_signal(number)
    process.wait(60)
    os.close(ours)
    assert b"[3 of 9]" in seen and [one.step for one in stored()] == [1, 2]
    again = piped("\n0\n\n", "--json")
    made = json.loads(again.stdout)
    assert made["failed"] == ["gate supply"] and [one["step"] for one in made["bring_up"]] == [1, 2, 3]
    assert made["bring_up"][0]["utc_ns"] < made["bring_up"][2]["utc_ns"] <= made["utc_ns"]
    assert again.returncode == RigError.exit_code and len(stored()) == 3


def until(terminal, wanted):
    seen = b""
    while wanted not in seen:
        seen += os.read(terminal, 65536)
    return seen


def test_a_folder_that_takes_no_file_ends_nothing(monkeypatch, tmp_path):
    (tmp_path / "state").write_text("a file")
    heard = []
    with pytest.raises(NoAnswer):
        questions = asked([*lines_of(soldered(5), (1,)), "3.3 A"], heard.append, tries=1)
        rig_doctor.brought_up(None, stored_steps.Key(BUILD), None, questions)
    assert any("not stored" in line for line in heard)


@pytest.mark.keeps_time
@pytest.mark.slow
@pytest.mark.parametrize("name, step", [("sound", None), ("shunt 15 instead of 8 mOhm", 8)])
def test_a_first_power_up_of_a_stand_in(name, step, tmp_path, monkeypatch):
    """From the ohmmeter to the cut, with the firmware; every check of the self-test has its step."""
    rig, made = soldered(5), {}
    rig.supply_V = {0: 5.0, 1: 12.0}

    def ask(words):
        if "connect the resistor" in words:
            made["connect"](words)
        if "RUN of the Pico" in words:
            return "5.0" if "rail 0" in words else "12.0"
        return rig.answer(words, READINGS)

    def carried_out(port, resistor, connect, say):
        made["connect"] = connect
        questions = answers.Questions(ask, lambda words: None)
        return rig_doctor.brought_up(port, stored_steps.Key({**BUILD, "build": None}), resistor, questions)

    monkeypatch.setattr(doctor_bench, "carried_out", carried_out)
    monkeypatch.setattr(rig_doctor.ports, "find", lambda port: port)
    stand_in = doctor_bench.certificate_of(doctor_bench.FAULTS.get(name) or doctor_bench.rig_with(), tmp_path)
    steps = {one["step"]: one["checks"] for one in stand_in["bring_up"]}
    failed = [number for number, of in steps.items() if any(check["ok"] is False for check in of)]
    assert (failed[:1] or [None])[0] == step, stand_in["failed"]
    assert set(steps) == set(bring_up.STEPS) and stand_in["id"] == certificate.id_of(stand_in)
    names = {check["name"] for check in steps[8]}
    assert ("resets leave it on" in names) == (step is None) and "resistance before the sensor" in names
    assert "voltage less the voltmeter's" in {check["name"] for check in steps[7]}


def test_a_drawn_fault_is_the_same_for_a_seed_and_of_every_kind():
    parts = soldered(1, "one_rail").parts
    faults = drawn.draw(7, parts, 16)
    assert [(one.kind, one.of) for one in faults] == [(one.kind, one.of) for one in drawn.draw(7, parts, 16)]
    assert [one.kind for one in faults] == 2 * [*drawn.KINDS]
    assert {one.of for one in faults} != {one.of for one in drawn.draw(8, parts, 16)}


@pytest.mark.parametrize(
    ("kind", "of", "seen"),
    [
        ("missing", "C102", (9, "5 V: gate capacitor missing, no soft start")),
        ("a tenth", "C102", (9, "5 V: gate capacitor missing, no soft start")),
        ("missing", "U2", (9, "5 V: crowbar's switch open, or its resistor or fuse")),
        ("open", "Q103 1", (9, "5 V: line to the gate open")),
        ("missing", "R27", (9, "nothing trips the lock-outs")),
        ("missing", "R1", (7, "sensor absent")),
        ("bridged", "U1 6-7", (7, "sensor absent")),
        ("turned", "D106", (9, "red lamp")),
        ("missing", "C1", None),
    ],
)
def test_what_a_drawn_fault_is_to_the_self_test(kind, of, seen):
    plain = soldered(1, "one_rail")
    (one,) = [one for one in drawn.population(plain.parts)[kind] if one.of == of]
    rig = soldered(1, "one_rail", one.fault)
    assert drawn.seen_by_the_rig(rig, plain) == seen and drawn.seen_by_the_rig(plain, plain) is None
    assert seen is None or seen[1] == "red lamp" or seen[1] in doctor_bench.FAULTS


@pytest.mark.parametrize(
    ("kind", "of", "word"),
    [
        ("missing", "C204", "harmless"),
        ("missing", "R24", "harmless"),
        ("missing", "R224", None),  # hysteresis of a lock-out, not the lamp's resistor
        ("open", "U1 38", "harmless"),
        ("bridged", "U1 38-39", None),
        ("missing", "C6", "harmless"),
        ("bridged", "C6 1-2", None),
        ("missing", "U4", "untried"),
        ("exchanged", "R8 R22", "untried"),
        ("exchanged", "R8 R108", None),
        ("bridged", "J201 7-8", "harmless"),
        ("bridged", "J201 8-9", None),
    ],
)
def test_what_no_step_sees_is_named_or_a_gap(kind, of, word):
    board = soldered(1, "four_rails")
    known = drawn.untold(drawn.Drawn(kind, of, lambda rig: None), board.build, board.parts)
    assert (known and known[0]) == word


def test_parts_that_are_named_are_on_the_board():
    """Q04 is a rail's part: Q104 of the board's netlist."""
    for name in ("four_rails", "one_rail"):
        refs = {*soldered(1, name).parts}
        for one in bring_up.readings(builds.read(name)):
            text = one.do.partition("the board: ")[0] if name == "one_rail" else one.do
            for ref in re.findall(r"\b[A-Z]\d{1,2}\b", f"{one.words} {text}"):
                of_rail = f"{ref[0]}1{ref[1:].zfill(2)}"
                assert ref in refs or of_rail in refs, (name, one.key, ref)
