"""Stands for the firmware's adc_ring.py on the SIMULATED board: the rail's voltage through its divider and a 12-bit ADC
with noise of 2 counts rms (some 9 effective bits) and full scale 3.3 V."""

from random import getrandbits

import cosim

SIZE = 8192
ring = bytearray(2 * SIZE)
inputs = {}  # GPIO -> (Supply, nV of it to a count)
noise = 2.0
reference_V = 3.3  # the ADC's, which is the board's supply
_began = None


def start(gpios, rate):
    global _began
    if [gpio for gpio in gpios if gpio not in inputs] or list(gpios) != sorted(set(gpios)) or rate > 500_000:
        raise ValueError("SIMULATED board: no ADC inputs at GPIO %s for %d samples/s" % (list(gpios), rate))
    cosim.spend(100_000)
    _began = (cosim.now, gpios, 1e9 / rate / cosim.rate)
    return cosim.ticks() & 0x3FFFFFFF


def stop():
    global _began
    began, gpios, dt = _began
    _began = None
    n = int((cosim.now - began) / dt)
    for k in range(max(0, n - SIZE), n):
        supply, nV_per_count = inputs[gpios[k % len(gpios)]]
        dice = getrandbits(32)
        normal = ((dice & 255) + (dice >> 8 & 255) + (dice >> 16 & 255) + (dice >> 24) - 510) * 0.006765
        counts = supply.at(began + int((k + 1) * dt))[1] * 1e9 / nV_per_count * 3.3 / reference_V
        value = min(4095, max(0, int(counts + noise * normal + 0.5)))
        at = 2 * (k % SIZE)
        ring[at] = value & 255
        ring[at + 1] = value >> 8
    return n
