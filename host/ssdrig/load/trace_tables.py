"""Traces in columns: CSV and tables of other programs, known by their headings or their first line, or by a column map
that the user gives. Pure.

Sources: the READMEs of the traces of SYSTOR '17, Tencent (2018) and FIU at SNIA IOTTA; UMass trace repository (SPC
format); README of MQSim, and DiskSim's manual (ASCII format); biosnoop(8) of BCC, iosnoop(8) of perf-tools; the
headings that xperf writes; a log of DiskMon 2.02."""

import re
from collections.abc import Callable
from typing import NamedTuple

from ssdrig.base import columns
from ssdrig.base.columns import BYTES, NS, Column
from ssdrig.base.errors import UsageError
from ssdrig.load import trace_kernel, trace_vscsi
from ssdrig.load.trace_line import NO_END, QUEUED, RESPONSES, Format, Line
from ssdrig.load.traceform import FLUSH, MOST_BYTES, READ, TRIM, WRITE, ZEROES

NUMBERS = ("t", "end", "lasts", "offset", "size")
ROLES = ("t", "end", "lasts", "offset", "size", "op", "disk")
OP_UNITS = ("words", "rwbs", "scsi", "scsi10", "read0", "read1")  # what an operation is written as; read1: 1 is a read
_WORDS = {
    **dict.fromkeys(("r", "read", "rd"), READ),
    **dict.fromkeys(("w", "write", "wr"), WRITE),
    **dict.fromkeys(("d", "t", "discard", "trim", "unmap"), TRIM),
    **dict.fromkeys(("f", "flush", "sync"), FLUSH),
    **dict.fromkeys(("wz", "write zeroes", "writezeroes"), ZEROES),
}
LONG = "more than 1 MiB in one I/O, if its columns are sectors"
NOT_READ = "more than 32 MiB in one I/O: BCC's biosnoop prints discards and Write Zeroes as R"
_NO_ANSWER = "lines that name no operation: the drive never answered"


class Field(NamedTuple):
    """A field by its number from 0 (below 0: from the end), and its unit."""

    number: int
    unit: str = ""


class Table(NamedTuple):
    """Which field has which role; `mark` separates fields ("": blanks), `fewest` to `most` per line;
    `decimal` mark of its numbers; `blank_disk`: a line may name no disk, and is passed over then."""

    roles: dict[str, Field]
    mark: str
    fewest: int
    most: int
    decimal: str = "."
    blank_disk: bool = False


def line_of(table: Table, text: str) -> tuple[Line, ...] | None:
    """The I/O of a line; none where it asks nothing of a drive; None where it is not such a line."""
    if not text.strip() or text.startswith("#"):
        return ()
    fields = columns.split(text, table.mark)
    if not table.fewest <= len(fields) <= table.most:
        return None

    def field(role: str) -> str | None:
        place = table.roles.get(role)
        return fields[place.number] if place and -len(fields) <= place.number < len(fields) else None

    def number(role: str, factors: dict[str, int]) -> int | None:
        text = field(role)
        return None if text is None else _whole(text, factors[table.roles[role].unit], table)

    if table.blank_disk and (field("disk") or "").isdigit():
        return ()  # the number of a process is where its name would be
    if not (field("op") or "").strip():
        return (Line(None, READ, 0, 0, field("disk") or "", passed=_NO_ANSWER),)
    times = {role: _time(field(role), table, role) for role in ("t", "end", "lasts") if role in table.roles}
    begin, length = number("offset", BYTES), number("size", BYTES)
    if None in times.values() or begin is None or length is None or begin < 0 or length < 0:
        return None
    if "t" not in times and "end" in times:
        times["t"] = (times["end"] or 0) - (times.get("lasts") or 0)
    at_ns, lasts_ns = times.get("t"), times.get("lasts")
    if "end" in times and at_ns is not None:
        lasts_ns = (times["end"] or 0) - at_ns
    if lasts_ns is not None and lasts_ns < 0:
        return None
    lines = _operation(field("op") or "", table.roles["op"].unit, at_ns, begin, length, field("disk") or "")
    return None if lines is None else tuple(line._replace(lasts_ns=lasts_ns) for line in lines)


def _time(text: str | None, table: Table, role: str) -> int | None:
    if text is None:
        return None
    unit = table.roles[role].unit
    return columns.utc_ns(text) if unit == "utc" else _whole(text, NS[unit], table)


def _whole(text: str, factor: int, table: Table) -> int | None:
    return columns.whole(columns.ungrouped(text) if table.mark == "," else text, factor, table.decimal)


def _by_shown_decimals(table: Table) -> Callable[[str], tuple[Line, ...] | None]:
    """line_of() for a file whose numbers show by themselves whether their decimal mark is a comma or a point; a line
    with the other one does not parse."""
    shown = ""

    def parse(text: str) -> tuple[Line, ...] | None:
        nonlocal shown
        fields = columns.split(text, table.mark)
        places = [place.number for role, place in table.roles.items() if role in NUMBERS and place.unit != "utc"]
        numbers = [fields[number] for number in places if -len(fields) <= number < len(fields)]
        marks = {"," if "," in number else "." for number in numbers if "," in number or number.count(".") == 1}
        if len(marks | {shown} - {""}) > 1:
            return None
        shown = shown or next(iter(marks), "")
        return line_of(table._replace(decimal=shown or "."), text)

    return parse


def _operation(name: str, unit: str, t_ns: int | None, begin: int, length: int, disk: str) -> tuple[Line, ...] | None:
    if unit == "rwbs":
        return trace_kernel.request(t_ns or 0, disk, name, str(begin // 512), str(-(-length // 512)), QUEUED)
    if unit == "scsi":
        is_code = re.fullmatch(r"(?:0x)?[0-9a-fA-F]{1,2}", name, re.ASCII)
        return trace_vscsi.scsi(int(name, 16), t_ns, begin, length, disk) if is_code else None
    if unit == "scsi10":
        is_code = re.fullmatch(r"\d{1,3}", name, re.ASCII)
        return trace_vscsi.scsi(int(name), t_ns, begin, length, disk) if is_code else None
    if unit in ("read0", "read1"):
        value = columns.whole(name)
        op = None if value is None else READ if value & 1 == int(unit == "read1") else WRITE
    else:
        op = _WORDS.get(name.casefold().strip())
    if op is None:
        return None
    return (Line(t_ns, op, *((0, 0) if op == FLUSH else (begin, length)), disk),)


def _format(
    name: str,
    example: str,
    table: Table,
    heading: str = "",
    why: str = NO_END,
    most_bytes: int = 0,
    long: str = "",
    before: Callable[[str], str] = str,
    **more,
) -> Format:
    """`most_bytes`: a longer I/O is refused, and `long` states why; 0: none is. `before`: changes a line first."""
    known = "lasts" in table.roles or {"t", "end"} <= table.roles.keys()
    return Format(
        name,
        example,
        "t" in table.roles or "end" in table.roles,
        lambda text: _short(line_of(table, before(text)), most_bytes, long),
        header=re.compile(re.escape(heading)) if heading else None,
        depths=RESPONSES if known else "",
        depths_why="" if known else why,
        **more,
    )


def _short(lines: tuple[Line, ...] | None, most_bytes: int, long: str) -> tuple[Line, ...] | None:
    if not lines or not most_bytes:
        return lines
    return tuple(line._replace(refusal=long) if line.length_bytes > most_bytes else line for line in lines)


def _fields(text: str) -> dict[str, Field]:
    """ "t=0:s offset=3:B" as roles."""
    parts = (part.partition("=") for part in text.split())
    return {role: Field(int(place.partition(":")[0]), place.partition(":")[2]) for role, _, place in parts}


def _of_known_version(text: str) -> str:
    """The line; "?" for one of a version whose codes may be decimal: 42 would be an UNMAP (hexadecimal) or a write."""
    return text if text.startswith(("1,", "2,")) else "?"


_WHOLE_S = 10**9
_MAJOR_MINOR = re.compile(r"(\d{1,4}) (\d{1,7})( [0-9a-fA-F]{32}\s*)$", re.ASCII)
PLAIN = (
    (
        re.compile(r"[Vv]ersion,time,op,size,lbn|[12],\d{1,10},[0-9a-fA-F]{1,2},\d{1,10},\d{1,15}"),
        _format(
            "CloudPhysics CSV",
            "1,33898,2a,512,42932745",
            Table(_fields("t=1:s op=2:scsi size=3:B offset=4:sectors"), ",", 5, 5),
            "version,time,op,size,lbn",
            before=_of_known_version,
            step_ns=_WHOLE_S,
        ),
    ),
    (
        re.compile(r"Timestamp,Response,IOType,LUN,Offset,Size|\d{10}\.\d{1,9},[\d.]*,[RW]?,\d{1,3},\d{1,20},\d{1,12}"),
        _format(
            "SYSTOR '17 trace",
            "1456135200.013118000,0.000806000,R,0,899056122368,131072",
            Table(_fields("t=0:s lasts=1:s op=2:words disk=3 offset=4:B size=5:B"), ",", 6, 6),
            "Timestamp,Response,IOType,LUN,Offset,Size",
            step_ns=1000,
        ),
    ),
    (
        re.compile(r"\s*\d{1,5}\s*,\s*\d{1,19}\s*,\s*\d{1,10}\s*,\s*[rRwW]\s*,\s*\d{1,12}(?:\.\d*)?\s*(?:,.*)?"),
        _format(
            "UMass trace in SPC format",
            "0,20941264,8192,W,0.551706",
            Table(_fields("disk=0 offset=1:sectors size=2:B op=3:words t=4:s"), ",", 5, 9),
        ),
    ),
    (
        re.compile(r"1[0-9]{9},\d{1,15},\d{1,10},[01],\d{1,12}"),
        _format(
            "Tencent block trace 2018",
            "1538323200,12910952,128,0,1063",
            Table(_fields("t=0:s offset=1:sectors size=2:sectors op=3:read0 disk=4"), ",", 5, 5),
            step_ns=_WHOLE_S,
        ),
    ),
    (
        re.compile(r"\d{12,20} \d{1,8} \S+ \d{1,15} \d{1,8} [WR] \d{1,4} \d{1,4} [0-9a-fA-F]{32}"),
        _format(
            "FIU trace",
            "89968195792462 20782 gzip 283193184 8 W 6 0 56f11b711d91a065a2b6458eca924523",
            Table(_fields("t=0:ns offset=3:sectors size=4:sectors op=5:words disk=6"), "", 8, 8),
            before=lambda text: _MAJOR_MINOR.sub(r"\1,\2\3", text),
        ),
    ),
    (
        re.compile(r"\d{1,10}\t\d{1,9}\.\d{1,9}\t\d{1,9}\.\d{1,9}\t\d{1,3}\t(?:Read|Write)\t\d{1,15}\t\d{1,8}\s*"),
        _format(
            "DiskMon log",
            "0\t0.551706\t0.00012207\t0\tWrite\t6237095\t8",
            Table(_fields("t=1:s disk=3 op=4:words offset=5:sectors size=6:sectors"), "\t", 7, 8),
            why="DiskMon does not define whether a time is an I/O's beginning or end, and its durations are often 0",
        ),
    ),
    (
        re.compile(r"\s*\d{1,12}\.\d{1,12}\s+\d{1,5}\s+\d{1,15}\s+\d{1,8}\s+(?:0x)?[0-9a-fA-F]{1,8}\s*"),
        _format(
            "DiskSim ASCII trace",
            "48.513000 0 524288 16 1",
            Table(_fields("t=0:ms disk=1 offset=2:sectors size=3:sectors op=4:read1"), "", 5, 5),
            most_bytes=1 << 20,
            long=LONG,
        ),
    ),
)
MQSIM = re.compile(r"\s*\d{1,18}\s+\d{1,5}\s+\d{1,15}\s+\d{1,8}\s+[01]\s*", re.ASCII)
BIOSNOOP_STEP_NS = 10_000  # LAT(ms) has two digits
_BIOSNOOP = ["TIME(s)", "COMM", "PID", "DISK", "T", "SECTOR", "BYTES"]
_BIOSNOOP_MORE = {"P", "QUE(ms)", "LAT(ms)"}  # of -P, -Q, always
_PATTERN_AT_BYTES = re.compile(r"(\d{7,})([SR?])(?=\s)")  # biosnoop -P leaves no blank after seven digits
_IOSNOOP = re.compile(r"STARTs\s+ENDs\s+COMM\s+PID\s+TYPE\s+DEV\s+BLOCK\s+BYTES\s+LATms\s*")
BIOSNOOP, IOSNOOP = "biosnoop", "iosnoop -ts"
ETW = "ETW events as xperf prints them"
_PROCESS, _PID_AT_END = "Process Name ( PID)", re.compile(r"\(\s*-?\d{1,10}\)$", re.ASCII)
PARTS = "part of a block of 512 bytes, so that its columns may be sectors"
_SYNONYMS = {
    "t": ("time", "timestamp", "start time", "init time", "issue time", "arrival time", "start", "begin"),
    "end": ("end time", "complete time", "completion time", "end"),
    "lasts": ("response", "response time", "responsetime", "latency", "io time", "duration", "elapsed", "elapsedtime"),
    "offset": ("offset", "min offset", "byteoffset", "byte offset", "lba", "lbn", "sector", "block", "blkno"),
    "size": ("size", "length", "iosize", "io size", "bytes", "sectors"),
    "op": ("op", "type", "io type", "iotype", "operation", "request", "rw", "opcode"),
    "disk": ("disk", "device", "dev", "lun", "disknum", "disknumber", "volume"),
}
_SECTORS = ("lba", "lbn", "sector", "block", "blkno", "sectors")


def of(first: str) -> Format | None:
    """The format of a table that begins with this line."""
    text = first.strip().lstrip("\ufeff")
    if (format_ := _biosnoop(first)) is not None:
        return format_
    if _IOSNOOP.fullmatch(text):
        table = Table(_fields("t=0:s end=1:s op=-5:rwbs disk=-4 offset=-3:sectors size=-2:B"), "", 9, 24)
        return _format(IOSNOOP, "1.000010 1.000510 dd 9 W 8,0 2048 4096 0.50", table, first)
    if text == "BeginHeader" or text.startswith("DiskRead,"):
        return _Etw(first).format
    return next((plain for pattern, plain in PLAIN if pattern.fullmatch(first)), None)


def _biosnoop(first: str) -> Format | None:
    """By the columns of its heading, counted from the end: the name of a program may have blanks."""
    headings = first.split()
    rest = headings[len(_BIOSNOOP) :]
    if headings[: len(_BIOSNOOP)] != _BIOSNOOP or "LAT(ms)" not in rest or not _BIOSNOOP_MORE.issuperset(rest):
        return None
    place = {heading: number - len(headings) for number, heading in enumerate(headings)}
    roles = {
        "end": Field(0, "s"),
        "disk": Field(place["DISK"]),
        "op": Field(place["T"], "rwbs"),
        "offset": Field(place["SECTOR"], "sectors"),
        "size": Field(place["BYTES"], "B"),
        "lasts": Field(place["LAT(ms)"], "ms"),
    }
    table = Table(roles, "", len(headings) - 1, len(headings) + 16, ".", True)
    example = "0.000148    java    539    sda     W 24159776   98304     3.41"
    made = _format(BIOSNOOP, example, table, first, step_ns=BIOSNOOP_STEP_NS, most_bytes=MOST_BYTES, long=NOT_READ)
    parse = made.parse
    return made._replace(parse=lambda text: parse(_PATTERN_AT_BYTES.sub(r"\1 \2", text))) if "P" in rest else made


def mapped(first: str, chosen: dict[str, Column]) -> Format:
    """The format of a table by the user's column map, which `first` may be the heading of. Raises UsageError."""
    do = "see ./ssdrig trace convert --help, --column"
    mark = columns.delimiter(first)
    headings = columns.split(first, mark)
    roles: dict[str, Field] = {}
    for role, column in chosen.items():
        number = columns.place(column, headings)
        if number is None or number >= len(headings):
            raise UsageError(f"a column {column.name!r}", f"{', '.join(headings)[:200]}", do)
        roles[role] = Field(number, _unit(role, column, headings[number], do))
    missing = [role for role in ("offset", "size", "op") if role not in roles]
    if missing:
        raise UsageError(f"columns for {', '.join(missing)}", ", ".join(f"{role}=" for role in roles) or "none", do)
    if "end" in roles and not {"t", "lasts"} & roles.keys():
        raise UsageError("the beginning of an I/O (t=), or how long it lasts (lasts=)", "only its end", do)
    table = Table(roles, mark, len(headings), len(headings) + 64)
    parse = line_of if mark == "," else lambda table, text: _by_shown_decimals(table)(text)
    heading = first if not parse(table, first) else ""
    made = _format("table by --column", first, table, heading, why="no column has end times")
    return made if mark == "," else made._replace(parse=_by_shown_decimals(table))


def _unit(role: str, column: Column, heading: str, do: str) -> str:
    if role == "disk":
        return ""
    known = OP_UNITS if role == "op" else (*NS, "utc") if role in ("t", "end", "lasts") else tuple(BYTES)
    unit = column.unit or columns.named(heading)[1]
    unit = unit if unit in known else columns.unit_named(unit)
    if not unit and role == "op":
        return "words"
    if unit not in known:
        raise UsageError(f"a unit of {role}=: {', '.join(known)}", repr(column.unit or heading), do)
    return unit


def guessed(first: str) -> Format | None:
    """The format of a table whose headings name all that is needed, with a unit for the times; None otherwise."""
    mark = columns.delimiter(first)
    headings = columns.split(first, mark)
    columns_: dict[str, Column] = {}
    for number, heading in enumerate(headings, 1):
        name, unit = columns.named(heading)
        role = next((role for role, words in _SYNONYMS.items() if name.casefold() in words), None)
        if role in ("offset", "size") and not unit:
            unit = "sectors" if name.casefold() in _SECTORS else "B"
        if role and role not in columns_:
            columns_[role] = Column(str(number), unit)
    if not {"t", "offset", "size", "op"} <= columns_.keys():
        return None
    try:
        made = mapped(first, columns_)
    except UsageError:  # a unit is missing: the user has to name it
        return None
    parse = made.parse
    return made._replace(name="table with headings", parse=lambda text: _whole_blocks(parse(text)))


def _whole_blocks(lines: tuple[Line, ...] | None) -> tuple[Line, ...] | None:
    return lines and tuple(
        line._replace(refusal=PARTS) if (line.offset_bytes | line.length_bytes) % 512 else line for line in lines
    )


class _Etw:
    """Events of one dump: each kind's columns are in the head of the file, which differs from one Windows to another.
    An I/O has its line when it has ended; ElapsedTime goes back to its beginning."""

    KINDS = {"DiskRead": READ, "DiskWrite": WRITE, "DiskFlush": FLUSH}

    def __init__(self, first: str):
        self.places: dict[str, dict[str, int]] = {}
        self.heads = True
        example = "DiskRead, 8612, xperf.exe (3984), 11844, 1, 0xffff, 0x018f0b8000, 0x00001000, 283, 0, 0x060043, 283"
        self.format = Format(ETW, example, True, self.parse, depths=RESPONSES, step_ns=1000)

    def parse(self, text: str) -> tuple[Line, ...] | None:
        fields = [field.strip() for field in text.split(",")]
        name = fields[0]
        at = self.places.get(name, {}).get(_PROCESS, len(fields))
        while at + 1 < len(fields) and not _PID_AT_END.search(fields[at]):  # the name of a program may have a comma
            fields[at : at + 2] = [f"{fields[at]}, {fields[at + 1]}"]
        if name in ("BeginHeader", "EndHeader", ""):
            return ()
        if len(fields) > 1 and fields[1] == "TimeStamp":
            self.places[name] = {heading: number for number, heading in enumerate(fields)}
            return ()
        op = self.KINDS.get(name)
        if op is None:
            return () if len(fields) > 1 or not self.places else None
        places = self.places.get(name)
        if places is None:
            return None
        wanted = ("TimeStamp", "ElapsedTime", "DiskNum") + (() if op == FLUSH else ("ByteOffset", "IOSize"))
        texts = [fields[places[key]] if key in places and places[key] < len(fields) else "" for key in wanted]
        numbers = [columns.whole(value) for value in texts]
        if any(number is None or number < 0 for number in numbers):
            return None
        end_us, lasts_us, disk, *place = (number or 0 for number in numbers)
        begin, length = place or (0, 0)
        if op != FLUSH and not length:
            return ()
        return (Line((end_us - lasts_us) * 1000, op, begin, length, str(disk), lasts_ns=lasts_us * 1000),)


def names() -> list[str]:
    """The formats read without a column map."""
    plain = [format_.name for _, format_ in PLAIN]
    return [*plain, BIOSNOOP, IOSNOOP, ETW]


_OTHERS: tuple[tuple[Callable[[bytes], bool], str, str], ...] = (
    (lambda data: data[1:4] == b"tae" or data[:3] == b"eat", "a blktrace binary", "blkparse -i FILE > FILE.txt"),
    (lambda data: data[:8] in (b"PERFILE2", b"2ELIFREP"), "a perf.data file", "perf script -i FILE > FILE.txt"),
    (lambda data: data[:10] == b"\x17\x08Dtracing", "a trace.dat of trace-cmd", "trace-cmd report -i FILE > FILE.txt"),
    (lambda data: data[:4] == b"\x28\xb5\x2f\xfd", "a zstd file", "zstd -d FILE"),
    (lambda data: data[:2] == b"\x1f\x8b", "a gzip file in a compressed one", "gzip -d < FILE > FILE.gz"),
    (lambda data: data[:3] == b"BZh", "a bzip2 file in a compressed one", "decompress FILE once"),
    (lambda data: data[:6] == b"\xfd7zXZ\0", "an xz file in a compressed one", "decompress FILE once"),
    (
        lambda data: data[:2] in (b"\xff\xfe", b"\xfe\xff") or (data[1:16:2] == bytes(8) and all(data[:16:2])),
        "text of 16 bits a character, as PowerShell's > writes it",
        "iconv -f UTF-16 -t UTF-8 FILE > FILE.txt",
    ),
    (lambda data: data[:2] == b"PK", "a zip file", "unzip FILE, and convert its content"),
    (lambda data: data[257:262] == b"ustar", "a tar file", "tar -xf FILE, and convert its content"),
    (lambda data: data[:6] == b"7z\xbc\xaf\x27\x1c", "a 7z file", "7z x FILE"),
    (lambda data: data[:4] == b"PML_", "a log of Process Monitor: files, not blocks", "record block I/O by xperf"),
)
_TEXTS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(r"TIME\(ms\)\s+DISK.*COMM\s+PID\s+LAT\(ms\)\s*"),
        "biosnoop.bt of bpftrace, which prints no places",
        "record it by biosnoop of BCC, blktrace, or ./ssdrig trace record",
    ),
    (
        re.compile(r"(?:STARTs\s+|ENDs\s+)?COMM\s+PID\s+TYPE\s+DEV\s+BLOCK\s+BYTES\s+LATms\s*"),
        "iosnoop without both times of an I/O",
        "record it by iosnoop -ts",
    ),
    (
        re.compile(r"\d{1,12}, \d{1,20}, [012], \d{1,12}(?:, \d{1,20})?(?:, .*)?"),
        "a bw, iops or lat log of fio: sums, without places",
        "run fio with write_iolog=FILE in its job, and convert that",
    ),
    (
        re.compile(r'"?Time of Day"?,"?Process Name"?,.*'),
        "a CSV of Process Monitor: files, not blocks",
        "record block I/O: xperf -on DISK_IO+DISK_IO_INIT, then xperf -i FILE.etl -o FILE.csv",
    ),
    (
        re.compile(r"Attaching \d+ probes?\.\.\."),
        "what a script of bpftrace prints",
        "record it by biosnoop of BCC, blktrace, or ./ssdrig trace record",
    ),
    (
        re.compile(r"\[[\d:.]+\] \(\+[\d.?]+\) .*"),
        "text of babeltrace (LTTng)",
        "record it by blktrace, perf, trace-cmd, or ./ssdrig trace record",
    ),
    (
        re.compile(r"\d+\.\d{3} .*block:block_\w+\(.*"),
        "what perf trace prints",
        "record it by perf record -e block:block_rq_issue,block:block_rq_complete, then perf script",
    ),
    (
        re.compile(r"Event Name,\s*Type,.*"),
        "a CSV of tracerpt, whose columns have no names",
        "xperf -i FILE.etl -o FILE.csv",
    ),
    (re.compile(r"\{.*"), "a JSON document", "run fio with write_iolog=FILE in its job, and convert that"),
    (
        MQSIM,
        "MQSim's trace, or DiskSim's with whole times: the unit of its times is not in it",
        "--column t=1:ns,disk=2,offset=3:sectors,size=4:sectors,op=5:read1 (MQSim's own samples count ns)",
    ),
)


def refusal(data: bytes, first: str) -> tuple[str, str] | None:
    """(what a file is, how to convert it) for one that no format of ours is."""
    for matches, what, do in _OTHERS:
        if matches(data):
            return what, do
    return next(((what, do) for pattern, what, do in _TEXTS if pattern.fullmatch(first.strip())), None)
