"""The steps of a ramp: pulses of the discharge switch that let a rail fall evenly instead of as exp(-t / R C).

Each pulse of the length w = -R C ln(1 - f) takes the fraction f of the voltage; the line from all to nothing in T has
fallen by the same fraction f after f of the time that is left to it. So pulse k ends when (1 - f)^k T is left, and the
gaps shrink like the voltage, down to none when R C is left: from there on, at R C / T of the voltage, the switch stays
closed.

That is the rail of a capacitor C with nothing else on it. What the drive draws makes it fall faster, another
capacitance C' bends the line to (1 - t / T)^(C / C'). Nothing is measured on the way: the report shows the result of
it."""

from array import array

import micropython
from micropython import const
from pulse import DISCHARGE, OPEN, SHORTEST, word

# of pulse and gap: the gate of the discharge switch needs 1.2 us to close it, 0.9 us to open it
# (hardware/spice/ramp.cir)
SHORTEST_us = const(2)
LEAST_us = const(16)  # R C: eight pulses of that length
FASTEST, SLOWEST = const(3), const(1000)  # T in units of R C; the crowbar alone takes 2.2 from 90 to 10 %
_MOST = const(450)  # words: 2 ln(SLOWEST) / -ln(1 - 1 / 32) and some


@micropython.viper
def _fill(words: ptr32, left: int, tau: int, width: int, bits: int, gap: int, least: int) -> int:
    """Words of the pulses; how many. All lengths in cycles; 2**-bits is f, gap the shortest of the first one."""
    n = 0
    most = int(_MOST) - 2
    while n < most and left > tau:
        period = left >> bits
        left -= period
        period -= width
        if n == 0:
            if period < gap:
                period = gap
        elif period < least:
            return n
        words[n] = (period - int(SHORTEST)) << 2 | int(OPEN)
        words[n + 1] = (width - int(SHORTEST)) << 2 | int(DISCHARGE)
        n += 2
    return n


def words(fall_us, tau_us, dead_us, per_us):
    """Steps for pulse.py: array("I"), the last of them closes the discharge switch for good. fall_us: T, FASTEST to
    SLOWEST times tau_us, which is R C and at least LEAST_us; dead_us: series switch off -> discharge switch on; per_us:
    cycles."""
    bits = 3
    while bits < 5 and tau_us >> bits >= 2 * SHORTEST_us:
        bits += 1
    tau = tau_us * per_us
    width = (tau >> bits) + (tau >> 2 * bits + 1) + tau // (3 << 3 * bits)  # -ln(1 - f) = f + f^2 / 2 + f^3 / 3 + ...
    steps = array("I", bytearray(4 * _MOST))
    n = _fill(steps, fall_us * per_us, tau, width, bits, dead_us * per_us, SHORTEST_us * per_us)
    steps[n] = word(DISCHARGE, SHORTEST)
    return steps[: n + 1]
