"""The readings of ATA attributes at their limits: each conversion, each rule between two sources, from both sides."""

import pytest

from ssdrig.drive.smart import ata_counters as ata
from ssdrig.drive.smart import ata_readings
from ssdrig.drive.smart.ata_readings import Found

MIB = 1 << 20


def value(how, raw=None, normalised=None, role="pe_mean", string=None) -> tuple:
    """(the value of an attribute, how many words were said)."""
    unknown: list[str] = []
    attribute = {"value": normalised, "raw": {"value": raw} | ({"string": string} if string is not None else {})}
    return ata_readings._value(attribute, role, how, "x", unknown), len(unknown)


@pytest.mark.parametrize(
    "how, raw, normalised, got, words",
    [
        ("normalised", None, 100, 100, 0),
        ("normalised", None, 101, None, 1),
        ("normalised", None, 255, None, 1),
        ("normalised", None, 256, None, 1),
        ("normalised", None, None, None, 0),
        ("normalised", 7, 0, 0, 0),
        ("100 - normalised", None, 97, 3, 0),
        ("100 - normalised", 5, 0, 100, 0),
        ("100 - normalised", -1, 0, 100, 0),  # raw is not looked at
        ("raw, 100 - normalised", None, 77, 23, 0),
        ("raw, 100 - normalised", 23, 77, 23, 0),
        ("raw, 100 - normalised", 24, 77, 23, 0),
        ("raw, 100 - normalised", 0, 100, 0, 0),
        ("raw, 100 - normalised", 255, 0, 255, 0),
        ("raw, 100 - normalised", 256, 0, 100, 0),
        ("raw, 100 - normalised", 101, 0, 101, 0),
        ("raw, 100 - normalised", 101, 1, 99, 0),
        ("100 - life left", 74, 100, 26, 0),
        ("100 - life left", 74, 74, 26, 0),
        ("100 - life left", 74, 75, 25, 0),
        ("100 - life left", 1, 100, 99, 0),
        ("100 - life left", 0, 100, 0, 0),
        ("100 - life left", 100, 100, 0, 0),
        ("100 - life left", 101, 100, 0, 0),
        ("100 - life left", None, 60, 40, 0),
        ("raw", None, None, None, 0),
        ("raw", 5, 200, 5, 0),
        ("raw", 2**32 - 2, None, 2**32 - 2, 0),
        ("raw", 2**32 - 1, None, None, 1),
        ("raw", 2**64 - 1, None, None, 1),
        ("raw", -1, None, None, 1),
        ("raw unless normalised", 95, 95, None, 1),
        ("raw unless normalised", 95, 96, 95, 0),
        ("raw unless a rate", 9, 100, 9, 0),
        ("raw unless a rate", 9, 101, None, 1),
        ("raw unless a rate", 9, None, 9, 0),
        ("raw / 1024", 1536, None, 1.5, 0),
        ("word 0", 0x1_0002_0003, None, 3, 0),
        ("word 1", 0x1_0002_0003, None, 2, 0),
        ("word 2", 0x1_0002_0003, None, 1, 0),
        ("word 1", 0xFFFF_FFFF_FFFF, None, 0xFFFF, 0),
        ("low 8 bits", 0x1FF, None, 0xFF, 0),
        ("low 24 bits", 0x3FFFFFF, None, 0xFFFFFF, 0),
        ("percent word 0", 0x2F24, None, 47.36, 0),
        ("percent word 0", 0x2F24_0007_2F24, None, 47.36, 0),
        ("percent word 0", 0x2F25_0000_2F24, None, None, 1),
        ("percent word 0", 0x0063, None, 0.99, 0),
        ("percent word 0", 0x0064, None, None, 1),
        ("percent word 0", 0xFF63, None, 255.99, 0),
        ("percent word 0", 0x7_0000_0000_2F24, None, 47.36, 0),
    ],
)
def test_conversions(how, raw, normalised, got, words):
    assert value(how, raw, normalised) == (pytest.approx(got) if got is not None else None, words)


def test_words_of_a_normalised_value_that_is_none():
    for normalised, why in ((101, "not a percentage"), (255, "not a percentage"), (256, "out of its range")):
        unknown: list[str] = []
        ata_readings._value({"value": normalised}, "pe_mean", "normalised", "x", unknown)
        assert unknown == [f"x, normalised: {normalised} is {why}"]


def test_raw_values_of_64_bits():
    assert value("low 8 bits", 2**64 - 1) == (255, 0) and value("low 8 bits", 2**64) == (None, 1)


@pytest.mark.parametrize(
    "raw, got",
    [(0xFFFE, 0xFFFE), (0xFFFF, None), (0x10000, 0x10000), (2**32 - 1, None), (2**48 - 1, None), (2**56 - 1, None)],
)
def test_workload_before_its_first_hour_says_nothing(raw, got):
    assert value("raw", raw, role="workload_timer_min") == (got, 0)


def test_an_hour_of_FFFFh_is_a_count_elsewhere():
    assert value("raw", 0xFFFF) == (0xFFFF, 0)


@pytest.mark.parametrize("role", ["host_pages", "ftl_pages"])
def test_pages_may_pass_32_bits(role):
    assert value("raw", 2**40, role=role) == (2**40, 0)


@pytest.mark.parametrize(
    "string, got", [("29 (0 18)", 29), ("29", 29), ("290", None), ("41h", None), ("2", None), (None, 29)]
)
def test_the_text_of_a_packed_value(string, got):
    assert value("low 8 bits", 29 + (18 << 32), string=string) == (got, int(got is None))


@pytest.mark.parametrize(
    "role, how, error",
    [
        ("percentage_used", "percent word 0", 0.01),
        ("workload_wear_percent", "raw / 1024", 1 / 1024),
        ("percentage_used", "raw", 1),
        ("available_spare_percent", "normalised", 1),
        ("pe_mean", "raw", 1),
        ("power_on_hours", "raw", 1),
        ("temperature_C", "low 8 bits", 1),
        ("workload_timer_min", "raw", 1),
        ("pe_max", "raw", 0),
        ("power_cycles", "raw", 0),
    ],
)
def test_error_of_a_reading(role, how, error):
    assert ata_readings._error(role, how) == error


# --- several readings


def finest(*readings) -> tuple:
    unknown: list[str] = []
    return ata._finest([Found(*r) for r in readings], "x", unknown), len(unknown)


def test_the_finest_reading():
    one, other = (1000, 10, "a", 0), (1000, 20, "b", 0)
    assert finest() == (None, 0)
    assert finest(one, other)[0] == finest(other, one)[0] == Found(*one)
    assert finest((1000, 10, "a", 2), (1000, 10, "b", 1))[0].source == "b"
    for last in (950_000 - 2, 950_000 - 3):  # 5 % and two units
        got, words = finest((1_000_000, 0, "a", 0), (last, 1, "b", 0))
        assert (got is None, words) == ((False, 0) if last == 950_000 - 2 else (True, 1))
    for last in (1_000_000 + 2, 1_000_000 + 3):
        got, words = finest((950_000, 0, "a", 0), (last, 1, "b", 0))
        assert (got is None) == (last - 2 - 950_000 > 0.05 * last) and words == int(got is None)
    assert finest((950_000, 0, "a", 0), (1_000_002, 1, "b", 0))[0] is not None
    assert finest((950_000, 0, "a", 0), (1_000_010, 1, "b", 0))[0] is None


TURN = 2**32 * 512


@pytest.mark.parametrize(
    "statistics, other, error, used",
    [
        (1000 * 512, TURN + 1000 * 512, 512, False),
        (1000 * 512, 3 * TURN + 1000 * 512, 512, False),
        (1000 * 512, 1000 * 512, 512, True),
        (0, TURN, 512, True),
        (0, 2 * TURN, 512, False),
        (TURN, 2 * TURN, 512, True),
        (TURN - 512, 2 * TURN - 512, 512, False),
        (0, 2 * TURN + 2 * 10**10, 10**10, False),
        (0, 2 * TURN + 2 * 10**10 + 10**4, 10**10, True),
        (10**11, 2 * TURN + 10**11 - 2 * 10**10, 10**10, False),
        (10**11, 2 * TURN + 10**11 - 2 * 10**10 - 10**4, 10**10, True),
        (0, 1000 * TURN + TURN // 2, 512, False),  # 0.1 % of many turns
        (0, 4 * TURN + 4 * TURN // 1000, 512, False),
        (0, 4 * TURN + 4 * TURN // 990, 512, True),
    ],
)
def test_statistics_that_wrapped(statistics, other, error, used):
    unknown: list[str] = []
    readings = [Found(other, error, "attribute 241"), Found(statistics, 512, ata_readings.STATISTICS_SOURCE)]
    left = ata._without_wrapped(readings, "x", unknown)
    assert (left, len(unknown)) == (readings, 0) if used else (left, len(unknown)) == (readings[:1], 1)
    assert ata._without_wrapped(readings[:1], "x", []) == readings[:1]


def cycles(**found) -> tuple[dict, list[str]]:
    out, unknown = {"sources": {}}, []
    ata._cycles(out, {role: [Found(*r) for r in readings] for role, readings in found.items()}, unknown)
    return out, unknown


def test_cycles():
    out, unknown = cycles(pe_mean=[(100_001, 1, "b", 0), (100_000, 1, "a", 1)])
    assert out["pe_cycles_mean"] == 100_000 and out["pe_cycles_source"] == "a" and len(unknown) == 1
    assert cycles(pe_mean=[(7, 1, "b", 2), (8, 1, "a", 1)])[0]["pe_cycles_mean"] == 8  # the lower rank goes first
    assert cycles(pe_mean=[(0, 1, "a", 0), (8, 1, "b", 1)])[0]["pe_cycles_mean"] == 8
    assert cycles(pe_mean=[(0, 1, "a", 0)])[0]["pe_cycles_mean"] == 0
    assert cycles(pe_max=[(106, 1, "a", 0), (100, 1, "b", 1)])[0]["pe_cycles_max"] == 106
    assert "pe_cycles_max" not in cycles(pe_max=[(107, 1, "a", 0), (100, 1, "b", 1)])[0]
    for second, good in ((105, True), (106, True), (107, False)):  # 1 and 5 % of the other: 106.3 at most
        out, unknown = cycles(pe_max=[(100, 1, "a", 0), (second, 1, "b", 1)], pe_min=[(3, 0, "c")])
        assert out.get("pe_cycles_max") == (100 if good else None) and len(unknown) == int(not good)
        assert out["pe_cycles_min"] == 3 and out["pe_cycles_source"] == ("a" if good else "c")
    out, _ = cycles(pe_rated=[(3000, 0, "r")])
    assert out["pe_cycles_rated"] == 3000 and "pe_cycles_source" not in out
    out, _ = cycles(pe_mean=[(100_001, 1, "a", 0)], pe_max=[(5, 1, "b", 0)])
    assert "pe_cycles_mean" not in out and out["pe_cycles_max"] == 5
    assert out["sources"] == {"pe_cycles_max": {"source": "b", "error": 1}}


def percent(smartctl=None, own=None, said=(), **found) -> tuple[dict, list[str]]:
    out, unknown = {"sources": {}}, list(said)
    readings = {role: [Found(*r) for r in given] for role, given in found.items()}
    ata._percent(
        out,
        readings,
        {"percentage_used": Found(own, 1, "device statistics")} if own is not None else {},
        smartctl or {},
        unknown,
    )
    assert "available_spare_threshold_percent" not in readings
    return out, unknown[len(said) :]


def test_percentage_of_several_sources():
    assert percent(percentage_used=[(20, 1, "a", 0)], own=25)[1] == []
    out, unknown = percent(percentage_used=[(20, 1, "a", 0)], own=26)
    assert out["percentage_used"] == 26 and len(unknown) == 1
    assert percent(percentage_used=[(20, 1, "a", 1), (25, 1, "b", 0)])[0]["percentage_used"] == 25
    out, unknown = percent(percentage_used=[(20, 1, "a", 0), (26, 1, "b", 1)])
    assert "percentage_used" not in out and len(unknown) == 1
    assert percent(percentage_used=[(26, 1, "a", 0), (20, 1, "b", 1)], own=24)[0]["percentage_used"] == 24


def guess(name: str, value) -> dict:
    return {name: {"current_percent": value}}


@pytest.mark.parametrize("value, got", [(0, None), (1, 1), (255, 255), (256, None)])
def test_smartctls_guess_of_the_percentage(value, got):
    out, unknown = percent(guess("endurance_used", value))
    assert out.get("percentage_used") == got and len(unknown) == int(value > 255)
    assert "percentage_used" not in percent(guess("endurance_used", value), said=["percentage used: odd"])[0]
    if got:
        assert out["sources"]["percentage_used"] == {"source": ata.GUESS, "error": 1}


@pytest.mark.parametrize("value, got, words", [(0, 0, 0), (99, 99, 0), (100, None, 0), (101, None, 1)])
def test_smartctls_guess_of_the_spare(value, got, words):
    for threshold in (0, 10, 100):
        out, unknown = percent({"spare_available": {"current_percent": value, "threshold_percent": threshold}})
        assert out.get("available_spare_percent") == got and len(unknown) == words
        assert out.get("available_spare_threshold_percent") == (None if got is None else threshold)
    if got is not None:
        assert out["sources"]["available_spare_percent"] == {"source": ata.GUESS, "error": 1}
        assert out["sources"]["available_spare_threshold_percent"] == {"source": ata.GUESS, "error": 0}
        out, unknown = percent({"spare_available": {"current_percent": value, "threshold_percent": 101}})
        assert "available_spare_threshold_percent" not in out and len(unknown) == 1
        assert "available_spare_threshold_percent" not in percent(guess("spare_available", value))[0]


@pytest.mark.parametrize(
    "thresholds, got",
    [({}, None), ({"b": 10}, 10), ({"a": 10}, None), ({"a": 10, "b": 20}, 20), ({"b": 20, "a": 10}, 20)],
)
def test_spare_of_an_attribute_goes_with_its_own_threshold(thresholds, got):
    spare = {"available_spare_percent": [(90, 1, "a", 1), (80, 1, "b", 0)]}
    rows = [(value, 0, source) for source, value in thresholds.items()]
    out, _ = percent(guess("spare_available", 50), available_spare_threshold_percent=rows, **spare)
    assert out["available_spare_percent"] == 80 and out.get("available_spare_threshold_percent") == got


def test_pages():
    out: dict = {"sources": {}}
    ata._pages(out, {"host_pages": [Found(9, 0, "x", 1), Found(5, 0, "a", 0)], "ftl_pages": [Found(7, 0, "b")]})
    assert (out["host_program_pages"], out["nand_program_pages"]) == (5, 12)
    assert out["sources"]["nand_program_pages"] == {"source": "a + b", "error": 0}
    for role in ("host_pages", "ftl_pages"):
        out = {"sources": {}}
        ata._pages(out, {role: [Found(5, 0, "a")]})
        assert out == {"sources": {}}


# --- device statistics


def statistic(page, offset, value, **flags):
    unknown: list[str] = []
    entry = {"offset": offset, "value": value, "flags": {"valid": True} | flags}
    got = ata_readings.of_statistics(
        {"ata_device_statistics": {"pages": [{"number": page, "table": [entry]}]}}, unknown
    )
    return {role: (found.value, found.error) for role, found in got.items()}, len(unknown)


@pytest.mark.parametrize(
    "page, offset, role, low, high, error",
    [
        (1, 0x08, "power_cycles", 0, 2**32 - 2, 0),
        (1, 0x10, "power_on_hours", 0, 2**32 - 2, 1),
        (1, 0x18, "host_written", 0, 2**48 - 2, 0),
        (1, 0x28, "host_read", 0, 2**48 - 2, 0),
        (3, 0x20, "reallocated", 0, 2**32 - 2, 0),
        (4, 0x08, "media_errors", 0, 2**32 - 2, 0),
        (5, 0x20, "temperature_max_C", -100, 300, 1),
        (7, 0x08, "percentage_used", 0, 255, 1),
    ],
)
def test_range_of_a_statistic(page, offset, role, low, high, error):
    for good in (low, high):
        assert statistic(page, offset, good) == ({role: (good, error)}, 0)
    for bad in (low - 1, high + 1, high + 2):
        assert statistic(page, offset, bad) == ({}, 1)
    normalised = statistic(page, offset, 5, normalized=True)
    assert normalised == (({role: (5, error)}, 0) if role == "percentage_used" else ({}, 1))
    assert statistic(page, offset, 5, valid=False) == statistic(page + 9, offset, 5) == ({}, 0)
    assert statistic(page, offset, None) == ({}, 0)


@pytest.mark.parametrize("value, why", [(2**48 - 1, "all ones, not a count"), (2**48, "out of its range")])
@pytest.mark.parametrize("offset, role", [(0x18, "host_written"), (0x28, "host_read")])
def test_sectors_are_counted_in_48_bits(offset, role, value, why):
    unknown: list[str] = []
    entry = {"offset": offset, "value": value, "flags": {"valid": True}}
    ata_readings.of_statistics({"ata_device_statistics": {"pages": [{"number": 1, "table": [entry]}]}}, unknown)
    assert unknown == [f"device statistics, {role}: {value} is {why}"]


@pytest.mark.parametrize("page, offset, words", [(255, 0, 0), (256, 0, 1), (1, 511, 0), (1, 512, 1)])
def test_pages_of_statistics_that_nobody_knows(page, offset, words):
    assert statistic(page, offset, 5) == ({}, words)


def test_the_first_of_two_statistics_counts():
    table = [{"offset": 8, "value": v, "flags": {"valid": True}} for v in (5, 6)]
    got = ata_readings.of_statistics({"ata_device_statistics": {"pages": [{"number": 1, "table": table}]}}, [])
    assert got["power_cycles"].value == 5


# --- the whole reduction


def reduced(table=(), family="Samsung based SSDs", units=None, **more) -> tuple[dict, list[str]]:
    unknown: list[str] = []
    rows = [
        {"id": a[0], "name": a[1], "value": a[3] if len(a) > 3 else 100, "thresh": 10, "raw": {"value": a[2]}}
        for a in table
    ]
    smartctl = {"model_family": family, "model_name": "X", "ata_smart_attributes": {"table": rows}} | more
    return ata.reduce({"units": units or {}}, smartctl, unknown), unknown


def statistics(*entries) -> dict:
    pages = [{"number": p, "table": [{"offset": o, "value": v, "flags": {"valid": True}}]} for p, o, v in entries]
    return {"ata_device_statistics": {"pages": pages}}


@pytest.mark.parametrize(
    "block, got", [(1, 1000), (1 << 20, 1000 << 20), (0, None), ((1 << 20) + 1, None), (None, None)]
)
def test_sector_size(block, got):
    out, unknown = reduced(logical_block_size=block, **statistics((1, 0x28, 1000), (1, 0x18, 1000)))
    assert out.get("host_read_bytes") == out.get("host_written_bytes") == got
    assert any("does not give the sector size" in words for words in unknown) == (got is None)
    assert out.get("host_written_wrap_bytes") == (None if got is None else 2**48 * block)
    assert out.get("host_written_unit_bytes") == (None if got is None else block)


@pytest.mark.parametrize(
    "raw, counted", [(2**56 - 2, True), (2**56 - 1, False), (2**56, False), (2**48 - 1, False), (2**32 - 1, False)]
)
def test_bytes_of_an_attribute_at_their_end(raw, counted):
    """A count of that size is more than any link carries, which is said in other words."""
    _, unknown = reduced([(242, "Total_LBAs_Read", raw)])
    assert any("more than SATA carries" in words for words in unknown) == counted
    assert any("all ones" in words or "out of its range" in words for words in unknown) == (not counted)


@pytest.mark.parametrize("unit, taken", [(1, True), (1 << 40, True), (0, False), ((1 << 40) + 1, False)])
def test_unit_of_a_calibration(unit, taken):
    out, unknown = reduced([(251, "NAND_Writes", 3)], units={"ata:251": unit})
    assert out.get("nand_written_bytes") == (3 * unit if taken else None)
    assert any(words.startswith("calibrated unit") for words in unknown) == (not taken)


@pytest.mark.parametrize(
    "key, field",
    [
        (225, "host_written_bytes"),
        (241, "host_written_bytes"),
        (246, "host_written_bytes"),
        (242, "host_read_bytes"),
        (233, "nand_written_bytes"),
        (243, "nand_written_bytes"),
        (249, "nand_written_bytes"),
        (251, "nand_written_bytes"),
    ],
)
def test_a_calibration_of_an_attribute_that_no_row_knows(key, field):
    out, _ = reduced([(key, "Odd", 3)], family=None, units={f"ata:{key}": 512})
    assert out[field] == 1536 and out["sources"][field]["source"] == f"attribute {key}, calibrated (512 B)"
    assert field not in reduced([(key, "Odd", 3)], family=None)[0]
    assert not any(
        name.endswith("_bytes") for name in reduced([(240, "Odd", 3)], family=None, units={"ata:240": 512})[0]
    )


@pytest.mark.parametrize("key, taken", [(255, True), (256, False), (-1, False)])
def test_ids(key, taken):
    _, unknown = reduced([(key, "Odd", 3)])
    assert any(words.startswith("attribute id") for words in unknown) == (not taken)


def test_which_hours_bound_the_bytes():
    """1 TB in one hour is more than SATA carries in a day of 54 TB; in 0 hours likewise: whose hours are used shows."""
    bytes_ = [(242, "Total_LBAs_Read", 60 * 10**12 // 512)]
    over = lambda *table, **more: any("more than SATA" in w for w in reduced([*bytes_, *table], **more)[1])
    assert not over() and over((9, "Power_On_Hours", 5)) and not over((9, "Power_On_Hours", 500))
    assert over(power_on_time={"hours": 5}) and not over((9, "Power_On_Hours", 5), power_on_time={"hours": 500})
    assert over(**statistics((1, 0x10, 5))) and over((9, "Power_On_Hours", 5), **statistics((1, 0x10, 500)))


def test_smartctls_own_summary():
    table = [(9, "Power_On_Hours", 5), (12, "Power_Cycle_Count", 6), (194, "Temperature_Celsius", 30)]
    names = ("power_on_hours", "power_cycles", "temperature_C")
    out, _ = reduced(table)
    assert [out[name] for name in names] == [5, 6, 30] and all(name in out["sources"] for name in names)
    for summary, name in (
        ({"temperature": {"current": -100}}, "temperature_C"),
        ({"power_on_time": {"hours": 3}}, "power_on_hours"),
        ({"power_cycle_count": 4}, "power_cycles"),
    ):
        out, _ = reduced(table, **summary)
        assert {n for n in names if n not in out} == {n for n in names if n not in out["sources"]} == {name}
    assert "temperature_C" in reduced(table, temperature={"current": -101})[0]


@pytest.mark.parametrize("value, got", [(-100, -100), (300, 300), (-101, None), (301, None)])
def test_highest_temperature(value, got):
    out, unknown = reduced(temperature={"lifetime_max": value})
    assert out.get("temperature_max_C") == got and any(w.startswith("highest temp") for w in unknown) == (got is None)
    if got:
        assert out["sources"]["temperature_max_C"] == {"source": "smartctl's temperature", "error": 1}
        assert reduced(temperature={"lifetime_max": value}, **statistics((5, 0x20, 61)))[0]["temperature_max_C"] == 61


def test_an_attribute_goes_before_the_statistic():
    out, _ = reduced([(12, "Power_Cycle_Count", 6)], **statistics((1, 0x08, 7), (4, 0x08, 3)))
    assert (out["power_cycles"], out["media_errors"]) == (6, 3)
    assert out["sources"]["media_errors"] == {"source": "device statistics", "error": 0}


def test_threshold_of_the_spare():
    """Intel's attribute 232; a threshold above 100 is none."""
    for threshold, got in ((100, 100), (101, None)):
        row = {"id": 232, "name": "Available_Reservd_Space", "value": 99, "thresh": threshold, "raw": {"value": 0}}
        smartctl = {"model_family": "Intel 320 Series SSDs", "ata_smart_attributes": {"table": [row]}}
        unknown: list[str] = []
        out = ata.reduce({}, smartctl, unknown)
        assert out["available_spare_percent"] == 99 and out.get("available_spare_threshold_percent") == got
        assert out["sources"]["available_spare_percent"]["error"] == 1


@pytest.mark.parametrize(
    "out, said, words",
    [
        ((None, None, None), [], ["percentage used", "NAND bytes written: no attribute"]),
        ((None, None, 5), [], ["percentage used", "NAND bytes written: the drive counts pages"]),
        ((3, 4, None), [], []),
        ((None, None, None), ["percentage used: x", "NAND bytes: y"], []),
    ],
)
def test_what_is_missing_is_said_once(out, said, words):
    unknown = list(said)
    names = ("percentage_used", "nand_written_bytes", "nand_program_pages")
    ata.say_what_is_missing(dict(zip(names, out)), {}, unknown)
    assert len(unknown) == len(said) + len(words)
    assert all(a.startswith(b) for a, b in zip(unknown[len(said) :], words))
