"""The lines at the foot of the terminal while a run goes on: in each width, with and without a rig."""

import time

import pytest

from ssdrig.base.progress import Part
from ssdrig.run import live
from ssdrig.run.live import Panel

NOON = time.mktime((2026, 11, 29, 12, 0, 0, 0, 0, -1))
LOAD = Panel(
    "3/7 load",
    0.37,
    740.0,
    (1600.0, 1900.0),
    "wrote 1.20 GB of 5.00 TB",
    "steady: slope 12 %, at most 10",
    [9000.0] * 40 + [0.0] + [38214.0] * 20,
    156.5e6,
    0.41e-3,
    NOON - 20,
    [4.1] * 60,
    61.0,
    [Part(" 4.15 W", 3), Part("0 lost", 8)],
)


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 200])
def test_every_line_is_shorter_than_the_terminal_and_has_what_matters(columns):
    lines = live.lines(LOAD, NOON, columns)
    assert len(lines) == 4 and all(0 < len(line) < columns for line in lines)
    course, rates, power, written = lines
    assert "3/7 load" in course and "in 26:40…31:40" in course
    assert "38,214 IOPS" in rates and "4.15 W" in power and "wrote 1.20 GB" in written


def test_a_wide_terminal_has_the_clock_time_of_the_end_the_latency_and_the_last_stall():
    course, rates, power, written = live.lines(LOAD, NOON, 200)
    assert "whole run ends 12:26…12:31" in course and "██████··········" in course and " 37%" in course
    assert "156 MB/s" in rates and "mean latency 410 µs" in rates and "last stall 11:59:40" in rates
    assert "61 °C" in power and "0 lost" in power
    assert written == "steady: slope 12 %, at most 10  wrote 1.20 GB of 5.00 TB"


def test_an_end_more_than_a_day_away_has_its_weekday():
    course = live.lines(LOAD._replace(left_s=(3600.0, 2 * 86400.0)), NOON, 200)[0]
    assert "13:00…Tue 12:00" in course


def test_a_step_without_end_shows_how_long_it_has_gone_on():
    course = live.lines(Panel("1/1 record", None, 75.0, None, "wrote 0 B"), NOON, 100)[0]
    assert course == "1/1 record  1:15"


def test_a_rest_without_a_rig_has_no_line_of_rates_or_power():
    lines = live.lines(Panel("2/7 rest", 0.5, 30.0, (60.0, 60.0), "wrote 0 B"), NOON, 100)
    assert [line.split()[0] for line in lines] == ["2/7", "wrote"]
