"""Wear of a drive against its limits: `ssdrig wear`. Reads one drive, or SMART documents that were saved, and says how
much of the rated endurance and of the warranty is used, when which limit is reached, write amplification, and what data
without power is bound to bear."""

import argparse
import json
import re
import sys
import time
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path

from ssdrig.drive import (
    collect,
    counters,
    endurance,
    inventory,
    retention,
    smartctl,
    wa,
    warranty,
    watch_folder,
    wear_screen,
)
from ssdrig.errors import DriveError, UsageError

ROOM_C = 25.0
HARD_DISK = "limits of flash do not apply: this is a hard disk"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("drive", nargs="?", metavar="DRIVE", help="serial or /dev/disk/by-id path")
    add(
        "--smartctl",
        nargs="+",
        metavar="FILE",
        help=(
            "saved `smartctl --json` or smart/<nnn>.json instead of a drive; - is stdin; several of one drive make a"
            " history"
        ),
    )
    add("--json", action="store_true", help="print one JSON object a document, one a line")
    add(
        "--history",
        type=Path,
        metavar="DIR",
        help="what `ssdrig watch` recorded, for the rate and for write amplification over time",
    )
    add("--rate", metavar="BYTES/TIME", help="host writes to reckon with, such as 50GB/day or 1.2TB/month")
    add(
        "--storage-temp",
        default=f"{ROOM_C:g}",
        metavar="C",
        help="where it lies without power, °C, or a profile such as 12h@20,12h@40 (default %(default)s)",
    )
    warranty.add_arguments(parser)


def command(args: argparse.Namespace) -> int:
    """0 all read; 4 (DriveError) if a document has nothing of its drive: it is printed nevertheless. Raises UsageError,
    DriveError."""
    rate = endurance.parse_rate(args.rate) if args.rate else None
    storage_C = storage_temperature(args.storage_temp)
    documents = read_documents(args)
    seen = [(counters.snapshot(document) | {"utc_ns": utc_ns(document)}, document) for _, document in documents]
    code = 0
    for (label, document), (snapshot, _) in zip(documents, seen, strict=True):
        history = [s for s, _ in seen if s is not snapshot]
        if args.history and snapshot["serial"]:
            kept = watch_folder.history(args.history, snapshot["serial"])
            history += [counters.snapshot(record) | {"utc_ns": record["utc_ns"]} for record in kept]
        limits = warranty.of_arguments(args, snapshot["model"], snapshot["capacity_bytes"])
        found = report(snapshot, document, limits, earlier(snapshot, history), rate, storage_C)
        found["file"] = label
        if args.json:
            print(json.dumps(found, default=str))
        else:
            print(wear_screen.screen(found))
        if not answered(document):
            words = "; ".join(found["messages"]) or "nothing"
            print(f"ssdrig wear: {label or snapshot['serial']}: the drive said nothing: {words}", file=sys.stderr)
            code = DriveError.exit_code
    return code


def report(
    snapshot: dict,
    document: dict,
    limits: endurance.Limits,
    history: list[dict],
    rate: endurance.Rate | None,
    storage_C: float,
) -> dict:
    """The snapshot with "limits", "projection", "retention", "wa", "messages" and "unknown" of it. history: earlier
    snapshots of the same drive, by utc_ns; it gives the rate and the write amplification of the workload where it
    can."""
    today = datetime.fromtimestamp(snapshot["utc_ns"] / 1e9, UTC).date() if snapshot["utc_ns"] else date.today()
    out = dict(snapshot)
    out["messages"] = smartctl.messages(document.get("smartctl"))
    if is_hard_disk(document):
        limits = endurance.Limits(start=limits.start)
    lately = wa.between(history[0], snapshot) if history else None
    life = wa.between(
        snapshot
        | {
            name: 0
            for name in (
                "host_written_bytes",
                "nand_written_bytes",
                "host_program_pages",
                "nand_program_pages",
                "nand_written_tlc_bytes",
                "fdp_host_written_bytes",
            )
            if snapshot[name] is not None
        },
        snapshot,
    )
    rate = (
        rate or endurance.rate_of_history([*history, snapshot]) or endurance.rate_of_life(snapshot, limits.start, today)
    )
    projection = endurance.project(snapshot, limits, rate, lately, today)
    used = [
        projection[name]
        for name in ("percentage_used", "tbw_used_percent", "pe_mean_used_percent")
        if projection[name] is not None
    ]
    out["limits"] = asdict(limits) if limits != endurance.Limits() else None
    out["retention"] = retention.bound(limits.drive_class, max(used, default=None), storage_C)
    out["retention"]["unpowered_hours_at_most"] = retention.unpowered_hours(history[0], snapshot) if history else None
    measured = lately if lately and (lately.value is not None or life.value is None) else life
    since = (
        str(datetime.fromtimestamp(history[0]["utc_ns"] / 1e9, UTC).date()) if history and measured is lately else None
    )
    out["wa"] = asdict(measured) | {"since": since, "words": wa.words(measured)}
    out["unknown"] = list(snapshot["unknown"])
    if is_hard_disk(document):
        out["unknown"].append(HARD_DISK)
    elif answered(document):
        out["unknown"] += projection["unknown"]
        if measured.value is None and not any("NAND" in words for words in snapshot["unknown"]):
            out["unknown"].append(f"write amplification: {wa.words(measured).removeprefix('not known: ')}")
        elif lately and lately is not measured:
            out["unknown"].append(f"write amplification lately: {wa.words(lately).removeprefix('not known: ')}")
    del projection["unknown"]
    out["projection"] = projection
    return out


def earlier(snapshot: dict, others: list[dict]) -> list[dict]:
    """Those of `others` that are of the same drive and were read before, by time."""
    if not snapshot["serial"] or not snapshot["utc_ns"]:
        return []
    same = [s for s in others if (s["serial"], s["model"]) == (snapshot["serial"], snapshot["model"])]
    return sorted((s for s in same if s["utc_ns"] and s["utc_ns"] < snapshot["utc_ns"]), key=lambda s: s["utc_ns"])


def read_documents(args: argparse.Namespace) -> list[tuple[str | None, dict]]:
    """(file name or None, SMART document) of what the command line names. Raises UsageError, DriveError,
    ToolMissing."""
    if bool(args.drive) == bool(args.smartctl):
        raise UsageError(
            "a drive, or saved files with --smartctl",
            "both" if args.drive else "neither",
            "say one: ./ssdrig drives lists the drives",
        )
    if args.drive:
        return [(None, collect.poll(inventory.find(args.drive)) | {"utc_ns": time.time_ns()})]
    return [(name, read_file(name)) for name in args.smartctl]


def read_file(name: str) -> dict:
    """The SMART document in a file, whether saved from smartctl or kept in a run folder. Raises UsageError."""
    try:
        text = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"to read {name}", error.strerror or str(error), "correct --smartctl") from error
    do = "save it with: smartctl --json=cv -x DEVICE > FILE"
    try:
        found = json.loads(text)
    except ValueError as error:
        cut = "a document that is cut off or not JSON" if text.strip() else "an empty file"
        raise UsageError("JSON that smartctl printed", f"{cut}: {name}: {error}", do) from error
    except RecursionError as error:
        raise UsageError("JSON that smartctl printed", f"{name}: nested too deeply", do) from error
    if isinstance(found, dict):
        if "tools" in found or "t_start_ns" in found:
            return found
        head = found.get("smartctl")
        if (isinstance(head, dict) and "exit_status" in head) or isinstance(found.get("device"), dict):
            return {"smartctl": found}
    raise UsageError("a SMART document: smartctl's JSON, or smart/<nnn>.json of a run", f"other JSON in {name}", do)


def answered(document: dict) -> bool:
    """Whether the drive said anything. Only bits 0 and 1 of smartctl's exit status mean no data, and old files may not
    have it."""
    inner = document.get("smartctl")
    head = inner.get("smartctl") if isinstance(inner, dict) else None
    return collect.answered(document) or (
        isinstance(inner, dict)
        and isinstance(inner.get("device"), dict)
        and not (isinstance(head, dict) and "exit_status" in head)
    )


def utc_ns(document: dict) -> int | None:
    """When a document was made: what `ssdrig watch` says, else smartctl's local_time."""
    inner = document.get("smartctl")
    local = inner.get("local_time") if isinstance(inner, dict) else None
    seconds = local.get("time_t") if isinstance(local, dict) else None
    for value, factor in ((document.get("utc_ns"), 1), (seconds, 10**9)):
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value * factor < 2**62:
            return value * factor
    return None


def is_hard_disk(document: dict) -> bool:
    """smartctl's rotation_rate: 0 is an SSD, more is a disk that turns; none is not known."""
    inner = document.get("smartctl")
    turns = inner.get("rotation_rate") if isinstance(inner, dict) else None
    return isinstance(turns, int) and turns > 0


def storage_temperature(text: str) -> float:
    """ "25" -> 25.0; "12h@20,12h@40" -> 35.2, the temperature that costs as much. Raises UsageError."""
    try:
        if "@" not in text:
            profile = [(1.0, float(text))]
        else:
            parts = [
                re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*h?\s*@\s*(-?\d+(?:\.\d+)?)\s*", part) for part in text.split(",")
            ]
            profile = [(float(part[1]), float(part[2])) for part in parts]
        if not all(-60 <= temperature <= 150 for _, temperature in profile):
            raise ValueError("temperature")
        return retention.effective_temperature(profile)
    except (ValueError, TypeError) as error:
        raise UsageError(
            "a storage temperature in °C, or a profile",
            repr(text),
            "say --storage-temp 25 or --storage-temp 12h@20,12h@40",
        ) from error
