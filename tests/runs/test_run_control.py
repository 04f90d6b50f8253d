"""What can be asked of a run that goes on, over its socket, and by whom."""

import contextlib
import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.run.control import MOST_NOTES, Control
from ssdrig.runs import integrity, journal
from ssdrig.runs.integrity import CONTROL
from ssdrig.serve import app as asking

HEADER = {"method": {"name": "x"}, "drive": {"model": "m"}}


@pytest.fixture
def book(tmp_path):
    made = journal.create(tmp_path / ("long" * 60), HEADER)  # longer than the name of a socket may be
    yield made
    made.close("complete")


@pytest.fixture
def control(book):
    stopped: list[int] = []
    made = Control(book, lambda: stopped.append(1))
    made.stopped = stopped
    yield made
    made.close()


def notes(book) -> list[dict]:
    return [event for event in journal.events(book.path) if event["kind"] == "note"]


def raw(book, data: bytes) -> dict:
    fd = os.open(book.path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(20)
            s.connect(f"/proc/self/fd/{fd}/{CONTROL}")
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            return json.loads(s.makefile("rb").readline())
    finally:
        os.close(fd)


def test_a_note_and_the_end_are_events_with_their_caller(book, control):
    assert asking.ask_run(book.path, {"do": "note", "text": " fan off \x1b[2J"}) == {"ok": True, "why": ""}
    assert asking.ask_run(book.path, {"do": "stop"})["ok"] and control.stopped == [1]
    first, second = notes(book)
    assert first["text"] == "fan off \\x1b[2J" and first["uid"] == os.geteuid() and first["pid"] == os.getpid()
    assert "asked for" in second["text"] and second["uid"] == os.geteuid()


def test_the_socket_is_its_owners_and_goes_with_the_run(book, control):
    status = (book.path / CONTROL).stat()
    assert stat.S_ISSOCK(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o600
    assert journal.open_run(book.path) and integrity.oddity(book.path) == ""
    control.close()
    control.close()
    assert not (book.path / CONTROL).exists()
    with pytest.raises(UsageError):
        asking.ask_run(book.path, {"do": "stop"})
    book.close("complete")
    assert integrity.damage(book.path) == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"{}\n",
        b"[]\n",
        b'"stop"\n',
        b'{"do": "cut"}\n',
        b'{"do": "purge"}\n',
        b'{"do": "run"}\n',
        b'{"do": "note"}\n',
        b'{"do": "note", "text": ""}\n',
        b'{"do": "note", "text": 5}\n',
        b'{"do": "note", "text": "' + b"x" * 301 + b'"}\n',
        b'{"do": "stop", "text": "now"}\n',
        b'{"do": "stop", "uid": 0}\n',
        b'{"do": ["stop"]}\n',
        b"[" * 3000 + b"\n",
        b"x" * 9000,
        b"\xff\xfe\n",
        b'{"do": "stop"}',
    ],
)
def test_anything_else_is_refused(book, control, data):
    assert raw(book, data)["ok"] is False and control.stopped == [] and notes(book) == []
    assert asking.ask_run(book.path, {"do": "note", "text": "still here"})["ok"]


def test_what_the_page_may_not_ask_does_not_reach_the_run(book, control):
    for request in (
        {},
        {"do": "cut"},
        {"do": "note"},
        {"do": "note", "text": " "},
        {"do": "purge"},
        {"do": "note", "text": "x" * 301},
    ):
        with pytest.raises(UsageError):
            asking.ask_run(book.path, request)
    assert notes(book) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_is_refused_also_where_the_socket_lets_him(book, control):
    os.chmod(book.path / CONTROL, 0o666)
    for folder in (book.path, *book.path.parents):
        if str(folder).startswith("/var/tmp/"):
            os.chmod(folder, 0o755)
    words = (
        "import os, socket; os.setgid(65534); os.setuid(65534); s = socket.socket(socket.AF_UNIX); os.chdir('/');"
        f"fd = os.open({str(book.path)!r}, os.O_RDONLY); s.connect('/proc/self/fd/%d/{CONTROL}' % fd);"
        's.sendall(b\'{"do": "stop"}\\n\'); print(s.recv(999).decode())'
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True)
    assert "another user" in done.stdout, done.stderr
    assert control.stopped == [] and notes(book) == []


def test_a_caller_that_says_nothing_holds_up_nobody_for_long(book, control):
    fd = os.open(book.path, os.O_RDONLY | os.O_DIRECTORY)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.connect(f"/proc/self/fd/{fd}/{CONTROL}")
        assert asking.ask_run(book.path, {"do": "note", "text": "beside"})["ok"]
    os.close(fd)


def test_one_that_comes_byte_by_byte_holds_up_neither_a_stop_nor_the_end(book, control):
    fd = os.open(book.path, os.O_RDONLY | os.O_DIRECTORY)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.connect(f"/proc/self/fd/{fd}/{CONTROL}")
        os.close(fd)
        ends = threading.Thread(target=control.close)
        ends.start()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(40):
                s.sendall(b" ")
                time.sleep(0.25)
            pytest.fail("heard for 10 s")
        ends.join(600)
    assert not (book.path / CONTROL).exists()


def test_notes_have_an_end(book, control):
    control._notes = MOST_NOTES
    assert asking.ask_run(book.path, {"do": "note", "text": "x"}) == {
        "ok": False,
        "why": f"{MOST_NOTES} notes are enough",
    }
    assert asking.ask_run(book.path, {"do": "stop"})["ok"]


def test_the_end_that_is_asked_for_again_is_one_signal_and_one_event(book, control):
    for _ in range(3):
        assert asking.ask_run(book.path, {"do": "stop"})["ok"]
    assert control.stopped == [1] and len(notes(book)) == 1


def test_a_socket_that_a_killed_run_left_is_replaced(book):
    with socket.socket(socket.AF_UNIX) as s:
        fd = os.open(book.path, os.O_RDONLY | os.O_DIRECTORY)
        s.bind(f"/proc/self/fd/{fd}/{CONTROL}")
        os.close(fd)
    one = Control(book, lambda: None)
    assert asking.ask_run(book.path, {"do": "note", "text": "x"})["ok"]
    one.close()


def test_a_folder_that_takes_no_socket_is_no_reason_to_fail(book, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "chmod", refuse)
    one = Control(book)
    one.close()
    assert "no control.sock" in notes(book)[0]["text"]


def test_only_a_socket_of_that_name_is_passed_over(book, tmp_path):
    os.mkfifo(book.path / CONTROL)
    assert integrity.oddity(book.path).startswith(f"{book.path / CONTROL},")
    (book.path / CONTROL).unlink()
    with socket.socket(socket.AF_UNIX) as s:
        fd = os.open(book.path, os.O_RDONLY | os.O_DIRECTORY)
        s.bind(f"/proc/self/fd/{fd}/other.sock")
        os.close(fd)
    assert integrity.oddity(book.path).startswith(f"{book.path / 'other.sock'},")
    (book.path / "other.sock").unlink()


def test_several_callers_at_once(book, control):
    done: list[dict] = []
    threads = [
        threading.Thread(target=lambda n=n: done.append(asking.ask_run(book.path, {"do": "note", "text": f"n{n}"})))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(answer["ok"] for answer in done) and {note["text"] for note in notes(book)} == {"n0", "n1", "n2", "n3"}
    assert Path(book.path / CONTROL).exists()
