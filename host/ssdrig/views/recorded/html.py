"""The view of recordings: the requests to the drive, a column a recording."""

from collections.abc import Iterator

from ssdrig.reading.row import Row
from ssdrig.views.context import Context, by_column, panel

MB = 1e6
NO_TIME = "the kernel counts milliseconds, and these are too few"
NO_SUCH = "the kernel has no such count"
NO_ENERGY = "the host has no RAPL counters, or only root may read them"
Cells = list[tuple[float | None, str]]  # of each recording: value, why it is missing


def recorded(context: Context) -> str:
    """I/O, discards, flushes, queue, energy of the drive and of the host's processors of each step."""
    rows, heads = [], []
    for run, name in context.runs():
        for path in context.paths:
            for row in run.of(path):
                if row.found.get("kind") == "recorded":
                    rows.append(row)
                    heads.append(row.act.label + name)
    title = context.title("Requests to the drive")
    if not rows:
        return panel(title, "<p>nothing was recorded</p>")
    body = by_column(heads, lines_of(rows))
    soft = "Requests as the kernel gave them to the drive, merged and split; ssdrig wrote nothing to it."
    return panel(title, body, soft)


def lines_of(rows: list[Row]) -> Iterator[tuple[str, str, Cells]]:
    """Each figure: its name, its unit, and of each row (value, why it is missing)."""

    def of(key: str, scale: float = 1.0, why: str = NO_SUCH) -> Cells:
        return [(None if (value := row.found.get(key)) is None else value / scale, why) for row in rows]

    yield "Time", "s", of("time_s")
    yield "Reads", "", of("reads")
    yield "Read", "MB", of("read_bytes", MB)
    yield "Writes", "", of("writes")
    yield "Written", "MB", of("written_bytes", MB)
    yield "Discards", "", of("discards")
    yield "Discarded", "MB", of("discarded_bytes", MB)
    yield "Flushes", "", of("flushes")
    for name in ("read", "write", "flush"):
        yield f"Mean latency, {name}", "µs", of(f"{name}_lat_us", why=NO_TIME)
    yield "Requests under way, mean", "", of("queue_mean", why=NO_TIME)
    yield "Requests under way, most seen", "", of("queue_most", why=NO_TIME)
    yield (
        "Energy of the drive",
        "J",
        [((row.windows.get("all") or {}).get("energy_J"), row.why_not("W")) for row in rows],
    )
    yield "Energy per GB", "J", [(row.value("J/GB"), row.why_not("J/GB")) for row in rows]
    zones = dict.fromkeys(zone for row in rows for zone in row.found["host_energy_J"])
    for zone in zones or ["package-0"]:
        yield f"Host, {zone}", "J", [(row.found["host_energy_J"].get(zone), NO_ENERGY) for row in rows]


HTML = {"recorded": recorded}  # view -> how it is drawn
