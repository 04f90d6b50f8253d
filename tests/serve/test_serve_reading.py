"""A server answers while it reads the runs, and reports how many it has read."""

import os
import threading
from pathlib import Path

import pytest
from browser_serving import Serving
from test_archive import make
from test_browser_page import chromium, open_page, text  # noqa: F401  a fixture

from ssdrig.base.errors import JournalError
from ssdrig.reading import index as archive_index
from ssdrig.reading.index import Index
from ssdrig.serve.app import Archive

NAMES = ("a", "b", "c", "d", "e")
MAIN = "\nfrom ssdrig.cli import main\nraise SystemExit(main())\n"
BLOCKED = """
import time
from pathlib import Path
from ssdrig.reading import index
index.STORE_S, real, rows = -1, index.one_run.row, []
def row(folder):
    while len(rows) >= 3 and not Path({!r}).exists():
        time.sleep(0.05)
    rows.append(folder)
    return real(folder)
index.one_run.row = row
"""


@pytest.fixture
def root(tmp_path) -> Path:
    for name in NAMES:
        make(tmp_path / "runs", name)
    return tmp_path / "runs"


@pytest.fixture
def blocked(monkeypatch):
    """Events: two runs were read and stored; the others may be read."""
    two, go, real, read = threading.Event(), threading.Event(), archive_index.one_run.row, []

    def row(folder: Path) -> dict:
        if len(read) == 2:
            two.set()
            assert go.wait(600)
        read.append(folder)
        return real(folder)

    monkeypatch.setattr(archive_index.one_run, "row", row)
    monkeypatch.setattr(archive_index, "STORE_S", -1)
    yield two, go
    go.set()


def test_a_question_is_answered_while_runs_are_read(root, blocked):
    two, go = blocked
    archive = Archive(root)
    assert archive.reading is None
    archive.ask(Index.count, 0.01)
    assert two.wait(600)
    assert archive.ask(Index.count, 0.01) == 2 and archive.reading == {"done": 2, "of": 5}
    assert archive.ask(Index.count, 0) == 2
    go.set()
    assert archive.ask(Index.count, None) == 5 and archive.reading is None
    archive.close()


def test_the_latest_run_is_read_first(root, monkeypatch):
    read, real = [], archive_index.one_run.row
    monkeypatch.setattr(archive_index.one_run, "row", lambda folder: read.append(folder.name) or real(folder))
    for age, name in enumerate("caedb"):
        os.utime(root / name, ns=(10**18 - age, 10**18 - age))
    Archive(root).ask(Index.count, None)
    assert read == list("caedb")


def test_rows_of_an_interrupted_refresh_remain(root, monkeypatch):
    read, real = [], archive_index.one_run.row

    def row(folder: Path) -> dict:
        if len(read) == 3:
            raise KeyboardInterrupt
        read.append(folder)
        return real(folder)

    monkeypatch.setattr(archive_index.one_run, "row", row)
    monkeypatch.setattr(archive_index, "STORE_S", -1)
    index = Index(root)
    with pytest.raises(KeyboardInterrupt):
        index.refresh()
    assert index.count() == 3


def test_a_refresh_that_fails_is_tried_again(root, tmp_path):
    archive = Archive(root)
    root.rename(tmp_path / "elsewhere")
    for _ in range(2):
        with pytest.raises(JournalError):
            archive.ask(Index.count, None)
    assert archive.reading is None
    (tmp_path / "elsewhere").rename(root)
    assert archive.ask(Index.count, None) == 5


@pytest.mark.slow
def test_the_page_counts_the_runs_that_are_read(chromium, root, tmp_path):
    served = Serving(root, program=("-c", BLOCKED.format(str(tmp_path / "go")) + MAIN))
    try:
        open_page(chromium, served.url, "document.querySelectorAll('#latest-rows tr').length === 3")
        for place in ("reading", "latest-reading"):
            chromium.wait(f"document.getElementById('{place}').textContent.includes('3 of 5')")
        assert text(chromium, "#n-runs") == "3" and "No run" not in text(chromium, "#bench")
        (tmp_path / "go").touch()
        chromium.wait("document.getElementById('reading').textContent === ''")
        chromium.wait("document.querySelectorAll('#latest-rows tr').length === 5")
        chromium.wait("document.getElementById('latest-reading').textContent === ''")
        assert "No run in progress" in text(chromium, "#bench-h")
        assert chromium.complaints() == []
    finally:
        served.end()
