"""The chip's registers that MicroPython's modules do not reach: start of the PIO by the clock, end of the watchdog,
what USB still has to send.

Addresses are those of the RP2040 and RP2350 data sheets (sections "Address map", "Timer", "PIO", "Watchdog").
"""

import sys

import machine
import micropython
from micropython import const

_RP2350 = "RP2350" in sys.implementation._machine
TIMER = 0x400B0000 if _RP2350 else 0x40054000  # TIMER0 on the RP2350
_USB_PAGE = const(0x14040024)  # address >> 2: a number above 2**30 would be a heap object
# the watchdog's SCRATCH0: a reset by it, or by software, leaves it; the boot ROM and MicroPython use 4 to 7 only
SCRATCH = 0x400D800C if _RP2350 else 0x4005800C
_TRIPPED = const(0x54520000)  # above the rails' bits: a word of ours
PIO0_SET = 0x50202000  # alias of PIO0 that sets the bits written: its first word is CTRL
WATCHDOG_CLEAR = 0x400DB000 if _RP2350 else 0x4005B000  # alias that clears the bits written: its first word is CTRL


@micropython.viper
def _start(timer: ptr32, pio_set: ptr32, mask: int, at: int) -> int:
    """Wait for a tick of the microsecond timer and enable the state machines of `mask` in one write. timer[10] is
    TIMERAWL, which ticks_us() reads; the comparison is cyclic. The end of each wait guards against a timer that has
    stopped still."""
    word = mask | (mask << 8)  # CTRL: SM_ENABLE, CLKDIV_RESTART
    limit = 100000
    if at < 0:
        before = int(timer[10])
        while int(timer[10]) == before and limit > 0:
            limit -= 1
    else:
        if ((int(timer[10]) - at) & 0x3FFFFFFF) < 0x20000000:
            return -1
        while ((int(timer[10]) - at) & 0x3FFFFFFF) >= 0x20000000 and limit > 0:
            limit -= 1
    pio_set[0] = word
    return int(timer[10]) & 0x3FFFFFFF


def start(mask, at=-1):
    """Enable state machines of PIO0, all in the same cycle, at the tick `at` of ticks_us() (at most 1 ms ahead; -1: at
    the next one). Returns the ticks_us() of that moment, right to some 0.2 us; -1 if `at` had passed: nothing is
    started."""
    state = machine.disable_irq()
    tick = _start(TIMER, PIO0_SET, mask, at)
    machine.enable_irq(state)
    return tick


@micropython.viper
def usb_idle() -> int:
    """1 if the USB block has nothing to send on the serial port's endpoint, 2 IN (shared/tinyusb/tusb_config.h): buffer
    control in the DPRAM, AVAILABLE of both halves."""
    control = ptr32(int(_USB_PAGE) << 2)
    return 0 if int(control[0]) & 0x4000400 else 1


def remember(rails):
    """Keep over a reset which rails have tripped; rails: their bits, 0 for none."""
    machine.mem32[SCRATCH] = _TRIPPED | rails


def remembered():
    """The bits of the rails that had tripped before the last reset; 0 after power came on."""
    stored = machine.mem32[SCRATCH]
    return stored & 0xFFFF if stored & 0xFFFF0000 == _TRIPPED else 0


def watchdog_off():
    """What machine.WDT started ends; MicroPython has no way to."""
    machine.mem32[WATCHDOG_CLEAR] = 1 << 30
