"""The view `thermal`: temperature and power of a drive through several steps."""

from collections.abc import Iterator, Sequence

from ssdrig.plan.shows import View

FACTS = {
    "K_per_W": "heating by the drive's power",
    "tau": "time constant of the temperature",
    "throttling": "throttling",
}
VIEWS = {"thermal": View(("of",), ("title", "top"), claims=True, facts=FACTS)}


def asks(shows: Sequence[dict], rows: Sequence) -> Iterator:
    """The steps shown: the energy of each of their seconds is needed (reading/table.py)."""
    from ssdrig.views.thermal import figures

    return figures.read(shows, rows)
