"""SMART documents that were saved to files: what `smartctl --json` printed, or smart/<nnn>.json of a run folder."""

import json
import sys
from pathlib import Path

from ssdrig.errors import UsageError

LARGEST_BYTES = 64 << 20  # a hundred times what smartctl prints
DO = "save it with: smartctl --json=cv -x DEVICE > FILE"


def read(names: list[str]) -> list[tuple[str, dict]]:
    """[(file name, document)] of files, folders (their *.json, at any depth) and "-" for stdin. A file in a folder that
    is not a SMART document is left out, with a line on stderr. Raises UsageError for a file that was named and cannot
    be used, and where nothing is left."""
    out = []
    for name in names:
        path = Path(name)
        try:
            is_folder = name != "-" and path.is_dir()
        except PermissionError:  # to read it says so
            is_folder = False
        if not is_folder:
            out.append((name, read_file(name)))
            continue
        before = len(out)
        for file in sorted(path.rglob("*.json")):
            if not file.is_file():  # a pipe would be waited for
                print(f"ssdrig wear: {file} left out: no file", file=sys.stderr)
                continue
            try:
                out.append((str(file), read_file(str(file))))
            except UsageError as error:
                print(f"ssdrig wear: {file} left out: {error.seen}", file=sys.stderr)
        if len(out) == before:
            raise UsageError("SMART documents, *.json", f"a folder with none: {name}", DO)
    return out


def read_file(name: str) -> dict:
    """The SMART document in a file. Raises UsageError."""
    try:
        if name == "-":
            text = sys.stdin.buffer.read(LARGEST_BYTES + 1)
        else:
            with open(name, "rb") as file:
                text = file.read(LARGEST_BYTES + 1)
        if len(text) > LARGEST_BYTES:
            raise UsageError("JSON that smartctl printed", f"more than {LARGEST_BYTES >> 20} MiB: {name}", DO)
    except OSError as error:
        raise UsageError(f"to read {name}", error.strerror or str(error), "correct --smartctl") from error
    try:
        found = json.loads(text)
    except ValueError as error:
        cut = "a document that is cut off or not JSON" if text.strip() else "an empty file"
        raise UsageError("JSON that smartctl printed", f"{cut}: {name}: {error}", DO) from error
    except RecursionError as error:
        raise UsageError("JSON that smartctl printed", f"{name}: nested too deeply", DO) from error
    if isinstance(found, dict):
        if "tools" in found or "t_start_ns" in found:
            return found
        head = found.get("smartctl")
        if (isinstance(head, dict) and "exit_status" in head) or isinstance(found.get("device"), dict):
            return {"smartctl": found}
    raise UsageError("a SMART document: smartctl's JSON, or smart/<nnn>.json of a run", f"other JSON in {name}", DO)


def utc_ns(document: dict) -> int | None:
    """When a document was made: utc_ns of `ssdrig watch`, else smartctl's local_time."""
    inner = document.get("smartctl")
    local = inner.get("local_time") if isinstance(inner, dict) else None
    seconds = local.get("time_t") if isinstance(local, dict) else None
    for value, factor in ((document.get("utc_ns"), 1), (seconds, 10**9)):
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value * factor < 2**62:
            return value * factor
    return None
