"""The index of the archive, made and filled by several processes at once: none takes what another has put in."""

import sqlite3
import threading
from pathlib import Path

import pytest
from test_archive import make

from ssdrig.reading import index as archive_index
from ssdrig.reading.index import Index


@pytest.fixture
def root(tmp_path) -> Path:
    for name in "abc":
        make(tmp_path / "runs", name)
    return tmp_path / "runs"


def test_two_processes_may_refresh_at_once(root):
    for n in range(20):
        make(root, f"n{n}")
    done: list[int] = []

    def refresh():
        index = Index(root)
        index.refresh()
        done.append(index.count())
        index.close()

    threads = [threading.Thread(target=refresh) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [23] * 4


def test_one_that_has_seen_no_table_drops_none_that_another_has_filled(root, monkeypatch):
    """It stands still in between, as on a busy machine."""
    real, late, looked, filled = sqlite3.connect, [], threading.Event(), threading.Event()

    class Connection(sqlite3.Connection):
        def execute(self, sql, *values):
            cursor = super().execute(sql, *values)
            if sql != "PRAGMA user_version" or threading.current_thread() not in late or looked.is_set():
                return cursor
            version = cursor.fetchone()
            looked.set()
            assert filled.wait(600)
            return super().execute("SELECT ?", version)

    monkeypatch.setattr(archive_index.sqlite3, "connect", lambda file, **how: real(file, factory=Connection, **how))
    seen: list[int] = []

    def refresh_late():
        index = Index(root)
        seen.append(index.count())
        index.close()

    late.append(threading.Thread(target=refresh_late))
    late[0].start()
    assert looked.wait(600)
    index = Index(root)
    index.refresh()
    filled.set()
    late[0].join()
    assert seen == [3] and index.count() == 3
    index.close()
