"""The file in which a SIMULATED drive's faults outlive its server: numbers as JSON, then the contents of pages."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ssdrig.virtual.flash import stored_arrays

FILE = "faults.npz"
Keyed = list[tuple[list[int], list[Any]]]  # (page, or page and block), (contents: bytes, None for none)


def save(folder: Path, numbers: Mapping, cells: Mapping[str, Mapping]) -> None:
    """cells: {name: {page or (page, block): content or (content, content)}}. Raises OSError."""
    blob: list[bytes] = []
    arrays: dict[str, list] = {}
    at = 0
    for name, rows in cells.items():
        arrays[name] = []
        for key, content in rows.items():
            keys = [int(number) for number in (key if isinstance(key, tuple) else (key,))]
            places: list[list[int] | None] = []
            for array in content if isinstance(content, tuple) else (content,):
                places.append(None if array is None else [at, len(array)])
                if array is not None:
                    blob.append(array)
                    at += len(array)
            arrays[name].append([keys, places])
    text = json.dumps({"numbers": numbers, "cells": arrays}, default=lambda number: number.item()).encode()
    np.savez(folder / FILE, said=np.frombuffer(text, np.uint8), blob=np.frombuffer(b"".join(blob), np.uint8))


def load(folder: Path, pages: int) -> tuple[dict, dict[str, Keyed]]:
    """(numbers, cells) as save() was given them. Raises OSError, ValueError, KeyError, zipfile.BadZipFile.

    pages: of the drive; a page that it does not have is a ValueError."""
    with stored_arrays.opened(folder / FILE) as stored:
        document = json.loads(stored_arrays.array(stored, "said", np.uint8, None).tobytes())
        blob = stored_arrays.array(stored, "blob", np.uint8, None).tobytes()
    content = lambda place: None if place is None else blob[place[0] : place[0] + place[1]]
    cells = {
        name: [(keys, [content(place) for place in places]) for keys, places in rows]
        for name, rows in document["cells"].items()
    }
    if any(not (type(keys[0]) is int and 0 <= keys[0] < pages) for rows in cells.values() for keys, _ in rows):
        raise ValueError(f"a page that a drive of {pages} pages does not have")
    return document["numbers"], cells
