"""The reviewers' performance-consistency test as numbers: purge, sequential fill of the tested range, 4 KiB random
write over the whole of it at queue depth 32 with incompressible data, every second logged.

Source: the AnandTech test of 2012-2016 (reviews 7074, 8979, 10296): 2000 s with a zoom from 1400 s, later 3600 s;
over-provisioning is a share of raw NAND: 200 GB tested of 336 GiB raw is called 44.6 %.
"""

from dataclasses import dataclass

from ssdrig.errors import UsageError
from ssdrig.overprovisioning import MIB, tested_bytes

LEAST_BYTES = 64 * MIB
REAL_DURATION_S = 2000  # what the reviews began with
VIRTUAL_DURATION_S = 60  # the virtual drives are small: all that 2000 s show of a real one shows in 60
ZOOM_SHARE = 0.7  # 1400 s of 2000 s
SETTLE_S = (60, 120, 300)  # after the load, until two SMART readings agree
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


@dataclass(frozen=True)
class Consistency:
    """One consistency test, ready to be carried out. Durations are drive time in seconds."""

    duration_s: int
    zoom_s: int
    op_percent: float | None
    tested_bytes: int
    smart_interval_s: int
    seed: int
    settle: bool = False
    idle_s: int = 0
    block_bytes: int = 4096
    queue_depth: int = 32
    fill_block_bytes: int = 131072


def plan(
    capacity_bytes: int,
    raw_nand_bytes: int | None,
    op_percent: float | None,
    duration_s: int,
    zoom_s: int | None,
    smart_interval_s: int | None,
    seed: int,
    settle: bool = False,
    idle_s: int = 0,
) -> Consistency:
    """Fill in what was not said: zoom from 70 % of the duration, a SMART poll each sixth of it but at most once in 10 s
    and at least once a minute. Raises UsageError where the numbers do not fit together."""
    if duration_s < 4:
        raise UsageError("a duration of at least 4 s", f"{duration_s} s", "give --duration SECONDS")
    zoom_s = int(duration_s * ZOOM_SHARE) if zoom_s is None else zoom_s
    if not 0 <= zoom_s <= duration_s - 2:
        raise UsageError(f"a zoom start from 0 to {duration_s - 2} s", f"{zoom_s} s", "give --zoom SECONDS")
    if idle_s < 0:
        raise UsageError("an idle time of 0 s or more", f"{idle_s} s", "give --idle SECONDS")
    if smart_interval_s is None:
        smart_interval_s = min(60, max(10, duration_s // 6))
    return Consistency(
        duration_s=duration_s,
        zoom_s=zoom_s,
        op_percent=op_percent,
        tested_bytes=tested_bytes(capacity_bytes, raw_nand_bytes, op_percent, LEAST_BYTES),
        smart_interval_s=smart_interval_s,
        seed=seed,
        settle=settle,
        idle_s=idle_s,
    )


@dataclass(frozen=True)
class Estimate:
    """What a test will take, before it starts: ranges are (least, most) of what is expected."""

    host_s: tuple[float, float]
    written_bytes: tuple[int, int]
    most_bytes: int  # more than this is never written: the steps end there


def estimate(plan: Consistency, interface: str, dilation: int = 1) -> Estimate:
    """Time and bytes of a test on a drive of this interface, by the class table SPEEDS. Time is the host's: the fill,
    the load, and what comes behind it; purge and SMART are not in it."""
    (slow_Bps, fast_Bps), (slow_iops, fast_iops), _ = SPEEDS.get(interface, NVME_SPEEDS)
    settle_s = (SETTLE_S[0], SETTLE_S[-1]) if plan.settle else (0, 0)
    fixed_s = plan.duration_s + plan.idle_s
    least_s = plan.tested_bytes / fast_Bps + fixed_s + settle_s[0]
    most_s = plan.tested_bytes / slow_Bps + fixed_s + settle_s[1]
    most_bytes = most_written_bytes(plan, interface)
    random = [
        min(most_bytes - plan.tested_bytes, int(plan.duration_s * iops * plan.block_bytes))
        for iops in (slow_iops, fast_iops)
    ]
    return Estimate(
        host_s=(least_s * dilation, most_s * dilation + 5),
        written_bytes=(plan.tested_bytes + random[0], plan.tested_bytes + random[1]),
        most_bytes=most_bytes,
    )


def most_written_bytes(plan: Consistency, interface: str) -> int:
    """The most that the test writes to a drive of this interface: fill, and random write at the speed of the fastest.
    The load ends where it would pass that."""
    return plan.tested_bytes + most_load_bytes(plan, interface)


def most_load_bytes(plan: Consistency, interface: str) -> int:
    """The load's part of most_written_bytes()."""
    return int(plan.duration_s * SPEEDS.get(interface, NVME_SPEEDS)[2])
