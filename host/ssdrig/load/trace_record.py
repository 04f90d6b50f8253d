"""A trace of what a disk of this machine is asked for, recorded by the kernel's tracepoints block_bio_queue and
block_rq_complete. Nothing is written to the disk. Source: Documentation/trace/ftrace.rst (instances, trace_pipe)."""

import contextlib
import os
import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from ssdrig.base.errors import DriveError, ToolMissing, UsageError

MOUNTED = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
EVENTS = ("events/block/block_bio_queue", "events/block/block_rq_complete")
BUFFER_KIB = 16384  # of each CPU: some 200 000 I/Os not fetched yet
LOOK_S = 0.2


def tracefs() -> Path:
    """Where the kernel's tracing is. Raises ToolMissing."""
    for root in MOUNTED:
        if (root / "instances").is_dir():
            return root
    raise ToolMissing("the kernel's tracing, for root", "none", "as root: mount -t tracefs nodev /sys/kernel/tracing")


def no_zones(name: str, root: str | Path = "/") -> None:
    """Raises UsageError for a disk with zones, whose appends and resets no other drive can be asked for."""
    zoned = Path(root) / "sys/block" / name / "queue/zoned"
    if zoned.exists() and (model := zoned.read_text().strip()) != "none":
        raise UsageError(f"a disk without zones, {name}", f"a {model} one", "record another disk")


def record(
    major: int, minor: int, seconds: float, out: BinaryIO, root: Path, look: Callable[[int], None] = lambda lines: None
) -> None:
    """Write the kernel's lines of the disk's I/Os to `out` for this long, or until Ctrl-C. `look` gets the number of
    I/Os. Raises DriveError."""
    lines, until = 0, time.monotonic() + seconds
    try:
        with _instance(root) as instance:
            for event in EVENTS:
                (instance / f"{event}/filter").write_text(f"dev == {major << 20 | minor}")
            pipe = os.open(instance / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
            try:
                for event in reversed(EVENTS):
                    (instance / f"{event}/enable").write_text("1")
                with contextlib.suppress(KeyboardInterrupt):
                    while (left_s := until - time.monotonic()) > 0:
                        select.select([pipe], [], [], min(LOOK_S, left_s))
                        lines += _fetch(pipe, out)
                        look(lines)
                for event in EVENTS:
                    (instance / f"{event}/enable").write_text("0")
                _fetch(pipe, out)
            finally:
                os.close(pipe)
    except OSError as error:
        seen = f"{error.filename or 'trace_pipe'}: {error.strerror}"
        raise DriveError(
            "the kernel to trace block_bio_queue and block_rq_complete", seen, "run it as root, outside of containers"
        ) from error


def _fetch(pipe: int, out: BinaryIO) -> int:
    """Copy everything available. Returns how many I/Os begin in it."""
    lines = 0
    with contextlib.suppress(BlockingIOError):
        while part := os.read(pipe, 65536):
            out.write(part)
            lines += part.count(b": block_bio_queue:")
    return lines


@contextlib.contextmanager
def _instance(root: Path) -> Iterator[Path]:
    """A trace buffer of our own, so that other tracing is unchanged."""
    instance = root / "instances" / f"ssdrig-{os.getpid()}"
    instance.mkdir()
    try:
        (instance / "trace_clock").write_text("mono")
        (instance / "buffer_size_kb").write_text(str(BUFFER_KIB))
        yield instance
    finally:
        instance.rmdir()
