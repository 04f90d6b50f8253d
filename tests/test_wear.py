"""`ssdrig wear`: saved documents of every kind against figures computed by hand, and what is no document. The synthetic
documents have the shape of `smartctl --json=cv -x` of smartmontools 7.3 (and of the older 7.0 where said), made for
these tests."""

import argparse
import copy
import io
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import page, page_c0h

from ssdrig.drive.smart import collect, saved
from ssdrig.drive.target import inventory
from ssdrig.drive.wear import command as wear_command
from ssdrig.drive.wear import screen as wear_screen
from ssdrig.errors import JournalError, UsageError

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


def test_two_files_of_one_drive_are_a_history(tmp_path, capsys):
    """Ten days, 20 000 000 units of 512 000 B: 1.024 TB a day. The files' order does not matter, another drive's file
    is not of it."""
    before, other = copy.deepcopy(NVME), copy.deepcopy(NVME)
    before["nvme_smart_health_information_log"]["data_units_written"] = 480_000_000
    before["local_time"]["time_t"] -= 10 * DAY
    other["serial_number"] = "ANOTHER"
    other["local_time"]["time_t"] -= 5 * DAY
    paths = []
    for name, document in (("now", NVME), ("before", before), ("other", other)):
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(document))
    code, out, _ = run(capsys, "--json", "--smartctl", *map(str, paths))
    now, earlier, third = (json.loads(line) for line in out.splitlines())
    assert (
        code == 0
        and now["projection"]["rate_bytes_per_day"] == pytest.approx(1.024e12)
        and now["projection"]["rate_calendar"] is True
    )
    assert now["wa"]["since"] == "2025-12-22" and earlier["wa"]["since"] is None and third["wa"]["since"] is None
    assert now["file"] == str(paths[0])


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


def test_write_amplification_of_a_history_is_that_of_the_workload(tmp_path, capsys):
    """Life: 512 of 256 TB, WA 2. The last day: 3 of 1 TB. A pair too close together falls back to its life and says
    so."""

    def document(host_units, nand, time_t):
        inner = copy.deepcopy(NVME)
        inner["nvme_smart_health_information_log"]["data_units_written"] = host_units
        inner["local_time"]["time_t"] = time_t
        return {
            "t_start_ns": 1,
            "t_end_ns": 2,
            "simulated": False,
            "smartctl": inner,
            "log_c0h": page_c0h(nand).hex(),
            "tools": [],
        }

    def wa_of(*documents):
        paths = [tmp_path / f"{i}.json" for i in range(len(documents))]
        for path, one in zip(paths, documents, strict=True):
            path.write_text(json.dumps(one))
        return json.loads(run(capsys, "--json", "--smartctl", *map(str, paths))[1].splitlines()[-1])

    now = document(500_000_000, 512 * 10**12, 1_767_225_600)
    got = wa_of(document(500_000_000 - 1_953_125, 509 * 10**12, 1_767_225_600 - DAY), now)
    assert (
        got["wa"]["value"] == pytest.approx(3)
        and got["wa"]["since"] == "2025-12-31"
        and got["projection"]["wa_of_life"] == 2
    )
    assert "WA 3.00 ± 0.01; 2 polls over 1.0 days" in " ".join(wear_screen.screen(got, 80, False).split())
    got = wa_of(document(499_999_999, 512 * 10**12 - 5, 1_767_225_600 - 60), now)
    assert got["wa"]["value"] == pytest.approx(2) and got["wa"]["since"] is None
    assert any(
        words.startswith("write amplification lately: the host counter moved by only 1 of its units")
        for words in got["unknown"]
    )
    assert "WA 2" not in " ".join(wear_screen.screen(got, 80, False).split())  # that of its life is not this workload's


def test_a_hard_disk_has_no_wear(read, tmp_path, capsys):
    document = ata("WDC WD20EFRX-68EUZN0", "Western Digital Red", attribute(9, "Power_On_Hours", 47_657)) | {
        "rotation_rate": 5400
    }
    code, got = read(document, "--tbw", "10")
    assert (
        code == 0
        and got["limits"] is None
        and got["projection"]["ahead"] == []
        and got["retention"]["words"] == wear_command.HARD_DISK
    )


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
    assert code == 0 and asked == ["S5GXNX0R000001", "the drive"] and json.loads(out)["percentage_used"] == 23


def watched(folder: Path, days: int) -> None:
    """A watch folder (schemas/journal.md) of daily polls, 2 TB a day until 2025-12-31."""
    kept = folder / "Samsung-SSD-980-PRO-1TB-S5GXNX0R000001"
    kept.mkdir(parents=True)
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
    (kept / "2025-12.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_history_of_watch_gives_the_rate(tmp_path, read):
    watched(tmp_path / "watch", 20)
    _, got = read(NVME, "--history", str(tmp_path / "watch"))
    p = got["projection"]
    assert (
        p["rate_bytes_per_day"] == pytest.approx(2e12)
        and p["rate_source"] == "21 polls over 20 days"
        and p["rate_calendar"] is True
    )
    assert (
        p["first"]["days"] == pytest.approx(172)
        and p["first"]["date"] == "2026-06-22"
        and got["wa"]["since"] == "2025-12-12"
    )


def test_a_history_that_is_not_there(tmp_path, read):
    with pytest.raises(JournalError):
        read(NVME, "--history", str(tmp_path / "none"))


def test_the_screen(tmp_path, capsys, monkeypatch):
    """80 columns, without colour into a pipe; with it on a terminal, but for NO_COLOR."""
    monkeypatch.setenv("COLUMNS", "80")
    watched(tmp_path / "watch", 20)
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(NVME))
    words = ("--smartctl", str(path), "--history", str(tmp_path / "watch"), "--start", "2025-01-01")
    _, out, _ = run(capsys, *words)
    assert max(len(line) for line in out.splitlines()) <= 80 and "\x1b" not in out
    assert "TBW             █████████···········   43 %  256 of 600 TB (warranty ends there)" in out
    assert "warranty time   ████················   20 %  to 2030-01-01, 4.0 years left" in out
    flat = " ".join(out.split())
    assert (
        "At this workload (60.9 TB/month; 21 polls over 20 days) the rated TBW is reached in 5.7 months, before the"
        " warranty's years end in 4.0 years." in flat
    )
    assert "not known: - NAND bytes written" in flat and "Without power at most 20 days since the first reading" in flat
    found = json.loads(run(capsys, *words, "--json")[1])
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = wear_screen.screen(found, 80, True)
    assert "\x1b[32m" in coloured
    bare = coloured
    for code in (*wear_screen.COLOURS.values(), "\x1b[0m"):
        bare = bare.replace(code, "")
    assert bare == wear_screen.screen(found, 80, False) == out[:-1]


def test_the_screen_says_what_is_over(read):
    document = copy.deepcopy(NVME)
    document["nvme_smart_health_information_log"] |= {
        "percentage_used": 130,
        "data_units_written": 1_200_000_000,
        "available_spare": 8,
    }
    document["smart_status"]["passed"] = False
    document["smartctl"]["exit_status"] = 8
    document["nvme_smart_health_information_log"]["critical_warning"] = 1
    _, got = read(document, "--start", "2019-01-01", "--rate", "1GB/day")
    text = " ".join(wear_screen.screen(got, 80, False).split())
    assert (
        "HEALTH FAILING" in text
        and "the rated TBW has been reached" in text
        and "No retention bound: 130 % of the rated endurance is used" in text
    )
    assert got["retention"]["state"] == "void"
    assert "\x1b[31m" + "█" * wear_screen.BAR in wear_screen.screen(got, 80, True)


ODD = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.lists(st.integers(), max_size=2)
    | st.just({})
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([*NVME, *NVME["nvme_smart_health_information_log"]]), ODD), max_size=5))
def test_odd_fields_never_break_it(changes):
    """Whatever a field is: an object with all keys, and a screen."""
    document = copy.deepcopy(NVME)
    for name, value in changes:
        if name in document:
            document[name] = value
        elif isinstance(document.get("nvme_smart_health_information_log"), dict):
            document["nvme_smart_health_information_log"][name] = value
    wrapped = {"smartctl": document}
    snapshot = wear_command.counters.snapshot(wrapped) | {"utc_ns": saved.utc_ns(wrapped)}
    found = wear_command.report(snapshot, wrapped, wear_command.endurance.Limits(tbw_TB=100, years=5), [], None, 25.0)
    assert all(key in found for key in (*REQUIRED, "limits", "projection", "retention", "wa", "unknown"))
    json.dumps(found, default=str, allow_nan=False)
    assert wear_screen.screen(found, 80, False)


# figures computed by hand from the raw JSON of each file: data units x 512 000 B, LBAs x 512 B
SAMPLES = {
    "INTEL_SSDPE2KX080T8_1.json": dict(
        host_written_bytes=184_919_244 * 512_000,
        host_read_bytes=20_126_802 * 512_000,
        percentage_used=0,
        power_on_hours=12164,
    ),
    "KXG60ZNV512G_TOSHIBA_2.json": dict(
        host_written_bytes=3_861_802 * 512_000, percentage_used=1, power_on_hours=12173
    ),
    "SAMSUNG_MZ7WD240HAFV-00003_21.json": dict(
        host_written_bytes=216_456_537_880 * 512,
        power_on_hours=84619,
        power_cycles=6,
        pe_cycles_mean=1661,
        temperature_C=27,
    ),
    "SAMSUNG_MZQLB1T9HAJR-00007_19.json": dict(
        host_written_bytes=44_965_392 * 512_000, percentage_used=0, power_on_hours=20701
    ),
    "SAMSUNG_MZVL21T0HCLR-00B00_23.json": dict(
        host_written_bytes=113_662_783 * 512_000, percentage_used=16, power_on_hours=10423, power_cycles=6
    ),
    "WDC_WD20EFRX-68EUZN0_17.json": dict(
        protocol="ATA",
        power_on_hours=47657,
        power_cycles=3,
        temperature_C=34,
        percentage_used=None,
        nand_written_bytes=None,
    ),
    "nvme-null-CT250P2SSD8-nvme0.json": dict(
        host_written_bytes=1_002_900 * 512_000,
        host_read_bytes=4_932_757 * 512_000,
        power_cycles=8,
        unsafe_shutdowns=5,
        temperature_C=26,
    ),
    "nvme-null-INTEL_SSDPEDMD400G4-nvme0.json": dict(
        host_written_bytes=655_012_839 * 512_000, percentage_used=5, power_on_hours=41951
    ),
    "nvme-null-Micron_7300_MTFDHBE1T6TDG-nvme0.json": dict(
        host_written_bytes=338_104 * 512_000, percentage_used=0, power_on_hours=5100
    ),
    "scrutiny-smart-ata.json": dict(
        model="WDC WD140EDFZ-11A0VA0",
        protocol="ATA",
        power_on_hours=1730,
        power_cycles=9,
        host_written_bytes=None,
        temperature_C=32,
    ),
    "scrutiny-smart-fail.json": dict(model=None, exit_status_bits=[1], host_written_bytes=None, power_on_hours=None),
    "scrutiny-smart-nvme.json": dict(
        model="INTEL SSDPEKNW010T8", host_written_bytes=7_773_431 * 512_000, percentage_used=0, power_on_hours=2401
    ),
    "scrutiny-smart-sat.json": dict(
        model=None, protocol="ATA", host_written_bytes=None, power_cycles=354, temperature_C=29
    ),
    "scrutiny-smart-scsi.json": dict(
        model="SEAGATE ST4000NM0043",
        protocol="SCSI",
        host_written_bytes=86_472_611_000_000,
        host_read_bytes=176_987_332_000_000,
        power_on_hours=43549,
        temperature_C=34,
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_of_real_drives(name, capsys):
    folder = Path(os.environ.get("SSDRIG_SAMPLES") or Path(__file__).resolve().parents[2] / "shared/data/smartctl")
    if not (folder / name).is_file():
        pytest.skip(f"no {name}: set SSDRIG_SAMPLES to a folder of smartctl outputs of real drives")
    code, out, _ = run(capsys, "--json", "--smartctl", str(folder / name))
    got = json.loads(out)
    assert code == (4 if name == "scrutiny-smart-fail.json" else 0) and all(
        key in got for key in (*REQUIRED, "exit_status_bits")
    )
    assert {key: got[key] for key in SAMPLES[name]} == SAMPLES[name]
    assert run(capsys, "--smartctl", str(folder / name))[1]


def test_a_folder_of_documents(tmp_path, capsys):
    """Every *.json below it; what is not a SMART document is named on stderr and left out."""
    (tmp_path / "a" / "deeper").mkdir(parents=True)
    for name in ("a/one.json", "a/deeper/two.json"):
        (tmp_path / name).write_text(json.dumps(NVME))
    (tmp_path / "a" / "run.json").write_text("{}")
    (tmp_path / "a" / "notes.txt").write_text("x")
    code, out, err = run(capsys, "--json", "--smartctl", str(tmp_path / "a"))
    assert code == 0 and [json.loads(line)["percentage_used"] for line in out.splitlines()] == [23, 23]
    assert err.count("left out") == 1 and "run.json" in err
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="a folder with none"):
        run(capsys, "--smartctl", str(tmp_path / "empty"))


def test_pipes_and_files_without_an_end_are_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(saved, "LARGEST_BYTES", 1 << 20)
    (tmp_path / "one.json").write_text(json.dumps(NVME))
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    code, out, err = run(capsys, "--json", "--smartctl", str(tmp_path))
    assert code == 0 and len(out.splitlines()) == 1 and err.count("left out: no file") == 2
    with pytest.raises(UsageError, match="more than 1 MiB: /dev/zero"):
        run(capsys, "--smartctl", "/dev/zero")


def test_control_characters_do_not_reach_the_terminal(tmp_path, capsys):
    path = tmp_path / "saved.json"
    odd = "X\x1b[2J\x1b]0;title\x07\nhealth ok\u202e\x9b"
    messages = {"exit_status": 2, "messages": [{"string": odd}]}
    path.write_text(json.dumps(NVME | {"model_name": odd, "serial_number": odd, "smartctl": messages}))
    _, out, err = run(capsys, "--smartctl", str(path))
    assert all(c.isprintable() or c == "\n" for c in out + err) and "\\x1b[2J" in out and "X\n" not in out
    assert json.loads(run(capsys, "--json", "--smartctl", str(path))[1])["model"] == odd  # the figure itself is kept


def test_the_explanation_is_given_when_asked_for(tmp_path, capsys):
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(NVME))
    short, long = run(capsys, "--smartctl", str(path))[1], run(capsys, "--explain", "--smartctl", str(path))[1]
    assert "not a promise" not in short and short.count("JESD218") == 1 and "not a promise" in " ".join(long.split())
