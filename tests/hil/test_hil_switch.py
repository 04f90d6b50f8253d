"""Cuts with a dummy load in place of a drive, and the scope. All but the scope's first picture need --hil-cut."""

import contextlib
import time

import numpy as np
import pytest

from ssdrig.meter.pico.session import session
from ssdrig.switch import pico as switching

OFF_MS = 600  # a rail is safe when it was low for 500 ms


def rails_of(switch, profile):
    return [row["rail"] for row in switch["rails"] if profile in row["profiles"]]


def volts(rig_session, rail, seconds=0.5):
    for _ in range(5):
        reading = rig_session.readings([rail], seconds)[rail].raw_V
        if len(reading) > 10:  # a SIMULATED board on a busy machine may be behind its time
            return float(reading.mean())
    pytest.fail(f"hardly a sample of rail {rail} came")


def test_the_scope_sees_the_rail_as_the_sensor_does(streaming):
    inputs = streaming.hello.get("scope") or []
    if not inputs:
        pytest.skip("this rig has no scope input")
    for row in inputs:
        picture = switching.scope_now(streaming.rig, gpio=row["gpio"], rate=max(row["rates"]), after=1000)
        assert picture["rail"] == row["rail"] and len(picture["volts"]) == 1000
        assert picture["dt_ns"] == pytest.approx(1e9 / max(row["rates"]), rel=0.01)
        seen = volts(streaming, row["rail"])
        assert float(np.mean(picture["volts"])) == pytest.approx(
            seen, rel=0.05, abs=0.05
        )  # resistors of 1 %, the ADC's own error


@contextlib.contextmanager
def off(rig, rail):
    """A rail without power; it has it again at once if something goes wrong."""
    try:
        switching.off(rig, rails=[rail])
        yield
    except BaseException:
        switching.on(rig, unsafe=True)
        raise


@pytest.mark.parametrize("profile", ["float", "crowbar"])
def test_a_cut_and_back(streaming, cut, profile):
    for rail in rails_of(cut, profile):
        before = volts(streaming, rail)
        report = switching.arm_and_cut(streaming.rig, rails=[rail], profile=profile, off_ms=OFF_MS)
        (row,) = report["rails"]
        assert report["ok"] and row["safe"] and row["residual_mV"] < 300
        assert OFF_MS * 1000 <= report["off_us"] < OFF_MS * 1000 + 12_000_000
        assert row["before_mV"] == pytest.approx(1000 * before, rel=0.03) and row["t90_10_us"] > 0
        time.sleep(0.2)
        assert volts(streaming, rail) == pytest.approx(before, rel=0.03), "the rail did not come back"


def test_the_crowbar_is_faster_than_the_load_alone(streaming, cut):
    for rail in rails_of(cut, "crowbar"):
        fall = {}
        for profile in ("float", "crowbar"):
            report = switching.arm_and_cut(streaming.rig, rails=[rail], profile=profile, off_ms=OFF_MS)
            fall[profile] = report["rails"][0]["t90_10_us"]
        assert fall["crowbar"] < fall["float"], fall


def test_a_ramp_takes_the_time_asked_for(streaming, cut, request):
    rails = rails_of(cut, "ramp")
    if not rails:
        pytest.skip("no rail of this rig has the profile ramp")
    bulk_uF = request.config.getoption("--hil-bulk-uF")
    for rail in rails:
        asked_us = 20_000
        report = switching.arm_and_cut(
            streaming.rig, rails=[rail], profile="ramp", fall_us=asked_us, bulk_uF=[bulk_uF], off_ms=OFF_MS
        )
        assert report["ok"] and 0 < report["rails"][0]["t90_10_us"] < asked_us  # the load's own current makes it faster


def test_a_glitch_is_as_long_as_asked(streaming, cut):
    for rail in rails_of(cut, "glitch"):
        report = switching.arm_and_cut(streaming.rig, rails=[rail], profile="glitch", glitch_us=200)
        assert report["ok"] and report["off_us"] == pytest.approx(200, abs=2)


def test_all_rails_at_once(streaming, cut):
    rails = rails_of(cut, "crowbar")
    if len(rails) < 2:
        pytest.skip("this rig switches one rail")
    report = switching.arm_and_cut(streaming.rig, rails=rails, profile="crowbar", off_ms=OFF_MS)
    assert (
        report["ok"]
        and [row["rail"] for row in report["rails"]] == rails
        and all(row["safe"] for row in report["rails"])
    )


def test_off_stays_off_until_on(streaming, cut):
    rail = rails_of(cut, "crowbar")[0]
    with off(streaming.rig, rail):
        assert streaming.rig.greet()["switch"]["off"] == [rail]
        assert volts(streaming, rail) < 0.5
        report = switching.on(streaming.rig)
        assert report["ok"] and streaming.rig.greet()["switch"]["off"] == []


def test_a_reset_gives_power_back(port, cut, reset_board):
    """Fail-safe: whatever ends the firmware, the rails are on."""
    rail = rails_of(cut, "crowbar")[0]
    with session(port) as rig_session:
        before = volts(rig_session, rail)
        with off(rig_session.rig, rail):
            assert volts(rig_session, rail) < 0.5
    reset_board()
    with session(port) as rig_session:
        assert rig_session.hello["switch"]["off"] == []
        assert volts(rig_session, rail) == pytest.approx(before, rel=0.03)
