import argparse
import dataclasses
import json
import os

import pytest
from disktree import DiskTree
from json_documents import checked

from ssdrig.base.errors import ToolMissing
from ssdrig.commands import drives as drive_command
from ssdrig.drive import guard, inventory
from ssdrig.drive.smart import collect


def nvme_document(used=3, celsius=41, gaps=()):
    """What collect.poll makes of a drive that smartctl 7.3 answers for, cut to what counters.snapshot takes."""
    return {
        "t_start_ns": 1,
        "t_end_ns": 2,
        "simulated": False,
        "gaps": list(gaps),
        "tools": [],
        "units": {},
        "smartctl_text": None,
        "smartctl": {
            "smartctl": {"version": [7, 3], "exit_status": 0},
            "device": {"protocol": "NVMe"},
            "model_name": "x",
            "smart_status": {"passed": True},
            "nvme_smart_health_information_log": {
                "critical_warning": 0,
                "temperature": celsius,
                "available_spare": 100,
                "percentage_used": used,
                "data_units_written": 1,
                "data_units_read": 1,
                "power_on_hours": 5,
            },
        },
    }


SILENT = {
    "t_start_ns": 1,
    "t_end_ns": 2,
    "smartctl": None,
    "smartctl_text": "oops",
    "gaps": ["smartctl: no answer in 20 s, killed"],
    "tools": [],
    "units": {},
}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    tree = DiskTree(tmp_path)
    tree.nvme(0, size_bytes=2_000_398_934_016)
    tree.by_id("nvme-Samsung_SSD_990_PRO_2TB_S6Z1NX0W100001", "nvme0n1")
    tree.sata(size_bytes=500_107_862_016)
    tree.by_id("ata-Samsung_SSD_860_EVO_500GB_S3Z9NB0K100001", "sda")
    tree.mount(tree.partition("sda", 1), "/")
    tree.asked = []

    def poll_all(asked, timeout_s):
        tree.asked += [d.name for d in asked]
        return [nvme_document() if d.name.startswith("nvme") else SILENT for d in asked]

    monkeypatch.setattr(collect, "poll_all", poll_all)
    return tree


def test_each_drive_with_its_refusals_and_health(tree):
    sda, nvme = drive_command.survey(root=tree.root)
    assert (
        nvme["safe"] and nvme["refusals"] == [] and nvme["serial"] == "S6Z1NX0W100001" and nvme["link"] == "PCIe 4.0 x4"
    )
    assert (nvme["health_ok"], nvme["percentage_used"], nvme["temperature_C"], nvme["smart_trouble"]) == (
        True,
        3,
        41,
        None,
    )
    assert not sda["safe"] and [r["check"] for r in sda["refusals"]] == ["mounted", "boot", "signature"]
    assert sda["refusals"][2]["override"] == "--destroy-data S3Z9NB0K100001"
    assert (sda["health_ok"], sda["percentage_used"], sda["temperature_C"]) == (None, None, None)
    assert sda["smart_trouble"] == "smartctl: no answer in 20 s, killed"


def test_a_drive_that_a_run_holds_is_not_asked(tree):
    with guard.hold(inventory.find("S6Z1NX0W100001", tree.root), None, tree.root):
        _, nvme = drive_command.survey(root=tree.root)
    assert tree.asked == ["sda"] and nvme["smart_trouble"] == "not asked: a run holds the drive"
    assert [r["check"] for r in nvme["refusals"]] == ["lock"]


def test_no_smart_asks_nobody(tree):
    rows = drive_command.survey(smart=False, root=tree.root)
    assert tree.asked == [] and {row["smart_trouble"] for row in rows} == {"not asked (--no-smart)"}


def test_without_any_tool_the_list_is_still_there(tree, monkeypatch):
    def poll_all(asked, timeout_s):
        raise ToolMissing("smartctl 7.0 or newer", "none", "install smartmontools")

    monkeypatch.setattr(collect, "poll_all", poll_all)
    rows = drive_command.survey(root=tree.root)
    assert len(rows) == 2 and all("install smartmontools" in row["smart_trouble"] for row in rows)


def test_the_table_in_160_columns(tree):
    text = drive_command.table(drive_command.survey(root=tree.root), 160)
    assert text.splitlines() == [
        "DEVICE   SERIAL          MODEL                      FIRMWARE  SIZE    "
        " INTERFACE         HEALTH  WEAR  TEMP   TEST",
        "sda      S3Z9NB0K100001  Samsung SSD 860 EVO 500GB  RVT04B6Q  500 GB  "
        " SATA 6.0 Gb/s     -       -     -      NO",
        "  /dev/disk/by-id/ata-Samsung_SSD_860_EVO_500GB_S3Z9NB0K100001",
        "  mounted: sda1 on /",
        "  boot: this system runs from it (/)",
        "  signature: partitions sda1 [unless --destroy-data S3Z9NB0K100001]",
        "  SMART: smartctl: no answer in 20 s, killed",
        "nvme0n1  S6Z1NX0W100001  Samsung SSD 990 PRO 2TB    4B2QJXD7  2.00 TB "
        " NVMe PCIe 4.0 x4  ok      3 %   41 °C  safe",
        "  /dev/disk/by-id/nvme-Samsung_SSD_990_PRO_2TB_S6Z1NX0W100001",
    ]


def test_in_80_columns_each_drive_is_a_block(tree):
    text = drive_command.table(drive_command.survey(root=tree.root), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert text.split("\n\n")[1].splitlines() == [
        "nvme0n1  S6Z1NX0W100001  Samsung SSD 990 PRO 2TB",
        "  2.00 TB, NVMe PCIe 4.0 x4, firmware 4B2QJXD7, health ok, wear 3 %, 41 °C",
        "  test: safe",
        "  /dev/disk/by-id/nvme-Samsung_SSD_990_PRO_2TB_S6Z1NX0W100001",
    ]


def test_a_disk_with_data_only_is_told_from_one_in_use(tree):
    tree.write("proc/self/mountinfo", "")
    sda = drive_command.survey(smart=False, root=tree.root)[0]
    assert "has data" in drive_command.table([sda], 160) and "NO" not in drive_command.table([sda], 160).splitlines()[1]


def run(capsys, *words):
    parser = argparse.ArgumentParser()
    drive_command.add_arguments(parser)
    code = drive_command.command(parser.parse_args(words))
    return code, *capsys.readouterr()


def test_json_has_every_field_of_each_drive(tree, capsys, monkeypatch):
    survey = drive_command.survey
    monkeypatch.setattr(drive_command, "survey", lambda smart: survey(smart, tree.root))
    code, out, _ = run(capsys, "--json")
    rows = checked("drives", json.loads(out))
    assert code == 0 and [row["name"] for row in rows] == ["sda", "nvme0n1"]
    fields = {field.name for field in dataclasses.fields(inventory.Drive)} | {
        "consent",
        "twins",
        "safe",
        "refusals",
        "health",
        "health_reasons",
        "health_ok",
        "percentage_used",
        "temperature_C",
        "smart_trouble",
    }
    assert all(set(row) == fields for row in rows)


def test_who_is_not_root_is_told_what_was_not_seen(tree, capsys, monkeypatch):
    monkeypatch.setattr(drive_command, "survey", lambda smart: [])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    code, out, err = run(capsys, "--no-smart")
    assert (code, out) == (0, "no whole disk on this machine\n") and "not root" in err
    assert run(capsys, "--json")[1] == "[]\n"


def test_on_this_machine(capsys):
    code, out, _ = run(capsys, "--no-smart", "--json")
    assert code == 0 and [row["name"] for row in json.loads(out)] == [d.name for d in inventory.all_drives()]
