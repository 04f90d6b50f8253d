"""The view `thermal`: temperature and power of a drive through several steps."""

from collections.abc import Iterator, Sequence

from ssdrig.plan.shows import View

VIEWS = {"thermal": View(("of",), ("title", "top"), claims=True, facts=("K_per_W", "tau", "throttling"))}


def asks(shows: Sequence[dict], rows: Sequence) -> Iterator:
    """The steps shown: the energy of each of their seconds is needed (reading/table.py)."""
    from ssdrig.views.thermal import figures

    return figures.read(shows, rows)
