"""Wear against limits: the formulas with worked numbers, and projections whose range holds the truth."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.base.errors import UsageError
from ssdrig.drive.wear import endurance, wa
from ssdrig.drive.wear.endurance import Limits, Rate

TB, GB, GIB, DAY = 10**12, 10**9, 1 << 30, endurance.DAY_NS
TODAY = date(2026, 3, 1)
MINE = Limits(tbw_TB=72, years=3, mileage=True, drive_class="client", start=date(2024, 3, 1), source="data sheet")


def snap(host=None, **more) -> dict:
    return {
        "host_written_bytes": host,
        "host_written_unit_bytes": 512_000,
        "host_written_source": "log 02h",
        "capacity_bytes": TB,
        **more,
    }


def rate(per_day, low=None, high=None) -> Rate:
    return Rate(per_day, per_day if low is None else low, per_day if high is None else high, "test")


def test_formulas():
    """1 TB, 600 TBW, 5 years: 0.329 DWPD; and back. 1 TiB of NAND, 3000 cycles, WA 2.5, 0.95 of the wear levelled: 1253
    TB."""
    assert endurance.dwpd_of_tbw(600, TB, 5) == pytest.approx(0.32877, rel=1e-4)
    assert endurance.tbw_of_dwpd(0.32877, TB, 5) == pytest.approx(600, rel=1e-4)
    assert endurance.tbw_of_dwpd(10, 2 * TB, 5) == pytest.approx(36_500)  # Intel P3700 2 TB: 36.5 PBW
    assert endurance.tbw_of_cycles(1 << 40, 3000, 2.5, 0.95) == pytest.approx(1253.45, rel=1e-4)
    # the data sheet of the DC S3500: E2 16 (/1024 %) in 500 minutes, so 100 % in 500 x 100 x 1024 / 16 minutes
    assert endurance.drive_life_minutes(16 / 1024, 500) == pytest.approx(500 * 100 * 1024 / 16)
    assert endurance.drive_life_minutes(None, 500) is None and endurance.drive_life_minutes(0, 500) is None
    assert endurance.drive_life_minutes(0.5, None) is None


@given(st.floats(1, 1e5), st.integers(10**10, 10**14), st.floats(0.5, 10))
def test_tbw_and_dwpd_are_each_others_inverse(tbw, capacity, years):
    assert endurance.tbw_of_dwpd(endurance.dwpd_of_tbw(tbw, capacity, years), capacity, years) == pytest.approx(tbw)


@pytest.mark.parametrize(
    "text, per_day",
    [
        ("50GB/day", 50e9),
        ("1.2TB/month", 1.2e12 / 30.4375),
        ("1.2 TB per month", 1.2e12 / 30.4375),
        ("10MB/hour", 240e6),
        ("7TiB/week", 2**40),
        ("3.6525PB/year", 1e13),
    ],
)
def test_parse_rate(text, per_day):
    got = endurance.parse_rate(text)
    assert (
        got.bytes_per_day == pytest.approx(per_day) and (got.low, got.high) == (got.bytes_per_day,) * 2 and got.calendar
    )


@pytest.mark.parametrize(
    "text", ["", "50", "50GB", "GB/day", "-1GB/day", "0GB/day", "50GB/fortnight", "5 0GB/day", "50gb/day", "1e3GB/day"]
)
def test_a_rate_that_is_none(text):
    with pytest.raises(UsageError):
        endurance.parse_rate(text)


def test_tbw_reached_before_the_years():
    """36 of 72 TB used, 100 GB a day: 360 days; one of the three years is left, 365 days: 36 TB / 365 a day are
    allowed."""
    got = endurance.project(snap(36 * TB), MINE, rate(100 * GB, 80 * GB, 120 * GB), today=TODAY)
    assert got["tbw_used_percent"] == 50 and got["rated_tbw_bytes"] == 72 * TB and got["tbw_source"] == "data sheet"
    assert [a["limit"] for a in got["ahead"]] == ["tbw", "warranty_time"] and got["first"]["limit"] == "tbw"
    assert got["first"]["days"] == pytest.approx(360) and got["first"]["date"] == "2027-02-24"
    assert got["first"]["days_low"] == pytest.approx(300, abs=1e-4) and got["first"]["days_high"] == pytest.approx(
        450, abs=1e-4
    )
    assert (got["first"]["date_low"], got["first"]["date_high"]) == ("2026-12-25", "2027-05-25")
    assert got["warranty_end"] == "2027-03-01" and got["warranty_days_left"] == 365
    assert got["warranty_used_percent"] == pytest.approx(100 * 730 / 1095)
    assert got["allowance_bytes_per_day"] == pytest.approx(36 * TB / 365)
    assert got["drive_writes_per_day"] == pytest.approx(0.1)


def test_years_over_before_the_tbw():
    got = endurance.project(snap(36 * TB), MINE, rate(10 * GB), today=TODAY)
    assert got["first"]["limit"] == "warranty_time" and got["first"]["date"] == "2027-03-01"


def test_what_is_reached_is_reached():
    got = endurance.project(snap(73 * TB), MINE, rate(10 * GB), today=date(2027, 6, 1))
    assert got["first"]["limit"] == "tbw" and [a["days"] for a in got["ahead"]] == [0, 0]
    assert got["tbw_left_bytes"] == 0 and got["tbw_used_percent"] == pytest.approx(101.39, abs=0.01)
    assert got["warranty_used_percent"] > 100 and got["allowance_bytes_per_day"] is None


def test_nothing_known_is_nothing_guessed():
    got = endurance.project(snap(None), Limits(), None, today=TODAY)
    known = {k: v for k, v in got.items() if v is not None and k not in ("ahead", "unknown")}
    assert known == {} and got["ahead"] == []
    words = " ".join(got["unknown"])
    for part in ("--tbw", "--rate", "percentage used"):
        assert part in words


def test_no_start_of_the_warranty():
    """17532 power-on hours are two years of the three: at most one is left, and no end is known."""
    got = endurance.project(snap(TB, power_on_hours=17532), Limits(tbw_TB=72, years=3), rate(GB), today=TODAY)
    assert got["warranty_end"] is None and got["warranty_days_left"] is None
    assert got["warranty_days_left_at_most"] == pytest.approx(365.25)
    assert [a["limit"] for a in got["ahead"]] == ["tbw"] and any("--start" in words for words in got["unknown"])
    assert (
        endurance.project(snap(TB, power_on_hours=99_999), Limits(years=3), None, today=TODAY)[
            "warranty_days_left_at_most"
        ]
        == 0
    )


def test_percentage_used():
    """58.2 TB at 16 %: 364 TB in all, between 58.2 x 100/17 and /15; below 5 % nothing."""
    host = 58_195_344_896_000
    got = endurance.project(snap(host, percentage_used=16), Limits(), rate(GB), today=TODAY)
    assert got["projected_tbw_TB"] == pytest.approx(363.72, abs=0.01)
    assert (got["projected_tbw_low_TB"], got["projected_tbw_high_TB"]) == (
        pytest.approx(342.33, abs=0.01),
        pytest.approx(387.97, abs=0.01),
    )
    (ahead,) = got["ahead"]
    assert (
        ahead["days"] == pytest.approx((host * 100 / 16 - host) / GB)
        and ahead["days_low"] < ahead["days"] < ahead["days_high"]
    )
    young = endurance.project(snap(host, percentage_used=4), Limits(), rate(GB), today=TODAY)
    assert young["projected_tbw_TB"] is None and any("4 %" in words for words in young["unknown"])
    over = endurance.project(snap(host, percentage_used=130), Limits(), rate(GB), today=TODAY)
    assert over["first"]["days"] == 0


def test_cycles():
    """1200 of 3000 cycles after 100 TB: 150 TB more as so far; at half of its life's WA twice that."""
    limits = Limits(pe_cycles=3000)
    worn = dict(pe_cycles_mean=1200, pe_cycles_max=1500, pe_cycles_source="log C0h", nand_written_bytes=300 * TB)
    got = endurance.project(snap(100 * TB, **worn), limits, rate(TB), today=TODAY)
    assert (got["pe_mean_used_percent"], got["pe_max_used_percent"]) == (40, 50)
    assert got["wa_of_life"] == 3 and got["first"]["limit"] == "pe_cycles"
    assert got["first"]["days"] == pytest.approx(150)
    assert got["first"]["days_low"] == pytest.approx(1799 / 1201 * 100) and got["first"]["days_high"] == pytest.approx(
        1801 / 1199 * 100
    )
    unit = dict(nand_written_unit_bytes=1, nand_written_source="log C0h")
    mine = wa.between(snap(0, nand_written_bytes=0, **unit), snap(10 * TB, nand_written_bytes=15 * TB, **unit))
    half = endurance.project(snap(100 * TB, **worn), limits, rate(TB), mine, TODAY)
    assert half["first"]["days"] == pytest.approx(300) and "WA 1.50 (over its life 3.00)" in half["first"]["source"]
    few = endurance.project(snap(100 * TB, pe_cycles_mean=4), limits, rate(TB), today=TODAY)
    assert few["ahead"] == [] and few["pe_mean_used_percent"] == pytest.approx(0.1333, abs=1e-3)


def test_timed_workload():
    """2 % of wear in 12 hours: 25 days."""
    got = endurance.project(snap(TB, workload_wear_percent=2.0, workload_timer_min=720), Limits(), None, today=TODAY)
    assert got["workload_life_days"] == pytest.approx(25)


@pytest.mark.parametrize(
    "start, years, end",
    [(date(2024, 5, 1), 3, "2027-05-01"), (date(2024, 2, 29), 5, "2029-03-01"), (date(2024, 5, 1), 2.5, "2026-10-31")],
)
def test_end_of_the_warranty(start, years, end):
    assert endurance.project(snap(TB), Limits(years=years, start=start), None, today=TODAY)["warranty_end"] == end


def test_a_reading_from_before_the_warranty_says_nothing_of_its_time():
    got = endurance.project(snap(TB), MINE, rate(GB), today=date(2009, 2, 13))
    assert (
        got["warranty_used_percent"] is None
        and got["warranty_days_left"] is None
        and got["warranty_end"] == "2027-03-01"
    )
    assert [a["limit"] for a in got["ahead"]] == ["tbw"]
    assert any("before its first day, 2024-03-01" in words for words in got["unknown"])


def history(host_at, days, unit=512_000, source="log 02h") -> list[dict]:
    """Snapshots whose host counter shows whole units of host_at(day)."""
    return [
        snap(int(host_at(d)) // unit * unit)
        | {"utc_ns": 10**18 + round(d * DAY), "host_written_unit_bytes": unit, "host_written_source": source}
        for d in days
    ]


@settings(max_examples=150)
@given(
    st.floats(1e6, 1e14),
    st.floats(0, 1e15),
    st.sampled_from([512, 512_000, 32 << 20, GIB]),
    st.lists(st.floats(0, 400), min_size=2, max_size=60, unique=True),
)
def test_the_range_of_a_history_holds_its_steady_rate(true_rate, start, unit, days):
    """A workload of a known rate, seen through a counter that rounds, polled whenever: the true rate is within the
    range."""
    if max(days) - min(days) < 1 / 24:
        return
    got = endurance.rate_of_history(history(lambda d: start + true_rate * d, days, unit))
    slack = 1e-6 * true_rate + 1
    assert got.low - slack <= true_rate <= got.high + slack
    limits = Limits(tbw_TB=start / TB + 100 * true_rate / TB + max(days) * true_rate / TB)
    last = max(history(lambda d: start + true_rate * d, days, unit), key=lambda s: s["utc_ns"])
    ahead = endurance.project(last, limits, got, today=TODAY)["ahead"]
    if ahead and ahead[0]["days_high"] is not None:  # 100 days from the last reading
        assert ahead[0]["days_low"] * (1 - 1e-6) - 1e-6 <= 100 <= ahead[0]["days_high"] * (1 + 1e-6) + 1e-6


def test_spread_of_a_rate():
    """Twelve days, 1 and 3 TB by turns: mean 2 TB, standard deviation 1.0445 TB, twice the standard error 0.603 TB."""
    written = [0]
    for day in range(12):
        written.append(written[-1] + (TB if day % 2 == 0 else 3 * TB))
    got = endurance.rate_of_history(history(lambda d: written[round(d)], range(13), unit=1))
    assert got.bytes_per_day == 2 * TB and got.high - got.bytes_per_day == pytest.approx(0.603e12, rel=1e-3)
    assert got.source == "13 polls over 12 days"
    two = endurance.rate_of_history(history(lambda d: d * TB, (0, 2)))
    assert two.bytes_per_day == pytest.approx(TB) and "too few for its spread" in two.source
    assert two.high - two.low == pytest.approx(512_000, rel=1e-3)


def test_a_history_begins_anew_where_the_counter_did():
    """Ten days at 1 TB, then the counter is reset and runs at 2 TB."""
    readings = history(lambda d: 100 * TB + d * TB, range(11)) + [
        s | {"utc_ns": s["utc_ns"] + 11 * DAY} for s in history(lambda d: d * 2 * TB, range(5))
    ]
    got = endurance.rate_of_history(readings)
    assert got.bytes_per_day == pytest.approx(2 * TB) and got.source.startswith("5 polls over 4.0 days")
    other = readings[-5:] + [
        s | {"utc_ns": s["utc_ns"] + 20 * DAY}
        for s in history(lambda d: 50 * TB + d * 3 * TB, range(3), source="attribute 241 (1 GiB)")
    ]
    assert endurance.rate_of_history(other).bytes_per_day == pytest.approx(3 * TB)


@pytest.mark.parametrize(
    "readings",
    [
        [],
        history(lambda d: d, [0]),
        history(lambda d: d, [0, 0]),
        [{"utc_ns": 1, "host_written_bytes": None, "host_written_unit_bytes": 1}] * 3,
        [{"host_written_bytes": 1, "host_written_unit_bytes": 1}] * 3,
    ],
)
def test_no_history_no_rate(readings):
    assert endurance.rate_of_history(readings) is None


def test_an_idle_history_reaches_nothing():
    got = endurance.rate_of_history(history(lambda d: TB, range(10)))
    assert got.bytes_per_day == 0 and got.low == 0 and got.high > 0
    assert endurance.project(snap(TB), Limits(tbw_TB=10), got, today=TODAY)["ahead"] == []


def test_rate_of_a_life():
    """58.2 TB in 10423 power-on hours are 134 GB per day of them; with a first day it is by the calendar."""
    s = snap(58_195_344_896_000, power_on_hours=10423)
    got = endurance.rate_of_life(s, None, TODAY)
    assert (
        got.bytes_per_day == pytest.approx(134.0e9, rel=1e-3)
        and not got.calendar
        and "10423 power-on hours" in got.source
    )
    fewer = s | {"power_on_hours": 8783}  # 366 days less an hour: as long as it can have been on since then
    by_date = endurance.rate_of_life(fewer, date(2025, 3, 1), TODAY)
    assert by_date.bytes_per_day == pytest.approx(58_195_344_896_000 / 365) and by_date.calendar
    # on for 434 days of the 365 since then: it wrote before
    assert endurance.rate_of_life(s, date(2025, 3, 1), TODAY) == got
    words = endurance.project(s, Limits(years=5, start=date(2025, 3, 1)), got, today=TODAY)["unknown"]
    assert any("it was on for 10423 h, longer than since 2025-03-01, so it was in use before" in w for w in words)
    words = endurance.project(fewer, Limits(years=5, start=date(2025, 3, 1)), by_date, today=TODAY)["unknown"]
    assert not any("in use before" in w for w in words)
    dates = endurance.project(s, Limits(tbw_TB=100), got, today=TODAY)["first"]
    assert dates["days"] > 0 and dates["date"] is None
    assert (
        endurance.rate_of_life(snap(TB), None, TODAY) is None
        and endurance.rate_of_life(snap(TB, power_on_hours=0), None, TODAY) is None
    )
    assert endurance.rate_of_life(s, TODAY, TODAY) is None


@settings(max_examples=100)
@given(st.integers(0, 10**15), st.integers(0, 10**14), st.floats(1e6, 1e14), st.floats(1.001, 10), st.floats(1, 1e4))
def test_projections_are_monotone(host, more, per_day, faster, tbw):
    """More written or a faster rate never moves the limit away."""
    limits = Limits(tbw_TB=tbw)

    def days(host, per_day):
        return endurance.project(snap(host), limits, rate(per_day), today=TODAY)["first"]

    base = days(host, per_day)
    assert days(host + more, per_day)["days"] <= base["days"] and days(host, per_day * faster)["days"] <= base["days"]
    assert base["days_low"] <= base["days"] <= base["days_high"]


@settings(max_examples=150)
@given(
    *[st.none() | st.integers(0, 2**70)] * 3,
    *[st.none() | st.integers(0, 300)] * 2,
    st.none() | st.floats(1e-3, 1e6),
    st.none() | st.floats(0.1, 20),
    st.none() | st.floats(1, 1e6),
    st.none() | st.floats(0, 1e18),
    st.none() | st.dates(date(2000, 1, 1), date(2040, 1, 1)),
)
def test_project_takes_whatever_a_drive_says(
    host, nand, hours, percent, cycles, tbw, years, rated_cycles, per_day, start
):
    s = snap(
        host,
        nand_written_bytes=nand,
        power_on_hours=hours,
        percentage_used=percent,
        pe_cycles_mean=cycles,
        pe_cycles_max=cycles,
    )
    got = endurance.project(
        s,
        Limits(tbw_TB=tbw, years=years, pe_cycles=rated_cycles, start=start),
        None if per_day is None else rate(per_day),
        today=TODAY,
    )
    days = [a["days"] for a in got["ahead"]]
    assert days == sorted(days) and got["first"] == (got["ahead"][0] if days else None)
    for a in got["ahead"]:
        assert 0 <= a["days_low"] <= a["days"] * (1 + 1e-9) and (
            a["days_high"] is None or a["days"] <= a["days_high"] * (1 + 1e-9)
        )
