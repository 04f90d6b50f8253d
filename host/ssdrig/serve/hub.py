"""The runs that are being viewed: one thread follows each for all its viewers, and ends when there are none."""

import asyncio
import contextlib
import threading
import time
import traceback
from pathlib import Path

from ssdrig.base.errors import SsdrigError
from ssdrig.serve.tail import Tail

EACH_S = 0.1
LINGER_S = 60.0  # a run without viewers is followed this long: a viewer may be reconnecting


class Hub:
    """tail() from any thread; listen() and leave() from the event loop's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tails: dict[Path, Tail] = {}
        self._heard: dict[int, set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = {}  # id of a tail -> listeners
        self._closing = threading.Event()

    def tail(self, folder: Path) -> Tail:
        """The run that is followed there. Raises JournalError."""
        with self._lock:
            if folder not in self._tails:
                self._tails[folder] = tail = Tail(folder)
                self._heard[id(tail)] = set()
                threading.Thread(target=self._follow, args=(tail,), daemon=True, name="serve-tail").start()
            return self._tails[folder]

    def listen(self, tail: Tail) -> asyncio.Event:
        """Set whenever there is more."""
        event = asyncio.Event()
        with self._lock:
            self._heard.setdefault(id(tail), set()).add((asyncio.get_running_loop(), event))
        return event

    def leave(self, tail: Tail, event: asyncio.Event) -> None:
        with self._lock:
            heard = self._heard.get(id(tail), set())
            heard -= {pair for pair in heard if pair[1] is event}

    def close(self) -> None:
        self._closing.set()

    def _follow(self, tail: Tail) -> None:
        alone_since = time.monotonic()
        while not self._closing.is_set():
            began = time.monotonic()
            try:
                if tail.step() or tail.ended:
                    self._tell(tail)
            except (SsdrigError, OSError):
                pass  # the folder disappeared, and its lock with it, which its readers notice
            except Exception:  # a defect: its readers do not wait for ever
                traceback.print_exc()
                tail.ended = True
                self._tell(tail)
            with self._lock:
                if self._heard[id(tail)]:
                    alone_since = time.monotonic()
                elif tail.ended or time.monotonic() - alone_since > LINGER_S:
                    del self._tails[tail.folder], self._heard[id(tail)]
                    return
            self._closing.wait(max(0.01, EACH_S - (time.monotonic() - began)) if not tail.ended else 1.0)

    def _tell(self, tail: Tail) -> None:
        with self._lock:
            for loop, event in self._heard[id(tail)]:
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(event.set)
