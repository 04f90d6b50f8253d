"""Numbers of 32 and 64 bits without a heap object: on the board an integer of 2**30 or more is one.

ticks_us() wraps every 2**30 us (17.9 min). Clock64 extends it to a 64-bit count that never wraps, kept as two small
integers. It starts at the value of ticks_us() when the clock is made, not at 0.
"""

import micropython
from time import ticks_diff, ticks_us


@micropython.viper
def put32(buf: ptr8, at: int, value: int):
    """Four bytes, little endian."""
    buf[at] = value & 255
    buf[at + 1] = (value >> 8) & 255
    buf[at + 2] = (value >> 16) & 255
    buf[at + 3] = (value >> 24) & 255


@micropython.viper
def add(counter: ptr32, n: int):
    """Count on in counter[0], an unsigned integer of 32 bits that wraps."""
    counter[0] = int(counter[0]) + n


@micropython.viper
def put_counter(buf: ptr8, at: int, counter: ptr32):
    """counter[0] as put32 has it."""
    value = int(counter[0])
    for k in range(4):
        buf[at + k] = (value >> (8 * k)) & 255


@micropython.viper
def put_split(buf: ptr8, at: int, high: int, low: int):
    """high * 2**29 + low, modulo 2**32, as put32 has it: neither of the two needs more than 31 bits."""
    value = (high << 29) + low
    for k in range(4):
        buf[at + k] = (value >> (8 * k)) & 255


@micropython.viper
def put_sample(buf: ptr8, at: int, dt_us: int, vbus: int, current: int):
    """The wire's sample: 2, 3 and 3 bytes, little endian."""
    buf[at] = dt_us & 255
    buf[at + 1] = (dt_us >> 8) & 255
    for k in range(3):
        buf[at + 2 + k] = (vbus >> (8 * k)) & 255
        buf[at + 5 + k] = (current >> (8 * k)) & 255


@micropython.viper
def _put_time(buf: ptr8, at: int, wraps: int, ticks: int):
    low = ticks | ((wraps & 3) << 30)
    high = wraps >> 2
    for k in range(4):
        buf[at + k] = (low >> (8 * k)) & 255
        buf[at + 4 + k] = (high >> (8 * k)) & 255


class Clock64:
    """Board time: wraps * 2**30 + ticks, in microseconds, as of the last `update`."""

    def __init__(self):
        self.wraps = 0
        self.ticks = ticks_us()

    def update(self):
        """Call at least every 8 minutes."""
        now = ticks_us()
        if now < self.ticks:
            self.wraps += 1
        self.ticks = now

    def put(self, buf, at, tick):
        """Write the 64-bit time of `tick`, a ticks_us() value at most 8 minutes from now, into buf[at:at+8]."""
        wraps = self.wraps
        if ticks_diff(tick, self.ticks) < 0:
            if tick > self.ticks:
                wraps -= 1
        elif tick < self.ticks:
            wraps += 1
        _put_time(buf, at, wraps, tick)
