"""Several rails cut together, ramps, the side-band, and what becomes of the rails when firmware fails in the middle of
it."""

import math

import pytest
from simboard import SLOW, Board, changed_firmware
from switchcuts import command, cut, on, power, streaming, true_us, twelve

from ssdrig.meter import wire

pytestmark = pytest.mark.slow  # not of real time: its boards have a time of their own (simboard.py)


def slow_twelve():
    (row,) = twelve()["rails"]
    return {"rails": [row | SLOW]}


def of(report, rail):
    return next(row for row in report["rails"] if row["rail"] == rail)


def test_two_rails_fall_at_their_own_speed_and_come_back_together(tmp_path):
    with Board(tmp_path, 0.0, {"leak_mA": 0.0, "source_mOhm": 0.0, **twelve()}) as b:
        hello = b.hello()
        assert [(row["rail"], row["discharge_mOhm"]) for row in hello["switch"]["rails"]] == [(0, 2200), (1, 10_000)]
        streaming(b)
        report = cut(b, rails=[1, 0], off_ms=60, residual_ms=30)
        assert (
            report["ok"] and 60_000 <= report["off_us"] < 63_000 and [row["rail"] for row in report["rails"]] == [1, 0]
        )
        assert of(report, 0)["before_mV"] == pytest.approx(5000, abs=2) and of(report, 1)["before_mV"] == pytest.approx(
            12_000, abs=6
        )
        assert of(report, 0)["t90_10_us"] == pytest.approx(math.log(9) * 2.2 * 470, rel=0.1)
        assert of(report, 1)["t90_10_us"] == pytest.approx(math.log(9) * 10 * 300, rel=0.05)
        (down, off), (up, back) = power(b, 2)
        assert (off, back) == (False, True)
        assert 0 < true_us(b, down) - report["fired_us"] < 400  # the first of the two below its lock-out
        assert up - down == pytest.approx(62.4e6, abs=2e6)  # the last of them above it
        one = cut(b, rails=[1], off_ms=60, residual_ms=30)
        assert [row["rail"] for row in one["rails"]] == [1]
        assert b.missed() == 0 and b.logs() == ""


def test_a_rail_that_stays_high_keeps_all_off_and_is_named(tmp_path):
    settings = twelve(bulk_uF=10_000.0, leak_mA=0.5) | changed_firmware(tmp_path, "switch.py", GIVE_UP_us=1_000_000)
    with Board(tmp_path, 2.5, settings) as b:
        streaming(b)
        report = cut(b, rails=[0, 1], profile="float", off_ms=1)
        assert (
            not report["ok"]
            and report["why"].startswith("unsafe: rail 1 is at ")
            and report["why"].endswith("mV; power stays off")
        )
        assert of(report, 0)["safe"] and not of(report, 1)["safe"] and of(report, 1)["residual_mV"] > 7000
        assert b.hello()["switch"]["off"] == [0, 1]
        assert on(b, rails=[0]) == "rails cut together come back together: [0, 1]"
        assert "rail 1 is at" in on(b)
        assert [p for _, p in power(b, 1)] == [False]
        assert on(b, unsafe=True)["ok"]
        b.until(lambda: [p for _, p in power(b)] == [False, True])


@pytest.mark.parametrize("when", [{"now": True}, {"edge": "falling", "gpio": 20, "timeout_ms": 3000}])
def test_a_glitch_of_both_rails(tmp_path, when):
    """3 ms, both at once. What is left at the end is what the load of each takes out of its capacitance, the discharge
    switches open: 5 V, 2.5 W, 470 uF: at 4 V after 0.85 ms, then 10 mA; 12 V, 2.4 W, 300 uF: sqrt(144 - 2 x 2.4 x 3 ms
    / 300 uF)."""
    edges = [[1 + 0.3 * k, 20, k % 2] for k in range(60)]
    with Board(tmp_path, 2.5, {"source_mOhm": 0.0, "edges": edges, **twelve()}) as b:
        streaming(b)
        report = cut(b, rails=[0, 1], profile="glitch", glitch_us=3000, when=when)
        assert report["ok"] and report["off_us"] == 3000
        assert of(report, 0)["residual_mV"] == pytest.approx(4000 - 10 * 2.15 / 0.470, abs=30)
        lowest = of(report, 1)["residual_mV"]  # the last reading may be 0.74 ms old
        assert math.sqrt(144 - 16 * 3.0) * 1000 - 20 <= lowest <= math.sqrt(144 - 16 * 2.2) * 1000 + 20
        (down, off), (up, back) = power(b, 2)
        assert (off, back) == (False, True) and true_us(b, down) - report["fired_us"] == pytest.approx(
            10 + 832, abs=5
        )  # from 4.985 V: the leads


def test_ramps_of_two_rails(tmp_path):
    with Board(tmp_path, 0.0, {"leak_mA": 0.0, "source_mOhm": 0.0, **twelve(A=0.0)}) as b:
        streaming(b)
        report = cut(b, rails=[0, 1], profile="ramp", fall_us=100_000, bulk_uF=[470, 300], off_ms=150, residual_ms=30)
        assert report["ok"]
        assert of(report, 0)["t90_10_us"] == pytest.approx(80_000, rel=0.03)
        assert of(report, 1)["t90_10_us"] == pytest.approx(80_000, rel=0.03)
        assert b.missed() == 0


def test_power_comes_back_only_after_the_ramp(tmp_path):
    """5 W have emptied the rail long before the ramp's end; neither off_ms nor `on` nor unsafe breaks into the
    pulses."""
    with Board(tmp_path, 5.0, {"leak_mA": 500.0}) as b:
        streaming(b)
        b.send(wire.CUT, command(b, profile="ramp", fall_us=1_000_000, bulk_uF=[470], residual_ms=10))
        b.until(lambda: power(b))
        b.read(0.1)
        assert on(b) == on(b, unsafe=True) == "the ramp has not ended"
        b.until(lambda: b.bodies(wire.CUT_REPORT))
        assert on(b)["ok"]
        report = cut(b, profile="ramp", fall_us=200_000, bulk_uF=[470], off_ms=200, residual_ms=10)
        assert 200_000 <= report["off_us"] < 203_000 and report["rails"][0]["low_us"] < 10_000


# --- firmware that fails

CUTS = {
    "crowbar": {"profile": "crowbar", "off_ms": 20_000},
    "float": {"profile": "float", "off_ms": 20_000},
    "ramp": {"profile": "ramp", "fall_us": 1_000_000, "bulk_uF": [470, 300], "off_ms": 20_000},
    "glitch": {"profile": "glitch", "glitch_us": 900_000},
}


@pytest.mark.parametrize("profile", CUTS)
def test_a_defect_in_the_middle_of_a_cut_gives_the_power_back(tmp_path, profile):
    """An exception in the firmware 0.3 s after the edge: the rails are on again at once (the SIMULATED gates refuse a
    discharge switch that is on together with its series switch), said, and the board starts anew."""
    with Board(tmp_path, 2.5, {"rail": SLOW, "defects": [2.0], **slow_twelve()}) as b:
        streaming(b)
        at = b.truth()[0]["tick0"] + 1_700_000
        b.send(wire.CUT, command(b, rails=[0, 1], when={"t_us": at}, **CUTS[profile]))
        (down, off), (up, back) = power(b, 2)
        assert (off, back) == (False, True)
        assert 0 <= true_us(b, down) - at < 30_000
        assert 0 < true_us(b, up) - at - 300_000 < 10_000
        b.until(lambda: "firmware stops: RuntimeError: a defect of the firmware, SIMULATED" in b.logs())
        if profile == "ramp":
            b.until(lambda: len(b.truth()) == 2)
            b.frames.clear()
            assert b.hello()["switch"]["state"] == "idle"


def test_a_ramp_ends_as_planned_while_the_firmware_hangs_and_the_watchdog_gives_the_power_back(tmp_path):
    """Held up from 0.1 s after the edge on: the pulses go on by themselves, the discharge switch stays closed, and 8 s
    later the board is reset. What is known of the rail meanwhile is what the drive saw: it goes off where the line is
    at 80 %, or a pulse later."""
    stalls = {"rail": SLOW, "stalls": [[1.8, 60_000]]}
    with Board(tmp_path, 0.0, {"leak_mA": 0.0, "source_mOhm": 0.0, **stalls}) as b:
        streaming(b)
        at = b.truth()[0]["tick0"] + 1_700_000
        b.send(wire.CUT, command(b, profile="ramp", fall_us=1_000_000, bulk_uF=[470], when={"t_us": at}))
        b.until(lambda: len(b.truth()) == 2)
        ((down, off),) = power(b, 1)
        assert off is False and 200_000 <= true_us(b, down) - at < 232_000
        b.frames.clear()
        assert b.hello()["switch"]["off"] == []


def test_firmware_that_hangs_before_the_edge_cuts_and_is_reset_all_the_same(tmp_path):
    """The state machine waits for the edge by itself: what it cuts while nobody looks comes back by the watchdog."""
    edges = [[1, 20, 0], [2.5, 20, 1]]
    with Board(tmp_path, 2.5, {"rail": SLOW, "edges": edges, "stalls": [[2.0, 60_000]]}) as b:
        streaming(b)
        b.send(wire.CUT, command(b, profile="float", when={"edge": "rising", "gpio": 20, "timeout_ms": 60_000}))
        b.until(lambda: len(b.truth()) == 2)
        ((down, off),) = power(b, 1)
        assert off is False and true_us(b, down) - b.truth()[0]["tick0"] == pytest.approx(2_500_000, abs=2000)
        b.frames.clear()
        assert b.hello()["switch"]["state"] == "idle"


# --- the side-band

FED = {"side_ohm": 1414.0, "leak_mA": 0.5, "bulk_uF": 10.0, "source_mOhm": 0.0}


def test_a_drive_that_the_side_band_feeds_is_not_off(tmp_path):
    """A board that drives no side-band: the pull-ups keep the rail at 2.7 V less 0.5 mA x 1414 Ohm."""
    with Board(tmp_path, 2.5, FED | changed_firmware(tmp_path, "switch.py", GIVE_UP_us=1_000_000)) as b:
        assert b.hello()["switch"]["sideband"] is False
        streaming(b)
        report = cut(b, profile="float", off_ms=1, residual_ms=50)
        assert not report["ok"] and "power stays off" in report["why"]
        assert of(report, 0)["residual_mV"] == pytest.approx(2700 - 707, abs=10) and report["perst_us"] is None
        assert on(b, unsafe=True)["ok"]
        held = cut(b, profile="crowbar", off_ms=100, residual_ms=50)  # the resistor holds it down all the same
        assert held["ok"] and of(held, 0)["residual_mV"] == pytest.approx((2.7 / 1414 - 0.5e-3) * 2200, abs=3)


def test_an_isolated_side_band_lets_the_drive_go_off_and_perst_is_released_late(tmp_path):
    with Board(tmp_path, 2.5, {**FED, "sideband": 18}) as b:
        assert b.hello()["switch"]["sideband"] is True
        streaming(b)
        report = cut(b, profile="float", off_ms=1, residual_ms=50)
        assert report["ok"] and of(report, 0)["residual_mV"] < 300
        # the rail is back in 3 ms; PCIe: 100 ms after power is stable
        assert 120_000 < report["perst_us"] - report["on_us"] < 130_000
        assert b.hello()["switch"]["state"] == "idle"
        glitch = cut(b, profile="glitch", glitch_us=100)
        assert glitch["ok"] and glitch["perst_us"] is None


def test_the_side_band_is_joined_again_when_firmware_fails(tmp_path):
    with Board(tmp_path, 2.5, {**FED, "rail": SLOW, "sideband": 18, "defects": [2.0]}) as b:
        streaming(b)
        at = b.truth()[0]["tick0"] + 1_700_000
        b.send(wire.CUT, command(b, profile="float", off_ms=20_000, when={"t_us": at}))
        b.until(lambda: len(power(b)) == 2)
        b.until(lambda: len(b.truth()) == 2)
        b.frames.clear()
        assert b.hello()["switch"]["state"] == "idle"
