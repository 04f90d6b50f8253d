"""A temporary folder is removed once its process is gone, and never before."""

import os
import signal
import subprocess
import sys

import pytest

from ssdrig.base import temporary

KILLED = """
import os, signal, sys
from ssdrig.base import temporary
with temporary.folder("x-", sys.argv[1]) as folder:
    (folder / "data").write_text("y")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_folder_of_a_killed_process_is_removed_by_the_next(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    assert done.returncode == -signal.SIGKILL and (left / "data").exists()
    with temporary.folder("x-", tmp_path) as folder:
        assert [*tmp_path.iterdir()] == [folder] and folder != left
    assert [*tmp_path.iterdir()] == []


def test_a_folder_in_use_stays_and_so_do_others(tmp_path):
    (tmp_path / "x-mine").mkdir()
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / temporary.OWNER).touch()
    (tmp_path / "x-link").symlink_to("target")
    (tmp_path / "x-file").touch()
    used, lock = temporary.make("x-", tmp_path)
    other, free = temporary.make("y-", tmp_path)
    os.close(free)
    before = sorted(tmp_path.rglob("*"))
    temporary.sweep("x-", tmp_path)
    assert sorted(tmp_path.rglob("*")) == before and used.exists() and other.exists()
    temporary.remove(used, lock)
    assert not used.exists()


def test_nothing_is_left_where_the_lock_cannot_be_made(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(temporary.os, "rename", refuse)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="No space"):
        temporary.make("x-", tmp_path)
    assert [*tmp_path.iterdir()] == [] and len(os.listdir("/proc/self/fd")) == before


def abandoned(tmp_path, name="x-0"):
    """A folder that a killed process left."""
    folder, lock = temporary.make("x-", tmp_path)
    os.close(lock)
    (folder / "data").mkdir()
    (folder / "data" / "run.json").write_text("y")
    folder.rename(tmp_path / name)
    return tmp_path / name


def test_folder_of_someone_elses_making_stays(tmp_path):
    """With the prefix, and a file of that name: the user's, of another host, and one half of the mark."""
    sound = abandoned(tmp_path)
    for number, text in enumerate((b"", b"of mine\n", temporary.MARK[:-1], temporary.MARK * 2), 1):
        other = abandoned(tmp_path, f"x-{number}")
        (other / temporary.OWNER).write_bytes(text)
    temporary.sweep("x-", tmp_path)
    assert not sound.exists() and len([*tmp_path.glob("x-*/data/run.json")]) == 4


def test_folder_whose_lock_was_refused_is_never_swept(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(37, "No locks available")

    with monkeypatch.context() as patch:
        patch.setattr(temporary.system, "lock", refuse)
        folder, lock = temporary.make("x-", tmp_path)
    temporary.sweep("x-", tmp_path)  # by a process whose lock is granted
    assert folder.exists()
    temporary.remove(folder, lock)
    assert not folder.exists()


@pytest.mark.parametrize("killed", ["unlink", "rmtree"])
def test_killed_removal_is_completed_by_the_next_sweep(tmp_path, monkeypatch, killed):
    folder, lock = temporary.make("x-", tmp_path)
    (folder / "data").mkdir()
    for name in ("a", "p", "z"):
        (folder / name).write_text("y")

    def kill(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(temporary.shutil if killed == "rmtree" else temporary.os, killed, kill)
        with pytest.raises(KeyboardInterrupt):
            temporary.remove(folder, lock)
    assert (folder / temporary.OWNER).exists()
    temporary.sweep("x-", tmp_path)
    assert not folder.exists()


def test_prefix_is_no_pattern(tmp_path):
    other = abandoned(tmp_path)
    temporary.sweep("[x]-", tmp_path)
    assert other.exists()
