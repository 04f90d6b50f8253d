"""The switch of a drive's supply for `--power-off` and `--power-on`: two commands that say a word to this process."""

import shutil
import socketserver
import threading
from collections.abc import Callable

HOST = "10.0.2.2"  # this machine's loopback, from within the guest


class Switch:
    """`off` and `on` are what the commands do. `cuts`: how often the power went."""

    def __init__(self, off: Callable[[], object], on: Callable[[], object]):
        self.cuts, switch, actions = 0, self, {"off": off, "on": on}

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                word = self.rfile.readline().decode().strip()
                switch.cuts += word == "off"
                try:
                    actions[word]()
                    answer = "done"
                except Exception as error:
                    answer = " ".join(f"{type(error).__name__}: {error}".split())
                self.wfile.write(answer.encode() + b"\n")

        self._server = socketserver.TCPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def command(self, word: str) -> str:
        """Of a shell; it fails, and says why, if what it stands for does."""
        busybox, port = shutil.which("busybox"), self._server.server_address[1]  # the guest needs busybox, too
        return f'said=$(echo {word} | {busybox} nc 127.0.0.1 {port}); echo "$said" >&2; test "$said" = done'

    def end(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
