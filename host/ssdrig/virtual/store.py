"""What the drive holds: page contents in a sparse file that is mapped, or only a check of each page.

Both keep, if asked, the contents that recent writes replaced, so that a power cut without power-loss protection can
take back what was acknowledged but not yet in the NAND."""

import ctypes
import mmap
import os
import tempfile
import zlib

import numpy as np
from ssdrig.virtual.kernels import jit

from ssdrig.errors import DriveError
from ssdrig.virtual import nbd

PAGE_BYTES = 4096
DIRECTORY = "/var/tmp"  # on disk; /tmp is often memory
SPARE_BYTES = 256 << 20  # left free on the file system: a mapped write to a full one would kill the process
_PUNCH_HOLE_KEEP_SIZE = 3
_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def open_store(data: str, size_bytes: int, undo_pages: int = 0):
    """The store that `data` names: "sparse" (private file, gone with the process), "crc", or the path of a file that stays.

    `undo_pages`: how many replaced pages are kept for lose(); 0 keeps none. Raises DriveError if there is no room."""
    if data == "crc":
        return CheckStore(size_bytes, undo_pages)
    return ByteStore(None if data == "sparse" else data, size_bytes, undo_pages)


class Cells:
    """A file mapped as uint8 (pages, cell_bytes), holes where nothing was written, with a ring of replaced cells."""

    def __init__(self, path: str | None, pages: int, cell_bytes: int, undo_pages: int):
        directory = DIRECTORY if path is None else os.path.dirname(os.path.abspath(path))
        try:
            if path is None:
                self.fd, name = tempfile.mkstemp(prefix="ssdrig-data-", dir=directory)
                os.unlink(name)
            else:
                self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as e:
            raise DriveError(f"a file for the drive's data in {directory}", e.strerror, "give another with --data FILE")
        held = os.fstat(self.fd).st_blocks * 512
        needed = pages * cell_bytes + SPARE_BYTES - held
        if self.free_bytes() < needed:
            seen = f"{self.free_bytes()} bytes free"
            os.close(self.fd)
            do = "free some, give another place with --data FILE, or keep checks only with --data crc"
            raise DriveError(f"{needed} bytes free in {directory} for the drive's data", seen, do)
        os.ftruncate(self.fd, pages * cell_bytes)
        self.map = mmap.mmap(self.fd, pages * cell_bytes)
        self.map.madvise(mmap.MADV_RANDOM)
        self.bytes = np.frombuffer(self.map, dtype=np.uint8)
        self.cells = self.bytes.reshape(pages, cell_bytes)
        self.undo_page = np.full(undo_pages, -1, dtype=np.int64)
        self.undo_cell = np.zeros((undo_pages, cell_bytes), dtype=np.uint8)
        self.undo_head = np.zeros(1, dtype=np.int64)

    def free_bytes(self) -> int:
        vfs = os.fstatvfs(self.fd)
        return vfs.f_bavail * vfs.f_frsize

    def remember(self, first: int, last: int) -> None:
        """Keep the cells first..last-1 as they are, before they are replaced."""
        _remember(self.cells, self.undo_page, self.undo_cell, self.undo_head, first, last)

    def lose(self, pages: np.ndarray) -> tuple[int, int]:
        """Take back the newest content of each page named (as often as it is named): the one before comes back.

        Returns (taken back, not possible because the ring is too short for it)."""
        owed: dict[int, int] = {}
        for page in pages.tolist():
            owed[page] = owed.get(page, 0) + 1
        done, n = 0, len(self.undo_page)
        for k in range(int(self.undo_head[0]) - 1, int(self.undo_head[0]) - 1 - n, -1):
            page = int(self.undo_page[k % n])
            if page >= 0 and owed.get(page, 0) > 0:
                owed[page] -= 1
                self.cells[page] = self.undo_cell[k % n]
                done += 1
        self.settle()
        return done, len(pages) - done

    def settle(self) -> None:
        """Everything written so far is durable: nothing of it can be taken back any more."""
        self.undo_page[:] = -1

    def punch(self, first: int, last: int) -> None:
        """Cells first..last-1 read as zeros and take no room. A trim is final: what was there is not brought back."""
        if last <= first:
            return
        width = self.cells.shape[1]
        if width < PAGE_BYTES or _libc.fallocate(
            self.fd, _PUNCH_HOLE_KEEP_SIZE, first * width, (last - first) * width
        ):
            self.cells[first:last] = 0  # a file system that cannot punch holes
        self.undo_page[(self.undo_page >= first) & (self.undo_page < last)] = -1

    def clear(self) -> None:
        """Nothing was ever written."""
        size = os.fstat(self.fd).st_size
        if _libc.fallocate(self.fd, _PUNCH_HOLE_KEEP_SIZE, 0, size):
            self.bytes[:] = 0
        self.settle()

    def close(self) -> None:
        self.bytes = self.cells = None
        self.map.close()
        os.close(self.fd)


class ByteStore(Cells):
    """Keeps every byte."""

    min_block = 1

    def __init__(self, path: str | None, size_bytes: int, undo_pages: int = 0):
        super().__init__(path, size_bytes // PAGE_BYTES, PAGE_BYTES, undo_pages)

    def write(self, buf: np.ndarray, batch: np.ndarray, n: int) -> None:
        """Store the payloads that the first n requests of a parsed batch carry in buf (uint8)."""
        _write_bytes(buf, batch, n, self.bytes, self.cells, self.undo_page, self.undo_cell, self.undo_head)

    def read(self, out: np.ndarray, reads: np.ndarray, n: int) -> None:
        """Fill `out` for n rows (position in out, offset, length)."""
        for at, offset, length in reads[:n].tolist():
            out[at : at + length] = self.bytes[offset : offset + length]

    def zero(self, offset: int, length: int) -> None:
        """Exactly these bytes become zero; whole pages give their room back."""
        end = offset + length
        inner, outer = -(-offset // PAGE_BYTES), end // PAGE_BYTES
        if inner > outer:  # within one page
            inner = outer = end // PAGE_BYTES
            edges = [(offset, end)]
        else:
            edges = [(offset, inner * PAGE_BYTES), (outer * PAGE_BYTES, end)]
        for start, stop in edges:
            if start < stop:
                self.remember(start // PAGE_BYTES, start // PAGE_BYTES + 1)
                self.bytes[start:stop] = 0
        self.punch(inner, outer)


class CheckStore(Cells):
    """Keeps 4 bytes a page: the CRC-32 of what was written (0 is kept as 1), 0 for never written or trimmed.

    A read gives, for a written page, 256 times `page u64 | crc u32 | 0 u32` little endian, and zeros for the others."""

    min_block = PAGE_BYTES

    def __init__(self, size_bytes: int, undo_pages: int = 0):
        super().__init__(None, size_bytes // PAGE_BYTES, 4, undo_pages)

    def write(self, buf: np.ndarray, batch: np.ndarray, n: int) -> None:
        data, crcs = memoryview(buf), self.cells.reshape(-1).view("<u4")
        keep = len(self.undo_page) > 0
        for op, _, _, offset, length, at, error, _ in batch[:n].tolist():
            if op != nbd.WRITE or error:
                continue
            first = offset // PAGE_BYTES
            if keep:
                self.remember(first, first + length // PAGE_BYTES)
            for i in range(length // PAGE_BYTES):
                start = at + i * PAGE_BYTES
                crcs[first + i] = zlib.crc32(data[start : start + PAGE_BYTES]) or 1

    def read(self, out: np.ndarray, reads: np.ndarray, n: int) -> None:
        crcs = self.cells.reshape(-1).view("<u4")
        for at, offset, length in reads[:n].tolist():
            pages = np.arange(offset // PAGE_BYTES, (offset + length) // PAGE_BYTES, dtype="<u8")
            out[at : at + length] = check_pattern(pages, crcs[pages]).reshape(-1)

    def zero(self, offset: int, length: int) -> None:
        self.punch(-(-offset // PAGE_BYTES), (offset + length) // PAGE_BYTES)


def check_pattern(pages: np.ndarray, crcs: np.ndarray) -> np.ndarray:
    """What CheckStore reads back: uint8 (n, 4096) for n pages and their kept checks."""
    line = np.zeros((len(pages), 4), dtype="<u4")
    line[:, 0], line[:, 1], line[:, 2] = pages & 0xFFFFFFFF, pages >> 32, crcs
    line[crcs == 0] = 0
    return np.tile(line.view(np.uint8), (1, PAGE_BYTES // 16))


@jit
def _remember(cells, undo_page, undo_cell, undo_head, first, last):
    n = undo_page.shape[0]
    if n == 0:
        return
    for page in range(first, last):
        slot = undo_head[0] % n
        undo_page[slot] = page
        undo_cell[slot] = cells[page]
        undo_head[0] += 1


@jit
def _write_bytes(buf, batch, n, data, cells, undo_page, undo_cell, undo_head):
    for i in range(n):
        length = batch[i, nbd.LENGTH]
        if batch[i, nbd.OP] != nbd.WRITE or batch[i, nbd.ERROR] != 0 or length == 0:
            continue
        at, offset = batch[i, nbd.AT], batch[i, nbd.OFFSET]
        _remember(
            cells, undo_page, undo_cell, undo_head, offset // PAGE_BYTES, (offset + length - 1) // PAGE_BYTES + 1
        )
        data[offset : offset + length] = buf[at : at + length]
