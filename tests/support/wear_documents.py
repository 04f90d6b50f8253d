"""For tests of `ssdrig wear`: synthetic documents as `smartctl --json=cv -x` of smartmontools 7.3 prints them, and the
command on them."""

import argparse
import copy
import json
from pathlib import Path

import pytest

from ssdrig.commands import wear as wear_command

REQUIRED = (
    "model",
    "serial",
    "protocol",
    "host_written_bytes",
    "host_read_bytes",
    "nand_written_bytes",
    "percentage_used",
    "available_spare_percent",
    "power_on_hours",
    "power_cycles",
    "unsafe_shutdowns",
    "media_errors",
    "temperature_C",
)
DAY, GIB = 86_400, 1 << 30
NVME = {
    "smartctl": {"version": [7, 3], "exit_status": 0},
    "local_time": {"time_t": 1_767_225_600},  # 2026-01-01
    "device": {"name": "/dev/nvme0", "type": "nvme", "protocol": "NVMe"},
    "model_name": "Samsung SSD 980 PRO 1TB",
    "serial_number": "S5GXNX0R000001",
    "firmware_version": "5B2QGXA7",
    "user_capacity": {"bytes": 1000204886016},
    "smart_status": {"passed": True},
    "temperature": {"current": 41},
    "nvme_smart_health_information_log": {
        "critical_warning": 0,
        "temperature": 41,
        "available_spare": 98,
        "available_spare_threshold": 10,
        "percentage_used": 23,
        "data_units_read": 900_000,
        "data_units_written": 500_000_000,
        "host_reads": 1,
        "host_writes": 1,
        "controller_busy_time": 1,
        "power_cycles": 77,
        "power_on_hours": 8760,
        "unsafe_shutdowns": 9,
        "media_errors": 2,
        "num_err_log_entries": 4,
    },
}


def run(capsys, *words: str) -> tuple[int, str, str]:
    parser = argparse.ArgumentParser()
    wear_command.add_arguments(parser)
    code = wear_command.command(parser.parse_args(list(words)))
    out = capsys.readouterr()
    return code, out.out, out.err


@pytest.fixture(autouse=True)
def no_table_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def read(tmp_path, capsys):
    """read(document, words…) -> (exit code, the object printed)."""

    def one(document, *words):
        path = tmp_path / "saved.json"
        path.write_text(json.dumps(document))
        code, out, _ = run(capsys, "--json", "--smartctl", str(path), *words)
        return code, json.loads(out)

    return one


def watched(folder: Path, days: int) -> None:
    """A watch folder (schemas/journal.md) of daily polls, 2 TB a day until 2025-12-31."""
    folder_ = folder / "Samsung-SSD-980-PRO-1TB-S5GXNX0R000001"
    folder_.mkdir(parents=True)
    lines = []
    for day in range(days):
        document = copy.deepcopy(NVME)
        # x 512 000 B = 2 TB
        document["nvme_smart_health_information_log"]["data_units_written"] -= (days - day) * 3_906_250
        drive = {"model": "Samsung SSD 980 PRO 1TB", "serial": "S5GXNX0R000001"}
        lines.append(
            {
                "utc_ns": (1_767_225_600 - (days - day) * DAY) * 10**9,
                "drive": drive,
                "smartctl": document,
                "t_start_ns": day,
                "t_end_ns": day,
                "simulated": False,
            }
        )
    (folder_ / "2025-12.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
