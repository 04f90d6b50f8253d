"""The rig's self-test: what it judges, what it keeps, and what it finds on SIMULATED rigs."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from simboard import run_rig

from ssdrig import cli
from ssdrig.base.errors import RigError, UsageError
from ssdrig.commands import rig_doctor
from ssdrig.meter.pico import certificate, ports
from ssdrig.rig import bring_up, checks, doctor

HELLO = {
    **{"board": "Pico", "serial": "e660", "revision": "B", "build": "two_rails", "firmware": "0.1.0", "protocol": 2},
    "simulated": False,
    "rails": [],
}


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def falling(tau_us, volts=5.0, delay_us=10.0, step_us=2.0):
    t = np.arange(-100, 3000, step_us)
    return checks.Fall(t, np.where(t < delay_us, volts, volts * np.exp(-np.maximum(t - delay_us, 0) / tau_us)))


def test_a_figure_is_within_its_limits_or_not():
    sound = checks.figure("x", 0, 1.0, "V", 1.0, 2.0, "mend")
    assert sound.ok and sound.words() == "ok    rail 0: x: 1 V, expected 1 to 2 V"
    for value in (0.999, 2.001, math.nan, math.inf, None):
        assert checks.figure("x", None, value, "V", 1.0, 2.0, "mend").ok is False
    assert checks.figure("x", None, None, "V", 1.0, None, "mend").words() == (
        "FAIL  x: expected 1 V or more; seen nothing; do: mend"
    )
    assert "not looked at: why" in checks.skipped("x", 1, "why").words()


@pytest.mark.parametrize(
    "value, bound, ok",
    [
        *((1.5, 0.5, True), (1.5, 0.51, None), (1.0, 0.1, True), (2.05, 0.1, None), (2.11, 0.1, False)),
        *((0.95, 0.1, None), (0.89, 0.1, False), (50.0, math.inf, None), (1.5, math.inf, None)),
    ],
)
def test_figure_is_judged_only_beyond_its_bound(value, bound, ok):
    check = checks.figure("x", 0, value, "V", 1.0, 2.0, "mend", bound)
    assert check.ok is ok and check.value == value and bool(check.why) is (ok is None)
    assert certificate.made(HELLO, [check], None, 1)["passed"] is (ok is not False)


RAIL = {"rail": 0, "name": "5V", "chip": "INA228", "shunt_uOhm": 8000, "current_lsb_pA": 10**7, "conversion_ns": 10**6}


def row_at(rate_per_s, bound_per_s, **more):
    return {
        **{"rate_nominal_per_s": 1000.0, "conversions_per_s": rate_per_s, "conversions_bound_per_s": bound_per_s},
        **{"samples": 900, "V_mean": 5.0, "V_sd": 1e-3, "I_mean": 0.0, "I_sd": 1e-4, "I_typical": 1e-4},
        **more,
    }


@pytest.mark.parametrize(
    "rate_per_s, bound_per_s, ok",
    [(1001.0, 1.0, True), (1100.0, 1.0, False), (1100.0, 200.0, None), (700.0, 2500.0, None), (1001.0, 2500.0, None)],
)
def test_rate_of_conversions_is_not_judged_on_a_host_too_busy_for_its_pings(rate_per_s, bound_per_s, ok):
    by_name = {check.name: check for check in checks.of_rail(RAIL, row_at(rate_per_s, bound_per_s))}
    assert by_name["conversions"].ok is ok
    assert (checks.TOO_BUSY in by_name["conversions"].why) is (ok is None)
    assert all(by_name[name].ok is not False for name in by_name if name != "conversions")


@pytest.mark.parametrize(
    "rate_ppm, error_ppm, ok", [(150, 20, True), (250, 90, None), (250, 20, False), (9, 101, None)]
)
def test_crystal_is_judged_only_beyond_the_error_of_its_rate(rate_ppm, error_ppm, ok):
    assert checks.of_clock({"rate_ppm": rate_ppm, "error_ppm": error_ppm}).ok is ok


@pytest.mark.parametrize("samples, ok", [(900, True), (3, None)])
def test_noise_of_few_samples_is_not_judged(samples, ok):
    by_name = {check.name: check for check in checks.of_rail(RAIL, row_at(1000.0, 1.0, samples=samples, I_sd=1.8e-4))}
    assert by_name["noise, times the chip's own"].ok is ok


def test_rail_that_a_busy_host_hears_late_is_not_silent():
    """Seconds of the host pass, a tenth of one of the board's."""
    looks = []

    def silent_rails():
        looks.append(1)
        return [{"rail": 0}, {"rail": 1}] if len(looks) < 30 else [{"rail": 1}]

    quiet_s = {0: lambda: 0.1, 1: lambda: 0.1 * len(looks)}
    rig = SimpleNamespace(silent_rails=silent_rails, live=dict)
    rig_session = SimpleNamespace(rig=rig, quiet_s=lambda n, since: quiet_s[n]())
    assert doctor._silent_rails(rig_session) == [1] and len(looks) >= 30


def test_a_fall_is_timed():
    fall = falling(100.0)
    assert fall.before_V == 5.0 and fall.below_us(0.9) == pytest.approx(10 + 10.5, abs=1.5)
    assert fall.below_us(0.1) - fall.below_us(0.9) == pytest.approx(219.7, abs=2)
    assert fall.part_at(110) == pytest.approx(math.exp(-1), abs=0.02) and falling(1e9).below_us(0.9) is None


def test_a_switch_that_works_and_four_that_do_not():
    assert all(check.ok for check in checks.of_opening(0, 0.0, falling(100.0)))
    ok = lambda checks_: [check.ok for check in checks_]
    assert ok(checks.of_opening(0, 1.0, falling(1e9))) == [False, False, None], "it stays on"
    assert ok(checks.of_opening(0, 0.0, falling(2.0))) == [True, True, False], "something pulls it down"
    assert ok(checks.of_opening(0, 0.0, falling(100.0, delay_us=200))) == [True, False, True]
    assert ok(checks.of_opening(0, 0.0, None)) == [True, None]


def test_a_crowbar_is_told_from_a_rail_that_falls_by_itself():
    assert checks.of_crowbar(0, 50, falling(100.0), falling(1.0, delay_us=60)).ok
    assert checks.of_crowbar(0, 50, falling(100.0), falling(100.0)).ok is False
    assert checks.of_crowbar(0, 50, falling(5.0), falling(1.0)).ok is None


def returning(rise_ms, volts=5.0, on_us=20_000.0, step_us=10.0):
    """A rail that is off, and rises evenly from its return on; rise_ms: from 0 to full."""
    t = np.arange(-600, 38_000, step_us)
    risen = np.clip((t - on_us) / (1000 * rise_ms), 0, 1)
    return checks.Fall(t, volts * np.where(t < 0, 1.0, risen))


@pytest.mark.parametrize(
    "rise_ms, volts, limits_ms, ok",
    [
        (4.0, 5.0, (2.4, 4.3), True),
        (0.3, 5.0, (2.4, 4.3), False),
        (8.0, 5.0, (2.4, 4.3), False),
        (100.0, 5.0, (2.4, 4.3), False),
        (3.0, 5.0, (2.405, 4.3), None),
        (4.0, 5.0, None, None),
    ],
)
def test_a_rise_is_judged_by_the_limits_of_its_circuit(rise_ms, volts, limits_ms, ok):
    check = checks.of_rise(0, returning(rise_ms, volts), 20_000.0, limits_ms)
    assert check.ok is ok and bool(check.why) is (ok is None) and bring_up.step_of(check) == 9
    if rise_ms < 20 and limits_ms:
        assert check.value == pytest.approx(0.8 * rise_ms, abs=0.011)


def test_a_rail_that_the_scope_does_not_see_has_no_rise():
    rig_session = SimpleNamespace(hello={"scope": [{"rail": 0, "gpio": 26}]})
    check = doctor._rise(rig_session, 3)
    assert check.ok is None and "scope" in check.why


def test_what_a_resistor_says():
    rail = {"rail": 0, "shunt_uOhm": 8000}
    row = lambda volts, amperes, clipped=0: {"V_mean": volts, "I_mean": amperes, "clipped": clipped, "lead_mOhm": 24.0}
    ok = lambda amperes, volts=4.97: [c.ok for c in checks.of_load(rail, 10.0, row(5.0, 0.0), row(volts, amperes))]
    assert ok(0.497) == [True] * 3 and ok(0.001) == [False]
    assert ok(0.932) == [True, False, True], "15 mOhm where 8 are said"
    assert ok(0.48, 4.8) == [True, True, False], "0.4 Ohm in the ground wire"


def test_the_certificate_is_kept_and_quoted_with_its_age():
    checks_ = [checks.figure("x", 0, 1.0, "V", 0.0, 2.0, ""), checks.skipped("y", None, "no scope")]
    assert certificate.quote(HELLO, 10**18) == {"id": None, "why": "never made: ./ssdrig rig doctor"}
    made = certificate.made(HELLO, checks_, (0, 10.0), 10**18)
    path = certificate.keep(made)
    assert made["passed"] and made["not_looked_at"] == ["y"] and made["revision"] == "B"
    assert json.loads(path.read_text())["checks"][0]["high"] == 2.0
    quoted = certificate.quote(HELLO, 10**18 + 90 * 10**9)
    assert quoted == {
        **{"id": made["id"], "utc_ns": 10**18, "age_s": 90, "passed": True, "differs": []},
        "resistor": {"rail": 0, "ohm": 10.0},
    }
    assert certificate.quote({**HELLO, "firmware": "0.2"}, 10**18)["differs"] == ["firmware"]
    assert certificate.quote({**HELLO, "simulated": True}, 0)["why"] == "a SIMULATED rig"
    assert "future" in certificate.quote(HELLO, 10**18 - 1)["why"]
    failed = certificate.made(HELLO, [checks.figure("x", 0, 3.0, "V", 0.0, 2.0, "")], None, 10**18)
    assert not failed["passed"] and failed["failed"] == ["rail 0: x"] and failed["id"] != made["id"]


def test_a_certificate_that_was_changed_is_none():
    path = certificate.keep(certificate.made(HELLO, [], None, 1))
    path.write_text(path.read_text().replace('"passed": true', '"passed": false'))
    assert "changed" in certificate.quote(HELLO, 2)["why"]
    for text in ("", "[]", "{", '{"schema": 1}', "[" * 100_000):
        path.write_text(text)
        assert certificate.quote(HELLO, 2)["id"] is None


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RigError, match="to keep the certificate"):
        certificate.keep(certificate.made(HELLO, [], None, 1), tmp_path / "file" / "x.json")


@pytest.mark.parametrize("what", ["text", "[]", '{"schema": 1}', "a folder", "a link that leads nowhere"])
def test_to_writes_over_no_file_but_a_certificate(tmp_path, monkeypatch, what):
    monkeypatch.setattr(rig_doctor, "carried_out", lambda *_: pytest.fail("the rig was examined"))
    monkeypatch.setattr(ports, "find", lambda port: pytest.fail("the rig was looked for"))
    to = tmp_path / "mine"
    if what == "a folder":
        to.mkdir()
    elif what == "a link that leads nowhere":
        to.symlink_to(tmp_path / "nowhere")
    else:
        to.write_text(what)
    assert cli.main(["rig", "doctor", "--yes", "--to", str(to)]) == UsageError.exit_code
    assert not to.is_file() or to.read_text() == what


def test_to_writes_over_an_earlier_certificate_and_an_empty_file(tmp_path):
    made, to = certificate.made(HELLO, [], None, 1), tmp_path / "mine.json"
    to.touch()
    for _ in range(2):
        certificate.keep_others(to)
        certificate.keep(made, to)
    assert json.loads(to.read_text()) == made


@pytest.mark.parametrize("V, ok", [(0.0, True), (0.499, True), (0.52, False), (5.0, False), (None, False)])
def test_a_rail_that_comes_on_with_its_lock_out_tripped_has_none(V, ok):
    check = checks.of_lock_out(1, V, 5.0, 5.0)
    assert check.ok is ok and bring_up.step_of(check) == 9
    assert check.why.startswith("not seen") is (V is None)


@pytest.mark.parametrize("back_V, ok", [(5.0, True), (4.6, True), (4.4, False), (0.0, False), (None, False)])
def test_a_rail_that_is_not_back_after_the_test_of_its_lock_out_was_not_seen(back_V, ok):
    check = checks.of_lock_out(1, 0.0, 5.0, back_V)
    assert check.ok is ok and check.why.startswith("not seen") is not ok


@pytest.mark.parametrize(
    "hello, sound, left_mV, seen",
    [
        ({"switch": {"rails": [{"rail": 0}], "lock_outs": False}}, True, {0: 3000}, []),
        ({"switch": None}, True, {0: 3000}, []),
        ({"switch": {"rails": [{"rail": 0}], "lock_outs": True}}, False, {0: 3000}, [None]),
        *(
            ({"switch": {"rails": [{"rail": 0}], "lock_outs": True}}, True, left_mV, [ok])
            for left_mV, ok in (({0: 3000}, False), ({0: 0}, True), ({0: None}, False), ({}, False))
        ),
    ],
)
def test_lock_outs_are_tripped_where_the_board_can_and_its_switches_work(monkeypatch, hello, sound, left_mV, seen):
    monkeypatch.setattr(doctor, "lock_outs", lambda rig: left_mV)
    monkeypatch.setattr(doctor, "_measured", lambda session, rails: {n: {"V_mean": 5.0} for n in rails})
    rig_session = SimpleNamespace(hello=hello, rig=None, rail=lambda n: {"nominal_mV": 5000})
    assert [check.ok for check in doctor._lock_outs(rig_session, {0: {"V_mean": 5.0}}, sound)] == seen


@pytest.mark.parametrize("words", [["--resistor", "0.1"], ["--resistor", "nan"]])
def test_a_resistor_that_is_none(words):
    with pytest.raises(UsageError, match="0.5 to 10000"):
        run_rig("doctor", "--rig", "nowhere", *words)
