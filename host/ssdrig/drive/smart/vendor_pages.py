"""Decode the makers' own NVMe log pages that count NAND writes. Pure. A page is decoded only for the makers whose
layout is known: these pages carry no mark that identifies them. Pages are little endian.

* CAh of Intel and Solidigm, and in the same format of Memblaze, DapuStor, ScaleFlux, SSSTC and Shannon: 12-byte items
  {id, 2 reserved, normalised, reserved, raw 6 bytes, reserved}, found by id because their order differs between
  drives (nvme-cli intel-nvme.c and solidigm-smart.c; units: Intel's endurance_profiler, memblaze-utils.h).
* D0h of Micron (nvme-cli micron-nvme.c, init_d0_log_page).
* CAh and D0h of WDC/SanDisk (nvme-cli wdc-nvme.c, wdc_ssd_ca_perf_stats and wdc_ssd_d0_smart_log).
"""

import re

from ssdrig.drive.smart.nvme_pages import fields, is_blank
from ssdrig.errors import DriveError

ITEM_BYTES = 12
ITEM_UNIT_BYTES = 32 << 20  # F4h, F5h
RAW_ONES = 2**48 - 1
NOT_YET = {0xFFFF, RAW_ONES}  # timed workload values within 60 minutes of their reset

# PCI vendor id: whose pages (pci.ids); "items": Intel's format of CAh, of another maker
MAKERS = {
    0x8086: "intel",
    0x025E: "intel",  # Solidigm
    0x1C5F: "items",  # Memblaze
    0x1E3B: "items",  # DapuStor
    0xCC53: "items",  # ScaleFlux
    0x1E95: "items",  # SSSTC
    0x1CB0: "items",  # Shannon
    0x1344: "micron",
    0x1B96: "wdc",
    0x15B7: "wdc",
}
# The pages to ask for beside OCP's, the most telling first. FBh and E1h have no decoder yet: a poll keeps them raw, so
# that polls of today can be decoded once there is one.
PAGES = {"intel": (0xCA,), "items": (0xCA,), "micron": (0xD0, 0xFB, 0xE1), "wdc": (0xCA, 0xD0, 0xFB)}
# how model names begin, for documents without the PCI id
MODELS = (("intel", r"(?i)(INTEL|SOLIDIGM)\b"), ("micron", r"(?i)micron[ _]"), ("wdc", r"(WDC|WUS|SanDisk|SDFH)"))

FIELDS_MICRON_D0H = {
    "bad_user_blocks": (12, 4),
    "erase_fails": (96, 8),
    "program_fails": (144, 16),
    "nand_written_bytes": (176, 8),
}
FIELDS_WDC_CAH = {"nand_written_bytes": (0, 16), "nand_read_bytes": (16, 16)}
FIELDS_WDC_D0H = {
    "reallocated": (0x04, 4),
    "power_on_hours": (0x08, 4),
    "uncorrectable_reads": (0x0C, 4),
    "lifetime_waf": (0x10, 4),
    "trailing_hour_waf": (0x14, 4),
    "program_fails": (0x1C, 4),
    "erase_fails": (0x20, 4),
    "read_disturbs": (0x40, 4),
    "pe_cycles_remaining_percent": (0x64, 4),
}


def maker(pci_vendor_id: int | None, model: str | None) -> str | None:
    """ "intel", "items" (same format of CAh, other maker), "micron" or "wdc"; None: none whose pages are known."""
    if pci_vendor_id is not None:
        return MAKERS.get(pci_vendor_id)
    return next((name for name, start in MODELS if re.match(start, model or "")), None)


def pages_of(pci_vendor_id: int) -> tuple[int, ...]:
    """The log pages that drives of this maker have beside the standards'."""
    return PAGES.get(MAKERS.get(pci_vendor_id, ""), ())


def decode(log_id: int, page: bytes, made_by: str | None) -> dict | None:
    """What log page CAh or D0h of that maker says; None for pages and makers whose layout is not known.

    Names as in a snapshot where the meaning is the same. All-zero and all-ones pages, and pages that are too short,
    raise DriveError."""
    decoder = {
        (0xCA, "intel"): decode_items,
        (0xCA, "items"): decode_items,
        (0xD0, "micron"): decode_micron_d0h,
        (0xCA, "wdc"): decode_wdc_cah,
        (0xD0, "wdc"): decode_wdc_d0h,
    }.get((log_id, made_by or ""))
    return decoder and decoder(page)


def items_of(page: bytes) -> dict[int, tuple[int, bytes]]:
    """{id: (normalised, 6 raw bytes)} of an item page. An id that comes twice with another value is left out: not to be
    believed."""
    out: dict[int, tuple[int, bytes]] = {}
    twice = set()
    for at in range(0, len(page) - ITEM_BYTES + 1, ITEM_BYTES):
        key, value = page[at], (page[at + 3], page[at + 5 : at + 11])
        if key and out.setdefault(key, value) != value:
            twice.add(key)
    return {key: value for key, value in out.items() if key not in twice}


def decode_items(page: bytes) -> dict:
    """CAh in Intel's format. None for items that the page does not have.

    nand_written_bytes (F4h) and host_written_bytes (F5h) x 32 MiB; pe_cycles_min/max/mean (ADh); workload_wear_percent
    = E2h / 1024, workload_reads_percent (E3h) and workload_timer_min (E4h) since the timer's reset, None in its first
    60 minutes; program_fails (ABh), erase_fails (ACh), soft_ecc_errors (0Dh), end_to_end_errors (B8h), crc_errors
    (C7h), throttle_percent and throttle_count (EAh)."""
    _refuse_blank(page, "log CAh")
    items = items_of(page)

    def raw(key):
        value = items.get(key)
        number = None if value is None else int.from_bytes(value[1], "little")
        return None if number == RAW_ONES else number

    def written(key):
        return None if raw(key) is None else raw(key) * ITEM_UNIT_BYTES

    def timed(key):
        value = raw(key)
        return None if value is None or value in NOT_YET else value

    out = {
        "nand_written_bytes": written(0xF4),
        "host_written_bytes": written(0xF5),
        "program_fails": raw(0xAB),
        "erase_fails": raw(0xAC),
        "soft_ecc_errors": raw(0x0D),
        "end_to_end_errors": raw(0xB8),
        "crc_errors": raw(0xC7),
        "workload_reads_percent": timed(0xE3),
        "workload_timer_min": timed(0xE4),
        "workload_wear_percent": None if timed(0xE2) is None else timed(0xE2) / 1024,
    }
    wear = items[0xAD][1] if raw(0xAD) is not None else None
    for index, name in enumerate(("pe_cycles_min", "pe_cycles_max", "pe_cycles_mean")):
        out[name] = None if wear is None else int.from_bytes(wear[2 * index : 2 * index + 2], "little")
    throttle = items[0xEA][1] if raw(0xEA) is not None else None
    out["throttle_percent"] = None if throttle is None else throttle[0]
    out["throttle_count"] = None if throttle is None else int.from_bytes(throttle[1:5], "little")
    return out


def decode_micron_d0h(page: bytes) -> dict:
    """nand_written_bytes, program_fails, erase_fails, bad_user_blocks."""
    _refuse_blank(page, "log D0h")
    return fields(page, FIELDS_MICRON_D0H, "log D0h", 184, exact=False)


def decode_wdc_cah(page: bytes) -> dict:
    """nand_written_bytes, nand_read_bytes."""
    _refuse_blank(page, "log CAh")
    return fields(page, FIELDS_WDC_CAH, "log CAh", 32, exact=False)


def decode_wdc_d0h(page: bytes) -> dict:
    """Integers as in the page. lifetime_waf and trailing_hour_waf are the drive's own write amplification, in a scale
    that is not published; its NAND writes at 44h count pages of a size that is not reported. So neither becomes
    bytes."""
    _refuse_blank(page, "log D0h")
    return fields(page, FIELDS_WDC_D0H, "log D0h", 0x68, exact=False)


def _refuse_blank(page: bytes, name: str) -> None:
    if is_blank(page):
        raise DriveError(
            f"a {name} with something in it",
            "nothing but zeros or ones",
            "do not use the page: the drive does not fill it",
        )
