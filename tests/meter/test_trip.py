"""A rail that passes its limits: the rig opens it in the stated time, says so, and the host stops with an error of its
own. What a drive may do, inrush included, opens nothing."""

import contextlib
import json
import os
import struct
import subprocess
import sys
from unittest import mock

import pytest
import vipersource
from conftest import HOST
from simboard import FAST, ROOT, Board, lent_port
from test_ina228_model import load

from ssdrig.base.errors import RailTripped
from ssdrig.meter import chips, trip, wire
from ssdrig.meter.pico.session import session
from ssdrig.reading import table
from ssdrig.rig import builds
from ssdrig.runs import journal

LIMITS = {"A": 3.0, "ms": 20, "V": 5.6}
LSB_A, LSB_V = 9.765625e-6, 195.3125e-6


def guard(limits=LIMITS, conversion_us=1102, rails=1):
    module = vipersource.load("protect", {}, {})
    chip = type("Chip", (), {"VBUS_LSB_nV": 195312.5, "BITS": 20, "ends": 0x7FFFF, "conversion_us": conversion_us})
    return module, module.Guard({"rail": 0, "protect": limits, "current_lsb_pA": 9_765_625}, chip, rails)


def frame(values, dt_us=1102):
    """Samples of the wire of (A, V)."""
    out = bytearray()
    for amperes, volts in values:
        raw = round(amperes / LSB_A) & 0xFFFFFF
        out += struct.pack("<H", dt_us) + round(volts / LSB_V).to_bytes(3, "little") + raw.to_bytes(3, "little")
    return out


def looked(values, limits=LIMITS, dt_us=1102, before=(1 << 30) - 9000):
    """(what was found, after how many us from the first sample's conversion on)."""
    module, g = guard(limits, dt_us)
    finding = module.look(g.state, frame(values, dt_us), 0, len(values), before)
    return (finding, g.finding(finding)[1], (g.state[7] - before) % (1 << 30)) if finding else (0, None, None)


@pytest.mark.parametrize("dt_us", [100, 234, 970, 1102, 2256])
def test_too_much_current_for_too_long_is_found_in_time(dt_us):
    """With what is left for the main loop and the switch, and with the clock's wrap in the middle; so with negative
    current and none before."""
    n = 40_000 // dt_us
    finding, about, after_us = looked([(-1.0, 5.0)] * 3 + [(3.1, 5.0)] * n, dt_us=dt_us)
    assert finding == 1 and about["seen_mA"] == pytest.approx(3100, abs=1) and about["limit_mA"] == 3000
    assert 20_000 - 5_000 - 3 * dt_us < after_us - 3 * dt_us <= 20_000 - 2000


def test_what_is_too_short_or_falls_below_in_between_is_not():
    pulse = [(4.9, 5.0)] * 13  # 14 ms
    assert looked(pulse + [(2.9, 5.0)] + pulse + [(0.1, 5.0)] * 20)[0] == 0
    assert looked([(2.99, 5.0)] * 500)[0] == 0
    assert looked([(-5.0, 5.0)] * 500)[0] == 0


def test_two_readings_in_a_row_above_the_voltage_are_found_and_one_is_not():
    assert looked([(1, 5.0), (1, 5.7), (1, 5.0)] * 50)[0] == 0
    finding, about, after_us = looked([(1, 5.0), (1, 12.0), (1, 12.0)])
    assert (finding, about["seen_mV"], about["limit_mV"], after_us) == (2, 12_000, 5600, 3306)


def test_a_guard_that_has_acted_is_quiet_until_it_is_armed():
    module, g = guard()
    many = frame([(5.0, 12.0)] * 100)
    assert module.look(g.state, many, 0, 100, 0) == 2
    g.disarm()
    assert module.look(g.state, many, 0, 100, 0) == 0
    g.arm()
    assert module.look(g.state, many, 0, 100, 0) == 2


def test_lost_readings_begin_the_time_anew():
    module, g = guard()
    over = frame([(4.0, 5.0)] * 14)
    assert module.look(g.state, over, 0, 14, 0) == 0
    g.forget()
    assert module.look(g.state, over, 0, 14, 200_000) == 0 and module.look(g.state, over, 0, 14, 216_000) == 1


@pytest.mark.parametrize(
    "limits, why",
    [
        ({"A": 21.0, "ms": 20, "V": 5.6}, "more than the sensor reads"),
        ({"A": 3.0, "ms": 5, "V": 5.6}, "6 ms or more"),
        ({"A": 3.0, "ms": 20}, "wants A, ms and V"),
        ({"A": "3", "ms": 20, "V": 5.6}, "wants A, ms and V"),
        ({"A": 3.0, "ms": 20, "V": 0}, "wants A, ms and V"),
    ],
)
def test_limits_that_cannot_be_kept_are_refused(limits, why):
    with pytest.raises(ValueError, match=why):
        guard(limits)
    build = json.loads((builds.BUILDS / "two_ina228_chips.json").read_text())
    build["rails"][0]["protect"] = limits
    assert "protect" in builds.complaint(build)


@pytest.mark.parametrize("rails, least_ms", [(1, 6), (2, 9), (3, 12), (4, 15)])
def test_each_rail_takes_the_main_loop_its_time(rails, least_ms):
    """Each may send a frame in the round in which the limit is looked at; by the board and by the host."""
    guard(LIMITS | {"ms": least_ms}, rails=rails)
    with pytest.raises(ValueError, match=f"wants {least_ms} ms or more"):
        guard(LIMITS | {"ms": least_ms - 1}, rails=rails)
    build = json.loads((builds.BUILDS / "four_rails.json").read_text())
    build["rails"] = build["rails"][:rails]
    numbers = {row["rail"] for row in build["rails"]}
    for name in ("switch", "scope"):
        build[name] = [row for row in build[name] if row["rail"] in numbers]
    row = build["rails"][0]
    row |= {"vbus_us": 50, "vshunt_us": 1052, "temp_us": None}
    row["protect"] = {"A": 2, "ms": least_ms, "V": row["nominal_mV"] * 1.1e-3}
    assert builds.complaint(build) is None
    row["protect"]["ms"] -= 1
    assert f"{least_ms} ms is the least" in builds.complaint(build)


def test_a_build_with_limits_is_a_build():
    build = json.loads((builds.BUILDS / "two_rails.json").read_text())
    build["rails"][0]["protect"] = {"A": 2.5, "ms": 20, "V": 5.6}
    build["rails"][1]["protect"] = {"A": 4, "ms": 50, "V": 13.5}
    assert builds.complaint(build) is None
    for changed, why in (({"V": 5.1}, "below its"), ({"V": 12}, "rise"), ({"A": 11}, "ends at"), ({"x": 1}, "of A,")):
        build["rails"][0]["protect"] = {"A": 2.5, "ms": 20, "V": 5.6} | changed
        assert why in builds.complaint(build)


def test_a_limit_beyond_the_end_of_the_shunt_voltage_is_refused():
    """An INA226's CURRENT may reach further than the 81.92 mV that it is made of: above 1.63 A at 50 mOhm it stands."""
    row = {"chip": "INA226", "current_lsb_pA": 250_000_000, "shunt_uOhm": 50_000, "vbus_us": 588, "vshunt_us": 588}
    build = json.loads((builds.BUILDS / "one_rail.json").read_text())
    build["rails"][0] |= row | {"temp_us": None, "protect": {"A": 1.7, "ms": 20, "V": 5.6}}
    assert "ends at 1.64" in builds.complaint(build)
    build["rails"][0]["protect"]["A"] = 1.6
    assert builds.complaint(build) is None
    with mock.patch.dict(sys.modules, {"ina228": load(ROOT / "firmware/ina228.py")}):
        chip = load(ROOT / "firmware/ina226.py").INA226(None, row)
    for ends, refused in ((chip.ends, True), (0x7FFF, False)):
        module, _ = guard()
        of = type("Chip", (), {"VBUS_LSB_nV": 1_250_000, "BITS": 16, "ends": ends, "conversion_us": 1176})
        with pytest.raises(ValueError, match="more than the sensor reads") if refused else contextlib.nullcontext():
            module.Guard({"rail": 0, "protect": {"A": 1.7, "ms": 20, "V": 5.6}} | row, of, 1)


@pytest.mark.parametrize(
    "chip, shunt_uOhm, lsb_pA",
    [
        *(("INA228", shunt_uOhm, 7_812_500) for shunt_uOhm in (2000, 10_000, 15_000)),
        *(("INA226", shunt_uOhm, 250_000_000) for shunt_uOhm in (2000, 10_000, 50_000)),
    ],
)
def test_board_and_host_know_where_a_sensor_ends(chip, shunt_uOhm, lsb_pA):
    """Where its register does, or the shunt voltage's that it is made of. The host is more careful by one count."""
    row = {"chip": chip, "current_lsb_pA": lsb_pA, "shunt_uOhm": shunt_uOhm, "temp_us": None, "fine": True}
    row |= dict.fromkeys(("vbus_us", "vshunt_us"), 540 if chip == "INA228" else 588)
    with mock.patch.dict(sys.modules, {"ina228": load(ROOT / "firmware/ina228.py")}):
        made = getattr(load(ROOT / f"firmware/{chip.lower()}.py"), chip)(None, row)
    assert made.ends == chips.limits_raw(row | {"shunt_cal": made.cal})[0] + 1
    register, shunt_V = (0x7FFFF, 0.04096) if chip == "INA228" else (0x7FFF, 0.08192)
    assert made.ends == pytest.approx(min(register, shunt_V / (shunt_uOhm * 1e-6) / (lsb_pA * 1e-12)), rel=2e-3)


def test_what_is_no_trip_is_refused():
    for body in (b"{}", b"[]", b"{", b'{"rail": 0, "quantity": "W"}', b'{"rail": 0, "quantity": "A", "seen_mA": "x"}'):
        with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
            trip.read(body)


# --- on the SIMULATED board: 0.5 A, and from 2 s on more


def guarded(surges, watts=2.5, **faults):
    rail = {"nominal_mV": 5000, "protect": LIMITS, "true": {"surges": surges}}
    return watts, {"rail": rail, **faults}


def tripped(b):
    b.hello()
    b.send(wire.GO)
    b.until(lambda: b.bodies(wire.TRIP))
    return json.loads(b.bodies(wire.TRIP)[0])


def test_the_rail_is_open_in_the_stated_time_and_stays_so(tmp_path):
    with Board(tmp_path, *guarded([[2.0, 3.5, 0.0]])) as b:
        report = tripped(b)
        begun_us = b.truth()[0]["tick0"] + 2_000_000 * (1 + b.truth()[0]["ppm"] * 1e-6)
        assert report["quantity"] == "A" and 3900 < report["seen_mA"] < 4100
        assert 10_000 < report["opened_us"] - begun_us <= 20_000
        switch = b.hello()["switch"]
        assert (switch["state"], switch["off"], switch["tripped"]) == ("tripped", [0], [0])
        seen = len(b.samples())
        b.until(lambda: len(b.samples()) > seen + 200)
        assert all(current < 300 for _, _, _, current in b.samples()[-100:]), "open"
        assert len(b.bodies(wire.TRIP)) == 1
        b.send(wire.ARM)
        b.until(lambda: b.bodies(wire.ARMED))
        token = struct.unpack(wire.ARMED_BODY, b.bodies(wire.ARMED)[0])[0]
        b.send(wire.CUT, json.dumps({"token": token, "rails": [0], "profile": "float", "when": {"now": True}}).encode())
        b.until(lambda: b.bodies(wire.REFUSED))
        assert "tripped" in json.loads(b.bodies(wire.REFUSED)[0])["why"]
        b.send(wire.ON, b'{"rails": [0]}')
        b.until(lambda: b.bodies(wire.CUT_REPORT))
        assert json.loads(b.bodies(wire.CUT_REPORT)[0])["ok"]
        b.until(lambda: len(b.bodies(wire.TRIP)) == 2)  # still too much: it is armed again


def test_too_much_voltage_opens_it_within_three_conversions(tmp_path):
    with Board(tmp_path, *guarded([[2.0, 0.0, 7.0]])) as b:
        report = tripped(b)
        begun_us = b.truth()[0]["tick0"] + 2_000_000 * (1 + b.truth()[0]["ppm"] * 1e-6)
        assert report["quantity"] == "V" and report["seen_mV"] > 11_000
        assert 1_000 < report["opened_us"] - begun_us < 3 * 1102 + 2000


@pytest.mark.slow
def test_a_short_surge_and_the_inrush_of_the_largest_capacitance_open_nothing(tmp_path):
    """1000 uF behind a switch that closes in 2 ms (values.csv, load_max; the soft start's fastest): 2.5 A on top."""
    inrush = {"bulk_uF": 1000.0, "rise_ms": 2.0, "leak_mA": 100.0}
    with Board(tmp_path, *guarded([[2.0, 4.0, 0.0], [2.012, -4.0, 0.0]], watts=5.0, **inrush)) as b:
        b.hello()
        b.send(wire.GO)
        b.until(lambda: len(b.samples()) > 2000)
        b.send(wire.ARM)
        b.until(lambda: b.bodies(wire.ARMED))
        token = struct.unpack(wire.ARMED_BODY, b.bodies(wire.ARMED)[0])[0]
        how = {
            "token": token,
            "rails": [0],
            "profile": "crowbar",
            "when": {"now": True},
            "off_ms": 50,
            "residual_ms": 5,
        }
        b.send(wire.CUT, json.dumps(how).encode())
        b.until(lambda: b.bodies(wire.CUT_REPORT))
        assert json.loads(b.bodies(wire.CUT_REPORT)[0])["ok"]
        seen = len(b.samples())
        b.until(lambda: len(b.samples()) > seen + 100)
        assert max(current for _, _, _, current in b.samples()) * LSB_A > 3.2, "above the limit, for a moment"
        assert b.bodies(wire.TRIP) == []


def test_a_rail_that_cannot_be_opened_is_said_with_each_stream(tmp_path):
    """A second rail without a switch: the first stream's trip had silenced its limits until a reset."""
    over = {"rail": 1, "address": 0x41, "alert": 7, "simulated": {"A": 2.0, "V": 5.0}}
    with Board(tmp_path, 1.0, {"rails": [{**over, "protect": {"A": 1.0, "ms": 20, "V": 5.6}}], **FAST}) as b:
        for streams in (1, 2):
            b.hello()
            b.send(wire.GO)
            b.until(lambda: len(b.bodies(wire.TRIP)) == streams)
            report = json.loads(b.bodies(wire.TRIP)[-1])
            assert (report["rail"], report["opened_us"], round(report["seen_mA"], -1)) == (1, None, 2000)
            b.send(wire.STOP)


@pytest.mark.slow
def test_without_limits_nothing_is_opened(tmp_path):
    watts, faults = guarded([[1.0, 4.0, 7.0]])
    del faults["rail"]["protect"]
    with Board(tmp_path, watts, faults) as b:
        b.hello()
        b.send(wire.GO)
        b.until(lambda: len(b.samples()) > 1500)
        assert b.bodies(wire.TRIP) == [] and b.hello()["switch"]["tripped"] == []


# --- the host


@pytest.mark.slow
@pytest.mark.keeps_time
def test_a_run_stops_with_its_own_exit_code_and_keeps_what_happened(tmp_path):
    rail = {"nominal_mV": 5000, "protect": LIMITS, "true": {"surges": [[9.0, 4.0, 0.0]]}}
    words = "run consistency --virtual sata-tlc --capacity 256MiB --duration 60 --json".split()
    argv = [sys.executable, "-m", "ssdrig", *words, "--runs", str(tmp_path), "--faults", json.dumps({"rail": rail})]
    env = os.environ | {"PYTHONPATH": str(HOST)}
    done = subprocess.run(argv, env=env, capture_output=True, text=True)
    assert done.returncode == RailTripped.exit_code == 16, done.stderr
    assert "at most 3 A on rail 0" in done.stderr and "opened" in done.stderr and "Traceback" not in done.stderr
    (run,) = tmp_path.iterdir()
    events = {event["kind"]: event for event in journal.events(run)}
    assert events["rig.trip"]["quantity"] == "A" and events["rig.trip"]["opened_us"]
    assert events["run.end"]["state"] == "failed" and events["run.end"]["exit_code"] == 16
    assert any("opened" in text for _, text in table.in_full(run).data.log)


@pytest.mark.slow
def test_a_session_that_waits_is_told_at_once_and_no_run_begins(tmp_path):
    with Board(tmp_path, *guarded([[3.0, 3.5, 0.0]])) as b, lent_port(b) as port:
        with (
            session(port) as rig_session,
            pytest.raises(RailTripped, match=r"at most 3 A on rail 0; seen 4\.\d+ A .*opened"),
        ):
            rig_session.readings([0], 60)
        with session(port, stream=False) as rig_session, pytest.raises(RailTripped, match=r"\[0\] open"):
            trip.refuse(rig_session.hello)
