"""Lines of other traces: what each says, and which format a file has. Pure.

Sources: Alibaba's README of its block traces (2020); README of the MSR Cambridge traces; blkparse(1) and the kernel's
blk_fill_rwbs(); fio's documentation, "Trace file format" (an iolog's times are microseconds, seen with fio 3.33);
the lines of a JESD219A client trace as pynvme reads them. None of these files is ours: a person downloads them."""

import re
from collections.abc import Callable
from typing import NamedTuple

from ssdrig.load.traceform import FLUSH, READ, TRIM, WRITE, ZEROES

SECTOR_BYTES = 512
QUEUED, ISSUED, DONE = "queued by the program", "issued to the drive", "completed"


class Line(NamedTuple):
    """What one line asks of one device; t_ns None where the format has no times.

    `stage`: an I/O of a recording passes several, and each has its line. `lasts_ns`: until its end, None where the line
    does not say. `refusal`: why it cannot be played on a drive, "" where it can; `unnamed`: it is Write Zeroes on a
    drive without zones, and may be Zone Append on another."""

    t_ns: int | None
    op: int
    offset_bytes: int
    length_bytes: int
    device: str
    stage: str = QUEUED
    lasts_ns: int | None = None
    refusal: str = ""
    unnamed: bool = False


class Format(NamedTuple):
    """`parse` makes Lines of a line, none where it asks nothing of a drive, or None where it is no such line; `header`
    is what the first line may be instead, `end` what the last lines begin with. `depths`: where queue depths come from,
    `depths_why`: or why there are none. `staged`: an I/O may have several lines."""

    name: str
    example: str
    timed: bool
    parse: Callable[[str], tuple[Line, ...] | None]
    header: re.Pattern[str] | None = None
    end: re.Pattern[str] | None = None
    depths: str = ""
    depths_why: str = ""
    staged: bool = False


_ALIBABA = re.compile(r"(\d{1,10}),([RW]),(\d{1,20}),(\d{1,12}),(\d{1,17})", re.ASCII)
_MSR = re.compile(r"(\d{1,19}),([^,\s]{1,64}),(\d{1,5}),(Read|Write),(\d{1,20}),(\d{1,12}),(\d{1,19})", re.ASCII)
_BLKPARSE = re.compile(
    r"\s*(\d{1,4},\d{1,7})\s+\d+\s+\d+\s+(\d{1,9})\.(\d{9})\s+\d+\s+([A-Za-z]{1,2})\s+([A-Z]{1,8})"
    r"(?:\s+(\d{1,20}) \+ (\d{1,12}))?(?:\s.*)?",
    re.ASCII,
)
_MESSAGE = re.compile(r"\s*\d{1,4},\d{1,7}\s+\d+\s+\d+\s+\d{1,9}\.\d{9}\s+\d+\s+m\s.*", re.ASCII)
_EVENT = re.compile(
    r"\s*.{1,64}-\d{1,10}\s+(?:\(.{1,20}\)\s+)?\[\d{1,5}\]\s+\S{4,6}\s+\d{1,9}\.\d{6}: [a-z]\w{1,63}: .*", re.ASCII
)
_TRACEPOINT = re.compile(
    r"\s*.{1,64}-\d{1,10}\s+(?:\(.{1,20}\)\s+)?\[\d{1,5}\]\s+\S{4,6}\s+(\d{1,9})\.(\d{6}): "
    r"block_(bio_queue|rq_issue|rq_complete): (\d{1,4},\d{1,7}) ([A-Z]{1,8}) (?:\d{1,12} )?(?:\(.{0,200}\) )?"
    r"(\d{1,20}) \+ (\d{1,12}) .*\[.*\]",
    re.ASCII,
)
_IOLOG = re.compile(r"(\S{1,1024}) (add|open|close|read|write|trim|sync|datasync)(?: (\d{1,20}) (\d{1,12}))?", re.ASCII)
_IOLOG_TIMED = re.compile(r"(\d{1,15}) (.*)", re.ASCII)
_JESD = re.compile(r"([es]) (\d{1,18}) (\d{1,10})|h", re.ASCII)
# blk_fill_rwbs(): F a flush before; the operation; then F forced through, A read ahead, S sync, M metadata, U atomic.
_LETTERS = re.compile(r"(F?)(WZ|ZA|Z[ROCF]A?|DE|[WRDFN])?[FASMU]*", re.ASCII)
_OPS = {"R": READ, "W": WRITE, "D": TRIM, "WZ": ZEROES, "N": ZEROES}
_ZONES = "it is made for a drive with zones"
_STAGES = {"Q": QUEUED, "D": ISSUED, "C": DONE, "bio_queue": QUEUED, "rq_issue": ISSUED, "rq_complete": DONE}
BLKPARSE_MOST_BYTES = 32 << 20  # of data in one request; Write Zeroes may be longer, and blkparse prints it as W
_WORDS = {"read": READ, "write": WRITE, "trim": TRIM, "sync": FLUSH, "datasync": FLUSH}


def alibaba(line: str) -> tuple[Line, ...] | None:
    if not (found := _ALIBABA.fullmatch(line)):
        return None
    device, letter, offset, length, at_us = found.groups()
    return (Line(int(at_us) * 1000, _OPS[letter], int(offset), int(length), device),)


def msr(line: str) -> tuple[Line, ...] | None:
    """Times are Windows file times, ticks of 100 ns."""
    if not (found := _MSR.fullmatch(line)):
        return None
    ticks, host, disk, word, offset, length, lasts = found.groups()
    at = int(ticks) * 100, _OPS[word[0]], int(offset), int(length)
    return (Line(*at, f"{host}.{disk}", lasts_ns=int(lasts) * 100),)


def blkparse(line: str) -> tuple[Line, ...] | None:
    """What was queued (Q), issued (D) and completed (C); other actions ask nothing more of the drive. A flush before
    the data is a flush of its own; that a write is forced through (FUA) is not kept."""
    if not (found := _BLKPARSE.fullmatch(line)):
        return () if not line.strip() or _MESSAGE.fullmatch(line) else None
    device, seconds, ns, action, letters, sector, sectors = found.groups()
    if action not in _STAGES:
        return ()
    lines = _request(int(seconds) * 10**9 + int(ns), device, letters, sector, sectors, _STAGES[action])
    long = "more than 32 MiB in one request: blkparse prints Write Zeroes as a write"
    return tuple(
        each._replace(op=ZEROES, refusal=long) if each.op == WRITE and each.length_bytes > BLKPARSE_MOST_BYTES else each
        for each in lines
    )


def tracepoint(line: str) -> tuple[Line, ...] | None:
    """As the kernel prints its tracepoints block_bio_queue, block_rq_issue and block_rq_complete; letters as
    blkparse's. Its other events, and its comments, ask nothing of a drive."""
    if not (found := _TRACEPOINT.fullmatch(line)):
        other = line.startswith("#") or (
            _EVENT.fullmatch(line) and not re.search(r": block_(bio_queue|rq_\w+): ", line)
        )
        return () if other else None
    seconds, us, event, device, letters, sector, sectors = found.groups()
    return _request(int(seconds) * 10**9 + int(us) * 1000, device, letters, sector, sectors, _STAGES[event])


def _request(
    t_ns: int, device: str, letters: str, sector: str | None, sectors: str | None, stage: str
) -> tuple[Line, ...]:
    begin, length = int(sector or 0) * SECTOR_BYTES, int(sectors or 0) * SECTOR_BYTES
    if not (found := _LETTERS.fullmatch(letters)):
        return (Line(t_ns, WRITE, begin, length, device, stage, refusal=f"operation {letters!r} is not known"),)
    flush, name = found.groups()
    out = [Line(t_ns, FLUSH, 0, 0, device, stage)] if flush or name == "F" else []
    if name and name[0] == "Z":
        out.append(Line(t_ns, WRITE, begin, length, device, stage, refusal=f"operation {name}: {_ZONES}"))
    elif name == "DE":
        out.append(Line(t_ns, TRIM, begin, length, device, stage, refusal="operation DE: a secure erase"))
    elif name in _OPS and length:
        out.append(Line(t_ns, _OPS[name], begin, length, device, stage, unnamed=name == "N"))
    elif name == "N" and sector and begin and int(sector) < 1 << 63:  # no length, yet a place: it manages a zone
        out.append(Line(t_ns, WRITE, begin, 0, device, stage, refusal=f"operation N without a length: {_ZONES}"))
    return tuple(out)


def iolog3(line: str) -> tuple[Line, ...] | None:
    found = _IOLOG_TIMED.fullmatch(line)
    return _iolog(found[2], int(found[1]) * 1000) if found else None


def iolog2(line: str) -> tuple[Line, ...] | None:
    """Has no times but `wait`, whose unit is another in fio's documentation than in its code: refused."""
    return _iolog(line, None)


def _iolog(words: str, t_ns: int | None) -> tuple[Line, ...] | None:
    if not (found := _IOLOG.fullmatch(words)):
        return None
    file, word, offset, length = found.groups()
    if word not in _WORDS:
        return ()
    if _WORDS[word] == FLUSH:
        return (Line(t_ns, FLUSH, 0, 0, file),)
    return (Line(t_ns, _WORDS[word], int(offset), int(length), file),) if offset else None


def jesd219(line: str) -> tuple[Line, ...] | None:
    """`e` writes, `s` trims so many blocks of 512 bytes from a block on, `h` flushes."""
    if not (found := _JESD.fullmatch(line)):
        return None
    if line == "h":
        return (Line(None, FLUSH, 0, 0, ""),)
    op = WRITE if found[1] == "e" else TRIM
    return (Line(None, op, int(found[2]) * SECTOR_BYTES, int(found[3]) * SECTOR_BYTES, ""),)


_NO_END = "its lines do not say when an I/O ended"
_PAIRS = "I/Os {} and not yet completed"
FORMATS = (
    Format("Alibaba block trace 2020", "419,W,8792731648,16384,1577808144360767", True, alibaba, depths_why=_NO_END),
    Format(
        "MSR Cambridge trace",
        "128166372003061629,hm,1,Read,383496192,32768,413",
        True,
        msr,
        header=re.compile(r"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"),
        depths="response times",
    ),
    Format(
        "blkparse text",
        "8,0    3       11     0.009507758   697  Q   W 223490 + 56 [kjournald]",
        True,
        blkparse,
        end=re.compile(r"CPU\d+ \(|Total \(|Throughput \(|Events \("),
        depths=_PAIRS,
        staged=True,
    ),
    Format(
        "tracepoint block_bio_queue, block_rq_issue",
        "dd-29480   [000] .N... 15631.668035: block_bio_queue: 7,0 WS 128 + 128 [dd]",
        True,
        tracepoint,
        header=re.compile(r"# tracer: nop"),
        depths=_PAIRS,
        staged=True,
    ),
    Format(
        "fio iolog version 3",
        "129 /dev/sdb read 61440 4096",
        True,
        iolog3,
        header=re.compile("fio version 3 iolog"),
        depths_why=_NO_END,
    ),
    Format(
        "fio iolog version 2",
        "/dev/sdb read 61440 4096",
        False,
        iolog2,
        header=re.compile("fio version 2 iolog"),
        depths_why=_NO_END,
    ),
    Format("JESD219A client trace", "e 1024 8", False, jesd219, depths_why=_NO_END),
)


def of(first: str) -> Format | None:
    """The format of a file that begins with this line."""
    for each in FORMATS:
        if each.header and each.header.fullmatch(first):
            return each
    if first.startswith("fio version"):
        return None
    plain = [each for each in FORMATS if "iolog" not in each.name]
    return next((each for each in plain if each.parse(first)), None) or next(
        (each for each in plain if each.staged and first.strip() and each.parse(first) is not None), None
    )
