"""The history of commands: what a killed writer leaves, and nothing that it did not."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ssdrig.base.errors import JournalError
from ssdrig.powerloss import history
from ssdrig.powerloss.history import FLUSH, FUA, NEVER, WRITE, History


def submitted(book: History, kind: int, lba: int, n: int, t_ns: int, flags: int = 0) -> int:
    """One command, as the writer fills its row."""
    book.reserve(1)
    seq, at = book.next_seq, len(book)
    book.rows[at] = (0, lba, n, kind, flags, 0, t_ns, NEVER)
    book.add(1)
    return seq


def returned(book: History, seq: int, t_ns: int, status: int = 0) -> None:
    row = book.rows[seq - book.next_seq + len(book)]
    row["status"], row["done_ns"] = status, t_ns


def test_rows_come_back_as_they_were_given(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "ROOM", 2)  # the file grows twice
    book = History(tmp_path / "h", first_seq=70)
    for i in range(5):
        assert submitted(book, WRITE, 8 * i, 2, 100 + i, FUA * (i == 4)) == 70 + i
    returned(book, 71, 500)
    returned(book, 72, 600, -5)
    flush = submitted(book, FLUSH, 0, 0, 700)
    returned(book, flush, 800)
    open_rows = history.read(tmp_path / "h").tolist()
    book.close()
    assert open_rows == history.read(tmp_path / "h").tolist()
    assert open_rows == [
        (70, 0, 2, WRITE, 0, 0, 100, NEVER),
        (71, 8, 2, WRITE, 0, 0, 101, 500),
        (72, 16, 2, WRITE, 0, -5, 102, 600),
        (73, 24, 2, WRITE, 0, 0, 103, NEVER),
        (74, 32, 2, WRITE, FUA, 0, 104, NEVER),
        (75, 0, 0, FLUSH, 0, 0, 700, 800),
    ]
    assert (tmp_path / "h").stat().st_size == 6 * history.ROW.itemsize == 240
    with pytest.raises(FileExistsError):
        History(tmp_path / "h")


def test_a_killed_writer_loses_no_row(tmp_path):
    code = """if 1:
        import os, signal, sys
        from ssdrig.powerloss.history import History
        from test_powerloss_history import WRITE, returned, submitted
        book = History(sys.argv[1])
        for i in range(1000):
            returned(book, submitted(book, WRITE, i, 1, 2 * i), 2 * i + 1)
        submitted(book, WRITE, 7, 1, 5000)
        os.kill(os.getpid(), signal.SIGKILL)"""
    where = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "h")], env={**os.environ, **where})
    rows = history.read(tmp_path / "h")
    assert done.returncode == -signal.SIGKILL and len(rows) == 1001
    assert rows["done_ns"][:1000].tolist() == list(range(1, 2000, 2)) and rows["done_ns"][1000] == NEVER


def test_half_of_a_row_is_none(tmp_path):
    book = History(tmp_path / "h")
    submitted(book, WRITE, 1, 1, 1)
    book.rows["lba"][1] = 9  # killed before its seq was written
    book.sync()
    assert history.read(tmp_path / "h")["lba"].tolist() == [1]
    (tmp_path / "cut").write_bytes((tmp_path / "h").read_bytes()[:39])
    assert len(history.read(tmp_path / "cut")) == 0


def test_a_full_disk_is_an_error_and_no_signal(tmp_path, monkeypatch):
    book = History(tmp_path / "history")
    assert (tmp_path / "history").stat().st_blocks * 512 >= history.ROOM * history.ROW.itemsize  # no holes
    book.close()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(JournalError, match="No space left on device"):
        History(tmp_path / "next")


def test_rows_end_at_the_first_that_is_none(tmp_path):
    rows = np.zeros(9, history.ROW)
    rows["seq"], rows["kind"] = np.arange(5, 14), WRITE
    whole = tmp_path / "whole"
    whole.write_bytes(rows.tobytes())
    assert len(history.read(whole)) == 9
    for name, value in (("seq", 3), ("seq", 1 << 63), ("kind", 9), ("lba", 1 << 60)):
        bad = rows.copy()
        bad[name][4] = value
        whole.write_bytes(bad.tobytes())
        assert len(history.read(whole)) == 4
