"""The load generator's ceiling for each load of a plan: measured before its first step, journaled, printed."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from ssdrig.base.errors import LoadError
from ssdrig.base.progress import Progress
from ssdrig.base.words import size
from ssdrig.load import ceiling, written_data
from ssdrig.load.ceiling import Ceiling, Shape
from ssdrig.load.written_data import Kind
from ssdrig.plan.expand import Act
from ssdrig.runs.journal import Journal


def measured(
    acts: Sequence[Act], target: Callable[[], str], conditions: Mapping, book: Journal, show: Progress
) -> dict[Shape, Ceiling]:
    """The ceilings of the loads and fills among `acts`; {} where there is none, or fio could not measure them, which is
    reported.

    target: gives fio's, of the drive; called only where there is a load. conditions: what the event `conditions` has
    found, for the drive's PCIe link."""
    shapes = wanted(acts)
    if not shapes:
        return {}
    link = ceiling.link_bytes_per_s(*(str(conditions.get(f"link.current_link_{of}", "")) for of in ("speed", "width")))
    try:
        rows = ceiling.measure(shapes, "://" in target(), link)
    except LoadError as error:
        book.event("ceiling", rows=[], why=error.seen, link_bytes_per_s=link)
        show.warn(f"the load generator's ceiling is not known: {error.seen}")
        return {}
    book.event("ceiling", rows=[row.as_json() for row in rows], why=None, link_bytes_per_s=link)
    show.say(line(rows))
    return {row.shape: row for row in rows}


def data(shapes: Iterable[Shape], known: Mapping[Shape, Ceiling], book: Journal, show: Progress) -> None:
    """Journal how far the data of these loads can be compressed and deduplicated."""
    writes = [shape for shape in shapes if shape.word == "write"]
    kinds = {Kind(shape.compressible, shape in known and known[shape].pool) for shape in writes}
    if not kinds:
        return
    try:
        book.event("data", rows=written_data.measured(sorted(kinds)), why=None)
    except LoadError as error:
        book.event("data", rows=[], why=error.seen)
        show.warn(f"whether the written data can be compressed is not known: {error.seen}")


def wanted(acts: Sequence[Act]) -> list[Shape]:
    """The shapes of these acts, each once; of an act whose point is chosen later those of each point."""
    every = [one for act in acts for one in (act.choices if act.do != "choose" and act.choices else (act,))]
    return list(dict.fromkeys(shape for act in every if not act.not_run for shape in ceiling.shapes(act.do, act.keys)))


def line(rows: Sequence[Ceiling]) -> str:
    """ "load generator on a null target: from 374 503 IOPS (4.1 kB blocks) to 57 GB/s, 3 shapes of load"."""
    slowest = min(rows, key=lambda row: row.iops * max(1, min(block for block, _ in row.shape.blocks)))
    words = f"at least {size(slowest.bytes_per_s)}/s ({slowest.iops:,.0f} IOPS)".replace(",", " ")
    pool = sum(row.pool for row in rows)
    more = f", {pool} with data from a pool" if pool else ""
    return f"load generator on a null target: {words} in {len(rows)} shape{'s' * (len(rows) > 1)} of load{more}"
