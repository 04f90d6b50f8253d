"""Bytes and durations, as people write them and as ssdrig prints them."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.base import words
from ssdrig.base.errors import UsageError
from ssdrig.base.words import as_cell, unique


@pytest.mark.parametrize(
    "text, count",
    [
        ("4GiB", 4 << 30),
        ("4 KiB", 4096),
        (" 240 GB ", 240 * 10**9),
        ("1048576", 1 << 20),
        ("512 B", 512),
        ("3k", 3000),
        ("2PB", 2 * 10**15),
    ],
)
def test_parse_bytes(text, count):
    assert words.parse_bytes(text) == count and isinstance(words.parse_bytes(text), int)


@pytest.mark.parametrize("text", ["", "4gib", "-1", "1.5GiB", "GiB", "4 Gi B", "٣", "1_000", "4\nKiB x"])
def test_what_is_not_a_size(text):
    with pytest.raises(UsageError) as info:
        words.parse_bytes(text)
    assert info.value.seen == repr(text) and "GiB" in info.value.do


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("60 s", 60),
        ("60s", 60),
        ("5 ms", 0.005),
        ("20us", 20e-6),
        ("20 µs", 20e-6),
        ("7 ns", 7e-9),
        ("1.5 h", 5400),
        ("2 min", 120),
        ("5m", 300),
        ("1d", 86400),
    ],
)
def test_parse_seconds(text, seconds):
    assert words.parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "60", "s", "-1 s", "1e3 s", ".5 s", "1 M", "1 S", "1 s s", "inf s", "nan s"])
def test_what_is_not_a_duration(text):
    with pytest.raises(UsageError) as info:
        words.parse_seconds(text)
    assert info.value.seen == repr(text) and "ms" in info.value.do


@settings(max_examples=50)
@given(st.text(alphabet="0123456789. kKMGTiBsmhdnu-", max_size=8), st.sampled_from(["parse_bytes", "parse_seconds"]))
def test_any_text_is_a_number_or_refused(text, parser):
    try:
        assert getattr(words, parser)(text) >= 0
    except UsageError:
        pass


@settings(max_examples=50)
@given(st.integers(0, 1 << 60))
def test_an_exact_size_is_read_back(count):
    assert words.parse_bytes(words.exact_size(count)) == count


def test_an_exact_size():
    sizes = (0, 512, 1000, 4096, 1 << 17, 3 << 29, 10**9, 1 << 30)
    assert [words.exact_size(n) for n in sizes] == "0 B,512 B,1000 B,4 KiB,128 KiB,1536 MiB,1 GB,1 GiB".split(",")


@pytest.mark.parametrize(
    "count, text",
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (999_499, "999 kB"),
        (999_600, "1.00 MB"),
        (13_880_000_000_000, "13.9 TB"),
        (200e12, "200 TB"),
        (5.5e15, "5.50 PB"),
        (1.2e19, "12000 PB"),
        (0.25, "0 B"),
        (-3.5e9, "-3.50 GB"),
    ],
)
def test_size(count, text):
    assert words.size(count) == text


@pytest.mark.parametrize("seconds, text", [(0, "0:00"), (123.4, "2:03"), (3723, "1:02:03"), (-5, "0:00")])
def test_clock(seconds, text):
    assert words.clock(seconds) == text


@pytest.mark.parametrize(
    "days, text",
    [
        (0, "0.0 minutes"),
        (0.02, "29 minutes"),
        (0.041, "59 minutes"),
        (0.1, "2.4 hours"),
        (0.99, "24 hours"),
        (1, "1.0 days"),
        (5, "5.0 days"),
        (45, "45 days"),
        (100, "3.3 months"),
        (365, "12 months"),
        (950, "31 months"),
        (1500, "4.1 years"),
        (4000, "11 years"),
        (101 * 365.25, "over 100 years"),
    ],
)
def test_period(days, text):
    assert words.period(days) == text


@given(st.lists(st.sampled_from(["a", "a_2", "a_3", "b"]), max_size=8))
def test_names_are_told_apart(names):
    shown_names = unique(names)
    assert len({*shown_names}) == len(names) and all(
        new.startswith(old) for new, old in zip(shown_names, names, strict=True)
    )
    assert all(shown_names[names.index(name)] == name for name in names)


def test_no_cell_is_a_formula():
    for text in ("=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1"):
        assert as_cell(text) == "'" + text
    for value in (-1, -1.5, None, "", "a=1", "1-2", "−1"):
        assert as_cell(value) == value


@pytest.mark.parametrize(
    ("link", "slow"),
    [
        ("PCIe 4.0 x4 (drive: 5.0 x4)", "link PCIe 4.0 x4; the drive supports 5.0 x4: the slot may limit its speed"),
        ("SATA 3.0 Gb/s (drive: 6.0)", "link SATA 3.0 Gb/s; the drive supports 6.0: the slot may limit its speed"),
        ("PCIe 5.0 x4", None),
        ("", None),
    ],
)
def test_slow_link_is_the_only_one_that_is_warned_of(link, slow):
    assert words.slow_link(link) == slow


@pytest.mark.parametrize(
    ("value", "most", "shown"),
    [
        (1234.5, 3, "1234"),
        (999.6, 3, "1000"),
        (1.5, 3, "1.5"),
        (0.00001234, 2, "0.000012"),
        (0, 3, "0"),
        (-2.345, 2, "-2.3"),
    ]
    + [(123456789.0, 3, "123456789"), (0.09996, 3, "0.1"), (float("inf"), 3, "inf"), (100.0, 3, "100")],
)
def test_figure_in_digits_has_no_exponent(value, most, shown):
    assert words.digits(value, most) == shown


def test_figure_in_digits_is_as_printf_has_it_where_that_has_no_exponent():
    for exponent in range(-3, 3):
        for digit in (1.0, 1.2345, 9.4, 9.996, 5.005):
            value = digit * 10.0**exponent
            assert "e" in f"{value:.3g}" or words.digits(value, 3) == f"{value:.3g}"


def test_no_text_has_an_exponent():
    """Of a few digits: what a machine reads has six or nine."""
    free = ("virtual/", "publish/", "load/", "report/pack.py")  # a machine's formats
    host = Path(__file__).parents[2] / "host/ssdrig"
    files = [
        p for p in host.rglob("*.py") if not p.relative_to(host).as_posix().startswith(free) and not p.is_symlink()
    ]
    assert [str(p) for p in files if re.search(r":\.[2345]g\}", p.read_text())] == []
