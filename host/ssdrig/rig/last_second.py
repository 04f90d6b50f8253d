"""What the rig measures just now, for a display: power of each rail and of the drive, from the frames of one second."""

from typing import NamedTuple

import numpy as np

from ssdrig.meter.power import clipped_samples, mean_power_W


class LastSecond(NamedTuple):
    """bodies: of the S frames, of all rails; hello: the board's latest, None before there was one."""

    bodies: list[bytes]
    hello: dict | None

    def rails_W(self) -> dict[int, float | None]:
        """Mean power of each rail that the board has; None: nothing came of it."""
        out = {}
        for rail in (self.hello or {}).get("rails", []):
            mine = (mean_power_W(body, self.hello) for body in self.bodies if body[0] == rail["rail"])
            powers = [p for p in mine if p is not None]
            out[rail["rail"]] = float(np.mean(powers)) if powers else None
        return out

    def power_W(self) -> float | None:
        """Mean power of all rails together; None if nothing came of one of them."""
        each = list(self.rails_W().values())
        known = [watts for watts in each if watts is not None]
        return sum(known) if each and len(known) == len(each) else None

    def clipped(self) -> int:
        """Samples, of all rails, that stand at the end of their sensor's range."""
        return sum(clipped_samples(body, self.hello) for body in self.bodies)
