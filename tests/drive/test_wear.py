"""`ssdrig wear`: saved documents of every kind against figures computed by hand, and what is no document."""

import copy
import io
import json
from types import SimpleNamespace

import pytest
from pages import page, page_c0h
from wear_documents import NVME, REQUIRED, no_table_of_the_user, read, run  # noqa: F401  fixtures

from ssdrig.base.errors import UsageError
from ssdrig.drive import inventory
from ssdrig.drive.smart import collect
from ssdrig.drive.wear import standing


def attribute(id_: int, name: str, raw: int, value: int = 100) -> dict:
    return {
        "id": id_,
        "name": name,
        "value": value,
        "worst": value,
        "thresh": 0,
        "when_failed": "",
        "flags": {"value": 50, "string": "-O--CK "},
        "raw": {"value": raw, "string": str(raw)},
    }


def ata(model: str, family: str, *attributes: dict, exit_status: int = 0, capacity: int = 480 * 10**9) -> dict:
    return {
        "smartctl": {"version": [7, 3], "exit_status": exit_status},
        "local_time": {"time_t": 1_767_225_600},
        "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"},
        "model_family": family,
        "model_name": model,
        "serial_number": "SYN0001",
        "firmware_version": "1",
        "user_capacity": {"bytes": capacity},
        "rotation_rate": 0,
        "in_smartctl_database": True,
        "logical_block_size": 512,
        "smart_status": {"passed": True},
        "power_on_time": {"hours": 20_000},
        "power_cycle_count": 12,
        "temperature": {"current": 33},
        "ata_smart_attributes": {"revision": 1, "table": list(attributes)},
    }


def test_nvme_by_hand(read):
    """500 000 000 x 512 000 B = 256 TB of the 600 TB that Samsung warrants: 42.7 %."""
    code, got = read(NVME)
    assert code == 0 and all(key in got for key in REQUIRED)
    assert (got["model"], got["serial"], got["protocol"]) == ("Samsung SSD 980 PRO 1TB", "S5GXNX0R000001", "NVMe")
    assert (got["host_written_bytes"], got["host_read_bytes"], got["nand_written_bytes"]) == (
        256 * 10**12,
        460_800_000_000,
        None,
    )
    assert (got["percentage_used"], got["available_spare_percent"], got["power_on_hours"], got["power_cycles"]) == (
        23,
        98,
        8760,
        77,
    )
    assert (got["unsafe_shutdowns"], got["media_errors"], got["temperature_C"], got["exit_status_bits"]) == (
        9,
        2,
        41,
        [],
    )
    assert got["limits"]["tbw_TB"] == 600 and got["limits"]["mileage"] is True
    p = got["projection"]
    assert p["tbw_used_percent"] == pytest.approx(256 / 6) and p["tbw_left_bytes"] == 344 * 10**12
    # 8760 h are 365 days of power-on time: 0.701 TB each; 344 TB are 490.5 of them; by its own percentage 256 / 0.23 -
    # 256 TB, 1222
    assert [a["limit"] for a in p["ahead"]] == ["tbw", "percentage_used"] and p["rate_calendar"] is False
    assert p["first"]["days"] == pytest.approx(344 / 256 * 365) and p["first"]["date"] is None
    assert p["projected_tbw_TB"] == pytest.approx(256 / 0.23)
    assert got["wa"]["value"] is None and "no NAND counter" in got["wa"]["why"]
    # the worse of 23 and 42.7
    assert got["retention"]["state"] == "holds" and got["retention"]["wear_percent"] == pytest.approx(256 / 6)


def test_start_and_rate_and_storage(read):
    _, got = read(NVME, "--start", "2025-01-01", "--rate", "1TB/day", "--storage-temp", "12h@20,12h@40")
    p = got["projection"]
    assert p["first"] == p["ahead"][0] and p["first"]["limit"] == "tbw" and p["first"]["days"] == pytest.approx(344)
    assert p["first"]["date"] == "2026-12-11" and p["warranty_end"] == "2030-01-01"  # 2026-01-01 + 344 days
    assert got["limits"]["start"] == "2025-01-01" and got["retention"]["storage_C"] == pytest.approx(35.2, abs=0.05)


def test_intel_sata_by_hand(read):
    """225/241 and 243 in 32 MiB: 3 000 000 units are 100.66 TB of the host; 4 500 000 of NAND: WA 1.5."""
    unit = 32 << 20
    code, got = read(
        ata(
            "INTEL SSDSC2BB480G4",
            "Intel 730 and DC S35x0/3610/3700 Series SSDs",
            attribute(9, "Power_On_Hours", 20_000),
            attribute(241, "Host_Writes_32MiB", 3_000_000),
            attribute(242, "Host_Reads_32MiB", 500_000),
            attribute(243, "NAND_Writes_32MiB", 4_500_000),
            attribute(233, "Media_Wearout_Indicator", 0, 92),
        )
    )
    assert code == 0
    assert (got["host_written_bytes"], got["host_read_bytes"], got["nand_written_bytes"]) == (
        3_000_000 * unit,
        500_000 * unit,
        4_500_000 * unit,
    )
    assert got["wa"]["value"] == pytest.approx(1.5) and got["wa"]["error"] < 1e-5 and got["wa"]["since"] is None


def test_micron_sata_by_hand(read):
    """246 in 512 B, 247 host pages, 248 the drive's own pages: WA = (F7 + F8) / F7 = 1.6, NAND bytes stay unknown."""
    code, got = read(
        ata(
            "CT500MX500SSD1",
            "Crucial/Micron Client SSDs",
            attribute(173, "Ave_Block-Erase_Count", 150),
            attribute(202, "Percent_Lifetime_Remain", 10, 90),
            attribute(246, "Total_LBAs_Written", 80_000_000_000),
            attribute(247, "Host_Program_Page_Count", 1_000_000_000),
            attribute(248, "FTL_Program_Page_Count", 600_000_000),
            capacity=500107862016,
        )
    )
    assert code == 0 and got["host_written_bytes"] == 80_000_000_000 * 512 and got["nand_written_bytes"] is None
    assert got["wa"]["value"] == pytest.approx(1.6)
    assert got["projection"]["tbw_used_percent"] == pytest.approx(100 * 40.96 / 180) and got["pe_cycles_mean"] == 150


def test_samsung_sata_by_hand(read):
    """241 in 512 B; 177 the mean erase count; no NAND counter, and none is made up."""
    code, got = read(
        ata(
            "Samsung SSD 850 EVO 250GB",
            "Samsung based SSDs",
            attribute(177, "Wear_Leveling_Count", 400, 80),
            attribute(241, "Total_LBAs_Written", 100_000_000_000),
            capacity=250059350016,
        ),
        "--pe-cycles",
        "2000",
    )
    assert code == 0 and got["host_written_bytes"] == 51_200_000_000_000 and got["nand_written_bytes"] is None
    assert got["projection"]["tbw_used_percent"] == pytest.approx(100 * 51.2 / 75)
    assert got["pe_cycles_mean"] == 400 and got["projection"]["pe_mean_used_percent"] == 20


def test_a_drive_that_the_database_does_not_know(read):
    """241 without a known unit: no bytes, no TBW, no wear."""
    document = ata("NoName SSD 480GB", "", attribute(241, "Total_LBAs_Written", 12345678)) | {
        "in_smartctl_database": False
    }
    del document["model_family"]
    code, got = read(document, "--tbw", "100")
    assert (
        code == 0
        and got["host_written_bytes"] is None
        and got["projection"]["tbw_used_percent"] is None
        and got["projection"]["ahead"] == []
    )


def test_sas_by_hand(read):
    """smartctl's gigabytes_processed are 10^9 bytes."""
    document = {
        "smartctl": {"version": [7, 3], "exit_status": 0},
        "local_time": {"time_t": 1_767_225_600},
        "model_name": "SEAGATE XS960SE70004",
        "device": {"name": "/dev/sdb", "type": "scsi", "protocol": "SCSI"},
        "serial_number": "HLJ0001",
        "user_capacity": {"bytes": 960197124096},
        "rotation_rate": 0,
        "smart_status": {"passed": True},
        "temperature": {"current": 38, "drive_trip": 70},
        "power_on_time": {"hours": 900, "minutes": 3},
        "scsi_percentage_used_endurance_indicator": 7,
        "scsi_grown_defect_list": 1,
        "scsi_error_counter_log": {
            "read": {"gigabytes_processed": "1500.250", "total_uncorrected_errors": 0},
            "write": {"gigabytes_processed": "70000.500", "total_uncorrected_errors": 0},
        },
    }
    code, got = read(document)
    assert code == 0 and got["protocol"] == "SCSI" and got["percentage_used"] == 7
    assert (got["host_written_bytes"], got["host_read_bytes"]) == (70_000_500_000_000, 1_500_250_000_000)


def test_exit_bits_are_facts(read):
    """64 + 4: the error log has entries, a command failed; the document is as good as any."""
    document = copy.deepcopy(NVME)
    document["smartctl"]["exit_status"] = 68
    code, got = read(document)
    assert code == 0 and got["exit_status_bits"] == [2, 6] and got["host_written_bytes"] == 256 * 10**12


FAILED = {
    "json_format_version": [1, 0],
    "smartctl": {
        "version": [7, 0],
        "argv": ["smartctl", "--all", "-j", "/dev/sdz"],
        "exit_status": 2,
        "messages": [{"string": "Smartctl open device: /dev/sdz failed: No such device", "severity": "error"}],
    },
}


def test_a_failed_open_is_printed_and_is_a_failure(tmp_path, capsys):
    path = tmp_path / "failed.json"
    path.write_text(json.dumps(FAILED))
    code, out, err = run(capsys, "--json", "--smartctl", str(path))
    got = json.loads(out)
    assert code == 4 and all(got[key] is None for key in REQUIRED) and got["exit_status_bits"] == [1]
    assert got["messages"] == ["Smartctl open device: /dev/sdz failed: No such device"] and "No such device" in err
    assert got["limits"] is None and got["projection"]["ahead"] == []
    code, out, err = run(capsys, "--smartctl", str(path))
    assert code == 4 and "No such device" in out + err


JOURNALED = {
    "t_start_ns": 10**9,
    "t_end_ns": 2 * 10**9,
    "simulated": False,
    "smartctl": NVME,
    "tools": [],
    "gaps": [],
    "units": {},
}


def test_a_journal_document(read):
    """What a run keeps: smartctl's object inside, the pages beside it; log C0h has the NAND bytes."""
    code, got = read(JOURNALED | {"log_c0h": page_c0h(512 * 10**12).hex()})
    assert code == 0 and got["nand_written_bytes"] == 512 * 10**12 and got["wa"]["value"] == pytest.approx(2)
    assert got["projection"]["wa_of_life"] == 2


def test_data_placement_counts_by_itself_and_not_the_drives_life(read):
    """Log 22h: 2 TB of the host and 3 TB of media since placement was switched on, 256 TB by log 02h."""
    code, got = read(JOURNALED | {"log_22h": page({0: (16, 2 * 10**12), 16: (16, 3 * 10**12)}, 64).hex()})
    assert code == 0 and got["host_written_bytes"] == 256 * 10**12 and got["fdp_host_written_bytes"] == 2 * 10**12
    assert (got["wa"]["value"], got["wa"]["host_bytes"], got["wa"]["source"]) == (1.5, 2 * 10**12, "log 22h / log 22h")
    assert got["projection"]["wa_of_life"] is None


def test_a_hard_disk_has_no_wear(read, tmp_path, capsys):
    document = ata("WDC WD20EFRX-68EUZN0", "Western Digital Red", attribute(9, "Power_On_Hours", 47_657)) | {
        "rotation_rate": 5400
    }
    code, got = read(document, "--tbw", "10")
    assert (
        code == 0
        and got["limits"] is None
        and got["projection"]["ahead"] == []
        and got["retention"]["words"] == standing.HARD_DISK
    )
    assert got["unknown"] == ["host bytes written: the drive reports no such counter"]


def test_stdin(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(json.dumps(NVME).encode())))
    code, out, _ = run(capsys, "--json", "--smartctl", "-")
    assert code == 0 and json.loads(out)["percentage_used"] == 23


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "smartctl 7.3 2022-02-28 r5338",
        json.dumps(NVME)[:-40],
        "[]",
        "3",
        "null",
        '"text"',
        "{}",
        '{"smartctl": 3}',
        '{"a": {"b": 1}}',
        "[" * 100_000,
        b"\xff\xfe\x00",
        '{"device": "sda"}',
        '{"smartctl": {"version": [7, 3]}}',
    ],
)
def test_what_is_no_smart_document_is_refused(tmp_path, capsys, text):
    path = tmp_path / "bad.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError) as caught:
        run(capsys, "--json", "--smartctl", str(path))
    assert "bad.json" in caught.value.seen and "smartctl --json=cv" in caught.value.do


def test_words_that_do_not_fit(tmp_path, capsys):
    for words in (
        (),
        ("SERIAL", "--smartctl", "x"),
        ("--smartctl", str(tmp_path / "none.json")),
        ("--smartctl", "x", "--rate", "fast"),
        ("--smartctl", "x", "--storage-temp", "warm"),
        ("--smartctl", "x", "--storage-temp", "12h@20,h@"),
        ("--smartctl", "x", "--storage-temp", "999"),
        ("--smartctl", "x", "--storage-temp", "0h@20"),
    ):
        with pytest.raises(UsageError):
            run(capsys, *words)


def test_a_live_drive_is_found_and_polled(monkeypatch, capsys):
    """DRIVE goes through inventory.find and collect.poll; the document they give is read as a saved one is."""
    asked = []
    monkeypatch.setattr(inventory, "find", lambda word: asked.append(word) or "the drive")
    monkeypatch.setattr(
        collect,
        "poll",
        lambda drive: asked.append(drive) or {"t_start_ns": 1, "t_end_ns": 2, "simulated": False, "smartctl": NVME},
    )
    code, out, _ = run(capsys, "S5GXNX0R000001", "--json")
    assert (
        code == 0
        and asked == ["S5GXNX0R000001", "S5GXNX0R000001", "the drive"]
        and json.loads(out)["percentage_used"] == 23
    )
