"""How fast drives of a class are, and how long they rest: what is known before anything is measured."""

# what drives of a kind do, slow to fast: sequential 128 KiB write (bytes/s), random 4 KiB write in steady state
# (I/Os/s), and the most random writes of the fastest, fresh (bytes/s). Classes, not models: the expected range is wide
# on purpose
SPEEDS = {
    "SATA": ((150e6, 540e6), (2e3, 60e3), 0.4e9),
    "SAS": ((200e6, 2.2e9), (5e3, 250e3), 1.2e9),
    "USB": ((30e6, 1.0e9), (0.3e3, 60e3), 0.4e9),
    "nbd": ((100e6, 500e6), (1e3, 60e3), 4e9),  # the virtual drives
}
NVME_SPEEDS = ((400e6, 7e9), (10e3, 700e3), 4e9)
SETTLE_S = (60, 120, 300)  # after the load, until two SMART readings agree


def most_load_bytes(seconds: float, interface: str) -> int:
    """The most that a load of so many seconds writes to a drive of this interface: the fastest, fresh."""
    return int(seconds * SPEEDS.get(interface, NVME_SPEEDS)[2])
