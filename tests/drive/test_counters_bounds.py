"""The bounds of plausible.py from both sides: the exact value stays, the next one goes."""

import pytest

from ssdrig.drive.smart import counters, plausible

TB = 10**12
HOURS_MOST = 40 * 8766


def checked(compresses=False, sources=None, **values) -> tuple[dict, list[str]]:
    """(snapshot after the check, words); a figure that is not given is unknown."""
    out = dict.fromkeys(counters.KEYS) | values
    out["sources"] = {name: {"source": source, "error": 0} for name, source in (sources or {}).items()}
    unknown: list[str] = []
    plausible.check(out, unknown, compresses)
    return out, unknown


def dropped(compresses=False, sources=None, **values) -> set[str]:
    """Names of the given figures that the check drops; each word of a refusal belongs to one of them."""
    out, unknown = checked(compresses, sources, **values)
    gone = {name for name in values if values[name] is not None and out[name] is None and not name.endswith("_source")}
    assert bool(gone) == bool(unknown)
    return gone


@pytest.mark.parametrize(
    "name, low, high",
    [
        ("power_on_hours", 0, 350_640),
        ("percentage_used", 0, 255),
        ("available_spare_percent", 0, 100),
        ("available_spare_threshold_percent", 0, 100),
        ("free_blocks_percent", 0, 100),
        ("pe_cycles_mean", 0, 100_000),
        ("pe_cycles_min", 0, 100_000),
        ("pe_cycles_max", 0, 100_000),
        ("pe_cycles_rated", 50, 200_000),
        ("workload_wear_percent", 0, 1000),
        ("workload_reads_percent", 0, 100),
        ("temperature_C", -60, 150),
        ("temperature_max_C", -60, 200),
        ("power_cycles", 0, 10_500_000),
        ("unsafe_shutdowns", 0, 10_500_000),
        ("lifetime_energy_Wh", 0, 35_064_000),
        ("media_errors", 0, 2**64 - 2),
        ("error_log_entries", 0, 2**64 - 2),
        ("reallocated", 0, 2**64 - 2),
        ("bad_user_blocks", 0, 2**64 - 2),
    ],
)
def test_bounds(name, low, high):
    assert dropped(**{name: low}) == dropped(**{name: high}) == set()
    assert dropped(**{name: low - 1}) == dropped(**{name: high + 1}) == {name}


def test_what_goes_with_a_figure_goes_with_it():
    values = dict(
        host_written_bytes=10**30,
        host_written_unit_bytes=512,
        host_written_source="log 02h",
        host_written_wrap_bytes=2**60,
        available_spare_percent=101,
        available_spare_threshold_percent=10,
    )
    out, unknown = checked(sources={"host_written_bytes": "log 02h", "temperature_C": "x"}, **values)
    assert all(out[name] is None for name in values) and out["sources"] == {
        "temperature_C": {"source": "x", "error": 0}
    }
    assert [words.split(":")[0] for words in unknown] == ["spare", "host bytes written"]
    assert plausible.in_words("media_errors") == "media errors"


# the link's bytes in an hour; the drive has had one more hour than it counts, and a young one a whole day
@pytest.mark.parametrize("protocol, per_s", [("ATA", 600e6), ("SCSI", 4.8e9), ("NVMe", 32e9), (None, 32e9)])
@pytest.mark.parametrize("hours, counted", [(24, 25), (2, 25), (25, 26), (999, 1000), (None, HOURS_MOST)])
def test_what_the_link_carries(protocol, per_s, hours, counted):
    most = int(per_s * 3600 * counted)
    assert plausible.bytes_most(hours, protocol) == most
    link = {"ATA": "SATA", "SCSI": "SAS"}.get(protocol, "PCIe")
    assert plausible.bytes_fault(most, hours, protocol) is None
    why = plausible.bytes_fault(most * (1 + 1e-9), hours, protocol)
    assert link in why and ("the life of a drive" if hours is None else f"{hours} power-on hours") in why
    for name in ("host_written_bytes", "host_read_bytes"):
        values = {"protocol": protocol, "power_on_hours": hours}
        assert dropped(**values, **{name: most}) == set() and dropped(**values, **{name: most + most // 10**6}) == {
            name
        }
    for name in ("nand_written_bytes", "nand_written_tlc_bytes"):
        assert dropped(**values, **{name: 100 * most}) == set()
        assert dropped(**values, **{name: 100 * most + most // 10**6}) == {name}


@pytest.mark.parametrize(
    "count, hours, protocol, name, goes",
    [
        (10_000 * 1000 - 1, 1000, "ATA", "host_written_bytes", True),
        (10_000 * 1000, 1000, "ATA", "host_written_bytes", False),
        (10_000 * 999 - 1, 999, "ATA", "host_written_bytes", False),
        (0, 1000, "ATA", "host_read_bytes", False),
        (0, 1000, "NVMe", "host_written_bytes", False),
        (0, None, "ATA", "host_written_bytes", False),
    ],
)
def test_too_little_for_the_hours_of_an_ata_drive(count, hours, protocol, name, goes):
    assert dropped(protocol=protocol, power_on_hours=hours, **{name: count}) == ({name} if goes else set())


def test_temperatures():
    assert dropped(temperature_C=0) == {"temperature_C"}
    out, unknown = checked(sources={"temperature_max_C": "x"}, temperature_C=0, temperature_max_C=0)
    assert (out["temperature_C"], out["temperature_max_C"], out["sources"]) == (None, None, {}) and len(unknown) == 1
    for now, highest in ((0, 1), (1, 1), (1, None), (None, 0), (-5, -5), (20, 21)):
        assert dropped(temperature_C=now, temperature_max_C=highest) == set()
    assert dropped(temperature_C=21, temperature_max_C=20) == {"temperature_max_C"}
    assert dropped(temperature_C=0, temperature_max_C=-1) == {"temperature_max_C"}


@pytest.mark.parametrize("name", ["warning_temp_min", "critical_temp_min", "workload_timer_min"])
@pytest.mark.parametrize(
    "hours, most", [(100, 101 * 60 + 60), (0, 60), (None, (HOURS_MOST + 1) * 60 + HOURS_MOST * 60 // 100)]
)
def test_timers_do_not_outrun_the_power_on_hours(name, hours, most):
    assert dropped(power_on_hours=hours, **{name: most}) == set()
    assert dropped(power_on_hours=hours, **{name: most + 1}) == {name}


def test_a_timer_that_is_wrong_takes_its_workload_along():
    shares = dict(workload_wear_percent=1, workload_reads_percent=2)
    assert dropped(power_on_hours=0, workload_timer_min=60, **shares) == set()
    assert dropped(power_on_hours=0, workload_timer_min=61, **shares) == {"workload_timer_min", *shares}
    out, unknown = checked(power_on_hours=0, workload_timer_min=61, workload_reads_percent=2)
    assert len(unknown) == 2


def test_power_cycles_and_energy_against_the_hours():
    assert dropped(power_on_hours=1000, power_cycles=0) == {"power_cycles"}
    assert dropped(power_on_hours=999, power_cycles=0) == dropped(power_cycles=0) == set()
    assert dropped(power_on_hours=1000, power_cycles=1) == set()
    assert dropped(power_on_hours=10, lifetime_energy_Wh=1100) == set()
    assert dropped(power_on_hours=10, lifetime_energy_Wh=1101) == {"lifetime_energy_Wh"}


@pytest.mark.parametrize(
    "low, mean, high, gone",
    [
        (10, 10, 10, ""),
        (11, 10, None, ""),
        (12, 10, None, "min mean"),
        (None, 11, 10, ""),
        (None, 12, 10, "mean max"),
        (12, None, 10, "min max"),
        (10, 20, 18, "min mean max"),
        (0, 0, 1, ""),
        (0, 0, 2, "mean"),
        (0, 3, 0, "max"),
        (0, 5, 9, ""),
        (2, 0, 0, "mean max"),
        (1, 0, 0, ""),
        (5, None, 0, "max"),
    ],
)
def test_order_of_the_cycles(low, mean, high, gone):
    values = {"pe_cycles_min": low, "pe_cycles_mean": mean, "pe_cycles_max": high}
    expected = {f"pe_cycles_{end}" for end in gone.split()}
    assert dropped(**values) == expected
    out, _ = checked(pe_cycles_source="log C0h", **values)
    left = any(out[name] is not None for name in values)
    assert out["pe_cycles_source"] == ("log C0h" if left else None)


ENOUGH = 10**10


@pytest.mark.parametrize(
    "nand, host, host_unit, nand_unit, goes",
    [
        (0, ENOUGH, None, None, True),
        (0, ENOUGH - 1, None, None, False),
        (9_900_000_000, ENOUGH, None, None, False),
        (9_899_999_999, ENOUGH, None, None, True),
        (9_899_999_999, ENOUGH, 2, None, False),  # 0.99 of 1e10 - 2
        (9_899_999_997, ENOUGH, 2, None, True),
        (9_899_999_997, ENOUGH, 2, 2, False),
        (1, ENOUGH - 1, None, None, False),
        (100 * ENOUGH, ENOUGH, None, None, False),
        (100 * ENOUGH + 1, ENOUGH, None, None, True),
        (100 * ENOUGH + 1, ENOUGH, None, 1, False),
        (100 * ENOUGH + 2, ENOUGH, None, 1, True),
        (100 * ENOUGH + 100, ENOUGH, 1, None, False),
        (100 * ENOUGH + 101, ENOUGH, 1, None, True),
        (ENOUGH, 0, None, None, True),
        (ENOUGH - 1, 0, None, None, False),
        (ENOUGH, 10**8, None, None, False),
        (ENOUGH, 10**8 - 1, None, None, True),
        (ENOUGH, None, None, None, False),
    ],
)
def test_write_amplification_of_a_life(nand, host, host_unit, nand_unit, goes):
    units = dict(host_written_unit_bytes=host_unit, nand_written_unit_bytes=nand_unit)
    out, unknown = checked(host_written_bytes=host, nand_written_bytes=nand, **units)
    assert (out["nand_written_bytes"], len(unknown)) == ((None, 1) if goes else (nand, 0))
    assert out["host_written_bytes"] == host


def test_write_amplification_below_one():
    """A controller that compresses may write 0.3 of it; so may TLC whose cache holds the rest."""
    low = 2_970_000_000
    assert dropped(True, host_written_bytes=ENOUGH, nand_written_bytes=low) == set()
    assert dropped(True, host_written_bytes=ENOUGH, nand_written_bytes=low - 1) == {"nand_written_bytes"}
    assert dropped(host_written_bytes=ENOUGH, nand_written_tlc_bytes=low) == set()
    assert dropped(host_written_bytes=ENOUGH, nand_written_tlc_bytes=low - 1) == {"nand_written_tlc_bytes"}
    out = dict.fromkeys(counters.KEYS) | {"host_written_bytes": ENOUGH, "nand_written_tlc_bytes": low - 1}
    out["sources"] = {"nand_written_tlc_bytes": {"source": "attribute 9", "error": 1}}
    plausible.check(out, [])
    assert out["nand_written_tlc_bytes"] == low - 1  # within the unit of its own source


def test_nand_bytes_of_a_group_go_with_the_host_bytes_of_the_group():
    values = dict(nand_written_bytes=TB, nand_written_source="log 22h", host_written_bytes=10**18)
    assert dropped(**values, fdp_host_written_bytes=TB) == set()
    assert dropped(**values, fdp_host_written_bytes=None) == set()
    assert dropped(**values, fdp_host_written_bytes=2 * TB) == {"nand_written_bytes"}
    values["nand_written_bytes"] = 9_900_000_000  # the group's host counter is off by less than one byte
    assert dropped(**values, fdp_host_written_bytes=ENOUGH + 1) == set()
    assert dropped(**values, fdp_host_written_bytes=ENOUGH + 2) == {"nand_written_bytes"}
    ratio = checked(host_written_bytes=ENOUGH, nand_written_bytes=ENOUGH // 2)[1][0]
    assert "a write amplification of 0.5 over" in ratio


@pytest.mark.parametrize(
    "pages, nand, goes",
    [(10_000, 10**9, False), (10_001, 1_000_100, False), (10_001, 1_000_101, True), (10**6, None, False)],
)
def test_pages(pages, nand, goes):
    both = {"host_program_pages", "nand_program_pages"}
    assert dropped(host_program_pages=pages, nand_program_pages=nand) == (both if goes else set())


@pytest.mark.parametrize(
    "mean, host, unit, goes",
    [
        (201, TB, None, False),  # 200 cycles of 1 TB, half of it, at a write amplification of 100
        (201, TB - 1, None, True),
        (201, TB - 5, 5, False),
        (201, TB - 6, 5, True),
        (2, 19_999 * 10**9, None, False),  # 3 cycles of 2 TB at 0.3
        (2, 20_001 * 10**9, None, True),
        (0, 6_666 * 10**9, None, False),
        (0, 6_667 * 10**9, None, True),
        (1, 0, None, False),
    ],
)
def test_cycles_against_bytes(mean, host, unit, goes):
    values = dict(pe_cycles_mean=mean, host_written_bytes=host, host_written_unit_bytes=unit, capacity_bytes=TB)
    assert dropped(**values) == ({"pe_cycles_mean"} if goes else set())
    assert dropped(**values | {"capacity_bytes": 0}) == dropped(**values | {"capacity_bytes": None}) == set()


def test_cycles_of_0_say_that_the_drive_does_not_count():
    words = lambda host: checked(pe_cycles_mean=0, host_written_bytes=host, capacity_bytes=TB)[1]
    assert "contradict each other" in words(10 * TB)[0] and "does not count" in words(10 * TB + 1)[0]
    assert len(words(10 * TB)) == len(words(10 * TB + 1)) == 1


@pytest.mark.parametrize(
    "nand, goes",
    [(100 * TB, False), (100 * TB - 1, True), (404 * TB * 2, True), (404 * TB, False), (404 * TB + 1, True)],
)
def test_bytes_of_an_attribute_that_the_cycles_contradict(nand, goes):
    """201 cycles of 1 TB: the NAND took 100 to 404 TB."""
    values = dict(pe_cycles_mean=201, host_written_bytes=TB - 1, capacity_bytes=TB)
    both = {"pe_cycles_mean", "host_written_bytes"}
    sources = {"host_written_bytes": "attribute 241"}
    assert dropped(sources=sources, **values) == both
    assert dropped(sources={"host_written_bytes": "smartctl's guess"}, **values) == both
    # the write amplification is that of another counter's host bytes, which are none here
    fdp = dict(nand_written_bytes=nand, nand_written_source="log 22h")
    assert dropped(sources=sources, **values, **fdp) == both | ({"nand_written_bytes"} if goes else set())


@pytest.mark.parametrize(
    "used, mean, gone",
    [
        (51, 24, ""),  # 25 cycles for 50 %: rated 50
        (51, 23, "pe_cycles_mean"),
        (4, 0, ""),
        (5, 0, "pe_cycles_mean"),
        (5, 1, ""),
        (0, 5000, ""),
    ],
)
def test_percentage_against_cycles(used, mean, gone):
    assert dropped(percentage_used=used, pe_cycles_mean=mean) == set(gone.split())
    assert dropped(percentage_used=used) == dropped(pe_cycles_mean=mean) == set()


def test_a_percentage_of_an_attribute_against_cycles():
    sources = {"percentage_used": "attribute 202"}
    assert dropped(sources=sources, percentage_used=51, pe_cycles_mean=23) == {"percentage_used"}
    assert dropped(sources=sources, percentage_used=51, pe_cycles_mean=0) == {"pe_cycles_mean"}
    still = dict(percentage_used=0, pe_cycles_mean=100, pe_cycles_rated=1000)
    assert dropped(sources=sources, **still) == {"percentage_used"} and dropped(**still) == set()
    assert "are 10 %" in checked(sources=sources, **still)[1][0]
    assert dropped(sources=sources, **still | {"pe_cycles_mean": 99}) == set()
    assert dropped(sources=sources, **still | {"pe_cycles_rated": None}) == set()
    assert dropped(sources=sources, **still | {"percentage_used": 1}) == set()


def test_words_of_counters_that_stand_at_0():
    assert checked(pe_cycles_mean=0, pe_cycles_max=2)[1] == [
        "mean P/E cycles: 0, although highest P/E cycles 2: the drive does not count it"
    ]
    (words,) = checked(host_written_bytes=ENOUGH, nand_written_bytes=0)[1]
    assert words.endswith("0, the host wrote 10.0 GB: the drive does not count")
