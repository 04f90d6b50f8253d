"""A hard interrupt after this many clock cycles, set by viper code: a state machine of PIO1 counts. Its queue is word
TXF of the block at PAGE << 14 (RP2040 data sheet 3.7; RP2350 11.7); a write while it counts takes effect after
it."""

import rp2

PAGE = 0x140C0  # PIO1's address >> 14: a number above 2**30 would be a heap object
TXF = 4  # of the block's first machine, whose number is
_MACHINE = 4


@rp2.asm_pio()
def _count():
    wrap_target()
    pull()
    mov(x, osr)
    label("wait")
    jmp(x_dec, "wait")
    irq(rel(0))
    wrap()


def start(handler):
    """From now on handler(machine) is called, hard, once for each count that was written, some 4 cycles after it."""
    machine = rp2.StateMachine(_MACHINE, _count)
    machine.irq(handler, hard=True)
    machine.active(1)
