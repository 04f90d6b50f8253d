"""For tests: a serial port offered over TCP on loopback, as socat or ser2net does, with a delay each way."""

import contextlib
import os
import select
import socket
import threading
import time
import tty
from collections import deque


class TcpBridge(threading.Thread):
    """Serves one connection at a time until end().

    port: a pseudo-terminal.
    delays_s: how long each byte waits on its way to the board, and from it.
    `url`: for --rig; `served`: connections so far; hang_up() ends the present one."""

    def __init__(self, port: str, delays_s: tuple[float, float] = (0.0, 0.0)):
        super().__init__(daemon=True)
        self._fd = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        tty.setraw(self._fd)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._delays_s, self._ends, self._hangs_up = delays_s, threading.Event(), threading.Event()
        self.served = 0

    def run(self) -> None:
        while not self._ends.is_set():
            if not select.select([self._listener], [], [], 0.05)[0]:
                continue
            connection, _ = self._listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.served += 1
            self._hangs_up.clear()
            with connection, contextlib.suppress(OSError):
                self._carry(connection)

    def _carry(self, connection: socket.socket) -> None:
        ways = {connection.fileno(): self._fd, self._fd: connection.fileno()}
        delays_s = dict(zip(ways, self._delays_s))
        waiting: dict[int, deque[tuple[float, bytes]]] = {fd: deque() for fd in ways}
        while not (self._ends.is_set() or self._hangs_up.is_set()):
            due = [queue[0][0] for queue in waiting.values() if queue]
            wait_s = min(0.02, *(max(0.0, at - time.monotonic()) for at in due)) if due else 0.02
            for fd in select.select([*ways], [], [], wait_s)[0]:
                data = os.read(fd, 65536)
                if not data:
                    return
                waiting[fd].append((time.monotonic() + delays_s[fd], data))
            for fd, queue in waiting.items():
                while queue and queue[0][0] <= time.monotonic():
                    _, data = queue.popleft()
                    while data:
                        select.select([], [ways[fd]], [], 1)
                        with contextlib.suppress(BlockingIOError):
                            data = data[os.write(ways[fd], data) :]

    def hang_up(self) -> None:
        self._hangs_up.set()

    def end(self) -> None:
        self._ends.set()
        self.join()
        self._listener.close()
        os.close(self._fd)
