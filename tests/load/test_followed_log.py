"""A log that is rotated while it is followed: every row of the recording is in the copy."""

import os

import pytest

from ssdrig.load import application_log, followed_log
from ssdrig.load.followed_log import RENAMED, TRUNCATED, FollowedLog

HEAD = "t,a\n"


def rows(begin: int, end: int, t0: int = 1_800_000_000) -> str:
    return "".join(f"{t0 + n},{n}\n" for n in range(begin, end))


class App:
    """What writes the log: one open file, as an application has it."""

    def __init__(self, path):
        self.path = path
        self.file = open(path, "a", buffering=1)

    def write(self, text: str) -> None:
        self.file.write(text)

    def reopen(self) -> None:
        self.file.close()
        self.file = open(self.path, "a", buffering=1)


@pytest.fixture
def app(tmp_path):
    one = App(tmp_path / "log.csv")
    yield one
    one.file.close()


@pytest.fixture
def copied(tmp_path):
    def copy(log) -> tuple[str, dict]:
        with log:
            sizes = log.copied(tmp_path / application_log.NAME)
        return (tmp_path / application_log.NAME).read_text(), sizes

    return copy


def test_rows_of_a_renamed_file_come_first_also_those_written_after_it_was_renamed(app, copied):
    app.write(HEAD + rows(-5, 20))
    log = FollowedLog(app.path)
    app.write(rows(20, 30))
    app.path.rename(app.path.with_suffix(".1"))
    log.look()
    app.write(rows(30, 40))
    app.reopen()
    log.look()
    app.write(HEAD + rows(40, 60))
    text, sizes = copied(log)
    assert text == HEAD + rows(-5, 40) + HEAD + rows(40, 60)
    assert sizes["files"] == [RENAMED] and sizes["left_files"] == 0
    assert sizes["older_bytes"] == len(HEAD + rows(-5, 20))


@pytest.mark.parametrize("head", [HEAD, ""])
def test_rows_of_a_truncated_file_that_were_seen_come_first(app, copied, head):
    app.write(HEAD + rows(0, 5))
    log = FollowedLog(app.path)
    app.write(rows(5, 20))
    log.look()
    app.write(rows(20, 21))  # after the last look: copytruncate has it, this does not
    os.truncate(app.path, 0)
    app.write(head + rows(21, 30))
    text, sizes = copied(log)
    assert text == HEAD + rows(0, 20) + head + rows(21, 30) and sizes["files"] == [TRUNCATED]


def test_file_that_is_longer_than_before_after_it_was_truncated_is_a_new_one(app, copied):
    app.write(HEAD + rows(0, 5))
    log = FollowedLog(app.path)
    app.write(rows(5, 6))
    log.look()
    os.truncate(app.path, 0)
    app.write(HEAD + rows(6, 40))
    text, _ = copied(log)
    assert text == HEAD + rows(0, 6) + HEAD + rows(6, 40)


def test_several_rotations_of_both_ways(app, copied):
    app.write(HEAD)
    log = FollowedLog(app.path)
    for turn in range(6):
        app.write(rows(10 * turn, 10 * turn + 10))
        log.look()
        if turn % 2:
            app.path.rename(app.path.with_suffix(f".{turn}"))
            app.reopen()
        else:
            os.truncate(app.path, 0)
    text, sizes = copied(log)
    assert text == HEAD + rows(0, 60) and sizes["files"] == [TRUNCATED, RENAMED] * 3


def test_file_without_a_row_of_the_recording_is_left(app, copied):
    app.write(HEAD + rows(-100, 0))
    log = FollowedLog(app.path)
    app.path.unlink()
    app.reopen()
    app.write(HEAD + rows(0, 9))
    text, sizes = copied(log)
    assert text == HEAD + rows(0, 9) and (sizes["files"], sizes["older_bytes"]) == ([], 0)


@pytest.mark.parametrize("other", ["t,b\n1,1\n2,2\n", "t,a,b\n1,1,1\n", "hello\n", "1,2,3\n"])
def test_file_with_other_columns_is_left_and_counted(app, copied, other):
    app.write(HEAD)
    log = FollowedLog(app.path)
    app.write(rows(0, 9))
    app.path.rename(app.path.with_suffix(".1"))
    app.reopen()
    app.write(other)
    text, sizes = copied(log)
    assert text == other and (sizes["files"], sizes["left_files"]) == ([], 1)


def test_seconds_that_begin_again_after_a_rotation_are_not_joined(app, copied):
    app.write(HEAD)
    log = FollowedLog(app.path)
    app.write(rows(0, 9, 0))
    app.path.rename(app.path.with_suffix(".1"))
    app.reopen()
    app.write(HEAD + rows(0, 4, 0))
    text, sizes = copied(log)
    assert text == HEAD + rows(0, 4, 0) and sizes["left_files"] == 1


def test_log_that_was_renamed_and_not_made_again_is_read(app, copied):
    app.write(HEAD)
    log = FollowedLog(app.path)
    app.write(rows(0, 9))
    app.path.rename(app.path.with_suffix(".1"))
    assert copied(log)[0] == HEAD + rows(0, 9)


def test_torn_last_line_is_left(app, copied):
    app.write("t,a\n1,10\n2,11\n3,1")
    text, sizes = copied(FollowedLog(app.path))
    assert text.endswith("2,11\n") and (sizes["bytes"], sizes["left_bytes"]) == (len("t,a\n1,10\n2,11\n"), 3)


def test_what_is_no_file_is_not_copied(tmp_path, app, monkeypatch):
    app.write("t,a\n1,10\n")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(followed_log, "MOST_BYTES", 5)
    for path in (tmp_path, tmp_path / "none", tmp_path / "pipe", "/dev/zero", app.path):
        with pytest.raises(OSError), FollowedLog(path) as log:
            log.copied(tmp_path / "copy.csv")
    assert not (tmp_path / "copy.csv").exists()


def test_files_that_are_open_are_bounded(app, copied, monkeypatch):
    monkeypatch.setattr(followed_log, "MOST_FILES", 3)
    app.write(HEAD)
    log = FollowedLog(app.path)
    before = len(os.listdir("/proc/self/fd"))
    for turn in range(12):
        app.write(rows(turn, turn + 1))
        log.look()
        app.path.rename(app.path.with_suffix(f".{turn}"))
        app.reopen()
        log.look()
    assert len(os.listdir("/proc/self/fd")) <= before + 3
    text, sizes = copied(log)
    assert text == HEAD + rows(0, 12) and len(sizes["files"]) == 12
