"""Several runs on a terminal: a row for each, with what tells them apart."""

from collections.abc import Sequence

from ssdrig.report.phases import text
from ssdrig.report.terms import BY_KEY, number, with_error

FROM = 4  # runs; fewer are columns beside each other
HEADS = (
    ("iops_mean", "IOPS"),
    ("zero_seconds", "stalls s"),
    ("clat_p99_us", "P99 µs"),
    ("power_mean_W", "W"),
    ("energy_uJ_per_io", "µJ/IO"),
    ("wa", "WA"),
    ("samples_lost", "lost"),
)
LEAST_NAME = 8


def lines(names: Sequence[str], figures: Sequence[dict], columns: int) -> list[str]:
    """The key figures of the window `steady`, a row for each run; names are shortened from the left where there is no
    room: what all share stands there."""
    rows = [["run", "state", *(head for _, head in HEADS)]]
    for name, of in zip(names, figures, strict=True):
        cells = [_cell(of, key) for key, _ in HEADS]
        rows.append([name, of["state"], *cells])
    over = max(map(len, text(rows))) - columns
    longest = max(LEAST_NAME, max(len(row[0]) for row in rows) - max(0, over))
    return text([[_shortened(row[0], longest), *row[1:]] for row in rows])


def _cell(of: dict, key: str) -> str:
    if key == "wa":
        return with_error(of[key], of["wa_error"], BY_KEY[key].places)
    return number(of[key], BY_KEY[key].places)


def _shortened(name: str, longest: int) -> str:
    return name if len(name) <= longest else f"…{name[len(name) - longest + 1 :]}"
