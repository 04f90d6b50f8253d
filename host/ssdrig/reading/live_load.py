"""I/O second by second of a run that is being written: from the lines that fio, or the player of a trace, adds to the
out.json of the step."""

import json
from pathlib import Path

import numpy as np

from ssdrig.load import fioclock, fiotext

ROW_BINS = 16  # of fio's histogram, 64 an octave, in a row of the heat map
ENOUGH = 1000  # fewest I/Os in a second with a 99th percentile
MOST_BYTES = 1 << 22  # of out.json that are read in one call
LONG_MS = 5000  # a longer document yields no percentile of a second


class Load:
    """One step's out.json. A row: {"t_ns": when the document came, "end_ns": of what it is of, by the job's own clock,
    "span_s", "iops", "bw" (B/s), "lat_us": mean, "p99_us" (None from fewer than ENOUGH I/Os), "heat": [[row, I/Os], …]
    of the last "heat_s"}; latencies are of drive time, all else of host time. A step of a long run has latencies once a
    minute. k: time dilation; a row is of a second of drive time, which is k of the host's."""

    def __init__(self, out: Path, k: int = 1):
        self._out, self._offset, self._rest, self._k = out, 0, b"", k
        self._least_ms, self._some = 1000 * k - 500, False
        self._last: dict | None = None
        self._bins: np.ndarray | None = None
        self._bins_ms = 0
        self._new_bins: tuple[np.ndarray, int] | None = None  # of no row yet, and their fio's runtime, ms
        self._waits: dict | None = None  # the last document, of no row yet
        self.written_bytes = 0  # by the latest document
        self._begun_ns: int | None = None  # of fio's own clock, by the document that came soonest

    def rows(self) -> list[dict]:
        """The rows since the last call. Lines that are not our documents are skipped."""
        added = []
        for line in self._lines():
            try:
                document = json.loads(line)
            except (ValueError, RecursionError):
                continue
            t_ns = document.get("t_ns") if isinstance(document, dict) else None
            if type(t_ns) is not int or not 0 <= t_ns < 1 << 62:
                continue
            self.written_bytes = max(self.written_bytes, _written(document))
            row = self._row(document, self._least_ms)
            if row:
                added.append(row)
        self._some |= bool(added)
        return added

    def rest(self) -> list[dict]:
        """The last part of a finished file that is not in a row yet, less than a second of drive time. A document that
        immediately follows another is dropped: its moment would represent the whole second."""
        waits, self._waits = self._waits, None
        row = waits and self._row(waits, 0)
        good = row and (not self._some or row["span_s"] >= self._k / 2)
        self._some |= bool(row)
        return [row] if row and good else []

    def _row(self, document: dict, least_ms: int) -> dict | None:
        return self._played(document, least_ms) if "iops" in document else self._of_fio(document, least_ms)

    def _lines(self) -> list[bytes]:
        try:
            with open(self._out, "rb") as f:
                f.seek(self._offset)
                data = f.read(MOST_BYTES)
        except OSError:
            return []
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MOST_BYTES:
            self._rest = b""
        return [line for line in lines if line.startswith(b"{")]

    @property
    def has_more(self) -> bool:
        """Whether there is more to read."""
        try:
            return self._out.stat().st_size > self._offset
        except OSError:
            return False

    def _played(self, document: dict, least_ms: int) -> dict | None:
        span_s, iops, bw = (document.get(key) for key in ("span_s", "iops", "bw_bytes"))
        if not all(isinstance(v, int | float) and 0 <= v < 1e15 for v in (span_s, iops, bw)) or not span_s:
            return None
        if self._waits is not None:
            more_s = self._waits["span_s"]
            iops, bw = (
                (now * span_s + self._waits[key] * more_s) / (span_s + more_s)
                for now, key in ((iops, "iops"), (bw, "bw_bytes"))
            )
            span_s += more_s
        if 1000 * span_s < least_ms:
            self._waits = {"t_ns": document["t_ns"], "span_s": span_s, "iops": iops, "bw_bytes": bw}
            return None
        self._waits = None
        row = {"t_ns": document["t_ns"], "end_ns": document["t_ns"], "span_s": span_s, "iops": iops, "bw": bw}
        return row | {"lat_us": None, "p99_us": None, "heat": [], "heat_s": 0.0}

    def _of_fio(self, document: dict, least_ms: int) -> dict | None:
        if not fiotext.is_sound(document) or not fioclock.has_job_time(document, self._out.parent):
            return None
        now = fiotext.totals(document) | {"t_ns": document["t_ns"]}
        before = fioclock.followed(now, self._last or fiotext.totals(None))
        if self._last is not None and before is not self._last:
            self._last = self._begun_ns = None  # the job's clock was set once more
        ms, ios = now["runtime_ms"] - before["runtime_ms"], now["ios"] - before["ios"]
        if ms <= 0 or ios < 0 or now["bytes"] < before["bytes"]:
            return None
        begun_ns = now["t_ns"] - now["runtime_ms"] * 1_000_000
        self._begun_ns = begun_ns if self._begun_ns is None else min(self._begun_ns, begun_ns)
        bins = fiotext.bins(document, None, "lat_ns")
        if bins.any():
            self._new_bins = bins, now["runtime_ms"]
        if ms < least_ms:
            self._waits = document
            return None
        self._last, self._waits = now, None
        lat_ns = (now["lat_sum_ns"] - before["lat_sum_ns"]) / ios if ios else None
        p99_us, heat = self._latencies()
        until_ms = self._new_bins[1] if self._new_bins else now["runtime_ms"]
        heat_ms, self._new_bins = until_ms - self._bins_ms, None
        if heat:
            self._bins_ms = until_ms
        return {
            "t_ns": now["t_ns"],
            "end_ns": self._begun_ns + now["runtime_ms"] * 1_000_000,
            "span_s": ms / 1000,
            "iops": 1000 * ios / ms,
            "bw": 1000 * (now["bytes"] - before["bytes"]) / ms,
            "lat_us": lat_ns / 1000 / self._k if lat_ns is not None and lat_ns >= 0 else None,
            "p99_us": p99_us if heat_ms < LONG_MS * self._k else None,
            "heat": heat,
            "heat_s": heat_ms / 1000 if heat else 0.0,
        }

    def _latencies(self) -> tuple[float | None, list]:
        if self._new_bins is None:
            return None, []
        bins = self._new_bins[0]
        new = bins if self._bins is None else bins - self._bins
        self._bins = bins
        if (new < 0).any() or not (count := int(new.sum())):
            return None, []
        rows = np.add.reduceat(self._of_drive(new), np.arange(0, fiotext.BINS, ROW_BINS))
        there = np.flatnonzero(rows)
        heat = np.stack([there, rows[there]], axis=1).tolist()
        if count < ENOUGH:
            return None, heat
        place = int(np.searchsorted(np.cumsum(new), 0.99 * count))
        return float(fiotext.plat_ns(place)) / 1000 / self._k, heat

    def _of_drive(self, counts: np.ndarray) -> np.ndarray:
        """The same latencies in bins of drive time."""
        if self._k == 1:
            return counts
        out = np.zeros_like(counts)
        np.add.at(out, fiotext.plat_index(fiotext.plat_ns(np.arange(fiotext.BINS)) // self._k), counts)
        return out


def _written(document: dict) -> int:
    """Bytes that the job has written so far; 0 if the document does not state them."""
    jobs = document.get("jobs")
    sides = [job.get("write") for job in jobs if isinstance(job, dict)] if isinstance(jobs, list) else []
    moved = [side.get("io_bytes") for side in sides if isinstance(side, dict)] or [document.get("total_bytes")]
    return sum(count for count in moved if type(count) is int and 0 <= count < 1 << 62)
