"""Hostile answers of a board (ssdrig.meter.messages): what wire.py does not have is damage where it arrives, and
changes nothing."""

import json
import struct

import pytest
import stream

from ssdrig.base.errors import RigError
from ssdrig.meter import messages, trip, wire
from ssdrig.meter.frames import Decoder
from ssdrig.meter.pico import stream as rig_stream
from ssdrig.meter.pico.session import Memory, Session
from ssdrig.meter.pico.stream import Rig
from ssdrig.runs import rigbin, rigrecords

RAIL = {"shunt_ns": 10**6, "nominal_mV": 5000, "lead_mOhm": 24, "bus": "I2C0", "die_mC": 25_000, "calibration": None}
RAIL |= {"adc_config": 0, "shunt_cal": 0xFFFF, "shunt_tolerance_ppm": 1_000_000}
MORE = {
    "serial": "E6",
    "build": None,
    "buses": [{"bus": "I2C0", "Hz": 990_000, "asked_Hz": 990_000, "read_backs": 256, "errors": 0}],
    "switch": {"rails": [{"rail": 0, "profiles": ["float"], "discharge_mOhm": 0.5}], "off": [0], "tripped": [255]},
    "scope": [{"rail": 0, "gpio": 26, "nV_per_count": 1_611_328}],
    "fast": None,
}
CUT = {"token": 0, "fired_us": 5, "off_us": 0, "on_us": 7, "perst_us": None, "ok": True, "why": ""}
FELL = {"rail": 0, "before_mV": 5000, "t90_10_us": None, "residual_mV": 4, "low_us": None, "samples": 3, "safe": True}
TRIP = {"rail": 0, "quantity": "A", "seen_mA": 3100, "limit_mA": 3000, "over_us": 9, "t_us": 1, "opened_us": 2}


def hello(**more) -> dict:
    out = json.loads(stream.hello(boot=7)) | MORE | more
    out["rails"] = [row | RAIL for row in out["rails"]] if "rails" not in more else more["rails"]
    return out


def changed(at: tuple, value) -> dict:
    """A hello with another value somewhere; ... takes it away."""
    out = hello()
    *path, last = at
    inner = out
    for step in path:
        inner = inner[step]
    inner[last] = value
    if value is ...:
        del inner[last]
    return out


def greeted_rig(kind: int, body: bytes) -> Rig:
    """A rig that was greeted, and then heard this."""
    rig = Rig("none", Memory())
    rig._arrived(
        wire.encode(wire.HELLO, 0, json.dumps(json.loads(stream.hello(boot=1)) | {"serial": MORE["serial"]}).encode())
        + wire.encode(kind, 1, body),
        1,
    )
    return rig


WRONG = [
    *(((name,), ...) for name in ("boot", "board", "firmware", "rails")),
    *(((name,), 5) for name in ("rails", "switch", "scope", "buses", "fast", "serial", "board")),
    *((("rails",), value) for value in ([], [5], [None], [[]], {"0": 1})),
    *((("rails", 0, name), ...) for name in ("rail", "config", "name", "chip", "shunt_uOhm", "conversion_ns")),
    *((("rails", 0, "rail"), value) for value in (-1, 256, 1.5, True, "0", [0], None)),
    *((("rails", 0, "conversion_ns"), value) for value in (0, -5, 2 * 10**9 + 1, 10**400, "1", None, True)),
    *((("rails", 0, name), -1) for name in ("current_lsb_pA", "vbus_lsb_nV", "nominal_mV", "shunt_ns", "lead_mOhm")),
    (("rails", 0, "calibration"), 7),
    (("rails", 0, "shunt_tolerance_ppm"), 1_000_001),
    *((("protocol",), value) for value in (..., "1", None)),
    *((("switch", "off"), value) for value in (..., 0, [None], ["0"], [-1], [256])),
    (("switch", "rails"), [{"rail": 0}]),
    (("scope", 0, "nV_per_count"), 0),
    (("buses", 0, "Hz"), "fast"),
]


def test_a_sound_hello_is_one():
    assert messages.answer(wire.HELLO, json.dumps(hello()).encode()) == hello()
    assert messages.answer(wire.HELLO, json.dumps(hello(boot=0)).encode())["boot"] == 0
    assert greeted_rig(wire.HELLO, json.dumps(hello()).encode()).hello() == hello()
    exact = changed(("rails", 0, "shunt_tolerance_ppm"), 0)
    assert messages.answer(wire.HELLO, json.dumps(exact).encode()) == exact


@pytest.mark.parametrize("at, value", WRONG, ids=str)
def test_a_hello_that_is_none_changes_nothing(at, value):
    rig = greeted_rig(wire.HELLO, json.dumps(changed(at, value)).encode())
    assert rig.hello()["boot"] == 1 and rig.live()["damaged"] == 1


def test_samples_of_a_rail_without_a_lead_can_be_converted():
    """The firmware sends 0 where the board's file names none."""
    facts = hello()["rails"][0]
    for lead, sound in ((0, True), (None, True), (messages.MOST_LEAD_MOHM, True), (-1, False), (1001, False)):
        assert messages.is_rail(facts | {"lead_mOhm": lead}) is sound


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000])
@pytest.mark.parametrize("name", ["current_lsb_pA", "lead_mOhm", "something"])
def test_numbers_that_are_none(number, name):
    """By the one who listens, and by the one who reads the run."""
    text = json.dumps(changed(("rails", 0, name), "HERE")).replace('"HERE"', number).encode()
    assert greeted_rig(wire.HELLO, text).live()["damaged"] == 1
    decoder = Decoder()
    decoder.feed(rigrecords.decode(rigbin.encode(rigbin.FRAME, struct.pack(wire.HEAD, wire.HELLO, 0) + text, 1)))
    assert decoder.counts["malformed"] == 1 and decoder.boots[0].hello is None


@pytest.mark.parametrize("kind", [wire.HELLO, wire.CUT_REPORT, wire.REFUSED, wire.TRIP])
@pytest.mark.parametrize("body", [b"[" * 4000, b'{"a":' * 4000, b"", b"null", b"\xff\xfe", b'"', b"{}", b"[]"])
def test_what_is_no_json_object(kind, body):
    rig = greeted_rig(kind, body)
    assert rig.live()["damaged"] == 1 and body not in rig.heard(kind)
    decoder = Decoder()
    decoder.feed(rigrecords.decode(rigbin.encode(rigbin.FRAME, struct.pack(wire.HEAD, kind, 0) + body, 1)))
    assert decoder.counts["malformed"] == (kind == wire.HELLO)


@pytest.mark.parametrize(
    "kind, body, sound",
    [
        *((wire.ARMED, bytes(n), n == 8) for n in (0, 7, 8, 9)),
        *((wire.WAVEFORM, bytes(18) + bytes([2]) + bytes(n), n == 4) for n in (0, 3, 4, 5)),
        (wire.WAVEFORM, b"", False),
        *((wire.SAMPLES, stream.samples(0, [9, 10], [1, 1], [1, 1])[:n], n == 35) for n in (0, 18, 19, 34, 35)),
        *((wire.ENERGY, bytes(n), n == 28) for n in (0, 27, 28, 29)),
        *((wire.PONG, bytes(n), n == 16) for n in (0, 12, 16, 17)),
        *((wire.FAST, bytes(n), n == 39) for n in (0, 35, 38, 39, 40)),
        (wire.CUT_REPORT, json.dumps(CUT | {"rails": [FELL]}).encode(), True),
        *((wire.CUT_REPORT, json.dumps(CUT | {"rails": wrong}).encode(), False) for wrong in (5, [5], [{"rail": 0}])),
        *((wire.CUT_REPORT, json.dumps(CUT | {"rails": [], key: "x"}).encode(), False) for key in ("ok", "fired_us")),
        (wire.REFUSED, b'{"command": "c", "why": "no"}', True),
        (wire.REFUSED, b'{"command": "c"}', False),
    ],
)
def test_only_answers_that_are_ones_are_heard(kind, body, sound):
    """Nor is what is shown of the last second made of anything else."""
    rig = greeted_rig(kind, body)
    assert rig.live()["damaged"] == (not sound)
    assert rig.heard(kind) == ([body] if sound and kind in rig_stream.ANSWERS else [])
    assert bool(rig.last_second().bodies) == (sound and kind == wire.SAMPLES)
    assert (rig.last_second().power_W() is None) == (not rig.last_second().bodies)


def test_a_trip_without_its_limit_is_none():
    assert trip.read(json.dumps(TRIP).encode()) == TRIP
    for name in ("limit_mA", "seen_mA", "opened_us", "rail"):
        rig = greeted_rig(wire.TRIP, json.dumps({key: value for key, value in TRIP.items() if key != name}).encode())
        assert rig.live()["damaged"] == 1 and rig.failure is None, name


def test_what_is_kept_though_it_is_no_frame_is_not_looked_into():
    """A reading that waits for samples goes over all that came."""
    rig = greeted_rig(wire.PONG, b"short")
    rig._arrived(wire.encode(wire.SAMPLES, 2, b"\x00"), 2)
    assert Session(rig, rig._book, rig.hello(), str).quiet_s(0, 0) == 0


def test_a_greeting_that_is_none_is_said_by_its_first_wrong_field(monkeypatch):
    rig = Rig("none", Memory())
    rig._arrived(wire.encode(wire.HELLO, 0, json.dumps(changed(("rails", 0, "shunt_uOhm"), 0)).encode()), 1)
    monkeypatch.setattr(rig_stream.Rig, "_over", lambda *_: True)
    with pytest.raises(RigError, match=r"seen a frame that wire.py does not have: H with rails \[0\] shunt_uOhm 0"):
        rig._until(lambda: rig.hello(), 1, "a board that answers")
