"""The other end of the SIMULATED rail: passes the supply state from the simulated board to the virtual drive.

The board writes 9 bytes whenever the supply crosses the drive's under-voltage lock-out: powered u8, CLOCK_MONOTONIC u64
of the crossing. A board that ends lets its gates go, which leaves the rail on."""

import os
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from ssdrig.base.errors import DriveError
from ssdrig.virtual import adminclient

MESSAGE = struct.Struct("<BQ")


def follow(fd: int, admin: Path | None, note: Callable[[int, bool], None]) -> threading.Thread:
    """Read fd to its end in its own thread: note(t_ns, powered) each crossing, pass it to the drive at
    `admin`."""
    thread = threading.Thread(target=_follow, args=(fd, admin, note), name="drive-power", daemon=True)
    thread.start()
    return thread


def _follow(fd: int, admin: Path | None, note: Callable[[int, bool], None]) -> None:
    powered = True
    with os.fdopen(fd, "rb") as crossings:
        while len(message := crossings.read(MESSAGE.size)) == MESSAGE.size:
            state, t_ns = MESSAGE.unpack(message)
            powered = bool(state)
            note(t_ns, powered)
            _tell(admin, powered, t_ns)
    if not powered:
        _tell(admin, True, 0)


def _tell(admin: Path | None, powered: bool, t_ns: int) -> None:
    if admin is None:
        return
    try:
        # the next crossing may come before the drive has started
        request = {"op": "power_on", "wait": False} if powered else {"op": "power_cut", "t_ns": t_ns}
        adminclient.ask(admin, request)
    except DriveError as error:
        print(f"the drive could not be notified of its power: {error}", file=sys.stderr)
