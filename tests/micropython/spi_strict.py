"""Runs under MicroPython: misuse of the SIMULATED SPI block, one line for each with what it says.

micropython spi_strict.py FIRMWARE STAND_INS
"""

import usys

usys.path[:] = [usys.argv[1], usys.argv[2], ".frozen"]

import addresses
import cosim
import spi_block
from ina229_model import INA229
from machine import SPI, Pin

SPI0, SIO = 0x4003C000, 0xD0000000
DR, SR, SET, CLR = 0x08 >> 2, 0x0C >> 2, 0x14 >> 2, 0x18 >> 2
cosim.begin(10**9, 0, 0)


def make(baudrate=10_000_000, phase=1, firstbit=SPI.MSB, miso=0):
    return SPI(
        0, baudrate=baudrate, polarity=0, phase=phase, sck=Pin(2), mosi=Pin(3), miso=Pin(miso), firstbit=firstbit
    )


def fresh():
    """(block, SIO) with chips at chip selects 1 and 5, as after make()."""
    spi_block.chips.clear()
    spi_block.sio.__init__()
    for cs in (1, 5):
        chip = spi_block.chips[cs] = INA229(lambda *t: (0, 0), cosim.now)
        chip.alarm = None
        Pin(cs, Pin.OUT, value=1)
    make()
    return addresses.ptr32(SPI0), addresses.ptr32(SIO)


def a_frame():
    block, sio = fresh()
    sio[CLR] = 1 << 1
    began = cosim.now
    for byte in (0x3E << 2 | 1, 0, 0):
        block[DR] = byte
    got = []
    while len(got) < 3:
        if block[SR] & 4:
            got.append(block[DR])
    took = block.sending or spi_block.blocks[0].busy_until - spi_block.blocks[0].byte_ns // 16 - began - 160
    while block[SR] & 16:
        pass
    sio[SET] = 1 << 1
    return "%s in %d ns" % (got, took)


def select_no_output():
    fresh()[1][CLR] = 1 << 2


def not_selected():
    block, _ = fresh()
    block[DR] = 0
    cosim.spend(10_000)
    block[SR]


def read_empty():
    fresh()[0][DR]


def two_selected():
    sio = fresh()[1]
    sio[CLR] = 1 << 1
    sio[CLR] = 1 << 5


def rises_early():
    block, sio = fresh()
    sio[CLR] = 1 << 1
    block[DR] = 0
    sio[SET] = 1 << 1


def off():
    fresh()
    spi_block.blocks[0].byte_ns = 0
    addresses.ptr32(SPI0)[DR] = 0


def another_register():
    fresh()[0][0x10 >> 2] = 2


def lenient(byte, t):
    return 0


def many(n, pause_ns):
    """Bytes that nobody reads."""
    block, sio = fresh()
    spi_block.chips[1].exchange = lenient  # the chip itself would refuse so long a frame
    sio[CLR] = 1 << 1
    for _ in range(n):
        block[DR] = 0
        cosim.spend(pause_ns)
    block[SR]


print("10 MHz:", spi_block.sck_Hz(10_000_000))
print("1 MHz:", spi_block.sck_Hz(1_000_000))
for name, misuse in (
    ("a frame", a_frame),
    ("mode 0", lambda: make(phase=0)),
    ("least significant bit first", lambda: make(firstbit=SPI.LSB)),
    ("too fast", lambda: make(baudrate=16_000_000)),
    ("pins", lambda: make(miso=1)),
    ("chip select begins low", lambda: (fresh(), Pin(1, Pin.OUT, value=0))),
    ("chip select no output", select_no_output),
    ("TX overflow", lambda: many(12, 0)),
    ("RX overflow", lambda: many(9, 2000)),
    ("RX empty", read_empty),
    ("no chip selected", not_selected),
    ("two chips selected", two_selected),
    ("select rises while busy", rises_early),
    ("off", off),
    ("another register", another_register),
    ("nothing there", lambda: addresses.ptr32(0x50000000)),
):
    try:
        print(name + ":", misuse())
    except (ValueError, IndexError) as why:
        print(name + ":", why)
