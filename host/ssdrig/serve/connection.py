"""A connection of the server that gives way. Every user of the machine can reach the loopback: a client that connects
and sends nothing, sends a byte now and then, or reads no response must not block others.

Whose process is at the other end of a connection over loopback, as the kernel reports (sock_diag(7))."""

import asyncio
import os
import socket
import struct

from uvicorn.protocols.http.h11_impl import H11Protocol

SOCK_DIAG, BY_FAMILY, REQUEST = 4, 20, 1  # linux/netlink.h, linux/sock_diag.h
HEAD = struct.Struct("=IHHII")  # of a netlink message: length, kind, flags, number, port
SOCKET = struct.Struct(">HH16s16s")  # of a socket: its port and the other's, its address and the other's
BEFORE, BEHIND = struct.Struct("=BBBxI"), struct.Struct("=III")  # of the request: what kinds; device, cookie
ANSWER = struct.Struct("=4x48x12xII")  # struct inet_diag_msg: user, inode
NO_COOKIE, MOST_BYTES, PATIENCE_S = 0xFFFFFFFF, 4096, 1.0


def uid(ours: tuple, theirs: tuple) -> int | None:
    """The user id of the process whose socket `theirs` (host, port) is connected to `ours`; None if unknown."""
    family = socket.AF_INET6 if ":" in theirs[0] else socket.AF_INET
    try:
        addresses = [socket.inet_pton(family, host).ljust(16, b"\0") for host in (theirs[0], ours[0])]
        asked = SOCKET.pack(theirs[1], ours[1], *addresses) + BEHIND.pack(0, NO_COOKIE, NO_COOKIE)
        asked = BEFORE.pack(family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF) + asked
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG) as kernel:
            kernel.settimeout(PATIENCE_S)
            kernel.sendto(HEAD.pack(HEAD.size + len(asked), BY_FAMILY, REQUEST, 1, 0) + asked, (0, 0))
            answer = kernel.recv(MOST_BYTES)
        if HEAD.unpack_from(answer)[1] != BY_FAMILY:
            return None
        user, inode = ANSWER.unpack_from(answer, HEAD.size)
    except (OSError, struct.error):
        return None
    return user if inode else None  # the kernel reports root for a closed socket


def is_ours(ours: tuple | None, theirs: tuple | None) -> bool:
    """Whether it is a process of this user, or of root."""
    return ours is not None and theirs is not None and uid(ours, theirs) in (os.geteuid(), 0)


HEAD_S = 20.0  # from the connection, or the last answer, to the end of the next request's head
MOST_OTHERS = 50  # connections of other users of the machine
SLOW_S = 60.0  # that a client may take nothing of what waits for it; a reader of a run comes again where it was


class Connection(H11Protocol):
    """As uvicorn's, but let go of in time. Of as many as may be open, the one that waits longest for its request makes
    room for a new one; those of other users make room among themselves alone."""

    ours = True  # of the user of this server, or of root
    _late: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._look()
        self.ours = is_ours(self.server, self.client)
        alike = [other for other in self.connections if isinstance(other, Connection) and other.ours == self.ours]
        if len(alike) > MOST_OTHERS if not self.ours else len(self.connections) >= (self.limit_concurrency or 1 << 30):
            waiting = [other for other in alike if other._late]
            oldest = min(waiting, key=lambda other: other._late.when() if other._late else 0.0, default=self)
            self.connections.discard(oldest)
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._late, self._stuck):
            if timer:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self.loop.call_later(SLOW_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stuck:
            self._stuck.cancel()
            self._stuck = None

    def _look(self) -> None:
        """Time limits apply to the header of a request, not to its execution."""
        if self.cycle is not None and not self.cycle.response_complete:
            if self._late:
                self._late.cancel()
                self._late = None
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_S, self.transport.abort)
