"""Replaces the firmware's oneshot.py on the SIMULATED board, where there is no PIO1: an alarm of device time. The
same names."""

import addresses
import cosim
import machine

PAGE, TXF = 0x140C0, 4


class _Queue:
    """The block's registers."""

    def __init__(self, handler):
        self.handler = handler
        self.alarm = cosim.add_alarm(self.ring)

    def __setitem__(self, word, cycles):
        if word != TXF or cycles <= 0:
            raise ValueError("SIMULATED PIO1: %d to word %d" % (cycles, word))
        if self.alarm[0] != cosim.NEVER:
            raise ValueError("SIMULATED PIO1: a second count would come late")
        cosim.set_alarm(self.alarm, cosim.now + (cycles + 4) * 1_000_000_000 // machine.freq())

    def ring(self):
        machine.interrupt(self)


def start(handler):
    addresses.known[PAGE << 14] = _Queue(handler)
