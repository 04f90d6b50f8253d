"""Recognise the controller family of an ATA drive that smartctl's database does not list: by model, firmware and the
set of its attributes (ata_families.toml). Pure, except for reading that table once."""

import functools
import re
import tomllib
from pathlib import Path
from typing import NamedTuple


class Family(NamedTuple):
    """name: as smartctl's database calls the family; names: what its attributes are called there, by id; evidence: what
    the row rests on."""

    name: str
    names: dict[int, str]
    evidence: str


class _Row(NamedTuple):
    model: re.Pattern
    firmware: re.Pattern
    ids: frozenset[int]
    family: Family


def family_of(model: str, firmware: str, ids: frozenset[int]) -> Family | None:
    """The family of a drive.

    model, firmware: as the drive reports them. ids: its attributes, all of which a row asks for must be among them.
    None without a model, and where no row fits."""
    if not model:
        return None
    for row in _rows():
        if row.model.search(model) and row.firmware.search(firmware) and row.ids <= ids:
            return row.family
    return None


@functools.cache
def _rows() -> tuple[_Row, ...]:
    document = tomllib.loads(Path(__file__).with_name("ata_families.toml").read_text("utf-8"))
    return tuple(
        _Row(
            re.compile(row.get("model", "")),
            re.compile(row.get("firmware", "")),
            frozenset(row["ids"]),
            Family(row["family"], {int(key): name for key, name in row["names"].items()}, row["evidence"]),
        )
        for row in document["families"]
    )
