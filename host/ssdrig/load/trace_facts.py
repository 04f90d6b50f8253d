"""What a trace will ask of a drive, exactly: its bytes, its time, its range. Of one that is to be made the rows are
made for that and not kept."""

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ssdrig.base.errors import UsageError
from ssdrig.load import one_pass, trace_generate, traceform
from ssdrig.load.trace_player import How, Schedule
from ssdrig.load.trace_published import BENCHES, ONE_PASS, TRIM_BYTES
from ssdrig.load.traceform import OPS, READ, TRIM, WRITE, ZEROES


class Facts(NamedTuple):
    """`lasts_s`: time of the last I/O at the play's times, of the drive (0.0 of a closed play: nothing is known);
    `reach_bytes`: end of the farthest I/O; `longest_bytes` of a read or write; `block_bytes`: all are in whole blocks
    of 4096, or of 512; `trimmed_bytes`: by trims and Write Zeroes. `sha256` of the rows."""

    name: str
    ios: int
    reads: int
    read_bytes: int
    written_bytes: int
    trimmed_bytes: int
    lasts_s: float
    reach_bytes: int
    longest_bytes: int
    block_bytes: int
    scaled: bool
    sha256: str


@functools.lru_cache
def of_bench(asked: trace_generate.Asked, how: How) -> Facts:
    """Facts of a generated trace. Raises UsageError."""
    return _of(trace_generate.generate(asked), how, asked.bench, asked.scale < 1)


@functools.lru_cache
def of_one_pass(asked: one_pass.Asked, how: How) -> Facts:
    """Facts of one pass of random writes. Raises UsageError."""
    return _of(one_pass.generate(asked), how, ONE_PASS, False)


def of_file(path: Path, how: How) -> Facts:
    """Facts of a trace file. Raises UsageError if it is invalid or cannot be played this way."""
    header, rows = traceform.read(path)
    if not (header.get("timed", True) or how.closed):
        raise UsageError("a trace with times", f"none in {path}", 'set timing = "closed"')
    if how.closed:
        traceform.can_be_closed(header)
    facts = _of(traceform.windows(rows), how, str(header.get("name", path.name)), bool(header.get("scaled")))
    if facts.sha256 != header.get("sha256"):
        raise UsageError(f"{path} as it was written", "rows of another SHA-256", "make or convert it again")
    return facts


def guessed(asked: trace_generate.Asked, how: How) -> Facts:
    """As of_bench() without making it: bytes as published, within 1 %, the time by the mean gap."""
    bench, ios = BENCHES[asked.bench], asked.ios
    depths = trace_generate.depth_shares(bench.depths)
    bursts = ios / float(depths @ np.arange(1, len(depths) + 1))
    lasts_s = 0.0 if how.closed else bursts * trace_generate.mean_gap_ns(how.idle_cap_ns) / 1e9 / how.speed
    read, written = (round(size * asked.scale) for size in (bench.read_bytes, bench.written_bytes))
    reads, trimmed = round(bench.reads * asked.scale), round(bench.trims * asked.scale) * TRIM_BYTES
    reach = asked.working_set_bytes
    return Facts(
        asked.bench, ios, reads, read, written, trimmed, lasts_s, reach, 1 << 17, asked.block_bytes, asked.scale < 1, ""
    )


def _of(windows: Iterable[np.ndarray], how: How, name: str, scaled: bool) -> Facts:
    schedule, digest, counts, moved = (
        Schedule(how),
        hashlib.sha256(),
        np.zeros(len(OPS), np.int64),
        np.zeros(len(OPS), np.int64),
    )
    lasts_ns = reach = longest = bits = before_ns = 0
    for rows in windows:
        if bad := traceform.why_not(rows, before_ns):
            raise UsageError("I/Os that can be played", f"number {counts.sum() + bad[0]}: {bad[1]}", "make it again")
        before_ns = int(rows["t_ns"][-1])
        digest.update(np.ascontiguousarray(rows, traceform.ROW).data)
        op, length = rows["op"], rows["length_bytes"].astype(np.int64)
        counts += np.bincount(op, minlength=len(OPS))
        moved += np.bincount(op, length, len(OPS)).astype(np.int64)
        reach = max(reach, int((rows["offset_bytes"] + length).max()))
        longest = max(longest, int(length[op <= WRITE].max(initial=4096)))
        bits |= int(np.bitwise_or.reduce(rows["offset_bytes"] | length))
        lasts_ns = int(schedule.of(rows["t_ns"])[-1])
    return Facts(
        name,
        int(counts.sum()),
        int(counts[READ]),
        int(moved[READ]),
        int(moved[WRITE]),
        int(moved[TRIM] + moved[ZEROES]),
        0.0 if how.closed else lasts_ns / how.dilation / 1e9,
        reach,
        longest,
        512 if bits % 4096 else 4096,
        scaled,
        digest.hexdigest(),
    )
