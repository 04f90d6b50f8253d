"""Lines of other traces: their meaning, and the format of a file. Pure.

Sources: Alibaba's README of its block traces (2020); README of the MSR Cambridge traces; fio's documentation, "Trace
file format" (an iolog's times are microseconds, seen with fio 3.33); the lines of a JESD219A client trace as pynvme
reads them. None of these files is ours: the user downloads them."""

import re

from ssdrig.base.columns import Column
from ssdrig.load import trace_tables, trace_vscsi
from ssdrig.load.trace_kernel import SECTOR_BYTES, blkparse, tracepoint
from ssdrig.load.trace_line import NO_END, RESPONSES, Format, Line
from ssdrig.load.traceform import FLUSH, READ, TRIM, WRITE

_ALIBABA = re.compile(r"(\d{1,10}),([RW]),(\d{1,20}),(\d{1,12}),(\d{1,17})", re.ASCII)
_MSR = re.compile(r"(\d{1,19}),([^,\s]{1,64}),(\d{1,5}),(Read|Write),(\d{1,20}),(\d{1,12}),(\d{1,19})", re.ASCII)
_IOLOG = re.compile(r"(\S{1,1024}) (add|open|close|read|write|trim|sync|datasync)(?: (\d{1,20}) (\d{1,12}))?", re.ASCII)
_IOLOG_TIMED = re.compile(r"(\d{1,15}) (.*)", re.ASCII)
_JESD = re.compile(r"([es]) (\d{1,18}) (\d{1,10})|h", re.ASCII)
_LETTERS = {"R": READ, "W": WRITE}
_WORDS = {"read": READ, "write": WRITE, "trim": TRIM, "sync": FLUSH, "datasync": FLUSH}


def alibaba(line: str) -> tuple[Line, ...] | None:
    if not (match := _ALIBABA.fullmatch(line)):
        return None
    device, letter, offset, length, at_us = match.groups()
    return (Line(int(at_us) * 1000, _LETTERS[letter], int(offset), int(length), device),)


def msr(line: str) -> tuple[Line, ...] | None:
    """Times are Windows file times, ticks of 100 ns."""
    if not (match := _MSR.fullmatch(line)):
        return None
    ticks, host, disk, word, offset, length, lasts = match.groups()
    at = int(ticks) * 100, _LETTERS[word[0]], int(offset), int(length)
    return (Line(*at, f"{host}.{disk}", lasts_ns=int(lasts) * 100),)


def iolog3(line: str) -> tuple[Line, ...] | None:
    match = _IOLOG_TIMED.fullmatch(line)
    return _iolog(match[2], int(match[1]) * 1000) if match else None


def iolog2(line: str) -> tuple[Line, ...] | None:
    """Has no times but `wait`, whose unit is another in fio's documentation than in its code: refused."""
    return _iolog(line, None)


def _iolog(words: str, t_ns: int | None) -> tuple[Line, ...] | None:
    if not (match := _IOLOG.fullmatch(words)):
        return None
    file, word, offset, length = match.groups()
    if word not in _WORDS:
        return ()
    if _WORDS[word] == FLUSH:
        return (Line(t_ns, FLUSH, 0, 0, file),)
    return (Line(t_ns, _WORDS[word], int(offset), int(length), file),) if offset else None


def jesd219(line: str) -> tuple[Line, ...] | None:
    """`e` writes, `s` trims this many blocks of 512 bytes from a block on, `h` flushes."""
    if not (match := _JESD.fullmatch(line)):
        return None
    if line == "h":
        return (Line(None, FLUSH, 0, 0, ""),)
    op = WRITE if match[1] == "e" else TRIM
    return (Line(None, op, int(match[2]) * SECTOR_BYTES, int(match[3]) * SECTOR_BYTES, ""),)


_PAIRS = "I/Os {} and not yet completed"
FORMATS = (
    Format(
        "Alibaba block trace 2020",
        "419,W,8792731648,16384,1577808144360767",
        True,
        alibaba,
        header=re.compile(r"device_id,opcode,offset,length,timestamp"),
        depths_why=NO_END,
    ),
    Format(
        "MSR Cambridge trace",
        "128166372003061629,hm,1,Read,383496192,32768,413",
        True,
        msr,
        header=re.compile(r"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"),
        depths=RESPONSES,
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
        "tracepoint block_bio_queue, block_rq_issue (kernel, perf script, trace-cmd report)",
        "dd-29480   [000] .N... 15631.668035: block_bio_queue: 7,0 WS 128 + 128 [dd]",
        True,
        tracepoint,
        header=re.compile(r"# tracer: (?:nop|blk)|# =+|cpus=\d+|version = \d+"),
        depths=_PAIRS,
        staged=True,
    ),
    Format(
        "fio iolog version 3",
        "129 /dev/sdb read 61440 4096",
        True,
        iolog3,
        header=re.compile("fio version 3 iolog"),
        depths_why=NO_END,
    ),
    Format(
        "fio iolog version 2",
        "/dev/sdb read 61440 4096",
        False,
        iolog2,
        header=re.compile("fio version 2 iolog"),
        depths_why=NO_END,
    ),
    Format("JESD219A client trace", "e 1024 8", False, jesd219, depths_why=NO_END),
)


def names() -> list[str]:
    """The formats read without a column map."""
    return [*(known.name for known in FORMATS), *trace_tables.names(), trace_vscsi.V1.name, trace_vscsi.V2.name]


def begins(first: str) -> bool:
    """Whether a file of a known format may begin with this line, which none of its I/Os is in."""
    return any(known.header and known.header.fullmatch(first) for known in FORMATS)


def of(first: str, chosen: dict[str, Column] | None = None, head: bytes = b"") -> Format | None:
    """The format of a file that begins with this line, or with the bytes `head`; `chosen`: the user's column map.
    Raises UsageError where the map does not fit."""
    if chosen:
        return trace_tables.mapped(first, chosen)
    for known in FORMATS:
        if known.header and known.header.fullmatch(first):
            return known
    if first.startswith("fio version"):
        return None
    plain = [known for known in FORMATS if "iolog" not in known.name]
    return (
        trace_vscsi.of(head)
        or trace_tables.of(first)
        or next((known for known in plain if known.parse(first)), None)
        or next((known for known in plain if known.staged and first.strip() and known.parse(first) is not None), None)
        or trace_tables.guessed(first)
    )
