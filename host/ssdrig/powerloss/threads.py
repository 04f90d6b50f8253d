"""A block device, or a file, for the writer, where AIO is forbidden: a thread for each command in flight."""

import errno
import os
import queue
import threading
import time

import numpy as np

from ssdrig.blockio import direct
from ssdrig.blockio.slots import AWAY, Slots
from ssdrig.drive import block
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, TRIM, WRITE, ZEROS

THREADS = 32


class Threads:
    """A transport (slots.Transport); as aio.Aio. At most THREADS commands are at the drive, the others wait for a
    thread."""

    def __init__(self, path: str):
        self.path, self.slots, self.under_way, self.gone = path, Slots(), 0, ""
        self._fd, _ = direct.opened(path)
        self.size_bytes = os.lseek(self._fd, 0, os.SEEK_END)
        self.can_trim, self.can_zero = direct.takes(self._fd, direct.DISCARD), direct.is_block_device(self._fd)
        self._view = memoryview(self.slots.memory)
        self._asked: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._answered: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(THREADS)]
        for each in self._threads:
            each.start()

    now_ns = staticmethod(time.monotonic_ns)

    def submit(self, order: np.ndarray, n: int) -> None:
        self.under_way += n
        for slot in order[:n].tolist():
            self._asked.put(slot)

    def reap(self, ended: np.ndarray, timeout_ns: int, least: int = 1) -> int:
        n = 0
        try:
            if timeout_ns:
                ended[0] = self._answered.get(timeout=timeout_ns / 1e9)
                n = 1
            while True:
                ended[n] = self._answered.get_nowait()
                n += 1
        except queue.Empty:
            pass
        self.under_way -= n
        away = [-int(each) for each in self.slots.status[ended[:n]] if -each in AWAY]
        if away:
            self.gone = os.strerror(away[0])
        return n

    def _run(self) -> None:
        while (slot := self._asked.get()) is not None:
            try:
                self.slots.status[slot] = self._do(slot)
            except OSError as error:
                self.slots.status[slot] = -(error.errno or errno.EIO)
            self._answered.put(slot)

    def _do(self, slot: int) -> int:
        slots = self.slots
        kind, offset, length = int(slots.kind[slot]), int(slots.offset[slot]), int(slots.length[slot])
        if kind == FLUSH:
            os.fdatasync(self._fd)
            return 0
        if kind == TRIM:
            return -direct.discard(self._fd, offset, length) if self.can_trim else -errno.EOPNOTSUPP
        if kind == WRITE and slots.flags[slot] & ZEROS:
            return -direct.discard(self._fd, offset, length, block.BLKZEROOUT)
        begin = slot * slots.bytes_each
        data = self._view[begin : begin + length]
        if kind == WRITE:
            done = os.pwritev(self._fd, [data], offset, os.RWF_DSYNC if slots.flags[slot] & FUA else 0)
        else:
            assert kind == BLANK
            done = os.preadv(self._fd, [data], offset)
        return 0 if done == length else -errno.EIO

    def pause(self, ns: int) -> None:
        time.sleep(ns / 1e9)

    def close(self) -> None:
        """Waits for the commands in flight. Safe to call twice."""
        if self._fd >= 0:
            for _ in self._threads:
                self._asked.put(None)
            for each in self._threads:
                each.join()
            os.close(self._fd)
            self._fd = -1
