"""Units of counters that earlier calibrations found (`ssdrig units`), by model and firmware, in
$XDG_DATA_HOME/ssdrig/units.json (~/.local/share without it):
{"schema": 1, "units": [{"model", "firmware", "key": "ata:241", "unit_bytes", "counts", "written_bytes", "serial",
"utc"}]}."""

import json
from datetime import UTC, datetime
from pathlib import Path

from ssdrig.base import owner
from ssdrig.base.errors import JournalError, reason
from ssdrig.base.files import write_atomically


def units_path() -> Path:
    return owner.base("XDG_DATA_HOME", ".local/share") / "ssdrig" / "units.json"


def units_for(model: str, firmware: str) -> dict[str, int]:
    """Bytes per count from a calibration of this model and firmware, {"ata:241": 33554432}; {} without one.

    Raises JournalError if the file is there and cannot be read."""
    return {row["key"]: row["unit_bytes"] for row in _load() if (row["model"], row["firmware"]) == (model, firmware)}


def save_units(model: str, firmware: str, serial: str, findings: list[dict], written_bytes: int) -> Path:
    """Keep the findings that have a unit; earlier ones of the same model, firmware and counter are replaced. Raises
    JournalError."""
    utc = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    new = [
        {
            "model": model,
            "firmware": firmware,
            "key": f["key"],
            "unit_bytes": f["unit_bytes"],
            "counts": f["counts"],
            "written_bytes": written_bytes,
            "serial": serial,
            "utc": utc,
        }
        for f in findings
        if f["unit_bytes"]
    ]
    replaced = {(model, firmware, row["key"]) for row in new}
    rows = [row for row in _load() if (row["model"], row["firmware"], row["key"]) not in replaced] + new
    path = units_path()
    try:
        owner.new(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(
            path,
            (json.dumps({"schema": 1, "units": rows}, indent=1, ensure_ascii=False) + "\n").encode(errors="replace"),
        )
    except OSError as error:
        raise JournalError(
            f"to write {path}", error.strerror or str(error), "make room, or set XDG_DATA_HOME to a folder of yours"
        ) from error
    return path


def _load() -> list[dict]:
    path = units_path()
    try:
        rows = json.loads(path.read_bytes())["units"]
        if not all(isinstance(row[name], str) for row in rows for name in ("model", "firmware", "key")) or not all(
            _is_unit(row["unit_bytes"]) for row in rows
        ):
            raise ValueError("a row without model, firmware, key or unit_bytes")
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise JournalError(
            f"the units of earlier calibrations in {path}",
            reason(error),
            "correct the file, or move it away and run `./ssdrig units SERIAL` again",
        ) from error
    return rows


def _is_unit(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
