"""A rest that ended when the drive was quiet, by the samples that the run has kept.

While a run goes on, a second of power is one of the host's clock: the first one of a rest still holds the end of the
load before it. The samples tell where the step began. So its seconds are counted again by them, with the floor and the
band that were found live."""

from typing import TYPE_CHECKING

import numpy as np

from ssdrig.analysis.row_figures import WHOLE
from ssdrig.meter import uncertainty

if TYPE_CHECKING:
    from ssdrig.analysis.table import Row


def by_samples(row: "Row") -> None:
    """Put the seconds, energy and energy above the floor by the samples in place of what was seen live, where they
    cover the step. The floor is a figure of the whole of it."""
    event = row.found
    if event.get("kind") != "quiet" or not event.get("reached") or row.data is None:
        return
    watts, floor_W, band_W = row.data.power_mean_W, event.get("floor_W"), event.get("band_W")
    if not len(watts) or np.isnan(watts).any() or floor_W is None or band_W is None:
        return
    why = next((note for note in row.notes if uncertainty.UNTIMED in note), None)
    if why and (row.windows.get(WHOLE) or {}).get("energy_J") is None:  # live seconds are known even less
        unknown = dict.fromkeys(("after_s", "above_J", "energy_J"))
        row.found = event | unknown | {"time_why": why[why.index(uncertainty.UNTIMED) :]}
        return
    outside = np.flatnonzero(np.abs(watts - floor_W) > band_W)
    after_s = int(outside[-1]) + 1 if len(outside) else 0
    above_J = float((watts[:after_s] - floor_W).sum())
    energy_J = float(watts.sum())
    if whole := row.windows.get(WHOLE):
        whole["floor_W"] = floor_W
    row.found = event | {"after_s": after_s, "above_J": above_J, "energy_J": energy_J, "lasted_s": len(watts)}
