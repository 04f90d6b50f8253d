"""The reviewers' performance-consistency test as numbers: purge, sequential fill of the tested range, 4 KiB random
write over the whole of it at queue depth 32 with incompressible data, every second logged.

Source: the AnandTech test of 2012-2016 (reviews 7074, 8979, 10296): 2000 s with a zoom from 1400 s, later 3600 s;
over-provisioning is a share of raw NAND: 200 GB tested of 336 GiB raw is called 44.6 %.
"""

from dataclasses import dataclass

from ssdrig.errors import UsageError

MIB = 1 << 20
REAL_DURATION_S = 2000  # what the reviews began with
VIRTUAL_DURATION_S = 60  # the virtual drives are small: all that 2000 s show of a real one shows in 60
ZOOM_SHARE = 0.7  # 1400 s of 2000 s
SETTLE_S = (60, 120, 300)  # after the load, until two SMART readings agree
FASTEST_BPS = {"SATA": 0.4e9, "SAS": 1.2e9, "USB": 0.4e9}  # 4 KiB writes at QD 32 on the fastest drives of a kind
FASTEST_NVME_BPS = 4e9


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


def tested_bytes(capacity_bytes: int, raw_nand_bytes: int | None, op_percent: float | None) -> int:
    """Bytes of the drive that are filled and written, aligned down to 1 MiB: raw x (1 - op), or the whole drive.

    Raises UsageError if the drive has more over-provisioning of its own than is asked for, or none is left to test."""
    if op_percent is None:
        return capacity_bytes // MIB * MIB
    tested = int(raw_nand_bytes * (1 - op_percent / 100)) // MIB * MIB
    own_percent = 100 * (1 - capacity_bytes / raw_nand_bytes)
    if tested > capacity_bytes:
        raise UsageError(
            f"over-provisioning of at least the drive's own {own_percent:.1f} % of raw NAND",
            f"{op_percent:g} %",
            "ask for more, or leave --op out to test the whole drive",
        )
    if tested < 64 * MIB:
        raise UsageError("at least 64 MiB left to test", f"{tested / MIB:.0f} MiB", "ask for less over-provisioning")
    return tested


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
        tested_bytes=tested_bytes(capacity_bytes, raw_nand_bytes, op_percent),
        smart_interval_s=smart_interval_s,
        seed=seed,
        settle=settle,
        idle_s=idle_s,
    )


def most_written_bytes(plan: Consistency, interface: str) -> int:
    """The most that the test can write to a drive of this interface: fill, and random write at the speed of the
    fastest."""
    return plan.tested_bytes + int(plan.duration_s * FASTEST_BPS.get(interface, FASTEST_NVME_BPS))
