"""FOLDER/points.lp: lines of InfluxDB line protocol that wait to be sent, or were. Appended by one process at a time,
and its owner's alone; what append() has taken is on the disk."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from ssdrig.base.errors import JournalError
from ssdrig.base.files import append_or_undo, fsync_folder, is_locked, lock_file, part_from_copies


class Outbox:
    """Opens points.lp, made if absent, holds a flock on it and cuts off the torn line that a crash left.

    size: bytes of whole lines in it. whole: a length of it that is known to end with a line; the rest is looked
    through. Raises JournalError if another process has it."""

    def __init__(self, folder: Path, whole: int = 0):
        self.folder = Path(folder)
        path = self.folder / "points.lp"
        if not is_locked(path):  # else the lock is the other's, and is refused below
            part_from_copies(path)
        self._file = lock_file(path, os.O_APPEND)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.size = whole if os.fstat(self._file).st_size >= whole else 0
            self.size += sum(len(line) for line in self.lines(self.size))
            if os.fstat(self._file).st_size > self.size:
                os.ftruncate(self._file, self.size)
                os.fsync(self._file)
        except BlockingIOError:
            self.close()
            raise JournalError(
                f"no other process pushing {folder}",
                "points.lp in use by another ssdrig push",
                "wait until it is done, or end it",
            ) from None
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Outbox":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._file)

    def lines(self, start: int = 0) -> Iterator[bytes]:
        """Whole lines from a byte on, each with its line end."""
        with open(self.folder / "points.lp", "rb") as f:
            f.seek(start)
            for line in f:
                if not line.endswith(b"\n"):
                    return
                yield line

    def append(self, block: bytes) -> None:
        """Whole lines; all of them or, on OSError, none."""
        append_or_undo(self._file, block, self.size)
        self.size += len(block)

    def empty(self) -> None:
        """Forget the lines that a server has acknowledged, and the cursor. The cursor goes first: without it all is
        sent again, which is harmless; with one that points past new lines those would never be sent."""
        (self.folder / "points.cursor").unlink(missing_ok=True)
        fsync_folder(self.folder)
        os.ftruncate(self._file, 0)
        os.fsync(self._file)
        self.size = 0
