"""What the drive holds: page contents in a sparse file, or only a check of each page.

The file is mapped. Short reads and writes go through the map (0.8 us a page, measured on ext4, against 2.4 us with
pwrite); long ones, and all once the disk is nearly full, through pread and pwrite: the first touch of a mapped page
costs 9 us, too much for a sequential fill, and on a full disk it would kill the process instead of failing the write.

Both stores keep, if asked, what recent versions of pages replaced (replaced.py). A version is one write of one page;
the caller counts them, in the order of submission.

What recent versions of pages replaced, so that a power cut can put it back: a cell (what a store keeps of one page)
for each. Those of writes lie in a ring by the version's number, as in the drive's own ring (flash/versions.py); those
of trims by the command's."""

import ctypes
import errno
import fcntl
import mmap
import os
import stat
import struct
import tempfile
import zlib
from pathlib import Path

import numpy as np

from ssdrig.base.errors import DriveError, UsageError
from ssdrig.base.kernels import jit
from ssdrig.blockio import nbd_protocol
from ssdrig.blockio.nbd_protocol import AT, ERROR, LENGTH, OFFSET, OP, WRITE
from ssdrig.virtual.flash import stored_arrays

TRIM_PAGES = 4096  # of all trims together, the latest; what a trim beyond that took is gone for good


class Replaced:
    """`slots`: a power of 2, or 0: nothing is kept."""

    def __init__(self, slots: int, cell_bytes: int):
        self.slots, self.cell_bytes = slots, cell_bytes
        self.cells = np.zeros(slots * cell_bytes, np.uint8)
        self.trimmed: dict[int, np.ndarray] = {}  # command -> its pages whose content is kept
        self._of_trims: dict[int, np.ndarray] = {}  # command -> their cells

    def runs(self, number: int, pages: int):
        """(first page's offset, cells uint8[n, cell_bytes]) of the ring for versions number, number + 1, ...; of more
        than it holds only the last."""
        done = max(0, pages - self.slots)
        ring = self.cells.reshape(self.slots, self.cell_bytes)
        while self.slots and done < pages:
            slot = (number + done) & (self.slots - 1)
            n = min(pages - done, self.slots - slot)
            yield done, ring[slot : slot + n]
            done += n

    def trim(self, command: int, pages: np.ndarray, cells: np.ndarray) -> None:
        """Keep what this command takes away."""
        self.trimmed[command], self._of_trims[command] = pages, cells
        while len(self.trimmed) > 1 and sum(map(len, self.trimmed.values())) > TRIM_PAGES:
            oldest = next(iter(self.trimmed))
            del self.trimmed[oldest], self._of_trims[oldest]

    def forget_trims(self) -> None:
        self.trimmed.clear()
        self._of_trims.clear()

    def cell(self, version) -> bytes:
        """What a version (versions.VERSION) replaced."""
        if version["trim"]:
            return self._of_trims[int(version["command"])][int(version["cell"])].tobytes()
        at = (int(version["cell"]) & (self.slots - 1)) * self.cell_bytes
        return self.cells[at : at + self.cell_bytes].tobytes()


PAGE_BYTES = 4096
LONG_BYTES = 32768
SPARE_BYTES = 512 << 20  # less than this free on the file system: the map is not written to any more
DIRECTORY = "/var/tmp"  # on disk; /tmp is often memory
_PUNCH_HOLE_KEEP_SIZE = 3
_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def open_store(data: str, size_bytes: int, slots: int = 0):
    """The store that `data` names: "sparse" (private file, gone with the process), "crc", or the path of a file that
    stays.

    `slots`: number of versions whose replaced content is kept, a power of 2 or 0. Raises DriveError if there is no
    room."""
    if data == "crc":
        return CheckStore(size_bytes, slots)
    return ByteStore(None if data == "sparse" else data, size_bytes, slots)


def zero(store, offset: int, length: int, number: int = 0, command: int = 0) -> tuple[int, int]:
    """Exactly these bytes become zero: the pages that they fill by a trim, a part of a page by a write, as
    nbd.page_commands asks it of the flash. Takes the numbers of the next version and the next command, returns them as
    they are afterwards."""
    end = offset + length
    inner, outer = -(-offset // PAGE_BYTES), end // PAGE_BYTES
    if inner > outer:  # within one page
        edges = [(offset, end)]
    else:
        edges = [(offset, inner * PAGE_BYTES), (outer * PAGE_BYTES, end)]
    for start, stop in edges:
        if start < stop:
            store.zero_part(start, stop - start, number)
            number, command = number + 1, command + 1
    if inner < outer:
        store.trim(inner, outer, command)
        command += 1
    return number, command


class ByteStore:
    """Keeps every byte in a sparse file."""

    min_block = 1

    def __init__(self, path: str | None, size_bytes: int, slots: int = 0):
        self.fd = _open(path, size_bytes)
        os.ftruncate(self.fd, size_bytes)
        self.bytes = np.frombuffer(mmap.mmap(self.fd, size_bytes), dtype=np.uint8)
        self.replaced = Replaced(slots, PAGE_BYTES)
        self.look()

    def look(self) -> None:
        """See how full the file system is; call about once a second."""
        vfs = os.fstatvfs(self.fd)
        self.short_bytes = LONG_BYTES if vfs.f_bavail * vfs.f_frsize >= SPARE_BYTES else 0

    def write(self, buf: np.ndarray, batch: np.ndarray, n: int, number: int = 0) -> int:
        """Store the payloads that the first n requests of a parsed batch carry in buf (uint8), in their order; number:
        of the first version. Returns the number of the next one.

        A write that the file system refuses gets its errno in ERROR, and makes no version."""
        row, cells = 0, self.replaced.cells
        while True:
            row, number = _write_short(buf, batch, row, n, self.bytes, self.short_bytes, cells, number)
            if row == n:
                return number
            offset, length, at = batch[row, [OFFSET, LENGTH, AT]].tolist()
            first, pages = offset // PAGE_BYTES, -(-(offset + length) // PAGE_BYTES) - offset // PAGE_BYTES
            for done, some in self.replaced.runs(number, pages):
                os.preadv(self.fd, [some], (first + done) * PAGE_BYTES)
            batch[row, ERROR] = self._write_long(memoryview(buf)[at : at + length], offset)
            number += 0 if batch[row, ERROR] else pages
            row += 1

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

    def zero_part(self, offset: int, length: int, number: int) -> None:
        """These bytes of one page become zero, which is version `number` of it."""
        page = offset // PAGE_BYTES
        for _, some in self.replaced.runs(number, 1):
            os.preadv(self.fd, [some], page * PAGE_BYTES)
        os.pwrite(self.fd, bytes(length), offset)

    def trim(self, first: int, last: int, command: int) -> None:
        """Pages first..last-1 read as zeros and take no room; what the first of them held is kept."""
        if self.replaced.slots and last > first:
            pages = np.arange(first, min(last, first + TRIM_PAGES))
            cells = np.zeros((len(pages), PAGE_BYTES), np.uint8)
            os.preadv(self.fd, [cells], first * PAGE_BYTES)
            held = cells.any(axis=1)
            self.replaced.trim(command, pages[held], cells[held])
        self.punch(first, last)

    def punch(self, first: int, last: int) -> None:
        """Pages first..last-1 read as zeros and take no room, for good."""
        if last <= first:
            return
        at, length = first * PAGE_BYTES, (last - first) * PAGE_BYTES
        if _libc.fallocate(self.fd, _PUNCH_HOLE_KEEP_SIZE, at, length):
            for start in range(at, at + length, 1 << 20):  # a file system that cannot punch holes
                os.pwrite(self.fd, bytes(min(1 << 20, at + length - start)), start)

    def clear(self) -> None:
        self.punch(0, os.fstat(self.fd).st_size // PAGE_BYTES)
        self.replaced.forget_trims()

    def load(self, page: int) -> bytes:
        """The cell of a page, as put() takes it."""
        return os.pread(self.fd, PAGE_BYTES, page * PAGE_BYTES)

    def put(self, page: int, cell: bytes) -> None:
        os.pwrite(self.fd, cell, page * PAGE_BYTES)

    def save(self, folder: Path) -> None:
        """Write all of it into `folder`. Raises OSError."""
        with open(folder / "store.bin", "wb") as copy:
            _copy_sparse(self.fd, copy.fileno(), os.fstat(self.fd).st_size)

    def restore(self, folder: Path) -> None:
        """Take over what save() wrote; nothing has been written yet. Raises OSError, and ValueError for a drive of
        another size."""
        size_bytes = os.fstat(self.fd).st_size
        fd = os.open(folder / "store.bin", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would wait for a writer
        with open(fd, "rb") as copy:
            if os.fstat(fd).st_size != size_bytes:
                raise ValueError(f"store.bin is not of {size_bytes} bytes")
            _copy_sparse(copy.fileno(), self.fd, size_bytes)

    def close(self) -> None:
        self.bytes = np.empty(0, np.uint8)  # the map goes with it
        os.close(self.fd)


def reads_as(offset: int, content: bytes) -> bytes:
    """What a page with this content reads as from a drive that keeps checks (CheckStore)."""
    return struct.pack("<QII", offset // PAGE_BYTES, zlib.crc32(content) or 1, 0) * (PAGE_BYTES // 16)


class CheckStore:
    """Keeps 4 bytes a page: the CRC-32 of the data written (0 is stored as 1), 0 for never written or trimmed.

    A read gives, for a written page, 256 times `page u64 | crc u32 | 0 u32` little endian, and zeros for the others."""

    min_block = PAGE_BYTES

    def __init__(self, size_bytes: int, slots: int = 0):
        pages = size_bytes // PAGE_BYTES
        fd = _open(None, pages * 4)
        os.posix_fallocate(fd, 0, pages * 4)
        self.checks = np.frombuffer(mmap.mmap(fd, pages * 4), dtype="<u4")
        os.close(fd)
        self.replaced = Replaced(slots, 4)

    def write(self, buf: np.ndarray, batch: np.ndarray, n: int, number: int = 0) -> int:
        data, checks, slots = memoryview(buf), self.checks, self.replaced.slots
        cells = self.replaced.cells.view("<u4")
        for op, _, _, offset, length, at, error, _ in batch[:n].tolist():
            if op != nbd_protocol.WRITE or error:
                continue
            for page in range(offset // PAGE_BYTES, (offset + length) // PAGE_BYTES):
                if slots:
                    cells[number & (slots - 1)] = checks[page]
                checks[page] = zlib.crc32(data[at : at + PAGE_BYTES]) or 1
                at += PAGE_BYTES
                number += 1
        return number

    def read(self, out: np.ndarray, reads: np.ndarray, n: int) -> None:
        _fill_pattern(out[: len(out) // 4 * 4].view("<u4"), reads, n, self.checks)

    def trim(self, first: int, last: int, command: int) -> None:
        if self.replaced.slots:
            pages = np.arange(first, min(last, first + TRIM_PAGES))
            pages = pages[self.checks[pages] != 0]
            self.replaced.trim(command, pages, self.checks[pages].view(np.uint8).reshape(-1, 4))
        self.punch(first, last)

    def punch(self, first: int, last: int) -> None:
        self.checks[first:last] = 0

    def clear(self) -> None:
        self.punch(0, len(self.checks))
        self.replaced.forget_trims()

    def load(self, page: int) -> bytes:
        return self.checks[page].tobytes()

    def put(self, page: int, cell: bytes) -> None:
        self.checks[page] = int.from_bytes(cell, "little")

    def look(self) -> None:
        """Its room was taken at the start."""

    def save(self, folder: Path) -> None:
        np.savez(folder / "store.npz", checks=self.checks)

    def restore(self, folder: Path) -> None:
        with stored_arrays.opened(folder / "store.npz") as stored:
            self.checks[...] = stored_arrays.array(stored, "checks", self.checks.dtype, *self.checks.shape)

    def close(self) -> None:
        self.checks = np.empty(0, self.checks.dtype)


@jit
def _copy(to, source):
    """A loop over two contiguous slices becomes a memory copy; slice assignment is 15 times slower in Numba."""
    for i in range(len(to)):
        to[i] = source[i]


@jit
def _write_short(buf, batch, row, n, data, short_bytes, cells, number):
    """Writes from `row` on into the map, and the replaced entries into `cells` by the numbers of their versions.
    Returns (row of the first that is not below short_bytes, otherwise n; number of the next version)."""
    slots = cells.shape[0] // PAGE_BYTES
    while row < n:
        length, at, offset = batch[row, LENGTH], batch[row, AT], batch[row, OFFSET]
        if batch[row, OP] == WRITE and batch[row, ERROR] == 0 and length > 0:
            if length >= short_bytes:
                break
            for page in range(offset // PAGE_BYTES, (offset + length - 1) // PAGE_BYTES + 1):
                if slots:
                    cell = (number & (slots - 1)) * PAGE_BYTES
                    _copy(cells[cell : cell + PAGE_BYTES], data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES])
                number += 1
            _copy(data[offset : offset + length], buf[at : at + length])
        row += 1
    return row, number


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


def _copy_sparse(source: int, target: int, size_bytes: int) -> None:
    """The bytes of one file into another of no bytes, or of zeros; holes stay holes."""
    os.ftruncate(target, size_bytes)
    end = 0
    while True:
        try:
            at = os.lseek(source, end, os.SEEK_DATA)
        except OSError as e:
            if e.errno == errno.ENXIO:  # nothing but a hole from here on
                return
            raise
        end = os.lseek(source, at, os.SEEK_HOLE)
        while at < end:
            at += os.pwrite(target, os.pread(source, min(1 << 20, end - at), at), at)


def _open(path: str | None, size_bytes: int) -> int:
    """File descriptor of the file at `path`, or of one without a name. Raises DriveError if the disk is full,
    and UsageError if the existing file cannot be the data of a drive of this size: it stays unchanged."""
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
    info, why = os.fstat(fd), ""
    if not stat.S_ISREG(info.st_mode):
        why = "no regular file"
    elif info.st_size not in (0, size_bytes):
        why = f"a file of {info.st_size} bytes"
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
