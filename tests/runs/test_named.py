"""Which runs words mean: each once, whatever links lead to it."""

import argparse
import json

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.commands import compare
from ssdrig.runs import named, parts


def runs(tmp_path, *names):
    folders = [tmp_path / "runs" / name for name in names]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({"schema": 1}))
    return folders


def test_link_to_a_run_is_not_another_run(tmp_path):
    first, second = runs(tmp_path, "a-0001", "b-0002")
    (tmp_path / "runs" / "latest").symlink_to("b-0002")
    (tmp_path / "runs" / "elsewhere").symlink_to(tmp_path / "none")
    (tmp_path / "runs" / "loop").symlink_to("loop")
    (tmp_path / "again").symlink_to("runs")
    assert parts.all_runs(tmp_path / "runs") == [second, first]
    assert named.several([tmp_path / "runs", first, tmp_path / "again"]) == [first, second]
    assert named.several([tmp_path / "runs" / "latest"]) == [tmp_path / "runs" / "latest"]


def test_run_is_in_one_group_only_by_whatever_path(tmp_path, monkeypatch):
    first, second = runs(tmp_path, "a-0001", "b-0002")
    (tmp_path / "again").symlink_to("runs")
    monkeypatch.setattr(named, "check", lambda *_: None)
    for word in (tmp_path / "again" / "a-0001", tmp_path / "again", first.parent / ".." / "runs" / "a-0001"):
        with pytest.raises(UsageError):
            compare.check(_asked(str(first), str(word)))
    compare.check(_asked(str(first), str(second)))


def _asked(a, b):
    return argparse.Namespace(a=a, b=b, level=95, figure=[], parent="runs")
