"""The folder of a played trace (schemas/journal.md, played/) -> its seconds, its figures, and its written bytes."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ssdrig.base.errors import LoadError, UsageError, reason
from ssdrig.load import fioseconds, fiotext, played, trace_player, traceform
from ssdrig.load.fioseconds import TAIL_MS, WINDOW_MS, Seconds
from ssdrig.load.traceform import READ, WRITE
from ssdrig.runs import integrity

RECORDS, START, LINES = "records.bin", "start.json", "out.json"
SECOND_NS = 1_000_000_000
AT_ONCE = 1 << 20
DIRECTIONS = {"read": READ, "write": WRITE}
UNSEEN_IOS = 1 << 16  # the player may have had this many under way or ended that its records do not have yet


def load(folder: Path, direction: str | None = None) -> Seconds:
    """Its reads and writes by the second, from the intended time of the first I/O on; each I/O counts in the second in
    which it ended. `direction` "read" or "write": those only. Raises LoadError."""
    rows, records, state = _of(folder)
    ops = [DIRECTIONS[direction]] if direction else list(DIRECTIONS.values())
    t0_ns = int(records["intended_ns"][0])
    end_ns = max(int(records["done_ns"][first : first + AT_ONCE].max()) for first in range(0, len(records), AT_ONCE))
    runtime_ms = (end_ns - t0_ns) / 1e6
    n = max(1, -(-int(runtime_ms - TAIL_MS) // WINDOW_MS))
    ios, moved, lat_ns, cells = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n), []
    seen = set()
    for part, part_records in _parts(rows, records):
        chosen = np.isin(part["op"], ops)
        seen |= set(np.unique(part["op"][chosen]).tolist())
        second = np.minimum((part_records["done_ns"][chosen] - t0_ns) // SECOND_NS, n - 1)
        took_ns = part_records["done_ns"][chosen] - part_records["issued_ns"][chosen]
        ios += np.bincount(second, minlength=n)
        moved += np.bincount(second, part["length_bytes"][chosen], n).astype(np.int64)
        lat_ns += np.bincount(second, took_ns, n)
        key, counts = np.unique(second * fiotext.BINS + fiotext.plat_index(took_ns), return_counts=True)
        cells.append(np.stack([*np.divmod(key, fiotext.BINS), counts], axis=1))
    total = fiotext.totals(None) | {
        "ios": int(ios.sum()),
        "bytes": int(moved.sum()),
        "runtime_ms": runtime_ms,
        "lat_sum_ns": float(lat_ns.sum()),
        "directions": tuple(name for name, op in DIRECTIONS.items() if op in seen),
        "cpu_percent": 100 * state["cpu_s"] / (runtime_ms / 1000) if state.get("cpu_s") and runtime_ms else None,
    }
    quantiles = fioseconds.quantiles(np.concatenate(cells), n)
    partial = runtime_ms < n * WINDOW_MS - TAIL_MS
    made = fioseconds.seconds(0, ios, lat_ns / np.maximum(ios, 1), quantiles, partial, "records", total, 0)
    notes = () if len(records) == len(rows) else (f"{len(records)} of the trace's {len(rows)} I/Os are kept",)
    t_ns = t0_ns + np.arange(n, dtype=np.int64) * SECOND_NS
    return replace(made, t_ns=t_ns, bw_bytes=moved, hist_of="lat", notes=notes, start_error_ns=0.0)


def figures(folder: Path, dilation: int) -> dict:
    """played.figures() of the stored records, with {"trace", "source", "service" (times of the original, as the trace's
    header has them), "times" (trace_player.times()), "fua_writes" (how many), "synthetic", "scaled", "of_ios" (of the
    whole trace), "how", "late_us" (delay of a virtual drive's answers against its own time; None for another drive)}.
    Raises LoadError."""
    rows, records, state = _of(folder)
    header, how = state["header"], state["how"]
    figures = played.figures(rows, records, int(records["intended_ns"][0]), bool(how.get("closed")), dilation)
    named = {"trace": header.get("name"), "source": header.get("source"), "synthetic": bool(header.get("synthetic"))}
    named["fua_writes"] = int(np.count_nonzero(rows["flags"][: len(records)] & traceform.FUA))
    named["service"], named["times"] = (
        _service(header.get("service")),
        trace_player.times(traceform.windows(rows), _how(how)),
    )
    return (
        named
        | {"scaled": bool(header.get("scaled")), "of_ios": len(rows), "how": how, "late_us": state.get("late_us")}
        | figures
    )


def _how(how: dict[str, Any]) -> trace_player.How:
    """Raises LoadError."""
    try:
        asked = trace_player.How(**{key: how[key] for key in ("closed", "speed", "idle_cap_ns") if key in how})
        asked.check()
    except (TypeError, UsageError) as error:
        raise LoadError("how the trace was played", str(error), f"{START} is damaged") from error
    return asked


def _service(stated: object) -> dict | None:
    """The service times in a header, without what is no number; None without any."""
    sides = stated.items() if isinstance(stated, dict) else ()
    numbers = {
        side: {key: value for key, value in part.items() if isinstance(value, int | float)}
        for side, part in sides
        if isinstance(part, dict)
    }
    return numbers or None


def written_bytes(folder: Path, since_ns: int | None = None) -> tuple[int, int]:
    """The least and the most bytes that the play has written since then (None: all of it); of one that was cut short
    its I/Os in flight are included in the most."""
    try:
        rows, records, state = _of(folder)
    except LoadError:
        try:
            rows, records, state = *_rows(folder), {}
        except LoadError:
            return 0, 0
    least = most = 0
    for part, part_records in _parts(rows, records):
        is_write, length = part["op"] == WRITE, part["length_bytes"].astype(np.int64)
        since = since_ns or 0
        least += int(length[is_write & (part_records["issued_ns"] >= since)].sum())
        most += int(length[is_write & (part_records["done_ns"] >= since)].sum())
    if not state.get("ended"):
        ahead = rows[len(records) : len(records) + UNSEEN_IOS]
        most += int(ahead["length_bytes"][ahead["op"] == WRITE].sum(dtype=np.int64))
    return least, most


def _parts(rows: np.ndarray, records: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for first in range(0, len(records), AT_ONCE):
        chunk = records[first : first + AT_ONCE]
        yield rows[first : first + len(chunk)], chunk


def _of(folder: Path) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """(rows of the trace, records of its first I/Os, at least one; start.json and the last line of out.json)."""
    rows, records = _rows(folder)
    if not len(records):
        raise LoadError(f"I/Os that have ended in {folder}", "none", "the play was cut short at its start")
    return rows, records, _start(folder) | _last(folder)


def _rows(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        _, rows = traceform.read(folder / str(_start(folder)["trace"]))
        size = (folder / RECORDS).stat().st_size // played.RECORD.itemsize
        records = np.zeros(0, played.RECORD)
        if size:
            records = np.memmap(folder / RECORDS, played.RECORD, "r", 0, (min(size, len(rows)),))
    except (OSError, ValueError, KeyError, UsageError) as error:
        raise LoadError(f"a played trace in {folder}", reason(error), "take it from a copy of the run") from error
    if len(records) and (np.any(records["done_ns"] < records["issued_ns"]) or records["intended_ns"][0] <= 0):
        raise LoadError(f"times of I/Os in {folder / RECORDS}", "ends before beginnings", "the file is damaged")
    return rows, records


def _start(folder: Path) -> dict[str, Any]:
    try:
        document = integrity.document_of(folder / START)
    except (OSError, ValueError, RecursionError) as error:
        raise LoadError(f"{START} in {folder}", str(error), "take it from a copy of the run") from error
    if (
        not isinstance(document, dict)
        or not isinstance(document.get("header"), dict)
        or not isinstance(document["how"], dict)
    ):
        raise LoadError(f"{START} of a played trace in {folder}", "another content", "the file is damaged")
    return document


def _last(folder: Path) -> dict[str, Any]:
    """The player's last message: {"cpu_s", "ended"} if it finished."""
    try:
        with open(folder / LINES, "rb") as f:
            f.seek(max(0, f.seek(0, os.SEEK_END) - 4096))
            end = json.loads(f.read().splitlines()[-1])
    except (OSError, ValueError, IndexError, RecursionError):
        return {}
    return end if isinstance(end, dict) else {}
