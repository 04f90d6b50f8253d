"""Which part of a drive is used: over-provisioning is a share of the raw NAND, as in the reviews (200 GB tested of
336 GiB raw is called 44.6 %), and the rest of it, from the drive's beginning, is written. Pure."""

from ssdrig.errors import UsageError
from ssdrig.words import exact_size

MIB = 1 << 20


def whole_MiB(whole_bytes: int, percent: float = 100) -> int:
    """So many percent of the bytes, aligned down to 1 MiB."""
    return round(whole_bytes * percent / 100) // MIB * MIB


def own_percent(capacity_bytes: int, raw_nand_bytes: int) -> float:
    """The drive's own over-provisioning."""
    return 100 * (1 - capacity_bytes / raw_nand_bytes)


def tested_bytes(
    capacity_bytes: int, raw_nand_bytes: int | None, op_percent: float | None, least_bytes: int = MIB
) -> int:
    """Bytes of the drive that are used, aligned down to 1 MiB: raw x (1 - op), or all of it where op_percent is None.

    Raises UsageError if the drive has more over-provisioning of its own than is asked for, if less than least_bytes are
    left, or if the raw NAND is not known."""
    if op_percent is None:
        return whole_MiB(capacity_bytes)
    if raw_nand_bytes is None:
        raise UsageError("a drive whose raw NAND is known", "none", "give --raw-nand, or leave --op out")
    size = whole_MiB(raw_nand_bytes, 100 - op_percent)
    if not 0 <= op_percent < 100 or size > capacity_bytes:
        raise UsageError(
            f"over-provisioning from the drive's own {own_percent(capacity_bytes, raw_nand_bytes):.1f} % to below 100 %"
            " of raw NAND",
            f"{op_percent:g} %",
            "ask for more, or leave --op out to use the whole drive",
        )
    if size < least_bytes:
        raise UsageError(f"at least {exact_size(least_bytes)} left", exact_size(size), "ask for less over-provisioning")
    return size
