"""SMART documents that no drive wrote and many could have: NVMe, ATA of many families, SAS, hard disks, with values
that are plausible, odd, at the edges of their fields or contradict each other. Seeded: the same number gives the same
documents."""

import math
import random
from collections.abc import Iterator

from ssdrig.drive.smart import ata_table

KINDS = ("nvme", "ata", "ata", "ata", "sas", "hard disk")
EDGES = (
    0,
    1,
    2,
    99,
    100,
    101,
    253,
    255,
    256,
    0xFFFF,
    2**24,
    2**31,
    2**32 - 1,
    2**32,
    2**48 - 1,
    2**48,
    2**56 - 1,
    2**63,
)
FAMILIES = (
    "Intel S4510/S4610/S4500/S4600 Series SSDs",
    "Intel/Solidigm S46x0/S45x0 Series SSDs",
    "Dell Certified Intel S3520 Series SSDs",
    "Samsung based SSDs",
    "Crucial/Micron Client SSDs",
    "Micron 5100 / 52x0 / 5300 / 5400 SSDs",
    "SandForce Driven SSDs",
    "Phison Driven SSDs",
    "WD Blue / Red / Green SSDs",
    "Marvell based SanDisk SSDs",
    "SanDisk based SSDs",
    "Silicon Motion based SSDs",
    "Innodisk 3IE2/3ME2/3MG2/3SE2/3TG6 SSDs",
    "Maxio based SSDs (variant 1)",
    "SK hynix SATA SSDs",
    "Seagate BarraCuda series SSD",
    "Indilinx Barefoot 3 based SSDs",
    "Swissbit X-7x Family SATA SSD",
    "ATP SATA III Superior Line SSDs",
    "Apacer AS340/350 SSDs",
    "SSSTC ER2 GD/CD Series SSDs",
    "Kingston SSDNow UV400/500",
    "Nobody's SSDs",
)
PLATTERS = ((7, "Seek_Error_Rate"), (10, "Spin_Retry_Count"), (193, "Load_Cycle_Count"), (240, "Head_Flying_Hours"))


def documents(count: int, seed: int = 1) -> Iterator[tuple[str, dict]]:
    """(kind of KINDS, document), `count` of them."""
    for number in range(count):
        draw = random.Random(f"{seed}:{number}")
        kind = KINDS[number % len(KINDS)]
        yield kind, {"smartctl": {"nvme": _nvme, "sas": _sas}.get(kind, _ata)(draw, kind == "hard disk")}


def _some(draw: random.Random, most: float = 1e15):
    """A count: over all magnitudes, sometimes at an edge, sometimes not a number at all."""
    chance = draw.random()
    if chance < 0.75:
        return int(math.exp(draw.uniform(0, math.log(most))))
    if chance < 0.97:
        return draw.choice(EDGES)
    return draw.choice([-1, None, True, 1.5, "7", [], {}, 10**40])


def _common(draw: random.Random, protocol: str) -> dict:
    out = {
        "smartctl": {"version": [7, draw.randrange(6)], "exit_status": draw.choice([0, 0, 0, 4, 64])},
        "device": {"name": "/dev/x", "protocol": protocol},
        "model_name": "GENERATED",
        "serial_number": f"S{draw.randrange(1000)}",
        "user_capacity": {"bytes": draw.choice([0, 120, 480, 1000, 7680]) * 10**9},
        "logical_block_size": draw.choice([512, 512, 4096]),
        "smart_status": {"passed": draw.random() < 0.9},
        "temperature": {"current": draw.choice([0, 25, 44, 70, _some(draw)])},
        "power_on_time": {"hours": draw.choice([0, 5, 800, 20_000, 60_000, _some(draw, 1e6)])},
        "power_cycle_count": _some(draw, 1e5),
    }
    for name in list(out):
        if name not in ("device", "smartctl") and draw.random() < 0.1:
            del out[name]
    return out


def _nvme(draw: random.Random, _) -> dict:
    log = {
        "critical_warning": draw.choice([0, 0, 4]),
        "temperature": draw.choice([0, 35, _some(draw)]),
        "available_spare": draw.choice([100, 98, _some(draw)]),
        "available_spare_threshold": 10,
        "percentage_used": draw.choice([0, 3, 120, _some(draw)]),
    }
    for name in ("data_units_written", "data_units_read", "host_writes", "host_reads", "controller_busy_time"):
        log[name] = _some(draw, 1e12)
    for name in ("power_on_hours", "power_cycles", "unsafe_shutdowns", "media_errors", "num_err_log_entries"):
        log[name] = _some(draw, 1e6)
    log |= {"warning_temp_time": _some(draw, 1e6), "critical_comp_time": _some(draw, 1e6)}
    return _common(draw, "NVMe") | {"nvme_smart_health_information_log": log}


def _sas(draw: random.Random, _) -> dict:
    point = draw.choice(".,")
    out = _common(draw, "SCSI") | {
        "scsi_percentage_used_endurance_indicator": draw.choice([0, 7, 255, _some(draw)]),
        "scsi_grown_defect_list": _some(draw, 1e4),
        "scsi_start_stop_cycle_counter": {"accumulated_start_stop_cycles": draw.choice([0, 30, _some(draw)])},
        "scsi_error_counter_log": {
            way: {"gigabytes_processed": f"{_some(draw, 1e9)}{point}590", "total_uncorrected_errors": _some(draw, 100)}
            for way in ("read", "write")
        },
        "rotation_rate": draw.choice([0, 0, 10_000]),
    }
    return out | {"endurance_used": {"current_percent": _some(draw, 255)}}


def _ata(draw: random.Random, platters: bool) -> dict:
    family = draw.choice(FAMILIES)
    rows = [
        row
        for entry in ata_table.entries()
        if entry.fits(family, True, "", "AP613PE0", frozenset())
        for row in entry.rows
    ]
    table = [
        {
            "id": key or draw.choice([241, 242, 225, 233, 249]),
            "name": name or "Unknown_Attribute",
            "value": draw.choice([100, 100, 91, 1, 0, 120, _some(draw)]),
            "thresh": draw.choice([0, 10]),
            "raw": {"value": draw.choice([_some(draw), draw.randrange(101), draw.randrange(10_000)])},
        }
        for key, name, _, _ in draw.sample(rows, min(len(rows), draw.randrange(20)))
    ]
    for row in table:
        row["raw"]["string"] = str(row["raw"]["value"])
    statistics = {
        (1, 0x08): 1e5,
        (1, 0x10): 1e6,
        (1, 0x18): 1e12,
        (1, 0x28): 1e12,
        (4, 0x08): 100,
        (5, 0x20): 80,
        (7, 0x08): 255,
    }
    pages = [
        {
            "number": page,
            "table": [
                {"offset": offset, "value": _some(draw, most), "flags": {"valid": True, "normalized": page == 7}}
            ],
        }
        for (page, offset), most in statistics.items()
        if draw.random() < 0.3
    ]
    out = _common(draw, "ATA") | {"model_family": family, "in_smartctl_database": True, "firmware_version": "AP613PE0"}
    if draw.random() < 0.2:  # as `smartctl -A` leaves it
        for name in ("model_family", "in_smartctl_database", "user_capacity"):
            out.pop(name, None)
    if platters:
        table += [{"id": k, "name": n, "value": 100, "raw": {"value": 0, "string": "0"}} for k, n in PLATTERS]
        if draw.random() < 0.7:
            out["rotation_rate"] = draw.choice([5400, 7200])
    else:
        out["rotation_rate"] = 0
    return out | {
        "ata_smart_attributes": {"table": table},
        "ata_device_statistics": {"pages": pages},
        "endurance_used": {"current_percent": _some(draw, 255)},
        "spare_available": {"current_percent": draw.choice([100, 97, _some(draw)]), "threshold_percent": 10},
    }


def faults(kind: str, snapshot: dict) -> list[str]:
    """What cannot be in the snapshot of a generated document; the bounds are typed here again, on purpose."""
    out = []

    def must(holds: bool, words: str) -> None:
        if not holds:
            out.append(words)

    def at_most(name: str, most: float, least: float = 0) -> None:
        must(snapshot[name] is None or least <= snapshot[name] <= most, f"{name} {snapshot[name]}")

    hours = snapshot["power_on_hours"]
    life_h = 24 + 1 + (40 * 8766 if hours is None else hours)
    rate = {"ATA": 600e6, "SCSI": 4.8e9, "NVMe": 32e9}[snapshot["protocol"]]
    at_most("power_on_hours", 40 * 8766)
    for name in ("host_written_bytes", "host_read_bytes"):
        at_most(name, rate * 3600 * life_h)
    at_most("nand_written_bytes", 100 * rate * 3600 * life_h)
    for name in ("percentage_used", "workload_wear_percent"):
        at_most(name, 1000 if name.startswith("workload") else 255)
    at_most("available_spare_percent", 100)
    for name in ("mean", "min", "max"):
        at_most(f"pe_cycles_{name}", 100_000)
    at_most("pe_cycles_rated", 200_000, 50)
    at_most("temperature_C", 150, -60)
    for name in ("warning_temp_min", "critical_temp_min", "workload_timer_min"):
        at_most(name, life_h * 61)
    at_most("capacity_bytes", 2**64, 1)
    host, nand, unit = (
        snapshot["host_written_bytes"],
        snapshot["nand_written_bytes"],
        snapshot["nand_written_unit_bytes"] or 0,
    )
    if None not in (host, nand) and max(host, nand) > 1e10:
        slack = unit + (snapshot["host_written_unit_bytes"] or 0) * 100
        must(0.29 * host - slack <= nand <= 100 * host + slack, f"write amplification {nand} / {host}")
    cycles = [snapshot[f"pe_cycles_{name}"] for name in ("min", "mean", "max")]
    cycles = [value for value in cycles if value is not None]
    must(all(a <= b + 1 for a, b in zip(cycles, cycles[1:], strict=False)), f"P/E cycles {cycles}")
    if kind == "hard disk":
        must(snapshot["hard_disk"] is True, "a hard disk that is taken for an SSD")
        flash = ("nand_", "pe_cycles", "percentage", "available_spare", "workload")
        worn = [name for name, value in snapshot.items() if name.startswith(flash) and value is not None]
        must(not worn, f"wear of a hard disk: {worn}")
    for name, value in snapshot.items():
        if name.endswith(("_bytes", "_percent", "_hours", "_min", "cycles_mean")) and value is not None:
            must(value >= 0 and math.isfinite(value), f"{name} {value}")
    for name, entry in snapshot["sources"].items():
        must(snapshot[name] is not None and bool(entry["source"]) and entry["error"] is not None, f"source of {name}")
    must("host_written_bytes" in snapshot["sources"] or host is None, "host bytes without a source")
    must(snapshot["percentage_used"] is None or "percentage_used" in snapshot["sources"], "percentage without a source")
    return out
