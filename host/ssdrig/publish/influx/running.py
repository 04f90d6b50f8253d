"""The seconds of a fio job that is still running, from the status lines that it has left so far in out.json (one a
second, fiotext.thin). Its own logs come when it ends."""

import json
from pathlib import Path
from typing import NamedTuple

from ssdrig.load import fiotext

LEAST_MS = 500  # the document at the end may come right after the previous one


class Second(NamedTuple):
    """From t_ns on, about a second: all directions together, host time. Without I/O, latencies are absent."""

    t_ns: int
    iops: int
    bw_bytes: int
    lat_mean_ns: int | None


class Running:
    """One job. The same file gives the same seconds, in however many steps it is read."""

    def __init__(self, folder: Path):
        self.path = Path(folder) / "out.json"
        self._at = 0
        self._told = fiotext.totals(None)

    def seconds(self) -> list[Second]:
        """Those that have come since the last call."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._at)
                text = file.read()
        except (OSError, ValueError):  # the name of a step may be none of a file
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        return [second for line in whole.splitlines() if (second := self._second(line))]

    def _second(self, line: bytes) -> Second | None:
        if not line.startswith(b'{"t_ns"'):
            return None
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not fiotext.is_sound(document):
            return None
        now, before = fiotext.totals(document), self._told
        span_ms, ios = now["runtime_ms"] - before["runtime_ms"], now["ios"] - before["ios"]
        moved, waited_ns = now["bytes"] - before["bytes"], now["lat_sum_ns"] - before["lat_sum_ns"]
        t_ns = int(document["t_ns"]) - span_ms * 1_000_000
        if span_ms < LEAST_MS or min(ios, moved, t_ns) < 0:
            return None
        self._told = now
        lat_ns = round(waited_ns / ios) if ios and waited_ns > 0 else None
        return Second(t_ns, round(1000 * ios / span_ms), round(1000 * moved / span_ms), lat_ns)
