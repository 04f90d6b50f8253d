"""What a drive promises about a loss of power, from its own pages and from what the kernel passes on. Pure.

Sources: NVM Express Base Specification 1.4 and 2.0 (Identify Controller: VWC byte 525, AWUPF 528; Identify Namespace:
NSFEAT 24, NAWUPF 36, NABO 42, NABSPF 44; feature 06h; 6.4 atomicity), with NABSPF counted from 0 as Linux does
(drivers/nvme/host/core.c); ATA Command Set 4, IDENTIFY DEVICE words 82, 85, 106, 117, which states nothing of a sector
that was being written (Hitachi 5K320 SATA OEM Specification, 5.1: it may be unreadable until it is written again);
Linux Documentation/block/writeback_cache_control.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ssdrig.base.errors import DriveError
from ssdrig.drive import ata_security, nvme_erase

FLUSH, ACK = "flush", "ack"  # kept after a FLUSH or with FUA; kept once acknowledged
ATA_BLOCK_BYTES = SECTOR_BYTES = 512  # the kernel's queue counts sectors, too
PAGE_BYTES = 4096  # the smallest page of a kernel


class Promise(NamedTuple):
    """The guarantees that the drive is judged by. Blocks are logical blocks."""

    mode: str  # FLUSH or ACK
    block_bytes: int
    atomic_blocks: int  # the longest write that is all old or all new after a loss of power; 0: not even one block
    boundary_blocks: int  # such a write crosses no multiple of this; 0: no boundaries
    boundary_offset: int  # of the first boundary
    after_trim: str | None  # "zeros", "ones"; None: the drive does not define how trimmed blocks read
    own: bool  # the drive itself reports it; False: ACK is a user's claim
    why: str
    fua: bool = True  # the kernel sends FUA; False: a write and a FLUSH after it
    sector_blocks: int = 0  # of a physical sector, which may be unreadable if it was being written; 0: none may


def nvme(id_ctrl: bytes, id_ns: bytes, cache_on: bool | None, claimed: bool = False) -> Promise:
    """From Identify Controller and Namespace and feature 06h (None: not known). `claimed`: the user claims that the
    drive keeps all that it acknowledges. Raises DriveError for other pages."""
    nvme_erase.decode_controller(id_ctrl)
    namespace = nvme_erase.decode_namespace(id_ns)
    present = bool(id_ctrl[525] & 1)
    mode, own, why = _mode(present, cache_on, claimed)
    of_namespace = id_ns[24] & 2  # NSFEAT: the namespace has its own limits
    own_limit = int.from_bytes(id_ns[36:38], "little") if of_namespace else 0  # NAWUPF 0: as AWUPF of the controller
    limit = own_limit or int.from_bytes(id_ctrl[528:530], "little")
    boundary = int.from_bytes(id_ns[44:46], "little") if of_namespace else 0
    return Promise(
        mode,
        1 << id_ns[130 + 4 * namespace.lba_format],
        limit + 1,
        boundary + 1 if boundary else 0,
        int.from_bytes(id_ns[42:44], "little") if of_namespace else 0,
        namespace.reads_after_discard,
        own,
        why,
    )


def ata(words: list[int], claimed: bool = False) -> Promise:
    """From the 256 words of IDENTIFY DEVICE. No ATA drive promises that more than one block is atomic, nor that the
    physical sector it was writing can be read. Raises DriveError for another count."""
    zeros = ata_security.decode(words).zeros_after_trim
    valid = words[83] >> 14 == 1  # else words 82 and 85 mean nothing
    present = not valid or bool(words[82] >> 5 & 1)
    mode, own, why = _mode(present, bool(words[85] >> 5 & 1) if valid else None, claimed)
    longer = words[106] >> 14 == 1 and words[106] >> 12 & 1
    block = 2 * (words[117] | words[118] << 16) if longer else ATA_BLOCK_BYTES
    several = words[106] >> 14 == 1 and words[106] >> 13 & 1  # logical sectors in a physical one
    sector = 1 << (words[106] & 15) if several else 1
    return Promise(mode, block, 1, 0, 0, "zeros" if zeros else None, own, why, sector_blocks=sector)


def scsi(block_bytes: int, cache_type: str, claimed: bool = False, sector_bytes: int = 0) -> Promise:
    """For a SCSI disk, or one shown by a bridge, from the kernel's reading of its caching page (cache_type of its
    scsi_disk). "write through" may mean that it has no such page: it promises nothing then. `sector_bytes`: of a
    physical sector (queue/physical_block_size), which may be unreadable if it was being written."""
    cached = cache_type.startswith("write back")
    mode, own, why = _mode(True, None, claimed)
    why = why if cached or claimed else f"{why} (not reported)"
    return Promise(mode, block_bytes, 1, 0, 0, None, own, why, sector_blocks=max(1, sector_bytes // block_bytes))


def _mode(present: bool, cache_on: bool | None, claimed: bool) -> tuple[str, bool, str]:
    if not present:
        return ACK, True, "the drive has no volatile write cache: acknowledged data is durable"
    if cache_on is False:
        return ACK, True, "the drive's write cache is off: acknowledged data is durable"
    if claimed:
        return ACK, False, "the user claims that the drive keeps all acknowledged data; the drive does not report it"
    return FLUSH, True, "the drive's write cache is volatile: what FLUSH or FUA covers is kept"


def heard(promise: Promise, queue: Mapping[str, str]) -> Promise:
    """What of it can be tested through the kernel's queue (/sys/block/X/queue: write_cache, fua, max_sectors_kb,
    max_segments, nomerges, chunk_sectors as text). Raises DriveError where the kernel would drop every FLUSH: the
    drive would be blamed for the host."""
    if promise.mode == FLUSH and queue.get("write_cache", "").strip() != "write back":
        raise DriveError(
            "a kernel that passes FLUSH and FUA on, the drive's write cache being volatile",
            f"queue/write_cache is {queue.get('write_cache')!r}",
            "write 'write back' to /sys/block/X/queue/write_cache, or switch the drive's cache off",
        )
    if queue.get("fua", "").strip() == "0":
        why = promise.why.replace("FLUSH or FUA covers", "FLUSH covers")
        promise = promise._replace(fua=False, why=f"{why}; the kernel sends no FUA to it, but a FLUSH after the write")
    # the pages of a command's memory lie anywhere: a segment each
    segments_bytes = int(queue.get("max_segments") or 0) * PAGE_BYTES
    one_command = min(int(queue.get("max_sectors_kb") or 0) * 1024, segments_bytes) // promise.block_bytes
    if queue.get("nomerges", "").strip() != "2":
        one_command = 1  # the kernel may make one command of two
    promise = promise._replace(atomic_blocks=max(1, min(promise.atomic_blocks, one_command)))
    return _split(promise, int(queue.get("chunk_sectors") or 0) * SECTOR_BYTES / promise.block_bytes)


def _split(promise: Promise, chunk: float) -> Promise:
    """The guarantee that remains where the kernel makes two commands of one that crosses a multiple of `chunk` blocks
    (0: none), as it does at the boundary that an NVMe drive calls optimal (NOIOB)."""
    boundary, offset = promise.boundary_blocks, promise.boundary_offset
    if not chunk or boundary and chunk % boundary == 0 and offset == 0:
        return promise
    if chunk == int(chunk) and (not boundary or boundary % chunk == 0 and offset % chunk == 0):
        return promise._replace(boundary_blocks=int(chunk), boundary_offset=0)
    return promise._replace(atomic_blocks=1)
