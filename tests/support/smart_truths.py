"""For tests of misleading SMART figures: documents of ATA and NVMe drives, and what is said of them."""

import json
from pathlib import Path

from ssdrig.commands import wear as wear_command
from ssdrig.drive.smart import counters

MIB, GIB, TB = 1 << 20, 1 << 30, 10**12
PHISON, SMI, MICRON = "Phison Driven SSDs", "Silicon Motion based SSDs", "Crucial/Micron Client SSDs"


def ata(family, *attributes, statistics=(), hours=10_000, capacity=240 * 10**9, **more) -> dict:
    """smartctl's JSON of attributes (id, name, raw[, normalised]) and statistics (page, offset, value)."""
    table = [
        {"id": a[0], "name": a[1], "value": a[3] if len(a) > 3 else 100, "raw": {"value": a[2], "string": str(a[2])}}
        for a in attributes
    ]
    out = {"device": {"protocol": "ATA"}, "logical_block_size": 512, "ata_smart_attributes": {"table": table}}
    out |= {"smartctl": {"exit_status": 0}, "model_name": "X", "user_capacity": {"bytes": capacity}}
    out |= {"power_on_time": {"hours": hours}} if hours is not None else {}
    out |= {"model_family": family, "in_smartctl_database": True} if family else {"in_smartctl_database": False}
    pages = [
        {"number": p, "table": [{"offset": o, "value": v, "flags": {"valid": True, "normalized": p == 7}}]}
        for p, o, v in statistics
    ]
    return out | ({"ata_device_statistics": {"pages": pages}} if pages else {}) | more


def snap(*args, **more) -> dict:
    return counters.snapshot({"smartctl": ata(*args, **more)})


def nvme(**log) -> dict:
    health = {
        "critical_warning": 0,
        "temperature": 35,
        "available_spare": 100,
        "available_spare_threshold": 10,
        "percentage_used": 3,
        "data_units_written": 40_000_000,
        "data_units_read": 40_000_000,
        "host_writes": 10**9,
        "host_reads": 10**9,
        "power_cycles": 20,
        "power_on_hours": 9000,
        "unsafe_shutdowns": 1,
        "media_errors": 0,
    } | log
    smartctl = {"device": {"protocol": "NVMe"}, "nvme_smart_health_information_log": health}
    return counters.snapshot({"smartctl": smartctl | {"power_on_time": {"hours": health["power_on_hours"]}}})


def is_unknown(got: dict, *parts: str) -> bool:
    """Whether one line of `unknown` holds all parts."""
    return any(all(part in words for part in parts) for words in got["unknown"])


def screen_of(smartctl: dict, tmp_path: Path, capsys, *more: str) -> str:
    """What `wear` prints, with each paragraph on one line."""
    import argparse

    path = tmp_path / "saved.json"
    path.write_text(json.dumps(smartctl))
    parser = argparse.ArgumentParser()
    wear_command.add_arguments(parser)
    assert wear_command.command(parser.parse_args(["--smartctl", str(path), *more])) == 0
    return " ".join(capsys.readouterr().out.split())
