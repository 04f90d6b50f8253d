"""SMART: decode a drive's pages, poll a drive into the smart/<nnn>.json document, and reduce a document to wear numbers.

Layouts: NVMe log 02h and 09h as in the NVM Express Base Specification 2.0, OCP Datacenter NVMe SSD Specification log C0h
version 3 and later, each as nvme-cli and libnvme read them. Pages are little endian.
"""

import json
import re
import socket
import time

from ssdrig.errors import DriveError

PAGE_BYTES = 512
HOST_UNIT_BYTES = 512_000  # NVMe data units: thousands of 512 bytes, rounded up
GROUP_UNIT_BYTES = 1_000_000_000  # endurance group: billions of bytes
C0_GUID = bytes.fromhex("C5AF1028EABFF2A49C4F6F7CC914D5AF")
ZERO_C_K = 273  # smartctl's conversion too
POLL_TIMEOUT_S = 10.0
NO_PAGE = "no log page"  # how the virtual drive says so

# name: (first byte, bytes)
FIELDS_02H = {
    "critical_warning": (0, 1), "temperature_K": (1, 2), "spare_percent": (3, 1), "spare_threshold_percent": (4, 1),
    "percentage_used": (5, 1), "data_units_read": (32, 16), "data_units_written": (48, 16), "host_reads": (64, 16),
    "host_writes": (80, 16), "controller_busy_min": (96, 16), "power_cycles": (112, 16), "power_on_hours": (128, 16),
    "unsafe_shutdowns": (144, 16), "media_errors": (160, 16), "error_log_entries": (176, 16), "warning_temp_min": (192, 4),
    "critical_temp_min": (196, 4),
}  # fmt: skip
FIELDS_C0H = {
    "nand_bytes_written": (0, 16), "nand_bytes_read": (16, 16), "bad_user_blocks": (32, 6), "bad_user_blocks_normalised": (38, 2),
    "bad_system_blocks": (40, 6), "bad_system_blocks_normalised": (46, 2), "xor_recoveries": (48, 8),
    "uncorrectable_reads": (56, 8), "soft_ecc_errors": (64, 8), "end_to_end_detected": (72, 4), "end_to_end_corrected": (76, 4),
    "system_data_used_percent": (80, 1), "refreshes": (81, 7), "erases_max": (88, 4), "erases_min": (92, 4),
    "throttle_events": (96, 1), "throttle_status": (97, 1), "pcie_correctable": (104, 8), "incomplete_shutdowns": (112, 4),
    "free_blocks_percent": (120, 1), "capacitor_health_percent": (128, 2), "unaligned_io": (136, 8), "security_version": (144, 8),
    "namespace_used_blocks": (152, 8), "plp_starts": (160, 16), "endurance_estimate": (176, 16), "version": (494, 2),
}  # fmt: skip
FIELDS_C0H_V5 = {"erases_mean": (224, 8)}
FIELDS_09H = {
    "critical_warning": (0, 1), "spare_percent": (3, 1), "spare_threshold_percent": (4, 1), "percentage_used": (5, 1),
    "endurance_estimate": (32, 16), "data_units_read": (48, 16), "data_units_written": (64, 16), "media_units_written": (80, 16),
    "host_reads": (96, 16), "host_writes": (112, 16), "media_errors": (128, 16), "error_log_entries": (144, 16),
}  # fmt: skip


def decode_02h(page: bytes) -> dict:
    """NVMe SMART / health log. Integers as in the page, plus host_bytes_read, host_bytes_written, temp_C (None if 0 K)
    and temp_sensors_C. Raises DriveError for a page of another length."""
    out = _fields(page, FIELDS_02H, "02h")
    out["host_bytes_read"] = out["data_units_read"] * HOST_UNIT_BYTES
    out["host_bytes_written"] = out["data_units_written"] * HOST_UNIT_BYTES
    out["temp_C"] = out["temperature_K"] - ZERO_C_K if out["temperature_K"] else None
    sensors = [int.from_bytes(page[at : at + 2], "little") for at in range(200, 216, 2)]
    out["temp_sensors_C"] = [kelvin - ZERO_C_K for kelvin in sensors if kelvin]
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
    """NVMe endurance group log. Adds host_bytes_read, host_bytes_written, nand_bytes_written, all in steps of 1e9 bytes."""
    out = _fields(page, FIELDS_09H, "09h")
    for name, source in (("host_bytes_read", "data_units_read"), ("host_bytes_written", "data_units_written"),
                         ("nand_bytes_written", "media_units_written")):  # fmt: skip
        out[name] = out[source] * GROUP_UNIT_BYTES
    return out


def _fields(page: bytes, fields: dict, name: str) -> dict:
    if len(page) != PAGE_BYTES:
        raise DriveError(f"{PAGE_BYTES} bytes of log {name}", f"{len(page)}", "read the page again; if it stays short, the drive does not have it")
    return {key: int.from_bytes(page[at : at + size], "little") for key, (at, size) in fields.items()}


def ask(admin_socket, request: dict, timeout_s: float = POLL_TIMEOUT_S) -> dict:
    """One request to the virtual drive's admin socket, a JSON object on a line each way: its answer.

    Raises DriveError when nobody answers, or when the drive answers {"error": words}."""
    return _checked(_exchange(admin_socket, request, timeout_s), request)


def poll_virtual(admin_socket, timeout_s: float = POLL_TIMEOUT_S) -> dict:
    """Poll the virtual drive through its admin socket.

    Returns the smart/<nnn>.json document without "n" and "reason", which the run adds: {"t_start_ns", "t_end_ns",
    "simulated", "smartctl", "log_02h", "log_c0h", "log_09h"}, pages as hex; C0h and 09h are null if the drive has none.
    The pages are read one right after the other, because write amplification compares two of them.
    Raises DriveError when the drive does not answer."""
    t_start_ns = time.monotonic_ns()
    pages = {f"log_{lid:02x}h": _page(admin_socket, lid, timeout_s) for lid in (0x02, 0xC0, 0x09)}
    if pages["log_02h"] is None:
        raise DriveError("log page 02h, which every NVMe drive has", "none", "see the drive server's log")
    smartctl = ask(admin_socket, {"op": "smartctl"}, timeout_s)
    return {
        "t_start_ns": t_start_ns,
        "t_end_ns": time.monotonic_ns(),
        "simulated": True,
        "smartctl": smartctl,
        **pages,
    }


def _page(admin_socket, lid: int, timeout_s: float) -> str | None:
    """The page as hex, None if the drive does not have it. Any other trouble is told: a page that is there but could not
    be read must not look like a drive without a NAND counter."""
    request = {"op": "log", "lid": lid}
    answer = _exchange(admin_socket, request, timeout_s)
    if str(answer.get("error", "")).startswith(NO_PAGE):
        return None
    page = _checked(answer, request).get("hex")
    if not isinstance(page, str) or not re.fullmatch(f"[0-9a-f]{{{2 * PAGE_BYTES}}}", page):
        raise DriveError(f"{PAGE_BYTES} bytes as hex in answer to {request}", str(answer)[:80], "see the drive server's log")
    return page


def _checked(answer: dict, request: dict) -> dict:
    if "error" in answer:
        raise DriveError(f"the virtual drive to do {request}", str(answer["error"]), "see whether it has power and knows the request")
    return answer


def _exchange(admin_socket, request: dict, timeout_s: float) -> dict:
    line = b""
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(timeout_s)
            link.connect(str(admin_socket))
            link.sendall(json.dumps(request).encode() + b"\n")
            while not line.endswith(b"\n"):
                more = link.recv(1 << 16)
                if not more:
                    raise ConnectionError("the connection ended before the answer did")
                line += more
        answer = json.loads(line)
        if not isinstance(answer, dict):
            raise ValueError(f"not a JSON object: {line[:80]!r}")
    except (OSError, ValueError) as error:
        raise DriveError(
            f"the virtual drive to answer {request}", f"{type(error).__name__}: {error}", f"see whether it still runs: {admin_socket}"
        ) from error
    return answer


def snapshot(document: dict) -> dict:
    """The wear numbers of one SMART document, flat; None where the drive does not say.

    {"t_ns", "t_start_ns", "t_end_ns", "reason", "simulated", "host_bytes_written", "host_bytes_read", "host_unit_bytes",
    "nand_bytes_written", "nand_unit_bytes", "nand_source": "c0h", "09h" or None, "percentage_used", "spare_percent", "temp_C",
    "power_on_hours", "power_cycles", "unsafe_shutdowns", "media_errors"}. *_unit_bytes is the counter's resolution: a
    difference of two readings is off by less than one unit. t_ns is the middle of the poll (None without times).

    Pages win over smartctl's JSON, which has the same numbers but may be rounded by what wrote it."""
    start, end = document.get("t_start_ns"), document.get("t_end_ns")
    out = {
        "t_ns": (start + end) // 2 if start is not None and end is not None else None,
        "t_start_ns": start,
        "t_end_ns": end,
        "reason": document.get("reason"),
        "simulated": bool(document.get("simulated", False)),
        "nand_bytes_written": None,
        "nand_unit_bytes": None,
        "nand_source": None,
    }
    page = document.get("log_02h")
    health = decode_02h(bytes.fromhex(page)) if page else _health_of_smartctl(document.get("smartctl") or {})
    for name in ("host_bytes_written", "host_bytes_read", "percentage_used", "spare_percent", "temp_C", "power_on_hours",
                 "power_cycles", "unsafe_shutdowns", "media_errors"):  # fmt: skip
        out[name] = health.get(name)
    out["host_unit_bytes"] = None if out["host_bytes_written"] is None else HOST_UNIT_BYTES
    for name, decode, unit in (("c0h", decode_c0h, 1), ("09h", decode_09h, GROUP_UNIT_BYTES)):
        page = document.get(f"log_{name}")
        if page and out["nand_source"] is None:
            try:
                nand = decode(bytes.fromhex(page))["nand_bytes_written"]
            except DriveError:
                continue  # a vendor's own layout: its numbers mean nothing to us
            out |= {"nand_bytes_written": nand, "nand_unit_bytes": unit, "nand_source": name}
    return out


def _health_of_smartctl(smartctl: dict) -> dict:
    """The same names from `smartctl --json` of an NVMe drive; empty for other drives. Integers past 2^53 are taken from
    the *_s strings that --json=v adds."""
    log = smartctl.get("nvme_smart_health_information_log")
    if not isinstance(log, dict):
        return {}

    def number(name):
        value = log.get(f"{name}_s", log.get(name))
        return None if value is None else int(value)

    def units(name):
        value = number(name)
        return None if value is None else value * HOST_UNIT_BYTES

    return {
        "host_bytes_written": units("data_units_written"),
        "host_bytes_read": units("data_units_read"),
        "percentage_used": number("percentage_used"),
        "spare_percent": number("available_spare"),
        "temp_C": number("temperature"),
        "power_on_hours": number("power_on_hours"),
        "power_cycles": number("power_cycles"),
        "unsafe_shutdowns": number("unsafe_shutdowns"),
        "media_errors": number("media_errors"),
    }
