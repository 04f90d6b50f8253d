"""Replaces the firmware's registers.py on the SIMULATED board, which has no registers: the same functions."""

import cosim
import machine
import rp2

_M = (1 << 30) - 1


def start(mask, at=-1):
    ticks = cosim.ticks()
    if at < 0:
        ahead = 1
    else:
        ahead = ((at - ticks + (1 << 29)) & _M) - (1 << 29)
        if ahead <= 0:
            return -1
    cosim.now = max(cosim.now, cosim.time_of(ticks + ahead))  # interrupts are off: events due come right after
    for k, one in rp2.StateMachine.machines.items():
        if mask >> k & 1:
            one.start(cosim.now)
    cosim.spend(1000)
    return (ticks + ahead) & _M


def usb_idle():
    cosim.spend(8000)
    return int(cosim.fifo_empty_at <= cosim.now)


_rails = [0]


def remember(rails):
    _rails[0] = rails


def remembered():
    return _rails[0]


def watchdog_off():
    machine.watchdog(0)
