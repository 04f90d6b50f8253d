"""The view of recordings: the requests to the drive, a column a recording."""

from collections.abc import Iterator

from ssdrig.reading.row import Row
from ssdrig.views.context import Context, by_column, panel

MB = 1e6
NO_TIME = "the kernel counts milliseconds, and these are too few"
NO_SUCH = "the kernel has no such count"
NO_BINS = "fio kept no histogram, or too few I/Os for this percentile: --output-format=json+"
NO_ENERGY = "the host has no RAPL counters, or only root may read them"
Cells = list[tuple[float | None, str]]  # of each recording: value, why it is missing


def recorded(context: Context) -> str:
    """I/O, discards, flushes, queue, energy of the drive and of the host's processors of each step; what others' fio
    has counted of imported ones."""
    title = context.title("Requests to the drive")
    of_kernel, of_fio = (_of_kind(context, kind) for kind in ("recorded", "foreign"))
    out = ""
    if of_kernel:
        soft = "Requests as the kernel gave them to the drive, merged and split; ssdrig wrote nothing to it."
        out += panel(title, by_column([head for head, _ in of_kernel], lines_of([row for _, row in of_kernel])), soft)
    if of_fio:
        sources = ", ".join(dict.fromkeys(str(row.result["source"]) for _, row in of_fio))
        soft = f"I/O as {sources} has counted it; ssdrig was not there."
        out += panel(title, by_column([head for head, _ in of_fio], foreign_lines([row for _, row in of_fio])), soft)
    return out or panel(title, "<p>nothing was recorded</p>")


def _of_kind(context: Context, kind: str) -> list[tuple[str, Row]]:
    """Heading and row of each step of this kind."""
    return [
        (row.act.label + name, row)
        for run, name in context.runs()
        for path in context.paths
        for row in run.of(path)
        if row.result.get("kind") == kind
    ]


def lines_of(rows: list[Row]) -> Iterator[tuple[str, str, Cells]]:
    """Each figure: its name, its unit, and of each row (value, why it is missing)."""

    def of(key: str, scale: float = 1.0, why: str = NO_SUCH) -> Cells:
        return [(None if (value := row.result.get(key)) is None else value / scale, why) for row in rows]

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
    yield "Energy of the drive", "J", [_energy(row) for row in rows]
    yield "Energy per GB", "J", [(row.value("J/GB"), row.why_not("J/GB")) for row in rows]
    zones = dict.fromkeys(zone for row in rows for zone in row.result["host_energy_J"])
    for zone in zones or ["package-0"]:
        yield f"Host, {zone}", "J", [(row.result["host_energy_J"].get(zone), NO_ENERGY) for row in rows]


def foreign_lines(rows: list[Row]) -> Iterator[tuple[str, str, Cells]]:
    """lines_of() of imported steps."""

    def of(key: str, scale: float = 1.0, why: str = "") -> Cells:
        return [(None if (value := row.result.get(key)) is None else value / scale, why) for row in rows]

    yield "Time", "s", of("time_s")
    for name, counts, moved in (("Reads", "reads", "read_bytes"), ("Writes", "writes", "written_bytes")):
        yield name, "", of(counts)
        yield f"{name}, moved", "MB", of(moved, MB)
    yield "Trims", "", of("trims")
    kinds = dict.fromkeys(row.result.get("percentiles_of") for row in rows)
    of_what = "/".join(kind for kind in kinds if kind) or "latency"
    for direction in ("read", "write"):
        for key, words in (("mean", "mean"), ("p50", "median"), ("p99", "P99"), ("p999", "P99.9"), ("p9999", "P99.99")):
            yield f"{direction.capitalize()}, {words} of {of_what}", "µs", of(f"{direction}_lat_{key}_us", why=NO_BINS)
    yield "Energy of the drive", "J", [_energy(row) for row in rows]
    yield "Energy per GB", "J", [(row.value("J/GB"), row.why_not("J/GB")) for row in rows]


def _energy(row: Row) -> tuple[float | None, str]:
    return (row.windows.get("all") or {}).get("energy_J"), row.why_not("W")


HTML = {"recorded": recorded}  # view -> how it is drawn
