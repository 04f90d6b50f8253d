"""Files that are made under sudo belong to the person who called it, and nothing else changes hands."""

import json
import os
from pathlib import Path

import pytest

from ssdrig.base import owner
from ssdrig.base.errors import SsdrigError, UsageError


def chowns(monkeypatch) -> list:
    done = []
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "1235")
    monkeypatch.setattr(owner.os, "geteuid", lambda: 0)
    monkeypatch.setattr(owner.os, "chown", lambda path, uid, gid, **_: done.append((Path(path).name, uid, gid)))
    return done


def test_under_sudo_what_is_made_belongs_to_the_person(tmp_path, monkeypatch):
    done = chowns(monkeypatch)
    if os.stat(tmp_path).st_uid:
        pytest.skip("files of root's: run as root")
    with pytest.raises(SsdrigError), owner.of_new_files():
        owner.new(tmp_path / "runs" / "one")
        (tmp_path / "runs" / "one").mkdir(parents=True)
        (tmp_path / "runs" / "one" / "run.json").write_text("{}")
        (tmp_path / "runs" / "twice").write_text("")
        os.link(tmp_path / "runs" / "twice", tmp_path / "other")
        (tmp_path / "runs" / "link").symlink_to("/etc")
        assert not done  # not while root still writes there
        raise UsageError("a", "b", "c")
    names = [name for name, *_ in done]
    assert names[0] == "runs" and sorted(names[1:]) == ["link", "one", "run.json"]  # the link itself, nothing behind it
    assert {(uid, gid) for _, uid, gid in done} == {(1234, 1235)}


@pytest.mark.parametrize("uid", ["", "0", "x"])
def test_without_sudo_nothing_is_given(tmp_path, monkeypatch, uid):
    done = chowns(monkeypatch)
    monkeypatch.setenv("SUDO_UID", uid)
    with owner.of_new_files():
        owner.new(tmp_path / "file")
        (tmp_path / "file").write_text("")
    assert not done and owner.person() is None


def test_a_run_folder_and_a_page_are_given(tmp_path, monkeypatch):
    from ssdrig.base.files import write_atomically
    from ssdrig.runs import journal

    done = chowns(monkeypatch)
    if os.stat(tmp_path).st_uid:
        pytest.skip("files of root's: run as root")
    with owner.of_new_files():
        book = journal.create(tmp_path / "runs", {"drive": {}, "method": {"name": "m"}})
        book.event("note", text="x")
        book.close("complete", None, 0)
        write_atomically(tmp_path / "report.html", b"x")
    names = {name for name, *_ in done}
    assert {"runs", book.path.name, "run.json", "events.jsonl", "rig.bin", "report.html"} <= names
    assert json.loads((book.path / "run.json").read_text())["method"]["name"] == "m"


def test_a_base_folder_that_is_no_absolute_path_is_ignored(monkeypatch):
    monkeypatch.setenv("HOME", "/home/a")
    for named, folder in (("", "/home/a/.cache"), ("x/y", "/home/a/.cache"), ("/s", "/s")):
        monkeypatch.setenv("XDG_CACHE_HOME", named)
        assert str(owner.base("XDG_CACHE_HOME", ".cache")) == folder
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # a user that no table has
    assert str(owner.base("XDG_NONE", ".cache")) == "/.cache"
