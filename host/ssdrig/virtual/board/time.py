"""`time` as the RP2 port has it, in device time: ticks_us wraps at 2**30."""

import cosim
import micropython

_PERIOD = 1 << 30
_HALF = 1 << 29


@micropython.native
def ticks_us():
    cosim.spend(3000)
    return cosim.ticks() & (_PERIOD - 1)


def ticks_ms():
    cosim.spend(3000)
    return cosim.ticks() // 1000 & (_PERIOD - 1)


def ticks_add(ticks, delta):
    return (ticks + delta) & (_PERIOD - 1)


@micropython.native
def ticks_diff(end, start):
    return ((end - start + _HALF) & (_PERIOD - 1)) - _HALF


def sleep_us(us):
    until = cosim.now + us * 1000
    while cosim.now < until:
        cosim.spend(min(until - cosim.now, 1_000_000))
        cosim.catch_up()


def sleep_ms(ms):
    sleep_us(ms * 1000)


def sleep(s):
    sleep_us(int(s * 1_000_000))
