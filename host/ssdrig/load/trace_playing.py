"""The process that plays a trace for load/trace_process.py: python -m ssdrig.load.trace_playing FOLDER PARENT. It
prints a JSON line each second, and one at its end: {"ended": true, "cpu_s", of a virtual drive "late_us"}, {"ended":
false} where it was asked to end (SIGTERM), or {"error": [class, expected, seen, do]}."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from ssdrig.base import prctl
from ssdrig.base.errors import SsdrigError
from ssdrig.load import trace_player, trace_targets, traceform
from ssdrig.load.playedlog import RECORDS, START
from ssdrig.load.traceform import WRITE


@runtime_checkable
class Stamped(Protocol):
    """Source of completion times; its answers come `late_us` later, on average."""

    @property
    def late_us(self) -> float: ...


class Asked(Exception):
    """Someone asked for the end."""


class Lines:
    """I/Os ended so far, counted in the order of the trace: {"t_ns", "span_s" (since the last line), "iops",
    "bw_bytes" (of a second), "total_ios", "total_bytes" (written), "runtime_s"}."""

    def __init__(self, rows: np.ndarray):
        self.rows, self.begun_ns, self.reported_ns = rows, time.monotonic_ns(), time.monotonic_ns()
        self.reported = self.moved = self.written = 0

    def look(self, ended: int) -> None:
        """Print one where a second is over. Raises Asked."""
        if _asked:
            raise Asked
        now = time.monotonic_ns()
        span_s = (now - self.reported_ns) / 1e9
        if span_s < 1:
            return
        new = self.rows[self.reported : ended]
        moves, length = new["op"] <= WRITE, new["length_bytes"].astype(np.int64)
        self.written += int(length[new["op"] == WRITE].sum())
        start = {
            "t_ns": now,
            "span_s": span_s,
            "iops": int(moves.sum()) / span_s,
            "bw_bytes": int(length[moves].sum()) / span_s,
            "total_ios": ended,
            "total_bytes": self.written,
            "runtime_s": (now - self.begun_ns) / 1e9,
        }
        self.reported, self.reported_ns = ended, now
        _say(start)


_asked: list[int] = []


def _say(message: dict) -> None:
    print(json.dumps(message), flush=True)


def main(folder: Path) -> dict:
    """Plays it; its last line."""
    start = json.loads((folder / START).read_bytes())
    _, rows = traceform.read(folder / start["trace"])
    longest = max(int(part["length_bytes"][part["op"] <= WRITE].max(initial=4096)) for part in traceform.windows(rows))
    with open(folder / RECORDS, "wb", buffering=0) as out, trace_targets.named(start["target"], longest) as target:
        trace_player.fits(rows, target.size_bytes, target.block_bytes)
        before = os.times()
        try:
            trace_player.play(rows, target, trace_player.How(**start["how"]), out, Lines(rows).look)
        except Asked:
            return {"ended": False}
        after = os.times()
    start = {"ended": True, "cpu_s": after.user - before.user + after.system - before.system}
    return start | ({"late_us": target.late_us} if isinstance(target, Stamped) else {})


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: _asked.append(1))
    prctl.die_with_parent(int(sys.argv[2]))
    try:
        last = main(Path(sys.argv[1]))
    except SsdrigError as error:
        last = {"error": [type(error).__name__, error.expected, error.seen, error.do]}
    _say(last)
