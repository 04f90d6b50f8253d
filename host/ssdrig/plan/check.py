"""What no single key of a plan can show: exactly one end, points that fit, rules where they can hold, names that
exist. Pure; each raises UsageError."""

import math
from collections.abc import Iterable, Mapping, Sequence

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean
from ssdrig.plan import kinds, values
from ssdrig.plan.document import shown
from ssdrig.plan.formula import AT_ONCE
from ssdrig.plan.kinds import idle
from ssdrig.plan.kinds.keys import Key
from ssdrig.plan.rules import steady
from ssdrig.plan.step import Step, every, taken, told

NOT_SWEPT = ("over", "until", "windows", "judge", "resume")
MOST_ACTS = 20_000  # some seconds of checks


def key_value(value, spec: Key, key: str):
    """The value of a key: one of its words, or of its kind. Raises values.Wrong."""
    return values.one_of(value, spec.words, key) if spec.words else values.read(value, spec.kind, key)


def step(found: Step, where: str, outer: Mapping[str, list]) -> None:
    """One step; those inside it have been checked. `outer`: what the repeat around it sweeps."""
    kind = kinds.KINDS[found.do]
    if found.do != "repeat":
        _points(found.do, found.axes, where)
    swept = {**{key: outer[key] for key in taken(found, kind, outer)}, **found.axes}
    for key in found.axes:
        if key in outer:
            raise UsageError(
                "each key swept once", f"{key} swept in {where} and in the repeat around it", "leave one of them out"
            )
    for key in swept:
        if key in found.said:
            raise UsageError(f"`{key}` either said or swept", f"both in {where}", "leave one out")
    _ends(found, set(swept), where)
    rules = [entry for entry in found.keys.get("until", ()) if isinstance(entry, values.Until) and entry.rule]
    if found.do == "repeat":
        _repeat(found, rules, where)
    elif any(entry.track for entry in rules):
        raise UsageError("`track` only in a repeat", f"`track` in {where}", 'write value = "iops" instead')
    if found.do == "load":
        _load(found, set(swept), where)
    if found.do == "replay":
        _replay(found, set(swept), where)
    if found.do == "cuts":
        kinds.KINDS["cuts"].check(found.keys, where)
    if found.do == "recall":
        kinds.KINDS["recall"].check(found.keys, where)
    if found.do == "idle" and ("most" in found.keys) != ("until" in found.keys):
        seen = "`most` without `until`" if "most" in found.keys else "`until` without `most`"
        raise UsageError("`until` and `most` together", f"{seen} in {where}", "add the other, or leave both out")
    if found.do == "idle" and "least" in found.keys and "until" not in found.keys:
        raise UsageError("`least` only with `until`", f"`least` alone in {where}", "leave it out")
    if found.do == "idle" and "until" in found.keys:
        least_s, most_s = idle.span_s(found.keys)
        if most_s < least_s:
            seen = f"most = {shown(found.said['most'])} in {where}"
            raise UsageError(f"`most` of at least `least`, {least_s:g} s", seen, "allow more time")


def plan(found: Iterable[Step], where: str) -> None:
    """What steps say of one another."""
    found = list(found)
    if (count := sum(map(_points_of, found))) > MOST_ACTS:
        raise UsageError(
            f"at most {MOST_ACTS} points of all steps together", f"{count} in {where}", "sweep fewer values"
        )
    if sum(each.do == "cuts" for each in found) > 1:
        raise UsageError("one cuts step in a plan", f"several in {where}", "put their aims into one")
    before: dict[str, Step] = {}
    picked: set[str] = set()
    for top in found:
        place = f"{where}, step {top.path}"
        for point in top.axes.get("at", []):
            if point not in picked:
                do = do_you_mean(str(point), picked) if picked else "put a choose step before it"
                expected = "a point that the choose step before it has picked"
                raise UsageError(expected, f"at = {shown(point)} in {place}", do)
        if top.do == "choose":
            _choose(top, before, place)
            picked = {point["at"] for point in top.keys["points"]}
        before |= {each.path: each for each in every([top])}


def _points_of(found: Step) -> int:
    """How many acts a step becomes; of a repeat, in one round."""
    return math.prod(map(len, found.axes.values())) * (sum(map(_points_of, found.steps)) if found.steps else 1)


def _ends(found: Step, swept: set[str], where: str) -> None:
    ends = getattr(kinds.KINDS[found.do], "ENDS", ())
    said = [key for key in ends if key in found.keys or key in swept]
    if found.do == "set":
        if not said:
            raise UsageError(f"at least one of {', '.join(ends)}", f"none in {where}", "say what to set")
    elif ends and len(said) != 1:
        lacking = "say what is played" if found.do == "replay" else "say how it ends"
        do = "leave out all but one" if said else lacking
        raise UsageError(f"exactly one of {', '.join(ends)}", f"{' and '.join(said) or 'none'} in {where}", do)


def _points(kind: str, axes: Mapping[str, list], where: str) -> None:
    """Each value that `over` gives to a key is one that the key may have."""
    known = kinds.KINDS[kind].KEYS
    for key, points in axes.items():
        if key not in known or key in NOT_SWEPT:
            do = do_you_mean(key, [key for key in known if key not in NOT_SWEPT])
            raise UsageError(f"`over` to sweep keys of a {kind} step", f"{shown(key)[1:-1]} in {where}", do)
        seen: list = []
        for point in points:
            try:
                read = key_value(point, known[key], key)
            except values.Wrong as error:
                raise UsageError(error.expected, f"{error.seen} in over of {where}", error.do) from error
            if read in seen:
                raise UsageError(
                    f"each value of {key} once", f"{shown(point)} again in over of {where}", "leave one out"
                )
            seen.append(read)


def _repeat(found: Step, rules: list[values.Until], where: str) -> None:
    if ("most" in found.keys) != ("until" in found.keys):
        seen = "`most` without `until`" if "most" in found.keys else "`until` without `most`"
        raise UsageError(
            "`until` and `most` together", f"{seen} in {where}", "say the rule, and how many rounds at most"
        )
    for entry in found.keys.get("until", ()):
        if not entry.track:
            raise UsageError(
                "a repeat that ends by a rule on points of it",
                f"another end in {where}",
                'write until = [{ steady = "pts", track = [ … ] }]; most limits the rounds',
            )
    needed = max((rule.judged - 1 + steady.ROUNDS for rule in rules if rule.rule != "never"), default=1)
    if found.keys.get("most", needed) < needed:
        expected = f"at least {needed} rounds, which the rule needs"
        raise UsageError(expected, f"most = {found.keys['most']} in {where}", "allow more rounds")
    for rule in rules:
        for words in rule.track:
            _track(found, words, where, ("wa",) if rule.rule == "wa" else AT_ONCE)
    for child in found.steps:
        if child.do in ("choose", "wear", "cuts", "retain", "recall"):
            raise UsageError(f"{child.do} on the first level", f"one in {where}", "put it behind the repeat")
    for key, points in found.axes.items():
        children = [child for child in found.steps if key in kinds.KINDS[child.do].KEYS]
        if key == "off" and not any("on" in {**child.keys, **child.axes} for child in children):
            seen = f"off swept in {where}, and no `on` in the steps inside"
            raise UsageError("`on` in a step whose pauses are swept", seen, "say how long the bursts are: on = …")
        if not children and key != "at":
            known = {key for child in found.steps for key in kinds.KINDS[child.do].KEYS}
            raise UsageError(
                "`over` to sweep a key of a step inside", f"{shown(key)[1:-1]} in {where}", do_you_mean(key, known)
            )
        for child in children:
            _points(child.do, {key: points}, where)


def _track(found: Step, words: str, where: str, known_values: Sequence[str]) -> None:
    """ "iops read=0 block=4KiB": one of these values, then the point: each key that one load inside sweeps, with one of
    its values."""
    value, *pairs = words.split()
    place = f"{shown(words)} of track in {where}"
    if value not in known_values:
        expected = f"track to begin with one of {', '.join(known_values)}, which are known when a round ends"
        raise UsageError(expected, f"{shown(value)} in {place}", do_you_mean(value, known_values))
    point = {key: wanted for key, _, wanted in (pair.partition("=") for pair in pairs)}
    loads = [child for child in found.steps if child.do in ("load", "replay")]
    known = {key for child in loads for key in child.axes}
    for key, wanted in point.items():
        if key not in known:
            raise UsageError("a key that a load inside sweeps", f"{shown(key)} in {place}", do_you_mean(key, known))
        there = [told(value) for child in loads for value in child.axes.get(key, [])]
        if wanted not in there:
            raise UsageError(
                f"{key} to be one of {', '.join(there)}", f"{shown(wanted)} in {place}", "name a point that is swept"
            )
    fits = [child.path for child in loads if set(child.axes) == set(point)]
    if len(point) != len(pairs) or len(fits) != 1:
        do = "name each key that the load sweeps" if not fits else "give the loads different keys to sweep"
        raise UsageError("track to name one point of one load", f"{len(fits)} loads for {place}", do)


def _load(found: Step, swept: set[str], where: str) -> None:
    keys = found.keys
    has = set(keys) | swept
    if ("on" in has) != ("cycles" in has):
        seen = "`on` without `cycles`" if "on" in has else "`cycles` without `on`"
        raise UsageError("`on` and `cycles` together", f"{seen} in {where}", "write on = …, off = …, cycles = …")
    own = has - swept | set(found.axes)
    if "off" in own and "on" not in has:
        raise UsageError("`on` beside `off`", f"`off` alone in {where}", "say how long the bursts are: on = …")
    if "/" in found.path and "resume" in found.said:
        raise UsageError("`resume` in the repeat", f"`resume` in {where}, inside of it", "move it to the repeat")
    if "hot" in keys and keys.get("pattern") == "sequential":
        raise UsageError('hot zones with pattern = "random"', f"a sequential pattern in {where}", "leave out hot")
    if keys.get("offset") == "behind" and (keys["pattern"], keys["threads"], "amount" in has) != (
        "sequential",
        1,
        True,
    ):
        seen = f"another load in {where}"
        raise UsageError('offset = "behind" of a sequential load of one thread with an amount', seen, "leave it out")
    if "every" in has and (keys["qd"], keys["threads"]) != (1, 1):
        raise UsageError("`every` of one I/O at a time", f"several in {where}", "leave out qd and threads")
    if "every" in has and {"rate", "on"} & has:
        raise UsageError("`every` without `rate` or `on`", f"both in {where}", "leave one out")
    if "read_qd" in has:
        plain = keys.get("read") == 0 and keys.get("pattern") == "random" and keys["threads"] == 1
        if (
            not plain
            or not {"rate", "time"} <= has
            or {"on", "every"} & has
            or keys.get("detail") in ("second", "fine")
        ):
            expected = '`read_qd` beside random writes of one thread, with `rate` and `time`, detail at most "minute"'
            raise UsageError(expected, f"another load in {where}", "correct the load, or leave out read_qd")
    if keys["arrival"] == "poisson" and "rate" not in has:
        raise UsageError("`rate` beside `arrival`", f'arrival = "poisson" alone in {where}', 'add rate = "20 kIOPS"')
    ends = keys.get("until", ())
    if ends and not any(entry.time_s for entry in ends):
        raise UsageError(
            "a longest time among the ends of a load",
            f"none in {where}",
            'add { time = "6 h" } to `until`: another end may never come',
        )
    _windows(found, where)


def _replay(found: Step, swept: set[str], where: str) -> None:
    made = [key for key in ("seed", "ios") if key in found.said or key in swept]
    if "file" in found.keys and made:
        seen = f"`{made[0]}` beside `file` in {where}"
        raise UsageError(f"`{made[0]}` only of a trace that is made", seen, f"leave out {made[0]}")
    if "/" in found.path and "resume" in found.said:
        raise UsageError("`resume` in the repeat", f"`resume` in {where}, inside of it", "move it to the repeat")


def _windows(found: Step, where: str) -> None:
    keys, windows = found.keys, found.keys.get("windows", {})
    if found.said.get("judge") is not None:
        words = keys["judge"]["window"]
        try:
            judged = windows[words] if words in windows else values.span(words)
        except values.Wrong as error:
            raise UsageError(
                '`judge` to name a window of the step, or a stretch such as "last 20 %"',
                f"window = {shown(words)} in {where}",
                do_you_mean(words, windows) if windows else "add windows, or write a stretch",
            ) from error
        windows = {**windows, f"window {shown(words)} of judge": judged}
    longest_s = keys.get("time") or next((entry.time_s for entry in keys.get("until", ()) if entry.time_s), None)
    for name, span in windows.items():
        if longest_s is not None and span.from_s is not None and span.from_s >= longest_s:
            raise UsageError(
                f"{name} to begin before the load ends, which it does after {longest_s:g} s at most",
                f"its begin at {span.from_s:g} s in {where}",
                "begin it earlier, or make the load longer",
            )


def _choose(found: Step, before: Mapping[str, Step], where: str) -> None:
    """`from` is a load that was swept in a repeat, and the points fit what it sweeps."""
    path = found.keys["from"]
    swept = {each.path: each for each in before.values() if each.axes and "/" in each.path}
    if path not in swept:
        do = do_you_mean(path, swept) if swept else "put a repeat with a swept load before it"
        raise UsageError("`from` to be a swept load of a repeat before it", f"from = {shown(path)} in {where}", do)
    if "at" in before[path.rpartition("/")[0]].axes:
        seen = f"{path}, which a repeat over operating points sweeps, in {where}"
        raise UsageError("`from` to sweep all of its points by itself", seen, "pick from the first sweep")
    axes = swept[path].axes
    limits = [point["where"].value for point in found.keys["points"] if "where" in point]
    for value in (found.keys["value"], *limits):
        if value not in AT_ONCE:
            expected = f"points picked by {', '.join(AT_ONCE)}, which are known when a round ends"
            raise UsageError(expected, f"{value} in {where}", do_you_mean(value, AT_ONCE))
    for point in found.keys["points"]:
        for key, value in point.items():
            if key in ("at", "where"):
                continue
            place = f"{shown(key)[1:-1]} = {shown(value)} in points of {where}"
            if key not in axes:
                raise UsageError(
                    f"at, where or a key that {path} sweeps", place, do_you_mean(key, ["at", "where", *axes])
                )
            if value not in axes[key]:
                do = do_you_mean(told(value), [told(value) for value in axes[key]])
                raise UsageError(f"a value that {path} has", place, do)
