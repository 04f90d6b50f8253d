"""An application's log, followed while it is written: all rows of a recording, also where the file was renamed
(logrotate's create), truncated (its copytruncate) or replaced meanwhile.

Each file that had the name is held open and read on, so rows written to a renamed one later are still read. A
truncation loses only the rows written since the last look."""

import errno
import os
import stat
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from ssdrig.base import columns, files, system
from ssdrig.base.errors import UsageError
from ssdrig.load import application_log
from ssdrig.load.application_log import MOST_BYTES

RENAMED, TRUNCATED = "renamed", "truncated"
MOST_FILES = 64  # open at a time: an older one has long been left by the application
TAIL_BYTES = 64  # of the data read: a file with other bytes there was rewritten


@dataclass
class _Piece:
    """What one file had until it was truncated. `first`: bytes before the recording; `end`: how it ended, None for the
    one that has the name still."""

    fd: int
    first: int
    data: bytearray = field(default_factory=bytearray)
    end: str | None = None
    is_read: bool = True  # on


class FollowedLog:
    """`with FollowedLog(path) as log`: look() as often as the log may be rotated, then copied()."""

    def __init__(self, path: Path):
        self.path = path
        self.before = application_log.before(path)
        self._pieces: list[_Piece] = []
        self._files: dict[tuple[int, int], int] = {}  # device and inode -> descriptor
        self._trouble: OSError | None = None
        self.look()
        for piece in self._pieces:
            piece.first = len(piece.data)

    def __enter__(self) -> "FollowedLog":
        return self

    def __exit__(self, *_) -> None:
        for fd in self._files.values():
            os.close(fd)
        self._files.clear()

    def look(self) -> None:
        """Read the new bytes. Errors are those of copied()."""
        self._trouble = None
        try:
            for piece in [piece for piece in self._pieces if piece.is_read]:
                self._read(piece)
            self._open()
        except OSError as error:
            self._trouble = error

    def _open(self) -> None:
        """Take the file that has the name now, if it is another one."""
        try:
            seen = os.stat(self.path)
        except FileNotFoundError:
            return
        if (seen.st_dev, seen.st_ino) in self._files:
            return
        fd = os.open(self.path, system.READ)
        seen = os.fstat(fd)
        if not stat.S_ISREG(seen.st_mode) or (seen.st_dev, seen.st_ino) in self._files:
            os.close(fd)
            if not stat.S_ISREG(seen.st_mode):
                raise OSError(errno.EINVAL, "not a file")
            return
        for piece in self._pieces:
            piece.end = piece.end or RENAMED
        if len(self._files) == MOST_FILES:
            oldest = next(iter(self._files))
            for piece in self._pieces:
                piece.is_read = piece.is_read and piece.fd != self._files[oldest]
            os.close(self._files.pop(oldest))
        self._files[seen.st_dev, seen.st_ino] = fd
        self._pieces.append(_Piece(fd, 0))
        self._read(self._pieces[-1])

    def _read(self, piece: _Piece) -> None:
        tail = bytes(piece.data[-TAIL_BYTES:])
        if os.pread(piece.fd, len(tail), len(piece.data) - len(tail)) != tail:
            end, piece.end, piece.is_read = piece.end, TRUNCATED, False
            piece = _Piece(piece.fd, 0, end=end)
            self._pieces.append(piece)
        left = MOST_BYTES - sum(len(one.data) for one in self._pieces)
        more = max(0, os.fstat(piece.fd).st_size - len(piece.data))
        new = os.pread(piece.fd, min(more, left + 1), len(piece.data))
        if len(new) > left:
            raise OSError(errno.EFBIG, f"more than {MOST_BYTES >> 20} MiB")
        piece.data += new

    def copied(self, target: Path) -> dict:
        """Write the whole lines of the log to `target`, those of the files that had its name before first. Returns
        their `bytes`; `left_bytes` after them, of a line without an end; `older_bytes`: of the rows before the
        recording that are still its begin; `files`: how each earlier one ended that has rows of the recording;
        `left_files`: of how many the columns do not fit the last. Raises OSError, also for a log of more than
        MOST_BYTES, and for a pipe or a device."""
        self.look()
        if self._trouble:
            raise self._trouble
        if not self._pieces or not self.path.exists() and not any(len(one.data) > one.first for one in self._pieces):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        *earlier, last = self._pieces
        grown = [one for one in earlier if len(one.data) > one.first]
        fitting = [one for one in grown if _fits(bytes(one.data), bytes(last.data))]
        data = b"".join(_whole(bytes(one.data)) for one in [*fitting, last])
        files.write_atomically(target, data)
        first = (*fitting, last)[0]
        rows = self.before.rows_bytes if first is self._pieces[0] else 0
        is_older = rows and zlib.crc32(first.data[:rows]) == self.before.crc
        return {
            "bytes": len(data),
            "left_bytes": len(last.data) - len(_whole(bytes(last.data))),
            "older_bytes": rows if is_older else 0,
            "files": [one.end for one in fitting],
            "left_files": len(grown) - len(fitting),
        }


def _whole(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]


def _fits(one: bytes, other: bytes) -> bool:
    """Whether `other` goes on with the rows of `one`: with the same heading, or with none; in seconds of a start of its
    own it does not."""
    head, more = (
        [line for line in _whole(of).decode(errors="replace").splitlines() if line.strip()] for of in (one, other)
    )
    if not head or not more:
        return bool(head)
    try:
        at, layout = application_log.layout(head[: application_log.LOOK])
        after, _ = application_log.layout(more[: application_log.LOOK])
    except UsageError:
        return False
    if after and more[after - 1] != head[at - 1]:
        return False
    last, first = (columns.split(row, layout.mark) for row in (head[-1], more[after]))
    if len(last) != len(first):
        return False
    time, factor = layout.places["t"]
    if factor == "utc":
        return columns.utc_ns(first[time]) is not None
    ends, begins = (columns.exact(row[time], layout.decimal) for row in (last, first))
    return ends is not None and begins is not None and ends <= begins
