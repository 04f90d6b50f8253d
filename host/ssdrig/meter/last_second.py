"""What the rig measures just now, for a display: power of each rail and of the drive, from the frames of one second."""

from typing import NamedTuple

import numpy as np

from ssdrig.base.errors import RigError
from ssdrig.meter import nominal
from ssdrig.meter.power import clipped_samples, mean_power_W, mean_V


class LastSecond(NamedTuple):
    """bodies: of the S frames, of all rails; hello: the board's latest, None before there was one; switched: power was
    cut by us in this second, or given back."""

    bodies: list[bytes]
    hello: dict | None
    switched: bool = False

    def rails_W(self) -> dict[int, float | None]:
        """Mean power of each rail that the board has; None: nothing came of it."""
        out: dict[int, float | None] = {}
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

    def voltages(self) -> list[tuple[dict, float, float]]:
        """Of each rail of which something came: its entry of the hello, the lowest and the highest voltage at the drive
        (V, means of a frame)."""
        out = []
        for rail in (self.hello or {}).get("rails", []):
            mine = (mean_V(body, self.hello) for body in self.bodies if body[0] == rail["rail"])
            volts = [v for v in mine if v is not None]
            if volts:
                out.append((rail, min(volts), max(volts)))
        return out

    def outside(self) -> list[str]:
        """What is to be said of the rails' voltages (nominal.py); nothing of what a cut of our own does to them."""
        if self.switched:
            return []
        said = (nominal.outside(*of) for of in self.voltages())
        return [words for words in said if words]

    def refuse_other(self) -> None:
        """RigError where a rail has another supply than the board says, 5 V and 12 V mixed up for instance."""
        for rail, _, highest_V in self.voltages():
            if nominal.is_other(rail, highest_V):
                raise RigError(
                    f"{nominal.nominal_V(rail):g} V on rail {rail['rail']} ({rail['name']})",
                    f"{highest_V:.2f} V at the drive",
                    nominal.OTHER_DO,
                )

    def clipped(self) -> int:
        """Samples, of all rails, that stand at the end of their sensor's range."""
        return sum(clipped_samples(body, self.hello) for body in self.bodies)
