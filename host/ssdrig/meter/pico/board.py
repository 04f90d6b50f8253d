"""Whether a greeting comes from the same board as an earlier one."""

from collections.abc import Mapping

OF_A_BOARD = ("board", "revision", "build", "simulated")  # stays as it is while the board runs
OF_A_RAIL = ("rail", "name", "chip", "shunt_uOhm")
NO_SERIAL = "the rig's board has no serial: another board of its kind in its place would not be noticed"


def differs(first: Mapping, other: Mapping) -> str:
    """What of a greeting shows another board than the first one, \"\" for the same. By their serials; boards that have
    none by what they are made of."""
    ours, theirs = first.get("serial"), other.get("serial")
    if ours or theirs:
        return "" if ours == theirs else f"serial {theirs or 'none'} instead of {ours or 'none'}"
    for key in OF_A_BOARD:
        if first.get(key) != other.get(key):
            return f"{key} {other.get(key)} instead of {first.get(key)}"
    if _rails(first) != _rails(other):
        return f"rails {_rails(other)} instead of {_rails(first)}"
    return ""


def _rails(hello: Mapping) -> list[tuple]:
    return sorted({tuple(row.get(key) for key in OF_A_RAIL) for row in hello.get("rails") or ()}, key=str)
