"""Figures that the project promises. Each module here has BENCHES = {name: (what it shows, function)};
a function takes nothing and returns a list of Figure. `./ssdrig bench NAME` prints them and fails when one misses
its limit."""

from typing import NamedTuple


class Figure(NamedTuple):
    """One promised number: value in unit, the bar as words (such as "<= 0.5"), and whether it is met."""

    name: str
    value: float
    unit: str
    bar: str
    met: bool


def at_most(name: str, value: float, unit: str, bar: float) -> Figure:
    return Figure(name, value, unit, f"<= {bar:g}", bool(value <= bar))


def at_least(name: str, value: float, unit: str, bar: float) -> Figure:
    return Figure(name, value, unit, f">= {bar:g}", bool(value >= bar))


def exactly(name: str, value: float, unit: str, bar: float) -> Figure:
    return Figure(name, value, unit, f"== {bar:g}", bool(value == bar))
