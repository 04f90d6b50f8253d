"""A corpus of SMART documents, one for each family, firmware, version of smartctl and state of health, with figures
that are computed from the facts below and not from the product's tables; and how many mutants of the table of units it
kills."""

import copy
import itertools
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from selfcheck import Figure, exactly
from ssdrig.drive.smart import ata_table, counters

KILLED_PERCENT = 95.0
B512, PAGE, MIB, GB, GIB = 512, 16384, 1 << 20, 10**9, 1 << 30
MIB16, MIB32 = MIB << 4, MIB << 5
CAPACITY, HOURS, CYCLES, USED = 480 * GB, 20_000, 100, 10
# what the made drive has written, read, and put on its flash
BYTES = {"W": 24_123 * GB, "R": 12_061 * GB, "N": 48_246 * GB, "T": 36_184 * GB, "S": 12_062 * GB}
VERSIONS = ((7, 0), (7, 1), (7, 2), (7, 3), (7, 4), (7, 5), (8, 0))


class Spec(NamedTuple):
    """A drive: what smartctl calls its family ("": not listed), model, firmware, and its attributes: (id, name, what it
    counts: a key of BYTES with its unit, "-" with no known unit, or a life role, unit)."""

    family: str
    model: str
    firmware: str
    rows: tuple[tuple[int, str, str, int], ...]


def _pair(one: str, two: str, unit: int, key: int = 241) -> tuple:
    return ((key, one, "W", unit), (242, two, "R", unit))


PHISON_LIFE = ((231, "SSD_Life_Left", "life left", 0), (244, "Average_Erase_Count", "cycles", 0))
MICRON = ((173, "Ave_Block-Erase_Count", "cycles", 0), (202, "Percent_Lifetime_Remain", "used", 0))
GIBS, IN_32 = (
    _pair("Lifetime_Writes_GiB", "Lifetime_Reads_GiB", GIB),
    _pair("Host_Writes_32MiB", "Host_Reads_32MiB", MIB32),
)
UNNAMED = "Unknown_SSD_Attribute"
SPECS = (
    Spec("Phison Driven SSDs", "Patriot Blast", "SAFM11.3", (*GIBS, (233, "Flash_Writes_GiB", "N", GIB), *PHISON_LIFE)),
    Spec("Phison Driven SSDs", "Patriot Blaze", "S9FM02.8", _pair("Lifetime_Writes_GiB", "Lifetime_Reads_GiB", MIB)),
    Spec("Phison Driven OEM SSDs", "INTENSO", "S9FM02.6", _pair("Lifetime_Writes_GiB", "Lifetime_Reads_GiB", MIB)),
    Spec("Phison Driven SSDs", "Patriot Blaze", "S9FM02.8", ((233, "Flash_Writes_GiB", "N", MIB), *PHISON_LIFE)),
    Spec("Phison Driven SSDs", "Patriot Blaze", "S9FM02.9", ((233, "Flash_Writes_GiB", "N", GIB), *PHISON_LIFE)),
    Spec(
        "Phison Driven SSDs",
        "KIOXIA-EXCERIA SATA SSD",
        "SBFA15.5",
        _pair("Lifetime_Writes_GiB", "Lifetime_Reads_GiB", MIB32),
    ),
    Spec("", "KIOXIA-EXCERIA G2 SATA", "SBFA18.1", ((173, UNNAMED, "", 0), *_pair(UNNAMED, UNNAMED, MIB32))),
    Spec("", "TOSHIBA THNSNJ256GCSU", "JURA0101", _pair("Total_LBAs_Written", "Total_LBAs_Read", MIB32)),
    Spec("", "TOSHIBA-TR150", "SAFZ12.3", _pair("Total_LBAs_Written", "Total_LBAs_Read", MIB32)),
    Spec(
        "Marvell based SanDisk SSDs",
        "SanDisk SD7SB6S-256G-1006",
        "X2180006",
        _pair("Total_Writes_GiB", "Total_Reads_GiB", MIB16),
    ),
    Spec(
        "Marvell based SanDisk SSDs",
        "SanDisk SD7SB6S-256G-1122",
        "X2180006",
        (*_pair("Total_Writes_GiB", "Total_Reads_GiB", GIB), (233, "Total_NAND_Writes_GiB", "N", GIB)),
    ),
    Spec("", "Corsair Voyager GTX", "S9FM02.0", _pair("Total_LBAs_Written", "Total_LBAs_Read", MIB)),
    Spec(
        "SK hynix SATA SSDs",
        "HFS128G39TND-N210A",
        "30001P10",
        (
            *_pair("Total_Writes_GB", "Total_Reads_GB", GB),
            (234, "Unknown_SK_hynix_Attrib", "N", GIB),
            (177, "Wear_Leveling_Count", "cycles and used", 0),
        ),
    ),
    Spec("SK hynix SATA SSDs", "HFS128G39MND-3310A", "20600P00", _pair("Total_Writes_GiB", "Total_Reads_GiB", GB)),
    Spec("", "HFS512G39TND-N210A", "30001P10", _pair(UNNAMED, UNNAMED, GB)),
    Spec(
        "SK hynix SATA SSDs",
        "HFS128G32TNF-N3A0A",
        "70000P10",
        (*_pair("Total_Writes_GB", "Total_Reads_GB", GB), (249, "NAND_Writes_GiB", "N", GIB)),
    ),
    Spec(
        "SK hynix SATA SSDs", "SK hynix SC311 SATA 256GB", "70000P10", _pair("Total_Writes_GB", "Total_Reads_GB", B512)
    ),
    *(
        Spec("SK hynix SATA SSDs", "HFS480G3XYZ", "90037Q00", _pair(f"{name}", f"{reads}", unit))
        for name, reads in (
            ("Total_Writes_GB", "Total_Reads_GB"),
            ("Total_Writes_GiB", "Total_Reads_GiB"),
            ("Lifetime_Writes_GiB", "Total_Reads_GiB"),
        )
        for unit in (B512, GB)
    ),
    Spec(
        "SK hynix SATA SSDs",
        "HFS480G32FEH-7410A",
        "90037Q00",
        ((235, "Lifetime_Writes_GiB", "W", GIB), (234, "Lifetime_NAND_Prg_GiB", "N", GIB)),
    ),
    Spec("SK hynix SATA SSDs", "HFS480G32FEH-7410A", "90037Q00", ((243, "Total_Media_Writes", "-", 0),)),
    Spec(
        "Dell Certified Intel S3520 Series SSDs",
        "SSDSC2BB480G7R",
        "N201DL41",
        (
            (241, "Host_Writes_32MiB", "W", MIB32),
            (242, "Total_LBAs_Read", "R", MIB32),
            (245, "Percent_Life_Remaining", "left", 0),
        ),
    ),
    Spec(
        "Intel S4510/S4610/S4500/S4600 Series SSDs",
        "INTEL SSDSC2KB480G8",
        "XCV10110",
        (*IN_32, (243, "NAND_Writes_32MiB", "N", MIB32), (233, "Media_Wearout_Indicator", "left", 0)),
    ),
    Spec(
        "Intel 520 Series SSDs",
        "INTEL SSDSC2CW480A3",
        "400i",
        ((225, "Host_Writes_32MiB", "W", MIB32), (249, "NAND_Writes_1GiB", "N", GIB)),
    ),
    Spec(
        "",
        "INTEL SSDSC2BB480G4L",
        "D201LD12",
        (
            (225, UNNAMED, "W", MIB32),
            (226, UNNAMED, "", 0),
            (227, UNNAMED, "", 0),
            (228, "Power-off_Retract_Count", "", 0),
            (233, "Media_Wearout_Indicator", "left", 0),
            *_pair("Total_LBAs_Written", "Total_LBAs_Read", MIB32),
            (243, UNNAMED, "N", MIB32),
        ),
    ),
    Spec(
        "Samsung based SSDs",
        "Samsung SSD 850 PRO 512GB",
        "EXM02B6Q",
        (*_pair("Total_LBAs_Written", "Total_LBAs_Read", B512), (177, "Wear_Leveling_Count", "cycles and used", 0)),
    ),
    Spec(
        "Samsung based SSDs",
        "SAMSUNG MZ7LN512HCHP",
        "EMT03D0Q",
        ((241, "Total_LBAs_Written", "W", B512), (249, "NAND_Writes_1GiB", "N", GIB)),
    ),
    Spec("Samsung based SSDs", "SAMSUNG MZ7LM480HCHP", "GXT3003Q", ((251, "NAND_Writes", "-", 0),)),
    Spec(
        "",
        "Samsung SSD 870 QVO 8TB",
        "SVQ02B6Q",
        ((177, "Wear_Leveling_Count", "cycles and used", 0), *_pair("Total_LBAs_Written", "Total_LBAs_Read", B512)),
    ),
    Spec("Crucial/Micron Client SSDs", "CT500MX500SSD1", "M3CR023", ((246, "Total_LBAs_Written", "W", B512), *MICRON)),
    Spec(
        "Micron 5100 Pro / 52x0 / 5300 SSDs",
        "Micron_5300_MTFDDAK480TDS",
        "D3MU001",
        ((246, "Total_Host_Sector_Write", "W", B512), *MICRON),
    ),
    Spec(
        "",
        "CT4000MX500SSD1",
        "M3CR045",
        (
            (173, "Unknown_Attribute", "cycles", 0),
            (202, UNNAMED, "used", 0),
            (246, "Unknown_Attribute", "W", B512),
            (247, "Unknown_Attribute", "", 0),
            (248, "Unknown_Attribute", "", 0),
        ),
    ),
    Spec(
        "SandForce Driven SSDs",
        "Corsair Force 3",
        "5.05A",
        (*_pair("Lifetime_Writes_GiB", "Lifetime_Reads_GiB", GIB), (233, "SandForce_Internal", "N", GIB)),
    ),
    Spec(
        "SandForce Driven SSDs",
        "Corsair Force 3",
        "5.05A",
        ((241, "Lifetime_Writes_GiB", "W", GIB), (233, "NAND_GiB_Written", "N", GIB)),
    ),
    Spec(
        "WD Blue / Red / Green SSDs",
        "WDC WDS500G2B0A",
        "401000WD",
        (
            *_pair("Host_Writes_GiB", "Host_Reads_GiB", GIB),
            (233, "NAND_GB_Written_TLC", "T", GIB),
            (234, "NAND_GB_Written_SLC", "S", GIB),
        ),
    ),
    Spec(
        "WD Blue and Green SSDs",
        "WDC WDS500G1B0A",
        "Z2333000",
        _pair("Total_Host_GB_Written", "Total_Host_GB_Read", GIB),
    ),
    Spec(
        "",
        "WDC  WDS500G1R0A-68A4W0",
        "411000WR",
        (
            (230, "Unknown", "", 0),
            (232, "Unknown", "", 0),
            (233, "Unknown", "T", GIB),
            (234, "Unknown", "S", GIB),
            *_pair("Total_LBAs_Written", "Total_LBAs_Read", GIB),
        ),
    ),
    Spec("SanDisk based SSDs", "SanDisk SDSSDP128G", "3.2.0", ((241, "Total_LBAs_Written", "-", 0),)),
    Spec(
        "Sandisk SATA Cloudspeed Max and GEN2 ESS SSDs",
        "SDLFNDAR-480G",
        "ZZ37",
        ((233, "Lifetime_Nand_Writes", "-", 0),),
    ),
    Spec(
        "Seagate Nytro XF1230 SATA SSD",
        "XF1230-1A0480",
        "ST200354",
        (*_pair("Total_Writes_GiB", "Total_Reads_GiB", GIB), (234, "Lifetime_Nand_Gb", "N", GB)),
    ),
    Spec(
        "Seagate IronWolf Pro 125 SSDs",
        "ZA480NX10001",
        "SU3SC011",
        (*_pair("Host_Writes_GiB", "Host_Reads_GiB", GIB), (233, "Flash_Writes_GiB", "N", GIB)),
    ),
    Spec("Seagate IronWolf Pro 125 SSDs", "ZA480NX10001", "SU3SC011", ((235, "Flash_Writes_Sectors", "N", B512),)),
    Spec(
        "Seagate BarraCuda SSD",
        "STGS480401",
        "HPS2-03",
        (
            (241, "Lifetime_Wts_Frm_Hst_GB", "W", GB),
            (242, "Lifetime_Rds_Frm_Hst_GB", "R", GB),
            (233, "Lifetime_Wts_To_Flsh_GB", "N", GB),
        ),
    ),
    Spec(
        "Indilinx Barefoot 3 based SSDs",
        "OCZ-VECTOR150",
        "1.2",
        ((199, "Host_Writes_GiB", "W", B512), (249, "Total_NAND_Prog_Ct_GiB", "N", PAGE)),
    ),
    Spec("Indilinx Barefoot based SSDs", "OCZ-VERTEX", "1.7", ((199, "Write_Sectors_Tot_Ct", "W", B512),)),
    Spec("OCZ/Toshiba Trion SSDs", "OCZ-TRION100", "SAFM11.2", ((241, "Host_Writes", "-", 0),)),
    Spec(
        "Swissbit X-7x Family SATA SSD",
        "SFSA480GM1AA4TO",
        "SBR15004",
        _pair("Total_LBAs_Written", "Total_LBAs_Read", B512),
    ),
    Spec(
        "Swissbit X-8x Family SATA SSD",
        "SFSA480GS3AA4TO",
        "SBR15004",
        _pair("Total_Host_LBA_Written", "Total_Host_LBA_Read", B512),
    ),
    Spec(
        "SMART Modular Technologies mSATA XL+ SLC SSDs",
        "SH9MST6D16GJSI01",
        "1",
        (*_pair("Host_Writes_LBAs", "Host_Reads_LBAs", B512), (235, "Flash_Writes_LBAs", "N", B512)),
    ),
    Spec(
        "SMART Modular Technologies mSATA XL+ SLC SSDs",
        "SH9MST6D16GJSI01",
        "2",
        (*_pair("Total_LBAs_Written_Low", "Total_LBAs_Read_Low", B512), (235, "Flash_Writes_LBAs_Low", "N", B512)),
    ),
    Spec("Swissbit X-7x Family SATA SSD", "SFSA480GM1AA4TO", "SBR15005", ((235, "Flash_LBAs_Written", "N", B512),)),
    Spec(
        "ATP SATA III Superior Line SSDs",
        "ATP I-Temp",
        "T0205B",
        (
            (235, "Sectors_Written_to_SSD", "W", B512),
            (242, "Sectors_Read_from_SSD", "R", B512),
            (241, "Sectors_Written_to_NAND", "N", B512),
        ),
    ),
    Spec(
        "ATP SATA III aMLC M.2 2242/80 Embedded SSDs",
        "ATP SATA III",
        "R0822A",
        ((235, "Device_Sectors_Written", "W", B512), (241, "Nand_Sectors_Written", "N", B512)),
    ),
    Spec(
        "Apacer AS340/350 SSDs", "Apacer AS350 512GB", "AP613PE0", _pair("Total_LBAs_Written", "Total_LBAs_Read", B512)
    ),
    Spec("Apacer AS340/350 SSDs", "Apacer AS340 480GB", "V4.25.0", ((241, "Total_LBAs_Written", "-", 0),)),
    Spec(
        "SSSTC ER2 GD/CD Series SSDs",
        "SSSTC ER2-GD480",
        "E4N51A",
        (*_pair("Total_LBAs_Written", "Total_LBAs_Read", GB), (243, "NAND_Writes_GiB", "N", GIB)),
    ),
    Spec(
        "SSSTC ERX GD/CD Series SSDs",
        "SSSTC ER2-GD480",
        "E4N51A",
        (*_pair("Total_LBAs_Written", "Total_LBAs_Read", GB), (243, "Total_NAND_Written", "N", GIB)),
    ),
    Spec("SSSTC ERX GD/CD Series SSDs", "SSSTC ER4-CD480A", "E4N51A", ((243, "Total_NAND_Written", "-", 0),)),
    Spec(
        "Silicon Motion based SSDs",
        "ADATA SU800",
        "P0801A",
        (*IN_32, (245, "TLC_Writes_32MiB", "T", MIB32), (246, "SLC_Writes_32MiB", "S", MIB32)),
    ),
    Spec(
        "Innodisk 3IE2/3ME2/3MG2/3SE2/3TG6 SSDs",
        "2.5in SATA SSD 3MG2-P",
        "M140402",
        (*IN_32, (245, "Flash_Writes_32MiB", "N", MIB32)),
    ),
    Spec("Maxio based SSDs (variant 1)", "CUSO C5S-EVO", "1", (*IN_32, (233, "NAND_Write_Sector_Cnt", "N", B512))),
    Spec(
        "Plextor M3/M5/M6/M7/S2G Series SSDs",
        "PLEXTOR PX-512M6Pro",
        "1.02",
        ((241, "Host_Writes_32MiB", "W", MIB32), (242, "Host_Reades_GiB", "R", GIB)),
    ),
    Spec("JMicron/Maxiotek based SSDs", "ADATA SP600", "1", _pair("Host_Writes_MiB", "Host_Reads_MiB", MIB)),
    Spec(
        "Kingston SSDNow UV400/500",
        "KINGSTON SUV400S37480G",
        "0C3J96R9",
        _pair("Host_Writes_GiB", "Host_Reads_GiB", GIB),
    ),
    Spec("", "ACME NOTHING 480GB", "1", ((241, "Total_LBAs_Written", "-", 0), (242, "Total_LBAs_Read", "-", 0))),
    Spec("", "ACME NOTHING 480GB", "1", ((246, "Total_LBAs_Written", "-", 0),)),
)
# state of the drive: (what smartctl has of it, what the verdict must be, kinds of its reasons)
STATES: dict[str, tuple[dict, str, set[str]]] = {
    "good": ({}, "ok", set()),
    "fails now": ({"when_failed": "now", "exit": 16}, "failing", {"attribute_now"}),
    "failed in the past": ({"when_failed": "past", "exit": 32}, "warning", {"attribute_past"}),
    "self-test": ({"self_test": True, "exit": 128}, "warning", {"self_test"}),
    "errors": ({"errors": 57, "exit": 64}, "warning", {"error_log"}),
    "failing": ({"passed": False, "exit": 8}, "failing", {"smart_status"}),
}
FIGURE_OF = {
    "W": "host_written_bytes",
    "R": "host_read_bytes",
    "N": "nand_written_bytes",
    "T": "nand_written_tlc_bytes",
}


class Case(NamedTuple):
    """A document with what must be found in it: figures (None: must not be known), verdict, kinds of its reasons."""

    document: dict
    figures: dict[str, Any]
    health: str
    kinds: set[str]


def case_of(spec: Spec, version: tuple[int, int] = (7, 4), state: str = "good", statistics: bool = False) -> Case:
    """One document of a drive. statistics: with device statistics of what the host wrote and read, so that figures and
    units must be right whatever the attribute is called."""
    marks, health, kinds = STATES[state]
    figures: dict[str, Any] = {"power_on_hours": HOURS}
    table = [_row(9, "Power_On_Hours", HOURS), _row(12, "Power_Cycle_Count", 77)]
    for key, name, what, unit in spec.rows:
        raw, normalised = 0, 100
        if what in BYTES:
            raw = BYTES[what] // unit
            figures[FIGURE_OF.get(what, "")] = raw * unit
        elif what == "-":
            raw = 1234
            figures |= dict.fromkeys(("host_written_bytes", "host_read_bytes", "nand_written_bytes"))
        if what.startswith("cycles"):
            raw, figures["pe_cycles_mean"] = CYCLES, CYCLES
        if what in ("used", "cycles and used", "left", "life left"):
            normalised, figures["percentage_used"] = 100 - USED, USED
            raw = {"used": USED, "life left": 100 - USED}.get(what, raw)
        table.append(_row(key, name, raw, normalised))
    slc = next((unit for _, _, what, unit in spec.rows if what == "S"), None)
    if slc:
        figures["nand_written_bytes"] = figures["nand_written_tlc_bytes"] + BYTES["S"] // slc * slc
    figures.pop("", None)
    table.append(_row(5, "Reallocated_Sector_Ct", 3) | {"when_failed": marks.get("when_failed", "")})
    smartctl: dict[str, Any] = {
        "smartctl": {"version": list(version), "exit_status": marks.get("exit", 0)},
        "device": {"type": "sat", "protocol": "ATA"},
        "model_name": spec.model,
        "serial_number": "FICT1",
        "firmware_version": spec.firmware,
        "user_capacity": {"bytes": CAPACITY},
        "logical_block_size": 512,
        "rotation_rate": 0,
        "in_smartctl_database": bool(spec.family),
        "smart_status": {"passed": marks.get("passed", True)},
        "power_on_time": {"hours": HOURS},
        "ata_smart_attributes": {"table": table},
    }
    if spec.family:
        smartctl["model_family"] = spec.family
    if marks.get("errors"):
        smartctl["ata_smart_error_log"] = {"extended": {"count": marks["errors"]}}
    if marks.get("self_test"):
        row = {"status": {"value": 112, "string": "Completed: read failure", "passed": False}}
        smartctl["ata_smart_self_test_log"] = {"standard": {"table": [row], "count": 1}}
    if statistics:
        entries = [(0x18, BYTES["W"]), (0x28, BYTES["R"])]
        rows = [{"offset": at, "value": count // 512, "flags": {"valid": True}} for at, count in entries]
        smartctl["ata_device_statistics"] = {"pages": [{"number": 1, "table": rows}]}
        figures |= {"host_written_bytes": BYTES["W"], "host_read_bytes": BYTES["R"]}
    if version >= (7, 5) and "percentage_used" in figures:
        smartctl["endurance_used"] = {"current_percent": USED}
    if version >= (8, 0) and figures.get("host_written_bytes"):
        smartctl["host_writes"] = {"units": figures["host_written_bytes"] // 512, "bytes_per_unit": 512}
    return Case({"smartctl": smartctl}, figures, health, kinds)


def _row(key: int, name: str, raw: int, normalised: int = 100) -> dict:
    shown = {"value": normalised, "worst": normalised, "thresh": 1, "when_failed": ""}
    return {"id": key, "name": name, "raw": {"value": raw, "string": str(raw)}} | shown


def cases() -> Iterator[Case]:
    """Each drive x version of smartctl x state, and with device statistics."""
    for spec, version, state in itertools.product(SPECS, VERSIONS, STATES):
        yield case_of(spec, version, state)
    for spec in SPECS:
        if any(what in ("W", "R") for _, _, what, _ in spec.rows):
            yield case_of(spec, statistics=True)


def faults(case: Case) -> list[str]:
    """Which figures and which of the verdict's parts are not what they must be."""
    got = counters.snapshot(case.document)
    out = []
    for name, value in case.figures.items():
        # statistics count sectors and are what an attribute of a coarser unit rounds
        near = abs((got[name] or 0) - (value or 0)) <= 1024
        if (got[name] is None) != (value is None) or not near:
            out.append(f"{name}: {got[name]} instead of {value}")
    kinds = {reason["kind"] for reason in got["health_reasons"]}
    if (got["health"], kinds) != (case.health, case.kinds):
        out.append(f"health {got['health']} by {sorted(kinds)} instead of {case.health} by {sorted(case.kinds)}")
    return out


def mutants() -> Iterator[tuple[str, list[dict]]]:
    """(what was changed, [[drives]]) for the shipped table with one unit of one byte counter changed."""
    tables = tomllib.loads(ata_table.SHIPPED.read_text("utf-8"))["drives"]
    for index, table in enumerate(tables):
        for number, (key, name, role, how) in enumerate(table["rows"]):
            if role not in ata_table.BYTE_ROLES:
                continue
            for other in _other_units(how):
                changed = copy.deepcopy(tables)
                changed[index]["rows"][number] = [key, name, role, other]
                where = table.get("family") or table.get("model") or "all"
                yield f"{where}: {key} {name} {role} {how} -> {other}", changed


def _other_units(how) -> list:
    if how == "?":
        return [GIB]
    if isinstance(how, list):
        return [how[:1], how[1:]]
    return [unit for unit in (B512, MIB32, GB, GIB) if unit != how][:2] + [how * 2]


def survivors() -> tuple[int, list[str]]:
    """(mutants made, those that the corpus does not notice)."""
    documents = [case_of(spec) for spec in SPECS]
    made, alive = 0, []
    for what, tables in mutants():
        made += 1
        entries = tuple(ata_table.Entry(table, Path("mutant")) for table in tables)
        with mock.patch.object(ata_table, "entries", lambda entries=entries: entries):
            ata_table.forget_rows()
            if not any(faults(case) for case in documents):
                alive.append(what)
    ata_table.forget_rows()
    return made, alive


def smart_corpus() -> list[Figure]:
    """Figures and verdicts of the corpus that are wrong; mutants of the table of units that it kills."""
    documents = wrong = 0
    for case in cases():
        documents += 1
        wrong += bool(faults(case))
    made, alive = survivors()
    killed = 100 * (1 - len(alive) / made)
    return [
        Figure("drives", len(SPECS), "", "stated", True),
        Figure("documents", documents, "", "stated", True),
        exactly("documents with a wrong figure or verdict", wrong, "", 0),
        Figure("mutants of the table of units", made, "", "stated", True),
        Figure("mutants killed", killed, "%", f">= {KILLED_PERCENT:g}", killed >= KILLED_PERCENT),
    ]


BENCHES = {
    "smart-corpus": (
        "SMART documents of all families, versions and states against figures computed apart; mutants (about 30 s)",
        smart_corpus,
    )
}
