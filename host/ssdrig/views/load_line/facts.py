"""Facts of the view `load-line` for a headline."""

from collections.abc import Mapping

from ssdrig.base.uncertain import Uncertain
from ssdrig.reading import trust
from ssdrig.reading.row import Table
from ssdrig.views.context import place
from ssdrig.views.headline import Fact, lacking
from ssdrig.views.load_line.html import fit, measured


def load_line(run: Table, show: Mapping, path: str) -> dict[str, Fact]:
    """Power to keep the drive awake, and energy of one more I/O."""
    line = fit(measured(run, path, place(dict(show))))
    awake = lacking(str(line.why)) if line.P0_W is None else Uncertain(line.P0_W, line.P0_error_W)
    more = lacking(str(line.why)) if line.e_uJ is None else Uncertain(line.e_uJ, line.e_error_uJ)
    return {
        "awake": Fact(awake, "W", better="less", rests=trust.OF_POWER),
        "io": Fact(more, "µJ", better="less", rests=trust.OF_POWER),
    }


FACTS = {"load-line": load_line}
