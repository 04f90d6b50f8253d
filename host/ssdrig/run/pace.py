"""The pace of a step: what its loop does each second."""

from collections.abc import Callable
from typing import NamedTuple

from ssdrig.plan.kinds.keys import smart_around


class Pace(NamedTuple):
    """The pace of a step: it ends after `bytes_to_do`, of which `begun_bytes` are done, or after `time_s` of drive
    time.
    `polled`: SMART is read during it, at its windows' `edges_s` and, where given, every `smart_s`. `rule`: states how
    far the rule is that may end it sooner."""

    step: str
    bytes_to_do: int | None = None
    time_s: float | None = None
    polled: bool = False
    edges_s: tuple[float, ...] = ()
    smart_s: float | None = None
    rule: Callable[[], str] = str
    begun_bytes: int = 0


def polled(keys, stage) -> bool:
    """Whether SMART is read around a load, which is then read before it here."""
    wanted = smart_around(keys, stage.round is not None)
    if wanted:
        with stage.stop.second_raises():
            stage.live.poll_smart("before")
    return wanted
