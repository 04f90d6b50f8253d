"""The reduction of NVMe log pages at its limits: the last value that counts, the first that does not."""

import pytest
from pages import items, page

from ssdrig.drive.smart import makers, nvme_counters, nvme_pages

U128 = 2**128 - 1
U64 = 2**64 - 1
GB = 10**9
MIB32 = 32 << 20
UNIT = 512_000


def smart(**more) -> dict:
    """smartctl's JSON of a health log."""
    return {"nvme_smart_health_information_log": {"percentage_used": 1, "x": 1} | more}


def reduced(smartctl=None, **pages) -> tuple[dict, list[str]]:
    unknown: list[str] = []
    document = {name: value.hex() if isinstance(value, bytes) else value for name, value in pages.items()}
    return nvme_counters.reduce(document, smartctl or {}, unknown), unknown


HEALTH = [
    ("data_units_written", "host_written_bytes", 0, U128 - 1, UNIT),
    ("data_units_read", "host_read_bytes", 0, U128 - 1, UNIT),
    ("critical_warning", "critical_warning", 0, 255, 1),
    ("percentage_used", "percentage_used", 0, 255, 1),
    ("available_spare", "available_spare_percent", 0, 100, 1),
    ("available_spare_threshold", "available_spare_threshold_percent", 0, 100, 1),
    ("power_on_hours", "power_on_hours", 0, U128 - 1, 1),
    ("power_cycles", "power_cycles", 0, U128 - 1, 1),
    ("unsafe_shutdowns", "unsafe_shutdowns", 0, U128 - 1, 1),
    ("media_errors", "media_errors", 0, U128 - 1, 1),
    ("num_err_log_entries", "error_log_entries", 0, U128 - 1, 1),
    ("warning_temp_time", "warning_temp_min", 0, U128 - 1, 1),
    ("critical_comp_time", "critical_temp_min", 0, U128 - 1, 1),
    ("temperature", "temperature_C", -100, 300, 1),
]


HEAD = "=== START OF SMART DATA SECTION ==="
LINES = [HEAD, "Thermal Temp. 1 Transition Count:   5", "Thermal Temp. 1 Total Time:         206"]
THROTTLING = ("throttle_1_count", "throttle_2_count", "throttle_1_s", "throttle_2_s")


@pytest.mark.parametrize(
    "text, counts",
    [
        ({"smartctl": {"output": LINES}}, (5, 0, 206, 0)),  # --json=o; what is 0 is not printed
        ({f"smartctl_{n:04}_u": line for n, line in enumerate(LINES)}, (5, 0, 206, 0)),  # --json=u
        ({"smartctl": {"output": [HEAD, 7, None, "Thermal Temp. 2 Total Time: x"]}}, (0, 0, 0, 0)),
        ({"smartctl": {"output": LINES[1:]}}, (None,) * 4),  # cut off: what is not there need not be 0
        ({"smartctl": {"output": "x"}, "smartctl_0001_i": HEAD}, (None,) * 4),
        ({"smartctl": 7}, (None,) * 4),
    ],
)
def test_throttling_is_in_smartctls_text_alone(text, counts):
    got, _ = reduced(smart() | text)
    assert tuple(got[name] for name in THROTTLING) == counts


def test_log_02h_goes_before_smartctls_text():
    got, _ = reduced(smart() | {"smartctl": {"output": LINES}}, log_02h=page({192: (4, 3), 216: (4, 9)}))
    assert got["throttle_1_count"] == 9 and got["throttle_1_s"] == 0


@pytest.mark.parametrize("name, field, low, high, unit", HEALTH)
def test_smartctl_health(name, field, low, high, unit):
    for value in (low, high):
        got, unknown = reduced(smart(**{name: value}))
        assert got[field] == value * unit and len(unknown) == 1, unknown  # NAND bytes alone
    for value in (low - 1, high + 1):
        got, unknown = reduced(smart(**{name: value}))
        assert got[field] is None and any(name in words or field in words for words in unknown)
    assert reduced(smart(**{"percentage_used": 1, name: None}))[0][field] is None


def test_zero_kelvin_is_no_temperature():
    got, unknown = reduced(smart(temperature=-273))
    assert got["temperature_C"] is None and len(unknown) == 1
    assert reduced(smart(temperature=-274))[0]["temperature_C"] is None
    assert "out of its range" in reduced(smart(temperature=-272))[1][0]
    for value, words in ((1000, "temperature:"), (1001, "smartctl's temperature:")):
        assert reduced(smart(temperature=value))[1][0].startswith(words)


@pytest.mark.parametrize("name", ["available_spare", "available_spare_threshold"])
def test_a_spare_above_100_is_no_percentage(name):
    for value, words in ((255, "not a percentage"), (256, "out of its range")):
        assert words in reduced(smart(**{name: value}))[1][0]


def test_all_ones_are_no_count():
    got, unknown = reduced(smart(power_cycles=U128))
    assert got["power_cycles"] is None and unknown[0] == "power_cycles: 'all ones' is not a count"


@pytest.mark.parametrize("warning, ok", [(0, True), (1, False), (128, False)])
def test_health_is_ok_without_a_warning(warning, ok):
    assert reduced(smart(critical_warning=warning))[0]["health_ok"] is ok
    assert "health_ok" not in reduced(smart())[0]


@pytest.mark.parametrize(
    "units, commands, bytes_", [(0, 0, 0), (0, 1, None), (1, 1, UNIT), (0, None, 0), (None, 1, None)]
)
@pytest.mark.parametrize(
    "names",
    [("data_units_written", "host_writes", "host_written_bytes"), ("data_units_read", "host_reads", "host_read_bytes")],
)
def test_no_data_units_beside_commands(names, units, commands, bytes_):
    got, unknown = reduced(smart(**{names[0]: units, names[1]: commands}))
    assert got[names[2]] == bytes_
    assert any(f"not a count: {commands} commands" in words for words in unknown) == (units == 0 and commands == 1)
    written = names[2] == "host_written_bytes" and bytes_ is not None
    assert ("host_written_unit_bytes" in got) == ("host_written_source" in got) == written


def test_health_that_is_nowhere():
    got, unknown = reduced()
    assert [words.split(":")[0] for words in unknown] == ["health", "NAND bytes written"]
    assert "smartctl's JSON" in unknown[1] and got["host_written_bytes"] is None
    got, unknown = reduced(log_09h="zz")
    assert "none of the log pages" in unknown[-1] and unknown[0].startswith("health: neither")
    for bad in ("zz", 5):
        assert reduced(smart(), log_09h=bad)[1][0].startswith("log 09h: ")
    # an unfilled log is said once
    zeros = {"nvme_smart_health_information_log": {"temperature": -273, "power_cycles": 0, "x": "0", "y": [1]}}
    assert nvme_counters.is_unfilled(zeros) and [w.split(":")[0] for w in reduced(zeros)[1]] == [
        "health",
        "NAND bytes written",
    ]


@pytest.mark.parametrize("log", [None, {}, [], {"power_cycles": 1}, {"temperature": -272}, {"x": "1"}])
def test_a_log_that_is_filled_or_absent(log):
    assert nvme_counters.is_unfilled({"nvme_smart_health_information_log": log}) is False


def c0h(**more) -> bytes:
    fields = {
        0: (16, more.get("nand", 7)),
        88: (4, 321),
        92: (4, 123),
        120: (1, more.get("free", 77)),
        494: (2, 3),
        496: (16, int.from_bytes(nvme_pages.C0_GUID, "little")),
    }
    return page(fields)


def host(units: int) -> dict:
    return smart(data_units_written=units)


def test_free_blocks():
    assert reduced(log_c0h=c0h(free=100))[0]["free_blocks_percent"] == 100
    got, unknown = reduced(log_c0h=c0h(free=101))
    assert got["free_blocks_percent"] is None and any(words.startswith("free blocks") for words in unknown)


@pytest.mark.parametrize("units, is_used", [(GB // UNIT, True), (GB // UNIT + 1, False), (1, True)])
def test_nand_bytes_of_0(units, is_used):
    """Up to 1 GB of the host 0 may be true: the last whole data unit below it stays."""
    got, unknown = reduced(host(units), log_c0h=c0h(nand=0))
    assert got.get("nand_written_bytes") == (0 if is_used else None)
    assert any("the drive does not count" in words for words in unknown) == (not is_used)
    assert got["pe_cycles_max"] == 321
    assert ("nand_written_source" in got) == is_used


def test_nand_bytes_of_0_without_a_host_counter():
    got, unknown = reduced(log_c0h=c0h(nand=0))
    assert got["nand_written_bytes"] == 0 and not any("does not count" in words for words in unknown)


@pytest.mark.parametrize("value", [U64, U128])
def test_nand_bytes_at_their_end(value):
    assert "nand_written_bytes" not in reduced(log_c0h=c0h(nand=value))[0]
    assert reduced(log_c0h=c0h(nand=value - 1))[0]["nand_written_bytes"] == value - 1
    if value == U64:
        assert reduced(log_c0h=c0h(nand=value + 1))[0]["nand_written_bytes"] == value + 1


@pytest.mark.parametrize(
    "host_bytes, nand, taken",
    [
        (0, 0, False),
        (U128, U128, False),
        (0, U128, False),
        (U128, 0, False),
        (0, 5, True),
        (5, 0, True),
        (U128, 5, True),
        (4, 5, True),
    ],
)
def test_page_22h(host_bytes, nand, taken):
    got, _ = reduced(log_22h=page({0: (16, host_bytes), 16: (16, nand)}, 64))
    assert ("nand_written_bytes" in got) == taken
    if taken:
        assert (got["nand_written_bytes"], got["nand_written_unit_bytes"]) == (nand, 1)
        known = None if host_bytes == U128 else host_bytes
        names = ("host_written_bytes", "fdp_host_written_bytes")
        assert [got.get(name) for name in names] == [known, known]
        assert got.get("host_written_unit_bytes") == (None if known is None else 1)


def test_page_09h_fills_what_is_missing():
    got, _ = reduced(log_09h=page({5: (1, 7), 48: (16, 30), 64: (16, 50), 80: (16, 120)}))
    assert {name: got[name] for name in got if got[name] is not None} == {
        "nand_written_bytes": 120 * GB,
        "nand_written_unit_bytes": GB,
        "nand_written_source": "log 09h",
        "percentage_used": 7,
        "host_written_bytes": 50 * GB,
        "host_written_unit_bytes": GB,
        "host_written_source": "log 09h",
        "host_read_bytes": 30 * GB,
    }
    got, _ = reduced(host(4) | {}, log_09h=page({5: (1, 7), 48: (16, 30), 64: (16, 50), 80: (16, 120)}))
    assert (got["host_written_bytes"], got["host_written_source"], got["percentage_used"]) == (4 * UNIT, "log 02h", 1)


# --- the makers' own pages


@pytest.mark.parametrize(
    "nand, own, host_bytes, made_by, unit, why",
    [
        (None, 10 * GB, 10 * GB, "intel", 1, None),
        (None, 10_500_000_002, 10 * GB, "intel", 1, None),  # 5 % and two units
        (None, 10_500_000_003, 10 * GB, "intel", 1, "another layout"),
        (None, 9_499_999_998, 10 * GB, "intel", 1, None),
        (None, 9_499_999_997, 10 * GB, "intel", 1, "another layout"),
        (None, 10_500_000_008, 10 * GB, "intel", 4, None),
        (None, 10_500_000_009, 10 * GB, "intel", 4, "another layout"),
        (None, 10 * GB - 1, 1, "intel", 1, None),  # too little to tell
        (None, 10 * GB, 1, "intel", 1, "another layout"),
        (None, 1, 10 * GB, "intel", 1, "another layout"),
        (5, None, 10 * GB, "items", 1, "could not be checked"),
        (5, 5, None, "items", 1, "could not be checked"),
        (None, None, 10 * GB, "items", 1, None),
        (5, None, None, "intel", 1, None),
        (5, 10 * GB - 1, 10 * GB - 1, "items", 1, "too little was written"),
        (10 * GB, 10 * GB, 10 * GB, "items", 1, None),
        (10 * GB, 10 * GB, 10 * GB - 1, "items", 1, None),
        (None, 5, 5, "items", 1, None),
        (10 * GB, 10 * GB - 1, 10 * GB - 1, "intel", 1, None),
        (1000 * GB, None, 10 * GB, "wdc", 1, "on the NAND"),
        (1000 * GB - 1, None, 10 * GB, "wdc", 1, None),
        (GB // 10, None, 10 * GB, "wdc", 1, "on the NAND"),
        (GB // 10 + 1, None, 10 * GB, "wdc", 1, None),
        (1, None, 10 * GB - 1, "wdc", 1, None),
        (0, None, 10 * GB, "wdc", 1, None),
        (5, None, 0, "wdc", 1, None),
        (None, None, 10 * GB, "wdc", 1, None),
    ],
)
def test_contradiction(nand, own, host_bytes, made_by, unit, why):
    maker = next(made for made in makers.MAKERS if made.name == made_by)._replace(unit_bytes=unit)
    contradiction = nvme_counters._contradiction(nand, own, host_bytes, maker)
    assert contradiction is None if why is None else why in contradiction


CAH = items({0xAD: (98, bytes([10, 0, 44, 0, 27, 0])), 0xF4: (100, 90_000), 0xF5: (100, 60_000)})


def vendor(number) -> dict:
    return {"nvme_pci_vendor": {"id": number}}


def test_items_without_log_02h():
    got, _ = reduced(vendor(0x8086), log_cah=CAH)
    assert {name: got[name] for name in got if "written" in name} == {
        "nand_written_bytes": 90_000 * MIB32,
        "nand_written_unit_bytes": MIB32,
        "nand_written_source": "log CAh",
        "nand_written_wrap_bytes": 2**48 * MIB32,
        "host_written_bytes": 60_000 * MIB32,
        "host_written_unit_bytes": MIB32,
        "host_written_source": "log CAh",
        "host_written_wrap_bytes": 2**48 * MIB32,
    }
    assert [got[f"pe_cycles_{end}"] for end in ("min", "mean", "max", "source")] == [10, 27, 44, "log CAh"]


def test_the_host_counter_of_log_02h_goes_first():
    units = 60_000 * MIB32 // UNIT
    got, _ = reduced(host(units) | vendor(0x8086), log_cah=CAH)
    assert got["host_written_source"] == "log 02h" and "host_written_wrap_bytes" not in got
    assert got["nand_written_source"] == "log CAh"


def test_the_first_of_two_pages_of_a_maker():
    """CAh has the NAND bytes of a WDC drive, D0h its counts; plain bytes do not wrap."""
    got, unknown = reduced(
        vendor(0x15B7), log_cah=page({0: (16, 4 * 10**12)}), log_d0h=page({0x14: (4, 210), 0x40: (4, 9)})
    )
    assert (got["nand_written_bytes"], got["nand_written_unit_bytes"]) == (4 * 10**12, 1)
    assert "nand_written_wrap_bytes" not in got and got["read_disturbs"] == 9
    assert not any("layout is not known" in words for words in unknown)


def test_a_maker_that_is_not_known():
    for smartctl, document, known in (
        (vendor(0x144D), {}, False),
        ({}, {}, False),
        (vendor(0x8086), {}, True),
        ({}, {"drive": {"pci_vendor_id": "8086"}}, True),
        (vendor(0x144D), {"drive": {"pci_vendor_id": "8086"}}, False),  # smartctl's word goes first
        ({}, {"drive": {"pci_vendor_id": "x"}}, False),
        (vendor(0x10000), {}, False),
    ):
        got, unknown = reduced(smartctl, log_cah=CAH, **document)
        assert ("nand_written_bytes" in got) == known
        assert any("a maker whose layout is not known" in words for words in unknown) == (not known)
        refused = document.get("drive") == {"pci_vendor_id": "x"} or smartctl == vendor(0x10000)
        assert any(words.startswith("PCI vendor id") for words in unknown) == refused
    assert vendor(0xFFFF) and not any(w.startswith("PCI") for w in reduced(vendor(0xFFFF), log_cah=CAH)[1])
    assert not any("layout" in words for words in reduced(vendor(0x8086))[1])


def test_items_that_the_drive_does_not_implement_leave_the_others():
    """F4h and F5h are there and 0, or one is missing: the erase counts hold all the same."""
    wear = {0xAD: (98, bytes([1, 0, 9, 0, 3, 0])), 0xE4: (100, 661_523), 0xAB: (100, 2), 0xAC: (100, 1)}
    for counters_of_bytes in ({0xF4: (100, 0), 0xF5: (100, 0)}, {}, {0xF4: (100, 0)}):
        smartctl = smart(data_units_written=10**8) | {"nvme_pci_vendor": {"id": 0x8086}}
        got, _ = reduced(smartctl, log_cah=items(wear | counters_of_bytes))
        assert (got["pe_cycles_mean"], got["workload_timer_min"], got["erase_fails"]) == (3, 661_523, 1)
        assert got.get("nand_written_bytes") is None and got["host_written_bytes"] == 10**8 * UNIT
