"""Requests to a running test over a socket in its folder: a note in the journal, its end, and where
it was started with --allow-cut a cut of the drive's power. Nothing else, and not from anyone: the socket is its owner's
alone (0600), and the kernel reports who has called. Each request that is heard is an event with its caller, and the run
itself decides what follows.

    {"do": "note", "text": "fan off"}      a line; the answer is a line: {"ok": true} or {"ok": false, "why": "…"}
    {"do": "stop"}                         as the first Ctrl-C, however often it comes
    {"do": "arm"}                          {"ok": true, "token": "…", "hold_s": 1.5, "off_s": 2.0}
    {"do": "cut", "token": "…"}            that much later: see asked_cut.py
"""

import contextlib
import json
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ssdrig.base import owner
from ssdrig.base.errors import SsdrigError
from ssdrig.base.terminal import printable
from ssdrig.runs import journal
from ssdrig.runs.integrity import CONTROL

if TYPE_CHECKING:
    from ssdrig.run.asked_cut import AskedCut

MOST_BYTES = 4096
MOST_NOTE = 300
MOST_NOTES = 1000  # of a run: a program that has gone wrong fills no journal
PATIENCE_S = 2.0  # with one caller until its request is there, then until it has taken the answer
NO_CUT = "this run was not started with --allow-cut"
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid (unix(7))


class Control:
    """The socket of one run. A folder that takes none has none: the run goes on without it."""

    def __init__(self, book: journal.Journal, stop: Callable[[], None] | None = None, cut: "AskedCut | None" = None):
        """stop: what the end is asked by (default: SIGTERM to this process)."""
        self._cut = cut
        self._book, self._stop = book, stop or (lambda: os.kill(os.getpid(), signal.SIGTERM))
        self._notes, self._stopped = 0, False
        self._path = book.path / CONTROL
        self._thread: threading.Thread | None = None
        self._listener = self._opened()
        if self._listener:
            self._thread = threading.Thread(target=self._listen, name="run-control", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """No more requests; the socket is gone. Safe twice."""
        if self._listener:
            with contextlib.suppress(OSError):  # closed already
                self._listener.shutdown(socket.SHUT_RDWR)  # ends the accept that the thread waits in
        if self._thread:
            self._thread.join()
        if self._listener:
            self._listener.close()
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _opened(self) -> socket.socket | None:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            self._path.unlink(missing_ok=True)  # of a process that was killed
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                made.bind(f"/proc/self/fd/{folder}/{CONTROL}")  # a path may be longer than a socket's name
            finally:
                os.close(folder)
            os.chmod(self._path, 0o600)
            if user := owner.person():
                owner.give(self._path, *user)
            made.listen(4)
            return made
        except OSError as error:
            made.close()
            with contextlib.suppress(SsdrigError):
                self._book.event("note", text=f"no control.sock: {error.strerror or error}")
            return None

    def _listen(self) -> None:
        assert self._listener
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return  # shut down
            with caller, contextlib.suppress(OSError):
                answer = self._answer(caller)
                caller.settimeout(PATIENCE_S)
                caller.sendall(json.dumps(answer).encode() + b"\n")

    def _answer(self, caller: socket.socket) -> dict:
        pid, uid, _ = _CREDENTIALS.unpack(caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        person = owner.person()
        try:
            line = _line(caller)
            if uid not in (os.geteuid(), person[0] if person else os.geteuid(), 0):
                return {"ok": False, "why": "the run is another user's"}
            request = json.loads(line)
            do, text, token = request["do"], request.get("text"), request.get("token")
            if set(request) - {"do", "text", "token"} or token is not None and (do != "cut" or text is not None):
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {"ok": False, "why": "no request"}
        try:
            if do == "note" and isinstance(text, str) and 0 < len(text.strip()) <= MOST_NOTE:
                self._notes += 1
                if self._notes > MOST_NOTES:
                    return {"ok": False, "why": f"{MOST_NOTES} notes are enough"}
                self._book.event("note", text=printable(text.strip()), uid=uid, pid=pid)
            elif do == "stop" and text is None:
                if not self._stopped:
                    text = "the end of the run was asked for over control.sock"
                    self._book.event("note", text=text, uid=uid, pid=pid)
                    self._stop()
                    self._stopped = True
            elif do == "arm" and text is None:
                return {"ok": False, "why": NO_CUT} if self._cut is None else self._cut.arm()
            elif do == "cut" and isinstance(token, str):
                return {"ok": False, "why": NO_CUT} if self._cut is None else self._cut.ask(token, uid=uid, pid=pid)
            else:
                return {"ok": False, "why": f"a note of up to {MOST_NOTE} characters, stop, arm, or cut with its token"}
        except SsdrigError as error:
            return {"ok": False, "why": str(error)}
        return {"ok": True}


def _line(caller: socket.socket) -> bytes:
    """Raises ValueError without a whole line, TimeoutError where it takes too long as a whole: one that comes byte by
    byte holds up neither other callers nor the end of the run."""
    data, until = b"", time.monotonic() + PATIENCE_S
    while b"\n" not in data:
        caller.settimeout(max(until - time.monotonic(), 0.001))
        piece = caller.recv(MOST_BYTES)
        data += piece
        if not piece or len(data) > MOST_BYTES:
            raise ValueError
    return data.partition(b"\n")[0]
