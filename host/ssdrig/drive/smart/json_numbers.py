"""Read numbers from foreign JSON: every reader returns None for a missing value, and for an implausible one (another
type, negative, beyond its field, rounded) None and a line of words in `unknown`.
Pure.

smartctl writes an integer of up to 64 bits as KEY, and with --json=v also as the string KEY_s when it is beyond 2^53,
where readers with floating point lose digits; the 128-bit counters of NVMe that need it also as KEY_le, 16 bytes little
endian (smartmontools json.cpp). The exact forms win."""

U64 = 2**64 - 1
U128 = 2**128 - 1


def inside(value, *path):
    """value[path[0]][path[1]] …, None if the path does not exist."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def objects(value) -> list[dict]:
    """The objects of a list; [] for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value) -> str | None:
    """A text without the spaces around it; None if it is empty or not a text."""
    return value.strip() or None if isinstance(value, str) else None


def whole(table, name: str, unknown: list[str], label: str, *, at_least: int = 0, at_most: int = U64) -> int | None:
    """The integer table[name], from its exact forms first. `label` names it in the words."""
    if not isinstance(table, dict):
        return None
    for value in (_of_string(table.get(f"{name}_s")), _of_bytes(table.get(f"{name}_le")), table.get(name)):
        if value is not None:
            break
    else:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        return refuse(unknown, label, value, "not a whole number")
    if not at_least <= value <= at_most:
        return refuse(unknown, label, value, "out of its range")
    return value


def refuse(unknown: list[str], label: str, value, why: str) -> int | None:
    """Record in `unknown` why `value` of `label` is refused. Returns None, to be used as the number."""
    if isinstance(value, int) and abs(value) > U128:
        shown = f"an integer of {value.bit_length()} bits"  # str() of 10^5000 raises
    else:
        shown = repr(value) if value is None or isinstance(value, int | float | str) else f"a {type(value).__name__}"
    unknown.append(f"{label}: {shown if len(shown) <= 40 else shown[:40] + '…'} is {why}")
    return None


def _of_string(value) -> int | None:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 39 else None


def _of_bytes(value) -> int | None:
    if not isinstance(value, list) or not 0 < len(value) <= 16:
        return None
    good = all(isinstance(byte, int) and not isinstance(byte, bool) and 0 <= byte <= 255 for byte in value)
    return int.from_bytes(bytes(value), "little") if good else None
