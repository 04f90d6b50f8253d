"""Typical speeds and rest times of drive classes: assumptions before any measurement."""

from typing import NamedTuple


class Class(NamedTuple):
    """What drives of a kind do, slow to fast: sequential 128 KiB writes, and random 4 KiB writes in steady state. And
    what none of them passes: `fresh_Bps` of random writes of at most 4 KiB, `write_Bps` of any writes, `link_Bps` of
    reads and writes together. Classes, not models: the expected range is wide on purpose."""

    sequential_Bps: tuple[float, float]
    random_iops: tuple[float, float]
    fresh_Bps: float
    write_Bps: float
    link_Bps: float


SMALL_BYTES = 4096  # of fresh_Bps
STEADY_SHARE = 0.25  # of sequential_Bps that random writes of large blocks keep at least: a write amplification of 4
VIRTUAL = "nbd"  # how a virtual drive is reached
SPEEDS = {
    "SATA": Class((150e6, 540e6), (2e3, 60e3), 0.4e9, 0.6e9, 0.6e9),  # 6 Gbit/s, 8b/10b
    "SAS": Class((200e6, 2.2e9), (5e3, 250e3), 1.2e9, 4.8e9, 4.8e9),  # two ports of 24G
    "USB": Class((30e6, 1.0e9), (0.3e3, 60e3), 0.4e9, 2.5e9, 2.5e9),  # 20 Gbit/s
    VIRTUAL: Class((100e6, 500e6), (0.3e3, 60e3), 4e9, 4e9, 8e9),  # in time of the host, also of a busy one
}
NVME_SPEEDS = Class((400e6, 7e9), (10e3, 700e3), 11e9, 16e9, 32e9)  # PCIe 5.0 x4 writes, 6.0 x4 reads
ERASE_S = {
    "purge": (0.1, 600.0),
    "trim": (0.01, 60.0),
    "reset": (0.01, 60.0),
}  # a sanitize of flash; one that overwrites takes hours
MOST_ERASE_S = 20.0  # of a virtual drive
READING_S = (0.05, 5.0)  # of SMART: some programs, each with some commands
SETTLE_S = (60, 120, 300)  # after the load, until two SMART readings agree


def of(interface: str) -> Class:
    return SPEEDS.get(interface, NVME_SPEEDS)


def most_written_bytes(seconds: float, interface: str, read_percent: int = 0, small: bool = False) -> int:
    """Most bytes that a load of `seconds` writes to a drive of this interface. small: random, in blocks of at most
    4 KiB."""
    known = of(interface)
    fastest_Bps = known.fresh_Bps if small else known.write_Bps
    return int(seconds * min(fastest_Bps, (1 - read_percent / 100) * known.link_Bps))
