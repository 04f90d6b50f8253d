"""The draw of a drive at rest, to aim at its own work. One that works after the writes (it folds its
cache) is waited for: a threshold learnt meanwhile is above all of its bursts."""

import time
from collections.abc import Callable

import numpy as np

from ssdrig.blockio.slots import Transport
from ssdrig.powerloss import aim, readback
from ssdrig.powerloss.layout import Layout
from ssdrig.powerloss.supply import RigSupply

LEARN_S = 10.0  # of idle, and of load
MOST_S = 300.0  # longest wait for it


def idle_A(
    supply: RigSupply,
    link: Transport,
    layout: Layout,
    check: Callable[[], None],
    tell: Callable[..., None],
    most_s: float = MOST_S,
) -> np.ndarray:
    """float64[n]: the current of LEARN_S after a read of one block, because a drive is awake then, as it is when a cut
    is aimed. `check` raises on a request to end; `tell` takes an event. Raises RigError, DriveError."""
    deadline = time.monotonic() + most_s
    while True:
        check()
        readback.block(link, layout, int(layout.starts[0]))
        found = supply.currents(LEARN_S)
        if aim.rests(found):
            return found
        if time.monotonic() > deadline:
            tell("note", text=f"the drive was not at rest within {most_s:g} s: aims at its own work may miss it")
            return found
