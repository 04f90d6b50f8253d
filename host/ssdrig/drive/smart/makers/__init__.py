"""The makers' own NVMe log pages: one module for each, which has a `MAKER`. These pages carry no mark that identifies
them, so a page is decoded only for the makers whose layout is known."""

import importlib
import pkgutil
import re

from ssdrig.drive.smart.makers.maker import Maker

MAKERS: tuple[Maker, ...] = tuple(
    importlib.import_module(f"{__name__}.{module.name}").MAKER
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name)
    if module.name != "maker"
)
DECODED = sorted({log_id for maker in MAKERS for log_id, decoder in maker.pages.items() if decoder})


def maker_of(pci_vendor_id: int | None, model: str | None) -> Maker | None:
    """The maker whose pages a drive has, by its PCI vendor id, otherwise by its model name. None: no known maker."""
    if pci_vendor_id is not None:
        return next((maker for maker in MAKERS if pci_vendor_id in maker.pci_ids), None)
    return next((maker for maker in MAKERS if maker.models and re.match(maker.models, model or "")), None)


def decode(log_id: int, page: bytes, maker: Maker | None) -> dict | None:
    """The fields of a maker's log page; None for makers and pages of unknown layout. Raises DriveError."""
    decoder = maker.pages.get(log_id) if maker else None
    return decoder(page) if decoder else None
