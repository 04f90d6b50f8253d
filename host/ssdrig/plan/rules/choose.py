"""Which points of a sweep become operating points. Pure: the same rounds give the same points, in a resumed run too.

The figures of a point are those of its last five rounds together, all of the same length: the mean of its rates, the
mean latency weighted by the I/Os. `max` and `min` have the largest and the smallest value of the points that a limit
allows; `mid` is nearest to the middle between them (SNIA SSS PTS 2.0, DIRTH). Of equal points the first one counts."""

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ssdrig.plan.rules.steady import ROUNDS

if TYPE_CHECKING:
    from ssdrig.plan import values

Seen = dict[str, dict[int, Mapping[str, float]]]  # {act's label: {round: its means}}


class Pick(NamedTuple):
    """The point at "max", "mid" or "min" in the plan's words, its value and all of its figures; or None, and `why`."""

    at: str
    point: Mapping | None
    value: float | None = None
    figures: Mapping[str, float] | None = None
    why: str | None = None


def remember(seen: Seen, label: str, number: int, means: Mapping[str, float]) -> None:
    """Record round `number` of a point. Known later rounds belong to a repeat that was restarted, and are dropped."""
    earlier = {older: means_of for older, means_of in seen.get(label, {}).items() if older < number}
    seen[label] = earlier | {number: means}


def figures(rounds: Mapping[int, Mapping[str, float]]) -> dict[str, float]:
    """The figures of a point of its last five rounds; none of a point without I/O."""
    last = [rounds[number] for number in sorted(rounds)[-ROUNDS:]]
    last = [means for means in last if means.get("iops")]
    if not last:
        return {}
    averages = {key: statistics.fmean(means[key] for means in last) for key in last[0]}
    weights = [means["iops"] for means in last]
    return averages | {"lat_mean": statistics.fmean((means["lat_mean"] for means in last), weights)}


def picks(wanted: Sequence[Mapping], points: Mapping[str, Mapping], value: str, seen: Seen) -> dict[str, Pick]:
    """The operating points `wanted` (of each "at", its limit "where", and keys that narrow the choice) of the swept
    `points` {label: point}, in their order, by `value`."""
    known = {label: means_of for label in points if (means_of := figures(seen.get(label, {})))}
    limits = {point["at"]: point["where"] for point in wanted if "where" in point}
    allowed: dict[str, list[str]] = {}
    for point in wanted:
        fixed = {key: value_of for key, value_of in point.items() if key not in ("at", "where")}
        fits = [label for label in known if fixed.items() <= points[label].items()]
        allowed[point["at"]] = [label for label in fits if _within(known[label], limits.get(point["at"]))]
    picks: dict[str, Pick] = {}
    for at in sorted(allowed, key=("max", "min", "mid").index):
        labels = allowed[at]
        if not labels:
            picks[at] = Pick(at, None, why=f"no point has {limits[at].words}" if at in limits else "no point has I/O")
        elif at == "mid":
            picks[at] = _mid(labels, points, known, value, picks)
        else:
            best = (max if at == "max" else min)(labels, key=lambda label: known[label][value])
            picks[at] = Pick(at, points[best], known[best][value], known[best])
    return {point["at"]: picks[point["at"]] for point in wanted}


def _mid(
    labels: Sequence[str],
    points: Mapping[str, Mapping],
    known: Mapping[str, Mapping[str, float]],
    value: str,
    picks: Mapping[str, Pick],
) -> Pick:
    values = [known[label][value] for label in labels]
    ends = []
    for at, extreme in (("max", max(values)), ("min", min(values))):
        end = picks[at].value if at in picks else extreme
        if end is None:
            return Pick("mid", None, why=f"no {at}")
        ends.append(end)
    middle = sum(ends) / 2
    best = min(labels, key=lambda label: abs(known[label][value] - middle))
    return Pick("mid", points[best], known[best][value], known[best])


def _within(means: Mapping[str, float], limit: "values.Limit | None") -> bool:
    if limit is None:
        return True
    return means[limit.value] < limit.number if limit.sign == "<" else means[limit.value] > limit.number
