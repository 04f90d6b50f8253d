"""Settings that a run changed and did not restore: its process was killed, or the drive did not answer at its end.

Stored on disk, one file a drive, before each change; a setting leaves the file when its old value is back:
    $XDG_STATE_HOME/ssdrig/settings/<serial>-<sum>.json   {"serial", "model", "boot_id", "run", "utc_ns", "before"}
`before` has of each setting what conditions.setting() returned. While the file has one whose value is another, the
guard refuses to write the drive (any drive for a setting of the host); `drives --put-back` and the run's `resume` put
the old values back. A restart of the host lets all lapse but the write cache, which drives keep."""

import contextlib
import json
import os
import re
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ssdrig.base import owner, system
from ssdrig.base.errors import DriveError, reason
from ssdrig.base.files import write_atomically
from ssdrig.base.terminal import printable
from ssdrig.base.words import serial_key
from ssdrig.drive import conditions, features
from ssdrig.drive.inventory import Drive

SURVIVES_RESTART = "write_cache"
MOST_BYTES = 1 << 16


@dataclass(frozen=True)
class Unrestored:
    """Settings of one file whose values are not `before`. `now`: their present values, None where one cannot be read.
    `trouble`: why the file cannot be read."""

    path: Path
    run: str = ""
    utc_ns: int = 0
    before: dict[str, list[str]] = field(default_factory=dict)
    now: dict[str, str | None] = field(default_factory=dict)
    trouble: str = ""

    def words(self) -> str:
        """Each setting with both values, the run that changed it, and when; or why the file cannot be read."""
        if self.trouble:
            return f"{self.path} cannot be read ({self.trouble}): look at the drive's settings, then remove it"
        values = "; ".join(f"{key} is {now or 'not known'}, was {self.before[key][0]}" for key, now in self.now.items())
        when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.utc_ns / 1e9))
        return printable(f"{values}: run {self.run} changed them at {when} and did not restore them")


def folder() -> Path:
    """Where the files are."""
    return owner.base("XDG_STATE_HOME", ".local/state") / "ssdrig" / "settings"


def note(drive: Mapping, run: Path, key: str, before: Sequence[str]) -> None:
    """Store the value of a setting that a run is about to change; the first value that this run gives stays, and what
    an earlier one noted goes: it had restored all, or could not have begun. Raises DriveError where it cannot be
    stored."""
    if drive.get("preset"):
        return  # a virtual drive ends with its run
    path = _path(drive)
    facts = {"serial": drive["serial"], "model": drive["model"], "boot_id": system.boot_id()}
    facts |= {"run": str(run.absolute())}
    noted = _read(path)
    same = isinstance(noted, dict) and all(noted[fact] == value for fact, value in facts.items())
    old = noted["before"] if same and isinstance(noted, dict) else {}
    try:
        _write(path, facts | {"utc_ns": time.time_ns(), "before": {**old, key: old.get(key, list(before))}})
    except OSError as error:
        raise DriveError(
            f"to note in {path} that {key} was {before[0]}",
            error.strerror or str(error),
            "make room, or give the folder back: after a kill nothing else reports the setting",
        ) from error


def restored(drive: Mapping, key: str, value: Sequence[str]) -> None:
    """Forget a setting whose noted value is back. Where the file cannot be changed the setting stays in it, and is
    compared with the drive before it is reported."""
    if drive.get("preset"):
        return
    path = _path(drive)
    noted = _read(path)
    if not isinstance(noted, dict) or noted["before"].get(key) != list(value):
        return
    left = {other: before for other, before in noted["before"].items() if other != key}
    with contextlib.suppress(OSError):
        if left:
            _write(path, noted | {"before": left})
        else:
            path.unlink()


def of(
    drive: Drive, node: str, is_held: Callable[[str], bool], root: str | os.PathLike = "/", resumed: Path | None = None
) -> list[Unrestored]:
    """What ended runs left changed of a drive that no run holds, and of the host. `node`: by which to read the drive;
    `is_held`: whether a run holds the drive of a serial; `resumed`: the run that goes on, which restores its own."""
    own = _path({"serial": drive.serial, "model": drive.model})
    out = []
    for path in _files():
        noted = _read(path)
        if isinstance(noted, str):
            if path == own:
                out.append(Unrestored(path, trouble=noted))
            continue
        if noted is None or (resumed and noted["run"] == str(resumed.absolute())):
            continue
        if path != own and is_held(noted["serial"]):
            continue
        same_boot = noted["boot_id"] == system.boot_id()
        before = {
            key: value
            for key, value in noted["before"].items()
            if (same_boot or key == SURVIVES_RESTART) and (path == own or not conditions.is_of_drive(key))
        }
        values = {key: _value(key, drive, node, root) for key in before}
        changed = {key: value[0] if value else None for key, value in values.items() if value != before[key]}
        if changed:
            out.append(Unrestored(path, noted["run"], noted["utc_ns"], before, changed))
    return out


def put_back(left: Unrestored, drive: Drive, root: str | os.PathLike = "/") -> None:
    """Restore the settings and forget them. Raises DriveError, every setting tried."""
    errors = []
    for key in left.now:
        try:
            conditions.put_back(key, left.before[key], drive.name, root, drive.controller)
        except DriveError as error:
            errors.append(error)
    if left.trouble or errors:
        raise DriveError(
            "each setting put back",
            left.words() if left.trouble else "; ".join(f"{error.expected}: {error.seen}" for error in errors),
            f"look at the drive; to keep its settings as they are, remove {left.path}",
        )
    noted = _read(left.path)
    if isinstance(noted, dict):
        for key, before in left.before.items():
            restored(noted, key, before)


def _value(key: str, drive: Drive, node: str, root: str | os.PathLike) -> list[str] | None:
    try:
        with conditions.awake(key, node):
            return conditions.setting(key, drive.name, root, drive.controller)
    except DriveError:
        return None


def _path(drive: Mapping) -> Path:
    """The file of a drive: a serial may be another model's, too."""
    serial = serial_key(str(drive["serial"])).upper()
    check = zlib.crc32(f"{serial}\0{drive['model']}".encode(errors="replace"))
    return folder() / f"{re.sub(r'[^A-Za-z0-9._-]', '-', serial).lstrip('.')[:80]}-{check:08x}.json"


def _files() -> list[Path]:
    try:
        return sorted(folder().glob("*.json"))
    except OSError:
        return []


def _write(path: Path, document: Mapping) -> None:
    with owner.of_new_files():
        owner.new(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(document).encode() + b"\n")


def _read(path: Path) -> dict | str | None:
    """The content of a file; None: it does not exist; words: why it cannot be read."""
    try:
        with open(path, "rb") as file:
            noted = json.loads(file.read(MOST_BYTES))
        words = [noted["serial"], noted["model"], noted["run"], *noted["before"]]
        values = [word for value in noted["before"].values() for word in (*value, value[0])]
        known = set(noted["before"]) <= {*conditions.FILES, *features.SETTINGS}
        if not (known and all(isinstance(word, str) for word in (*words, *values)) and 0 <= noted["utc_ns"] < 1 << 62):
            raise ValueError("not as it was written")
        return {"boot_id": None, **noted}
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        return reason(error)
