"""Several connections to one NBD server as one transport: each command goes over the next connection, so a FLUSH has to
cover what came by the others.

Source: NetworkBlockDevice/nbd doc/proto.md, NBD_FLAG_CAN_MULTI_CONN: a FLUSH on one connection covers all that was
answered on any."""

import select
import time

import numpy as np

from ssdrig.powerloss.nbdwriter import Nbd


class Connections:
    """A transport (slots.Transport) over `n` connections; over one where the server does not promise that a FLUSH
    covers all. Raises DriveError, UsageError as Nbd does."""

    def __init__(self, uri: str, n: int):
        first = Nbd(uri)
        self.links, self.slots, self.size_bytes = [first], first.slots, first.size_bytes
        self.can_trim, self.can_zero, self._next = first.can_trim, first.can_zero, 0
        self.under_way, self.gone = 0, ""
        try:
            while first.flush_is_of_all and len(self.links) < n:
                self.links.append(Nbd(uri, self.slots))
        except Exception:
            self.close()
            raise

    now_ns = staticmethod(time.monotonic_ns)

    @property
    def server(self) -> int | None:
        """As Nbd.server."""
        return self.links[0].server

    def submit(self, order: np.ndarray, n: int) -> None:
        if self.gone:
            return
        many = len(self.links)
        for i in range(min(many, n)):
            part = order[i:n:many]
            self.links[(self._next + i) % many].submit(np.ascontiguousarray(part), len(part))
        self._next = (self._next + n) % many
        self._see()

    def reap(self, ended: np.ndarray, timeout_ns: int, least: int = 1) -> int:
        """As slots.Transport; `least` is not waited for."""
        if self.gone:
            return 0
        socks = {link.sock: link for link in self.links}
        readable, writable, _ = select.select(
            socks, [sock for sock, link in socks.items() if link.waits], [], timeout_ns / 1e9
        )
        for sock in writable:
            socks[sock].send()
        n = 0
        for sock in readable:
            n += socks[sock].take(ended[n:], 0)
        if any(link.gone for link in self.links):  # they go together: what the others have brought still counts
            for link in self.links:
                while got := link.take(ended[n:], 0):
                    n += got
        self._see()
        return n

    def _see(self) -> None:
        self.gone = next((link.gone for link in self.links if link.gone), "")
        self.under_way = 0 if self.gone else sum(link.under_way for link in self.links)
        if self.gone:
            self.close()

    def pause(self, ns: int) -> None:
        time.sleep(ns / 1e9)

    def close(self) -> None:
        """Disconnect each and close. Safe to call twice."""
        for link in self.links:
            link.close()
