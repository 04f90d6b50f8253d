"""The history of a campaign: one row for each command, in a file of the run folder that is mapped into memory.

The writer takes `submit_ns` before the system call that submits and `done_ns` after the one that returned, so a command
x with x.done_ns < y.submit_ns was completed before the drive could see y. Nothing is synced for each command: only the
drive loses power, and what a killed process has put into a mapped file stays in the kernel. Where the host itself dies,
rows since the last sync() are missing: such a session is not judged.
"""

import os

import numpy as np

from ssdrig.base.errors import JournalError
from ssdrig.powerloss.kinds import BLANK, FLUSH, FUA, KINDS, NEVER, NOT_BLANK, TRIM, WRITE, ZEROS
from ssdrig.runs import integrity

__all__ = ["BLANK", "FLUSH", "FUA", "KINDS", "NEVER", "NOT_BLANK", "TRIM", "WRITE", "ZEROS"]

ROW = np.dtype(
    [
        ("seq", "<u8"),  # 1 and up, in the order of submission; 0: no row
        ("lba", "<u8"),  # logical blocks
        ("n", "<u4"),  # 0 of a FLUSH
        ("kind", "u1"),
        ("flags", "u1"),
        ("status", "<i2"),  # 0: done; an errno with its sign
        ("submit_ns", "<i8"),
        ("done_ns", "<i8"),
    ]
)
MOST_BLOCKS = 1 << 56  # of a drive
ROOM = 1 << 16  # rows by which the file grows


class History:
    """The file being written, by one process. Raises FileExistsError for one that is there, and OSError; JournalError
    on a full disk."""

    def __init__(self, path: str | os.PathLike, first_seq: int = 1):
        self._file = open(path, "x+b")
        self._first_seq, self._count = first_seq, 0
        self._grow()

    def _grow(self) -> None:
        size = (self._count + ROOM) * ROW.itemsize
        try:  # a hole in a mapped file would be a SIGBUS on a full disk
            os.posix_fallocate(self._file.fileno(), 0, size)
        except OSError as error:
            seen, do = error.strerror or str(error), "make room, then ./ssdrig resume RUN goes on"
            raise JournalError(f"room on the disk for {self._file.name}", seen, do) from error
        self._rows = np.memmap(self._file, ROW, "r+", shape=(self._count + ROOM,))
        self.rows = self._rows.view(np.ndarray)  # of those that are there, and room after them

    @property
    def next_seq(self) -> int:
        return self._first_seq + self._count

    def __len__(self) -> int:
        return self._count

    def reserve(self, n: int) -> None:
        """From now on n more rows may be filled in `rows` after the last, all but their seq ..."""
        if self._count + n > len(self.rows):
            self._grow()

    def add(self, n: int) -> None:
        """... and these are they: commands about to be submitted. seq comes last: a process that is killed meanwhile
        leaves no half of a row."""
        first = self.next_seq
        self.rows["seq"][self._count : self._count + n] = range(first, first + n)
        self._count += n

    def written(self) -> np.ndarray:
        """ROW[n], a copy."""
        return self.rows[: self._count].copy()

    def sync(self) -> None:
        """After this the rows survive the host's own loss of power. Raises OSError."""
        self._rows.flush()
        os.fdatasync(self._file.fileno())

    def close(self) -> None:
        """Raises OSError."""
        self.sync()
        del self._rows, self.rows
        os.ftruncate(self._file.fileno(), self._count * ROW.itemsize)
        self._file.close()


def read(path: str | os.PathLike) -> np.ndarray:
    """The rows of a history, ROW[n], also of one whose writer was killed; up to the first invalid one. Raises
    OSError."""
    data = integrity.content(path)
    rows = np.frombuffer(data[: len(data) // ROW.itemsize * ROW.itemsize], ROW)
    follows = rows["seq"] == rows["seq"][:1] + np.arange(len(rows), dtype=np.uint64)
    good = follows & (rows["seq"] > 0) & np.isin(rows["kind"], [*KINDS]) & (rows["lba"] < MOST_BLOCKS)
    return rows[: int(np.append(good, False).argmin())]
