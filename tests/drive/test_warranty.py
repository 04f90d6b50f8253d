"""The table of warranties: the shipped rows, a user's own, the command line, and files that must be refused."""

import argparse
import re
import tomllib
from datetime import date

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.drive.wear import warranty
from ssdrig.drive.wear.endurance import Limits


@pytest.fixture(autouse=True)
def no_table_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "ssdrig").mkdir(parents=True)
    return tmp_path / "config" / "ssdrig" / "warranty.toml"


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    warranty.add_arguments(parser)
    return parser.parse_args(list(words))


@pytest.mark.parametrize(
    "model, capacity, tbw, years, drive_class",
    [
        ("CT250P2SSD8", 250059350016, 150, 5, "client"),
        ("CT1000MX500SSD1", 1000204886016, 360, 5, "client"),
        ("INTEL SSDPEKNW010T8", 1024209543168, 200, 5, "client"),
        (
            "INTEL SSDPEDMD400G4",
            400088457216,
            pytest.approx(7301.6, abs=0.1),
            5,
            "enterprise",
        ),  # 10 x 0.400088 TB x 1825 days
        (
            "SAMSUNG MZQLB1T9HAJR-00007",
            1920383410176,
            pytest.approx(2733.7, abs=0.1),
            3,
            "enterprise",
        ),  # 1.3 x 1.920383 TB x 1095 days
        ("Samsung SSD 850 EVO 250GB", 250059350016, 75, 5, "client"),
        ("Samsung SSD 850 PRO 2TB", 2048408248320, 300, 10, "client"),
        ("Samsung SSD 970 EVO 1TB", 1000204886016, 600, 5, "client"),
        ("Samsung SSD 970 EVO Plus 2TB", 2000398934016, 1200, 5, "client"),
        ("Samsung SSD 980 500GB", 500107862016, 300, 5, "client"),
        ("Samsung SSD 980 PRO with Heatsink 2TB", 2000398934016, 1200, 5, "client"),
        ("WDC WDS100T2B0A-00SM50", 1000204886016, 400, 5, "client"),
        ("WDC WDS100T2B0C-00PXH0", 1000204886016, 600, 5, "client"),
        ("WDC  WDS500G1R0A-68A4W0", 500107862016, 350, 5, "client"),
        (
            "Micron_7450_MTFDKCC3T8TFR",
            3840755982336,
            pytest.approx(7009.4, abs=0.1),
            5,
            "enterprise",
        ),  # PRO: 1 x 3.840756 TB x 1825 days
        ("Micron_7450_MTFDKCC3T2TFS", 3200631791616, pytest.approx(17523.5, abs=0.1), 5, "enterprise"),  # MAX: 3 a day
    ],
)
def test_shipped_rows(model, capacity, tbw, years, drive_class):
    got = warranty.limits_for(model, capacity)
    assert (got.tbw_TB, got.years, got.drive_class) == (tbw, years, drive_class) and got.source


@pytest.mark.parametrize(
    "model, capacity",
    [
        ("SAMSUNG MZVL21T0HCLR-00B00", 1024209543168),  # OEM: warranted by who built it in
        ("CT250P2SSD8", 960 * 10**9),  # no such size in the row
        ("CT250P2SSD8", None),
        ("WDC WD20EFRX-68EUZN0", 2000398934016),
        ("", 10**12),
        ("My CT250P2SSD8 in a box", 250059350016),
    ],
)
def test_what_is_in_no_table_has_no_limits(model, capacity):
    assert warranty.limits_for(model, capacity) is None


def test_years_without_a_tbw():
    got = warranty.limits_for("Samsung SSD 840 EVO 250GB", 250059350016)
    assert (got.years, got.tbw_TB, got.mileage) == (3, None, None)


def test_rated_bytes():
    assert warranty.rated_bytes(Limits(tbw_TB=600)) == 600e12
    assert warranty.rated_bytes(Limits(years=5)) is None and warranty.rated_bytes(None) is None


def test_every_shipped_row_is_sound():
    """Each names its source, fits a model of its own, and says years and TBW that a drive can have: 0.05 to 60 drive
    writes a day."""
    rows = tomllib.loads(warranty.SHIPPED.read_text())["drive"]
    assert len(rows) >= 40
    for row in rows:
        assert warranty._trouble(row) is None and len(row["source"]) > 10 and "drive_class" in row
        re.compile(row["model"])
        for capacity_GB, tbw in row.get("tbw_by_GB", {}).items():
            per_day = tbw * 1000 / float(capacity_GB) / (365 * row.get("years", 5))
            assert 0.03 < per_day < 15, row
    assert not any("verify" in row["source"] for row in rows)


def test_a_row_of_the_user_wins(no_table_of_the_user):
    no_table_of_the_user.write_text(
        '[[drive]]\nmodel = "^CT250P2SSD8$"\ntbw_TB = 140.5\npe_cycles = 1500\nmileage = false\nsource = "my'
        ' contract"\n'
    )
    assert warranty.limits_for("CT250P2SSD8", 250059350016) == Limits(
        tbw_TB=140.5, pe_cycles=1500, mileage=False, source="my contract"
    )
    assert warranty.limits_for("CT500P2SSD8", 500107862016).tbw_TB == 150  # other models are still the shipped ones


@pytest.mark.parametrize(
    "text, seen",
    [
        ("drive = 3", "without them"),
        ("", "without them"),
        ("not toml at all", "warranty.toml"),
        ('[[drive]]\nsource = "x"', "no model or no source"),
        ('[[drive]]\nmodel = "x"', "no model or no source"),
        ('[[drive]]\nmodel = "("\nsource = "x"', "not a regular expression"),
        ('[[drive]]\nmodel = "x"\nsource = "x"\ntbw_TB = "600"', "tbw_TB = '600'"),
        ('[[drive]]\nmodel = "x"\nsource = "x"\ntbw_TB = true', "tbw_TB = True"),
        ('[[drive]]\nmodel = "x"\nsource = "x"\nyears = 0', "years = 0"),
        ('[[drive]]\nmodel = "x"\nsource = "x"\nyears = 101', "years = 101"),
        ('[[drive]]\nmodel = "x"\nsource = "x"\ndwpd = -1', "dwpd = -1"),
        ('[[drive]]\nmodel = "x"\nsource = "x"\nmileage = 1', "mileage = 1"),
        ('[[drive]]\nmodel = "x"\nsource = "x"\ntbw = 1', "field tbw"),
        ('[[drive]]\nmodel = "x"\nsource = "x"\ntbw_by_GB = { a = 1 }', "tbw_by_GB"),
        ('[[drive]]\nmodel = "x"\nsource = "x"\ntbw_by_GB = { 1 = "2" }', "tbw_by_GB"),
        ('[[drive]]\nmodel = "x"\nsource = "x"\ncapacity_GB = []', "capacity_GB"),
        ('[[drive]]\nmodel = "x"\nsource = "x"\ndrive_class = "server"', "server"),
    ],
)
def test_a_table_that_is_wrong_is_refused(no_table_of_the_user, text, seen):
    no_table_of_the_user.write_text(text)
    with pytest.raises(UsageError) as caught:
        warranty.limits_for("CT250P2SSD8", 250059350016)
    assert seen in caught.value.seen


def test_capacity_is_matched_within_four_percent(no_table_of_the_user):
    no_table_of_the_user.write_text('[[drive]]\nmodel = "X"\nsource = "s"\ntbw_by_GB = { 1000 = 600, 1920 = 1 }\n')
    assert (
        warranty.limits_for("X", 1_039_000_000_000).tbw_TB == 600
        and warranty.limits_for("X", 961_000_000_000).tbw_TB == 600
    )
    assert warranty.limits_for("X", 1_041_000_000_000) is None and warranty.limits_for("X", 959_000_000_000) is None


def test_words_of_the_command_line():
    got = warranty.of_arguments(
        arguments("--tbw", "72", "--years", "3", "--start", "2024-05-01", "--class", "client"),
        "OCZ-VERTEX3",
        240 * 10**9,
    )
    assert (got.tbw_TB, got.years, got.start, got.drive_class, got.mileage) == (72, 3, date(2024, 5, 1), "client", True)
    assert (
        got.dwpd == pytest.approx(72e12 / (240e9 * 1095)) and got.source == "command line: drive_class, tbw_TB, years"
    )


def test_words_correct_a_row():
    """Of TBW and DWPD the table's own must not stay beside the new one."""
    model, capacity = "CT250P2SSD8", 250059350016
    got = warranty.of_arguments(arguments("--tbw", "90"), model, capacity)
    assert got == warranty.of_arguments(arguments("--tbw", "90TB"), model, capacity)
    assert (
        got.tbw_TB == 90
        and got.years == 5
        and got.dwpd == pytest.approx(90e12 / (capacity * 1825))
        and got.source.startswith("command line: tbw_TB; otherwise purepc")
    )
    got = warranty.of_arguments(arguments("--dwpd", "1"), model, capacity)
    assert got.dwpd == 1 and got.tbw_TB == pytest.approx(capacity * 1825 / 1e12) and "TBW = 1 DWPD" in got.basis
    longer = warranty.of_arguments(arguments("--years", "10"), model, capacity)  # the TBW is what it was
    assert longer.tbw_TB == 150 and longer.dwpd == pytest.approx(150e12 / (capacity * 3650))
    assert warranty.of_arguments(arguments("--start", "2025-01-01"), model, capacity).source.startswith("purepc")
    assert warranty.of_arguments(arguments(), "nobody knows", 10**12) == Limits()
    assert warranty.of_arguments(arguments("--pe-cycles", "3000"), None, None) == Limits(
        pe_cycles=3000, source="command line: pe_cycles"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("--tbw", "0"),
        ("--tbw", "many"),
        ("--tbw", "72 years"),
        ("--tbw", "1B"),
        ("--years", "-3"),
        ("--years", "101"),
        ("--start", "1.5.2024"),
        ("--start", "9999-01-01"),  # ends after the last year that a date has
        ("--class", "server"),
        ("--dwpd", "nan"),
    ],
)
def test_words_that_are_wrong(words):
    with pytest.raises((argparse.ArgumentError, UsageError)):
        arguments(*words)
