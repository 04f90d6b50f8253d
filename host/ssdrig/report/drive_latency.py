"""The section of a page on the drive's own latency monitor: its buckets next to the latencies measured at the host.
Pure."""

from html import escape

from ssdrig.reading import drive_latency
from ssdrig.reading.drive_latency import BUCKETS, DIRECTIONS, SEVERAL, Stretch
from ssdrig.reading.row import Table
from ssdrig.views.context import Cell, figure, number_table

LONGEST = "Longest by the drive"
HEADS = ((LONGEST, "ms"), ("P99.9 by the host", "ms"), ("Longest by the host", "ms"))
NOT_APART = "not counted apart, or no such I/O"


def section(table: Table, name: str = "") -> str:
    """ "" for a run of a drive without log C3h."""
    stretches = drive_latency.of(table)
    if not stretches:
        return ""
    title = "Latency monitor of the drive" + (f": {name}" if name else "")
    soft = (
        "What the drive itself counted between two readings of its log C3h (OCP), and what the host measured meanwhile:"
    )
    soft += " from submission to completion, with the host's own share."
    return (
        f'<section><h2>{escape(title)}</h2><p class="soft">{escape(soft)}</p>'
        f"{''.join(map(_table, stretches))}</section>"
    )


def _table(stretch: Stretch) -> str:
    drive, steps = stretch.drive, ", ".join(stretch.steps)
    if why := drive["why"]:
        return f'<p class="soft">{escape(f"{steps}: " if steps else "")}not known: {escape(why)}.</p>'
    edges = drive["thresholds_ms"]
    heads = [(f"{bucket}: from {ms}", "ms") for bucket, ms in zip(BUCKETS, edges, strict=True)]
    lines = []
    for direction in DIRECTIONS:
        counts = [Cell(words=str(count)) for count in drive["counts"][direction]]
        host = stretch.host[direction]
        why = SEVERAL if len(stretch.steps) > 1 else NOT_APART
        p999, longest = (None if us is None else us / 1000 for us in (host["p999_us"], host["max_us"]))
        own = Cell(words=in_words(drive["least_ms"][direction], drive["most_ms"][direction]))
        lines.append((direction, [*counts, own, Cell(p999, why=why), Cell(longest, why=NOT_APART)]))
    when = f"{steps}, readings at {figure(stretch.from_s)} and {figure(stretch.to_s)} s"
    return f"<h3>{escape(when)}</h3>{number_table('Command', [*heads, *HEADS], lines)}"


def in_words(least_ms: int | None, most_ms: int | None) -> str:
    """ "30 to 80": the bounds of the longest latency."""
    if least_ms is None:
        return f"below {most_ms}"
    return f"from {least_ms}" if most_ms is None else f"{least_ms} to {most_ms}"
