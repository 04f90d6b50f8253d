"""A step's folder in which something is missing, torn or makes no sense."""

import pytest
from fio_folders import steady, write_step

from ssdrig.base.errors import LoadError
from ssdrig.load import fiolog

LATE = '{"jobs": [{"job_runtime": 99000000, "write": {"total_ios": 5, "io_bytes": 5, "runtime": 99000000}}]}\n'


@pytest.fixture
def folder(tmp_path):
    return write_step(tmp_path / "s", steady(2.05, 20), 2052)


def backwards(folder) -> None:
    path = folder / "load_clat_hist.1.log"
    path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))


def test_the_start_of_a_document_is_said(folder):
    assert fiolog.load(folder).notes == ()
    with open(folder / "out.json", "a") as f:
        f.write('{"jobs": [')
    seconds = fiolog.load(folder)
    assert seconds.source == "logs"
    assert seconds.notes == ("10 bytes at the end of out.json are not a complete document and were not used",)


def test_documents_stand_in_for_logs_that_make_no_sense(folder):
    backwards(folder)
    seconds = fiolog.load(folder)
    assert seconds.source == "status" and seconds.iops.sum() == 41
    assert seconds.notes == ("the time stamps of fio's histogram log make no sense; the documents were used instead",)


def test_logs_that_make_no_sense_without_documents_are_refused(folder):
    backwards(folder)
    (folder / "out.json").unlink()
    with pytest.raises(LoadError, match="logs of one fio run"):
        fiolog.load(folder)


def test_documents_that_make_no_sense_are_refused(folder):
    for path in folder.glob("*.log"):
        path.unlink()
    (folder / "out.json").write_text(LATE)
    with pytest.raises(LoadError, match="documents of one fio run"):
        fiolog.load(folder)


def test_a_log_that_cannot_be_read_is_refused(folder):
    (folder / "load_clat_hist.2.log").mkdir()
    with pytest.raises(LoadError, match="readable files"):
        fiolog.load(folder)
