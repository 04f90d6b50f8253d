"""The view `episodes`: short events of one kind, cut out of a step's power and laid on each other."""

from collections.abc import Iterator, Sequence

from ssdrig.plan.shows import View

VIEWS = {"episodes": View(("of",), ("title",), claims=True)}


def asks(shows: Sequence[dict], rows: Sequence) -> Iterator:
    """The steps shown: the energy of cells around each event is needed (reading/table.py)."""
    from ssdrig.views.episodes import figures

    return figures.read(shows, rows)
