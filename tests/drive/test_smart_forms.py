"""The forms in which people have SMART documents: text, arrays, lines, and those of other programs."""

import json

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.drive.smart import counters, saved

ATA_TEXT = """smartctl 7.2 2020-12-30 r5155 [x86_64-linux-5.10.0] (local build)

=== START OF INFORMATION SECTION ===
Model Family:     Crucial/Micron Client SSDs
Device Model:     CT1000MX500SSD1
Serial Number:    FICT0TEXT1
Firmware Version: M3CR023
User Capacity:    1,000,204,886,016 bytes [1.00 TB]
Sector Sizes:     512 bytes logical, 4096 bytes physical
Rotation Rate:    Solid State Device
Device is:        In smartctl database [for details use: -P show]
Local Time is:    Sat Nov 28 05:49:38 2026 CET

=== START OF READ SMART DATA SECTION ===
SMART overall-health self-assessment test result: PASSED

ID# ATTRIBUTE_NAME          FLAGS    VALUE WORST THRESH FAIL RAW_VALUE
  9 Power_On_Hours          -O--CK   100   100   000    -    12345
173 Ave_Block-Erase_Count   -O--CK   050   050   000    -    750
194 Temperature_Celsius     -O---K   067   045   000    -    33 (Min/Max 0/55)
202 Percent_Lifetime_Remain ----CK   050   050   001    -    50
246 Total_LBAs_Written      -O--CK   100   100   000    -    50000000000
247 Host_Program_Page_Count -O--CK   100   100   000    -    800000000
248 FTL_Program_Page_Count  -O--CK   100   100   000    -    900000000
                            ||||||_ K auto-keep

Device Error Count: 57 (device log contains only the most recent 4 errors)

Num  Test_Description    Status                  Remaining  LifeTime(hours)  LBA_of_first_error
# 1  Short offline       Completed: read failure       90%     12000         1234
# 2  Extended offline    Completed without error       00%     11000         -

Page  Offset Size        Value Flags Description
0x01  =====  =               =  ===  == General Statistics (rev 1) ==
0x01  0x018  6     50000001000  ---  Logical Sectors Written
0x01  0x028  6               -  ---  Logical Sectors Read
0x07  0x008  1              50  N--  Percentage Used Endurance Indicator
"""
OLD_TABLE = """smartctl 6.6 2017-11-05 r4594 [x86_64-linux] (local build)

=== START OF INFORMATION SECTION ===
Device Model:     Samsung SSD 850 PRO 128GB
Serial Number:    FICT0TEXT2
Firmware Version: EXM02B6Q

=== START OF READ SMART DATA SECTION ===
ID# ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED RAW_VALUE
177 Wear_Leveling_Count     0x0013   001   001   005    Pre-fail  Always   FAILING_NOW 5800
241 Total_LBAs_Written      0x0032   099   099   000    Old_age   Always       -       62000000000
"""
NVME_TEXT = """smartctl 7.4 2023-08-01 r5530 [x86_64-linux] (local build)

=== START OF INFORMATION SECTION ===
Model Number:                       ACME NVMe 2TB
Serial Number:                      FICT0TEXT3
Firmware Version:                   1
Total NVM Capacity:                 2.000.398.934.016 [2,00 TB]
NVMe Version:                       1.3
Number of Namespaces:               1
Namespace 1 Size/Capacity:          1.000.204.886.016 [1,00 TB]
Warning  Comp. Temp. Threshold:     82 Celsius

=== START OF SMART DATA SECTION ===
SMART/Health Information (NVMe Log 0x02, NSID 0xffffffff)
Critical Warning:                   0x00
Temperature:                        83 Celsius
Available Spare:                    100%
Available Spare Threshold:          10%
Percentage Used:                    3%
Data Units Read:                    10.000.000 [5,12 TB]
Data Units Written:                 20,000,000 [10,2 TB]
Power On Hours:                     2 345
Thermal Temp. 1 Transition Count:   17
"""
SAS_TEXT = """smartctl 7.4 2023-08-01 r5530 [x86_64-linux] (local build)

=== START OF INFORMATION SECTION ===
Vendor:               ACME
Product:              SAS1
Revision:             A001
User Capacity:        3,840,755,982,336 bytes [3.84 TB]
Logical block size:   512 bytes
Rotation Rate:        Solid State Device
Serial number:        FICT0TEXT4
Transport protocol:   SAS (SPL-4)

=== START OF READ SMART DATA SECTION ===
SMART Health Status: OK

Percentage used endurance indicator: 7%
Current Drive Temperature:     38 C
Drive Trip Temperature:        70 C
Accumulated power on time, hours:minutes 12345:30
Elements in grown defect list: 2

Error counter log:
           Errors Corrected by           Total   Correction     Gigabytes    Total
read:          0        0         0         0          0       1000.000           0
write:         0        0         0         0          0     500000.000           0
"""


def read(*texts: str) -> list[dict]:
    documents = [
        (str(number), one) for number, text in enumerate(texts) for one in saved.documents_of(text.encode(), "f")
    ]
    return [counters.snapshot(document) for _, document in saved.with_identity(documents)]


def ata(**more) -> dict:
    return {"smartctl": {"exit_status": 0}, "device": {"protocol": "ATA"}, "model_name": "X"} | more


def test_text_of_an_ata_drive():
    (got,) = read(ATA_TEXT)
    expected = {
        "model": "CT1000MX500SSD1",
        "serial": "FICT0TEXT1",
        "capacity_bytes": 1_000_204_886_016,
        "host_written_bytes": 50_000_000_000 * 512,
        "pe_cycles_mean": 750,
        "percentage_used": 50,
        "temperature_C": 33,
        "power_on_hours": 12345,
        "host_program_pages": 800_000_000,
        "nand_program_pages": 1_700_000_000,
        "health": "warning",
    }
    assert {name: got[name] for name in expected} == expected
    assert {reason["kind"] for reason in got["health_reasons"]} == {"self_test", "error_log"}
    assert saved.parse(ATA_TEXT)["local_time"]["time_t"] == 1795841378


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_with_line_ends_of_windows_is_that_of_linux(encoding):
    for printed in (ATA_TEXT, NVME_TEXT, SAS_TEXT):
        (got,) = saved.documents_of(printed.replace("\n", "\r\n").encode(encoding), "f")
        assert got == {"smartctl": saved.parse(printed)}


def test_text_of_several_drives_is_several_documents():
    failed = "smartctl 7.4 2023-08-01 r5530\n\nSmartctl open device: /dev/sdx failed: No such device\n"
    printed = "\n".join(
        [ATA_TEXT, failed, ATA_TEXT.replace("FICT0TEXT1", "FICT0OTHER").replace("050   050", "001   001")]
    )
    assert [(got["serial"], got["percentage_used"]) for got in read(printed)] == [
        ("FICT0TEXT1", 50),
        ("FICT0OTHER", 50),
    ]
    marked = "\n".join(["\ufeff" + SAS_TEXT, "\ufeff" + NVME_TEXT])
    assert [got["serial"] for got in read(marked)] == ["FICT0TEXT4", "FICT0TEXT3"]


def test_status_that_smartctl_cannot_tell_is_unknown():
    (got,) = read(OLD_TABLE.replace("FAILING_NOW", "-").replace("001   001", "090   090"))
    assert got["health"] == "unknown"
    for status, health in (("UNKNOWN!", "unknown"), ("FAILED!", "failing"), ("PASSED", "ok")):
        line = f"SMART overall-health self-assessment test result: {status}\nID#"
        (got,) = read(OLD_TABLE.replace("FAILING_NOW", "-").replace("001   001", "090   090").replace("ID#", line))
        assert got["health"] == health


@pytest.mark.parametrize(
    "status, hours, health",
    [
        ("Completed                   -", "   90", "ok"),
        ("Aborted (by user command)   -", "   90", "ok"),
        ("Self test in progress ...   -", "  NOW", "ok"),
        ("Failed in segment -->       6", "   90", "warning"),
        ("Unknown error, incomplete   -", "   90", "warning"),
    ],
)
def test_self_test_in_the_text_of_a_sas_drive(status, hours, health):
    log = f"""
SMART Self-test log
Num  Test              Status                 segment  LifeTime  LBA_first_err [SK ASC ASQ]
     Description                              number   (hours)
# 1  Background short  {status}   {hours}                 - [-   -    -]
# 2  Foreground long   Completed                   -      80                 - [-   -    -]
"""
    (got,) = read(SAS_TEXT + log)
    assert (got["health"], len(got["health_reasons"])) == (health, int(health != "ok"))


def test_old_table_of_attributes():
    (got,) = read(OLD_TABLE)
    assert (got["host_written_bytes"], got["pe_cycles_mean"], got["health"]) == (62 * 10**9 * 512, 5800, "failing")


@pytest.mark.parametrize(
    "shown, raw",
    [
        ("62000000000", 62_000_000_000),
        ("66 (Average 530)", 66 | 530 << 16),
        ("0/5", 5),
        ("20 60 40", 20 << 32 | 60 << 16 | 40),
        ("65h+33m+09.259s", 65),
        ("33 (Min/Max 20/45)", 33),
        ("0x2f24", 0x2F24),
        ("a b", None),
        ("12 of 30", None),
    ],
)
def test_raw_values_of_text(shown, raw):
    assert saved._raw(shown) == raw


def test_text_of_an_nvme_drive():
    (got,) = read(NVME_TEXT)
    names = (
        "capacity_bytes",
        "namespace_bytes",
        "host_written_bytes",
        "host_read_bytes",
        "power_on_hours",
        "namespace",
    )
    values = (2_000_398_934_016, 1_000_204_886_016, 20_000_000 * 512_000, 10_000_000 * 512_000, 2345, None)
    assert tuple(got[name] for name in names) == values
    assert (got["throttle_1_count"], got["health_reasons"][0]["kind"]) == (17, "temperature")


def test_text_of_a_sas_drive():
    (got,) = read(SAS_TEXT)
    names = (
        "host_written_bytes",
        "host_read_bytes",
        "percentage_used",
        "temperature_C",
        "power_on_hours",
        "reallocated",
    )
    assert tuple(got[name] for name in names) == (500_000 * 10**9, 1000 * 10**9, 7, 38, 12345, 2)
    assert (got["model"], got["health"]) == ("ACME SAS1", "ok")


def test_lines_arrays_and_ceph_are_several_documents():
    documents = [ata(serial_number=str(number)) for number in range(3)]
    lines = "\n".join(map(json.dumps, documents)) + "\n"
    ceph = json.dumps({f"2026010{number}-120000": one for number, one in enumerate(documents, 1)})
    for text in (lines, json.dumps(documents), ceph):
        assert [got["serial"] for got in read(text)] == ["0", "1", "2"]
    with_error = json.dumps(json.loads(ceph) | {"20260105-120000": {"error": "smartctl failed"}})
    assert len(read(with_error)) == 3
    assert saved.documents_of(ceph.encode(), "f")[0]["utc_ns"] == 1767268800 * 10**9


def test_documents_in_a_row_are_several_whatever_their_lines():
    documents = [ata(serial_number=str(number)) for number in range(3)]
    for indent, between in ((None, "\r\n"), (2, "\n"), (2, ""), (None, " "), (2, "\n\ufeff")):
        printed = between.join(json.dumps(one, indent=indent) for one in documents)
        assert [got["serial"] for got in read(f"[sudo] password for x: {printed}\n")] == ["0", "1", "2"]
    cut_off = json.dumps(documents[0], indent=2)[:-5] + "\n" + json.dumps(documents[1])
    with pytest.raises(UsageError):  # the second alone would hide the first
        read(cut_off)


def test_words_before_the_document_are_skipped():
    for words in ("[sudo] password for x: \n", "[1] 4711\n", "[1] [2] [3] [4] [5] [6] [7] [8] [9] [10] [11] [12] "):
        assert read(f"{words}{json.dumps(ata(serial_number='7'))}")[0]["serial"] == "7"


def test_smart_log_of_nvme_cli_takes_its_identity_from_id_ctrl():
    log = {"critical_warning": {"value": 0}, "temperature": 313, "avail_spare": 100, "spare_thresh": 10}
    log |= {"percent_used": 5, "data_units_read": "1000000", "data_units_written": 2_000_000, "power_on_hours": 1000}
    identity = {"mn": "ACME NVMe  ", "sn": "FICT1", "fr": "1", "vid": 0x144D, "tnvmcap": 2_000_398_934_016}
    (alone,) = read(json.dumps(log))
    (got,) = read(json.dumps(identity), json.dumps(log))
    for one in (alone, got):
        assert (one["host_written_bytes"], one["temperature_C"], one["health"]) == (2_000_000 * 512_000, 40, "ok")
        assert one["host_read_bytes"] == 1_000_000 * 512_000
    assert (alone["model"], got["model"], got["serial"]) == (None, "ACME NVMe", "FICT1")
    assert got["capacity_bytes"] == 2_000_398_934_016
    with pytest.raises(UsageError):
        read(json.dumps(identity))


@pytest.mark.parametrize("shown, celsius", [(313, 40), (40, 40), (200, None), (0, None)])
def test_smart_log_of_nvme_cli_in_kelvin_or_celsius(shown, celsius):
    log = {"critical_warning": 0, "temperature": shown, "percent_used": 5, "data_units_written": 2_000_000}
    (got,) = read(json.dumps(log))
    assert got["temperature_C"] == celsius


def test_state_of_smartd_has_its_identity_in_device_info():
    state = {"device": {"protocol": "NVMe"}, "device_info": "ACME X6T40, S/N:FICT1, FW:1UETE103, 6.40 TB"}
    (got,) = read(json.dumps(state))
    assert (got["model"], got["serial"], got["firmware"]) == ("ACME X6T40", "FICT1", "1UETE103")
    assert got["capacity_bytes"] == 6.4e12
    state["device_info"] = "[ACME     SAS SSD          A001], lu id: 0x5000000000000001, S/N: FICT3, 3.84 TB"
    (got,) = read(json.dumps(state))
    assert (got["serial"], got["firmware"], got["capacity_bytes"]) == ("FICT3", "A001", 3.84e12)
    state["device_info"] = "ACME SATA, S/N:FICT2, WWN:5-000000-000000001, FW:EMT03B6Q, 500 GB"
    (got,) = read(json.dumps(state))
    assert (got["model"], got["serial"], got["capacity_bytes"]) == ("ACME SATA", "FICT2", 500e9)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"smartctl": {"exit_status": 0}, "devices": [{"name": "/dev/sda"}]}),
        json.dumps({"devices": []}),
        "[]",
        "{}",
        "3",
        "",
        json.dumps(ata())[:-5],
        json.dumps(ata()) + "\n" + json.dumps(ata())[:-5],
        json.dumps([ata(), {"other": 1}]),
        "smartctl 7.4 2023-08-01 r5530\n\nSmartctl open device: /dev/sdx failed: No such device\n",
        "no document at all",
        "[" * 100_000,
    ],
)
def test_what_is_no_document_is_refused(text):
    with pytest.raises(UsageError):
        read(text)
