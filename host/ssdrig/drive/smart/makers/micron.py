"""Micron: D0h (nvme-cli micron-nvme.c, init_d0_log_page). FBh and E1h have no decoder yet."""

from ssdrig.drive.smart.makers.maker import Maker, refuse_blank
from ssdrig.drive.smart.nvme_pages import fields

FIELDS_D0H = {
    "bad_user_blocks": (12, 4),
    "erase_fails": (96, 8),
    "program_fails": (144, 16),
    "nand_written_bytes": (176, 8),
}


def decode_d0h(page: bytes) -> dict:
    """nand_written_bytes, program_fails, erase_fails, bad_user_blocks."""
    refuse_blank(page, "log D0h")
    return fields(page, FIELDS_D0H, "log D0h", 184, exact=False)


MAKER = Maker("micron", (0x1344,), r"(?i)micron[ _]", {0xD0: decode_d0h, 0xFB: None, 0xE1: None})
