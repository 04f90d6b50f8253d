"""Which unit a counter of an ATA drive has: by what the file itself shows, by model and firmware, or by its family."""

import pytest
from ata_documents import GIB, MIB, drive, snap

from ssdrig.drive.smart import ata_counters, ata_table, counters
from ssdrig.drive.smart.ata_counters import UNITS, Life
from ssdrig.drive.smart.ata_readings import STATISTICS_SOURCE, Counter, Reading

GB = 10**9
PHISON, HYNIX = "Phison Driven SSDs", "SK hynix SATA SSDs"


def unit_of(got: dict, attribute: int) -> tuple:
    return next((u["unit_bytes"], u["evidence"]) for u in got["counter_units"] if u["attribute"] == attribute)


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit != 512])
def test_device_statistics_name_the_unit_of_an_attribute(unit):
    raw = 3_000_000
    statistics = [(1, 0x18, raw * unit // 512), (1, 0x28, 2 * raw * unit // 512)]
    attributes = ((241, "Lifetime_Writes_GiB", raw), (242, "Lifetime_Reads_GiB", 2 * raw))
    got = snap(PHISON, *attributes, statistics=statistics)
    assert (unit_of(got, 241), unit_of(got, 242)) == ((unit, STATISTICS_SOURCE), (unit, STATISTICS_SOURCE))
    assert got["host_written_bytes"] == pytest.approx(raw * unit, rel=1e-3)
    assert got["host_read_bytes"] == pytest.approx(2 * raw * unit, rel=1e-3)


def test_reads_take_the_unit_that_the_statistics_of_the_writes_name():
    attributes = ((241, "Lifetime_Writes_GiB", 1000), (242, "Lifetime_Reads_GiB", 500))
    got = snap(PHISON, *attributes, statistics=[(1, 0x18, 1000 * 32 * MIB // 512)])
    assert got["host_read_bytes"] == 500 * 32 * MIB
    assert unit_of(got, 242) == (32 * MIB, "device statistics of the writes")


def test_too_few_counts_prove_no_other_unit():
    """16 counts of GiB and 17 of GB are the same within one count."""
    statistics = Reading(16 * GIB, 512, STATISTICS_SOURCE)
    assert ata_counters.unit_of_statistics(Counter(17, (), "a", "n", 0), statistics) is None
    statistics = Reading(1600 * GIB, 512, STATISTICS_SOURCE)
    assert ata_counters.unit_of_statistics(Counter(1718, (), "a", "n", 0), statistics) == GB


def test_statistics_of_no_known_unit_leave_both_unused():
    got = snap(PHISON, (241, "Lifetime_Writes_GiB", 1000), statistics=[(1, 0x18, 1000 * 5 * MIB // 512)])
    assert got["host_written_bytes"] is None and any("neither is used" in words for words in got["unknown"])


def test_statistics_of_0_beside_an_attribute_that_counts_are_not_used():
    got = snap(PHISON, (241, "Lifetime_Writes_GiB", 1000), statistics=[(1, 0x18, 0)])
    assert got["host_written_bytes"] == 1000 * GIB


def test_attribute_of_unknown_unit_gets_that_of_the_statistics():
    got = snap(None, (241, "Total_LBAs_Written", 1000), statistics=[(1, 0x18, 1000 * GIB // 512)], model_name="ACME")
    assert unit_of(got, 241) == (GIB, STATISTICS_SOURCE)


@pytest.mark.parametrize(
    "model, firmware, family, name, unit",
    [
        ("Patriot Blaze", "S9FM02.8", PHISON, "Lifetime_Writes_GiB", MIB),
        ("INTENSO", "S9FM02.6", "Phison Driven OEM SSDs", "Lifetime_Writes_GiB", MIB),
        ("Patriot Blast", "SAFM11.3", PHISON, "Lifetime_Writes_GiB", GIB),
        ("KIOXIA-EXCERIA SATA SSD", "SBFA15.5", PHISON, "Lifetime_Writes_GiB", 32 * MIB),
        ("HFS128G39TND-N210A", "30001P10", HYNIX, "Total_Writes_GB", GB),
        ("HFS128G39MND-3310A", "20600P00", HYNIX, "Total_Writes_GiB", GB),
        ("HFS128G32TNF-N3A0A", "70000P10", HYNIX, "Total_Writes_GB", GB),
        ("SK hynix SC308 SATA 256GB", "30001P10", HYNIX, "Total_Writes_GB", GB),
        ("SK hynix SC311 SATA 256GB", "70000P10", HYNIX, "Total_Writes_GB", 512),
        ("SanDisk SD7SB6S-256G-1006", "X2180006", "Marvell based SanDisk SSDs", "Total_Writes_GiB", 16 * MIB),
        ("SanDisk SD7SB6S-256G-1122", "X2180006", "Marvell based SanDisk SSDs", "Total_Writes_GiB", GIB),
    ],
)
def test_unit_by_model_and_firmware(model, firmware, family, name, unit):
    reads = name.replace("Writes", "Reads")
    attributes = ((241, name, 5000), (242, reads, 4000))
    got = snap(family, *attributes, model_name=model, firmware_version=firmware)
    assert (got["host_written_bytes"], got["host_read_bytes"]) == (5000 * unit, 4000 * unit)


def test_bytes_that_percentage_used_refutes_are_none_and_so_are_the_reads():
    """2 000 000 GiB on 60 GB at 2 % used: 35 800 drive writes."""
    attributes = ((241, "Lifetime_Writes_GiB", 2_000_000), (242, "Lifetime_Reads_GiB", 1000))
    size = {"user_capacity": {"bytes": 60 * GB}, "firmware_version": "SBFM61"}
    got = snap(PHISON, *attributes, statistics=[(7, 8, 2)], **size)
    assert (got["host_written_bytes"], got["host_read_bytes"]) == (None, None)
    assert any("drive writes at 2 % used" in words for words in got["unknown"])
    got = snap(PHISON, *attributes, statistics=[(7, 8, 60)], **size)
    assert got["host_written_bytes"] == 2_000_000 * GIB


def test_reads_go_with_writes_that_the_cycles_refute():
    attributes = ((241, "Total_Writes_GiB", 1_600_000), (242, "Total_Reads_GiB", 1_500_000))
    cycles = (173, "Avg_Write/Erase_Count", 20)
    got = snap("Marvell based SanDisk SSDs", *attributes, cycles, user_capacity={"bytes": 256 * GB})
    assert (got["host_written_bytes"], got["host_read_bytes"]) == (None, None)


def test_of_two_units_the_one_that_fits_hours_and_cycles_is_taken():
    hours = {"power_on_time": {"hours": 15_000}, "user_capacity": {"bytes": 128 * GB}}
    got = snap(HYNIX, (241, "Total_Writes_GB", 3200), (242, "Total_Reads_GB", 2700), **hours)
    assert (got["host_written_bytes"], got["host_read_bytes"]) == (3200 * GB, 2700 * GB)
    assert unit_of(got, 241) == (GB, "hours and wear")
    got = snap(HYNIX, (241, "Total_Writes_GB", 6 * GB), **hours)
    assert got["host_written_bytes"] == 6 * GB * 512
    got = snap(HYNIX, (241, "Total_Writes_GB", 10), power_on_time={"hours": 5})
    assert got["host_written_bytes"] is None and any("too little was written" in words for words in got["unknown"])
    life = Life(100, 100 * GB, 50, None)
    cases = {5000: 1 << 30, 5_000_000: 1 << 20}
    for raw, unit in cases.items():
        counter = Counter(raw, (1 << 20, 1 << 30), "attribute 233", "F", 0)
        assert ata_counters._of_table(counter, "nand_written", life)[0] == unit


def test_hynix_wear_is_that_of_177():
    attributes = (
        (177, "Wear_Leveling_Count", 82, 93),
        (201, "Percent_Lifetime_Remain", 0, 100),
        (231, "SSD_Life_Left", 0, 253),
        (234, "Unknown_SK_hynix_Attrib", 11_000),
        (241, "Total_Writes_GB", 3200),
    )
    got = snap(HYNIX, *attributes, model_name="HFS128G39TND-N210A", user_capacity={"bytes": 128 * GB})
    assert (got["pe_cycles_mean"], got["percentage_used"], got["nand_written_bytes"]) == (82, 7, 11_000 * GIB)


UNLISTED = [
    ("CT4000MX500SSD1", "M3CR045", {173: 30, 202: 2, 246: 50_000_000_000, 247: 8, 248: 9}, 50_000_000_000 * 512),
    (
        "Micron_5400_MTFDDAK960TGA",
        "D4MU001",
        {173: 3, 202: 0, 246: 50_000_000_000, 247: 8, 248: 9},
        50_000_000_000 * 512,
    ),
    ("INTEL SSDSC2BB120G4L", "D201LD12", {225: 5000, 226: 61, 227: 1, 228: 60, 233: 0, 241: 5000}, 5000 * 32 * MIB),
    ("WDC  WDS100T1R0A-68A4W0", "411000WR", {230: 0, 232: 100, 233: 900, 234: 300, 241: 700}, 700 * GIB),
    ("Samsung SSD 870 QVO 8TB", "SVQ02B6Q", {177: 9, 241: 50_000_000_000}, 50_000_000_000 * 512),
    ("KINGSTON NEWONE", "SBFK71E0", {168: 0, 170: 0, 173: 0, 192: 3, 218: 0, 231: 98, 241: 4000}, 4000 * GIB),
    ("NONAME", "S9FM02.8", {168: 0, 170: 0, 173: 0, 192: 3, 241: 4000}, 4000 * MIB),
    ("KIOXIA-EXCERIA G3 SATA", "SBFA20.1", {173: 0, 241: 4000}, 4000 * 32 * MIB),
    ("HFS512G39TND-N210A", "30001P10", {168: 1, 241: 4000}, 4000 * GB),
]


@pytest.mark.parametrize("model, firmware, attributes, written", UNLISTED)
def test_drive_that_smartctl_does_not_list_is_recognised(model, firmware, attributes, written):
    rows = [(key, "Unknown_SSD_Attribute", raw) for key, raw in attributes.items()]
    got = snap(None, *rows, model_name=model, firmware_version=firmware)
    assert got["host_written_bytes"] == written and got["family"] and got["family_source"] != "smartctl"


def test_drive_of_another_attribute_set_is_not_recognised():
    got = snap(None, (246, "Unknown_Attribute", 9 * GB), model_name="CT4000MX500SSD1")
    assert got["family"] is None and got["host_written_bytes"] is None
    (words,) = (words for words in got["unknown"] if words.startswith("host bytes written"))
    assert "attribute 246" in words and "no such counter" not in words


def test_family_of_smartctl_goes_before_our_own():
    assert snap(PHISON, model_name="CT4000MX500SSD1")["family_source"] == "smartctl"
    assert ata_table.family_of("", "S9FM02.8", frozenset({168, 170, 173, 192, 241})) is None


def test_calibration_goes_before_the_statistics():
    document = drive(
        None, (241, "Total_LBAs_Written", 1000), statistics=[(1, 0x18, 9)], units={"ata:241": MIB}, model_name="A"
    )
    assert unit_of(counters.snapshot(document), 241) == (MIB, "calibration")


@pytest.mark.parametrize("sectors", [2**32 + 10**9, 10**11, 2**40 + 5])
@pytest.mark.parametrize("skew, used", [(0, True), (-3000, True), (10**8, False)])
def test_attribute_of_32_bits_that_has_wrapped_gives_way_to_the_statistics(sectors, skew, used):
    attribute = (241, "Total_LBAs_Written", (sectors + skew) % 2**32)
    got = snap("Samsung based SSDs", attribute, statistics=[(1, 0x18, sectors)])
    assert got["host_written_bytes"] == (sectors * 512 if used else None)
    assert any("wrapped" in words for words in got["unknown"]) is used
