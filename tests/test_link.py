"""firmware/link.py, its very source on CPython: what a damaged line does, and a queue that is nearly full."""

import struct
import types
from array import array

import pytest
import vipersource
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig import wire

RING = 8192


class Port:
    """sys and select of a board whose host has written `input` and reads nothing until `out` is asked for."""

    POLLIN, POLLOUT = 1, 4

    def __init__(self):
        self.input, self.sent = bytearray(), bytearray()
        self.stdin = types.SimpleNamespace(buffer=self, wanted=lambda: bool(self.input))
        self.stdout = types.SimpleNamespace(buffer=self, wanted=lambda: True)

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


def made():
    """(Link, Port)."""
    time = types.SimpleNamespace(ticks_us=lambda: 0, ticks_diff=lambda a, b: a - b, ticks_add=lambda a, b: a + b)
    port = Port()
    clock64 = vipersource.load("clock64", {}, {"time": time})
    fakes = {"time": time, "select": port, "sys": port, "wire": wire, "clock64": clock64}
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


@pytest.mark.parametrize("body", [b"", b'{"token": 1}', b"\0\0\0"])
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
    first, *frames, last = bytes(port.sent).split(b"\0")
    assert first == last == b""
    return [wire.decode(frame) for frame in frames]


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
