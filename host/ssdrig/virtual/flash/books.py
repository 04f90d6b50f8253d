"""Whether the tables of a drive agree with each other. Compiled code trusts every index in them, so tables that come
from a file are checked first. SIMULATED."""

import numpy as np

from ssdrig.virtual.flash import ftl, nand

FEW = 1 << 31  # of pages that wait, and of counts that a loop runs down


def check(drive, unreadable: np.ndarray) -> None:
    """Raises ValueError where one of the tables of a VirtualDrive contradicts another, or leads out of the drive.

    unreadable: its logical pages whose data is lost."""
    _agree(((unreadable >= 0) & (unreadable < drive.pages)).all(), "unreadable pages")
    m, np_, units, words = drive.m, drive.preset.block_pages, int(drive.m[nand.K_UNITS]), int(drive.m[nand.K_WORDS])
    slc = int(m[nand.K_SLC_UNITS])
    for name, (least, end) in _ranges(m).items():
        _agree(least <= m[getattr(nand, name)] < end, name)
    valid = _mapped(drive, np_, words)
    blk, state = drive.blk, drive.blk[:units, ftl.STATE]
    _agree((blk[:, ftl.VALID] == valid.sum(1)).all(), "valid pages")
    _agree((state >= ftl.FREE).all() and (state <= ftl.VICTIM).all(), "states")
    _agree(np.isin(blk[units:, ftl.STATE], (ftl.FREE, ftl.SLC)).all(), "states of the SLC cache")
    _agree((blk[:, (ftl.NEXT, ftl.PREV)] >= -1).all() and (blk[:, (ftl.NEXT, ftl.PREV)] < units).all(), "links")
    ring = drive.lists[np_ + 1 : np_ + 1 + units]
    free = ring[(m[nand.S_FREE_HEAD] + np.arange(m[nand.S_FREE])) % units]
    _agree(np.array_equal(np.sort(free), np.flatnonzero(state == ftl.FREE)), "free blocks")
    _agree(not blk[free, ftl.VALID].any(), "free blocks that hold something")
    _agree(np.array_equal(np.sort(_closed(drive, np_, units)), np.flatnonzero(state == ftl.CLOSED)), "closed blocks")
    for name, at, most, first, end in (
        ("open block", nand.S_BLOCK, np_, 0, units),
        ("open block of the SLC cache", nand.S_BLOCK_SLC, int(m[nand.K_SLC_NP]), units, units + slc),
    ):
        block, off, start = int(m[at]), int(m[at + nand.S_OFF - nand.S_BLOCK]), int(m[at + nand.S_START - nand.S_BLOCK])
        _agree(0 <= start <= off <= most, name)
        if block != -1:
            _agree(first <= block < end and off < most and not valid[block, off:].any(), name)
    for name, at, of in (("open block", nand.S_BLOCK, ftl.OPEN), ("victim", nand.S_VICTIM, ftl.VICTIM)):
        held = [int(m[at])] if m[at] >= 0 else []
        _agree(held == np.flatnonzero(state == of).tolist(), name)
    _agree(not valid[units:, int(m[nand.K_SLC_NP]) :].any(), "pages of the SLC cache")


def _ranges(m: np.ndarray) -> dict[str, tuple[int, int]]:
    """Limits (least, end) of the words used as an index or as the end of a loop."""
    units, slc, dies, np_ = (int(m[at]) for at in (nand.K_UNITS, nand.K_SLC_UNITS, nand.K_DIES, nand.K_NP))
    ranges = {
        **dict.fromkeys(("S_FREE_HEAD", "S_FIFO_HEAD", "S_WL_CURSOR", "S_REFRESH_CURSOR"), (0, units)),
        **dict.fromkeys(("S_FREE", "S_FIFO_COUNT"), (0, units + 1)),
        **dict.fromkeys(("S_BLOCK", "S_VICTIM", "S_WL_NEXT"), (-1, units)),
        **dict.fromkeys(("S_ERASE_DIE", "S_GROUP_DIE"), (0, dies)),
        **dict.fromkeys(("S_EXTRA", "S_PENDING", "S_EXTRA_SLC", "S_PENDING_SLC", "S_ERASE_PAGES"), (0, FEW)),
        **dict.fromkeys(("S_CREDIT", "S_VICTIM_RATE"), (0, FEW)),
        "S_MIN_VALID": (0, np_ + 1),
        "S_BLOCK_SLC": (-1, units + slc),
        "S_SLC_COUNT": (0, slc + 1),
        "S_SLC_HEAD": (0, 1 << 62),
        "S_STREAM": (0, 2),
    }
    if m[nand.S_VICTIM] >= 0 and m[nand.S_VICTIM_CAUSE] != -1:
        ranges["S_VICTIM_CAUSE"] = (nand.N_HOST, nand.N_PAD)
    return ranges


def _mapped(drive, np_: int, words: int) -> np.ndarray:
    """Which pages of each block hold current data, by the map and by the bits alike."""
    pages = np.flatnonzero(drive.l2p != ftl.NONE)
    places = drive.l2p[pages].astype(np.int64)
    _agree(not len(places) or places.max() < len(drive.p2l), "the map")
    _agree((drive.p2l[places] == pages).all(), "the map and the spare area")
    valid = np.zeros((len(drive.blk), words * 64), bool)
    valid[places // np_, places % np_] = True
    bits = np.packbits(valid, bitorder="little").view(np.uint64)
    _agree(np.array_equal(bits, drive.bits), "the map and the pages in use")
    _agree(drive.m[nand.S_MAPPED] == len(pages), "the number of mapped pages")
    return valid[:, :np_]


def _closed(drive, np_: int, units: int) -> list[int]:
    """The blocks that may be collected, in the order of their lists."""
    m, blk = drive.m, drive.blk
    if m[nand.K_FIFO]:
        ring = drive.lists[np_ + 1 + units : np_ + 1 + 2 * units]
        return ring[(m[nand.S_FIFO_HEAD] + np.arange(m[nand.S_FIFO_COUNT])) % units].tolist()
    pages_: list[int] = []
    for valid in range(np_ + 1):
        block, before = int(drive.lists[valid]), -1
        while block != -1:
            _agree(0 <= block < units and len(pages_) < units, "a list of blocks")
            _agree(blk[block, ftl.VALID] == valid and blk[block, ftl.PREV] == before, "a list of blocks")
            pages_.append(block)
            block, before = int(blk[block, ftl.NEXT]), block
    return pages_


def _agree(fine: bool | np.bool_, what: str) -> None:
    if not fine:
        raise ValueError(f"its tables contradict each other: {what}")
