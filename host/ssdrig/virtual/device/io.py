"""I/O commands that do not come as a whole simple capsule: their errors, or their requests to the drive.

Source: NVM Express NVM Command Set Specification 1.0 (Read, Write, Flush, Write Zeroes, Dataset Management)."""

import struct

import numpy as np

from ssdrig.blockio import nbd_protocol
from ssdrig.virtual.device import pdu, placement, status
from ssdrig.virtual.device.status import Refused

ALL_NAMESPACES = 0xFFFFFFFF
RANGE_BYTES = 16
ID_BYTES = 2  # of a placement identifier
_PROTECTION = 0x3C00  # PRACT and PRCHK of bytes 50..51
_DEALLOCATE = 1 << 2


def check_common(sqe: bytes) -> None:
    """What holds for every command but those of fabrics. Raises Refused."""
    if sqe[1] & 0x03:
        raise Refused(status.INVALID_FIELD, 1)  # fused operations are not offered
    if sqe[1] >> 6 != 1:
        raise Refused(status.INVALID_FIELD, 1)  # fabrics carry SGLs only


def wanted_bytes(sqe: bytes, size_bytes: int, lba_shift: int, placed: bool = False) -> int:
    """Check an I/O command (64 bytes) of a drive, `placed` of one with data placement. Returns how many bytes of data
    it needs from the host. Raises Refused."""
    check_common(sqe)
    opcode, (nsid,) = sqe[0], struct.unpack_from("<I", sqe, 4)
    managed = (pdu.IO_RECEIVE, pdu.IO_SEND) if placed else ()
    if opcode not in (pdu.FLUSH, pdu.WRITE, pdu.READ, pdu.WRITE_ZEROES, pdu.DSM, *managed):
        raise Refused(status.INVALID_OPCODE, 0)
    if nsid != 1 and not (opcode == pdu.FLUSH and nsid == ALL_NAMESPACES):
        raise Refused(status.INVALID_NAMESPACE, 4)
    if opcode == pdu.FLUSH:
        return 0
    if opcode == pdu.DSM:
        need = RANGE_BYTES * (sqe[40] + 1)
        _check_sgl(sqe, need)
        return need
    if opcode in managed:
        return _managed_bytes(sqe)
    slba, blocks, control = struct.unpack_from("<QHH", sqe, 40)
    if slba + blocks + 1 > size_bytes >> lba_shift:
        raise Refused(status.LBA_OUT_OF_RANGE, 40)
    if control & _PROTECTION:
        raise Refused(status.INVALID_FIELD, 50)
    if opcode == pdu.WRITE and (control & pdu.DIRECTIVE) >> 4 not in (0, placement.DIRECTIVE if placed else 0):
        raise Refused(status.INVALID_FIELD, 50)
    length = (blocks + 1) << lba_shift
    if opcode == pdu.WRITE_ZEROES:
        return 0
    if length > pdu.MAX_TRANSFER_BYTES:
        raise Refused(status.INVALID_FIELD, 48)
    if struct.unpack_from("<I", sqe, 32)[0] != length:
        raise Refused(status.DATA_SGL_LENGTH_INVALID, 32)
    if opcode == pdu.READ and sqe[39] != pdu.SGL_TRANSPORT:
        raise Refused(status.INVALID_SGL_TYPE, 39)
    return length if opcode == pdu.WRITE else 0


def placement_id(sqe: bytes) -> int:
    """The placement identifier that a checked command names; 0 where it names none."""
    (control,) = struct.unpack_from("<H", sqe, 50)
    return struct.unpack_from("<H", sqe, 54)[0] if sqe[0] == pdu.WRITE and control & pdu.DIRECTIVE else 0


def _managed_bytes(sqe: bytes) -> int:
    """What I/O Management Receive or Send needs from the host."""
    operation, (more,), (dwords,) = sqe[40], struct.unpack_from("<H", sqe, 42), struct.unpack_from("<I", sqe, 44)
    if operation != (placement.STATUS if sqe[0] == pdu.IO_RECEIVE else placement.UPDATE):
        raise Refused(status.INVALID_FIELD, 40)
    if sqe[0] == pdu.IO_RECEIVE:
        if dwords >= pdu.MAX_TRANSFER_BYTES // 4:
            raise Refused(status.INVALID_FIELD, 44)
        _check_sgl(sqe, 4 * (dwords + 1))
        return 0
    _check_sgl(sqe, ID_BYTES * (more + 1))
    return ID_BYTES * (more + 1)


def managed(sqe: bytes, content: bytes, placed: placement.Placement, lba_shift: int, t_ms: int) -> bytes | None:
    """Execute a checked I/O Management command; its answer. Raises Refused."""
    if sqe[0] == pdu.IO_RECEIVE:
        size = 4 * (struct.unpack_from("<I", sqe, 44)[0] + 1)
        return placed.status(lba_shift)[:size].ljust(size, b"\0")
    try:
        placed.update(struct.unpack(f"<{len(content) // ID_BYTES}H", content), t_ms)
    except ValueError:
        raise Refused(status.INVALID_FIELD, 42) from None
    return None


def _check_sgl(sqe: bytes, need: int) -> None:
    if struct.unpack_from("<I", sqe, 32)[0] < need:
        raise Refused(status.DATA_SGL_LENGTH_INVALID, 32)


def rows(sqe: bytes, content: bytes, size_bytes: int, lba_shift: int, write_through: bool) -> np.ndarray:
    """int64 (n, COLUMNS): what a checked command asks of the drive; the data of a write starts at 0 of its buffer. A
    Dataset Management with ranges gives a row for each. Raises Refused."""
    opcode, (cid,) = sqe[0], struct.unpack_from("<H", sqe, 2)
    if opcode == pdu.FLUSH:
        asked = [(nbd_protocol.FLUSH, 0, 0, 0)]
    elif opcode == pdu.DSM:
        asked = _deallocate(sqe, content, size_bytes >> lba_shift, lba_shift, nbd_protocol.FUA if write_through else 0)
    else:
        slba, blocks, control = struct.unpack_from("<QHH", sqe, 40)
        op = {pdu.READ: nbd_protocol.READ, pdu.WRITE: nbd_protocol.WRITE, pdu.WRITE_ZEROES: nbd_protocol.WRITE_ZEROES}[
            opcode
        ]
        fua = bool(control & pdu.FUA) or (write_through and op != nbd_protocol.READ)
        asked = [(op, nbd_protocol.FUA if fua else 0, slba << lba_shift, (blocks + 1) << lba_shift)]
    return np.array([(op, flags, cid, offset, length, 0, 0, 0) for op, flags, offset, length in asked], dtype=np.int64)


def _deallocate(
    sqe: bytes, content: bytes, blocks_in_all: int, lba_shift: int, flags: int
) -> list[tuple[int, int, int, int]]:
    asked = []
    for at in range(0, RANGE_BYTES * (sqe[40] + 1), RANGE_BYTES):
        _, blocks, slba = struct.unpack_from("<IIQ", content, at)
        if slba + blocks > blocks_in_all:
            raise Refused(status.LBA_OUT_OF_RANGE, 40)
        asked.append((nbd_protocol.TRIM, flags, slba << lba_shift, blocks << lba_shift))
    # the other attributes are hints that mean nothing here
    return asked if sqe[44] & _DEALLOCATE else [(nbd_protocol.TRIM, 0, 0, 0)]
