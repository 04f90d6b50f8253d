"""The raw NAND of a model by raw_nand.toml, for drives do not report it."""

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ssdrig.drive.wear.warranty import CAPACITY_TOLERANCE

TABLE = Path(__file__).with_suffix(".toml")
GIB = 1 << 30


class Known(NamedTuple):
    """A model's raw NAND, and its source."""

    raw_bytes: int
    source: str


def of_model(model: str | None, capacity_bytes: int | None) -> Known | None:
    """None where no row has the model at this capacity."""
    for row in _rows():
        if not model or not capacity_bytes or not re.search(row["model"], model):
            continue
        for sold_GB, raw_GiB in row["GiB_by_GB"].items():
            if abs(capacity_bytes / (float(sold_GB) * 1e9) - 1) <= CAPACITY_TOLERANCE:
                return Known(raw_GiB * GIB, row["source"])
    return None


def words(drive: Mapping) -> str | None:
    """The source of a drive's raw NAND, if that is its model's; otherwise None. drive: as in run.json."""
    known = of_model(drive.get("model"), drive.get("capacity_bytes"))
    if known is None or known.raw_bytes != drive.get("raw_nand_bytes"):
        return None
    return f"raw NAND {known.raw_bytes // GIB} GiB, by {known.source}"


@functools.cache
def _rows() -> list[dict]:
    return tomllib.loads(TABLE.read_text("utf-8"))["drive"]
