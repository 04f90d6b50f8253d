"""I/O commands that do not come as a whole simple capsule: their errors, or their requests to the drive.

Source: NVM Express NVM Command Set Specification 1.0 (Read, Write, Flush, Write Zeroes, Dataset Management)."""

import struct

import numpy as np

from ssdrig.blockio import nbd_protocol
from ssdrig.virtual.device import pdu, status
from ssdrig.virtual.device.status import Refused

ALL_NAMESPACES = 0xFFFFFFFF
RANGE_BYTES = 16
_PROTECTION = 0x3C00  # PRACT and PRCHK of bytes 50..51
_DEALLOCATE = 1 << 2


def check_common(sqe: bytes) -> None:
    """What holds for every command but those of fabrics. Raises Refused."""
    if sqe[1] & 0x03:
        raise Refused(status.INVALID_FIELD, 1)  # fused operations are not offered
    if sqe[1] >> 6 != 1:
        raise Refused(status.INVALID_FIELD, 1)  # fabrics carry SGLs only


def wanted_bytes(sqe: bytes, size_bytes: int, lba_shift: int) -> int:
    """Check an I/O command (64 bytes). Returns how many bytes of data it needs from the host. Raises Refused."""
    check_common(sqe)
    opcode, (nsid,) = sqe[0], struct.unpack_from("<I", sqe, 4)
    if opcode not in (pdu.FLUSH, pdu.WRITE, pdu.READ, pdu.WRITE_ZEROES, pdu.DSM):
        raise Refused(status.INVALID_OPCODE, 0)
    if nsid != 1 and not (opcode == pdu.FLUSH and nsid == ALL_NAMESPACES):
        raise Refused(status.INVALID_NAMESPACE, 4)
    if opcode == pdu.FLUSH:
        return 0
    if opcode == pdu.DSM:
        need = RANGE_BYTES * (sqe[40] + 1)
        _check_sgl(sqe, need)
        return need
    slba, blocks, control = struct.unpack_from("<QHH", sqe, 40)
    if slba + blocks + 1 > size_bytes >> lba_shift:
        raise Refused(status.LBA_OUT_OF_RANGE, 40)
    if control & _PROTECTION:
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
