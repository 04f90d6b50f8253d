"""firmware/link.py, its very source on CPython: what a damaged line does, and a queue that is nearly full."""

import struct
import types
import zlib
from array import array

import pytest
import vipersource
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.meter import wire

RING = 8192


class Port:
    """sys and select of a board whose host has written `input` and reads nothing until `out` is asked for."""

    POLLIN, POLLOUT = 1, 4

    def __init__(self):
        self.input, self.sent = bytearray(), bytearray()
        self.stdin = types.SimpleNamespace(buffer=self, wanted=lambda: bool(self.input))
        self.stdout = types.SimpleNamespace(buffer=self, wanted=lambda: True)

    def idle(self):
        return False

    def poll(self):
        stream = []
        return types.SimpleNamespace(
            register=lambda which, _: stream.append(which), ipoll=lambda _: [1] if stream[0].wanted() else []
        )

    def readinto(self, buf):
        buf[0] = self.input.pop(0)

    def write(self, ring, start, n):
        self.sent += ring[start : start + n]
        return n


def made(us=lambda: 0, port=None):
    """(Link, Port)."""
    time = types.SimpleNamespace(ticks_us=us, ticks_diff=lambda a, b: a - b, ticks_add=lambda a, b: a + b)
    port = port or Port()
    clock64 = vipersource.load("clock64", {}, {"time": time})
    registers = types.SimpleNamespace(usb_idle=lambda: port.idle())
    fakes = {"time": time, "select": port, "sys": port, "wire": wire, "clock64": clock64, "registers": registers}
    return vipersource.load("link", {}, fakes).Link(), port


def received(data: bytes) -> list[int]:
    """The commands that a board obeys."""
    link, port = made()
    port.input += data
    kinds = []
    while port.input:
        kind = link.receive()
        if kind > 0:
            kinds.append((kind, link.text()))
    return kinds


def test_a_whole_command_is_obeyed():
    assert received(wire.encode(wire.CUT, 7, b"{}")) == [(wire.CUT, b"{}")]


@pytest.mark.parametrize("body", [b"", pytest.param(b'{"token": 1}', marks=pytest.mark.slow), b"\0\0\0"])
def test_a_damaged_command_is_not(body):
    """Each bit of it, one at a time; a bit that makes another delimiter of a byte leaves two damaged commands."""
    frame = wire.encode(wire.CUT, 7, body)
    for at in range(len(frame) - 1):
        for bit in range(8):
            damaged = bytearray(frame)
            damaged[at] ^= 1 << bit
            assert received(bytes(damaged)) == [], (at, bit)


def drained(link, port) -> list[tuple]:
    while link.send():
        pass
    assert port.sent[:1] == port.sent[-1:] == b"\0" and len(port.sent) % 64 == 0
    return [wire.decode(frame) for frame in bytes(port.sent).split(b"\0") if frame]


def queue(link, body: bytes) -> bool:
    frame = bytearray(struct.pack(wire.HEAD, wire.LOG, 0) + body + bytes(4))
    return link.put(frame, len(frame) - 4)


@pytest.mark.parametrize("left", range(300, 320))
def test_a_frame_enters_the_queue_whole_or_not_at_all(left):
    """One of 300 bytes and a CRC-32 of 4, without a zero, needs a code more and a delimiter, and a code per 254."""
    link, port = made()
    bodies = []
    while link.room() > left + 600:
        bodies.append(bytes([1]) * 200)
        assert queue(link, bodies[-1])
    bodies.append(bytes([1]) * (link.room() - left - 9 - 4))
    assert queue(link, bodies[-1])
    assert link.room() - left in (0, 1, 2), "the queue is filled as far as meant"
    if queue(link, bytes([1]) * 295):
        bodies.append(bytes([1]) * 295)
    assert link.used <= RING
    assert [body for _, _, body in drained(link, port)] == bodies


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 600), st.sampled_from([0, 1, 255])), min_size=30, max_size=60))
def test_what_the_queue_took_comes_out(sizes):
    link, port = made()
    taken = [bytes([value]) * n for n, value in sizes if queue(link, bytes([value]) * n)]
    assert link.used <= RING and link.seq == array("I", [len(taken)])
    seen = drained(link, port)
    assert [(seq, body) for _, seq, body in seen] == list(enumerate(taken))


def took(link, port, data: bytes) -> list[int]:
    """What `receive` says byte by byte."""
    port.input += data
    return [link.receive() for _ in data]


PING = wire.encode(wire.PING, 1, b"abcd")


def test_what_a_byte_completes():
    link, port = made()
    assert link.receive() == link.NOTHING == -1
    assert took(link, port, PING) == [link.PART] * (len(PING) - 1) + [wire.PING] and link.PART == 0
    assert link.receive() == link.NOTHING and link.text() == b"abcd" and link.body == 4
    assert took(link, port, b"\0\0") == [link.PART] * 2  # an empty line


@pytest.mark.parametrize(("paused_us", "taken"), [(1_000_000, wire.PING), (1_000_001, 0)])
def test_a_line_unfinished_for_a_second_is_forgotten(paused_us, taken):
    now = [5000]
    link, port = made(lambda: now[0])
    took(link, port, PING[:4])
    assert link.first == 5000
    now[0] += paused_us
    assert took(link, port, PING[4:])[-1] == taken
    assert took(link, port, PING)[-1] == wire.PING and link.first == now[0]


@pytest.mark.parametrize(("more", "taken"), [(0, wire.CUT), (1, 0)])
def test_the_longest_line(more, taken):
    """All bytes of a command with their codes, then the delimiter; a longer one is dropped whole, and the next is
    heard."""
    link, port = made()
    codes = 1 + wire.MAX_COMMAND // 254
    frame = wire.encode(wire.CUT, 1, bytes([1]) * (wire.MAX_COMMAND - 5 - 4 - codes + 1 + more))
    assert (len(frame) > wire.MAX_COMMAND + 1) == bool(more) and len(frame) > wire.MAX_COMMAND
    assert took(link, port, frame)[-1] == taken
    assert took(link, port, PING)[-1] == wire.PING


@pytest.mark.parametrize(
    ("line", "escape"),
    [
        (b"\r\x03", True),
        (b"\x03\x03\x03", True),
        (b"\x03\x03", False),
        (b"\n\x03", False),
        (b"\r\x04", False),
        (b"\x03\x03\x04", False),
        (b"\x04\x03\x03", False),
        (b"\x03\x04\x03", False),
        (b"x\r\x03", False),
        (b"x\x03\x03\x03", False),
        (b"\r\r\x03", False),
    ],
)
def test_who_wants_the_interpreter(line, escape):
    link, port = made()
    assert set(took(link, port, line)) == {0} and link.escape is escape


def test_a_frame_shorter_than_its_head_is_no_command():
    """Five bytes and their CRC-32 are the shortest."""
    assert [kind for kind, _ in received(cobs(b"p0000"))] == [ord("p")]
    assert received(cobs(b"p000")) == []


def cobs(payload: bytes) -> bytes:
    """The payload with its CRC-32 as the line has it; no byte of it may be 0."""
    whole = payload + zlib.crc32(payload).to_bytes(4, "little")
    assert 0 not in whole and len(whole) < 254
    return bytes([len(whole) + 1]) + whole + b"\0"


def test_a_pong_lies_in_the_middle_of_the_handling():
    now = [(1 << 30) - 100]
    link, port = made(lambda: now[0])
    took(link, port, PING)
    now[0] += 77
    put = []
    link.pong(types.SimpleNamespace(put=lambda buf, at, tick: put.append((at, tick))))
    assert put == [(wire.P_T, (1 << 30) - 100 + 38)]
    ((kind, seq, body),) = drained(link, port)
    assert (kind, seq, len(body)) == (wire.PONG, 0, wire.P_END - wire.BODY) and body[:4] == b"abcd"
    assert int.from_bytes(body[wire.P_HELD - wire.BODY :], "little") == 77


def test_text_that_is_too_long_is_cut():
    link, port = made()
    for n in (wire.MAX_FRAME - 32, wire.MAX_FRAME):
        assert link.say(wire.LOG, "x" * n)
        while link.send():
            pass
    assert [(k, b) for k, _, b in drained(link, port)] == [(wire.LOG, b"x" * (wire.MAX_FRAME - 32))] * 2


def test_an_answer_gets_room_though_small_frames_keep_the_queue_full():
    link, port = made()
    while queue(link, bytes(200)):
        pass
    assert link.say(wire.HELLO, "h" * 1500), "it waits"
    refused = 0
    for _ in range(30):  # the host reads as fast as the sensor measures
        assert all(link.send() for _ in range(4))
        refused += not queue(link, bytes(200))
    kinds = [kind for kind, _, _ in drained(link, port)]
    assert kinds.count(wire.HELLO) == 1 and 5 <= refused <= 10 and kinds[-1] == wire.LOG


def test_of_answers_that_wait_there_are_few():
    link, port = made()
    while queue(link, bytes(200)):
        pass
    answers = [link.say(wire.HELLO, str(n) * 1000) for n in range(9)]
    assert answers == [True] * 4 + [False] * 5
    while link.send():
        pass
    assert [body[:1] for kind, _, body in drained(link, port) if kind == wire.HELLO] == [b"0", b"1", b"2", b"3"]


def test_pieces_are_packets_of_64_bytes():
    """The rest of the queue is filled up with delimiters, behind a whole frame; a piece of which the USB stack took a
    part is completed, so that its FIFO has room for whole packets only."""
    link, port = made()
    assert link.room() == RING - 1  # the delimiter that ends what a reset tore
    assert queue(link, bytes([1]) * 100)
    queued = link.used
    assert link.send() is True and len(port.sent) == 64 and link.used == queued - 64
    sizes = []
    port.write = lambda ring, start, n: sizes.append((start, n)) or 0
    assert link.send() is False and (link.tail, link.used) == (64, 64)
    port.write = lambda ring, start, n: sizes.append((start, n)) or 20
    assert link.send() is True and (link.tail, link.used) == (84, 44)
    assert queue(link, bytes([1]) * 100)
    port.write = lambda ring, start, n: sizes.append((start, n)) or n
    assert link.send() is True and link.tail == 128
    assert sizes == [(64, 64), (64, 64), (84, 44)]
    port.stdout.wanted = lambda: False
    assert link.send() is False
    port.stdout.wanted, link.used = lambda: True, 0
    assert link.send() is False


class Fifo(Port):
    """The USB stack's FIFO: four packets, filled by `write`, emptied by the host a packet at a time."""

    def __init__(self):
        super().__init__()
        self.held = 0
        self.stdout = types.SimpleNamespace(buffer=self, wanted=lambda: self.held < 256)

    def write(self, ring, start, n):
        assert n <= 256 - self.held, "this write would wait for the host"
        self.held += n
        return super().write(ring, start, n)

    def take(self):
        self.held -= min(64, self.held)

    def idle(self):
        return not self.held


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 300), st.sampled_from(["host", "send", "send"])), max_size=200))
def test_a_host_that_stands_still_blocks_no_write(acts):
    fifo = Fifo()
    link, _ = made(port=fifo)
    link.sink, link.writer = fifo, types.SimpleNamespace(ipoll=lambda _: [1] if fifo.held < 256 else [])
    taken = 0
    for act in acts:
        if act == "host":
            fifo.take()
        elif act == "send":
            link.send()
        else:
            taken += queue(link, bytes([1]) * act)
    while link.used:  # and a host that goes on gets all of it
        fifo.take()
        link.send()
    assert len(drained(link, fifo)) == taken


def test_an_empty_fifo_takes_four_packets_at_once():
    link, port = made()
    port.idle = lambda: True
    sizes = []
    port.write = lambda ring, start, n: sizes.append(n) or n
    assert queue(link, bytes([1]) * 600)
    while link.send():
        pass
    assert sizes == [256, 256, 128] and link.used == 0
    link.tail = link.head = RING - 64
    assert queue(link, bytes([1]) * 300) and link.send() and sizes[-1] == 64 and link.tail == 0


def test_a_piece_ends_at_the_rings_end():
    link, port = made()
    link.tail = link.head = RING - 64
    link.used = 0
    assert queue(link, bytes([1]) * 100) and link.send() is True and link.tail == 0
    assert link.send() is True and link.tail == 64 and link.used == 0 and link.head == 64


@pytest.mark.parametrize(("n", "taken"), [(7924, True), (7925, False)])
def test_room_for_a_frame_is_its_bytes_a_code_per_254_and_a_delimiter(n, taken):
    """n bytes, 4 of the CRC-32, 31 codes, one more, a delimiter: 8192 with the 231 that are there."""
    link, _ = made()
    link.used = 231
    assert (7924 + 4) // 254 == (7925 + 4) // 254 == 31 and 231 + 7924 + 4 + 31 + 2 == RING
    assert link.put(bytearray([1]) * (n + 4), n) is taken and link.seq[0] == taken
