"""A connection of the server that gives way. Every user of the machine can reach the loopback: a client that connects
and sends nothing, sends a byte now and then, or reads no response must not block others."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

from ssdrig.serve import peer

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
        self.ours = peer.is_ours(self.server, self.client)
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
