"""The ways in which a cut takes a rail down, as a person asks for them; what each does is in firmware/cut.py."""

import math
from collections.abc import Callable
from typing import NamedTuple


class Option(NamedTuple):
    """One of the fields that belong to a profile alone: fall_us is --fall-us."""

    field: str
    metavar: str
    help: str
    each_rail: bool = False  # a list of numbers, one for each rail

    @property
    def flag(self) -> str:
        return "--" + self.field.replace("_", "-")


class Profile(NamedTuple):
    options: tuple[Option, ...] = ()
    back_by_itself: bool = False  # power returns by itself: no --off-ms
    lasts_us: Callable[[dict], int] = lambda own: 0  # its own fields -> how long what it times takes
    # (t90_10_us, discharge_mOhm, its own fields) -> what a person wants to know of a rail for the next cut
    learnt: Callable[[float, float, dict], str] | None = None


def bulk_uF(t90_10_us: float, discharge_mOhm: float) -> float:
    """The capacitance of a rail whose crowbar brought it from 90 to 10 % in this time: t = R C ln 9, for a drive that
    draws little."""
    return t90_10_us / (math.log(9) * discharge_mOhm * 1e-3)


def _capacitance(t90_10_us: float, discharge_mOhm: float, own: dict) -> str:
    bulk = bulk_uF(t90_10_us, discharge_mOhm)
    return f"falls as {bulk:.0f} uF through {discharge_mOhm / 1000:g} Ohm (--bulk-uF for a ramp)"


def _as_asked(t90_10_us: float, discharge_mOhm: float, own: dict) -> str:
    return f"90 to 10 % was to take {0.8e-3 * own['fall_us']:.2f} ms"


DEFAULT = "crowbar"
PROFILES = {
    "float": Profile(),
    "crowbar": Profile(learnt=_capacitance),
    "ramp": Profile(
        (
            Option("fall_us", "US", "from all to nothing, at most 2000000; what the drive draws makes it faster"),
            Option("bulk_uF", "C", "capacitance of each --rail with its drive; a crowbar cut tells it", each_rail=True),
        ),
        lasts_us=lambda own: own["fall_us"],
        learnt=_as_asked,
    ),
    "glitch": Profile(
        (Option("glitch_us", "US", "how long it is off"),), back_by_itself=True, lasts_us=lambda own: own["glitch_us"]
    ),
    "dips": Profile(
        (
            Option("dips", "N", "how often it is off, 2 to 200 times; 2 s in all at most"),
            Option("down_us", "US", "how long it is off each time"),
            Option("up_us", "US", "how long it is on between two of them"),
        ),
        back_by_itself=True,
        lasts_us=lambda own: own["dips"] * (own["down_us"] + own["up_us"]),
    ),
}
