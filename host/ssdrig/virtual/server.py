"""The virtual drive's server: one thread that carries NBD, NVMe/TCP, the admin and the truth socket, and the drive's
own time.

It sleeps in select(), which takes microseconds; epoll rounds to a millisecond, too coarse to pace a drive."""

import os
import select
import socket
import stat
import time
from collections.abc import Callable

from ssdrig.base import prctl
from ssdrig.base.errors import UsageError
from ssdrig.virtual.device import admin, tcpserver
from ssdrig.virtual.device.device import Device
from ssdrig.virtual.device.nbdserver import Connection
from ssdrig.virtual.device.subsystem import Subsystem
from ssdrig.virtual.device.truth import TruthFolder

ADVANCE_NS = 5_000_000
TICK_NS = 1_000_000_000
MAX_CONNECTIONS = 250  # select() cannot watch file descriptors from 1024 on


AnyConnection = Connection | tcpserver.Connection | admin.LineConnection
# (socket, path of a unix socket, what makes a connection of an accepted one)
Listener = tuple[socket.socket, str | None, Callable[[socket.socket], AnyConnection]]


class Server:
    """Serves `device` until stop() is called: NBD, admin and truth at the unix sockets path, path.admin and path.truth
    if a path is given; NVMe/TCP at nvme_tcp, (address, port), if that is given. Port 0: a free one, which nvme_tcp then
    names."""

    def __init__(
        self, device: Device, path: str | None, truth_folder: str | None = None, nvme_tcp: tuple[str, int] | None = None
    ):
        self.device, self.nvme_tcp = device, nvme_tcp
        self.truth = TruthFolder(truth_folder, device) if truth_folder else None
        self.subsystem = Subsystem(device, self._mark)
        self.stopping = False
        self.connections: list[AnyConnection] = []
        self.listeners: list[Listener] = []
        self._powered_listeners: list[Listener] = []  # those of them that end with the power
        self._fronts: list[Callable[[], Listener]] = []  # what opens the latter
        self._parked: socket.socket | None = None  # keeps the TCP port, not listening, while the drive has no power
        if path:
            self._fronts.append(lambda: (listen(path), path, lambda sock: Connection(sock, device)))
        if nvme_tcp:
            self._fronts.append(self._open_nvme_tcp)
        try:
            self._open_fronts()
            if path:
                self.listeners.append((listen(path + ".admin"), path + ".admin", self._admin_connection))
                self.listeners.append((listen(path + ".truth"), path + ".truth", self._truth_connection))
        except UsageError:
            self.close()
            raise

    def _open_fronts(self) -> None:
        for front in self._fronts:
            self._powered_listeners.append(front())
            self.listeners.append(self._powered_listeners[-1])

    def _open_nvme_tcp(self) -> Listener:
        assert self.nvme_tcp is not None
        listener, self._parked = self._parked or bind_tcp(*self.nvme_tcp), None
        listener.listen(64)
        self.nvme_tcp = listener.getsockname()[:2]
        return listener, None, lambda sock: tcpserver.Connection(sock, self.subsystem)

    def _admin_connection(self, sock: socket.socket) -> admin.LineConnection:
        return admin.LineConnection(sock, self.device, self._answer_admin)

    def _truth_connection(self, sock: socket.socket) -> admin.LineConnection:
        return admin.LineConnection(sock, self.device, admin.answer_truth)

    def _answer_admin(self, device: Device, request: dict, now_ns: int) -> tuple[dict, int]:
        answer = admin.answer_admin(device, request, now_ns)
        if request["op"] == "log" and request.get("lid") == 0x02:
            self._mark(now_ns)
        return answer

    def _mark(self, now_ns: int) -> None:
        """A host has read the SMART page."""
        if self.truth:
            self.truth.mark(now_ns)

    def stop(self, *_) -> None:
        self.stopping = True

    def run(self) -> None:
        prctl.timer_slack(1000)
        now = time.monotonic_ns()
        advance_at, tick_at = now, now + TICK_NS
        while not self.stopping:
            wake = min([advance_at, tick_at, *(c.next_due_ns for c in self.connections if c.next_due_ns >= 0)])
            readers = [c for c in self.connections if c.wants_read] + [known[0] for known in self.listeners]
            writers = [c for c in self.connections if c.wants_write]
            readable, _, _ = select.select(readers, writers, [], max(0, wake - now) / 1e9)
            for who in readable:
                if isinstance(who, socket.socket):
                    self._accept(who)
                elif self.device.powered or isinstance(who, admin.LineConnection):
                    who.receive()  # what comes in the same moment as a power cut comes too late
            now = time.monotonic_ns()
            if now >= advance_at or not self.device.powered:
                self.device.advance(now)
                advance_at = now + ADVANCE_NS
                if self.truth:
                    self.truth.count(now)
                self._follow_power(now)
                self.subsystem.advance(now)
            for connection in self.connections:
                connection.reply(now)
            self.connections = [c for c in self.connections if not c.closed]
            if now >= tick_at:
                tick_at += TICK_NS * ((now - tick_at) // TICK_NS)
                self.device.tick(now, tick_at)
                self.subsystem.look_at_health()
                if self.truth:
                    self.truth.write(now)
                tick_at += TICK_NS
            now = time.monotonic_ns()

    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, _ = listener.accept()
        except OSError:
            return  # the client has gone again
        if len(self.connections) >= MAX_CONNECTIONS:
            sock.close()
            return
        make = next(make for known, _, make in self.listeners if known is listener)
        self.connections.append(make(sock))

    def _follow_power(self, now_ns: int) -> None:
        """No power, no drive: its connections end immediately and new ones are refused until it has started."""
        if self._powered_listeners and not self.device.powered:
            for listener in self._powered_listeners:
                self.listeners.remove(listener)
                shut(*listener[:2])
            self._powered_listeners = []
            if self.nvme_tcp:
                self._parked = bind_tcp(*self.nvme_tcp)
            for connection in self.connections:
                if isinstance(connection, Connection):
                    connection.close()
                elif isinstance(connection, tcpserver.Connection):
                    connection.close(at_once=True)
            self.subsystem.power_lost(now_ns)
        elif not self._powered_listeners and self.device.powered:
            self._open_fronts()
            self.subsystem.power_returned(now_ns)

    def close(self) -> None:
        """End all connections, write the last truth, remove the sockets."""
        for connection in self.connections:
            if not connection.closed:
                connection.close()
        for listener, path, _ in self.listeners:
            shut(listener, path)
        if self._parked:
            self._parked.close()
        if self.truth:
            now = time.monotonic_ns()
            self.device.advance(now)
            self.truth.close(now)


def shut(listener: socket.socket, path: str | None) -> None:
    listener.close()
    if path and _is_socket(path):
        os.unlink(path)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def bind_tcp(address: str, port: int) -> socket.socket:
    """A TCP socket bound to a port, which refuses connections until it listens. Raises UsageError if the address or
    port is not to be had."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
    except OSError as e:
        listener.close()
        seen = e.strerror or str(e)
        raise UsageError(f"a TCP port at {address}:{port}", seen, "give another --nvme-tcp ADDRESS:PORT") from e
    listener.setblocking(False)
    return listener


def listen(path: str) -> socket.socket:
    """A listening unix socket; one that a dead server left is replaced, anything else stays as it is. Raises UsageError
    if the path is in use or bad."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if os.path.lexists(path) and not _is_socket(path):
            raise UsageError(
                f"a free socket path {path}", "something there that is not a socket", "give another --socket"
            )
        if os.path.lexists(path):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                try:
                    probe.connect(path)
                    raise UsageError(
                        f"a free socket path {path}", "a server that answers there", "give another --socket"
                    )
                except ConnectionRefusedError:
                    os.unlink(path)
        listener.bind(path)
        listener.listen(64)
    except OSError as e:
        listener.close()
        raise UsageError(
            f"a socket at {path}", e.strerror or str(e), "give a short path in a folder that exists"
        ) from e
    except UsageError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
