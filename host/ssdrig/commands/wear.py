"""Wear of a drive against its limits: `ssdrig wear`. Reads one drive or saved SMART documents, and reports how
much of the rated endurance and of the warranty is used, when which limit is reached, write amplification, and how long
data is required to survive without power (JESD218)."""

import argparse
import json
import re
import sys
from collections.abc import Sequence

from ssdrig.base.arguments import add_drive
from ssdrig.base.errors import DriveError, UsageError
from ssdrig.base.terminal import printable
from ssdrig.base.words import serial_key
from ssdrig.drive.identity import placeholder
from ssdrig.drive.smart import counters, saved
from ssdrig.drive.smart.smart_answer import answered
from ssdrig.drive.wear import endurance, retention, standing, warranty

ROOM_C = 25.0
EXAMPLES = (
    ("wear SERIAL", "ask a drive (as root)"),
    ("wear --smartctl smart.json --rate 50GB/day --start 2024-05-01", "a saved `smartctl --json=cv -x`"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_drive(parser, "serial or /dev/disk/by-id path (./ssdrig drives lists them)")
    add(
        "--smartctl",
        nargs="+",
        metavar="FILE",
        help=(
            "read saved `smartctl --json` or smart/<nnn>.json files, or a folder of them, instead of a drive; also"
            " smartctl's text, nvme-cli's JSON, smartd's state and ceph's metrics; - is stdin; several of one drive are"
            " its history"
        ),
    )
    add("--explain", action="store_true", help="explain what the retention figure means and what it does not")
    add("--json", action="store_true", help="print one JSON object a line for each document")
    add(
        "--history",
        metavar="DIR",
        help="folder of `ssdrig watch --history DIR`, for the rate and for write amplification over time",
    )
    add("--rate", metavar="BYTES/TIME", help="host writes for the projection, e.g. 50GB/day or 1.2TB/month")
    add(
        "--storage-temp",
        default=f"{ROOM_C:g}",
        metavar="C",
        help="storage temperature without power, °C, or a profile such as 12h@20,12h@40 (default %(default)s)",
    )
    warranty.add_arguments(parser)


def check(args: argparse.Namespace) -> None:
    """Raises UsageError for words that fit no drive and no file."""
    if args.rate:
        endurance.parse_rate(args.rate)
    storage_temperature(args.storage_temp)
    if bool(args.drive) == bool(args.smartctl):
        raise UsageError(
            "a drive, or saved files with --smartctl",
            "both" if args.drive else "neither",
            "give one of them: ./ssdrig drives lists the drives",
        )
    if args.drive:
        from ssdrig.drive import inventory

        inventory.find(args.drive)


def asks_the_machine(args: argparse.Namespace) -> bool:
    """Whether a drive is asked, by programs of this machine; a saved file needs none."""
    return not args.smartctl


def command(args: argparse.Namespace) -> int:
    """0 all read; 4 (DriveError) if a document has nothing of its drive: it is printed nevertheless. Raises UsageError,
    DriveError."""
    check(args)
    rate = endurance.parse_rate(args.rate) if args.rate else None
    storage_C = storage_temperature(args.storage_temp)
    documents = read_documents(args)
    seen = [counters.snapshot(document) | {"utc_ns": saved.utc_ns(document)} for _, document in documents]
    drives: dict[tuple, list[dict]] = {}
    for snapshot in sorted(seen, key=lambda snapshot_: snapshot_["utc_ns"] or 0):
        drives.setdefault(_who(snapshot), []).append(snapshot)
    code = 0
    for (label, document), snapshot in zip(documents, seen, strict=True):
        history = [s for s in drives[_who(snapshot)] if s is not snapshot]
        if args.history and snapshot["serial"]:
            from ssdrig.drive.smart import watch_folder

            past = watch_folder.history(args.history, snapshot["serial"])
            history += [counters.snapshot(record) | {"utc_ns": saved.utc_ns(record)} for record in past]
        limits = warranty.of_arguments(args, snapshot["model"], snapshot["capacity_bytes"])
        history = earlier(snapshot, history)
        unknown = bool(history) and placeholder(snapshot["serial"])
        report = standing.report(snapshot, document, limits, [] if unknown else history, rate, storage_C)
        if unknown:
            why = f"{snapshot['serial']} is not a drive's own serial: its {len(history)} other readings are ignored"
            report["messages"].append(why)
            print(f"ssdrig wear: {printable(label or '')}: {printable(why)}", file=sys.stderr)
        report["file"] = label
        if args.json:
            print(json.dumps(report, default=str))
        else:
            from ssdrig.drive.wear import screen as wear_screen

            print(wear_screen.screen(report, explain=args.explain))
        if not answered(document):
            words = "; ".join(report["messages"]) or "nothing"
            who = printable(label or snapshot["serial"] or "the drive")
            print(f"ssdrig wear: {who}: no answer from the drive: {printable(words)}", file=sys.stderr)
            code = DriveError.exit_code
    return code


def earlier(snapshot: dict, others: list[dict]) -> list[dict]:
    """Earlier readings of the same drive among `others`, by time."""
    now, who = snapshot["utc_ns"], _who(snapshot)
    if not who[0] or not now:
        return []
    before = [s for s in others if s["utc_ns"] and s["utc_ns"] < now and _who(s) == who]
    return sorted(before, key=lambda s: s["utc_ns"])


def _who(snapshot: dict) -> tuple[str, str | None]:
    return serial_key(snapshot["serial"] or ""), snapshot["model"]


def read_documents(args: argparse.Namespace) -> Sequence[tuple[str | None, dict]]:
    """(file name or None, SMART document) of what the command line names. Raises UsageError, DriveError,
    ToolMissing."""
    if not args.drive:
        return saved.read(args.smartctl)
    import time

    from ssdrig.drive import inventory
    from ssdrig.drive.smart import collect

    return [(None, collect.poll(inventory.find(args.drive)) | {"utc_ns": time.time_ns()})]


def storage_temperature(text: str) -> float:
    """ "25" -> 25.0; "12h@20,12h@40" -> 35.2, the temperature that costs as much. Raises UsageError."""
    try:
        if "@" not in text:
            profile = [(1.0, float(text))]
        else:
            profile = []
            for part in text.split(","):
                match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*h?\s*@\s*(-?\d+(?:\.\d+)?)\s*", part)
                if match is None:
                    raise ValueError("hours and temperature")
                profile.append((float(match[1]), float(match[2])))
        if not all(-60 <= temperature <= 150 for _, temperature in profile):
            raise ValueError("temperature")
        return retention.effective_temperature(profile)
    except (ValueError, TypeError) as error:
        raise UsageError(
            "a storage temperature in °C, or a profile",
            repr(text),
            "pass --storage-temp 25 or --storage-temp 12h@20,12h@40",
        ) from error
