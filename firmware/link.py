"""Frames (wire.py) over the board's USB serial port. Nothing here allocates, except `say`.

Output goes through a ring: a frame enters it whole or not at all, so a host that does not read can never tear one.
Input is taken a byte at a time, because reading more than has arrived blocks the board.
"""

import select
import sys
from array import array
from time import ticks_add, ticks_diff, ticks_us

import micropython
from micropython import const
import wire
from clock64 import add, put32, put_counter
from registers import usb_idle

_RING = const(8192)  # a power of two, above wire.MAX_FRAME
_MASK = const(8191)
# A packet of full-speed USB. The stack's FIFO holds four and empties by packets: while each piece is whole
# packets, room for a byte is room for a packet, and a stalled host never blocks a write (0.5 s each).
_PIECE = const(64)
_MORE = const(192)  # that an empty FIFO takes as well
_LINE = const(1024)  # wire.MAX_COMMAND
_OWED = const(4)  # answers that wait for room at most
_STALE_us = const(1_000_000)  # a line unfinished for this long is the rest of a host that went away


def _crc_table():
    table = array("I", [0] * 256)
    for i in range(256):
        c = i
        for _ in range(8):
            c = (c >> 1) ^ (0xEDB88320 if c & 1 else 0)
        table[i] = c
    return table


_TABLE = _crc_table()


@micropython.viper
def put_crc(buf: ptr8, n: int):
    """CRC-32 of buf[:n] into buf[n:n+4]. binascii.crc32 would return a heap object on a 32-bit board."""
    table = ptr32(_TABLE)
    c = -1
    for i in range(n):
        c = int(table[(c ^ buf[i]) & 255]) ^ ((c >> 8) & 0xFFFFFF)
    c = ~c
    for k in range(4):
        buf[n + k] = (c >> (8 * k)) & 255


@micropython.viper
def stuff(src: ptr8, n: int, ring: ptr8, head: int) -> int:
    """COBS of src[:n] and its delimiter into the ring from `head` on. Returns the number of bytes written."""
    code_at = head
    at = head + 1
    code = 1
    for i in range(n):
        b = src[i]
        if b:
            ring[at & _MASK] = b
            at += 1
            code += 1
        if b == 0 or code == 255:
            ring[code_at & _MASK] = code
            code_at = at
            at += 1
            code = 1
    ring[code_at & _MASK] = code
    ring[at & _MASK] = 0
    return at + 1 - head


@micropython.viper
def unstuff(buf: ptr8, n: int) -> int:
    """Inverse of COBS in place, no delimiter. Returns the length, -1 if it is not valid COBS."""
    out = 0
    i = 0
    while i < n:
        code = int(buf[i])
        if code == 0 or i + code > n:
            return -1
        for k in range(1, code):
            if buf[i + k] == 0:
                return -1
            buf[out] = buf[i + k]
            out += 1
        i += code
        if code < 255 and i < n:
            buf[out] = 0
            out += 1
    return out


@micropython.viper
def crc_fits(buf: ptr8, n: int) -> int:
    """1 if buf[n:n+4] is the CRC-32 of buf[:n]."""
    table = ptr32(_TABLE)
    c = -1
    for i in range(n):
        c = int(table[(c ^ buf[i]) & 255]) ^ ((c >> 8) & 0xFFFFFF)
    c = ~c
    for k in range(4):
        if buf[n + k] != (c >> (8 * k)) & 255:
            return 0
    return 1


def _ready(poller):
    for _ in poller.ipoll(0):
        return True
    return False


class Link:
    """The serial port to the host: a ring of frames on their way out, and the line that is coming in."""

    NOTHING = -1  # no input
    PART = 0  # a byte was taken, no command is complete

    def __init__(self):
        self.ring = bytearray(_RING)
        self.tail = 0
        self.head = self.used = 1  # the first byte out is a delimiter: it ends what a reset may have torn
        self.seq = array("I", [0])  # of the next frame
        self.line = bytearray(_LINE)
        self.body = 0  # length of the body of the command in `line`, which begins at wire.BODY
        self.length = 0  # of the line so far; above _LINE: the line is too long and will be dropped
        self.first = 0  # ticks_us when the line's first byte was seen
        self.byte = bytearray(1)
        self.escape = False  # the other end is the user or a program that wants the REPL
        self.reader = select.poll()
        self.reader.register(sys.stdin, select.POLLIN)
        self.writer = select.poll()
        self.writer.register(sys.stdout, select.POLLOUT)
        self.source = sys.stdin.buffer
        self.sink = sys.stdout.buffer
        self.pong_buf = bytearray(wire.P_END + 4)
        self.owed = []  # answers that found no room: they enter the queue before anything measured does

    def receive(self):
        """Take at most one byte. Returns NOTHING, PART, or the kind of the command whose frame it completed."""
        if not _ready(self.reader):
            return Link.NOTHING
        now = ticks_us()
        if self.length == 0 or ticks_diff(now, self.first) > _STALE_us:
            self.length = 0
            self.first = now
        self.source.readinto(self.byte)
        b = self.byte[0]
        n = self.length
        if b:
            if n < _LINE:
                self.line[n] = b
            self.length = n + 1
            # No frame starts with one of these: its second byte is the kind, a letter.
            # "\r Ctrl-C" is what mpremote sends, three Ctrl-C what the user does.
            if b == 3 and ((n == 1 and self.line[0] == 13) or (n == 2 and self.line[0] == 3 and self.line[1] == 3)):
                self.escape = True
            return Link.PART
        self.length = 0
        if n > _LINE:
            return Link.PART
        n = unstuff(self.line, n)
        if n < wire.BODY + 4 or not crc_fits(self.line, n - 4):
            return Link.PART
        self.body = n - 4 - wire.BODY
        return self.line[0]

    def text(self):
        """The body of the command just received, as bytes. Allocates."""
        return bytes(self.line[wire.BODY : wire.BODY + self.body])

    def put(self, buf, n):
        """Queue the frame whose kind is buf[0] and whose body is buf[5:n]; buf needs 4 bytes more for the CRC.
        False, and nothing is queued, without room: the host does not read. Nor while a larger answer waits for
        room: a queue that small frames keep full would never have any."""
        return not self.owed and self.answer(buf, n)

    def answer(self, buf, n):
        """As put, ahead of what waits: for small answers."""
        if self.used + n + 4 + (n + 4) // 254 + 2 > _RING:
            return False
        put_counter(buf, 1, self.seq)
        add(self.seq, 1)
        put_crc(buf, n)
        size = stuff(buf, n + 4, self.ring, self.head)
        self.head = (self.head + size) & _MASK
        self.used += size
        return True

    def send(self, most=1, patient=False):
        """Hand up to `most` pieces of the queue to the USB stack, as it takes them; a short rest is filled up with
        delimiters. patient: only when its FIFO is empty, which costs a third. True if it took any."""
        ring, tail = self.ring, self.tail  # of more than three a tuple would be made
        sink, writer = self.sink, self.writer
        used = self.used
        sent = False
        while used and most:
            # nothing on its way to the host, neither before nor after the stack's own task, which ipoll runs: empty
            idle = usb_idle()
            if patient and not idle:
                break
            for _ in writer.ipoll(0):
                break
            else:
                break
            n = _PIECE - (tail & (_PIECE - 1))  # less only after a piece that was taken in part
            if used > n and idle and usb_idle():
                if used < n + _MORE:
                    n += used - n + _PIECE - 1 & -_PIECE
                else:
                    n += _MORE
                if n > _RING - tail:
                    n = _RING - tail
            while used < n:
                ring[(tail + used) & _MASK] = 0
                used += 1
            n = sink.write(ring, tail, n)
            if not n:
                break
            sent = True
            tail = (tail + n) & _MASK
            used -= n
            most -= 1
        self.tail, self.used = tail, used
        self.head = (tail + used) & _MASK
        if sent and self.owed and self.answer(self.owed[0], len(self.owed[0]) - 4):
            self.owed.pop(0)
        return sent

    def room(self):
        """Free bytes in the queue."""
        return _RING - self.used

    def pong(self, clock):
        """Answer the ping in `line`. Its time is the middle between the ping's first byte and now, so that the time
        the board takes to handle it lengthens both ways alike and leaves the host's midpoint unbiased; that time is
        reported too."""
        buf = self.pong_buf
        buf[0] = wire.PONG
        for k in range(4):
            buf[wire.P_TOKEN + k] = self.line[wire.BODY + k]
        first = self.first
        held = ticks_diff(ticks_us(), first)
        clock.put(buf, wire.P_T, ticks_add(first, held >> 1))
        put32(buf, wire.P_HELD, held)
        self.answer(buf, wire.P_END)

    def framed(self, kind, text):
        """The frame of a text, for owe(). Allocates."""
        body = text.encode()[: wire.MAX_FRAME - 32]
        buf = bytearray(wire.BODY + len(body) + 4)
        buf[0] = kind
        buf[wire.BODY : wire.BODY + len(body)] = body
        return buf

    def owe(self, buf):
        """Queue a frame as soon as there is room. False if too many wait."""
        if self.answer(buf, len(buf) - 4):
            return True
        if len(self.owed) < _OWED:
            self.owed.append(buf)
            return True
        return False

    def say(self, kind, text):
        """Queue a frame of text (hello, log, report), as soon as there is room. False if too many wait. Allocates."""
        return self.owe(self.framed(kind, text))
