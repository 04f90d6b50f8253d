"""Figures that the project promises. Each module here has BENCHES = {name: (what it shows, function)};
a function takes nothing and returns a list of Figure. `./ssdrig selfcheck NAME` prints them and fails when one misses
its limit."""

import functools
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import NamedTuple, TypeVar

from ssdrig.base import prctl, progress, words

T = TypeVar("T")


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


OSCILLATOR = 0.01  # a sensor's own clock may be slow by so much


def at_its_rate(name: str, value: float, rail: dict) -> Figure:
    """Samples a second of a rail against what its configuration makes: 1 / conversion_ns of the hello's entry."""
    return at_least(name, value, "1/s", round((1 - OSCILLATOR) * 1e9 / rail["conversion_ns"], 1))


def with_me() -> Callable[[], None]:
    """A preexec_fn: the process is told to end (SIGTERM, so that it carries out its teardown) when this one is gone,
    also by kill -9."""
    return functools.partial(prctl.die_with_parent, os.getpid(), signal.SIGTERM)


def in_turn(things: Iterable[T], name: str, count: int | None = None) -> Iterator[T]:
    """Each of the things, with the progress of the bench `name` and its ETA on stderr. count: of things without a
    length."""
    show, began = progress.Progress(), time.monotonic()
    of = len(things) if isinstance(things, Sized) else count or 1
    for done, thing in enumerate(things):
        if done:
            eta_s = (time.monotonic() - began) / done * (of - done)
            show.show(f"{name}: {done} of {of}  ETA {words.clock(eta_s)}")
        yield thing
    if show.live:
        show.show("")
