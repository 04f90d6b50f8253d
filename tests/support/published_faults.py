"""What published studies saw drives and their flash do at a loss of power, as faults of faulty_drive.Drive.

Sources: Zheng, Tucek, Qin, Lillibridge, "Understanding the Robustness of SSDs under Power Fault", FAST 2013 (bit
corruption, shorn writes, metadata corruption; a third of one drive's blocks was inaccessible after 8 faults); Tseng,
Grupp, Swanson, "Understanding the Impact of Power Loss on Flash Memory", DAC 2011 (a program that is cut short corrupts
what was programmed before, and is left prone to read disturb and to decay; an erase that is cut short makes later
programs of the block unreliable); Ahmadian et al., "Investigating Power Outage Effects on Reliability of Solid-State
Drives", DATE 2018 (loss of what was acknowledged 700 ms before)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.faulty_drive import Drive

SECTOR = 512
SHORN = 3  # eighths of a page that were programmed
UNIT_PAGES = 2  # that one entry of the map has
MAP_PAGES = 64  # of one page of the map
ERASED = b"\xff"
DISTURBS = 0.003  # of the reads change the page behind
DRAM_BYTE, DRAM_BIT = 1000, 4  # of a page, where the buffer's DRAM has a bit that cannot be 1
RECENT_NS = 700_000_000

OF_CUT = (
    "paired_page shorn unit_rollback map_page_lost gc_erased map_second_cycle dram_bit weak_program weak_erase"
    " third_unreadable"
).split()
OF_DRIVE = ["format_flip", "wrapped"]
WITHOUT_CUT = ["read_disturb"]
# what a contract that covers FLUSH and FUA alone allows, however bad it looks
ALLOWED = "recent_lost trims_back newest_lost oldest_kept".split()


def damage(
    drive: "Drive", touched: set[int], durable: list[int], open_: list[int], cold: list[int]
) -> dict[int, bytes]:
    """The pages that one of OF_CUT changes at a cut, with what they show then. `durable`: written in this session, and
    owed; `open_`: with a write under way; `cold`: written before, not in this session."""
    rng, page_of, pages = drive.wrong, drive._page, {}
    older = lambda page: next((data for other, data in drive.older if other == page), None)
    last = drive.size // drive.page_bytes - 1
    one = rng.choice(durable) if durable else None
    if drive.fault == "paired_page" and open_ and one is not None:
        pages[one] = _worn(drive, page_of(one), 20)
    elif drive.fault == "shorn" and one is not None:
        at = SHORN * drive.page_bytes // 8
        pages[one] = page_of(one)[:at] + drive.base[one][at:]
    elif drive.fault == "unit_rollback":
        beside = [page ^ 1 for page in durable if page ^ 1 not in touched and older(page ^ 1)]
        pages |= {page: older(page) for page in beside[:2]}
    elif drive.fault == "map_page_lost" and one is not None:
        first = one // MAP_PAGES * MAP_PAGES
        pages |= {page: bytes(drive.page_bytes) for page in range(first, min(first + MAP_PAGES, last)) if page_of(page)}
    elif drive.fault == "gc_erased":
        pages |= dict.fromkeys(rng.sample(cold, min(4, len(cold))), ERASED * drive.page_bytes)
    elif drive.fault == "map_second_cycle":  # the map was rebuilt in memory only
        pages |= {page: data for page, data in drive.journal.items() if page not in touched}
        drive.journal = {page: drive.base[page] for page in rng.sample(durable, min(4, len(durable)))}
    elif drive.fault == "dram_bit":
        for page in rng.sample(durable, min(3, len(durable))):
            data = bytearray(page_of(page))
            data[DRAM_BYTE % drive.page_bytes] &= ~(1 << DRAM_BIT)
            pages[page] = bytes(data)
    elif drive.fault == "weak_program":
        for page in open_[:4]:
            drive.twice[page] = _worn(drive, page_of(page), 40)
    elif drive.fault == "weak_erase":  # what an earlier cut left half erased is written again, and does not hold
        spoilt = {page for page in drive.spoilt if page in touched and page in durable}
        pages |= {page: _worn(drive, page_of(page), 60) for page in spoilt}
        drive.spoilt = (drive.spoilt - spoilt) | set(rng.sample(sorted(touched), min(40, len(touched))))
    elif drive.fault == "third_unreadable" and drive.cuts == 8:
        return dict.fromkeys((page for page in range(last) if page % 3 == 0 and page_of(page).strip(b"\0")), b"")
    return pages


def of_drive(drive: "Drive") -> set[int]:
    """The pages that one of OF_DRIVE changes."""
    pages = drive.now.reshape(-1, drive.page_bytes)
    before = pages.copy()
    if drive.fault == "format_flip":  # blocks of 512 bytes in place of 4096: an address means another place
        pages[:] = before.repeat(8, axis=0)[: len(pages)]
    elif drive.fault == "wrapped":  # one bit of the address is gone
        pages[len(pages) // 2 :] = before[: len(pages) // 2]
    return set((pages != before).any(1).nonzero()[0].tolist())


def disturb(drive: "Drive", page: int) -> None:
    """A read of a page may change the one behind it."""
    other = page + 1
    if other >= drive.size // drive.page_bytes or drive.wrong.random() > DISTURBS:
        return
    if other not in drive.pages and other not in drive.trimmed and drive._page(other).strip(b"\0"):
        drive.changed_by_itself(other, _worn(drive, drive._page(other), 3))


def survivor(drive: "Drive", page: int) -> bytes | None:
    """What one of ALLOWED leaves of a page; None: any legal version."""
    of = drive.versions(page, "owed")
    if drive.fault == "trims_back" and any(version.data is None for version in of):
        return next((version.data for version in of if version.data is not None), drive.base[page])
    of = [version for version in of if version.data is not None]
    if not of or drive.fault not in ALLOWED:
        return None
    if drive.fault == "recent_lost" and drive.t_ns - drive.flushed_at_ns < RECENT_NS or drive.fault == "newest_lost":
        return of[0].data
    return of[-1].data if drive.fault == "recent_lost" else of[len(of) // 2].data


def _worn(drive: "Drive", data: bytes, bits: int) -> bytes:
    """With so many bits flipped, more than a code corrects."""
    out = bytearray(data)
    for at in drive.wrong.sample(range(len(out)), bits):
        out[at] ^= 1 << drive.wrong.randrange(8)
    return bytes(out)
