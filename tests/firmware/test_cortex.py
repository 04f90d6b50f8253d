"""The firmware's viper code as machine code of ARMv7-M, compiled by MicroPython on an emulated Cortex-M3: what the
RP2350 runs, and the RP2040 does not. Its peripherals are words in memory here, so registers stand still; the same
numbers of chance go through the very source on CPython."""

import types

import cortex
import pytest
import vipersource

FILES = ("clock64", "lane", "link", "protect", "ramp", "i2c_fifo", "spi_lane", "ranges")
VECTORS = vipersource.FIRMWARE.parent / "tests/micropython/viper_vectors.py"
OPEN, DISCHARGE, SHORTEST = 1, 3, 4  # of pulse.py, whose programs are assembler
BLOCKS = 4
WORDS = 32  # of a block that are used

# What the files import and the machine does not have, or viper code does not need
ON_BOARD = f"""
import sys, machine
class Fake:
    def __getattr__(self, name): return None
for name in ("select", "registers", "wire", "oneshot", "ina228", "switch", "board", "bypass", "sampler"):
    sys.modules[name] = Fake()
sys.modules["time"] = time = Fake()
pulse = sys.modules["pulse"] = Fake()
pulse.OPEN, pulse.DISCHARGE, pulse.SHORTEST = {OPEN}, {DISCHARGE}, {SHORTEST}
sys.modules["sampler"].Sampler = object
pulse.word = lambda pins, cycles: pins | (cycles - {SHORTEST}) << 2
sys.modules["oneshot"].PAGE = {cortex.FIRST_BLOCK + 3 * 0x4000 >> 14}
sys.modules["oneshot"].start = lambda handler: None
files = {{}}
def load(name, source):
    names = {{"__name__": name}}
    exec(source, names)
    module = files[name] = sys.modules[name] = Fake()
    for key in names: setattr(module, key, names[key])
class Block:
    def __init__(self, page): self.page = page
    def __getitem__(self, word): return machine.mem32[(self.page << 14) + 4 * word]
    def __setitem__(self, word, value): machine.mem32[(self.page << 14) + 4 * word] = value
    def words(self): return [self[n] for n in range({WORDS})]
    def clear(self):
        for n in range({WORDS}): self[n] = 0
"""


class Block(list):
    """Registers that stand still, on CPython."""

    def __init__(self, page):
        super().__init__([0] * WORDS)
        self.page = page

    def words(self):
        return [word & 0xFFFFFFFF for word in self]

    def clear(self):
        self[:] = [0] * WORDS


def expected():
    """The lines of the vectors on CPython."""
    blocks = [Block((cortex.FIRST_BLOCK >> 14) + n) for n in range(BLOCKS)]
    fake = lambda **names: types.SimpleNamespace(**names)
    fakes = {
        "machine": fake(freq=lambda: 125_000_000),
        "oneshot": fake(PAGE=blocks[3].page, start=lambda handler: None),
        "pulse": fake(OPEN=OPEN, DISCHARGE=DISCHARGE, SHORTEST=SHORTEST, word=lambda p, n: p | (n - SHORTEST) << 2),
        "registers": fake(usb_idle=None),
        "wire": fake(),
        **{"ina228": fake(SensorError=None), "switch": fake(IDLE=None), "bypass": fake(Bypass=None)},
        "sampler": fake(Sampler=object),
        "time": fake(ticks_us=None, ticks_diff=None, ticks_add=None),
        "sys": fake(implementation=fake(_machine="")),
    }
    fakes["readback"] = vipersource.load("readback", {}, fakes)
    known = {block.page << 14: block for block in blocks}
    for name in FILES:
        fakes[name] = vipersource.load(name, known, fakes)
    names = {}
    exec(VECTORS.read_text(), names)
    return [repr(line) for line in names["lines"]({name: fakes[name] for name in FILES}, blocks)]


@pytest.fixture(scope="module")
def board():
    if why := cortex.missing():
        pytest.skip(why)
    with cortex.Cortex() as board:
        board.run(ON_BOARD)
        for name in ("fits", "readback", *FILES):
            source = (vipersource.FIRMWARE / f"{name}.py").read_text()  # its machine has no freq
            source = source.replace("from machine import freq\n", "freq = lambda: 125_000_000\n")
            board.run(f"load({name!r}, {source!r})")
        board.run(VECTORS.read_text())
        yield board


def test_the_same_numbers_come_out(board):
    blocks = f"[Block({cortex.FIRST_BLOCK >> 14} + n) for n in range({BLOCKS})]"
    seen = board.run(f"for line in lines(files, {blocks}): print(repr(line))").splitlines()
    right = expected()
    assert len(right) > 1200 and len(seen) == len(right)
    assert [pair for pair in zip(seen, right) if pair[0] != pair[1]][:3] == []


def test_it_is_machine_code_of_armv7m(board):
    assert board.run("import sys;print(sys.implementation._machine)").strip() == f"{cortex.MACHINE} with Cortex-M3"


def test_another_comparison_is_felt(board):
    source = (vipersource.FIRMWARE / "lane.py").read_text()
    code = "print([repr(line) for line in of_drain(files['lane'], Chance(3))])"
    before = board.run(code)
    board.run(f"load('lane', {source.replace('gap > widest', 'gap >= widest')!r})")
    assert board.run(code) != before
