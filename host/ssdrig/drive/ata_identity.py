"""IDENTIFY DEVICE of a disk behind a SCSI or USB bridge, through SG_IO: ATA PASS-THROUGH (SAT-4 12.2), as smartctl -d
sat asks. One response is cached for each appearance of a disk; a bridge that fails is tried again after a while."""

import ctypes
import os
import stat
import time

from ssdrig.base.system import fcntl

SG_IO = 0x2285  # scsi/sg.h
DIRECTION_IN = -3
TIMEOUT_MS = 2000
AGAIN_S = 5.0
LENGTH = 512
# PIO data-in, one block in the sector count, from the device; 12 bytes for bridges that know no 16
COMMANDS = (
    bytes((0x85, 0x08, 0x0E, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xEC, 0)),
    bytes((0xA1, 0x08, 0x0E, 0, 1, 0, 0, 0, 0, 0xEC, 0, 0)),
)


class _Request(ctypes.Structure):
    """sg_io_hdr_t."""

    _fields_ = [
        ("interface_id", ctypes.c_int),
        ("direction", ctypes.c_int),
        ("command_length", ctypes.c_ubyte),
        ("sense_length", ctypes.c_ubyte),
        ("iovec_count", ctypes.c_ushort),
        ("length", ctypes.c_uint),
        ("data", ctypes.c_void_p),
        ("command", ctypes.c_void_p),
        ("sense", ctypes.c_void_p),
        ("timeout_ms", ctypes.c_uint),
        ("flags", ctypes.c_uint),
        ("pack_id", ctypes.c_int),
        ("user", ctypes.c_void_p),
        ("status", ctypes.c_ubyte),
        ("masked_status", ctypes.c_ubyte),
        ("message_status", ctypes.c_ubyte),
        ("sense_written", ctypes.c_ubyte),
        ("host_status", ctypes.c_ushort),
        ("driver_status", ctypes.c_ushort),
        ("residual", ctypes.c_int),
        ("duration", ctypes.c_uint),
        ("info", ctypes.c_uint),
    ]


_answers: dict[tuple, tuple[float, bytes]] = {}  # (node, number, appearance): when asked, the data


def data(node: str, major: int, minor: int, appearance: str) -> bytes:
    """The 512 bytes of IDENTIFY DEVICE; b"" where they cannot be had."""
    known = _answers.get((node, major, minor, appearance))
    if known and (known[1] or time.monotonic() - known[0] < AGAIN_S):
        return known[1]
    answer = _asked(node, major, minor)
    _answers[node, major, minor, appearance] = time.monotonic(), answer
    return answer


def _asked(node: str, major: int, minor: int) -> bytes:
    try:
        fd = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        seen = os.fstat(fd)
        if not stat.S_ISBLK(seen.st_mode) or seen.st_rdev != os.makedev(major, minor):
            return b""
        return next((answer for command in COMMANDS if (answer := _sent(fd, command))), b"")
    except OSError:
        return b""
    finally:
        os.close(fd)


def _sent(fd: int, command: bytes) -> bytes:
    answer, sense = ctypes.create_string_buffer(LENGTH), ctypes.create_string_buffer(64)
    words = ctypes.create_string_buffer(command, len(command))
    request = _Request(
        interface_id=ord("S"),
        direction=DIRECTION_IN,
        command_length=len(command),
        sense_length=len(sense),
        length=LENGTH,
        data=ctypes.addressof(answer),
        command=ctypes.addressof(words),
        sense=ctypes.addressof(sense),
        timeout_ms=TIMEOUT_MS,
    )
    try:
        fcntl.ioctl(fd, SG_IO, request)
    except OSError:
        return b""
    good = not request.status and not request.host_status and request.residual < LENGTH
    return answer.raw if good and whole(answer.raw) else b""


def whole(answer: bytes) -> bool:
    """Whether it may be IDENTIFY data: of an ATA device (word 0 bit 15 clear), with a serial, and with the right sum
    where word 255 has the signature of one (ACS-3 7.12.7.88)."""
    if len(answer) != LENGTH or answer[1] & 0x80 or not answer[20:40].strip(b" \0"):
        return False
    return answer[510] != 0xA5 or sum(answer) % 256 == 0
