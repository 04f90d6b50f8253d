"""plan/quantity.py: what a plan writes, and what it is."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.base.words import exact_size
from ssdrig.plan import quantity
from ssdrig.plan.quantity import Amount, Range

GIB = 1 << 30


@pytest.mark.parametrize(
    "kind, value, expected",
    [
        ("bytes", "1 B", 1),
        ("bytes", "4 KiB", 4096),
        ("bytes", "4KiB", 4096),
        ("bytes", "4 kB", 4000),
        ("bytes", "1.1 GB", 1_100_000_000),
        ("bytes", "4.35 TB", 4_350_000_000_000),
        ("bytes", "1.5 KiB", 1536),
        ("bytes", "1024 PiB", 1 << 60),
        ("block", "512 B", 512),
        ("block", "2560 B", 2560),
        ("block", "16 MiB", 16 << 20),
        ("time", "60 s", 60.0),
        ("time", "5 min", 300.0),
        ("time", "13 h", 46800.0),
        ("time", "1.5 d", 129600.0),
        ("time", "5 ms", 0.005),
        ("time", "10000000 s", 1e7),
        ("time", "1 ms", 0.001),
        ("pause", "0 s", 0.0),
        ("pause", "30 min", 1800.0),
        ("amount", "0.4 x", Amount(0.4, None)),
        ("amount", "1000 x", Amount(1000.0, None)),
        ("amount", "10 GiB", Amount(None, 10 * GIB)),
        ("range", "75 %", Range(75.0, False, None)),
        ("range", "100%", Range(100.0, False, None)),
        ("range", "raw 55.4 %", Range(55.4, True, None)),
        ("range", "10 GiB", Range(None, False, 10 * GIB)),
        ("rate", "20 kIOPS", 20_000.0),
        ("rate", "0.5 IOPS", 0.5),
        ("count", 1, 1),
        ("count", 1 << 31, 1 << 31),
        ("index", 0, 0),
        ("percent", 0, 0),
        ("percent", 100, 100),
        ("word", "mq-deadline", "mq-deadline"),
        ("word", "med_power_with_dipm", "med_power_with_dipm"),
        ("word", "2.0", "2.0"),
    ],
)
def test_values(kind, value, expected):
    quantity_ = quantity.parse(value, kind)
    assert quantity_ == expected and type(quantity_) is type(expected)


REFUSED = {
    "bytes": [
        "0 B",
        "0.5 B",
        "1.0001 KiB",
        "1025 PiB",
        "4 kib",
        "4 Kib",
        "4",
        "4 ",
        " 4 B",
        "4  B",
        "-4 B",
        "4 x",
        "4 %",
    ],
    "block": ["511 B", "513 B", "1000 B", "0 B", "17 MiB", "16777728 B", 4096],
    "time": [
        "0 s",
        "0.0 s",
        "0.9 ms",
        "1 ns",
        "10000001 s",
        "116 d 1 h",
        "60",
        "60 sec",
        "1e3 s",
        "½ s",
        "٦0 s",
        "60 S",
        "60 M",
        "s",
        "-1 s",
    ],
    "pause": ["-0 s", "0", 0, "none"],
    "amount": ["0 x", "1001 x", "2 X", "2", "0 GiB", "raw 2 x", "75 %"],
    "range": ["0 %", "100.001 %", "raw 101 %", "raw 10 GiB", "raw  75 %", "Raw 75 %", "raw75 %", "75", "2 x"],
    "rate": ["0 IOPS", "1000001 kIOPS", "20 kiops", "100 MB/s", 20],
    "count": [0, -1, True, 32.0, "32", (1 << 31) + 1, None],
    "index": [-1, False, "0"],
    "percent": [-1, 101, 65.0, "65 %", True],
    "word": ["", "Random", "a b", "-a", "ä", "a\n", "a" * 65, 1],
}
NEVER = [
    None,
    True,
    1.5,
    float("nan"),
    [],
    {},
    ["4 KiB"],
    b"4 KiB",
    "",
    "\x00",
    "9" * 400 + " B",
    "9" * 20 + " s",
    "$x",
]


@pytest.mark.parametrize("kind, value", [(kind, value) for kind, values in REFUSED.items() for value in values])
def test_what_is_refused(kind, value):
    with pytest.raises(ValueError) as raised:
        quantity.parse(value, kind)
    assert str(raised.value) == quantity.EXPECTED[kind]


@pytest.mark.parametrize("kind", quantity.EXPECTED)
def test_nothing_but_a_value_error(kind):
    for value in [*NEVER, 1 << 20_000]:  # which str() refuses
        with pytest.raises(ValueError):
            quantity.parse(value, kind)
        quantity.suggest(value, kind)


def test_the_example_in_each_message_is_a_value():
    for kind, words in quantity.EXPECTED.items():
        example = words.partition("such as ")[2].split(",")[0].split(" or ")[0].split(" (")[0].strip('"')
        assert quantity.parse(int(example) if kind in quantity.INTEGERS else example, kind) is not None


@pytest.mark.parametrize(
    "kind, value, likely",
    [
        ("time", "60 sec", '"60 s"'),
        ("time", "5 Minutes", '"5 min"'),
        ("time", "5 m", '"5 min"'),
        ("time", "2 hrs", '"2 h"'),
        ("time", " 60  s ", '"60 s"'),
        ("time", 60, '"60 s"'),
        ("time", "60", '"60 s"'),
        ("block", "4 kib", '"4 KiB"'),
        ("block", "4k", '"4 KiB"'),
        ("block", "4 KB", '"4 KiB"'),  # 4000 is no block
        ("bytes", "4 KB", '"4 kB"'),
        ("block", 4096, '"4096 B"'),
        ("range", "raw 75", '"raw 75 %"'),
        ("range", "75 percent", '"75 %"'),
        ("range", 75, '"75 %"'),
        ("amount", 2, '"2 x"'),
        ("amount", "2 X", '"2 x"'),
        ("rate", "20 kiops", '"20 kIOPS"'),
        ("count", "32", "32"),
        ("count", 32.0, "32"),
        ("percent", "65 %", "65"),
        ("time", "0 s", None),
        ("time", "5 bananas", None),
        ("time", True, None),
        ("range", 0, None),
        ("word", "A b", None),
        ("bytes", 10**30, None),
    ],
)
def test_what_was_meant(kind, value, likely):
    with pytest.raises(ValueError):
        quantity.parse(value, kind)
    assert quantity.suggest(value, kind) == likely


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.integers(1, 1 << 60), st.integers(0, 4))
def test_sizes_come_back(size, digits):
    assert quantity.parse(exact_size(size), "bytes") == size
    assert quantity.parse(exact_size(size), "amount") == Amount(None, size)
    scaled = Fraction(size, 10**digits)  # "0.0123 MB", exactly
    text = f"{size // 10**digits}.{size % 10**digits:0{digits}d}" if digits else str(size)
    if len(text) <= 18 and (scaled * 10**6).denominator == 1 and scaled * 10**6 <= 1 << 60:
        assert quantity.parse(f"{text} MB", "bytes") == scaled * 10**6


@settings(max_examples=120, deadline=None, derandomize=True, database=None)
@given(
    st.text(st.sampled_from("0123456789. rawKkMGiBsminhd%xIOPS½٣²\t\n-+e_"), max_size=12),
    st.sampled_from([*quantity.EXPECTED]),
)
def test_any_text_is_a_value_or_a_value_error(text, kind):
    try:
        assert quantity.parse(text, kind) is not None
    except ValueError:
        likely = quantity.suggest(text, kind)
        assert (
            likely is None
            or quantity.parse(int(likely) if kind in quantity.INTEGERS else likely[1:-1], kind) is not None
        )
