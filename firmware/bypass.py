"""The bypass across a rail's low-range resistor, let go and held by a state machine of PIO2. RP2350 only.

A comparator closes the bypass without us (hardware/frontend). The machine holds it from that moment on, in two cycles,
and counts for how long, until the firmware lets go. Reset, REPL and a rig that does not stream leave `release` low: the
bypass is closed. An instruction written into the machine's INSTR register is executed immediately (alert_age.py): the
interrupt of i2c_fifo.py so asks when the bypass has closed. Registers: RP2350 data sheet 11.7."""

import sys

import rp2
from machine import Pin, freq

PAGE = 0x14100  # PIO2's address >> 14
MOST = 3_000_000  # counts, of a cycle each: 20 ms
_MACHINES = 10, 11  # sar_ring.py has 8 and 9
_INSTR, _RXF = 0xD8, 0x20  # of the block's first machine; each next one's follow after 0x18 and 4 bytes
_rails = []  # that have a machine


@rp2.asm_pio(set_init=rp2.PIO.OUT_LOW, autopush=True, push_thresh=32)
def _bypass():
    wrap_target()
    pull(block)
    set(pins, 1)
    wait(1, pin, 0)  # open
    wait(0, pin, 0)  # closed
    set(pins, 0)
    mov(x, osr)
    label("count")
    jmp(x_dec, "count")
    wrap()


_HOLD = rp2.asm_pio_encode("set(pins, 0)", 0)


class Bypass:
    """The bypass of the rail whose row of board.RAILS is `rail`. ValueError on an RP2040, or for a third rail."""

    def __init__(self, rail):
        if "RP2350" not in sys.implementation._machine or len(_rails) == len(_MACHINES):
            raise ValueError("rail %d: a low range wants an RP2350, at most two do" % rail["rail"])
        number = _MACHINES[len(_rails)]
        _rails.append(rail["rail"])
        low = rail["low"]
        self.release, self.state = Pin(low["release"], Pin.OUT, value=0), Pin(low["state"], Pin.IN, Pin.PULL_DOWN)
        self.bits = 1 << low["release"], 1 << low["state"]
        self.machine = rp2.StateMachine(number, _bypass, set_base=self.release, in_base=self.state)
        self.machine.active(1)
        n = number - 8
        MHz = freq() // 1_000_000
        # as alert_age.count, and the count at the moment of closing
        self.counter = PAGE, (_INSTR + 0x18 * n) >> 2, (_RXF + 4 * n) >> 2, ((1 << 16) + MHz // 2) // MHz, MOST

    def is_open(self):
        return self.state.value()

    def is_free(self):
        """Is it let go?"""
        return self.release.value()

    def let_go(self):
        self.machine.put(MOST)

    def hold(self):
        self.machine.exec(_HOLD)
        self.machine.restart()
