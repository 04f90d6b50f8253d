"""The power measurement of the virtual drive (NVMe Base Specification 2.3): log 25h and feature 25h. An interval is a
tick of the device, about a second."""

STOP, START = 0, 1


class PowerMeasurement:
    """What the drive has measured of itself since a host started it; none of it outlives a power cycle."""

    def __init__(self) -> None:
        self.on, self.generation, self.count, self._sum_W, self.maximum_W = False, 0, 0, 0.0, 0.0

    @property
    def average_W(self) -> float:
        return self._sum_W / self.count if self.count else 0.0

    def interval(self, watts: float) -> None:
        """Take the mean power of an interval, where it is measured."""
        if self.on:
            self.count += 1
            self._sum_W += watts
            self.maximum_W = max(self.maximum_W, watts)

    def act(self, action: int) -> None:
        """Start anew or stop. Raises ValueError."""
        if action not in (STOP, START):
            raise ValueError("0 to stop or 1 to start")
        self.on = action == START
        if self.on:
            self.generation = (self.generation + 1) & 0xFF
            self.count, self._sum_W, self.maximum_W = 0, 0.0, 0.0
