"""ATA readings and what is taken of several: each bound from both sides."""

import pytest

from ssdrig.drive.smart import ata_counters as ata
from ssdrig.drive.smart import ata_readings
from ssdrig.drive.smart.ata_readings import Reading


def value(how, raw=None, normalised=None, role="pe_mean", string=None) -> tuple:
    """(the value of an attribute, how many words were said)."""
    unknown: list[str] = []
    attribute = {"value": normalised, "raw": {"value": raw} | ({"string": string} if string is not None else {})}
    return ata_readings._value(attribute, role, how, "x", unknown), len(unknown)


MIB = 1 << 20


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
    "string, got", [("2/5", 5), ("2/50", None), ("0/5", None), ("8589934597", None), ("5", None), (None, 5)]
)
def test_a_count_behind_a_percentage(string, got):
    """Intel's EAh: 2 % throttled now, 5 events so far."""
    assert value("count behind percent", 5 + (2 << 32), string=string) == (got, int(got is None))


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
    return ata._finest([Reading(*r) for r in readings], "x", unknown), len(unknown)


def test_the_finest_reading():
    one, other = (1000, 10, "a", 0), (1000, 20, "b", 0)
    assert finest() == (None, 0)
    assert finest(one, other)[0] == finest(other, one)[0] == Reading(*one)
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
        (0, TURN, 512, False),  # 0 beside an attribute that counts: not filled
        (0, 2 * TURN, 512, False),
        (TURN, 2 * TURN, 512, True),
        (TURN - 512, 2 * TURN - 512, 512, False),
        (0, 2 * TURN + 2 * 10**10, 10**10, False),
        (0, 2 * TURN + 2 * 10**10 + 10**4, 10**10, False),
        (10**11, 2 * TURN + 10**11 - 2 * 10**10, 10**10, False),
        (10**11, 2 * TURN + 10**11 - 2 * 10**10 - 10**4, 10**10, True),
        (0, 1000 * TURN + TURN // 2, 512, False),  # 0.1 % of many turns
        (0, 4 * TURN + 4 * TURN // 1000, 512, False),
        (0, 4 * TURN + 4 * TURN // 990, 512, False),
    ],
)
def test_statistics_that_wrapped(statistics, other, error, used):
    unknown: list[str] = []
    readings = [Reading(other, error, "attribute 241"), Reading(statistics, 512, ata_readings.STATISTICS_SOURCE)]
    left = ata._without_wrapped(readings, "x", unknown)
    assert (left, len(unknown)) == (readings, 0) if used else (left, len(unknown)) == (readings[:1], 1)
    assert ata._without_wrapped(readings[:1], "x", []) == readings[:1]


def cycles(**given) -> tuple[dict, list[str]]:
    out, unknown = {"sources": {}}, []
    ata._cycles(out, {role: [Reading(*r) for r in readings] for role, readings in given.items()}, unknown)
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


def percent(smartctl=None, own=None, before=(), **reported) -> tuple[dict, list[str]]:
    out, unknown = {"sources": {}}, list(before)
    readings = {role: [Reading(*r) for r in given] for role, given in reported.items()}
    ata._percent(
        out,
        readings,
        {"percentage_used": Reading(own, 1, "device statistics")} if own is not None else {},
        smartctl or {},
        unknown,
    )
    assert "available_spare_threshold_percent" not in readings
    return out, unknown[len(before) :]


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
    assert "percentage_used" not in percent(guess("endurance_used", value), before=["percentage used: odd"])[0]
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
    ata._pages(out, {"host_pages": [Reading(9, 0, "x", 1), Reading(5, 0, "a", 0)], "ftl_pages": [Reading(7, 0, "b")]})
    assert (out["host_program_pages"], out["nand_program_pages"]) == (5, 12)
    assert out["sources"]["nand_program_pages"] == {"source": "a + b", "error": 0}
    for role in ("host_pages", "ftl_pages"):
        out = {"sources": {}}
        ata._pages(out, {role: [Reading(5, 0, "a")]})
        assert out == {"sources": {}}


# --- device statistics


def statistic(page, offset, value, **flags):
    unknown: list[str] = []
    entry = {"offset": offset, "value": value, "flags": {"valid": True} | flags}
    got = ata_readings.of_statistics(
        {"ata_device_statistics": {"pages": [{"number": page, "table": [entry]}]}}, unknown, {}
    )
    return {role: (reading.value, reading.error) for role, reading in got.items()}, len(unknown)


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
    ata_readings.of_statistics({"ata_device_statistics": {"pages": [{"number": 1, "table": [entry]}]}}, unknown, {})
    assert unknown == [f"device statistics, {role}: {value} is {why}"]


@pytest.mark.parametrize("page, offset, words", [(255, 0, 0), (256, 0, 1), (1, 511, 0), (1, 512, 1)])
def test_pages_of_statistics_that_nobody_knows(page, offset, words):
    assert statistic(page, offset, 5) == ({}, words)


def test_the_first_of_two_statistics_counts():
    table = [{"offset": 8, "value": v, "flags": {"valid": True}} for v in (5, 6)]
    got = ata_readings.of_statistics({"ata_device_statistics": {"pages": [{"number": 1, "table": table}]}}, [], {})
    assert got["power_cycles"].value == 5
