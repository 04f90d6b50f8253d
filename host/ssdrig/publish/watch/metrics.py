"""The newest poll of each watched drive as OpenMetrics text, a file for node_exporter's textfile collector.

Families are in FAMILIES, in base units. An unknown figure is absent. Samples have no timestamps, which that collector
refuses: when a drive was read is its own value."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ssdrig.base.errors import JournalError
from ssdrig.base.files import write_atomically
from ssdrig.base.words import serial_key
from ssdrig.drive import identity
from ssdrig.drive.smart import counters, health, saved
from ssdrig.drive.smart.watch_folder import DAY_NS, first_of_days
from ssdrig.drive.wear import endurance, standing, warranty
from ssdrig.publish.influx import smart_points

ROOM_C = 25.0  # of storage: no metric depends on it
PREFIX = "ssdrig_"


class Family(NamedTuple):
    """A metric family: its OpenMetrics type, its unit, which its name ends in ("" without), and its help."""

    type: str
    unit: str
    help: str


FAMILIES = {
    "up": Family("gauge", "", "1: the newest poll was answered; 0: it was not, and the drive has no other metric"),
    "poll_time_seconds": Family("gauge", "seconds", "When the drive was read, Unix time"),
    "drive": Family("info", "", "What the drive is"),
    "health_ok": Family("gauge", "", "1: no warning of the drive or of its counters; 0: one or more"),
    "host_written_bytes": Family("counter", "bytes", "Written by the host, by the drive's counter"),
    "host_read_bytes": Family("counter", "bytes", "Read by the host, by the drive's counter"),
    "nand_written_bytes": Family("counter", "bytes", "Written to the flash, by the drive's counter"),
    "write_amplification_ratio": Family(
        "gauge", "ratio", "NAND bytes written / host bytes written, of the drive's life or since it is watched"
    ),
    "write_amplification_error_ratio": Family("gauge", "ratio", "Largest error of write_amplification_ratio"),
    "watched_since_seconds": Family("gauge", "seconds", "When period=watched began, Unix time"),
    "tbw_rated_bytes": Family("gauge", "bytes", "Host bytes that the warranty allows"),
    "life_used_ratio": Family("gauge", "ratio", "Share of a limit that is used: tbw, pe_cycles, percentage_used"),
    "life_left_ratio": Family("gauge", "ratio", "Share of a limit that is left, 0 beyond it"),
    "life_left_seconds": Family("gauge", "seconds", "Time until a limit is reached at the rate of writes so far"),
    "available_spare_ratio": Family("gauge", "ratio", "Spare blocks that are left"),
    "pe_cycles_mean": Family("gauge", "", "Program/erase cycles, mean of all blocks"),
    "pe_cycles_max": Family("gauge", "", "Program/erase cycles of the block with most"),
    "pe_cycles_rated": Family("gauge", "", "Program/erase cycles that the flash is rated for"),
    "temperature_celsius": Family("gauge", "celsius", "Temperature of the drive"),
    "power_on_seconds": Family("counter", "seconds", "Time with power, by the drive's counter, whole hours"),
    "power_cycles": Family("counter", "", "Power cycles, by the drive's counter"),
    "unsafe_shutdowns": Family("counter", "", "Power losses without notice, by the drive's counter"),
    "media_errors": Family("counter", "", "Media errors, by the drive's counter"),
}
COUNTERS = ("host_written_bytes", "host_read_bytes", "nand_written_bytes")
AS_THEY_ARE = {
    **{name: name for name in ("pe_cycles_mean", "pe_cycles_max", "power_cycles", "unsafe_shutdowns", "media_errors")},
    "temperature_celsius": "temperature_C",
}
SHARES = {"tbw": "tbw_used_percent", "pe_cycles": "pe_mean_used_percent", "percentage_used": "percentage_used"}
Sample = tuple[str, Mapping[str, str], float | None]  # family, labels besides the drive's, value


@dataclass
class _Known:
    """A drive that was read: its record in the newest poll; identity of its first, full poll; the first reading of each
    day, by time."""

    drive: Mapping
    identity: Mapping[str, str]
    days: list[dict]


class Metrics:
    """The metrics of a watch in a file, which is whole at any time."""

    def __init__(self, path: Path, folder: Path):
        """path: the file, in node_exporter's textfile directory, named *.prom. folder: the watch's folder, for the
        history."""
        self.path, self._folder = path, folder
        self._known: dict[str, _Known] = {}  # by serial
        self._shown: dict[str, tuple[Mapping[str, str], list[Sample]]] = {}  # serial -> labels, samples

    def write(self, results: Iterable[Mapping]) -> None:
        """Take up the results of a round (Watch.round) and write the file. A drive that a run held keeps its last
        reading, with the time of it. Raises JournalError."""
        for result in results:
            drive = result["drive"]
            key = serial_key(drive["serial"])
            if result["snapshot"] is not None:
                known = self._drive(key, drive, result["record"])
                snapshot = result["snapshot"] | {"utc_ns": result["utc_ns"]}
                before = [reading for reading in known.days if reading["utc_ns"] < snapshot["utc_ns"]]
                samples = [*of_poll(snapshot, result["record"], before), ("drive", info(drive, known.identity), 1)]
                self._shown[key] = _who(drive, known), samples
                clock_set = saved.utc_ns(snapshot) is not None
                if clock_set and (not known.days or known.days[-1]["utc_ns"] // DAY_NS < snapshot["utc_ns"] // DAY_NS):
                    known.days.append(snapshot)
            elif "failed" in result:
                self._shown[key] = _who(drive, self._known.get(key)), [("up", {}, 0)]
        try:
            write_atomically(self.path, text(self._shown.values()), durable=False)
        except OSError as error:
            do = "make the folder, free disk space, or fix its permissions"
            raise JournalError(f"to write the metrics {self.path}", error.strerror or str(error), do) from error

    def _drive(self, key: str, drive: Mapping, document: dict) -> _Known:
        known = self._known.get(key)
        if known is None or identity.conflict(known.drive, drive):  # or the enclosure has another disk now
            daily = first_of_days(self._folder, drive)
            days = [counters.snapshot(one) | {"utc_ns": one["utc_ns"]} for one in daily if saved.utc_ns(one)]
            known = self._known[key] = _Known(drive, smart_points.identity(document), days)
        known.drive = drive
        return known


def _who(drive: Mapping, known: _Known | None) -> dict[str, str]:
    """The labels of a drive, as InfluxDB's tags of smart_device."""
    seen = known.identity if known else {"model": drive.get("model") or "", "serial_no": drive["serial"]}
    return {name: seen[name] for name in ("model", "serial_no")}


def info(drive: Mapping, seen: Mapping[str, str]) -> dict[str, str]:
    """The known identity fields of a drive."""
    known = {"device": drive.get("node"), "firmware": drive.get("firmware"), "interface": drive.get("interface")}
    known |= {"wwn": seen["wwn"], "capacity_bytes": drive.get("capacity_bytes")}
    return {name: str(value) for name, value in known.items() if value}


def of_poll(snapshot: dict, document: dict, history: list[dict]) -> Iterator[Sample]:
    """The samples of an answered poll. history: earlier readings of the drive, by time."""
    yield "up", {}, 1
    yield "poll_time_seconds", {}, snapshot["utc_ns"] / 1e9
    if snapshot["health"] != health.UNKNOWN:
        yield "health_ok", {}, int(snapshot["health"] == health.OK)
    for name in COUNTERS:
        yield name, {}, snapshot[name]
    for name, key in AS_THEY_ARE.items():
        yield name, {}, snapshot[key]
    if snapshot["power_on_hours"] is not None:
        yield "power_on_seconds", {}, 3600 * snapshot["power_on_hours"]
    if snapshot["available_spare_percent"] is not None:
        yield "available_spare_ratio", {}, snapshot["available_spare_percent"] / 100
    if snapshot["hard_disk"]:
        return
    limits = warranty.limits_for(snapshot["model"], snapshot["capacity_bytes"]) if snapshot["model"] else None
    report = standing.report(snapshot, document, limits or endurance.Limits(), history, None, ROOM_C)
    yield from _amplification(history, snapshot)
    projection = report["projection"]
    yield "tbw_rated_bytes", {}, projection["rated_tbw_bytes"]
    yield "pe_cycles_rated", {}, projection["rated_pe_cycles"]
    for limit, key in SHARES.items():
        used = projection[key]
        if used is not None:
            yield "life_used_ratio", {"limit": limit}, used / 100
            yield "life_left_ratio", {"limit": limit}, max(0.0, 1 - used / 100)
    for ahead in projection["ahead"]:
        if projection["rate_calendar"] is not False or ahead["limit"] == "warranty_time":
            yield "life_left_seconds", {"limit": ahead["limit"]}, 86_400 * ahead["days"]


def _amplification(history: list[dict], snapshot: dict) -> Iterator[Sample]:
    """Samples over the drive's life and since monitoring began."""
    history, _ = standing.consistent(history, snapshot)
    seen = standing.amplification(history, snapshot)
    for period, span in (("life", seen.life), ("watched", seen.lately)):
        if span is not None and span.value is not None:
            yield "write_amplification_ratio", {"period": period}, span.value
            yield "write_amplification_error_ratio", {"period": period}, span.error
    if seen.lately is not None and seen.lately.value is not None:
        yield "watched_since_seconds", {}, seen.first["utc_ns"] / 1e9


def text(drives: Iterable[tuple[Mapping[str, str], Iterable[Sample]]]) -> bytes:
    """OpenMetrics text of drives: labels and samples of each. Values that are None or not finite are left out; of
    two samples with the same labels the last one counts."""
    by_family: dict[str, dict[str, str]] = {}
    for labels, samples in drives:
        for name, more, value in samples:
            if value is not None and math.isfinite(value):
                by_family.setdefault(name, {})[_labels({**labels, **more})] = repr(value)
    out = []
    for name, (type_, unit, help_) in FAMILIES.items():
        if name in by_family:
            out += [f"# TYPE {PREFIX}{name} {type_}", *([f"# UNIT {PREFIX}{name} {unit}"] if unit else [])]
            out.append(f"# HELP {PREFIX}{name} {_escaped(help_)}")
            suffix = {"counter": "_total", "info": "_info"}.get(type_, "")
            out += [f"{PREFIX}{name}{suffix}{labels} {value}" for labels, value in by_family[name].items()]
    return "".join(f"{line}\n" for line in (*out, "# EOF")).encode("utf-8", "replace")


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
