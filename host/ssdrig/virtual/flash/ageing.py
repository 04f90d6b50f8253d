"""A drive without power gets older (charge_loss.py): its units, and what of its data is lost by then. SIMULATED."""

import math
from collections.abc import Sequence

import numpy as np

from ssdrig.base.errors import UsageError
from ssdrig.drive.wear import retention
from ssdrig.virtual.flash import aged, charge_loss, ftl, nand

MOST_MINUTES = (1 << 31) - 1  # 4083 years


def checked(profile: Sequence[tuple[float, float]]) -> None:
    """Raises UsageError if (hours, C) of a storage are outside the model."""
    most, coldest, hottest = charge_loss.MOST_HOURS, charge_loss.LEAST_C, charge_loss.MOST_C
    for hours, celsius in profile:
        if not 0 < hours <= most:  # nor NaN
            raise UsageError(f"hours of storage above 0, up to {most:g}", f"{hours:g}", "give the hours of each step")
        if not coldest <= celsius <= hottest:
            raise UsageError(f"a storage temperature of {coldest:g} to {hottest:g} °C", f"{celsius:g}", "give °C")
    hours = sum(duration for duration, _ in profile)
    if not 0 < hours <= most:
        raise UsageError(f"hours of storage above 0, up to {most:g} in all", f"{hours:g}", "give some, or fewer")


def age(drive, profile: Sequence[tuple[float, float]]) -> float:
    """Store the unpowered drive for this profile of (hours, C). Pages that cannot be read any more are added
    to drive.unreadable. Returns the hours at 30 C that it is worth. Raises UsageError for one that is not a storage."""
    checked(profile)
    hours = retention.equivalent_hours(list(profile), charge_loss.REFERENCE_C)
    drive.drain()
    aged.close_kernel(drive._arrays)
    blk = drive.blk
    old = blk[:, ftl.AGE].astype(np.int64) + math.ceil(min(hours * 60, MOST_MINUTES))
    blk[:, ftl.AGE] = np.where(blk[:, ftl.STATE] == ftl.FREE, 0, np.minimum(old, MOST_MINUTES))
    blk[:, ftl.STRESS] = np.round(1e6 * np.log(medians(drive) / charge_loss.E1))
    pages = drawn(drive)
    mapped = np.flatnonzero(drive.l2p != ftl.NONE)
    units = drive.l2p[mapped].astype(np.int64) // drive.preset.block_pages
    blk[:, ftl.WORST] = 0
    np.maximum.at(blk[:, ftl.WORST], units, pages[mapped].astype(np.int32))
    drive.m[nand.S_AGED] = np.count_nonzero(blk[:, ftl.WORST])
    drive.unreadable.update(np.flatnonzero(pages == charge_loss.UNREADABLE).tolist())
    return hours


def medians(drive) -> np.ndarray:
    """float64[units]: the median RBER of each; of one that holds nothing as if it did."""
    blk, p = drive.blk, drive.preset
    rber = charge_loss.rber(p.drive_class, blk[:, ftl.PE] / p.rated_pe_cycles, blk[:, ftl.AGE] / 60)
    rber[drive.m[nand.K_UNITS] :] *= charge_loss.SLC_SHARE
    return rber


def drawn(drive) -> np.ndarray:
    """uint8[pages]: the level of each page by the draw of the place where it is stored now."""
    levels_ = np.zeros(drive.pages, np.uint8)
    aged.levels_kernel(drive._arrays, levels_)
    return levels_


def levels(drive) -> np.ndarray:
    """uint8[pages]: by how many read-retries each page can be read now; charge_loss.UNREADABLE: by none."""
    pages = drawn(drive)
    lost = np.fromiter(drive.unreadable, np.int64, len(drive.unreadable))
    pages[lost] = charge_loss.UNREADABLE
    return pages


def truth(drive, levels_: np.ndarray) -> dict:
    """The truth from levels(): the pages that cannot be read, how many need retries, and the units
    that hold any of them."""
    blk, rber = drive.blk, medians(drive)
    return {
        "simulated": True,
        "pages": int(drive.m[nand.S_MAPPED]),
        "bad_pages": np.flatnonzero(levels_ == charge_loss.UNREADABLE).tolist(),
        "slow_pages": int(np.count_nonzero((levels_ > 0) & (levels_ < charge_loss.UNREADABLE))),
        "units": [
            {
                "unit": b,
                "pe": int(blk[b, ftl.PE]),
                "age_h": int(blk[b, ftl.AGE]) / 60,
                "rber": float(rber[b]),
                "worst": int(blk[b, ftl.WORST]),
            }
            for b in np.flatnonzero(blk[:, ftl.WORST]).tolist()
        ],
    }
