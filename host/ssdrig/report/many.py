"""Several runs on a terminal: a row for each, with what tells them apart."""

from collections.abc import Sequence

from ssdrig.report.phases import LEAST_NAME, shortened, text
from ssdrig.views import trust_strip
from ssdrig.views.terms import BY_KEY, with_error

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


def lines(names: Sequence[str], figures: Sequence[dict], columns: int) -> list[str]:
    """The key figures of the window `steady`, a row for each run; names are shortened from the left where there is no
    room: what all share stands there."""
    rows = [["run", "state", *(head for _, head in HEADS)]]
    for name, of in zip(names, figures, strict=True):
        cells = [_cell(of, key) for key, _ in HEADS]
        rows.append([name, of["state"], *cells])
    over = max(map(len, text(rows))) - columns
    longest = max(LEAST_NAME, max(len(row[0]) for row in rows) - max(0, over))
    lines_ = text([[shortened(row[0], longest), *row[1:]] for row in rows], width=columns)
    return lines_ + trust_strip.key_of_marks(lines_, columns)


def _cell(of: dict, key: str) -> str:
    error = of["wa_error"] if key == "wa" else None
    return trust_strip.marked(with_error(of[key], error, BY_KEY[key].places), key, of)
