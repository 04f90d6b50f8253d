"""A summary gives what reading the run gives, or is not believed."""

import fcntl
import hashlib
import io
import json
import os
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest
import synthetic_run

from ssdrig import report
from ssdrig.reading import summary, table
from ssdrig.runs import integrity


def same(a, b) -> bool:
    """Equal in value and in kind, not-a-numbers too."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (a != a and b != b)


@pytest.fixture
def run(tmp_path) -> Path:
    more = [("12V", [(-100.0, 1.0)], 2_000_000, (3.0, 5.0))]  # a second rail, dark for two seconds: not-a-numbers
    return synthetic_run.write(tmp_path, [2000] * 6, zoom_s=3, more_rails=more, idle_s=1, temperature_C=41)


@pytest.fixture
def reads(monkeypatch) -> list:
    """Folders that were read anew."""
    read, load = [], table.in_full
    monkeypatch.setattr(table, "in_full", lambda folder: read.append(folder) or load(folder))
    return read


def test_gives_what_the_run_gives_without_reading_it(run, reads):
    want = list(summary.made_of(table.in_full(run)))
    assert same(list(summary.load(run)), want)
    reads.clear()
    again = summary.load(run)
    assert reads == [] and same(list(again), want)
    assert integrity.damage(run) == []  # it is no file that does not belong there
    (run / integrity.SUMMARY).unlink()
    assert same(list(summary.load(run)), want) and reads


def test_has_the_run_but_for_the_histogram_by_the_second(run):
    whole, known, _ = table.in_full(run)
    data, figures = summary.load(run)
    assert same(figures, known)
    assert [f.name for f in fields(data) if not same(getattr(data, f.name), getattr(whole, f.name))] == [
        "hist",
        "rails",
    ]
    assert all(rail.edges is None for rail in data.rails)
    assert (data.lat_over_time == whole.hist).all()  # six seconds are no more than the stretches that there are


@pytest.mark.slow
def test_one_that_is_damaged_is_made_anew(run, reads):
    summary.load(run)
    path = run / integrity.SUMMARY
    whole = path.read_bytes()
    at = [0, len(summary.MAGIC), len(summary.MAGIC) + 40, len(whole) // 2, len(whole) - 1]
    broken = [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in at]
    broken += [b"", whole[:10], whole[:-1], whole + b"x", summary.MAGIC]
    for content in broken:
        path.write_bytes(content)
        reads.clear()
        assert summary.current(run) is None
        summary.load(run)
        assert reads and path.read_bytes() == whole


def test_one_of_another_run_is_not_believed(run, tmp_path, reads):
    other = synthetic_run.write(tmp_path, [500] * 6, zoom_s=3, name="other")
    summary.load(other)
    (run / integrity.SUMMARY).write_bytes((other / integrity.SUMMARY).read_bytes())
    assert summary.current(run) is None and summary.load(run)[0].header["run"] != "other"


def changed(path: Path) -> None:
    """One bit of a file, its size and its times as they were."""
    content, status = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_whatever_changes_in_the_run_makes_it_stale(run, monkeypatch):
    names = ["rig.bin", "events.jsonl", "run.json", "smart/001.json", "fio/load/out.json"]
    for name in names:
        summary.load(run)
        assert summary.current(run), name
        changed(run / name)
        assert summary.current(run) is None, name
        changed(run / name)
    for name in ("more", "part-2/run.json"):
        summary.load(run)
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_text("{}")
        assert summary.current(run) is None, name
        (run / name).unlink()
    assert summary.current(run)
    for name in ("report.html", "points.lp"):  # made from the run
        (run / name).write_text("x")
        assert summary.current(run), name
    monkeypatch.setattr(summary, "code", lambda: "another ssdrig")
    assert summary.current(run) is None


def test_other_code_or_tables_make_another_digest(tmp_path, monkeypatch):
    monkeypatch.setattr(summary, "CODE", tmp_path)
    (tmp_path / "below").mkdir()
    seen = [summary.code.__wrapped__()]
    for name, text in (("a.py", "1"), ("a.py", "2"), ("below/a.py", "2"), ("below/t.toml", "")):
        (tmp_path / name).write_text(text)
        seen.append(summary.code.__wrapped__())
    assert len(set(seen)) == 5
    (tmp_path / "a.pyc").write_text("made from a.py")
    (tmp_path / ".#a.py").symlink_to("someone@host.1234:5")  # Emacs's lock of a file that is being changed
    (tmp_path / "loop.py").symlink_to("loop.py")
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    assert summary.code.__wrapped__() == seen[-1]
    Path(os.fsdecode(bytes(tmp_path) + b"/\xff.py")).write_text("")
    assert summary.code.__wrapped__() not in seen


def test_another_table_of_the_user_makes_it_stale(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    summary.load(run)
    table = tmp_path / "config/ssdrig/ata_units.toml"
    table.parent.mkdir(parents=True)
    for text in ("drives = []\n", "drives = [] # other\n"):
        assert summary.current(run)
        table.write_text(text)
        assert summary.current(run) is None, text
        summary.load(run)


def test_one_that_a_stranger_made_with_right_sums_is_passed_over(run, reads):
    want = summary.load(run)
    path = run / integrity.SUMMARY
    arrays = io.BytesIO()
    np.savez(arrays, a=np.arange(3))
    values = [[1, 2], [{"@": ["RunData", {}]}, {}], [{"@": ["no such", 1]}, {}], 5, [{"@": ["array", "a"]}, {}]]
    for packed in (arrays.getvalue(), b"PK", arrays.getvalue()[:-30]):
        for value in values:
            body = json.dumps({"key": summary._key(run), "values": value}).encode() + b"\n" + packed
            path.write_bytes(summary.MAGIC + hashlib.sha256(body).digest() + body)
            assert summary.current(run) is None, (value, packed)
    reads.clear()
    assert same(list(summary.load(run)), list(want)) and reads


def test_a_run_that_is_written_has_none(run):
    with open(run / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        summary.load(run)
        assert not (run / integrity.SUMMARY).exists()
    summary.load(run)
    assert summary.current(run)
    with open(run / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert summary.current(run) is None


def test_a_folder_that_takes_nothing_gives_its_figures(run, monkeypatch):
    def refuse(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(summary, "write_atomically", refuse)
    assert summary.load(run)[1]["iops_mean"] and not (run / integrity.SUMMARY).exists()


def test_what_changes_while_it_is_read_is_not_kept(run, monkeypatch):
    load = table.in_full

    def slow(folder):
        data = load(folder)
        (run / "smart/001.json").write_text("{}")
        return data

    monkeypatch.setattr(table, "in_full", slow)
    summary.load(run)
    assert not (run / integrity.SUMMARY).exists()


def test_a_report_is_the_same_the_second_time(run, reads, capsys):
    parser = __import__("argparse").ArgumentParser()
    report.add_arguments(parser)
    args = parser.parse_args([str(run), "--json", "--quiet"])
    pages, outputs = [], []
    for _ in range(2):
        assert report.command(args) == 0
        pages.append((run / "report.html").read_text())
        outputs.append(json.loads(capsys.readouterr().out))
    assert len(reads) == 1 and pages[0] == pages[1] and outputs[0] == outputs[1]


def test_a_report_begins_without_compiled_code():
    """Whose import takes longer than that of all the rest."""
    program = "import sys, ssdrig.report; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
