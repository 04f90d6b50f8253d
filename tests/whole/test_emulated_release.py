"""The image of a release, with the firmware frozen in, on an emulated Pico whose file system is empty: it measures as
soon as it is plugged in."""

import json
import struct

import emulated
import pytest

from ssdrig import __version__
from ssdrig.meter import wire

pytestmark = pytest.mark.slow

IMAGE = emulated.SETUP / "ssdrig-pico.uf2"


@pytest.fixture(scope="module")
def frames():
    """What the board sends after it was plugged in, a hello was asked for and 200 samples were taken."""
    if not IMAGE.exists():
        pytest.skip(f"no {IMAGE.name}: ./ssdrig setup --emulator forky builds it")
    if why := emulated.missing():
        pytest.skip(why)
    with emulated.Emulated(frozen=IMAGE) as board:
        board.send(wire.ASK_HELLO)
        board.listen(lambda: board.bodies(wire.HELLO))
        hello = json.loads(board.bodies(wire.HELLO)[0])
        if hello["firmware"] != __version__:
            pytest.skip(f"{IMAGE.name} is of {hello['firmware']}: ./ssdrig setup --emulator forky builds it again")
        board.send(wire.GO)
        board.listen(lambda: sum(body[2] for body in board.bodies(wire.SAMPLES)) >= 200)
        return board.frames


def test_frozen_firmware_names_its_board(frames):
    hello = json.loads(emulated.bodies(frames, wire.HELLO)[0])
    assert (hello["board"], hello["rails"][0]["chip"]) == ("Raspberry Pi Pico with RP2040", "INA228")


def test_frozen_firmware_loses_no_sample(frames):
    samples = emulated.samples(frames)
    assert [index for index, *_ in samples] == list(range(len(samples)))
    assert {(vbus, current) for _, _, vbus, current in samples} <= {emulated.values(n) for n in range(2 * len(samples))}
    assert emulated.missed(frames) == 0


def test_image_lies_below_the_file_system():
    """A Pico's file system is the last 1408 KiB of its 2 MiB: an image that reaches into it is erased at the first
    start (ports/rp2/boards/RPI_PICO of MicroPython)."""
    if not IMAGE.exists():
        pytest.skip(f"no {IMAGE.name}: ./ssdrig setup --emulator forky builds it")
    blocks = [block for (block,) in struct.iter_unpack("512s", IMAGE.read_bytes())]
    ends = [sum(struct.unpack_from("<II", block, 12)) - 0x1000_0000 for block in blocks]
    assert 300_000 < max(ends) <= (2048 - 1408) << 10
