"""Stands for the firmware's adc_ring.py on the SIMULATED board: the rail's voltage through its divider and a 12-bit ADC with noise
of 2 counts rms (some 9 effective bits) and full scale 3.3 V."""

from random import getrandbits

import cosim

SIZE = 8192
ring = bytearray(2 * SIZE)
inputs = {}  # GPIO -> (Supply, division)
noise = 2.0
_began = None


def start(gpio, rate):
    global _began
    if gpio not in inputs or rate > 500_000:
        raise ValueError("SIMULATED board: no ADC input at GPIO %d for %d samples/s" % (gpio, rate))
    cosim.spend(100_000)
    _began = (cosim.now, gpio, 1e9 / rate / cosim.rate)


def stop():
    global _began
    began, gpio, dt = _began
    _began = None
    supply, division = inputs[gpio]
    n = int((cosim.now - began) / dt)
    for k in range(max(0, n - SIZE), n):
        dice = getrandbits(32)
        normal = ((dice & 255) + (dice >> 8 & 255) + (dice >> 16 & 255) + (dice >> 24) - 510) * 0.006765
        volts = supply.at(began + int((k + 1) * dt))[1] / division
        value = min(4095, max(0, int(volts / 3.3 * 4096 + noise * normal + 0.5)))
        at = 2 * (k % SIZE)
        ring[at] = value & 255
        ring[at + 1] = value >> 8
    return n
