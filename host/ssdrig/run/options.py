"""The options of `ssdrig run`, and whether they fit together: whatever can be refused is refused before anything
starts."""

import argparse
import json
import math
import os

from ssdrig.errors import UsageError
from ssdrig.influx import sender
from ssdrig.overprovisioning import whole_MiB
from ssdrig.plan import consistency
from ssdrig.words import parse_bytes

METHODS = ["consistency"]
LONGEST_S = 10_000_000  # 116 days
HIGHEST_SEED = (1 << 63) - 2  # fio takes 63 bits, and the load uses the next seed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "method",
        choices=METHODS,
        help="consistency: purge, sequential fill, 4 KiB random write at QD 32, per-second logs",
    )
    add(
        "--drive",
        metavar="DRIVE",
        help="serial or /dev/disk/by-id path of the drive to test; all of its data is destroyed (see ./ssdrig drives)",
    )
    add(
        "--virtual", metavar="PRESET", help="test a SIMULATED drive and board instead (./ssdrig virtual --list-presets)"
    )
    add("--destroy-data", metavar="SERIAL", help="repeat the serial to confirm that all data may be destroyed")
    add(
        "--purge",
        metavar="METHOD",
        help="how to empty a real drive (./ssdrig purge DRIVE --dry-run lists the methods; default: the best it has)",
    )
    add("--raw-nand", metavar="SIZE", help="raw NAND capacity of a real drive, e.g. 256GiB (base of --op)")
    add("--rig", metavar="PORT", help="serial port of the rig that powers a real drive (default: no power measurement)")
    add("--capacity", metavar="SIZE", help="capacity of the virtual drive, e.g. 8GiB (default: the preset's)")
    add("--op", type=float, metavar="PERCENT", help="over-provisioning as a share of raw NAND: 25 tests 0.75 of raw")
    add(
        "--duration",
        type=int,
        metavar="S",
        help="seconds of random write, drive time (reviews: 2000, 3600, 7200; default"
        f" {consistency.REAL_DURATION_S}, on a virtual drive {consistency.VIRTUAL_DURATION_S})",
    )
    add(
        "--zoom",
        type=int,
        metavar="S",
        help="start of the window `steady`, which ends with the load (reviews: 1400 of 2000; default: 70 %%)",
    )
    add(
        "--smart-interval",
        type=int,
        metavar="S",
        help="seconds between SMART polls under load (default: 10 to 60 by duration)",
    )
    add(
        "--settle",
        action="store_true",
        help="after the load, read SMART at 60, 120 and 300 s until two readings agree: shows what the drive writes on"
        " its own",
    )
    add("--idle", type=int, metavar="S", default=0, help="then measure idle power for S seconds, without SMART polls")
    add("--seed", type=int, default=4242, help="random seed for fio's offsets (default %(default)s)")
    add("--runs", metavar="DIR", default="runs", help="parent folder of the run folders (default ./%(default)s)")
    add(
        "--influx",
        metavar="URL",
        help="http://host:port/DB to send points to during the run (default: $SSDRIG_INFLUX, else nothing is sent)",
    )
    add("--faults", metavar="JSON", help="faults of the virtual board (python -m ssdrig.virtual.rig.cable --help)")
    add(
        "--dry-run",
        action="store_true",
        help="print what the run would do, what it writes and how long it takes; touch nothing",
    )
    add("--json", action="store_true", help="print the result as one JSON object on stdout")
    add("--jsonl", action="store_true", help="print one JSON object per second on stdout, the result last")
    add("--quiet", action="store_true", help="no progress on stderr")


def check(args: argparse.Namespace) -> None:
    """Raises UsageError for anything that no run could be made of. Touches nothing."""
    if bool(args.drive) == bool(args.virtual):
        raise UsageError(
            "a drive to test, and only one",
            "none" if not args.drive else "two",
            "give --drive SERIAL or --virtual PRESET; there is no default",
        )
    real_only = {"--rig": args.rig, "--purge": args.purge, "--raw-nand": args.raw_nand}
    real_only["--destroy-data"] = args.destroy_data
    virtual_only = {"--capacity": args.capacity, "--faults": args.faults}
    for option, value in (real_only if args.virtual else virtual_only).items():
        if value is not None:
            kind = "--drive" if args.virtual else "--virtual"
            raise UsageError(f"{option} only with {kind}", f"{option} {value}", f"leave {option} out")
    if args.op is not None and not (math.isfinite(args.op) and 0 <= args.op < 100):
        raise UsageError("--op from 0 to below 100 percent", f"{args.op:g}", "choose a share of raw NAND, e.g. 25")
    _within("--duration", args.duration, 4, LONGEST_S, " s")
    _within("--smart-interval", args.smart_interval, 1, LONGEST_S, " s")
    _within("--idle", args.idle, 0, LONGEST_S, " s")
    _within("--seed", args.seed, 0, HIGHEST_SEED)
    for size in (args.capacity, args.raw_nand):
        if size is not None:
            parse_bytes(size)
    url = args.influx or os.environ.get("SSDRIG_INFLUX")
    if url:
        sender.target(url)
    if args.virtual:
        virtual_drive(args)
        faults(args.faults)


def _within(option: str, value: int | None, least: int, most: int, unit: str = "") -> None:
    if value is not None and not least <= value <= most:
        raise UsageError(f"{option} of at least {least}{unit} and at most {most}{unit}", str(value), "correct it")


def virtual_drive(args: argparse.Namespace) -> dict:
    """What describes the virtual drive that the options ask for, without starting it. Raises UsageError."""
    from ssdrig.virtual.flash.presets import PRESETS

    if args.virtual not in PRESETS:
        raise UsageError(f"one of {', '.join(PRESETS)}", args.virtual, "see ./ssdrig virtual --list-presets")
    preset = PRESETS[args.virtual]
    pages, _, raw_nand_bytes = preset.geometry(parse_bytes(args.capacity) if args.capacity else None)
    return {
        "simulated": True,
        "preset": preset.name,
        "model": preset.model,
        "serial": "",
        "interface": "nbd",
        "capacity_bytes": whole_MiB(pages * 4096),
        "raw_nand_bytes": raw_nand_bytes,
        "time_dilation": preset.time_dilation,
    }


def faults(text: str | None) -> dict | None:
    """--faults as an object. Raises UsageError."""
    from ssdrig.virtual.rig.faults import settings

    if text is None:
        return None
    try:
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError("not an object")
    except (ValueError, RecursionError) as error:
        raise UsageError("faults as a JSON object", f"{text[:200]}: {error}", 'write e.g. {"ppm": 80}') from error
    settings(found)
    return found


def plan(args: argparse.Namespace, drive: dict, default_duration_s: int) -> consistency.Consistency:
    """The test that the options ask for on this drive. Raises UsageError."""
    return consistency.plan(
        drive["capacity_bytes"],
        drive["raw_nand_bytes"],
        args.op,
        default_duration_s if args.duration is None else args.duration,
        args.zoom,
        args.smart_interval,
        args.seed,
        args.settle,
        args.idle,
    )
