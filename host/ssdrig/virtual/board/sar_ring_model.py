"""Replaces the firmware's sar_ring.py on the SIMULATED board: a rail's voltage and current, sampled in the same moment
each 4 us, by two 12-bit converters with a noise of 0.4 counts rms (70 dB) and the non-linearity that they are made
with. The same names."""

from array import array
from random import getrandbits

import adc_ring_model
import cosim

SIZE, FIRST = adc_ring_model.SIZE, 0
RATE = 250_000
HOLD_ns = 1760  # from the start to the first sample
ring, volts = bytearray(2 * SIZE), bytearray(2 * SIZE)
noise = 0.4
pairs = {}  # (GPIO of the voltage's converter, of the current's) -> (Supply, nV to a count, nA to a count, zeros)
_began = None
_how = None
_done = 0

_dither = array("h", [int(16 * noise * adc_ring_model._normal()) for _ in range(1024)])  # in 1/16 counts


def start(row):
    global _how
    pair = row["volts"], row["gpio"]
    if pair not in pairs:
        raise ValueError("SIMULATED board: no converters at GPIO %d and %d" % pair)
    _how = pairs[pair], 1e9 / RATE / cosim.rate
    return again()


def again():
    global _began, _done
    cosim.spend(100_000)
    _began, _done = cosim.now, 0
    return cosim.ticks() & 0x3FFFFFFF


def _taken():
    return max(0, int((cosim.now - _began - HOLD_ns) / _how[1]))


def count():
    cosim.spend(20_000)
    n = _taken()
    _fill(n)
    return n


def stop():
    n = _taken()
    _fill(n)
    return n


def _fill(n):
    """The samples before n (all converted by now) that the rings still hold: runs of one current each."""
    global _done
    (supply, nV, nA, zero_V, zero_A), dt = _how
    k = max(_done, n - SIZE)
    if k < n:
        first_ns = _began + HOLD_ns
        for end_ns, amps in supply.steps(first_ns + int(k * dt), first_ns + int(n * dt)):
            upto = min(n, int((end_ns - first_ns) / dt) + 1)  # sample k is taken at k dt
            if upto > k:
                _run(k, upto, supply, amps, first_ns + int((k + upto) * dt / 2))
                k = upto
        if k < n:
            _run(k, n, supply, amps, first_ns + int((n - 1) * dt))
    _done = n


def _run(k, upto, supply, amps, middle_ns):
    (_, nV, nA, zero_V, zero_A), _ = _how
    of_A = min(adc_ring_model.LIMIT, max(0.0, zero_A + amps * 1e9 / nA))
    of_V = min(4095, max(0.0, zero_V + supply.at(middle_ns)[1] * 1e9 / nV))
    for of, counts in ((ring, of_A), (volts, of_V)):
        adc_ring_model.run(of, k, upto - k, int(16 * counts + 8), _dither, getrandbits(10))
