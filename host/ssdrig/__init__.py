"""ssdrig: shows what an SSD really does: power, I/O, wear and events of one run on one time axis."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ssdrig.publish.opened import Run

__version__ = "1.0.0"

# NumPy's OpenBLAS starts a thread for each further processor, which spins for 50 ms in every process, beside the load
# that is measured. Nothing here multiplies matrices that are large enough for two.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def open(run: str | os.PathLike[str]) -> "Run":
    """A run folder as NumPy arrays: `.figures .rows .seconds .samples .events .smart` (host/docs/use/python.md).

    run: the folder, or `latest` or an id of a run in ./runs. Raises UsageError, JournalError: both are SsdrigError."""
    from ssdrig.publish.opened import Run  # only here: to import ssdrig stays cheap

    return Run(run)
