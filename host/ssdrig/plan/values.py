"""Values of a plan that are more than one quantity: points, ends, windows, mixes. Pure; ValueError says what was
expected."""

import re
from typing import NamedTuple

from ssdrig.plan import quantity

RULES = ("pts", "never")  # "never": a variant that has no rule says so, and its time ends it
WINDOW = re.compile(r"(all|until cliff)|(from|last) (\S+) (%|[a-z]+)|(\S+ [a-z]+)\.\.(\S+ [a-z]+)")


class Until(NamedTuple):
    """What ends a step or a repeat: a `rule` on a `value` (of a load) or on `track` (points of a repeat), each record
    `record_s` long and begun every `spaced_s`, once `after` has been written; so many bytes `written`; `time_s`; or the
    `cliff`."""

    rule: str | None = None
    value: str | None = None
    track: tuple[str, ...] = ()
    record_s: float | None = None
    spaced_s: float | None = None
    after: quantity.Amount | None = None
    written: quantity.Amount | None = None
    time_s: float | None = None
    cliff: bool = False


class Span(NamedTuple):
    """A window's stretch of its step: from and to as shares (0 to 1) or seconds; None is the step's beginning or end. A
    negative number counts from the end. `cliff`: it ends where the fresh drive's plateau does."""

    from_share: float | None = None
    from_s: float | None = None
    to_s: float | None = None
    cliff: bool = False


def blocks(value):
    """ "4 KiB", or a mix {"4 KiB" = 67, "8 KiB" = 33} of percentages: ((bytes, percent), …), largest share first."""
    if isinstance(value, str):
        return ((quantity.parse(value, "bytes"), 100),)
    if not isinstance(value, dict) or not value:
        raise ValueError('a block size such as "4 KiB", or a mix of them such as { "4 KiB" = 67, "8 KiB" = 33 }')
    mix = [(quantity.parse(size, "bytes"), quantity.parse(share, "percent")) for size, share in value.items()]
    if sum(share for _, share in mix) != 100 or not all(share for _, share in mix):
        raise ValueError("a mix of block sizes whose shares add up to 100")
    return tuple(sorted(mix, key=lambda pair: -pair[1]))


def hot(value) -> tuple[tuple[int, int], ...]:
    """[[50, 5], [30, 15], [20, 80]]: 50 % of the I/Os go to the first 5 % of the range, and so on."""
    words = "zones such as [[50, 5], [30, 15], [20, 80]]: percent of the I/Os, percent of the range, each 100 in all"
    try:
        zones = tuple((quantity.parse(ios, "percent"), quantity.parse(size, "percent")) for ios, size in value)
    except (TypeError, ValueError):
        raise ValueError(words) from None
    if not zones or any(sum(zone[k] for zone in zones) != 100 for k in (0, 1)) or not all(min(zone) for zone in zones):
        raise ValueError(words)
    return zones


def smart(value) -> float | str:
    """ "60 s", "edges" or "none"."""
    if value in ("edges", "none"):
        return value
    try:
        return quantity.parse(value, "time")
    except ValueError:
        raise ValueError('time between SMART polls such as "60 s", or "edges" or "none"') from None


def over(value) -> list[dict[str, list]]:
    """[{ read = [100, 0] }, { block = ["4 KiB"] }]: the first key changes slowest. Values are as the plan writes
    them."""
    words = "a list of tables with one key and its values each, such as [{ read = [100, 0] }, { qd = [1, 32] }]"
    if not isinstance(value, list) or not value:
        raise ValueError(words)
    keys = set()
    for axis in value:
        if not isinstance(axis, dict) or len(axis) != 1:
            raise ValueError(words)
        ((key, points),) = axis.items()
        if key in keys or not isinstance(points, list) or not points:
            raise ValueError(words)
        if len({repr(point) for point in points}) != len(points):
            raise ValueError(f"each value of {key} once")
        keys.add(key)
    return value


def until(value) -> list[Until]:
    """[{ steady = "pts", … }, { time = "6 h" }]: the first that is met ends the step."""
    words = 'a list such as [{ steady = "pts", track = ["iops read=0"] }, { written = "4 x" }, { time = "6 h" }]'
    if not isinstance(value, list) or not value or not all(isinstance(entry, dict) for entry in value):
        raise ValueError(words)
    found = []
    for entry in value:
        kinds = [key for key in ("steady", "written", "time", "cliff") if key in entry]
        known = {"steady", "value", "track", "record", "spaced", "after"} if kinds == ["steady"] else set(kinds)
        if len(kinds) != 1 or set(entry) - known:
            raise ValueError(words)
        if kinds == ["steady"]:
            found.append(_rule(entry))
        elif kinds == ["written"]:
            found.append(Until(written=quantity.parse(entry["written"], "amount")))
        elif kinds == ["time"]:
            found.append(Until(time_s=quantity.parse(entry["time"], "time")))
        elif entry["cliff"] is not True:
            raise ValueError("cliff = true")
        else:
            found.append(Until(cliff=True))
    return found


def _rule(entry: dict) -> Until:
    if entry["steady"] not in RULES:
        raise ValueError(f"a rule such as {', '.join(RULES)}")
    track = entry.get("track", [])
    if not isinstance(track, list) or not all(isinstance(words, str) and words.split() for words in track):
        raise ValueError('track as a list of points such as ["iops read=0 block=4KiB"]')
    if bool(track) == ("value" in entry):
        raise ValueError("a rule with value (of a load) or track (of a repeat)")
    times = {key: quantity.parse(entry[key], "time") for key in ("record", "spaced") if key in entry}
    value = quantity.parse(entry["value"], "word") if "value" in entry else None
    after = quantity.parse(entry["after"], "amount") if "after" in entry else None
    return Until(entry["steady"], value, tuple(track), times.get("record"), times.get("spaced"), after)


def windows(value) -> dict[str, Span]:
    """{ all = "all", steady = "last 20 %" }: "all", "from 70 %", "from 1400 s", "last 20 %", "last 400 s", "until
    cliff", "10 s..60 s"."""
    if not isinstance(value, dict):
        raise ValueError('windows such as { all = "all", steady = "last 20 %" }')
    return {name: span(text) for name, text in value.items()}


def span(text) -> Span:
    """One window's stretch."""
    words = 'a window such as "all", "from 70 %", "last 400 s", "last 20 %", "until cliff" or "10 s..60 s"'
    match = WINDOW.fullmatch(text) if isinstance(text, str) else None
    if not match:
        raise ValueError(words)
    whole, side, number, unit, begin, end = match.groups()
    try:
        if whole:
            return Span(cliff=whole == "until cliff")
        if side and unit == "%":
            share = (quantity.parse(f"{number} %", "range").percent or 0) / 100
            return Span(from_share=share if side == "from" else 1 - share)
        if side:
            seconds = quantity.parse(f"{number} {unit}", "time")
            return Span(from_s=seconds if side == "from" else -seconds)
        pair = quantity.parse(begin, "time"), quantity.parse(end, "time")
    except ValueError:
        raise ValueError(words) from None
    if pair[0] >= pair[1]:
        raise ValueError(words)
    return Span(from_s=pair[0], to_s=pair[1])


def judge(value) -> dict[str, str]:
    """{ window = "steady", rule = "pts" }: judged and printed, ends nothing."""
    if not isinstance(value, dict) or set(value) != {"window", "rule"} or value["rule"] not in RULES:
        raise ValueError('{ window = "steady", rule = "pts" }')
    if not isinstance(value["window"], str):
        raise ValueError("the name of a window, or a stretch")
    return value


def points(value) -> list[dict]:
    """[{ at = "max", where = "lat_mean < 5 ms" }, { at = "mid" }, { at = "min", threads = 1, qd = 1 }]."""
    words = 'points such as [{ at = "max", where = "lat_mean < 5 ms" }, { at = "min", threads = 1, qd = 1 }]'
    if not isinstance(value, list) or not value:
        raise ValueError(words)
    for point in value:
        if not isinstance(point, dict) or point.get("at") not in ("max", "mid", "min"):
            raise ValueError(words)
    return value


def text(value) -> str:
    """Words for a person."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text")
    return value


READERS = {
    "blocks": blocks,
    "hot": hot,
    "smart": smart,
    "over": over,
    "until": until,
    "windows": windows,
    "judge": judge,
    "points": points,
    "text": text,
    "path": text,
}


def read(value, kind: str):
    """`value` of a plan as `kind`, of this module or of quantity.py. Raises ValueError."""
    return READERS[kind](value) if kind in READERS else quantity.parse(value, kind)


FAMILIES = ({"count", "percent"}, {"bytes", "amount", "range"}, {"time"}, {"rate"}, {"word"}, {"span"})


def kind_of(value) -> str | None:
    """The kind that a parameter's default has, by its unit. None: neither a quantity nor a window."""
    for kind in ("count", "percent", "bytes", "time", "amount", "range", "rate", "word", "span"):
        try:
            span(value) if kind == "span" else quantity.parse(value, kind)
        except ValueError:
            continue
        return kind
    return None


def same_unit(one, other) -> bool:
    """Whether one value may stand for the other: "75 %" and "raw 75 %", "2 x" and "10 GiB" and "4 KiB", 32 and 0. What
    --set and a variant put in a parameter's place must be of its unit."""
    a, b = kind_of(one), kind_of(other)
    return any(a in family and b in family for family in FAMILIES)
