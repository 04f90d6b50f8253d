"""The table of attributes against smartmontools' own drive databases, 7.0 to 7.5 and the branch after it: a family or a
name that they rename fails here and not at a user's drive. The databases are read where they lie, nothing of them is
copied."""

import re

import drivedb
import pytest
from no_tables import no_table_of_the_user  # noqa: F401  autouse

from ssdrig.drive.smart import ata_table

# rows that the newest database has no name for: of files that older smartctl wrote
GONE = {
    (206, "Min_Erase_Cnt"),  # Lexar, until 7.5; now Maxio based
    (207, "Max_Erase_Cnt"),
    (208, "Avg_Erase_Cnt"),
    (241, "Total_Host_GB_Written"),  # WD, 7.0
    (242, "Total_Host_GB_Read"),
    (241, "Total_Writes_GiB"),  # SK hynix, until 7.2
    (242, "Total_Reads_GiB"),
    (241, "Lifetime_Writes_GiB"),  # SK hynix, until 7.4; still of SandForce and Phison
    (241, "Host_Writes_LBAs"),  # SMART Modular, 7.0
    (242, "Host_Reads_LBAs"),
    (0, "Host_Reades_GiB"),  # sic; Apple, until 7.5
    (0, "Program_Fail_Cnt"),
    (0, "Erase_Fail_Cnt"),
}
# names about wear or writes that have no rule because nothing public says what they count, or because a rule reads a
# better attribute of the same drive: {family: names}
KNOWN_UNKNOWN = {
    "": r"Total_Erase_Count|.*SLC_(Min|Max|Avg|Average|Erase).*|.*_SLC_Erase_Ct|Wear_Range_Delta|Flash_ID|Write_Head"
    r"|.*_Count_pSLC|Lifetime_PS[34]_.*|Capacitor_Life|.*Spares?_?.*(Perc|Remain).*|Trimmed.*|Write_Protect.*",
    "^Swissbit C440": "Erase_Count",
    "^Apacer (SSD$|SSD |SDM4)": "Average_Erase_Count",  # 164 and 165 have one name
    "^Apple": "Wear_Leveling_Count|Block_Erase_Count",
    "^SandForce": "Life_Curve_Status|Media_Wearout_Indicator",
    "^(Indilinx Barefoot_2)": "Lifetime_Writes",
    "^OCZ/Toshiba Trion": "Erase_Count",
    "^(InnoDisk|Innodisk)": "Erase_Count(_Max/Avg)?|Data_Log_Write_Count|Later_Bad_Blk_Inf_R/W/E",
    "^Dell Certified Intel": "End_of_Life|Total_LBAs_Written",  # 233; 225 is the host's
    "^Lenovo OEM Intel": "Wear_Delta_Avg_Max_Min",
    "^(JMicron|Maxio|Lexar)": "Erase_C(oun)?t|Avg/Max_Erase_Count|Erase_Cnt",
    "^Samsung": "Wear_Leveling_Count|Timed_Workld_Media_Wear",  # 173 of OEM drives, 245
    "^(Marvell based )?S[Aa]n[Dd]isk": r"Total_Write/Erase_Count|Lifetime_Remaining%|Perc_Write/Erase_(Ct_BC|Count)"
    r"|TLC_NAND_GB_Writes|Lifetime_Write_AmpFctr|Percent_Life_Used|Lifetime_Die_Failure_Ct|SSD_LifeLeft\(0.01%\)"
    r"|Drive_?Life_(Remaining|Used)%|SSD_Life_Left",
    "^SMART Modular": "Perc_Rated_Life_Used",
    "^STEC": "Wear_Leveling_Count",
    "^SK hynix": "SSD_Life_Left",  # 245; 231 has the same name
    "^Toshiba H": "Erase_Count",
    "^WD Blue": "Block_Erase_Count",
    "^Seagate": "Drv_Life_Protect_Status",
    "^ATP": "Percent_Lifetime_Used",  # 202; 248 is read
    "^SSSTC": "Remaining_Lifetime_Perc|Sys_Percent_Life_Remain|Percent_Lifetime_Remain",  # 231 and 233; 202 is read
}
WEAR = re.compile(
    r"(?i)(host|lba|lifetime|total|data|nand|flash|tlc|slc|sectors?|device)_.*(writ|wr|wts|prog)"
    r"|writ.*_(gi?b|mib|32mib|sector|lba)|life|wear|remain.*perc|perc.*(remain|used)|p/?e_c|erase_c(ou)?n?t|w/e"
)
ELSEWHERE = {5, 9, 12, 187, 196, 197, 198}  # ids that are not about wear, whatever their names


@pytest.fixture(scope="module", params=drivedb.RELEASES)
def families(request):
    return _families(request.param)


def _families(release: str) -> list:
    path = drivedb.FOLDER / release
    if not path.is_file():
        pytest.skip(f"no {release} in {drivedb.FOLDER}: smartmontools' drive databases are read there")
    return drivedb.families(path.read_text())


def without_a_rule(families: list) -> list[str]:
    """Names about wear or writes, "family: id name", that neither our table nor KNOWN_UNKNOWN has."""
    out = []
    for family, attributes in families:
        if family == "DEFAULT":
            continue
        rows = ata_table.Rows([e for e in ata_table.entries() if e.fits(family, True, "", "", frozenset())])
        known = [re.compile(names) for pattern, names in KNOWN_UNKNOWN.items() if re.search(pattern, family)]
        for key, (_, name, kind) in attributes.items():
            if kind == "HDD" or key in ELSEWHERE or not WEAR.search(name):
                continue
            if not rows.of(key, name) and not any(names.fullmatch(name) for names in known):
                out.append(f"{family}: {key} {name}")
    return out


def test_every_name_about_wear_has_a_rule_or_is_known_to_have_none(families):
    assert without_a_rule(families) == []


def test_a_renamed_family_or_attribute_is_found(families):
    """The check can fail: as when 7.5 renamed Intel's drives, and when 7.1 renamed WD's attributes."""
    renamed = [(family.replace("Intel", "Solidigm-Intel"), rows) for family, rows in families]
    assert any("Workld_Media_Wear_Indic" in words for words in without_a_rule(renamed))
    renamed = [
        (family, {k: (f, "Host_Writes_of_GB" if k == 241 else n, h) for k, (f, n, h) in rows.items()})
        for family, rows in families
        if family.startswith("WD ")
    ]
    assert any("Host_Writes_of_GB" in words for words in without_a_rule(renamed))


def _fits(entry: ata_table.Entry, row: tuple, families: list) -> bool:
    default = next(rows for family, rows in families if family == "DEFAULT")
    for family, attributes in families:
        if family != "DEFAULT" and entry.family.search(family):
            for key, (_, name, _) in (default | attributes).items():
                if row[0] in (0, key) and row[1] in ("", name):
                    return True
    return False


@pytest.mark.slow
def test_every_row_names_an_attribute_of_the_newest_database_or_is_known_to_be_gone():
    releases = [_families(release) for release in drivedb.RELEASES]
    for entry in ata_table.entries():
        if entry.family is None:
            continue
        newest = any(entry.family.search(family) for family, _ in releases[-1])
        assert newest or entry.family.pattern == "^SSSTC ER2 ", f"no family is {entry.family.pattern} any more"
        for row in entry.rows:
            fits = [_fits(entry, row, families) for families in releases]
            words = f"{entry.family.pattern}: {row} is in {fits}"
            assert any(fits), words
            if newest:
                assert fits[-1] or row[:2] in GONE, words
            first, last = fits.index(True), len(fits) - fits[::-1].index(True)
            assert all(fits[first:last]), f"{words}: it went and came back"


def test_names_that_prove_a_family_are_of_no_other():
    releases = [_families(release) for release in drivedb.RELEASES]
    for entry in ata_table.entries():
        for name in entry.proof:
            has = {f for families in releases for f, rows in families if any(n == name for _, n, _ in rows.values())}
            assert has and all(entry.family.search(family) for family in has), (name, has)


def test_names_that_say_their_unit_are_no_default_of_smartctl():
    """What smartctl calls an attribute of a drive that it does not know proves nothing."""
    for release in drivedb.RELEASES:
        default = {name for _, name, _ in next(r for f, r in _families(release) if f == "DEFAULT").values()}
        for entry in ata_table.entries():
            if entry.family is not None and entry.family.pattern == "":
                assert not default & {row[1] for row in entry.rows if row[2] in ata_table.BYTE_ROLES}


def test_the_reader():
    text = """/* "no" */ { "A SSDs", // tested "x"
      "A .*|" "B", "", "say \\"http://x\\"",
      "-v 241,raw48,Host_Writes_GiB "  // comment
      "-v 9,raw24(raw8),Power_On_Hours,HDD " "-F samsung"
    },
    { "USB: x", "", "", "", "-d sat" },"""
    assert drivedb.families(text) == [
        ("A SSDs", {241: ("raw48", "Host_Writes_GiB", ""), 9: ("raw24(raw8)", "Power_On_Hours", "HDD")}),
        ("USB: x", {}),
    ]
