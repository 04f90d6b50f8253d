"""Lines that every generation of InfluxDB reads as the same point: encoder against an independent reader."""

import math

import numpy as np
import pytest
from fake_influx import parse_line
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.publish.influx import line_protocol as lp

M = lp.Measurement("power", ("drive", "rail", "run"), {"p_mean_W": "f", "samples": "i", "ok": "b", "text": "s"})


def line(tags=None, fields=None, t=1):
    return lp.encode(M, tags or {}, fields if fields is not None else {"samples": 1}, t)


def test_golden():
    tags = {"run": "r 1", "drive": "A,B=C", "rail": "5V"}
    fields = {"p_mean_W": 2.5, "samples": 1000, "ok": True, "text": 'he said "no\\"'}
    got = lp.encode(M, tags, fields, 1795177507894000000)
    assert got == (
        (
            rb'power,drive=A\,B\=C,rail=5V,run=r\ 1 p_mean_W=2.5,samples=1000i,ok=true,text="he said \"no\\\""'
            rb" 1795177507894000000"
        ),
        (),
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan"), np.float32("inf"), 10**400])
def test_what_is_not_finite_is_left_out_and_named(value):
    assert line(fields={"p_mean_W": value, "samples": 3}) == (b"power samples=3i 1", ("p_mean_W",))
    assert line(fields={"p_mean_W": value}) == (None, ("p_mean_W",))


@pytest.mark.parametrize(
    ("value", "is_valid"), [(2**63 - 1, True), (2**63, False), (-(2**63), True), (-(2**63) - 1, False), (2**128, False)]
)
def test_integers_to_64_bits(value, is_valid):
    got = line(fields={"samples": value, "ok": False})
    assert got == (
        (f"power samples={value}i,ok=false 1".encode(), ()) if is_valid else (b"power ok=false 1", ("samples",))
    )


def test_numpy_numbers_are_numbers():
    assert line(fields={"p_mean_W": np.float32(0.5), "samples": np.int64(7)}).line == b"power p_mean_W=0.5,samples=7i 1"
    assert (
        line(fields={"p_mean_W": 3, "samples": np.uint8(7)}, t=np.int64(5)).line == b"power p_mean_W=3.0,samples=7i 5"
    )


def test_unknown_fields_are_not_written():
    assert line(fields={"p_mean_W": None, "samples": 0}).line == b"power samples=0i 1"
    assert line(fields={"p_mean_W": None}) == (None, ())


@pytest.mark.parametrize(
    ("tags", "fields", "t"),
    [
        ({"colour": "red"}, {"samples": 1}, 1),
        ({}, {"watts": 1.0}, 1),
        ({}, {"samples": 1.0}, 1),
        ({}, {"samples": True}, 1),
        ({}, {"samples": "1"}, 1),
        ({}, {"p_mean_W": "1"}, 1),
        ({}, {"p_mean_W": False}, 1),
        ({}, {"p_mean_W": [1]}, 1),
        ({}, {"ok": 1}, 1),
        ({}, {"text": 1}, 1),
        ({}, {"samples": 1}, 1.5),
        ({}, {"samples": 1}, 2**63),
        ({}, {"samples": 1}, -(2**63)),
    ],
)
def test_what_the_schema_does_not_say_is_refused(tags, fields, t):
    with pytest.raises(lp.PointError):
        lp.encode(M, tags, fields, t)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("a\\", "a/"),
        ("a\\ b", "a/ b"),
        ("a\nb", "a b"),
        ("a\r\nb\n", "a  b"),
        ("\x00", None),
        ("", None),
        ("   ", None),
        ("#1", "#1"),
        ('"q"', '"q"'),
        ("\ud800x", "?x"),
        (b"\xff1", "\ufffd1"),
        ("µW", "µW"),
        ("a\u2028b", "a b"),
    ],
)
def test_awkward_tags(value, stored):
    tags = dict(parse_line(line({"drive": value, "run": "r"}).line)[1])
    assert tags == ({"run": "r"} if stored is None else {"drive": stored, "run": "r"})


@settings(max_examples=300, deadline=None)
@given(
    st.fixed_dictionaries({k: st.text(max_size=12) for k in M.tags}),
    st.floats(),
    st.integers(-(2**65), 2**65),
    st.booleans(),
    st.text(max_size=20),
    st.integers(-(2**62), 2**62),
)
def test_what_is_written_is_what_is_read(tags, f, i, b, s, t):
    got = lp.encode(M, tags, {"p_mean_W": f, "samples": i, "ok": b, "text": s}, t)
    assert b"\n" not in got.line and b"\r" not in got.line
    measurement, read_tags, fields, read_t = parse_line(got.line)
    assert (measurement, read_t) == ("power", t)
    assert read_tags == tuple((k, lp.clean_tag(tags[k])) for k in M.tags if lp.clean_tag(tags[k]))
    want = {"p_mean_W": f, "samples": i, "ok": b, "text": lp.clean(s)}
    assert fields == {k: v for k, v in want.items() if k not in got.left_out}
    assert ("p_mean_W" in got.left_out) == (not math.isfinite(f))
    series, again = lp.series_and_time(got.line)
    assert again == t and got.line.startswith(series + b" p" if math.isfinite(f) else series + b" ")
    assert series == lp.encode(M, tags, {"text": "a b 5"}, 9).line[: len(series)]


@pytest.mark.parametrize("bad", [b"", b"power", b"power 1", b"power a=1i", b"power a=1i x", b"power,run=a\\ b 5"])
def test_what_is_no_line_of_ours(bad):
    with pytest.raises(lp.PointError):
        lp.series_and_time(bad)


def test_the_schema_file_is_good():
    schema = lp.read_schema()
    assert list(schema) == [
        "power",
        "drive_power",
        "fio_interval",
        "fio_live",
        "load_second",
        "ssd_wear",
        "smart_device",
        "smart_attribute",
        "rig_event",
        "host_power",
        "application",
        "powerloss_cut",
        "powerloss_bound",
        "retention_baseline",
        "retention_pass",
        "retention_storage",
        "run_result",
        "run_figure",
        "run_value",
    ]
    assert schema["power"].tags == ("drive", "host", "rail", "run")
    assert schema["power"].fields["samples"] == "i" and schema["ssd_wear"].fields["wa"] == "f"


GOOD = 'schema = 3\n[m]\ntags = ["a", "b"]\nfields = { x = "f" }\n'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("schema = 3", "schema = 2"),
        ("[m]", '["#m"]'),
        ("[m]", "[time]"),
        ('"a", "b"', '"b", "a"'),
        ('"a", "b"', '"a", "a"'),
        ('"a", "b"', '"a", "time"'),
        ('"a", "b"', '"a", "x"'),
        ('x = "f"', 'x = "u"'),
        ('x = "f"', 'time = "f"'),
        ('x = "f"', ""),
    ],
)
def test_a_schema_that_some_server_misreads_is_refused(old, new):
    assert lp.parse_schema(GOOD)["m"].tags == ("a", "b")
    with pytest.raises(lp.PointError):
        lp.parse_schema(GOOD.replace(old, new))


EXAMPLES = lp.SCHEMA_FILE.parent / "examples" / "influx"


def examples(name):
    return (EXAMPLES / name).read_bytes().splitlines()


@pytest.mark.parametrize("text", examples("good.lp"))
def test_good_examples_are_of_the_schema(text):
    measurement, tags, fields, t = parse_line(text)
    m = lp.read_schema()[measurement]
    assert tuple(k for k, _ in tags) == m.tags and lp.series_and_time(text)[1] == t
    kinds = {int: "i", float: "f", str: "s", bool: "b"}
    assert {k: kinds[type(v)] for k, v in fields.items()}.items() <= m.fields.items()
    again = lp.encode(m, dict(tags), fields, t)
    assert again.line == text and again.left_out == ()


@pytest.mark.parametrize("text", examples("bad.lp"))
def test_bad_examples_are_refused(text):
    with pytest.raises(ValueError):
        parse_line(text)
