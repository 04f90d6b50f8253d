"""The last question before data is destroyed."""

import argparse
import sys

from ssdrig.drive.target.inventory import Drive
from ssdrig.errors import UnsafeTarget

TAIL = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which drive is meant, and that its data may go."""
    parser.add_argument(
        "drive", metavar="DRIVE", help="serial number or /dev/disk/by-id path (./ssdrig drives lists them)"
    )
    parser.add_argument(
        "--destroy-data",
        metavar="SERIAL",
        help="the drive's full serial: all data on it may be destroyed; without it, only a terminal is asked",
    )


def confirmed(drive: Drive, destroy_serial: str | None) -> str:
    """The serial under which the drive's data may be destroyed: the one given (the guard compares it), else, at a
    terminal, the drive's own once its last six characters have been typed. Raises UnsafeTarget."""
    if destroy_serial is not None:
        return destroy_serial
    do = (
        f"give --destroy-data {drive.serial}"
        if drive.serial
        else "this drive reports no serial, so it cannot be confirmed"
    )
    if not (drive.serial and sys.stdin.isatty() and sys.stderr.isatty()):
        raise UnsafeTarget("consent to destroy all data of the drive", "no --destroy-data", do)
    print(
        f"All data on it will be destroyed. To go on type the last {TAIL} characters of its serial: ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    typed = sys.stdin.readline().strip()
    if typed.lower() != drive.serial[-TAIL:].lower():
        raise UnsafeTarget(f"the last {TAIL} characters of the serial", repr(typed), do)
    return drive.serial
