"""Facts of the view `replay` for a headline."""

from collections.abc import Mapping

from ssdrig.base.uncertain import Uncertain
from ssdrig.reading import errors
from ssdrig.reading.row import Row, Table
from ssdrig.views.headline import Fact, lacking, whole

LATE = "not played at the trace's times"


def replay(run: Table, show: Mapping, path: str) -> dict[str, Fact]:
    """Data rate while busy, and service times of all I/Os."""
    row = next((row for row in run.of(path) if row.result.get("kind") == "played"), None)
    if row is None:
        return dict.fromkeys(("data_rate", "mean", "p99"), Fact(lacking(f"{path} did not run to its end")))
    event = row.result
    whys, late = event["not_known"], bool(event["lag"] and not event["lag"]["as_recorded"])

    def fact(value: float | None, why: str, unit: str, better: str, error: float | None = None) -> Fact:
        of = lacking(LATE) if late else Uncertain(value, error) if value is not None else lacking(why)
        return Fact(of, unit, better=better)

    times = event.get("all") or {}
    whys_of = {key: whys.get(f"all.{key}") or whys.get("all") or "no such I/O" for key in ("mean_us", "p99_us")}
    return {
        "data_rate": fact(event["data_rate_MBps"], whys.get("data_rate_MBps", "no I/O"), "MB/s", "more"),
        "mean": fact(times.get("mean_us"), whys_of["mean_us"], "µs", "less", mean_error_us(row)),
        "p99": fact(times.get("p99_us"), whys_of["p99_us"], "µs", "less"),
    }


def mean_error_us(row: Row) -> float | None:
    """The error of the mean service time of a played trace, from its seconds; None where it is not known."""
    return errors.of("lat_mean_us", whole(row)).error


FACTS = {"replay": replay}
