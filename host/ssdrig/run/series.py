"""Several runs of one plan: the mean of each figure and its standard deviation; a table over over-provisioning."""

import statistics
from collections.abc import Sequence
from pathlib import Path

SHOWN = ("iops_mean", "lat_mean_us", "power_mean_W", "energy_uJ_per_io", "wa")


def mean_and_s(values: Sequence[float]) -> tuple[float, float]:
    """The mean and the sample standard deviation (n - 1) of at least two values."""
    return statistics.fmean(values), statistics.stdev(values)


def lines(folders: Sequence[Path]) -> list[str]:
    """What a person reads of runs that are done: one line a figure of the window `steady`, "IOPS 9661 ± 12 (n = 3)"."""
    from ssdrig import analysis
    from ssdrig.analysis.figures import figures_of

    each = [figures_of(analysis.load(folder)) for folder in folders]
    found = []
    for key in SHOWN:
        known = [value for figures in each if isinstance(value := figures.get(key), int | float)]
        if len(known) > 1:
            mean, s = mean_and_s(known)
            found.append(f"{key:20} {mean:12.6g} ± {s:.2g} (n = {len(known)})")
    return found or ["the plan has no load that figures are of: see ./ssdrig report"]


def over_op(folders: Sequence[Path]) -> list[str]:
    """What a person reads of runs with different over-provisioning: one row each."""
    from ssdrig import analysis
    from ssdrig.analysis.figures import figures_of
    from ssdrig.report import over_op as table

    return table.lines([figures_of(analysis.load(folder)) for folder in folders])
