"""Replaces the firmware's adc_ring.py on the SIMULATED board: voltages through their dividers, and currents through
the amplifier of the fast channel, into a 12-bit ADC of 3.3 V with noise of 2 counts rms (some 9 effective bits)."""

from array import array
from random import getrandbits

import cosim
import micropython

SIZE = 8192
FIRST, volts = 1, None
ring = bytearray(2 * SIZE)
inputs = {}  # GPIO -> (Supply, nV of it to a count)
currents = {}  # GPIO -> (Supply, nA to a count, counts of no current)
noise = 2.0
reference_V = 3.3  # the ADC's, which is the board's supply
LIMIT = 3950  # counts above which the fast channel's amplifier does not go
LOOK_ns = 270  # that it takes the firmware to look at a sample (fast.scan, on an emulated RP2040)
_began = None
_how = None
_done = 0  # samples that lie in the ring


def _normal():
    dice = getrandbits(32)
    return ((dice & 255) + (dice >> 8 & 255) + (dice >> 16 & 255) + (dice >> 24) - 510) * 0.006765


_dither = array("h", [int(16 * noise * _normal()) for _ in range(1024)])  # of the fast channel, in 1/16 counts


def start(gpios, rate):
    global _how
    known = [gpio for gpio in gpios if gpio in inputs or gpio in currents]
    if len(known) < len(gpios) or list(gpios) != sorted(set(gpios)) or rate > 500_000:
        raise ValueError("SIMULATED board: no ADC inputs at GPIO %s for %d samples/s" % (list(gpios), rate))
    if len(gpios) > 1 and [gpio for gpio in gpios if gpio in currents]:
        raise ValueError("SIMULATED board: the fast channel has the ADC for itself")
    _how = gpios, 1e9 / rate / cosim.rate
    return again()


def again():
    global _began, _done
    cosim.spend(100_000)
    _began, _done = cosim.now, 0
    return cosim.ticks() & 0x3FFFFFFF


def count():
    cosim.spend(20_000)
    n = int((cosim.now - _began) / _how[1])
    _fill(n)
    return n


def stop():
    n = int((cosim.now - _began) / _how[1])
    _fill(n)
    return n


def _fill(n):
    """The samples before n (all converted by now) that the ring still holds."""
    global _done
    gpios, dt = _how
    first = max(_done, n - SIZE)
    if gpios[0] in currents:
        _fill_current(first, n, dt, *currents[gpios[0]])
    else:
        for k in range(first, n):
            supply, nV_per_count = inputs[gpios[k % len(gpios)]]
            counts = supply.at(_began + int((k + 1) * dt))[1] * 1e9 / nV_per_count * 3.3 / reference_V
            value = min(4095, max(0, int(counts + noise * _normal() + 0.5)))
            at = 2 * (k % SIZE)
            ring[at] = value & 255
            ring[at + 1] = value >> 8
    _done = n


def _fill_current(k, n, dt, supply, nA_per_count, zero):
    """Runs of one current each, at the pace of memory; what a current does within a sample is not seen."""
    if k >= n:
        return
    for end_ns, amps in supply.steps(_began + int((k + 1) * dt), _began + int((n + 1) * dt)):
        upto = min(n, int((end_ns - _began) / dt))  # sample k is complete at (k + 1) dt
        counts = min(LIMIT, max(0.0, zero + amps * 1e9 / nA_per_count * 3.3 / reference_V))
        if upto > k:
            run(ring, k, upto - k, int(16 * counts + 8), _dither, getrandbits(10))
            k = upto
    if k < n:
        run(ring, k, n - k, int(16 * counts + 8), _dither, getrandbits(10))


@micropython.viper
def run(ring: ptr8, first: int, n: int, sixteenths: int, dither: ptr16, place: int):
    for k in range(first, first + n):
        noisy = int(dither[(k + place) & 1023])
        if noisy >= 0x8000:
            noisy -= 0x10000
        value = (sixteenths + noisy) >> 4
        if value < 0:
            value = 0
        if value > 4095:
            value = 4095
        ring[2 * (k & 8191)] = value & 255
        ring[2 * (k & 8191) + 1] = value >> 8


def charge_scan():
    """fast.scan, which touches no registers and so runs here as it is, gets its costs."""
    import fast

    scan = fast.scan

    def timed_scan(p, run, best, ring, n, state):
        scan(p, run, best, ring, n, state)
        cosim.spend(LOOK_ns * n)

    fast.scan = timed_scan
