"""RUN/points.made: how the lines of points.lp are made, and whether all of them are there.

{"schema": of influx.toml, "turn_s": seconds of power per batch, "whole": null, or
 {"bytes": of points.lp, "left_out": values that no database can hold, "source": bytes of each file that grows}}
"""

import json
from pathlib import Path
from typing import NamedTuple

from ssdrig.base.files import write_atomically
from ssdrig.publish.influx.line_protocol import SCHEMA
from ssdrig.publish.influx.outbox import Outbox
from ssdrig.runs import integrity

GROWING = ("events.jsonl", "rig.bin")
LIVE_S, ENDED_S = 1, 30  # live, each second comes as soon as it can; of a run that has ended 30 cost as much as one


class Made(NamedTuple):
    """State of a complete points.lp: its size, the omitted values and the sources of its lines."""

    bytes: int
    left_out: int
    source: dict[str, int]


def begin(outbox: Outbox, ended: bool) -> int:
    """Before lines are made: how many seconds of power make a batch, the same as for the lines that are
    there. Lines of another schema are dropped, with the cursor: all are made again."""
    state = _read(outbox.folder)
    if outbox.size and state is None:
        outbox.empty()
    if outbox.size and state is not None:
        turn_s = state["turn_s"]
    else:
        turn_s = ENDED_S if ended else LIVE_S
    _write(outbox.folder, turn_s, None)
    return turn_s


def end(run: Path, turn_s: int, made: Made) -> None:
    _write(run, turn_s, made)


def whole(run: Path) -> Made | None:
    """Not None: points.lp holds all lines of what the run folder holds now."""
    state = _read(run)
    try:
        made = Made(**state["whole"]) if state else None
        size = (run / "points.lp").stat().st_size
    except (OSError, TypeError):
        return None
    return made if made and made.bytes == size and made.source == source(run) else None


def source(run: Path) -> dict[str, int]:
    """Bytes of each file that grows while a run goes on."""
    return {name: (run / name).stat().st_size for name in GROWING if (run / name).exists()}


def _read(run: Path) -> dict | None:
    """None without one of this schema."""
    try:
        document = integrity.document_of(run / "points.made")
        return document if document["schema"] == SCHEMA and document["turn_s"] in (LIVE_S, ENDED_S) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(run: Path, turn_s: int, made: Made | None) -> None:
    content = {"schema": SCHEMA, "turn_s": turn_s, "whole": made and made._asdict()}
    write_atomically(run / "points.made", json.dumps(content).encode() + b"\n")
