"""The rig's message when it opens a rail for its limits (frame T of wire.py), in words and as an error."""

from ssdrig.base.errors import RailTripped
from ssdrig.meter.messages import document

KEYS = ("rail", "quantity", "seen_mA", "seen_mV", "limit_mA", "limit_mV", "over_us", "t_us", "opened_us")
DO = "take the drive off, find out why, then ./ssdrig rig on and rig clear; limits: protect in the rail's board.json"


def read(body: bytes) -> dict:
    """The fields of a T frame. ValueError, KeyError, TypeError: not a T frame."""
    event = {key: value for key, value in document(body).items() if key in KEYS}
    if event["quantity"] not in ("A", "V") or not isinstance(event["rail"], int):
        raise ValueError(f"a trip of {event['quantity']!r}")
    error(event)
    return event


def in_words(event: dict) -> str:
    """The reading, and whether the rail is open now."""
    unit = event["quantity"]
    seen = f"{event[f'seen_m{unit}'] / 1000:.3f} {unit}"
    lasted = f" for {event['over_us'] / 1000:.1f} ms" if event.get("over_us") is not None else ""
    done = "the rig has opened it" if event["opened_us"] is not None else "it has no switch and is STILL ON"
    return f"{seen} on rail {event['rail']}{lasted}; {done}"


def error(event: dict) -> RailTripped:
    unit = event["quantity"]
    limit = f"at most {event[f'limit_m{unit}'] / 1000:g} {unit} on rail {event['rail']}"
    return RailTripped(limit, in_words(event), DO)


def refuse(hello: dict) -> None:
    """Raises RailTripped while a rail is open for its limits."""
    rails = (hello.get("switch") or {}).get("tripped")
    if rails:
        raise RailTripped("rails that have power", f"rails {rails} open since they passed their limits", DO)
