"""How fast each MiB of a drive reads: a map of cells, read through the held descriptor and never written.

A pass reads one MiB after the other, or one in `stride` where that many fit the time. A cell that took more than SLOW
times the median is read again at the end, up to AGAIN times: the least counts, because a busy host makes a read late
and no read early. What is slow each time is the drive: pages that it reads with retries, or moved parts. A cell of
zeros is taken as empty: a drive answers trimmed blocks without its flash."""

import errno
import itertools
import mmap
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ssdrig.base.errors import DriveError

MIB = 1 << 20
PILOT = 32  # cells, evenly over the drive, that show how long one takes
PILOT_SHARE, PASS_SHARE = 0.1, 0.8  # of the time at most; the rest is for slow cells
SLOW = 2.0
AGAIN = 2
MOST_UNREADABLE = 1000
UNREADABLE = (errno.EIO, errno.ENODATA, errno.EILSEQ)  # of a block; any other error is of the drive
ZEROS = bytes(MIB)


class Cell(NamedTuple):
    """A MiB: where it begins; how long its read took, None where the drive reports an error; whether it is zeros."""

    offset: int
    ns: int | None
    empty: bool = False
    reads: int = 1


class Map(NamedTuple):
    """Cells in order. `whole`: the pass came to the end of the drive in its time."""

    cells: list[Cell]
    stride: int
    duration_s: float
    whole: bool


class Region(NamedTuple):
    """Neighbouring cells that are slow each time."""

    offset: int
    length: int
    MB_per_s: float


def read(
    path: str,
    capacity_bytes: int,
    limit_s: float,
    show: Callable[[float, float, float], None] = lambda share, left_s, speed: None,
    now_ns: Callable[[], int] = time.monotonic_ns,
) -> Map:
    """Read the drive in at most `limit_s` seconds.

    path: of the held descriptor.
    capacity_bytes: read up to the last whole MiB.
    show: share that is done, seconds left, MB/s, now and then.
    Raises DriveError where the drive is gone, or has too many blocks that cannot be read."""
    begin_ns, count = now_ns(), capacity_bytes // MIB
    end_ns = begin_ns + round(limit_s * 1e9)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError as error:
        raise DriveError(f"{path} to open for reading", error.strerror or str(error), "see dmesg") from error
    try:
        with mmap.mmap(-1, MIB) as page:

            def cell(number: int, reads: int = 1) -> Cell:
                return _cell(fd, page, number * MIB, now_ns, reads)

            pilot: list[Cell] = []
            for number in sorted({count * i // PILOT for i in range(PILOT)}):
                if now_ns() - begin_ns <= PILOT_SHARE * limit_s * 1e9 and number < count:
                    pilot.append(cell(number))
            took_ns = sorted(one.ns for one in pilot if one.ns is not None)
            each_ns = took_ns[len(took_ns) // 2] if took_ns else 10**8
            stride = max(1, -(-count * each_ns // max(1, round(PASS_SHARE * limit_s * 1e9))))
            cells, whole = [], True
            for number in range(0, count, stride):
                if now_ns() - begin_ns > (PILOT_SHARE + PASS_SHARE) * limit_s * 1e9:
                    whole = False
                    break
                cells.append(cell(number))
                if sum(one.ns is None for one in cells[-MOST_UNREADABLE:]) >= MOST_UNREADABLE:
                    raise DriveError("a drive that can be read", f"{MOST_UNREADABLE} MiB with errors", "see dmesg")
                if number % (16 * stride) == 0 and (spent_s := (now_ns() - begin_ns) / 1e9) > 0:
                    share = (number + 1) / count
                    show(share, spent_s / share - spent_s, len(cells) * MIB / 1e6 / spent_s)
            _again(cells, cell, end_ns, now_ns)
    finally:
        os.close(fd)
    return Map(cells, stride, (now_ns() - begin_ns) / 1e9, whole)


def _cell(fd: int, page: mmap.mmap, offset: int, now_ns: Callable[[], int], reads: int) -> Cell:
    asked_ns = now_ns()
    try:
        got = os.preadv(fd, [page], offset)
    except OSError as error:
        if error.errno in UNREADABLE:
            return Cell(offset, None, False, reads)
        raise DriveError("the drive to answer", error.strerror or str(error), "see dmesg and its cable") from error
    took_ns = now_ns() - asked_ns
    if got != MIB:
        raise DriveError(f"{MIB} bytes at {offset}", str(got), "see dmesg: did the drive shrink?")
    return Cell(offset, took_ns, page[:] == ZEROS, reads)


def _again(cells: list[Cell], cell: Callable[[int, int], Cell], end_ns: int, now_ns: Callable[[], int]) -> None:
    """Read slow cells again, in rounds, so that the drive's cache does not have them any more."""
    for reads in range(2, AGAIN + 2):
        limit_ns = SLOW * median_ns(cells)
        for i, one in enumerate(cells):
            if one.ns is not None and not one.empty and one.ns > limit_ns:
                if now_ns() >= end_ns:
                    return
                new = cell(one.offset // MIB, reads)
                if new.ns is not None:
                    cells[i] = one._replace(ns=min(one.ns, new.ns), reads=reads)


def median_ns(cells: Sequence[Cell]) -> float:
    """Median read time of the cells with data; 0 without any."""
    data_ns = [one.ns for one in cells if one.ns is not None and not one.empty]
    return float(statistics.median(data_ns)) if data_ns else 0.0


def regions(made: Map) -> list[Region]:
    """Neighbouring slow cells, the largest first. A cell that was read once only is not judged."""
    limit_ns = SLOW * median_ns(made.cells)
    slow = [one.ns is not None and not one.empty and one.ns > limit_ns and one.reads > 1 for one in made.cells]
    out = []
    for is_slow, group in itertools.groupby(zip(slow, made.cells, strict=True), key=lambda pair: pair[0]):
        if is_slow:
            inside = [one for _, one in group]
            length = inside[-1].offset - inside[0].offset + MIB
            speed = len(inside) * MIB / 1e6 / (sum(one.ns or 0 for one in inside) * 1e-9)
            out.append(Region(inside[0].offset, length, speed))
    return sorted(out, key=lambda one: -one.length)


def figures(made: Map) -> dict:
    """What the map shows: counts of cells, MB/s of those with data (None where there is none), slow regions, cells with
    errors, and how much of the drive was looked at."""
    cells = made.cells
    data_ns = sorted(one.ns for one in cells if one.ns is not None and not one.empty)
    shares = {"MB_per_s_median": 0.5, "MB_per_s_p1": 0.99, "MB_per_s_p99": 0.01}  # of the times, from the quickest
    slow, limit_ns = regions(made), SLOW * median_ns(cells)
    return {
        "cells": len(cells),
        "cells_empty": sum(one.empty for one in cells),
        "stride": made.stride,
        "whole": made.whole,
        "duration_s": round(made.duration_s, 3),
        **{
            key: _speed(data_ns[round(share * (len(data_ns) - 1))]) if data_ns else None
            for key, share in shares.items()
        },
        "latency_ms_median": median_ns(cells) / 1e6 if data_ns else None,
        "latency_ms_max": data_ns[-1] / 1e6 if data_ns else None,
        "slow": [one._asdict() for one in slow],
        "cells_slow": sum(one.length // (MIB * made.stride) + (made.stride > 1) for one in slow),
        "cells_not_read_again": sum(
            one.reads == 1 and one.ns is not None and not one.empty and one.ns > limit_ns for one in cells
        ),
        "unreadable": [one.offset for one in cells if one.ns is None],
    }


def _speed(ns: int) -> float:
    return MIB / 1e6 / (ns * 1e-9)


def picture(made: Map, columns: int = 64, rows: int = 16) -> list[str]:
    """Lines of the map in order of the drive, a character a stretch: a full block reads at the median, a lower one
    slower, "." is empty, "x" has an error."""
    if not made.cells:
        return []
    usual_ns, n = median_ns(made.cells), len(made.cells)
    places = min(n, columns * rows)
    text = ""
    for i in range(places):
        part = made.cells[i * n // places : (i + 1) * n // places]
        data_ns = [one.ns for one in part if one.ns is not None and not one.empty]
        if any(one.ns is None for one in part):
            text += "x"
        elif not data_ns:
            text += "."
        else:
            share = min(1.0, usual_ns / max(data_ns))
            text += "▁▂▃▄▅▆▇█"[min(7, int(share * 8))]
    return [text[at : at + columns] for at in range(0, len(text), columns)]
