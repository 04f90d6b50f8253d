"""The slices of a wear step -> its course: wear over the amount written, the predictions on the way, why it ended.

Slices are counted from the beginning of the step, over all parts of a run; a part that began the step again voids those
before it."""

from collections.abc import Mapping, Sequence

from ssdrig.plan.rules import worn
from ssdrig.plan.rules.worn import Slice
from ssdrig.reading.row import Table

EVERY_PERCENT = 10  # of wear, between two predictions
FIELDS = {key: "slice" if key == "number" else key for key in Slice._fields}


def slices(events: Sequence[Mapping], path: str) -> list[Slice]:
    """The state at the begin of the step, then of each slice, from the events of all parts, oldest first."""
    wear_slices: list[Slice] = []
    for event in events:
        if event.get("step") != path or event.get("kind") not in ("wear.begin", "slice"):
            continue
        now = Slice(**{key: event[name] for key, name in FIELDS.items() if name in event})
        if event["kind"] == "wear.begin" and now.host_bytes and wear_slices:
            continue  # it goes on within a slice
        wear_slices = (
            [earlier for earlier in wear_slices if earlier.number < now.number] if event["kind"] == "slice" else []
        )
        wear_slices.append(now)
    return wear_slices


def did(events: Sequence[Mapping], path: str) -> dict[str, float]:
    """I/Os, bytes and seconds of fio in the slices of these events."""
    own = [event for event in events if event.get("kind") == "slice" and event.get("step") == path]
    return {key: sum(event.get(key) or 0 for event in own) for key in ("ios", "bytes", "io_s")}


def rates(events: Sequence[Mapping], path: str) -> dict[str, list[float]]:
    """{key: of each slice} of the rates of these events."""
    own = [e for e in events if e.get("kind") == "slice" and e.get("step") == path and e.get("io_s")]
    out: dict[str, list[float]] = {}
    for name, key, unit in (("ios", "iops_mean", 1), ("bytes", "bw_mean_MBps", 1e6)):
        out[key] = [(event.get(name) or 0) / event["io_s"] / unit for event in own]
    return out


def course(events: Sequence[Mapping], path: str) -> dict:
    """What a wear step has found: {"kind", "slices", "stop", "wa", "samples_read", "verdicts", "end": the prediction by
    all slices, "ends": those made each EVERY_PERCENT of wear}. Bytes count from the begin of the step."""
    wear_slices = slices(events, path)
    verdicts: dict[str, int] = {}
    stop = None
    for event in events:
        if event.get("step") == path and event.get("kind") == "slice":
            for word, count in (event.get("verdicts") or {}).items():
                verdicts[word] = verdicts.get(word, 0) + count
        if event.get("step") == path and event.get("kind") == "step.end":
            stop = event.get("stop")
    return {
        "kind": "wear",
        "slices": [part._asdict() for part in wear_slices],
        "stop": stop,
        "wa": amplification(wear_slices[0], wear_slices[-1]) if wear_slices else None,
        "samples_read": sum(part.samples for part in wear_slices),
        "verdicts": verdicts,
        "end": worn.end(wear_slices)._asdict(),
        "ends": predictions(wear_slices),
    }


def amplification(before: Slice, now: Slice) -> float | None:
    """Write amplification from the end of one slice to the end of another; None where the drive does not count."""
    if before.nand_bytes is None or now.nand_bytes is None or now.host_bytes <= before.host_bytes:
        return None
    return (now.nand_bytes - before.nand_bytes) / (now.host_bytes - before.host_bytes)


def with_wear(table: "Table", parts: "Sequence[Table]") -> "Table":
    """The table with what its wear steps have found in all parts of the run."""
    events = [event for part in parts for event in part.data.events]
    for row in table.rows:
        if row.act.do == "wear" and row.state != "not run":
            row.result = course(events, row.act.path)
    return table


def predictions(wear_slices: Sequence[Slice]) -> list[dict]:
    """The prediction at each time that another EVERY_PERCENT of wear was reached: {"at_percent", "at_bytes"
    and the fields of worn.End}."""
    out: list[dict] = []
    reached = 0.0
    for i, part in enumerate(wear_slices):
        used = part.percentage_used
        if used is None or not i or used < reached + EVERY_PERCENT:
            continue
        reached = used // EVERY_PERCENT * EVERY_PERCENT
        if used < worn.WORN_PERCENT:
            out.append({"at_percent": used, "at_bytes": part.host_bytes} | worn.end(wear_slices[: i + 1])._asdict())
    return out
