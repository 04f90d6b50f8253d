"""Decode the health pages of NVMe drives. Pure.

Layouts: NVMe log 02h and 09h as in the NVM Express Base Specification 2.0, OCP Datacenter NVMe SSD Specification log C0h
version 3 and later, each as nvme-cli and libnvme read them. Pages are little endian.
"""

from ssdrig.errors import DriveError

PAGE_BYTES = 512
HOST_UNIT_BYTES = 512_000  # NVMe data units: thousands of 512 bytes, rounded up
GROUP_UNIT_BYTES = 1_000_000_000  # endurance group: billions of bytes
C0_GUID = bytes.fromhex("C5AF1028EABFF2A49C4F6F7CC914D5AF")
ZERO_C_K = 273  # smartctl's conversion too

# name: (first byte, bytes)
FIELDS_02H = {
    "critical_warning": (0, 1), "temperature_K": (1, 2), "available_spare_percent": (3, 1), "available_spare_threshold_percent": (4, 1),
    "percentage_used": (5, 1), "data_units_read": (32, 16), "data_units_written": (48, 16), "host_reads": (64, 16),
    "host_writes": (80, 16), "controller_busy_min": (96, 16), "power_cycles": (112, 16), "power_on_hours": (128, 16),
    "unsafe_shutdowns": (144, 16), "media_errors": (160, 16), "error_log_entries": (176, 16), "warning_temp_min": (192, 4),
    "critical_temp_min": (196, 4),
}  # fmt: skip
FIELDS_C0H = {
    "nand_written_bytes": (0, 16), "nand_read_bytes": (16, 16), "bad_user_blocks": (32, 6), "bad_user_blocks_normalised": (38, 2),
    "bad_system_blocks": (40, 6), "bad_system_blocks_normalised": (46, 2), "xor_recoveries": (48, 8),
    "uncorrectable_reads": (56, 8), "soft_ecc_errors": (64, 8), "end_to_end_detected": (72, 4), "end_to_end_corrected": (76, 4),
    "system_data_used_percent": (80, 1), "refreshes": (81, 7), "erases_max": (88, 4), "erases_min": (92, 4),
    "throttle_events": (96, 1), "throttle_status": (97, 1), "pcie_correctable": (104, 8), "incomplete_shutdowns": (112, 4),
    "free_blocks_percent": (120, 1), "capacitor_health_percent": (128, 2), "unaligned_io": (136, 8), "security_version": (144, 8),
    "namespace_used_blocks": (152, 8), "plp_starts": (160, 16), "endurance_estimate": (176, 16), "version": (494, 2),
}  # fmt: skip
FIELDS_C0H_V5 = {"erases_mean": (224, 8)}
FIELDS_09H = {
    "critical_warning": (0, 1), "available_spare_percent": (3, 1), "available_spare_threshold_percent": (4, 1), "percentage_used": (5, 1),
    "endurance_estimate": (32, 16), "data_units_read": (48, 16), "data_units_written": (64, 16), "media_units_written": (80, 16),
    "host_reads": (96, 16), "host_writes": (112, 16), "media_errors": (128, 16), "error_log_entries": (144, 16),
}  # fmt: skip


def decode_02h(page: bytes) -> dict:
    """NVMe SMART / health log. Integers as in the page, plus host_read_bytes, host_written_bytes, temperature_C (None if 0 K)
    and temperature_sensors_C. Raises DriveError for a page of another length."""
    out = _fields(page, FIELDS_02H, "02h")
    out["host_read_bytes"] = out["data_units_read"] * HOST_UNIT_BYTES
    out["host_written_bytes"] = out["data_units_written"] * HOST_UNIT_BYTES
    out["temperature_C"] = out["temperature_K"] - ZERO_C_K if out["temperature_K"] else None
    sensors = [int.from_bytes(page[at : at + 2], "little") for at in range(200, 216, 2)]
    out["temperature_sensors_C"] = [kelvin - ZERO_C_K for kelvin in sensors if kelvin]
    return out


def decode_c0h(page: bytes) -> dict:
    """OCP datacenter extended SMART log. nand_bytes_* are the page's physical media units, which are bytes.

    Raises DriveError for another length or another GUID: drives older than OCP answer C0h with layouts of their own."""
    out = _fields(page, FIELDS_C0H, "C0h")
    if page[496:512] != C0_GUID:
        raise DriveError(
            f"the OCP GUID {C0_GUID.hex()} at the end of log C0h", page[496:512].hex(), "do not use this drive's C0h: its layout is unknown"
        )
    if out["version"] >= 5:
        out |= _fields(page, FIELDS_C0H_V5, "C0h")
    return out


def decode_09h(page: bytes) -> dict:
    """NVMe endurance group log. Adds host_read_bytes, host_written_bytes, nand_written_bytes, all in steps of 1e9 bytes."""
    out = _fields(page, FIELDS_09H, "09h")
    for name, source in (("host_read_bytes", "data_units_read"), ("host_written_bytes", "data_units_written"),
                         ("nand_written_bytes", "media_units_written")):  # fmt: skip
        out[name] = out[source] * GROUP_UNIT_BYTES
    return out


def _fields(page: bytes, fields: dict, name: str) -> dict:
    if len(page) != PAGE_BYTES:
        raise DriveError(f"{PAGE_BYTES} bytes of log {name}", f"{len(page)}", "read the page again; if it stays short, the drive does not have it")
    return {key: int.from_bytes(page[at : at + size], "little") for key, (at, size) in fields.items()}
