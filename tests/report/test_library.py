"""Members of a library: how each is drawn."""

from ssdrig.report import library
from ssdrig.report.library import Facts, Member

OWN = Facts("review-x")


def drives(*of):
    return [Member(Facts("elsewhere") if i > 1 else OWN, drive, op, "", {}, i < 2) for i, (drive, op) in enumerate(of)]


def test_drives_differ_in_colour_and_over_provisionings_in_fill_and_dash():
    ops = ("default OP", "25 % OP")
    members = drives(*((f"drive {n}", op) for n in range(6) for op in ops))
    looks = [library.look_of(members, i) for i in range(len(members))]
    colours = [library.colour_of(members, i) for i in range(len(members))]
    assert colours[::2] == colours[1::2] and len(set(colours)) == 6 and colours[0] == "--review"
    assert [look["hollow"] for look in looks] == [False, True] * 6
    assert len({look["glyph"] for look in looks}) == 12 and len({look["dash"] for look in looks}) == 2
    assert len({look["shape"] for look in looks}) == 6


def test_the_same_drive_from_another_review_counts_as_another_drive():
    members = drives(("A", "default OP"), ("A", "25 % OP"), ("A", "default OP"), ("A", "default OP"))
    keys = {(library.colour_of(members, i), library.look_of(members, i)["glyph"]) for i in range(4)}
    assert len(keys) == 4
