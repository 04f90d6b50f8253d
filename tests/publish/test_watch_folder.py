"""The watch folder: nothing acknowledged is lost, a torn line is set aside, the history says what it leaves out."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from watching import NOVEMBER_NS, history, record, records

from ssdrig.base.errors import JournalError
from ssdrig.commands import watch as watch_command
from ssdrig.drive.smart import watch_folder

__all__ = ["history"]  # a fixture


@pytest.mark.parametrize("torn", [b"{", b'{"utc_ns": 17951775', b"\x00" * 5000, b"x" * 200_000])
def test_a_torn_line_is_set_aside(history, torn):
    path, size = watch_folder.keep(history, record(0))
    with path.open("ab") as f:
        f.write(torn)
    assert [k.record["n"] for k in watch_folder.lines(path)] == [0], "a reader does not wait for the mending"
    lines = []
    watch_folder.set_torn_aside(history, lines.append)
    assert (
        path.stat().st_size == size
        and path.with_suffix(".torn").read_bytes() == torn + b"\n"
        and str(len(torn)) in lines[0]
    )
    with path.open("ab") as f:
        f.write(torn)
    assert watch_folder.keep(history, record(1))[0] == path
    assert [k.record["n"] for k in watch_folder.lines(path)] == [0, 1]
    watch_folder.set_torn_aside(history, pytest.fail)


def test_a_file_of_nothing_but_a_torn_line(history):
    path = watch_folder.drive_folder(history, record(0)["drive"]) / "2026-11.jsonl"
    path.parent.mkdir()
    path.write_bytes(b'{"utc')
    watch_folder.keep(history, record(0))
    assert [k.record["n"] for k in watch_folder.lines(path)] == [0]


def test_history_is_all_months_in_order_of_one_drive(history):
    for n in (0, 1, 300, 900, 2000):
        watch_folder.keep(history, record(n))
    watch_folder.keep(history, record(301, skipped="a run holds the drive"))
    watch_folder.keep(history, record(302, failed="no answer"))
    watch_folder.keep(history, record(303, serial="S124"))
    watch_folder.keep(
        history, record(304, serial="S/123")
    )  # falls into no other's folder, but shares the end of its name
    path, _ = watch_folder.keep(history, record(305))
    with path.open("ab") as f:
        f.write(b"\x00\x00\nno json\n[1]\n{}\n" + b'{"utc_ns": 1')
    lines = []
    assert [r["n"] for r in watch_folder.history(history, "S123", lines.append)] == [0, 1, 300, 305, 900, 2000]
    assert sorted(p.name for p in history.glob("ACME-X1-S123/*.jsonl")) == [
        "2026-11.jsonl",
        "2026-12.jsonl",
        "2027-02.jsonl",
    ]
    assert any("2 polls" in text for text in lines) and any("4 damaged" in text for text in lines)
    assert [r["n"] for r in watch_command.history(history, "S/123", lines.append)] == [304]
    assert watch_command.history(history, "nobody", lines.append) == []
    with pytest.raises(JournalError, match="watch folder"):
        watch_command.history(history / "absent", "S123")


def test_pipe_among_the_months_has_no_polls_and_is_not_waited_for(history):
    path, _ = watch_folder.keep(history, record(0))
    os.mkfifo(path.with_name("2026-10.jsonl"))
    assert [r["n"] for r in watch_folder.history(history, "S123")] == [0]


KEEPER = """
import sys
from ssdrig.drive.smart import watch_folder
for n in range(int(sys.argv[2])):
    poll = {"utc_ns": 1795177507894000000, "drive": {"serial": "S123"}, "n": n, "ballast": "x" * int(sys.argv[3])}
    watch_folder.keep(sys.argv[1], poll)
    print(n, flush=True)
"""


def keeper(folder, number, ballast, **more):
    return subprocess.Popen([sys.executable, "-c", KEEPER, str(folder), str(number), str(ballast)], **more)


def test_kill_9_loses_nothing_that_was_acknowledged(history):
    for after in (1, 3, 8):
        shutil.rmtree(history)
        history.mkdir()
        process = keeper(history, 10**6, 300_000, stdout=subprocess.PIPE, text=True)
        try:
            for _ in range(after):
                process.stdout.readline()
        finally:
            process.kill()
            acknowledged = after + len(process.stdout.read().splitlines())
            process.wait()
            process.stdout.close()
        watch_folder.set_torn_aside(history, lambda text: None)
        watch_folder.keep(history, {"utc_ns": NOVEMBER_NS, "drive": {"serial": "S123"}, "n": -1})
        got = [k["n"] for k in records(history)]
        assert got[:-1] == list(range(len(got) - 1)) and len(got) - 1 >= acknowledged and got[-1] == -1


def test_two_writers_at_once(history):
    writers = [keeper(history, 40, 9000, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [writer.wait(600) for writer in writers] == [0, 0]
    assert Counter(k["n"] for k in records(history)) == dict.fromkeys(range(40), 2) and not list(
        history.glob("*/*.torn")
    )


def test_where_the_folder_is():
    where = watch_folder.default_folder
    assert where({"STATE_DIRECTORY": "/var/lib/ssdrig", "HOME": "/root"}) == Path("/var/lib/ssdrig/watch")
    assert where({"XDG_STATE_HOME": "/s", "HOME": "/root"}) == Path("/s/ssdrig/watch")
    assert where({"HOME": "/home/a"}) == Path("/home/a/.local/state/ssdrig/watch")


def test_what_does_not_reach_the_disk_is_not_called_kept(history, monkeypatch):
    watch_folder.keep(history, record(0))
    (path,) = history.glob("*/*.jsonl")
    whole = path.read_bytes()
    monkeypatch.setattr(os, "fdatasync", lambda fd: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(JournalError, match="Input/output error"):
        watch_folder.keep(history, record(1))
    assert path.read_bytes() == whole
