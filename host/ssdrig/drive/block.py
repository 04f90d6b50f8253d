"""Blocks of a drive: direct reads and writes, flush, discard, write zeroes. A `node` is what guard.Held.path gives:
the descriptor by which the drive is held, opened once more. Also works on a plain file, except for the last two.

ioctl numbers: linux/fs.h. The ioctls are ours and not util-linux blkdiscard's, which opens O_EXCL: the guard holds the
device so. Linux 5.12 and newer discards through a second descriptor of a device that is held exclusively.
"""

import errno
import fcntl
import mmap
import os
import random
import stat
import struct
from collections.abc import Callable

from ssdrig.base.errors import DriveError

BLKFLSBUF, BLKDISCARD, BLKZEROOUT = 0x1261, 0x1277, 0x127F
SAMPLE_BYTES = 4096
CHUNK_BYTES = 1 << 30
SEED = 4242


def size(node: str) -> int:
    """Bytes of the device (or file). Raises DriveError."""
    with Opened(node, os.O_RDONLY) as fd:
        return os.lseek(fd, 0, os.SEEK_END)


def sample_offsets(capacity_bytes: int, count: int = 66) -> list[int]:
    """Byte offsets, rising, of the first, the last and count - 2 pseudo-random blocks of 4 KiB; the same for each
    call."""
    blocks = capacity_bytes // SAMPLE_BYTES
    if blocks <= count:
        return [block * SAMPLE_BYTES for block in range(blocks)]
    chosen = {0, blocks - 1, *random.Random(SEED).sample(range(1, blocks - 1), count - 2)}
    return [block * SAMPLE_BYTES for block in sorted(chosen)]


def read(node: str, offsets: list[int]) -> list[bytes | None]:
    """4 KiB at each offset, read past the page cache; None where the drive reports an error. Raises DriveError if it
    cannot be opened."""
    values = []
    with (
        Opened(node, os.O_RDONLY | os.O_DIRECT) as fd,
        mmap.mmap(-1, SAMPLE_BYTES) as page,
    ):  # mmap: aligned, as O_DIRECT asks
        for offset in offsets:
            try:
                values.append(page[:] if os.preadv(fd, [page], offset) == SAMPLE_BYTES else None)
            except OSError:
                values.append(None)
    return values


def write(node: str, blocks: dict[int, bytes]) -> None:
    """Write 4 KiB blocks {offset: content} past the page cache and flush the drive. Raises DriveError."""
    with Opened(node, os.O_RDWR | os.O_DIRECT) as fd, mmap.mmap(-1, SAMPLE_BYTES) as page:
        for offset, content in blocks.items():
            page[:] = content
            os.pwritev(fd, [page], offset)
        os.fsync(fd)


def sync(node: str) -> None:
    """Have the drive empty its write cache: fsync of a block device ends with a flush command. Raises DriveError."""
    with Opened(node, os.O_RDWR) as fd:
        os.fsync(fd)


class Direct:
    """Reads and writes of any whole blocks past the page cache, in a with block. Raises DriveError."""

    def __init__(self, node: str, write: bool = False):
        self._open = Opened(node, (os.O_RDWR if write else os.O_RDONLY) | os.O_DIRECT)
        self._page: mmap.mmap | None = None

    def __enter__(self) -> "Direct":
        self._fd = self._open.__enter__()
        return self

    def __exit__(self, kind, error, trace) -> None:
        self._open.__exit__(kind, error, trace)

    def read(self, offset: int, length: int, /) -> None:
        """Read and forget."""
        os.preadv(self._fd, [self._aligned(length)], offset)

    def write(self, offset: int, data: bytes, /) -> None:
        page = self._aligned(len(data))
        page[:] = data
        os.pwritev(self._fd, [page], offset)

    def _aligned(self, length: int) -> mmap.mmap:
        if self._page is None or len(self._page) != length:
            self._page = mmap.mmap(-1, length)
        return self._page


def flush(node: str) -> None:
    """Bring all dirty pages to the drive, make it write its cache, and forget what the kernel has cached. Raises
    DriveError."""
    with Opened(node, os.O_RDWR) as fd:
        os.fsync(fd)
        if stat.S_ISBLK(os.fstat(fd).st_mode):
            fcntl.ioctl(fd, BLKFLSBUF, 0)


def discard(node: str, on_bytes: Callable[[int], None] = lambda done: None, end_bytes: int | None = None) -> None:
    """Discard (TRIM, DSM, UNMAP) the whole device, or the part before end_bytes. on_bytes gets the bytes done. Raises
    DriveError."""
    _whole(node, BLKDISCARD, on_bytes, end_bytes)


def zero(node: str, on_bytes: Callable[[int], None] = lambda done: None) -> None:
    """Write zeroes over the whole device, by the drive's own command where it has one. Raises DriveError."""
    _whole(node, BLKZEROOUT, on_bytes)


def _whole(node: str, request: int, on_bytes, end_bytes: int | None = None) -> None:
    with Opened(node, os.O_RDWR) as fd:
        end = os.lseek(fd, 0, os.SEEK_END) if end_bytes is None else end_bytes
        for start in range(0, end, CHUNK_BYTES):
            length = min(CHUNK_BYTES, end - start)
            fcntl.ioctl(fd, request, struct.pack("=QQ", start, length))
            on_bytes(start + length)


class Opened:
    """A descriptor for a with block. What the kernel refuses inside becomes DriveError."""

    def __init__(self, node: str, flags: int):
        self.node, self.flags = node, flags | os.O_CLOEXEC

    def __enter__(self) -> int:
        try:
            self.fd = os.open(self.node, self.flags)
        except OSError as error:
            do = (
                "run it as root"
                if error.errno in (errno.EACCES, errno.EPERM)
                else "see whether the drive is still there"
            )
            raise DriveError(f"{self.node} to open", error.strerror or str(error), do) from error
        return self.fd

    def __exit__(self, kind, error, trace) -> None:
        os.close(self.fd)
        if isinstance(error, OSError):
            why = error.strerror or str(error)
            raise DriveError(
                f"I/O on {self.node}", why, "see the kernel's log (dmesg) and the drive's error log"
            ) from error
