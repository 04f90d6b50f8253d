"""Values of a plan that are more than one quantity: mixes, points, ends, windows. `read` reads any value. Pure."""

import math
import re
from collections.abc import Callable
from typing import NamedTuple

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean
from ssdrig.plan import quantity
from ssdrig.plan.document import shown
from ssdrig.plan.formula import VALUES
from ssdrig.plan.kinds import cut_filesystems

RULES = ("pts", "wa", "never")  # "never": for a variant without a rule, which its time ends
JUDGED = ("pts", "never")  # valid rules for a window
RULED = ("iops",)  # what a rule that ends a load can watch
ENDS = ("steady", "written", "ios", "time", "cliff")
OF_A_RULE = ("steady", "value", "track", "from", "record", "spaced", "after", "spare")
SPARE = ("used", "any")  # what a rule asks of the spare area
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
WINDOW = re.compile(r"(all|until cliff)|(from|last) (\S+) (%|[a-z]+)|(\S+ [a-z]+)\.\.(\S+ [a-z]+)")
SHARED = re.compile(r"[a-z][a-z0-9.:-]{0,39}")
LIMIT = re.compile(r"(\S+) ([<>]) (.+)")
MOST_POINTS = 10_000  # of one step
LONGEST_TEXT = 400  # characters


class Wrong(ValueError):
    """A value that its key cannot have: expected, seen, do, as in errors.py; the place is the caller's to add."""

    def __init__(self, expected: str, seen: str, do: str):
        super().__init__(expected)
        self.expected, self.seen, self.do = expected, seen, do


class Until(NamedTuple):
    """What ends a step or a repeat: a `rule` on a `value` (of a load) or on `track` (points of a repeat), each record
    `record_s` long and begun every `spaced_s`, once `after` has been written; a number of bytes `written`; a number of
    `ios`;
    `time_s`; or the `cliff`. `judged`: the first round of a repeat that the rule uses; `past_spare`: the spare area has
    to be used up, too (plan/rules/spare.py)."""

    rule: str | None = None
    value: str | None = None
    track: tuple[str, ...] = ()
    record_s: float | None = None
    spaced_s: float | None = None
    after: quantity.Amount | None = None
    written: quantity.Amount | None = None
    time_s: float | None = None
    cliff: bool = False
    judged: int = 1
    ios: int | None = None
    past_spare: bool = True


class Span(NamedTuple):
    """A window's stretch of its step: from and to as shares (0 to 1) or seconds; None is the step's beginning or end. A
    negative number counts from the end. `cliff`: it ends where the fresh drive's plateau does. `exact`: there is none
    where the step ended before it."""

    from_share: float | None = None
    from_s: float | None = None
    to_s: float | None = None
    cliff: bool = False
    exact: bool = False


class Limit(NamedTuple):
    """A condition on a value of a point: `value` is less ("<") or more (">") than `number`, in the unit of the value
    (formula.VALUES); `words`: as in the plan."""

    value: str
    sign: str
    number: float
    words: str


def read(value, kind: str, key: str = "the value"):
    """`value` of the plan's `key` as `kind`, of this module or of quantity.py. Raises Wrong."""
    if kind in READERS:
        return READERS[kind](value, key)
    try:
        return quantity.parse(value, kind)
    except ValueError as error:
        raise wrong(str(error), value, key, quantity.advice(value, kind)) from None


def wrong(expected: str, value, key: str, do: str = "see schemas/plan.md") -> Wrong:
    """The error for `key`, such as "qd" or "time in until", with an invalid value."""
    name, _, place = key.partition(" in ")
    quoted = key if " " in name else f"`{name}`{' in ' * bool(place)}{place}"
    return Wrong(f"{quoted} to be {expected}", shown(value) if " " in name else f"{name} = {shown(value)}", do)


def one_of(value, known, key: str) -> str:
    """A word of `known`. Raises Wrong."""
    if not isinstance(value, str) or value not in known:
        do = do_you_mean(value if isinstance(value, str) else shown(value), known)
        raise wrong(f"one of {', '.join(known) or '(none)'}", value, key, do)
    return value


def name(value, key: str = "name") -> str:
    """A name of a plan, a step, a variant, a window or a figure. Raises Wrong."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        likely = re.sub("[^a-z0-9]+", "-", value.lower()).strip("-")[:40] if isinstance(value, str) else ""
        do = f'do you mean "{likely}"?' if likely else 'write one such as "load"'
        raise wrong("made of a-z, 0-9 and -, at most 40 characters", value, key, do)
    return value


def blocks(value, key: str) -> tuple[tuple[int, int], ...]:
    """ "4 KiB", or a mix {"4 KiB" = 67, "8 KiB" = 33} of percentages: ((bytes, percent), …), largest share first."""
    if isinstance(value, str):
        return ((read(value, "block", key), 100),)
    if not isinstance(value, dict) or not value:
        words = 'a block size such as "4 KiB", or a mix such as { "4 KiB" = 67, "8 KiB" = 33 }'
        raise wrong(words, value, key, quantity.advice(value, "block"))
    mix = {}
    for size, share in value.items():
        size_bytes = read(size, "block", f"each size in {key}")
        if size_bytes in mix:
            raise wrong("a mix with each size once", value, key, f"add up the shares of {shown(size)}")
        mix[size_bytes] = read(share, "percent", f"the share of {shown(size)} in {key}")
    total = sum(mix.values())
    if total != 100 or not all(mix.values()):
        raise wrong(
            "a mix whose shares, each above 0, add up to 100", value, key, f"change the shares, which add up to {total}"
        )
    return tuple(sorted(mix.items(), key=lambda pair: -pair[1]))


def hot(value, key: str) -> tuple[tuple[int, int], ...]:
    """[[50, 5], [30, 15], [20, 80]]: 50 % of the I/Os go to the first 5 % of the range, and so on."""
    zones = []
    if isinstance(value, list) and all(isinstance(zone, list) and len(zone) == 2 for zone in value):
        zones = [
            (read(ios, "percent", f"each number in {key}"), read(size, "percent", f"each number in {key}"))
            for ios, size in value
        ]
    sums = [sum(zone[k] for zone in zones) for k in (0, 1)]
    if sums != [100, 100] or not all(min(zone) for zone in zones):
        words = (
            "zones [percent of the I/Os, percent of the range] such as [[50, 5], [30, 15], [20, 80]], both 100 in all"
        )
        raise wrong(
            words, value, key, f"change the zones, whose sums are {sums[0]} and {sums[1]}; leave out those of 0"
        )
    return tuple(zones)


def shares(value, key: str) -> dict[str, int]:
    """{ random = 299, flush = 50 }: words, each with a whole number above 0, in proportion to which they come."""
    if not isinstance(value, dict) or not value or not all(SHARED.fullmatch(word) for word in value):
        raise wrong("a table of words and whole numbers such as { random = 299, flush = 50 }", value, key)
    return {word: read(weight, "count", f"{shown(word)} in {key}") for word, weight in value.items()}


def bound(value, key: str) -> float | None:
    """ "p < 1 %" -> 0.01, or "never" -> None: how small the chance of a failing cut must be known to be."""
    from ssdrig.plan.rules import chance

    if value == "never":
        return None
    try:
        return chance.parse_until(value if isinstance(value, str) else "")
    except UsageError as error:
        raise wrong(f'"never", or {error.expected}', value, key, 'write it like "p < 1 %"') from None


def filesystems(value, key: str) -> list[list[str]]:
    """ "ext4 xfs:nobarrier" -> [["ext4", ""], ["xfs", "nobarrier"]]: file systems, with mount options."""
    try:
        return cut_filesystems.parse(value if isinstance(value, str) else "")
    except ValueError as error:
        raise wrong(str(error), value, key, 'write it like "ext4 xfs btrfs"') from None


def place(value, key: str) -> int | str:
    """ "1 GiB", or "behind"."""
    return value if value == "behind" else read(value, "bytes", key)


def smart(value, key: str) -> float | str:
    """ "60 s", "edges" or "none"."""
    if isinstance(value, str) and value in ("edges", "none"):
        return value
    try:
        return read(value, "time", key)
    except Wrong as error:
        raise Wrong(
            f'{key} to be the time between SMART polls such as "60 s", or "edges" or "none"', error.seen, error.do
        ) from None


def over(value, key: str) -> list[dict[str, list]]:
    """[{ read = [100, 0] }, { block = ["4 KiB"] }]: the first key changes slowest. Values are as the plan writes
    them."""
    if not isinstance(value, list) or not value or not all(isinstance(axis, dict) and len(axis) == 1 for axis in value):
        raise wrong("a list of tables with one key each, such as [{ read = [100, 0] }, { qd = [1, 32] }]", value, key)
    seen: set[str] = set()
    for axis in value:
        ((swept, points),) = axis.items()
        if swept in seen:
            raise Wrong(f"each key once in {key}", f"{shown(swept)[1:-1]} twice", "put all of its values in one list")
        if not isinstance(points, list) or not points or not all(type(point) in (int, str) for point in points):
            raise wrong('a list of single values such as [1, 32] or ["4 KiB", "8 KiB"]', points, f"{swept} in {key}")
        for point in points:
            if points.count(point) > 1:
                raise Wrong(f"each value of {swept} once in {key}", f"{shown(point)} twice", "leave one out")
        seen.add(swept)
    count = math.prod(len(points) for axis in value for points in axis.values())
    if count > MOST_POINTS:
        raise Wrong(f"at most {MOST_POINTS} points", f"{count} in {key}", "sweep fewer values")
    return value


def until(value, key: str) -> list[Until]:
    """[{ steady = "pts", … }, { time = "6 h" }]: the first that is met ends the step."""
    if not isinstance(value, list) or not value or not all(isinstance(entry, dict) for entry in value):
        raise wrong('a list of ends such as [{ steady = "pts", value = "iops" }, { time = "6 h" }]', value, key)
    untils: list[Until] = []
    used: set[str] = set()
    for entry in value:
        kinds = [end for end in ENDS if end in entry]
        if len(kinds) != 1:
            do = do_you_mean(next(iter(entry), ""), ENDS) if not kinds else "give each its own table"
            raise Wrong(f"each end in {key} to be one of {', '.join(ENDS)}", shown(entry), do)
        (kind,) = kinds
        known = OF_A_RULE if kind == "steady" else (kind,)
        for word in entry:
            if word not in known:
                raise Wrong(f"keys of {kind} in {key}", shown(word), do_you_mean(word, known))
        if kind in used:
            raise Wrong(f"each end once in {key}", f"{kind} twice", "leave one out")
        used.add(kind)
        untils.append(_end(entry, kind, key))
    return untils


def _end(entry: dict, kind: str, key: str) -> Until:
    if kind == "steady":
        return _rule(entry, key)
    if kind == "written":
        return Until(written=read(entry["written"], "amount", f"written in {key}"))
    if kind == "ios":
        return Until(ios=None if entry["ios"] == "never" else read(entry["ios"], "count", f"ios in {key}"))
    if kind == "time":
        return Until(time_s=read(entry["time"], "time", f"time in {key}"))
    if entry["cliff"] is not True:
        raise wrong("true", entry["cliff"], f"cliff in {key}", "write cliff = true, or leave it out")
    return Until(cliff=True)


def _rule(entry: dict, key: str) -> Until:
    rule = one_of(entry["steady"], RULES, f"steady in {key}")
    if ("track" in entry) == ("value" in entry):
        raise Wrong(
            f"steady in {key} to have either value (in a load) or track (in a repeat)",
            shown(entry),
            'add value = "iops" or track = ["iops read=0 block=4KiB"]',
        )
    times = {k: read(entry[k], "time", f"{k} in {key}") for k in ("record", "spaced") if k in entry}
    after = read(entry["after"], "amount", f"after in {key}") if "after" in entry else None
    past = one_of(entry.get("spare", "used"), SPARE, f"spare in {key}") == "used"
    if "value" in entry:
        if rule == "wa":
            raise wrong(
                "pts or never together with value", rule, f"steady in {key}", 'write track = ["wa"], in a repeat'
            )
        if "from" in entry:
            raise wrong("value without from", entry["from"], f"from in {key}", "from is for a repeat: its first round")
        if times.get("spaced", math.inf) < times.get("record", 60.0):
            raise wrong("no less than record", entry["spaced"], f"spaced in {key}", "records must not overlap")
        value = one_of(entry["value"], RULED, f"value in {key}")
        return Until(rule, value, (), times.get("record"), times.get("spaced"), after, past_spare=past)
    track = entry["track"]
    if not isinstance(track, list) or not track or not all(isinstance(words, str) and words.split() for words in track):
        raise wrong('a list of points such as ["iops read=0 block=4KiB"]', track, f"track in {key}")
    if times or after:
        raise Wrong(
            f"track without record, spaced or after in {key}",
            shown({k: entry[k] for k in ("record", "spaced", "after") if k in entry}),
            "leave them out: the record of a repeat is one round",
        )
    judged = read(entry["from"], "count", f"from in {key}") if "from" in entry else 1
    return Until(rule, None, tuple(track), judged=judged, past_spare=past)


def windows(value, key: str) -> dict[str, Span]:
    """{ all = "all", steady = "last 20 %" }: names and their stretches, see span()."""
    if not isinstance(value, dict):
        raise wrong('a table such as { all = "all", steady = "last 20 %" }', value, key)
    return {
        name(window, f"each name in {key}"): span(stretch, f"{window} in {key}") for window, stretch in value.items()
    }


def span(value, key: str = "window") -> Span:
    """One window's stretch: "all", "from 70 %", "from 1400 s", "last 20 %", "last 400 s", "until cliff",
    "10 s..60 s"."""
    forms = 'a window such as "all", "from 70 %", "last 400 s", "until cliff" or "10 s..60 s"'
    words = wrong(forms, value, key, "write it in one of these forms, with a unit and within the step")
    match = WINDOW.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise words
    whole, side, number, unit, begin, end = match.groups()
    try:
        if whole:
            return Span(cliff=whole == "until cliff")
        if side and unit == "%":
            share = (quantity.parse(f"{number} %", "range").percent or 0) / 100
            if side == "from" and share == 1:
                raise words
            return Span(from_share=share if side == "from" else 1 - share)
        if side:
            seconds = quantity.parse(f"{number} {unit}", "time" if side == "last" else "pause")
            return Span(from_s=seconds if side == "from" else -seconds)
        pair = quantity.parse(begin, "pause"), quantity.parse(end, "time")
    except ValueError:
        raise words from None
    if pair[0] >= pair[1]:
        raise words
    return Span(from_s=pair[0], to_s=pair[1])


def judge(value, key: str) -> dict[str, str]:
    """{ window = "steady", rule = "pts" }: judged and printed, ends nothing."""
    if not isinstance(value, dict) or set(value) != {"window", "rule"}:
        raise wrong('a table such as { window = "steady", rule = "pts" }', value, key)
    one_of(value["rule"], JUDGED, f"rule in {key}")
    if not isinstance(value["window"], str):
        raise wrong('the name of a window, or a stretch such as "last 20 %"', value["window"], f"window in {key}")
    return value


def points(value, key: str) -> list[dict]:
    """[{ at = "max", where = "lat_mean < 5 ms" }, { at = "mid" }, { at = "min", threads = 1, qd = 1 }]; `where` is a
    Limit, and check.py compares the other keys with the points that there are."""
    if not isinstance(value, list) or not value or not all(isinstance(point, dict) for point in value):
        raise wrong('a list such as [{ at = "max", where = "lat_mean < 5 ms" }, { at = "mid" }]', value, key)
    for point in value:
        at = one_of(point.get("at"), ("max", "mid", "min"), f"at in {key}")
        if [other.get("at") for other in value].count(at) > 1:
            raise Wrong(f"each point once in {key}", f"{at} twice", "leave one out")
    return [
        {**point, **({"where": limit(point["where"], f"where in {key}")} if "where" in point else {})}
        for point in value
    ]


def limit(value, key: str = "where") -> Limit:
    """ "lat_mean < 5 ms" -> Limit("lat_mean", "<", 5000.0, …), in the unit of the value. Raises Wrong."""
    match = LIMIT.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise wrong('a limit such as "lat_mean < 5 ms" or "iops > 1000"', value, key)
    limited, sign, amount = match.groups()
    unit = VALUES[one_of(limited, VALUES, f"the value of {key}")][1]
    if unit == "µs":
        return Limit(limited, sign, read(amount, "pause", f"the limit of {key}") * 1e6, value)
    number = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,12})?) ?(.*)", amount)
    if not number or number[2] not in ("", unit):
        raise wrong(f"a number{' and ' + unit if unit else ''}", amount, f"the limit of {key}", "correct it")
    return Limit(limited, sign, float(number[1]), value)


def text(value, key: str) -> str:
    """One line of text for the user."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > LONGEST_TEXT:
        raise wrong(f"one line of text, at most {LONGEST_TEXT} characters", value, key, f'write {key} = "…"')
    return value


READERS: dict[str, Callable] = {
    **{
        "blocks": blocks,
        "hot": hot,
        "place": place,
        "smart": smart,
        "over": over,
        "until": until,
        "windows": windows,
        "span": span,
    },
    **{
        "judge": judge,
        "points": points,
        "shares": shares,
        "bound": bound,
        "filesystems": filesystems,
        "text": text,
        "path": text,
        "file": text,
    },
    "value": lambda value, key: one_of(value, VALUES, key),
}
