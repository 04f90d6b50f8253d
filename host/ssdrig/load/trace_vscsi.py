"""Records of VMware's vscsiStats traces, as CloudPhysics published them: binary, versions 1 and 2. Pure.

Source: the structures trace_v1_record_t and trace_v2_record_t of libCacheSim's public reader; SCSI operation codes of
SBC-4."""

import struct

from ssdrig.load.trace_line import NO_END, Format, Line
from ssdrig.load.traceform import FLUSH, READ, TRIM, WRITE, ZEROES

SECTOR_BYTES = 512
_V1, _V2 = struct.Struct("<IIIHHQQ"), struct.Struct("<HHIIIQQQ")  # times are µs
_OPS = {
    **dict.fromkeys((0x08, 0x28, 0x88, 0xA8), READ),
    **dict.fromkeys((0x0A, 0x2A, 0x2E, 0x8A, 0x8E, 0xAA, 0xAE), WRITE),
    **dict.fromkeys((0x35, 0x91), FLUSH),
    0x42: TRIM,
    **dict.fromkeys((0x41, 0x93), ZEROES),
}
_ZONES = {0x94: "ZONE OUT (94h): it is made for a drive with zones", 0x95: ""}  # ZONE IN only asks


def scsi(code: int, t_ns: int | None, begin: int, length: int, device: str) -> tuple[Line, ...]:
    """The Line of a SCSI command; none for one that moves no data of the medium."""
    if code in _ZONES:
        return (Line(t_ns, WRITE, begin, length, device, refusal=_ZONES[code]),) if _ZONES[code] else ()
    op = _OPS.get(code)
    if op is None or (op != FLUSH and not length):
        return ()
    if op == TRIM:
        return (Line(t_ns, op, begin, length, device, refusal="UNMAP (42h): its ranges are not in the record"),)
    if op == ZEROES:
        return (Line(t_ns, op, begin, length, device, refusal="WRITE SAME: how many blocks is not in the record"),)
    return (Line(t_ns, op, *((0, 0) if op == FLUSH else (begin, length)), device),)


def of(first: bytes) -> Format | None:
    """The format of a file that begins with these bytes, two records at least."""
    for version, record in ((2, _V2), (1, _V1)):
        if len(first) >= 2 * record.size and all(_version(record, first, n) == version for n in (0, 1)):
            return V2 if version == 2 else V1
    return None


def _version(record: struct.Struct, data: bytes, number: int) -> int:
    fields = record.unpack_from(data, number * record.size)
    return (fields[1] if record is _V2 else fields[4]) >> 8


def _v1(text: str) -> tuple[Line, ...] | None:
    _, length, _, code, version, sector, t_us = _V1.unpack(text.encode("latin-1"))
    return scsi(code, t_us * 1000, sector * SECTOR_BYTES, length, "") if version >> 8 == 1 else None


def _v2(text: str) -> tuple[Line, ...] | None:
    code, version, _, length, _, sector, t_us, _ = _V2.unpack(text.encode("latin-1"))
    return scsi(code, t_us * 1000, sector * SECTOR_BYTES, length, "") if version >> 8 == 2 else None


_NO_UNIT = "the unit of its response times is not published"
_NAME = "vscsiStats trace, version {} (CloudPhysics)"
V1 = Format(_NAME.format(1), "", True, _v1, depths_why=NO_END, step_ns=1000, record_bytes=_V1.size)
V2 = Format(_NAME.format(2), "", True, _v2, depths_why=_NO_UNIT, step_ns=1000, record_bytes=_V2.size)
