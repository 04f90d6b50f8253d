"""Frames of NVMe/TCP (transport specification 1.0) without I/O: whole runs of simple I/O commands parsed in one pass,
all due completions built in one pass, and the few frames that come one by one. No digests are offered.

A row is that of nbd: OP FLAGS COOKIE OFFSET LENGTH AT ERROR DUE, so that Device.execute takes it as it is. COOKIE is
the command identifier; ERROR is 0, an errno of the store, or REFUSED | status."""

import struct

import numpy as np

from ssdrig.base.kernels import compiling, jit
from ssdrig.blockio import nbd_protocol
from ssdrig.blockio.nbd_protocol import AT, COLUMNS, COOKIE, DUE, ERROR, FLAGS, LENGTH, OFFSET, OP
from ssdrig.virtual.device import status

IC_REQ, IC_RESP, H2C_TERM, C2H_TERM, COMMAND, RESPONSE, H2C_DATA, C2H_DATA = range(8)
R2T = 9
COMMON_BYTES, DATA_HEADER_BYTES, RESPONSE_BYTES, SQE_BYTES, COMMAND_BYTES, IC_BYTES = 8, 24, 24, 64, 72, 128
LAST = 4  # flag of a data PDU
# Fatal error status of a TermReq, figure "Host to Controller Terminate Connection Request PDU"
FES_HEADER_FIELD, FES_SEQUENCE, FES_DIGEST, FES_RANGE, FES_LIMIT, FES_UNSUPPORTED = 1, 2, 3, 4, 5, 6

IN_CAPSULE_BYTES = 8192  # data that a command capsule may carry (IOCCSZ)
MAX_TRANSFER_BYTES = 512 << 10  # of one command (MDTS)
MAX_H2C_BYTES = MAX_TRANSFER_BYTES  # of one H2CData PDU (MAXH2CDATA)
REFUSED = 1 << 16  # marks a status in ERROR

FLUSH, WRITE, READ, WRITE_ZEROES, DSM = 0x00, 0x01, 0x02, 0x08, 0x09
IO_RECEIVE, IO_SEND = 0x12, 0x1D  # I/O Management
FUA = 1 << 14  # of bytes 50..51 of Read and Write, command dword 12 bit 30
DIRECTIVE = 0x00F0  # of the same bytes: the type of a write's directive, command dword 12 bits 23:20
SGL_IN_CAPSULE, SGL_TRANSPORT = 0x01, 0x5A

HEADER_BYTES = {IC_REQ: IC_BYTES, H2C_TERM: 24, COMMAND: COMMAND_BYTES, H2C_DATA: DATA_HEADER_BYTES}
LONGEST = {
    IC_REQ: IC_BYTES,
    H2C_TERM: 152,
    COMMAND: COMMAND_BYTES + IN_CAPSULE_BYTES,
    H2C_DATA: DATA_HEADER_BYTES + MAX_H2C_BYTES,
}


class ProtocolError(Exception):
    """The host broke the framing: `fes` and `fei` (which byte or bit) go into the C2HTermReq that ends the
    connection."""

    def __init__(self, fes: int, fei: int = 0):
        super().__init__(f"fatal error status {fes}, information {fei}")
        self.fes, self.fei = fes, fei


def header(buf, at: int) -> tuple[int, int, int]:
    """(type, bytes of the header, bytes of the PDU) of the PDU whose first 8 bytes lie at buf[at]. Raises
    ProtocolError."""
    kind, flags, hlen, pdo, plen = struct.unpack_from("<BBBBI", buf, at)
    if kind not in HEADER_BYTES:
        raise ProtocolError(FES_HEADER_FIELD, 0)
    if flags & ~LAST or (flags and kind != H2C_DATA):
        raise ProtocolError(FES_HEADER_FIELD, 1)  # digests were not agreed on
    if hlen != HEADER_BYTES[kind]:
        raise ProtocolError(FES_HEADER_FIELD, 2)
    if kind == H2C_DATA and plen > LONGEST[kind]:
        raise ProtocolError(FES_LIMIT)
    if plen < hlen or plen > LONGEST[kind] or (kind == H2C_DATA and plen == hlen):
        raise ProtocolError(FES_HEADER_FIELD, 4)
    if kind in (COMMAND, H2C_DATA) and plen > hlen and pdo != hlen:  # CPDA 0: data follows the header
        raise ProtocolError(FES_HEADER_FIELD, 3)
    return kind, hlen, plen


def ic_response() -> bytes:
    return struct.pack("<BBBBIHBBI", IC_RESP, 0, IC_BYTES, 0, IC_BYTES, 0, 0, 0, MAX_H2C_BYTES) + bytes(112)


def term_request(fes: int, fei: int, culprit: bytes) -> bytes:
    """C2HTermReq with the header of the PDU that was wrong."""
    culprit = culprit[:128]
    return struct.pack("<BBBBIHI", C2H_TERM, 0, 24, 0, 24 + len(culprit), fes, fei) + bytes(10) + culprit


def warm_up() -> None:
    """Load or compile the machine code of this module."""
    buf = np.zeros(COMMAND_BYTES, np.uint8)
    buf[:4] = COMMAND, 0, COMMAND_BYTES, 0
    batch = np.zeros((1, COLUMNS), np.int64)
    with compiling("nvme"):
        parse(buf, 0, len(buf), 1 << 20, 9, 0, batch)
        collect(batch, 1, 0, 0, DATA_HEADER_BYTES, buf, np.zeros((1, 3), np.int64))


def r2t(cid: int, tag: int, length: int) -> bytes:
    """Ready to transfer: all data of the command in one PDU."""
    return struct.pack("<BBBBIHHII4x", R2T, 0, 24, 0, 24, cid, tag, 0, length)


def data(cid: int, content: bytes, data_at: int) -> bytes:
    """C2HData with all data of a command; data_at is where the host wants it to start (see collect)."""
    head = struct.pack("<BBBBIHHII4x", C2H_DATA, LAST, 24, data_at, data_at + len(content), cid, 0, 0, len(content))
    return head.ljust(data_at, b"\0") + content


def response(cid: int, sqhd: int, code: int = 0, result: int = 0) -> bytes:
    return struct.pack("<BBBBIQHHHH", RESPONSE, 0, 24, 0, 24, result, sqhd, 0, cid, code << 1)


@jit
def _little(buf, at, n):
    value = np.uint64(0)
    for i in range(n):
        value |= np.uint64(buf[at + i]) << np.uint64(8 * i)
    return np.int64(value)


@jit
def parse(buf, start, end, size_bytes, lba_shift, write_through, batch):
    """The simple I/O commands at the start of buf[start:end] (uint8) into `batch`, up to the first other PDU.

    Simple: a whole and faultless capsule with Flush, Read, Write Zeroes, or Write with its data in the capsule.
    Everything else, including invalid PDUs, is left to the caller. write_through 1 makes every write force unit
    access. Returns (n rows, bytes used)."""
    n = 0
    at = start
    while n < batch.shape[0] and end - at >= COMMAND_BYTES:
        plen = _little(buf, at + 4, 4)
        held = plen - COMMAND_BYTES
        if (
            buf[at] != COMMAND
            or buf[at + 1] != 0
            or buf[at + 2] != COMMAND_BYTES
            or held < 0
            or held > IN_CAPSULE_BYTES
            or plen > end - at
        ):
            break
        sqe = at + COMMON_BYTES
        opcode = buf[sqe]
        if buf[sqe + 1] != 0x40 or _little(buf, sqe + 4, 4) != 1:  # SGL, not fused, namespace 1
            break
        offset = np.int64(0)
        length = np.int64(0)
        flags = np.int64(0)
        if opcode == FLUSH:
            op = nbd_protocol.FLUSH
        elif opcode == READ or opcode == WRITE or opcode == WRITE_ZEROES:
            slba = _little(buf, sqe + 40, 8)
            blocks = _little(buf, sqe + 48, 2) + 1
            if slba < 0 or slba > (size_bytes >> lba_shift) - blocks:
                break
            offset, length = slba << lba_shift, blocks << lba_shift
            control = _little(buf, sqe + 50, 2)
            fua = control & FUA != 0
            asked, kind = _little(buf, sqe + 32, 4), buf[sqe + 39]
            if control & 0x3C00:  # protection information, which no format has
                break
            if opcode == READ:
                op = nbd_protocol.READ
                if length > MAX_TRANSFER_BYTES or asked != length or kind != SGL_TRANSPORT:
                    break
            elif opcode == WRITE:
                op = nbd_protocol.WRITE
                if (
                    held != length
                    or asked != length
                    or kind != SGL_IN_CAPSULE
                    or _little(buf, sqe + 24, 8)
                    or buf[at + 3] != COMMAND_BYTES
                    or control & DIRECTIVE
                ):
                    break
                fua = fua or write_through != 0
            else:
                op = nbd_protocol.WRITE_ZEROES
                fua = fua or write_through != 0
            flags = nbd_protocol.FUA if fua else 0
        else:
            break
        if held and op != nbd_protocol.WRITE:
            break
        batch[n, OP] = op
        batch[n, FLAGS] = flags
        batch[n, COOKIE] = _little(buf, sqe + 2, 2)
        batch[n, OFFSET] = offset
        batch[n, LENGTH] = length
        batch[n, AT] = at + COMMAND_BYTES
        batch[n, ERROR] = 0
        batch[n, DUE] = 0
        n += 1
        at += plen
    return n, at - start


@jit
def collect(waiting, n, now_ns, sqhd, data_at, out, reads):
    """Completions of the commands that are due, in the order of arrival, into `out` (uint8); what stays is moved up.

    A good read becomes a C2HData PDU, its data starting data_at bytes after the start of the PDU, and a row (position
    in out, offset, length) in `reads` for the store to fill; then, as for all others, the response capsule. Stops where
    out is full. Returns (n left, bytes in out, n reads, next DUE or -1)."""
    left, used, filled = 0, 0, 0
    next_due = -1
    full = False
    for i in range(n):
        length = waiting[i, LENGTH] if waiting[i, OP] == nbd_protocol.READ and waiting[i, ERROR] == 0 else 0
        need = RESPONSE_BYTES + (data_at + length if length else 0)
        if waiting[i, DUE] <= now_ns and not full and used + need > out.shape[0]:
            full = True
        if waiting[i, DUE] > now_ns or full:
            left, next_due = nbd_protocol.stays(waiting, i, left, next_due)
            continue
        cid = waiting[i, COOKIE]
        if length:
            out[used : used + data_at] = 0
            out[used], out[used + 1], out[used + 2], out[used + 3] = C2H_DATA, LAST, DATA_HEADER_BYTES, data_at
            _put(out, used + 4, 4, data_at + length)
            _put(out, used + 8, 2, cid)
            _put(out, used + 16, 4, length)
            reads[filled, 0], reads[filled, 1], reads[filled, 2] = used + data_at, waiting[i, OFFSET], length
            filled += 1
            used += data_at + length
        error = waiting[i, ERROR]
        medium = status.UNRECOVERED_READ_ERROR if waiting[i, OP] == nbd_protocol.READ else status.WRITE_FAULT
        code = error & 0x7FFF if error & REFUSED else (medium if error else 0)
        out[used : used + RESPONSE_BYTES] = 0
        out[used], out[used + 2], out[used + 4] = RESPONSE, RESPONSE_BYTES, RESPONSE_BYTES
        _put(out, used + 16, 2, sqhd)
        _put(out, used + 20, 2, cid)
        _put(out, used + 22, 2, code << 1)
        used += RESPONSE_BYTES
    return left, used, filled, next_due


@jit
def _put(out, at, n, value):
    for i in range(n):
        out[at + i] = (value >> (8 * i)) & 0xFF
