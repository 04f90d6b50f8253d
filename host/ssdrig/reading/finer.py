"""What is asked of the samples of a run beside the seconds of its steps: first when, then what was found there."""

from collections.abc import Sequence
from pathlib import Path

from ssdrig.reading import cuts, filling, heating, kept, sleep_states
from ssdrig.reading.row import Row
from ssdrig.reading.rundata import RunData


def read(shows: Sequence[dict], base: RunData, rows: Sequence["Row"], run: Path) -> list:
    """Objects with `edges_ns` (host times of which the energy is needed), and put(base, powers), which puts what is
    found into `found` of their row."""
    within = [*filling.read(base, rows, run / "fio"), *heating.read(shows, rows), *sleep_states.read(shows, rows)]
    return [*within, *cuts.read_power(base, rows), *kept.read(base, rows, run)]
