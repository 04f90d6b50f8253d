"""For tests of the rig's host side: a board on a pseudo-terminal, and a journal."""

import contextlib
import os
import pty
import select
import struct
import threading
import time
import tty

import numpy as np
import pytest
import stream

from ssdrig.meter import wire
from ssdrig.meter.pico.stream import Rig
from ssdrig.runs import journal


class FakeBoard(threading.Thread):
    """Speaks the board's side of wire.py, 1000 samples/s of 1 W. Its vices are attributes, set at any time."""

    def __init__(self):
        super().__init__(daemon=True)
        self.master, slave = pty.openpty()
        tty.setraw(slave)
        os.set_blocking(self.master, False)
        self.port = os.ttyname(slave)
        self.slave = slave  # held open, so that the port can be closed and opened again
        self.boot, self.protocol, self.config = 1, wire.PROTOCOL, 0
        self.mute = self.deaf = self.dry = self.no_pongs = False  # says nothing; hears nothing; streams nothing
        self.text = b""  # said over and over
        self.heard: list[int] = []
        self.ending = threading.Event()
        self.restart()

    def restart(self, boot=None):
        self.boot = boot or self.boot
        self.seq, self.index, self.streaming = 0, 0, False
        self.born = self.sent_until = time.monotonic()

    def now_us(self):
        return int((time.monotonic() - self.born) * 1e6)

    def say(self, kind, body):
        if not self.mute:
            self.write(wire.encode(kind, self.seq, body))
        self.seq += 1

    def write(self, data):
        """As the host takes it, which may never do so: until the test ends."""
        while data and not self.ending.is_set():
            if select.select([], [self.master], [], 0.05)[1]:
                with contextlib.suppress(BlockingIOError):
                    data = data[os.write(self.master, data) :]

    def run(self):
        rest, chatted = b"", 0.0
        while not self.ending.is_set():
            if select.select([self.master], [], [], 0.005)[0]:
                try:
                    *parts, rest = (rest + os.read(self.master, 4096)).split(b"\x00")
                except OSError:
                    return
                for part in filter(None, [] if self.deaf else parts):
                    self.obey(*wire.decode(part))
            if self.text and time.monotonic() > chatted + 0.05:
                chatted = time.monotonic()
                self.write(self.text)
            while self.streaming and time.monotonic() - self.sent_until >= 0.02:
                t_us = int((self.sent_until - self.born) * 1e6) + 1000 * np.arange(1, 21)
                self.sent_until += 0.02
                if not self.dry:
                    self.say(
                        wire.SAMPLES, stream.samples(self.index, t_us, [25_600] * 20, [25_600] * 20, config=self.config)
                    )
                self.index += 20

    def obey(self, kind, seq, body):
        self.heard.append(kind)
        if kind == wire.ASK_HELLO:
            self.say(wire.HELLO, stream.hello(boot=self.boot, protocol=self.protocol, configs=(self.config,)))
        elif kind == wire.PING and not self.no_pongs:
            self.say(wire.PONG, body + struct.pack("<QI", self.now_us(), 0))
        elif kind == wire.GO:
            self.streaming, self.index, self.sent_until = True, 0, time.monotonic()
        elif kind == wire.STOP:
            self.streaming = False

    def end(self):
        self.ending.set()
        self.join()
        for fd in (self.master, self.slave):
            try:
                os.close(fd)
            except OSError:
                pass  # the test hung up


@pytest.fixture
def board():
    board = FakeBoard()
    board.start()
    yield board
    board.end()


@pytest.fixture
def book(tmp_path):
    book = journal.create(tmp_path, {"run": "run"})
    yield book
    book.close("failed", "test over", 1)


@pytest.fixture
def rig(board, book):
    rig = Rig(board.port, book)
    yield rig
    rig.stop()
