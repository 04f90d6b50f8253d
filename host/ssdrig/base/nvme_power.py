"""What an NVMe drive says of its own power: the words and pages of Base Specification 2.3, as libnvme 3 has them
(nvme_smart_log, nvme_power_meas_log). Pure; little endian."""

from ssdrig.base.errors import DriveError

INTERVAL = (240, 4)  # first byte and bytes of the interval power in log 02h
SCALES_W = {1: 1e-4, 2: 1e-2}  # of a power, bits 17:16
LOG_BYTES = 64  # of log 25h without its histogram
FIELDS = {  # of log 25h: first byte, bytes
    "version": (0, 1),
    "generation": (1, 1),  # measurements started
    "attributes": (2, 2),
    "count": (8, 4),  # intervals measured since the start; it does not wrap
    "average_power": (40, 4),
    "maximum_power": (44, 4),
    "error_percent": (56, 1),
}
MEASURING, NOT_CONTIGUOUS, ESTIMATED = 1 << 0, 1 << 1, 1 << 2  # attributes
MOST_PERCENT = 100  # above that the drive states no error of its power


def watts(word: int) -> float | None:
    """Of a power with its scale, bits 15:0 and 17:16; None: not reported."""
    value, scale = word & 0xFFFF, word >> 16 & 3
    return value * SCALES_W[scale] if scale in SCALES_W else None


def interval_W(log_02h: bytes) -> float | None:
    """The mean power of the drive's last interval; None: not reported."""
    first, size = INTERVAL
    return watts(int.from_bytes(log_02h[first : first + size], "little"))


def measurement(log_25h: bytes) -> dict:
    """Power Measurement log. Integers as in the page, plus `measuring`, `contiguous`, `estimated` (bool),
    average_power_W and maximum_power_W (None: not reported) of all intervals since the measurement was started, and
    error_percent None where the drive states no error. Raises DriveError."""
    if len(log_25h) < LOG_BYTES:
        raise DriveError(f"{LOG_BYTES} bytes of log 25h", f"{len(log_25h)}", "read the page again")
    out: dict = {key: int.from_bytes(log_25h[at : at + size], "little") for key, (at, size) in FIELDS.items()}
    out["measuring"] = bool(out["attributes"] & MEASURING)
    out["contiguous"] = not out["attributes"] & NOT_CONTIGUOUS
    out["estimated"] = bool(out["attributes"] & ESTIMATED)
    for name in ("average_power", "maximum_power"):
        out[f"{name}_W"] = watts(out[name])
    if out["error_percent"] > MOST_PERCENT:
        out["error_percent"] = None
    return out
