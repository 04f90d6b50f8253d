"""Data structures of Identify and the log pages that are not health: bytes, from what the drive is.

Source: NVM Express Base Specification 1.4, figures "Identify Controller Data Structure", "Identify Namespace Data
Structure", "Power State Descriptor", "Error Information Log Entry", "Commands Supported and Effects", "Sanitize
Status"."""

import struct
import uuid
from collections.abc import Iterable

from ssdrig.virtual.device import pdu, store, thermal
from ssdrig.virtual.device.device import Device
from ssdrig.virtual.device.power import KELVIN
from ssdrig.virtual.device.reports import FIRMWARE

VERSION = 0x00010400
MAX_QUEUES = 8  # of I/O
MAX_EVENTS = 4  # asynchronous event requests held
ERROR_ENTRIES = 64
KEEP_ALIVE_UNIT_MS = 100
SANITIZE_OFFERED = 1 << 0 | 1 << 1 | 1 << 29 | 1 << 30  # crypto erase, block erase; never leaves blocks allocated
_PAGE = 4096
# Commands supported and effects: bit 0 supported, 1 changes logical blocks, 2 changes namespace capabilities, 18:16
# alone
_ADMIN_EFFECTS = {0x02: 1, 0x06: 1, 0x08: 1, 0x09: 1, 0x0A: 1, 0x0C: 1, 0x18: 1, 0x80: 0x20007, 0x84: 0x20003}
_IO_EFFECTS = {0x00: 1, 0x01: 3, 0x02: 1, 0x08: 3, 0x09: 3}
_PLACED_EFFECTS = {0x12: 1, 0x1D: 1}  # of I/O Management Receive and Send


def lba_shifts(device: Device) -> list[int]:
    """The formats offered: 512 and 4096 bytes a block, only 4096 where the store keeps checks of whole pages."""
    return [shift for shift in (9, 12) if 1 << shift >= device.store.min_block]


def model_number(device: Device) -> str:
    """As on the label; a dilated drive includes that, so that every result shows it."""
    return device.preset.model + (f" 1/{device.dilation} speed" if device.dilation > 1 else "")


def nqn(device: Device) -> str:
    return f"nqn.2014-08.org.nvmexpress:uuid:{drive_uuid(device)}"


def drive_uuid(device: Device) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_OID, f"ssdrig simulated drive {device.serial}")


def write_cache(device: Device) -> bool:
    """Whether there is a write cache that a power cut empties."""
    return device.preset.cache_bytes > 0 and not device.preset.plp


def power_states(device: Device) -> list[bytes]:
    """Power state descriptors: what power_states.py does."""
    p = device.preset
    return [
        _power_state(state, p.P_idle_mW if state.operational else state.max_mW, i)
        for i, state in enumerate(device.power.states)
    ]


def _power_state(state, idle_mW: int, rank: int) -> bytes:
    """Bytes 0 MP, 3 MXPS and NOPS, 4 ENLAT, 8 EXLAT, 12 RRT RRL RWT RWL, 16 IDLP, 18 IPS."""
    page = bytearray(32)
    fine, fine_idle = state.max_mW < 1000, idle_mW < 1000  # scale 0.1 mW, otherwise 10 mW
    struct.pack_into("<H", page, 0, state.max_mW * 10 if fine else -(-state.max_mW // 10))
    page[3] = fine | (not state.operational) << 1
    struct.pack_into("<IIBBBB", page, 4, state.enter_us, state.exit_us, *[rank] * 4)
    struct.pack_into("<HB", page, 16, idle_mW * 10 if fine_idle else -(-idle_mW // 10), 1 << 6 if fine_idle else 2 << 6)
    return bytes(page)


def supported_logs(lids: Iterable[int]) -> bytes:
    """Log 00h: of 256 log pages, four bytes each, which there are, `lids` beside those of every drive."""
    page = bytearray(1024)
    for lid in (0x00, 0x01, 0x03, 0x05, 0x81, *lids):
        page[4 * lid] = 1
    return bytes(page)


def controller(device: Device, cntlid: int) -> bytes:
    """CNS 01h. Atomicity in blocks of the largest format, so that it holds for all of them."""
    page = bytearray(_PAGE)
    states = power_states(device)
    atomic = (pdu.MAX_TRANSFER_BYTES >> max(lba_shifts(device))) - 1
    page[4:24] = device.serial.encode().ljust(20)[:20]
    page[24:64] = model_number(device).encode().ljust(40)[:40]
    page[64:72] = FIRMWARE.encode().ljust(8)[:8]
    page[77] = (pdu.MAX_TRANSFER_BYTES // _PAGE).bit_length() - 1  # MDTS
    struct.pack_into("<HI", page, 78, cntlid, VERSION)
    placed = device.placement is not None
    struct.pack_into("<I", page, 96, 1 << 0 | 1 << 4 | placed << 19)  # CTRATT: long host id, endurance groups, FDP
    page[111] = 1  # I/O controller
    struct.pack_into("<H", page, 256, 1 << 1)  # OACS: Format NVM
    page[258], page[259] = 3, MAX_EVENTS - 1  # ACL, AERL
    page[260] = 1 << 1 | 1  # FRMW: one slot, read-only
    page[261] = 1 << 0 | 1 << 1 | 1 << 2  # LPA: health per namespace, effects, long offsets
    page[261] |= bool(device.preset.power_log) << 5  # log 00h
    page[262], page[263] = ERROR_ENTRIES - 1, len(states) - 1  # ELPE, NPSS
    page[265] = device.power.has_apst  # APSTA
    struct.pack_into("<HH", page, 266, thermal.WARNING_C + KELVIN, thermal.CRITICAL_C + KELVIN)
    total = device.drive.pages * store.PAGE_BYTES
    page[280:296] = total.to_bytes(16, "little")  # TNVMCAP
    page[296:312] = (total - device.capacity_bytes).to_bytes(16, "little")  # UNVMCAP
    struct.pack_into("<H", page, 320, 1000 // KEEP_ALIVE_UNIT_MS)  # KAS
    limits = thermal.LEAST_TMT_C + KELVIN, thermal.MOST_TMT_C + KELVIN
    struct.pack_into("<HHHI", page, 322, 1, *limits, SANITIZE_OFFERED)  # HCTMA, MNTMT, MXTMT; SANICAP
    struct.pack_into("<H", page, 340, 1)  # ENDGIDMAX
    page[512], page[513] = 0x66, 0x44  # SQES, CQES
    struct.pack_into("<HIH", page, 514, 128, 1, 1 << 2 | 1 << 3)  # MAXCMD; NN; ONCS: DSM, Write Zeroes
    page[524] = 1 << 2  # FNA: crypto erase with format
    page[525] = 0b110 | write_cache(device)  # VWC: flush of all namespaces is understood
    struct.pack_into("<HH", page, 526, atomic, 0 if device.volatile else atomic)  # AWUN, AWUPF
    # SGLS: offered; offsets in the capsule, transport data blocks
    struct.pack_into("<I", page, 536, 1 | 1 << 20 | 1 << 21)
    page[768:1024] = nqn(device).encode().ljust(256, b"\0")
    # IOCCSZ IORCSZ ICDOFF FCATT MSDBD
    struct.pack_into("<IIHBB", page, 1792, (pdu.SQE_BYTES + pdu.IN_CAPSULE_BYTES) // 16, 1, 0, 0, 1)
    for i, state in enumerate(states):
        page[2048 + 32 * i : 2080 + 32 * i] = state
    return bytes(page)


def namespace(device: Device, lba_shift: int) -> bytes:
    """CNS 00h of namespace 1. A write is whole against other commands up to the longest transfer; against a power cut
    it is whole within each aligned 4 KiB page, which is what the cache takes back; without a volatile cache always."""
    page = bytearray(_PAGE)
    blocks = device.capacity_bytes >> lba_shift
    used = min(int(device.drive.ledger()["mapped_pages"]) * store.PAGE_BYTES >> lba_shift, blocks)
    per_page = store.PAGE_BYTES >> lba_shift
    atomic = (pdu.MAX_TRANSFER_BYTES >> lba_shift) - 1
    shifts = lba_shifts(device)
    struct.pack_into("<QQQ", page, 0, blocks, blocks, used)
    page[24] = 1 << 1 | 1 << 4  # NSFEAT: the atomicity and the preferred sizes below are meant
    page[25], page[26] = len(shifts) - 1, shifts.index(lba_shift)  # NLBAF, FLBAS
    page[33] = 1 | 1 << 3  # DLFEAT: deallocated blocks read as zeros; Write Zeroes may deallocate
    struct.pack_into("<HH", page, 34, atomic, _whole_blocks(device, per_page, atomic))  # NAWUN, NAWUPF
    boundary = per_page - 1 if device.volatile and not device.chances.torn else 0
    struct.pack_into("<HHH", page, 40, 0, 0, boundary)  # NABSN, NABO, NABSPF
    page[48:64] = device.capacity_bytes.to_bytes(16, "little")  # NVMCAP
    struct.pack_into("<HHHH", page, 64, *[per_page - 1] * 4)  # NPWG, NPWA, NPDG, NPDA
    struct.pack_into("<H", page, 102, 1)  # ENDGID
    for i, shift in enumerate(shifts):
        struct.pack_into("<HBB", page, 128 + 4 * i, 0, shift, 1 if shift == 9 and len(shifts) > 1 else 0)
    return bytes(page)


def _whole_blocks(device: Device, per_page: int, atomic: int) -> int:
    """NAWUPF, in blocks less one."""
    if not device.volatile:
        return atomic
    return 0 if device.chances.torn else per_page - 1


def namespace_list(after: int) -> bytes:
    """CNS 02h: active namespaces with an identifier above `after`."""
    return struct.pack("<I", 1 if after < 1 else 0).ljust(_PAGE, b"\0")


def namespace_descriptors(device: Device) -> bytes:
    """CNS 03h: a UUID only; EUI64 and NGUID need a registered company number, which a simulation has not."""
    return (struct.pack("<BBH", 3, 16, 0) + drive_uuid(device).bytes).ljust(_PAGE, b"\0")


def effects(device: Device) -> bytes:
    """Log 05h."""
    page = bytearray(_PAGE)
    io_effects = _IO_EFFECTS | (_PLACED_EFFECTS if device.placement else {})
    for at, known in ((0, _ADMIN_EFFECTS), (1024, io_effects)):
        for opcode, bits in known.items():
            struct.pack_into("<I", page, at + 4 * opcode, bits)
    return bytes(page)


def firmware_slots() -> bytes:
    """Log 03h."""
    return (b"\x01" + bytes(7) + FIRMWARE.encode().ljust(8)).ljust(512, b"\0")


def error_entry(count: int, sqid: int, cid: int, code: int, at: int | None, lba: int, nsid: int) -> bytes:
    """One entry of log 01h. `at`: byte of the command that was wrong, None if no single one."""
    location = 0xFFFF if at is None else at
    return struct.pack("<QHHHHQIBB34x", count, sqid, cid, code << 1, location, lba, nsid, 0, 0)


def sanitize_status(progress: int, state: int, erased: bool, cdw10: int) -> bytes:
    """Log 81h. progress in 1/65536, 65535 when none runs; state 0 never, 1 done, 2 running; no estimates of
    duration."""
    return struct.pack("<HHI6I", progress, state | erased << 8, cdw10, *[0xFFFFFFFF] * 6).ljust(512, b"\0")
