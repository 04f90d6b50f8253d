"""For tests of ATA counters: a smartctl document with attributes and statistics, and its snapshot."""

from hypothesis import strategies as st

from ssdrig.drive.smart import counters

MIB, GIB = 1 << 20, 1 << 30


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
    # sectors where GB are more than a drive can write, whatever the name says
    ("SK hynix SATA SSDs", [(241, "Lifetime_Writes_GiB", 4 * 10**9)], 2048 * 10**9, 512, None, None),
    (
        "SK hynix SATA SSDs",
        [(241, "Total_Writes_GB", 4 * 10**9), (243, "Total_Media_Writes", 6)],
        2048 * 10**9,
        512,
        None,
        None,
    ),
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
