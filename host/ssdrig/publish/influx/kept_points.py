"""Points of a retention test, each of one event: how fast the drive was when it was sealed, what each pass over it
found, and what its storage costs."""

from collections.abc import Iterator, Mapping
from typing import Any

from ssdrig.publish.influx import line_protocol

Point = tuple[str, dict, dict]  # measurement, tags, fields
OF_BASELINE = ("p50_us", "p99_us", "max_us", "pieces")
OF_PASS = ("number", "blocks", "bad", "share_most", "slow", "slowdown")
OF_STORAGE = ("hours", "off_hours", "mean_C", "effective_C", "covers")
# what the drive did on its own since power was back: a refresh shows as bytes of NAND
OF_DRIVE = ("nand_written_bytes", "refreshes", "soft_ecc_errors", "uncorrectable_reads", "media_errors")


def points(event: Mapping) -> Iterator[Point]:
    """Empty for events that do not belong to a retention test or lack these figures."""
    of = _OF.get(event["kind"])
    if of is None:
        return
    measurement, made = of
    fields = line_protocol.fitting(measurement, made(event))
    if fields:
        yield measurement, {}, fields


def _baseline(event: Mapping) -> dict[str, Any]:
    return {"bw_MBps": event.get("MBps"), **{name: event.get(name) for name in OF_BASELINE}}


def _pass(event: Mapping) -> dict[str, Any]:
    uber = _mapping(event, "uber")
    fields = {name: event.get(name) for name in OF_PASS} | {"classes": ",".join(sorted(_mapping(event, "classes")))}
    return fields | {"uber": uber.get("uber"), "uber_most": uber.get("most")}


def _storage(event: Mapping) -> dict[str, Any]:
    stored, moved = _mapping(event, "storage"), _mapping(event, "since_power_on")
    fields = {name: stored.get(name) for name in OF_STORAGE} | {name: moved.get(name) for name in OF_DRIVE}
    at = _mapping(stored, "equivalent_h")
    hours = {
        f"equivalent_{celsius}C_{eV}eV_h".replace(".", "_"): value
        for celsius in at
        for eV, value in _mapping(at, celsius).items()
    }
    names = (name for name in line_protocol.read_schema()["retention_storage"].fields if name.startswith("equivalent_"))
    return fields | {name: hours.get(name) for name in names}


def _mapping(of: Mapping, key: str) -> Mapping:
    value = of.get(key)
    return value if isinstance(value, Mapping) else {}


_OF = {
    "retention.baseline": ("retention_baseline", _baseline),
    "retention.pass": ("retention_pass", _pass),
    "retention.end": ("retention_storage", _storage),
}
