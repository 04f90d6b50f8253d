"""What no single key of a plan can show: exactly one end, points that fit, rules where they can hold, names that
exist. Pure; each raises UsageError."""

import math
from collections.abc import Iterable, Mapping, Sequence

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean
from ssdrig.load.trace_published import ONE_PASS
from ssdrig.plan import kinds, values
from ssdrig.plan.document import shown
from ssdrig.plan.formula import AT_ONCE
from ssdrig.plan.kinds import idle
from ssdrig.plan.kinds.keys import Key
from ssdrig.plan.rules import steady
from ssdrig.plan.step import Step, every, taken, value_text

NOT_SWEPT = ("over", "until", "windows", "judge", "resume")
MOST_ACTS = 20_000  # some seconds of checks


def key_value(value, spec: Key, key: str):
    """The value of a key: one of its words, or of its kind. Raises values.Wrong."""
    return values.one_of(value, spec.words, key) if spec.words else values.read(value, spec.kind, key)


def step(checked: Step, where: str, outer: Mapping[str, list]) -> None:
    """One step; those inside it have been checked. `outer`: what the repeat around it sweeps."""
    kind = kinds.KINDS[checked.do]
    if checked.do != "repeat":
        _points(checked.do, checked.axes, where)
    swept = {**{key: outer[key] for key in taken(checked, kind, outer)}, **checked.axes}
    for key in checked.axes:
        if key in outer:
            raise UsageError(
                "each key swept once", f"{key} swept in {where} and in the repeat around it", "leave one of them out"
            )
    for key in swept:
        if key in checked.source:
            raise UsageError(f"`{key}` either set or swept", f"both in {where}", "leave one out")
    _ends(checked, set(swept), where)
    rules = [entry for entry in checked.keys.get("until", ()) if isinstance(entry, values.Until) and entry.rule]
    if checked.do == "repeat":
        _repeat(checked, rules, where)
    elif any(entry.track for entry in rules):
        raise UsageError("`track` only in a repeat", f"`track` in {where}", 'write value = "iops" instead')
    if checked.do == "load":
        _load(checked, set(swept), where)
    if checked.do == "replay":
        _replay(checked, set(swept), where)
    if checked.do == "cuts":
        kinds.KINDS["cuts"].check(checked.keys, where)
    if checked.do == "recall":
        kinds.KINDS["recall"].check(checked.keys, where)
    if checked.do == "idle" and ("most" in checked.keys) != ("until" in checked.keys):
        seen = "`most` without `until`" if "most" in checked.keys else "`until` without `most`"
        raise UsageError("`until` and `most` together", f"{seen} in {where}", "add the other, or leave both out")
    if checked.do == "idle" and "least" in checked.keys and "until" not in checked.keys:
        raise UsageError("`least` only with `until`", f"`least` alone in {where}", "leave it out")
    if checked.do == "idle" and "until" in checked.keys:
        least_s, most_s = idle.span_s(checked.keys)
        if most_s < least_s:
            seen = f"most = {shown(checked.source['most'])} in {where}"
            raise UsageError(f"`most` of at least `least`, {least_s:g} s", seen, "allow more time")


def plan(steps: Iterable[Step], where: str) -> None:
    """Checks between steps. Raises UsageError."""
    steps = list(steps)
    if (count := sum(map(_points_of, steps))) > MOST_ACTS:
        raise UsageError(
            f"at most {MOST_ACTS} points of all steps together", f"{count} in {where}", "sweep fewer values"
        )
    if sum(entry.do == "cuts" for entry in steps) > 1:
        raise UsageError("one cuts step in a plan", f"several in {where}", "put their aims into one")
    before: dict[str, Step] = {}
    picked: set[str] = set()
    for top in steps:
        place = f"{where}, step {top.path}"
        for point in top.axes.get("at", []):
            if point not in picked:
                do = do_you_mean(str(point), picked) if picked else "put a choose step before it"
                expected = "a point that the choose step before it has picked"
                raise UsageError(expected, f"at = {shown(point)} in {place}", do)
        if top.do == "choose":
            _choose(top, before, place)
            picked = {point["at"] for point in top.keys["points"]}
        before |= {entry.path: entry for entry in every([top])}


def _points_of(checked: Step) -> int:
    """How many acts a step becomes; of a repeat, in one round."""
    return math.prod(map(len, checked.axes.values())) * (sum(map(_points_of, checked.steps)) if checked.steps else 1)


def _ends(checked: Step, swept: set[str], where: str) -> None:
    ends = getattr(kinds.KINDS[checked.do], "ENDS", ())
    given = [key for key in ends if key in checked.keys or key in swept]
    if checked.do == "set":
        if not given:
            raise UsageError(f"at least one of {', '.join(ends)}", f"none in {where}", "set at least one")
    elif ends and len(given) != 1:
        lacking = "name what to play" if checked.do == "replay" else "add what ends it"
        do = "leave out all but one" if given else lacking
        raise UsageError(f"exactly one of {', '.join(ends)}", f"{' and '.join(given) or 'none'} in {where}", do)


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


def _repeat(checked: Step, rules: list[values.Until], where: str) -> None:
    if ("most" in checked.keys) != ("until" in checked.keys):
        seen = "`most` without `until`" if "most" in checked.keys else "`until` without `most`"
        raise UsageError(
            "`until` and `most` together", f"{seen} in {where}", "give the rule and the largest number of rounds"
        )
    for entry in checked.keys.get("until", ()):
        if not entry.track:
            raise UsageError(
                "a repeat that ends by a rule on points of it",
                f"another end in {where}",
                'write until = [{ steady = "pts", track = [ … ] }]; most limits the rounds',
            )
    needed = max((rule.judged - 1 + steady.ROUNDS for rule in rules if rule.rule != "never"), default=1)
    if checked.keys.get("most", needed) < needed:
        expected = f"at least {needed} rounds, which the rule needs"
        raise UsageError(expected, f"most = {checked.keys['most']} in {where}", "allow more rounds")
    for rule in rules:
        for words in rule.track:
            _track(checked, words, where, ("wa",) if rule.rule == "wa" else AT_ONCE)
    for child in checked.steps:
        if child.do in ("choose", "wear", "cuts", "retain", "recall"):
            raise UsageError(f"{child.do} on the first level", f"one in {where}", "put it after the repeat")
    for key, points in checked.axes.items():
        children = [child for child in checked.steps if key in kinds.KINDS[child.do].KEYS]
        if key == "off" and not any("on" in {**child.keys, **child.axes} for child in children):
            seen = f"off swept in {where}, and no `on` in the steps inside"
            raise UsageError("`on` in a step whose pauses are swept", seen, "add the length of the bursts: on = …")
        if not children and key != "at":
            known = {key for child in checked.steps for key in kinds.KINDS[child.do].KEYS}
            raise UsageError(
                "`over` to sweep a key of a step inside", f"{shown(key)[1:-1]} in {where}", do_you_mean(key, known)
            )
        for child in children:
            _points(child.do, {key: points}, where)


def _track(checked: Step, words: str, where: str, known_values: Sequence[str]) -> None:
    """ "iops read=0 block=4KiB": one of these values, then the point: each key that one load inside sweeps, with one of
    its values."""
    value, *pairs = words.split()
    place = f"{shown(words)} of track in {where}"
    if value not in known_values:
        expected = f"track to begin with one of {', '.join(known_values)}, which are known when a round ends"
        raise UsageError(expected, f"{shown(value)} in {place}", do_you_mean(value, known_values))
    point = {key: wanted for key, _, wanted in (pair.partition("=") for pair in pairs)}
    loads = [child for child in checked.steps if child.do in ("load", "replay")]
    known = {key for child in loads for key in child.axes}
    for key, wanted in point.items():
        if key not in known:
            raise UsageError("a key that a load inside sweeps", f"{shown(key)} in {place}", do_you_mean(key, known))
        there = [value_text(value) for child in loads for value in child.axes.get(key, [])]
        if wanted not in there:
            raise UsageError(
                f"{key} to be one of {', '.join(there)}", f"{shown(wanted)} in {place}", "name a point that is swept"
            )
    fits = [child.path for child in loads if set(child.axes) == set(point)]
    if len(point) != len(pairs) or len(fits) != 1:
        do = "name each key that the load sweeps" if not fits else "give the loads different keys to sweep"
        raise UsageError("track to name one point of one load", f"{len(fits)} loads for {place}", do)


def _load(checked: Step, swept: set[str], where: str) -> None:
    keys = checked.keys
    has = set(keys) | swept
    if ("on" in has) != ("cycles" in has):
        seen = "`on` without `cycles`" if "on" in has else "`cycles` without `on`"
        raise UsageError("`on` and `cycles` together", f"{seen} in {where}", "write on = …, off = …, cycles = …")
    own = has - swept | set(checked.axes)
    if "off" in own and "on" not in has:
        raise UsageError("`on` together with `off`", f"`off` alone in {where}", "add the length of the bursts: on = …")
    if "/" in checked.path and "resume" in checked.source:
        raise UsageError("`resume` in the repeat", f"`resume` in {where}, inside of it", "move it to the repeat")
    if "hot" in keys and keys.get("pattern") == "sequential":
        raise UsageError('hot zones with pattern = "random"', f"a sequential pattern in {where}", "leave out hot")
    if "handles" in has and "hot" not in keys:
        raise UsageError("`handles` of hot zones", f"no `hot` in {where}", "add hot = …, or write handle = 0")
    if {"handle", "handles"} & has and (keys["sync"] != "none" or keys["engine"] != "auto" or "read_qd" in has):
        expected = "placed writes without sync, read_qd and engine: fio has its own engine for them"
        raise UsageError(expected, f"another load in {where}", "leave those keys out")
    if {"handle", "handles"} <= has:
        raise UsageError("`handle` or `handles`", f"both in {where}", "leave one out")
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
            expected = (
                '`read_qd` only with random writes of one thread, with `rate` and `time`, detail at most "minute"'
            )
            raise UsageError(expected, f"another load in {where}", "correct the load, or leave out read_qd")
    if keys["arrival"] == "poisson" and "rate" not in has:
        raise UsageError(
            "`rate` together with `arrival`", f'arrival = "poisson" alone in {where}', 'add rate = "20 kIOPS"'
        )
    ends = keys.get("until", ())
    if ends and not any(entry.time_s for entry in ends):
        raise UsageError(
            "a longest time among the ends of a load",
            f"none in {where}",
            'add { time = "6 h" } to `until`: another end may never come',
        )
    _windows(checked, where)


def _replay(checked: Step, swept: set[str], where: str) -> None:
    made = [key for key in ("seed", "ios") if key in checked.source or key in swept]
    if "file" in checked.keys and made:
        seen = f"`{made[0]}` and `file` in {where}"
        raise UsageError(f"`{made[0]}` only for a generated trace", seen, f"leave out {made[0]}")
    if checked.keys.get("bench") == ONE_PASS and ("ios" in made or checked.keys["timing"] != "closed"):
        expected = f'{ONE_PASS} whole, with timing = "closed"'
        raise UsageError(expected, f"another in {where}", 'leave out `ios`, write timing = "closed"')
    if "/" in checked.path and "resume" in checked.source:
        raise UsageError("`resume` in the repeat", f"`resume` in {where}, inside of it", "move it to the repeat")


def _windows(checked: Step, where: str) -> None:
    keys, windows = checked.keys, checked.keys.get("windows", {})
    if checked.source.get("judge") is not None:
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


def _choose(checked: Step, before: Mapping[str, Step], where: str) -> None:
    """Checks that `from` is a load swept in a repeat, and that the points match its axes. Raises UsageError."""
    path = checked.keys["from"]
    swept = {checked.path: checked for checked in before.values() if checked.axes and "/" in checked.path}
    if path not in swept:
        do = do_you_mean(path, swept) if swept else "put a repeat with a swept load before it"
        raise UsageError("`from` to be a swept load of a repeat before it", f"from = {shown(path)} in {where}", do)
    if "at" in before[path.rpartition("/")[0]].axes:
        seen = f"{path}, which a repeat over operating points sweeps, in {where}"
        raise UsageError("`from` to sweep all of its points on its own", seen, "pick from the first sweep")
    axes = swept[path].axes
    limits = [point["where"].value for point in checked.keys["points"] if "where" in point]
    for value in (checked.keys["value"], *limits):
        if value not in AT_ONCE:
            expected = f"points picked by {', '.join(AT_ONCE)}, which are known when a round ends"
            raise UsageError(expected, f"{value} in {where}", do_you_mean(value, AT_ONCE))
    for point in checked.keys["points"]:
        for key, value in point.items():
            if key in ("at", "where"):
                continue
            place = f"{shown(key)[1:-1]} = {shown(value)} in points of {where}"
            if key not in axes:
                raise UsageError(
                    f"at, where or a key that {path} sweeps", place, do_you_mean(key, ["at", "where", *axes])
                )
            if value not in axes[key]:
                do = do_you_mean(value_text(value), [value_text(value) for value in axes[key]])
                raise UsageError(f"a value that {path} has", place, do)
