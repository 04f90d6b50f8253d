"""Reads a drive database of smartmontools (drivedb.h): C strings in braces."""

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "drivedb"
RELEASES = [*(f"ddb_RELEASE_7_{minor}.h" for minor in range(6)), "drivedb_branch_2025.h"]
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|//[^\n]*|/\*.*?\*/|([{},])', re.DOTALL)
_PRESET = re.compile(r"-v (\d+),([^, ]+)(?:,([^, ]+))?(?:,(HDD|SSD))?")


def families(text: str) -> list[tuple[str, dict[int, tuple[str, str, str]]]]:
    """[(family, {attribute id: (format, name, "HDD", "SSD" or "")})] in the order of the file; an entry may appear
    twice under one name. Of USB bridges and the version line too, whose attributes are {}."""
    out = []
    for fields in _entries(text):
        rows = {
            int(key): (form, name, kind)
            for key, form, name, kind in _PRESET.findall(fields[4] if len(fields) > 4 else "")
        }
        out.append((fields[0], rows))
    return out


def _entries(text: str) -> list[list[str]]:
    out: list[list[str]] = []
    fields: list[str] | None = None
    for match in _TOKEN.finditer(text):
        string, mark = match[1], match[2]
        if mark == "{":
            fields = [""]
        elif fields is None:
            continue
        elif string is not None:
            fields[-1] += string
        elif mark == ",":
            fields.append("")
        elif mark == "}":
            out.append(fields)
            fields = None
    return out
