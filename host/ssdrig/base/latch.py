"""A bench that is `unknown`: a rail was not seen to return, so the drive may be without power.

Stored on disk, one file a rig, until the user has checked the supply and clears it (`ssdrig rig clear`):
    $XDG_STATE_HOME/ssdrig/unknown/<rig's serial>.json   {"rig", "drive", "why", "utc_ns"}
Under sudo it is the folder of the person who called it, so that root and this person see the same. While it is there,
`run --rig`, `rig off`, `rig cut` and the guard (run, purge, calibrate on that drive) refuse; `rig info` shows it,
`rig on` may cure it."""

import json
import re
import time
from pathlib import Path

from ssdrig.base import owner
from ssdrig.base.errors import RigError, reason
from ssdrig.base.files import write_atomically
from ssdrig.base.words import serial_key


def folder() -> Path:
    """Where the latches are kept."""
    return owner.base("XDG_STATE_HOME", ".local/state") / "ssdrig" / "unknown"


def name_of(hello: dict, port: str) -> str:
    """What a rig is known by: its serial, or its port where it reports none."""
    return str(hello.get("serial") or port)


def put(rig: str, why: str, drive: str | None = None) -> dict:
    """Mark the bench of this rig as unknown. Returns the latch. Raises RigError if it cannot be stored."""
    latch = {"rig": rig, "drive": drive, "why": why, "utc_ns": time.time_ns()}
    path = _path(rig)
    try:
        with owner.of_new_files():
            owner.new(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(latch).encode() + b"\n")
    except OSError as error:
        raise RigError(
            f"to note in {path} that the rail of rig {rig} is unknown",
            f"{error.strerror}; {why}",
            "look at the drive's supply before anything else uses it",
        ) from error
    return latch


def of_rig(rig: str) -> dict | None:
    """The latch of a rig, or None. An unreadable file counts as a latch."""
    return _read(_path(rig))


def of_drive(serial: str) -> dict | None:
    """The latch of the bench that a drive was last on, or None. An unreadable latch may belong to any drive."""
    try:
        paths = sorted(folder().glob("*.json"))
    except OSError:
        return None
    latches = [one for path in paths if (one := _read(path))]
    if not serial:
        return None
    of_it = lambda one: serial_key(one["drive"] or "") == serial_key(serial)
    return next((one for one in latches if "unreadable" in one or of_it(one)), None)


def clear(rig: str) -> dict | None:
    """Remove the latch of a rig. Returns the removed latch, or None. Raises RigError."""
    latch = of_rig(rig)
    try:
        _path(rig).unlink(missing_ok=True)
    except OSError as error:
        raise RigError(
            f"to remove {_path(rig)}", str(error.strerror), "remove it with the rights of its owner"
        ) from error
    return latch


def refuse(rig: str) -> None:
    """Raises RigError while the bench with this rig is unknown."""
    if latch := of_rig(rig):
        raise RigError(
            f"a bench whose state is known (rig {rig})",
            in_words(latch),
            "look at the drive's supply, try `./ssdrig rig on`, then `./ssdrig rig clear`",
        )


def in_words(latch: dict) -> str:
    """The event that set the latch, and when."""
    when = (
        time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(latch["utc_ns"] / 1e9)) if latch["utc_ns"] else "some time"
    )
    drive = f", drive {latch['drive']}" if latch["drive"] else ""
    return f"power not seen to return at {when}{drive}: {latch['why']}"


def _path(rig: str) -> Path:
    return folder() / f"{re.sub(r'[^A-Za-z0-9._-]', '-', rig).lstrip('.')}.json"


def _read(path: Path) -> dict | None:
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return _unreadable(path, error.strerror or str(error))
    try:
        latch = json.loads(text)
        if not (isinstance(latch["rig"], str) and isinstance(latch["why"], str) and isinstance(latch["utc_ns"], int)):
            raise ValueError("not as it was written")
        if not (isinstance(latch.get("drive"), str | None) and 0 <= latch["utc_ns"] < 1 << 62):
            raise ValueError("not as it was written")
        return {"drive": None, **latch}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return _unreadable(path, reason(error))


def _unreadable(path: Path, why: str) -> dict:
    return {"rig": path.stem, "drive": None, "why": f"{path} cannot be read ({why})", "utc_ns": 0, "unreadable": True}
