"""Find the unit of undocumented counters: write exactly N bytes and see how many counts each moves.

A sequential write on a purged drive has a write amplification of 1.0 to 1.1. A counter of unit u that counts what the
host or the drive has written then moves by N/u to 1.1 N/u, give or take one count; among the units that drives use at
most one fits, otherwise the ones that fit are printed. Nothing is guessed: too few counts, or two units that fit, leave
the unit unknown.

smart/units.py stores the result."""

import argparse
import json
import math
import sys
import tempfile
import time

from ssdrig.base.arguments import add_dry_run, seconds
from ssdrig.base.errors import DriveError, UsageError
from ssdrig.base.progress import Progress
from ssdrig.base.words import clock, digits, exact_size, parse_bytes, size
from ssdrig.drive.smart.units import save_units

UNITS = (
    512,
    4096,
    16384,
    1 << 20,
    32 << 20,
    64 << 20,
    128 << 20,
    10**9,
    1 << 30,
)  # bytes per count that drives are known to use
WA_MOST = 1.1  # of a sequential write on a purged drive
FEWEST_COUNTS = 5
HOST_COUNTERS = ("ata:241", "ata:225")  # host writes on every drive that has them: their write amplification is 1
# Time, temperature, power cycles, host reads: they move, but not with the bytes written.
NOT_WRITES = tuple(f"ata:{number}" for number in (9, 12, 190, 192, 193, 194, 240, 242))
MIB = 1 << 20
WRITE_BLOCK_BYTES, QUEUE_DEPTH = MIB, 8
SETTLE_STEPS = 10
EXAMPLES = (("units SERIAL --destroy-data SERIAL", "write 32 GiB, and see which counters moved by how much"),)


def raw_counters(document: dict) -> dict[str, int]:
    """All raw counters of a SMART document whose unit the document itself does not state, {"ata:241": …}; the odd ones
    is left out. Pure.

    ATA attributes only: of an NVMe drive's pages the units are the standard's or the maker's, and where the layout is
    not known a write proves nothing, because what the host and what the NAND has written move alike."""
    return {key: row["raw"]["value"] for key, row in _rows(document).items()}


def _rows(document: dict) -> dict[str, dict]:
    smartctl = document.get("smartctl")
    attributes = smartctl.get("ata_smart_attributes") if isinstance(smartctl, dict) else None
    table = attributes.get("table") if isinstance(attributes, dict) else None
    bounds = {}
    for row in table if isinstance(table, list) else ():
        raw = row.get("raw") if isinstance(row, dict) else None
        if isinstance(raw, dict) and _count(raw.get("value")) and _count(row.get("id")):
            bounds[f"ata:{row['id']}"] = row
    return bounds


def find_units(before: dict, after: dict, written_bytes: int) -> list[dict]:
    """What the counters that moved between two SMART documents reveal of their units when written_bytes were written
    between. Pure.

    [{"key", "name", "in_database" (smartctl knows the drive), "counts", "candidates" (units that fit), "unit_bytes"
    (None unless just one fits and there are enough counts), "more_bytes" (how many more would settle it; None: none
    needed, or no number would), "words"}]."""
    old, new, rows = raw_counters(before), raw_counters(after), _rows(after)
    smartctl = after.get("smartctl")
    known = bool(smartctl.get("in_smartctl_database")) if isinstance(smartctl, dict) else False
    out = []
    for key in old.keys() & new.keys():
        counts = new[key] - old[key]
        if not counts or key in NOT_WRITES:
            continue
        finding = {
            "key": key,
            "name": str(rows[key].get("name") or rows[key]["id"]),
            "in_database": known,
            "counts": counts,
        }
        out.append(finding | _judge(counts, written_bytes, 1.0 if key in HOST_COUNTERS else WA_MOST))
    return sorted(out, key=lambda f: (f["unit_bytes"] is None, int(f["key"].partition(":")[2])))


def _judge(counts: int, written: int, wa_most: float) -> dict:
    def result(candidates, unit, more, words):
        return {"candidates": candidates, "unit_bytes": unit, "more_bytes": more, "words": words}

    if counts < 0:
        return result([], None, None, f"went back by {-counts}: it was reset, has wrapped, or is not a counter")
    fits = [unit for unit in UNITS if written / unit - 1 < counts < written * wa_most / unit + 1]
    bytes_each = written / counts
    if counts < FEWEST_COUNTS:
        more = math.ceil((FEWEST_COUNTS + 1) * max(fits, default=written / (counts + 1)) - written)
        return result(
            fits, None, max(more, MIB), f"moved by {counts}: too few to find the unit (at least {FEWEST_COUNTS})"
        )
    if not fits:
        return result(
            [],
            None,
            None,
            f"moved by {counts}, {digits(bytes_each, 4)} bytes a count: not a known unit of drives, or not what is"
            " written",
        )
    if len(fits) == 1:
        return result(fits, fits[0], None, f"moved by {counts}: {exact_size(fits[0])} a count")
    names = " or ".join(exact_size(unit) for unit in fits)
    needed = [bytes_to_tell(small, big, wa_most) for small, big in zip(fits, fits[1:], strict=False)]
    known = [number for number in needed if number is not None]
    if len(known) < len(needed):
        why = "a counter of NAND writes at a write amplification up to 1.1 can be either, however much is written"
        return result(fits, None, None, f"moved by {counts}: {names}; {why}")
    return result(
        fits, None, max(max(known) - written, MIB), f"moved by {counts}: {names}; more must be written to decide"
    )


def bytes_to_tell(small: int, big: int, wa_most: float) -> int | None:
    """Bytes to write so that no count fits both units: written / small - 1 >= written * wa_most / big + 1. None if no
    amount does. Pure."""
    slope = 1 / small - wa_most / big
    return math.ceil(2 / slope) if slope > 0 else None


def _count(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


# ---- the calibration of a drive


def calibrate(
    held,
    written_bytes: int,
    purge_method: str | None = "auto",
    settle_s: float = 60.0,
    progress: Progress | None = None,
) -> dict:
    """Purge (unless purge_method is None), poll, write written_bytes sequentially from the start, wait until the
    counters rest, poll.

    held: of guard.hold. Returns {"model", "firmware", "serial",
    "written_bytes", "purge" (purge's result or None), "settled", "units" (find_units)}. Raises UsageError for a size
    that does not fit the drive, DriveError, LoadError, ToolMissing."""
    from ssdrig.drive import block
    from ssdrig.drive import purge as purging
    from ssdrig.drive.smart import collect
    from ssdrig.load import fio  # numpy, as above

    def polled(like: dict | None = None) -> dict:
        with held.named() as named:
            return collect.poll(named, like=like)

    drive, progress = held.drive, progress or Progress()
    if written_bytes % WRITE_BLOCK_BYTES or not 0 < written_bytes <= drive.capacity_bytes:
        fit = drive.capacity_bytes // WRITE_BLOCK_BYTES
        raise UsageError(
            f"whole MiB, at most the {fit} MiB of the drive", f"{written_bytes} bytes", "give another --write"
        )
    first = polled()
    if not raw_counters(first):
        raise DriveError(
            "a drive with ATA attributes, which have no unit of their own",
            "; ".join(first["gaps"]) or "none",
            "see ./ssdrig wear DRIVE",
        )
    purged = purging.purge(held, purge_method, progress) if purge_method else None
    block.flush(held.path)
    _rest(settle_s, "the drive rests before the first poll", progress)
    drive = held.check()
    before = polled(first)
    _write(fio, held.path, written_bytes, progress)
    block.flush(held.path)
    units_, settled = find_units(before, polled(before), written_bytes), False
    for step in range(SETTLE_STEPS):
        _rest(settle_s, f"waiting until the counters rest, {step + 1}", progress)
        earlier, units_ = units_, find_units(before, polled(before), written_bytes)
        if settled := _fitting(earlier) == _fitting(units_):
            break
    return {
        "model": drive.model,
        "firmware": drive.firmware,
        "serial": drive.serial,
        "written_bytes": written_bytes,
        "purge": purged,
        "settled": settled,
        "units": units_,
    }


def _write(fio, path: str, written_bytes: int, progress: Progress) -> None:
    def on_second(second):
        share = second["total_bytes"] / written_bytes
        left_s = second["runtime_s"] * (1 - share) / share if share else 0
        speed = f"{size(second['bw_bytes'])}/s"
        progress.show(f"writing {size(written_bytes)} {share:4.0%} · {speed} · about {clock(left_s)} left")

    job = fio.Job("calibrate", "write", WRITE_BLOCK_BYTES, QUEUE_DEPTH, written_bytes, path, io_size=written_bytes)
    with tempfile.TemporaryDirectory(prefix="ssdrig-calibrate-") as folder:
        result = fio.run(job, folder, on_second)
    if result.bytes != written_bytes:
        raise DriveError(f"{written_bytes} bytes written", f"{result.bytes}", "run `./ssdrig units` again; see dmesg")


def _rest(seconds: float, why: str, progress: Progress) -> None:
    end = time.monotonic() + seconds
    while (left_s := end - time.monotonic()) > 0:
        progress.show(f"{why} · about {clock(left_s)} left")
        time.sleep(min(1.0, left_s))


def _fitting(findings: list[dict]) -> dict[str, int]:
    """The counts that must rest: without those that move for reasons of their own by too little to matter."""
    return {f["key"]: f["counts"] for f in findings if f["candidates"] and f["counts"] >= FEWEST_COUNTS}


# ---- the command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ssdrig.drive import confirm

    confirm.add_arguments(parser)
    parser.add_argument(
        "--write",
        default="32GiB",
        metavar="SIZE",
        help="how much to write, whole MiB (default %(default)s, which distinguishes all known units but 1 GB and 1 GiB"
        " of NAND)",
    )
    parser.add_argument(
        "--purge-method",
        dest="purge",
        default="auto",
        metavar="METHOD",
        help="method to purge with first (see ./ssdrig purge), or none (default: auto)",
    )
    parser.add_argument(
        "--poll-interval",
        dest="settle",
        type=seconds,
        default=60,
        metavar="TIME",
        help="time between the polls that wait until the counters rest (default %(default)s s)",
    )
    add_dry_run(parser, "show what would be written, and what blocks it; touch nothing")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object on stdout")


def check(args: argparse.Namespace) -> None:
    """Raises UsageError for a missing drive and an invalid size."""
    from ssdrig.drive import confirm

    parse_bytes(args.write)
    confirm.chosen(args)


def command(args: argparse.Namespace) -> int:
    """0: at least one unit was found and kept. 4: none was, or the drive failed. 3: refused."""
    from ssdrig.drive import confirm, guard
    from ssdrig.drive.wear import warranty

    written = parse_bytes(args.write)
    drive = confirm.chosen(args)
    rated = warranty.rated_bytes(warranty.limits_for(drive.model, drive.capacity_bytes))
    print(
        guard.announcement(drive, f"calibration of its counters, purge {args.purge}", written, rated), file=sys.stderr
    )
    if args.dry_run:
        guard.announce_refusals(drive, args.destroy_data, lambda text: print(text, file=sys.stderr))
        if args.json:
            report = {"dry_run": True, "serial": drive.serial, "purge": args.purge, "written_bytes": written}
            print(json.dumps(report, ensure_ascii=False))
        return 0
    with guard.hold(drive, confirm.confirmed(drive, args.destroy_data)) as held:
        result = calibrate(held, written, None if args.purge == "none" else args.purge, args.settle)
    units_ = [f for f in result["units"] if f["unit_bytes"]]
    result["kept_in"] = str(save_units(drive.model, drive.firmware, drive.serial, units_, written)) if units_ else None
    if args.json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        for f in result["units"]:
            more = f"; write {size(f['more_bytes'])} more" if f["more_bytes"] else ""
            print(f"{f['key']:12}{f['name']:28}{f['words']}{more}")
    if not result["settled"]:
        print(f"the counters were still moving after {SETTLE_STEPS} polls: the result may be wrong", file=sys.stderr)
    print(
        (
            f"kept for {drive.model} {drive.firmware} in {result['kept_in']}"
            if units_
            else "no unit was found; nothing was kept"
        ),
        file=sys.stderr,
    )
    return 0 if units_ else DriveError.exit_code
