"""One maker's own NVMe log pages."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ssdrig.base.errors import DriveError
from ssdrig.drive.smart.nvme_pages import is_blank


class Maker(NamedTuple):
    """`pci_ids`: PCI vendor ids (pci.ids). `models`: a regular expression for the beginning of a model name, for
    documents without the id. `pages`: the log pages to read besides OCP's, the most useful first: id -> decoder, or
    None for one that a poll keeps raw, so that polls of today can be decoded once there is a decoder.

    A decoder takes the bytes of a page (little endian) and returns its figures, with names as in a snapshot where the
    meaning is the same, None for one that the page does not have. It raises DriveError for a page that is too short, or
    all zeros or ones. `unit_bytes`: what nand_written_bytes and host_written_bytes were counted in; the count wraps
    after `wraps_at`, where that is known. `unit_checked`: whether the unit is the maker's own and not that of another
    one with the same format; if not, the host's bytes must confirm it."""

    name: str
    pci_ids: tuple[int, ...]
    models: str | None
    pages: Mapping[int, Callable[[bytes], dict] | None]
    unit_bytes: int = 1
    wraps_at: int | None = None
    unit_checked: bool = True


def refuse_blank(page: bytes, name: str) -> None:
    """DriveError for a page without content."""
    if is_blank(page):
        raise DriveError(
            f"a {name} with something in it",
            "nothing but zeros or ones",
            "do not use the page: the drive does not fill it",
        )
