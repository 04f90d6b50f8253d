"""Sizes as people write them."""

import re

from ssdrig.errors import UsageError

_UNITS = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}


def parse_bytes(text: str) -> int:
    """ "4GiB" -> 4294967296. Raises UsageError."""
    match = re.fullmatch(r"(\d+)\s*([A-Za-z]*)", text.strip())
    if not match or match[2] not in _UNITS:
        raise UsageError(
            "a size such as 4GiB or 240GB", text, f"use one of the units {' '.join(u for u in _UNITS if u)}"
        )
    return int(match[1]) * _UNITS[match[2]]
