"""What the rig says when it opens a rail for its limits (frame T of wire.py), in words and as an error."""

from ssdrig.base.errors import RailTripped
from ssdrig.meter.said import document

KEYS = ("rail", "quantity", "seen_mA", "seen_mV", "limit_mA", "limit_mV", "over_us", "t_us", "opened_us")
DO = "take the drive off, find out why, then ./ssdrig rig on and rig clear; limits: protect in the rail's board.json"


def read(body: bytes) -> dict:
    """The fields of a T frame. ValueError, KeyError, TypeError: it is none."""
    said = {key: value for key, value in document(body).items() if key in KEYS}
    if said["quantity"] not in ("A", "V") or not isinstance(said["rail"], int):
        raise ValueError(f"a trip of {said['quantity']!r}")
    error(said)
    return said


def in_words(said: dict) -> str:
    """What was seen, and whether the rail is open now."""
    unit = said["quantity"]
    seen = f"{said[f'seen_m{unit}'] / 1000:.3f} {unit}"
    lasted = f" for {said['over_us'] / 1000:.1f} ms" if said.get("over_us") is not None else ""
    done = "the rig has opened it" if said["opened_us"] is not None else "it has no switch and is STILL ON"
    return f"{seen} on rail {said['rail']}{lasted}; {done}"


def error(said: dict) -> RailTripped:
    unit = said["quantity"]
    limit = f"at most {said[f'limit_m{unit}'] / 1000:g} {unit} on rail {said['rail']}"
    return RailTripped(limit, in_words(said), DO)


def refuse(hello: dict) -> None:
    """Raises RailTripped while a rail is open for its limits."""
    rails = (hello.get("switch") or {}).get("tripped")
    if rails:
        raise RailTripped("rails that have power", f"rails {rails} open since they passed their limits", DO)
