"""Lines of Linux's block layer: blkparse, and its tracepoints as the kernel, perf script and trace-cmd report print
them. Pure.

Sources: blkparse(1) and the kernel's blk_fill_rwbs(); Documentation/trace/ftrace.rst; perf-script(1);
trace-cmd-report(1)."""

import re

from ssdrig.load.trace_line import DONE, ISSUED, QUEUED, REQUEUED, Line
from ssdrig.load.traceform import FLUSH, READ, TRIM, WRITE, ZEROES

SECTOR_BYTES = 512
_BLKPARSE = re.compile(
    r"\s*(\d{1,4},\d{1,7})\s+\d+\s+\d+\s+(\d{1,9})\.(\d{9})\s+\d+\s+([A-Za-z]{1,2})\s+([A-Z]{1,8})"
    r"(?:\s+(\d{1,20}) \+ (\d{1,12}))?(?:\s(?!\s*-?\d+ \+).*)?",
    re.ASCII,
)
_MESSAGE = re.compile(r"\s*\d{1,4},\d{1,7}\s+\d+\s+\d+\s+\d{1,9}\.\d{9}\s+\d+\s+m\s.*", re.ASCII)
# program-pid or program pid/tid, (tgid), [CPU], flags, time; the kernel prints µs, perf --ns and trace-cmd -t also ns
_BEFORE = (
    r"\s*\S.{0,63}?(?:-|\s+)\d{1,10}(?:/\d{1,10})?\s+(?:\([\d\s-]{1,20}\)\s+)?\[\d{1,5}\]\s+(?:[\w.#]{4,8}\s+)?"
    r"(\d{1,9})\.(\d{6}(?:\d{3})?):\s+"
)
_EVENT = re.compile(_BEFORE + r"(?:\d{1,12}\s+)?(?:\w{2,64}:)?[a-z_]\w{1,63}:(?:\s.*)?", re.ASCII)
_TRACEPOINT = re.compile(
    _BEFORE
    + r"(?:block:)?block_(bio_queue|rq_issue|rq_complete|rq_requeue):\s+(\d{1,4},\d{1,7}) ([A-Z]{1,8}) (?:\d{1,12} )?"
    r"(?:\(.{0,200}\) )?(\d{1,20}) \+ (\d{1,12}) .*\[.*\]",
    re.ASCII,
)
_OURS = re.compile(r":\s+(?:block:)?block_(?:bio_queue|rq_issue|rq_complete):", re.ASCII)
_BLK_TRACER = re.compile(
    _BEFORE + r"(\d{1,4},\d{1,7})\s+([A-Za-z]{1,2})\s+([A-Z]{1,8})"
    r"(?:\s+(\d{1,20}) \+ (\d{1,12}))?(?:\s(?!\s*-?\d+ \+).*)?",
    re.ASCII,
)
# text around events: comments, trace-cmd's head, the stacks of perf -g and of the kernel, blank lines
_AROUND = re.compile(
    r"#.*|\s*|cpus=\d+|version = \d+|CPU \d+ is empty|\s+[0-9a-f]{8,16} .*|\s*=> .*|.*<stack trace ?>", re.ASCII
)
# blk_fill_rwbs(): F a flush before; the operation; then F forced through, A read ahead, S sync, M metadata, U atomic.
_LETTERS = re.compile(r"(F?)(WZ|ZA|Z[ROCF]A?|DE|[WRDFN])?([FASMU]*)", re.ASCII)
_OPS = {"R": READ, "W": WRITE, "D": TRIM, "WZ": ZEROES, "N": ZEROES}
COMMANDS, NO_DATA = "commands of a driver (N) without data", "I/Os of 0 bytes"
ACTIONS = {*"ABCDFGIMPQRSTUX", "UT", "m"}  # blkparse(1)
NO_ACTION = "lines with an action that blkparse does not have"
ZONES = "it is made for a drive with zones"
_STAGES = {
    **{"Q": QUEUED, "D": ISSUED, "C": DONE, "R": REQUEUED},
    **{"bio_queue": QUEUED, "rq_issue": ISSUED, "rq_complete": DONE, "rq_requeue": REQUEUED},
}
BLKPARSE_MOST_BYTES = 32 << 20  # of data in one request; Write Zeroes may be longer, and blkparse prints it as W


def blkparse(line: str) -> tuple[Line, ...] | None:
    """Requests queued (Q), issued (D) and completed (C); other actions ask nothing more of the drive. A flush before
    the data is its own flush."""
    if not (match := _BLKPARSE.fullmatch(line)):
        return () if not line.strip() or _MESSAGE.fullmatch(line) else None
    device, seconds, ns, action, letters, sector, sectors = match.groups()
    t_ns = int(seconds) * 10**9 + int(ns)
    if action not in _STAGES:
        return () if action in ACTIONS else (Line(t_ns, WRITE, 0, 0, device, "", passed=NO_ACTION),)
    return _data_or_zeroes(request(t_ns, device, letters, sector, sectors, _STAGES[action]))


def _data_or_zeroes(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    long = "more than 32 MiB in one request: blkparse prints Write Zeroes as a write"
    return tuple(
        line._replace(op=ZEROES, refusal=long) if line.op == WRITE and line.length_bytes > BLKPARSE_MOST_BYTES else line
        for line in lines
    )


def tracepoint(line: str) -> tuple[Line, ...] | None:
    """The tracepoints block_bio_queue, block_rq_issue and block_rq_complete, and the lines of the tracer "blk"; letters
    as blkparse's. Other events, comments and stacks ask nothing of a drive."""
    if match := _TRACEPOINT.fullmatch(line):
        seconds, part, event, device, letters, sector, sectors = match.groups()
        return request(_ns(seconds, part), device, letters, sector, sectors, _STAGES[event])
    if match := _BLK_TRACER.fullmatch(line):
        seconds, part, device, action, letters, sector, sectors = match.groups()
        stage = _STAGES.get(action)
        lines = request(_ns(seconds, part), device, letters, sector, sectors, stage) if stage else ()
        return _data_or_zeroes(lines)
    other = _AROUND.fullmatch(line) or (_EVENT.fullmatch(line) and not _OURS.search(line))
    return () if other else None


def _ns(seconds: str, part: str) -> int:
    return int(seconds) * 10**9 + int(part.ljust(9, "0"))


def request(
    t_ns: int, device: str, letters: str, sector: str | None, sectors: str | None, stage: str
) -> tuple[Line, ...]:
    """The Lines of a request as the kernel names it: a flush before the data is a separate one."""
    begin, length = int(sector or 0) * SECTOR_BYTES, int(sectors or 0) * SECTOR_BYTES
    if not (match := _LETTERS.fullmatch(letters)):
        return (Line(t_ns, WRITE, begin, length, device, stage, refusal=f"operation {letters!r} is not known"),)
    flush, name, letters = match.groups()
    fua = "F" in letters
    out = [Line(t_ns, FLUSH, 0, 0, device, stage)] if flush or name == "F" else []
    if name and name[0] == "Z":
        out.append(Line(t_ns, WRITE, begin, length, device, stage, refusal=f"operation {name}: {ZONES}"))
    elif name == "DE":
        out.append(Line(t_ns, TRIM, begin, length, device, stage, refusal="operation DE: a secure erase"))
    elif name in _OPS and length:
        out.append(Line(t_ns, _OPS[name], begin, length, device, stage, unnamed=name == "N", fua=fua))
    elif name == "N" and sector and begin and int(sector) < 1 << 63:  # no length, yet a place: it manages a zone
        out.append(Line(t_ns, WRITE, begin, 0, device, stage, refusal=f"operation N without a length: {ZONES}"))
    elif name != "F" and not flush:
        out.append(Line(t_ns, WRITE, begin, 0, device, stage, passed=COMMANDS if name == "N" else NO_DATA))
    return tuple(out)
