"""ATA drives: bytes and their units by family, calibrations, device statistics and tables of the user."""

import pytest
from ata_documents import FAMILIES, GIB, MIB, attributes, junk, snap
from hypothesis import given, settings
from hypothesis import strategies as st
from no_tables import no_table_of_the_user  # noqa: F401  autouse

from ssdrig.base import words
from ssdrig.base.errors import UsageError
from ssdrig.drive.smart import counters


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
        and "./ssdrig units" in words
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
    assert any("358 GB, attribute 241 (32 MiB) 336 GB" in words for words in got["unknown"])
    got = snap("Intel 320 Series SSDs", (233, "Media_Wearout_Indicator", 0, 60), statistics=[(7, 0x08, 12)])
    assert got["percentage_used"] == 12 and any("12 %, attribute 233 40 %" in w for w in got["unknown"])


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
