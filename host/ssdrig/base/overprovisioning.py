"""Which part of a drive is used: over-provisioning is a share of the raw NAND, as in the reviews (200 GB tested of
336 GiB raw is called 44.6 %), and the rest of it, from the drive's beginning, is written. And what follows from it: the
write amplification of uniformly random writes. Pure."""

import math

from ssdrig.base.errors import UsageError
from ssdrig.base.words import exact_size

MIB, GIB = 1 << 20, 1 << 30


def whole_MiB(whole_bytes: int, percent: float = 100) -> int:
    """This percentage of the bytes, aligned down to 1 MiB."""
    return round(whole_bytes * percent / 100) // MIB * MIB


def own_percent(capacity_bytes: float, raw_nand_bytes: int) -> float:
    """The drive's own over-provisioning."""
    return 100 * (1 - capacity_bytes / raw_nand_bytes)


def of_user_percent(tested: float, capacity_bytes: int) -> float:
    """The share of the user capacity that is left unwritten."""
    return 100 * (1 - tested / capacity_bytes)


def assumed_raw_bytes(capacity_bytes: int) -> int:
    """A guess at an unknown raw NAND size: the next power of two GiB. TLC drives often have another size, so every
    result that uses it is marked as assumed."""
    whole_GiB = -(-capacity_bytes // GIB)
    return GIB << (whole_GiB - 1).bit_length()


def assumed_words(raw_nand_bytes: int) -> str:
    """The remark in every result that uses assumed_raw_bytes()."""
    return (
        f"raw NAND assumed: {exact_size(raw_nand_bytes)}, the next power of two; so over-provisioning as a share of it,"
        " alpha and the closed form of WA are assumed, too"
    )


def tested_bytes(
    capacity_bytes: int, raw_nand_bytes: int | None, op_percent: float | None, least_bytes: int = MIB
) -> int:
    """Bytes of the drive that are used, aligned down to 1 MiB: raw x (1 - op), or the whole drive if op_percent is
    None.

    Raises UsageError if the drive itself has more over-provisioning than requested, if less than least_bytes are
    left, or if the raw NAND size is unknown."""
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


def lambert_w0(x: float) -> float:
    """Principal branch for -1/e <= x < 0: w * exp(w) = x, Newton from the branch-point series (Corless et al. 1996)."""
    p = math.sqrt(max(2.0 * (math.e * x + 1.0), 0.0))
    w = -1.0 + p - p * p / 3.0 + 11.0 * p**3 / 72.0
    for _ in range(50):
        e = math.exp(w)
        step = (w * e - x) / (e * (w + 1.0)) if w > -1.0 else 0.0
        w -= step
        if abs(step) < 1e-15:
            break
    return w


def wa_fifo(alpha: float) -> float:
    """FIFO collection, any block size: alpha / (alpha + W0(-alpha exp(-alpha))) (Robinson; Desnoyers SYSTOR 2012,
    Xiang and Kurkoski 2011); also greedy with infinitely large blocks. ValueError if alpha <= 1."""
    if alpha <= 1:
        raise ValueError(f"alpha must exceed 1, is {alpha}")
    return alpha / (alpha + lambert_w0(-alpha * math.exp(-alpha)))
