"""What the report calls runs, tests and figures, and how numbers are written and packed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packed import decoded

from ssdrig.reading.course import KEYS
from ssdrig.report import pack, words
from ssdrig.views.terms import TERMS, number, with_error


def test_labels_tell_runs_apart():
    def f(model, serial, op, simulated=False, user=0.0, assumed=False):
        out = {"model": model, "serial": serial, "op_percent": op, "simulated": simulated}
        return out | {"op_user_percent": user, "raw_nand_assumed": assumed}

    same = words.labels([f("a", "1", None), f("a", "1", None), f("a", "2", 25.0)])
    assert same[0] == ("a 1", "default OP", "a 1, default OP (run 1)", "1, default OP (run 1)")
    assert same[1][3] == "1, default OP (run 2)"
    assert same[2][:2] == ("a 2", "25 % OP")
    simulated = words.labels([f("SIMULATED a", "1", None, True), f("SIMULATED a", "2", 25.0, True)])
    assert [x[0] for x in simulated] == ["SIMULATED a"] * 2 and [x[3] for x in simulated] == ["default OP", "25 % OP"]
    one_drive = words.labels([f("a", "1", None), f("a", "1", 25)])
    assert [x[3] for x in one_drive] == ["default OP", "25 % OP"]
    others = words.labels([f("a", "1", None, user=20.0), f("a", "1", 25.0, user=20.0, assumed=True)])
    assert [x[1] for x in others] == ["20.0 % OP of user", "25 % OP (raw NAND assumed)"]


def test_what_all_names_share_is_left_out_of_them():
    def short(*names):
        return list(words.shortened(names).values())

    assert short("Samsung SSD 990 PRO 2TB", "Samsung SSD 980 2TB") == ["990 PRO", "980"]
    assert short("Samsung SSD 990 PRO", "Samsung SSD 990") == ["990 PRO", "990"]
    assert short("WD Blue", "Crucial P3") == ["WD Blue", "Crucial P3"]
    assert short("WD Blue", "WD Blue") == ["WD Blue"] and short("a", "a b") == ["a", "a b"]


def test_the_test_is_described_as_the_run_folder_has_it():
    class Data:
        header = {
            "method": {
                "title": "Performance consistency",
                "load": "random write over the whole tested range",
                "block_bytes": 16384,
                "queue_depth": 1,
                "fill_block_bytes": 1 << 20,
            }
        }

    figure = {"purge": "format", "fill_MBps": 400.0}
    assert words.title([Data]) == "Performance consistency"
    assert words.description(Data, figure) == (
        "16 KiB random write over the whole tested range at queue depth 1, after a purge (format) and a sequential fill"
        " with 1 MiB blocks."
    )
    del Data.header["method"]["fill_block_bytes"]
    assert words.description(Data, figure).endswith("a purge (format) and a sequential fill.")
    nothing = {"purge": None, "fill_MBps": None}
    assert words.description(Data, nothing) == "16 KiB random write over the whole tested range at queue depth 1."
    Data.header = {"method": {"name": "other"}}
    assert (words.title([Data]), words.description(Data, nothing)) == ("other", "other.")


@given(st.lists(st.integers(0, 2**40) | st.integers(0, 3), max_size=300))
def test_whole_numbers_of_any_size_come_back(numbers):
    assert decoded(pack.counts(np.array(numbers, float))).tolist() == numbers


def test_packed_numbers_come_back():
    watts = np.array([0.5, np.nan, 6.5, 3.3])
    assert decoded(pack.linear(watts)[0]) == pytest.approx(watts, abs=6 / 16376, nan_ok=True)
    lat = np.array([3.0, np.nan, 0.0, 1e6])
    assert decoded(pack.logarithmic(lat)) == pytest.approx([3.0, np.nan, np.nan, 1e6], rel=1e-3, nan_ok=True)
    tail = pack.few(np.array([812.34567, np.nan, 3000.0, 0.0, 812.34567] * 30))
    assert decoded(tail) == pytest.approx([812.35, np.nan, 3000.0, np.nan, 812.35] * 30, rel=1e-12, nan_ok=True)
    assert tail["values"] == [812.35, 3000.0]
    for pack_one in (pack.counts, lambda v: pack.linear(v)[0], pack.logarithmic, pack.few):
        assert decoded(pack_one(np.empty(0))).size == 0
        assert decoded(pack_one(np.full(65, 7.5 if pack_one is not pack.counts else 7))).tolist() == pytest.approx(
            [7.5 if pack_one is not pack.counts else 7] * 65
        )
    for pack_one in (lambda v: pack.linear(v)[0], pack.logarithmic, pack.few):
        assert np.isnan(decoded(pack_one(np.full(70, np.nan)))).all()


def test_packed_extremes_lie_outside():
    dice = np.random.default_rng(1)
    mean = dice.uniform(1, 5, 99)
    least, most = mean - dice.uniform(0, 1, 99) ** 9, mean + dice.uniform(0, 1, 99) ** 9
    mean[7] = least[7] = most[7] = np.nan
    packed = pack.with_extremes(mean, least, most)
    unpacked = [decoded(packed[0]), *(decoded(one, packed[0]) for one in packed[1:])]
    fine, short = 6 / 16376, 6 / 1023
    assert unpacked[0] == pytest.approx(mean, abs=fine, nan_ok=True)
    for values, of in zip(unpacked[1:], (least, most), strict=True):
        assert values == pytest.approx(of, abs=short + fine, nan_ok=True)
    known = np.isfinite(mean)
    assert (unpacked[1] <= unpacked[0])[known].all() and (unpacked[0] <= unpacked[2])[known].all()


def test_a_mean_beyond_its_extremes_stays_there():
    """It counts what lies between two seconds, too; and a second may have lost most of its samples."""
    mean, least, most = np.array([2.0, 2.0, 9.0]), np.array([1.0, 2.5, 1.0]), np.array([3.0, 4.0, 5.0])
    packed = pack.with_extremes(mean, least, most)
    assert decoded(packed[1], packed[0]) == pytest.approx(least, abs=8 / 1023)
    assert decoded(packed[2], packed[0]) == pytest.approx(most, abs=8 / 1023)


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        (None, 1, "–"),
        (0.0, 0, "0"),
        (-1.25, 2, "−1.25"),
        (1234567.6, 1, "1\u202f234\u202f567.6"),
        (-0.0004, 3, "0.000"),
        (-0.4, 0, "0"),
        (-0.0005001, 3, "−0.001"),
    ],
)
def test_number(value, places, text):
    assert number(value, places) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1.941, 0.0003, "1.94100 ± 0.00030"),
        (3.4262, 0.00996, "3.426 ± 0.010"),
        (3.4262, 0.00994, "3.4262 ± 0.0099"),
        (120.4, 37.0, "120 ± 37"),
        (120.4, 137.0, "120 ± 137"),
        (1.941, 0, "1.941"),
        (1.941, None, "1.941"),
        (None, 0.1, "–"),
    ],
)
def test_an_error_has_two_significant_digits_and_the_value_ends_with_it(value, error, text):
    assert with_error(value, error, 3) == text


def test_terms_are_figures_once():
    assert {t.key for t in TERMS} <= set(KEYS)
    assert len({t.key for t in TERMS}) == len(TERMS)
