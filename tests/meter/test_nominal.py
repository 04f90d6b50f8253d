"""A rail's voltage at the drive against what it should be."""

import json

import numpy as np
import pytest
import stream
from calibrations import RAIL

from ssdrig.base.errors import RigError
from ssdrig.meter import nominal, wire
from ssdrig.meter.frames import Decoder
from ssdrig.meter.pico import stream as rig_stream
from ssdrig.meter.pico.stream import LastSecond, Rig

FIVE = RAIL | {"nominal_mV": 5000, "name": "sata_5v"}


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (4.75, 5.25, None),
        (4.749, 5.0, "4.749 V at the drive, which asks for 4.75 to 5.25 V; the supply must give 4.90 V or more"),
        (5.0, 5.251, "5.251 V at the drive, which asks for 4.75 to 5.25 V"),
        (0.0, 1.2, None),  # it is off
        (11.9, 12.0, "12.00 V at the drive instead of 5 V: take the drive off NOW; are 5 V and 12 V mixed up?"),
        (3.9, 3.95, "3.90 V at the drive instead of 5 V"),
    ],
)
def test_what_is_said(low, high, message):
    words = nominal.outside(FIVE, low, high)
    assert words == message if message is None else message in words and words.startswith("rail 0 (sata_5v): ")
    assert ("must give" in (words or "")) == (message is not None and "must give" in message)
    assert nominal.outside(RAIL, low, high) is None  # a board that does not say


@pytest.mark.parametrize(("volts", "other"), [(4.0, False), (3.99, True), (6.0, False), (6.01, True), (1.24, False)])
def test_another_supply(volts, other):
    assert nominal.is_other(FIVE, volts) == other
    assert not nominal.is_other(RAIL, volts)


def second(volts, amperes=0.2, **facts):
    hello = json.loads(stream.hello())
    hello["rails"][0] |= {"nominal_mV": 5000, "lead_mOhm": 100} | facts
    raw = [round(volts / 195.3125e-6)] * 2, [round(amperes / 7.8125e-6)] * 2
    return LastSecond([stream.samples(0, np.array([1000, 2000]), *raw)], hello)


def test_the_voltage_is_that_at_the_drive():
    """0.2 A through 100 mOhm of leads lose 20 mV."""
    ((rail, low, high),) = second(4.76).voltages()
    assert rail["rail"] == 0 and low == high == pytest.approx(4.74, abs=1e-3)
    assert "4.74" in second(4.76).outside()[0] and second(4.78).outside() == []
    assert LastSecond([], None).voltages() == [] and LastSecond([], None).outside() == []


def test_5_and_12_V_mixed_up_are_refused():
    second(5.0).refuse_other()
    with pytest.raises(RigError, match="expected 5 V on rail 0.*seen 11.98 V.*mixed up"):
        second(12.0).refuse_other()
    with pytest.raises(RigError, match="expected 12 V"):
        second(5.0, nominal_mV=12000).refuse_other()
    second(12.0, nominal_mV=None).refuse_other()


def test_nothing_is_said_of_a_cut_of_our_own():
    """Seen in every campaign of cuts: 0.001 V at the drive, which asks for 4.75 to 5.25 V."""
    falls = LastSecond([*second(5.0).bodies, *second(0.001).bodies], second(5.0).hello)
    assert falls.outside() and falls._replace(switched=True).outside() == []


@pytest.mark.parametrize(
    ("kind", "body", "within", "after"),
    [
        (wire.CUT, b'{"token": 1, "off_ms": 100}', True, False),
        (wire.CUT, b'{"token": 1}', True, True),
        (wire.ON, b'{"rails": [0]}', True, False),
        (wire.ARM, b"{}", False, False),
    ],
)
def test_the_rig_knows_of_its_own_cuts(monkeypatch, kind, body, within, after):
    rig, now = Rig("nowhere", None), [100.0]
    monkeypatch.setattr(rig_stream.time, "monotonic", lambda: now[0])
    during = []
    monkeypatch.setattr(rig, "_asked", lambda *_: during.append(rig.last_second().switched) or (0, b""))
    rig.ask(kind, body, (), 1.0, "")
    soon = rig.last_second().switched
    now[0] += rig_stream.SWITCHED_S + 0.1
    assert (during, soon, rig.last_second().switched) == ([within], within, after)


@pytest.mark.parametrize("wrong", [{"lead_mOhm": -1}, {"lead_mOhm": 1001}, {"lead_mOhm": "24"}, {"nominal_mV": -5}])
def test_a_hello_that_makes_no_sense_explains_nothing(wrong):
    tape = stream.Tape()
    hello = json.loads(stream.hello())
    hello["rails"][0] |= wrong
    tape.frame(wire.HELLO, json.dumps(hello).encode())
    tape.stream(1)
    decoder = Decoder()
    decoder.feed(tape.records())
    assert not decoder.boots[-1].rails
