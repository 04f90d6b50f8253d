"""What the drive holds: page contents in a sparse file, or only a check of each page.

The file is mapped. Short reads and writes go through the map (0.8 us a page, measured on ext4, against 2.4 us with
pwrite); long ones, and all once the disk is nearly full, through pread and pwrite: the first touch of a mapped page
costs 9 us, too much for a sequential fill, and on a full disk it would kill the process instead of failing the write.

Both stores keep, if asked, the contents that recent writes replaced, so that a power cut without power-loss protection
can take back what was acknowledged but not yet in the NAND."""

import ctypes
import errno
import fcntl
import mmap
import os
import stat
import struct
import tempfile
import zlib

import numpy as np

from ssdrig.errors import DriveError, UsageError
from ssdrig.virtual.device import nbd
from ssdrig.virtual.device.nbd import AT, ERROR, LENGTH, OFFSET, OP, WRITE
from ssdrig.virtual.kernels import jit

PAGE_BYTES = 4096
LONG_BYTES = 32768
SPARE_BYTES = 512 << 20  # less than this free on the file system: the map is not written to any more
DIRECTORY = "/var/tmp"  # on disk; /tmp is often memory
_PUNCH_HOLE_KEEP_SIZE = 3
_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def open_store(data: str, size_bytes: int, undo_pages: int = 0):
    """The store that `data` names: "sparse" (private file, gone with the process), "crc", or the path of a file that
    stays.

    `undo_pages`: how many replaced pages are kept for lose(); 0 keeps none. Raises DriveError if there is no room."""
    if data == "crc":
        return CheckStore(size_bytes, undo_pages)
    return ByteStore(None if data == "sparse" else data, size_bytes, undo_pages)


class Undo:
    """Ring of replaced cells (a cell is what a store keeps of one page), newest overwrite oldest."""

    def __init__(self, size: int, cell_bytes: int):
        self.size, self.head = size, 0
        self.page = np.full(size, -1, dtype=np.int64)
        self.cell = np.zeros((size, cell_bytes), dtype=np.uint8)

    def keep(self, load, first: int, last: int) -> None:
        """Keep cells first..last-1; load(page, cells) copies the present cells from `page` on."""
        first = max(first, last - self.size)
        while first < last:
            slot = self.head % self.size
            n = min(last - first, self.size - slot)
            load(first, self.cell[slot : slot + n])
            self.page[slot : slot + n] = range(first, first + n)
            self.head += n
            first += n

    def forget(self, first: int, last: int) -> None:
        """Cells first..last-1 are not to be brought back."""
        self.page[(self.page >= first) & (self.page < last)] = -1

    def bring_back(self, put, pages: np.ndarray) -> tuple[int, int]:
        """put(page, cell) for each page named, newest first, as often as the page is named: the oldest wins.

        Returns (brought back, not in the ring any more). The ring is empty afterwards."""
        owed: dict[int, int] = {}
        for page in pages.tolist():
            owed[page] = owed.get(page, 0) + 1
        done = 0
        for k in range(self.head - 1, self.head - 1 - self.size, -1):
            page = int(self.page[k % self.size])
            if page >= 0 and owed.get(page, 0) > 0:
                owed[page] -= 1
                put(page, self.cell[k % self.size])
                done += 1
        self.page[:] = -1
        return done, len(pages) - done


class ByteStore:
    """Keeps every byte in a sparse file."""

    min_block = 1

    def __init__(self, path: str | None, size_bytes: int, undo_pages: int = 0):
        self.fd = _open(path, size_bytes)
        os.ftruncate(self.fd, size_bytes)
        self.bytes = np.frombuffer(mmap.mmap(self.fd, size_bytes), dtype=np.uint8)
        self.undo = Undo(undo_pages, PAGE_BYTES) if undo_pages else None
        self.look()

    def look(self) -> None:
        """See how full the file system is; call about once a second."""
        vfs = os.fstatvfs(self.fd)
        self.short_bytes = LONG_BYTES if vfs.f_bavail * vfs.f_frsize >= SPARE_BYTES else 0

    def write(self, buf: np.ndarray, batch: np.ndarray, n: int) -> None:
        """Store the payloads that the first n requests of a parsed batch carry in buf (uint8).

        A write that the file system refuses gets its errno in ERROR."""
        if self.undo:
            for op, _, _, offset, length, _, error, _ in batch[:n].tolist():
                if op == nbd.WRITE and not error:
                    self.undo.keep(self._load, offset // PAGE_BYTES, -(-(offset + length) // PAGE_BYTES))
        if _write_short(buf, batch, n, self.bytes, self.short_bytes):
            data = memoryview(buf)
            for row, (op, _, _, offset, length, at, error, _) in enumerate(batch[:n].tolist()):
                if op == nbd.WRITE and not error and length >= self.short_bytes:
                    batch[row, nbd.ERROR] = self._write_long(data[at : at + length], offset)

    def _write_long(self, data: memoryview, offset: int) -> int:
        try:
            return 0 if os.pwrite(self.fd, data, offset) == len(data) else errno.ENOSPC
        except OSError as e:
            return e.errno or errno.EIO

    def read(self, out: np.ndarray, reads: np.ndarray, n: int) -> None:
        """Fill `out` for n rows (position in out, offset, length)."""
        if _read_short(out, reads, n, self.bytes, self.short_bytes):
            view = memoryview(out)
            for at, offset, length in reads[:n].tolist():
                if length >= self.short_bytes:
                    os.preadv(self.fd, [view[at : at + length]], offset)

    def zero(self, offset: int, length: int) -> None:
        """Exactly these bytes become zero; whole pages give their room back."""
        end = offset + length
        inner, outer = -(-offset // PAGE_BYTES), end // PAGE_BYTES
        if inner > outer:  # within one page
            edges = [(offset, end)]
        else:
            edges = [(offset, inner * PAGE_BYTES), (outer * PAGE_BYTES, end)]
        for start, stop in edges:
            if start < stop:
                if self.undo:
                    self.undo.keep(self._load, start // PAGE_BYTES, start // PAGE_BYTES + 1)
                os.pwrite(self.fd, bytes(stop - start), start)
        self.punch(inner, outer)

    def punch(self, first: int, last: int) -> None:
        """Pages first..last-1 read as zeros and take no room. A trim is final: what was there is not brought back."""
        if last <= first:
            return
        at, length = first * PAGE_BYTES, (last - first) * PAGE_BYTES
        if _libc.fallocate(self.fd, _PUNCH_HOLE_KEEP_SIZE, at, length):
            for start in range(at, at + length, 1 << 20):  # a file system that cannot punch holes
                os.pwrite(self.fd, bytes(min(1 << 20, at + length - start)), start)
        if self.undo:
            self.undo.forget(first, last)

    def clear(self) -> None:
        self.punch(0, os.fstat(self.fd).st_size // PAGE_BYTES)

    def lose(self, pages: np.ndarray) -> tuple[int, int]:
        """Take back the newest content of each page named (as often as it is named): the one before comes back.

        Returns (taken back, not possible because the ring is too short for it)."""
        assert self.undo
        return self.undo.bring_back(lambda page, cell: os.pwrite(self.fd, cell, page * PAGE_BYTES), pages)

    def _load(self, page: int, cells: np.ndarray) -> None:
        os.preadv(self.fd, [cells], page * PAGE_BYTES)

    def close(self) -> None:
        self.bytes = np.empty(0, np.uint8)  # the map goes with it
        os.close(self.fd)


def reads_as(offset: int, content: bytes) -> bytes:
    """What a page with this content reads as from a drive that keeps checks (CheckStore)."""
    return struct.pack("<QII", offset // PAGE_BYTES, zlib.crc32(content) or 1, 0) * (PAGE_BYTES // 16)


class CheckStore:
    """Keeps 4 bytes a page: the CRC-32 of what was written (0 is kept as 1), 0 for never written or trimmed.

    A read gives, for a written page, 256 times `page u64 | crc u32 | 0 u32` little endian, and zeros for the others."""

    min_block = PAGE_BYTES

    def __init__(self, size_bytes: int, undo_pages: int = 0):
        pages = size_bytes // PAGE_BYTES
        fd = _open(None, pages * 4)
        os.posix_fallocate(fd, 0, pages * 4)
        self.checks = np.frombuffer(mmap.mmap(fd, pages * 4), dtype="<u4")
        os.close(fd)
        self.undo = Undo(undo_pages, 4) if undo_pages else None

    def write(self, buf: np.ndarray, batch: np.ndarray, n: int) -> None:
        data, checks, undo = memoryview(buf), self.checks, self.undo
        for op, _, _, offset, length, at, error, _ in batch[:n].tolist():
            if op != nbd.WRITE or error:
                continue
            first, last = offset // PAGE_BYTES, (offset + length) // PAGE_BYTES
            if undo:
                undo.keep(self._load, first, last)
            for page in range(first, last):
                checks[page] = zlib.crc32(data[at : at + PAGE_BYTES]) or 1
                at += PAGE_BYTES

    def read(self, out: np.ndarray, reads: np.ndarray, n: int) -> None:
        _fill_pattern(out[: len(out) // 4 * 4].view("<u4"), reads, n, self.checks)

    def zero(self, offset: int, length: int) -> None:
        self.punch(-(-offset // PAGE_BYTES), (offset + length) // PAGE_BYTES)

    def punch(self, first: int, last: int) -> None:
        if last > first:
            self.checks[first:last] = 0
            if self.undo:
                self.undo.forget(first, last)

    def clear(self) -> None:
        self.punch(0, len(self.checks))

    def lose(self, pages: np.ndarray) -> tuple[int, int]:
        def put(page: int, cell: np.ndarray) -> None:
            self.checks[page] = cell.view("<u4")[0]

        assert self.undo
        return self.undo.bring_back(put, pages)

    def _load(self, page: int, cells: np.ndarray) -> None:
        cells.view("<u4")[:, 0] = self.checks[page : page + len(cells)]

    def look(self) -> None:
        """Its room was taken at the start."""

    def close(self) -> None:
        self.checks = np.empty(0, self.checks.dtype)


@jit
def _copy(to, source):
    """A loop over two contiguous slices becomes a memory copy; slice assignment is 15 times slower in Numba."""
    for i in range(len(to)):
        to[i] = source[i]


@jit
def _write_short(buf, batch, n, data, short_bytes):
    """Writes below short_bytes into the map. Returns how many longer ones are left."""
    left = 0
    for i in range(n):
        length, at, offset = batch[i, LENGTH], batch[i, AT], batch[i, OFFSET]
        if batch[i, OP] != WRITE or batch[i, ERROR] != 0:
            continue
        if length < short_bytes:
            _copy(data[offset : offset + length], buf[at : at + length])
        else:
            left += 1
    return left


@jit
def _read_short(out, reads, n, data, short_bytes):
    left = 0
    for i in range(n):
        at, offset, length = reads[i]
        if length < short_bytes:
            _copy(out[at : at + length], data[offset : offset + length])
        else:
            left += 1
    return left


@jit
def _fill_pattern(out, reads, n, checks):
    """CheckStore.read; positions in out are whole words, as replies of whole pages are."""
    for i in range(n):
        at = reads[i, 0] // 4
        for page in range(reads[i, 1] // PAGE_BYTES, (reads[i, 1] + reads[i, 2]) // PAGE_BYTES):
            written = np.uint32(checks[page] != 0)
            low, high = np.uint32(page & 0xFFFFFFFF) * written, np.uint32(page >> 32) * written
            for line in range(at, at + PAGE_BYTES // 4, 4):
                out[line], out[line + 1], out[line + 2], out[line + 3] = low, high, checks[page], 0
            at += PAGE_BYTES // 4


def _open(path: str | None, size_bytes: int) -> int:
    """File descriptor of the file at `path`, or of one without a name. Raises DriveError if there is no room for it,
    and UsageError if what is there cannot be the data of a drive of this size: it stays as it is."""
    directory = DIRECTORY if path is None else os.path.dirname(os.path.abspath(path))
    try:
        if path is None:
            fd, name = tempfile.mkstemp(prefix="ssdrig-data-", dir=directory)
            os.unlink(name)
        else:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600)
    except OSError as e:
        raise DriveError(f"a file for the drive's data in {directory}", str(e), "give another with --data FILE") from e
    if path is not None:
        _refuse_other_data(fd, path, size_bytes)
    vfs, held = os.fstatvfs(fd), os.fstat(fd).st_blocks * 512
    free = vfs.f_bavail * vfs.f_frsize
    if free < size_bytes - held:
        os.close(fd)
        do = "free some, give another place with --data FILE, or keep checks only with --data crc"
        raise DriveError(f"{size_bytes - held} bytes free in {directory} for the drive's data", f"{free}", do)
    return fd


def _refuse_other_data(fd: int, path: str, size_bytes: int) -> None:
    """A file of a drive's data is new, or has exactly its size, and no other server works on it."""
    found, why = os.fstat(fd), ""
    if not stat.S_ISREG(found.st_mode):
        why = "no regular file"
    elif found.st_size not in (0, size_bytes):
        why = f"a file of {found.st_size} bytes"
    else:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            why = "a file that another virtual drive uses"
    if why:
        os.close(fd)
        raise UsageError(
            f"at {path} a new file or the data of a drive of {size_bytes} bytes", why, "give another --data FILE"
        )
