"""Who can open a file can lock it: the locks of runs, reviews, polls, points, labels and the set-up are their owner's
alone, and who may not open one still sees that it is held."""

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

from ssdrig import start
from ssdrig.base import files
from ssdrig.drive.smart import watch_folder as watched
from ssdrig.publish.influx.outbox import Outbox
from ssdrig.reading import review_folder
from ssdrig.runs import journal, labels, parts
from ssdrig.setup import kicad, provision
from ssdrig.virtual.device import persistence


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


def test_lock_of_points_of_labels_and_of_polls_is_private(tmp_path):
    (tmp_path / "points.lp").touch()
    (tmp_path / "points.lp").chmod(0o644)  # of an older ssdrig
    Outbox(tmp_path).close()
    (tmp_path / "run.json").write_text("{}")
    labels.change(tmp_path, title="a")
    polled, _ = watched.keep(tmp_path, {"utc_ns": 0, "drive": {"model": "m", "serial": "s"}})
    persistence.lock(tmp_path / "drive")
    for path in (tmp_path / "points.lp", tmp_path / ".labels.lock", polled.with_name("lock"), tmp_path / ".drive.lock"):
        assert is_private(path)


def test_polls_are_kept_while_another_reader_has_locked_them(tmp_path):
    """Everyone may read a month's file, and who can open a file can lock it."""
    record = {"utc_ns": 0, "drive": {"model": "m", "serial": "s"}}
    polled, size = watched.keep(tmp_path, record)
    with open(polled, "rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_EX)
        assert watched.keep(tmp_path, record)[1] == 2 * size


def test_label_is_written_while_a_reader_has_locked_the_folder(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    folder = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    try:
        assert labels.change(tmp_path, title="a").title == "a"
    finally:
        os.close(folder)


def test_environment_that_another_has_locked_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(start, "STAMP", tmp_path / "stamp")
    (tmp_path / "stamp").touch()
    with open(tmp_path / "stamp") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        held = start.hold()
    assert held is not None
    os.close(held)


def test_half_made_file_is_private_and_one_that_others_can_lock_is_not_waited_for(tmp_path, monkeypatch):
    target, partial = tmp_path / "a", tmp_path / ".a.part"
    with files.replacing(target) as f:
        f.write(b"new")
        assert is_private(partial)
    was = os.umask(0o027)
    try:
        files.write_atomically(target, b"newer")
    finally:
        os.umask(was)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    monkeypatch.setattr(files, "FOREIGN_S", 0.05)
    partial.touch()
    partial.chmod(0o644)
    with open(partial, "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        files.write_atomically(target, b"newest")
    assert target.read_bytes() == b"newest" and not partial.exists()


def test_pipe_in_the_place_of_a_lock_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / ".drive.lock")
    assert persistence.facts(tmp_path / "drive") is None
    os.mkfifo(tmp_path / "lock")
    assert not journal.lock_is_held(tmp_path)


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
