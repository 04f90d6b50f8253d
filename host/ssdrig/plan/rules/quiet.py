"""When a drive at rest has ended its background work: its power is back at its floor and stays there. Pure.

The floor is the lowest mean of any window so far, and the drive is quiet when every second of the latest window is
within a band around it: 3 standard deviations of the floor's seconds (at most 10 % of it, because larger variations
are work, not noise), or 2 % of it, or 5 mW, whichever is widest. A drive is watched for two windows at least. Work that
draws the same power for longer than that looks like a floor; power alone cannot distinguish the two."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ssdrig.base.deferred import Deferred
from ssdrig.base.words import digits

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

LEAST_S = 120.0  # of drive time: two windows of a minute
SIGMAS, MOST_SHARE = 3.0, 0.10
SHARE, LEAST_W = 0.02, 0.005
DIGITS = 9  # exactly the band is within it


class Quiet(NamedTuple):
    """`reached`: whether the rule holds. `floor_W`, `band_W`; `after_s`: the second after the last one outside the
    band, 0 if there was none; `energy_J` of all seconds, `above_J`: the part of it above the floor until `after_s`.
    None where not known, and `why`."""

    reached: bool
    floor_W: float | None = None
    band_W: float | None = None
    after_s: int | None = None
    energy_J: float | None = None
    above_J: float | None = None
    why: str | None = None


def verdict(power_W: Sequence[float | None], least_s: float = LEAST_S) -> Quiet:
    """The rule on the mean power of each second so far, None without a sample: an unknown second is not quiet."""
    watts = np.array([np.nan if watt is None else watt for watt in power_W], float)
    window = max(1, round(least_s / 2))
    if len(watts) < 2 * window:
        return Quiet(False, why=f"{len(watts)} s are too few, the rule needs {2 * window} s")
    whole = np.convolve(np.isnan(watts), np.ones(window), "valid") < 0.5
    if not whole.any():
        return Quiet(False, why=f"no {window} s on end have power samples")
    done = np.concatenate([[0.0], np.cumsum(np.nan_to_num(watts))])
    means = np.where(whole, (done[window:] - done[:-window]) / window, np.inf)
    at = int(np.argmin(means))
    floor, sigma = float(means[at]), float(watts[at : at + window].std(ddof=1)) if window > 1 else 0.0
    band = max(min(SIGMAS * sigma, MOST_SHARE * floor), SHARE * floor, LEAST_W)
    outside = ~(np.round(np.abs(watts - floor) - band, DIGITS) <= 0)  # also true for unknown seconds
    after = int(np.flatnonzero(outside)[-1]) + 1 if outside.any() else 0
    known = not np.isnan(watts).any()
    why = None if known else f"{int(np.isnan(watts).sum())} s have no power samples"
    reached = len(watts) - after >= window
    return Quiet(
        reached,
        floor,
        band,
        after if reached else None,
        float(watts.sum()) if known else None,
        float((watts[:after] - floor).sum()) if known and reached else None,
        why
        if reached
        else f"power left the band of {1000 * band:.1f} mW around {digits(floor, 4)} W in the last {window} s",
    )
