"""SMART figures in words: shown or not known, never both, and what is said of each."""

import re

import pytest
from no_tables import no_table_of_the_user  # noqa: F401  autouse
from smart_truths import MICRON, SMI, ata, nvme, screen_of, snap

from ssdrig.drive.smart import counters


def test_as_the_drive_says_is_written_only_where_it_does(tmp_path, capsys):
    table = ata("Samsung based SSDs", (177, "Wear_Leveling_Count", 112, 93))
    assert "as the drive reports" not in screen_of(table, tmp_path, capsys)
    guess = ata("Nobody SSDs", endurance_used={"current_percent": 12})
    text = screen_of(guess, tmp_path, capsys)
    assert "12 % smartctl's guess" in text and "as the drive reports" not in text
    statistics = ata("Samsung based SSDs", statistics=[(7, 8, 5)])
    assert "5 % as the drive reports" in screen_of(statistics, tmp_path, capsys)


# ---- 8: words


def test_a_figure_is_either_shown_or_not_known(tmp_path, capsys):
    guess = {"endurance_used": {"current_percent": 0}}
    for document in (ata("Nobody SSDs", **guess), ata("Samsung based SSDs", (177, "Wear_Leveling_Count", 1, 100))):
        text = screen_of(document, tmp_path, capsys)
        assert ("percentage used ····" in text) != ("- percentage used: " in text)


def test_no_calibration_is_asked_for_once_a_figure_is_there(tmp_path, capsys):
    text = screen_of(ata(None, (241, "Total_LBAs_Written", 77), statistics=[(1, 0x18, 9 * 10**9)]), tmp_path, capsys)
    assert "calibrate" not in text and "Host written 4.61 TB" in text
    # a NAND counter that is refused is not one whose unit is not known
    text = screen_of(ata(None, (241, "Total_LBAs_Written", 77)), tmp_path, capsys)
    assert text.count("ssdrig units") == 1


@pytest.mark.parametrize("turns", [{"rotation_rate": 7200}, {}])
def test_a_hard_disk_has_no_wear(turns, tmp_path, capsys):
    """A disk with platters: by its rotation rate, or by the attributes that only such a disk has."""
    attributes = [(7, "Seek_Error_Rate", 0), (10, "Spin_Retry_Count", 0), (231, "SSD_Life_Left", 74, 100)]
    more = {"endurance_used": {"current_percent": 12}, "spare_available": {"current_percent": 99}}
    disk = ata("Toshiba X", *attributes, statistics=[(1, 0x18, 9 * 10**9), (7, 8, 3)], **more, **turns)
    got = counters.snapshot({"smartctl": disk})
    assert got["hard_disk"] is True and got["host_written_bytes"] == 9 * 10**9 * 512
    assert all(got[name] is None and name not in got["sources"] for name in counters.OF_FLASH)
    text = screen_of(disk, tmp_path, capsys, "--tbw", "300", "--class", "client", "--rate", "50GB/day")
    for word in ("etention", "ndurance", "limit", "rated", "TBW", "NAND", "percentage used", "Without power"):
        assert word not in text, word


def test_beyond_100_years_is_said_so(tmp_path, capsys):
    document = ata("Samsung based SSDs", (241, "Total_LBAs_Written", 10**9))
    text = screen_of(document, tmp_path, capsys, "--tbw", "30000")
    assert "over 100 years" in text and "337" not in text
    document = ata("Samsung based SSDs", (241, "Total_LBAs_Written", 8 * 10**9), (177, "Wear_Leveling_Count", 112, 91))
    text = screen_of(document, tmp_path, capsys, "--rate", "1.05TB/year")
    assert re.search(r"\(\d+ to \d+\)", text) and "over 100" not in text
    text = screen_of(document, tmp_path, capsys, "--rate", "0.43TB/year")
    assert re.search(
        r"9\d years of power-on time \(\d+ years to over 100 years\)|9\d years \(\d+ years to over 100 years\)", text
    )


def test_a_bar_of_less_than_a_step_is_not_empty(tmp_path, capsys):
    document = ata("Samsung based SSDs", (241, "Total_LBAs_Written", 8 * 10**9))
    assert re.search("TBW ▏·+ 1.4 %", screen_of(document, tmp_path, capsys, "--tbw", "300"))


def test_every_figure_says_its_source_and_error():
    for got in (
        nvme(),
        snap(
            MICRON,
            (246, "Total_LBAs_Written", 9 * 10**9),
            (202, "Percent_Lifetime_Remain", 4, 96),
            (173, "Ave_Block-Erase_Count", 60),
        ),
        snap(SMI, (241, "Host_Writes_32MiB", 90_000), (167, "Average_Erase_Count", 132)),
    ):
        known = {name for name in counters.FIGURES if got[name] is not None}
        assert known == set(got["sources"]) and len(known) >= 3
        for name in known:
            entry = got["sources"][name]
            assert set(entry) == {"source", "error", "unit"} and entry["source"] and entry["error"] >= 0
    for name in ("host_written_bytes", "host_read_bytes"):  # both in units of 512 000 B, rounded up
        assert nvme()["sources"][name] == {"source": "log 02h", "error": 512_000, "unit": "B"}


def log(**counts) -> dict:
    return {"device": {"protocol": "NVMe"}, "nvme_smart_health_information_log": {"percentage_used": 3} | counts}


@pytest.mark.parametrize(
    "document, figure, why",
    [
        (ata("Samsung based SSDs", (241, "Total_LBAs_Written", 2**32 - 1)), "host bytes written", "all ones"),
        (ata(None, (241, "Total_LBAs_Written", 2**48 - 1)), "host bytes written", "all ones"),
        (ata("Phison Driven SSDs", (233, "Flash_Writes_GiB", 2**32 - 1)), "NAND bytes written", "all ones"),
        (ata("Phison Driven SSDs", (231, "SSD_Life_Left", 5, 253)), "percentage used", "not a percentage"),
        (ata(None, statistics=[(1, 0x18, 2**48 - 1)]), "host bytes written", "all ones"),
        (ata(None, statistics=[(7, 8, 300)]), "percentage used", "out of its range"),
        (log(data_units_written=1.5), "host bytes written", "not a whole number"),
        (log(data_units_written=0, host_writes=9), "host bytes written", "not a count"),
    ],
)
def test_counter_that_is_refused_is_not_one_that_the_drive_lacks(document, figure, why):
    unknown = counters.snapshot({"smartctl": document})["unknown"]
    (words,) = (words for words in unknown if words.startswith(f"{figure}: "))
    assert why in words


@pytest.mark.parametrize(
    "protocol, name", [("NVMe", "log 02h"), ("ATA", "ata_smart_attributes"), ("SCSI", "scsi_error_counter_log")]
)
def test_document_without_the_counter_is_not_a_drive_without_it(protocol, name):
    unknown = counters.snapshot({"smartctl": {"device": {"protocol": protocol}}})["unknown"]
    (words,) = (words for words in unknown if words.startswith("host bytes written: "))
    assert name in words
