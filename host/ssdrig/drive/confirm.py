"""The last question before data is destroyed."""

import argparse
import sys
from collections.abc import Collection, Sequence

from ssdrig.base.arguments import add_drive
from ssdrig.base.errors import UnsafeTarget, UsageError
from ssdrig.base.terminal import printable
from ssdrig.drive import inventory
from ssdrig.drive.inventory import Drive

TAIL = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which drive is meant, and that its data may go."""
    add_drive(parser, "serial or /dev/disk/by-id path (./ssdrig drives lists them)")
    parser.add_argument(
        "--destroy-data",
        metavar="SERIAL",
        help="repeat the serial to confirm that all data may be destroyed (without it, a terminal is asked)",
    )


def chosen(args: argparse.Namespace) -> Drive:
    """The drive that these arguments name. Raises UsageError."""
    if not args.drive:
        raise UsageError("DRIVE", "none", "name it by its serial: ./ssdrig drives lists them")
    return inventory.find(args.drive)


def confirmed(drive: Drive, destroy_serial: str | None) -> str:
    """The consent to destroy the drive's data (Identity.consent): the given serial, which the guard compares; without
    one, at a terminal, the drive's own once its last six characters were typed. Raises UnsafeTarget."""
    if destroy_serial is not None:
        return destroy_serial
    do = (
        f"give --destroy-data {drive.consent}"
        if drive.serial
        else "this drive reports no serial, so it cannot be confirmed"
    )
    if not (drive.serial and sys.stdin.isatty() and sys.stderr.isatty()):
        raise UnsafeTarget("consent to destroy all data of the drive", "no --destroy-data", do)
    what = "its serial" if drive.consent == drive.serial else printable(drive.consent)
    print(
        f"All data on it will be destroyed. To go on type the last {TAIL} characters of {what}: ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    typed = sys.stdin.readline().strip()
    if typed.lower() != drive.consent[-TAIL:].lower():
        raise UnsafeTarget(f"the last {TAIL} characters of {what}", repr(typed), do)
    return drive.consent


def all_confirmed(drives: Sequence[Drive], destroy_serials: Collection[str]) -> None:
    """The data of all these drives may be destroyed: each is among the serials given or, at a terminal, their number
    was typed under a list of them. Raises UnsafeTarget."""
    serials = [drive.consent for drive in drives]
    known = {drive.serial for drive in drives} | set(serials)
    others = [serial for serial in destroy_serials if serial not in known]
    missing = [serial for serial in serials if serial not in destroy_serials]
    do = " ".join(f"--destroy-data {serial}" for serial in missing)
    if others:
        seen = f"--destroy-data {', '.join(others)}"
        raise UnsafeTarget(f"--destroy-data with serials of {', '.join(serials)}", seen, "correct it")
    if not missing:
        return
    if destroy_serials or not all(serials) or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UnsafeTarget(
            f"consent to destroy all data of {len(drives)} drives",
            f"no --destroy-data for {', '.join(serial or 'a drive without a serial' for serial in missing)}",
            f"give {do}",
        )
    wanted = f"destroy {len(drives)} drives"
    named = printable(", ".join(serials))
    print(f"All data will be destroyed on {named}.\nTo go on type `{wanted}`: ", end="", file=sys.stderr, flush=True)
    typed = sys.stdin.readline().strip()
    if typed.lower() != wanted:
        raise UnsafeTarget(f"`{wanted}`", repr(typed), f"give {do}")
