"""One step of a plan, and the notation of its points. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One step of a plan, parameters put in. `keys`: those of its kind, read (plan/values.py), with defaults; `source`:
    the values in the plan's own words, for display and for points. `needs`: the required abilities of the bench; with
    `optional` the step is left out where that is missing."""

    name: str
    path: str
    do: str
    keys: dict
    source: dict
    needs: tuple[str, ...] = ()
    optional: bool = False
    steps: tuple["Step", ...] = ()

    @property
    def axes(self) -> dict[str, list]:
        """What `over` sweeps: {key: its values in the plan's words}, the first key slowest."""
        return {key: points for axis in self.source.get("over", []) for key, points in axis.items()}


def taken(step: Step, kind, outer: Iterable[str]) -> list[str]:
    """The keys swept by the repeat around a step that the step accepts: those of its kind, except a second end."""
    ends = getattr(kind, "ENDS", ())
    ended = {key for key in ends if key in step.keys}
    return [key for key in outer if key in kind.KEYS and not (key in ends and ended - {key})]


def every(steps: Iterable[Step]) -> Iterator[Step]:
    """The steps and those inside them, in the order of the plan."""
    for step in steps:
        yield step
        yield from every(step.steps)


def value_text(value) -> str:
    """A value of a point in one word: "4KiB", "65"."""
    return str(value).replace(" ", "")


def label(path: str, point: Mapping) -> str:
    """A step at one of its points: "rounds/point read=65 block=64KiB"."""
    return " ".join([path, *(f"{key}={value_text(value)}" for key, value in point.items())])
