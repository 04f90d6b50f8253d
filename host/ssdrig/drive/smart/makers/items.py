"""Makers whose CAh has Intel's format: Memblaze, DapuStor, ScaleFlux, SSSTC and Shannon (units: memblaze-utils.h).
Their unit is taken to be Intel's and must be confirmed by the host's bytes."""

from ssdrig.drive.smart.makers import intel
from ssdrig.drive.smart.makers.maker import Maker

MAKER = Maker(
    "items",
    (0x1C5F, 0x1E3B, 0xCC53, 0x1E95, 0x1CB0),  # in the order of the names above
    None,
    {0xCA: intel.decode_cah},
    unit_bytes=intel.ITEM_UNIT_BYTES,
    wraps_at=2**48,
    unit_checked=False,
)
