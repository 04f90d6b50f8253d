"""The virtual drive's server: one thread that carries NBD, the admin and the truth socket, and the drive's own time.

It sleeps in select(), which takes microseconds; epoll rounds to a millisecond, too coarse to pace a drive."""

import ctypes
import os
import select
import signal
import socket
import time

from ssdrig.errors import UsageError
from ssdrig.virtual import admin
from ssdrig.virtual.device import Device
from ssdrig.virtual.nbdserver import Connection
from ssdrig.virtual.truth import TruthFolder

ADVANCE_NS = 5_000_000
TICK_NS = 1_000_000_000
_PR_SET_PDEATHSIG, _PR_SET_TIMERSLACK = 1, 29


def prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """SIGKILL for this process when its parent, process id `parent`, ends; at once if it has ended already."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class Server:
    """Serves `device` at the unix sockets path, path.admin and path.truth until stop() is called."""

    def __init__(self, device: Device, path: str, truth_folder: str | None = None):
        self.device, self.path = device, path
        self.truth = TruthFolder(truth_folder, device) if truth_folder else None
        self.stopping = False
        self.connections: list[Connection | admin.LineConnection] = []
        self.listeners = {}
        self._listen(path, lambda sock: Connection(sock, device))
        self._listen(path + ".admin", lambda sock: admin.LineConnection(sock, device, self._answer_admin))
        self._listen(path + ".truth", lambda sock: admin.LineConnection(sock, device, admin.answer_truth))

    def _listen(self, path: str, make) -> None:
        listener = listen(path)
        self.listeners[path] = (listener, make)

    def _answer_admin(self, device: Device, request: dict, now_ns: int) -> tuple[dict, int]:
        answer = admin.answer_admin(device, request, now_ns)
        if self.truth and request["op"] == "log" and request.get("lid") == 0x02:
            self.truth.mark(now_ns)
        return answer

    def stop(self, *_) -> None:
        self.stopping = True

    def run(self) -> None:
        prctl(_PR_SET_TIMERSLACK, 1000)
        now = time.monotonic_ns()
        advance_at, tick_at = now, now + TICK_NS
        while not self.stopping:
            wake = min([advance_at, tick_at, *(c.next_due_ns for c in self.connections if c.next_due_ns >= 0)])
            readers = [c for c in self.connections if c.wants_read] + [pair[0] for pair in self.listeners.values()]
            writers = [c for c in self.connections if c.wants_write]
            readable, _, _ = select.select(readers, writers, [], max(0, wake - now) / 1e9)
            for who in readable:
                if isinstance(who, socket.socket):
                    self._accept(who)
                else:
                    who.receive()
            now = time.monotonic_ns()
            if now >= advance_at or not self.device.powered:
                self.device.advance(now)
                advance_at = now + ADVANCE_NS
                self._follow_power()
            for connection in self.connections:
                connection.reply(now)
            self.connections = [c for c in self.connections if not c.closed]
            if now >= tick_at:
                self.device.tick(now)
                if self.truth:
                    self.truth.write(now)
                tick_at += TICK_NS * (1 + (now - tick_at) // TICK_NS)
            now = time.monotonic_ns()

    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, _ = listener.accept()
        except OSError:
            return  # the client has gone again
        make = next(make for known, make in self.listeners.values() if known is listener)
        self.connections.append(make(sock))

    def _follow_power(self) -> None:
        """No power, no NBD: its connections end at once and new ones are refused until the drive has started."""
        listening = self.path in self.listeners
        if listening and not self.device.powered:
            self.listeners.pop(self.path)[0].close()
            os.unlink(self.path)
            for connection in self.connections:
                if isinstance(connection, Connection):
                    connection.close()
        elif not listening and self.device.powered:
            self._listen(self.path, lambda sock: Connection(sock, self.device))

    def close(self) -> None:
        """End all connections, write the last truth, remove the sockets."""
        for connection in self.connections:
            if not connection.closed:
                connection.close()
        for path, (listener, _) in self.listeners.items():
            listener.close()
            if os.path.exists(path):
                os.unlink(path)
        if self.truth:
            now = time.monotonic_ns()
            self.device.advance(now)
            self.truth.close(now)


def listen(path: str) -> socket.socket:
    """A listening unix socket; one that a dead server left is replaced. Raises UsageError if the path is in use or bad."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if os.path.exists(path):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                try:
                    probe.connect(path)
                    raise UsageError(f"a free socket path {path}", "a server that answers there", "give another --socket")
                except ConnectionRefusedError:
                    os.unlink(path)
        listener.bind(path)
        listener.listen(64)
    except OSError as e:
        listener.close()
        raise UsageError(f"a socket at {path}", e.strerror or str(e), "give a short path in a folder that exists") from e
    except UsageError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
