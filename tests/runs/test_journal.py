"""The run folder: made, written, followed, synced, closed; a full disk; a writer that is killed."""

import contextlib
import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from journal_book import HEADER, book  # noqa: F401  fixtures

from ssdrig.base.errors import JournalError
from ssdrig.runs import integrity, journal


def test_folder_is_named_and_complete_when_it_appears(book, tmp_path):
    name = book.path.name
    assert name.startswith("20261120T122507Z-consistency-sata-tlc-") and len(name.rsplit("-", 1)[1]) == 4
    assert sorted(p.name for p in book.path.iterdir()) == ["events.jsonl", "lock", "reserve", "rig.bin", "run.json"]
    assert [p.name for p in tmp_path.iterdir()] == [name]
    header = journal.open_run(book.path)
    assert header == {"schema": 1, **HEADER, "run": name}


def test_a_folder_that_exists_is_never_taken_over(tmp_path):
    journal.create(tmp_path, {**HEADER, "run": "a"}).close("complete")
    before = (tmp_path / "a" / "events.jsonl").read_bytes()
    with pytest.raises(JournalError, match="File exists"):
        journal.create(tmp_path, {**HEADER, "run": "a"})
    assert (tmp_path / "a" / "events.jsonl").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


KILLED = """
import os, signal, sys
from ssdrig.runs import journal
journal.write_atomically = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
journal.create(sys.argv[1], {"run": "killed"})
"""


def test_what_a_kill_left_of_a_new_run_is_removed_by_the_next(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    assert done.returncode == -signal.SIGKILL and [*left.rglob("reserve")]
    journal.create(tmp_path, {**HEADER, "run": "next"}).close("complete")
    assert [path.name for path in tmp_path.iterdir()] == ["next"]


def test_a_file_in_place_of_a_run_is_refused_with_the_way_to_import_it(tmp_path):
    """Results of fio alone."""
    (tmp_path / "fio.json").write_text('{"fio version": "fio-3.33", "jobs": []}')
    with pytest.raises(JournalError) as caught:
        journal.open_run(tmp_path / "fio.json")
    assert "ssdrig import" in caught.value.do


def test_a_name_may_not_lead_out_of_the_runs_folder(tmp_path):
    with pytest.raises(JournalError):
        journal.create(tmp_path / "runs", {**HEADER, "run": "../escaped"})
    assert list(tmp_path.iterdir()) == []


def test_runs_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="--runs"):
        journal.create(tmp_path / "file", HEADER)


def test_events_keep_order_and_fields(book):
    first = book.event("run.start", pid=7)
    second = book.event("load.first_io", t_ns=123, step="load")
    assert first["kind"] == "run.start" and abs(first["t_ns"] - time.monotonic_ns()) < 10**10
    assert second == {"t_ns": 123, "kind": "load.first_io", "step": "load"}
    assert journal.events(book.path) == [first, second]


def test_events_can_be_followed(book):
    a = book.event("note", text="ä")
    events, offset, left = journal.read_events(book.path)
    assert (events, left) == ([a], 0)
    b = book.event("note", text="b")
    assert journal.read_events(book.path, offset) == ([b], (book.path / "events.jsonl").stat().st_size, 0)


def test_sync_says_what_is_on_the_disk(book):
    line = book.event("note", text="x")
    book.record(1, b"abc", 1)
    assert book.sync() == (len(integrity.sealed(line, 0)), 27)
    assert book.sync() == (len(integrity.sealed(line, 0)), 27)


def test_appends_reach_the_disk_by_themselves(book, monkeypatch):
    synced = threading.Event()
    real = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (real(fd), synced.set()))
    book.record(1, b"abc", 1)
    assert synced.wait(600)  # a disk that others fill may take its time


def test_put_is_whole_or_absent(book, monkeypatch):
    book.put("smart/001.json", b"old")
    monkeypatch.setattr(os, "fsync", lambda fd: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(JournalError, match="No space left"):
        book.put("smart/001.json", b"new")
    monkeypatch.undo()
    assert (book.path / "smart" / "001.json").read_bytes() == b"old"
    assert [p.name for p in (book.path / "smart").iterdir()] == ["001.json"]


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "smart/../../x"])
def test_put_stays_inside(book, name):
    with pytest.raises(JournalError, match="inside"):
        book.put(name, b"")


def test_a_full_disk_leaves_whole_records_and_is_said_ever_after(book, monkeypatch):
    event = book.event("note", text="kept")
    real = os.write

    def half(fd, data):
        if len(data) < 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data[: len(data) - 5])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(JournalError, match="No space left"):
        book.event("note", text="lost")
    monkeypatch.undo()
    assert journal.read_events(book.path)[0] == [event] and journal.read_events(book.path)[2] == 0
    for again in (lambda: book.event("note"), lambda: book.record(1, b"", 0), book.sync):
        with pytest.raises(JournalError, match="No space left"):
            again()
    end = book.close("complete")
    assert (end["state"], end["exit_code"]) == ("failed", 8) and "No space left" in end["why"]
    assert [e for e in journal.events(book.path) if e["kind"] != "sums"] == [event, end] and not (
        book.path / journal.RESERVE
    ).exists()


def test_a_disk_that_takes_nothing_at_all(book, monkeypatch):
    def none(fd, data):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "write", none)
    with pytest.raises(JournalError, match="Input/output"):
        book.close("complete")
    assert journal.state(book.path) == "died"  # it could not say how it ended, and holds no lock


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
@pytest.mark.parametrize("spare", [0, 1, 700, 4096])
def test_the_reserve_makes_room_for_the_last_line(tmp_path, spare):
    """A disk of 256 KiB, filled to the last byte but `spare`."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(tmp_path)], check=True)
    try:
        book = journal.create(tmp_path, HEADER)
        with open(tmp_path / "ballast", "wb", buffering=0) as f, contextlib.suppress(OSError):
            while True:
                f.write(bytes(4096))
        os.truncate(tmp_path / "ballast", (tmp_path / "ballast").stat().st_size - spare)
        with pytest.raises(JournalError, match="No space left"):
            for _ in range(100):
                book.record(1, bytes(200), 1)
        end = book.close("interrupted", "w" * 2000, 130)
        assert journal.state(book.path) == "interrupted" and journal.events(book.path)[-1] == end
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def test_a_real_full_disk(tmp_path):
    """/dev/full in place of the file: the kernel's own refusal, not ours."""
    book = journal.create(tmp_path, HEADER)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, book._files["rig.bin"][0])
    os.close(full)
    with pytest.raises(JournalError, match="No space left"):
        book.record(1, b"abc", 1)
    assert book.close("complete")["state"] == "failed"


def test_states(tmp_path):
    for state in ("complete", "failed", "interrupted"):
        book = journal.create(tmp_path, HEADER)
        assert journal.state(book.path) == "running"
        end = book.close(state, "because", 4)
        assert journal.state(book.path) == state
        assert (
            journal.events(book.path)[-1]
            == end
            == {**end, "kind": "run.end", "state": state, "why": "because", "exit_code": 4}
        )
        assert book.close("complete") == end  # a second close changes nothing
        assert journal.state(book.path) == state
        with pytest.raises(JournalError, match="closed"):
            book.event("note")
    with pytest.raises(ValueError):
        book.close("fine")


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"{}", b'{"schema": 2}', b'"x"'])
def test_what_is_no_run_folder_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "run.json").write_bytes(content)
    for read in (journal.open_run, journal.events, journal.records):
        with pytest.raises(JournalError):
            read(tmp_path)


@pytest.mark.parametrize("name", ["run.json", "events.jsonl", "rig.bin", "smart/001.json", "fio/load/x.log", "lock"])
@pytest.mark.parametrize("what", ["pipe", "device"])
def test_a_folder_with_what_is_no_file_is_refused(book, name, what):
    """A report of it would never end, or take all memory."""
    place = book.path / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    os.mkfifo(place) if what == "pipe" else place.symlink_to("/dev/zero")
    with pytest.raises(JournalError, match="not a regular file|only files in the run folder|only what a run writes"):
        journal.run_header(book.path)
    assert name not in integrity.sums(book.path)


def test_many_threads_append_without_tearing(book):
    def work(k):
        for i in range(100):
            book.event("note", k=k, i=i)
            book.record(1, bytes([k]) * i, i)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    lines, _, left = journal.read_events(book.path)
    records = journal.records(book.path)
    assert (len(lines), left, len(records), records.left_bytes) == (400, 0, 400, 0)
    assert [e["t_ns"] for e in lines] == sorted(e["t_ns"] for e in lines)
    for k in range(4):
        assert [e["i"] for e in lines if e["k"] == k] == list(range(100))


WRITER = """
import sys
from ssdrig.runs import integrity, journal, rigbin
book = journal.create(sys.argv[1], {"run": sys.argv[2]})
n = 0
while True:
    for _ in range(7):
        book.event("note", n=n)
        book.record(1, n.to_bytes(4, "little") * (n % 50 + 1), n)
        n += 1
    print(*book.sync(), n, flush=True)
"""


@pytest.mark.slow
def test_killed_at_any_moment_nothing_acknowledged_is_lost(tmp_path):
    """kill -9, 8 times: all that sync() reported is read back, in order; the rest is whole records or a torn tail."""
    dice = random.Random(1)
    env = {**os.environ, "PYTHONPATH": str(Path(journal.__file__).parents[2])}
    for turn in range(8):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), f"run{turn}"], stdout=subprocess.PIPE, env=env
        )
        try:
            acknowledged = [writer.stdout.readline().split()]
            while dice.random() < 0.9:
                acknowledged.append(writer.stdout.readline().split())
            assert journal.state(tmp_path / f"run{turn}") == "running"
            time.sleep(dice.random() * 0.01)
        finally:
            writer.send_signal(signal.SIGKILL)
            rest = writer.stdout.read()
            writer.stdout.close()
            writer.wait()
        last = [line.split() for line in rest.splitlines(keepends=True) if line.endswith(b"\n")] or acknowledged
        events_bytes, rig_bytes, n = map(int, last[-1])
        run = tmp_path / f"run{turn}"
        events, records = journal.events(run), journal.records(run)
        assert len(events) >= n and [e["n"] for e in events] == list(range(len(events)))
        assert len(records) >= n
        assert [records.payload(i) for i in range(n)] == [i.to_bytes(4, "little") * (i % 50 + 1) for i in range(n)]
        assert records.next_offset >= rig_bytes and (run / "events.jsonl").stat().st_size >= events_bytes
        assert journal.state(run) == "died"
