"""What is written whole, or not at all: with a disk that is full, one that fails, and a process that is killed in
between."""

import errno
import fcntl
import os
import stat
import threading
import time

import pytest

from ssdrig.base import files


def fails(monkeypatch, name, after=0):
    """os.NAME fails as on a full disk, from its call `after` on."""
    real, calls = getattr(os, name), []

    def call(*args):
        calls.append(args)
        if len(calls) > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args)

    monkeypatch.setattr(os, name, call)


def test_a_file_is_replaced_whole(tmp_path):
    target = tmp_path / "a"
    for content in (b"old", b"new and longer", b""):
        files.write_atomically(target, content)
        assert target.read_bytes() == content and os.listdir(tmp_path) == ["a"]


def test_file_with_several_names_gets_content_of_its_own_under_one(tmp_path):
    for name in ("a", "alone"):
        (tmp_path / name).write_bytes(b"shared")
    os.link(tmp_path / "a", tmp_path / "b")
    alone = os.stat(tmp_path / "alone").st_ino
    for name in ("b", "alone", "missing"):
        files.part_from_copies(tmp_path / name)
    with open(tmp_path / "b", "ab") as file:
        file.write(b" more")
    assert (tmp_path / "a").read_bytes() == b"shared" and (tmp_path / "b").read_bytes() == b"shared more"
    assert os.stat(tmp_path / "alone").st_ino == alone and sorted(os.listdir(tmp_path)) == ["a", "alone", "b"]


@pytest.mark.parametrize("what", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_content(tmp_path, monkeypatch, what):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    fails(monkeypatch, what)
    with pytest.raises(OSError, match="No space"):
        files.write_atomically(target, b"new")
    assert target.read_bytes() == b"old" and os.listdir(tmp_path) == ["a"]


def test_content_is_on_the_disk_before_its_name_is_and_then_the_name(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda fd: (done.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "content"), fsync(fd))
    )
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("name"), replace(*names)))
    files.write_atomically(tmp_path / "a", b"x")
    assert done == ["content", "name", "folder"]


def test_what_need_not_outlast_a_power_cut_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: pytest.fail("it waits for the disk"))
    files.write_atomically(tmp_path / "a", b"x", durable=False)
    assert (tmp_path / "a").read_bytes() == b"x" and os.listdir(tmp_path) == ["a"]


@pytest.fixture
def log(tmp_path):
    """(descriptor, path) of a file of 4 bytes, opened for appending."""
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    fd = os.open(path, os.O_RDWR | os.O_APPEND)
    yield fd, path
    os.close(fd)


def test_a_block_is_appended_however_little_the_disk_takes_at_a_time(log, monkeypatch):
    fd, path = log
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    files.append_or_undo(fd, b"two and three\n", 4)
    assert path.read_bytes() == b"one\ntwo and three\n"


@pytest.mark.parametrize(("what", "after"), [("write", 0), ("write", 2), ("fdatasync", 0)])
def test_a_block_that_does_not_fit_is_undone(log, monkeypatch, what, after):
    fd, path = log
    write = os.write
    if what == "write":
        monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    fails(monkeypatch, what, after)
    with pytest.raises(OSError, match="No space"):
        files.append_or_undo(fd, b"two and three\n", 4)
    assert path.read_bytes() == b"one\n"


@pytest.mark.parametrize("kind", ["folder", "fifo", "device", "link to a device", "link to a folder"])
def test_what_is_no_file_stays(tmp_path, kind):
    target = tmp_path / "a"
    {
        "folder": target.mkdir,
        "fifo": lambda: os.mkfifo(target),
        "device": lambda: (
            os.mknod(target, stat.S_IFCHR | 0o666, os.makedev(1, 3)) if os.geteuid() == 0 else pytest.skip()
        ),
        "link to a device": lambda: target.symlink_to("/dev/null"),
        "link to a folder": lambda: target.symlink_to(tmp_path),
    }[kind]()
    before = target.lstat()
    with pytest.raises(OSError, match="not a regular file"):
        files.write_atomically(target, b"new")
    after = target.lstat()  # but for the time of access, which following a link may change
    assert all(getattr(after, key) == getattr(before, key) for key in ("st_ino", "st_mode", "st_rdev", "st_mtime_ns"))
    assert os.listdir(tmp_path) == ["a"]


def test_a_link_under_the_name_of_the_half_made_file_is_not_followed(tmp_path):
    (tmp_path / "thesis").write_bytes(b"mine")
    (tmp_path / ".a.part").symlink_to("thesis")
    files.write_atomically(tmp_path / "a", b"new")
    assert (tmp_path / "thesis").read_bytes() == b"mine"
    assert (tmp_path / "a").read_bytes() == b"new" and not (tmp_path / "a").is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["a", "thesis"]


def test_two_writers_at_once_come_one_after_the_other(tmp_path, monkeypatch):
    target, flock, waits = tmp_path / "a", fcntl.flock, threading.Event()
    second = threading.Thread(target=files.write_atomically, args=(target, b"second"))

    def locked(fd, how):
        if threading.current_thread() is second:
            waits.set()
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", locked)
    with files.replacing(target) as f:
        f.write(b"first")
        second.start()
        while second.is_alive() and not waits.is_set():
            time.sleep(0.001)
    second.join()
    assert target.read_bytes() == b"second" and os.listdir(tmp_path) == ["a"]


def test_a_writer_whose_file_was_taken_for_a_killed_ones_begins_anew(tmp_path, monkeypatch):
    """Another comes between the moment in which the half-made file is there and the one in which it is locked."""
    target, flock, seen = tmp_path / "a", fcntl.flock, []

    def locked(fd, how):
        if not seen:
            seen.append(fd)
            files.write_atomically(target, b"other")
            assert target.read_bytes() == b"other"
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", locked)
    files.write_atomically(target, b"own")
    assert target.read_bytes() == b"own" and os.listdir(tmp_path) == ["a"]


def test_what_a_killed_writer_left_is_removed(tmp_path):
    (tmp_path / ".a.part").write_bytes(b"half")
    files.write_atomically(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new" and os.listdir(tmp_path) == ["a"]
