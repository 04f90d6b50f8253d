"""A trace played on a drive of this machine, which the guard holds, or on a virtual one, from the check to the
figures."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ssdrig.base.errors import DriveError, UsageError
from ssdrig.base.progress import Progress
from ssdrig.base.words import clock, parse_bytes, size
from ssdrig.drive import guard, inventory, sysfs, witness
from ssdrig.drive.confirm import confirmed
from ssdrig.drive.wear import warranty
from ssdrig.load import played, trace_player, trace_targets, trace_unwritten, traceform
from ssdrig.virtual import bench

FILL_BYTES, FILL_DEPTH = 8 << 20, 8


@dataclass(frozen=True)
class Asked:
    """A trace to play, and how; `records`: folder for the times of each I/O; `fill`: write first what the trace reads
    before it writes it, so that all data read has been written."""

    name: str
    header: dict
    rows: np.ndarray
    how: trace_player.How
    records: Path | None = None
    fill: bool = False

    @cached_property
    def unwritten(self) -> np.ndarray:
        """As trace_unwritten.ranges(), none beyond the farthest I/O."""
        reach = max(int((part["offset_bytes"] + part["length_bytes"]).max()) for part in self._parts())
        return np.minimum(trace_unwritten.ranges(self._parts()), reach)

    def check(self) -> None:
        """Raises UsageError for a trace that reads unwritten places: a drive answers them without its flash."""
        if not self.fill and len(self.unwritten):
            moved = size(int(np.diff(self.unwritten).sum()))
            raise UsageError(
                "a trace that reads only its own data, or data in its range",
                f"{self.name} reads {moved} that it did not write before",
                "add --fill, which writes them first, or play it in a plan (replay), which proves the drive's state",
            )

    def filling(self) -> np.ndarray:
        """The rows of the fill: what the trace reads and did not write, in rising order."""
        begin, length = self.unwritten[:, 0], np.diff(self.unwritten)[:, 0]
        pieces = -(-length // FILL_BYTES)
        first = np.cumsum(pieces) - pieces
        at = (np.arange(int(pieces.sum())) - np.repeat(first, pieces)) * FILL_BYTES  # of each piece in its range
        rows = np.zeros(len(at), traceform.ROW)
        rows["offset_bytes"] = np.repeat(begin, pieces) + at
        rows["length_bytes"] = np.minimum(FILL_BYTES, np.repeat(length, pieces) - at)
        rows["op"], rows["depth"] = traceform.WRITE, FILL_DEPTH
        return rows

    def times(self) -> dict:
        """As trace_player.times()."""
        return trace_player.times(self._parts(), self.how)

    def _parts(self) -> Iterator[np.ndarray]:
        return traceform.windows(self.rows)

    def what(self) -> str:
        times = self.times()
        time = "as fast as the drive can" if self.how.closed else f"in {clock(times['play_s'])} or longer"
        if times["play_s"] != times["trace_s"]:
            time += f" (the trace: {clock(times['trace_s'])})"
        first = f"fill of {size(self.filled_bytes())}, then " if self.filled_bytes() else ""
        return f"{first}play of {self.name}, {len(self.rows)} I/Os {time}"

    def filled_bytes(self) -> int:
        return int(np.diff(self.unwritten).sum()) if self.fill else 0

    def written_bytes(self) -> int:
        """By the trace and the fill."""
        return self.filled_bytes() + sum(
            int(part["length_bytes"][part["op"] == traceform.WRITE].sum(dtype=np.int64)) for part in self._parts()
        )

    def fua_writes(self) -> int:
        return sum(int(np.count_nonzero(part["flags"] & traceform.FUA)) for part in self._parts())

    def longest(self) -> int:
        return max(FILL_BYTES if self.fill else 0, *self._longest())

    def _longest(self) -> list[int]:
        return [int(part["length_bytes"][part["op"] <= traceform.WRITE].max(initial=4096)) for part in self._parts()]


def on_drive(asked: Asked, name: str, destroy_serial: str | None, dry_run: bool) -> dict:
    """As result(). Raises UsageError, UnsafeTarget, DriveError, ToolMissing."""
    drive, show = inventory.find(name), Progress()
    trace_player.fits(asked.rows, drive.capacity_bytes, drive.logical_block_bytes)
    rated = warranty.rated_bytes(warranty.limits_for(drive.model, drive.capacity_bytes))
    print(guard.announcement(drive, asked.what(), asked.written_bytes(), rated), file=sys.stderr)
    if dry_run:
        guard.announce_refusals(drive, destroy_serial, lambda words: print(words, file=sys.stderr))
        return result(asked, drive.model, drive.simulated, None)
    with guard.hold(drive, confirmed(drive, destroy_serial)) as held:
        held.check()
        with held.named() as named, trace_targets.device(held.path, asked.longest()) as target:
            before = witness.read(named.name)
            trace_player.fits(asked.rows, target.size_bytes, target.block_bytes)
            played = _play(asked, target, show)
            counted = witness.between(before, witness.read(named.name))["drive"]
    ios = counted["reads"] + counted["writes"] if counted else 0
    mean_us = 1000 * counted["wait_ms"] / ios if ios else None
    has_fua = sysfs.text(f"/sys/block/{drive.name}/queue/fua") != "0"
    return result(asked, drive.model, drive.simulated, played, mean_us, has_fua)


def on_virtual(asked: Asked, preset: str, capacity: str | None, dry_run: bool) -> dict:
    """As result(). Raises UsageError, DriveError."""
    from ssdrig.virtual.flash.presets import PRESETS  # imports numba, which a play on a real drive does not need

    if preset not in PRESETS:
        raise UsageError(f"one of {', '.join(PRESETS)}", preset, "see ./ssdrig virtual --list-presets")
    if capacity:
        parse_bytes(capacity)
    model = PRESETS[preset].model
    print(f"{model}: {asked.what()}: writes {size(asked.written_bytes())}.", file=sys.stderr)
    if dry_run:
        trace_player.fits(asked.rows, parse_bytes(capacity) if capacity else PRESETS[preset].capacity_bytes, 4096)
        return result(asked, model, True, None)
    running = bench.start(preset, capacity=capacity, board=False)
    try:
        how = trace_player.How(**(vars(asked.how) | {"dilation": running.drive["time_dilation"]}))
        asked = replace(asked, how=how)
        with trace_targets.nbd(running.drive["socket"], asked.longest()) as target:
            trace_player.fits(asked.rows, target.size_bytes, target.block_bytes)
            played = _play(asked, target, Progress())
    finally:
        running.end()
    return result(asked, model, True, played)


def result(
    asked: Asked,
    drive: str,
    simulated: bool,
    figures: dict | None,
    kernel_mean_us: float | None = None,
    has_fua: bool = True,
) -> dict:
    """{"trace", "source", "service" (times of the original, as the trace's header has them), "sha256", "scaled",
    "drive", "simulated", "how", "written_bytes", "filled_bytes" (of them by the fill before), "figures" (as
    played.figures(); None of a dry run), "times" (as trace_player.times()), "kernel_mean_us" (of an I/O of a block
    device, by the kernel's counts), "fua": {"writes", "by_flush": the drive lacks FUA, and the kernel sends a FLUSH
    after each of them}}."""
    return {
        "trace": asked.header.get("name", asked.name),
        "source": asked.header.get("source"),
        "service": asked.header.get("service"),
        "sha256": asked.header["sha256"],
        "scaled": bool(asked.header.get("scaled")),
        "drive": drive,
        "simulated": simulated,
        "how": vars(asked.how),
        "written_bytes": asked.written_bytes(),
        "filled_bytes": asked.filled_bytes(),
        "figures": figures,
        "times": asked.times(),
        "kernel_mean_us": kernel_mean_us,
        "fua": {"writes": asked.fua_writes(), "by_flush": not has_fua},
    }


def _play(asked: Asked, target: trace_player.Target, show: Progress) -> dict:
    total = len(asked.rows)
    if asked.filled_bytes():
        filling = asked.filling()
        with open(os.devnull, "wb") as nowhere:
            show.show(f"fill of {size(asked.filled_bytes())}")
            trace_player.play(filling, target, trace_player.How(closed=True, dilation=asked.how.dilation), nowhere)

    def look(ended: int) -> None:
        show.show(f"{asked.name}: {ended} of {total} I/Os, {100 * ended / total:.0f} %")

    with _records(asked.records) as out:
        t0_ns = trace_player.play(asked.rows, target, asked.how, out, look)
        out.flush()
        records = np.memmap(out, played.RECORD, "r")
        if len(records) != total:
            raise DriveError(f"{total} I/Os ended", f"{len(records)}", "play it again")
        return played.figures(asked.rows, records, t0_ns, asked.how.closed, asked.how.dilation)


@contextmanager
def _records(path: Path | None) -> Iterator[Any]:
    with open(path, "xb+") if path else tempfile.TemporaryFile(prefix="ssdrig-trace-", dir="/var/tmp") as out:
        yield out
