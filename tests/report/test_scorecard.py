"""The scorecard of a review: what is better than what, and within which places a drive is."""

import pytest

from ssdrig.base.uncertain import Uncertain
from ssdrig.report import scorecard
from ssdrig.report.library import Compared, Entry, Facts, Member
from ssdrig.report.scorecard import Place
from ssdrig.views import context


def entries(*values):
    return [Entry(i, Uncertain(value, error), apart) for i, (value, error, apart) in enumerate(values)]


@pytest.mark.parametrize(
    "better, want", [("more", ["better", "alike", "worse"]), ("less", ["worse", "alike", "better"]), ("", [""] * 3)]
)
def test_another_drive_is_better_only_beyond_both_errors(better, want):
    mine, *others = entries((100.0, 3.0, None), (130.0, 5.0, None), (104.0, 3.0, None), (60.0, 2.0, None))
    assert [scorecard.against(mine, other, better, 4) for other in others] == want


def test_the_place_is_left_open_by_those_within_the_errors():
    mine, *others = entries((100.0, 3.0, None), (130.0, 5.0, None), (104.0, 3.0, None), (60.0, 2.0, None))
    assert scorecard.place(mine, others, "more", 4) == Place(2, 3, 4)
    assert scorecard.place(mine, others[:1], "less", 2) == Place(1, 1, 2)
    assert scorecard.place(mine, [], "more", 1) is None and scorecard.place(mine, others, "", 4) is None


def test_what_else_is_on_the_card_widens_the_doubt_of_the_table_too(monkeypatch):
    """The card compares all over-provisionings: the table claims no difference within its doubt."""
    members = [Member(Facts(name), name, op, "", {}, name == "A") for name in "AB" for op in ("default OP", "25 % OP")]
    for others, how in (((300.0, 3.0, None), "alike"), ((300.0, 3.0, "of another version"), "better")):
        of = entries((100.0, 3.0, None), others, (105.0, 3.0, None), others)
        one = Compared("k", "Speed", "MB/s", "more", of)
        monkeypatch.setattr(scorecard, "lines", lambda _, one=one: [(0, one)])
        assert f'data-against="{how}"' in scorecard.table(members)


def test_what_cannot_be_compared_has_no_place():
    mine, *others = entries((100.0, 3.0, None), (130.0, 5.0, "died"), (None, None, None), (60.0, None, None))
    assert [scorecard.against(mine, other, "more", 2) for other in others] == ["", "", "unknown"]
    assert scorecard.place(mine, others, "more", 2) is None
    assert scorecard.place(mine._replace(apart="host"), others, "more", 1) is None


@pytest.mark.parametrize(
    ("word", "values", "unit"), [("iops", [9e3], ""), ("lat_mean", [2e3], "ms"), ("W", [1.0], "W")]
)
def test_a_unit_stands_once_in_a_heading(word, values, unit):
    heading = context.unit(word, values).heading
    assert heading.count('class="unit"') == bool(unit) and heading.endswith(f">{unit}</span>" if unit else "IOPS")


def test_an_unknown_error_is_stated_below_the_table(monkeypatch):
    members = [Member(Facts("x"), "A", "default OP", "", {}, True)]
    for error, stated in ((None, True), (3.0, False)):
        one = Compared("k", "Speed", "MB/s", "more", [Entry(0, Uncertain(100.0, error))])
        monkeypatch.setattr(scorecard, "lines", lambda _, one=one: [(0, one)])
        assert ("without ±" in scorecard.table(members)) == stated


def test_struck_through_figure_of_another_drive_has_words(monkeypatch):
    """A screen reader does not read that a figure is struck through."""
    members = [Member(Facts(name), name, "default OP", "", {}, name == "A") for name in "AB"]
    for apart, count in (("host: BAD", 1), (None, 0)):
        one = Compared("k", "Speed", "MB/s", "more", entries((100.0, 3.0, None), (130.0, 5.0, apart)))
        monkeypatch.setattr(scorecard, "lines", lambda _, one=one: [(0, one)])
        assert scorecard.table(members).count('<span class="sr"> not comparable</span>') == count
