"""Projections and rates at their limits: the last value of one branch and the first of the next."""

from datetime import date

import pytest

from ssdrig.drive.wear import endurance
from ssdrig.drive.wear.endurance import Limits, Rate
from ssdrig.drive.wear.wa import WriteAmplification

TB, GB, DAY = 10**12, 10**9, 86_400 * 10**9
TODAY = date(2026, 3, 1)


def snap(host=None, unit=0, **more) -> dict:
    return {"host_written_bytes": host, "host_written_unit_bytes": unit, "host_written_source": "log 02h"} | more


def rate(per_day, low=None, high=None, calendar=True) -> Rate:
    return Rate(per_day, per_day if low is None else low, per_day if high is None else high, "test", calendar)


NONE = Limits()


def project(snapshot, limits=NONE, rate=None, wa=None, today=TODAY) -> dict:
    return endurance.project(snapshot, limits, rate, wa, today)


def test_default_of_wear_levelling_and_of_the_date():
    assert endurance.tbw_of_cycles(TB, 3000, 2.0) == 1500
    assert endurance.DAY_NS == DAY and endurance.TB == TB
    got = endurance.project(snap(), Limits(years=3, start=date(2000, 1, 1)), None)
    assert got["warranty_days_left"] == 0


@pytest.mark.parametrize(
    "unit, size", [("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12), ("PB", 1e15), ("KiB", 1024)]
)
def test_units_of_a_rate(unit, size):
    assert endurance.parse_rate(f" 2.5 {unit}/day ").bytes_per_day == 2.5 * size


def poll(day, host, unit=100, source="log 02h") -> dict:
    return {
        "utc_ns": round(day * DAY),
        "host_written_bytes": host,
        "host_written_unit_bytes": unit,
        "host_written_source": source,
    }


def test_rate_of_two_polls():
    got = endurance.rate_of_history([poll(2, 1000), poll(0, 0)])
    assert (got.bytes_per_day, got.low, got.high) == (500, 450, 550)  # the unit, over two days
    assert endurance.rate_of_history([poll(0, 0), poll(2, 20)])[:3] == (10, 0, 60)
    assert endurance.rate_of_history([poll(1, 0), poll(1, 5)]) is None
    assert endurance.rate_of_history([poll(0, 0)]) is None
    # a poll without a source counts; a poll without bytes does not
    assert endurance.rate_of_history([poll(0, 0, source=None), poll(2, 1000, source=None)]).bytes_per_day == 500
    assert endurance.rate_of_history([poll(0, 0), poll(1, None), poll(2, 1000)]).source.startswith(
        "2 polls over 2.0 days"
    )


def test_where_a_history_begins():
    back = [poll(0, 900), poll(1, 1000), poll(2, 999), poll(3, 1009)]
    assert endurance.rate_of_history(back).bytes_per_day == 10
    still = [poll(0, 1000), poll(1, 1000), poll(2, 1000), poll(3, 1030)]
    assert endurance.rate_of_history(still).bytes_per_day == 10
    for change in ({"unit": 50}, {"source": "log 09h"}):
        kinds = [poll(0, 0), poll(1, 10), poll(2, 20, **change), poll(3, 50, **change)]
        assert endurance.rate_of_history(kinds).bytes_per_day == 30
    assert endurance.rate_of_history([poll(0, 50), poll(1, 10)]) is None  # one poll is left
    twice = [poll(0, 100), poll(1, 50), poll(2, 40), poll(3, 47)]
    assert endurance.rate_of_history(twice).bytes_per_day == 7


def test_spread_needs_four_windows():
    rates = lambda polls: endurance._spread([(round(d * DAY), h) for d, h in polls])
    assert rates([(0, 0), (1, 1), (2, 4), (3, 5)]) is None
    # rates 1, 3, 1, 3 a day: 2 sqrt(4 / 3 / 4)
    assert rates([(0, 0), (1, 1), (2, 4), (3, 5), (4, 8)]) == pytest.approx(2 * (1 / 3) ** 0.5)
    # twelve windows at most: 24 days of 1 and 3 in turn look steady in windows of two days
    assert rates([(d, d * 2 - d % 2) for d in range(25)]) == 0
    assert rates([(d, d * 2 - d % 2) for d in range(13)]) > 0
    assert rates([(d, d * 2 - d % 2) for d in range(14)]) > 0
    assert rates([(0, 0), (0, 1), (1, 1), (2, 4), (3, 5), (4, 8)]) is not None


@pytest.mark.parametrize(
    "wanted, at",
    [(0, 0), (5, 0), (10, 0), (14, 0), (15, 0), (16, 1), (20, 1), (25, 1), (26, 3), (30, 3), (31, 3), (99, 3)],
)
def test_nearest(wanted, at):
    assert endurance._nearest([10, 20, 20, 30], wanted) == at


def test_rate_of_a_life():
    life = endurance.rate_of_life
    s = snap(4800, unit=480, power_on_hours=48)
    # hours and days are whole: up to one more may have passed
    assert life(s, None, TODAY)[:3] == (2400, 4320 / (49 / 24), 2640) and life(s, None, TODAY).calendar is False
    assert life(s, date(2026, 2, 27), TODAY)[:3] == (2400, 1440, 2640) and life(s, date(2026, 2, 27), TODAY).calendar
    assert life(s, date(2026, 2, 28), TODAY)[:3] == (4800, 2160, 5280)
    on = s | {"power_on_hours": 49}  # more than those two days have
    assert life(on, date(2026, 2, 28), TODAY) == life(on, None, TODAY)
    assert life(s, TODAY, TODAY) is life(s, date(2026, 3, 2), TODAY) is None
    assert life(snap(10, unit=480, power_on_hours=24), None, TODAY)[:3] == (10, 0, 490)
    assert life(snap(10, unit=480, power_on_hours=1), None, TODAY).bytes_per_day == 240
    for gap in (
        {"host_written_bytes": None},
        {"host_written_unit_bytes": None},
        {"power_on_hours": None},
        {"power_on_hours": 0},
    ):
        assert life(s | gap, None, TODAY) is None


# --- one limit


@pytest.mark.parametrize(
    "left, less, more, per_day, days",
    [
        (100, 10, 20, rate(10, 5, 20), (10, 4.5, 24)),
        (100, 200, 20, rate(10, 5, 20), (10, 0, 24)),
        (100, 10, 20, rate(10, 0, 20), (10, 4.5, None)),
        (1, 0, 0, rate(1, 1, 1), (1, 1, 1)),
        (0, 10, 20, rate(10), (0, 0, 0)),
        (-1, 10, 20, None, (0, 0, 0)),
        (100, 10, 20, None, (None, None, None)),
        (100, 10, 20, rate(0, 0, 20), (None, None, None)),
        (0.5, 0, 0, rate(0.5), (1, 1, 1)),
        (100, 10, 20, rate(10, 0.5, 20), (10, 4.5, 240)),
    ],
)
def test_days_to_a_limit(left, less, more, per_day, days):
    got = endurance._ahead("tbw", left, less, more, per_day, TODAY, "s")
    assert (got["days"], got["days_low"], got["days_high"]) == days
    assert got["left_bytes"] == max(0, left)
    dated = per_day and left > 0 and days[0] is not None
    assert (got["date"] is not None) == bool(dated)
    if days[0] == 10:
        assert got["date"] == "2026-03-11" and got["date_low"] == ("2026-03-05" if days[1] else "2026-03-01")
        assert (got["date_high"] is None) == (days[2] is None)
    if dated:
        undated = endurance._ahead("tbw", left, less, more, per_day._replace(calendar=False), TODAY, "s")
        assert undated["date"] is None and undated["days"] == days[0]


def test_a_date_past_the_year_9999():
    assert endurance._date(TODAY, 1e7) is None and endurance._date(date(9999, 12, 30), 1) == "9999-12-31"


@pytest.mark.parametrize("part, whole, share", [(1, 4, 25), (0, 4, 0), (None, 4, None), (1, 0, None), (1, None, None)])
def test_share(part, whole, share):
    assert endurance._share(part, whole) == share


# --- project


def test_tbw():
    got = project(snap(30 * TB, unit=TB), Limits(tbw_TB=40, source="sheet"), rate(TB))
    assert (got["rated_tbw_bytes"], got["tbw_used_percent"], got["tbw_left_bytes"]) == (40 * TB, 75, 10 * TB)
    assert got["tbw_source"] == "sheet" and got["first"]["days"] == 10
    assert (got["first"]["days_low"], got["first"]["days_high"]) == (9, 11)
    assert not any("--tbw" in words or "--rate" in words for words in got["unknown"])
    got = project(snap(30 * TB, unit=None), Limits(tbw_TB=40), rate(TB))
    assert got["first"]["days_low"] == got["first"]["days_high"] == 10  # a unit that is not known adds nothing
    got = project(snap(None), Limits(tbw_TB=40), rate(TB))
    assert got["tbw_left_bytes"] is None and got["ahead"] == [] and got["tbw_used_percent"] is None
    got = project(snap(1), Limits(source="sheet"), rate(TB))
    assert got["tbw_source"] is None and any("--tbw" in words for words in got["unknown"])
    assert (got["rate_low_bytes_per_day"], got["rate_source"], got["rate_calendar"]) == (TB, "test", True)
    assert any("--rate" in words for words in project(snap(1))["unknown"])


def test_drive_writes_and_timed_life():
    got = project(snap(1, capacity_bytes=2 * TB, workload_wear_percent=2, workload_timer_min=1440), rate=rate(TB))
    assert (got["drive_writes_per_day"], got["workload_life_days"]) == (0.5, 50)
    assert project(snap(1, capacity_bytes=2 * TB))["drive_writes_per_day"] is None
    assert project(snap(1), rate=rate(TB))["drive_writes_per_day"] is None
    assert project(snap(1))["workload_life_days"] is None


def test_allowance():
    limits = Limits(tbw_TB=40, years=1, start=date(2025, 3, 11))
    got = project(snap(30 * TB), limits)
    assert got["warranty_days_left"] == 10 and got["allowance_bytes_per_day"] == TB
    assert project(snap(None), limits)["allowance_bytes_per_day"] is None
    assert project(snap(50 * TB), limits)["allowance_bytes_per_day"] == 0
    over = project(snap(30 * TB), limits, today=date(2026, 3, 11))
    assert over["warranty_days_left"] == 0 and over["allowance_bytes_per_day"] is None


@pytest.mark.parametrize(
    "today, left, used",
    [
        (date(2024, 3, 1), 366, 0),
        (date(2025, 3, 1), 1, 36500 / 366),
        (date(2025, 3, 2), 0, 100),
        (date(2025, 3, 3), 0, 36700 / 366),
    ],
)
def test_warranty_time(today, left, used):
    limits = Limits(years=1.0027, start=date(2024, 3, 1))  # a year and a day
    got = project(snap(), limits, rate(GB), today=today)
    assert (
        got["warranty_end"] == "2025-03-02" and got["warranty_days_left"] == got["warranty_days_left_at_most"] == left
    )
    assert got["warranty_used_percent"] == pytest.approx(used)
    (ahead,) = got["ahead"]
    assert ahead["days"] == ahead["days_low"] == ahead["days_high"] == left and ahead["date"] == "2025-03-02"
    assert not any("of the warranty" in words or "of warranty" in words for words in got["unknown"])
    assert project(snap(), limits, rate(GB, calendar=False), today=today)["ahead"] == []
    assert len(project(snap(), limits, None, today=today)["ahead"]) == 1


def test_words_about_the_warranty():
    early = project(snap(), Limits(years=1, start=date(2026, 3, 2)))
    assert any("before its first day, 2026-03-02" in words for words in early["unknown"])
    assert early["warranty_start"] == "2026-03-02" and early["warranty_days_left"] is None
    begun = lambda **s: [w for w in project(snap(**s), Limits(years=1))["unknown"] if "--start" in w]
    assert begun() and begun(power_on_hours=8765) and not begun(power_on_hours=8766)
    assert not any("--start" in words for words in project(snap(), Limits())["unknown"])
    assert project(snap(power_on_hours=24), Limits(years=1))["warranty_days_left_at_most"] == 364.25
    assert project(snap(), Limits(years=1))["warranty_days_left_at_most"] is None
    assert project(snap(power_on_hours=24), Limits())["warranty_days_left_at_most"] is None


@pytest.mark.parametrize(
    "start, years, end",
    [(date(2024, 2, 29), 1, "2025-03-01"), (date(2024, 2, 29), 4, "2028-02-29"), (date(2024, 1, 1), 0.5, "2024-07-02")],
)
def test_end_of_the_years(start, years, end):
    assert str(endurance._later(start, years)) == end


def test_percentage_used():
    got = project(snap(100 * TB, percentage_used=5), rate=rate(TB))
    assert (got["projected_tbw_TB"], got["projected_tbw_low_TB"], got["projected_tbw_high_TB"]) == (
        2000,
        pytest.approx(100 * 100 / 6),
        2500,
    )
    (ahead,) = got["ahead"]
    assert (ahead["days"], ahead["days_low"], ahead["days_high"]) == (1900, pytest.approx(10_000 / 6 - 100), 2400)
    low = project(snap(100 * TB, percentage_used=4), rate=rate(TB))
    assert low["projected_tbw_TB"] is None and any("4 %, a projection needs 5 %" in w for w in low["unknown"])
    fine = {"sources": {"percentage_used": {"error": 0.01}}}
    got = project(snap(100 * TB, percentage_used=0.05, **fine))
    assert got["projected_tbw_high_TB"] == pytest.approx(100 * 100 / 0.04)
    assert any("needs 0.05 %" in words for words in project(snap(TB, percentage_used=0.04, **fine))["unknown"])
    for host in (0, None):
        assert project(snap(host, percentage_used=50))["projected_tbw_TB"] is None


def test_percentage_that_is_not_known_is_said_once():
    own = lambda **s: sum("percentage used" in words for words in project(snap(1, **s))["unknown"])
    assert own() == 1 and own(unknown=["percentage used: x"]) == 0 and own(unknown=["spare: percentage used"]) == 1
    assert own(percentage_used=50, unknown=["x"]) == 0


def wa(value, relative) -> WriteAmplification:
    return WriteAmplification(value, value * relative, relative, 1, 1, 0, 0, None)


def test_cycles():
    s = snap(100 * TB, pe_cycles_mean=5, pe_cycles_max=10, pe_cycles_source="x")
    got = project(s, Limits(pe_cycles=50), rate(TB))
    assert (got["pe_mean_used_percent"], got["pe_max_used_percent"], got["pe_source"]) == (10, 20, "x")
    (ahead,) = got["ahead"]
    assert (ahead["days"], ahead["days_low"], ahead["days_high"]) == (900, pytest.approx(44 * 100 / 6), 46 * 100 / 4)
    assert got["wa_of_life"] is None
    assert project(s | {"pe_cycles_mean": 4}, Limits(pe_cycles=50), rate(TB))["ahead"] == []
    assert project(s | {"host_written_bytes": 0}, Limits(pe_cycles=50), rate(TB))["ahead"] == []
    assert any("--pe-cycles" in words for words in project(s)["unknown"])
    for quiet in (project(s, Limits(pe_cycles=50)), project(snap(1))):
        assert not any("--pe-cycles" in words for words in quiet["unknown"])


def test_what_is_reached_is_reached_whatever_else_is_not_known():
    """107 % used, or all P/E cycles, of a drive that does not report its host bytes: nothing had been said."""
    for more, limit in (({"percentage_used": 107}, "percentage_used"), ({"pe_cycles_mean": 50}, "pe_cycles")):
        got = project(snap(**more), Limits(pe_cycles=50))
        assert [(limit_row["limit"], limit_row["days"]) for limit_row in got["ahead"]] == [(limit, 0)]
    assert project(snap(percentage_used=99))["ahead"] == [] == project(snap(pe_cycles_mean=49), Limits(50))["ahead"]


def test_255_percent_are_as_many_or_more():
    """NVMe, ACS and SPC: one byte, which stays there. Of 255 % no TBW follows."""
    got = project(snap(100 * TB, percentage_used=255), rate=rate(TB))
    assert got["projected_tbw_TB"] is None and got["first"]["days"] == 0
    assert any("255 %" in words for words in got["unknown"])
    assert project(snap(100 * TB, percentage_used=254))["projected_tbw_TB"] == pytest.approx(100 / 2.54)


def test_the_shortest_warranty_is_a_day():
    got = project(snap(TB), Limits(years=0.001, start=date(2026, 2, 28)))
    assert (got["warranty_end"], got["warranty_used_percent"]) == ("2026-03-01", 100)


@pytest.mark.parametrize("mean, days", [(49, 100 / 49), (50, 0), (51, 0)])
def test_cycles_near_their_rating(mean, days):
    (ahead,) = project(snap(100 * TB, pe_cycles_mean=mean), Limits(pe_cycles=50), rate(TB))["ahead"]
    assert ahead["days"] == pytest.approx(days) and ahead["days_low"] == 0 and ahead["left_bytes"] >= 0


def test_cycles_at_another_write_amplification():
    s = snap(100 * TB, pe_cycles_mean=5, nand_written_bytes=300 * TB, nand_written_source="log C0h")
    got = project(s, Limits(pe_cycles=50), rate(TB), wa(1.5, 0.1))
    (ahead,) = got["ahead"]
    assert got["wa_of_life"] == 3 and ahead["days"] == 1800
    assert ahead["days_low"] == pytest.approx(44 * 100 / 6 * 2 / 1.1)
    assert ahead["days_high"] == pytest.approx(46 * 100 / 4 * 2 * 1.1)
    for other, mine in (
        (s, None),
        (s, wa(1, 0)._replace(value=None)),
        (s | {"nand_written_source": "log 22h"}, wa(1.5, 0.1)),
        (s | {"nand_written_bytes": 0}, wa(1.5, 0.1)),
    ):
        assert project(other, Limits(pe_cycles=50), rate(TB), mine)["ahead"][0]["days"] == 900
    assert project(s | {"nand_written_source": "log 22h"})["wa_of_life"] is None
    assert (
        project(s | {"nand_written_bytes": None})["wa_of_life"]
        is project(s | {"host_written_bytes": 0})["wa_of_life"]
        is None
    )


def test_order_of_what_is_ahead():
    s = snap(100 * TB, pe_cycles_mean=5, percentage_used=50)
    got = project(s, Limits(tbw_TB=120, pe_cycles=50, years=3, start=TODAY), rate(TB))
    assert [a["limit"] for a in got["ahead"]] == ["tbw", "percentage_used", "pe_cycles", "warranty_time"]
    assert got["first"] == got["ahead"][0] and project(snap())["first"] is None


def test_rate_in_words():
    assert endurance.rate_words(rate(GB)) == "30.4 GB/month"
    assert endurance.rate_words(rate(GB, calendar=False)).endswith("/month of power-on time")
