"""A board's messages (wire.py), checked where they arrive: JSON by its fields, the rest by its length. A board may send
anything; an answer that passed has the form of wire.py."""

import json
import math
import struct
from collections.abc import Callable
from typing import Any

from ssdrig.meter import calibration, wire

MOST = 1 << 53  # of any number; larger ones are invalid and fit no array
MOST_CONVERSION_NS = 2 * 10**9  # of a board 16 ms, of a meter that is polled; the time of 2^32 of these fits int64
Test = Callable[[object], str | None]  # the defect, or None


def document(body: bytes) -> dict:
    """A JSON object. ValueError: another JSON value, or one with invalid numbers."""
    try:
        parsed = json.loads(body, parse_constant=_finite, parse_float=_finite)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None
    if not isinstance(parsed, dict):
        raise ValueError("JSON that is no object")
    return parsed


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"the number {text}")
    return number


def answer(kind: int, body: bytes) -> dict:
    """The content of a frame of these kinds, {} for other JSON or another kind. A hello of another protocol is as it
    came. ValueError: it is not as wire.py has it."""
    if not is_whole(kind, body):
        raise ValueError(f"{chr(kind)} of {len(body)} bytes")
    if kind not in FORMS:
        return {}
    fields, letter = document(body), chr(kind)
    other = kind == wire.HELLO and type(fields.get("protocol")) is int and fields["protocol"] != wire.PROTOCOL
    if not other and (wrong := FORMS[kind](fields)):
        raise ValueError(f"{letter} with {wrong}")
    return fields


def is_whole(kind: int, body: bytes) -> bool:
    """Whether a body has the length that a frame of its kind has; of one that is text, or unknown: yes."""
    if kind in _HEADS:
        head, place, size = _HEADS[kind]
        return len(body) >= head.size and len(body) == head.size + size * head.unpack_from(body)[place]
    return len(body) == _LENGTHS.get(kind, len(body))


def is_rail(facts: dict) -> bool:
    """Whether samples can be converted by an entry of H. KeyError, TypeError: not an entry."""
    names = ("vbus_lsb_nV", "current_lsb_pA", *(("shunt_uOhm",) if has_chip(facts) else ()))
    of = (facts[name] for name in names)
    may = {"shunt_ns": MOST, "nominal_mV": MOST, "lead_mOhm": MOST_LEAD_MOHM}
    low = facts.get("low")
    if low and not (0 < low["shunt_uOhm"] < MOST and 0 <= low["shunt_tolerance_ppm"] <= 1_000_000):
        return False
    return (
        all(0 < number < MOST for number in of)
        and 0 < facts["conversion_ns"] <= MOST_CONVERSION_NS
        and all(0 <= number <= most for name, most in may.items() if (number := facts.get(name)) is not None)
    )


def has_chip(facts: dict) -> bool:
    """Whether a rail is measured by a sensor chip with a shunt, and not by a meter that states its accuracy."""
    return not facts.get("accuracy") or bool(facts["accuracy"].get("chip"))


# ---- tests


def _shown(it: object) -> str:
    return f"{it!r:.40}"


def _number(low: float, high: float = MOST) -> Test:
    def test(it: Any) -> str | None:
        return None if type(it) in (int, float) and low <= it <= high else _shown(it)

    return test


def _whole(low: int, high: int = MOST) -> Test:
    return lambda it: None if type(it) is int and low <= it <= high else _shown(it)


def _of(kind: type) -> Test:
    return lambda it: None if isinstance(it, kind) else _shown(it)


def _or_none(test: Test) -> Test:
    return lambda it: None if it is None else test(it)


def _rows(test: Test, least: int = 0) -> Test:
    def rows(it: object) -> str | None:
        if not isinstance(it, list) or len(it) < least:
            return _shown(it)
        return next((f"[{n}] {wrong}" for n, item in enumerate(it) if (wrong := test(item))), None)

    return rows


def _form(must: dict[str, Test], may: dict[str, Test]) -> Test:
    """An object with the fields `must`; those of `may` can be missing or null; what else there is does not matter."""

    def form(it: object) -> str | None:
        if not isinstance(it, dict):
            return _shown(it)
        for name, test in must.items():
            if name not in it:
                return f"no {name}"
            if wrong := test(it[name]):
                return f"{name} {wrong}"
        for name, test in may.items():
            if it.get(name) is not None and (wrong := test(it[name])):
                return f"{name} {wrong}"
        return None

    return form


_LENGTHS = {
    **{wire.ARMED: struct.calcsize(wire.ARMED_BODY), wire.ENERGY: struct.calcsize(wire.ENERGY_BODY)},
    **{wire.PONG: struct.calcsize(wire.PONG_BODY), wire.FAST: struct.calcsize(wire.FAST_BODY)},
}
_HEADS = {  # head, its field with the number of items, bytes of each
    wire.SAMPLES: (struct.Struct(wire.SAMPLES_HEAD), 2, wire.SAMPLE_BYTES),
    wire.WAVEFORM: (struct.Struct(wire.WAVEFORM_HEAD), 5, 2),
}
MOST_LEAD_MOHM = 1000
_BYTE, _TEXT, _ABOVE_0, _FROM_0 = _whole(0, 255), _of(str), _number(1e-9), _number(0)
_OBJECT, _BYTES, _TIME = _of(dict), _rows(_whole(0, 255)), _or_none(_number(0))
_LIMIT = _rows(_rows(_number(0), 3), 1)
_ACCURACY = _form({}, {**dict.fromkeys("VAW", _LIMIT), "unknown": _TEXT, "chip": _TEXT})
_LOW = _form(
    {"shunt_uOhm": _ABOVE_0, "shunt_tolerance_ppm": _number(0, 1_000_000)},
    {"feed_nA": _whole(0, calibration.MOST_AMPLIFIER_nA)},
)
_RAIL = _form(
    {
        **dict.fromkeys(("rail", "config"), _BYTE),
        **dict.fromkeys(("name", "chip"), _TEXT),
        **dict.fromkeys(("current_lsb_pA", "vbus_lsb_nV"), _ABOVE_0),
        "conversion_ns": _number(1e-9, MOST_CONVERSION_NS),
    },
    {
        **dict.fromkeys(("shunt_ns", "nominal_mV", "shunt_uOhm"), _ABOVE_0),
        "accuracy": _ACCURACY,
        **dict.fromkeys(("adc_config", "shunt_cal"), _whole(0, 0xFFFF)),
        **dict.fromkeys(("protect", "calibration"), _OBJECT),
        "lead_mOhm": _number(0, MOST_LEAD_MOHM),
        "shunt_tolerance_ppm": _number(0, 1_000_000),
        "shunt_emf_nV_per_C": _number(0, 100_000),
        "amplifier_nA": _whole(0, calibration.MOST_AMPLIFIER_nA),
        "low": _LOW,
        "die_mC": _number(-MOST),
        "bus": _TEXT,
    },
)


def _rail(it: Any) -> str | None:
    if wrong := _RAIL(it):
        return wrong
    return "no shunt_uOhm" if has_chip(it) and it.get("shunt_uOhm") is None else None


_SWITCH = _form(
    {"rails": _rows(_form({"rail": _BYTE, "discharge_mOhm": _ABOVE_0}, {})), "off": _BYTES},
    {"tripped": _BYTES, "dead_us": _FROM_0, "state": _TEXT, "lock_outs": _of(bool)},
)
_BUS = _form({"bus": _TEXT, **dict.fromkeys(("Hz", "asked_Hz", "read_backs", "errors"), _FROM_0)}, {})
_HELLO = _form(
    {"protocol": _whole(0), "boot": _whole(0), "board": _TEXT, "firmware": _TEXT, "rails": _rows(_rail, 1)},
    {
        **dict.fromkeys(("serial", "build", "source"), _TEXT),
        "stamp_ns": _whole(0, MOST_CONVERSION_NS),
        "buses": _rows(_BUS),
        "switch": _SWITCH,
        "scope": _rows(_form({"rail": _BYTE, "gpio": _BYTE, "nV_per_count": _ABOVE_0}, {})),
        "fast": _OBJECT,
        "gate_supply": _form({"gpio": _BYTE, "nV_per_count": _ABOVE_0, "mV": _ABOVE_0}, {}),
    },
)
_CUT = _form(
    {
        **{"token": _whole(0), "ok": _of(bool), "why": _TEXT},
        **dict.fromkeys(("fired_us", "off_us", "on_us"), _TIME),
        "rails": _rows(
            _form(
                {
                    **dict.fromkeys(("before_mV", "residual_mV", "samples"), _number(-MOST)),
                    **dict.fromkeys(("t90_10_us", "low_us"), _or_none(_number(-MOST))),
                    "rail": _BYTE,
                },
                {"crowbar_mJ": _FROM_0, "released": _TEXT, "fed_mA": _FROM_0},
            )
        ),
    },
    {"perst_us": _FROM_0},
)
_NO = _form({"command": _TEXT, "why": _TEXT}, {})
FORMS: dict[int, Test] = {wire.HELLO: _HELLO, wire.CUT_REPORT: _CUT, wire.REFUSED: _NO}
