"""The whole reduction of an ATA document: each bound from both sides."""

import pytest

from ssdrig.drive.smart import ata_counters as ata


def statistics(*entries) -> dict:
    pages = [{"number": p, "table": [{"offset": o, "value": v, "flags": {"valid": True}}]} for p, o, v in entries]
    return {"ata_device_statistics": {"pages": pages}}


# --- the whole reduction


def reduced(table=(), family="Samsung based SSDs", units=None, **more) -> tuple[dict, list[str]]:
    unknown: list[str] = []
    rows = [
        {"id": a[0], "name": a[1], "value": a[3] if len(a) > 3 else 100, "thresh": 10, "raw": {"value": a[2]}}
        for a in table
    ]
    smartctl = {"model_family": family, "model_name": "X", "ata_smart_attributes": {"table": rows}} | more
    return ata.reduce({"units": units or {}}, smartctl, unknown), unknown


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
    "out, before, words",
    [
        ((None, None, None), [], ["percentage used", "NAND bytes written: no attribute"]),
        ((None, None, 5), [], ["percentage used", "NAND bytes written: the drive counts pages"]),
        ((3, 4, None), [], []),
        ((None, None, None), ["percentage used: x", "NAND bytes: y"], []),
    ],
)
def test_what_is_missing_is_said_once(out, before, words):
    unknown = list(before)
    names = ("percentage_used", "nand_written_bytes", "nand_program_pages")
    ata.say_what_is_missing(dict(zip(names, out)), {}, unknown)
    assert len(unknown) == len(before) + len(words)
    assert all(a.startswith(b) for a, b in zip(unknown[len(before) :], words))
