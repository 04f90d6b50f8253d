"""ticks_us() wraps every 2**30 us (17.9 min). Clock64 extends it to a 64-bit count that never wraps.

The count is kept as two small integers (wraps, ticks), because a number above 2**30 is a heap object on the board.
It starts at the value of ticks_us() when the clock is made, not at 0.
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
def _put_time(buf: ptr8, at: int, wraps: int, ticks: int):
    low = ticks | ((wraps & 3) << 30)
    high = wraps >> 2
    for k in range(4):
        buf[at + k] = (low >> (8 * k)) & 255
        buf[at + 4 + k] = (high >> (8 * k)) & 255


class Clock64:
    def __init__(self):
        self.wraps = 0
        self.ticks = ticks_us()

    def update(self):
        """To be called at least every 8 minutes."""
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
