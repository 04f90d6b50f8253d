"""The keys of a step's kind, each with the kind of its value."""

from typing import NamedTuple


class Key(NamedTuple):
    """`kind`: one of plan/quantity.py, or of plan/values.py if it is not a single quantity. `default`: as in a plan;
    None: left out. `words`: all valid values. `needs`: ability of the bench that it requires."""

    kind: str
    default: object = None
    required: bool = False
    words: tuple[str, ...] = ()
    needs: str | None = None


RANGE = Key("range", "100 %")
ENGINE = Key("word", "auto", words=("auto", "libaio", "io_uring", "polled"))
CPUS = Key("word", "any", words=("any", "own"))
SMART = Key("smart", "60 s")  # time between two polls, or "edges", or "none"


def smart_around(keys, in_repeat: bool) -> bool:
    """Whether SMART is read around a load. Within a repeat it is read between the rounds, unless the plan asks for it
    at each load's edges."""
    when = keys.get("smart", "none")
    return when == "edges" or (when != "none" and not in_repeat)
