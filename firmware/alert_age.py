"""How long an ALERT line has been low: a state machine of PIO1 counts it, so a stamp does not depend on when the
interrupt comes.

The machine waits until its line falls and counts once in two cycles until it is high again. An instruction that is
written into its INSTR register is executed immediately, in place of its next one (RP2040 data sheet 3.5.7): the
interrupt (i2c_fifo.py, spi_lane.py) makes it push the count, and its stamp is the timer less that. Registers: RP2040
data sheet 3.7, RP2350 data sheet 11.7 (the same). Machine 4 is oneshot.py's, which leaves three lines; a fourth one's
interrupt stamps on its own."""

import rp2
from machine import freq

PAGE = 0x140C0  # PIO1's address >> 14: a number above 2**30 would be a heap object
_FREE = 5, 6, 7
_INSTR, _RXF = 0xD8, 0x20  # of the block's first machine; each next one's follow after 0x18 and 4 bytes

_machines = {}  # GPIO -> the machine: once for all rigs that a session makes


@rp2.asm_pio(autopush=True, push_thresh=32)
def _age():
    wrap_target()
    label("high")
    wait(1, pin, 0)
    mov(x, invert(null))
    wait(0, pin, 0)
    label("low")
    jmp(pin, "high")
    jmp(x_dec, "low")
    wrap()


def count(gpio, pin):
    """Where the age of this line is read from now on: (the block's page, its word that takes an instruction, its word
    that gives the count, microseconds * 2**16 of a count). None: no machine is free."""
    if gpio not in _machines:
        if len(_machines) == len(_FREE):
            return None
        machine = rp2.StateMachine(_FREE[len(_machines)], _age, in_base=pin, jmp_pin=pin)
        machine.active(1)
        _machines[gpio] = len(_machines), machine
    number = _FREE[_machines[gpio][0]] - 4
    MHz = freq() // 1_000_000
    return PAGE, (_INSTR + 0x18 * number) >> 2, (_RXF + 4 * number) >> 2, ((2 << 16) + MHz // 2) // MHz
