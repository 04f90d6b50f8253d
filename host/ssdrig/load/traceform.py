"""A trace: a NumPy array of ROW, in the order of t_ns, in memory or mapped from a file (schemas/trace.md)."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from ssdrig.base.errors import UsageError
from ssdrig.base.files import replacing

READ, WRITE, TRIM, FLUSH, ZEROES = range(5)
OPS = ("read", "write", "trim", "flush", "write zeroes")
FUA = 1  # flag of a write: on the medium when it ends
ROW = np.dtype(
    [("t_ns", "<i8"), ("offset_bytes", "<i8"), ("length_bytes", "<u4"), ("op", "u1"), ("flags", "u1"), ("depth", "<u2")]
)  # depth: I/Os under way once those of this t_ns have been submitted; 0: not known
DEPTH_MOST = (1 << 16) - 1
FORMAT, SCHEMA = "ssdrig trace", 3
HEADER_BYTES = 4096
WINDOW_IOS = 1 << 16
BLOCK_BYTES = 512  # nothing of a trace is smaller, or is between
MOST_BYTES = 32 << 20  # of one read or write
T_MOST_NS = 10**18  # 30 years: times stay far from the end of an int64
END_MOST_BYTES = 1 << 56


def write(path: Path, windows: Iterable[np.ndarray], words: Callable[[], dict]) -> dict:
    """A trace file from its windows, whole or not at all. `words` gives what else its header states, when all
    are made. Returns the header.
    Raises OSError, and what making a window raises."""
    digest, count, reach, last_ns = hashlib.sha256(), 0, 0, 0
    with replacing(path, durable=False) as f:
        f.write(bytes(HEADER_BYTES))
        for window in windows:
            rows = np.ascontiguousarray(window, ROW)
            if not len(rows):
                continue
            f.write(rows.data)
            digest.update(rows.data)
            count += len(rows)
            reach = max(reach, int((rows["offset_bytes"] + rows["length_bytes"]).max()))
            last_ns = int(rows["t_ns"][-1])
        header = {
            "format": FORMAT,
            "schema": SCHEMA,
            **words(),
            "ios": count,
            "range_bytes": reach,
            "lasts_ns": last_ns,
            "sha256": digest.hexdigest(),
        }
        f.seek(0)
        f.write(_packed(header))
    return header


def _packed(header: dict) -> bytes:
    text = json.dumps(header, ensure_ascii=False).encode(errors="replace")
    if len(text) >= HEADER_BYTES:
        raise UsageError(
            f"a header of less than {HEADER_BYTES} bytes", f"{len(text)}", "give shorter names: they are kept in it"
        )
    return text.ljust(HEADER_BYTES - 1) + b"\n"


def read(path: Path) -> tuple[dict, np.ndarray]:
    """(header, rows mapped from the file). Raises UsageError where it is not a trace, is cut short or of another
    schema; the rows are checked where they are used (why_not)."""
    do = "make it again: ./ssdrig trace make, or trace convert"
    try:
        with open(path, "rb") as f:
            head, size = f.read(HEADER_BYTES), f.seek(0, 2)
    except OSError as error:
        raise UsageError(f"a trace at {path}", error.strerror or str(error), do) from error
    try:
        header = json.loads(head)
        known = isinstance(header, dict) and header.get("format") == FORMAT
    except (ValueError, RecursionError):
        known = False
    if not known:
        raise UsageError(f"a trace file at {path}", "another content", "convert it: ./ssdrig trace convert --help")
    if header.get("schema") != SCHEMA:
        raise UsageError(f"a trace of schema {SCHEMA}", f"{header.get('schema')!r} in {path}", do)
    count = header.get("ios")
    if not isinstance(count, int) or size != HEADER_BYTES + count * ROW.itemsize or count < 1:
        raise UsageError(
            f"{count!r} I/Os of {ROW.itemsize} bytes in {path}", f"{max(0, size - HEADER_BYTES)} bytes of them", do
        )
    return header, np.memmap(path, ROW, "r", HEADER_BYTES, (count,))


def windows(rows: np.ndarray, ios: int = WINDOW_IOS) -> Iterator[np.ndarray]:
    """The rows in windows of at most this many."""
    for first in range(0, len(rows), ios):
        yield rows[first : first + ios]


def why_not(rows: np.ndarray, before_ns: int = 0) -> tuple[int, str] | None:
    """The first row that cannot be played, and why; None: all can. `before_ns`: the time of the row before these.
    Pure."""
    t_ns, offset, length, op = (rows[name] for name in ("t_ns", "offset_bytes", "length_bytes", "op"))
    moves = (op == READ) | (op == WRITE)
    checks = (
        (np.diff(t_ns, prepend=before_ns) < 0, "its time is before that of the one before it"),
        ((t_ns < 0) | (t_ns > T_MOST_NS), f"its time is not in 0 to {T_MOST_NS} ns"),
        (op >= len(OPS), f"it is not one of: {', '.join(OPS)}"),
        ((op == FLUSH) & ((offset != 0) | (length != 0)), "a flush that has a place"),
        ((op != FLUSH) & ((offset < 0) | (offset > END_MOST_BYTES)), "its offset is on no drive"),
        ((op != FLUSH) & ((offset | length) % BLOCK_BYTES != 0), f"it is not in whole blocks of {BLOCK_BYTES} bytes"),
        ((op != FLUSH) & (length == 0), "it moves nothing"),
        (moves & (length > MOST_BYTES), f"it moves more than {MOST_BYTES} bytes"),
        (rows["flags"] > np.where(op == WRITE, FUA, 0), "a flag that is not known, or FUA of what is no write"),
    )
    failures = [(int(np.argmax(bad)), why) for bad, why in checks if bad.any()]
    return min(failures, default=None)


def can_be_closed(header: dict) -> None:
    """Raises UsageError where the trace's queue depths are not known, so that it cannot be played without its times."""
    if not header.get("depths"):
        raise UsageError(
            "a trace with queue depths, to play it without its times",
            f"none: {header.get('depths_why') or 'its header names no source of them'}",
            "convert it again with --depth N, if you know the depth it was recorded with",
        )


def digest(rows: np.ndarray) -> str:
    """SHA-256 of the rows as they lie in a file."""
    digest = hashlib.sha256()
    for window in windows(rows):
        digest.update(np.ascontiguousarray(window).data)
    return digest.hexdigest()
