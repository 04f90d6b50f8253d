"""The two ranges of a rail (wire.py): samples of each are converted by facts of their own; of conversions in
which the bypass moves it is known what flowed at least and at most. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

HIGH, LOW, MOVING = 0, 1, 2  # last two bits of a config (wire.py)
CONFIGS = 256
CHANGE = 2.0  # times the current before it, at which a rail may have been by the time that the bypass closes


class Moves(NamedTuple):
    """Conversions between two samples in which the bypass moves."""

    number: int
    W: float  # sum of the estimates
    bound_W: float  # sum of by how much each may be off


def low(facts: dict) -> dict | None:
    """What converts the samples of a rail's low range, from its entry of H; None where it has one range. Its "low": the
    resistance that the sensor sees then, its tolerance, and what the threshold's circuit gives the rail past it."""
    own = facts.get("low")
    if not own:
        return None
    lines = facts.get("calibration") or {}
    return {
        **{name: value for name, value in facts.items() if name != "low"},
        **{"shunt_uOhm": own["shunt_uOhm"], "shunt_tolerance_ppm": own["shunt_tolerance_ppm"]},
        **{"feed_nA": own.get("feed_nA", 0), "amplifier_nA": 0, "range": LOW},
        "current_lsb_pA": facts["current_lsb_pA"] * facts["shunt_uOhm"] / own["shunt_uOhm"],
        # the chip's bus voltage and the leads are the same
        "calibration": {name: lines[name] for name in ("V", "lead") if name in lines} or None,
    }


def is_low(facts: dict) -> bool:
    """Whether these facts convert a low range."""
    return facts.get("range") == LOW


def is_moving(facts: dict) -> bool:
    """Whether these facts belong to conversions without a range."""
    return facts.get("range") == MOVING


def by_config(rails: Iterable[dict]) -> dict[tuple[int, int], dict]:
    """{(rail, config): facts} of the entries of H; of a rail with two ranges all ids that its stretches may have, those
    of the high one last."""
    out: dict[tuple[int, int], dict] = {}
    for facts in rails:
        of_low = low(facts)
        if of_low is None:
            out[facts["rail"], facts["config"]] = facts
        else:
            for of, ranged in ((facts | {"range": MOVING}, MOVING), (of_low, LOW), (facts, HIGH)):
                out |= dict.fromkeys(((facts["rail"], config) for config in range(ranged, CONFIGS, 4)), of)
    return out


def moves(
    readings: list[tuple[float, float]], ratio: float, watts: tuple[float, float], in_low: tuple[bool, bool]
) -> Moves:
    """What flowed in conversions in which the bypass moved. readings: (V, A as one of the high range); ratio: of what
    the sensor sees in the low range to that; watts, in_low: of the samples before and after.

    The sensor sees more of what flows while the bypass is open, so A is the most that flowed, A / ratio the least.
    Where the bypass closes, the reading holds ratio times the current before: A less (ratio - 1) times that current is
    the least. Where it opens, the current rests: what A has beyond ratio times that flowed besides."""
    total_W = bound_W = 0.0
    for volts, most_A in readings:
        before_A, after_A = (abs(W) / volts if volts > 0 else 0.0 for W in watts)
        most_A = max(0.0, most_A)
        least_A = most_A / ratio
        if in_low[0]:
            least_A = max(least_A, most_A - (ratio - 1) * CHANGE * before_A)
        elif in_low[1]:
            most_A, least_A = after_A + max(0.0, most_A - ratio * after_A), min(after_A, most_A)
        total_W += volts * (most_A + least_A) / 2
        bound_W += volts * (most_A - least_A) / 2
    return Moves(len(readings), total_W, bound_W)
