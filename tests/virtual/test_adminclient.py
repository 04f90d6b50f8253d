"""The client of the virtual drive's admin socket, against a drive that answers well and badly."""

import json
import socket
import threading

import pytest
from pages import PAGE_02H, PAGE_09H, PAGE_C0H

from ssdrig.base.errors import DriveError
from ssdrig.drive.smart import counters
from ssdrig.virtual import adminclient


class Drive(threading.Thread):
    """Answers an admin socket with `answer(request) -> bytes`; keeps what it was asked."""

    def __init__(self, path, answer):
        super().__init__(daemon=True)
        self.asked, self.answer = [], answer
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen()

    def run(self):
        while True:
            try:
                link, _ = self.socket.accept()
            except OSError:
                return
            with link:
                self.asked.append(json.loads(link.makefile().readline()))
                try:
                    link.sendall(self.answer(self.asked[-1]))
                except OSError:
                    pass

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.join(600)


PAGES = {0x02: PAGE_02H, 0xC0: PAGE_C0H, 0x09: PAGE_09H}


def good(request: dict) -> bytes:
    if request["op"] == "log":
        return json.dumps({"hex": PAGES[request["lid"]].hex()}).encode() + b"\n"
    return b'{"model_name": "SIMULATED", "smartctl": {"exit_status": 0}}\n'


def test_poll_makes_the_document(tmp_path):
    with Drive(tmp_path / "admin", good) as drive:
        got = adminclient.poll(tmp_path / "admin")
    assert drive.asked == [
        {"op": "log", "lid": 2},
        {"op": "log", "lid": 192},
        {"op": "log", "lid": 9},
        {"op": "smartctl"},
    ]
    assert set(got) == {"t_start_ns", "t_end_ns", "simulated", "smartctl", "log_02h", "log_c0h", "log_09h"}
    assert got["smartctl"]["model_name"] == "SIMULATED" and got["simulated"] is True
    assert 0 < got["t_start_ns"] < got["t_end_ns"]
    assert counters.snapshot(json.loads(json.dumps(got)))["refreshes"] == 23


def test_a_drive_without_c0h(tmp_path):
    def answer(request):
        return b'{"error": "no log page 192; there are [2]"}\n' if request.get("lid") in (0xC0, 0x09) else good(request)

    with Drive(tmp_path / "admin", answer):
        got = adminclient.poll(tmp_path / "admin")
    assert got["log_c0h"] is None and got["log_09h"] is None and got["log_02h"] == PAGE_02H.hex()


@pytest.mark.parametrize("lid", [0x02, 0xC0, 0x09])
def test_a_page_that_cannot_be_made_is_not_a_page_that_is_missing(tmp_path, lid):
    def answer(request):
        return b'{"error": "KeyError"}\n' if request.get("lid") == lid else good(request)

    with Drive(tmp_path / "admin", answer), pytest.raises(DriveError, match="KeyError"):
        adminclient.poll(tmp_path / "admin")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b'{"hex": "00',
        b"nonsense\n",
        b"[1]\n",
        b"{}\n",
        b'{"hex": "00"}\n',
        b'{"hex": 7}\n',
        b'{"error": "the drive has no power"}\n',
    ],
)
def test_a_drive_that_answers_badly(tmp_path, answer):
    with (
        Drive(tmp_path / "admin", lambda request: answer),
        pytest.raises(DriveError, match="admin|no power|bytes as hex"),
    ):
        adminclient.poll(tmp_path / "admin")


def test_a_drive_that_does_not_answer(tmp_path):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "admin"))
        silent.listen()
        with pytest.raises(DriveError, match="(?i)time"):
            adminclient.poll(tmp_path / "admin", timeout_s=0.2)
    with pytest.raises(DriveError):
        adminclient.poll(tmp_path / "none")


def test_ask(tmp_path):
    with Drive(tmp_path / "admin", lambda request: b'{"model": "x"}\n'):
        assert adminclient.ask(tmp_path / "admin", {"op": "identify"}) == {"model": "x"}
    with (
        Drive(tmp_path / "admin2", lambda request: b'{"error": "unknown op"}\n'),
        pytest.raises(DriveError, match="unknown op"),
    ):
        adminclient.ask(tmp_path / "admin2", {"op": "x"})
