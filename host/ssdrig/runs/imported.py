"""import.json of a run folder: that its rig.bin is the recording of another instrument, and what that is worth. The run
itself stays as it was written; whoever opens it finds the recording where a rig's would be."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

NAME = "import.json"
SCHEMA = 1
RIG = "imported"  # key of the header's `rig` that marks it
MOST_BYTES = 1 << 20


def read(run: Path) -> dict[str, Any] | None:
    """The import of a run folder; None without one, or if the file is not ours."""
    try:
        with open(run / NAME, "rb") as file:
            document = json.loads(file.read(MOST_BYTES + 1)[:MOST_BYTES])
    except (OSError, ValueError, RecursionError):
        return None
    whole = isinstance(document, dict) and document.get("schema") == SCHEMA
    return (
        document
        if whole and isinstance(document.get("source"), str) and isinstance(document.get("rig_bin"), list)
        else None
    )


def header(run: Path, document: dict) -> dict:
    """The header of a run, with the instrument of its recording as its `rig` if it had no rig."""
    if document.get("rig") is not None or (made := read(run)) is None:
        return document
    return {**document, "rig": {"port": None, "simulated": False, RIG: made}}


def of(header: Mapping) -> Mapping | None:
    """The import recorded in a header; None if the power is a rig's, or absent."""
    made = (header.get("rig") or {}).get(RIG)
    return made if isinstance(made, Mapping) else None


def document(source: str, rig_bin: bytes, **facts: Any) -> bytes:
    """The bytes of import.json.

    source: what the recording is, in words.
    rig_bin: the content of the run's rig.bin from now on.
    facts: the claim of the clock, the accuracy, the file."""
    made = {"schema": SCHEMA, "source": source, **facts, "rig_bin": [len(rig_bin), f"{crc32(rig_bin):08x}"]}
    return (json.dumps(made, indent=1, ensure_ascii=False) + "\n").encode(errors="replace")
