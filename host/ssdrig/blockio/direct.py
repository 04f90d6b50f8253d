"""A block device, or a file, opened past the page cache; what the kernel passes on to it; its discards, each a system
call that waits."""

import collections
import errno
import fcntl
import os
import queue
import stat
import struct
import threading
import time
from pathlib import Path

from ssdrig.base.errors import DriveError
from ssdrig.drive import block

DISCARD, ZEROES = "discard_max_bytes", "write_zeroes_max_bytes"  # limits in the queue's folder of sysfs; 0: not taken


def opened(path: str, or_buffered: bool = False) -> tuple[int, bool]:
    """(descriptor, whether its I/O goes past the page cache). Raises DriveError.

    `or_buffered`: a file on a file system without direct I/O is opened through the cache; a block device never is.
    """
    flags = os.O_RDWR | os.O_CLOEXEC
    try:
        try:
            return os.open(path, flags | os.O_DIRECT), True
        except OSError as error:
            if not (or_buffered and error.errno == errno.EINVAL and os.path.isfile(path)):
                raise
            return os.open(path, flags), False
    except OSError as error:
        why = error.strerror or str(error)
        raise DriveError(f"{path} to open for direct I/O", why, "see whether it is there and not read-only") from error


def is_block_device(fd: int) -> bool:
    return stat.S_ISBLK(os.fstat(fd).st_mode)


def takes(fd: int, limit: str) -> bool:
    """Whether it is a block device to which the kernel passes these requests on. `limit`: DISCARD or ZEROES."""
    if not is_block_device(fd):
        return False
    number = os.fstat(fd).st_rdev
    node = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    for folder in (node / "queue", node / "../queue"):  # a partition has its disk's
        try:
            return int((folder / limit).read_text()) > 0
        except (OSError, ValueError):
            continue
    return False


def discard(fd: int, offset: int, length: int, request: int = block.BLKDISCARD) -> int:
    """Errno, or 0. `request`: BLKDISCARD or BLKZEROOUT."""
    try:
        fcntl.ioctl(fd, request, struct.pack("=QQ", offset, length))
    except OSError as error:
        return error.errno or errno.EIO
    return 0


class Discards:
    """Discards and Write Zeroes of a block device, one after the other in a thread of their own. `answered`: (name, ns,
    errno or 0)."""

    def __init__(self, fd: int):
        self.fd, self.under_way = fd, 0
        self._asked: queue.SimpleQueue = queue.SimpleQueue()
        self.answered: collections.deque[tuple[int, int, int]] = collections.deque()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def ask(self, name: int, offset: int, length: int, request: int = block.BLKDISCARD) -> None:
        self.under_way += 1
        self._asked.put((name, offset, length, request))

    def taken(self) -> tuple[int, int, int] | None:
        """The next that has ended, None: none has."""
        if not self.answered:
            return None
        self.under_way -= 1
        return self.answered.popleft()

    def _run(self) -> None:
        while (asked := self._asked.get()) is not None:
            name, *where = asked
            number = discard(self.fd, *where)
            self.answered.append((name, time.monotonic_ns(), number))

    def close(self) -> None:
        """Waits for the requests in flight."""
        self._asked.put(None)
        self._thread.join()
