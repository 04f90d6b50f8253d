"""import.json of a run folder: that its rig.bin is the recording of another instrument, and what that is worth. The run
itself stays as it was written; whoever opens it finds the recording where a rig's would be."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

NAME = "import.json"
SCHEMA = 1
RIG = "imported"  # key of the header's `rig` that says so
MOST_BYTES = 1 << 20


def read(run: Path) -> dict[str, Any] | None:
    """What was imported into a run folder; None where nothing was, or the file is not one of ours."""
    try:
        with open(run / NAME, "rb") as file:
            found = json.loads(file.read(MOST_BYTES + 1)[:MOST_BYTES])
    except (OSError, ValueError, RecursionError):
        return None
    whole = isinstance(found, dict) and found.get("schema") == SCHEMA
    return found if whole and isinstance(found.get("source"), str) and isinstance(found.get("rig_bin"), list) else None


def header(run: Path, found: dict) -> dict:
    """The header of a run, with the instrument of its recording as its `rig` where it had none of its own."""
    if found.get("rig") is not None or (made := read(run)) is None:
        return found
    return {**found, "rig": {"port": None, "simulated": False, RIG: made}}


def of(header: Mapping) -> Mapping | None:
    """What was imported, by a header that was read; None where the power is a rig's, or there is none."""
    made = (header.get("rig") or {}).get(RIG)
    return made if isinstance(made, Mapping) else None


def document(source: str, rig_bin: bytes, **facts: Any) -> bytes:
    """The bytes of import.json.

    source: what the recording is, in words.
    rig_bin: the content of the run's rig.bin from now on.
    facts: the claim of the clock, the accuracy, the file."""
    made = {"schema": SCHEMA, "source": source, **facts, "rig_bin": [len(rig_bin), f"{crc32(rig_bin):08x}"]}
    return (json.dumps(made, indent=1, ensure_ascii=False) + "\n").encode()
