"""ATA attributes and device statistics: units by family and name, what other tools get wrong, and documents of any
kind."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig import words
from ssdrig.drive.smart import ata_table, counters
from ssdrig.errors import UsageError

MIB, GIB = 1 << 20, 1 << 30


@pytest.fixture(autouse=True)
def no_table_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    ata_table.forget()
    yield tmp_path / "ssdrig" / "ata_units.toml"
    ata_table.forget()


def drive(family, *attributes, statistics=(), units=None, **more) -> dict:
    """A SMART document; attributes are (id, name, raw) or (id, name, raw, normalised), statistics (page, offset,
    value)."""
    table = [
        {
            "id": a[0],
            "name": a[1],
            "value": a[3] if len(a) > 3 else 100,
            "thresh": 10,
            "raw": {"value": a[2], "string": str(a[2])},
        }
        for a in attributes
    ]
    smartctl = {
        "device": {"protocol": "ATA"},
        "model_name": "X",
        "logical_block_size": 512,
        "ata_smart_attributes": {"table": table},
    }
    smartctl |= {"model_family": family, "in_smartctl_database": True} if family else {"in_smartctl_database": False}
    if statistics:
        pages = [
            {"number": p, "table": [{"offset": o, "value": v, "flags": {"valid": True, "normalized": p == 7}}]}
            for p, o, v in statistics
        ]
        smartctl["ata_device_statistics"] = {"pages": pages}
    return {"smartctl": smartctl | more, "units": units or {}}


def snap(*args, **more) -> dict:
    return counters.snapshot(drive(*args, **more))


# family, attributes, host bytes and unit, NAND bytes and unit: a row of smart attributes of each kind of controller
FAMILIES = [
    (
        "Intel 520 Series SSDs",
        [(225, "Host_Writes_32MiB", 1000), (249, "NAND_Writes_1GiB", 60)],
        1000 * 32 * MIB,
        32 * MIB,
        60 * GIB,
        GIB,
    ),
    (
        "Intel S4510/S4610/S4500/S4600 Series SSDs",
        [(241, "Host_Writes_32MiB", 7), (243, "NAND_Writes_32MiB", 9)],
        7 * 32 * MIB,
        32 * MIB,
        9 * 32 * MIB,
        32 * MIB,
    ),
    (
        "Samsung based SSDs",
        [(241, "Total_LBAs_Written", 4_000_000), (249, "NAND_Writes_1GiB", 3)],
        2_048_000_000,
        512,
        3 * GIB,
        GIB,
    ),
    ("Micron 5100 Pro / 52x0 / 5300 SSDs", [(246, "Total_LBAs_Written", 1000)], 512_000, 512, None, None),
    (
        "SandForce Driven SSDs",
        [(241, "Lifetime_Writes_GiB", 500), (233, "SandForce_Internal", 400)],
        500 * GIB,
        GIB,
        400 * GIB,
        GIB,
    ),
    ("Phison Driven SSDs", [(241, "Lifetime_Writes_GiB", 5), (233, "Flash_Writes_GiB", 8)], 5 * GIB, GIB, 8 * GIB, GIB),
    (
        "Silicon Motion based SSDs",
        [(241, "Host_Writes_32MiB", 100), (245, "TLC_Writes_32MiB", 150), (246, "SLC_Writes_32MiB", 90)],
        100 * 32 * MIB,
        32 * MIB,
        240 * 32 * MIB,
        64 * MIB,
    ),
    (
        "Marvell based SanDisk SSDs",
        [(241, "Total_Writes_GiB", 11), (233, "Total_NAND_Writes_GiB", 13)],
        11 * GIB,
        GIB,
        13 * GIB,
        GIB,
    ),
    (
        "WD Blue / Red / Green SSDs",
        [(241, "Host_Writes_GiB", 10), (233, "NAND_GB_Written_TLC", 12), (234, "NAND_GB_Written_SLC", 3)],
        10 * GIB,
        GIB,
        15 * GIB,
        2 * GIB,
    ),
    ("Sandisk SATA Cloudspeed Max and GEN2 ESS SSDs", [(233, "Lifetime_Nand_Writes", 12)], None, None, None, None),
    (
        "SK hynix SATA SSDs",
        [(235, "Lifetime_Writes_GiB", 4), (234, "Lifetime_NAND_Prg_GiB", 6)],
        4 * GIB,
        GIB,
        6 * GIB,
        GIB,
    ),
    # sectors, whatever the name says
    ("SK hynix SATA SSDs", [(241, "Lifetime_Writes_GiB", 4)], 2048, 512, None, None),
    ("SK hynix SATA SSDs", [(241, "Total_Writes_GB", 4), (243, "Total_Media_Writes", 6)], 2048, 512, None, None),
    (
        "Seagate Nytro XF1230 SATA SSD",
        [(241, "Total_Writes_GiB", 4), (234, "Lifetime_Nand_Gb", 6)],
        4 * GIB,
        GIB,
        6 * 10**9,
        10**9,
    ),
    (
        "Seagate IronWolf Pro 125 SSDs",
        [(241, "Host_Writes_GiB", 4), (233, "Flash_Writes_GiB", 6), (235, "Flash_Writes_Sectors", 6 * GIB // 512 + 3)],
        4 * GIB,
        GIB,
        6 * GIB + 3 * 512,
        512,
    ),
    (
        "Innodisk 3IE2/3ME2/3MG2/3SE2/3TG6 SSDs",
        [(241, "Host_Writes_32MiB", 4), (245, "Flash_Writes_32MiB", 6)],
        4 * 32 * MIB,
        32 * MIB,
        6 * 32 * MIB,
        32 * MIB,
    ),
    (
        "Indilinx Barefoot 3 based SSDs",
        [(199, "Host_Writes_GiB", 4), (249, "Total_NAND_Prog_Ct_GiB", 6)],
        2048,  # sectors and pages, whatever the names say
        512,
        6 * 16384,
        16384,
    ),
    (
        "SMART Modular Technologies mSATA XL+ SLC SSDs",
        [(241, "Total_LBAs_Written", 4), (235, "Flash_Writes_LBAs", 6)],
        2048,
        512,
        3072,
        512,
    ),
    (
        "SSSTC ER2 GD/CD Series SSDs",
        [(241, "Total_LBAs_Written", 4), (243, "NAND_Writes_GiB", 6)],
        4 * 10**9,
        10**9,
        6 * GIB,
        GIB,
    ),
    ("Plextor M3/M5/M6/M7 Series SSDs", [(241, "Host_Writes_32MiB", 4)], 128 * MIB, 32 * MIB, None, None),
    ("Apple SD/SM/TS...E/F/G SSDs", [(175, "Host_Writes_MiB", 4)], 4 * MIB, MIB, None, None),
    (
        "Toshiba HK4R Series SSD",
        [(241, "Total_LBAs_Written", 4)],
        None,
        None,
        None,
        None,
    ),  # LBAs or 32 MiB, by firmware
    ("OCZ/Toshiba Trion SSDs", [(241, "Host_Writes", 4)], None, None, None, None),
]


@pytest.mark.parametrize("family, attributes, host, host_unit, nand, nand_unit", FAMILIES)
def test_units(family, attributes, host, host_unit, nand, nand_unit):
    got = snap(family, *attributes)
    assert (got["host_written_bytes"], got["host_written_unit_bytes"]) == (host, host_unit)
    assert (got["nand_written_bytes"], got["nand_written_unit_bytes"]) == (nand, nand_unit)
    for value, name in ((host, "host"), (nand, "NAND")):
        assert value is not None or any(words.startswith(f"{name} bytes written") for words in got["unknown"])


def test_sources_name_attribute_and_unit():
    got = snap(*FAMILIES[0][:1], *FAMILIES[0][1])
    assert (got["host_written_source"], got["nand_written_source"]) == (
        "attribute 225 (32 MiB)",
        "attribute 249 (1 GiB)",
    )
    assert [words.exact_size(n) for n in (512, 4096, 10**9, 10**6)] == ["512 B", "4 KiB", "1 GB", "1000000 B"]


def test_mixed_units_are_not_mixed():
    """Intel 520: host in 32 MiB, NAND in GiB. 6400 and 250 are WA 1.25; without units it would be 0.039, with one unit
    for both too."""
    got = snap("Intel 520 Series SSDs", (241, "Host_Writes_32MiB", 6400), (249, "NAND_Writes_1GiB", 250))
    assert got["nand_written_bytes"] / got["host_written_bytes"] == 1.25
    assert 250 / 6400 == pytest.approx(0.039, abs=1e-3)


def test_lbas_are_not_32_mib():
    """97 656 250 000 LBAs are 50 TB. Read as 32 MiB they are 3.3 million TB: refused where a table says so, because no
    SATA link carries it."""
    right = snap("Samsung based SSDs", (241, "Total_LBAs_Written", 97_656_250_000), power_on_time={"hours": 9421})
    assert right["host_written_bytes"] == 50 * 10**12
    wrong = snap("Intel 520 Series SSDs", (241, "Host_Writes_32MiB", 97_656_250_000), power_on_time={"hours": 9421})
    assert wrong["host_written_bytes"] is None and any("more than SATA carries" in words for words in wrong["unknown"])


@pytest.mark.parametrize(
    "family, attribute, used",
    [
        (
            "Intel 320 Series SSDs",
            (233, "Media_Wearout_Indicator", 0, 95),
            5,
        ),  # normalised counts down; 95 would be the inverted figure
        ("Samsung based SSDs", (177, "Wear_Leveling_Count", 1661, 91), 9),
        (
            "Crucial/Micron Client SSDs",
            (202, "Percent_Lifetime_Remain", 23, 77),
            23,
        ),  # raw is "used", in spite of the name
        ("Crucial/Micron Client SSDs", (202, "Percent_Lifetime_Remain", 131, 0), 131),  # past the rating
        ("Crucial/Micron Client SSDs", (202, "Percent_Lifetime_Remain", 77, 77), 23),  # a firmware with "remain" in raw
        ("Phison Driven SSDs", (231, "SSD_Life_Left", 88, 88), 12),
        (
            "WD Blue / Red / Green SSDs",
            (230, "Media_Wearout_Indicator", 3461733745159, 7),
            None,
        ),  # packed, not published
        ("Toshiba HK4R Series SSD", (233, "Media_Wearout_Indicator", 0, 95), None),  # a family of which it is not known
        (None, (233, "Media_Wearout_Indicator", 0, 95), None),
        ("Intel 320 Series SSDs", (233, "Media_Wearout_Indicator", 0, 253), None),  # no percentage
    ],
)
def test_percentage_used(family, attribute, used):
    got = snap(family, attribute)
    assert got["percentage_used"] == used
    if used is None:
        assert any("ercentage" in words for words in got["unknown"])


def test_pages_of_unknown_size():
    """Micron F7 = 800, F8 = 1200: WA 2.5 as a ratio; how many bytes that is, is not known."""
    got = snap(
        "Crucial/Micron Client SSDs",
        (246, "Total_LBAs_Written", 1000),
        (247, "Host_Program_Page_Count", 800),
        (248, "FTL_Program_Page_Count", 1200),
    )
    assert (got["host_program_pages"], got["nand_program_pages"]) == (800, 2000) and got["nand_written_bytes"] is None
    assert got["nand_program_pages"] / got["host_program_pages"] == 2.5 and any(
        "pages without reporting their size" in w for w in got["unknown"]
    )
    half = snap("Crucial/Micron Client SSDs", (247, "Host_Program_Page_Count", 800))
    assert half["host_program_pages"] is None and half["nand_program_pages"] is None


def test_slc_cache():
    """TLC + SLC counts data that passes through the cache twice: both figures are given."""
    got = snap(*FAMILIES[8][:1], *FAMILIES[8][1])
    assert (got["nand_written_bytes"], got["nand_written_tlc_bytes"]) == (15 * GIB, 12 * GIB)
    got = snap("WD Blue / Red / Green SSDs", (233, "NAND_GB_Written_TLC", 12))
    assert (got["nand_written_bytes"], got["nand_written_tlc_bytes"]) == (None, 12 * GIB)
    assert any("it is no total" in words for words in got["unknown"])


@pytest.mark.parametrize(
    "family, attributes, mean, least, most",
    [
        ("Samsung based SSDs", [(177, "Wear_Leveling_Count", 112, 93)], 112, None, None),
        (
            "Samsung based SSDs",
            [(177, "Wear_Leveling_Count", 95, 95)],
            None,
            None,
            None,
        ),  # PM851: raw repeats the normalised value
        ("Phison Driven SSDs", [(173, "MaxAvgErase_Ct", 37 << 16 | 52)], 37, None, 52),
        ("Seagate IronWolf Pro 125 SSDs", [(173, "Max/Avg/Min_Erase_Ct", 90 << 32 | 60 << 16 | 30)], 60, 30, 90),
        (
            "WD Blue / Red / Green SSDs",
            [(166, "Minimum_PE_Cycles_TLC", 2), (168, "Maximum_PE_Cycles_TLC", 9), (173, "Average_PE_Cycles_TLC", 5)],
            5,
            2,
            9,
        ),
        ("Crucial/Micron Client SSDs", [(173, "Ave_Block-Erase_Count", 355)], 355, None, None),
        (None, [(177, "Wear_Leveling_Count", 112, 93), (173, "Ave_Block-Erase_Count", 3)], None, None, None),
        (
            "Crucial/Micron Client SSDs",
            [(173, "Ave_Block-Erase_Count", 3 << 32 | 355)],
            None,
            None,
            None,
        ),  # packed: no count
    ],
)
def test_pe_cycles(family, attributes, mean, least, most):
    got = snap(family, *attributes)
    assert (got["pe_cycles_mean"], got["pe_cycles_min"], got["pe_cycles_max"]) == (mean, least, most)
    assert (got["pe_cycles_source"] is None) == (mean is None)


def test_timed_workload():
    got = snap(
        "Intel 320 Series SSDs",
        (226, "Workld_Media_Wear_Indic", 1536),
        (227, "Workld_Host_Reads_Perc", 41),
        (228, "Workload_Minutes", 120),
    )
    assert (got["workload_wear_percent"], got["workload_reads_percent"], got["workload_timer_min"]) == (1.5, 41, 120)
    got = snap("Intel 320 Series SSDs", (226, "Workld_Media_Wear_Indic", 0xFFFF), (228, "Workload_Minutes", 0xFFFF))
    assert got["workload_wear_percent"] is None and got["workload_timer_min"] is None


def test_a_second_half_of_a_counter():
    low, high = (241, "Total_LBAs_Written_Low", 4000), (243, "Total_LBAs_Written_High", 0)
    assert snap("Swissbit X-600m Series Industrial mSATA SSD", low, high)["host_written_bytes"] == 2_048_000
    got = snap("Swissbit X-600m Series Industrial mSATA SSD", low, (243, "Total_LBAs_Written_High", 1))
    assert got["host_written_bytes"] is None and any("second attribute" in words for words in got["unknown"])


def test_raw_values_that_pack_several():
    """smartctl's texts of real drives: 2725 h in the low 24 bits, 29 C in the low byte. Read whole they are
    167031278144165 h and 77309411357 C."""
    table = [
        {
            "id": 9,
            "name": "Power_On_Hours",
            "value": 97,
            "raw": {"value": 167031278144165, "string": "2725 (151 234 0)"},
        },
        {
            "id": 194,
            "name": "Temperature_Celsius",
            "value": 29,
            "raw": {"value": 77309411357, "string": "29 (0 18 0 0 0)"},
        },
    ]
    got = counters.snapshot({"smartctl": {"device": {"protocol": "ATA"}, "ata_smart_attributes": {"table": table}}})
    assert (got["power_on_hours"], got["temperature_C"]) == (2725, 29)
    table[0]["raw"]["string"] = "41h+13m"
    got = counters.snapshot({"smartctl": {"device": {"protocol": "ATA"}, "ata_smart_attributes": {"table": table}}})
    assert got["power_on_hours"] is None and any("Power_On_Hours" in words for words in got["unknown"])
    got = snap(
        None, (9, "Power_On_Hours", 5), (12, "Power_Cycle_Count", 6), power_on_time={"hours": 7}, power_cycle_count=8
    )
    assert (got["power_on_hours"], got["power_cycles"]) == (7, 8)  # smartctl's own come first


def test_a_drive_outside_the_database():
    got = snap(None, (241, "Total_LBAs_Written", 156_250), (233, "NAND_Writes_1GiB", 9))
    assert (
        got["host_written_bytes"] is None
        and got["nand_written_bytes"] is None
        and got["host_written_unit_bytes"] is None
    )
    words = next(words for words in got["unknown"] if words.startswith("host bytes written"))
    assert (
        "attribute 241 Total_LBAs_Written counts 156250" in words
        and "smartctl's database does not have the drive" in words
        and "./ssdrig calibrate" in words
    )


def test_a_calibration_fills_the_unit_in():
    got = snap(None, (241, "Total_LBAs_Written", 156_250), units={"ata:241": 32 * MIB})
    assert (got["host_written_bytes"], got["host_written_unit_bytes"]) == (156_250 * 32 * MIB, 32 * MIB)
    assert got["host_written_source"] == "attribute 241, calibrated (32 MiB)" and not any(
        "calibrate it" in words for words in got["unknown"]
    )
    assert snap("Samsung based SSDs", (251, "NAND_Writes", 7), units={"ata:251": 512})["nand_written_bytes"] == 7 * 512
    assert snap(None, (249, "Unknown_Attribute", 7), units={"ata:249": GIB})["nand_written_bytes"] == 7 * GIB
    # a unit that drivedb states is not overridden
    assert (
        snap("Phison Driven SSDs", (241, "Lifetime_Writes_GiB", 5), units={"ata:241": 512})["host_written_bytes"]
        == 5 * GIB
    )
    for bad in ("512", -1, 0, True, 1.5, 10**400, None):
        assert snap(None, (241, "Total_LBAs_Written", 5), units={"ata:241": bad})["host_written_bytes"] is None


def test_device_statistics():
    got = snap(
        None,
        statistics=[
            (1, 0x18, 1000),
            (1, 0x28, 2000),
            (1, 0x08, 12),
            (1, 0x10, 345),
            (4, 0x08, 2),
            (5, 0x20, 61),
            (7, 0x08, 104),
            (3, 0x20, 1),
        ],
    )
    assert (got["host_written_bytes"], got["host_written_unit_bytes"], got["host_written_source"]) == (
        512_000,
        512,
        "device statistics",
    )
    assert got["host_written_wrap_bytes"] == 2**48 * 512 and got["host_read_bytes"] == 1_024_000
    assert (got["power_cycles"], got["power_on_hours"], got["media_errors"], got["temperature_max_C"]) == (
        12,
        345,
        2,
        61,
    )
    assert (got["percentage_used"], got["reallocated"]) == (104, 1)
    assert snap(None, statistics=[(1, 0x18, 1000)], logical_block_size=4096)["host_written_bytes"] == 4_096_000
    assert snap(None, statistics=[(1, 0x18, 1000)], logical_block_size=None)["host_written_bytes"] is None


@pytest.mark.parametrize(
    "entry",
    [
        {"offset": 0x18, "value": 1000, "flags": {"valid": False}},
        {"offset": 0x18, "value": 1000},
        {"offset": 0x18, "value": -1, "flags": {"valid": True}},
        {"offset": 0x18, "value": 1000, "flags": {"valid": True, "normalized": True}},
        {"offset": 0x18, "value": "1000", "flags": {"valid": True}},
        {"offset": 0x18, "value": 2**48, "flags": {"valid": True}},
        {"offset": "24", "value": 1000, "flags": {"valid": True}},
    ],
)
def test_device_statistics_that_are_not_valid(entry):
    got = snap(None, ata_device_statistics={"pages": [{"number": 1, "table": [entry]}]})
    assert got["host_written_bytes"] is None


def test_the_finer_of_two_sources_and_their_disagreement():
    attribute = (241, "Host_Writes_32MiB", 10_000)  # 335.5 GB
    got = snap("Intel 320 Series SSDs", attribute, statistics=[(1, 0x18, 655_360_777)])
    assert (got["host_written_bytes"], got["host_written_source"]) == (655_360_777 * 512, "device statistics")
    assert not any("says" in words for words in got["unknown"])
    got = snap("Intel 320 Series SSDs", attribute, statistics=[(1, 0x18, 700_000_000)])
    assert any("device statistics says 358 GB, attribute 241 (32 MiB) 336 GB" in words for words in got["unknown"])
    got = snap("Intel 320 Series SSDs", (233, "Media_Wearout_Indicator", 0, 60), statistics=[(7, 0x08, 12)])
    assert got["percentage_used"] == 12 and any(
        "percentage used: device statistics say 12 %, attribute 233 40 %" in w for w in got["unknown"]
    )


def test_a_table_of_the_user_wins(no_table_of_the_user):
    no_table_of_the_user.parent.mkdir()
    no_table_of_the_user.write_text(
        '[[drives]]\nmodel = "^X$"\nrows = [[241, "", "host_written", 33554432], [200, "Odd", "pe_mean", "word 1"]]\n'
        '[[drives]]\nfamily = "^Phison"\nrows = [[241, "Lifetime_Writes_GiB", "host_written", 1000000000]]\n'
    )
    got = snap(None, (241, "Total_LBAs_Written", 3), (200, "Odd", 5 << 16))
    assert (got["host_written_bytes"], got["pe_cycles_mean"]) == (3 * 32 * MIB, 5)
    assert (
        snap("Phison Driven SSDs", (241, "Lifetime_Writes_GiB", 3), model_name="Y")["host_written_bytes"] == 3 * 10**9
    )


@pytest.mark.parametrize(
    "text",
    [
        "drives = 3",
        "rows =",
        '[[drives]]\nrows = [[1, "a", "pe_mean", "raw"]]',
        '[[drives]]\nfamily = "("\n',
        '[[drives]]\nfamily = ""\nrows = [[1, "a", "b", "raw"]]',
        '[[drives]]\nfamily = ""\nrows = [[1, "a", "host_written", "GiB"]]',
        '[[drives]]\nfamily = ""\nrows = [[1, "a", "host_written", true]]',
        '[[drives]]\nfamily = ""\nrows = [[1, "a", "pe_mean", "word 9"]]',
        '[[drives]]\nfamily = ""\nrows = [1]',
    ],
)
def test_a_broken_table_of_the_user(no_table_of_the_user, text):
    no_table_of_the_user.parent.mkdir()
    no_table_of_the_user.write_text(text)
    with pytest.raises(UsageError, match="ata_units.toml"):
        snap(None, (241, "Total_LBAs_Written", 3))


junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 2**70),
    st.just(10**400),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(0, 9), max_size=2),
    st.dictionaries(st.sampled_from(["value", "string"]), st.integers(-2, 2**60) | st.text(max_size=3), max_size=2),
)
NAMES = [
    "Host_Writes_32MiB",
    "Total_LBAs_Written",
    "Lifetime_Writes_GiB",
    "NAND_Writes_1GiB",
    "Wear_Leveling_Count",
    "Media_Wearout_Indicator",
    "Host_Program_Page_Count",
    "FTL_Program_Page_Count",
    "MaxAvgErase_Ct",
    "Power_On_Hours",
    "Temperature_Celsius",
    "NAND_GB_Written_TLC",
]
attributes = st.dictionaries(
    st.sampled_from(["id", "name", "value", "worst", "thresh", "raw"]), junk, max_size=6
).flatmap(
    lambda d: st.tuples(
        st.just(d), st.sampled_from([9, 173, 177, 194, 233, 241, 247, 248]), st.sampled_from(NAMES), st.booleans()
    ).map(lambda t: {**t[0], **({"id": t[1], "name": t[2]} if t[3] else {})})
)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    st.lists(attributes | junk, max_size=6) | junk,
    junk | st.sampled_from(["Samsung based SSDs", "Intel 520 Series SSDs", "WD Blue / Red / Green SSDs"]),
    junk,
    junk,
)
def test_any_document(table, family, statistics, hours):
    smartctl = {
        "device": {"protocol": "ATA"},
        "model_family": family,
        "in_smartctl_database": True,
        "ata_smart_attributes": {"table": table},
        "ata_device_statistics": {
            "pages": [
                {"number": 1, "table": [statistics, {"offset": 24, "value": statistics, "flags": {"valid": True}}]}
            ]
        },
        "power_on_time": {"hours": hours},
        "logical_block_size": 512,
    }
    got = counters.snapshot({"smartctl": smartctl})
    assert set(got) == set(counters.KEYS)
    for name, value in got.items():
        if name.endswith(("_bytes", "_hours", "_pages", "_percent")):
            assert value is None or value >= 0
    for raw_less in (name for name in ("host_written", "nand_written") if got[f"{name}_bytes"] is not None):
        assert got[f"{raw_less}_unit_bytes"] and got[f"{raw_less}_source"]
