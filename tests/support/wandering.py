"""Speeds of drives that wander, for the coverage of errors."""

import math

import numpy as np

SECONDS_OF = 50  # values of each second
# of each kind: the mean that a very long course has
MEANS = {"steady": 1.0, "follows": 1.0, "collects": 1.0, "stalls": 1 - 0.98 * (1 - math.exp(-0.04))}


def course(kind: str, rng, seconds: int) -> np.ndarray:
    """The speed of a drive about 1, SECONDS_OF values for each second: white noise; noise that follows itself for a
    second; garbage collection in 1.2 of each 4 s; stalls of 0.2 s, each 5 s in the mean."""
    n = seconds * SECONDS_OF
    if kind == "steady":
        values = 1 + 0.1 * rng.standard_normal(n)
    elif kind == "follows":
        keep = math.exp(-1 / SECONDS_OF)
        values, steps = np.empty(n), 0.1 * math.sqrt(1 - keep**2) * rng.standard_normal(n)
        at = 0.1 * rng.standard_normal()
        for i in range(n):
            values[i] = at = keep * at + steps[i]
        values += 1
    elif kind == "collects":
        values = np.where((np.arange(n) / SECONDS_OF / 4 + rng.random()) % 1 < 0.3, 0.3, 1.3)
    else:
        values, lasts = np.ones(n), SECONDS_OF // 5
        for begin in rng.integers(-lasts, n, rng.poisson(0.2 * (seconds + 0.2))):
            values[max(0, begin) : begin + lasts] = 0.02
    return values


def by_second(values: np.ndarray) -> np.ndarray:
    """The mean of each second."""
    return values.reshape(-1, SECONDS_OF).mean(axis=1)
