"""Who can open a file can lock it: the locks of runs, reviews and the set-up are their owner's alone, and who may not
open one still sees that it is held."""

import contextlib
import fcntl
import json
import os
import stat
import subprocess
import sys
import tempfile

import pytest
import synthetic_run

from ssdrig.base import files
from ssdrig.reading import review_folder
from ssdrig.runs import journal, parts
from ssdrig.setup import kicad, provision


def is_private(path) -> bool:
    return stat.S_IMODE(path.stat().st_mode) == 0o600


def test_lock_file_is_its_owners_alone_and_follows_no_link(tmp_path):
    old, link = tmp_path / "old", tmp_path / "link"
    old.touch()
    old.chmod(0o666)
    for path in (old, tmp_path / "new"):
        os.close(files.lock_file(path))
        assert is_private(path)
    link.symlink_to(old)
    with pytest.raises(OSError):
        files.lock_file(link)


def test_lock_of_a_run_and_of_a_review_is_private(tmp_path):
    header = {"schema": 1, "method": {}, "drive": {}, "started": {"t_ns": 1, "utc_ns": 1}}
    book = journal.make(tmp_path / "run", header)
    assert is_private(tmp_path / "run/lock") and journal.lock_is_held(tmp_path / "run")
    book.close("failed", "", 1)
    made = synthetic_run.write(tmp_path, [900] * 3, zoom_s=1, name="made")
    (made / "lock").chmod(0o644)
    os.close(parts._locked(made))
    assert is_private(made / "lock")
    folder = tmp_path / "review"
    folder.mkdir()
    (folder / parts.REVIEW).write_text(json.dumps({}))
    with contextlib.suppress(Exception), review_folder.held(type("Review", (), {"folder": folder})()):
        assert is_private(folder / "lock")
    assert is_private(folder / "lock")


def test_lock_of_the_set_up_is_private(tmp_path, monkeypatch):
    monkeypatch.setattr(provision, "SETUP", tmp_path / "setup")
    monkeypatch.setattr(provision.steps, "LOG", tmp_path / "setup/log")
    with provision.only_one_set_up():
        assert is_private(tmp_path / "setup/lock")
    monkeypatch.setattr(kicad, "PRIVATE", tmp_path / "setup/kicad")
    monkeypatch.setattr(kicad, "command", lambda: [])
    kicad.provision()
    assert is_private(tmp_path / "setup/lock-kicad")


AS_ANOTHER = """if 1:
    import fcntl, os, sys
    sys.path[:0] = {path!r}
    from ssdrig.runs import journal
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
    try:
        fcntl.flock(os.open(sys.argv[1] + "/lock", os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
        print("locked")
    except PermissionError:
        print("kept out", journal.lock_is_held(sys.argv[1]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: becomes another user")
@pytest.mark.parametrize("held", [True, False])
def test_another_user_cannot_lock_a_run_and_sees_whether_it_goes_on(held):
    with tempfile.TemporaryDirectory() as run:
        os.chmod(run, 0o755)
        lock = files.lock_file(f"{run}/lock")
        if held:
            fcntl.flock(lock, fcntl.LOCK_EX)
        words = [sys.executable, "-c", AS_ANOTHER.format(path=sys.path), run]
        done = subprocess.run(words, capture_output=True, text=True)
        os.close(lock)
    assert done.stdout == f"kept out {held}\n", done.stderr
