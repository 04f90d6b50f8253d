"""sources/powenetics.py, by packets that a pseudo-terminal plays."""

import os
import pty
import struct
import threading
import tty

import pytest

from ssdrig.base.errors import RigError, UsageError
from ssdrig.meter import meter
from ssdrig.meter.sources import powenetics

SLOT = 10, 11  # channels of the PCIe slot


def packet(number: int, mV=(3300, 12_000), mA=(1500, 70_000)) -> bytes:
    """A packet; the slot's two channels have these, all others the mark itself, which is no beginning there."""
    channels = [struct.pack(">HBH", 0xCAAC, 0xCA, 0xACCA)] * len(powenetics.RAILS)
    for n, volt, ampere in zip(SLOT, mV, mA, strict=True):
        channels[n] = struct.pack(">HBH", volt, ampere >> 16, ampere & 0xFFFF)
    return powenetics.MARK + struct.pack(">H", number % powenetics.NUMBERS) + b"".join(channels)


class Port:
    """What pyserial gives: each read is the next of `pieces`."""

    def __init__(self, *pieces: bytes):
        self.pieces, self.sent, self.in_waiting, self.closed = list(pieces), b"", 0, False

    def read(self, size):
        if not self.pieces:
            raise OSError("gone")
        return self.pieces.pop(0)

    def write(self, data):
        self.sent += data

    def close(self):
        self.closed = True


def read(*pieces: bytes) -> list[meter.Block]:
    one, out = powenetics.Powenetics(Port(*pieces), "/dev/x", list(SLOT), meter.Accuracy(unknown="-")), []
    with pytest.raises(OSError):
        for block in one.blocks():
            out.append(block)
    return out


def test_packets_are_readings_of_both_rails():
    blocks = read(b"".join(map(packet, range(6))))
    assert [block.rail for block in blocks] == [0, 1] and {len(block.t_ns) for block in blocks} == {5}
    assert blocks[0].volts[0] == 3.3 and blocks[0].amperes[0] == 1.5
    assert blocks[1].volts[4] == 12 and blocks[1].amperes[4] == 70
    assert all(b - a == powenetics.PERIOD_NS for a, b in zip(blocks[0].t_ns, blocks[0].t_ns[1:], strict=False))
    assert blocks[0].bound_ns == powenetics.BOUND_NS and not blocks[0].missed


def test_packets_that_are_missing_are_counted_over_the_end_of_their_numbers():
    stream = b"".join(map(packet, (65_534, 65_535, 0, 3, 4, 9, 10)))
    assert [(block.missed, len(block.t_ns)) for block in read(stream) if not block.rail] == [(0, 3), (2, 2), (4, 1)]


def test_a_stream_is_found_again_after_damage():
    whole = b"".join(map(packet, range(8)))
    damaged = b"\x01\xca" + whole[:100] + whole[130:] + packet(8)
    blocks = [block for block in read(damaged) if not block.rail]
    assert sum(len(block.t_ns) for block in blocks) == 7 and sum(block.missed for block in blocks) == 1
    assert {(v, a) for block in blocks for v, a in zip(block.volts, block.amperes, strict=True)} == {(3.3, 1.5)}


@pytest.mark.parametrize("size", [1, 7, 68, 69, 70, 200])
def test_pieces_of_any_size_give_the_same_readings(size):
    whole = b"".join(map(packet, range(21)))
    blocks = [block for block in read(*(whole[at : at + size] for at in range(0, len(whole), size))) if not block.rail]
    assert sum(len(block.t_ns) for block in blocks) == 20 and not any(block.missed for block in blocks)


def test_a_port_that_plays_packets_is_a_meter():
    master, slave = pty.openpty()
    tty.setraw(master)
    ends, sent = threading.Event(), []

    def play():
        sent.append(os.read(master, 16))
        number = 0
        while not ends.wait(0.001):
            os.write(master, packet(number))
            number += 1

    player = threading.Thread(target=play, daemon=True)
    player.start()
    try:
        one = meter.opened(f"powenetics:{os.ttyname(slave)}?V=0.1%+5mV&A=0.5%+20mA")
        assert sent == [powenetics.START]
        assert [rail.name for rail in one.rails()] == ["pcie-slot-3.3V", "pcie-slot-12V"]
        assert one.rails()[0].accuracy.amperes[0].percent == 0.5
        blocks = one.blocks()
        assert next(blocks).volts[0] == 3.3 and next(blocks).amperes[0] == 70
    finally:
        ends.set()
        player.join()
        os.close(master)
    one.close()
    os.close(slave)


@pytest.mark.parametrize("rest", ["", "/dev/x?rails=other", "/dev/x?rails=pcie-1,pcie-1", "/dev/x?V=1%", "/dev/x?Q=1"])
def test_what_is_no_such_url_is_refused(rest):
    with pytest.raises(UsageError):
        powenetics.check(rest)


def test_a_port_without_packets_is_no_meter(tmp_path):
    with pytest.raises(RigError):
        powenetics.opened(str(tmp_path / "none"))
