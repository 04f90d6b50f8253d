"""Every command, taken and refused; none of these switches anything."""

import json
import os
import struct
import time

import pytest

from ssdrig.meter import calibration, wire
from ssdrig.meter.calibration import Meter, Point
from ssdrig.meter.pico.session import session


def answer(line, kind, body, *answers, seconds=5):
    """Send a command; (kind, body) of the first frame of one of the kinds `answers` that comes behind it."""
    known = len(line.frames)
    line.send(kind, body if isinstance(body, bytes) else json.dumps(body).encode())
    answers_ = line.until(lambda: [(k, b) for k, _, b in line.frames[known:] if k in answers], seconds)
    return answers_[0]


def refusal(line, kind, body):
    """Why a command was refused."""
    document = json.loads(answer(line, kind, body, wire.REFUSED, wire.CUT_REPORT, wire.HELLO)[1])
    assert document.get("command") == chr(kind), document
    return document["why"]


def alive(line):
    token = os.urandom(4)
    kind, body = answer(line, wire.PING, token, wire.PONG)
    assert body[:4] == token
    return struct.unpack(wire.PONG_BODY, body)


def test_ping(line):
    begin_s = time.monotonic()
    _, first_us, held_us = alive(line)
    time.sleep(0.5)
    _, then_us, _ = alive(line)
    assert held_us < 50_000 and 450_000 <= then_us - first_us <= 1.1e6 * (time.monotonic() - begin_s)


def test_go_and_stop(line):
    line.go()
    line.until(line.samples)
    line.send(wire.STOP)
    line.read(0.5)
    count = len(line.bodies(wire.SAMPLES))
    line.read(0.5)
    assert len(line.bodies(wire.SAMPLES)) == count
    line.send(wire.GO)
    line.until(lambda: len(line.bodies(wire.SAMPLES)) > count)
    assert struct.unpack_from(wire.SAMPLES_HEAD, line.bodies(wire.SAMPLES)[count])[4] == 0  # the index begins anew


def test_what_is_no_frame_is_passed_over(line):
    boot = line.hello()["boot"]
    for junk in (
        b"\x00\x00\x00",
        b"\x05abc\x00",
        os.urandom(2000).replace(b"\x03", b"\x04") + b"\x00",
        wire.encode(wire.PING, 1, b"1234")[:-3] + b"\x00",
    ):
        line.write(junk)
        line.read(0.1)
        alive(line)
    line.send(ord("?"), b"a command that nobody has")
    alive(line)
    assert line.hello()["boot"] == boot


def test_arming_gives_a_token_that_lapses(line, hello):
    if not hello["switch"]:
        assert refusal(line, wire.ARM, b"")
        return
    first, second = (struct.unpack(wire.ARMED_BODY, answer(line, wire.ARM, b"", wire.ARMED)[1]) for _ in range(2))
    assert first[0] != second[0] and 0 < second[1] <= 60_000


@pytest.mark.parametrize(
    "body", [b"", b"{", {"token": 1}, {"rails": [0], "profile": "crowbar", "when": {"now": True}}, [], "crowbar"]
)
def test_a_cut_without_its_token_is_refused(line, body):
    line.go()
    line.until(line.samples)
    assert refusal(line, wire.CUT, body)


def test_power_on_with_nothing_off_is_refused(line):
    assert refusal(line, wire.ON, {"rails": [0]})
    assert refusal(line, wire.ON, {"call_off": True})


@pytest.mark.parametrize(
    "body", [b"x", {}, {"gpio": 255, "rate": 500_000, "before": 0, "after": 100, "trigger": "now"}]
)
def test_a_scope_that_cannot_be_is_refused(line, body):
    assert refusal(line, wire.SCOPE, body)


@pytest.mark.parametrize("body", [b"x", {}, {"rail": 200, "calibration": None}])
def test_a_calibration_that_cannot_be_is_refused(line, body):
    assert refusal(line, wire.CALIBRATE, body)


def test_no_calibration_while_the_stream_runs(line, hello):
    line.go()
    line.until(line.samples)
    rail = hello["rails"][0]
    assert "stream" in refusal(line, wire.CALIBRATE, {"rail": rail["rail"], "calibration": rail["calibration"]})


def test_a_calibration_is_kept_and_what_was_there_comes_back(port, hello):
    rail = hello["rails"][-1]
    low, high = Point(0.0, 1e-6, 0.0), Point(5.01, 1e-6, 5.0)
    line = {
        **calibration.line(low, high, Meter("test", 0.05, 0.001, 0.0001), 195.3125e-6),
        "date": "2026-01-01",
        "meter": "test of the rig",
    }
    stored = {"V": line, "board": hello["serial"]}
    try:
        with session(port, stream=False) as rig_session:
            rig_session.store_calibration(rail["rail"], stored)
        with session(port, stream=False) as rig_session:
            assert rig_session.rail(rail["rail"])["calibration"] == stored
    finally:
        with session(port, stream=False) as rig_session:
            rig_session.store_calibration(rail["rail"], rail["calibration"])
    with session(port, stream=False) as rig_session:
        assert rig_session.rail(rail["rail"])["calibration"] == rail["calibration"]
