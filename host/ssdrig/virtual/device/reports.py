"""Reports about the virtual drive: its identity, its health counters, the truth. All as dicts."""

import math

from ssdrig.virtual.device import smartlog, store
from ssdrig.virtual.flash import nand, rated_power

FIRMWARE = "SIM1.0"


def identity(device) -> dict:
    """What a host may know of the drive before it asks for its health."""
    p = device.preset
    return {
        "simulated": True,
        "preset": p.name,
        "model": p.model,
        "serial": device.serial,
        "firmware": FIRMWARE,
        "interface": "nbd",
        "capacity_bytes": device.capacity_bytes,
        "drive_bytes": device.drive.pages * store.PAGE_BYTES,
        "raw_nand_bytes": int(device.drive.raw_nand_bytes),
        "time_dilation": device.dilation,
        "rail_V": p.rail_V,
        "more_rails": [list(rail) for rail in p.more_rails],
        "rated_pe_cycles": p.rated_pe_cycles,
        "rated_tbw_TB": p.rated_tbw_TB,
        "rated_write_bytes": p.rated_write_bytes(device.drive.capacity_bytes),
        "rated_years": p.rated_years,
        "rated_class": p.drive_class,
        "write_cache_bytes": p.cache_bytes,
        "plp": bool(p.plp),
        "power_lag_ms": nand.LAG_NS / 1e6,
        "power_states": rated_power.described(p),
    }


def health(device) -> dict:
    """The counters that the SMART pages are made of (see smartlog)."""
    ledger, pe = device.drive.ledger(), device.drive.pe_counts()
    names = (
        "host_read_bytes",
        "host_write_bytes",
        "host_read_commands",
        "host_write_commands",
        "nand_write_bytes",
        "nand_read_bytes",
    )
    p, reserve = device.preset, device.reserve
    return {name: int(ledger[name]) for name in names} | {
        **device.thermal,
        "energy_Wh": math.ceil(device.reported_J / 3600 - 1e-9),
        "interval_W": device.reported_W,
        "power_log": _power_log(device),
        "latency_monitor": device.slow if p.latency_monitor else None,
        "available_spare_percent": 100,
        "percentage_used": smartlog.percentage_used(float(pe.mean()), p.rated_pe_cycles),
        "pe_min": int(pe.min()),
        "pe_max": int(pe.max()),
        "free_blocks_percent": int(100 * ledger["free_blocks"] // len(pe)),
        "used_lbas": int(ledger["mapped_pages"]) * store.PAGE_BYTES // 512,
        "busy_s": int(ledger["energy_controller_J"] * 1000 / p.P_active_mW),
        "power_on_s": int(device.power_on_s),
        "power_cycles": device.power_cycles,
        "unsafe_shutdowns": device.unsafe_shutdowns,
        "plp": bool(p.plp),
        "plp_starts": device.plp_starts,
        "capacitor_percent": round(100 * reserve.health) if reserve else 0,
        "incomplete_dumps": reserve.incomplete_dumps if reserve else 0,
        "read_only": False,
        "media_errors": device.media_errors,
        "soft_ecc_errors": int(ledger["soft_ecc_pages"]),
        "refreshes": int(ledger["refreshed_units"]),
        "error_log_entries": device.error_log_entries,
        "over_C": device.over_C,
        "under_C": device.under_C,
        "unaligned_commands": device.unaligned_commands,
        "rated_write_bytes": p.rated_write_bytes(device.drive.capacity_bytes),
    }


def _power_log(device) -> dict | None:
    """What log 25h is made of; None of a drive without."""
    p, measured = device.preset, device.power.measurement
    if not p.power_log:
        return None
    return {
        "on": measured.on,
        "generation": measured.generation,
        "count": measured.count,
        "average_W": measured.average_W,
        "maximum_W": measured.maximum_W,
        "gaps": False,
        "estimated": p.power_log == "estimated",
        "error_percent": p.power_error_percent,
    }


def truth(device, t_ns: int) -> dict:
    """The ledger, with what only this level knows."""
    return device.drive.ledger() | {
        "simulated": True,
        "t_ns": t_ns,
        "model_t_ns": device.model_ns(t_ns),
        "preset": device.preset.name,
        "time_dilation": device.dilation,
        "host_latency_ns": device.latency_ns,
        "last_command_t_ns": device.host_ns(device._came_ns),
        "powered": device.powered,
        "power_cycles": device.power_cycles,
        "unsafe_shutdowns": device.unsafe_shutdowns,
        "temperature_C": device.thermal["temperature_C"],
        "pages_lost": device.pages_lost,
    }
