"""How the raw bit error rate (RBER) of NAND grows in storage without power, and the cost of a read then. SIMULATED.

    RBER(w, h) = r0 ((1 + WEAR w^A) (1 + (h / H0)^B) + EARLY (1 - exp(-h / EARLY_H)))

w: P/E cycles of a GC unit over the rated ones when it was programmed; h: hours at 30 C since then, other temperatures
converted as host/ssdrig/drive/wear/retention.py has it (Arrhenius, 1.1 eV). A power of the age and one of the cycles
are what measurements of flash give (Mielke et al., "Bit error rate in NAND flash memories", IRPS 2008; Cai et al.,
"Data retention in MLC NAND flash memory", HPCA 2015); the loss within hours applies to charge-trap cells (Luo et al.,
"Improving 3D NAND flash memory lifetime by tolerating early retention loss and process variation", SIGMETRICS 2018).
The exponents and weights are assumed, within what these papers show.

A page of 4 KiB is one codeword. Its RBER differs from that of its unit by a factor that is fixed when it is
programmed, log-normal with SIGMA (process variation). Up to E1 it is read without retries; from there to E2 by up to
RETRIES read-retries, one more each time that it is (E2 / E1)^(1 / RETRIES) higher; above E2 it cannot be corrected.

r0 is calibrated: at 100 % of its rated cycles and after the time and temperature of JESD218 for its class a drive has
exactly the UBER that the standard allows, as codewords that cannot be read over bits read. One of no wear then keeps
its data for 10 years at 30 C and longer."""

import math
from statistics import NormalDist

import numpy as np

from ssdrig.drive.wear import retention

REFERENCE_C = 30.0
E1, E2, RETRIES = 3e-3, 1e-2, 8  # hard and soft decision of an LDPC code of rate 0.9 (assumed)
ECC_NS = 20_000  # to decode once more; a retry is tR + transfer + this (Park et al., ASPLOS 2021)
SIGMA = 0.2
WEAR, A = 9.0, 1.5
H0, B = 720.0, 0.8
EARLY, EARLY_H = 1.0, 2.0
SLC_SHARE = 0.01  # of the RBER, of cells with one bit (assumed)
CODEWORD_BITS = 4096 * 8
UBER = {"client": 1e-15, "enterprise": 1e-16}  # JESD218
MOST_HOURS, LEAST_C, MOST_C = 876_000.0, -40.0, 125.0  # of storage that the model is asked for
UNREADABLE = RETRIES + 1  # the level of a page that cannot be read
# natural logarithm of RBER / E1 from which a page has level 1, 2, ... UNREADABLE
STEPS = tuple(math.log(E2 / E1) * step / RETRIES for step in range(UNREADABLE))


def class_hours(drive_class: str) -> float:
    """Hours at 30 C that JESD218 requires of a drive of this class, "client" or "enterprise"."""
    return retention.equivalent_hours([retention.REQUIREMENTS[drive_class]], REFERENCE_C)


def growth(wear, hours):
    """RBER over r0; floats or arrays. wear: 1 at the rated cycles; hours at 30 C."""
    early = EARLY * -np.expm1(-np.asarray(hours) / EARLY_H)
    return (1 + WEAR * np.asarray(wear) ** A) * (1 + (np.asarray(hours) / H0) ** B) + early


def r0(drive_class: str) -> float:
    """RBER of new cells just programmed, of a drive that just meets its class."""
    sigmas = -NormalDist().inv_cdf(UBER[drive_class] * CODEWORD_BITS)
    return E2 * math.exp(-SIGMA * sigmas) / float(growth(1.0, class_hours(drive_class)))


def rber(drive_class: str, wear, hours):
    """Median RBER of the codewords of a unit; floats or arrays."""
    return r0(drive_class) * growth(wear, hours)


def share_beyond(median: float, limit: float) -> float:
    """The share of codewords whose RBER is above `limit`, of a unit with this median."""
    return 0.5 * math.erfc(math.log(limit / median) / (SIGMA * math.sqrt(2)))
