"""Runs on a Cortex-M (tests/firmware/test_cortex.py) and on CPython: the firmware's viper functions on numbers of
chance. What they leave in registers and memory goes into lines that must be the same on both."""

import binascii
from array import array


class Chance:
    """The same numbers on every machine."""

    def __init__(self, seed):
        self.seed = seed

    def __call__(self, n):
        self.seed = self.seed * 1103515245 + 12345 & 0x7FFFFFFF
        return (self.seed >> 8) % n


def crc(*buffers):
    return ["%08x" % (binascii.crc32(bytes(b)) & 0xFFFFFFFF) for b in buffers]


def of_link(link, chance):
    for n in (0, 1, 2, 5, 253, 254, 255, 256, 509, 600):
        src = bytearray([chance(256) * (chance(4) > 0) for _ in range(n + 4)])
        link.put_crc(src, n)
        right = link.crc_fits(src, n)
        src[chance(n + 4)] ^= 1 << chance(8)
        ring = bytearray(8192)
        head = chance(8192)
        size = link.stuff(src, n + 4, ring, head)
        line = bytearray([ring[head + k & 8191] for k in range(size - 1)])
        length = link.unstuff(line, size - 1)
        yield "link", n, right, link.crc_fits(src, n), size, length, line[:length] == src, crc(src, ring)
        line[chance(size - 1)] ^= 1 << chance(8)
        yield link.unstuff(line, size - 1), crc(line)


def of_clock(clock64, chance):
    buf, counter = bytearray(80), array("I", [0])
    for _ in range(40):
        clock64.put32(buf, 0, chance(1 << 23) << 8)
        clock64.put_split(buf, 4, chance(1 << 23), chance(1 << 20) << 9)
        clock64.put_sample(buf, 8, chance(65536), chance(1 << 20), chance(1 << 22) << 2)
        clock64._put_time(buf, 16, chance(1 << 23) << 7, chance(1 << 23) << 7)
        clock64.add(counter, chance(1 << 20))
        clock64.put_counter(buf, 24, counter)
        yield "clock64", crc(buf)


def of_drain(lane, chance):
    """Rings of both widths: most slots plain, some torn, late, at once, with a flag or a bit that must not be."""
    at, ring, n = 3, 40, 16
    for turn in range(120):
        mem = array("i", [0] * (ring + 8 * n))
        wide = chance(2)
        tail = chance(65536)
        filled = chance(n + 1)
        care, ready = (0xC102, 0xC002) if wide else (0x408, 0x408)
        words = [(tail + filled) & 0xFFFF, tail, 0, 1, 0, 0, ring, n - 1, 20 if wide else 16, care, ready]
        mem[at : at + 11] = array("i", words)
        mem[at + 13] = chance(2) * 0xFFFFFF or chance(1 << 18)
        mem[at + 14] = chance(2) * 0xFFFFFF or chance(1 << 18)
        last = stamp = chance(1 << 22) << 8
        for k in range(filled):
            slot = ring + 8 * (tail + k & n - 1)
            stamp = (
                stamp + (0, 1, 100, 200, 249, 250, 251, chance(300))[1 + chance(7) if chance(10) else 0] & 0x3FFFFFFF
            )
            flags = ready | chance(8) * 4 & ~care if chance(12) else chance(65536)
            current, vbus = (chance(1 << 20), chance(1 << 20)) if chance(8) else (0, chance(2))
            if wide:
                a = current << 4 | (0 if chance(15) else chance(16))
                b, c = flags << 8 | vbus >> 12, (vbus & 0xFFF) << 12 | (0 if chance(15) else 0x100)
            else:
                a, b, c = flags << 8 | current >> 12, (current >> 4 & 255) << 16 | vbus >> 4, 0
            mem[slot : slot + 6] = array("i", [1 if chance(15) else 5, stamp, 0, a, b, c])
        frame = bytearray(8 * n + 8)
        moved = lane.drain(mem, at, frame, chance(8), last, 250, 1 + chance(n), int(not chance(8)))
        yield "drain", moved, crc(frame, mem)


def of_look(protect, chance):
    state, frame = array("i", [0] * 8), bytearray(400)
    for _ in range(60):
        if not chance(4):
            state[0], state[1], state[2] = chance(1 << 19), chance(1 << 19), chance(2000)
        for k in range(400):
            frame[k] = chance(256) if k & 7 not in (4, 7) else chance(8) if k & 7 == 4 else (0, 3, 5, 255)[chance(4)]
        if not chance(3):  # above A for long
            for k in range(0, 400, 8):
                frame[k + 2 : k + 8] = bytes((0, 0, 0, 0, 0, 4))
            state[0], state[1] = 9, 1 << 20
        yield "look", protect.look(state, frame, 0, 50, chance(1 << 22) << 8), crc(state)


def of_ramp(ramp, chance):
    for _ in range(20):
        tau = 16 + chance(4000)
        yield "ramp", crc(ramp.words(tau * (3 + chance(400)), tau, (50, 5000)[chance(2)], 125))


def of_i2c(i2c_fifo, lanes, blocks, chance):
    """Edges, the alarm and the main loop in any order, on registers that stand still: each state they can be in."""
    block, timer, sio, alarm = blocks
    pages = [b.page for b in blocks]
    mem = array("i", [0] * (i2c_fifo.ROOM[0] + i2c_fifo.ROOM[1] * lanes))
    bus = i2c_fifo.Bus(lambda Hz: None, None, pages[0], [(0x40 + n, 6 + n) for n in range(lanes)], 1_096_000, mem)
    mem[10], mem[6] = pages[1], pages[2]
    if lanes > 1:
        mem[12] = pages[3]
    for lane in bus.lanes:
        lane.script(1, ((7, 3), (11, 2), (5, 3)))
        lane.script(2, ((10, 5), (9, 5), (6, 2)))
        lane.beside(160, 200, 540, 970)
        lane.restart(100 + 100 * chance(4))
    now = 0x3FFFFF00  # of a timer of 32 bits, which passes 2**30
    for turn in range(240):
        now += chance(90)
        timer[10], sio[1] = now, chance(4096) & chance(4096)
        block[0x78 >> 2], block[0x70 >> 2], block[0x34 >> 2] = (0, 5, 8, 12)[chance(4)], 32 * (chance(3) == 0), 0
        block[0x10 >> 2] = chance(256)
        if not chance(25):
            block[0x78 >> 2], block[0x34 >> 2] = 0, 1 << 6
        what, result = chance(8), None
        lane = bus.lanes[chance(lanes)]
        if what < 3:
            result = i2c_fifo.edge(mem, lane.number)
            if result:
                result = i2c_fifo.step(mem)
        elif what < 5:
            mem[13] = 0
            result = i2c_fifo.step(mem)
        elif what == 5:
            mem[0] = (0, 0, 1, 2)[chance(4)]
        elif what == 6:
            lane.ask()
        else:
            while mem[lane.base + 1] != mem[lane.base]:
                lane.done()
        if not chance(60):
            i2c_fifo.halt(mem)
        yield "i2c", lanes, what, result, mem[1], mem[2], crc(mem), [b.words() for b in blocks]


def of_spi(spi_lane, blocks, chance):
    block, timer, sio, _ = blocks
    mem = array("i", [0] * (spi_lane.ROOM[0] + 2 * spi_lane.ROOM[1]))
    bus = spi_lane.Bus(lambda: None, block.page, ((1, 6), (5, 7)), mem)
    mem[2], mem[3] = timer.page, sio.page
    for lane in bus.lanes:
        lane.script(1, ((7, 3), (11, 2), (5, 3)))
        lane.script(2, ((10, 5), (9, 5), (6, 2)))
        lane.restart(20)
    now = 0x3FFFFF00
    for turn in range(250):
        now += chance(60)
        timer[10], sio[1], block[3] = now, chance(256) & chance(256) & chance(256), 4 + 16 * (chance(40) == 0)
        lane, what = bus.lanes[chance(2)], chance(8)
        if what < 4:
            spi_lane.edge(mem, lane.base, 0)
        elif what == 4:
            mem[0] = chance(2)
        elif what == 5:
            mem[0] = 1
            spi_lane.edge(mem, lane.base, 1)
        elif what == 6:
            lane.ask()
        else:
            mem[lane.base + 1] = mem[lane.base] - chance(300) & 0xFFFF
        buf = bytearray([chance(256) for _ in range(5)])
        result = spi_lane.exchange(mem, lane.base, chance(128) << 1 | chance(2), buf, 2 + chance(4))
        yield "spi", what, result, crc(mem, buf), [b.words() for b in blocks]


def of_ranges(ranges, blocks, chance):
    """Edges of a rail with two ranges, its lines and counts at any value; rings and frames of any content."""
    ages, counts, sio, _ = blocks
    at, ring, n = 20, 100, 16
    mem, words, frame = array("i", [0] * (ring + 8 * n)), array("i", [0] * 14), bytearray(400)
    mem[6] = sio.page
    mem[at + 6], mem[at + 7] = ring, n - 1
    mem[at + 17], mem[at + 18], mem[at + 19], mem[at + 20] = ages.page, 20, 21, 1049
    words[2:5] = array("i", [8, 4, 64])
    words[8:14] = array("i", [counts.page, 22, 23, 437, 3_000_000, 65_400])  # edges that soon wrap
    for turn in range(300):
        sio[1] = (0, 12, 12, chance(4) << 2)[turn // 4 & 3] + 64 * (chance(8) == 0)  # closed, open, any
        ages[21] = -1 - (chance(4000) if chance(9) else chance(1 << 22))
        counts[23] = 3_000_000 - chance(20_000) if chance(9) else -1
        if not chance(9):
            words[7] = 1
        ranges.mark(words, mem, at)
        tail = chance(65536)
        mem[at], mem[at + 1] = (tail + chance(n + 1)) & 0xFFFF, tail
        for k in range(n):
            mem[ring + 8 * k + 2] = chance(12) // 4
        for k in range(400):
            frame[k] = chance(256) if k & 7 != 7 else (0, 255)[chance(2)]
        words[0] = chance(65536)
        waiting = ranges.stretch(mem, at, chance(3))
        yield "ranges", waiting, ranges.rested(words, frame, 0, 1 + chance(50)), crc(mem, words), mem[at + 65]


def lines(files, blocks):
    """files: modules by name; blocks: four with `page` (address >> 14), words by index, and words()."""
    yield from of_link(files["link"], Chance(1))
    yield from of_clock(files["clock64"], Chance(2))
    yield from of_drain(files["lane"], Chance(3))
    yield from of_look(files["protect"], Chance(4))
    yield from of_ramp(files["ramp"], Chance(5))
    for lanes in (1, 2, 4):
        for block in blocks:
            block.clear()
        yield from of_i2c(files["i2c_fifo"], lanes, blocks, Chance(6 + lanes))
    for block in blocks:
        block.clear()
    yield from of_spi(files["spi_lane"], blocks, Chance(20))
    yield from of_ranges(files["ranges"], blocks, Chance(21))
