"""The health pages of the virtual drive: made from its counters, laid out as in the standards.

    02h  SMART / health information, 512 bytes    NVM Express Base Specification 2.0, "SMART / Health Information"
    C0h  SMART cloud health log, 512 bytes        OCP Datacenter NVMe SSD Specification 2.0/2.5, log identifier C0h
    C3h  latency monitor, 512 bytes               OCP Datacenter NVMe SSD Specification 2.0, 4.8.9
    09h  endurance group information, 512 bytes   NVM Express Base Specification 2.0

and the document that `smartctl --json=cv -x` would print for them. Host counters have the real granularity: 02h counts
thousands of 512-byte units rounded up, 09h counts 10^9 bytes rounded up, C0h counts bytes. Bytes 232 to 243 of 02h, the
drive's own energy (Wh, rounded up) and its mean power of the last second, follow the Base Specification 2.3; thermal
throttling by the maker is in C0h, by the host's thresholds in 02h."""

import math
import struct

from ssdrig.virtual.device.slow_commands import THRESHOLDS_MS
from ssdrig.virtual.device.thermal import CRITICAL_C, WARNING_C

UNIT_BYTES = 512_000
C0H_GUID = bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af")  # in byte order, last 16 bytes of the page
C3H_GUID = bytes.fromhex("927ac08cd0846c9c7043e6d4585ed485")  # likewise
SPARE_THRESHOLD_PERCENT = 10


def percentage_used(mean_pe_cycles: float, rated_pe_cycles: int) -> int:
    """Wear against the rating, rounded up as drives do; may pass 100, 255 is the most the field holds."""
    return min(255, math.ceil(100 * mean_pe_cycles / rated_pe_cycles - 1e-9))


def log_02h(h: dict) -> bytes:
    """SMART / health information log from the health counters `h` (see health())."""
    page = bytearray(512)
    celsius = round(h["temperature_C"])
    struct.pack_into(
        "<BHBBB",
        page,
        0,
        critical_warning(h),
        celsius + 273,
        h["available_spare_percent"],
        SPARE_THRESHOLD_PERCENT,
        h["percentage_used"],
    )
    counters = [
        -(-h["host_read_bytes"] // UNIT_BYTES),
        -(-h["host_write_bytes"] // UNIT_BYTES),
        h["host_read_commands"],
        h["host_write_commands"],
        h["busy_s"] // 60,
        h["power_cycles"],
        h["power_on_s"] // 3600,
        h["unsafe_shutdowns"],
        h["media_errors"],
        h["error_log_entries"],
    ]
    for i, value in enumerate(counters):
        page[32 + 16 * i : 48 + 16 * i] = int(value).to_bytes(16, "little")
    struct.pack_into("<II", page, 192, int(h["warm_s"]) // 60, int(h["hot_s"]) // 60)
    struct.pack_into("<H", page, 200, celsius + 273)
    throttled = h["tmt1_count"], h["tmt2_count"], int(h["tmt1_s"]), int(h["tmt2_s"])
    struct.pack_into("<IIIIQI", page, 216, *throttled, h["energy_Wh"], interval_power(h["interval_W"]))
    return bytes(page)


def interval_power(watts: float) -> int:
    """Interval Power Measurement of NVM Express 2.3: 15:0 the value, 17:16 its scale: 1 for 0.1 mW, 2 for 10 mW."""
    fine = round(watts * 1e4)
    return 1 << 16 | fine if fine < 1 << 16 else 2 << 16 | min(0xFFFF, round(watts * 100))


def critical_warning(h: dict) -> int:
    """Bit 0 spare below threshold, bit 1 temperature, bit 2 worn out, bit 3 read-only."""
    return (
        (h["available_spare_percent"] < SPARE_THRESHOLD_PERCENT)
        | (h["temperature_C"] >= h["over_C"] or (h["under_C"] is not None and h["temperature_C"] <= h["under_C"])) << 1
        | (h["percentage_used"] > 100) << 2
        | h["read_only"] << 3
    )


def log_c0h(h: dict) -> bytes:
    """OCP SMART cloud health log, version 3 (OCP 2.0), from the health counters."""
    page = bytearray(512)
    page[0:16] = h["nand_write_bytes"].to_bytes(16, "little")
    page[16:32] = h["nand_read_bytes"].to_bytes(16, "little")
    struct.pack_into("<H", page, 38, 100)  # bad user NAND blocks, normalised; raw 0
    struct.pack_into("<H", page, 46, 100)  # bad system NAND blocks, normalised; raw 0
    struct.pack_into("<QQ", page, 56, h["media_errors"], h["soft_ecc_errors"])  # it has no XOR to recover from (48)
    page[80] = min(255, h["percentage_used"])  # system data is in the same blocks
    page[81:88] = h["refreshes"].to_bytes(7, "little")
    struct.pack_into("<II", page, 88, h["pe_max"], h["pe_min"])
    page[96], page[97] = h["throttled_count"] & 0xFF, h["level"]
    struct.pack_into("<I", page, 112, h["incomplete_dumps"])  # shutdowns that the capacitors did not complete
    page[120] = h["free_blocks_percent"]
    struct.pack_into("<H", page, 128, h["capacitor_percent"])
    struct.pack_into("<Q", page, 136, h["unaligned_commands"])
    struct.pack_into("<Q", page, 152, h["used_lbas"])  # NUSE of namespace 1
    page[160:176] = (h["plp_starts"]).to_bytes(16, "little")
    page[176:192] = h["rated_write_bytes"].to_bytes(16, "little")
    struct.pack_into("<H", page, 494, 3)
    page[496:512] = C0H_GUID
    return bytes(page)


def log_09h(h: dict) -> bytes:
    """Endurance group information log, units of 10^9 bytes rounded up."""
    page = bytearray(512)
    page[0] = critical_warning(h) & 0b101
    page[3], page[4], page[5] = h["available_spare_percent"], SPARE_THRESHOLD_PERCENT, h["percentage_used"]
    fields = [h["rated_write_bytes"], h["host_read_bytes"], h["host_write_bytes"], h["nand_write_bytes"]]
    for at, value in zip((32, 48, 64, 80), fields):
        page[at : at + 16] = (-(-value // 10**9)).to_bytes(16, "little")
    page[96:112] = int(h["host_read_commands"]).to_bytes(16, "little")
    page[112:128] = int(h["host_write_commands"]).to_bytes(16, "little")
    page[128:144] = int(h["media_errors"]).to_bytes(16, "little")
    page[144:160] = int(h["error_log_entries"]).to_bytes(16, "little")
    return bytes(page)


def log_25h(h: dict) -> bytes:
    """Power Measurement log without a histogram, from the health counters."""
    page, of = bytearray(512), h["power_log"]
    attributes = of["on"] | of["gaps"] << 1 | of["estimated"] << 2
    struct.pack_into("<BBHII", page, 0, 0, of["generation"], attributes, 64, of["count"])
    struct.pack_into("<HH", page, 24, 8, 250)  # size of a descriptor of the histogram, mW of its bins
    struct.pack_into("<II", page, 40, interval_power(of["average_W"]), interval_power(of["maximum_W"]))
    page[56] = of["error_percent"]
    return bytes(page)


def log_c3h(h: dict) -> bytes:
    """OCP latency monitor log, version 1: enabled, buckets that are never cleared, the longest of each measured."""
    page, of = bytearray(512), h["latency_monitor"]
    page[0] = 0b111  # on; with active latency mode and measured latencies
    page[6:10] = bytes(ms // 5 - 1 for ms in THRESHOLDS_MS)
    struct.pack_into("<H", page, 10, 0xFFF)  # each bucket measures its longest
    for direction in range(3):  # reads are last in a bucket
        for bucket in range(len(THRESHOLDS_MS)):
            counts, measured_ms, stamps_ms = (
                of[name][direction][bucket] for name in ("counts", "measured_ms", "stamps_ms")
            )
            struct.pack_into("<I", page, 44 + 16 * bucket - 4 * direction, counts)
            struct.pack_into("<Q", page, 184 - 24 * bucket - 8 * direction, stamps_ms)
            struct.pack_into("<H", page, 214 - 6 * bucket - 2 * direction, min(0xFFFF, measured_ms))
    struct.pack_into("<H", page, 494, 1)
    page[496:512] = C3H_GUID
    return bytes(page)


PAGES = {0x02: log_02h, 0xC0: log_c0h, 0x09: log_09h, 0x25: log_25h, 0xC3: log_c3h}
NEEDS = {0x25: "power_log", 0xC3: "latency_monitor"}  # the counters that a page needs


def pages(h: dict) -> dict:
    """The pages that a drive with these counters has: how each is made, by its log identifier."""
    return {lid: make for lid, make in PAGES.items() if lid not in NEEDS or h[NEEDS[lid]]}


def smartctl_document(identity: dict, h: dict, utc_s: int) -> dict:
    """The object that `smartctl --json=cv -x` would print for this drive, marked as simulated."""
    log = log_02h(h)

    def counter(at: int) -> int:
        return int.from_bytes(log[at : at + 16], "little")

    celsius = int.from_bytes(log[1:3], "little") - 273
    health = {
        "nsid": -1,
        "critical_warning": log[0],
        "temperature": celsius,
        "available_spare": log[3],
        "available_spare_threshold": log[4],
        "percentage_used": log[5],
        "data_units_read": counter(32),
        "data_units_written": counter(48),
        "host_reads": counter(64),
        "host_writes": counter(80),
        "controller_busy_time": counter(96),
        "power_cycles": counter(112),
        "power_on_hours": counter(128),
        "unsafe_shutdowns": counter(144),
        "media_errors": counter(160),
        "num_err_log_entries": counter(176),
        "warning_temp_time": int.from_bytes(log[192:196], "little"),
        "critical_comp_time": int.from_bytes(log[196:200], "little"),
        "thermal_temp1_transition_count": int.from_bytes(log[216:220], "little"),
        "thermal_temp2_transition_count": int.from_bytes(log[220:224], "little"),
        "thermal_temp1_total_time": int.from_bytes(log[224:228], "little"),
        "thermal_temp2_total_time": int.from_bytes(log[228:232], "little"),
        "temperature_sensors": [celsius],
    }
    passed = log[0] == 0
    return {
        "json_format_version": [1, 0],
        "simulated": True,
        "smartctl": {
            "version": [7, 5],
            "platform_info": "SIMULATED by ssdrig",
            "argv": ["smartctl", "--json=cv", "-x", "SIMULATED"],
            "exit_status": 0 if passed else 8,
        },
        "local_time": {"time_t": utc_s},
        "device": {"name": "SIMULATED", "info_name": "SIMULATED", "type": "nvme", "protocol": "NVMe"},
        "model_name": identity["model"],
        "serial_number": identity["serial"],
        "firmware_version": identity["firmware"],
        "nvme_total_capacity": identity["drive_bytes"],
        "nvme_number_of_namespaces": 1,
        "user_capacity": {"blocks": identity["capacity_bytes"] // 512, "bytes": identity["capacity_bytes"]},
        "logical_block_size": 512,
        "smart_support": {"available": True, "enabled": True},
        "smart_status": {"passed": passed, "nvme": {"value": log[0]}},
        "nvme_smart_health_information_log": health,
        "temperature": {"current": celsius, "op_limit_max": WARNING_C, "critical_limit_max": CRITICAL_C},
        "power_cycle_count": counter(112),
        "power_on_time": {"hours": counter(128)},
        "endurance_used": {"current_percent": log[5]},
        "spare_available": {"current_percent": log[3], "threshold_percent": log[4]},
    }
