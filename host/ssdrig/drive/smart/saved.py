"""SMART documents that were saved to files, in any of the forms of forms.py."""

import sys
from pathlib import Path

from ssdrig.base.errors import UsageError
from ssdrig.drive.smart import forms

LARGEST_BYTES = 64 << 20  # a hundred times what smartctl prints


def read(names: list[str]) -> list[tuple[str, dict]]:
    """[(label, document)] of files, folders (their *.json, at any depth) and "-" for stdin. A file in a folder that
    is not a SMART document is left out, with a line on stderr. Raises UsageError for a file that was named and cannot
    be used, and where nothing is left."""
    out: list[tuple[str, dict]] = []
    for name in names:
        path = Path(name)
        try:
            is_folder = name != "-" and path.is_dir()
        except PermissionError:  # reading it reports the error
            is_folder = False
        if not is_folder:
            out += read_file(name)
            continue
        before = len(out)
        for file in sorted(path.rglob("*.json")):
            if not file.is_file():  # a pipe would be waited for
                print(f"ssdrig wear: {file} left out: no file", file=sys.stderr)
                continue
            try:
                out += read_file(str(file))
            except UsageError as error:
                print(f"ssdrig wear: {file} left out: {error.seen}", file=sys.stderr)
        if len(out) == before:
            raise UsageError("SMART documents, *.json", f"a folder with none: {name}", forms.DO)
    return forms.with_identity(out)


def read_file(name: str) -> list[tuple[str, dict]]:
    """[(label, SMART document)] of a file; the label is its name, with a number where it has several. Raises
    UsageError."""
    try:
        if name == "-":
            content = sys.stdin.buffer.read(LARGEST_BYTES + 1)
        else:
            with open(name, "rb") as file:
                content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise UsageError("JSON that smartctl printed", f"more than {LARGEST_BYTES >> 20} MiB: {name}", forms.DO)
    except OSError as error:
        raise UsageError(f"to read {name}", error.strerror or str(error), "correct --smartctl") from error
    documents = forms.documents(content, name)
    return [(name if len(documents) == 1 else f"{name}, {number}", one) for number, one in enumerate(documents, 1)]


def utc_ns(document: dict) -> int | None:
    """When a document was made: utc_ns of `ssdrig watch`, else smartctl's local_time."""
    inner = document.get("smartctl")
    local = inner.get("local_time") if isinstance(inner, dict) else None
    seconds = local.get("time_t") if isinstance(local, dict) else None
    for value, factor in ((document.get("utc_ns"), 1), (seconds, 10**9)):
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value * factor < 2**62:
            return value * factor
    return None
