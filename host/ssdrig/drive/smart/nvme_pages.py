"""Decode the health pages of NVMe drives that standards define. Pure. Pages are little endian.

02h, 09h, 22h: NVM Express Base Specification 2.0 and 2.1, as libnvme's structures nvme_smart_log,
nvme_endurance_group_log and nvme_fdp_stats_log read them. C0h: OCP Datacenter NVMe SSD Specification 2.0 (page version
3) and 2.5 (version 5 and later), as nvme-cli's ocp-smart-extended-log.h reads it. Every decoder raises
DriveError for a page that is too short or has another maker's mark."""

from collections.abc import Iterable

from ssdrig.base import nvme_power
from ssdrig.base.errors import DriveError

PAGE_BYTES = 512
FDP_BYTES = 64
HOST_UNIT_BYTES = 512_000  # NVMe data units: thousands of 512 bytes, rounded up
GROUP_UNIT_BYTES = 1_000_000_000  # endurance group: billions of bytes
C0_GUID = bytes.fromhex("C5AF1028EABFF2A49C4F6F7CC914D5AF")
ZERO_C_K = 273  # smartctl's conversion too

# name: (first byte, bytes)
FIELDS_02H = {
    "critical_warning": (0, 1),
    "temperature_K": (1, 2),
    "available_spare_percent": (3, 1),
    "available_spare_threshold_percent": (4, 1),
    "percentage_used": (5, 1),
    "data_units_read": (32, 16),
    "data_units_written": (48, 16),
    "host_reads": (64, 16),
    "host_writes": (80, 16),
    "controller_busy_min": (96, 16),
    "power_cycles": (112, 16),
    "power_on_hours": (128, 16),
    "unsafe_shutdowns": (144, 16),
    "media_errors": (160, 16),
    "error_log_entries": (176, 16),
    "warning_temp_min": (192, 4),
    "critical_temp_min": (196, 4),
    "throttle_1_count": (216, 4),
    "throttle_2_count": (220, 4),
    "throttle_1_s": (224, 4),
    "throttle_2_s": (228, 4),
    "energy_Wh": (232, 8),
    "interval_power": nvme_power.INTERVAL,
}
FIELDS_C0H = {
    "nand_written_bytes": (0, 16),
    "nand_read_bytes": (16, 16),
    "bad_user_blocks": (32, 6),
    "bad_user_blocks_normalised": (38, 2),
    "bad_system_blocks": (40, 6),
    "bad_system_blocks_normalised": (46, 2),
    "xor_recoveries": (48, 8),
    "uncorrectable_reads": (56, 8),
    "soft_ecc_errors": (64, 8),
    "end_to_end_detected": (72, 4),
    "end_to_end_corrected": (76, 4),
    "system_data_used_percent": (80, 1),
    "refreshes": (81, 7),
    "erases_max": (88, 4),
    "erases_min": (92, 4),
    "throttle_events": (96, 1),
    "throttle_status": (97, 1),
    "pcie_correctable": (104, 8),
    "incomplete_shutdowns": (112, 4),
    "free_blocks_percent": (120, 1),
    "capacitor_health_percent": (128, 2),
    "unaligned_io": (136, 8),
    "security_version": (144, 8),
    "namespace_used_blocks": (152, 8),
    "plp_starts": (160, 16),
    "endurance_estimate": (176, 16),
    "link_retrainings": (192, 8),
    "power_state_changes": (200, 8),
    "version": (494, 2),
}
FIELDS_C0H_V5 = {
    "media_dies": (216, 2),
    "die_failure_tolerance": (218, 2),
    "media_dies_offline": (220, 2),
    "temperature_max_recorded": (222, 1),
    "erases_mean": (224, 8),
    "command_timeouts": (232, 4),
    "system_program_fails": (236, 4),
    "system_program_fails_normalised": (240, 1),
    "system_uncorrectable_reads": (244, 4),
    "system_uncorrectable_reads_normalised": (248, 1),
    "system_erase_fails": (252, 4),
    "system_erase_fails_normalised": (256, 1),
    "peak_power_capability": (260, 2),
    "average_power_max": (262, 2),
    "lifetime_power": (264, 6),
}
FIELDS_09H = {
    "critical_warning": (0, 1),
    "available_spare_percent": (3, 1),
    "available_spare_threshold_percent": (4, 1),
    "percentage_used": (5, 1),
    "endurance_estimate": (32, 16),
    "data_units_read": (48, 16),
    "data_units_written": (64, 16),
    "media_units_written": (80, 16),
    "host_reads": (96, 16),
    "host_writes": (112, 16),
    "media_errors": (128, 16),
    "error_log_entries": (144, 16),
}
FIELDS_22H = {"host_written_bytes": (0, 16), "nand_written_bytes": (16, 16), "media_erased_bytes": (32, 16)}


def decode_02h(page: bytes) -> dict:
    """NVMe SMART / health log. Integers as in the page, plus host_read_bytes, host_written_bytes, temperature_C (None
    if 0 K), temperature_sensors_C (of sensor 1 to the last that it has, None of one it lacks), lifetime_energy_Wh (None
    if 0, which is "not reported") and interval_power_W (None likewise)."""
    out = fields(page, FIELDS_02H, "log 02h", PAGE_BYTES)
    _refuse_blank(page, "log 02h")
    out["host_read_bytes"] = out["data_units_read"] * HOST_UNIT_BYTES
    out["host_written_bytes"] = out["data_units_written"] * HOST_UNIT_BYTES
    out["temperature_C"] = out["temperature_K"] - ZERO_C_K if out["temperature_K"] else None
    kelvin = (int.from_bytes(page[at : at + 2], "little") for at in range(200, 216, 2))
    out["temperature_sensors_C"] = sensors_C(value - ZERO_C_K if value else None for value in kelvin)
    out["lifetime_energy_Wh"] = out["energy_Wh"] or None
    out["interval_power_W"] = nvme_power.watts(out["interval_power"])
    return out


def sensors_C(celsius: Iterable[int | None]) -> list[int | None]:
    """Temperatures from sensor 1 to the last that is there."""
    out = list(celsius)
    while out and out[-1] is None:
        out.pop()
    return out


def decode_c0h(page: bytes) -> dict:
    """OCP datacenter extended SMART log. nand_*_bytes are the page's physical media units, which are bytes. A field of
    two bytes or more with all ones becomes None: OCP's "not supported".

    DriveError also for another GUID: drives older than OCP answer C0h with layouts of their own."""
    out = fields(page, FIELDS_C0H, "log C0h", PAGE_BYTES)
    if page[496:512] != C0_GUID:
        raise DriveError(
            f"the OCP GUID {C0_GUID.hex()} at the end of log C0h",
            page[496:512].hex(),
            "do not use this drive's C0h: its layout is unknown",
        )
    layout = dict(FIELDS_C0H)
    if out["version"] >= 5:
        layout |= FIELDS_C0H_V5
        out = fields(page, layout, "log C0h", PAGE_BYTES)
    return {name: None if size > 1 and out[name] == 256**size - 1 else out[name] for name, (_, size) in layout.items()}


def is_ocp(page: str | None) -> bool:
    """Whether log C0h, as hex, is OCP's, and the drive's other pages of these numbers are, too."""
    return bool(page) and str(page).casefold().endswith(C0_GUID.hex())


def decode_09h(page: bytes) -> dict:
    """NVMe endurance group log. Adds host_read_bytes, host_written_bytes, nand_written_bytes, all in steps of 1e9
    bytes; None for 0, which is "not reported"."""
    out = fields(page, FIELDS_09H, "log 09h", PAGE_BYTES)
    _refuse_blank(page, "log 09h")
    for name, source in (
        ("host_read_bytes", "data_units_read"),
        ("host_written_bytes", "data_units_written"),
        ("nand_written_bytes", "media_units_written"),
    ):
        out[name] = out[source] * GROUP_UNIT_BYTES or None
    return out


def decode_22h(page: bytes) -> dict:
    """Flexible Data Placement statistics of one endurance group, in bytes of user data since it was switched on:
    host_written_bytes (HBMW), nand_written_bytes (MBMW), media_erased_bytes (MBE); Base Specification 2.1, figure 286.
    They do not wrap. The page has 64 bytes; what a longer read brings after them is not looked at."""
    return fields(page, FIELDS_22H, "log 22h", FDP_BYTES, exact=False)


def fields(page: bytes, layout: dict, name: str, size: int, exact: bool = True) -> dict:
    """{field: little-endian integer} of a page that must have `size` bytes (or at least as many)."""
    if len(page) < size or exact and len(page) != size:
        raise DriveError(
            f"{size} bytes of {name}", f"{len(page)}", "read the page again; if it stays so, the drive does not have it"
        )
    return {key: int.from_bytes(page[at : at + count], "little") for key, (at, count) in layout.items()}


def is_blank(page: bytes) -> bool:
    """All zeros or all ones: how drives and bridges answer when they have nothing to report."""
    return page.count(0) == len(page) or page.count(255) == len(page)


def _refuse_blank(page: bytes, name: str) -> None:
    if is_blank(page):
        raise DriveError(
            f"a {name} with something in it",
            "nothing but zeros or ones",
            "do not use the page: the drive or its bridge does not fill it",
        )
