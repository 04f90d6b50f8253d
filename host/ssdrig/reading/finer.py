"""What is asked of the samples of a run beside the seconds of its steps: first when, then what was found there."""

from collections.abc import Sequence
from pathlib import Path

from ssdrig.plan import shows as plan_shows
from ssdrig.reading import cuts, filling, kept
from ssdrig.reading.row import Row
from ssdrig.reading.rundata import RunData


def read(shows: Sequence[dict], base: RunData, rows: Sequence[Row], run: Path) -> list:
    """Objects with `edges_ns` (host times of which the energy is needed), and put(base, powers), which puts what is
    found into `found` of their row: of the steps, and of the views that ask for more."""
    folders = {folder for folder in plan_shows.folders().values() if hasattr(folder, "asks")}
    of_views = [each for folder in sorted(folders, key=lambda of: of.__name__) for each in folder.asks(shows, rows)]
    of_steps = [*filling.read(base, rows, run / "fio"), *cuts.read_power(base, rows), *kept.read(base, rows, run)]
    return [*of_steps, *of_views]
