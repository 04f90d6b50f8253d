"""A rest that ended when the drive was quiet, by the samples that the run has kept; and what its work costs.

A drive that has nothing to do stays awake for a while, too. So the energy above the floor is work only if it is
more than that of a rest of the same run in which nothing was written to the NAND.

While a run goes on, a second of power is one of the host's clock: the first one of a rest still holds the end of the
load before it. The samples show where the step began. So its seconds are counted again by them, with the floor and the
band that were found live."""

import math
from collections.abc import Sequence

import numpy as np

from ssdrig.base.uncertain import NO_DIFFERENCE, Uncertain, difference, mean_error, ratio
from ssdrig.base.words import digits
from ssdrig.meter import uncertainty
from ssdrig.reading.row import WHOLE, Row


def by_samples(row: "Row") -> None:
    """Put the seconds, energy and energy above the floor by the samples in place of the live values, where they
    cover the step. The floor is a figure of the whole of it."""
    event = row.result
    if event.get("kind") != "quiet" or not event.get("reached") or row.data is None:
        return
    watts, floor_W, band_W = row.data.power_mean_W, event.get("floor_W"), event.get("band_W")
    if not len(watts) or np.isnan(watts).any() or floor_W is None or band_W is None:
        return
    why = next((note for note in row.notes if uncertainty.UNTIMED in note), None)
    if why and (row.windows.get(WHOLE) or {}).get("energy_J") is None:  # live seconds are known even less
        unknown = dict.fromkeys(("after_s", "above_J", "energy_J"))
        row.result = event | unknown | {"time_why": why[why.index(uncertainty.UNTIMED) :]}
        return
    outside = np.flatnonzero(np.abs(watts - floor_W) > band_W)
    after_s = int(outside[-1]) + 1 if len(outside) else 0
    above_J = float((watts[:after_s] - floor_W).sum())
    energy_J = float(watts.sum())
    if whole := row.windows.get(WHOLE):
        whole["floor_W"] = floor_W
    row.result = event | {"after_s": after_s, "above_J": above_J, "energy_J": energy_J, "lasted_s": len(watts)}
    percent, scatter_W = (row.windows.get(WHOLE) or {}).get("power_uncertainty_percent"), mean_error(watts[after_s:])
    if percent is not None and scatter_W is not None:
        gain = percent / 100
        row.result["floor_error_W"] = math.hypot(gain * floor_W, scatter_W)
        if whole:
            whole["errors"] = {**(whole.get("errors") or {}), "floor_W": row.result["floor_error_W"]}
        row.result["above_error_J"] = math.hypot(gain * above_J, after_s * scatter_W, band_W)


def per_GB(rows: "Sequence[Row]", unit_bytes: int | None) -> None:
    """Put the energy of a GB that the drive wrote on its own (`J_per_GB`, `J_per_GB_error`, or `J_per_GB_why`) into
    each rest that became quiet. `unit_bytes`: of the drive's count of NAND bytes."""
    quiet = [
        row for row in rows if row.state == "done" and row.result.get("kind") == "quiet" and row.result.get("reached")
    ]
    idle = [_above(row) for row in quiet if row.result.get("nand_written_bytes") == 0]
    for row in quiet:
        nand = row.result.get("nand_written_bytes")
        if not nand or row.result.get("above_J") is None:
            continue
        if not idle:
            why = "no rest of this run without NAND writes shows the energy of staying awake"
            row.result |= {"J_per_GB": None, "J_per_GB_error": None, "J_per_GB_why": why}
            continue
        awake = max(idle, key=lambda rest: rest.value or 0.0)
        work = difference(_above(row), awake)
        error = None if unit_bytes is None else float(unit_bytes)
        cost = ratio(work, Uncertain(float(nand), error)).scaled(1e9)
        if cost.known and (cost.value or 0) <= (cost.error or 0):
            why = f"{digits(work.value, 3)} J more than a rest without NAND writes: no more than both are uncertain by"
            cost = Uncertain(None, None, NO_DIFFERENCE, why)
        row.result |= {"J_per_GB": cost.value, "J_per_GB_error": cost.error, "J_per_GB_why": cost.why or None}


def _above(row: "Row") -> Uncertain:
    return Uncertain(row.result["above_J"], row.result.get("above_error_J"))
