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
