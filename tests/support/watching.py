"""What the tests of `ssdrig watch` share: fake drives and a fake smartctl, records, the command in a process of its
own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from drives import a_drive
from fake_tools import Tools, answer_of_smartctl

from ssdrig.commands import watch as watch_command
from ssdrig.drive import inventory
from ssdrig.drive.smart import watch_folder

TESTS = Path(__file__).resolve().parent
SATA = {
    "name": "sdz",
    "node": "/dev/sdz",
    "model": "ACME X1",
    "interface": "SATA",
    "smartctl_type": "sat",
    "controller": None,
    "nsid": None,
}
NOVEMBER_NS = 1_795_177_507_894_000_000  # 2026-11-20


def sata_drive(serial="S123", **more):
    return a_drive(serial=serial, **SATA | more)


def ata_document(serial="S123", hours=6383, cycles=19, written_LBA=1000):
    """`smartctl --json=cv -x` 7.3 of a SATA SSD, shortened to what is read here."""

    def row(number, name, raw, value=100):
        return {
            "id": number,
            "name": name,
            "value": value,
            "worst": value,
            "thresh": 0,
            "when_failed": "",
            "flags": {"value": 50, "string": "-O--CK "},
            "raw": {"value": raw, "string": str(raw)},
        }

    return answer_of_smartctl(
        0,
        device={"name": "/dev/sdz", "info_name": "/dev/sdz [SAT]", "type": "sat", "protocol": "ATA"},
        model_family="Samsung based SSDs",
        model_name="ACME X1",
        serial_number=serial,
        firmware_version="1.0",
        in_smartctl_database=True,
        user_capacity={"blocks": 1953125000, "bytes": 10**12},
        logical_block_size=512,
        smart_support={"available": True, "enabled": True},
        smart_status={"passed": True},
        power_on_time={"hours": hours},
        power_cycle_count=cycles,
        temperature={"current": 31},
        ata_smart_attributes={
            "revision": 1,
            "table": [
                row(5, "Reallocated_Sector_Ct", 0),
                row(9, "Power_On_Hours", hours),
                row(12, "Power_Cycle_Count", cycles),
                row(177, "Wear_Leveling_Count", 5, 98),
                row(241, "Total_LBAs_Written", written_LBA),
            ],
        },
    )


@pytest.fixture
def tools(tmp_path, monkeypatch):
    tools = Tools(tmp_path / "tools", monkeypatch)
    tools.smartctl(ata_document())
    return tools


@pytest.fixture
def drives(monkeypatch):
    """The drives that the inventory finds; a test may change the list."""
    drives_ = [sata_drive()]
    monkeypatch.setattr(inventory, "all_drives", lambda root="/": list(drives_))
    return drives_


@pytest.fixture
def history(tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    return folder


def look(folder, root):
    return watch_command.Watch(folder, root=root)


def records(folder):
    return [line.record for path in sorted(Path(folder).glob("*/*.jsonl")) for line in watch_folder.lines(path)]


def record(n, serial="S123", **more):
    drive = {"model": "ACME X1", "serial": serial}
    answer = {} if {"skipped", "failed"} & set(more) else {"smartctl": {"device": {}}}
    return {"utc_ns": NOVEMBER_NS + n * 3600 * 10**9, "drive": drive, "n": n, **answer, **more}


MAIN = f"""
SATA = {SATA!r}
import json, sys
sys.path.insert(0, sys.argv[1])
import drives
from ssdrig import cli
from ssdrig.drive import inventory
inventory.all_drives = lambda root="/": [drives.a_drive(serial=s, **SATA) for s in sys.argv[2].split(",") if s]
cli.COMMANDS["watch"] = ("ssdrig.commands.watch", "")
sys.exit(cli.main(["watch", *sys.argv[3:]]))
"""


def start(folder, *words, serials="S123", **environ):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SSDRIG_INFLUX") and k != "NOTIFY_SOCKET"}
    words = [sys.executable, "-c", MAIN, str(TESTS), serials, "--history", str(folder), *map(str, words)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean | environ)


def finish(process, timeout_s=600):
    try:
        out, err = process.communicate(timeout=timeout_s)
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in err, err
    return process.returncode, out, err
