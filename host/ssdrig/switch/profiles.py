"""The ways in which a cut takes a rail down, as the user asks for them; what each does is in firmware/cut.py."""

import math
import random
from collections.abc import Callable
from typing import NamedTuple


class Option(NamedTuple):
    """One of the fields that belong to a profile alone: fall_us is --fall TIME."""

    field: str
    metavar: str
    help: str
    each_rail: bool = False  # a list of numbers, one for each rail

    @property
    def unit(self) -> str | None:
        return self.field.partition("_")[2] or None

    @property
    def flag(self) -> str:
        return "--" + self.field.partition("_")[0]


class Profile(NamedTuple):
    options: tuple[Option, ...] = ()
    back_by_itself: bool = False  # power returns on its own: no --off
    lasts_us: Callable[[dict], int] = lambda own: 0  # its own fields -> duration of its timed part
    back_us: Callable[[dict], int | None] = lambda own: None  # how soon power returns on its own for the first time
    # (t90_10_us, discharge_mOhm, its own fields) -> a note on a rail for the next cut
    learnt: Callable[[float, float, dict], str] | None = None
    # (chance, capacitance of the rail, None: not known) -> its own fields for one of many cuts, None: not possible yet
    draw: Callable[[random.Random, float | None], dict | None] = lambda chance, bulk_uF: {}


def bulk_uF(t90_10_us: float, discharge_mOhm: float) -> float:
    """The capacitance of a rail whose crowbar brought it from 90 to 10 % in this time: t = R C ln 9, for a drive that
    draws little."""
    return t90_10_us / (math.log(9) * discharge_mOhm * 1e-3)


def _capacitance(t90_10_us: float, discharge_mOhm: float, own: dict) -> str:
    bulk = bulk_uF(t90_10_us, discharge_mOhm)
    return f"falls as {bulk:.0f} uF through {discharge_mOhm / 1000:g} Ohm (--bulk for a ramp)"


def _as_asked(t90_10_us: float, discharge_mOhm: float, own: dict) -> str:
    return f"90 to 10 % was to take {0.8e-3 * own['fall_us']:.2f} ms"


def _ramps(chance: random.Random, bulk_uF: float | None) -> dict | None:
    return {"fall_us": chance.choice([5_000, 50_000, 500_000]), "bulk_uF": [round(bulk_uF)]} if bulk_uF else None


def _log_uniform(chance: random.Random, least: float, most: float) -> int:
    return round(math.exp(chance.uniform(math.log(least), math.log(most))))


def _bounces(chance: random.Random, bulk_uF: float | None) -> dict:
    """A contact that bounces; or one in two: the same short glitch again and again."""
    up_us = _log_uniform(chance, 100, 10_000)
    if chance.random() < 0.5:
        return {"dips": chance.randint(20, 100), "down_us": _log_uniform(chance, 10, 300), "up_us": up_us}
    return {"dips": chance.randint(2, 8), "down_us": round(up_us * chance.uniform(0.3, 1.0)), "up_us": up_us}


DEFAULT = "crowbar"
PROFILES = {
    "float": Profile(),
    "crowbar": Profile(learnt=_capacitance),
    "ramp": Profile(
        (
            Option("fall_us", "TIME", "time from full to zero, at most 2s; the drive's own load makes it faster"),
            Option(
                "bulk_uF",
                "C",
                "capacitance of each --rail with its drive, e.g. 470uF; a crowbar cut shows it",
                each_rail=True,
            ),
        ),
        lasts_us=lambda own: own["fall_us"],
        learnt=_as_asked,
        draw=_ramps,
    ),
    "glitch": Profile(
        (Option("glitch_us", "TIME", "how long power is off"),),
        back_by_itself=True,
        lasts_us=lambda own: own["glitch_us"],
        back_us=lambda own: own["glitch_us"],
        draw=lambda chance, bulk_uF: {"glitch_us": _log_uniform(chance, 10, 20_000)},
    ),
    "dips": Profile(
        (
            Option("dips", "N", "number of dips, 2 to 200; at most 2 s in total"),
            Option("down_us", "TIME", "how long each dip lasts"),
            Option("up_us", "TIME", "how long power is on between two dips"),
        ),
        back_by_itself=True,
        lasts_us=lambda own: own["dips"] * (own["down_us"] + own["up_us"]),
        back_us=lambda own: own["down_us"],
        draw=_bounces,
    ),
}


def moment(us: int) -> dict:
    """Options of arm_and_cut: power is off for this long, timed by the rig, and returns on its own."""
    return {"profile": "glitch", "glitch_us": us}
