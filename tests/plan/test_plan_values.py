"""plan/values.py and plan/params.py: mixes, zones, points, ends, windows; and what may stand in a parameter's place."""

import pytest

from ssdrig.plan import params, quantity, values
from ssdrig.plan.values import Limit, Span, Until, Wrong

READ = [
    ("blocks", "4 KiB", ((4096, 100),)),
    ("blocks", {"4 KiB": 33, "8 KiB": 67}, ((8192, 67), (4096, 33))),
    ("blocks", {"4 KiB": 50, "512 B": 50}, ((4096, 50), (512, 50))),
    ("hot", [[50, 5], [30, 15], [20, 80]], ((50, 5), (30, 15), (20, 80))),
    ("hot", [[100, 100]], ((100, 100),)),
    ("smart", "60 s", 60.0),
    ("smart", "edges", "edges"),
    ("smart", "none", "none"),
    ("over", [{"read": [100, 0]}, {"qd": [1]}], [{"read": [100, 0]}, {"qd": [1]}]),
    ("until", [{"written": "4 x"}], [Until(written=quantity.Amount(4.0, None))]),
    ("until", [{"cliff": True}, {"time": "6 h"}], [Until(cliff=True), Until(time_s=21600.0)]),
    (
        "until",
        [{"steady": "pts", "value": "iops", "record": "1 min", "spaced": "30 min", "after": "1.5 x"}],
        [Until("pts", "iops", (), 60.0, 1800.0, quantity.Amount(1.5, None))],
    ),
    ("until", [{"steady": "pts", "track": ["iops", "W qd=1"]}], [Until("pts", None, ("iops", "W qd=1"))]),
    ("until", [{"steady": "pts", "track": ["iops"], "from": 2}], [Until("pts", None, ("iops",), judged=2)]),
    ("windows", {"a-1": "all", "2013": "last 20 %"}, {"a-1": Span(), "2013": Span(from_share=0.8)}),
    ("place", "1 GiB", 1 << 30),
    ("place", "behind", "behind"),
    ("span", "all", Span()),
    ("span", "until cliff", Span(cliff=True)),
    ("span", "from 70 %", Span(from_share=0.7)),
    ("span", "from 1400 s", Span(from_s=1400.0)),
    ("span", "from 0 s", Span(from_s=0.0)),
    ("span", "last 5 min", Span(from_s=-300.0)),
    ("span", "last 100 %", Span(from_share=0.0)),
    ("span", "0 s..60 s", Span(from_s=0.0, to_s=60.0)),
    ("span", "500 ms..1.5 h", Span(from_s=0.5, to_s=5400.0)),
    ("judge", {"window": "last 20 %", "rule": "pts"}, {"window": "last 20 %", "rule": "pts"}),
    (
        "points",
        [{"at": "max", "where": "lat_mean < 5 ms"}, {"at": "min", "qd": 1}],
        [{"at": "max", "where": Limit("lat_mean", "<", 5000.0, "lat_mean < 5 ms")}, {"at": "min", "qd": 1}],
    ),
    ("text", "Put the heatsink on (45 °C).", "Put the heatsink on (45 °C)."),
    ("value", "uJ/IO", "uJ/IO"),
    ("count", 3, 3),
]


@pytest.mark.parametrize("kind, value, expected", READ)
def test_values(kind, value, expected):
    value_ = values.read(value, kind)
    assert value_ == (value if expected is None else expected)


@pytest.mark.parametrize(
    "kind, value, message",
    [
        ("blocks", {}, "a mix such as"),
        ("blocks", 4096, 'do you mean "4096 B"?'),
        ("blocks", {"4 KiB": 99}, "which add up to 99"),
        ("blocks", {"4 KiB": 100, "8 KiB": 0}, "each above 0"),
        ("blocks", {"4 KiB": 50, "4096 B": 50}, 'add up the shares of "4096 B"'),
        ("blocks", {"4 KiB": True}, 'the share of "4 KiB" in x'),
        ("blocks", {"4 kib": 100}, 'each size in x|do you mean "4 KiB"?'),
        ("hot", [], "zones"),
        ("hot", "ab", "zones"),
        ("hot", {"a": 1}, "zones"),
        ("hot", [[50, 50, 0], [50, 50, 0]], "zones"),
        ("hot", [[100, 0], [0, 100]], "zones"),
        ("hot", [[1.5, 100]], "each number in x"),
        ("place", "ahead", "a size such as"),
        ("smart", "0 s", '"edges" or "none"'),
        ("smart", ["edges"], '"edges" or "none"'),
        ("over", {"read": [1]}, "one key each"),
        ("over", [{}], "one key each"),
        ("over", [{"read": []}], "read in x"),
        ("over", [{"read": 1}], "read in x"),
        ("over", [{"read": [[1]]}], "single values"),
        ("over", [{"block": [{"4 KiB": 100}]}], "single values"),
        ("until", [], "a list of ends"),
        ("until", {"time": "6 h"}, "a list of ends"),
        ("until", [{}], "one of steady, written, ios, time, cliff"),
        ("until", [{"time": 6}], 'time in x to be|do you mean "6 s"?'),
        ("until", [{"time": "6 h", "record": "1 s"}], "keys of time in x"),
        ("until", [{"cliff": 1}], "cliff in x to be true"),
        ("until", [{"steady": "aw", "value": "iops"}], "one of pts, wa, never"),
        ("until", [{"steady": "pts"}], "either value (in a load) or track"),
        ("until", [{"steady": "pts", "value": "iops", "track": ["iops"]}], "either value (in a load) or track"),
        ("until", [{"steady": "pts", "track": "iops"}], "a list of points"),
        ("until", [{"steady": "pts", "value": "iops", "from": 2}], "value without from"),
        ("until", [{"steady": "pts", "track": [" "]}], "a list of points"),
        ("until", [{"steady": "pts", "value": "iops", "spaced": "59 s"}], "no less than record"),
        ("windows", [], "a table such as"),
        ("windows", {"": "all"}, "each name in x"),
        ("windows", {"a": 1}, "a in x to be a window"),
        ("span", "from 100 %", "a window such as"),
        ("span", "from 101 %", "a window such as"),
        ("span", "last 0 s", "a window such as"),
        ("span", "last 0 %", "a window such as"),
        ("span", "60 s..60 s", "a window such as"),
        ("span", "10 %..20 %", "a window such as"),
        ("span", "from ٧0 %", "a window such as"),
        ("span", "All", "a window such as"),
        ("judge", {"window": "all"}, "a table such as"),
        ("judge", {"window": 1, "rule": "pts"}, "the name of a window"),
        ("judge", {"window": "all", "rule": "ptss"}, "do you mean 'pts'?"),
        ("points", [{"at": "best"}], "one of max, mid, min"),
        ("points", [{"at": "max"}, {"at": "max"}], "max twice"),
        ("points", [{"at": "max", "where": 5}], "a limit such as"),
        ("text", " ", "one line of text"),
        ("text", "a\nb", "one line of text"),
        ("text", "a\u202eb", "one line of text"),
        ("text", "a" * 401, "one line of text"),
        ("value", "IOPS", "one of iops"),
    ],
)
def test_what_is_refused(kind, value, message):
    with pytest.raises(Wrong) as raised:
        values.read(value, kind, "x")
    words = f"{raised.value.expected}; {raised.value.seen}; {raised.value.do}".replace("`", "")
    assert all(part in words for part in message.split("|")) and words.isprintable(), words


@pytest.mark.parametrize("kind", [*values.READERS, *quantity.EXPECTED])
def test_any_value_is_read_or_wrong(kind):
    odd = [None, True, 0, 1.5, "", "$x", [], {}, [[]], [{}], [None], {"a": []}, [{"a": [1]}], [[1, 2]], {"4 KiB": []}]
    for value in [*odd, *(value for _, value, _ in READ)]:
        try:
            values.read(value, kind)
        except Wrong as error:
            assert error.expected and error.seen and error.do


@pytest.mark.parametrize(
    "text, expected",
    [
        ("lat_mean < 5 ms", Limit("lat_mean", "<", 5000.0, "lat_mean < 5 ms")),
        ("lat_p99 > 250 µs", Limit("lat_p99", ">", 250.0, "lat_p99 > 250 µs")),
        ("iops > 1000", Limit("iops", ">", 1000.0, "iops > 1000")),
        ("MB/s > 100 MB/s", Limit("MB/s", ">", 100.0, "MB/s > 100 MB/s")),
        ("wa < 2.5", Limit("wa", "<", 2.5, "wa < 2.5")),
    ],
)
def test_limits(text, expected):
    assert values.limit(text) == expected


@pytest.mark.parametrize(
    "text", ["lat_mean < 5", "lat_mean < 5 MB", "lat < 5 ms", "iops = 5", "W < 3 A", "W < ٣", "", 3]
)
def test_wrong_limits(text):
    with pytest.raises(Wrong):
        values.limit(text)


@pytest.mark.parametrize(
    "one, other",
    [
        ("75 %", "raw 75 %"),
        ("75 %", "10 GiB"),
        ("2 x", "10 GiB"),
        ("4 KiB", {"4 KiB": 60, "8 KiB": 40}),
        (32, 0),
        ("60 s", "0 s"),
        ("60 s", "edges"),
        ("last 20 %", "all"),
        ("on", "off"),
        ("20 kIOPS", "1 IOPS"),
        ([1, 32], [0]),
        (["4 KiB"], ["1 MiB", "2 MiB"]),
        ([[100, 100]], [[50, 5], [50, 95]]),
    ],
)
def test_values_that_may_stand_for_one_another(one, other):
    assert params.families(one) & params.families(other)
    assert params.families(other) & params.families(one)


@pytest.mark.parametrize(
    "one, other",
    [("75 %", "60 s"), (32, "32"), (32, [32]), ("on", 1), ("60 s", "last 60 s"), ([1], ["1 s"]), ("60 s", "20 kIOPS")],
)
def test_values_that_may_not(one, other):
    assert params.families(one) and params.families(other)
    assert not params.families(one) & params.families(other)


@pytest.mark.parametrize("value", [True, 1.5, None, [], {}, "", "a b", [1, "1 s"], [True], {"a": [1]}, [[1]], "0x10 s"])
def test_what_cannot_be_a_parameter(value):
    assert not params.families(value)


@pytest.mark.parametrize(
    "words, expected",
    [
        ("32", 32),
        ("60 s", "60 s"),
        ('"60 s"', "60 s"),
        ('["4 KiB", "8 KiB"]', ["4 KiB", "8 KiB"]),
        ('{ "4 KiB" = 100 }', {"4 KiB": 100}),
        ("٣", "٣"),
        ("-1", "-1"),
        ("", ""),
    ],
)
def test_values_of_the_command_line(words, expected):
    assert params.of_words(words, "--set x=…") == expected
