"""A bench that is `unknown`: a rail was not seen to return, so nobody knows whether the drive has power.

Kept on disk, a file for each rig, until a person has looked and clears it (`ssdrig rig clear`):
    $XDG_STATE_HOME/ssdrig/unknown/<rig's serial>.json   {"rig", "drive", "why", "utc_ns"}
Under sudo it is the folder of the person who called it, so that root and this person see the same. While it is there,
`run --rig`, `rig off`, `rig cut` and the guard (run, purge, calibrate on that drive) refuse; `rig info` shows it,
`rig on` may cure it."""

import json
import re
import time
from pathlib import Path

from ssdrig.base import owner
from ssdrig.base.errors import RigError
from ssdrig.base.files import write_atomically
from ssdrig.base.words import serial_key


def folder() -> Path:
    """Where the latches are kept."""
    return owner.base("XDG_STATE_HOME", ".local/state") / "ssdrig" / "unknown"


def name_of(hello: dict, port: str) -> str:
    """What a rig is known by: its serial, or its port where it reports none."""
    return str(hello.get("serial") or port)


def put(rig: str, why: str, drive: str | None = None) -> dict:
    """From now on the bench with this rig is unknown. Returns what is kept. Raises RigError if it cannot be kept."""
    kept = {"rig": rig, "drive": drive, "why": why, "utc_ns": time.time_ns()}
    path = _path(rig)
    try:
        with owner.of_new_files():
            owner.new(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(kept).encode() + b"\n")
    except OSError as error:
        raise RigError(
            f"to note in {path} that the rail of rig {rig} is unknown",
            f"{error.strerror}; {why}",
            "look at the drive's supply before anything else uses it",
        ) from error
    return kept


def of_rig(rig: str) -> dict | None:
    """What is kept of a rig, None if nothing is. A file that cannot be read is a latch too."""
    return _read(_path(rig))


def of_drive(serial: str) -> dict | None:
    """The latch of the bench that a drive was last on. One that cannot be read may be of any drive."""
    try:
        found = sorted(folder().glob("*.json"))
    except OSError:
        return None
    kept = [one for path in found if (one := _read(path))]
    if not serial:
        return None
    of_it = lambda one: serial_key(one["drive"] or "") == serial_key(serial)
    return next((one for one in kept if "unreadable" in one or of_it(one)), None)


def clear(rig: str) -> dict | None:
    """A person has looked: the latch goes. Returns what was kept, None if nothing was. Raises RigError."""
    kept = of_rig(rig)
    try:
        _path(rig).unlink(missing_ok=True)
    except OSError as error:
        raise RigError(
            f"to remove {_path(rig)}", str(error.strerror), "remove it with the rights of its owner"
        ) from error
    return kept


def refuse(rig: str) -> None:
    """Raises RigError while the bench with this rig is unknown."""
    if kept := of_rig(rig):
        raise RigError(
            f"a bench whose state is known (rig {rig})",
            in_words(kept),
            "look at the drive's supply, try `./ssdrig rig on`, then `./ssdrig rig clear`",
        )


def in_words(kept: dict) -> str:
    """What was seen, and when."""
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(kept["utc_ns"] / 1e9)) if kept["utc_ns"] else "some time"
    drive = f", drive {kept['drive']}" if kept["drive"] else ""
    return f"power not seen to return at {when}{drive}: {kept['why']}"


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
        kept = json.loads(text)
        if not (isinstance(kept["rig"], str) and isinstance(kept["why"], str) and isinstance(kept["utc_ns"], int)):
            raise ValueError("not as it was written")
        if not (isinstance(kept.get("drive"), str | None) and 0 <= kept["utc_ns"] < 1 << 62):
            raise ValueError("not as it was written")
        return {"drive": None, **kept}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return _unreadable(path, str(error))


def _unreadable(path: Path, why: str) -> dict:
    return {"rig": path.stem, "drive": None, "why": f"{path} cannot be read ({why})", "utc_ns": 0, "unreadable": True}
