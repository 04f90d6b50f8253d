"""The aims of cuts as a plan words them: where in the drive's work a cut falls. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from ssdrig.base.errors import UsageError

# aim -> (what its range means, least and most that may be asked for, default), in the unit of the range
RANGES = {
    "flush": ("ms from its submission to the cut", -1000.0, 1000.0, (-2.0, 2.0)),
    "fua": ("ms from its submission to the cut", -1000.0, 1000.0, (-2.0, 2.0)),
    "trim": ("ms from its submission to the cut", -1000.0, 1000.0, (-2.0, 2.0)),
    "bytes": ("MiB acknowledged and not flushed", 0.0, 1e6, (0.0, 64.0)),
    "age": ("ms from the last write to the cut", 0.0, 100_000.0, (0.0, 1000.0)),
    "recovery": ("ms from the return of power to a second cut", 1.0, 100_000.0, (5.0, 2000.0)),
}
SIGNED = ("burst", "quiet")  # fired by the board, by the drive's current
AGAIN = "again"  # a power cycle without a write: what the one before has hurt may show only now
PLAIN = ("random", AGAIN, *SIGNED)


class Aim(NamedTuple):
    """One stratum of a campaign; low and high in the unit of RANGES, None where it has no range."""

    name: str
    low: float | None = None
    high: float | None = None


def without_fua(aims: Mapping[str, int]) -> dict[str, int]:
    """Aims and their shares where the kernel sends no FUA: those at FUA are at the FLUSH that it sends in its place."""
    out: dict[str, int] = {}
    for text, share in aims.items():
        name, colon, given = text.partition(":")
        to = f"flush{colon}{given}" if name == "fua" else text
        out[to] = out.get(to, 0) + share
    return out


def parse(text: str) -> Aim:
    """ "random", "flush", "flush:-2..2", "age:0..1000", "bytes:8". Raises UsageError."""
    name, _, given = text.partition(":")
    if name not in RANGES and name not in PLAIN:
        raise UsageError(f"an aim of {', '.join([*PLAIN, *RANGES])}", repr(text), "correct the name")
    if name in PLAIN:
        if given:
            raise UsageError(f"{name} without a range", repr(text), "leave the range out")
        return Aim(name)
    means, least, most, default = RANGES[name]
    if not given:
        return Aim(name, *default)
    try:
        low, high = (float(part) for part in (given.split("..") if ".." in given else (given, given)))
        if not least <= low <= high <= most:
            raise ValueError
    except ValueError:
        do = f"write for example {name}:{default[0]:g}..{default[1]:g}"
        raise UsageError(f"{means} from {least:g} to {most:g}", repr(text), do) from None
    return Aim(name, low, high)
