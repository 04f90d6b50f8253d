"""`ssdrig read-map --drive SERIAL`: speed and latency of each MiB of a drive, which may be in use; writes nothing."""

import argparse
import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

from ssdrig.base import files
from ssdrig.base.arguments import add_dry_run, add_quiet, whole_seconds
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.base.progress import Progress
from ssdrig.base.words import clock, size
from ssdrig.drive import guard, inventory, read_map
from ssdrig.drive.inventory import Drive
from ssdrig.runs import journal, parts

EXAMPLES = (
    ("read-map --drive SERIAL", "ten minutes: cells that read slowly, in a drive that holds data"),
    ("read-map --drive SERIAL --time 1h --csv map.csv", "more cells of a large drive, each with its time"),
)
USUAL_S, LEAST_S, MOST_S = 600, 10, 7 * 86_400
SHOWN = 10  # regions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--drive", metavar="DRIVE", required=True, help="serial or /dev/disk/by-id path; may be in use")
    add(
        "--time",
        type=whole_seconds,
        default=USUAL_S,
        metavar="TIME",
        help="time limit; a drive that takes longer is sampled, one MiB in several (default 10m)",
    )
    add("--csv", metavar="FILE", help="write offset, time and state of each cell")
    add("--runs", metavar="DIR", default="runs", help="where runs that erased this drive are looked for (%(default)s)")
    add("--json", action="store_true", help="print the result as one JSON object on stdout")
    add_quiet(parser)
    add_dry_run(parser, "print what would be read; touch nothing")


def check(args: argparse.Namespace) -> None:
    """Raises UsageError for a time out of bounds or a drive that is not there."""
    if not LEAST_S <= args.time <= MOST_S:
        raise UsageError(f"--time from {LEAST_S} s to 7 days", f"{args.time} s", "correct it")
    inventory.find(args.drive)


def command(args: argparse.Namespace) -> int:
    """0: read, whatever it shows. 3: refused. 4: drive."""
    check(args)
    drive, show = inventory.find(args.drive), Progress(args.quiet)
    show.say(
        f"read-map of {drive.model} {drive.serial}, {size(drive.capacity_bytes)}: reads up to all of it in at most"
        f" {clock(args.time)}, writes nothing"
    )
    if args.dry_run:
        guard.announce_refusals(drive, None, show.say, reads=True)
        return 0
    with guard.hold(drive, reads=True) as held:

        def shown(share: float, left_s: float, speed: float) -> None:
            show.show(f"read-map  {100 * share:.0f} %  {speed:.0f} MB/s  {clock(min(left_s, args.time))} left")

        made = read_map.read(held.path, drive.capacity_bytes, args.time, shown)
        held.recheck()
    result = {"drive": _named(drive), **read_map.figures(made), **age(args.runs, drive)}
    if args.csv:
        _write_csv(Path(args.csv), made)
    if args.json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        print("\n".join(lines(result, made)))
    return 0


def lines(result: dict, made: read_map.Map) -> list[str]:
    """The result as lines for the terminal."""
    out = read_map.picture(made)
    stride = "each MiB" if made.stride == 1 else f"one MiB in {made.stride}"
    out.append(f"read        {stride}, {result['cells']} cells in {clock(result['duration_s'])}")
    if not made.whole:
        out.append("            the time was over before the end of the drive")
    out.append(f"empty       {result['cells_empty']} cells of zeros, which a drive answers without its flash")
    if result["MB_per_s_median"] is not None:
        out.append(
            f"speed       median {result['MB_per_s_median']:.0f} MB/s, slowest hundredth {result['MB_per_s_p1']:.0f}"
            f" MB/s, longest read {result['latency_ms_max']:.1f} ms"
        )
    out.append(f"slow        {result['cells_slow']} cells, each time at less than half the median speed")
    for region in result["slow"][:SHOWN]:
        out.append(f"            {size(region['length'])} at {size(region['offset'])}: {region['MB_per_s']:.0f} MB/s")
    if result["cells_not_read_again"]:
        out.append(f"            {result['cells_not_read_again']} more took long once; there was no time to ask again")
    if result["unreadable"]:
        out.append(f"unreadable  {len(result['unreadable'])} cells, the first at byte {result['unreadable'][0]}")
    if result["erased_utc"]:
        out.append(f"age         nothing on it is older than {result['erased_utc']} (erased by {result['erased_by']})")
    else:
        out.append(f"age         not known: {result['why_no_age']}")
    return out


def age(runs: str, drive: Drive) -> dict:
    """Since when all data of the drive must have been written: the last time that a run of the folder `runs` erased it
    and saw that; None with the reason where none did."""
    last: tuple[str, str] | None = None
    with contextlib.suppress(OSError):
        for run in parts.all_runs(runs):
            for utc in _erasures(run, drive):
                last = max(last or ("", ""), (utc, run.name))
    if last is None:
        why = f"no run in {runs} has erased this drive"
        return {"erased_utc": None, "erased_by": None, "why_no_age": why}
    return {"erased_utc": last[0], "erased_by": last[1], "why_no_age": None}


def _erasures(run: Path, drive: Drive) -> Iterator[str]:
    try:
        header = journal.run_header(run)
        known, started = header["drive"], header["started"]
        if (known.get("serial"), known.get("model")) != (drive.serial, drive.model):
            return
        for event in journal.events(run):
            after_ns = event.get("t_ns", -1) - started["t_ns"]
            if event.get("kind") == "purge" and event.get("ok") is True and after_ns >= 0:  # else after a reboot
                yield time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime((started["utc_ns"] + after_ns) // 10**9))
    except (JournalError, OSError):
        return


def _named(drive: Drive) -> dict:
    return {key: getattr(drive, key) for key in ("model", "serial", "firmware", "capacity_bytes", "node")}


def _write_csv(path: Path, made: read_map.Map) -> None:
    rows = ["offset_bytes,read_us,state,reads"]
    for one in made.cells:
        state = "unreadable" if one.ns is None else "empty" if one.empty else "data"
        rows.append(f"{one.offset},{'' if one.ns is None else round(one.ns / 1000, 1)},{state},{one.reads}")
    files.write_atomically(path, ("\n".join(rows) + "\n").encode())
