"""WDC and SanDisk: CAh and D0h (nvme-cli wdc-nvme.c, wdc_ssd_ca_perf_stats and wdc_ssd_d0_smart_log). FBh has no
decoder yet."""

from ssdrig.drive.smart.makers.maker import Maker, refuse_blank
from ssdrig.drive.smart.nvme_pages import fields

FIELDS_CAH = {"nand_written_bytes": (0, 16), "nand_read_bytes": (16, 16)}
FIELDS_D0H = {
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


def decode_cah(page: bytes) -> dict:
    """nand_written_bytes, nand_read_bytes."""
    refuse_blank(page, "log CAh")
    return fields(page, FIELDS_CAH, "log CAh", 32, exact=False)


def decode_d0h(page: bytes) -> dict:
    """Integers as in the page. lifetime_waf and trailing_hour_waf are the drive's own write amplification, in a scale
    that is not published; its NAND writes at 44h count pages of a size that is not reported. So neither becomes
    bytes."""
    refuse_blank(page, "log D0h")
    return fields(page, FIELDS_D0H, "log D0h", 0x68, exact=False)


MAKER = Maker("wdc", (0x1B96, 0x15B7), r"(WDC|WUS|SanDisk|SDFH)", {0xCA: decode_cah, 0xD0: decode_d0h, 0xFB: None})
